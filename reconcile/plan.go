package reconcile

import "spaces/schema"

// Plan is what would be done and why, as data. It holds no time, process id or
// engine id: the same input gives the same plan, byte for byte.
type Plan struct {
	Project  string
	Endpoint string
	// Engine is the engine's name and release, or why there is none.
	Engine string

	// Asked is what part of the plan was asked for, and what beyond the files.
	Asked Asked
	// LeftOut are the addresses of what differs and the plan leaves as it is.
	LeftOut []string
	// Guards are what is protected once the plan is carried out, for the next one.
	Guards []Guard

	// Variables are digests of the values that the variables were given, by name.
	Variables []VariableDigest
	// Access is who gains or loses what, against what really runs now.
	Access []AccessChange
	// Reached is all that the spaces of the files will reach; no record keeps it.
	Reached []Access
	// asking is what is asked of each space, by address, for Consent; no record keeps it.
	asking map[string]asking
	// Items are in an order in which they can be carried out.
	Items []Item
	// Standing is what a reviewer must see in every plan: loosenings, networks and
	// hosts that are wide, accepted refusals, limits that aren't enforced.
	Standing []Notice
	// Notes say what was not checked and what is shown but not made.
	Notes []Notice
	// Assertions are those of the files and how they stand.
	Assertions []Judgement
	// Refusals are why the plan, or its apply, can't go ahead.
	Refusals []Refusal
}

// Asked are the flags that decide what a plan does, each sorted.
type Asked struct {
	Targets      []string
	Excludes     []string
	Replace      []string
	AllowDestroy []string
}

// Partial tells whether only a part of the plan was asked for.
func (a Asked) Partial() bool { return len(a.Targets)+len(a.Excludes) > 0 }

// VariableDigest tells one value of a variable from another, and nothing else of it.
type VariableDigest struct {
	Name   string
	Digest string // keyed; empty without a key
}

// Item is one thing to do.
type Item struct {
	// ID is stable and unique in the plan: "create network.agents".
	ID string
	// Subject is the address of the object, "space.web".
	Subject string
	Step    Step
	Changes []Change
	// Reasons are for the reader; nothing is decided by them.
	Reasons []string
	Origin  schema.Origin
	Effects Effects
	// Side is what moved, for an item without changes: a thing that is missing, or there
	// and not asked for.
	Side Side
	// Needs are the ids of items that must have succeeded before this one starts.
	Needs []string
}

// Change is one field that differs.
type Change struct {
	Field  string
	Before string
	After  string
	// BeforeSet and AfterSet tell an empty value from none.
	BeforeSet bool
	AfterSet  bool
	// Sensitive values are masked in Before and After; Digest tells them apart.
	Sensitive bool
	Digest    string
	// Forces is true where this change can't be made in place.
	Forces bool
	Side   Side
	Origin schema.Origin
}

// Side is what moved: the files, reality, or one that can't be told from the other.
type Side string

// The sides of a difference.
const (
	SideFiles   Side = "in the files"
	SideReality Side = "in reality"
	SideEither  Side = "either"
)

// Effects is the set of what an item does.
type Effects uint

// The effects of an item. Widens and Narrows are about access.
const (
	Widens Effects = 1 << iota
	Narrows
	Creates
	Updates
	Restarts
	Replaces
	Destroys
)

// AccessChange is one thing that a space can reach and didn't, or the reverse.
type AccessChange struct {
	Gains bool
	Access
	// Meets names who else will be on a network that is joined.
	Meets string
}

// Access is one thing that a space reaches.
type Access struct {
	Space string // "space.web", or a foreign container's name
	Kind  string // "mount", "host", "network", "port", "privilege"
	What  string // what is reached: "/work", "api.anthropic.com:443"
	How   string // through what, and how far
	// Wide things reach more than they name.
	Wide   bool
	Origin schema.Origin
}

// Notice is a line for the reader.
type Notice struct {
	Kind    string // "loosened", "wide", "accepted", "unenforced", "tmpfs", "unchecked", …
	Subject string
	Text    string
	// Reason is why, in the words of whoever wrote the files; empty where none is asked.
	Reason string
	Origin schema.Origin
}

// Refusal is why something can't go ahead until a person acts.
type Refusal struct {
	// Code is stable: "name-taken".
	Code string
	Text string
	Fix  string
	// Origin is where in the files, if anywhere.
	Origin schema.Origin
	// ApplyOnly refusals bar apply; the plan itself stands.
	ApplyOnly bool
	// Stays refusals bar nothing: the rest goes ahead and the thing itself is left.
	Stays bool
	// About is the address of the one object it is about: a plan that leaves the object
	// out does without.
	About string
}

// Error makes a refusal an error, for the parts that find one before there is a plan.
func (r *Refusal) Error() string { return r.Code + ": " + r.Text }

// The codes of refusals.
const (
	CodeConfigInvalid       = "config-invalid"
	CodeUsage               = "usage"
	CodeNotRootless         = "endpoint-not-rootless"
	CodeEngineUnsupported   = "engine-unsupported"
	CodeLimitsUnenforced    = "limits-unenforced"
	CodeNetworkNotIsolated  = "network-not-isolated"
	CodeNameTaken           = "name-taken"
	CodePlanStale           = "plan-stale"
	CodeNotYetSupported     = "not-yet-supported"
	CodeAppliedFromElse     = "applied-from-elsewhere"
	CodeNetworkInUse        = "network-in-use"
	CodeVolumeInUse         = "volume-in-use"
	CodeImageLabels         = "image-labels"
	CodeImageInput          = "image-input"
	CodeCPUs                = "cpus-unavailable"
	CodeEngineLacks         = "engine-lacks"
	CodeDataRoot            = "data-root-unfit"
	CodeGrantSource         = "grant-source"
	CodeGrantForbidden      = "grant-forbidden"
	CodeGrantHoldsConfig    = "grant-holds-configuration"
	CodeGrantSourceWritable = "grant-source-writable"
	CodeSecretFile          = "secret-file"
	CodeSocketPath          = "socket-path"
	CodeAssertionBroken     = "assertion-broken"
	CodeProtected           = "protected"
)
