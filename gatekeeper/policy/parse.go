package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Options are what the files say about an entry beside its host:port.
type Options struct {
	// Address is set by address = true: the host is an IP literal.
	Address bool
	// Private are the private ranges in which the host may lie, as CIDRs.
	Private []string
	// HasReason is true where a reason is written; wildcards need one.
	HasReason bool
}

// Code names a rule that an entry or a request's target breaks. Codes are stable.
type Code string

// The rules of an entry.
const (
	CodeEmpty            Code = "entry-empty"
	CodeCharacter        Code = "entry-character"         // white space, control or invalid bytes
	CodeScheme           Code = "entry-scheme"            // https://…
	CodeUserinfo         Code = "entry-userinfo"          // user@…
	CodePath             Code = "entry-path"              // …/path, ?query, #fragment
	CodeZone             Code = "entry-zone"              // fe80::1%eth0, or any escape
	CodeHostMissing      Code = "entry-host-missing"      // :443
	CodePortMissing      Code = "entry-port-missing"      // example.com
	CodePort             Code = "entry-port"              // not 1 to 65535 in plain decimal
	CodeBrackets         Code = "entry-brackets"          // brackets not around an IPv6 address
	CodeColons           Code = "entry-colons"            // an IPv6 address without brackets
	CodeLabel            Code = "entry-label"             // an empty, too long or badly made label
	CodeNameTooLong      Code = "entry-name-too-long"     // over 253 bytes
	CodeNotASCII         Code = "entry-not-ascii"         // a request's target that isn't in A-label form
	CodeIDNA             Code = "entry-idna"              // not a valid internationalised name
	CodeAmbiguousNumber  Code = "entry-ambiguous-number"  // 127.1, 0x7f.1: some read an address in it
	CodeLoopbackName     Code = "entry-loopback-name"     // localhost
	CodeStar             Code = "entry-star"              // a star anywhere but as the first label
	CodeStarTooWide      Code = "entry-star-too-wide"     // *.com
	CodeStarWithoutWhy   Code = "entry-star-without-why"  // no reason
	CodeNotAddress       Code = "entry-not-address"       // a name with address = true
	CodeAddressUnmarked  Code = "entry-address-unmarked"  // an address without address = true
	CodeAddressMapped    Code = "entry-address-mapped"    // ::ffff:192.0.2.1
	CodeAddressRefused   Code = "entry-address-refused"   // an address that never passes
	CodeAddressPrivate   Code = "entry-address-private"   // a private address whose range isn't named
	CodePrivateInvalid   Code = "entry-private-invalid"   // not a CIDR
	CodePrivateHostBits  Code = "entry-private-host-bits" // 10.0.5.1/24
	CodePrivateForbidden Code = "entry-private-forbidden" // not within what may be named
	CodePrivateUseless   Code = "entry-private-useless"   // an address that doesn't lie in it
	CodePrivateRepeated  Code = "entry-private-repeated"  // one range twice
)

// EntryError says which rule an entry breaks and what to write instead.
type EntryError struct {
	Code    Code
	Message string // what is wrong, as a sentence without a full stop
	Fix     string // what to write, likewise
}

func (e *EntryError) Error() string { return e.Message + ": " + e.Fix }

func entryError(code Code, fix, format string, args ...any) *EntryError {
	return &EntryError{Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}
}

const (
	maxName  = 253 // RFC 1035 section 2.3.4: 255 bytes on the wire
	maxLabel = 63
	maxRaw   = 1024 // far above any name in any spelling
)

// Parse reads an entry as it stands in a list. Every error is an *EntryError.
//
// The host's canonical form is lower case, in A-labels (RFC 5890) and without the
// trailing dot, of which one is taken off; an address is as RFC 5952 has it.
// Whatever two readers could take for two hosts is refused.
func Parse(raw string, o Options) (Entry, error) {
	e, err := parse(raw, o)
	if err != nil {
		return Entry{}, err // a nil *EntryError would not be a nil error
	}
	return e, nil
}

func parse(raw string, o Options) (Entry, *EntryError) {
	t, err := splitTarget(raw)
	if err != nil {
		return Entry{}, err
	}
	private, err := parsePrivate(o.Private)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Port: t.port, Private: private}
	switch {
	case t.bracketed:
		return addressEntry(e, t.host, o)
	case strings.Contains(t.host, "*"):
		return wildcardEntry(e, t.host, o)
	}
	name, err := nameToASCII(t.host)
	if err != nil {
		return Entry{}, err
	}
	if _, bad := netip.ParseAddr(name); bad == nil {
		return addressEntry(e, name, o)
	}
	if e.Host, err = canonicalName(name); err != nil {
		return Entry{}, err
	}
	if o.Address {
		return Entry{}, entryError(CodeNotAddress, "leave address out, or write the IP address", "%q is a name, and address = true says it is an IP address", t.host)
	}
	return e, checkLoopbackName(e.Host)
}

// addressEntry is an entry for an IP literal.
func addressEntry(e Entry, host string, o Options) (Entry, *EntryError) {
	ip, err := parseIPv4or6(host)
	if err != nil {
		return Entry{}, err
	}
	if ip.Is4In6() {
		return Entry{}, entryError(CodeAddressMapped, fmt.Sprintf("write %q", ip.Unmap()), "%q is an IPv4 address in IPv6 form (RFC 4291 section 2.5.5.2)", host)
	}
	if !o.Address {
		return Entry{}, entryError(CodeAddressUnmarked, "write the host's name, or add address = true",
			"%q is an IP address, which says less than a name about who answers there", host)
	}
	e.Host, e.Address = ip.String(), true
	switch r := classify(single(ip)); {
	case r.reach == never:
		return Entry{}, entryError(CodeAddressRefused, "take the entry out; no setting lets it through", "%s is never let through: it is %s", ip, r)
	case r.reach == ifNamed && !contains(e.Private, ip):
		return Entry{}, entryError(CodeAddressPrivate, fmt.Sprintf("add private = [%q], or the range it belongs to", single(ip)),
			"%s lies in %s, which is let through only where it is named", ip, r)
	case r.reach == always && len(e.Private) > 0:
		return Entry{}, entryError(CodePrivateUseless, "leave private out", "%s is not a private address", ip)
	}
	return e, nil
}

// wildcardEntry is an entry whose first label is a star. Two labels must stand
// below it: a single one is a top-level domain, which is half the Internet.
func wildcardEntry(e Entry, host string, o Options) (Entry, *EntryError) {
	below, ok := strings.CutPrefix(host, "*.")
	if !ok || strings.Contains(below, "*") {
		return Entry{}, entryError(CodeStar, `write the names one by one, or "*.example.com:443" for all below one name`,
			"%q has a star that isn't a whole first label before a name", host)
	}
	name, err := nameToASCII(below)
	if err != nil {
		return Entry{}, err
	}
	if name, err = canonicalName(name); err != nil {
		return Entry{}, err
	}
	switch {
	case o.Address:
		return Entry{}, entryError(CodeNotAddress, "leave address out", "%q is a name, and address = true says it is an IP address", host)
	case !strings.Contains(name, "."):
		return Entry{}, entryError(CodeStarTooWide, `name at least two labels, as in "*.example.com:443"`, "%q lets through every name of a top-level domain", host)
	case len(name)+len("a.") > maxName:
		return Entry{}, entryError(CodeNameTooLong, "write a name that exists", "no name can stand below %q: a name has at most %d bytes", name, maxName)
	}
	if err := checkLoopbackName(name); err != nil {
		return Entry{}, err
	}
	if !o.HasReason {
		return Entry{}, entryError(CodeStarWithoutWhy, "add a reason, or write the names one by one", "%q lets through every name below %s, and no reason is given", host, name)
	}
	e.Host, e.Wildcard = name, true
	return e, nil
}

// checkLoopbackName refuses localhost and what is below it, which are always
// loopback (RFC 6761 section 6.3).
func checkLoopbackName(name string) *EntryError {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return entryError(CodeLoopbackName, "put both ends on one network and name the space",
			"%q is loopback, where the proxy alone would be reached (RFC 6761 section 6.3)", name)
	}
	return nil
}

// ParseTarget reads the target of a CONNECT request (RFC 9110 section 9.3.6): the
// host in the form Match takes, and whether it is an IP address. What a list may
// say in words of its own (a wildcard, letters outside ASCII) a request may not.
// Every error is an *EntryError.
func ParseTarget(raw string) (host string, port uint16, isIP bool, err error) {
	t, bad := splitTarget(raw)
	if bad != nil {
		return "", 0, false, bad
	}
	if host, isIP, bad = canonicalHost(t.host); bad != nil {
		return "", 0, false, bad
	}
	return host, t.port, isIP, nil
}

// CanonicalHost brings a host of a request into the one form that Match compares:
// a name in lower case without its trailing dot, or an IP address as RFC 5952 has
// it, without brackets. An IPv4 address in IPv6 form becomes the IPv4 address. It
// reports whether the host is an address. A name must be in A-label form already;
// every error is an *EntryError.
func CanonicalHost(host string) (canonical string, isIP bool, err error) {
	canonical, isIP, bad := canonicalHost(host)
	if bad != nil {
		return "", false, bad
	}
	return canonical, isIP, nil
}

func canonicalHost(host string) (string, bool, *EntryError) {
	if err := checkCharacters(host); err != nil {
		return "", false, err
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, closed := strings.CutSuffix(inside, "]")
		if !closed || !strings.Contains(inside, ":") {
			return "", false, bracketsError(host)
		}
		host = inside
	}
	if strings.Contains(host, ":") {
		ip, err := parseIPv4or6(host)
		return ip.Unmap().String(), err == nil, err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String(), true, nil
	}
	for i := range len(host) {
		if host[i] >= utf8.RuneSelf {
			return "", false, entryError(CodeNotASCII, "ask for the name in A-label form (xn--…)", "%q has letters outside ASCII", host)
		}
	}
	name, err := canonicalName(host)
	return name, false, err
}

type target struct {
	host      string // without brackets
	bracketed bool
	port      uint16
}

const wantHostPort = `write the host and the port alone, as in "example.com:443"`

// splitTarget takes host:port apart. It looks for what doesn't belong there first,
// so that the message names that and not its consequence.
func splitTarget(raw string) (target, *EntryError) {
	if raw == "" {
		return target{}, entryError(CodeEmpty, wantHostPort, "the entry is empty")
	}
	if err := checkCharacters(raw); err != nil {
		return target{}, err
	}
	var t target
	var port string
	if rest, ok := strings.CutPrefix(raw, "["); ok {
		host, after, closed := strings.Cut(rest, "]")
		if !closed || !strings.Contains(host, ":") || strings.ContainsAny(host, "[") || strings.ContainsAny(after, "[]") {
			return target{}, bracketsError(raw)
		}
		if after == "" {
			return target{}, entryError(CodePortMissing, fmt.Sprintf("write \"%s:443\", or the port that is meant", raw), "%q has no port", raw)
		}
		if port, ok = strings.CutPrefix(after, ":"); !ok {
			return target{}, bracketsError(raw)
		}
		t.host, t.bracketed = host, true
	} else {
		if strings.ContainsAny(raw, "[]") {
			return target{}, bracketsError(raw)
		}
		host, after, ok := strings.Cut(raw, ":")
		switch {
		case !ok:
			return target{}, entryError(CodePortMissing, fmt.Sprintf("write \"%s:443\", or the port that is meant", raw), "%q has no port", raw)
		case strings.Contains(after, ":"):
			fix := wantHostPort
			if _, err := netip.ParseAddr(raw); err == nil {
				fix = fmt.Sprintf("write \"[%s]:443\", or the port that is meant", raw)
			}
			return target{}, entryError(CodeColons, fix, "%q has more than one colon; an IPv6 address stands in brackets", raw)
		case host == "":
			return target{}, entryError(CodeHostMissing, wantHostPort, "%q has no host", raw)
		}
		t.host, port = host, after
	}
	n, err := parsePort(port)
	t.port = n
	return t, err
}

// checkCharacters refuses what belongs to a URL and not to a host and port, and
// what can't be seen.
func checkCharacters(raw string) *EntryError {
	if len(raw) > maxRaw {
		return entryError(CodeNameTooLong, wantHostPort, "%.40q… is too long for a host", raw)
	}
	for i, r := range raw {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(raw[i:]); size == 1 {
				return entryError(CodeCharacter, wantHostPort, "%q has bytes that are no UTF-8", raw)
			}
		}
		if r <= ' ' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' {
			// The two joiners are letters of some names; IDNA judges where (RFC 5892 appendix A).
			return entryError(CodeCharacter, "take the character out", "%q has white space or a character that can't be seen, %q", raw, r)
		}
	}
	if strings.Contains(raw, "://") {
		return entryError(CodeScheme, wantHostPort, "%q is a URL; the proxy sees no scheme, only a host and a port", raw)
	}
	switch i := strings.IndexAny(raw, "@/?#\\%"); {
	case i < 0:
		return nil
	case raw[i] == '@':
		return entryError(CodeUserinfo, wantHostPort, "%q has a user before the host", raw)
	case raw[i] == '%':
		return entryError(CodeZone, "write the address without a zone, and a name without escapes", "%q has a zone or an escape, which mean something on one host alone", raw)
	default:
		return entryError(CodePath, wantHostPort, "%q has a path; the proxy sees no path, only a host and a port", raw)
	}
}

func bracketsError(raw string) *EntryError {
	return entryError(CodeBrackets, `write "[2001:db8::1]:443" for an IPv6 address, and anything else without brackets`, "%q doesn't have its brackets around an IPv6 address alone", raw)
}

// parsePort reads a port: plain decimal, since a reader that stops at 16 bits takes
// 65979 for 443.
func parsePort(port string) (uint16, *EntryError) {
	const fix = "write a port from 1 to 65535 in plain digits"
	if port == "" {
		return 0, entryError(CodePortMissing, fix, "the port is missing")
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return 0, entryError(CodePort, fix, "%q is not a port", port)
		}
	}
	if port[0] == '0' {
		return 0, entryError(CodePort, fix, "%q is not a port: it is 0 or starts with 0", port)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, entryError(CodePort, fix, "%q is over 65535", port)
	}
	return uint16(n), nil
}

func parseIPv4or6(host string) (netip.Addr, *EntryError) {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" {
		return netip.Addr{}, entryError(CodeBrackets, `write the address as in "[2001:db8::1]:443"`, "%q is not an IPv6 address", host)
	}
	return ip, nil
}

// nameToASCII converts U-labels to A-labels (RFC 5891 section 5, mapped as UTS #46
// has it). Only what is a U-label already, but for its case, is converted: a
// reviewer doesn't see that a letter is a full-width one or that a soft hyphen
// will vanish.
func nameToASCII(name string) (string, *EntryError) {
	ascii := true
	for i := range len(name) {
		ascii = ascii && name[i] < utf8.RuneSelf
	}
	if ascii {
		return name, nil
	}
	bare := strings.TrimSuffix(name, ".")
	profile := idnaProfile()
	converted, err := profile.ToASCII(bare)
	if err != nil {
		return "", entryError(CodeIDNA, "write the name in A-label form (xn--…), as its registrar has it", "%q is not a valid internationalised name: %s", name, idnaFault(err))
	}
	if back, err := profile.ToUnicode(converted); err != nil || back != strings.ToLower(bare) {
		return "", entryError(CodeIDNA, fmt.Sprintf("write %q, if that is the host that is meant", converted),
			"%q has characters that stand for others", name)
	}
	return converted, nil
}

// idnaProfile is x/net's Lookup, but that it takes hyphens in the third and fourth
// place: names in use have them (r3---sn-….googlevideo.com), and canonicalName
// looks at hyphens.
func idnaProfile() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.CheckHyphens(false))
}

func idnaFault(err error) string { return strings.TrimPrefix(err.Error(), "idna: ") }

// canonicalName judges a name in ASCII: labels of letters, digits and hyphens (RFC
// 1123 section 2.1), A-labels that are what encoding would make of them, and a last
// label that nobody reads as the last part of an IPv4 address.
func canonicalName(name string) (string, *EntryError) {
	lower := []byte(name)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	canonical := strings.TrimSuffix(string(lower), ".")
	if len(canonical) > maxName {
		return "", entryError(CodeNameTooLong, "write a name that exists", "%.40q… has over %d bytes (RFC 1035 section 2.3.4)", canonical, maxName)
	}
	encoded := false
	last := ""
	for label := range strings.SplitSeq(canonical, ".") {
		if err := checkLabel(name, label); err != nil {
			return "", err
		}
		encoded = encoded || strings.HasPrefix(label, "xn--")
		last = label
	}
	if looksNumeric(last) {
		return "", entryError(CodeAmbiguousNumber, `write an address as four decimal numbers, as in "192.0.2.1:443", with address = true`,
			"%q ends in a number, which some read as an IPv4 address and some as a name", name)
	}
	if encoded {
		if err := checkALabels(canonical); err != nil {
			return "", err
		}
	}
	return canonical, nil
}

func checkLabel(name, label string) *EntryError {
	switch {
	case label == "":
		return entryError(CodeLabel, "take the dot out", "%q has an empty label", name)
	case len(label) > maxLabel:
		return entryError(CodeLabel, "write a name that exists", "%q has a label of over %d bytes (RFC 1035 section 2.3.4)", name, maxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return entryError(CodeLabel, "write a name that exists", "%q has a label that starts or ends with a hyphen (RFC 1123 section 2.1)", name)
	}
	for i := range len(label) {
		if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return entryError(CodeLabel, "write a host's name: letters, digits and hyphens", "%q has %q, which is in no host's name (RFC 1123 section 2.1)", name, c)
		}
	}
	return nil
}

// looksNumeric is the "ends in a number" rule of the URL standard: every parser of
// IPv4 addresses in use, inet_aton's octal, hexadecimal and short forms included,
// starts from such a last label.
func looksNumeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// checkALabels refuses a label that starts with xn-- and is not the A-label of
// anything: decoders differ in what they make of it.
func checkALabels(name string) *EntryError {
	profile := idnaProfile()
	const fix = "write the name in A-label form (xn--…), as its registrar has it"
	unicode, err := profile.ToUnicode(name)
	if err != nil {
		return entryError(CodeIDNA, fix, "%q has an A-label that is not valid: %s", name, idnaFault(err))
	}
	if again, err := profile.ToASCII(unicode); err != nil || again != name {
		return entryError(CodeIDNA, fix, "%q has an A-label that stands for another name, %q", name, again)
	}
	return nil
}

// parsePrivate reads the private ranges of an entry: sorted, each named once.
func parsePrivate(raw []string) ([]netip.Prefix, *EntryError) {
	var private []netip.Prefix
	for _, text := range raw {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, entryError(CodePrivateInvalid, `write a range as in "10.0.5.0/24"`, "%q is not an address range", text)
		}
		if p.Addr().Is4In6() {
			return nil, entryError(CodePrivateInvalid, `write a range as in "10.0.5.0/24"`, "%q is an IPv4 range in IPv6 form", text)
		}
		if p != p.Masked() {
			return nil, entryError(CodePrivateHostBits, fmt.Sprintf("write %q for the range, or %q for the address", p.Masked(), single(p.Addr())),
				"%q has bits set beyond its length", text)
		}
		if err := checkNameable(p); err != nil {
			return nil, err
		}
		if slices.Contains(private, p) {
			return nil, entryError(CodePrivateRepeated, "take one out", "%q is named twice", p)
		}
		private = append(private, p)
	}
	slices.SortFunc(private, netip.Prefix.Compare)
	return private, nil
}

func contains(ranges []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}
