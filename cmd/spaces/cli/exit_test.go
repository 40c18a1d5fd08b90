package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spaces/places"
	"spaces/reconcile"
)

func TestStatusOfErrors(t *testing.T) {
	refusal := &reconcile.Refusal{Code: reconcile.CodeNameTaken}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":                        {nil, statusDone},
		"differs":                        {errDiffers, statusDiffers},
		"problems":                       {&problems{refusals: []reconcile.Refusal{*refusal}}, statusRefused},
		"a refusal at the bottom":        {fmt.Errorf("cannot open: %w", refusal), statusRefused},
		"anything else":                  {io.EOF, statusFailed},
		"busy":                           {&places.BusyError{}, statusFailed},
		"a step failed":                  {&reportedError{&reconcile.ApplyError{Result: reconcile.Result{Failed: []reconcile.Failure{{Err: io.EOF}}}}}, statusFailed},
		"a step was refused":             {&reportedError{&reconcile.ApplyError{Result: reconcile.Result{Failed: []reconcile.Failure{{Err: refusal}}}}}, statusRefused},
		"interrupted as one was refused": {&reconcile.ApplyError{Interrupted: errInterrupted, Result: reconcile.Result{Failed: []reconcile.Failure{{Err: refusal}}}}, statusFailed},
	} {
		if got := status(c.err); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	invalid := strings.Replace(small, "network.inside", "network.nowhere", 1)
	for name, c := range map[string]struct {
		files string
		setup func(*world)
		args  []string
		want  int
		err   string
	}{
		"no verb":                    {args: nil, want: 0},
		"unknown verb":               {args: []string{"plam"}, want: 3, err: "Did you mean plan?"},
		"unknown flag":               {args: []string{"plan", "--nope"}, want: 3, err: "usage"},
		"unknown flag of the root":   {args: []string{"--nope"}, want: 3, err: "usage"},
		"too many arguments":         {args: []string{"plan", "x"}, want: 3, err: "usage"},
		"too few arguments":          {args: []string{"show"}, want: 3, err: "spaces show FILE"},
		"unknown shell":              {args: []string{"completion", "csh"}, want: 3, err: "csh"},
		"help for nothing":           {args: []string{"help", "nothing"}, want: 3, err: "nothing"},
		"folder missing":             {args: []string{"-C", "nowhere", "plan"}, want: 3, err: "no such file"},
		"folder is a file":           {args: []string{"-C", "main.hcl", "plan"}, want: 3, err: "not a folder"},
		"variable without a value":   {args: []string{"plan", "--var", "x"}, want: 3, err: "usage"},
		"variables file missing":     {args: []string{"plan", "--var-file", "x"}, want: 3, err: "usage"},
		"format unknown":             {args: []string{"plan", "--format", "xml"}, want: 3, err: "usage"},
		"validate":                   {args: []string{"validate"}, want: 0},
		"validate invalid":           {files: invalid, args: []string{"validate"}, want: 2, err: "nowhere"},
		"validate without files":     {files: "none", args: []string{"validate"}, want: 2},
		"plan invalid":               {files: invalid, args: []string{"plan"}, want: 3, err: "config-invalid: 1 error in the configuration: nothing was done."},
		"apply invalid":              {files: invalid, args: []string{"apply", "--auto-approve"}, want: 3, err: "config-invalid"},
		"plan":                       {args: []string{"plan"}, want: 0},
		"plan detailed":              {args: []string{"plan", "--detailed-exitcode"}, want: 2},
		"plan offline detailed":      {args: []string{"plan", "--offline", "--detailed-exitcode"}, want: 2},
		"plan of nothing detailed":   {files: `project = "acme"`, args: []string{"plan", "--detailed-exitcode"}, want: 0},
		"data root not absolute":     {args: []string{"plan", "--data-root", "x"}, want: 3, err: "not an absolute path"},
		"drift":                      {args: []string{"drift"}, want: 2},
		"status":                     {args: []string{"status"}, want: 0},
		"show nothing":               {args: []string{"show", "x"}, want: 3, err: "usage"},
		"show no plan":               {args: []string{"show", "main.hcl"}, want: 3, err: "usage"},
		"version":                    {args: []string{"version"}, want: 0},
		"apply without a terminal":   {args: []string{"apply"}, want: 3, err: "There is no terminal"},
		"destroy without a terminal": {setup: func(w *world) { w.engine.actual.Containers = append(w.engine.actual.Containers, w.running("x")) }, args: []string{"destroy"}, want: 3, err: "There is no terminal"},
		"destroy of nothing":         {args: []string{"destroy"}, want: 0},
		"destroy by half a name":     {args: []string{"destroy", "--project", "x"}, want: 3, err: "--endpoint"},
		"parallelism of none":        {args: []string{"apply", "--parallelism", "0"}, want: 3, err: "usage"},
		"apply locally":              {files: "project = \"acme\"\n", args: []string{"apply", "--auto-approve"}, want: 3, err: "not-yet-supported"},
		"engine gone midway":         {setup: func(w *world) { w.engine.err = io.ErrUnexpectedEOF }, args: []string{"plan"}, want: 1, err: "unexpected EOF"},
		"engine refused":             {setup: refuseEngine, args: []string{"plan"}, want: 3, err: "endpoint-not-rootless"},
		"engine refused, json":       {setup: refuseEngine, args: []string{"plan", "--json"}, want: 3},
		"engine refused, status":     {setup: refuseEngine, args: []string{"status"}, want: 3, err: "endpoint-not-rootless"},
		"name taken":                 {setup: takeName, args: []string{"plan"}, want: 3, err: "name-taken"},
		"name taken, apply":          {setup: takeName, args: []string{"apply", "--auto-approve"}, want: 3, err: "name-taken"},
	} {
		t.Run(name, func(t *testing.T) {
			files := c.files
			if files == "" {
				files = small
			}
			w := newWorld(t)
			if files != "none" {
				w.write("main.hcl", files)
			}
			if c.setup != nil {
				c.setup(w)
			}
			w.want(c.want, c.args...)
			says(t, w.err.String(), c.err)
			if len(w.engine.steps) > 0 {
				t.Errorf("steps ran: %v", w.engine.steps)
			}
		})
	}
}

func refuseEngine(w *world) {
	w.env.Open = func(context.Context, string, places.OpenOptions) (Places, error) {
		return nil, fmt.Errorf("cannot: %w", &reconcile.Refusal{Code: reconcile.CodeNotRootless, Text: "it is rootful", Fix: "use another"})
	}
}

func takeName(w *world) {
	w.engine.actual.Taken.Networks = map[string]string{"acme-inside": "project other"}
}

// An engine that can't be used hides nothing else that a person must act on.
func TestEngineRefusalComesWithTheOthers(t *testing.T) {
	w := newWorld(t, "main.hcl", small+`
grant "nowhere" {
  directory = "/nowhere/at/all"
  target    = "/data"
}

space "db" {
  image    = image.ref
  networks = [network.inside]
  grants   = [grant.nowhere]
}
`)
	refuseEngine(w)
	w.want(3, "plan")
	says(t, w.err.String(), "Error: endpoint-not-rootless", `on main.hcl line 5, in install`, "it is rootful", "→ use another", "Error: grant-source")
}

func TestReportThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	env := w.env
	env.Args = []string{"version"}
	env.Stdout.Writer, env.Stderr.Writer = broken{}, &w.err
	if got := Main(env); got != statusFailed {
		t.Errorf("status %d, want %d", got, statusFailed)
	}
	says(t, w.err.String(), "cannot write the report: no room")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestChdirIsTakenStepByStep(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.env.Dir, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("a/b/main.hcl", small)
	w.want(0, "-C", "a", "-C", "b", "validate")
	w.want(0, "validate", "-C", filepath.Join(w.env.Dir, "a/b"))
	w.want(2, "-C", "a", "validate")
}
