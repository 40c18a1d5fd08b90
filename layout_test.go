// Package spaces_test holds the rules of the house: who may import whom.
package spaces_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "spaces"

// allowed says which packages of ours each top-level folder may import. Values flow
// right through them, imports point left (ARCHITECTURE.md draws it).
var allowed = map[string][]string{
	"gatekeeper/policy": {},
	"schema":            {"gatekeeper/policy"},
	"reconcile":         {"schema", "gatekeeper/policy"},
	"places":            {"reconcile", "schema", "gatekeeper", "codetransfer"},
	"gatekeeper":        {"gatekeeper"},
	"codetransfer":      {"codetransfer", "gatekeeper/policy"},
	"cmd":               {"cmd", "places", "reconcile", "schema", "gatekeeper", "codetransfer"},
	"testscripts":       {"cmd", "places", "reconcile", "schema"},
	"examples":          {"cmd", "places", "reconcile", "schema"},
	"docs":              {"cmd", "schema", "reconcile"},
}

// outside says which packages of others stay in which folders.
var outside = []struct {
	prefix string
	only   []string
}{
	{"github.com/docker/docker", []string{"places", "testscripts"}},
	{"github.com/docker/go-connections", []string{"places", "testscripts"}},
	{"github.com/hashicorp/hcl", []string{"schema", "cmd"}},
	{"github.com/zclconf/go-cty", []string{"schema", "cmd"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		folder := folderOf(p.ImportPath)
		if folder == "" {
			continue
		}
		for _, i := range p.Imports {
			if path, ours := strings.CutPrefix(i, module+"/"); ours && !mayImport(folder, path) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for _, rule := range outside {
				if strings.HasPrefix(i, rule.prefix) && !slices.Contains(rule.only, topOf(folder)) {
					t.Errorf("%s imports %s, which stays in %v", p.ImportPath, i, rule.only)
				}
			}
		}
	}
}

// TestReconcileIsPure: what decides has no engine, clock, file or socket at hand.
func TestReconcileIsPure(t *testing.T) {
	for _, p := range packages(t) {
		if folderOf(p.ImportPath) != "reconcile" {
			continue
		}
		for _, i := range p.Imports {
			switch i {
			case "os", "net", "net/http", "os/exec", "syscall", "log", "log/slog", "math/rand", "math/rand/v2":
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func mayImport(folder, path string) bool {
	if path == folder || strings.HasPrefix(path, topOf(folder)+"/") && folder == topOf(folder) {
		return true
	}
	for _, a := range allowed[folder] {
		if path == a || strings.HasPrefix(path, a+"/") {
			return true
		}
	}
	return false
}

// folderOf is the part of the layout a package is in; policy is one of its own.
func folderOf(importPath string) string {
	path, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	if path == "gatekeeper/policy" {
		return path
	}
	return topOf(path)
}

func topOf(path string) string {
	top, _, _ := strings.Cut(path, "/")
	return top
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "-tags=engine", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if _, known := allowed[folderOf(p.ImportPath)]; !known && p.ImportPath != module {
			t.Errorf("%s is in no folder of the layout", p.ImportPath)
		}
		list = append(list, p)
	}
	if len(list) < 5 {
		t.Fatalf("go list found only %d packages", len(list))
	}
	return list
}

// TestEngineTestsAreRun: what needs an engine runs by its name, so that a test with
// another name would never run.
func TestEngineTestsAreRun(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(source), "//go:build engine") {
			return err
		}
		for _, m := range testName.FindAllStringSubmatch(string(source), -1) {
			found++
			if name := m[1]; name != "TestMain" && !strings.HasPrefix(name, "TestRootless") && !strings.HasPrefix(name, "TestRootful") {
				t.Errorf("%s: %s names neither engine, so nothing runs it", path, name)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d tests found (%v)", found, err)
	}
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
