package reconcile

import (
	"slices"
	"testing"
)

// What moved is told by the step and its fields; what only a reader sees is no move.
func TestMovedNamesTheFields(t *testing.T) {
	change := func(field, after string) RecordChange { return RecordChange{Field: field, After: &after} }
	then := Record{Items: []RecordItem{
		{ID: "replace space.a", Reasons: []string{"one"}, Changes: []RecordChange{change("image", "a:1"), change("user", "1")}},
		{ID: "create network.n"},
	}}
	now := Record{Items: []RecordItem{
		{ID: "replace space.a", Reasons: []string{"another"}, Changes: []RecordChange{change("image", "a:2"), change("state", "running")}},
		{ID: "create network.m"},
	}}
	want := []string{
		`step "create network.m" is new`,
		`step "replace space.a" is different: image, state, user`,
		`step "create network.n" is gone`,
	}
	if got := then.Moved(now); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := then.Moved(then); len(got) != 0 {
		t.Errorf("nothing moved, and it says %q", got)
	}
}

// A plan of other flags is another plan, whatever its steps.
func TestMovedNamesTheFlags(t *testing.T) {
	then := Record{Targets: []string{"space.a", "space.b"}}
	now := Record{Replace: []string{"space.a"}}
	want := []string{"flags: --replace space.a, was --target space.a --target space.b"}
	if got := then.Moved(now); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = []string{"flags: none, was --target space.a --target space.b"}
	if got := then.Moved(Record{}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
