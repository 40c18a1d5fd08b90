package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

// acceptReport is what drift --accept prints as JSON.
type acceptReport struct {
	FormatVersion int          `json:"format_version"`
	Project       string       `json:"project"`
	Edits         []acceptEdit `json:"edits"`
	Left          []acceptLeft `json:"left"`
}

// acceptEdit is an edit of one file.
type acceptEdit struct {
	File string `json:"file"`
	// Diff is a unified diff.
	Diff string `json:"diff"`
}

// acceptLeft is a difference that no edit of the files accepts.
type acceptLeft struct {
	Subject string         `json:"subject"`
	Field   string         `json:"field,omitempty"`
	Why     string         `json:"why"`
	Instead string         `json:"instead"`
	Origin  *schema.Origin `json:"origin,omitempty"`
}

const repairIt = "Repair it: `spaces apply`."

// accepting looks for the edit of the files that makes what is what they ask for. Each
// way of saying a difference is tried on a copy of them: it counts where they load, ask
// for that and for nothing else that isn't there, and where nothing more is refused.
type accepting struct {
	*app
	ctx     context.Context
	project *project
	view    *view
	options schema.Options

	draft *schema.Draft
	// stands are the differences and the refusals that there are with the draft.
	stands  map[string]bool
	reasons map[string]acceptLeft // by difference, why it isn't accepted
}

// accept finds the edit for those of a plan's differences that were found.
func (a *app) accept(ctx context.Context, p *project, v *view, found []difference) (acceptReport, error) {
	o, err := a.options()
	if err != nil {
		return acceptReport{}, err
	}
	// Each edit is judged by the whole plan, whatever part was asked for.
	whole := &view{key: v.key, facts: v.facts, actual: v.actual}
	if err := whole.diff(p, reconcile.Options{}); err != nil {
		return acceptReport{}, err
	}
	t := &accepting{
		app: a, ctx: ctx, project: p, view: v, options: o,
		draft: schema.NewDraft(p.sources), stands: standing(whole.plan), reasons: map[string]acceptLeft{},
	}
	asked := map[string]bool{}
	for _, d := range found {
		asked[d.key()] = true
	}
	var todo []reconcile.Acceptance
	for _, one := range reconcile.Accept(p.desired, v.actual, v.plan) {
		if slices.ContainsFunc(keysOf(one), func(k string) bool { return asked[k] }) {
			todo = append(todo, one)
		}
	}
	// One may need another: a port is published only where its network isn't internal.
	for before := -1; len(todo) > 0 && len(todo) != before; {
		before = len(todo)
		if todo, err = t.take(todo); err != nil {
			return acceptReport{}, err
		}
	}
	r := acceptReport{FormatVersion: formatVersion, Project: p.desired.Project, Edits: t.edits(t.draft), Left: []acceptLeft{}}
	for _, d := range found {
		if !t.stands[d.key()] {
			continue
		}
		left := t.reasons[d.key()]
		left.Subject, left.Field = d.Subject, d.Field
		left.Why, left.Instead = cmp.Or(left.Why, "the language can't say it"), cmp.Or(left.Instead, repairIt)
		if left.Origin == nil {
			left.Origin = d.Origin
		}
		r.Left = append(r.Left, left)
	}
	return r, nil
}

func (d difference) key() string { return differenceKey(d.Subject, d.Field) }

func differenceKey(subject, field string) string { return "differs " + subject + " " + field }

func keysOf(one reconcile.Acceptance) []string {
	if len(one.Fields) == 0 {
		return []string{differenceKey(one.Subject, "")}
	}
	var keys []string
	for _, f := range one.Fields {
		keys = append(keys, differenceKey(one.Subject, f))
	}
	return keys
}

// standing are a plan's differences and what it refuses.
func standing(plan *reconcile.Plan) map[string]bool {
	all := map[string]bool{}
	for _, d := range differences(plan) {
		all[d.key()] = true
	}
	for _, r := range plan.Refusals {
		all["refused "+r.Code+" "+r.Text] = true
	}
	return all
}

// take takes into the draft what it can of some acceptances, all at once where they do
// together, and returns the others.
func (t *accepting) take(all []reconcile.Acceptance) ([]reconcile.Acceptance, error) {
	if len(all) > 1 {
		var edits []schema.Edit
		var settles []string
		for _, one := range all {
			settles = append(settles, keysOf(one)...)
			if len(one.Ways) > 0 {
				edits = append(edits, one.Ways[0]...)
			}
		}
		draft, stands, err := t.with(edits, settles)
		if err == nil {
			t.draft, t.stands = draft, stands
			return nil, nil
		}
		if no := (*schema.EditError)(nil); !errors.As(err, &no) {
			return nil, err
		}
		half := len(all) / 2
		first, err := t.take(all[:half:half])
		if err != nil {
			return nil, err
		}
		second, err := t.take(all[half:])
		return slices.Concat(first, second), err
	}
	done, err := t.try(all[0])
	if done || err != nil {
		return nil, err
	}
	return all, nil
}

// try takes the first way that does into the draft, or keeps why the first one doesn't.
func (t *accepting) try(one reconcile.Acceptance) (bool, error) {
	left := acceptLeft{Why: one.Why, Instead: one.Instead, Origin: originIn(one.Origin)}
	told := 0
	for _, way := range one.Ways {
		draft, stands, err := t.with(way, keysOf(one))
		if err == nil {
			t.draft, t.stands = draft, stands
			return true, nil
		}
		var no *schema.EditError
		if !errors.As(err, &no) {
			return false, err
		}
		// Of several ways, the one that came the farthest tells the most.
		tells := 1
		switch {
		case no.Elsewhere:
			tells = 3
		case draft != nil:
			tells = 2
		}
		if tells <= told {
			continue
		}
		told, left.Why = tells, no.Why
		if no.Elsewhere {
			left.Origin = &no.At
			left.Instead = fmt.Sprintf("Change it by hand at %s, or repair it: `spaces apply`.", no.At)
		}
	}
	for _, k := range keysOf(one) {
		t.reasons[k] = left
	}
	return false, nil
}

// with is the draft with some edits and what then stands. An EditError says why these
// edits won't do, with the draft if they could be made; any other error is one of looking.
func (t *accepting) with(way []schema.Edit, settles []string) (*schema.Draft, map[string]bool, error) {
	draft, err := t.draft.With(way...)
	if err != nil {
		return nil, nil, err
	}
	cfg, diags := schema.Load(edited{os.DirFS(t.dir), draft.Files()}, t.options)
	if diags.HasErrors() {
		return draft, nil, refusedBy(diags)
	}
	p, err := t.projectOf(cfg)
	if err != nil {
		return nil, nil, err
	}
	facts, err := places.Survey(t.ctx, p.desired, p.host, t.view.actual.Engine, t.view.key)
	if err != nil {
		return nil, nil, err
	}
	v := &view{key: t.view.key, facts: facts, actual: t.view.actual}
	if err := v.diff(p, reconcile.Options{}); err != nil {
		return nil, nil, err
	}
	stands := standing(v.plan)
	for _, r := range v.plan.Refusals {
		if !t.stands["refused "+r.Code+" "+r.Text] {
			return draft, nil, &schema.EditError{Why: "it would be refused: " + r.Text}
		}
	}
	for _, d := range differences(v.plan) {
		switch k := d.key(); {
		case slices.Contains(settles, k):
			return draft, nil, &schema.EditError{Why: "the language has no words for just that"}
		case !t.stands[k]:
			more := strings.TrimSpace(d.Subject + " " + d.Field)
			return draft, nil, &schema.EditError{Why: "the language has no words for just that: in its place, " + more + " would differ"}
		}
	}
	if slices.ContainsFunc(t.edits(draft), func(e acceptEdit) bool { return e.Diff == "" }) {
		return draft, nil, &schema.EditError{Why: "the edit would show a line that may hold a secret"}
	}
	return draft, stands, nil
}

// refusedBy is the language's first word against an edit.
func refusedBy(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return &schema.EditError{Why: fmt.Sprintf("the language refuses it: %s: %s", d.Summary, d.Detail)}
		}
	}
	return nil
}

// edits are a draft's, a file each. One that can't be shown has no diff.
func (t *accepting) edits(draft *schema.Draft) []acceptEdit {
	out := []acceptEdit{}
	files := draft.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, acceptEdit{name, patch(name, t.project.sources[name], files[name])})
	}
	return out
}

// edited is a folder of which some files are replaced.
type edited struct {
	fs.FS
	files map[string][]byte
}

func (e edited) ReadFile(name string) ([]byte, error) {
	if b, is := e.files[name]; is {
		return b, nil
	}
	return fs.ReadFile(e.FS, name)
}

// printAccepted prints the edit on standard output, where a program may read it, and
// what it leaves on standard error.
func (a *app) printAccepted(r acceptReport, found int) {
	for _, e := range r.Edits {
		text := e.Diff
		if a.env.Stdout.Columns > 0 {
			text = printable(text)
		}
		a.out.WriteString(text)
	}
	a.flush()
	if len(r.Left) > 0 {
		fmt.Fprintf(a.env.Stderr, "%s\n", a.errColours().title("Not in the edit:"))
	}
	for _, left := range r.Left {
		what := strings.TrimSuffix(left.Subject+"  "+left.Field, "  ")
		if left.Origin != nil {
			what += "  " + left.Origin.String()
		}
		fmt.Fprintln(a.env.Stderr, printable("  "+reconcile.OneLine(what)))
		fmt.Fprintln(a.env.Stderr, printable("    "+reconcile.OneLine(strings.TrimSuffix(left.Why, ".")+". "+left.Instead)))
	}
	switch {
	case found == 0:
		fmt.Fprintln(a.env.Stderr, "No drift: there is nothing to accept.")
	case len(r.Edits) == 0:
		fmt.Fprintln(a.env.Stderr, "No edit of the files accepts any of it. Nothing was changed.")
	default:
		fmt.Fprintf(a.env.Stderr, "The edit accepts %d of %s. Nothing was changed: review it, and make it with patch -p1 or git apply.\n",
			found-len(r.Left), count(found, "difference", "differences"))
	}
}
