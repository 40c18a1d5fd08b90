package schema

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A thousand mistakes in a large file are all told, the first of them with their lines.
func TestManyDiagnostics(t *testing.T) {
	const mistakes = 1_000
	src := bytes.NewBufferString("project = \"p\"\n")
	for i := range mistakes {
		fmt.Fprintf(src, "network \"n%d\" {\n  egres = \"none\"\n}\n", i)
	}
	cfg, diags := Load(fstest.MapFS{"main.hcl": {Data: src.Bytes()}}, Options{Root: fixtureRoot})
	if len(diags) != mistakes {
		t.Fatalf("%d diagnostics, want %d", len(diags), mistakes)
	}
	var out strings.Builder
	if err := WriteDiagnostics(&out, cfg.Sources, diags, 80, false); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if whole := strings.Count(text, "  egres = \"none\"\n"); whole != wholeDiagnostics {
		t.Errorf("%d are written with their lines, want %d", whole, wholeDiagnostics)
	}
	for _, want := range []string{
		"on main.hcl line 3, in network \"n0\":\n   3:   egres = \"none\"\n",
		fmt.Sprintf("And %d more:\n", mistakes-wholeDiagnostics),
		fmt.Sprintf("  main.hcl:%d: %s\n", 3*mistakes, diags[0].Summary),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
