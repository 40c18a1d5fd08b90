package places

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"spaces/reconcile"
)

// timeouts bound every kind of call to the engine, and every wait.
type timeouts struct {
	read    time.Duration
	create  time.Duration
	start   time.Duration
	remove  time.Duration
	network time.Duration
	update  time.Duration
	build   time.Duration
	pull    time.Duration
	// stop is beside the time that the container itself is given.
	stop time.Duration
	// rollback bounds all of bringing an old container back.
	rollback time.Duration

	gone    time.Duration // for a removal that is under way
	name    time.Duration // for the name of what is gone to be free
	ready   time.Duration // for a container that others wait for
	look    time.Duration // how long a container just started is looked at
	steady  time.Duration // how long one without a health check runs to count as ready
	poll    time.Duration
	attempt time.Duration // between attempts at a rollback's calls
}

func defaultTimeouts() timeouts {
	return timeouts{
		read:     readTimeout,
		create:   2 * time.Minute,
		start:    3 * time.Minute,
		remove:   2 * time.Minute,
		network:  time.Minute,
		update:   time.Minute,
		build:    2 * time.Hour,
		pull:     time.Hour,
		stop:     time.Minute,
		rollback: 5 * time.Minute,
		gone:     time.Minute,
		ready:    5 * time.Minute,
		look:     400 * time.Millisecond,
		steady:   time.Second,
		poll:     50 * time.Millisecond,
		attempt:  200 * time.Millisecond,
	}
}

// defaultStop is the engine's own time for a container that names none.
const defaultStop = 10 * time.Second

// stop bounds a stop by the time that the container is given, and a margin.
func (t timeouts) stopping(ctx context.Context, seconds *int) (context.Context, context.CancelFunc) {
	given := defaultStop
	if seconds != nil {
		given = time.Duration(*seconds) * time.Second
	}
	if given < 0 { // -1 waits for as long as it takes
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, given+t.stop)
}

// pause waits, less long if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// EndedError says that a container was started and doesn't run. It is left as it is,
// for its logs and for the next plan.
type EndedError struct {
	Name     string
	State    reconcile.State
	ExitCode int
	// Restarts are how often the engine has started it again since.
	Restarts int
	// Log are the last lines it printed, a few at most.
	Log []string
}

func (e *EndedError) Error() string {
	s := fmt.Sprintf("container %s was started and doesn't run: %s, exit status %d", e.Name, e.State, e.ExitCode)
	if e.Restarts > 0 {
		s = fmt.Sprintf("container %s was started and doesn't stay up: it ended and was restarted, %d times so far", e.Name, e.Restarts)
	}
	if len(e.Log) > 0 {
		s += "; it printed last:\n  " + strings.Join(e.Log, "\n  ")
	}
	return s
}

// runs looks at a container that was just started, for long enough to see a command
// that ends at once, and returns it as it is then.
func (a *Applier) runs(ctx context.Context, id, name string, look time.Duration) (*live, error) {
	if err := pause(ctx, look); err != nil {
		return nil, fmt.Errorf("cannot see whether container %s runs: %w", name, err)
	}
	got, err := a.inspect(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case got == nil:
		return nil, &MovedError{What: containerKey(name), How: "it was removed as it started"}
	case isRunning(got) && got.RestartCount == 0: // counted from this start on
		return got, nil
	}
	return nil, a.ended(ctx, got)
}

// isRunning is true for a process that is there; one between two restarts isn't.
func isRunning(c *live) bool {
	return c.State.Running && !c.State.Restarting && !c.State.Paused
}

func (a *Applier) ended(ctx context.Context, c *live) *EndedError {
	return &EndedError{
		Name:     c.name(),
		State:    c.state(),
		ExitCode: c.State.ExitCode,
		Restarts: c.RestartCount,
		Log:      a.lastLines(ctx, c.ID, c.Config.Tty),
	}
}

const (
	logLines     = 5
	logLineBytes = 200
)

// lastLines are the last lines of a container's log, for an error's text; none where
// they can't be read.
func (a *Applier) lastLines(ctx context.Context, id string, tty bool) []string {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	log, err := a.docker.ContainerLogs(ctx, id, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Tail: fmt.Sprint(logLines),
	})
	if err != nil {
		return nil
	}
	defer log.Close()
	var out bytes.Buffer
	bounded := io.LimitReader(log, 1<<20)
	if tty {
		_, err = io.Copy(&out, bounded)
	} else {
		_, err = stdcopy.StdCopy(&out, &out, bounded)
	}
	if err != nil && out.Len() == 0 {
		return nil
	}
	return tail(a.secrets.mask(out.String()), logLines)
}

// secrets are values of variables that are sensitive and were given to containers: a
// program may print what it was given.
type secrets struct {
	mu     sync.Mutex
	values []string
}

func (s *secrets) add(c reconcile.Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range c.Env {
		if v.Sensitive && v.Value != "" {
			s.values = append(s.values, v.Value)
		}
	}
}

func (s *secrets) mask(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, "(sensitive)")
	}
	return text
}

// tail are the last lines of a text, each cut to a bearable length and without what a
// terminal would obey.
func tail(text string, n int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(printable(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return slices.Clone(lines[max(0, len(lines)-n):])
}

func printable(line string) string {
	if len(line) > logLineBytes {
		line = strings.ToValidUTF8(line[:logLineBytes], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, line)
}

// waitGone waits until a container that is being removed is no more.
func (a *Applier) waitGone(ctx context.Context, id, name string) error {
	limit := time.Now().Add(a.timeouts.gone)
	for {
		got, err := a.inspect(ctx, id)
		if err != nil {
			return err
		}
		if got == nil {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("cannot remove container %s: the engine has not finished in %s", name, a.timeouts.gone)
		}
		if err := pause(ctx, a.timeouts.poll); err != nil {
			return fmt.Errorf("cannot see container %s go: %w", name, err)
		}
	}
}

// waitReady waits for containers that others depend on: until healthy where one has a
// health check, else until it has run for a second.
func (a *Applier) waitReady(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := a.waitOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) waitOne(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeouts.ready,
		fmt.Errorf("it was not ready in %s", a.timeouts.ready))
	defer cancel()
	var since steadiness
	for {
		got, err := a.find(ctx, name)
		if err != nil {
			return fmt.Errorf("cannot wait for %s: %w", name, err)
		}
		if got == nil {
			return fmt.Errorf("cannot wait for %s: there is no such container", name)
		}
		switch ready, err := a.isReady(ctx, got, &since); {
		case err != nil:
			return fmt.Errorf("cannot wait for %s: %w", name, err)
		case ready:
			return nil
		}
		if err := pause(ctx, a.timeouts.poll); err != nil {
			return fmt.Errorf("cannot wait for %s: %w", name, err)
		}
	}
}

// steadiness is since when a container has run without a break.
type steadiness struct {
	startedAt string // as the engine says
	since     time.Time
}

func (a *Applier) isReady(ctx context.Context, c *live, s *steadiness) (bool, error) {
	if h := c.State.Health; h != nil && h.Status != container.NoHealthcheck && h.Status != "" {
		if !c.active() {
			return false, a.ended(ctx, c)
		}
		if h.Status == container.Unhealthy {
			return false, fmt.Errorf("container %s is unhealthy", c.name())
		}
		return h.Status == container.Healthy, nil
	}
	switch {
	case c.State.Restarting:
		*s = steadiness{}
		return false, nil
	case !c.State.Running:
		return false, a.ended(ctx, c)
	}
	if s.startedAt != c.State.StartedAt {
		*s = steadiness{c.State.StartedAt, time.Now()}
		// The engine's clock is this machine's; if it is not, the wait is a second.
		if at, err := time.Parse(time.RFC3339Nano, c.State.StartedAt); err == nil && at.Before(s.since) {
			s.since = at
		}
	}
	return time.Since(s.since) >= a.timeouts.steady, nil
}
