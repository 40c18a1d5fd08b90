package testscripts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code that a refusal can have is produced by some script, which sees its exit
// status too.
func TestEveryRefusalHasAScript(t *testing.T) {
	source, err := os.ReadFile("../reconcile/plan.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+\s*= "([a-z-]+)"$`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	paths, err := filepath.Glob("*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	refused := regexp.MustCompile(`(?m)^exits 3 spaces .*\n(?:! stdout .*\n)?stderr '\^(?:Error: )?([a-z-]+)[$:]`)
	shown := map[string]bool{}
	for _, path := range paths {
		script, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, _, _ := strings.Cut(string(script), "\n-- ")
		for _, m := range refused.FindAllStringSubmatch(lines, -1) {
			shown[m[1]] = true
		}
	}
	for _, c := range codes {
		if !shown[c[1]] {
			t.Errorf("no script shows %s with its exit status", c[1])
		}
	}
}
