// Package policy decides what an egress entry means and who may hold what. It is
// pure: no socket, file or clock. The loader and the proxy both ask it, so that a
// reviewer and the gatekeeper can't disagree.
package policy

import "net/netip"

// Entry is one host:port pair that a list lets through.
type Entry struct {
	// Host is the canonical host: an exact name in lower-case A-label form without a
	// trailing dot, the name below the wildcard for a wildcard, or an IP literal.
	Host string
	Port uint16
	// Wildcard entries match one or more whole labels before Host, never Host itself.
	Wildcard bool
	// Address is true where Host is an IP literal.
	Address bool
	// Private lists the private ranges in which answers are allowed.
	Private []netip.Prefix
}
