package places

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// kernelView is what /proc shows of one running container. Nothing in it is the engine's
// word but which process is the container's first.
type kernelView struct {
	*Observer
	proof reconcile.Proof
	pid   int // here
	root  int // an open directory: the container's
}

// lookAtKernel fills in what the kernel says of a container's processes.
func (o *Observer) lookAtKernel(p reconcile.Proof, pid int, e *reconcile.Evidence) error {
	here, err := o.processOf(pid, p.ID)
	if err != nil {
		return fmt.Errorf("its first process can't be looked at by uid %d: it is gone, or another user's", os.Geteuid())
	}
	v := kernelView{Observer: o, proof: p, pid: here}
	if v.root, err = o.rootOf(pid, p.ID); err != nil {
		return fmt.Errorf("its root directory can't be opened: %w", bare(err))
	}
	defer unix.Close(v.root) //nolint:errcheck // nothing was written
	if e.Mounts, err = v.mounts(strconv.Itoa(v.pid)); err != nil {
		return fmt.Errorf("its mounts can't be read: %w", bare(err))
	}
	if e.HostMounts, err = v.hostMounts(); err != nil {
		return err
	}
	if err := v.processes(e); err != nil {
		return err
	}
	if e.Devices, err = v.devices(); err != nil {
		return fmt.Errorf("its devices can't be listed: %w", bare(err))
	}
	e.HostDevices = hostDevices(p.Container.Devices)
	e.UserIDs, e.GroupIDs = v.ids("uid_map"), v.ids("gid_map")
	e.Masks = v.masks()
	e.Sources = v.sources(e.Mounts)
	e.Limits = v.limits()
	// One that has ended meanwhile may have been another's all along.
	if again, err := o.processOf(pid, p.ID); err != nil || again != here {
		return errors.New("it was restarted while it was looked at")
	}
	return nil
}

func (v kernelView) file(pid int, name string) string {
	return filepath.Join(v.proc, strconv.Itoa(pid), name)
}

// mounts are those that a process has, by the name of its directory in /proc.
func (v kernelView) mounts(process string) ([]reconcile.MountPoint, error) {
	text, err := os.ReadFile(filepath.Join(v.proc, process, "mountinfo"))
	if err != nil {
		return nil, err
	}
	var out []reconcile.MountPoint
	for line := range strings.Lines(string(text)) {
		m, ok := reconcile.ParseMount(line)
		if !ok {
			return nil, fmt.Errorf("unknown line %q", strings.TrimSpace(line))
		}
		out = append(out, m)
	}
	return out, nil
}

// hostMounts are where the file systems of this host are mounted, by device: for the
// engine, whose mounts a rootless one has for itself, and for this process.
func (v kernelView) hostMounts() (map[string][]string, error) {
	parent, err := v.parent()
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, process := range []string{strconv.Itoa(parent), "self"} {
		mounts, err := v.mounts(process)
		if err != nil {
			return nil, fmt.Errorf("this host's mounts can't be read: %w", bare(err))
		}
		for _, m := range mounts {
			if !slices.Contains(out[m.Device], m.Target) {
				out[m.Device] = append(out[m.Device], m.Target)
			}
		}
	}
	return out, nil
}

// parent is the container's first process's: the engine's shim, which is in the engine's
// own namespaces.
func (v kernelView) parent() (int, error) {
	status, err := v.status(v.pid)
	if err != nil {
		return 0, err
	}
	parent, err := strconv.Atoi(status["PPid"])
	if err != nil || parent == 0 {
		return 0, errors.New("its parent, the engine's, isn't on this machine")
	}
	return parent, nil
}

// namespaces are those that a container has for itself.
var namespaces = []string{"ipc", "mnt", "net", "pid", "uts"}

// namespaceOf names a namespace, "net:[4026532008]".
func (v kernelView) namespaceOf(pid int, name string) (string, error) {
	return os.Readlink(v.file(pid, filepath.Join("ns", name)))
}

// processes reads each process of the machine that shares a namespace with the
// container. Another user's are left out: they can't be looked at, and are no
// container's of this engine.
func (v kernelView) processes(e *reconcile.Evidence) error {
	own := map[string]string{}
	for _, name := range append([]string{"user"}, namespaces...) {
		link, err := v.namespaceOf(v.pid, name)
		if err != nil {
			return fmt.Errorf("its namespaces can't be read: %w", bare(err))
		}
		own[name] = link
	}
	shared, err := v.shared(own)
	if err != nil {
		return err
	}
	e.Shared = shared
	entries, err := os.ReadDir(v.proc)
	if err != nil {
		return fmt.Errorf("processes can't be listed: %w", bare(err))
	}
	joined := map[string]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		in, err := v.namespaceOf(pid, "pid")
		if err != nil {
			continue
		}
		if in == own["pid"] && !slices.Contains(shared, "pid") || pid == v.pid {
			if p := v.process(pid, own); p != nil {
				e.Processes = append(e.Processes, *p)
			}
			continue
		}
		for _, name := range namespaces {
			if link, err := v.namespaceOf(pid, name); err == nil && link == own[name] && !slices.Contains(shared, name) {
				joined[name]++
			}
		}
	}
	for _, name := range namespaces {
		if n := joined[name]; n > 0 {
			e.Joined = append(e.Joined, fmt.Sprintf("%s: %d", name, n))
		}
	}
	slices.SortFunc(e.Processes, func(a, b reconcile.Process) int { return a.PID - b.PID })
	return nil
}

// shared are the namespaces that the container's first process has from its parent.
func (v kernelView) shared(own map[string]string) ([]string, error) {
	parent, err := v.parent()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range namespaces {
		link, err := v.namespaceOf(parent, name)
		if err != nil {
			return nil, fmt.Errorf("the engine's namespaces can't be read: %w", bare(err))
		}
		if link == own[name] {
			out = append(out, name)
		}
	}
	return out, nil
}

func (v kernelView) status(pid int) (map[string]string, error) {
	text, err := os.ReadFile(v.file(pid, "status"))
	if err != nil {
		return nil, fmt.Errorf("its status can't be read: %w", bare(err))
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		out[name] = strings.TrimSpace(value)
	}
	return out, nil
}

// process reads one process of the container; nil for one that has ended, a zombie too.
func (v kernelView) process(pid int, own map[string]string) *reconcile.Process {
	status, err := v.status(pid)
	if err != nil || strings.HasPrefix(status["State"], "Z") || strings.HasPrefix(status["State"], "X") {
		return nil
	}
	p := reconcile.Process{Name: status["Name"], NoNewPrivs: status["NoNewPrivs"] == "1"}
	numbers := strings.Fields(status["NSpid"])
	if len(numbers) > 0 {
		p.PID, _ = strconv.Atoi(numbers[len(numbers)-1])
	}
	for name, into := range map[string]*uint64{
		"CapEff": &p.Effective, "CapPrm": &p.Permitted, "CapInh": &p.Inheritable, "CapBnd": &p.Bounding, "CapAmb": &p.Ambient,
	} {
		if *into, err = strconv.ParseUint(status[name], 16, 64); err != nil {
			p.Err = "the kernel doesn't tell its " + name
		}
	}
	if p.Seccomp, err = strconv.Atoi(status["Seccomp"]); err != nil || status["NoNewPrivs"] == "" {
		p.Err = "the kernel doesn't tell of seccomp or new privileges"
	}
	for _, name := range append([]string{"user"}, namespaces...) {
		switch link, err := v.namespaceOf(pid, name); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			p.Err = "its namespaces can't be read"
		case link != own[name]:
			p.Elsewhere = append(p.Elsewhere, name)
		}
	}
	return &p
}

func (v kernelView) ids(name string) []reconcile.IDRange {
	text, err := os.ReadFile(v.file(v.pid, name))
	if err != nil {
		return nil
	}
	ranges, _ := reconcile.ParseIDMap(string(text))
	return ranges
}

// masks are the kernel's paths that this machine has.
func (v kernelView) masks() []string {
	var out []string
	for _, path := range reconcile.MaskedPaths() {
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// open opens a path as the container sees it: its symlinks must not lead out of it.
func (v kernelView) open(path string, flags uint64) (int, error) {
	return unix.Openat2(v.root, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
}

// maxDevFiles bounds what is listed of a space's /dev, in which its root may make files.
const maxDevFiles = 4096

// devices are the device nodes in the container's /dev, by their path in it, but for the
// terminals that it makes there.
func (v kernelView) devices() ([]reconcile.Device, error) {
	var out []reconcile.Device
	todo, seen := []string{""}, 0
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		fd, err := v.open(filepath.Join("/dev", dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if err != nil {
			return nil, fmt.Errorf("/dev/%s: %w", dir, err)
		}
		opened := os.NewFile(uintptr(fd), filepath.Join("/dev", dir))
		names, err := opened.Readdirnames(maxDevFiles)
		for _, name := range names {
			var info unix.Stat_t
			if unix.Fstatat(fd, name, &info, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it is gone
			}
			path := filepath.Join(dir, name)
			switch info.Mode & unix.S_IFMT {
			case unix.S_IFCHR, unix.S_IFBLK:
				out = append(out, reconcile.Device{Path: path, Number: numberOf(info)})
			case unix.S_IFDIR:
				if path != "pts" {
					todo = append(todo, path)
				}
			}
		}
		_ = opened.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, bare(err)
		}
		if seen += len(names); seen >= maxDevFiles {
			return nil, errors.New("it has too many files")
		}
	}
	slices.SortFunc(out, func(a, b reconcile.Device) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// numberOf tells which device a node is of; empty for another file.
func numberOf(info unix.Stat_t) string {
	kind := map[uint32]string{unix.S_IFCHR: "c", unix.S_IFBLK: "b"}[info.Mode&unix.S_IFMT]
	if kind == "" {
		return ""
	}
	return fmt.Sprintf("%s %d:%d", kind, unix.Major(info.Rdev), unix.Minor(info.Rdev))
}

// hostDevices are this host's own of those that were asked for ("source:target:permissions").
func hostDevices(asked []string) map[string]reconcile.Device {
	out := map[string]reconcile.Device{}
	for _, d := range asked {
		source, _, _ := strings.Cut(d, ":")
		path, err := filepath.EvalSymlinks(source)
		var info unix.Stat_t
		if err != nil || unix.Stat(path, &info) != nil || numberOf(info) == "" {
			continue
		}
		out[source] = reconcile.Device{Path: path, Number: numberOf(info)}
	}
	return out
}

// sources compares what is mounted with where it is to come from, for every target that
// was asked for and all that is mounted in one, and the init program with what the first
// process runs.
func (v kernelView) sources(mounts []reconcile.MountPoint) map[string]reconcile.Source {
	out := map[string]reconcile.Source{}
	for _, m := range mounts {
		for target, asked := range v.proof.Container.Mounts {
			rest, in := strings.CutPrefix(m.Target, target)
			if !in || rest != "" && (asked.Type != "bind" || !strings.HasPrefix(rest, "/")) {
				continue
			}
			if _, nearer := v.proof.Container.Mounts[m.Target]; nearer && rest != "" {
				continue
			}
			host := asked.Source
			if asked.Type == "volume" {
				host = filepath.Join(v.features.StorageDir, "volumes", asked.Source, "_data")
			}
			out[m.Target] = v.source(m.Target, filepath.Join(host, rest))
		}
		if _, asked := out[m.Target]; m.Target == reconcile.InitTarget && !asked {
			out[m.Target] = v.source(m.Target, v.file(v.pid, "exe"))
		}
	}
	return out
}

func (v kernelView) source(target, host string) reconcile.Source {
	s := reconcile.Source{Host: host}
	fd, err := v.open(target, unix.O_PATH)
	if err != nil {
		s.Err = "it can't be opened: " + err.Error()
		return s
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var inside, outside unix.Stat_t
	if err := unix.Fstat(fd, &inside); err != nil {
		s.Err = err.Error()
		return s
	}
	if err := unix.Stat(host, &outside); err != nil {
		s.Err = err.Error()
		return s
	}
	s.Inside = reconcile.Inode{Device: inside.Dev, Number: inside.Ino}
	s.Outside = reconcile.Inode{Device: outside.Dev, Number: outside.Ino}
	return s
}
