package schema_test

import (
	"strings"
	"testing"

	"spaces/schema"
)

func TestCheckSyntax(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want bool // errors
	}{
		"right":       {"a = 1\n", false},
		"not whole":   {"a = [\n", true},
		"unknown":     {"bogus \"x\" {}\n", false}, // its meaning isn't looked at
		"bottomless":  {"a = " + strings.Repeat("[", 1<<20), true},
		"bottomless)": {"a = " + strings.Repeat("(", 1<<20), true},
	} {
		if got := schema.CheckSyntax([]byte(c.src), "x.hcl").HasErrors(); got != c.want {
			t.Errorf("%s: errors %v, want %v", name, got, c.want)
		}
	}
}
