// Package testscripts runs the program as a user does, by scripts. Each folder of
// scripts is one area; each script is called area-case and shows one thing that holds.
//
// Folders that need an engine run only with the build tag engine, as the user whose
// engine it is.
package testscripts

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"spaces/cmd/spaces/cli"
)

// withoutEngine are the folders whose scripts need no engine, withEngine those that run
// on one, with the build tag engine.
var (
	withoutEngine = []string{"approve", "command", "fmt", "init", "plan", "validate"}
	withEngine    = []string{"apply", "destroy", "drift", "engine", "fails", "locks", "others", "refusals", "saved", "status", "verify"}
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"spaces": func() { os.Exit(cli.Main(cli.System())) },
		bareName: bare,
	})
}

func TestScripts(t *testing.T) {
	for _, folder := range withoutEngine {
		t.Run(folder, func(t *testing.T) { testscript.Run(t, params(folder)) })
	}
}

// Every folder with scripts is one of those above or one of those that need an engine.
func TestEveryFolderIsKnown(t *testing.T) {
	for _, folder := range folders(t) {
		if !slices.Contains(withoutEngine, folder) && !slices.Contains(withEngine, folder) {
			t.Errorf("no test runs the scripts of %s", folder)
		}
	}
}

// folders are those that hold scripts.
func folders(t *testing.T) []string {
	t.Helper()
	scripts, err := filepath.Glob("*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range scripts {
		out = append(out, filepath.Dir(s))
	}
	return slices.Compact(out)
}

// params are how every folder's scripts run.
func params(folder string) testscript.Params {
	return testscript.Params{
		Dir:                 folder,
		Setup:               setup,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"engine": startNothing},
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	}
}

var update = flag.Bool("update", false, "write what commands print into the scripts that compare it")

// setup gives a script a home of its own, outside the folder that it works in.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	for name, value := range map[string]string{"HOME": home, "XDG_RUNTIME_DIR": filepath.Join(home, "run")} {
		env.Setenv(name, value)
	}
	return os.MkdirAll(filepath.Join(home, "run"), 0o700)
}
