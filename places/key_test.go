package places

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// helperVariable makes a run of this test binary a helper process: see TestHostHelper.
const helperVariable = "SPACES_TEST_HOST_HELPER"

// helper is a run of this test binary that does one thing.
func helper(t *testing.T, verb string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"-test.run=^TestHostHelper$", "--", verb}, args...)...)
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// TestHostHelper isn't a test: it is what the processes do that other tests start.
func TestHostHelper(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		t.Skip("not a helper process")
	}
	args := os.Args
	for args[0] != "--" {
		args = args[1:]
	}
	if err := hostHelper(args[1], args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func hostHelper(verb string, args []string) error {
	h := Host{UID: os.Getuid()}
	switch verb {
	case "key": // wait for a line, then make the key and print its name
		bufio.NewReader(os.Stdin).ReadString('\n')
		key, err := EnsureKey(args[0], h)
		if err != nil {
			return err
		}
		fmt.Println(key.KeyID())
	case "keys": // make keys in new folders until killed
		for i := 0; ; i++ {
			dir := filepath.Join(args[0], strconv.Itoa(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			if _, err := EnsureKey(filepath.Join(dir, "key"), h); err != nil {
				return err
			}
			if i == 0 {
				fmt.Println("started")
			}
		}
	case "hold": // hold a lock until killed
		if _, err := Acquire(background(), args[0], Holder{PID: os.Getpid(), Verb: "apply", Since: time.Unix(0, 0), Folder: "/f"}, 0); err != nil {
			return err
		}
		fmt.Println("held")
		select {}
	case "count": // count in a file under a lock
		for range 40 {
			lock, err := Acquire(background(), args[0], Holder{PID: os.Getpid()}, time.Minute)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(args[1])
			if err != nil {
				return err
			}
			n, _ := strconv.Atoi(string(data))
			if err := os.WriteFile(args[1], []byte(strconv.Itoa(n+1)), 0o600); err != nil {
				return err
			}
			if err := lock.Release(); err != nil {
				return err
			}
		}
	case "load": // load a key as this user and print what comes of it
		key, err := LoadKey(args[0], h)
		fmt.Println(key != nil, err)
	}
	return nil
}

func TestKey(t *testing.T) {
	h := Host{UID: os.Getuid()}
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if key, err := LoadKey(path, h); key != nil || err != nil {
		t.Fatalf("no key, and got %v, %v", key, err)
	}
	if key, err := LoadKey(filepath.Join(dir, "none", "key"), h); key != nil || err != nil {
		t.Fatalf("no folder, and got %v, %v", key, err)
	}
	key, err := EnsureKey(path, h)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode() != 0o600 || info.Size() != keySize {
		t.Errorf("made as %v, %d bytes", info.Mode(), info.Size())
	}
	again, err := EnsureKey(path, h)
	must(t, err)
	loaded, err := LoadKey(path, h)
	must(t, err)
	if key.KeyID() != again.KeyID() || key.KeyID() != loaded.KeyID() || len(key.KeyID()) != 16 {
		t.Errorf("key ids %s, %s, %s", key.KeyID(), again.KeyID(), loaded.KeyID())
	}
	if key.Digest("a", "b") != loaded.Digest("a", "b") {
		t.Error("one key, two digests")
	}
	seen := map[string]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"ab", ""}, {"", "ab"}, {"a", "b", ""}} {
		d := key.Digest(parts...)
		if other, ok := seen[d]; ok || len(d) != 64 {
			t.Errorf("%q and %s have one digest: %s", parts, other, d)
		}
		seen[d] = fmt.Sprintf("%q", parts)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
	if _, err := EnsureKey(filepath.Join(dir, "none", "key"), h); err == nil {
		t.Error("made a key in no folder")
	}
}

func TestMakeKey(t *testing.T) {
	for name, create := range map[string]func(string) (*os.File, string, error){"unnamed": unnamed, "named": named} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			must(t, makeKey(path, create))
			first, err := os.ReadFile(path)
			must(t, err)
			must(t, makeKey(path, create)) // a second starter loses and is content
			second, err := os.ReadFile(path)
			must(t, err)
			if string(first) != string(second) || len(first) != keySize {
				t.Error("the second starter took the first one's place")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("left in the folder: %v, %v", entries, err)
			}
		})
	}
}

func TestKeyRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(path string) error
		root       bool
	}{
		{name: "mode", want: "chmod 600", spoil: func(p string) error { return os.Chmod(p, 0o640) }},
		{name: "setuid", want: "mode is 4600", spoil: func(p string) error { return syscall.Chmod(p, 0o4600) }},
		{name: "short", want: "isn't 32 bytes", spoil: func(p string) error { return os.Truncate(p, 31) }},
		{name: "empty", want: "isn't 32 bytes", spoil: func(p string) error { return os.Truncate(p, 0) }},
		{name: "long", want: "isn't 32 bytes", spoil: func(p string) error { return os.Truncate(p, 33) }},
		{name: "symlink", want: "symlink", spoil: func(p string) error {
			return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p))
		}},
		{name: "fifo", want: "not a regular file", spoil: func(p string) error {
			return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600))
		}},
		{name: "directory", want: "not a regular file", spoil: func(p string) error {
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o600))
		}},
		{name: "owner", want: "belongs to user 1234", spoil: func(p string) error { return os.Chown(p, 1234, -1) }, root: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				t.Skip("needs root")
			}
			path := filepath.Join(t.TempDir(), "key")
			h := Host{UID: os.Getuid()}
			_, err := EnsureKey(path, h)
			must(t, err)
			must(t, c.spoil(path))
			for what, f := range map[string]func() error{
				"load":   func() error { _, err := LoadKey(path, h); return err },
				"ensure": func() error { _, err := EnsureKey(path, h); return err },
			} {
				if err := f(); err == nil || !strings.Contains(wording(err), c.want) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestKeyOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	_, err := EnsureKey(path, Host{})
	must(t, err)
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	cmd := helper(t, "load", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234, NoSetGroups: true}}
	// The test binary may stand where that user can't go.
	exe, err := os.Open("/proc/self/exe")
	must(t, err)
	defer exe.Close()
	copied := filepath.Join(dir, "test")
	out, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE, 0o755)
	must(t, err)
	_, err = io.Copy(out, exe)
	must(t, errors.Join(err, out.Close()))
	cmd.Path = copied
	got, err := cmd.Output()
	must(t, err)
	if !strings.Contains(string(got), "false cannot read the key") || !strings.Contains(string(got), "permission denied") {
		t.Errorf("got %q", got)
	}
}

func TestKeyRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	const starters = 6
	gate, release, err := os.Pipe()
	must(t, err)
	defer gate.Close()
	ids := make([]string, starters)
	var group sync.WaitGroup
	for i := range starters {
		cmd := helper(t, "key", path)
		cmd.Stdin = gate
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		group.Go(func() {
			data, _ := io.ReadAll(out)
			ids[i] = string(data)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	release.Close() // all go at once
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("starters disagree: %q", ids)
		}
	}
}

func TestKeyKilled(t *testing.T) {
	h := Host{UID: os.Getuid()}
	made, missing := 0, 0
	for range 15 {
		base := t.TempDir()
		cmd := helper(t, "keys", base)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		bufio.NewReader(out).ReadString('\n')
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		must(t, cmd.Process.Kill())
		cmd.Wait()
		dirs, err := os.ReadDir(base)
		must(t, err)
		for _, dir := range dirs {
			path := filepath.Join(base, dir.Name(), "key")
			key, err := LoadKey(path, h)
			if err != nil {
				t.Fatalf("a kill left a broken key: %v", err)
			}
			if key == nil {
				missing++
			} else {
				made++
			}
			next, err := EnsureKey(path, h)
			if err != nil || key != nil && next.KeyID() != key.KeyID() {
				t.Fatalf("the next start: %v", err)
			}
		}
	}
	if made == 0 {
		t.Error("no key was ever made")
	}
	t.Logf("%d keys made, %d killed before", made, missing)
}
