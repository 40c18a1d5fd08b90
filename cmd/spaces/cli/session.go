package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

// project is what is asked and of whom, before anything but files was looked at.
type project struct {
	host    places.Host
	root    places.DataRoot
	desired reconcile.Desired
	sources map[string][]byte
	// endpoint is where the engine's address stands in the files.
	endpoint schema.Origin
	// folder is where the files are; empty when there are none (destroy --project).
	folder string
	// rootful lets the engine run as root.
	rootful bool
	// takeOver lets this folder destroy what another one applied.
	takeOver bool
}

// view is one look at reality, and what it and the files come to.
type view struct {
	key    reconcile.Digester
	facts  reconcile.HostFacts
	actual reconcile.Actual
	plan   *reconcile.Plan
}

// load reads the configuration; its diagnostics are whatever it says, warnings too.
func (a *app) load() (*schema.Config, hcl.Diagnostics, error) {
	o, err := a.options()
	if err != nil {
		return nil, nil, err
	}
	cfg, diags := schema.Load(os.DirFS(a.dir), o)
	return cfg, diags, nil
}

// project loads the configuration and resolves it for this machine. Warnings are
// printed; an error is reported with all that is wrong.
func (a *app) project() (*project, error) {
	cfg, diags, err := a.load()
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, &problems{diags: diags, sources: cfg.Sources}
	}
	a.printDiagnostics(diags, cfg.Sources)
	return a.resolve(cfg)
}

// resolve fits a valid configuration to this machine.
func (a *app) resolve(cfg *schema.Config) (*project, error) {
	host, err := a.env.Host()
	if err != nil {
		return nil, err
	}
	choice := a.dataRootChoice(cfg.Project)
	choice.Files, choice.Origin = cfg.DataRoot, cfg.DataRootOrigin
	root, err := places.ResolveDataRoot(host, choice)
	if err != nil {
		return nil, withSources(err, cfg.Sources)
	}
	p := &project{
		host: host, root: root, sources: cfg.Sources, folder: a.dir,
		endpoint: cfg.Install.EndpointOrigin,
		desired: reconcile.Resolve(cfg, reconcile.Roots{
			DataRoot: string(root), Store: root.Store(), Executable: host.Executable,
		}),
	}
	for _, accept := range cfg.Accepts {
		p.rootful = p.rootful || accept.Code == schema.AcceptNotRootless
	}
	return p, nil
}

// open connects to the project's engine. Without one, in local mode, it is nil.
func (a *app) open(ctx context.Context, p *project) (Places, error) {
	if p.desired.Mode != schema.ModeContainerized {
		return nil, nil
	}
	return a.env.Open(ctx, p.desired.Endpoint, places.OpenOptions{AllowRootful: p.rootful, Ahead: true})
}

// namesEngine refuses where the files name no engine: what an earlier version of them
// made may run on one all the same, and nothing can be said or done about it.
func (p *project) namesEngine() error {
	if p.desired.Mode == schema.ModeContainerized {
		return nil
	}
	return refuse(reconcile.CodeNotYetSupported,
		"Name the engine in an install block, or, to destroy without files, by --project and --endpoint.",
		"The files name no engine, so what runs of %s can't be seen.", p.desired.Project)
}

// look opens the engine and plans. An engine that can't be used is reported with
// whatever else stands in the way, so that nobody has to come back for each.
func (a *app) look(ctx context.Context, p *project, o reconcile.Options) (Places, *view, error) {
	e, err := a.open(ctx, p)
	if err == nil {
		v, err := a.plan(ctx, p, e, o)
		if err != nil {
			closeEngine(e)
			return nil, nil, interrupted(ctx, err)
		}
		return e, v, nil
	}
	refusal, refused := refusalIn(err)
	if !refused {
		return nil, nil, interrupted(ctx, err)
	}
	if refusal.Origin == (schema.Origin{}) {
		refusal.Origin = p.endpoint
	}
	all := []reconcile.Refusal{refusal}
	if v, err := a.plan(ctx, p, nil, o); err == nil {
		all = append(all, v.plan.Refusals...)
	}
	return nil, nil, &problems{refusals: all, sources: p.sources}
}

// interrupted says that a person stopped it, rather than where.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
	}
	return err
}

// plan looks at the host and the engine and compares them with the files. Without an
// engine the comparison is with an empty world.
func (a *app) plan(ctx context.Context, p *project, e Places, o reconcile.Options) (*view, error) {
	v := &view{actual: reconcile.Actual{Engine: reconcile.Engine{Offline: true}}}
	var features reconcile.Engine
	if e != nil {
		features = e.Features()
	}
	if !o.Destroy { // what goes needs neither key nor files
		var err error
		if v.key, err = places.LoadKey(p.root.KeyFile(), p.host); err != nil {
			return nil, err
		}
		if v.facts, err = places.Survey(ctx, p.desired, p.host, features, v.key); err != nil {
			return nil, err
		}
	}
	if e != nil {
		var err error
		if v.actual, err = e.Inspect(ctx, p.query(v.facts)); err != nil {
			return nil, err
		}
	}
	if err := v.diff(p, o); err != nil {
		return nil, err
	}
	return v, nil
}

// offline plans from the files alone.
func (a *app) offline(p *project) (*view, error) {
	v := &view{actual: reconcile.Actual{Engine: reconcile.Engine{Offline: true}}}
	return v, v.diff(p, reconcile.Options{})
}

func (v *view) diff(p *project, o reconcile.Options) error {
	plan, err := reconcile.Diff(p.desired, v.facts, v.actual, o)
	if err != nil {
		return fmt.Errorf("cannot make a plan: %w", err)
	}
	elsewhere, err := p.appliedElsewhere(plan)
	if err != nil {
		return err
	}
	plan.Refusals = append(plan.Refusals, elsewhere...)
	v.plan = plan
	return nil
}

// appliedElsewhere refuses to destroy what another folder's files asked for: this
// folder may be a copy that was forgotten, or another project by the same name.
func (p *project) appliedElsewhere(plan *reconcile.Plan) ([]reconcile.Refusal, error) {
	destroys := slices.ContainsFunc(plan.Items, func(i reconcile.Item) bool { return i.Effects.Has(reconcile.Destroys) })
	if !destroys || p.folder == "" || p.takeOver {
		return nil, nil
	}
	other, err := p.root.AppliedElsewhere(p.folder)
	if err != nil || other == "" {
		return nil, err
	}
	return []reconcile.Refusal{{
		Code:      reconcile.CodeAppliedFromElse,
		Text:      fmt.Sprintf("This would destroy what was applied from %s, and the files are those of %s.", other, p.folder),
		Fix:       "Run it from that folder, or add --take-over to make this one the project's.",
		ApplyOnly: true,
	}}, nil
}

// query is what to ask the engine for: the images that spaces run, and those that made
// ones start from.
func (p *project) query(facts reconcile.HostFacts) places.Query {
	q := places.Query{Project: p.desired.Project, Store: p.desired.Store}
	for _, i := range p.desired.Images {
		q.Images = append(q.Images, i.Reference)
	}
	for _, input := range facts.Inputs {
		q.Images = append(q.Images, input.Bases...)
	}
	slices.Sort(q.Images)
	q.Images = slices.Compact(q.Images)
	return q
}

// barred are a plan's refusals that stand in the way: of showing it, or of applying it.
func barred(plan *reconcile.Plan, apply bool) []reconcile.Refusal {
	var out []reconcile.Refusal
	for _, r := range plan.Refusals {
		if !r.Stays && (apply || !r.ApplyOnly) {
			out = append(out, r)
		}
	}
	return out
}

// withSources lets a refusal at the bottom of an error show where in the files it is.
func withSources(err error, sources map[string][]byte) error {
	r, ok := refusalIn(err)
	if !ok {
		return err
	}
	return &problems{refusals: []reconcile.Refusal{r}, sources: sources}
}
