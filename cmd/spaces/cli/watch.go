package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

const auditEvery = 10 * time.Minute

// watch keeps what runs as the files say, while both change.
type watch struct {
	carry
	planOnly   bool
	auditEvery time.Duration

	files   *places.Files
	engine  Places
	memory  Memory // nil while the engine is gone
	consent reconcile.Consent
	pace    pace
	clock   clock
	answers answers

	// pending is the question that waits for a person, declined the plan that was turned
	// down, and shown the plan that was printed last.
	pending, declined, shown *proposal
	said                     map[topic]string // the problem of each that was printed last
	settled                  bool             // nothing was to be done the last time
}

func (a *app) watchVerb() *cobra.Command {
	w := &watch{carry: carry{app: a, verb: "watch", question: "Apply these steps? Only 'yes' goes ahead:"}, said: map[topic]string{}}
	c := &cobra.Command{
		Use:   "watch",
		Short: "Plan on every save and on what happens on the engine, and apply what is safe",
		Long: `Follows the files, what else a plan is made from (variables files, build contexts,
grants' sources) and the engine's events, and plans whenever one of them changes. It
keeps what the engine holds in memory, so that a save becomes a plan in milliseconds.

Steps that neither widen access nor stop, replace or destroy anything are applied at
once, and so is bringing back what this watch applied before and somebody removed. For
the rest it asks on a terminal, where a newer save replaces the question; without one,
and with --json, the plan is reported and waits for "spaces apply". What fails is tried
again later and later, up to every five minutes; a save tries at once.

A configuration with an error is reported and changes nothing: what runs and the last
good configuration stay. The same plan or refusal isn't printed twice in a row.

With --plan-only nothing is applied, and with --auto-approve nothing is asked. One watch
a project: a second one says who holds the lock. An engine that goes is waited for.
Every --audit the memory is compared with what is really there; a difference is
reported as a defect, and everything is read again.

With --json each event is a line, {format_version, time, kind, …}; the kinds are in
docs/watch.md. One interruption (Ctrl-C, SIGTERM) ends it, once the steps that run have
ended; a second one aborts those.

Exit status: 0 interrupted; 1 another watch holds the lock, or it was interrupted while
it applied; 3 refused at the start, as apply is.`,
		Example: `  spaces watch
  spaces watch --plan-only
  spaces watch --auto-approve --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return w.run(c.Context()) },
	}
	w.register(c.Flags())
	c.Flags().BoolVar(&w.planOnly, "plan-only", false, "apply nothing, only plan")
	c.Flags().DurationVar(&w.auditEvery, "audit", auditEvery, "how often, `DURATION`, to compare the memory with what is there")
	registerJSON(c.Flags(), &a.json)
	return c
}

func (w *watch) run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	switch {
	case w.auditEvery <= 0:
		return usage("Write how often, such as --audit 10m.", "An audit can't be made every %s.", w.auditEvery)
	case w.planOnly && w.auto:
		return usage("Leave one of the two away.", "--plan-only applies nothing, and --auto-approve everything.")
	}
	ctx, aborted, stop := w.interruptible(ctx, 2)
	defer stop()
	p, _, err := w.read("nothing was done")
	if err != nil {
		return err
	}
	if err := p.namesEngine(); err != nil {
		return err
	}
	w.adopt(p)
	lock, err := w.lock(ctx, p.root.WatchLock())
	if err != nil {
		return err
	}
	defer lock.Release()
	if w.files, err = places.FollowFiles(); err != nil {
		return err
	}
	defer w.files.Close()
	w.clock = newClock(w.auditEvery)
	defer w.clock.stop()
	if err := w.connect(ctx); err != nil {
		return w.cannotStart(ctx, err)
	}
	defer w.disconnect()
	w.sayWatching()
	return w.loop(ctx, aborted)
}

// read loads the configuration and resolves it. The diagnostics with it are warnings.
func (w *watch) read(outcome string) (*project, *problems, error) {
	cfg, diags, err := w.load()
	if err != nil {
		return nil, nil, err
	}
	found := &problems{diags: diags, sources: cfg.Sources, outcome: outcome}
	if diags.HasErrors() {
		return nil, nil, found
	}
	p, err := w.projectOf(cfg)
	return p, found, err
}

// adopt takes a configuration for the one that is in force.
func (w *watch) adopt(p *project) {
	p.takeOver = w.takeOver
	w.project = p
}

// cannotStart is why there is no watch: a refusal shows where in the files the engine is.
func (w *watch) cannotStart(ctx context.Context, err error) error {
	refusal, refused := refusalIn(err)
	if !refused {
		return interrupted(ctx, err)
	}
	if refusal.Origin == (schema.Origin{}) {
		refusal.Origin = w.project.endpoint
	}
	return &problems{refusals: []reconcile.Refusal{refusal}, sources: w.project.sources}
}

// connect opens the engine and begins to listen to it.
func (w *watch) connect(ctx context.Context) error {
	e, err := w.env.Open(ctx, w.project.desired.Endpoint, places.OpenOptions{AllowRootful: w.project.rootful})
	if err != nil {
		return err
	}
	m, err := e.Remember(ctx)
	if err != nil {
		closeEngine(e)
		return err
	}
	w.engine, w.memory = e, m
	w.clock.had = time.Now()
	return nil
}

func (w *watch) disconnect() {
	if w.memory == nil {
		return
	}
	w.memory.Close()
	closeEngine(w.engine)
	w.engine, w.memory = nil, nil
}

// remembered is an engine that is looked at in memory.
type remembered struct {
	Places
	memory Memory
}

func (r remembered) Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error) {
	return r.memory.Inspect(ctx, q)
}
