package reconcile

import (
	"strconv"
	"strings"
)

// Evidence is what the kernel says of a running container, and what answers from inside
// its networks. Whatever could not be looked at says so, and is a difference.
type Evidence struct {
	// Unread is why nothing of its processes could be looked at; empty if they were.
	Unread string
	// Processes are all in its PID namespace, by their number there, the first one first.
	Processes []Process
	// Shared are the namespaces of its first process that aren't its own but the engine's
	// ("net"), and Joined those of its own in which others are: "net: 1 process".
	Shared []string
	Joined []string
	// Masks are the kernel's paths, of those that containers must not see, that this
	// machine has.
	Masks  []string
	Mounts []MountPoint
	// HostMounts are where this host's own file systems are mounted, the engine's view of
	// them included, by device; empty where that could not be read.
	HostMounts map[string][]string
	// Devices are the device nodes, by their path in /dev, and HostDevices this host's that
	// were asked for, by the path asked; those that could not be read aren't in it.
	Devices     []Device
	HostDevices map[string]Device
	UserIDs     []IDRange
	GroupIDs    []IDRange
	Limits      LimitEvidence
	// Sources are what is mounted at a target and what is at its source, by target. That of
	// the init program is what the first process runs.
	Sources map[string]Source
	// Ports are what answers at published ports, by port and binding, "80/tcp 127.0.0.1:8080".
	Ports map[string]PortEvidence
	// NoProbe is why nobody could look around in its networks; empty if somebody did.
	NoProbe string
	Network ProbeAnswer
	// Gateways are those of its networks, and HostAddresses this host's own, that the probe
	// tried.
	Gateways      []string
	HostAddresses []string
}

// Process is one process of a container, from its status.
type Process struct {
	PID  int // in the container
	Name string
	// The sets of capabilities(7), as bits.
	Effective, Permitted, Inheritable, Bounding, Ambient uint64
	NoNewPrivs                                           bool
	// Seccomp is 0 for none, 1 for strict, 2 for a filter.
	Seccomp int
	// Elsewhere are namespaces in which it isn't with the first process.
	Elsewhere []string
	// Err is why it could not be read.
	Err string
}

// MountPoint is one line of a process's mountinfo.
type MountPoint struct {
	Target string
	Type   string
	// Root is what of its file system is mounted, and Device which file system it is, by its
	// numbers: "0:81".
	Root   string
	Device string
	// Options are this mount's own, Super those of its file system.
	Options []string
	Super   []string
	// Shared: what is mounted in it shows on the host. Follows: what is mounted on the
	// host shows in it.
	Shared  bool
	Follows bool
}

// ParseMount reads a line of mountinfo (proc_pid_mountinfo(5)).
func ParseMount(line string) (MountPoint, bool) {
	f := strings.Fields(line)
	dash := 6
	for dash < len(f) && f[dash] != "-" {
		dash++
	}
	if len(f) < dash+3 {
		return MountPoint{}, false
	}
	m := MountPoint{
		Target: unescape(f[4]), Root: unescape(f[3]), Device: f[2], Type: f[dash+1],
		Options: strings.Split(f[5], ","),
	}
	if len(f) > dash+3 {
		m.Super = strings.Split(f[dash+3], ",")
	}
	for _, tag := range f[6:dash] {
		m.Shared = m.Shared || strings.HasPrefix(tag, "shared:")
		m.Follows = m.Follows || strings.HasPrefix(tag, "master:")
	}
	return m, true
}

// unescape undoes the kernel's octal spelling of white space and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Device is a device node.
type Device struct {
	// Path is where it is; of one of this host's, without symlinks.
	Path string
	// Number is its kind and numbers: "c 1:3".
	Number string
}

// IDRange is a line of a uid_map: Size ids from Inside on are those from Outside on.
type IDRange struct{ Inside, Outside, Size uint64 }

// ParseIDMap reads a process's uid_map or gid_map.
func ParseIDMap(text string) ([]IDRange, bool) {
	var out []IDRange
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, false
		}
		var n [3]uint64
		for i := range n {
			v, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				return nil, false
			}
			n[i] = v
		}
		out = append(out, IDRange{n[0], n[1], n[2]})
	}
	return out, len(out) > 0
}

// LimitEvidence are the limits that a container's cgroup holds it to, in the units of
// Container, 0 for none.
type LimitEvidence struct {
	Memory, MemorySwap, NanoCPUs, PIDs int64
	// Unread is why a limit could not be read, by its name in Engine.Unenforced.
	Unread map[string]string
}

// Source compares what a container sees at a path with what the host has.
type Source struct {
	Inside, Outside Inode
	// Host is the path on the host.
	Host string
	Err  string
}

// PortEvidence is what answers at a published port.
type PortEvidence struct {
	Answers bool
	// Elsewhere are other addresses of this host at which the port answers too.
	Elsewhere []string
	Err       string
}

// ProbeRequest is what a probe is asked to try. It goes to it as one line of JSON.
type ProbeRequest struct {
	// Names are the engine's to resolve, and NoName is nobody's.
	Names  []string
	NoName string
	// Connect are addresses to connect to at Port, where what says Nonce is a listener of
	// this host's.
	Connect []string
	Port    int
	Nonce   string
	// Routes are addresses to ask the kernel for a route to. Nothing is sent to them.
	Routes []string
	// Dial are names and ports that have to answer.
	Dial []string
}

// ProbeAnswer is what came of it.
type ProbeAnswer struct {
	// Addresses are its interfaces' but for loopback, "172.18.0.2/16".
	Addresses []string
	// Nameservers are those of its resolv.conf.
	Nameservers []string
	// Names are the addresses that a name resolved to.
	Names map[string][]string
	// Forwarded is what came back for NoName; empty for nothing.
	Forwarded string
	// Connect is what came of each connection.
	Connect map[string]Reach
	// Routes is from which address the kernel would send, empty where it would not.
	Routes map[string]string
	Dial   map[string]Reach
	// Err is why it could not look.
	Err string
}

// ForwardedSilent is what is told of a query for NoName to which nothing came back.
const ForwardedSilent = "no answer came, as while somebody outside is asked"

// Reach is what came of connecting to an address.
type Reach string

// The ends of a connection attempt.
const (
	ReachOurs        Reach = "reached a listener of this host"
	ReachOpen        Reach = "connected"
	ReachRefused     Reach = "refused" // something is there and doesn't listen
	ReachSilent      Reach = "no answer"
	ReachUnreachable Reach = "unreachable"
)

// answered is true where something at the address sent anything back.
func (r Reach) answered() bool { return r != ReachSilent && r != ReachUnreachable }

// What a probe asks the kernel for routes to: addresses for documentation, nobody's
// (RFC 5737, RFC 3849), and the one at which clouds tell an instance its credentials.
const (
	OutsideIPv4 = "203.0.113.1"
	OutsideIPv6 = "2001:db8::1"
	MetadataIP  = "169.254.169.254"

	// NoName is a name that nobody has (RFC 6761).
	NoName = "spaces-probe.invalid"
)
