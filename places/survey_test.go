package places

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
	"spaces/schema"
)

// grantOf is a grant of a kind, called after its source.
func grantOf(kind schema.GrantKind, path string) schema.Grant {
	return schema.Grant{
		Object: schema.Object{Address: schema.Address{Kind: "grant", Name: filepath.Base(path)}},
		Kind:   kind, Source: path, Target: "/mnt/" + filepath.Base(path),
	}
}

func surveyed(t *testing.T, d reconcile.Desired, h Host, e reconcile.Engine) reconcile.HostFacts {
	t.Helper()
	facts, err := Survey(t.Context(), d, h, e, newKeyed([keySize]byte{1}))
	must(t, err)
	again, err := Survey(t.Context(), d, h, e, newKeyed([keySize]byte{1}))
	must(t, err)
	if !reflect.DeepEqual(facts, again) {
		t.Error("two surveys of the same differ")
	}
	return facts
}

func TestSurveyPaths(t *testing.T) {
	h := testHost(t)
	root := tree(t, "file=one", "copy=one", "other=two", "dir/in/", "link->dir/in", "tofile->file", "gone->none/x", "secret=s", "tosecret->secret", "loop->loop", "empty=")
	must(t, os.Chmod(filepath.Join(root, "secret"), 0o600))
	must(t, syscall.Chmod(filepath.Join(root, "dir"), 0o1770))
	must(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	listener, err := net.Listen("unix", filepath.Join(root, "sock"))
	must(t, err)
	defer listener.Close()
	large, err := os.Create(filepath.Join(root, "large"))
	must(t, err)
	must(t, errors.Join(large.Truncate(maxContent+1), large.Close()))
	must(t, os.WriteFile(filepath.Join(h.Home, "notes"), []byte("one"), 0o644))

	type want struct {
		resolved       string
		exists, link   bool
		kind           reconcile.PathKind
		mode           uint32
		content, fails bool
	}
	var d reconcile.Desired
	wants := map[string]want{}
	for _, c := range []struct {
		kind schema.GrantKind
		path string
		want want
	}{
		{schema.GrantFile, "file", want{"file", true, false, reconcile.PathFile, 0o644, true, false}},
		{schema.GrantFile, "copy", want{"copy", true, false, reconcile.PathFile, 0o644, true, false}},
		{schema.GrantFile, "other", want{"other", true, false, reconcile.PathFile, 0o644, true, false}},
		{schema.GrantFile, "empty", want{"empty", true, false, reconcile.PathFile, 0o644, true, false}},
		{schema.GrantFile, "tofile", want{"file", true, true, reconcile.PathFile, 0o644, true, false}},
		{schema.GrantDirectory, "dir", want{"dir", true, false, reconcile.PathDirectory, 0o1770, false, false}},
		{schema.GrantDirectory, "link", want{"dir/in", true, true, reconcile.PathDirectory, 0o755, false, false}},
		{schema.GrantDirectory, "gone", want{"none/x", false, true, "", 0, false, false}},
		{schema.GrantDirectory, "none/y", want{"none/y", false, false, "", 0, false, false}},
		{schema.GrantDirectory, "loop", want{"loop", false, true, "", 0, false, true}},
		{schema.GrantSecret, "secret", want{"secret", true, false, reconcile.PathFile, 0o600, true, false}},
		{schema.GrantSecret, "tosecret", want{"secret", true, true, reconcile.PathFile, 0o600, false, false}},
		{schema.GrantFile, "fifo", want{"fifo", true, false, reconcile.PathOther, 0o600, false, false}},
		{schema.GrantFile, "sock", want{"sock", true, false, reconcile.PathSocket, 0o755, false, false}},
		{schema.GrantSecret, "large", want{"large", true, false, reconcile.PathFile, 0o644, false, true}},
	} {
		g := grantOf(c.kind, filepath.Join(root, c.path))
		d.Grants = append(d.Grants, g)
		wants[g.Source] = c.want
	}
	d.Grants = append(d.Grants, grantOf(schema.GrantFile, "~/notes"), grantOf(schema.GrantVolume, "cache"), grantOf(schema.GrantDirectory, "relative"))
	d.Loaded = []string{filepath.Join(root, "link"), filepath.Join(root, "other")}
	facts := surveyed(t, d, h, reconcile.Engine{})
	if !facts.Checked || facts.Caller != os.Getuid() || facts.Digest == nil {
		t.Errorf("facts %+v", facts)
	}
	for path, want := range wants {
		got, ok := facts.Paths[path]
		if !ok || got.Absolute != path || got.Resolved != filepath.Join(root, want.resolved) || got.Exists != want.exists ||
			got.Symlink != want.link || got.Kind != want.kind || got.Mode != want.mode ||
			(got.Content != "") != want.content || (got.Err != "") != want.fails {
			t.Errorf("%s:\n got %+v\nwant %+v", path, got, want)
		}
		if got.Exists && (got.Owner != os.Getuid() || got.Inode == reconcile.Inode{}) {
			t.Errorf("%s: owner %d, inode %v", path, got.Owner, got.Inode)
		}
	}
	content := func(name string) string { return facts.Paths[filepath.Join(root, name)].Content }
	if content("file") != content("copy") || content("file") != content("tofile") || content("file") == content("other") || content("empty") == content("file") {
		t.Error("contents' digests don't tell contents apart")
	}
	if notes := facts.Paths["~/notes"]; notes.Absolute != filepath.Join(h.Home, "notes") || notes.Content != content("file") {
		t.Errorf("from home: %+v", notes)
	}
	if relative := facts.Paths["relative"]; relative.Exists || relative.Err == "" {
		t.Errorf("a relative path: %+v", relative)
	}
	if !slices.Equal(facts.Loaded, []string{filepath.Join(root, "dir/in"), filepath.Join(root, "other")}) {
		t.Errorf("loaded %q", facts.Loaded)
	}

	other, err := Survey(t.Context(), d, h, reconcile.Engine{}, newKeyed([keySize]byte{2}))
	must(t, err)
	if other.Paths[filepath.Join(root, "file")].Content == content("file") {
		t.Error("another key, the same digest")
	}
	without, err := Survey(t.Context(), d, h, reconcile.Engine{}, nil)
	must(t, err)
	if without.Paths[filepath.Join(root, "file")].Content != "" || without.Digest != nil {
		t.Error("a digest without a key")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Survey(ctx, d, h, reconcile.Engine{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What assertions name is looked at as grants' sources are, and never read.
func TestSurveyAsserted(t *testing.T) {
	h := testHost(t)
	root := tree(t, "file=one", "dir/", "link->dir")
	var claims []schema.MountClaim
	for _, name := range []string{"file", "link", "none"} {
		claims = append(claims, schema.MountClaim{Path: filepath.Join(root, name)})
	}
	claims = append(claims, schema.MountClaim{Path: "~/notes"}, schema.MountClaim{Grant: schema.Address{Kind: "grant", Name: "work"}})
	facts := surveyed(t, reconcile.Desired{Assertions: []schema.Assertion{{CannotMount: claims}}}, h, reconcile.Engine{})
	for path, resolved := range map[string]string{
		filepath.Join(root, "file"): filepath.Join(root, "file"),
		filepath.Join(root, "link"): filepath.Join(root, "dir"),
		filepath.Join(root, "none"): filepath.Join(root, "none"),
		"~/notes":                   filepath.Join(h.Home, "notes"),
	} {
		if f := facts.Paths[path]; f.Resolved != resolved || f.Content != "" {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

func TestSurveyUnreadable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	base := tree(t, "closed/file", "dir/unreadable")
	// What another user sees is shown by a thread of another user's, since the process
	// stays root: file system checks go by the thread.
	must(t, os.Chmod(filepath.Join(base, "closed"), 0o700))
	must(t, os.Chmod(filepath.Join(base, "dir/unreadable"), 0o600))
	for d := base; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	closed, unreadable := filepath.Join(base, "closed/file"), filepath.Join(base, "dir/unreadable")
	got := map[string]reconcile.PathFacts{}
	asUser(t, 1234, func() {
		for _, path := range []string{closed, unreadable} {
			got[path] = lookAt(t.Context(), Host{}, path, look{content: true}, newKeyed([keySize]byte{}))
		}
	})
	if f := got[closed]; f.Exists || f.Err != "permission denied" || f.Resolved != closed {
		t.Errorf("in a closed folder: %+v", f)
	}
	if f := got[unreadable]; !f.Exists || f.Err != "permission denied" || f.Content != "" || f.Owner != 0 || f.Mode != 0o600 {
		t.Errorf("an unreadable file: %+v", f)
	}
}

func TestSurveyProtected(t *testing.T) {
	h := testHost(t)
	base := tree(t, "run/real/", "run/link->real", "runtime/podman/", "data/", "engine/")
	h.AccountHome = filepath.Join(base, "data/..")
	h.RuntimeDir = filepath.Join(base, "runtime")
	listener, err := net.Listen("unix", filepath.Join(base, "runtime/podman/podman.sock"))
	must(t, err)
	defer listener.Close()
	must(t, os.WriteFile(filepath.Join(base, "runtime/docker.sock"), nil, 0o600)) // not a socket
	must(t, os.MkdirAll(h.ConfigDir(), 0o755))
	secrets := filepath.Join(base, "run/real/secrets")
	must(t, os.Symlink(secrets, h.SecretsDir()))
	d := reconcile.Desired{DataRoot: filepath.Join(base, "data"), Endpoint: "unix://" + filepath.Join(base, "run/link/docker.sock")}
	facts := surveyed(t, d, h, reconcile.Engine{StorageDir: filepath.Join(base, "engine")})

	byPath := map[string]reconcile.Protected{}
	for _, p := range facts.Protected {
		if _, ok := byPath[p.Path]; ok {
			t.Errorf("%s twice", p.Path)
		}
		byPath[p.Path] = p
		if _, ok := facts.Paths[p.Path]; !ok {
			t.Errorf("no facts of %s", p.Path)
		}
	}
	if !slices.IsSortedFunc(facts.Protected, func(a, b reconcile.Protected) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("not sorted")
	}
	for _, want := range []struct {
		path   string
		whole  bool
		except []schema.GrantKind
	}{
		{"/", false, nil},
		{"/proc", true, nil},
		{h.Home, false, nil},
		{base, false, nil}, // the account's home
		{h.ConfigDir(), true, nil},
		{secrets, true, []schema.GrantKind{schema.GrantSecret}},
		{filepath.Join(base, "data"), true, []schema.GrantKind{schema.GrantSocket, schema.GrantData}},
		{filepath.Join(base, "run/real/docker.sock"), true, nil},
		{filepath.Join(base, "run/real"), true, nil},
		{filepath.Join(base, "engine"), true, nil},
		{filepath.Join(h.StateHome, "spaces"), true, nil},
		{filepath.Join(base, "runtime/podman/podman.sock"), true, nil},
	} {
		got, ok := byPath[want.path]
		if !ok || got.Whole != want.whole || !slices.Equal(got.Except, want.except) || got.What == "" {
			t.Errorf("%s: %+v", want.path, got)
		}
	}
	if _, ok := byPath[filepath.Join(base, "runtime/docker.sock")]; ok {
		t.Error("a file passes for an engine's socket")
	}

	// An engine that keeps its socket in the home directory closes all of it, and two
	// that share a directory except only what both do.
	d = reconcile.Desired{DataRoot: h.Home + "/d", Endpoint: "unix://" + h.Home + "/docker.sock"}
	for _, p := range surveyed(t, d, h, reconcile.Engine{StorageDir: h.Home + "/d"}).Protected {
		if p.Path == h.Home && !p.Whole || p.Path == h.Home+"/d" && len(p.Except) > 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestSurveyProtectedStateHome(t *testing.T) {
	// A data root that is the folder of all data roots keeps its own exceptions.
	h := testHost(t)
	d := reconcile.Desired{DataRoot: filepath.Join(h.StateHome, "spaces")}
	for _, p := range surveyed(t, d, h, reconcile.Engine{}).Protected {
		if p.Path == d.DataRoot && len(p.Except) != 2 {
			t.Errorf("%+v", p)
		}
	}
}

// buildProgram makes a small program.
func buildProgram(t *testing.T, dir, name string, cgo string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name+".go"), []byte("package main\n\nimport _ \"net\"\n\nfunc main() {}\n"), 0o644))
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", out, out+".go")
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build a program: %v: %s", err, output)
	}
	return out
}

func TestSurveyInputs(t *testing.T) {
	h := testHost(t)
	root := tree(t, "text=#!/bin/sh", "dir/", "context/Dockerfile=ARG V=1\nFROM a:$V\n", "broken/Dockerfile=FROM", "copy/")
	static := buildProgram(t, root, "static", "0")
	data, err := os.ReadFile(static)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(root, "copy/static"), data, 0o755))
	must(t, os.WriteFile(filepath.Join(root, "copy/object"), append(slices.Clone(data[:16]), append([]byte{1}, data[17:]...)...), 0o755))
	h.Executable, h.ExecutableFile = filepath.Join(root, "replaced"), static
	image := func(name, binary string, build *schema.Build) reconcile.Image {
		return reconcile.Image{Address: schema.Address{Kind: "image", Name: name}, Binary: binary, Build: build}
	}
	d := reconcile.Desired{Images: []reconcile.Image{
		image("this", "spaces", nil),
		image("self", h.Executable, nil),
		image("static", static, nil),
		image("copy", filepath.Join(root, "copy/static"), nil),
		image("object", filepath.Join(root, "copy/object"), nil),
		image("text", filepath.Join(root, "text"), nil),
		image("dir", filepath.Join(root, "dir"), nil),
		image("none", filepath.Join(root, "none"), nil),
		image("built", "", &schema.Build{Context: filepath.Join(root, "context"), Dockerfile: "Dockerfile"}),
		image("broken", "", &schema.Build{Context: filepath.Join(root, "broken"), Dockerfile: "Dockerfile"}),
		{Address: schema.Address{Kind: "image", Name: "pulled"}, Reference: "alpine"},
	}}
	inputs := surveyed(t, d, h, reconcile.Engine{}).Inputs
	if len(inputs) != len(d.Images)-1 {
		t.Errorf("%d inputs", len(inputs))
	}
	digest := inputs["image.static"].Digest
	if !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("static: %+v", inputs["image.static"])
	}
	// The same bytes under the same name are the same; this program is called spaces.
	if got := inputs["image.copy"]; got.Digest != digest || got.Problem != "" {
		t.Errorf("copy: %+v", got)
	}
	own := inputs["image.this"].Digest
	if own == "" || own == digest || inputs["image.self"].Digest != own {
		t.Errorf("this: %+v, self: %+v", inputs["image.this"], inputs["image.self"])
	}
	if got := inputs["image.built"]; got.Problem != "" || !slices.Equal(got.Bases, []string{"a:1"}) || got.Digest == "" {
		t.Errorf("built: %+v", got)
	}
	for name, problem := range map[string]string{
		"object": "not a Linux program", "text": "not a Linux program", "dir": "not a regular file", "none": "no such file", "broken": "FROM needs",
	} {
		if got := inputs["image."+name]; !strings.Contains(got.Problem, problem) || got.Fix == "" || got.Digest != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	dynamic := buildProgram(t, root, "dynamic", "1")
	data, err = os.ReadFile(dynamic)
	must(t, err)
	if !bytes.Contains(data, []byte("/ld-linux")) {
		t.Skip("cannot link dynamically here")
	}
	if got := SurveyImage(t.Context(), h, image("dynamic", dynamic, nil)); !strings.Contains(got.Problem, "dynamically") {
		t.Errorf("dynamic: %+v", got)
	}
}

// asUser runs f on a thread whose file accesses are another user's. The thread ends
// with it.
func asUser(t *testing.T, uid int, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setfsgid(uid); err != nil {
			t.Error(err)
			return
		}
		if err := unix.Setfsuid(uid); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}
