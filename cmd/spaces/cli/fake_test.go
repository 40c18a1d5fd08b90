package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"spaces/places"
	"spaces/reconcile"
)

const fakeEndpoint = "unix:///run/user/1000/docker.sock"

// small is a configuration with one space on one network.
const small = `project = "acme"

install {
  mode     = "containerized"
  endpoint = "` + fakeEndpoint + `"
}

image "ref" {
  reference = "tool@sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

network "inside" {
  egress = "none"
}

space "web" {
  image    = image.ref
  networks = [network.inside]
}
`

// fakePlaces is an engine in memory: what is on it is said, and steps are handed to a
// function.
type fakePlaces struct {
	mu      sync.Mutex
	actual  reconcile.Actual
	looks   int
	onLook  func(n int, a *reconcile.Actual) // before each look, counted from 1
	err     error
	step    func(ctx context.Context, s reconcile.Step) error
	steps   []string
	options places.ApplierOptions
	// evidence is what there is to see of every space.
	evidence reconcile.Evidence
	closed   int
	logs     []places.LogLine
	asked    places.LogQuery
	memory   *fakeMemory
}

func (f *fakePlaces) Inspect(context.Context, places.Query) (reconcile.Actual, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if f.onLook != nil {
		f.onLook(f.looks, &f.actual)
	}
	a := f.actual
	a.Engine = f.Features()
	return a, f.err
}

func (f *fakePlaces) Features() reconcile.Engine {
	return reconcile.Engine{Name: "Docker 28.0.0", Endpoint: fakeEndpoint, Rootless: true, CPUs: 2, IsolatedGateway: true}
}

func (f *fakePlaces) Examine(context.Context) (reconcile.EngineFacts, error) {
	return reconcile.EngineFacts{Engine: f.Features(), Known: true, Driver: "overlay2"}, f.err
}

func (f *fakePlaces) Applier(o places.ApplierOptions) reconcile.Applier {
	f.options = o
	return f
}

func (f *fakePlaces) Logs(_ context.Context, q places.LogQuery, hear func(places.LogLine) error) error {
	f.asked = q
	for _, l := range f.logs {
		if err := hear(l); err != nil {
			return err
		}
	}
	return f.err
}

func (f *fakePlaces) Remember(context.Context) (Memory, error) {
	if f.memory == nil {
		f.memory = newFakeMemory(f)
	}
	return f.memory, nil
}

func (f *fakePlaces) Evidence(_ context.Context, proofs []reconcile.Proof, _ places.EvidenceOptions) ([]reconcile.Evidence, error) {
	out := make([]reconcile.Evidence, len(proofs))
	for i := range out {
		out[i] = f.evidence
	}
	return out, nil
}

func (f *fakePlaces) Close() error { f.closed++; return nil }

func (f *fakePlaces) Apply(ctx context.Context, s reconcile.Step) error {
	f.mu.Lock()
	f.steps = append(f.steps, (reconcile.Item{Step: s}).Verb())
	f.mu.Unlock()
	if f.step != nil {
		return f.step(ctx, s)
	}
	return nil
}

// world is a folder, a home and an engine to run commands in.
type world struct {
	t      *testing.T
	engine *fakePlaces
	env    Env
	out    bytes.Buffer
	err    bytes.Buffer
	home   string
}

// newWorld has the files given as name, content, name, content.
func newWorld(t *testing.T, files ...string) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, engine: &fakePlaces{}, home: filepath.Join(base, "home")}
	dir := filepath.Join(base, "work")
	for _, d := range []string{w.home, dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = Env{
		Dir: dir, Environ: []string{"HOME=" + w.home}, Stdin: strings.NewReader(""),
		Host: func() (places.Host, error) {
			getenv := func(name string) string { return map[string]string{"HOME": w.home}[name] }
			return places.HostFrom(getenv, os.Getuid(), "", os.Args[0])
		},
		Open: func(context.Context, string, places.OpenOptions) (Places, error) { return w.engine, nil },
	}
	for i := 0; i < len(files); i += 2 {
		w.write(files[i], files[i+1])
	}
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.env.Dir, name), []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a command line and returns its exit status; out and err are its own alone.
func (w *world) run(args ...string) int {
	w.out.Reset()
	w.err.Reset()
	env := w.env
	env.Args = args
	env.Stdout.Writer, env.Stderr.Writer = &w.out, &w.err
	status := Main(env)
	w.judge(args)
	return status
}

// judge holds a JSON report of the verbs that docs/plan.schema.json describes to it.
func (w *world) judge(args []string) {
	w.t.Helper()
	verb := slices.ContainsFunc(args, func(a string) bool { return a == "plan" || a == "drift" || a == "show" })
	if !verb || !slices.Contains(args, "--json") && !slices.Contains(args, "--format=json") {
		return
	}
	compiled, err := jsonschema.NewCompiler().Compile("../../../docs/plan.schema.json")
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.out.Bytes()))
	if err == nil {
		err = compiled.Validate(v)
	}
	if err != nil {
		w.t.Errorf("spaces %s: %v\n%s", strings.Join(args, " "), err, w.out.String())
	}
}

// want runs a command line that must exit with a status.
func (w *world) want(status int, args ...string) {
	w.t.Helper()
	if got := w.run(args...); got != status {
		w.t.Fatalf("spaces %s: status %d, want %d\n--- stdout\n%s--- stderr\n%s",
			strings.Join(args, " "), got, status, w.out.String(), w.err.String())
	}
}

// says fails unless a text holds each of some others.
func says(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, part := range all {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// answers lets questions be asked, and answers them.
func (w *world) answers(line string) {
	w.env.Question, w.env.Stdin = &w.err, strings.NewReader(line)
}

// running is a container of the project that no file asks for.
func (w *world) running(name string) reconcile.ObservedContainer {
	c := reconcile.ObservedContainer{State: reconcile.StateRunning, ID: "id-" + name, Revision: "1"}
	c.Name = "acme-" + name
	c.Labels = map[string]string{
		reconcile.LabelProject: "acme", reconcile.LabelKind: string(reconcile.KindSpace),
		reconcile.LabelName: name, reconcile.LabelFormat: reconcile.LabelFormatVersion,
		reconcile.LabelStore: filepath.Join(w.dataRoot(), "store"),
	}
	return c
}

func (w *world) dataRoot() string { return filepath.Join(w.home, ".local/state/spaces/acme") }
