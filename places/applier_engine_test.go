//go:build engine

package places

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"spaces/reconcile"
	"spaces/schema"
)

func TestRootlessApplier(t *testing.T) { testApplier(t, rootlessLab) }
func TestRootfulApplier(t *testing.T)  { testApplier(t, rootfulLab) }

func testApplier(t *testing.T, open func(testing.TB) *lab) {
	w := newWorkbench(t, open(t))
	for name, test := range map[string]func(*testing.T, *workbench){
		"images":      testImages,
		"networks":    testNetworks,
		"volumes":     testVolumes,
		"directories": testDirectories,
		"create":      testCreate,
		"references":  testReferences,
		"in place":    testInPlace,
		"removal":     testRemoval,
		"moved":       testMoved,
		"replace":     testReplace,
		"rollback":    testRollback,
		"faults":      testFaults,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// workbench is a lab with an image to run.
type workbench struct {
	*lab
	program string // the path of a static program
	image   string
	host    Host
}

// payload is what the containers run: the first argument says what it does.
const payload = `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	switch os.Args[1] {
	case "wait":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		<-c
	case "fail":
		os.Stdout.WriteString("one\ntwo\nthree\nfour\nfive\nsix\x1b[31m\n")
		os.Exit(3)
	}
}
`

func newWorkbench(t *testing.T, l *lab) *workbench {
	dir := t.TempDir()
	source := filepath.Join(dir, "payload.go")
	if err := os.WriteFile(source, []byte(payload), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &workbench{lab: l, program: filepath.Join(dir, "payload"), host: Host{Home: dir}}
	build := exec.Command("go", "build", "-o", w.program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the program: %v\n%s", err, out)
	}
	w.image = w.name("payload") + ":1"
	must(t, w.applier().Apply(t.Context(), w.binaryStep(w.image, w.program)))
	return w
}

func (w *workbench) binaryStep(reference, program string) reconcile.BuildImage {
	i := reconcile.Image{
		Address:   schema.Address{Kind: "image", Name: "payload"},
		Reference: reference, Binary: program,
	}
	from := SurveyImage(w.t.Context(), w.host, i)
	return reconcile.BuildImage{Image: i, From: from, Input: from.Joined(nil)}
}

// applier is one that has just seen all there is.
func (w *workbench) applier() *Applier {
	w.t.Helper()
	return w.applierOn(w.Engine)
}

func (w *workbench) applierOn(e *Engine) *Applier {
	w.t.Helper()
	a := e.Applier(ApplierOptions{
		Actual: w.lab.inspect(), Digest: testKey{}, Project: w.project, Store: w.store, Host: w.host,
	})
	// On a loaded machine a program that ends at once takes its time.
	a.timeouts.look = time.Second
	return a
}

// testKey digests with a key that is no secret.
type testKey struct{}

func (testKey) KeyID() string { return "test" }

func (testKey) Digest(parts ...string) string {
	h := hmac.New(sha256.New, []byte("test"))
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (w *workbench) do(t *testing.T, a *Applier, step reconcile.Step) {
	t.Helper()
	if err := a.Apply(t.Context(), step); err != nil {
		t.Fatalf("%T: %v", step, err)
	}
}

// fails carries out a step that must fail with an error of type E.
func fails[E error](t *testing.T, a *Applier, step reconcile.Step) E {
	t.Helper()
	err := a.Apply(t.Context(), step)
	var want E
	if !errors.As(err, &want) {
		t.Fatalf("%T: error %v (%T), want a %T", step, err, err, want)
	}
	return want
}

func (w *workbench) network(t *testing.T, name string) string {
	t.Helper()
	return w.makeNetwork(t, name, true)
}

func (w *workbench) makeNetwork(t *testing.T, name string, internal bool) string {
	t.Helper()
	n := reconcile.Network{
		Name: w.name(name), Driver: "bridge", Internal: internal,
		Labels: w.labels(reconcile.KindNetwork), Options: map[string]string{},
	}
	w.do(t, w.applier(), reconcile.CreateNetwork{Network: n})
	return n.Name
}

// asked is a hardened container on one network that waits to be stopped.
func (w *workbench) asked(name, network string) reconcile.Container {
	c := reconcile.Container{
		Name:            w.name(name),
		Image:           w.image,
		Command:         []string{"payload", "wait"},
		User:            "1000:1000",
		Env:             map[string]reconcile.EnvValue{"TZ": {Value: "UTC"}},
		Labels:          w.labels(reconcile.KindSpace),
		Mounts:          map[string]reconcile.Mount{},
		Tmpfs:           map[string]string{"/tmp": "noexec,nosuid"},
		Publish:         map[string]string{},
		Networks:        map[string]reconcile.Endpoint{network: {Aliases: []string{name}}},
		NetworkMode:     network,
		Memory:          64 << 20,
		MemorySwap:      64 << 20,
		NanoCPUs:        5e8,
		PIDs:            64,
		Restart:         schema.Restart{Name: "unless-stopped"},
		ReadOnlyRoot:    true,
		Init:            true,
		NoNewPrivileges: true,
		Seccomp:         "default",
		CapDrop:         []string{"ALL"},
		LogDriver:       "json-file",
		LogOptions:      map[string]string{"max-size": "10m", "max-file": "3"},
	}
	for _, limit := range w.features.Unenforced {
		switch limit {
		case limitMemory:
			c.Memory, c.MemorySwap = 0, 0
		case limitSwap:
			c.MemorySwap = 0
		case limitCPUs:
			c.NanoCPUs = 0
		case limitPIDs:
			c.PIDs = 0
		}
	}
	return c
}

// space makes and starts a container, and returns its id.
func (w *workbench) space(t *testing.T, c reconcile.Container) string {
	t.Helper()
	w.do(t, w.applier(), reconcile.CreateSpace{Container: c})
	return w.get(t, c.Name).ID
}

// canPause is false for an engine without cgroups, which has nothing to freeze by.
func (w *workbench) canPause() bool { return !slices.Contains(w.features.Unenforced, limitPIDs) }

// pause does what it can, for tests that a running container serves as well.
func (w *workbench) pause(t *testing.T, id string) error {
	if !w.canPause() {
		return nil
	}
	return w.docker.ContainerPause(t.Context(), id)
}

// get is a container that must be there.
func (w *workbench) get(t *testing.T, name string) *live {
	t.Helper()
	c := w.look(t, name)
	if c == nil {
		t.Fatalf("no container %s", name)
	}
	return c
}

func (w *workbench) look(t *testing.T, name string) *live {
	t.Helper()
	c, err := (&Applier{docker: w.docker, timeouts: defaultTimeouts()}).find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stranger makes a container of nobody's.
func (w *workbench) stranger(t *testing.T, name string, host *container.HostConfig) string {
	t.Helper()
	config := &container.Config{Image: w.image, Cmd: []string{"/payload", "wait"}, ExposedPorts: nat.PortSet{}}
	for p := range host.PortBindings {
		config.ExposedPorts[p] = struct{}{}
	}
	made, err := w.docker.ContainerCreate(t.Context(), config, host, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.docker.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func (w *workbench) drop(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, suffix := range []string{"", reconcile.SuffixNew, reconcile.SuffixOld} {
			if c := w.look(t, name+suffix); c != nil {
				if err := w.docker.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func testImages(t *testing.T, w *workbench) {
	a := w.applier()
	t.Run("the same program gives the same image", func(t *testing.T) {
		before, err := a.imageFacts(t.Context(), w.image)
		if err != nil {
			t.Fatal(err)
		}
		again := w.name("again") + ":1"
		w.do(t, a, w.binaryStep(again, w.program))
		after, err := a.imageFacts(t.Context(), again)
		if err != nil || before.ID != after.ID {
			t.Errorf("image %s, then %s, %v", before.ID, after.ID, err)
		}
		if after.Env["PATH"] != "/" || len(after.Labels) != 1 {
			t.Errorf("facts %+v", after)
		}
	})
	t.Run("a dynamic program is refused", func(t *testing.T) {
		step := w.binaryStep(w.name("dynamic")+":1", "/bin/true")
		step.From, step.Input = reconcile.ImageInput{Digest: "sha256:of nothing"}, "sha256:of nothing"
		r := fails[*reconcile.Refusal](t, a, step)
		if r.Code != reconcile.CodeImageInput || !strings.Contains(r.Fix, "CGO_ENABLED=0") {
			t.Errorf("refusal %+v", r)
		}
	})
	t.Run("a program that changed isn't loaded", func(t *testing.T) {
		step := w.binaryStep(w.name("moved")+":1", w.program)
		step.From.Digest = "sha256:of another"
		fails[*MovedError](t, a, step)
		if _, err := a.imageFacts(t.Context(), step.Image.Reference); err == nil {
			t.Error("it has a name")
		}
	})
	build := func(name, dockerfile string, args map[string]string) reconcile.BuildImage {
		dir := t.TempDir()
		program, err := os.ReadFile(w.program)
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{"Dockerfile": []byte(dockerfile), "payload": program} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		i := reconcile.Image{
			Address:   schema.Address{Kind: "image", Name: name},
			Reference: w.name(name) + ":1",
			Build:     &schema.Build{Context: dir, Dockerfile: "Dockerfile", Args: args},
		}
		from := SurveyImage(t.Context(), w.host, i)
		return reconcile.BuildImage{Image: i, From: from, Input: from.Joined(nil)}
	}
	t.Run("a context is built", func(t *testing.T) {
		step := build("built", "FROM scratch\nARG GREETING\nCOPY payload /payload\nENV HELLO=$GREETING\n", map[string]string{"GREETING": "hi"})
		w.do(t, a, step)
		facts, err := a.imageFacts(t.Context(), step.Image.Reference)
		if err != nil || facts.Input != step.Input || facts.Env["HELLO"] != "hi" {
			t.Errorf("facts %+v, %v", facts, err)
		}
	})
	t.Run("a context that changed gets no name", func(t *testing.T) {
		step := build("late", "FROM scratch\nCOPY payload /payload\n", nil)
		if err := os.WriteFile(filepath.Join(step.Image.Build.Context, "payload"), []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
		fails[*MovedError](t, a, step)
		if _, err := a.imageFacts(t.Context(), step.Image.Reference); err == nil {
			t.Error("it has a name")
		}
	})
	t.Run("an image that claims to be ours is refused", func(t *testing.T) {
		step := build("liar", "FROM scratch\nCOPY payload /payload\nLABEL spaces.project=other\n", nil)
		if r := fails[*reconcile.Refusal](t, a, step); r.Code != reconcile.CodeImageLabels {
			t.Errorf("refusal %+v", r)
		}
		if _, err := a.imageFacts(t.Context(), step.Image.Reference); err == nil {
			t.Error("it has a name")
		}
	})
	t.Run("a failing build says what failed", func(t *testing.T) {
		step := build("broken", "FROM scratch\nCOPY payload /payload\nRUN [\"/payload\", \"fail\"]\n", nil)
		err := a.Apply(t.Context(), step)
		if err == nil || !strings.Contains(err.Error(), "six") || !strings.Contains(err.Error(), "non-zero code: 3") {
			t.Errorf("error %v", err)
		}
	})
}

func testNetworks(t *testing.T, w *workbench) {
	a := w.applier()
	n := reconcile.Network{
		Name: w.name("netsteps"), Driver: "bridge", Internal: true, Subnet: "10.231.7.0/24", IPRange: "10.231.7.128/25",
		Labels: w.labels(reconcile.KindNetwork), Options: map[string]string{},
	}
	w.do(t, a, reconcile.CreateNetwork{Network: n})
	fails[*MovedError](t, a, reconcile.CreateNetwork{Network: n})
	fails[*MovedError](t, w.applierBefore(), reconcile.RemoveNetwork{Name: n.Name})
	w.space(t, w.asked("member", n.Name))
	if e := fails[*MovedError](t, a, reconcile.RemoveNetwork{Name: n.Name}); !strings.Contains(e.How, w.name("member")) {
		t.Errorf("error %v", e)
	}
	// The engine itself would take a network from under a stopped container.
	if err := w.docker.ContainerStop(t.Context(), w.name("member"), container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	fails[*MovedError](t, a, reconcile.RemoveNetwork{Name: n.Name})
	w.drop(t, w.name("member"))
	w.do(t, a, reconcile.RemoveNetwork{Name: n.Name})
	w.do(t, a, reconcile.RemoveNetwork{Name: n.Name})
	if _, err := w.docker.NetworkCreate(t.Context(), n.Name, network.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := fails[*reconcile.Refusal](t, a, reconcile.CreateNetwork{Network: n})
	if r.Code != reconcile.CodeNameTaken {
		t.Errorf("refusal %+v", r)
	}
	// Ours is gone, and what has its name since isn't ours to remove.
	w.do(t, a, reconcile.RemoveNetwork{Name: n.Name})
	if len(w.named(t, n.Name)) != 1 {
		t.Error("a stranger's network was removed")
	}
}

// applierBefore has seen nothing at all.
func (w *workbench) applierBefore() *Applier {
	return w.Applier(ApplierOptions{Digest: testKey{}, Project: w.project, Store: w.store, Host: w.host})
}

func testVolumes(t *testing.T, w *workbench) {
	a := w.applier()
	v := reconcile.Volume{Name: w.name("volume"), Driver: "local", Labels: w.labels(reconcile.KindVolume), Options: map[string]string{}}
	w.do(t, a, reconcile.CreateVolume{Volume: v})
	fails[*MovedError](t, a, reconcile.CreateVolume{Volume: v})
	n := w.network(t, "forvolume")
	user := w.asked("user", n)
	user.Mounts["/data"] = reconcile.Mount{Type: "volume", Source: v.Name, Writable: true}
	w.space(t, user)
	if err := a.Apply(t.Context(), reconcile.RemoveVolume{Name: v.Name}); err == nil {
		t.Error("a volume in use was removed")
	}
	w.drop(t, user.Name)
	fails[*MovedError](t, w.applierBefore(), reconcile.RemoveVolume{Name: v.Name})
	w.do(t, a, reconcile.RemoveVolume{Name: v.Name})
	w.do(t, a, reconcile.RemoveVolume{Name: v.Name})
}

func testDirectories(t *testing.T, w *workbench) {
	a := w.applier()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	w.do(t, a, reconcile.CreateDirectory{Path: path})
	w.do(t, a, reconcile.CreateDirectory{Path: filepath.Join(dir, "a")}) // made on the way
	for _, made := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, info, err)
		}
	}
	fails[*MovedError](t, w.applier(), reconcile.CreateDirectory{Path: path})
}

func testCreate(t *testing.T, w *workbench) {
	first, second := w.network(t, "one"), w.network(t, "two")
	t.Run("as asked", func(t *testing.T) {
		c := w.asked("web", first)
		c.Networks[second] = reconcile.Endpoint{Aliases: []string{"other", "web"}}
		c.Healthcheck = &reconcile.Healthcheck{Test: []string{"CMD", "payload", "ok"}, Interval: time.Second}
		w.space(t, c)
		got := w.get(t, c.Name)
		if !got.State.Running || got.Config.Labels[reconcile.LabelApplied] == "" {
			t.Errorf("state %+v, labels %v", got.State, got.Config.Labels)
		}
		fails[*MovedError](t, w.applier(), reconcile.CreateSpace{Container: c})
		// It is healthy a second later; who depends on it waits for that.
		user := w.asked("user", first)
		w.do(t, w.applier(), reconcile.CreateSpace{Container: user, WaitFor: []string{c.Name}})
		if h := w.get(t, c.Name).State.Health; h == nil || h.Status != container.Healthy {
			t.Errorf("health %+v", h)
		}
		w.drop(t, c.Name, user.Name)
	})
	t.Run("a command that ends at once", func(t *testing.T) {
		c := w.asked("ends", first)
		c.Command = []string{"payload", "fail"}
		c.Restart.Name = "no"
		e := fails[*EndedError](t, w.applier(), reconcile.CreateSpace{Container: c})
		want := []string{"two", "three", "four", "five", "six [31m"}
		if e.ExitCode != 3 || !slices.Equal(e.Log, want) {
			t.Errorf("%+v, want %q", e, want)
		}
		w.get(t, c.Name) // left, for its log
		w.drop(t, c.Name)
	})
	t.Run("one that ends and is restarted", func(t *testing.T) {
		c := w.asked("loops", first)
		c.Command = []string{"payload", "fail"}
		fails[*EndedError](t, w.applier(), reconcile.CreateSpace{Container: c})
		w.drop(t, c.Name)
	})
	t.Run("a command that isn't there", func(t *testing.T) {
		c := w.asked("nothing", first)
		c.Command = []string{"nothing"}
		// With an init the engine itself starts well: it is the init that finds nothing.
		for _, c.Init = range []bool{true, false} {
			if err := w.applier().Apply(t.Context(), reconcile.CreateSpace{Container: c}); err == nil {
				t.Errorf("init %v: no error", c.Init)
			}
			w.drop(t, c.Name)
		}
	})
	t.Run("waiting for one that ended", func(t *testing.T) {
		ended := w.asked("gone", first)
		ended.Restart.Name = "no"
		ended.Command = []string{"payload", "fail"}
		fails[*EndedError](t, w.applier(), reconcile.CreateSpace{Container: ended})
		c := w.asked("waits", first)
		fails[*EndedError](t, w.applier(), reconcile.CreateSpace{Container: c, WaitFor: []string{ended.Name}})
		if w.get(t, c.Name).State.Running {
			t.Error("it was started")
		}
		w.drop(t, c.Name, ended.Name)
	})
	t.Run("a name that a stranger has", func(t *testing.T) {
		c := w.asked("taken", first)
		id := w.stranger(t, c.Name, &container.HostConfig{})
		if r := fails[*reconcile.Refusal](t, w.applier(), reconcile.CreateSpace{Container: c}); r.Code != reconcile.CodeNameTaken {
			t.Errorf("refusal %+v", r)
		}
		if got := w.get(t, c.Name); got.ID != id || !got.State.Running {
			t.Error("the stranger was touched")
		}
		w.drop(t, c.Name)
	})
	t.Run("what the engine doesn't make is never started", func(t *testing.T) {
		c := w.asked("other", first)
		facts, err := w.applier().imageFacts(t.Context(), w.image)
		if err != nil {
			t.Fatal(err)
		}
		c = reconcile.WithImage(c, facts)
		c.ImageID = "sha256:" + strings.Repeat("0", 64)
		e := fails[*NotAsAskedError](t, w.applier(), reconcile.CreateSpace{Container: c})
		if !slices.Equal(e.Fields, []string{"image"}) {
			t.Errorf("fields %v", e.Fields)
		}
		if got := w.get(t, c.Name); got.State.Status != container.StateCreated {
			t.Errorf("it is %s", got.State.Status)
		}
		w.drop(t, c.Name)
	})
}

// What a container would be put on, or given, has to be what the plan saw.
func testReferences(t *testing.T, w *workbench) {
	n := w.network(t, "mine")
	a := w.applier()
	must(t, w.docker.NetworkRemove(t.Context(), n))
	c := w.asked("refers", n)
	fails[*MovedError](t, a, reconcile.CreateSpace{Container: c})
	if _, err := w.docker.NetworkCreate(t.Context(), n, network.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fails[*MovedError](t, a, reconcile.CreateSpace{Container: c})
	c = w.asked("refers", w.network(t, "mine2"))
	c.Mounts["/data"] = reconcile.Mount{Type: "volume", Source: w.name("never made")}
	fails[*MovedError](t, w.applier(), reconcile.CreateSpace{Container: c})
	if w.look(t, c.Name) != nil {
		t.Error("it was made")
	}
}

func testInPlace(t *testing.T, w *workbench) {
	first, second := w.network(t, "base"), w.network(t, "extra")
	c := w.asked("inplace", first)
	id := w.space(t, c)
	a := w.applier()

	to := c
	to.Restart = schema.Restart{Name: "on-failure", MaxRetries: 3}
	fields := []string{"restart"}
	if c.Memory > 0 {
		to.Memory, to.MemorySwap, to.NanoCPUs, to.PIDs = 256<<20, 256<<20, 1e9, 128
		if c.MemorySwap == 0 {
			to.MemorySwap = 0
		}
		fields = append(fields, "limits.memory", "limits.cpus", "limits.pids")
	}
	w.do(t, a, reconcile.UpdateSpace{Name: c.Name, Fields: fields, To: to})
	got := w.get(t, c.Name)
	if got.HostConfig.RestartPolicy.Name != "on-failure" || got.HostConfig.Memory != to.Memory || got.HostConfig.MemorySwap != 0 && got.HostConfig.MemorySwap < to.Memory {
		t.Errorf("after the update: %+v", got.HostConfig)
	}
	if err := a.Apply(t.Context(), reconcile.UpdateSpace{Name: c.Name, Fields: []string{"image"}, To: to}); err == nil {
		t.Error("an image was changed in place")
	}

	endpoint := reconcile.Endpoint{Aliases: []string{"inplace", "nick"}}
	w.do(t, a, reconcile.ConnectSpace{Name: c.Name, Network: second, Endpoint: endpoint})
	got = w.get(t, c.Name)
	if s := got.NetworkSettings.Networks[second]; s == nil || !slices.Contains(s.Aliases, "nick") {
		t.Errorf("endpoint %+v", s)
	}
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: second})
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: first})
	if n := len(w.get(t, c.Name).NetworkSettings.Networks); n != 0 {
		t.Errorf("still on %d networks", n)
	}
	w.do(t, a, reconcile.ConnectSpace{Name: c.Name, Network: first, Endpoint: c.Networks[first]})

	if w.canPause() {
		if err := w.docker.ContainerPause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.do(t, w.applier(), reconcile.UnpauseSpace{Name: c.Name})
		if w.get(t, c.Name).State.Paused {
			t.Error("still paused")
		}
	}
	if err := w.docker.ContainerStop(t.Context(), id, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	w.do(t, w.applier(), reconcile.StartSpace{Name: c.Name})
	if got := w.get(t, c.Name); !got.State.Running || got.ID != id {
		t.Errorf("after a start: %+v", got.State)
	}

	a = w.applier()
	w.do(t, a, reconcile.RenameSpace{From: c.Name, To: c.Name + reconcile.SuffixOld})
	w.do(t, a, reconcile.RenameSpace{From: c.Name + reconcile.SuffixOld, To: c.Name})
	if w.get(t, c.Name).ID != id {
		t.Error("another container has the name")
	}
	w.drop(t, c.Name)

	t.Run("a stranger leaves our network and is otherwise left alone", func(t *testing.T) {
		stranger := w.stranger(t, w.name("stranger"), &container.HostConfig{})
		for _, running := range []bool{true, false} {
			if err := w.docker.NetworkConnect(t.Context(), first, stranger, nil); err != nil {
				t.Fatal(err)
			}
			if !running {
				if err := w.docker.ContainerStop(t.Context(), stranger, container.StopOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			step := reconcile.DisconnectSpace{Name: w.name("stranger"), Network: first, Foreign: true}
			w.do(t, w.applier(), step)
			got := w.get(t, w.name("stranger"))
			if got.isOn(first) || got.State.Running != running || !got.isOn("bridge") {
				t.Errorf("running %v: %+v, on %v", running, got.State, slices.Sorted(maps.Keys(got.NetworkSettings.Networks)))
			}
			w.do(t, w.applier(), step)
		}
		w.drop(t, w.name("stranger"))
	})
	t.Run("an endpoint whose network is gone", func(t *testing.T) {
		lost := w.network(t, "lost")
		c := w.asked("left", lost)
		w.space(t, c)
		if err := w.docker.ContainerStop(t.Context(), c.Name, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.docker.NetworkRemove(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		w.do(t, w.applier(), reconcile.DisconnectSpace{Name: c.Name, Network: lost})
		if w.get(t, c.Name).isOn(lost) {
			t.Error("it still is on it")
		}
		w.drop(t, c.Name)
	})
}

func testRemoval(t *testing.T, w *workbench) {
	n := w.network(t, "removal")
	for name, before := range map[string]func(id string) error{
		"running": func(string) error { return nil },
		"paused":  func(id string) error { return w.pause(t, id) },
		"exited": func(id string) error {
			return w.docker.ContainerStop(t.Context(), id, container.StopOptions{})
		},
		"gone": func(id string) error {
			return w.docker.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.asked("removed", n)
			id := w.space(t, c)
			if err := before(id); err != nil {
				t.Fatal(err)
			}
			a := w.applier()
			w.do(t, a, reconcile.RemoveSpace{Name: c.Name})
			if w.look(t, c.Name) != nil {
				t.Fatal("it is still there")
			}
			// Its name is free again at once.
			w.do(t, a, reconcile.CreateSpace{Container: c})
			w.do(t, a, reconcile.RemoveSpace{Name: c.Name})
		})
	}
	t.Run("created", func(t *testing.T) {
		c := w.asked("made", n)
		c.Image = w.image
		w.lab.create(c)
		w.do(t, w.applier(), reconcile.RemoveSpace{Name: c.Name})
		if w.look(t, c.Name) != nil {
			t.Fatal("it is still there")
		}
	})
}

func testMoved(t *testing.T, w *workbench) {
	n := w.network(t, "moving")
	c := w.asked("moves", n)
	id := w.space(t, c)
	a := w.applier()
	always := container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "always"}}
	if _, err := w.docker.ContainerUpdate(t.Context(), id, always); err != nil {
		t.Fatal(err)
	}
	for _, step := range []reconcile.Step{
		reconcile.ReplaceSpace{Container: c},
		reconcile.UpdateSpace{Name: c.Name, Fields: []string{"restart"}, To: c},
		reconcile.ConnectSpace{Name: c.Name, Network: n},
		reconcile.DisconnectSpace{Name: c.Name, Network: n},
		reconcile.StartSpace{Name: c.Name},
		reconcile.UnpauseSpace{Name: c.Name},
		reconcile.RemoveSpace{Name: c.Name},
		reconcile.RenameSpace{From: c.Name, To: c.Name + "x"},
	} {
		fails[*MovedError](t, a, step)
		got := w.get(t, c.Name)
		if got.ID != id || !got.State.Running || got.HostConfig.RestartPolicy.Name != "always" {
			t.Fatalf("%T touched it: %+v", step, got.State)
		}
	}
	w.drop(t, c.Name)
	for _, step := range []reconcile.Step{
		reconcile.ReplaceSpace{Container: c}, reconcile.StartSpace{Name: c.Name},
	} {
		fails[*MovedError](t, a, step)
	}
}

func testReplace(t *testing.T, w *workbench) {
	n, second := w.makeNetwork(t, "replace", false), w.network(t, "replace2")
	volume := reconcile.Volume{Name: w.name("kept"), Driver: "local", Labels: w.labels(reconcile.KindVolume), Options: map[string]string{}}
	w.do(t, w.applier(), reconcile.CreateVolume{Volume: volume})
	port := freePort(t)
	c := w.asked("replaced", n)
	c.Networks[second] = reconcile.Endpoint{Aliases: []string{"replaced"}}
	c.Mounts["/data"] = reconcile.Mount{Type: "volume", Source: volume.Name}
	c.Publish["80/tcp"] = "127.0.0.1:" + port
	old := w.space(t, c)
	next := c
	next.Env = map[string]reconcile.EnvValue{"TZ": {Value: "Europe/Zurich"}}
	a := w.applier()
	w.do(t, a, reconcile.ReplaceSpace{Container: next})
	got := w.get(t, c.Name)
	if got.ID == old || got.Config.Labels[reconcile.LabelReplaces] != old || !got.State.Running {
		t.Errorf("state %+v, labels %v", got.State, got.Config.Labels)
	}
	w.onlyOne(t, c.Name)
	// What this apply did itself is no surprise to it.
	w.do(t, a, reconcile.ReplaceSpace{Container: c})
	w.onlyOne(t, c.Name)
	for _, before := range []func(id string) error{
		func(id string) error { return w.pause(t, id) },
		func(id string) error { return w.docker.ContainerStop(t.Context(), id, container.StopOptions{}) },
	} {
		if err := before(w.get(t, c.Name).ID); err != nil {
			t.Fatal(err)
		}
		w.do(t, w.applier(), reconcile.ReplaceSpace{Container: c})
		if !w.get(t, c.Name).State.Running {
			t.Error("the new one doesn't run")
		}
		w.onlyOne(t, c.Name)
	}
	w.drop(t, c.Name)
	if _, err := w.docker.VolumeInspect(t.Context(), volume.Name); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
}

// onlyOne makes sure that nothing else is left of a replacement.
func (w *workbench) onlyOne(t *testing.T, name string) {
	t.Helper()
	for _, suffix := range []string{reconcile.SuffixNew, reconcile.SuffixOld} {
		if w.look(t, name+suffix) != nil {
			t.Errorf("%s%s is left", name, suffix)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func testRollback(t *testing.T, w *workbench) {
	n, second := w.makeNetwork(t, "back", false), w.network(t, "back2") // an internal one publishes no port
	c := w.asked("stays", n)
	port := freePort(t)
	stranger := w.stranger(t, w.name("port-holder"), &container.HostConfig{
		PortBindings: nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: port}}},
	})
	for name, spoil := range map[string]func(*reconcile.ReplaceSpace){
		"bad command":  func(s *reconcile.ReplaceSpace) { s.Container.Command = []string{"nothing"} },
		"ends at once": func(s *reconcile.ReplaceSpace) { s.Container.Command = []string{"payload", "fail"} },
		"missing source": func(s *reconcile.ReplaceSpace) {
			s.Container.Mounts = map[string]reconcile.Mount{"/x": {Type: "bind", Source: "/nonexistent/source"}}
		},
		"port taken": func(s *reconcile.ReplaceSpace) {
			s.Container.Publish = map[string]string{"80/tcp": "127.0.0.1:" + port}
		},
		"network that refuses": func(s *reconcile.ReplaceSpace) {
			s.Container.Networks = maps.Clone(s.Container.Networks)
			s.Container.Networks[second] = reconcile.Endpoint{Address: "203.0.113.7"}
		},
		"not as asked":     func(s *reconcile.ReplaceSpace) { s.Container.ImageID = "sha256:" + strings.Repeat("0", 64) },
		"waits for nobody": func(s *reconcile.ReplaceSpace) { s.WaitFor = []string{w.name("nobody")} },
	} {
		for _, was := range []container.ContainerState{container.StateRunning, container.StatePaused, container.StateExited} {
			t.Run(name+" "+string(was), func(t *testing.T) {
				id := w.space(t, c)
				switch was {
				case container.StatePaused:
					must(t, w.pause(t, id))
				case container.StateExited:
					must(t, w.docker.ContainerStop(t.Context(), id, container.StopOptions{}))
				}
				before := w.get(t, c.Name)
				s := reconcile.ReplaceSpace{Container: c}
				spoil(&s)
				a := w.applier()
				if e := fails[*ReplaceError](t, a, s); e.Rollback != nil {
					t.Errorf("rollback: %v", e.Rollback)
				}
				now := w.get(t, c.Name)
				if revisionOf(now.InspectResponse) != revisionOf(before.InspectResponse) {
					t.Errorf("it isn't as it was: %+v, now %+v", before.State, now.State)
				}
				w.onlyOne(t, c.Name)
				// A later step of the same apply knows the container it gets back.
				w.do(t, a, reconcile.RemoveSpace{Name: c.Name})
			})
		}
	}
	if got := w.get(t, w.name("port-holder")); got.ID != stranger || !got.State.Running {
		t.Error("the stranger was touched")
	}
	t.Run("temporary name taken", func(t *testing.T) {
		id := w.space(t, c)
		for _, suffix := range []string{reconcile.SuffixNew, reconcile.SuffixOld} {
			other := w.stranger(t, c.Name+suffix, &container.HostConfig{})
			fails[*reconcile.Refusal](t, w.applier(), reconcile.ReplaceSpace{Container: c})
			if got := w.get(t, c.Name+suffix); got.ID != other || !got.State.Running {
				t.Error("the stranger was touched")
			}
			must(t, w.docker.ContainerRemove(t.Context(), other, container.RemoveOptions{Force: true}))
		}
		if got := w.get(t, c.Name); got.ID != id || !got.State.Running {
			t.Error("the old one was touched")
		}
		w.drop(t, c.Name)
	})
	w.drop(t, w.name("port-holder"))
}

// An engine may add to each container by its own configuration. That is no drift, for
// the label of each container vouches for it.
func TestRootfulEngineThatFillsIn(t *testing.T) {
	engines := os.Getenv("SPACES_TEST_ENGINES")
	if engines == "" {
		t.Fatal("SPACES_TEST_ENGINES doesn't name testscripts/engines.sh")
	}
	dir, err := os.MkdirTemp("/tmp", "spf")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(engines, args...).Output()
		if err != nil {
			t.Fatalf("engines.sh %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run("stop", dir) })
	endpoint := run("start", "rootful", dir, "--default-ulimit", "nofile=1024:2048", "--log-opt", "tag=mine")
	t.Setenv("SPACES_TEST_ROOTFUL", endpoint)

	w := newWorkbench(t, rootfulLab(t))
	n := w.network(t, "filled")
	a := w.applier()
	facts, err := a.imageFacts(t.Context(), w.image)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second", "third"} {
		c := w.asked(name, n)
		w.do(t, a, reconcile.CreateSpace{Container: c})
		got := w.get(t, c.Name)
		asked := reconcile.WithImage(c, facts)
		_, filled := reconcile.Differences(asked, a.engine.asMade(got.InspectResponse))
		if len(filled) == 0 {
			t.Fatal("this engine adds nothing")
		}
		if got.Config.Labels[reconcile.LabelApplied] != reconcile.AppliedLabel(testKey{}, asked, filled) {
			t.Errorf("%s: its label doesn't vouch for %v", name, filled)
		}
	}
}
