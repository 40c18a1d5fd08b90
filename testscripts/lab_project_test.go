//go:build engine

package testscripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spaces/cmd/spaces/cli"
	"spaces/places"
)

// project is a folder of files with a home and a data root of its own.
type project struct {
	*lab
	name string
	dir  string // the folder of the files
	home string
	data string // the data root
	vars []string
	// itself is what the command line takes its own program to be; empty for this test.
	itself string
}

// newProject lays out a project; everything on the engine whose name begins with its
// own is removed before and after.
func newProject(t testing.TB, l *lab, name string) *project {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := &project{
		lab: l, name: name, dir: filepath.Join(base, "files"),
		home: filepath.Join(base, "home"), data: filepath.Join(base, "home", "data"),
	}
	must(t, os.Mkdir(p.dir, 0o755))
	must(t, os.Mkdir(p.home, 0o755))
	// Spaces that run as another user go through here to what they are granted.
	must(t, os.Chmod(base, 0o755))
	must(t, l.wipe(name))
	t.Cleanup(func() {
		if err := l.wipe(name); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
	})
	return p
}

// head is what the files of every project begin with: an engine, and what has to be
// accepted of it.
func (p *project) head() string {
	accepts := []string{"limits-unenforced"}
	if p.kind == rootful {
		accepts = []string{"endpoint-not-rootless", "network-not-isolated"}
	}
	head := fmt.Sprintf("project = %q\n\ninstall {\n  mode     = \"containerized\"\n  endpoint = %q\n}\n\n", p.name, p.endpoint)
	for _, code := range accepts {
		head += fmt.Sprintf("accept %q {\n  reason = \"a test\"\n}\n\n", code)
	}
	return head
}

// write writes a file of the project.
func (p *project) write(t testing.TB, name, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644))
}

// directory makes a directory in the project's home, for a grant.
func (p *project) directory(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(p.home, name)
	must(t, os.MkdirAll(path, 0o755))
	return path
}

// secret writes a file that only its owner may read.
func (p *project) secret(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(p.home, name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// payload writes the program that the spaces run, for an image of it.
func (p *project) payload(t testing.TB) string {
	t.Helper()
	program, err := payload()
	must(t, err)
	path := filepath.Join(p.home, "payload")
	must(t, os.WriteFile(path, program, 0o755))
	return path
}

// said is what a command printed and ended with.
type said struct {
	line   string
	status int
	out    string
	err    string
}

func (s said) String() string {
	return fmt.Sprintf("$ %s\nstatus %d\n--- stdout\n%s--- stderr\n%s", s.line, s.status, s.out, s.err)
}

// spaces runs the program, in this process.
func (p *project) spaces(args ...string) said {
	var out, err bytes.Buffer
	env := cli.System()
	env.Args = append(slices.Clone(args), "--no-color")
	env.Dir = p.dir
	env.Environ = append([]string{"HOME=" + p.home, "SPACES_DATA_ROOT=" + p.data}, p.vars...)
	env.Stdin = strings.NewReader("")
	env.Stdout.Writer, env.Stderr.Writer = &out, &err
	env.Question = nil
	env.Host = func() (places.Host, error) {
		executable := p.itself
		if executable == "" {
			var err error
			if executable, err = os.Executable(); err != nil {
				return places.Host{}, err
			}
		}
		getenv := func(name string) string { return map[string]string{"HOME": p.home}[name] }
		host, err := places.HostFrom(getenv, os.Getuid(), "", executable)
		if p.itself != "" {
			host.ExecutableFile = p.itself
		}
		return host, err
	}
	status := cli.Main(env)
	if describes(args) {
		if misfit := judge(reportSchema, out.Bytes()); misfit != nil {
			panic(misfit)
		}
	}
	return said{line: "spaces " + strings.Join(args, " "), status: status, out: out.String(), err: err.String()}
}

// want runs the program, which must end with a status, and returns what it printed.
func (p *project) want(t testing.TB, status int, args ...string) said {
	t.Helper()
	s := p.spaces(args...)
	if s.status != status {
		t.Fatalf("status %d, want %d\n%s", s.status, status, s)
	}
	return s
}

func (p *project) apply(t testing.TB) said {
	t.Helper()
	return p.want(t, 0, "apply", "--auto-approve")
}

// settled fails unless there is nothing to do.
func (p *project) settled(t testing.TB) said {
	t.Helper()
	s := p.want(t, 0, "plan", "--detailed-exitcode")
	if !strings.Contains(s.out, "No changes: reality is what the files say.") {
		t.Fatalf("the plan isn't empty\n%s", s)
	}
	return s
}

// drift are the differences that drift reports, one a line: "space.web env["A"] [in
// reality]", "space.web missing [either]". The project's own name is cut out of them.
func (p *project) drift(t testing.TB, flags ...string) []string {
	t.Helper()
	s := p.want(t, 2, append([]string{"drift", "--json"}, flags...)...)
	var report struct {
		Differences []struct{ Subject, Field, What, Side string }
	}
	if err := json.Unmarshal([]byte(s.out), &report); err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	var found []string
	for _, d := range report.Differences {
		what := d.Field
		if what == "" {
			what = d.What
		}
		found = append(found, p.anonymous(fmt.Sprintf("%s %s [%s]", d.Subject, what, d.Side)))
	}
	slices.Sort(found)
	return found
}

// anonymous puts "lab" for the project's name.
func (p *project) anonymous(s string) string {
	return strings.ReplaceAll(s, p.name+"-", "lab-")
}
