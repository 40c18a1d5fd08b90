package schema

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// TestReferenceIsWhole: every block and attribute of the tables is described, once, and
// nothing is described that isn't there.
func TestReferenceIsWhole(t *testing.T) {
	described := map[*blockSpec]bool{}
	for _, text := range blockTexts {
		spec := specAt(text.path)
		if spec == nil {
			t.Errorf("%q is described and no block", text.path)
			continue
		}
		if described[spec] {
			t.Errorf("%q is described twice", text.path)
		}
		described[spec] = true
		if text.doc == "" {
			t.Errorf("%q has no text", text.path)
		}
		var names []string
		for _, a := range text.attrs {
			names = append(names, a.name)
			if a.ty == "" || a.doc == "" {
				t.Errorf("%s.%s lacks a type or a text", text.path, a.name)
			}
			if spec.attrs[a.name] && a.def != "" {
				t.Errorf("%s.%s must be given, and has a default", text.path, a.name)
			}
		}
		slices.Sort(names)
		if want := slices.Sorted(maps.Keys(spec.attrs)); !slices.Equal(names, want) {
			t.Errorf("%q has the attributes %v, and %v are described", text.path, want, names)
		}
	}
	var walk func(path string, spec *blockSpec)
	walk = func(path string, spec *blockSpec) {
		if !described[spec] {
			t.Errorf("%q is not described", path)
		}
		for name, inner := range spec.blocks {
			walk(strings.TrimPrefix(path+"."+name, "."), inner)
		}
	}
	walk("", topSpec)
}

func TestReferenceHasEveryFunction(t *testing.T) {
	seen := map[string]bool{}
	all := functions()
	for _, g := range Reference().Functions {
		if g.Title == "" {
			t.Errorf("in no group: %v", g.Names)
		}
		for _, name := range g.Names {
			if _, ok := all[name]; !ok || seen[name] {
				t.Errorf("%s is listed twice, or is no function", name)
			}
			seen[name] = true
		}
	}
	for _, absent := range Reference().Absent {
		if _, ok := all[absent.Name]; ok || absent.Why == "" {
			t.Errorf("%s is there, or nothing says why not", absent.Name)
		}
	}
}

func TestReferenceHasEveryLoosening(t *testing.T) {
	var kinds []string
	for _, l := range Reference().Loosenings {
		kinds = append(kinds, l.Kind)
	}
	slices.Sort(kinds)
	if want := slices.Sorted(maps.Keys(loosenKinds)); !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %v, and %v are described", want, kinds)
	}
	// The diagnostic lists them by hand.
	text := diagLoosenKind("x", "", hcl.Range{}, hcl.Range{}).Detail
	for _, kind := range kinds {
		if !strings.Contains(text, kind) {
			t.Errorf("the diagnostic doesn't name %s: %s", kind, text)
		}
	}
}
