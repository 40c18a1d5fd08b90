//go:build engine

package testscripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestRootlessScripts(t *testing.T) { runScripts(t, rootless) }
func TestRootfulScripts(t *testing.T)  { runScripts(t, rootful) }

// strangerImage is what containers are made from that aren't the program's.
const strangerImage = "stranger:1"

// runScripts runs the scripts of all folders that need an engine on one. A script whose
// name ends with "-rootless" or "-rootful" is about that kind of engine alone.
//
// A script's project is called as the script is, and so begins the name of everything
// that the script makes; all of that is removed before and after. Beside each main.hcl
// lies a machine.hcl with what is the machine's: the engine, unless --var endpoint names
// another, what has to be accepted of it, and an image "payload" of a static program that
// waits. A configuration without those is called otherwise.
//
// Commands, beside testscript's own:
//
//	exits STATUS PROGRAM ARGS...   run a program that must end with that status
//	engine METHOD PATH [JSON]      call the engine's API, print what it answers
//	inspect NAME TEMPLATE          print what the engine says of a container
//	reality                        print all that has the project's name
//	stranger NAME [NETWORK]        run a container that isn't the program's
//	serve KIND SOCKET              answer on a socket as something else would
//	proxy SOCKET [FAULT...]        stand between the program and the engine
//	awaits SOCKET CALL             wait until that has seen a call
//	calls SOCKET                   end that, print what it let through that writes
//	sees REGEXP                    wait until more of the file "said" matches
//	saves N TEMPLATE FILE          save a file N times within a second, with NUMBER counting
func runScripts(t *testing.T, kind string) {
	t.Parallel()
	l := openLab(t, kind)
	l.build(t, strangerImage)
	program := written(t, "payload", payload)
	proxy := written(t, "faultproxy", faultproxy)
	variables := map[string]string{
		"ENDPOINT": l.endpoint,
		"SOCKET":   strings.TrimPrefix(l.endpoint, "unix://"),
		"PAYLOAD":  program,
		"STATIC":   staticProgram(t),
		"PODMAN":   need(t, "SPACES_TEST_PODMAN"),
		"ENGINES":  need(t, "SPACES_TEST_ENGINES"),
		"ENGINE":   need(t, "SPACES_TEST_"+strings.ToUpper(kind)+"_DIR"),
	}
	p := params("")
	p.Files = scriptsFor(t, kind)
	p.Setup = func(env *testscript.Env) error {
		if err := setup(env); err != nil {
			return err
		}
		for name, value := range variables {
			env.Setenv(name, value)
		}
		name := strings.TrimSuffix(filepath.Base(env.WorkDir), filepath.Ext(env.WorkDir))
		name = strings.TrimPrefix(name, "script-")
		env.Setenv("P", name)
		env.Values[labKey{}] = l
		env.Values[seenKey{}] = new(int)
		env.Values[faultsKey{}] = &proxies{program: proxy, running: map[string]*faults{}}
		// A socket's path is short, which that of the script's folder needn't be.
		short, err := os.MkdirTemp("/tmp", "sp")
		if err != nil {
			return err
		}
		env.Setenv("SHORT", short)
		env.Defer(func() {
			// A script's own engine goes where the script itself didn't get as far.
			if dir := filepath.Join(short, "e"); fileExists(filepath.Join(dir, "kind")) {
				if out, err := exec.Command(variables["ENGINES"], "stop", dir).CombinedOutput(); err != nil {
					panic(fmt.Sprintf("cannot stop %s: %v\n%s", dir, err, out))
				}
			}
			os.RemoveAll(short)
			if err := l.wipe(name); err != nil {
				panic(fmt.Sprintf("cannot clean up after %s: %v", name, err))
			}
		})
		return errors.Join(l.wipe(name), l.layMachine(env.WorkDir, program))
	}
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits":    exits,
		"engine":   callEngine,
		"inspect":  inspectByTemplate,
		"reality":  printReality,
		"stranger": stranger,
		"serve":    serve,
		"proxy":    startProxy,
		"awaits":   awaitCall,
		"calls":    printCalls,
		"sees":     sees,
		"saves":    saves,
	}
	testscript.Run(t, p)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

type labKey struct{}

func labOf(ts *testscript.TestScript) *lab { return ts.Value(labKey{}).(*lab) }

// scriptsFor are the scripts that run on one kind of engine.
func scriptsFor(t *testing.T, kind string) []string {
	t.Helper()
	other := map[string]string{rootless: "-" + rootful, rootful: "-" + rootless}[kind]
	var scripts, names []string
	for _, folder := range withEngine {
		found, err := filepath.Glob(folder + "/*.txtar")
		must(t, err)
		for _, f := range found {
			name := strings.TrimSuffix(filepath.Base(f), ".txtar")
			if !strings.HasPrefix(name, folder+"-") {
				t.Errorf("%s isn't called area-case", f)
			}
			for _, n := range names {
				if strings.HasPrefix(name, n) || strings.HasPrefix(n, name) {
					t.Errorf("one of %s and %s would remove what the other one made", name, n)
				}
			}
			names = append(names, name)
			if !strings.HasSuffix(name, other) {
				scripts = append(scripts, f)
			}
		}
	}
	return scripts
}

// written is the path of a program that the tests build.
func written(t testing.TB, name string, program func() ([]byte, error)) string {
	t.Helper()
	content, err := program()
	must(t, err)
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, content, 0o755))
	return path
}

// staticProgram is where the program is as `make build` makes it: a race-built test
// binary can't be an image.
func staticProgram(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../bin/spaces")
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	return path
}

// accepted are what has to be accepted of the kinds of engine that tests run on.
var accepted = map[string][]string{
	rootless: {"limits-unenforced"},
	rootful:  {"endpoint-not-rootless", "network-not-isolated"},
}

// layMachine writes a machine.hcl beside each main.hcl that has none.
func (l *lab) layMachine(dir, program string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "variable \"endpoint\" {\n  type    = string\n  default = %q\n}\n\n", l.endpoint)
	b.WriteString("install {\n  mode     = \"containerized\"\n  endpoint = var.endpoint\n}\n\n")
	for _, code := range accepted[l.kind] {
		fmt.Fprintf(&b, "accept %q {\n  reason = \"an engine of the tests\"\n}\n\n", code)
	}
	fmt.Fprintf(&b, "image \"payload\" {\n  binary = %q\n}\n", program)
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "main.hcl" {
			return err
		}
		machine := filepath.Join(filepath.Dir(path), "machine.hcl")
		if _, err := os.Stat(machine); err == nil {
			return nil
		}
		return os.WriteFile(machine, []byte(b.String()), 0o644)
	})
}

// call is one request to the engine, as plain as it gets.
func (l *lab) call(method, path, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequest(method, "http://engine/v1.41"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := l.docker.HTTPClient().Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func callEngine(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: engine METHOD PATH [JSON]")
	}
	body := strings.Join(args[2:], "")
	status, answer, err := labOf(ts).call(args[0], args[1], body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", bytes.TrimSpace(answer))
	if failed := status >= http.StatusBadRequest; failed != neg {
		ts.Fatalf("status %d: %s", status, answer)
	}
}

func inspectByTemplate(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: inspect NAME TEMPLATE")
	}
	status, answer, err := labOf(ts).call(http.MethodGet, "/containers/"+args[0]+"/json", "")
	ts.Check(err)
	if failed := status != http.StatusOK; failed != neg {
		ts.Fatalf("status %d: %s", status, answer)
	}
	var what any
	ts.Check(json.Unmarshal(answer, &what))
	form, err := template.New("inspect").Funcs(template.FuncMap{"json": toJSON}).Parse(args[1])
	ts.Check(err)
	ts.Check(form.Execute(ts.Stdout(), what))
	fmt.Fprintln(ts.Stdout())
}

func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// printReality prints a line for each container, network and volume whose name begins with
// the project's, or "nothing".
func printReality(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: reality")
	}
	lines, err := labOf(ts).everything(ts.Name())
	ts.Check(err)
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	for _, line := range lines {
		fmt.Fprintln(ts.Stdout(), line)
	}
}

func (l *lab) everything(prefix string) ([]string, error) {
	ctx, cancel := brief()
	defer cancel()
	var lines []string
	containers, err := l.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		name := strings.TrimPrefix(c.Names[0], "/")
		if strings.HasPrefix(name, prefix) {
			on := strings.Join(sortedKeys(c.NetworkSettings.Networks), ",")
			lines = append(lines, fmt.Sprintf("container %s %s on %s", name, c.State, on))
		}
	}
	networks, err := l.docker.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		if strings.HasPrefix(n.Name, prefix) {
			lines = append(lines, "network "+n.Name)
		}
	}
	volumes, err := l.docker.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Volumes {
		if strings.HasPrefix(v.Name, prefix) {
			lines = append(lines, "volume "+v.Name)
		}
	}
	return sorted(lines), nil
}

// stranger runs a container that isn't the program's.
func stranger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: stranger NAME [NETWORK]")
	}
	on := "none"
	if len(args) == 2 {
		on = args[1]
	}
	ts.Check(labOf(ts).stranger(args[0], on))
}

func (l *lab) stranger(name, on string) error {
	ctx, cancel := brief()
	defer cancel()
	made, err := l.docker.ContainerCreate(ctx,
		&container.Config{Image: strangerImage, Cmd: []string{"/payload", "wait"}},
		&container.HostConfig{NetworkMode: container.NetworkMode(on)}, nil, nil, name)
	if err != nil {
		return err
	}
	return l.docker.ContainerStart(ctx, made.ID, container.StartOptions{})
}
