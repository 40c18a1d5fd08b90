package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"spaces/places"
	"spaces/reconcile"
)

// carry is one carrying out of a plan: apply's or destroy's.
type carry struct {
	*app
	carryFlags
	verb    string
	project *project
	options reconcile.Options
	// saved is the plan that was reviewed before, nil to ask now.
	saved    *reconcile.Record
	question string
	// only are the items that are carried out, by id; nil for all.
	only []string
}

// carryFlags are the flags of the commands that carry a plan out.
type carryFlags struct {
	auto        bool
	parallelism int
	lockTimeout time.Duration
	takeOver    bool
}

func (f *carryFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.auto, "auto-approve", false, "don't ask; the plan is still shown")
	flags.IntVar(&f.parallelism, "parallelism", reconcile.DefaultParallelism, "how many steps, `N`, run at once")
	flags.DurationVar(&f.lockTimeout, "lock-timeout", 0, "how long, `DURATION`, to wait for another apply to end")
	flags.BoolVar(&f.takeOver, "take-over", false, "let this folder destroy what another one applied")
}

// check refuses flags that can't be meant, before anything is looked at.
func (c *carry) check() error {
	if c.parallelism < 1 {
		return usage("Write --parallelism 1 or more.", "No step could run at once with --parallelism %d.", c.parallelism)
	}
	return checkLockTimeout(c.lockTimeout)
}

func checkLockTimeout(d time.Duration) error {
	if d < 0 {
		return usage("Write how long to wait, such as --lock-timeout 30s.", "A lock can't be waited for %s.", d)
	}
	return nil
}

// canAsk refuses where nobody could answer.
func (c *carry) canAsk() error {
	switch {
	case c.json:
		return usage("Add --auto-approve, or apply a plan that was kept and reviewed.",
			"With --json nobody can be asked whether to go ahead.")
	case c.env.Question == nil:
		return usage("Add --auto-approve, or run it on a terminal, or apply a plan that was kept and reviewed.",
			"There is no terminal to ask whether to go ahead.")
	}
	return nil
}

// run plans, asks, and carries out what was approved.
func (c *carry) run(ctx context.Context) error {
	ctx, aborted, stop := c.interruptible(ctx, 2)
	defer stop()
	c.project.takeOver = c.takeOver
	e, v, err := c.look(ctx, c.project, c.options)
	if err != nil {
		return err
	}
	defer closeEngine(e)
	if c.saved != nil {
		if err := stale(c.saved.Moved(v.plan.Record()), "the plan was kept"); err != nil {
			return err
		}
	}
	done, err := c.approve(ctx, v)
	if done || err != nil {
		return err
	}
	return c.locked(ctx, aborted, e, v)
}

// approve shows the plan and asks. It is done where there is nothing to do.
func (c *carry) approve(ctx context.Context, v *view) (done bool, err error) {
	bars := barred(v.plan, true)
	// With --auto-approve, the plan that is made under the lock is the one to be shown.
	asks := !c.auto && c.saved == nil
	nothing := !v.plan.HasChanges()
	if nothing && (c.takeOver || v.changesGuards()) && len(bars) == 0 {
		return false, nil // to record whose the project is, or what is protected, takes the lock
	}
	if len(bars) > 0 || nothing || asks {
		c.present(v.plan, nil)
	}
	switch {
	case len(bars) > 0:
		return false, c.refused(bars)
	case nothing:
		return true, c.left(v.plan)
	case !asks:
		return false, nil
	}
	if err := c.canAsk(); err != nil {
		return false, err
	}
	return false, c.ask(ctx, c.question)
}

// locked carries the plan out with nobody else doing so.
func (c *carry) locked(ctx context.Context, aborted <-chan struct{}, e Places, approved *view) error {
	lock, err := c.lock(ctx, c.project.root.ApplyLock())
	if err != nil {
		return err
	}
	defer lock.Release()
	v, err := c.again(ctx, e, approved)
	if err != nil {
		return err
	}
	nothing := !v.plan.HasChanges()
	if c.auto || c.saved != nil || nothing {
		c.present(v.plan, nil)
	}
	if bars := barred(v.plan, true); len(bars) > 0 {
		return c.refused(bars)
	}
	if err := c.claim(v); err != nil {
		return err
	}
	if nothing {
		return c.left(v.plan)
	}
	return c.carryOut(ctx, aborted, e, v)
}

// lock takes a lock of the project's.
func (c *carry) lock(ctx context.Context, path string) (*places.Lock, error) {
	return c.project.lock(ctx, path, c.verb, c.lockTimeout)
}

// lock takes a lock of the project's for a command, which may be its first.
func (p *project) lock(ctx context.Context, path, verb string, timeout time.Duration) (*places.Lock, error) {
	if err := p.root.Ensure(p.host); err != nil {
		return nil, err
	}
	holder := places.Holder{PID: os.Getpid(), Verb: verb, Since: time.Now().Round(time.Second), Folder: p.folder}
	return places.Acquire(ctx, path, holder, timeout)
}

// claim records what later plans must know: what is protected, and which folder applied
// last, if any did.
func (c *carry) claim(v *view) error {
	nothing := !v.plan.HasChanges()
	if v.changesGuards() || !nothing && len(v.plan.Guards) > 0 {
		if err := c.project.root.SetGuards(v.plan.Guards); err != nil {
			return err
		}
	}
	if c.project.folder == "" || nothing && !c.takeOver {
		return nil
	}
	return c.project.root.SetAppliedFrom(c.project.folder)
}

// again makes the plan once more, now that nobody else changes anything, and sees that
// what was approved is what would be done. The first apply makes the key; what was
// approved without one has no digests to compare.
func (c *carry) again(ctx context.Context, e Places, approved *view) (*view, error) {
	if !c.options.Destroy {
		if _, err := places.EnsureKey(c.project.root.KeyFile(), c.project.host); err != nil {
			return nil, err
		}
	}
	v, err := c.plan(ctx, c.project, e, c.options)
	if err == nil && c.only != nil {
		v.plan = v.plan.Only(c.only)
	}
	if err != nil || c.auto && c.saved == nil {
		return v, err
	}
	was, is := approved.plan.Record(), v.plan.Record()
	if approved.key == nil {
		was, is = was.WithoutDigests(), is.WithoutDigests()
	}
	return v, stale(was.Moved(is), "it was approved")
}

func stale(moved []string, since string) error {
	if len(moved) == 0 {
		return nil
	}
	return refuse(reconcile.CodePlanStale, "Plan again, and review what it shows now.",
		"What would be done is no longer what it was when %s:\n  %s", since, strings.Join(moved, "\n  "))
}

// applyReport is what apply and destroy print with --json.
type applyReport struct {
	FormatVersion int              `json:"format_version"`
	Plan          reconcile.Record `json:"plan"`
	Result        applyResult      `json:"result"`
}

type applyResult struct {
	Done        []string       `json:"done"`
	Failed      []applyFailure `json:"failed"`
	Skipped     []string       `json:"skipped"`
	Interrupted bool           `json:"interrupted,omitempty"`
}

type applyFailure struct {
	Item  string `json:"item"`
	Error string `json:"error"`
	// Code and Fix are a refusal's, where one was at the bottom of it.
	Code string `json:"code,omitempty"`
	Fix  string `json:"fix,omitempty"`
}

func (c *carry) carryOut(ctx context.Context, aborted <-chan struct{}, e Places, v *view) error {
	progress := c.newProgress(ctx, v.plan)
	result, failed, err := c.execute(ctx, aborted, e, v, progress.event, progress.output)
	progress.end()
	if err != nil {
		return err
	}
	if c.json {
		c.present(v.plan, resultOf(result, failed))
	} else {
		c.conclude(result, failed)
	}
	if failed != nil {
		return &reportedError{failed}
	}
	return c.left(v.plan)
}

// execute carries out a plan's steps. The error is that nothing was begun; failed is that
// not all of it was done.
func (c *carry) execute(ctx context.Context, aborted <-chan struct{}, e Places, v *view,
	event func(reconcile.Event), output func(image, line string),
) (result reconcile.Result, failed *reconcile.ApplyError, err error) {
	applier := e.Applier(places.ApplierOptions{
		Actual: v.actual, Digest: v.key, Output: output, Host: c.project.host,
		Project: c.project.desired.Project, Store: c.project.desired.Store,
	})
	result, err = reconcile.Apply(ctx, v.plan, applier, reconcile.ApplyOptions{
		Parallelism: c.parallelism, Progress: event, Abort: aborted,
	})
	if errors.As(err, &failed) {
		err = nil
	}
	return result, failed, err
}

func resultOf(result reconcile.Result, failed *reconcile.ApplyError) *applyResult {
	return &applyResult{
		Done: append([]string{}, result.Done...), Skipped: append([]string{}, result.Skipped...),
		Failed: failures(result.Failed), Interrupted: failed != nil && failed.Interrupted != nil,
	}
}

// present prints the plan, or with --json the one object that is printed at the end.
func (c *carry) present(plan *reconcile.Plan, result *applyResult) {
	switch {
	case !c.json && c.options.Destroy && !plan.HasChanges():
		c.printNothing(plan)
		c.flush()
	case !c.json:
		c.printPlan(plan)
		c.flush()
	case result != nil:
		c.printJSON(applyReport{formatVersion, plan.Record(), *result})
	case len(barred(plan, true)) > 0 || !plan.HasChanges():
		// There will be nothing more to say.
		c.printJSON(applyReport{formatVersion, plan.Record(), applyResult{[]string{}, []applyFailure{}, []string{}, false}})
	}
}

// printNothing is a plan to destroy what isn't there: what stays, and that nothing goes.
func (c *carry) printNothing(plan *reconcile.Plan) {
	shown := *plan
	shown.Refusals = nil
	text := strings.TrimSuffix(shown.String(), plan.Summary()+"\n")
	c.out.WriteString(c.outColours().plan(text))
	fmt.Fprintf(c.out, "Nothing to destroy: the engine runs nothing of project %s.\n", plan.Project)
}

// refused ends with refusals that present has put into the JSON, if that was asked for.
func (c *carry) refused(bars []reconcile.Refusal) error {
	return &problems{refusals: bars, sources: c.project.sources, reported: c.json}
}

// left ends a command that did all it could: what stays keeps it from being done.
func (c *carry) left(plan *reconcile.Plan) error {
	stays := slices.DeleteFunc(slices.Clone(plan.Refusals), func(r reconcile.Refusal) bool { return !r.Stays })
	if len(stays) == 0 {
		return nil
	}
	return c.refused(stays)
}

func failures(failed []reconcile.Failure) []applyFailure {
	out := []applyFailure{}
	for _, f := range failed {
		a := applyFailure{Item: f.Item, Error: f.Err.Error()}
		if r, ok := refusalIn(f.Err); ok {
			a.Code, a.Fix = r.Code, r.Fix
		}
		out = append(out, a)
	}
	return out
}

// conclude says what became of every step.
func (c *carry) conclude(result reconcile.Result, failed *reconcile.ApplyError) {
	if failed == nil {
		fmt.Fprintf(c.out, "\nDone: %s.\n", count(len(result.Done), "step", "steps"))
		return
	}
	c.flush()
	colours := c.errColours()
	w := c.env.Stderr
	what := "Not all of it was done:"
	if failed.Interrupted != nil {
		what = "Interrupted:"
	}
	fmt.Fprintf(w, "\n%s %d done, %d failed, %d skipped.\n", colours.refused(what),
		len(result.Done), len(result.Failed), len(result.Skipped))
	for _, f := range result.Failed {
		fmt.Fprintf(w, "  %s %s\n", colours.lost("✗ failed "), printable(f.Item+"\n"+indented(f.Err.Error())))
		if r, ok := refusalIn(f.Err); ok && r.Fix != "" {
			fmt.Fprintln(w, printable(indented(fixLines(r.Fix))))
		}
	}
	for _, id := range result.Skipped {
		fmt.Fprintf(w, "  %s %s\n", colours.faint("- skipped"), printable(id))
	}
	for _, id := range result.Done {
		fmt.Fprintf(w, "  %s %s\n", colours.gained("✓ done   "), printable(id))
	}
	fmt.Fprintln(w, "Nothing is lost: the next plan starts from what is really there.")
}

// indented sets a text of several lines below what it is about.
func indented(text string) string {
	const by = "      "
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}

// closeEngine lets an engine's connections go; there may be none.
func closeEngine(e Places) {
	if e != nil {
		_ = e.Close()
	}
}

// flush shows a person what was printed before something is asked or waited for. What
// can't be written is found when all of it is.
func (a *app) flush() { _ = a.out.Flush() }
