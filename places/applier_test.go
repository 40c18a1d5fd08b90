package places

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"spaces/reconcile"
	"spaces/schema"
)

// deadApplier has an engine that isn't there.
func deadApplier(t *testing.T) *Applier {
	t.Helper()
	endpoint := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	docker, err := dial(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { docker.Close() })
	e := &Engine{docker: docker, endpoint: endpoint}
	return e.Applier(ApplierOptions{Project: "p", Store: "/s", Host: Host{Home: t.TempDir()}})
}

// allSteps has one of each kind, none of which would change anything here.
func allSteps() []reconcile.Step {
	steps := reconcile.Steps()
	for i, s := range steps {
		if _, is := s.(reconcile.CreateDirectory); is {
			steps[i] = reconcile.CreateDirectory{Path: "/proc/none"}
		}
	}
	return steps
}

// A step that the switch forgot would fail with the words of its default.
func TestApplierKnowsEveryStep(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../reconcile/step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "step" {
			declared = append(declared, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	a := deadApplier(t)
	for _, step := range allSteps() {
		listed = append(listed, reflect.TypeOf(step).Name())
		err := a.Apply(t.Context(), step)
		if err == nil || strings.Contains(err.Error(), "isn't known here") {
			t.Errorf("%T: error %v", step, err)
		}
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("steps %v, tested %v", declared, listed)
	}
}

func TestApplierNamesAnEngineThatWentAway(t *testing.T) {
	err := deadApplier(t).Apply(t.Context(), reconcile.StartSpace{Name: "p-web"})
	if !IsTransient(err) || !strings.Contains(err.Error(), "cannot inspect container p-web") {
		t.Errorf("error %v", err)
	}
}

func TestSeen(t *testing.T) {
	s := seenIn(reconcile.Actual{Containers: []reconcile.ObservedContainer{
		{Container: reconcile.Container{Name: "a"}, Revision: "1"},
	}})
	for _, c := range []struct{ key, now, how string }{
		{containerKey("a"), "1", ""},
		{containerKey("a"), "2", "it was changed"},
		{containerKey("a"), "", "it was removed"},
		{containerKey("b"), "", ""},
		{containerKey("b"), "1", "it exists now"},
		{networkKey("a"), "1", "it exists now"},
	} {
		err := s.check(c.key, c.now)
		var moved *MovedError
		switch {
		case c.how == "" && err == nil:
		case !errors.As(err, &moved) || moved.How != c.how || moved.What != c.key:
			t.Errorf("%s at %q: %v, want %q", c.key, c.now, err, c.how)
		}
	}
	s.forget(containerKey("a"))
	if err := s.check(containerKey("a"), ""); err != nil {
		t.Errorf("after our own removal: %v", err)
	}
}

func TestStepsOnOneContainerWait(t *testing.T) {
	var k keyedMutex
	var group sync.WaitGroup
	inside := 0
	for i := range 60 {
		group.Go(func() {
			name := "web" + []string{"", reconcile.SuffixNew, reconcile.SuffixOld}[i%3]
			defer k.lock(name)()
			inside++ // the race detector objects if two are in here
		})
	}
	unlock := k.lock("web")
	k.lock("other")() // others don't wait
	unlock()
	group.Wait()
	if inside != 60 {
		t.Errorf("%d", inside)
	}
}

func TestFirstContainerLearnsWhatTheEngineFillsIn(t *testing.T) {
	var l learnt
	if _, learn := l.get(); l.known {
		t.Fatal("known already")
	} else {
		learn(nil, false) // it failed: the next one learns
	}
	_, learn := l.get()
	got := make(chan []reconcile.Field)
	for range 3 {
		go func() {
			fields, learn := l.get()
			learn(nil, false) // of no effect any more
			got <- fields
		}()
	}
	learn([]reconcile.Field{{Path: "x"}}, true)
	for range 3 {
		if fields := <-got; len(fields) != 1 {
			t.Errorf("fields %v", fields)
		}
	}
}

func TestRealWarnings(t *testing.T) {
	a := &Applier{options: ApplierOptions{Actual: reconcile.Actual{Engine: reconcile.Engine{Unenforced: []string{limitSwap}}}}}
	swap := "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap."
	pids := "Your kernel does not support PIDs limit capabilities or the cgroup is not mounted. PIDs limit discarded."
	if got := a.real([]string{swap, pids}); !slices.Equal(got, []string{pids}) {
		t.Errorf("%q", got)
	}
}

func TestUpdateConfig(t *testing.T) {
	to := reconcile.Container{Memory: 1, MemorySwap: 2, NanoCPUs: 3, PIDs: 4, Restart: schema.Restart{Name: "on-failure", MaxRetries: 5}}
	got, err := updateConfig(reconcile.UpdateSpace{Fields: []string{"limits.memory_swap"}, To: to})
	if err != nil || got.Memory != 1 || got.MemorySwap != 2 || got.NanoCPUs != 0 || got.PidsLimit != nil || got.RestartPolicy.Name != "" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = updateConfig(reconcile.UpdateSpace{Fields: []string{"limits.cpus", "limits.pids", "restart"}, To: to})
	if err != nil || got.Memory != 0 || got.NanoCPUs != 3 || *got.PidsLimit != 4 || got.RestartPolicy.MaximumRetryCount != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := updateConfig(reconcile.UpdateSpace{Fields: []string{"user"}}); err == nil {
		t.Error("no error for a field that doesn't change in place")
	}
}

func TestTail(t *testing.T) {
	got := tail("a\n\n\x1b[31mred\r\n"+strings.Repeat("ä", 300)+"\nlast", 3)
	if len(got) != 3 || got[0] != "[31mred" || got[2] != "last" || len(got[1]) > logLineBytes+len("…") || !strings.HasSuffix(got[1], "ä…") {
		t.Errorf("%q", got)
	}
}

func TestFollow(t *testing.T) {
	var heard []string
	a := &Applier{options: ApplierOptions{Output: func(image, line string) { heard = append(heard, image+": "+line) }}}
	id, err := a.follow("image.x", strings.NewReader(`{"stream":"Step 1\n"}{"stream":" ---> x\n"}
{"status":"Pulling","id":"abc"}{"status":"Downloading","progress":"[=>","id":"abc"}{"aux":{"ID":"sha256:1"}}`))
	want := []string{"image.x: Step 1", "image.x: ---> x", "image.x: abc Pulling"}
	if id != "sha256:1" || err != nil || !slices.Equal(heard, want) {
		t.Errorf("%s, %v, %q", id, err, heard)
	}
	_, err = a.follow("image.x", strings.NewReader(`{"stream":"Step 1\n"}{"errorDetail":{"message":"it broke"},"error":"it broke"}`))
	if err == nil || err.Error() != "it broke after:\n  Step 1" {
		t.Errorf("error %v", err)
	}
	if _, err = a.follow("image.x", strings.NewReader(`{"stream":"Step`)); err == nil {
		t.Error("no error for a stream that broke off")
	}
}

func TestBinaryImageIsTheSameEachTime(t *testing.T) {
	archive := func(path, input string) map[string][]byte {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := newBinaryImage(f, "tool")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := b.write(&out, "p-tool:1", input); err != nil {
			t.Fatal(err)
		}
		return untar(t, &out)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, p := range []string{first, second} {
		if err := os.WriteFile(p, []byte("a program"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(second, 0o644); err != nil {
		t.Fatal(err)
	}
	one, two := archive(first, "sha256:x"), archive(second, "sha256:x")
	if !reflect.DeepEqual(one, two) {
		t.Error("the same bytes gave two images")
	}
	if reflect.DeepEqual(one, archive(first, "sha256:y")) {
		t.Error("another input gave the same image")
	}
	layer := untar(t, bytes.NewReader(one[layerName]))
	if len(layer) != 1 || string(layer["tool"]) != "a program" {
		t.Errorf("layer %q", layer)
	}
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := json.Unmarshal(one["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest %s, %v", one["manifest.json"], err)
	}
	if !slices.Equal(manifest[0].RepoTags, []string{"p-tool:1"}) || !bytes.Contains(one[manifest[0].Config], []byte(`"PATH=/"`)) {
		t.Errorf("manifest %+v, config %s", manifest, one[manifest[0].Config])
	}
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = content
	}
}

func TestErrorsSayWhatHappened(t *testing.T) {
	cause := errors.New("no such file")
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			&ReplaceError{Name: "p-web", Err: cause},
			"cannot replace container p-web: no such file; the old one is back as it was",
		},
		{
			&ReplaceError{Name: "p-web", Err: cause, Rollback: errors.New("it is gone")},
			"cannot replace container p-web: no such file; and the old one is not back: it is gone",
		},
		{
			&MovedError{What: "container p-web", How: "it was changed"},
			"container p-web has moved since the plan: it was changed; plan again",
		},
		{
			&EndedError{Name: "p-web", State: reconcile.StateExited, ExitCode: 3, Log: []string{"a", "b"}},
			"container p-web was started and doesn't run: exited, exit status 3; it printed last:\n  a\n  b",
		},
	} {
		if c.err.Error() != c.want {
			t.Errorf("%s\nwant %s", c.err, c.want)
		}
	}
	if !errors.Is(&ReplaceError{Err: cause}, cause) {
		t.Error("the cause is lost")
	}
}
