package cli

import (
	"fmt"
	"strings"
	"sync"

	"spaces/reconcile"
)

// progress prints what becomes of a plan's steps as it happens: a line each, and on a
// terminal one more that says what runs.
type progress struct {
	app     *app
	colours colours
	total   int

	mu      sync.Mutex
	ended   int
	running []string
	shown   bool // the line of what runs stands at the bottom
}

func (a *app) newProgress(plan *reconcile.Plan) *progress {
	return &progress{app: a, colours: a.outColours(), total: len(plan.Items)}
}

// event hears of one item.
func (p *progress) event(e reconcile.Event) {
	if p.app.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Phase {
	case reconcile.PhaseStarted:
		p.running = append(p.running, e.Item)
	case reconcile.PhaseDone:
		p.finish(e.Item)
		p.line(p.colours.gained("✓") + " " + printable(e.Item))
	case reconcile.PhaseFailed:
		p.finish(e.Item)
		p.line(p.colours.lost("✗") + " " + printable(e.Item+": "+strings.ReplaceAll(e.Err.Error(), "\n", "\n    ")))
	case reconcile.PhaseSkipped:
		return // the end tells
	}
	p.status()
}

func (p *progress) finish(item string) {
	p.ended++
	for i, r := range p.running {
		if r == item {
			p.running = append(p.running[:i], p.running[i+1:]...)
			return
		}
	}
}

// output hears what builds and pulls print.
func (p *progress) output(image, line string) {
	if p.app.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(p.colours.faint(printable("  " + image + " | " + line)))
	p.status()
}

// line prints a line above that of what runs.
func (p *progress) line(s string) {
	p.clear()
	fmt.Fprintln(p.app.out, s)
	p.app.flush()
}

// status says what runs, on a terminal.
func (p *progress) status() {
	columns := p.app.env.Stdout.Columns
	if columns == 0 {
		return
	}
	p.clear()
	if len(p.running) > 0 {
		text := printable(fmt.Sprintf("%d of %d; now: %s", p.ended, p.total, strings.Join(p.running, ", ")))
		if runes := []rune(text); len(runes) >= columns {
			text = string(runes[:max(0, columns-2)]) + "…"
		}
		fmt.Fprint(p.app.out, p.colours.faint(text))
		p.shown = true
	}
	p.app.flush()
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.app.out, "\r\x1b[K")
		p.shown = false
	}
}

// end takes the line of what runs away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.app.flush()
}
