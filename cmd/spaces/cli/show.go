package cli

import (
	"github.com/spf13/cobra"

	"spaces/reconcile"
	"spaces/schema"
)

func (a *app) showVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Print a plan that was kept",
		Long: `Prints what "spaces plan --out" kept: as text, with --json as it stands, or with
--format=markdown for a comment on a pull request. It asks no engine, so it doesn't say
whether the plan still holds, and changes nothing.

Exit status: 0; 3 for a file that holds no plan of this format.`,
		Example: `  spaces show review.json
  spaces show --json review.json
  spaces show --format=markdown review.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.show(args[0]) },
	}
	a.registerFormat(c)
	return c
}

func (a *app) show(name string) error {
	r, err := a.savedPlan(name)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(r)
		return nil
	}
	plan, err := planOf(*r)
	if err != nil {
		return usage("Name a file that `spaces plan --out` wrote.", "%s holds no plan: %v.", name, err)
	}
	if a.markdown() {
		planDocument(plan, code("spaces show "+name)+" prints all of it.").writeTo(a.out)
		return nil
	}
	a.out.WriteString(a.outColours().plan(plan.String()))
	return nil
}

// planOf is a plan to print, no more: its steps say their kind and nothing of what they
// would do.
func planOf(r reconcile.Record) (*reconcile.Plan, error) {
	p := &reconcile.Plan{
		Project: r.Project, Endpoint: r.Endpoint, Engine: r.Engine, Asked: r.Asked(), LeftOut: r.LeftOut,
		Standing: noticesOf(r.Standing), Notes: noticesOf(r.Notes),
	}
	for _, a := range r.Access {
		p.Access = append(p.Access, reconcile.AccessChange{
			Gains: a.Change == "gains", Meets: a.Meets,
			Access: reconcile.Access{Space: a.Space, Kind: a.Kind, What: a.What, How: a.How, Wide: a.Wide, Origin: origin(a.Origin)},
		})
	}
	for _, i := range r.Items {
		item, err := itemOf(i)
		if err != nil {
			return nil, err
		}
		p.Items = append(p.Items, item)
	}
	for _, a := range r.Assertions {
		// How many hold is printed; what breaks one is among the refusals.
		p.Assertions = append(p.Assertions, reconcile.Judgement{Sentence: a.Sentence, Breaks: make([]reconcile.Break, len(a.Breaks))})
	}
	for _, f := range r.Refusals {
		p.Refusals = append(p.Refusals, reconcile.Refusal{Code: f.Code, Text: f.Text, Fix: f.Fix, ApplyOnly: f.ApplyOnly, Stays: f.Stays, Origin: origin(f.Origin)})
	}
	return p, nil
}

func itemOf(i reconcile.RecordItem) (reconcile.Item, error) {
	step, err := stepOf(i.Step)
	if err != nil {
		return reconcile.Item{}, err
	}
	item := reconcile.Item{
		ID: i.ID, Subject: i.Subject, Step: step, Reasons: i.Reasons, Origin: origin(i.Origin),
		Effects: effectsOf(i.Effects), Side: i.Side, Needs: i.Needs,
	}
	for _, c := range i.Changes {
		change := reconcile.Change{
			Field: c.Field, Sensitive: c.Sensitive, Digest: c.Digest, Forces: c.Forces, Side: c.Side, Origin: origin(c.Origin),
			BeforeSet: c.Before != nil, AfterSet: c.After != nil,
		}
		if c.Before != nil {
			change.Before = *c.Before
		}
		if c.After != nil {
			change.After = *c.After
		}
		item.Changes = append(item.Changes, change)
	}
	return item, nil
}

func noticesOf(notices []reconcile.RecordNotice) []reconcile.Notice {
	var out []reconcile.Notice
	for _, n := range notices {
		out = append(out, reconcile.Notice{Kind: n.Kind, Subject: n.Subject, Text: n.Text, Reason: n.Reason, Origin: origin(n.Origin)})
	}
	return out
}

func origin(o *schema.Origin) schema.Origin {
	if o == nil {
		return schema.Origin{}
	}
	return *o
}
