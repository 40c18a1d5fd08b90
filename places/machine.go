package places

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// SurveyMachine looks at the machine. What it can't see is told as unknown; it changes
// nothing, and asks no engine.
func SurveyMachine(ctx context.Context, h Host) reconcile.MachineFacts {
	return surveyMachine(ctx, h, "/")
}

// surveyMachine has the machine's files below root.
func surveyMachine(ctx context.Context, h Host, root string) reconcile.MachineFacts {
	at := machine(root)
	uid := strconv.Itoa(h.UID)
	m := reconcile.MachineFacts{
		UID: h.UID, RuntimeDir: h.RuntimeDir, RuntimeDirOwner: -1,
		Systemd:          at.exists("run/systemd/system"),
		UnprivilegedPort: at.number("proc/sys/net/ipv4/ip_unprivileged_port_start"),
		InotifyWatches:   at.number("proc/sys/fs/inotify/max_user_watches"),
		InotifyInstances: at.number("proc/sys/fs/inotify/max_user_instances"),
		Git:              gitVersion(ctx),
	}
	if info, err := os.Stat(h.RuntimeDir); h.RuntimeDir != "" && err == nil && info.IsDir() {
		m.RuntimeDirOwner = ownerOf(info)
	}
	name := uid
	if u, err := user.LookupId(uid); err == nil {
		name = u.Username
	}
	m.Lingers = at.exists("var/lib/systemd/linger/" + name)
	m.SubUIDs, m.SubGIDs = at.subIDs("etc/subuid", name, uid), at.subIDs("etc/subgid", name, uid)
	switch {
	case at.exists("sys/fs/cgroup/cgroup.controllers"):
		m.CgroupVersion = 2
		m.Controllers = strings.Fields(at.text(fmt.Sprintf("sys/fs/cgroup/user.slice/user-%s.slice/user@%[1]s.service/cgroup.controllers", uid)))
	case at.exists("proc/cgroups"):
		m.CgroupVersion = 1
	}
	m.Keys, m.MaxKeys = at.keys(uid)
	return m
}

// SurveyDataRoot adds what of a data root may be in the way.
func SurveyDataRoot(m *reconcile.MachineFacts, h Host, r DataRoot) {
	m.DataRoot, m.LockFile = string(r), r.ApplyLock()
	m.DataRootFileSystem = fileSystem(string(r))
	var refusal *reconcile.Refusal
	if err := r.check(h); errors.As(err, &refusal) {
		m.DataRootRefusal = refusal
	}
	m.Lock = lockHolder(r.ApplyLock())
}

// Examine asks an engine what a plan doesn't need to know.
func (e *Engine) Examine(ctx context.Context) (reconcile.EngineFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	info, err := e.docker.Info(ctx)
	if err != nil {
		return reconcile.EngineFacts{}, fmt.Errorf("cannot ask the engine at %s about itself: %w", e.endpoint, err)
	}
	return reconcile.EngineFacts{Engine: e.features, Known: true, Driver: info.Driver, Running: info.ContainersRunning}, nil
}

// machine is the folder that a machine's files are in: "/".
type machine string

func (at machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(string(at), path))
	return err == nil
}

func (at machine) text(path string) string {
	b, err := os.ReadFile(filepath.Join(string(at), path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (at machine) number(path string) int {
	n, err := strconv.Atoi(at.text(path))
	if err != nil {
		return -1
	}
	return n
}

// subIDs is how many ids a user may give to containers, subuid(5).
func (at machine) subIDs(path, name, uid string) int {
	b, err := os.ReadFile(filepath.Join(string(at), path))
	if err != nil {
		return -1
	}
	count := 0
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || fields[0] != name && fields[0] != uid {
			continue
		}
		if n, err := strconv.Atoi(fields[2]); err == nil && n > 0 {
			count += n
		}
	}
	return count
}

// keys is how many keys a user has in the kernel, and may have: the fourth field of
// /proc/key-users, keyrings(7).
func (at machine) keys(uid string) (have, most int) {
	for line := range strings.Lines(at.text("proc/key-users")) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != uid+":" {
			continue
		}
		used, limit, _ := strings.Cut(fields[3], "/")
		have, err := strconv.Atoi(used)
		most, err2 := strconv.Atoi(limit)
		if err == nil && err2 == nil {
			return have, most
		}
	}
	if !at.exists("proc/key-users") {
		return -1, -1
	}
	return 0, at.number("proc/sys/kernel/keys/maxkeys") // a user without any has no line
}

func gitVersion(ctx context.Context) string {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, "git", "--version")
	c.Env = []string{} // nothing of it could change what is asked
	out, err := c.Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
}

// check is what Ensure refuses of what is there, without making anything.
func (r DataRoot) check(h Host) error {
	for _, folder := range r.folders() {
		err := checkFolder(folder, h.UID)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fileSystem is the kind of file system that a path is on, or will be; empty for one
// that isn't known to be unfit.
func fileSystem(path string) string {
	var st unix.Statfs_t
	for ; ; path = filepath.Dir(path) {
		if err := unix.Statfs(path, &st); err == nil || path == "/" {
			break
		}
	}
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "cifs",
		unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p", unix.MSDOS_SUPER_MAGIC: "vfat",
	}[int64(st.Type)]
}

// lockHolder is who holds a lock, empty for nobody. The kernel's own list is read: to try
// the lock, even for a moment, could make an apply fail that wants it.
func lockHolder(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 6 && fields[1] == "FLOCK" && fields[5] == file {
			f, err := os.Open(path)
			if err != nil {
				return Holder{}.String()
			}
			defer f.Close()
			return readHolder(f).String()
		}
	}
	return ""
}
