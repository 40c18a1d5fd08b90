package policy

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Pattern is what an assertion says of hosts: one host, all below a name or any, on one
// port or on any. ParsePattern makes it.
type Pattern struct {
	// Host is as in Entry, and empty for any host.
	Host string
	// Port is 0 for any port.
	Port uint16
	// Wildcard and Address are as in Entry.
	Wildcard bool
	Address  bool
}

const (
	anything        = "*"
	patternFix      = `write the host and the port, as in "example.com:443", "*.example.com:443", "example.com:*" or "*:*"`
	anyPortStandsIn = ":1" // the port of an entry that is read for its host alone
)

// ParsePattern reads a pattern: an entry as Parse has it, for which no reason is needed
// and an address needs no mark, or one with a star for the host, the port or both. Every
// error is an *EntryError.
func ParsePattern(raw string) (Pattern, error) {
	p, err := parsePattern(raw)
	if err != nil {
		return Pattern{}, err // a nil *EntryError would not be a nil error
	}
	return p, nil
}

func parsePattern(raw string) (Pattern, *EntryError) {
	host, port := raw, ""
	if i := strings.LastIndexByte(raw, ':'); i >= 0 {
		host, port = raw[:i], raw[i+1:]
	}
	switch {
	case host == anything && port == anything:
		return Pattern{}, nil
	case host == anything && port != "":
		n, err := parsePort(port)
		return Pattern{Port: n}, err
	case port == anything:
		p, err := hostPattern(host + anyPortStandsIn)
		p.Port = 0
		return p, err
	}
	return hostPattern(raw)
}

// hostPattern reads a pattern whose host and port are both written.
func hostPattern(raw string) (Pattern, *EntryError) {
	e, err := parse(raw, Options{HasReason: true})
	switch {
	case err == nil:
		return Pattern{e.Host, e.Port, e.Wildcard, e.Address}, nil
	case err.Code == CodePortMissing:
		err.Fix = patternFix
		return Pattern{}, err
	case err.Code != CodeAddressUnmarked:
		return Pattern{}, err
	}
	// An address that no list may name is still one that an open network leads to.
	host, port, isIP, bad := ParseTarget(raw)
	if bad != nil {
		errors.As(bad, &err)
		return Pattern{}, err
	}
	return Pattern{Host: host, Port: port, Address: isIP}, nil
}

// String is the pattern as ParsePattern takes it back.
func (p Pattern) String() string {
	port := anything
	if p.Port != 0 {
		port = strconv.Itoa(int(p.Port))
	}
	host := anything
	switch {
	case p.Wildcard:
		host = "*." + p.Host
	case strings.Contains(p.Host, ":"):
		host = "[" + p.Host + "]"
	case p.Host != "":
		host = p.Host
	}
	return host + ":" + port
}

// Overlaps reports whether an entry lets through anything that the pattern is about. Of
// a name that leads somewhere, only private addresses are known, by the ranges that the
// entry names: where else it leads is for its owner to say, and isn't judged.
func (p Pattern) Overlaps(e Entry) bool {
	if e.Host == "" || p.Port != 0 && p.Port != e.Port {
		return false
	}
	switch {
	case p.Host == "":
		return true
	case p.Address && e.Address:
		return p.Host == e.Host
	case p.Address:
		ip, err := netip.ParseAddr(p.Host)
		return err == nil && contains(e.Private, ip)
	case e.Address:
		return false
	case !p.Wildcard:
		return e.Match(p.Host, e.Port)
	}
	below := Entry{Host: p.Host, Port: e.Port, Wildcard: true}
	if !e.Wildcard {
		return below.Match(e.Host, e.Port)
	}
	// Of two wildcards one holds the other, or they have no name in common.
	return p.Host == e.Host || below.Match(e.Host, e.Port) || e.Match(p.Host, e.Port)
}
