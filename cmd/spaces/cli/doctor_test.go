package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"spaces/places"
	"spaces/reconcile"
)

func (w *world) doctor(status int) doctorReport {
	w.t.Helper()
	w.want(status, "doctor", "--json")
	var r doctorReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		w.t.Fatalf("%v in %s", err, w.out.String())
	}
	return r
}

// about is the first finding of a check.
func (r doctorReport) about(check string) doctorFinding {
	if i := slices.IndexFunc(r.Findings, func(f doctorFinding) bool { return f.Check == check }); i >= 0 {
		return r.Findings[i]
	}
	return doctorFinding{}
}

func TestDoctor(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	r := w.doctor(statusDone)
	for check, rating := range map[string]reconcile.Rating{
		"configuration": reconcile.RatingFine, "endpoint": reconcile.RatingFine, "plan": reconcile.RatingFine,
		"data root": reconcile.RatingFine, "storage driver": reconcile.RatingFine,
	} {
		if got := r.about(check); got.Rating != rating {
			t.Errorf("%s: %+v", check, got)
		}
	}
	if r.Project != "acme" || w.engine.closed != 1 || len(w.engine.steps) > 0 {
		t.Errorf("project %q, closed %d, steps %v", r.Project, w.engine.closed, w.engine.steps)
	}
	w.want(statusDone, "doctor")
	says(t, w.out.String(), "ok       configuration       project acme, 1 file\n")
}

// An engine that isn't there is a finding, with and without files.
func TestDoctorWithoutEngine(t *testing.T) {
	for _, files := range [][]string{nil, {"main.hcl", small}} {
		w := newWorld(t, files...)
		w.env.Open = func(_ context.Context, endpoint string, o places.OpenOptions) (Places, error) {
			return nil, &reconcile.Refusal{Code: reconcile.CodeNotRootless, Text: "no engine listens at " + endpoint, Fix: "start it"}
		}
		r := w.doctor(statusRefused)
		if got := r.about("endpoint"); got.Code != reconcile.CodeNotRootless || got.Fix != "start it" || (got.Origin != nil) != (files != nil) {
			t.Errorf("%d files: %+v", len(files)/2, got)
		}
		if got := r.about("configuration"); (got.Rating == reconcile.RatingUnknown) != (files == nil) {
			t.Errorf("%d files: %+v", len(files)/2, got)
		}
	}
}

// Files that are wrong keep nothing else from being looked at.
func TestDoctorOfWrongFiles(t *testing.T) {
	w := newWorld(t, "main.hcl", "project = \"acme\"\nspaec \"x\" {\n}\nnetwrk \"y\" {\n}\n")
	r := w.doctor(statusRefused)
	if r.Counts.Refused != 2 || r.about("configuration").Code != reconcile.CodeConfigInvalid || r.about("configuration").Origin.Line != 2 {
		t.Errorf("got %+v", r)
	}
	if r.about("endpoint").Rating != reconcile.RatingFine {
		t.Errorf("the engine wasn't looked at: %+v", r.about("endpoint"))
	}
	w.want(statusRefused, "doctor")
	says(t, w.out.String(), "refused  configuration       config-invalid: Unknown block  main.hcl:2\n", "→ The language has no block", "2 things refuse")
}

func TestDoctorThatCannotLook(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.err = errors.New("the engine went away")
	w.want(statusFailed, "doctor")
	says(t, w.err.String(), "the engine went away")
}

// What would refuse an apply alone refuses here too, by the plan's own words.
func TestDoctorOfAPlan(t *testing.T) {
	w := newWorld(t, "main.hcl", "project = \"acme\"\n")
	r := w.doctor(statusRefused)
	if got := r.about("plan"); got.Code != reconcile.CodeNotYetSupported {
		t.Errorf("got %+v", got)
	}
	if got := r.about("endpoint"); got.Rating != reconcile.RatingUnknown {
		t.Errorf("got %+v", got)
	}
}
