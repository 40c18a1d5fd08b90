//go:build engine

package testscripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRootlessDemo is `make demo` as somebody without root runs it, on an engine that
// they have: every step has its right outcome, and nothing is left or touched.
func TestRootlessDemo(t *testing.T) {
	l := openLab(t, rootless)
	must(t, l.wipe("quickstart"))
	p := newProject(t, l, "bystander")
	p.write(t, "main.hcl", p.head()+"network \"inside\" {\n  egress = \"none\"\n}\n")
	p.apply(t)
	runDemo(t, "SPACES_ENDPOINT="+l.endpoint)
	p.settled(t)
	if left, err := l.everything("quickstart"); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v (%v)", left, err)
	}
}

// TestRootfulUsersDemo is `make demo` as root on a machine without an engine: it starts
// one, and stops it again.
func TestRootfulUsersDemo(t *testing.T) {
	out := runDemo(t)
	_, rest, _ := strings.Cut(out, "It answers on unix://")
	socket, _, found := strings.Cut(rest, "\n")
	if _, err := os.Stat(socket); !found || !os.IsNotExist(err) {
		t.Errorf("its engine at %q is still there (%v)", socket, err)
	}
}

func runDemo(t *testing.T, variables ...string) string {
	t.Helper()
	staticProgram(t)
	demo, err := filepath.Abs("../examples/quickstart/demo.sh")
	must(t, err)
	c := exec.Command(demo)
	c.Env = append(os.Environ(), variables...)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Done: each step had the right outcome") {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
