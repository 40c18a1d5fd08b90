package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"

	"spaces/reconcile"
)

func change(field, before, after string, side reconcile.Side) reconcile.Change {
	return reconcile.Change{Field: field, Before: before, After: after, BeforeSet: true, AfterSet: true, Side: side}
}

func TestDifferences(t *testing.T) {
	plan := &reconcile.Plan{Items: []reconcile.Item{
		{ID: "a", Subject: "space.a", Step: reconcile.CreateSpace{}, Effects: reconcile.Creates, Side: reconcile.SideEither},
		{ID: "b", Subject: "space.b", Step: reconcile.ReplaceSpace{}, Effects: reconcile.Replaces, Changes: []reconcile.Change{
			change("user", "root", "app", reconcile.SideReality), change("image", "1", "2", reconcile.SideFiles),
		}},
		{ID: "c", Subject: "container c", Step: reconcile.RemoveSpace{}, Effects: reconcile.Destroys, Side: reconcile.SideReality},
		// These follow from others.
		{ID: "d", Subject: "space.d", Step: reconcile.DisconnectSpace{}, Effects: reconcile.Updates, Side: reconcile.SideEither},
		{ID: "e", Subject: "network.e", Step: reconcile.RemoveNetwork{}, Effects: reconcile.Replaces, Side: reconcile.SideEither},
		// This isn't run.
		{ID: "f", Subject: "role.f", Step: reconcile.NotYet{}, Effects: reconcile.Creates, Side: reconcile.SideFiles},
	}}
	all := differences(plan)
	if got, want := countDrift(all), (driftCounts{Files: 1, Reality: 2, Either: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if got, want := countDrift(realOnes(all)), (driftCounts{Reality: 2, Either: 1}); got != want {
		t.Errorf("counts of reality alone %+v, want %+v", got, want)
	}
}

func TestDriftReport(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(2, "drift")
	says(t, w.out.String(), "space.web\n", "missing  [either]  main.hcl:", "Drift: 3 differences; 0 in reality, 0 in the files, 3 either.")
	w.want(2, "drift", "--only-reality", "--json")
	var r driftReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Counts != (driftCounts{Either: 3}) || len(r.Differences) != 3 || r.Engine != "Docker 28.0.0" {
		t.Errorf("report: %+v", r)
	}
}

// What couldn't be compared may differ: drift shows it, and doesn't call it the same.
func TestDriftSaysWhatItCouldNotCompare(t *testing.T) {
	const nothing = "Nothing of this is compared"
	drift := func(plan *reconcile.Plan) string {
		t.Helper()
		var out bytes.Buffer
		a := &app{env: Env{Environ: []string{}}, out: bufio.NewWriter(&out)}
		a.printDrift(plan, differences(plan))
		a.flush()
		return out.String()
	}
	note := func(kind string) reconcile.Notice {
		return reconcile.Notice{Kind: kind, Subject: "grant.g", Text: nothing}
	}
	differing := []reconcile.Item{{Subject: "space.a", Step: reconcile.CreateSpace{}, Effects: reconcile.Creates}}
	const same = "No drift: reality is what the files say.\n"
	const partly = "No drift in what could be compared; the rest may differ.\n"
	for name, c := range map[string]struct {
		plan reconcile.Plan
		want string
	}{
		"nothing":    {reconcile.Plan{}, same},
		"host's":     {reconcile.Plan{Notes: []reconcile.Notice{note("host's")}}, "Notes\n  ! host's  grant.g  " + nothing + "\n\n" + same},
		"unchecked":  {reconcile.Plan{Notes: []reconcile.Notice{note("unchecked")}}, "Notes\n  ! unchecked  grant.g  " + nothing + "\n\n" + partly},
		"uncompared": {reconcile.Plan{Notes: []reconcile.Notice{note("uncompared")}}, "Notes\n  ! uncompared  grant.g  " + nothing + "\n\n" + partly},
		"refused":    {reconcile.Plan{Refusals: []reconcile.Refusal{{Code: "name-taken"}}}, partly},
		"to apply":   {reconcile.Plan{Refusals: []reconcile.Refusal{{Code: "not-yet-supported", ApplyOnly: true}}}, same},
		"both": {
			reconcile.Plan{Items: differing, Notes: []reconcile.Notice{note("uncompared")}},
			"space.a\n  missing  [either]\n\nNotes\n  ! uncompared  grant.g  " + nothing + "\n\n" +
				"Drift: 1 difference; 0 in reality, 0 in the files, 1 either. What couldn't be compared may differ too.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drift(&c.plan); got != c.want {
				t.Errorf("got\n%s--- want\n%s", got, c.want)
			}
		})
	}
}
