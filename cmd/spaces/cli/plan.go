package cli

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"spaces/reconcile"
)

type planFlags struct {
	out      string
	detailed bool
	offline  bool
	part     part
}

func (a *app) planVerb() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would do, and who would gain or lose access",
		Long: `Reads the files, the host's files that they name and what the engine runs, and shows
what would make the second what the first says: access first, then each step with its
fields, then what stands in every plan. It changes nothing, on the host or the engine,
but for the file that --out names.

Without an install block, and with --offline, the comparison is with an empty world
and no engine is asked; with --offline the host's files aren't looked at either.

--target and --exclude show a part of the plan. An object is named as the plan names it:
space.web, space.web["key"], network.inside, volume.cache, image.core; a block with
for_each by its bare address is all that it makes. What a target needs comes with it,
and what needs an excluded object is left out too; the plan says what. --replace makes
a space or a network anew though nothing of it differs.

A plan that --out keeps is a record for review: "spaces apply FILE" plans again and
goes on only if nothing has moved.

With --json the plan is {format_version, project, endpoint, engine, targets, excludes,
replace, allow_destroy, left_out, access, items, standing, notes, assertions, refusals,
counts}, as docs/plan.schema.json describes it. With --format=markdown it is made for a
comment on a pull request: bounded at 65,536 characters, with a word on what was cut,
and nothing of others in it but code.

Exit status: 0 planned, whether or not there is anything to do; 1 the engine went away
or didn't answer; 2 with --detailed-exitcode, something is to be done; 3 refused: the
configuration is invalid, the engine can't be used, or something else that only a
person can change.`,
		Example: `  spaces plan
  spaces plan --out review.json && spaces apply review.json
  spaces plan --offline --json
  spaces plan --target space.web --exclude 'space.worker["a"]'
  spaces plan --offline --format=markdown
  spaces plan --detailed-exitcode --var release=1.4.0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runPlan(c.Context(), f) },
	}
	a.registerFormat(c)
	f.part.register(c.Flags())
	c.Flags().StringVar(&f.out, "out", "", "keep the plan in `FILE`, for show and apply")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 when there is something to do")
	c.Flags().BoolVar(&f.offline, "offline", false, "look at the files alone; ask neither the host nor an engine")
	return c
}

func (a *app) runPlan(ctx context.Context, f planFlags) error {
	ctx, stop := a.cancellable(ctx)
	defer stop()
	p, err := a.project()
	if err != nil {
		return err
	}
	plan, err := a.planned(ctx, p, f)
	if err != nil {
		return err
	}
	a.showPlan(plan, "`spaces plan` prints all of it.")
	if bars := barred(plan, false); len(bars) > 0 {
		if !a.json {
			a.printRefusals(bars, p.sources, false)
		}
		return &problems{refusals: bars, reported: true}
	}
	a.warn(plan, p)
	if f.out != "" {
		if err := a.save(f.out, plan); err != nil {
			return err
		}
	}
	if f.detailed && plan.HasChanges() {
		return errDiffers
	}
	return nil
}

func (a *app) planned(ctx context.Context, p *project, f planFlags) (*reconcile.Plan, error) {
	o := f.part.options(reconcile.Options{})
	if f.offline {
		v, err := a.offline(p, o)
		return v.plan, err
	}
	e, v, err := a.look(ctx, p, o)
	if err != nil {
		return nil, err
	}
	closeEngine(e)
	return v.plan, nil
}

// showPlan prints a plan in the form that was asked for; whole says how all of it is
// seen where a form is bounded.
func (a *app) showPlan(plan *reconcile.Plan, whole string) {
	switch {
	case a.json:
		a.printJSON(plan.Record())
	case a.markdown():
		planDocument(plan, whole).writeTo(a.out)
	default:
		a.printPlan(plan)
	}
}

// warn says what bars an apply of a plan that was only shown.
func (a *app) warn(plan *reconcile.Plan, p *project) {
	if a.json {
		return // they are in the record
	}
	a.flush()
	a.printRefusals(plan.Refusals, p.sources, true)
}

// save keeps a plan's record.
func (a *app) save(name string, plan *reconcile.Plan) error {
	record := plan.Record()
	write := func(w *bufio.Writer) error { return writeJSON(w, record) }
	if err := replaceFile(a.path(name), newFileMode, write); err != nil {
		return fmt.Errorf("cannot keep the plan in %s: %w", name, bare(err))
	}
	if !a.json && !a.markdown() {
		fmt.Fprintf(a.out, "\nKept in %s: `spaces apply %s` does this, unless something moves.\n", name, filepath.ToSlash(name))
	}
	return nil
}
