package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"spaces/places"
	"spaces/reconcile"
)

// fakeMemory is the memory of an engine that is in memory already.
type fakeMemory struct {
	engine  *fakePlaces
	changed chan struct{}
	lost    chan struct{}
	wrong   []string
}

func newFakeMemory(e *fakePlaces) *fakeMemory {
	return &fakeMemory{engine: e, changed: make(chan struct{}, 1), lost: make(chan struct{})}
}

func (m *fakeMemory) Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error) {
	return m.engine.Inspect(ctx, q)
}
func (m *fakeMemory) Changed() <-chan struct{} { return m.changed }
func (m *fakeMemory) Lost() <-chan struct{}    { return m.lost }
func (m *fakeMemory) Err() error               { return io.EOF }
func (m *fakeMemory) Forget()                  {}
func (m *fakeMemory) Close()                   {}

func (m *fakeMemory) Audit(context.Context, places.Query) ([]string, error) {
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	wrong := m.wrong
	m.wrong = nil
	return wrong, nil
}

// heard is what a command has printed so far.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// watching is a watch that runs.
type watching struct {
	*world
	t       *testing.T
	said    heard
	typed   *io.PipeWriter
	signals chan os.Signal
	ended   chan int
	from    int // how far what was said has been looked at
}

// watch starts one. With terminal somebody can answer.
func (w *world) watch(terminal bool, args ...string) *watching {
	w.t.Helper()
	out := &watching{world: w, t: w.t, signals: make(chan os.Signal, 2), ended: make(chan int, 1)}
	env := w.env
	env.Args = append([]string{"watch"}, args...)
	env.Signals = out.signals
	env.Stdout.Writer, env.Stderr.Writer = &out.said, &out.said
	if terminal {
		r, typed := io.Pipe()
		env.Stdin, env.Question, out.typed = r, &out.said, typed
	}
	go func() { out.ended <- Main(env) }()
	w.t.Cleanup(func() {
		select {
		case out.signals <- os.Interrupt:
		default:
		}
	})
	return out
}

// sees waits until something more is said.
func (w *watching) sees(text string) {
	w.t.Helper()
	for range 3000 {
		said := w.said.String()
		if at := strings.Index(said[w.from:], text); at >= 0 {
			w.from += at + len(text)
			return
		}
		select {
		case status := <-w.ended:
			w.t.Fatalf("ended with %d; %q isn't in:\n%s", status, text, said[w.from:])
		case <-time.After(10 * time.Millisecond):
		}
	}
	w.t.Fatalf("%q isn't in:\n%s", text, w.said.String()[w.from:])
}

func (w *watching) types(line string) {
	w.t.Helper()
	if _, err := w.typed.Write([]byte(line + "\n")); err != nil {
		w.t.Fatal(err)
	}
}

// ends interrupts it and sees with what status it ends.
func (w *watching) ends(want int) {
	w.t.Helper()
	w.signals <- syscall.SIGTERM
	select {
	case got := <-w.ended:
		if got != want {
			w.t.Errorf("ended with %d, want %d:\n%s", got, want, w.said.String())
		}
	case <-time.After(30 * time.Second):
		w.t.Fatal("didn't end")
	}
}

// took are the steps that the engine was given.
func (f *fakePlaces) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.steps)
}

func (f *fakePlaces) changes(how func(*reconcile.Actual)) {
	f.mu.Lock()
	how(&f.actual)
	f.mu.Unlock()
	select {
	case f.memory.changed <- struct{}{}:
	default:
	}
}

// pulled has the image there, so that nothing is pulled.
func (w *world) pulled() *world {
	w.engine.actual.Images = map[string]reconcile.ImageFacts{
		"tool@sha256:0000000000000000000000000000000000000000000000000000000000000000": {ID: "sha256:1"},
	}
	return w
}

func TestWatchAsksOnATerminal(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled().watch(true)
	w.sees("watching ")
	w.sees("+ create space.web")
	w.sees("asking")
	w.sees("create space.web: it widens access")
	w.sees("Apply these steps? Only 'yes' goes ahead:")

	// A newer save replaces the question, and an answer to the older is none.
	w.write("main.hcl", strings.ReplaceAll(small, `"web"`, `"other"`))
	w.sees("files changed")
	w.sees("+ create space.other")
	w.sees("Apply these steps?")
	w.types("no")
	w.sees("not applied: only 'yes' goes ahead")
	if steps := w.engine.took(); len(steps) > 0 {
		t.Fatalf("did %v unasked", steps)
	}
	// What was turned down isn't asked again while it stays the same.
	w.write("main.hcl", "# nothing more\n"+strings.ReplaceAll(small, `"web"`, `"other"`))
	w.sees("the same as before")
	w.types("yes")
	w.write("main.hcl", small)
	w.sees("+ create space.web")
	w.sees("Apply these steps?")
	w.types("yes")
	w.sees("✓ create space.web")
	w.sees("applied 2 steps")
	w.ends(0)
	if steps := w.engine.took(); !slices.Equal(steps, []string{"create_network", "create_space"}) {
		t.Errorf("did %v", steps)
	}
}

func TestWatchReportsAndWaitsOnAPipe(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled().watch(false)
	w.sees("+ create space.web")
	w.sees("waiting: run `spaces apply` to go ahead")
	w.engine.changes(func(*reconcile.Actual) {})
	w.engine.changes(func(a *reconcile.Actual) {
		a.Taken.Containers = map[string]string{"acme-web": "a container nobody labelled"}
	})
	w.sees("name-taken")
	w.sees("refused: a person must act first")
	w.engine.changes(func(a *reconcile.Actual) { a.Taken = reconcile.Taken{} })
	w.sees("waiting: run")
	w.ends(0)
	says(t, w.said.String(), "stopped")
	if steps := w.engine.took(); len(steps) > 0 {
		t.Errorf("did %v", steps)
	}
	if got := strings.Count(w.said.String(), "+ create space.web"); got > 3 {
		t.Errorf("the same plan was printed again and again:\n%s", w.said.String())
	}
}

// A refusal may be all that there is of a plan.
func TestWatchTellsOfARefusalAlone(t *testing.T) {
	head, _, _ := strings.Cut(small, "network \"inside\"")
	w := newWorld(t, "main.hcl", head+"space \"web\" {\n  image = image.ref\n}\n").pulled()
	w.engine.actual.Taken.Containers = map[string]string{"acme-web": "a container nobody labelled"}
	running := w.watch(true)
	running.sees("name-taken")
	running.sees("refused: a person must act first")
	running.engine.changes(func(a *reconcile.Actual) { a.Taken = reconcile.Taken{} })
	running.sees("✓ create space.web")
	running.ends(0)
}

// Protection alone makes no step, and is recorded all the same.
func TestWatchRecordsProtection(t *testing.T) {
	project, _, _ := strings.Cut(small, "image \"ref\"")
	data := "grant \"data\" {\n  volume  = \"data\"\n  target  = \"/data\"\n%s}\n"
	w := newWorld(t, "main.hcl", project+fmt.Sprintf(data, ""))
	labels := w.running("data").Labels
	labels[reconcile.LabelKind] = string(reconcile.KindVolume)
	w.engine.actual.Volumes = []reconcile.ObservedVolume{{Volume: reconcile.Volume{Name: "acme-data", Driver: "local", Labels: labels}}}
	root := places.DataRoot(w.dataRoot())
	protected := func() string {
		t.Helper()
		guards, err := root.Guards()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(guards)
	}
	only := w.watch(false, "--plan-only")
	only.sees("nothing to do")
	w.write("main.hcl", project+fmt.Sprintf(data, "  protect = true\n"))
	only.sees("files changed: planned")
	only.sees("nothing to do")
	if got := protected(); strings.Contains(got, "data") {
		t.Errorf("--plan-only recorded %s", got)
	}
	only.ends(0)
	running := w.watch(false)
	running.sees("nothing to do")
	if got := protected(); !strings.Contains(got, "data") {
		t.Errorf("protected are %s", got)
	}
	running.ends(0)
}

// What was let through once comes back without a question. This engine takes every step
// and does none, so that all of it is missing at once.
func TestWatchBringsBackUnasked(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled().watch(true)
	w.sees("Apply these steps?")
	w.types("yes")
	w.sees("applied 2 steps")
	w.sees("applying 2 steps")
	w.sees("✓ create space.web")
	// More than it had is asked.
	w.write("main.hcl", small+"\nnetwork \"more\" {\n  egress = \"none\"\n}\n\nspace \"new\" {\n  image    = image.ref\n  networks = [network.more]\n}\n")
	w.sees("create space.new: it widens access")
	w.sees("Apply these steps?")
	w.ends(0)
}

// Without an engine nobody can say yes to anything.
func TestWatchLosesTheEngine(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	running := w.watch(true)
	running.sees("Apply these steps?")
	first := w.engine.memory
	w.engine.mu.Lock()
	w.engine.memory = nil
	w.engine.mu.Unlock()
	close(first.lost)
	running.sees("the engine is gone (EOF); looking for it")
	running.sees("the engine is back; everything is read again")
	running.sees("Apply these steps?")
	running.ends(0)
}

// What ends the input is no yes: from then on it is as without a terminal.
func TestWatchWithoutAnybodyLeft(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled().watch(true)
	w.sees("Apply these steps?")
	if err := w.typed.Close(); err != nil {
		t.Fatal(err)
	}
	w.sees("waiting: run `spaces apply`")
	w.ends(0)
}

// What fails isn't tried again at once, and again, and again.
func TestWatchBacksOff(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	w.engine.step = func(context.Context, reconcile.Step) error {
		// Each attempt makes noise on the engine.
		select {
		case w.engine.memory.changed <- struct{}{}:
		default:
		}
		return errors.New("the engine doesn't want to")
	}
	began := time.Now()
	running := w.watch(false, "--auto-approve")
	for range 3 {
		running.sees("✗ create network.inside: the engine doesn't want to")
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("tried three times in %s: the pauses are 1s and 2s", took)
	}
	running.ends(0)
	if steps := w.engine.took(); len(steps) != 3 {
		t.Errorf("tried %d times", len(steps))
	}
}

// One that fails keeps no other from its turn.
func TestWatchStarvesNobody(t *testing.T) {
	head, _, _ := strings.Cut(small, "network \"inside\"")
	files := head
	for _, name := range []string{"bad", "good1", "good2", "good3", "good4"} {
		files += "space \"" + name + "\" {\n  image = image.ref\n}\n"
	}
	w := newWorld(t, "main.hcl", files).pulled()
	w.engine.step = func(_ context.Context, s reconcile.Step) error {
		if s.(reconcile.CreateSpace).Container.Name == "acme-bad" {
			return errors.New("the engine doesn't want to")
		}
		return nil
	}
	// One at a time, in the order of the plan: the bad one is the first.
	running := w.watch(false, "--parallelism", "1")
	running.sees("✗ create space.bad")
	for _, name := range []string{"good1", "good2", "good3", "good4"} {
		running.sees("✓ create space." + name)
	}
	running.ends(0)
}

func TestWatchTellsOfADefect(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	w.engine.memory = newFakeMemory(w.engine)
	w.engine.memory.wrong = []string{"container acme-web: remembered, and not there"}
	running := w.watch(false, "--audit", "300ms")
	running.sees("defect: what was remembered of the engine isn't so")
	running.sees("container acme-web: remembered, and not there")
	running.ends(0)
}

func TestWatchTellsPrograms(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	running := w.watch(false, "--json", "--auto-approve")
	running.sees(`"kind":"applied"`)
	w.write("main.hcl", "project =\n")
	running.sees(`"kind":"problem"`)
	running.ends(0)
	running.sees(`"kind":"stopped"`)
	var kinds []string
	for line := range strings.Lines(running.said.String()) {
		var e watchEvent
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil || e.FormatVersion != formatVersion || e.Time.IsZero() {
			t.Fatalf("%v in %s", err, line)
		}
		if !slices.Contains(kinds, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	if want := []string{"watching", "planned", "step", "applied", "problem", "stopped"}; !slices.Equal(kinds, want) {
		t.Errorf("told %v, want %v", kinds, want)
	}
}

// One applies at a time, and a plan that moved meanwhile is made again.
func TestWatchWaitsItsTurn(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	root := places.DataRoot(w.dataRoot())
	if err := os.MkdirAll(filepath.Dir(root.ApplyLock()), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := places.Acquire(t.Context(), root.ApplyLock(), places.Holder{PID: os.Getpid(), Verb: "apply"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	running := w.watch(false, "--auto-approve")
	running.sees("apply.lock: spaces apply (pid ")
	w.engine.mu.Lock()
	last := w.engine.looks
	w.engine.onLook = func(n int, a *reconcile.Actual) {
		a.Networks = nil
		if n == last+2 { // under the lock
			a.Networks = []reconcile.ObservedNetwork{{Network: reconcile.Network{
				Name: "acme-inside", Driver: "bridge", Labels: w.running("x").Labels,
			}}}
		}
	}
	w.engine.mu.Unlock()
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	running.sees("plan-stale")
	running.sees("✓ create space.web")
	running.ends(0)
	if said := running.said.String(); strings.Count(said, "apply.lock") != 1 {
		t.Errorf("the holder was named again and again:\n%s", said)
	}
}

// While another holds the lock, the plan that waits for it is printed once, and nothing
// is said to be applied.
func TestWatchSaysOnceWhatWaitsForTheLock(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	root := places.DataRoot(w.dataRoot())
	if err := os.MkdirAll(filepath.Dir(root.ApplyLock()), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := places.Acquire(t.Context(), root.ApplyLock(), places.Holder{PID: os.Getpid(), Verb: "verify"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	third := make(chan bool)
	w.engine.onLook = func(n int, _ *reconcile.Actual) {
		if n == 3 {
			close(third)
		}
	}
	running := w.watch(false, "--auto-approve")
	running.sees("apply.lock: spaces verify (pid ")
	<-third
	if said := running.said.String(); strings.Count(said, "+ create space.web") != 1 || strings.Contains(said, "applying") {
		t.Errorf("said, while it waited:\n%s", said)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	running.sees("applying 2 steps")
	running.sees("✓ create space.web")
	running.ends(0)
}

// The step that runs ends by itself, and no other starts.
func TestWatchInterruptedWhileItApplies(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	begun, release := make(chan bool), make(chan bool)
	w.engine.step = func(ctx context.Context, _ reconcile.Step) error {
		close(begun)
		<-release
		return ctx.Err()
	}
	running := w.watch(false, "--auto-approve")
	<-begun
	running.signals <- os.Interrupt
	select {
	case status := <-running.ended:
		t.Fatalf("ended with %d while a step ran", status)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if status := <-running.ended; status != 1 {
		t.Errorf("ended with %d", status)
	}
	says(t, running.said.String(), "✓ create network.inside", "Interrupted: 1 done, 0 failed, 1 skipped.", "stopped")
}

func TestWatchUsage(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(3, "watch", "--audit", "0s")
	w.want(3, "watch", "--plan-only", "--auto-approve")
	w.want(3, "watch", "--parallelism", "0")
	w.write("main.hcl", `project = "acme"`)
	w.want(3, "watch")
	says(t, w.err.String(), "not-yet-supported")
	w.write("main.hcl", "project =\n")
	w.want(3, "watch")
	if _, err := os.Stat(filepath.Join(w.dataRoot(), "state")); err == nil {
		t.Error("made the data root for nothing")
	}
}

func TestOneWatchAProject(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	running := w.watch(false)
	running.sees("watching")
	w.want(1, "watch")
	says(t, w.err.String(), "watch.lock: spaces watch (pid ")
	running.ends(0)
}

// An engine that comes and goes is looked for later and later.
func TestFlapping(t *testing.T) {
	c := newClock(time.Hour)
	defer c.stop()
	now := time.Now()
	for _, want := range []time.Duration{soonest, 2 * soonest, 4 * soonest} {
		c.had = now
		now = now.Add(time.Second)
		c.lost(now)
		if c.delay != want {
			t.Errorf("waits about %s, want %s", c.delay, want)
		}
	}
	c.had = now
	c.lost(now.Add(recovery))
	if c.delay != soonest {
		t.Errorf("waits about %s after it was there for long", c.delay)
	}
}

// The loop leaves it to the clock how soon: four losses take as long as their pauses do
// at least.
func TestWatchLetsAnEngineFlap(t *testing.T) {
	w := newWorld(t, "main.hcl", small).pulled()
	began := time.Now()
	running := w.watch(false)
	running.sees("waiting: run")
	for range 4 {
		w.engine.mu.Lock()
		m := w.engine.memory
		w.engine.memory = nil
		w.engine.mu.Unlock()
		close(m.lost)
		running.sees("the engine is back")
		running.sees("waiting: run")
	}
	if took, least := time.Since(began), 15*soonest/2; took < least {
		t.Errorf("looked for it four times in %s; it is %s at least", took, least)
	}
	running.ends(0)
}

func TestNotYet(t *testing.T) {
	var c clock
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := c.notYet(); got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	}
	for range 20 {
		c.notYet()
	}
	if got := c.notYet(); got != longestPause {
		t.Errorf("waits %s at most, want %s", got, longestPause)
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	if wait := p.wait(now, "a"); wait > 0 {
		t.Errorf("waits %s before the first", wait)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		p.tried(now, "a")
		if got := p.wait(now, "a", "b"); got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
		now = now.Add(want)
	}
	for range 20 {
		p.tried(now, "a")
	}
	if got := p.wait(now, "a"); got != longestPause {
		t.Errorf("waits %s at most, want %s", got, longestPause)
	}
	p.renew()
	if got := p.wait(now, "a"); got != firstPause {
		t.Errorf("waits %s after the files changed", got)
	}
	now = now.Add(2 * recovery)
	p.tried(now, "a")
	if got := p.wait(now, "a"); got != firstPause {
		t.Errorf("waits %s after it held for long", got)
	}
}
