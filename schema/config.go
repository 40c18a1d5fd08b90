package schema

import (
	"fmt"
	"strconv"
	"time"

	"spaces/gatekeeper/policy"
)

// Origin is where in the files a value was written. The zero Origin belongs to
// values nobody wrote: defaults.
type Origin struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	// StartByte and EndByte bound the value in the file, for source snippets.
	StartByte int `json:"-"`
	EndByte   int `json:"-"`
}

// String is "file:line", or empty for a default.
func (o Origin) String() string {
	if o.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Config is what a folder of files says, decoded and judged by itself: every
// reference resolves, every name and size is legal, nothing on the host has been
// looked at. All lists are sorted by address.
type Config struct {
	// Root is the absolute path of the folder.
	Root string
	// Sources holds the bytes of every file read, by the name diagnostics use.
	// It is set even when Load reports errors.
	Sources map[string][]byte
	// Files are the absolute paths of everything loaded, variables files included.
	Files []string

	Project       string
	ProjectOrigin Origin
	// DataRoot is what the files say, unexpanded; empty means the default.
	DataRoot       string
	DataRootOrigin Origin
	Install        Install
	Accepts        []Accept
	Variables      []Variable

	Images   []Image
	Networks []Network
	Egresses []Egress
	Grants   []Grant
	Spaces   []Space
	Roles    []Role
	// Assertions are sorted by sentence.
	Assertions []Assertion
	// Moves are sorted by where they lead, those from nearest first; what leads through
	// several blocks leads to the last of them.
	Moves []Move
}

// Mode is how an install runs its spaces.
type Mode string

// The two modes of an install; no install block means local.
const (
	ModeLocal         Mode = "local"
	ModeContainerized Mode = "containerized"
)

// Install says where spaces run.
type Install struct {
	Mode Mode
	// Endpoint is the engine's socket, "unix:///….sock"; empty in local mode.
	Endpoint       string
	Origin         Origin // zero without an install block
	EndpointOrigin Origin
}

// Accept overrules one refusal, with a person's reason.
type Accept struct {
	Code   string
	Reason string
	Origin Origin
}

// The refusals a person may overrule with an accept block.
const (
	AcceptNotRootless        = "endpoint-not-rootless"
	AcceptLimitsUnenforced   = "limits-unenforced"
	AcceptNetworkNotIsolated = "network-not-isolated"
)

// Variable is an input variable and the value this load gave it.
type Variable struct {
	Name      string
	JSON      []byte // the value, encoded by its type; for digests, never for printing
	Sensitive bool
	// From names what set it: "default", "auto.spacesvars", "--var", "SPACES_VAR_x" or a file.
	From   string
	Origin Origin
}

// Address names one object of the configuration: kind, name and, where the block
// has for_each, the key.
type Address struct {
	Kind string // "image", "network", "egress", "grant", "space", "role"
	Name string
	Key  string // empty without for_each
}

// String is the address as a reference in the files would spell it.
func (a Address) String() string {
	if a.Key == "" {
		return a.Kind + "." + a.Name
	}
	return fmt.Sprintf("%s.%s[%q]", a.Kind, a.Name, a.Key)
}

// FullName is the name with its key, as it appears in the names of containers and
// networks: "name" or "name-key".
func (a Address) FullName() string {
	if a.Key == "" {
		return a.Name
	}
	return a.Name + "-" + a.Key
}

// Object is what every block has in common.
type Object struct {
	Address Address
	Origin  Origin // the block's header
	// Origins says where each attribute was written, by its path in the block:
	// "image", "env", `env["KEY"]`, "limits.memory", "publish[0].port". Elements of a
	// list of references have their own, by full name: `grants["work"]`; so have
	// blocks with a label: `network["agents"].aliases`, `tmpfs["/cache"].size`,
	// `loosen["cap_add"].value`.
	Origins map[string]Origin
}

// At is the origin of an attribute, or of the block when the attribute is a default.
func (o Object) At(path string) Origin {
	if at, ok := o.Origins[path]; ok {
		return at
	}
	return o.Origin
}

// Image is an image a space runs. Exactly one of Binary, Build and Reference is set.
type Image struct {
	Object
	// Binary is "spaces" for this very executable, or an absolute path to a static one.
	Binary string
	Build  *Build
	// Reference is an image reference, as the engine knows it.
	Reference string
	// Tag is the tag of a made image, "latest" unless said.
	Tag string
}

// Build makes an image from a context on the engine itself.
type Build struct {
	Context    string // absolute
	Dockerfile string // relative to Context, "Dockerfile" unless said
	Args       map[string]string
	Target     string // the stage to build, empty for the last
}

// Network is a network of the project.
type Network struct {
	Object
	Uplink   bool // not internal, and only proxies may join
	Internal bool
	Reason   string // why it is not internal
	// NoEgress is true where the file says egress = "none".
	NoEgress bool
	Subnet   string // CIDR in canonical form; empty leaves it to the engine
	IPRange  string
	Protect  bool // may be neither removed nor made again
}

// Egress is a list of the hosts that a network's proxy lets through.
type Egress struct {
	Object
	Network Address
	Uplink  Address
	Entries []EgressEntry // sorted by host and port
}

// EgressEntry is one host:port pair of a list.
type EgressEntry struct {
	Entry  policy.Entry
	Reason string
	Origin Origin
}

// GrantKind is what a grant gives.
type GrantKind string

// The kinds of grant.
const (
	GrantDirectory GrantKind = "directory"
	GrantFile      GrantKind = "file"
	GrantSecret    GrantKind = "secret"
	GrantSocket    GrantKind = "socket"
	GrantVolume    GrantKind = "volume"
	GrantData      GrantKind = "data"
)

// Grant is one mount that spaces may be given.
type Grant struct {
	Object
	Kind GrantKind
	// Source is, by kind, a path (absolute, or starting with "~/"), a socket's name
	// (agent, human, launch, git), a volume's name, or a part of the data root
	// (store, host).
	Source   string
	Target   string // absolute and clean
	Writable bool
	Create   bool // make a missing directory, 0700
	Protect  bool // the volume may be neither removed nor made again
}

// Lifecycle says who starts a space.
type Lifecycle string

// The lifecycles of a space.
const (
	LifecycleService   Lifecycle = "service"
	LifecycleCore      Lifecycle = "core"
	LifecycleOnRequest Lifecycle = "on_request"
)

// Space is a container to run.
type Space struct {
	Object
	Lifecycle   Lifecycle
	Image       Address
	Entrypoint  []string // nil inherits the image's, as does an empty one
	Command     []string
	User        string
	WorkingDir  string
	Env         []EnvVar     // sorted by name
	Networks    []Attachment // sorted by network
	Grants      []Address    // sorted
	Tmpfs       []Tmpfs      // sorted by path; /tmp only where its options were written
	Limits      Limits
	Publish     []Publish   // sorted by port, host and protocol
	Loosen      []Loosening // sorted by kind
	DependsOn   []Address   // sorted
	Healthcheck *Healthcheck
	StopTimeout *time.Duration // whole seconds
	StopSignal  string
	Restart     Restart
	Proxy       Address // the list it uses, zero when it needs no telling
	Protect     bool    // may not be removed
}

// Move says that a space goes on under another address.
type Move struct {
	From   Address
	To     Address
	Origin Origin // of the block that names From
}

// EnvVar is one environment variable.
type EnvVar struct {
	Name      string
	Value     string
	Sensitive bool
	Origin    Origin
}

// Attachment puts a space on a network.
type Attachment struct {
	Network Address
	Aliases []string // sorted, beside the space's own name
	Address string   // an IP of the network's subnet; empty leaves it to the engine
	Origin  Origin
}

// Tmpfs is a directory in memory.
type Tmpfs struct {
	Path string
	// Size is in bytes, 0 for the kernel's default (half of memory).
	Size int64
	// Mode is the directory's permission bits, 0 for the engine's default (1777).
	Mode   uint32
	Exec   bool // allow execution; only where loosened
	Origin Origin
}

// Limits bound a space; a zero field takes the lifecycle's default.
type Limits struct {
	PIDs     int64
	Memory   int64 // bytes
	NanoCPUs int64 // billionths of a CPU
	Origin   Origin
}

// Publish is a port of the host that reaches a space.
type Publish struct {
	Host      string // an IP
	Port      int
	Container int
	Protocol  string // "tcp" or "udp"
	Reason    string // required off loopback
	Origin    Origin
}

// Loosening is one step back from the hardening, with its reason.
type Loosening struct {
	Kind   string
	Values []string // sorted; what they mean is the kind's
	Grants []Address
	Reason string
	Origin Origin
}

// The kinds of loosening: the closed list of docs/language.md.
const (
	LoosenCapAdd        = "cap_add"        // values: capability names without CAP_
	LoosenWritableRoot  = "writable_root"  // value: true
	LoosenNewPrivileges = "new_privileges" // value: true; setuid programs gain their owner's rights
	LoosenSeccomp       = "seccomp"        // value: "unconfined"
	LoosenInit          = "init"           // value: false; the image's own process is pid 1
	LoosenTmpExec       = "tmp_exec"       // values: the tmpfs paths that may execute
	LoosenSecretEnv     = "secret_env"     // values: names of variables holding sensitive values
	LoosenDevice        = "device"         // values: device paths, the same inside
	LoosenGroupAdd      = "group_add"      // values: group ids or names
	LoosenSysctl        = "sysctl"         // values: "name=value"
	// Grants that let a space write what is loaded here, or another grant's source.
	LoosenHoldsConfiguration = "grant_holds_configuration" // grants
	LoosenSourceWritable     = "grant_source_writable"     // grants
)

// Healthcheck says how to tell that a space works. Zero durations and retries
// take the image's, then the engine's defaults.
type Healthcheck struct {
	Disable       bool
	Command       []string // exec form; exclusive with Shell
	Shell         string
	Interval      time.Duration
	Timeout       time.Duration
	StartPeriod   time.Duration
	StartInterval time.Duration
	Retries       int
	Origin        Origin
}

// Restart is the restart policy.
type Restart struct {
	Name       string // "no", "on-failure" or "unless-stopped"
	MaxRetries int    // with on-failure, 0 for no end
}

// Role is a space that may be launched, and what its sessions may hold.
type Role struct {
	Object
	Space Address
	Holds []string // sorted, of "launch" and "git"
}

// Assertion is what must hold of spaces, whatever the rest of the files says.
type Assertion struct {
	Sentence string
	Origin   Origin            // the block's header
	Origins  map[string]Origin // as in Object
	// Everyone makes it about every space; otherwise it is about From, spaces and roles.
	Everyone bool
	From     []Address // sorted
	// Directly leaves out what spaces reach through others.
	Directly bool
	// What can't be; nil where nothing is said. Sorted.
	Cannot        []policy.Pattern
	CannotJoin    []Address // networks
	CannotMeet    []Address // spaces
	CannotMount   []MountClaim
	CannotPublish []PortClaim
	// All that may be; nil where nothing is said, and empty for nothing. Sorted.
	MayLoosen []string  // kinds
	MayWrite  []Address // grants
}

// At is the origin of an attribute, or of the block where it has none.
func (a Assertion) At(path string) Origin {
	return Object{Origin: a.Origin, Origins: a.Origins}.At(path)
}

// MountClaim is what isn't to be mounted: what a grant gives, or a path of the host,
// absolute or starting with "~/".
type MountClaim struct {
	Grant Address
	Path  string
}

func (c MountClaim) String() string {
	if c.Path != "" {
		return c.Path
	}
	return c.Grant.String()
}

// PortClaim is what isn't to be published: every port, every port off loopback, or one
// port of the host. One of the three is set.
type PortClaim struct {
	Any         bool
	OffLoopback bool
	Port        int
}

func (c PortClaim) String() string {
	switch {
	case c.Any:
		return everything
	case c.OffLoopback:
		return offLoopback
	}
	return strconv.Itoa(c.Port)
}
