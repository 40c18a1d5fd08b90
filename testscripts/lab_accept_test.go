//go:build engine

package testscripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// acceptance is what drift --accept prints as JSON.
type acceptance struct {
	Edits []struct{ File, Diff string }
	Left  []struct{ Subject, Field, Why, Instead string }
}

// left names what an edit leaves, as drift names it.
func (p *project) left(a acceptance) []string {
	names := []string{}
	for _, l := range a.Left {
		names = append(names, p.anonymous(strings.TrimSuffix(l.Subject+" "+l.Field, " ")))
	}
	slices.Sort(names)
	return names
}

// acceptable are the rows that an edit of the files accepts whole. Of all others the edit
// names what it leaves.
var acceptable = []string{
	"entrypoint",
	"command",
	"no command",
	"variable changed",
	"variable emptied",
	"variable removed",
	"user",
	"working directory",
	"stop signal",
	"stop timeout",
	"no stop timeout",
	"health check's command",
	"health check's times",
	"health check disabled",
	"health check gone",
	"health check added",
	"capability added",
	"capability not added",
	"no-new-privileges gone",
	"no-new-privileges false",
	"seccomp unconfined",
	"root file system writable",
	"no init",
	"init unset",
	"device",
	"group",
	"sysctl",
	"tmpfs options",
	"tmpfs size",
	"tmpfs removed",
	"mount added",
	"bind added",
	"volume bound",
	"mount removed",
	"mount moved",
	"mount of another source",
	"mount made writable",
	"mount made read-only",
	"volume read-only",
	"port removed",
	"port on all addresses",
	"alias gone",
	"alias added",
	"another address",
	"no address asked",
	"off a network",
	"network's range",
	"network's subnet",
	"restart policy with retries",
	"no restart policy",
	"memory",
	"pids",
	"cpus",
	"removed",
}

// accept goes the other way out of drift than repairing it: the edit that is offered,
// made, leaves just the differences that it says it does. Then the files are as they were.
func (p *project) accept(t testing.TB, r row) {
	t.Helper()
	before := p.files(t)
	s := p.want(t, 2, "drift", "--accept", "--json")
	if !slices.Equal(before, p.files(t)) {
		t.Fatalf("it wrote files\n%s", s)
	}
	var a acceptance
	must(t, json.Unmarshal([]byte(s.out), &a))
	for _, l := range a.Left {
		if l.Why == "" || l.Instead == "" {
			t.Errorf("nothing says what to do about %s %s", l.Subject, l.Field)
		}
	}
	if strings.Contains(s.out, "a secret of lane") {
		t.Errorf("it shows a secret\n%s", s)
	}
	p.edit(t, a)
	defer p.restore(t, before)
	if r.restless {
		return // what is left is another thing by now
	}
	left := p.left(a)
	if whole := slices.Contains(acceptable, r.name); whole != (len(left) == 0) {
		t.Errorf("the edit leaves %q, and whether it leaves anything should be %t\n%v", left, !whole, a)
	}
	status := 2
	if len(left) == 0 {
		status = 0
	}
	s = p.want(t, status, "drift", "--json")
	var report struct {
		Differences []struct{ Subject, Field string }
	}
	must(t, json.Unmarshal([]byte(s.out), &report))
	found := []string{}
	for _, d := range report.Differences {
		found = append(found, p.anonymous(strings.TrimSuffix(d.Subject+" "+d.Field, " ")))
	}
	slices.Sort(found)
	if !slices.Equal(found, left) {
		t.Errorf("with the edit made, drift reports\n  %s\nand the edit left\n  %s\n%v", strings.Join(found, "\n  "), strings.Join(left, "\n  "), a)
	}
}

// edit makes the edits with git, as a person would.
func (p *project) edit(t testing.TB, a acceptance) {
	t.Helper()
	for _, e := range a.Edits {
		apply := exec.Command("git", "apply", "--unidiff-zero", "-")
		apply.Dir, apply.Stdin = p.dir, strings.NewReader(e.Diff)
		apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(p.dir))
		if out, err := apply.CombinedOutput(); err != nil {
			t.Fatalf("the edit of %s can't be made: %v\n%s\n%s", e.File, err, out, e.Diff)
		}
	}
}

// files are the project's, name and content in turn.
func (p *project) files(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(p.dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		must(t, err)
		all = append(all, e.Name(), string(b))
	}
	return all
}

func (p *project) restore(t testing.TB, files []string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		p.write(t, files[i], files[i+1])
	}
}
