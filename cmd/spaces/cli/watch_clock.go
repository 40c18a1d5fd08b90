package cli

import (
	"math/rand/v2"
	"time"
)

const (
	// quiet is how long nothing must have changed before it is planned: an editor's save
	// is several changes.
	quiet = 100 * time.Millisecond
	// patience is how long a storm of changes may put a plan off, and a file that is open
	// to write to.
	patience = time.Second
	// the engine's return is looked for this often at first, and at last.
	soonest, latest = 200 * time.Millisecond, 15 * time.Second
)

// clock is what a watch waits for, beside files, engine and people.
type clock struct {
	settle    *time.Timer
	retry     *time.Timer
	reconnect *time.Timer
	audit     *time.Ticker

	had   time.Time     // when the engine was there last, after it wasn't
	since time.Time     // of the first change that is not planned yet; zero for none
	delay time.Duration // before the engine is looked for again
	busy  time.Duration // before it is tried again to begin; zero if nothing stood in the way
}

func newClock(audit time.Duration) clock {
	c := clock{
		settle: time.NewTimer(time.Hour), retry: time.NewTimer(time.Hour), reconnect: time.NewTimer(time.Hour),
		audit: time.NewTicker(audit),
	}
	c.settle.Stop()
	c.retry.Stop()
	c.reconnect.Stop()
	return c
}

func (c *clock) stop() {
	c.settle.Stop()
	c.retry.Stop()
	c.reconnect.Stop()
	c.audit.Stop()
}

// heard puts planning off until it is quiet, within bounds.
func (c *clock) heard(now time.Time) {
	if c.since.IsZero() {
		c.since = now
	}
	c.settle.Reset(max(0, min(quiet, patience-now.Sub(c.since))))
}

// lost begins to look for the engine. One that comes and goes is looked for as late as
// one that stays away.
func (c *clock) lost(now time.Time) {
	if now.Sub(c.had) >= recovery {
		c.delay = 0
	}
	c.lookAgain()
}

// lookAgain sets when to look for the engine, later each time. Not all watches of a
// machine come at the same moment.
func (c *clock) lookAgain() {
	c.delay = min(max(soonest, 2*c.delay), latest)
	c.reconnect.Reset(c.delay/2 + rand.N(c.delay))
}

// notYet is how long to wait after nothing could be begun, longer each time.
func (c *clock) notYet() time.Duration {
	c.busy = min(max(firstPause, 2*c.busy), longestPause)
	return c.busy
}

const (
	// a subject is tried again after this at first, twice as long each time, and at most.
	firstPause, longestPause = time.Second, 5 * time.Minute
	// whoever held this long past its last pause has recovered.
	recovery = time.Minute
)

// pace keeps what fails, or doesn't last, from being tried again and again: the time of
// the last attempt on each subject, and the pause after it.
type pace struct{ last map[string]attempt }

type attempt struct {
	at    time.Time
	pause time.Duration
}

// tried notes attempts.
func (p *pace) tried(now time.Time, subjects ...string) {
	if p.last == nil {
		p.last = map[string]attempt{}
	}
	for _, s := range subjects {
		before, known := p.last[s]
		pause := firstPause
		if known && now.Sub(before.at) < before.pause+recovery {
			pause = min(2*before.pause, longestPause)
		}
		p.last[s] = attempt{now, pause}
	}
}

// wait is how long to leave all of some subjects alone; zero or less for not at all.
func (p *pace) wait(now time.Time, subjects ...string) time.Duration {
	longest := time.Duration(0)
	for _, s := range subjects {
		if a, known := p.last[s]; known {
			longest = max(longest, a.at.Add(a.pause).Sub(now))
		}
	}
	return longest
}

// renew lets everything be tried soon: the files changed, perhaps for the better.
func (p *pace) renew() {
	for s, a := range p.last {
		p.last[s] = attempt{a.at, firstPause}
	}
}
