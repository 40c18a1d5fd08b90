package reconcile

import (
	"slices"
	"testing"

	"golang.org/x/tools/txtar"
)

// A move that is planned may fail or be left out, and then what ran goes on under its
// old name: it stays protected until it is gone.
func TestMovedStaysProtected(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/plan/protect-moved.txtar")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range archive.Files {
		parts[f.Name] = string(f.Data)
	}
	guards := planOf(t, parts).Guards
	if !slices.ContainsFunc(guards, func(g Guard) bool { return g.Address == "space.old" }) {
		t.Errorf("what is remembered while it moves: %v", guards)
	}
	parts["before.hcl"] = parts["main.hcl"] // it has moved
	if guards := planOf(t, parts).Guards; len(guards) != 0 {
		t.Errorf("what is remembered once it has moved: %v", guards)
	}
}
