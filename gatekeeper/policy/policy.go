// Package policy decides what an egress entry means and who may hold what. It is
// pure: no socket, file or clock. The loader and the proxy both ask it, so that a
// reviewer and the gatekeeper can't disagree.
//
// The loader calls Parse for each entry of a list and MayHold for each grant. The
// proxy calls ParseTarget for what a client asks, Find for the entry that lets it
// through, and AllowedAnswer for every address the entry's name resolves to. What
// only the proxy knows, the addresses of its own networks, it checks itself.
package policy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Entry is one host:port pair that a list lets through. Parse makes it; the zero
// Entry lets nothing through.
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

// String is the entry's canonical form: "host:port", with brackets around an IPv6
// address (RFC 3986 section 3.2.2) and "*." before a wildcard's name. Parse takes it
// back to the same entry, given the same options.
func (e Entry) String() string {
	host := e.Host
	if e.Wildcard {
		host = "*." + host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
}

// Match reports whether the entry lets host and port through. A host that isn't in
// the form that CanonicalHost returns matches nothing.
func (e Entry) Match(host string, port uint16) bool {
	if e.Host == "" || port == 0 || port != e.Port {
		return false
	}
	if !e.Wildcard {
		return host == e.Host
	}
	if !strings.HasSuffix(host, "."+e.Host) {
		return false
	}
	// The suffix says nothing about what stands before it: a NUL there would end the
	// name for whoever resolves it.
	canonical, isIP, err := CanonicalHost(host)
	return err == nil && !isIP && canonical == host
}

// Wide reports whether the entry lets through more than one host: plans mark it.
func (e Entry) Wide() bool { return e.Wildcard }

// Explain says in words which hosts the entry lets through, for plans.
func (e Entry) Explain() string {
	var text string
	switch {
	case e.Wildcard:
		text = fmt.Sprintf("any name below %s, by one label or more (a.%[1]s, a.b.%[1]s), and not %[1]s itself", e.Host)
	case e.Address:
		text = fmt.Sprintf("the address %s, asked for as an address", e.Host)
	default:
		text = fmt.Sprintf("the name %s alone, nothing below it", e.Host)
	}
	if len(e.Private) == 0 {
		return text
	}
	ranges := make([]string, len(e.Private))
	for i, p := range e.Private {
		ranges[i] = p.String()
	}
	return text + "; it may lie in the private " + plural(len(ranges), "range", "ranges") + " " + strings.Join(ranges, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Find returns the entry that lets host and port through. An exact entry goes before
// a wildcard, and a longer wildcard before a shorter one, so that the private
// ranges of the entry written for a host are the ones that count, in whatever
// order a list stands.
func Find(list []Entry, host string, port uint16) (Entry, bool) {
	var found Entry
	ok := false
	for _, e := range list {
		if !e.Match(host, port) {
			continue
		}
		if !e.Wildcard {
			return e, true
		}
		if !ok || len(e.Host) > len(found.Host) {
			found, ok = e, true
		}
	}
	return found, ok
}
