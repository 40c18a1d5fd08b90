package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"spaces/reconcile"
)

// What an engine shows nothing of differs in everything, and never passes.
func TestVerifyPassesNothingThatItDidNotSee(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.engine.evidence = reconcile.Evidence{Unread: "no right to", NoProbe: "no room"}
	w.want(2, "verify")
	says(t, w.out.String(), "space.web\n", "differs  processes  no right to (asked: they can be looked at)", "differs  networks   no room", "0 hold, 2 differ")
	w.engine.evidence = reconcile.Evidence{}
	w.want(2, "verify")
	if strings.Contains(w.out.String(), "  holds  ") && !strings.Contains(w.out.String(), "no process of it was found") {
		t.Errorf("nothing was seen, and something holds:\n%s", w.out.String())
	}

	w.want(2, "verify", "--json")
	var report verifyReport
	if err := json.Unmarshal(w.out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.FormatVersion != 1 || report.Project != "acme" || len(report.Spaces) != 1 || report.Counts.Differs == 0 || report.Refusals == nil {
		t.Errorf("%+v", report)
	}
}

// A space chooses the names of its processes and what it mounts.
func TestVerifyKeepsWhatSpacesSayInItsPlace(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.engine.evidence = reconcile.Evidence{Processes: []reconcile.Process{{PID: 1, Name: "a\nspace.web\t\x1b[2J", Effective: 1}}}
	w.want(2, "verify")
	says(t, w.out.String(), "process 1 (a?space.web??[2J): effective CHOWN")
}

func TestVerifyWithoutAnythingThatRuns(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(2, "verify")
	says(t, w.out.String(), "differs  running  missing (asked: running)  main.hcl:")
	w.want(3, "verify", "--space", "space.other")
	says(t, w.err.String(), "There is no space space.other to verify")
}
