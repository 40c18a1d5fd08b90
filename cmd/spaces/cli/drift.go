package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spaces/reconcile"
	"spaces/schema"
)

type driftFlags struct {
	onlyReality bool
	accept      bool
	part        part
}

func (a *app) driftVerb() *cobra.Command {
	var f driftFlags
	c := &cobra.Command{
		Use:   "drift",
		Short: "Say whether what runs is still what the files say",
		Long: `Compares as "spaces plan" does and lists each difference, marked by the side that moved:
"in the files", "in reality" (somebody changed it behind the program's back), or
"either" where that can't be told, as for what is missing and for what can change in
place. It changes nothing. What this release only shows and doesn't run is no
difference. What couldn't be compared, such as files when the key is lost, is noted, and
leaves the exit status as it is. --target and --exclude choose as they do for "spaces
plan": what a target's steps need is compared with it.

There are two ways out of drift: "spaces apply" repairs it, and the edit that --accept
prints makes the files ask for what runs. The edit is a unified diff on standard output,
for you to review and to make with patch -p1 or git apply; it is never made here. What
no edit can accept is listed on standard error, each with what to do, and so is what may
be a secret. With --json it is {format_version, project, edits, left}.

With --json the report is {format_version, project, endpoint, engine, differences,
counts, notes, refusals}; a difference is {subject, field, before, after, side, what,
reasons, origin}; docs/plan.schema.json describes both. --format=markdown is made for a
comment, as plan's is.

Exit status: 0 no difference; 1 the engine went away or didn't answer; 2 a difference;
3 refused, as plan is.`,
		Example: `  spaces drift
  spaces drift --only-reality --json
  spaces drift --accept > accept.patch`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.drift(c.Context(), f) },
	}
	a.registerFormat(c)
	f.part.choosing(c.Flags())
	c.Flags().BoolVar(&f.onlyReality, "only-reality", false, "leave out what differs because the files changed")
	c.Flags().BoolVar(&f.accept, "accept", false, "print the edit to the files that would ask for what runs")
	return c
}

// driftReport is what drift --json prints.
type driftReport struct {
	FormatVersion int                       `json:"format_version"`
	Project       string                    `json:"project"`
	Endpoint      string                    `json:"endpoint"`
	Engine        string                    `json:"engine"`
	Differences   []difference              `json:"differences"`
	Counts        driftCounts               `json:"counts"`
	Notes         []reconcile.RecordNotice  `json:"notes"`
	Refusals      []reconcile.RecordRefusal `json:"refusals"`
}

// difference is one thing that isn't what the files say: a field, or a whole object.
type difference struct {
	Subject string `json:"subject"`
	// Field is empty where the whole object is meant.
	Field  string         `json:"field,omitempty"`
	Before *string        `json:"before"`
	After  *string        `json:"after"`
	Side   reconcile.Side `json:"side"`
	// What is "missing", "not asked for" or "different".
	What    string         `json:"what"`
	Reasons []string       `json:"reasons,omitempty"`
	Origin  *schema.Origin `json:"origin,omitempty"`
}

type driftCounts struct {
	Files   int `json:"in_the_files"`
	Reality int `json:"in_reality"`
	Either  int `json:"either"`
}

func (a *app) drift(ctx context.Context, f driftFlags) error {
	if f.accept && a.markdown() {
		return usage("Leave out --format=markdown.", "--accept prints an edit, which is no comment.")
	}
	ctx, stop := a.cancellable(ctx)
	defer stop()
	p, err := a.project()
	if err != nil {
		return err
	}
	if err := p.namesEngine(); err != nil {
		return err
	}
	e, v, err := a.look(ctx, p, f.part.options(reconcile.Options{}))
	if err != nil {
		return err
	}
	closeEngine(e)
	found := differences(v.plan)
	if f.onlyReality {
		found = realOnes(found)
	}
	bars := barred(v.plan, false)
	switch {
	case f.accept:
		if err := a.offer(ctx, p, v, found); err != nil {
			return interrupted(ctx, err)
		}
	case a.json:
		r := v.plan.Record()
		a.printJSON(driftReport{formatVersion, r.Project, r.Endpoint, r.Engine, found, countDrift(found), r.Notes, r.Refusals})
	case a.markdown():
		driftDocument(v.plan, found).writeTo(a.out)
	default:
		a.printDrift(v.plan, found)
	}
	switch {
	case len(bars) > 0:
		if !a.json {
			a.printRefusals(bars, p.sources, false)
		}
		return &problems{refusals: bars, reported: true}
	case len(found) > 0:
		return errDiffers
	}
	return nil
}

// offer prints the edit that accepts what was found.
func (a *app) offer(ctx context.Context, p *project, v *view, found []difference) error {
	r, err := a.accept(ctx, p, v, found)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(r)
		return nil
	}
	a.printAccepted(r, len(found))
	return nil
}

func realOnes(all []difference) []difference {
	out := []difference{}
	for _, d := range all {
		if d.Side != reconcile.SideFiles {
			out = append(out, d)
		}
	}
	return out
}

// differences are what a plan's items were made from. An item that only follows from
// another one, as detaching does from a network that is remade, is none.
func differences(plan *reconcile.Plan) []difference {
	out := []difference{}
	for _, i := range plan.Items {
		whole := difference{Subject: i.Subject, Side: sideOf(i.Side), Reasons: i.Reasons, Origin: originIn(i.Origin)}
		switch {
		case isShown(i), isRemoval(i) && i.Effects.Has(reconcile.Replaces):
			// It comes again, and the item that makes it says what differs.
		case i.Effects.Has(reconcile.Creates):
			whole.What = "missing"
			out = append(out, whole)
		case i.Effects.Has(reconcile.Destroys):
			whole.What = "not asked for"
			out = append(out, whole)
		case len(i.Changes) > 0:
			for _, c := range i.Changes {
				out = append(out, differenceOf(i, c))
			}
		case isRename(i):
			whole.What = "different"
			out = append(out, whole)
		}
	}
	return out
}

func isShown(i reconcile.Item) bool {
	_, is := i.Step.(reconcile.NotYet)
	return is
}

func isRemoval(i reconcile.Item) bool {
	switch i.Step.(type) {
	case reconcile.RemoveSpace, reconcile.RemoveNetwork, reconcile.RemoveVolume:
		return true
	}
	return false
}

// isRename is what an apply that was cut short left.
func isRename(i reconcile.Item) bool {
	_, is := i.Step.(reconcile.RenameSpace)
	return is
}

func differenceOf(i reconcile.Item, c reconcile.Change) difference {
	d := difference{Subject: i.Subject, Field: c.Field, Side: sideOf(c.Side), What: "different", Origin: originIn(c.Origin)}
	if c.BeforeSet {
		d.Before = &c.Before
	}
	if c.AfterSet {
		d.After = &c.After
	}
	return d
}

// sideOf is a side that is always said.
func sideOf(s reconcile.Side) reconcile.Side {
	if s == "" {
		return reconcile.SideEither
	}
	return s
}

func countDrift(all []difference) driftCounts {
	var c driftCounts
	for _, d := range all {
		switch d.Side {
		case reconcile.SideFiles:
			c.Files++
		case reconcile.SideReality:
			c.Reality++
		default:
			c.Either++
		}
	}
	return c
}

func (a *app) printDrift(plan *reconcile.Plan, found []difference) {
	colours := a.outColours()
	subject := ""
	for _, d := range found {
		if d.Subject != subject {
			subject = d.Subject
			fmt.Fprintln(a.out, colours.title(printable(reconcile.OneLine(subject))))
		}
		a.out.WriteString(d.line(colours) + "\n")
	}
	if len(found) > 0 {
		a.out.WriteString("\n")
	}
	notes := reconcile.Plan{Notes: plan.Notes}
	a.out.WriteString(colours.plan(strings.TrimSuffix(notes.String(), notes.Summary()+"\n")))
	a.out.WriteString(concluded(plan, found) + "\n")
}

// concluded is drift's last line. What wasn't compared isn't called the same.
func concluded(plan *reconcile.Plan, found []difference) string {
	partly := len(barred(plan, false)) > 0 || slices.ContainsFunc(plan.Notes, func(n reconcile.Notice) bool {
		return n.Kind == "unchecked" || n.Kind == "uncompared"
	})
	switch c := countDrift(found); {
	case len(found) > 0:
		text := fmt.Sprintf("Drift: %s; %d in reality, %d in the files, %d either.",
			count(len(found), "difference", "differences"), c.Reality, c.Files, c.Either)
		if partly {
			text += " What couldn't be compared may differ too."
		}
		return text
	case partly:
		return "No drift in what could be compared; the rest may differ."
	}
	return "No drift: reality is what the files say."
}

func (d difference) line(colours colours) string {
	what := d.Field + ": " + orNone(d.Before) + " → " + orNone(d.After)
	paint := colours.changed
	switch d.What {
	case "missing":
		what, paint = d.What, colours.gained
	case "not asked for":
		what, paint = d.What, colours.lost
	case "different":
		if d.Field == "" {
			what = strings.Join(d.Reasons, "; ")
		}
	}
	line := paint(printable("  "+reconcile.OneLine(what))) + "  [" + string(d.Side) + "]"
	if d.Origin != nil {
		line += "  " + d.Origin.String()
	}
	return line
}

// sign is what the difference's line begins with in a diff.
func (d difference) sign() string {
	switch d.What {
	case "missing":
		return "+"
	case "not asked for":
		return "-"
	}
	return "!"
}

func orNone(s *string) string {
	switch {
	case s == nil:
		return "(none)"
	case *s == "":
		return `""`
	}
	return *s
}
