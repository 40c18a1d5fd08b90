package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"spaces/reconcile"
)

// watchEvent is a line of watch --json; docs/watch.md says which kind has which fields.
type watchEvent struct {
	FormatVersion int       `json:"format_version"`
	Time          time.Time `json:"time"`
	Kind          string    `json:"kind"`

	Project  string `json:"project,omitempty"`
	Folder   string `json:"folder,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Engine   string `json:"engine,omitempty"`

	Trigger  string            `json:"trigger,omitempty"`
	TookMS   *float64          `json:"took_ms,omitempty"`
	Decision string            `json:"decision,omitempty"`
	Again    bool              `json:"again,omitempty"`
	Asks     []string          `json:"asks,omitempty"`
	Plan     *reconcile.Record `json:"plan,omitempty"`

	Item   string          `json:"item,omitempty"`
	Phase  reconcile.Phase `json:"phase,omitempty"`
	Image  string          `json:"image,omitempty"`
	Line   string          `json:"line,omitempty"`
	Error  string          `json:"error,omitempty"`
	Result *applyResult    `json:"result,omitempty"`

	Diagnostics []message `json:"diagnostics,omitempty"`
	Differences []string  `json:"differences,omitempty"`
}

// The kinds of events.
const (
	kindWatching = "watching"
	kindPlanned  = "planned"
	kindStep     = "step"
	kindOutput   = "output"
	kindApplied  = "applied"
	kindProblem  = "problem"
	kindGone     = "engine-gone"
	kindBack     = "engine-back"
	kindDefect   = "defect"
	kindStopped  = "stopped"
)

// tell writes an event for a program.
func (w *watch) tell(e watchEvent) {
	e.FormatVersion, e.Time = formatVersion, time.Now().UTC().Truncate(time.Millisecond)
	out := json.NewEncoder(w.out)
	out.SetEscapeHTML(false)
	if err := out.Encode(e); err != nil {
		panic(fmt.Sprintf("cli: an event can't be encoded: %v", err))
	}
	w.flush()
}

// say writes a line for a person.
func (w *watch) say(format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	fmt.Fprintf(w.out, "%s %s\n", w.outColours().faint(time.Now().Format(time.TimeOnly)), text)
	w.flush()
}

func (w *watch) sayWatching() {
	d, name := w.project.desired, w.engine.Features().Name
	if w.json {
		w.tell(watchEvent{Kind: kindWatching, Project: d.Project, Folder: w.project.folder, Endpoint: d.Endpoint, Engine: name})
		return
	}
	w.say("watching %s: project %s on %s at %s", w.project.folder, d.Project, name, d.Endpoint)
}

func (w *watch) sayPlanned(p *proposal, again bool) {
	plan := p.view.plan
	if w.json {
		took := float64(p.took.Microseconds()) / 1000
		e := watchEvent{Kind: kindPlanned, Trigger: p.trigger, TookMS: &took, Decision: p.decision, Again: again, Asks: p.asks}
		if !again {
			record := plan.Record()
			e.Plan = &record
		}
		w.tell(e)
		return
	}
	after := fmt.Sprintf("%s: planned in %s", map[string]string{
		triggerStart: "start", triggerFiles: "files changed", triggerEngine: "engine",
	}[p.trigger], p.took.Round(time.Millisecond))
	switch {
	case p.decision == decisionNothing:
		if p.trigger != triggerEngine || !w.settled {
			w.say("%s: nothing to do", after)
		}
		w.settled = true
		return
	case again:
		if p.trigger != triggerEngine {
			w.say("%s: the same as before", after)
		}
		return
	}
	w.settled = false
	w.say("%s", after)
	w.printPlan(plan)
	w.flush()
	switch p.decision {
	case decisionRefused:
		w.printRefusals(p.refusals, w.project.sources, false)
		w.say("refused: a person must act first")
	case decisionOnly:
		w.say("only planned")
	case decisionWait:
		w.say("waiting: run `spaces apply` to go ahead\n%s", indented(strings.Join(p.asks, "\n")))
	}
}

// sayQuestion asks on the terminal.
func (w *watch) sayQuestion(p *proposal) {
	w.say("asking\n%s", indented(strings.Join(p.asks, "\n")))
	fmt.Fprintf(w.env.Question, "\n%s ", w.question)
}

func (w *watch) sayDeclined() {
	w.say("not applied: only 'yes' goes ahead; the next change is planned")
}

// sayApplying says that nothing stands in the way any more. A program sees the steps.
func (w *watch) sayApplying(plan *reconcile.Plan) {
	if !w.json {
		w.say("applying %s", count(len(plan.Items), "step", "steps"))
	}
}

func (w *watch) sayApplied(result reconcile.Result, failed *reconcile.ApplyError) {
	if w.json {
		w.tell(watchEvent{Kind: kindApplied, Result: resultOf(result, failed)})
		return
	}
	if failed == nil {
		w.say("applied %s", count(len(result.Done), "step", "steps"))
		return
	}
	w.conclude(result, failed)
	w.say("not all of it was applied; it is planned again")
}

// topic is what a problem is about.
type topic string

const (
	ofFiles    topic = "files"
	ofWatching topic = "watching"
	ofEngine   topic = "engine"
	ofApply    topic = "apply"
)

// solved makes a problem news when it comes again.
func (w *watch) solved(about topic) { delete(w.said, about) }

// sayProblem says what is wrong, unless it is what was said last of the same.
func (w *watch) sayProblem(about topic, err error) {
	key := problemKey(err)
	if key == w.said[about] {
		return
	}
	w.said[about] = key
	p := asProblems(err)
	switch {
	case w.json && p != nil:
		w.tell(watchEvent{Kind: kindProblem, Diagnostics: p.messages()})
	case w.json:
		w.tell(watchEvent{Kind: kindProblem, Error: err.Error()})
	case p != nil:
		w.flush()
		w.printProblems(p)
	default:
		w.say("%s", err)
	}
}

func (w *watch) sayGone(err error) {
	if w.json {
		w.tell(watchEvent{Kind: kindGone, Error: err.Error()})
		return
	}
	w.say("the engine is gone (%v); looking for it", err)
}

func (w *watch) sayBack() {
	if w.json {
		w.tell(watchEvent{Kind: kindBack, Engine: w.engine.Features().Name})
		return
	}
	w.say("the engine is back; everything is read again")
}

func (w *watch) sayDefect(wrong []string) {
	if w.json {
		w.tell(watchEvent{Kind: kindDefect, Differences: wrong})
		return
	}
	w.say("defect: what was remembered of the engine isn't so; everything is read again\n%s", indented(strings.Join(wrong, "\n")))
}

func (w *watch) sayStopped() {
	if w.json {
		w.tell(watchEvent{Kind: kindStopped})
		return
	}
	w.say("stopped")
}

// watchSteps reports what becomes of steps, to a person or a program.
type watchSteps struct {
	*progress
	watch *watch
}

func (w *watch) newSteps(ctx context.Context, plan *reconcile.Plan) *watchSteps {
	return &watchSteps{w.newProgress(ctx, plan), w}
}

func (s *watchSteps) event(e reconcile.Event) {
	if !s.watch.json {
		s.progress.event(e)
		return
	}
	out := watchEvent{Kind: kindStep, Item: e.Item, Phase: e.Phase}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	s.tell(out)
}

func (s *watchSteps) output(image, line string) {
	if !s.watch.json {
		s.progress.output(image, line)
		return
	}
	s.tell(watchEvent{Kind: kindOutput, Image: image, Line: line})
}

// tell keeps lines that come at once apart.
func (s *watchSteps) tell(e watchEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.tell(e)
}
