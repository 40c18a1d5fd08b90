package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"spaces/schema"
)

// Rating is how a thing that was looked at is.
type Rating string

// The ratings, the worst last.
const (
	RatingFine    Rating = "ok"
	RatingUnknown Rating = "unknown" // nobody could look
	RatingWarning Rating = "warning" // it will be in the way sooner or later
	RatingRefused Rating = "refused" // a plan or its apply would be refused
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string
	Rating Rating
	Text   string
	// Fix is what to do; empty where there is nothing to.
	Fix string
	// Code is a refusal's.
	Code   string
	Origin schema.Origin
}

// checks are the judgements of a machine, in the order they are told.
var checks = []struct {
	name  string
	judge func(MachineFacts) Finding
}{
	{"endpoint", judgeEndpoint},
	{"engine release", judgeRelease},
	{"storage driver", judgeDriver},
	{"cgroups", judgeCgroups},
	{"key quota", judgeKeys},
	{"ids for containers", judgeIDs},
	{"runtime directory", judgeRuntimeDir},
	{"lingering", judgeLingering},
	{"low ports", judgePorts},
	{"inotify", judgeInotify},
	{"data root", judgeDataRoot},
	{"apply lock", judgeLock},
	{"git", judgeGit},
}

// Examine judges a machine: each check once, whatever it comes to.
func Examine(m MachineFacts) []Finding {
	out := make([]Finding, 0, len(checks))
	for _, c := range checks {
		f := c.judge(m)
		f.Check = c.name
		out = append(out, f)
	}
	return out
}

// ExamineEngine is what an engine would have refused of a project that asks for nothing
// unusual: one space with the limits that every space has, on an internal network.
func ExamineEngine(e Engine) []Refusal {
	d := Desired{
		Project: "p", Mode: schema.ModeContainerized, Endpoint: e.Endpoint,
		Networks: []Network{{Name: "p-n", Internal: true, NoEgress: true}},
		Spaces:   []Space{{Object: schema.Object{Address: schema.Address{Kind: "space", Name: "s"}}, Kind: KindSpace, Container: hardened()}},
	}
	w := newWorld(d, HostFacts{}, Actual{Engine: e}, Options{})
	w.engineRefusals()
	return w.plan.Refusals
}

// FindingOf makes a finding of a refusal.
func FindingOf(check string, r Refusal) Finding {
	return Finding{Check: check, Rating: RatingRefused, Text: r.Text, Fix: r.Fix, Code: r.Code, Origin: r.Origin}
}

func fine(format string, args ...any) Finding {
	return Finding{Rating: RatingFine, Text: fmt.Sprintf(format, args...)}
}

func warning(fix, format string, args ...any) Finding {
	return Finding{Rating: RatingWarning, Text: fmt.Sprintf(format, args...), Fix: fix}
}

func unknown(format string, args ...any) Finding {
	return Finding{Rating: RatingUnknown, Text: fmt.Sprintf(format, args...)}
}

func judgeEndpoint(m MachineFacts) Finding {
	switch {
	case m.EndpointRefusal != nil:
		return FindingOf("", *m.EndpointRefusal)
	case !m.Engine.Known:
		return unknown("no engine was asked")
	case !m.Engine.Rootless:
		return warning("", "%s at %s runs as root, which the files accept", m.Engine.Name, m.Endpoint)
	}
	return fine("%s at %s is rootless", m.Engine.Name, m.Endpoint)
}

// The releases of Docker that this program was tested with: what comes later is likely to
// do, and hasn't been seen to.
const newestRelease = 29

func judgeRelease(m MachineFacts) Finding {
	if !m.Engine.Known {
		return unknown("no engine was asked")
	}
	name := m.Engine.Name
	version := strings.TrimPrefix(name, "Docker ")
	major, _, _ := strings.Cut(version, ".")
	switch n, err := strconv.Atoi(major); {
	case err != nil:
		return warning("use a release of Docker's, 20.10 or later", "%s is no release that is known, and is taken for the oldest", name)
	case n > newestRelease:
		return warning("", "%s is newer than what this program was made for; what of it isn't known is drift", name)
	case m.Engine.InternalDNSLeaks:
		return warning("use Docker 25.0.5 or later", "%s lets names out of internal networks (CVE-2024-29018); spaces are given no resolver there", name)
	}
	return fine("%s", name)
}

func judgeDriver(m MachineFacts) Finding {
	switch d := m.Engine.Driver; {
	case !m.Engine.Known:
		return unknown("no engine was asked")
	case d == "vfs":
		return warning("use overlay2, from Linux 5.11 on, or fuse-overlayfs", "vfs copies the whole image for each container: slow, and much of the disk")
	default:
		return fine("%s", d)
	}
}

const delegate = "as root, write\n[Service]\nDelegate=cpu cpuset io memory pids\nto /etc/systemd/system/user@.service.d/delegate.conf, type systemctl daemon-reload, and log in again"

func judgeCgroups(m MachineFacts) Finding {
	switch {
	case m.CgroupVersion == 1 && (!m.Engine.Known || m.Engine.Rootless):
		return warning("start the system with cgroup v2 (systemd.unified_cgroup_hierarchy=1)", "cgroup v1: a rootless engine holds no space to its limits")
	case m.CgroupVersion == 1:
		return fine("cgroup v1, and the engine runs as root")
	case m.CgroupVersion != 2:
		return unknown("there are no cgroups to see")
	case m.Engine.Known && !m.Engine.Rootless:
		return fine("cgroup v2, and the engine runs as root")
	case !m.Systemd:
		return unknown("cgroup v2, without systemd to hand controllers on")
	}
	var lacking []string
	for _, c := range []string{"cpu", "memory", "pids"} {
		if !slices.Contains(m.Controllers, c) {
			lacking = append(lacking, c)
		}
	}
	if len(lacking) > 0 {
		return warning(delegate, "cgroup v2, and you haven't been handed %s: a rootless engine can't hold spaces to those limits", strings.Join(lacking, ", "))
	}
	return fine("cgroup v2, with %s handed to you", strings.Join(m.Controllers, ", "))
}

func judgeKeys(m MachineFacts) Finding {
	switch {
	case m.Keys < 0 || m.MaxKeys < 0:
		return unknown("the kernel doesn't tell")
	case m.UID == 0, m.Engine.Known && !m.Engine.Rootless:
		return fine("root has more than containers take")
	}
	const fix = "as root: sysctl -w kernel.keys.maxkeys=2000 kernel.keys.maxbytes=200000, and the same in /etc/sysctl.d"
	text := fmt.Sprintf("you have %d of %d keys; each container takes one, and none is left for the next: it fails with \"disk quota exceeded\" at its session keyring", m.Keys, m.MaxKeys)
	left := m.MaxKeys - m.Keys
	switch {
	case left <= 0:
		return warning(fix, "%s", text)
	case left < m.MaxKeys/5:
		return warning(fix, "you have %d of %d keys, and each container takes one: %d more can start", m.Keys, m.MaxKeys, left)
	}
	return fine("%d of %d, one for each container", m.Keys, m.MaxKeys)
}

func judgeIDs(m MachineFacts) Finding {
	const enough = 65536
	switch {
	case m.UID == 0, m.Engine.Known && !m.Engine.Rootless:
		return fine("root has all")
	case m.SubUIDs < 0 || m.SubGIDs < 0:
		return unknown("/etc/subuid and /etc/subgid can't be read")
	case m.SubUIDs < enough || m.SubGIDs < enough:
		return warning("as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 YOU, with a range that nobody has",
			"you may give containers %d user ids and %d group ids; a rootless engine wants %d of each", m.SubUIDs, m.SubGIDs, enough)
	}
	return fine("%d users, %d groups", m.SubUIDs, m.SubGIDs)
}

func judgeRuntimeDir(m MachineFacts) Finding {
	const fix = "log in by the system's own login (ssh, machinectl shell; not su or sudo), or set XDG_RUNTIME_DIR to a folder of yours, 0700"
	switch {
	case m.RuntimeDir == "":
		return warning(fix, "XDG_RUNTIME_DIR isn't set: a rootless engine can't be started, and its socket isn't found where it usually is")
	case m.RuntimeDirOwner < 0:
		return warning(fix, "XDG_RUNTIME_DIR names %s, and there is no such folder", m.RuntimeDir)
	case m.RuntimeDirOwner != m.UID:
		return warning(fix, "XDG_RUNTIME_DIR names %s, which is user %d's", m.RuntimeDir, m.RuntimeDirOwner)
	}
	return fine("%s", m.RuntimeDir)
}

func judgeLingering(m MachineFacts) Finding {
	switch {
	case !m.Systemd:
		return fine("no systemd ends what you run when you log out")
	case m.UID == 0, m.Engine.Known && !m.Engine.Rootless:
		return fine("the engine isn't a user's")
	case !m.Lingers:
		return warning(`sudo loginctl enable-linger "$USER"`, "your engine, and all on it, ends with your last login, and doesn't come back by itself")
	}
	return fine("the engine outlives your logins")
}

func judgePorts(m MachineFacts) Finding {
	switch {
	case m.UID == 0, m.Engine.Known && !m.Engine.Rootless:
		return fine("any can be published")
	case m.UnprivilegedPort < 0:
		return unknown("the kernel doesn't tell")
	}
	return fine("from %d up can be published", m.UnprivilegedPort)
}

func judgeInotify(m MachineFacts) Finding {
	const few, instances = 8192, 128
	switch {
	case m.InotifyWatches < 0 || m.InotifyInstances < 0:
		return unknown("the kernel doesn't tell")
	case m.InotifyWatches < few || m.InotifyInstances < instances:
		return warning("as root: sysctl -w fs.inotify.max_user_watches=65536 fs.inotify.max_user_instances=256",
			"%d watches and %d instances, which editors and watchers share: \"spaces watch\" may get none", m.InotifyWatches, m.InotifyInstances)
	}
	return fine("%d watches, %d instances", m.InotifyWatches, m.InotifyInstances)
}

func judgeDataRoot(m MachineFacts) Finding {
	switch {
	case m.DataRootRefusal != nil:
		return FindingOf("", *m.DataRootRefusal)
	case m.DataRoot == "":
		return unknown("no project says where it is")
	case slices.Contains([]string{"nfs", "cifs", "fuse", "9p", "vfat"}, m.DataRootFileSystem):
		return warning("name a folder on a disk of this machine, by --data-root, SPACES_DATA_ROOT or data_root",
			"%s is on %s, where locks and sockets may not be what they are on a disk", m.DataRoot, m.DataRootFileSystem)
	}
	return fine("%s", m.DataRoot)
}

func judgeLock(m MachineFacts) Finding {
	switch {
	case m.DataRoot == "" || m.DataRootRefusal != nil:
		return unknown("no project says where it is")
	case m.Lock != "":
		return warning("wait for it to end, or give apply --lock-timeout; `fuser "+m.LockFile+"` names its process",
			"%s holds it", m.Lock)
	}
	return fine("free")
}

func judgeGit(m MachineFacts) Finding {
	if m.Git == "" {
		return warning("install git", "there is none, and code can't be carried in and out of spaces without")
	}
	return fine("%s", m.Git)
}
