package policy

import (
	"fmt"
	"slices"
	"strings"
)

// The sockets that a grant may name. The relay's has no name here: it proves that a
// human calls, and a space that held it would be one.
const (
	SocketAgent  = "agent"  // the broker, for agents: capability envelopes only
	SocketHuman  = "human"  // the broker, for people: human envelopes only
	SocketLaunch = "launch" // starts sessions
	SocketGit    = "git"    // fetches and pushes code
)

// The parts of the data root that a grant may name.
const (
	DataStore = "store" // the broker's store
	DataHost  = "host"  // what the host writes for the Console to read
)

// What a role's sessions may hold.
const (
	HoldLaunch = SocketLaunch
	HoldGit    = SocketGit
)

// Sockets, DataParts and Holds are the names there are, sorted.
func Sockets() []string   { return []string{SocketAgent, SocketGit, SocketHuman, SocketLaunch} }
func DataParts() []string { return []string{DataHost, DataStore} }
func Holds() []string     { return []string{HoldGit, HoldLaunch} }

// Holder is who a grant would give something to. A space that several roles launch
// is asked about once for each: it holds what all of them may.
type Holder struct {
	// Core is true for the space that holds the broker.
	Core bool
	// Role names the role that launches the space, empty for a space that no role does.
	Role string
	// Holds is what that role holds.
	Holds []string
}

// HoldCode names a rule of who may hold what. Codes are stable.
type HoldCode string

// The rules of who may hold what.
const (
	CodeHoldUnknown  HoldCode = "hold-unknown"   // no such socket or part
	CodeHoldRelay    HoldCode = "hold-relay"     // the relay's socket
	CodeHoldHuman    HoldCode = "hold-human"     // a role would speak as a person
	CodeHoldNotHeld  HoldCode = "hold-not-held"  // the role doesn't say so
	CodeHoldData     HoldCode = "hold-data"      // a role would read what the host keeps
	CodeHoldStore    HoldCode = "hold-store"     // the core alone
	CodeHoldReadOnly HoldCode = "hold-read-only" // what the host writes, nobody else does
)

// HoldError says why a space may not hold something, and what to write instead.
type HoldError struct {
	Code    HoldCode
	Message string
	Fix     string
}

func (e *HoldError) Error() string { return e.Message + ": " + e.Fix }

func holdError(code HoldCode, fix, format string, args ...any) error {
	return &HoldError{Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// MayHoldSocket says whether the holder may be granted a socket; nil is yes, and any
// error is a *HoldError.
func MayHoldSocket(h Holder, socket string) error {
	switch {
	case socket == "relay":
		return holdError(CodeHoldRelay, "take the grant out; people reach the broker through the relay from the host", "the relay's socket is never granted")
	case !slices.Contains(Sockets(), socket):
		return holdError(CodeHoldUnknown, "write one of "+strings.Join(Sockets(), ", "), "there is no socket %q", socket)
	case h.Role == "" || socket == SocketAgent:
		return nil
	case socket == SocketHuman:
		return holdError(CodeHoldHuman, `grant socket = "agent" instead`, "role %q would speak as a person", h.Role)
	case !slices.Contains(h.Holds, socket):
		return holdError(CodeHoldNotHeld, fmt.Sprintf("add %q to the role's holds, or take the grant out", socket), "role %q doesn't hold %q", h.Role, socket)
	}
	return nil
}

// MayHoldData says whether the holder may be granted a part of the data root; nil is
// yes, and any error is a *HoldError.
func MayHoldData(h Holder, part string, writable bool) error {
	switch {
	case !slices.Contains(DataParts(), part):
		return holdError(CodeHoldUnknown, "write one of "+strings.Join(DataParts(), ", "), "the data root has no part %q that can be granted", part)
	case h.Role != "":
		return holdError(CodeHoldData, "take the grant out; a session asks the broker", "role %q would read what the host keeps in %q", h.Role, part)
	case part == DataStore && !h.Core:
		return holdError(CodeHoldStore, "take the grant out; other spaces ask the broker", "the store is the core's alone")
	case part == DataHost && writable:
		return holdError(CodeHoldReadOnly, `write access = "ro"`, "what the host writes is read-only to every space")
	}
	return nil
}

// MayRoleHold says whether a role may hold something at all; nil is yes, and any
// error is a *HoldError.
func MayRoleHold(hold string) error {
	if slices.Contains(Holds(), hold) {
		return nil
	}
	return holdError(CodeHoldUnknown, "write one of "+strings.Join(Holds(), ", "), "a role can't hold %q", hold)
}
