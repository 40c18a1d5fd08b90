package policy

import (
	"fmt"
	"net/netip"
)

// reach says when an address may be dialled.
type reach int

const (
	never   reach = iota // whatever an entry says
	ifNamed              // only where the entry's private ranges contain it
	always
)

// addressRange is a range of addresses with one meaning.
type addressRange struct {
	prefix netip.Prefix
	reach  reach
	name   string
	source string
}

// String is the range in words: "link-local (169.254.0.0/16, RFC 3927)".
func (r addressRange) String() string {
	return fmt.Sprintf("%s (%s, %s)", r.name, r.prefix, r.source)
}

// ranges is the one table of what an address means, by the IANA registries of
// special-purpose addresses. The longest prefix that contains an address counts.
//
// What isn't the public Internet is refused: a name on a list is a promise about a
// host out there, and an answer that points inside is either a mistake or an
// attack (rebinding, metadata services, the engine's own network). Forms that carry
// an IPv4 address in an IPv6 one are refused whole, as what they carry may be inside.
//
// It is a variable only because Go has no constants of such types: nothing writes
// it, and it isn't made anew for each connection.
var ranges = [...]addressRange{
	special("0.0.0.0/0", always, "the public Internet", "RFC 791"),
	special("0.0.0.0/8", never, `"this network"`, "RFC 1122 section 3.2.1.3"),
	special("10.0.0.0/8", ifNamed, "private use", "RFC 1918"),
	special("100.64.0.0/10", ifNamed, "shared address space of carriers (CGNAT)", "RFC 6598"),
	special("100.100.100.200/32", never, "a cloud's metadata service", "Alibaba Cloud's ECS documentation"),
	special("127.0.0.0/8", never, "loopback", "RFC 1122 section 3.2.1.3"),
	special("168.63.129.16/32", never, "a cloud's metadata service", "Azure's documentation of 168.63.129.16"),
	special("169.254.0.0/16", never, "link-local, where clouds keep their metadata services", "RFC 3927"),
	special("172.16.0.0/12", ifNamed, "private use", "RFC 1918"),
	special("192.0.0.0/24", never, "IETF protocol assignments", "RFC 6890"),
	special("192.0.2.0/24", never, "documentation", "RFC 5737"),
	special("192.88.99.0/24", never, "the former 6to4 relays", "RFC 7526"),
	special("192.168.0.0/16", ifNamed, "private use", "RFC 1918"),
	special("198.18.0.0/15", never, "benchmarking", "RFC 2544"),
	special("198.51.100.0/24", never, "documentation", "RFC 5737"),
	special("203.0.113.0/24", never, "documentation", "RFC 5737"),
	special("224.0.0.0/4", never, "multicast", "RFC 5771"),
	special("240.0.0.0/4", never, "reserved", "RFC 1112 section 4"),
	special("255.255.255.255/32", never, "broadcast", "RFC 919"),

	special("::/0", never, "not assigned to the public Internet", "RFC 4291 section 2.4"),
	special("2000::/3", always, "the public Internet", "RFC 4291 section 2.4"),
	special("::/128", never, "the unspecified address", "RFC 4291 section 2.5.2"),
	special("::1/128", never, "loopback", "RFC 4291 section 2.5.3"),
	special("::/96", never, "an IPv4 address in IPv6 form (IPv4-compatible)", "RFC 4291 section 2.5.5.1"),
	special("::ffff:0:0/96", never, "an IPv4 address in IPv6 form (IPv4-mapped)", "RFC 4291 section 2.5.5.2"),
	special("::ffff:0:0:0/96", never, "an IPv4 address in IPv6 form (IPv4-translated)", "RFC 2765 section 2.1"),
	special("64:ff9b::/96", never, "an IPv4 address in IPv6 form (NAT64)", "RFC 6052"),
	special("64:ff9b:1::/48", never, "an IPv4 address in IPv6 form (local NAT64)", "RFC 8215"),
	special("100::/64", never, "discard-only", "RFC 6666"),
	special("100:0:0:1::/64", never, "a dummy prefix", "RFC 9780"),
	special("2001::/23", never, "IETF protocol assignments", "RFC 2928"),
	special("2001::/32", never, "an IPv4 address in IPv6 form (Teredo)", "RFC 4380"),
	special("2001:2::/48", never, "benchmarking", "RFC 5180"),
	special("2001:10::/28", never, "identifiers that are no addresses (ORCHID)", "RFC 4843"),
	special("2001:20::/28", never, "identifiers that are no addresses (ORCHIDv2)", "RFC 7343"),
	special("2001:db8::/32", never, "documentation", "RFC 3849"),
	special("2002::/16", never, "an IPv4 address in IPv6 form (6to4)", "RFC 3056"),
	special("3fff::/20", never, "documentation", "RFC 9637"),
	special("5f00::/16", never, "segment identifiers (SRv6)", "RFC 9602"),
	special("fc00::/7", ifNamed, "private use (unique local)", "RFC 4193"),
	special("fd00:ec2::254/128", never, "a cloud's metadata service", "Amazon EC2's documentation"),
	special("fd20:ce::254/128", never, "a cloud's metadata service", "Google Compute Engine's documentation"),
	special("fe80::/10", never, "link-local", "RFC 4291 section 2.5.6"),
	special("fec0::/10", never, "site-local, which is given up", "RFC 3879"),
	special("ff00::/8", never, "multicast", "RFC 4291 section 2.7"),
}

func special(prefix string, reach reach, name, source string) addressRange {
	return addressRange{netip.MustParsePrefix(prefix), reach, name, source}
}

// classify finds the range that an address, or all of a range, belongs to. p has no
// zone and isn't an IPv4 address in IPv6 form.
func classify(p netip.Prefix) addressRange {
	var found addressRange
	for i := range ranges {
		at := &ranges[i]
		if at.prefix.Bits() <= p.Bits() && at.prefix.Contains(p.Addr()) && (!found.prefix.IsValid() || at.prefix.Bits() > found.prefix.Bits()) {
			found = *at
		}
	}
	return found
}

func single(ip netip.Addr) netip.Prefix { return netip.PrefixFrom(ip, ip.BitLen()) }

// checkNameable judges a range that an entry names as private: all of it must lie
// in a range that may be named. An address within that never passes still doesn't.
func checkNameable(p netip.Prefix) *EntryError {
	r := classify(p)
	const fix = "name a range within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7"
	switch r.reach {
	case never:
		return entryError(CodePrivateForbidden, fix, "%s is never let through: it is %s", p, r)
	case always:
		return entryError(CodePrivateForbidden, fix, "%s is not private, or not all of it", p)
	}
	return nil
}

// AnswerError says why an address that a listed host resolves to is not dialled.
type AnswerError struct {
	Addr netip.Addr
	// Range names what the address belongs to, with its source.
	Range string
	// Nameable is true where naming the range in the entry would let it through.
	Nameable bool
}

func (e *AnswerError) Error() string {
	if e.Nameable {
		return fmt.Sprintf("%s is %s, and the entry doesn't name it: add private = [%q] or the range it belongs to, if that is meant",
			e.Addr, e.Range, single(e.Addr))
	}
	return fmt.Sprintf("%s is never let through: it is %s", e.Addr, e.Range)
}

// AllowedAnswer says whether an address that the entry's host resolves to may be
// dialled; nil is yes, and any error is an *AnswerError. It judges an IPv4 address
// in mapped form (which Go's resolver returns for A records) as the IPv4 address,
// and so must the caller dial it, with Unmap. One bad address among good ones
// refuses the whole answer; that, and the proxy's own networks, are the caller's
// to see to.
func AllowedAnswer(e Entry, ip netip.Addr) error {
	if !ip.IsValid() || ip.Zone() != "" {
		return &AnswerError{Addr: ip, Range: "no address, or one with a zone"}
	}
	ip = ip.Unmap()
	if e.Address && e.Host != ip.String() {
		return &AnswerError{Addr: ip, Range: "not the address of the entry, " + e.Host}
	}
	switch r := classify(single(ip)); {
	case r.reach == always, r.reach == ifNamed && contains(e.Private, ip):
		return nil
	default:
		return &AnswerError{Addr: ip, Range: r.String(), Nameable: r.reach == ifNamed}
	}
}
