package places

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// background is for the helper processes, which have no test's context.
func background() context.Context { return context.Background() }

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "apply.lock")
	holder := Holder{PID: os.Getpid(), Verb: "apply", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Folder: "/srv/acme"}
	lock, err := Acquire(t.Context(), path, holder, 0)
	must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("made as %v, %v", info.Mode(), err)
	}

	var busy *BusyError
	if _, err := Acquire(t.Context(), path, Holder{}, 0); !errors.As(err, &busy) || busy.Holder != holder {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"spaces apply", "pid " + strconv.Itoa(os.Getpid()), "2026-01-02T03:04:05Z", "/srv/acme", path} {
		if !strings.Contains(busy.Error(), part) {
			t.Errorf("%q doesn't name %q", busy, part)
		}
	}
	if _, err := Acquire(t.Context(), path, Holder{}, 30*time.Millisecond); !errors.As(err, &busy) || busy.Waited != 30*time.Millisecond {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Acquire(ctx, path, Holder{}, time.Minute); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}

	waited := make(chan error)
	go func() {
		next, err := Acquire(context.Background(), path, holder, time.Minute)
		if err == nil {
			err = next.Release()
		}
		waited <- err
	}()
	time.Sleep(20 * time.Millisecond)
	must(t, lock.Release())
	must(t, <-waited)
	if data, err := os.ReadFile(path); err != nil || len(data) != 0 {
		t.Errorf("after release: %q, %v", data, err)
	}
}

func TestLockRefused(t *testing.T) {
	dir := tree(t, "real", "link->real", "dir/")
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, name := range []string{"link", "dir", "fifo", "none/lock"} {
		var busy *BusyError
		if _, err := Acquire(t.Context(), filepath.Join(dir, name), Holder{}, 0); err == nil || errors.As(err, &busy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLockKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "apply.lock")
	cmd := helper(t, "hold", path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	var busy *BusyError
	if _, err := Acquire(t.Context(), path, Holder{}, 0); !errors.As(err, &busy) || busy.Holder.PID != cmd.Process.Pid {
		t.Fatalf("got %v", err)
	}
	must(t, cmd.Process.Kill())
	cmd.Wait()
	stale, err := os.ReadFile(path)
	must(t, err)
	if len(stale) == 0 {
		t.Fatal("the killed holder left no content, so that this shows nothing")
	}
	lock, err := Acquire(t.Context(), path, Holder{PID: os.Getpid(), Verb: "destroy"}, 0)
	must(t, err)
	// A holder that hasn't written yet: the content is another's, who is gone.
	must(t, os.WriteFile(path, stale, 0o600))
	if _, err := Acquire(t.Context(), path, Holder{}, 0); !errors.As(err, &busy) || busy.Holder.PID != 0 || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a dead holder was named: %v", err)
	}
	must(t, lock.Release())
}

func TestLockExcludes(t *testing.T) {
	dir := t.TempDir()
	path, counter := filepath.Join(dir, "apply.lock"), filepath.Join(dir, "counter")
	must(t, os.WriteFile(counter, []byte("0"), 0o600))
	var group sync.WaitGroup
	const processes = 4
	for range processes {
		cmd := helper(t, "count", path, counter)
		must(t, cmd.Start())
		group.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if data, err := os.ReadFile(counter); err != nil || string(data) != strconv.Itoa(processes*40) {
		t.Errorf("counted %s, %v", data, err)
	}
}

func TestAppliedFrom(t *testing.T) {
	base := tree(t, "a/", "b/", "link->a", "root/state/")
	root := DataRoot(filepath.Join(base, "root"))
	a, b, link := filepath.Join(base, "a"), filepath.Join(base, "b"), filepath.Join(base, "link")
	if from, err := root.AppliedElsewhere(a); from != "" || err != nil {
		t.Errorf("nobody applied, and got %q, %v", from, err)
	}
	must(t, root.SetAppliedFrom(a))
	for folder, want := range map[string]string{a: "", link: "", a + "/": "", b: a, filepath.Join(base, "none"): a} {
		if from, err := root.AppliedElsewhere(folder); from != want || err != nil {
			t.Errorf("from %s: %q, %v", folder, from, err)
		}
	}
	odd := filepath.Join(base, "odd\n\xff")
	must(t, root.SetAppliedFrom(odd))
	if from, err := root.AppliedFrom(); from != odd || err != nil {
		t.Errorf("got %q, %v", from, err)
	}
	if entries, err := os.ReadDir(root.Part(PartState)); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
	must(t, os.WriteFile(root.SourceFile(), nil, 0o600))
	if _, err := root.AppliedFrom(); err == nil {
		t.Error("an empty record was believed")
	}
	if err := DataRoot(filepath.Join(base, "none")).SetAppliedFrom(a); err == nil {
		t.Error("recorded in no folder")
	}
}
