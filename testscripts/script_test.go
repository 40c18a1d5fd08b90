// Package testscripts runs the program as a user does, by scripts. Each folder of
// scripts is one area; each script is called area-case and shows one thing that holds.
//
// Folders that need an engine run only with the build tag engine, as the user whose
// engine it is.
package testscripts

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// withoutEngine are the folders whose scripts need no engine, withEngine those that run
// on one, with the build tag engine.
var (
	withoutEngine = []string{"approve", "assert", "ci", "command", "fmt", "graph", "init", "plan", "validate"}
	withEngine    = []string{"apply", "destroy", "doctor", "drift", "engine", "fails", "locks", "logs", "moved", "others", "part", "protect", "refusals", "saved", "status", "verify", "watch"}
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"spaces": program,
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
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"engine": startNothing, "exits": exits},
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	}
}

var update = flag.Bool("update", false, "write what commands print into the scripts that compare it")

// exits runs a program that must end with a status: exits STATUS PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGS...")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		status = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

// setup gives a script a home of its own, outside the folder that it works in.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	schema, err := filepath.Abs(reportSchema)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_RUNTIME_DIR": filepath.Join(home, "run"), "SPACES_TEST_SCHEMA": schema,
		"GUIDE": filepath.Join(home, "guide"), // the steps of docs/ci.md
	} {
		env.Setenv(name, value)
	}
	if err := os.MkdirAll(filepath.Join(home, "run"), 0o700); err != nil {
		return err
	}
	return layGuide(filepath.Join(home, "guide"))
}
