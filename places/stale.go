package places

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// compareMounts looks whether a running container's single-file mounts still show the
// file that is at their source: an editor that saves by renaming leaves the container
// with the old one, and inspecting tells nothing
// (https://github.com/moby/moby/issues/15793).
func (s *survey) compareMounts(c *reconcile.ObservedContainer, pid int) {
	if pid <= 0 || c.State != reconcile.StateRunning && c.State != reconcile.StatePaused {
		return
	}
	root := -1
	for _, target := range slices.Sorted(maps.Keys(c.Mounts)) {
		m := c.Mounts[target]
		if m.Type != "bind" || isDirectory(m.Source) {
			continue
		}
		if root < 0 {
			fd, err := s.rootOf(pid, c.ID)
			if err != nil {
				c.Unread = append(c.Unread, target)
				continue
			}
			root = fd
			defer unix.Close(fd) //nolint:errcheck // nothing was written
		}
		switch same, err := sameFile(root, target, m.Source); {
		case err != nil:
			c.Unread = append(c.Unread, target)
		case !same:
			c.Stale = append(c.Stale, target)
		}
	}
}

// isDirectory is true for what can't go stale: a directory shows whatever is in it.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// sameFile compares by device and inode. A source that is gone was replaced by nothing.
func sameFile(root int, target, source string) (bool, error) {
	// Resolved as the container does: its symlinks must not lead out of it.
	fd, err := unix.Openat2(root, target, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return false, err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var inside, outside unix.Stat_t
	if err := unix.Fstat(fd, &inside); err != nil {
		return false, err
	}
	switch err := unix.Stat(source, &outside); {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	}
	return inside.Dev == outside.Dev && inside.Ino == outside.Ino, nil
}

// rootOf opens the root directory of a container's first process, as its pid is known
// to the engine.
func (s *Observer) rootOf(pid int, id string) (int, error) {
	here, err := s.processOf(pid, id)
	if err != nil {
		return -1, err
	}
	return unix.Open(filepath.Join(s.proc, strconv.Itoa(here), "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// processOf is the number here of a container's first process, as its pid is known to
// the engine. That may live in a PID namespace of its own, where our number is another;
// so a process counts only if its mounts are this container's.
func (s *Observer) processOf(pid int, id string) (int, error) {
	if s.mountsFilesOf(pid, id) {
		return pid, nil
	}
	for _, candidate := range s.candidates(pid) {
		if s.mountsFilesOf(candidate, id) {
			return candidate, nil
		}
	}
	return 0, fmt.Errorf("no process %d of container %s", pid, id)
}

// candidates are the processes that go by a pid in their own or an outer namespace.
func (s *Observer) candidates(pid int) []int {
	entries, err := os.ReadDir(s.proc)
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if candidate, err := strconv.Atoi(e.Name()); err == nil && s.goesBy(candidate, pid) {
			out = append(out, candidate)
		}
	}
	return out
}

// goesBy is true where one of the pids that a process has, in whichever namespace, is
// the one given.
func (s *Observer) goesBy(candidate, pid int) bool {
	status, err := os.ReadFile(filepath.Join(s.proc, strconv.Itoa(candidate), "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if pids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return slices.Contains(strings.Fields(pids), strconv.Itoa(pid))
		}
	}
	return false
}

// mountsFilesOf is true for a process in a container's mount namespace: the engine
// mounts files there from a directory of its own that is called by the container's id.
func (s *Observer) mountsFilesOf(pid int, id string) bool {
	f, err := os.Open(filepath.Join(s.proc, strconv.Itoa(pid), "mountinfo"))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	part := "/containers/" + id + "/"
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := reconcile.ParseMount(lines.Text()); ok && strings.Contains(m.Root, part) && strings.HasPrefix(m.Target, "/etc/") {
			return true
		}
	}
	return false
}
