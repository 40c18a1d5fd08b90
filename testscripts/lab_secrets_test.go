//go:build engine

package testscripts

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

func TestRootlessSecretsStaySecret(t *testing.T) { testSecrets(t, openLab(t, rootless)) }
func TestRootfulSecretsStaySecret(t *testing.T)  { testSecrets(t, openLab(t, rootful)) }

// watcher keeps all that a project's commands print, to look for what must not be there.
type watcher struct {
	*project
	heard []said
}

func (w *watcher) run(t testing.TB, status int, args ...string) {
	t.Helper()
	w.heard = append(w.heard, w.want(t, status, args...))
}

// everything runs all commands that report, with something to do.
func (w *watcher) everything(t testing.TB) {
	t.Helper()
	w.run(t, 2, "plan", "--detailed-exitcode", "--out", "plan.json")
	for _, args := range [][]string{
		{"plan", "--json"},
		{"plan", "--offline"},
		{"plan", "--offline", "--json"},
		{"show", "plan.json"},
		{"show", "plan.json", "--json"},
		{"validate"},
		{"validate", "--json"},
		{"status"},
		{"status", "--json"},
	} {
		w.run(t, 0, args...)
	}
	for _, args := range [][]string{{"drift"}, {"drift", "--json"}, {"drift", "--only-reality"}, {"drift", "--only-reality", "--json"}} {
		w.heard = append(w.heard, w.spaces(args...))
	}
}

// testSecrets puts values that must never be told where a project has them, changes
// them in the files and behind the program's back, and looks for them in all that is
// printed, kept or labelled.
func testSecrets(t *testing.T, l *lab) {
	w := &watcher{project: newProject(t, l, "secrets")}
	const (
		content, content2   = "content-of-the-secret-8f1c", "content-of-the-secret-b20e"
		password, password2 = "value-of-the-variable-77aa", "value-of-the-variable-03fd"
		planted, planted2   = "planted-by-somebody-d9c4", "planted-over-ours-61be"
	)
	secret := w.secret(t, "token", content)
	w.vars = []string{"SPACES_VAR_password=" + password}
	w.write(t, "main.hcl", w.head()+fmt.Sprintf(`
variable "password" {
  type      = string
  sensitive = true
}

image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

grant "token" {
  secret = %q
  target = "/run/token"
}

space "web" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
  grants   = [grant.token]
  env = {
    PASSWORD = var.password
    PLAIN    = "plain"
  }

  loosen "secret_env" {
    value  = ["PASSWORD"]
    reason = "it reads nothing else"
  }
}
`, w.payload(t), secret))
	web := w.names().of("web")

	w.everything(t)
	w.run(t, 0, "apply", "plan.json")
	w.settled(t)
	first := w.lab.inspect(t, web)

	// Other values, in the files.
	w.secret(t, "token", content2)
	w.vars = []string{"SPACES_VAR_password=" + password2}
	w.everything(t)
	w.run(t, 0, "apply", "--auto-approve", "--json")
	w.settled(t)
	second := w.lab.inspect(t, web)
	if first.ID == second.ID {
		t.Errorf("another secret and another value changed nothing")
	}

	// Other values, behind its back: one of a name that nobody asked for, one over ours.
	w.recreate(t, "web", true, func(_ names, s *spec) {
		s.Config.Env = append(s.Config.Env, "PLANTED="+planted)
		setEnv(s, "PASSWORD="+planted2)
	})
	w.everything(t)
	w.run(t, 0, "apply", "--auto-approve")
	w.settled(t)
	third := w.lab.inspect(t, web)
	w.run(t, 0, "destroy", "--auto-approve")

	for _, value := range []string{content, content2, password, password2, planted, planted2} {
		for _, s := range w.heard {
			if strings.Contains(s.out+s.err, value) {
				t.Errorf("%s is told by\n%s", value, s)
			}
		}
		for _, in := range []container.InspectResponse{first, second, third} {
			for name, label := range in.Config.Labels {
				if strings.Contains(label, value) {
					t.Errorf("%s is in label %s", value, name)
				}
			}
		}
		w.searchFiles(t, value, secret)
	}
	masked := 0
	for _, s := range w.heard {
		masked += strings.Count(s.out, "(sensitive)")
	}
	if masked == 0 {
		t.Error("no value was ever shown as masked: the test looked at nothing")
	}
	if _, ok := first.Config.Labels[reconcile.LabelApplied]; !ok {
		t.Error("no label says what was applied: the test looked at nothing")
	}
}

// searchFiles looks for a value in every file of the project, the one that holds it
// apart.
func (p *project) searchFiles(t testing.TB, value, except string) {
	t.Helper()
	files := 0
	must(t, filepath.WalkDir(filepath.Dir(p.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == except {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), value) {
			t.Errorf("%s is in %s", value, path)
		}
		return err
	}))
	if files < 4 { // the files, the plan, the key, the payload
		t.Errorf("only %d files were looked at", files)
	}
}

// A variable that somebody adds is a difference like any other; only its value is
// nobody's business.
func TestRootlessPlantedVariableIsNamed(t *testing.T) {
	p := newProject(t, openLab(t, rootless), "planted")
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

space "web" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
}
`, p.payload(t)))
	p.apply(t)
	p.recreate(t, "web", true, func(_ names, s *spec) { s.Config.Env = append(s.Config.Env, "PLANTED=value-c0ffee") })
	s := p.want(t, 2, "drift")
	for _, part := range []string{`env["PLANTED"]`, "(sensitive)", "in reality"} {
		if !strings.Contains(s.out, part) {
			t.Errorf("%q is missing in\n%s", part, s)
		}
	}
}
