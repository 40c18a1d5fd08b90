package policy

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestAllowedAnswer(t *testing.T) {
	public := entry(t, "example.com:443", Options{})
	private := entry(t, "db.example.com:443", Options{Private: []string{
		"10.0.5.0/24", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
	}})
	for _, c := range []struct {
		ip    string
		named bool   // let through by the entry that names private ranges
		why   string // empty: let through by both
	}{
		{ip: "93.184.216.34"},
		{ip: "1.1.1.1"},
		{ip: "9.255.255.255"},
		{ip: "11.0.0.0"},
		{ip: "172.15.255.255"},
		{ip: "172.32.0.0"},
		{ip: "100.63.255.255"},
		{ip: "100.128.0.0"},
		{ip: "126.255.255.255"},
		{ip: "128.0.0.0"},
		{ip: "223.255.255.255"},
		{ip: "192.0.1.0"},
		{ip: "198.17.255.255"},
		{ip: "198.20.0.0"},
		{ip: "::ffff:93.184.216.34"},
		{ip: "2606:4700::1111"},
		{ip: "2001:4860:4860::8888"},
		{ip: "2001:200::1"},
		{ip: "2003::1"},
		{ip: "3fff:1000::1"},

		{ip: "10.0.5.1", named: true, why: "RFC 1918"},
		{ip: "::ffff:10.0.5.1", named: true, why: "RFC 1918"},
		{ip: "10.0.6.1", why: "RFC 1918"},
		{ip: "172.16.0.1", named: true, why: "RFC 1918"},
		{ip: "192.168.255.255", named: true, why: "RFC 1918"},
		{ip: "100.64.0.1", named: true, why: "RFC 6598"},
		{ip: "fd00::1", named: true, why: "RFC 4193"},
		{ip: "fc00::1", named: true, why: "RFC 4193"},

		{ip: "0.0.0.0", why: "RFC 1122"},
		{ip: "0.1.2.3", why: "RFC 1122"},
		{ip: "127.0.0.1", why: "loopback"},
		{ip: "127.255.255.254", why: "loopback"},
		{ip: "::ffff:127.0.0.1", why: "loopback"},
		{ip: "::ffff:169.254.169.254", why: "link-local"},
		{ip: "169.254.169.254", why: "link-local"},
		{ip: "169.254.170.2", why: "link-local"}, // ECS credentials
		{ip: "100.100.100.200", why: "metadata"},
		{ip: "168.63.129.16", why: "metadata"},
		{ip: "fd00:ec2::254", why: "metadata"},
		{ip: "fd20:ce::254", why: "metadata"},
		{ip: "192.0.0.192", why: "RFC 6890"}, // Oracle's metadata
		{ip: "192.0.0.170", why: "RFC 6890"}, // ipv4only.arpa
		{ip: "192.0.2.1", why: "documentation"},
		{ip: "198.51.100.1", why: "documentation"},
		{ip: "203.0.113.1", why: "documentation"},
		{ip: "192.88.99.1", why: "6to4"},
		{ip: "198.18.0.1", why: "benchmarking"},
		{ip: "198.19.255.255", why: "benchmarking"},
		{ip: "224.0.0.1", why: "multicast"},
		{ip: "239.255.255.250", why: "multicast"},
		{ip: "240.0.0.1", why: "reserved"},
		{ip: "255.255.255.254", why: "reserved"},
		{ip: "255.255.255.255", why: "broadcast"},
		{ip: "::", why: "unspecified"},
		{ip: "::1", why: "loopback"},
		{ip: "::7f00:1", why: "IPv4-compatible"},
		{ip: "::10.0.0.1", why: "IPv4-compatible"},
		{ip: "::ffff:0:a00:1", why: "IPv4-translated"},
		{ip: "64:ff9b::7f00:1", why: "NAT64"},
		{ip: "64:ff9b::808:808", why: "NAT64"},
		{ip: "64:ff9b:1::a00:1", why: "local NAT64"},
		{ip: "64:ff9b:2::1", why: "not assigned"},
		{ip: "100::1", why: "discard-only"},
		{ip: "100:0:0:1::1", why: "dummy"},
		{ip: "2001::1", why: "Teredo"},
		{ip: "2001:0:4136:e378:8000:63bf:3fff:fdd2", why: "Teredo"},
		{ip: "2001:1::1", why: "IETF protocol"},
		{ip: "2001:2::1", why: "benchmarking"},
		{ip: "2001:10::1", why: "ORCHID"},
		{ip: "2001:20::1", why: "ORCHIDv2"},
		{ip: "2001:db8::1", why: "documentation"},
		{ip: "2002:a00:1::", why: "6to4"},
		{ip: "2002:7f00:1::", why: "6to4"},
		{ip: "3fff::1", why: "documentation"},
		{ip: "4000::1", why: "not assigned"},
		{ip: "5f00::1", why: "SRv6"},
		{ip: "200::1", why: "not assigned"},
		{ip: "f000::1", why: "not assigned"},
		{ip: "fe80::1", why: "link-local"},
		{ip: "fe80::1%eth0", why: "zone"},
		{ip: "febf::1", why: "link-local"},
		{ip: "fec0::1", why: "site-local"},
		{ip: "ff02::1", why: "multicast"},
	} {
		ip := netip.MustParseAddr(c.ip)
		for _, e := range []Entry{public, private} {
			err := AllowedAnswer(e, ip)
			if want := c.why == "" || c.named && len(e.Private) > 0; (err == nil) != want {
				t.Errorf("%s for %s: %v, want let through %t", c.ip, e, err, want)
			}
			if err == nil {
				continue
			}
			var bad *AnswerError
			if !errors.As(err, &bad) || !strings.Contains(bad.Error(), c.why) {
				t.Errorf("%s for %s: %v, want %q", c.ip, e, err, c.why)
			}
			if strings.Contains(bad.Error(), "add private") != bad.Nameable {
				t.Errorf("%s for %s: %v, and nameable is %t", c.ip, e, err, bad.Nameable)
			}
		}
	}
	if AllowedAnswer(public, netip.Addr{}) == nil {
		t.Error("no address is let through")
	}
	literal := entry(t, "93.184.216.34:443", Options{Address: true})
	if err := AllowedAnswer(literal, netip.MustParseAddr("93.184.216.34")); err != nil {
		t.Error(err)
	}
	if AllowedAnswer(literal, netip.MustParseAddr("93.184.216.35")) == nil {
		t.Error("an address entry lets another address through")
	}
}

// The table has every range once, in canonical form, and says what it is and by
// what source. What is never let through can't be named either.
func TestRanges(t *testing.T) {
	var seen []netip.Prefix
	for _, r := range ranges {
		if r.prefix != r.prefix.Masked() {
			t.Errorf("%s has host bits", r.prefix)
		}
		if slices.Contains(seen, r.prefix) {
			t.Errorf("%s stands twice", r.prefix)
		}
		seen = append(seen, r.prefix)
		if r.name == "" || r.source == "" {
			t.Errorf("%s has no name or no source", r.prefix)
		}
		if got := classify(r.prefix); got.prefix != r.prefix {
			t.Errorf("%s is classified as %s", r.prefix, got)
		}
		if r.prefix.Addr().Is4In6() {
			continue // refused for its form
		}
		_, err := Parse("a.com:1", Options{Private: []string{r.prefix.String()}})
		if (err == nil) != (r.reach == ifNamed) {
			t.Errorf("%s named as private: %v", r, err)
		}
	}
	// What the standard library calls other than global unicast, or private, isn't public here.
	for _, text := range []string{"0.0.0.0", "127.0.0.1", "169.254.0.1", "224.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "::", "::1", "fe80::1", "ff02::1", "fd00::1"} {
		if r := classify(single(netip.MustParseAddr(text))); r.reach == always {
			t.Errorf("%s is %s", text, r)
		}
	}
}

func BenchmarkAllowedAnswer(b *testing.B) {
	e := entry(b, "example.com:443", Options{})
	ip := netip.MustParseAddr("93.184.216.34")
	for b.Loop() {
		if err := AllowedAnswer(e, ip); err != nil {
			b.Fatal(err)
		}
	}
}
