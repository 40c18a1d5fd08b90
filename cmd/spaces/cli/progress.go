package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"spaces/reconcile"
)

// progress tells what becomes of a plan's steps as it happens: a line for each that ended,
// and on a terminal, below those, what runs, since when, and how much is left.
type progress struct {
	app     *app
	colours colours
	total   int
	// items are what runs for an image's output, by what the output is named after.
	items map[string]string
	// stopping ends when no new step starts any more.
	stopping context.Context
	now      func() time.Time

	mu      sync.Mutex
	began   time.Time
	ended   int
	failed  int
	running []runningStep
	region  region

	quit chan struct{}
	beat sync.WaitGroup
}

// runningStep is a step that runs.
type runningStep struct {
	item  string
	since time.Time
	said  string // the last line of a build's or a pull's output
}

// tick is how often what runs is drawn anew, for the time it takes and the terminal's size.
const tick = 250 * time.Millisecond

// newProgress begins to tell. The context is the one that stops the steps.
func (a *app) newProgress(ctx context.Context, plan *reconcile.Plan) *progress {
	p := newProgress(ctx, a, plan, time.Now)
	if p.live() {
		p.beat.Go(func() {
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					p.mu.Lock()
					p.draw("")
					p.mu.Unlock()
				case <-p.quit:
					return
				}
			}
		})
	}
	return p
}

func newProgress(ctx context.Context, a *app, plan *reconcile.Plan, now func() time.Time) *progress {
	p := &progress{
		app: a, colours: a.outColours(), total: len(plan.Items), items: map[string]string{},
		stopping: ctx, now: now, began: now(), quit: make(chan struct{}),
	}
	for _, i := range plan.Items {
		switch step := i.Step.(type) {
		case reconcile.BuildImage:
			p.items[step.Image.Address.String()] = i.ID
		case reconcile.PullImage:
			p.items[step.Reference] = i.ID
		}
	}
	return p
}

// live tells whether what runs can be drawn: on a terminal that can move its cursor.
func (p *progress) live() bool {
	return p.app.env.Stdout.Columns > 0 && !p.app.json && p.app.getenv("TERM") != "dumb"
}

// event hears of one item.
func (p *progress) event(e reconcile.Event) {
	if p.app.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line := ""
	switch e.Phase {
	case reconcile.PhaseStarted:
		p.running = append(p.running, runningStep{item: e.Item, since: p.now()})
	case reconcile.PhaseDone:
		line = p.colours.gained("✓") + " " + printable(e.Item) + p.colours.faint(p.finish(e.Item)) + "\n"
	case reconcile.PhaseFailed:
		p.failed++
		took := p.finish(e.Item)
		line = p.colours.lost("✗") + " " + printable(e.Item+": "+strings.ReplaceAll(e.Err.Error(), "\n", "\n    ")) + p.colours.faint(took) + "\n"
	case reconcile.PhaseSkipped:
		p.ended++
		return // the end tells
	}
	p.draw(line)
}

// finish takes a step off what runs. On a terminal it says how long that took, from a
// second up.
func (p *progress) finish(item string) string {
	p.ended++
	at := slices.IndexFunc(p.running, func(s runningStep) bool { return s.item == item })
	if at < 0 {
		return ""
	}
	took := elapsed(p.now().Sub(p.running[at].since))
	p.running = slices.Delete(p.running, at, at+1)
	if took == "" || !p.live() {
		return ""
	}
	return "  " + took
}

// elapsed is a time in whole seconds; nothing where it is less than one.
func elapsed(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return d.Truncate(time.Second).String()
}

// output hears what builds and pulls print. On a terminal the last line of it stands
// beside the step; all else of it is in the error, should it fail.
func (p *progress) output(image, line string) {
	if p.app.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.running, func(s runningStep) bool { return s.item == p.items[image] })
	if p.live() && at >= 0 {
		p.running[at].said = line
		p.draw("")
		return
	}
	p.draw(p.colours.faint(printable("  "+image+" | "+line)) + "\n")
}

// draw prints what stays, and below it what runs.
func (p *progress) draw(stays string) {
	if !p.live() {
		p.app.out.WriteString(stays)
	} else {
		columns, rows := p.app.env.Stdout.size()
		p.app.out.WriteString(p.region.frame(stays, p.lines(columns, rows), columns))
	}
	p.app.flush()
}

// lines are what runs, in so much room.
func (p *progress) lines(columns, rows int) []string {
	if len(p.running) == 0 {
		return nil
	}
	columns-- // a full line may or may not have moved the cursor on
	now := p.now()
	head := fmt.Sprintf("%d of %d", p.ended, p.total)
	if took := elapsed(now.Sub(p.began)); took != "" {
		head += ", " + took
	}
	if p.failed > 0 {
		head += fmt.Sprintf(", %d failed", p.failed)
	}
	switch {
	case p.stopping.Err() != nil:
		head += "; stopping: waiting for what runs, interrupt again to abort it"
	case p.failed > 0:
		head += "; stopping: waiting for what runs"
	}
	out := []string{p.colours.title(fitted(head, columns))}
	most := min(reconcile.DefaultParallelism, max(1, rows/2-1))
	shown := p.running
	if len(shown) > most {
		shown = shown[:most-1]
	}
	for _, s := range shown {
		text := "  " + s.item
		if took := elapsed(now.Sub(s.since)); took != "" {
			text += "  " + took
		}
		if s.said != "" {
			text += "  | " + s.said
		}
		out = append(out, p.colours.faint(fitted(strings.ReplaceAll(harmless(text), "\t", " "), columns)))
	}
	if more := len(p.running) - len(shown); more > 0 {
		out = append(out, p.colours.faint(fitted(fmt.Sprintf("  and %d more", more), columns)))
	}
	return out
}

// end takes what runs away, and leaves the cursor at the beginning of a line.
func (p *progress) end() {
	close(p.quit)
	p.beat.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	p.draw("")
}
