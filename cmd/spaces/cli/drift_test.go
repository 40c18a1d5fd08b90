package cli

import (
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
