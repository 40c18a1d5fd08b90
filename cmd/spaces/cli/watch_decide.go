package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"spaces/places"
	"spaces/reconcile"
)

// planned is what led to a plan.
type planned struct {
	trigger string
	took    time.Duration
}

// The decisions on a plan, as --json has them.
const (
	decisionNothing = "nothing" // to do
	decisionRefused = "refused"
	decisionOnly    = "plan-only"
	decisionApply   = "apply" // at once
	decisionAsk     = "ask"   // a person, here
	decisionWait    = "wait"  // for somebody to apply it
)

// proposal is a plan, or a part of one, and what is decided on it.
type proposal struct {
	planned
	decision string
	view     *view // whose plan is what is proposed
	ids      []string
	asks     []string
	refusals []reconcile.Refusal
}

// is tells whether it would say the same as another.
func (p *proposal) is(other *proposal) bool {
	if other == nil || p.decision != other.decision || len(other.view.plan.Record().Moved(p.view.plan.Record())) > 0 {
		return false
	}
	return slices.EqualFunc(p.refusals, other.refusals, func(a, b reconcile.Refusal) bool {
		return a.Code == b.Code && a.Text == b.Text
	})
}

// decide does with a plan what may be done with it.
func (w *watch) decide(ctx context.Context, aborted <-chan struct{}, v *view, how planned) error {
	propose := func(decision string) *proposal { return &proposal{planned: how, decision: decision, view: v} }
	bars := barred(v.plan, true)
	switch {
	case len(bars) > 0: // with no step beside them, too: what the files ask for isn't so
		w.withdraw()
		p := propose(decisionRefused)
		p.refusals = bars
		w.propose(p)
		return nil
	case !v.plan.HasChanges():
		w.withdraw()
		if v.changesGuards() && !w.planOnly {
			if err := w.protect(ctx, v); err != nil {
				return w.notNow(ctx, err)
			}
		}
		w.propose(propose(decisionNothing))
		return nil
	case w.planOnly:
		w.propose(propose(decisionOnly))
		return nil
	}
	return w.act(ctx, aborted, v, how)
}

// act applies what may be applied, and asks for the rest.
func (w *watch) act(ctx context.Context, aborted <-chan struct{}, v *view, how planned) error {
	now := time.Now()
	var due, rest, asks []string
	next := time.Duration(0)
	for _, part := range w.consent.Parts(v.plan) {
		if !w.auto && len(part.Asks) > 0 {
			rest = append(rest, part.Items...)
			asks = append(asks, part.Asks...)
			continue
		}
		if wait := w.pace.wait(now, part.Subjects...); wait > 0 {
			if next == 0 || wait < next {
				next = wait
			}
			continue
		}
		due = append(due, part.Items...)
	}
	if next > 0 {
		w.retryIn(next)
	}
	if len(due) > 0 {
		p := newProposal(how, decisionApply, v, due)
		w.propose(p)
		return w.carryOut(ctx, aborted, p)
	}
	if len(rest) == 0 {
		w.withdraw()
		return nil
	}
	decision := decisionWait
	if w.env.Question != nil && !w.json && !w.answers.over {
		decision = decisionAsk
	}
	p := newProposal(how, decision, v, rest)
	p.asks = asks
	w.propose(p)
	return nil
}

func newProposal(how planned, decision string, v *view, ids []string) *proposal {
	part := *v
	part.plan = v.plan.Only(ids)
	return &proposal{planned: how, decision: decision, view: &part, ids: ids}
}

// propose shows a plan that isn't the one that was shown last, and asks where it is to be
// asked. A question gives way to a newer one.
func (w *watch) propose(p *proposal) {
	if p.is(w.pending) {
		w.pending, w.shown = p, p // looked at once more, and still the same
		return
	}
	again := p.is(w.shown)
	w.sayPlanned(p, again)
	w.shown = p
	switch {
	case p.decision != decisionAsk:
		if p.decision != decisionApply {
			w.pending = nil
		}
	case p.is(w.declined):
	default:
		w.pending, w.declined = p, nil
		w.answers.next(w.env.Stdin)
		w.sayQuestion(p)
	}
}

// withdraw takes a question back.
func (w *watch) withdraw() { w.pending, w.declined = nil, nil }

// answered takes a line that a person typed.
func (w *watch) answered(ctx context.Context, aborted <-chan struct{}, a answer) error {
	p := w.pending
	switch {
	case a.ended:
		w.answers.over = true
		w.withdraw()
		w.shown = nil
		w.clock.heard(time.Now())
		return nil
	case p == nil || a.question != w.answers.number.Load():
		return nil // to a question that no longer stands
	}
	w.pending = nil
	if strings.TrimSpace(a.line) != yes {
		w.declined = p
		w.sayDeclined()
		return nil
	}
	return w.carryOut(ctx, aborted, p)
}

// carryOut carries a proposal out as apply does: with the lock, and only if it is still
// what would be done. The error ends the watch.
func (w *watch) carryOut(ctx context.Context, aborted <-chan struct{}, p *proposal) error {
	c := w.carry
	c.auto, c.only = false, p.ids
	lock, v, err := w.claimed(ctx, c, p.view)
	if err != nil {
		return w.notNow(ctx, err)
	}
	defer lock.Release()
	w.settled, w.shown = false, nil
	w.sayApplying(v.plan)
	w.clock.heard(time.Now()) // what comes of it is planned
	report := w.newSteps(ctx, v.plan)
	result, failed, err := c.execute(ctx, aborted, w.engine, v, report.event, report.output)
	report.end()
	w.pace.tried(time.Now(), triedOf(v.plan, result)...)
	if err != nil {
		return w.notNow(ctx, err)
	}
	w.sayApplied(result, failed)
	if failed == nil {
		w.consent.Carried(v.plan)
		w.solved(ofApply)
		return nil
	}
	// What a step left half done, an event may not tell.
	w.memory.Forget()
	if failed.Interrupted != nil {
		return &reportedError{failed}
	}
	return nil
}

// claimed has the project's lock, and a plan made with it that is what was approved and
// is claimed.
func (w *watch) claimed(ctx context.Context, c carry, approved *view) (*places.Lock, *view, error) {
	lock, err := c.lock(ctx, c.project.root.ApplyLock())
	if err != nil {
		return nil, nil, err
	}
	v, err := c.again(ctx, w.engine, approved)
	if err == nil && len(barred(v.plan, true)) > 0 {
		err = c.refused(barred(v.plan, true))
	}
	if err == nil {
		err = c.claim(v)
	}
	if err != nil {
		lock.Release()
		return nil, nil, err
	}
	w.clock.busy = 0
	return lock, v, nil
}

// protect records what is protected, where nothing else is to be done.
func (w *watch) protect(ctx context.Context, v *view) error {
	c := w.carry
	c.auto, c.only = false, nil
	lock, _, err := w.claimed(ctx, c, v)
	if err != nil {
		return err
	}
	w.solved(ofApply)
	return lock.Release()
}

// triedOf are what the steps that began are about, each once. What was skipped after
// another's failure is as due as it was.
func triedOf(plan *reconcile.Plan, result reconcile.Result) []string {
	began := map[string]bool{}
	for _, id := range result.Done {
		began[id] = true
	}
	for _, f := range result.Failed {
		began[f.Item] = true
	}
	var out []string
	for _, i := range plan.Items {
		if began[i.ID] {
			out = append(out, i.Subject)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notNow says why nothing was begun. It is planned again, later each time: what moved,
// another's apply and an engine that went are seen then.
func (w *watch) notNow(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	var busy *places.BusyError
	if !errors.As(err, &busy) {
		w.memory.Forget()
	}
	w.sayProblem(ofApply, err)
	w.retryIn(w.clock.notYet())
	return nil
}

// retryIn plans again after a while.
func (w *watch) retryIn(d time.Duration) { w.clock.retry.Reset(d) }
