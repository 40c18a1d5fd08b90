package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Applier carries out single steps. It reads an object again before it acts on it and
// fails when the object has moved since it was inspected for the plan. Apply calls it
// from several goroutines at once.
type Applier interface {
	Apply(ctx context.Context, step Step) error
}

// DefaultParallelism is how many steps run at once unless told.
const DefaultParallelism = 8

// ApplyOptions are how a plan is carried out. The zero value is usable.
type ApplyOptions struct {
	// Parallelism is how many steps may run at once; 0 is DefaultParallelism.
	Parallelism int
	// Progress, if set, hears of each item. It is never called by two goroutines at
	// once, and nothing new starts while it runs.
	Progress func(Event)
	// Abort, once closed, cancels the calls of steps that run.
	Abort <-chan struct{}
}

// Event is something that happened to an item.
type Event struct {
	Item  string // its ID
	Phase Phase
	Err   error // with PhaseFailed
}

// Phase is where an item's carrying out is.
type Phase string

// The phases of an item. A skipped one has only that; all others start.
const (
	PhaseStarted Phase = "started"
	PhaseDone    Phase = "done"
	PhaseFailed  Phase = "failed"
	PhaseSkipped Phase = "skipped"
)

// Result is what became of a plan's items, each list in the plan's order.
type Result struct {
	Done    []string
	Failed  []Failure
	Skipped []string
}

// Failure is a step that failed and why.
type Failure struct {
	Item string // its ID
	Err  error
}

// ApplyError is a plan that wasn't carried out to its end. It unwraps to the cause of
// every failed step and, where the context was cancelled, to the context's cause.
type ApplyError struct {
	Result Result
	// Interrupted is the context's cause if that is what stopped it.
	Interrupted error
}

func (e *ApplyError) Error() string {
	var b strings.Builder
	if e.Interrupted != nil {
		fmt.Fprintf(&b, "interrupted (%v)", e.Interrupted)
	}
	for _, f := range e.Result.Failed {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "cannot %s: %v", f.Item, f.Err)
	}
	fmt.Fprintf(&b, " (%d done, %d failed, %d skipped)",
		len(e.Result.Done), len(e.Result.Failed), len(e.Result.Skipped))
	return b.String()
}

// Unwrap gives the causes.
func (e *ApplyError) Unwrap() []error {
	var causes []error
	if e.Interrupted != nil {
		causes = append(causes, e.Interrupted)
	}
	for _, f := range e.Result.Failed {
		causes = append(causes, f.Err)
	}
	return causes
}

// Apply carries out a plan's items, each once all that it needs has succeeded, and
// independent ones at once. After the first failure, or once ctx is cancelled, no step
// starts and those that run end by themselves; Abort cancels them. It returns once
// nothing runs any more: nil, an *ApplyError, or, with nothing done, the plan's
// refusals or what makes its items impossible to order.
func Apply(ctx context.Context, plan *Plan, a Applier, o ApplyOptions) (Result, error) {
	if err := refused(plan.Refusals); err != nil {
		return Result{}, err
	}
	// The plan's own order is kept; this only proves that one exists.
	if _, err := Order(plan.Items); err != nil {
		return Result{}, err
	}
	g, err := newGraph(plan.Items)
	if err != nil {
		return Result{}, err
	}
	// A step that runs isn't to be cut by the first Ctrl-C.
	running, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	r := newRun(g, a, o)
	r.carryOut(ctx, running, abort)
	return r.result(ctx)
}

// refused joins the refusals that bar an apply.
func refused(refusals []Refusal) error {
	var errs []error
	for i := range refusals {
		if !refusals[i].Stays {
			errs = append(errs, &refusals[i])
		}
	}
	return errors.Join(errs...)
}

// ErrAborted is the cause of a call's cancelled context after Abort.
var ErrAborted = errors.New("aborted")

// run is one carrying out. All of it belongs to the goroutine that called Apply: the
// steps' goroutines only send what became of them. So a step's failure is known here
// before anything that waits for the step is looked at; closing a channel per step
// lets a dependent start first (docker/compose's executor).
type run struct {
	graph
	applier  Applier
	options  ApplyOptions
	waits    []int
	ready    []int // in the plan's order
	phases   []Phase
	errs     []error
	inFlight int
	stopped  bool
	ended    chan ending
}

type ending struct {
	item int
	err  error
}

func newRun(g graph, a Applier, o ApplyOptions) *run {
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
	r := &run{
		graph: g, applier: a, options: o,
		phases: make([]Phase, len(g.items)),
		errs:   make([]error, len(g.items)),
		ended:  make(chan ending),
	}
	r.waits, r.ready = g.start()
	return r
}

func (r *run) carryOut(ctx, running context.Context, abort context.CancelCauseFunc) {
	aborted := r.options.Abort
	for {
		r.startReady(ctx, running)
		if r.inFlight == 0 {
			return
		}
		select {
		case e := <-r.ended:
			r.end(e)
		case <-aborted:
			abort(ErrAborted)
			r.stopped, aborted = true, nil
		}
	}
}

// startReady starts what may start now.
func (r *run) startReady(ctx, running context.Context) {
	for len(r.ready) > 0 && r.inFlight < r.options.Parallelism && r.mayStart(ctx) {
		i := r.ready[0]
		r.ready = r.ready[1:]
		r.tell(i, PhaseStarted, nil)
		r.inFlight++
		go func() { r.ended <- ending{i, r.applier.Apply(running, r.items[i].Step)} }()
	}
}

func (r *run) mayStart(ctx context.Context) bool {
	if ctx.Err() != nil {
		r.stopped = true
	}
	select {
	case <-r.options.Abort:
		r.stopped = true
	default:
	}
	return !r.stopped
}

func (r *run) end(e ending) {
	r.inFlight--
	if e.err != nil {
		r.stopped = true
		r.errs[e.item] = e.err
		r.tell(e.item, PhaseFailed, e.err)
		return
	}
	r.tell(e.item, PhaseDone, nil)
	for _, user := range r.users[e.item] {
		if r.waits[user]--; r.waits[user] == 0 {
			at, _ := slices.BinarySearch(r.ready, user)
			r.ready = slices.Insert(r.ready, at, user)
		}
	}
}

func (r *run) tell(item int, phase Phase, err error) {
	r.phases[item] = phase
	if r.options.Progress != nil {
		r.options.Progress(Event{Item: r.items[item].ID, Phase: phase, Err: err})
	}
}

func (r *run) result(ctx context.Context) (Result, error) {
	var result Result
	for i, item := range r.items {
		switch r.phases[i] {
		case PhaseDone:
			result.Done = append(result.Done, item.ID)
		case PhaseFailed:
			result.Failed = append(result.Failed, Failure{item.ID, r.errs[i]})
		default:
			r.tell(i, PhaseSkipped, nil)
			result.Skipped = append(result.Skipped, item.ID)
		}
	}
	if len(result.Failed) == 0 && len(result.Skipped) == 0 {
		return result, nil
	}
	return result, &ApplyError{Result: result, Interrupted: r.interrupted(ctx)}
}

// interrupted is why nothing more was started, if it wasn't a failure.
func (r *run) interrupted(ctx context.Context) error {
	select {
	case <-r.options.Abort:
		return ErrAborted
	default:
		return context.Cause(ctx)
	}
}
