package reconcile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// has is true for a mount with an option.
func (m MountPoint) has(option string) bool { return slices.Contains(m.Options, option) }

// standardMount is what the engine and its runtime mount in every container, whatever it
// was asked for. docs/verify.md lists them.
type standardMount struct {
	target string
	// kinds are the file systems that it may be of; none means any.
	kinds []string
	// root is what of the file system it must be: "=" and the whole, "*" and how it ends.
	root string
	// options are those that it must have.
	options []string
	// need says when it must be there: "always", "init" for a space with an init, "mask"
	// where this machine's kernel has the path; otherwise it may be.
	need string
	what string
}

// standardMounts are the mounts of every container (runc's libcontainer/rootfs_linux.go, moby's
// daemon/oci_linux.go and oci/defaults.go).
var standardMounts = []standardMount{
	{"/proc", []string{"proc"}, "=/", []string{"nosuid", "nodev", "noexec"}, "always", "processes"},
	{"/dev", []string{"tmpfs"}, "=/", []string{"nosuid"}, "always", "devices"},
	{"/dev/pts", []string{"devpts"}, "=/", []string{"nosuid", "noexec"}, "always", "terminals"},
	{"/dev/mqueue", []string{"mqueue"}, "=/", []string{"nosuid", "nodev", "noexec"}, "always", "message queues"},
	{"/dev/shm", []string{"tmpfs"}, "=/", []string{"nosuid", "nodev", "noexec"}, "always", "shared memory"},
	{"/sys", []string{"sysfs"}, "=/", []string{"ro", "nosuid", "nodev", "noexec"}, "always", "the kernel's objects"},
	{"/sys/fs/cgroup", []string{"cgroup2"}, "", []string{"ro", "nosuid", "nodev", "noexec"}, "always", "control groups, version 2"},
	{"/sys/fs/cgroup", []string{"tmpfs"}, "=/", []string{"nosuid", "nodev", "noexec"}, "always", "where those of version 1 are"},
	{"/sys/fs/cgroup/*", []string{"cgroup"}, "", []string{"ro", "nosuid", "nodev", "noexec"}, "", "control groups, version 1"},
	{"/etc/resolv.conf", nil, "*/containers/ID/resolv.conf", nil, "always", "the resolver"},
	{"/etc/hostname", nil, "*/containers/ID/hostname", nil, "always", "the host name"},
	{"/etc/hosts", nil, "*/containers/ID/hosts", nil, "always", "host names"},
	{InitTarget, nil, "", []string{"ro"}, "init", "the init program"},
	{"/dev/null", []string{"devtmpfs"}, "=/null", nil, "", "a device, on rootless engines"},
	{"/dev/zero", []string{"devtmpfs"}, "=/zero", nil, "", "a device, on rootless engines"},
	{"/dev/full", []string{"devtmpfs"}, "=/full", nil, "", "a device, on rootless engines"},
	{"/dev/tty", []string{"devtmpfs"}, "=/tty", nil, "", "a device, on rootless engines"},
	{"/dev/random", []string{"devtmpfs"}, "=/random", nil, "", "a device, on rootless engines"},
	{"/dev/urandom", []string{"devtmpfs"}, "=/urandom", nil, "", "a device, on rootless engines"},
	{"/proc/bus", []string{"proc"}, "=/bus", []string{"ro"}, "mask", "made read-only"},
	{"/proc/fs", []string{"proc"}, "=/fs", []string{"ro"}, "mask", "made read-only"},
	{"/proc/irq", []string{"proc"}, "=/irq", []string{"ro"}, "mask", "made read-only"},
	{"/proc/sys", []string{"proc"}, "=/sys", []string{"ro"}, "mask", "made read-only"},
	{"/proc/sysrq-trigger", []string{"proc"}, "=/sysrq-trigger", []string{"ro"}, "mask", "made read-only"},
	{"/proc/acpi", []string{"tmpfs"}, "=/", []string{"ro"}, "mask", "hidden"},
	{"/proc/kcore", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "mask", "hidden"},
	{"/proc/keys", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "mask", "hidden"},
	{"/proc/timer_list", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "mask", "hidden"},
	{"/sys/firmware", []string{"tmpfs"}, "=/", []string{"ro"}, "mask", "hidden"},
	{"/proc/latency_stats", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "", "hidden"},
	{"/proc/timer_stats", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "", "hidden"},
	{"/proc/sched_debug", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "", "hidden"},
	{"/proc/interrupts", []string{"tmpfs", "devtmpfs"}, "=/null", nil, "", "hidden, by newer engines"},
	{"/proc/scsi", []string{"tmpfs"}, "=/", []string{"ro"}, "", "hidden"},
	{"/proc/asound", []string{"tmpfs"}, "=/", []string{"ro"}, "", "hidden"},
	{"/sys/devices/virtual/powercap", []string{"tmpfs"}, "=/", []string{"ro"}, "", "hidden, by newer engines"},
	{"/sys/devices/system/cpu/*", []string{"tmpfs"}, "=/", []string{"ro"}, "", "hidden, by newer engines"},
}

// InitTarget is where the engine mounts the init program of a container that is to have one.
const InitTarget = "/sbin/docker-init"

// StandardMount is a mount of every container, for the reader.
type StandardMount struct {
	Target string
	What   string
	// Options are those that it must have.
	Options []string
	// Need says when it must be there.
	Need string
}

// StandardMounts are what a space has mounted without asking.
func StandardMounts() []StandardMount {
	needs := map[string]string{
		"always": "always", "init": "with an init", "mask": "where the kernel has it", "": "may be",
	}
	var out []StandardMount
	for _, s := range standardMounts {
		out = append(out, StandardMount{s.target, s.what, s.options, needs[s.need]})
	}
	return out
}

// MaskedPaths are the kernel's paths that no container may see or write, where a machine
// has them.
func MaskedPaths() []string {
	var out []string
	for _, s := range standardMounts {
		if s.need == "mask" {
			out = append(out, s.target)
		}
	}
	return out
}

func (s standardMount) is(target string) bool {
	dir, any := strings.CutSuffix(s.target, "/*")
	if !any {
		return s.target == target
	}
	return target != dir && below(target, dir)
}

// amiss says how a mount isn't what stands in the table; empty for nothing.
func (s standardMount) amiss(m MountPoint, p Proof) string {
	if len(s.kinds) > 0 && !slices.Contains(s.kinds, m.Type) {
		return "is of type " + m.Type
	}
	root := strings.ReplaceAll(s.root, "ID", p.ID)
	if whole, exact := strings.CutPrefix(root, "="); exact && m.Root != whole {
		return "shows " + m.Root
	}
	if end, ends := strings.CutPrefix(root, "*"); ends && !strings.HasSuffix(m.Root, end) {
		return "shows " + m.Root
	}
	for _, o := range s.options {
		// An engine that gives containers users of their own can't make this one read-only
		// (moby's daemon/oci_linux.go, clearReadOnly); it is the host's root's to write.
		groups := o == "ro" && p.Engine.Remaps && strings.HasPrefix(m.Type, "cgroup")
		if !groups && !m.has(o) {
			return "lacks " + o
		}
	}
	return ""
}

// mounts compares the whole table: what was asked for, what every container has, and
// nothing else.
func (j *trial) mounts() {
	var found []string
	tell := func(target, what string) {
		if what != "" {
			found = append(found, target+" "+what)
		}
	}
	seen := map[string]bool{}
	for _, m := range j.e.Mounts {
		if seen[m.Target] {
			tell(m.Target, "is mounted over")
		}
		seen[m.Target] = true
		if m.Target != "/" {
			tell(m.Target, j.amiss(m))
		}
	}
	for _, target := range slices.Concat(sortedKeys(j.Container.Mounts), sortedKeys(j.Container.Tmpfs)) {
		if !seen[path.Clean(target)] {
			tell(target, "isn't mounted")
		}
	}
	for _, s := range standardMounts {
		needed := s.need == "always" || s.need == "init" && j.Container.Init || s.need == "mask" && slices.Contains(j.e.Masks, s.target)
		if needed && !seen[s.target] {
			tell(s.target, "isn't mounted ("+s.what+")")
		}
	}
	want := "nothing but what every container has"
	if n := len(j.Container.Mounts) + len(j.Container.Tmpfs); n > 0 {
		want = fmt.Sprintf("%d as asked, and what every container has", n)
	}
	j.settle(CheckMounts, want, found)
}

// amiss says how one mount isn't as it was asked for. What was asked for at a path goes
// before what every container has there.
func (j *trial) amiss(m MountPoint) string {
	if m.Shared {
		return "shows on the host what is mounted in it"
	}
	if asked, is := j.Container.Mounts[m.Target]; is {
		return j.amissSource(m, asked)
	}
	if options, is := j.Container.Tmpfs[m.Target]; is {
		if what := j.amissFresh(m); what != "" {
			return what
		}
		return amissTmpfs(m, options)
	}
	standard, what := false, ""
	for _, s := range standardMounts {
		if !s.is(m.Target) || s.need == "init" && !j.Container.Init {
			continue
		}
		switch what = s.amiss(m, j.Proof); {
		case what != "":
		case s.need == "init":
			what = j.amissInit()
		case m.Type == "tmpfs":
			what = j.amissFresh(m)
		}
		if what == "" {
			return ""
		}
		standard = true
	}
	if standard {
		return what
	}
	for _, d := range j.Container.Devices {
		if parts := strings.Split(d, ":"); len(parts) > 1 && parts[1] == m.Target && m.Type == "devtmpfs" {
			if "/dev"+m.Root == j.e.HostDevices[parts[0]].Path {
				return ""
			}
			return "shows " + m.Root + ", not " + parts[0]
		}
	}
	// What is mounted in a granted directory on the host is given with it, but never for
	// writing where the grant isn't.
	for _, target := range sortedKeys(j.Container.Mounts) {
		if asked := j.Container.Mounts[target]; asked.Type == "bind" && below(m.Target, target) {
			if what := j.amissSource(m, asked); what != "" {
				return what + " (in the grant at " + target + ")"
			}
			return ""
		}
	}
	return "is nobody's: " + m.Type + " " + m.Root
}

// amissFresh looks that a tmpfs was made for the container: one of this host's own, as its
// /run is, has the same type and options, and sockets in it. The engine itself keeps the
// shared memory of a container mounted at a place of its own.
func (j *trial) amissFresh(m MountPoint) string {
	if m.Type != "tmpfs" {
		return "is of type " + m.Type
	}
	if len(j.e.HostMounts) == 0 {
		return "can't be told from this host's own: its mounts can't be read"
	}
	for _, at := range j.e.HostMounts[m.Device] {
		if m.Target != "/dev/shm" || !strings.HasSuffix(at, "/containers/"+j.ID+"/mounts/shm") {
			return "is this host's own " + at
		}
	}
	return ""
}

// amissInit looks that what is mounted as the init program is what the first process runs:
// any other file there would be one that somebody gave.
func (j *trial) amissInit() string {
	switch s, looked := j.e.Sources[InitTarget]; {
	case !looked:
		return "was not compared with what the first process runs"
	case s.Err != "":
		return "can't be compared with what the first process runs: " + s.Err
	case s.Inside != s.Outside:
		return "isn't what the first process runs"
	}
	return ""
}

func (j *trial) amissSource(m MountPoint, asked Mount) string {
	s, looked := j.e.Sources[m.Target]
	switch {
	case !looked:
		return "was not compared with its source"
	case s.Err != "":
		return "can't be compared with " + s.Host + ": " + s.Err
	case s.Inside != s.Outside:
		return "isn't what is at " + s.Host
	case asked.Type == "volume" && !strings.HasSuffix(m.Root, "/"+asked.Source+"/_data"):
		// A volume that was made of another directory has that mounted where its own would
		// be, so that both sides are the same.
		return "shows " + m.Root + ", which isn't the volume's own"
	case !asked.Writable && !m.has("ro"):
		return "is writable"
	case asked.Writable && !m.has("rw"):
		return "is read-only"
	case asked.Type == "bind" && m.Follows:
		return "follows what is mounted on the host later"
	}
	return ""
}

func amissTmpfs(m MountPoint, asked string) string {
	if m.Root != "/" {
		return "shows " + m.Root
	}
	options := strings.Split(asked, ",")
	want := []string{"nosuid", "nodev", "rw"}
	if !slices.Contains(options, "exec") {
		want = append(want, "noexec")
	}
	for _, o := range want {
		if !m.has(o) {
			return "lacks " + o
		}
	}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		if name != "size" && name != "mode" {
			continue
		}
		if shown := tmpfsOption(name, value); shown != "" && !slices.Contains(m.Super, shown) {
			return "lacks " + shown
		}
	}
	return ""
}

// tmpfsOption is how the kernel shows an option: sizes in KiB of whole pages, and a mode
// only if it isn't the usual.
func tmpfsOption(name, value string) string {
	const page = 4096
	if name == "size" {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return name + "=" + value
		}
		return fmt.Sprintf("size=%dk", (n+page-1)/page*page/1024)
	}
	mode := strings.TrimLeft(value, "0")
	if mode == "1777" {
		return ""
	}
	return "mode=" + mode
}
