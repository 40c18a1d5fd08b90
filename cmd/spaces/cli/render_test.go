package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"spaces/reconcile"
)

func TestRefusalsLookLikeDiagnostics(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	takeName(w)
	w.want(3, "plan")
	const want = `Error: name-taken

  on main.hcl line 12, in network "inside":
  12: network "inside" {

The network name acme-inside is taken by project other.
→ Remove or rename it, or give yours another name; what isn't ours is never touched.

`
	if w.err.String() != want {
		t.Errorf("got\n%s\nwant\n%s", w.err.String(), want)
	}
	// The plan itself is still the report.
	says(t, w.out.String(), "+ create space.web")
	if strings.Contains(w.out.String(), "name-taken") {
		t.Error("a refusal is printed twice")
	}
}

func TestProblemsAsJSON(t *testing.T) {
	for name, c := range map[string]struct {
		files string
		setup func(*world)
		args  []string
		code  string
		line  int
		snip  string
	}{
		"configuration": {strings.Replace(small, "= network.", "= network.", 1) + "bogus \"x\" {\n}\n", nil, []string{"plan", "--json"}, "config-invalid", 20, "bogus"},
		"engine":        {small, refuseEngine, []string{"status", "--json"}, "endpoint-not-rootless", 5, "  endpoint ="},
		"usage":         {small, nil, []string{"plan", "--json", "--nope"}, "usage", 0, ""},
		"no terminal":   {small, func(w *world) { w.answers("yes\n") }, []string{"apply", "--json"}, "usage", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "main.hcl", c.files)
			if c.setup != nil {
				c.setup(w)
			}
			w.want(3, c.args...)
			var r problemReport
			if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
				t.Fatalf("%v:\n%s", err, w.out.String())
			}
			if r.FormatVersion != 1 || len(r.Diagnostics) == 0 {
				t.Fatalf("report: %+v", r)
			}
			d := r.Diagnostics[0]
			if d.Code != c.code || d.Severity != "error" || d.Summary == "" || d.Detail == "" {
				t.Errorf("diagnostic: %+v", d)
			}
			if c.line > 0 && (d.Origin == nil || d.Origin.File != "main.hcl" || d.Origin.Line != c.line || !strings.HasPrefix(d.Snippet, c.snip)) {
				t.Errorf("origin %v, snippet %q", d.Origin, d.Snippet)
			}
			if w.err.Len() > 0 {
				t.Errorf("stderr has %q", w.err.String())
			}
		})
	}
}

func TestValidateAsJSON(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "validate", "--json")
	var r validateReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Valid || r.Diagnostics == nil || len(r.Unchecked) != 2 {
		t.Errorf("report: %+v", r)
	}
}

func TestColours(t *testing.T) {
	colours := newColours(true)
	for line, want := range map[string]string{
		"Steps":                     "\x1b[1mSteps\x1b[",
		"  + create space.a":        "\x1b[32m  + create",
		"  - remove space.a":        "\x1b[31m  - remove",
		"  ~ update space.a":        "\x1b[33m  ~ update",
		"  ± replace space.a":       "\x1b[35m  ± replace",
		"  ? create role.a":         "\x1b[2m  ? create",
		"      user  root → app":    "      user",
		"      + not a sign at all": "      + not",
		"  ! wide  network.a":       "\x1b[33m  ! wide",
		"":                          "",
		"x":                         "\x1b[1mx",
		"  ":                        "  ",
		"  é":                       "  é",
	} {
		if got := colours.plan(line); !strings.HasPrefix(got, want) {
			t.Errorf("%q becomes %q, want %q…", line, got, want)
		}
	}
}

func TestColourOnlyWhereItIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		columns int
		environ string
		args    []string
		want    bool
	}{
		"terminal":    {80, "", nil, true},
		"no terminal": {0, "", nil, false},
		"--no-color":  {80, "", []string{"--no-color"}, false},
		"NO_COLOR":    {80, "NO_COLOR=1", nil, false},
		"no NO_COLOR": {80, "NO_COLOR=", nil, true}, // no-color.org: when not empty
		"dumb":        {80, "TERM=dumb", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "main.hcl", small)
			w.env.Environ = append(w.env.Environ, c.environ)
			w.env.Stdout.Columns, w.env.Stderr.Columns = c.columns, c.columns
			takeName(w)
			w.want(3, append([]string{"plan"}, c.args...)...)
			for stream, text := range map[string]string{"stdout": w.out.String(), "stderr": w.err.String()} {
				if got := strings.Contains(text, "\x1b["); got != c.want {
					t.Errorf("%s has colour: %v, want %v", stream, got, c.want)
				}
			}
		})
	}
}

// Reports are indented as encoding/json does it, without its copies.
func TestIndenter(t *testing.T) {
	v := map[string]any{
		"a": []any{}, "b": map[string]any{}, "c": []any{1, "x", nil, true, []any{[]any{}}},
		"d": map[string]any{"e": `a "quoted, {string}": \\`, "f": "→ <&>"}, `"`: "\\",
	}
	var got, want bytes.Buffer
	w := bufio.NewWriter(&got)
	if err := writeJSON(w, v); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
	}
}

// What comes from elsewhere steers no terminal: not an engine's names, nor a file's text.
func TestNothingSteersTheTerminal(t *testing.T) {
	const evil = "\x1b[2J\u009b1m\r\u202e\a"
	w := newWorld(t, "main.hcl", small)
	w.engine.actual.Taken.Networks = map[string]string{"acme-inside": evil}
	c := w.running("x")
	c.Name += evil
	c.Labels[reconcile.LabelName] = evil
	w.engine.actual.Containers = []reconcile.ObservedContainer{c}
	w.engine.step = func(context.Context, reconcile.Step) error { return errors.New(evil) }
	for _, run := range []struct {
		status int
		args   []string
	}{
		{3, []string{"plan"}},
		{3, []string{"drift"}},
		{0, []string{"status"}},
		{1, []string{"destroy", "--auto-approve"}},
		{3, []string{evil}},
		{3, []string{"fmt", evil}},
	} {
		w.want(run.status, run.args...)
		if text := w.out.String() + w.err.String(); strings.ContainsAny(text, evil[:1]+"\u009b\r\u202e\a") {
			t.Errorf("%s prints %q", run.args[0], text)
		}
	}
}
