package places

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spaces/reconcile"
	"spaces/schema"
)

// testHost is a caller whose home is a temporary directory.
func testHost(t *testing.T) Host {
	t.Helper()
	home := t.TempDir()
	h, err := HostFrom(func(name string) string {
		return map[string]string{"HOME": home}[name]
	}, os.Getuid(), "", "/nonexistent/spaces")
	must(t, err)
	return h
}

func TestHostFrom(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		home string // of the account
		want Host
		err  bool
	}{
		{
			name: "defaults", env: map[string]string{"HOME": "/home/u/"}, home: "/home/u",
			want: Host{Home: "/home/u", AccountHome: "/home/u", ConfigHome: "/home/u/.config", StateHome: "/home/u/.local/state"},
		},
		{
			name: "base directories",
			env:  map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"},
			want: Host{Home: "/h", ConfigHome: "/c", StateHome: "/s", RuntimeDir: "/r"},
		},
		{
			name: "relative ones are ignored",
			env:  map[string]string{"HOME": "h", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "./s", "XDG_RUNTIME_DIR": "r"}, home: "/home/u",
			want: Host{Home: "/home/u", AccountHome: "/home/u", ConfigHome: "/home/u/.config", StateHome: "/home/u/.local/state"},
		},
		{name: "no home", err: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.UID, c.want.Executable, c.want.ExecutableFile = 7, "/bin/spaces", "/proc/self/exe"
			got, err := HostFrom(func(name string) string { return c.env[name] }, 7, c.home, "/bin/spaces")
			if (err != nil) != c.err || err == nil && got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := CurrentHost(); err != nil {
		t.Error(err)
	}
}

func TestResolveDataRoot(t *testing.T) {
	base := tree(t, "home/u/real/", "home/u/link->real", "home/u/tohome->$/home", "home/u/file", "home/u/.config/spaces/secrets/", "home/u/bad->bad")
	home := filepath.Join(base, "home/u")
	h, err := HostFrom(func(name string) string { return map[string]string{"HOME": home}[name] }, os.Getuid(), "/", "")
	must(t, err)
	h.AccountHome = ""
	origin := schema.Origin{File: "main.hcl", Line: 3}
	for _, c := range []struct {
		name         string
		given, files string
		want         string // below home
		code, text   string
	}{
		{name: "default", want: ".local/state/spaces/acme"},
		{name: "files", files: home + "/x/y", want: "x/y"},
		{name: "files from home", files: "~/x", want: "x"},
		{name: "given wins", given: "~/g", files: "~/x", want: "g"},
		{name: "symlink", files: "~/link/none/deep", want: "real/none/deep"},
		{name: "unclean", files: "~/link/../z/", want: "z"},
		{name: "relative", files: "./x", code: "config-invalid", text: "not an absolute path"},
		{name: "relative given", given: "x", code: "usage", text: "--data-root"},
		{name: "home", files: "~", code: "config-invalid", text: "holds the home directory"},
		{name: "holds home", given: base, code: "usage", text: "holds the home directory"},
		{name: "root", given: "/", code: "usage", text: "holds the home directory"},
		{name: "link that holds home", files: "~/tohome", code: "config-invalid", text: "holds the home directory"},
		{name: "holds configuration", files: "~/.config", code: "config-invalid", text: "configuration directory"},
		{name: "in secrets", files: "~/.config/spaces/secrets/x", code: "config-invalid", text: "configuration directory"},
		{name: "a file", files: "~/file", code: "config-invalid", text: "not a folder"},
		{name: "a loop", files: "~/bad", code: "config-invalid", text: "Cannot look"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ResolveDataRoot(h, DataRootChoice{Given: c.given, GivenBy: "--data-root", Files: c.files, Origin: origin, Project: "acme"})
			if c.code == "" {
				if err != nil || got != DataRoot(filepath.Join(home, c.want)) {
					t.Fatalf("got %s, %v", got, err)
				}
				if got.Store() != filepath.Join(home, c.want, "store") {
					t.Errorf("store %s", got.Store())
				}
				return
			}
			var refusal *reconcile.Refusal
			if !errors.As(err, &refusal) || refusal.Code != c.code || !strings.Contains(refusal.Text, c.text) || refusal.Fix == "" {
				t.Fatalf("got %s, %#v", got, err)
			}
			if (refusal.Origin == origin) != (c.code == "config-invalid") {
				t.Errorf("origin %v", refusal.Origin)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(home, ".local")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("resolving made something: %v", err)
	}
	if _, err := ResolveDataRoot(h, DataRootChoice{}); err == nil {
		t.Error("neither project nor path, and no error")
	}
	if root := DataRoot("/d"); root.KeyFile() != "/d/state/key" || root.ApplyLock() != "/d/state/apply.lock" ||
		root.WatchLock() != "/d/state/watch.lock" || root.SourceFile() != "/d/state/source" {
		t.Error("the files of a data root moved")
	}
}

func TestEnsureDataRoot(t *testing.T) {
	h := testHost(t)
	root, err := ResolveDataRoot(h, DataRootChoice{Project: "acme"})
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(string(root)), 0o755))
	before := syscall.Umask(0o277) // one that takes too much
	defer syscall.Umask(before)
	for range 2 {
		must(t, root.Ensure(h))
	}
	syscall.Umask(before)
	for _, name := range []string{"", "sock", "store", "host", "git-host", "runs", "state", "sock/agent", "sock/human", "sock/launch", "sock/git", "sock/relay"} {
		info, err := os.Lstat(root.Part(name))
		must(t, err)
		if !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v", name, info.Mode())
		}
	}
	for _, c := range []struct {
		name, want string
		spoil      func(path string) error
		root       bool
	}{
		{name: "open to others", want: "chmod 700", spoil: func(p string) error { return os.Chmod(p, 0o750) }},
		{name: "a symlink", want: "symlink", spoil: func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink(root.Part("runs"), p))
		}},
		{name: "a file", want: "not a folder", spoil: func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p, nil, 0o600))
		}},
		{name: "another's", want: "belongs to user 1234", spoil: func(p string) error { return os.Chown(p, 1234, -1) }, root: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				t.Skip("needs root")
			}
			path := root.Part("host")
			must(t, c.spoil(path))
			if err := root.Ensure(h); err == nil || !strings.Contains(wording(err), c.want) {
				t.Errorf("got %v", err)
			}
			must(t, os.RemoveAll(path))
			must(t, root.Ensure(h))
		})
	}
	t.Run("a link since", func(t *testing.T) {
		must(t, os.Rename(string(root), string(root)+".moved"))
		must(t, os.Symlink(string(root)+".moved", string(root)))
		if err := root.Ensure(h); err == nil || !strings.Contains(err.Error(), "symlink") {
			t.Errorf("got %v", err)
		}
	})
}

// wording is all that an error tells a person, what to do included.
func wording(err error) string {
	var r *reconcile.Refusal
	if errors.As(err, &r) {
		return r.Text + " " + r.Fix
	}
	return err.Error()
}
