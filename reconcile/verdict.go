package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// Verdict is what a check came to.
type Verdict string

// The verdicts. Only differs fails a verification; accepted and unproven are said.
const (
	VerdictHolds   Verdict = "holds"
	VerdictDiffers Verdict = "differs"
	// VerdictAccepted: the engine doesn't hold it, and a person accepted that in the files.
	VerdictAccepted Verdict = "accepted"
	// VerdictUnproven: nothing on this engine tells it, and nothing can be done about it.
	VerdictUnproven Verdict = "unproven"
)

// Check is one thing that the kernel was asked of a space.
type Check struct {
	// Name is stable: "capabilities".
	Name    string
	Verdict Verdict
	// Want is what the files say and Got what is.
	Want   string
	Got    string
	Origin schema.Origin
}

// The checks, in the order in which they are told.
const (
	CheckRunning      = "running"
	CheckProcesses    = "processes"
	CheckCapabilities = "capabilities"
	CheckPrivileges   = "no-new-privileges"
	CheckSeccomp      = "seccomp"
	CheckNamespaces   = "namespaces"
	CheckUserIDs      = "user-ids"
	CheckRoot         = "root"
	CheckMounts       = "mounts"
	CheckDevices      = "devices"
	CheckLimits       = "limits"
	CheckAddresses    = "networks"
	CheckNames        = "names"
	CheckForwarding   = "forwarding"
	CheckGateway      = "gateway"
	CheckHost         = "host"
	CheckRoutes       = "routes"
	CheckProxy        = "proxy"
	CheckPorts        = "ports"
)

// Judge compares what a space must show with what was found. It looks at nothing else:
// the same input gives the same checks.
func (p Proof) Judge(e Evidence) []Check {
	j := trial{Proof: p, e: e}
	switch {
	case p.Unasked:
		j.differs(CheckRunning, "not in the files", "it runs")
		return j.checks
	case !p.Runs():
		state := string(p.State)
		if j.ID == "" {
			state = "missing"
		}
		j.differs(CheckRunning, string(StateRunning), state)
		return j.checks
	}
	j.kernel()
	j.network()
	return j.checks
}

type trial struct {
	Proof
	e      Evidence
	checks []Check
}

// checkedFields are where in the files the reader finds what a check is about.
var checkedFields = map[string]string{
	CheckCapabilities: "cap_add",
	CheckPrivileges:   "no_new_privileges",
	CheckSeccomp:      "seccomp",
	CheckRoot:         "read_only",
	CheckDevices:      "devices",
	CheckLimits:       "limits",
	CheckAddresses:    "networks",
	CheckNames:        "networks",
	CheckForwarding:   "networks",
	CheckGateway:      "networks",
	CheckHost:         "networks",
	CheckRoutes:       "networks",
}

func (j *trial) add(name string, v Verdict, want, got string) {
	j.addAt(name, v, want, got, checkedFields[name])
}

func (j *trial) addAt(name string, v Verdict, want, got, field string) {
	j.checks = append(j.checks, Check{Name: name, Verdict: v, Want: want, Got: got, Origin: originOf(j.Space, field)})
}

func (j *trial) holds(name, want string) { j.add(name, VerdictHolds, want, want) }

func (j *trial) differs(name, want, got string) { j.add(name, VerdictDiffers, want, got) }

// settle adds a check that holds unless something was found.
func (j *trial) settle(name, want string, found []string) {
	if len(found) == 0 {
		j.holds(name, want)
		return
	}
	j.differs(name, want, strings.Join(found, "; "))
}

// kernel judges what the space's processes say.
func (j *trial) kernel() {
	if j.e.Unread == "" && len(j.e.Processes) == 0 {
		j.e.Unread = "no process of it was found"
	}
	if j.e.Unread != "" {
		j.differs(CheckProcesses, "they can be looked at", j.e.Unread)
		return
	}
	j.capabilities()
	j.privileges()
	j.seccomp()
	j.namespaces()
	j.userIDs()
	j.root()
	j.mounts()
	j.devices()
	j.limits()
}

// each is what is amiss with processes, those with the same in one.
func (j *trial) each(amiss func(Process) string) []string {
	var texts []string
	with := map[string][]string{}
	for _, p := range j.e.Processes {
		text := p.Err
		if text == "" {
			text = amiss(p)
		}
		if text == "" {
			continue
		}
		if with[text] == nil {
			texts = append(texts, text)
		}
		with[text] = append(with[text], fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	var out []string
	for _, text := range texts {
		out = append(out, "process "+strings.Join(with[text], ", ")+": "+text)
	}
	return out
}

func (j *trial) capabilities() {
	want := capabilitySet(j.Container.CapAdd)
	text := "none"
	if len(j.Container.CapAdd) > 0 {
		text = strings.Join(j.Container.CapAdd, ", ") + " at most"
	}
	found := j.each(func(p Process) string {
		var more []uint64
		in := map[uint64][]string{}
		for _, s := range []struct {
			name string
			set  uint64
		}{
			{"effective", p.Effective},
			{"permitted", p.Permitted},
			{"inheritable", p.Inheritable},
			{"bounding", p.Bounding},
			{"ambient", p.Ambient},
		} {
			extra := s.set &^ want
			if extra == 0 {
				continue
			}
			if in[extra] == nil {
				more = append(more, extra)
			}
			in[extra] = append(in[extra], s.name)
		}
		var texts []string
		for _, extra := range more {
			texts = append(texts, strings.Join(in[extra], ", ")+" "+capabilityNames(extra))
		}
		return strings.Join(texts, ", ")
	})
	if first := j.e.Processes[0]; first.Err == "" && want&^first.Bounding != 0 {
		found = append(found, "not given "+capabilityNames(want&^first.Bounding))
	}
	j.settle(CheckCapabilities, text, found)
}

func (j *trial) privileges() {
	if !j.Container.NoNewPrivileges {
		j.holds(CheckPrivileges, "may gain privileges (loosened)")
		return
	}
	j.settle(CheckPrivileges, "on", j.each(func(p Process) string {
		if p.NoNewPrivs {
			return ""
		}
		return "off"
	}))
}

func (j *trial) seccomp() {
	if j.Container.Seccomp == "unconfined" {
		j.holds(CheckSeccomp, "unconfined (loosened)")
		return
	}
	const filter = 2
	j.settle(CheckSeccomp, "filtered", j.each(func(p Process) string {
		if p.Seccomp == filter {
			return ""
		}
		return fmt.Sprintf("mode %d", p.Seccomp)
	}))
}

func (j *trial) namespaces() {
	var found []string
	for _, n := range j.e.Shared {
		found = append(found, n+" is the engine's")
	}
	for _, n := range j.e.Joined {
		found = append(found, "others are in its "+n)
	}
	for _, p := range j.e.Processes {
		if len(p.Elsewhere) > 0 {
			found = append(found, fmt.Sprintf("process %d (%s) is in another %s", p.PID, p.Name, strings.Join(p.Elsewhere, ", ")))
		}
	}
	j.settle(CheckNamespaces, "its own, with nobody else in them", found)
}

// userIDs looks who root in the space is on this machine.
func (j *trial) userIDs() {
	var found []string
	isRoot := func(what string, ranges []IDRange) {
		for _, r := range ranges {
			if r.Outside == 0 && r.Size > 0 {
				found = append(found, fmt.Sprintf("%s %d in it is 0 on this machine", what, r.Inside))
			}
		}
	}
	isRoot("user", j.e.UserIDs)
	isRoot("group", j.e.GroupIDs)
	switch {
	case len(j.e.UserIDs) == 0 || len(j.e.GroupIDs) == 0:
		j.differs(CheckUserIDs, "known", "the map can't be read")
	case len(found) > 0 && !j.Engine.Rootless && !j.Engine.Remaps && slices.Contains(j.Accepts, schema.AcceptNotRootless):
		j.add(CheckUserIDs, VerdictAccepted, "nobody in it is root on this machine", strings.Join(found, "; "))
	default:
		j.settle(CheckUserIDs, "nobody in it is root on this machine", found)
	}
}

func (j *trial) root() {
	want := map[bool]string{true: "read-only", false: "writable (loosened)"}[j.Container.ReadOnlyRoot]
	at := slices.IndexFunc(j.e.Mounts, func(m MountPoint) bool { return m.Target == "/" })
	switch {
	case at < 0:
		j.differs(CheckRoot, want, "it has none")
	case j.Container.ReadOnlyRoot && !j.e.Mounts[at].has("ro"):
		j.differs(CheckRoot, want, "writable")
	case j.e.Mounts[at].Shared:
		j.differs(CheckRoot, want, "what is mounted in it shows on the host")
	default:
		j.holds(CheckRoot, want)
	}
}

// standardDevices are what a container's /dev holds without asking, by their numbers
// (Documentation/admin-guide/devices.txt of the kernel). A console is a terminal of its own.
var standardDevices = map[string]string{
	"console": "c 136:", "full": "c 1:7", "null": "c 1:3", "random": "c 1:8", "tty": "c 5:0", "urandom": "c 1:9", "zero": "c 1:5",
}

func (j *trial) devices() {
	var names, found []string
	asked := map[string]string{}
	for _, d := range j.Container.Devices {
		if parts := strings.Split(d, ":"); len(parts) > 1 {
			name := strings.TrimPrefix(parts[1], "/dev/")
			names = append(names, name)
			asked[name] = parts[0]
		}
	}
	for _, d := range j.e.Devices {
		if slices.ContainsFunc(sortedKeys(j.Container.Mounts), func(target string) bool { return below("/dev/"+d.Path, target) }) {
			continue
		}
		source, is := asked[d.Path]
		want := standardDevices[d.Path]
		if is {
			want = j.e.HostDevices[source].Number
		}
		switch {
		case is && want == "":
			found = append(found, "/dev/"+d.Path+" can't be compared with "+source)
		case want == "":
			found = append(found, "/dev/"+d.Path)
		case d.Number != want && !(strings.HasSuffix(want, ":") && strings.HasPrefix(d.Number, want)):
			found = append(found, "/dev/"+d.Path+" is "+d.Number+", not "+want)
		}
	}
	want := "the usual ones"
	if len(names) > 0 {
		want += " and " + strings.Join(names, ", ")
	}
	j.settle(CheckDevices, want, found)
}

// limits compares as the kernel rounds: memory to whole pages, time to a quota of the
// usual period.
func (j *trial) limits() {
	const page, period, second = 4096, 100000, 1e9
	c, l := j.Container, j.e.Limits
	var found, held []string
	check := func(name, want, got string, same bool) {
		switch why, unread := l.Unread[name]; {
		case slices.Contains(j.Engine.Unenforced, name):
		case unread:
			found = append(found, name+" can't be read: "+why)
		case same:
			held = append(held, name+" "+want)
		default:
			found = append(found, name+" "+got+", not "+want)
		}
	}
	check("memory", size(c.Memory), size(l.Memory), c.Memory/page == l.Memory/page)
	check("swap", size(c.MemorySwap), size(l.MemorySwap), c.MemorySwap/page == l.MemorySwap/page)
	check("pids", number(c.PIDs), number(l.PIDs), c.PIDs == l.PIDs)
	check("cpus", cpus(c.NanoCPUs), cpus(l.NanoCPUs), c.NanoCPUs*period/second == l.NanoCPUs*period/second)
	if len(held) > 0 || len(found) > 0 {
		j.settle(CheckLimits, strings.Join(held, ", "), found)
	}
	if lacks := j.Engine.Unenforced; len(lacks) > 0 {
		v := VerdictDiffers
		if slices.Contains(j.Accepts, schema.AcceptLimitsUnenforced) {
			v = VerdictAccepted
		}
		j.add(CheckLimits, v, "every limit is enforced", "this engine doesn't enforce "+strings.Join(lacks, ", "))
	}
}

func size(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d bytes", n)
}

func number(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func cpus(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return fmt.Sprint(float64(n) / 1e9)
}
