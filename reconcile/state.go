package reconcile

import (
	"slices"
	"time"

	"spaces/schema"
)

// Field is one compared fact of an object: its path ("image", `env["TZ"]`,
// `mount["/work"]`) and its value in canonical form. Two objects are the same when
// their fields are.
type Field struct {
	Path  string
	Value string
	// Sensitive values are compared but never shown.
	Sensitive bool
	// EngineFilled marks an excess that an engine may add from its own configuration
	// (default ulimits, log options). It is no drift where LabelApplied vouches that it
	// was there when we created the container.
	EngineFilled bool
}

// Desired is what the files ask for, resolved: full names, defaults filled, sorted.
// It says nothing yet of what an image or an engine adds; Diff knows those.
type Desired struct {
	Project string
	// Endpoint is the engine's socket; empty in local mode.
	Endpoint string
	Mode     schema.Mode
	// Install is where the install block stands.
	Install schema.Origin
	// DataRoot and Store are absolute, with symlinks resolved.
	DataRoot string
	Store    string
	// Loaded are the files and folders whose content decides what is applied: every
	// file read, build contexts, binaries of images. A space must not write them.
	Loaded []string

	Accepts []schema.Accept
	// Variables are the values that the files' variables were given.
	Variables  []schema.Variable
	Images     []Image
	Networks   []Network
	Volumes    []Volume
	Spaces     []Space
	Roles      []schema.Role
	Egresses   []schema.Egress
	Assertions []schema.Assertion
	// Grants by their address, for origins and for the host's rules.
	Grants []schema.Grant
	// Moves are sorted by where they lead, those from nearest first.
	Moves []Move
}

// Image is an image that spaces run.
type Image struct {
	Address schema.Address
	Origin  schema.Origin
	// Reference is what the engine knows it by: "acme-core:1.4.0", or as written.
	Reference string
	// Made says how, for an image that isn't only referred to.
	Binary string
	Build  *schema.Build
}

// Network is a network, as asked or as inspected.
type Network struct {
	Name    string // the engine's name, "<project>-<name>"
	Address schema.Address
	Origin  schema.Origin
	Origins map[string]schema.Origin

	Driver   string
	Internal bool
	Subnet   string // canonical CIDR; "" in Desired is left to the engine and not compared
	IPRange  string
	Options  map[string]string
	Labels   map[string]string
	// Excess are facts the language can't say: IPv6, attachable, another driver's options.
	Excess []Field

	Uplink   bool
	NoEgress bool
	Reason   string
	Protect  bool
}

// Volume is a named volume, as asked or as inspected.
type Volume struct {
	Name    string // the engine's name, "<project>-<name>"
	Short   string // the name in the files
	Origin  schema.Origin
	Driver  string
	Options map[string]string
	Labels  map[string]string
	Excess  []Field
}

// Space is a container the files ask for.
type Space struct {
	schema.Object
	Kind      Kind
	Lifecycle schema.Lifecycle
	// Image is the address of the image, for order and reasons.
	Image     schema.Address
	Container Container
	DependsOn []string // names of containers
	Loosen    []schema.Loosening
	// Publish are the ports of Container.Publish as the files have them.
	Publish []schema.Publish
	// Grants by target, to tell what a mount gives.
	Grants map[string]schema.Grant
	// Lists are the egress lists whose proxy it can reach.
	Lists []schema.Address
	// Protect keeps it from being removed.
	Protect bool
}

// Container is a container's configuration, as asked or as inspected. Values are
// canonical: what two spellings mean the same is spelt one way.
type Container struct {
	Name  string // "<project>-<name>"
	Image string // the reference it was created from
	// ImageID is the image's digest; empty is known only after a build or a pull.
	ImageID string

	Entrypoint []string
	Command    []string
	User       string
	WorkingDir string
	Env        map[string]EnvValue
	Labels     map[string]string

	Mounts  map[string]Mount  // by target
	Tmpfs   map[string]string // by path: options in canonical order
	Publish map[string]string // by "port/proto": "ip:port", several joined by ","

	// Networks are the endpoints by network name; NetworkMode is the first one's name.
	Networks    map[string]Endpoint
	NetworkMode string
	DNS         []string

	Memory     int64 // bytes, 0 for no limit
	MemorySwap int64 // bytes of memory and swap together
	NanoCPUs   int64
	PIDs       int64 // 0 for no limit

	Restart     schema.Restart
	StopTimeout *int // seconds; nil for the engine's default
	StopSignal  string
	Healthcheck *Healthcheck

	ReadOnlyRoot    bool
	Init            bool
	NoNewPrivileges bool
	Seccomp         string // "default", "unconfined", or a profile's digest
	CapAdd          []string
	CapDrop         []string
	Devices         []string // "host:container:permissions"
	GroupAdd        []string
	Sysctls         map[string]string
	LogDriver       string
	LogOptions      map[string]string

	// Excess are facts the language can't say (privileged, pid mode of host, ulimits
	// …), by the engine's own names. Asked containers have none: each is drift.
	Excess []Field
}

// EnvValue is the value of an environment variable.
type EnvValue struct {
	Value     string
	Sensitive bool
}

// Mount is what a container sees at one target.
type Mount struct {
	Type     string // "bind" or "volume"
	Source   string // a path of the host, or a volume's name
	Writable bool
	// Options that differ from the defaults: propagation, no-copy, sub-path, driver.
	Options string
	// Content is a keyed digest of a single file's bytes, known for asked mounts only.
	// What a running container was given is told by its LabelApplied.
	Content string
}

// Endpoint is a container's place on one network.
type Endpoint struct {
	Aliases []string // sorted, without the ones every container has
	Address string   // asked IP; empty where it was left to the engine
	// Excess are options the language can't say: links, driver options, a MAC.
	Excess []Field
}

// NoEndpoint is the path of the excess that tells that a running container isn't on a
// network that its configuration names.
const NoEndpoint = "EndpointID"

// lost is true for a place on a network that is configured and isn't there.
func (e Endpoint) lost() bool {
	return slices.ContainsFunc(e.Excess, func(f Field) bool { return f.Path == NoEndpoint })
}

// Healthcheck is a container's health check. Test is as the engine has it:
// ["NONE"], ["CMD", …] or ["CMD-SHELL", "…"].
type Healthcheck struct {
	Test          []string
	Interval      time.Duration
	Timeout       time.Duration
	StartPeriod   time.Duration
	StartInterval time.Duration
	Retries       int
}

// Actual is what really is: the engine's features and every object of this project
// and store, closed-world. Lists are sorted by name.
type Actual struct {
	Engine     Engine
	Containers []ObservedContainer
	Networks   []ObservedNetwork
	Volumes    []ObservedVolume
	// Images by each reference asked and each id that a container of ours runs; an
	// image that isn't there has no entry.
	Images map[string]ImageFacts
	// Taken are names in use by what isn't ours, with who has them.
	Taken Taken
}

// Engine is what an engine can do, in words of this package.
type Engine struct {
	Name     string // "Docker 20.10.24"
	Endpoint string
	Rootless bool
	// Remaps: an engine that runs as root gives containers users of their own range.
	Remaps bool
	CPUs   int
	// Unenforced are the limits it silently drops: "memory", "swap", "pids", "cpus".
	Unenforced []string
	// InternalReachesHost: an internal network's gateway address leads to the host.
	InternalReachesHost bool
	// IsolatedGateway: internal networks are made with an isolated gateway.
	IsolatedGateway bool
	// InternalDNSLeaks: names from an internal network are resolved through the host.
	InternalDNSLeaks bool
	// Lacks are what the files ask for and the engine doesn't have.
	Lacks []string
	// StorageDir is the engine's own data directory, never grantable.
	StorageDir string
	// Offline: nothing was asked, this is an assumed empty world.
	Offline bool
}

// What may be in Engine.Lacks.
const (
	LacksStartInterval = "healthcheck.start_interval" // before API 1.44
	// LacksSeccomp: a container without a seccomp option doesn't get the engine's own
	// default profile, because the engine was told another or the kernel has none.
	LacksSeccomp = "seccomp"
)

// State is what a container is doing.
type State string

// The states an engine reports.
const (
	StateCreated    State = "created"
	StateRunning    State = "running"
	StatePaused     State = "paused"
	StateRestarting State = "restarting"
	StateRemoving   State = "removing"
	StateExited     State = "exited"
	StateDead       State = "dead"
)

// ObservedContainer is a container of ours as it is now.
type ObservedContainer struct {
	Container
	State    State
	ExitCode int
	Health   string // "", "starting", "healthy", "unhealthy"
	// ID is opaque: compared with LabelReplaces, never shown.
	ID string
	// Revision changes whenever anything of it does; apply refuses to act on another.
	Revision string
	// Stale are targets whose single-file mount shows a file that is no longer the
	// source (its inode was replaced); Unread are those that couldn't be looked at.
	Stale  []string
	Unread []string
	// SharedBy are containers of others that live in its network namespace: what its
	// networks reach, they reach.
	SharedBy []Member
}

// Kind is what its label says it is.
func (c ObservedContainer) Kind() Kind { return Kind(c.Labels[LabelKind]) }

// ObservedNetwork is a network of ours as it is now.
type ObservedNetwork struct {
	Network
	// Members are all containers with an endpoint on it, stopped ones too.
	Members  []Member
	Revision string
}

// Member is a container on a network of ours.
type Member struct {
	Name    string
	Ours    bool
	Running bool
}

// ObservedVolume is a volume of ours as it is now.
type ObservedVolume struct {
	Volume
	Revision string
	// Users are names of containers of others that mount it.
	Users []string
}

// ImageFacts are what an image brings to each container made from it.
type ImageFacts struct {
	ID    string
	Input string // LabelImageInput
	// Config is the image's own part of a container's configuration.
	Entrypoint  []string
	Command     []string
	User        string
	WorkingDir  string
	Env         map[string]string
	Labels      map[string]string
	Volumes     []string
	Healthcheck *Healthcheck
	StopSignal  string
}

// Taken are the names of others' objects and who holds them, for the reader.
type Taken struct {
	Containers map[string]string
	Networks   map[string]string
	Volumes    map[string]string
}

// HostFacts are what the host's files say: the third input of Diff.
type HostFacts struct {
	// Checked is false where nobody looked (validate, plan --offline).
	Checked bool
	// Digest keys the digests that go into labels and saved plans; nil without a key,
	// when nothing can be compared and everything new is digested at apply.
	Digest Digester
	// Paths are what is at every path that matters, by the path as written: grants'
	// sources (see GrantPath), Desired.Loaded and what is protected.
	Paths map[string]PathFacts
	// Protected are the host's paths that no grant may give, resolved, and why.
	Protected []Protected
	// Loaded are Desired.Loaded with symlinks resolved, in the same order.
	Loaded []string
	// Inputs are the digests of what made images are made from (binary or context,
	// Dockerfile, arguments), by image address; the base images join them in Diff.
	Inputs map[string]ImageInput
	// Caller is the user id whose files these are.
	Caller int
}

// ImageInput is what an image is to be made from.
type ImageInput struct {
	Digest string
	// Bases are the images a Dockerfile starts from, as written.
	Bases []string
	// Problem is why it can't be made (no such file, a dynamic binary), with what to do.
	Problem string
	Fix     string
}

// PathFacts are what is at a path.
type PathFacts struct {
	// Absolute is the path with "~" expanded; Resolved has symlinks resolved as far as
	// the path exists.
	Absolute string
	Resolved string
	Exists   bool
	Kind     PathKind // of what the path leads to
	Symlink  bool     // the last element is a symlink
	// Links are where each symlink on the way stands, parents resolved: whoever can
	// write there decides where the path leads.
	Links []string
	// Inode tells the file by whatever path it is reached, and Above are those of the
	// directories Resolved lies in, from the root down.
	Inode Inode
	Above []Inode
	Mode  uint32 // permission bits and setuid, setgid, sticky
	Owner int
	// Content is a digest of a file's bytes, keyed; empty for others or without a key.
	Content string
	// Err is why it couldn't be read, if it exists.
	Err string
}

// Inode names a file on this machine whatever its path: equal inodes are hard links of
// one file, or one directory seen through a bind mount. The zero Inode is unknown.
type Inode struct{ Device, Number uint64 }

// PathKind is the kind of file at a path.
type PathKind string

// The kinds of file.
const (
	PathDirectory PathKind = "directory"
	PathFile      PathKind = "file"
	PathSocket    PathKind = "socket"
	PathOther     PathKind = "other"
)

// Protected is a path of the host that no grant may give.
type Protected struct {
	Path string // resolved
	What string // "the engine's socket", "the home directory"
	// Whole protects everything below as well; otherwise only the path itself and what
	// contains it.
	Whole bool
	// Except are the kinds of grant that may give what lies below after all. Of two
	// protected paths, one in the other, the inner one's exceptions hold.
	Except []schema.GrantKind
}

// Digester makes keyed digests: equal input, equal digest, and nothing to be learnt
// without the key.
type Digester interface {
	// KeyID names the key, without telling anything of it.
	KeyID() string
	// Digest is the keyed digest of the parts, each bounded so that none runs into the
	// next, in lower-case hex.
	Digest(parts ...string) string
}
