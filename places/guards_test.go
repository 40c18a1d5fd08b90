package places

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"spaces/reconcile"
	"spaces/schema"
)

func TestGuards(t *testing.T) {
	root := DataRoot(t.TempDir())
	must(t, os.Mkdir(root.Part(PartState), 0o700))
	if got, err := root.Guards(); err != nil || got != nil {
		t.Fatalf("before the first apply: %v, %v", got, err)
	}
	want := []reconcile.Guard{
		{Address: "network.inside"},
		{Address: `space.web["a"]`, Origin: schema.Origin{File: "main.hcl", Line: 3, Column: 3, EndLine: 3, EndColumn: 17}},
	}
	must(t, root.SetGuards(want))
	if got, err := root.Guards(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	info, err := os.Stat(root.GuardsFile())
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	must(t, root.SetGuards(nil))
	if got, err := root.Guards(); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

// What can't be read protects nothing, so nothing goes ahead without it.
func TestGuardsUnread(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "no JSON": "protected", "half": `{"format_version": 1, "protected": [{"addr`, "another format": `{"format_version": 2}`,
		"another shape": `{"format_version": 1, "protected": "all"}`,
	} {
		root := DataRoot(t.TempDir())
		must(t, os.Mkdir(root.Part(PartState), 0o700))
		must(t, os.WriteFile(root.GuardsFile(), []byte(content), 0o600))
		_, err := root.Guards()
		var refusal *reconcile.Refusal
		if !errors.As(err, &refusal) || refusal.Code != reconcile.CodeDataRoot {
			t.Errorf("%s: %v", name, err)
		}
	}
	root := DataRoot(t.TempDir())
	must(t, os.MkdirAll(filepath.Join(root.GuardsFile()), 0o700))
	if _, err := root.Guards(); err == nil {
		t.Error("a folder is read as a file")
	}
}
