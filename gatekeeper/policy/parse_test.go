package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var label63 = strings.Repeat("a", 63)

// name253 is as long as a name may be.
var name253 = strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)

func TestParse(t *testing.T) {
	wide := Options{HasReason: true}
	address := Options{Address: true}
	for _, c := range []struct {
		raw  string
		o    Options
		want string // the canonical form, or
		code Code   // the rule broken
	}{
		// Names.
		{raw: "example.com:443", want: "example.com:443"},
		{raw: "EXAMPLE.com:443", want: "example.com:443"},
		{raw: "example.com.:443", want: "example.com:443"},
		{raw: "db:5432", want: "db:5432"},
		{raw: "1and1.com:443", want: "1and1.com:443"},
		{raw: "3com:443", want: "3com:443"},
		{raw: "a--b.example.com:443", want: "a--b.example.com:443"},
		{raw: "r3---sn-apo3qvuoxuxbt-j5pe.googlevideo.com:443", want: "r3---sn-apo3qvuoxuxbt-j5pe.googlevideo.com:443"},
		{raw: label63 + ".com:1", want: label63 + ".com:1"},
		{raw: name253 + ":65535", want: name253 + ":65535"},
		{raw: name253 + ".:65535", want: name253 + ":65535"},
		{raw: "example.com..:443", code: CodeLabel},
		{raw: "example..com:443", code: CodeLabel},
		{raw: ".example.com:443", code: CodeLabel},
		{raw: ".:443", code: CodeLabel},
		{raw: "-a.example.com:443", code: CodeLabel},
		{raw: "a-.example.com:443", code: CodeLabel},
		{raw: "a_b.example.com:443", code: CodeLabel},
		{raw: "a,b:443", code: CodeLabel},
		{raw: "a!b.com:443", code: CodeLabel},
		{raw: label63 + "a.com:443", code: CodeLabel},
		{raw: name253 + "b:443", code: CodeNameTooLong},
		{raw: strings.Repeat("a", 2000), code: CodeNameTooLong},
		{raw: "localhost:443", code: CodeLoopbackName},
		{raw: "a.LOCALHOST:443", code: CodeLoopbackName},

		// Letters outside ASCII.
		{raw: "exämple.com:443", want: "xn--exmple-cua.com:443"},
		{raw: "EXÄMPLE.com:443", want: "xn--exmple-cua.com:443"},
		{raw: "exämple.com.:443", want: "xn--exmple-cua.com:443"},
		{raw: "xn--exmple-cua.com:443", want: "xn--exmple-cua.com:443"},
		{raw: "XN--EXMPLE-CUA.com:443", want: "xn--exmple-cua.com:443"},
		{raw: "faß.de:443", want: "xn--fa-hia.de:443"},
		{raw: "日本語.jp:443", want: "xn--wgv71a119e.jp:443"},
		{raw: "נאָמען.example:443", want: "xn--gdb1c0bebp.example:443"},
		{raw: "exa\u00admple.com:443", code: CodeCharacter}, // a soft hyphen, which would vanish
		{raw: "exa\u200bmple.com:443", code: CodeCharacter}, // no width
		{raw: "\ufeffexample.com:443", code: CodeCharacter},
		{raw: "example\u3002com:443", code: CodeIDNA}, // an ideographic full stop
		{raw: "ｅxample.com:443", code: CodeIDNA},      // full width
		{raw: "１２７.0.0.1:443", o: address, code: CodeIDNA},
		{raw: "⑯⑨.254.169.254:443", o: address, code: CodeIDNA},
		{raw: "exa\u0308mple.com:443", code: CodeIDNA}, // ä in two parts: write it in one, or as A-label
		{raw: "a\u200db.com:443", code: CodeIDNA},      // a joiner where none may be
		{raw: "℀.com:443", code: CodeIDNA},             // a/c
		{raw: "xn--a.com:443", code: CodeIDNA},         // no punycode
		{raw: "xn--example-.com:443", code: CodeLabel},
		{raw: "xn--.com:443", code: CodeLabel},
		{raw: "xn--mgba3gch31f.xn--0.com:443", code: CodeIDNA},
		{raw: "xn--a-5da.com:443", code: CodeIDNA}, // an upper-case letter, encoded
		{raw: "α" + strings.Repeat("a", 70) + ".com:443", code: CodeLabel},

		// Ports.
		{raw: "example.com", code: CodePortMissing},
		{raw: "example.com:", code: CodePortMissing},
		{raw: "example.com:0", code: CodePort},
		{raw: "example.com:0443", code: CodePort},
		{raw: "example.com:+443", code: CodePort},
		{raw: "example.com:-1", code: CodePort},
		{raw: "example.com:65536", code: CodePort},
		{raw: "example.com:65979", code: CodePort}, // 443 mod 2^16
		{raw: "example.com:18446744073709552059", code: CodePort},
		{raw: "example.com:https", code: CodePort},
		{raw: "example.com:*", code: CodePort},
		{raw: "example.com:0x1bb", code: CodePort},
		{raw: "example.com:4_43", code: CodePort},
		{raw: "example.com:٤٤٣", code: CodePort},
		{raw: "example.com: 443", code: CodeCharacter},
		{raw: "example.com:443 ", code: CodeCharacter},
		{raw: "example.com:80-90", code: CodePort},

		// What belongs to a URL.
		{raw: "", code: CodeEmpty},
		{raw: ":443", code: CodeHostMissing},
		{raw: "https://example.com", code: CodeScheme},
		{raw: "http://example.com:443/", code: CodeScheme},
		{raw: "example.com:443/a?b", code: CodePath},
		{raw: "example.com:443?b", code: CodePath},
		{raw: "example.com:443#b", code: CodePath},
		{raw: `example.com\.evil.com:443`, code: CodePath},
		{raw: "//example.com:443", code: CodePath},
		{raw: "u@example.com:443", code: CodeUserinfo},
		{raw: "u:p@example.com:443", code: CodeUserinfo},
		{raw: "example.com:443@evil.com:443", code: CodeUserinfo},
		{raw: "evil.com%00.example.com:443", code: CodeZone},
		{raw: "example%2ecom:443", code: CodeZone},
		{raw: "evil.com\x00.example.com:443", code: CodeCharacter},
		{raw: "example.com:443\r\nHost: evil.com", code: CodeCharacter},
		{raw: "example.com\t:443", code: CodeCharacter},
		{raw: "example.com\x7f:443", code: CodeCharacter},
		{raw: "example\u00a0.com:443", code: CodeCharacter},
		{raw: "example\u2028.com:443", code: CodeCharacter},
		{raw: "ex\u202eample.com:443", code: CodeCharacter}, // right to left
		{raw: "ex\xffample.com:443", code: CodeCharacter},

		// Wildcards.
		{raw: "*.example.com:443", o: wide, want: "*.example.com:443"},
		{raw: "*.Example.com.:443", o: wide, want: "*.example.com:443"},
		{raw: "*.exämple.com:443", o: wide, want: "*.xn--exmple-cua.com:443"},
		{raw: "*.example.com:443", code: CodeStarWithoutWhy},
		{raw: "*.com:443", o: wide, code: CodeStarTooWide},
		{raw: "*.com.:443", o: wide, code: CodeStarTooWide},
		{raw: "*:443", o: wide, code: CodeStar},
		{raw: "*.:443", o: wide, code: CodeLabel},
		{raw: "*.*.example.com:443", o: wide, code: CodeStar},
		{raw: "a.*.example.com:443", o: wide, code: CodeStar},
		{raw: "*a.example.com:443", o: wide, code: CodeStar},
		{raw: "a*.example.com:443", o: wide, code: CodeStar},
		{raw: "**.example.com:443", o: wide, code: CodeStar},
		{raw: "example.*:443", o: wide, code: CodeStar},
		{raw: "*..example.com:443", o: wide, code: CodeLabel},
		{raw: "*.1.1:443", o: wide, code: CodeAmbiguousNumber},
		{raw: "*.0.0.1:443", o: wide, code: CodeAmbiguousNumber},
		{raw: "[*]:443", o: wide, code: CodeBrackets},
		{raw: "＊.example.com:443", o: wide, code: CodeIDNA},
		{raw: "*.example.com:443", o: Options{HasReason: true, Address: true}, code: CodeNotAddress},
		{raw: "*.a.localhost:443", o: wide, code: CodeLoopbackName},
		{raw: "*." + name253 + ":443", o: wide, code: CodeNameTooLong},

		// Addresses.
		{raw: "93.184.216.34:443", o: address, want: "93.184.216.34:443"},
		{raw: "93.184.216.34:443", code: CodeAddressUnmarked},
		{raw: "example.com:443", o: address, code: CodeNotAddress},
		{raw: "[2606:2800:220:1:248:1893:25c8:1946]:443", o: address, want: "[2606:2800:220:1:248:1893:25c8:1946]:443"},
		{raw: "[2606:4700:0:0:0:0:0:1111]:443", o: address, want: "[2606:4700::1111]:443"},
		{raw: "[2606:4700::ABCD]:443", o: address, want: "[2606:4700::abcd]:443"},
		{raw: "[2606:4700::1111]:443", code: CodeAddressUnmarked},
		{raw: "2606:4700::1111:443", o: address, code: CodeColons},
		{raw: "::1:443", o: address, code: CodeColons},
		{raw: "2606:4700::1111", o: address, code: CodeColons},
		{raw: "[2606:4700::1111]", o: address, code: CodePortMissing},
		{raw: "[2606:4700::1111]443", o: address, code: CodeBrackets},
		{raw: "[2606:4700::1111", o: address, code: CodeBrackets},
		{raw: "2606]:443", o: address, code: CodeBrackets},
		{raw: "[[2606:4700::1111]]:443", o: address, code: CodeBrackets},
		{raw: "[example.com]:443", code: CodeBrackets},
		{raw: "[exa:mple]:443", code: CodeBrackets},
		{raw: "[93.184.216.34]:443", o: address, code: CodeBrackets},
		{raw: "[]:443", o: address, code: CodeBrackets},
		{raw: "[fe80::1%eth0]:443", o: address, code: CodeZone},
		{raw: "[fe80::1%25eth0]:443", o: address, code: CodeZone},
		{raw: "[::ffff:93.184.216.34]:443", o: address, code: CodeAddressMapped},
		{raw: "[::ffff:169.254.169.254]:443", o: address, code: CodeAddressMapped},

		// Numbers that some read as an address.
		{raw: "2130706433:443", code: CodeAmbiguousNumber},
		{raw: "127.1:443", code: CodeAmbiguousNumber},
		{raw: "127.0.1:443", code: CodeAmbiguousNumber},
		{raw: "0177.0.0.1:443", code: CodeAmbiguousNumber},
		{raw: "0x7f.1:443", code: CodeAmbiguousNumber},
		{raw: "0x7f000001:443", code: CodeAmbiguousNumber},
		{raw: "0X7F.0.0.0X1:443", code: CodeAmbiguousNumber},
		{raw: "0x:443", code: CodeAmbiguousNumber},
		{raw: "0:443", code: CodeAmbiguousNumber},
		{raw: "010.0.0.1:443", o: address, code: CodeAmbiguousNumber},
		{raw: "127.0.0.1.:443", o: address, code: CodeAmbiguousNumber},
		{raw: "256.0.0.1:443", o: address, code: CodeAmbiguousNumber},
		{raw: "1.2.3.4.5:443", o: address, code: CodeAmbiguousNumber},
		{raw: "example.1:443", code: CodeAmbiguousNumber},
		{raw: "0x7f.1:443", o: address, code: CodeAmbiguousNumber},

		// Addresses that don't pass.
		{raw: "127.0.0.1:443", o: address, code: CodeAddressRefused},
		{raw: "0.0.0.0:443", o: address, code: CodeAddressRefused},
		{raw: "169.254.169.254:80", o: address, code: CodeAddressRefused},
		{raw: "[::1]:443", o: address, code: CodeAddressRefused},
		{raw: "[::]:443", o: address, code: CodeAddressRefused},
		{raw: "[fe80::1]:443", o: address, code: CodeAddressRefused},
		{raw: "[fd00:ec2::254]:80", o: Options{Address: true, Private: []string{"fd00::/8"}}, code: CodeAddressRefused},
		{raw: "100.100.100.200:80", o: Options{Address: true, Private: []string{"100.64.0.0/10"}}, code: CodeAddressRefused},
		{raw: "[64:ff9b::a00:1]:443", o: address, code: CodeAddressRefused},
		{raw: "[2002:a00:1::]:443", o: address, code: CodeAddressRefused},
		{raw: "[::10.0.0.1]:443", o: address, code: CodeAddressRefused},
		{raw: "10.0.5.1:443", o: address, code: CodeAddressPrivate},
		{raw: "10.0.5.1:443", o: Options{Address: true, Private: []string{"10.0.6.0/24"}}, code: CodeAddressPrivate},
		{raw: "10.0.5.1:443", o: Options{Address: true, Private: []string{"10.0.5.0/24"}}, want: "10.0.5.1:443"},
		{raw: "[fd12::1]:443", o: Options{Address: true, Private: []string{"fd12::/64"}}, want: "[fd12::1]:443"},
		{raw: "93.184.216.34:443", o: Options{Address: true, Private: []string{"10.0.5.0/24"}}, code: CodePrivateUseless},

		// Private ranges.
		{raw: "db.example.com:5432", o: Options{Private: []string{"10.0.5.0/24", "FD12::/64", "100.64.0.0/10", "172.16.0.0/12", "192.168.1.1/32"}}, want: "db.example.com:5432"},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.5.1/24"}}, code: CodePrivateHostBits},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.5.0"}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.5.0/024"}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.5/24"}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{""}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{"::ffff:10.0.0.0/104"}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{"fd12::%eth0/64"}}, code: CodePrivateInvalid},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.0.0/7"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"0.0.0.0/0"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"::/0"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"8.8.8.0/24"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"127.0.0.0/8"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"169.254.0.0/16"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"169.254.169.254/32"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"224.0.0.0/4"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"::1/128"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"fe80::/10"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"fd00:ec2::254/128"}}, code: CodePrivateForbidden},
		{raw: "a.com:1", o: Options{Private: []string{"10.0.0.0/8", "10.0.0.0/8"}}, code: CodePrivateRepeated},
	} {
		t.Run(c.raw, func(t *testing.T) {
			e, err := Parse(c.raw, c.o)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				if e.String() != c.want {
					t.Errorf("got %q, want %q", e, c.want)
				}
				return
			}
			var bad *EntryError
			if !errors.As(err, &bad) {
				t.Fatalf("got %q and error %v, want %s", e, err, c.code)
			}
			if bad.Code != c.code {
				t.Errorf("got code %s (%s), want %s", bad.Code, bad, c.code)
			}
			if bad.Message == "" || bad.Fix == "" || strings.ContainsAny(bad.Error(), "\x00\r\n") {
				t.Errorf("the error says %q, %q", bad.Message, bad.Fix)
			}
		})
	}
}

func TestParseSortsPrivate(t *testing.T) {
	e, err := Parse("a.com:1", Options{Private: []string{"192.168.0.0/16", "fd12::/16", "10.2.0.0/16", "10.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range e.Private {
		got = append(got, p.String())
	}
	if want := []string{"10.0.0.0/8", "10.2.0.0/16", "192.168.0.0/16", "fd12::/16"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A request's target is stricter than an entry, and every refusal of
// research/gatekeeper.md's table that is about the target stands here.
func TestParseTarget(t *testing.T) {
	for _, c := range []struct {
		raw  string
		host string
		port uint16
		isIP bool
		code Code
	}{
		{raw: "example.com:443", host: "example.com", port: 443},
		{raw: "EXAMPLE.com:443", host: "example.com", port: 443},
		{raw: "example.com.:443", host: "example.com", port: 443},
		{raw: "xn--exmple-cua.com:443", host: "xn--exmple-cua.com", port: 443},
		{raw: "example.com:22", host: "example.com", port: 22},
		{raw: "169.254.169.254:80", host: "169.254.169.254", port: 80, isIP: true},
		{raw: "[fd00:ec2::254]:80", host: "fd00:ec2::254", port: 80, isIP: true},
		{raw: "[::FFFF:169.254.169.254]:443", host: "169.254.169.254", port: 443, isIP: true},
		{raw: "0.0.0.0:443", host: "0.0.0.0", port: 443, isIP: true},
		{raw: "[::]:443", host: "::", port: 443, isIP: true},
		{raw: "", code: CodeEmpty},
		{raw: "example.com..:443", code: CodeLabel},
		{raw: "example.com", code: CodePortMissing},
		{raw: "example.com:", code: CodePortMissing},
		{raw: ":443", code: CodeHostMissing},
		{raw: "example.com:0", code: CodePort},
		{raw: "example.com:0443", code: CodePort},
		{raw: "example.com:+443", code: CodePort},
		{raw: "example.com:65979", code: CodePort},
		{raw: "example.com:https", code: CodePort},
		{raw: "http://example.com:443/", code: CodeScheme},
		{raw: "example.com:443/a?b", code: CodePath},
		{raw: "u@example.com:443", code: CodeUserinfo},
		{raw: "example.com:443@evil.com:443", code: CodeUserinfo},
		{raw: "evil.com\x00.example.com:443", code: CodeCharacter},
		{raw: "evil.com%00.example.com:443", code: CodeZone},
		{raw: "exämple.com:443", code: CodeNotASCII},
		{raw: "example\u3002com:443", code: CodeNotASCII},
		{raw: "[example.com]:443", code: CodeBrackets},
		{raw: "[[::1]]:443", code: CodeBrackets},
		{raw: "[93.184.216.34]:443", code: CodeBrackets},
		{raw: "[fe80::1%25eth0]:443", code: CodeZone},
		{raw: "::1:443", code: CodeColons},
		{raw: "*.example.com:443", code: CodeLabel},
		{raw: "127.1:443", code: CodeAmbiguousNumber},
	} {
		t.Run(c.raw, func(t *testing.T) {
			host, port, isIP, err := ParseTarget(c.raw)
			if c.code == "" {
				if err != nil || host != c.host || port != c.port || isIP != c.isIP {
					t.Errorf("got %q, %d, %t, %v", host, port, isIP, err)
				}
				return
			}
			var bad *EntryError
			if !errors.As(err, &bad) || bad.Code != c.code {
				t.Errorf("got %q and error %v, want %s", host, err, c.code)
			}
		})
	}
}

func TestCanonicalHost(t *testing.T) {
	for _, c := range []struct {
		host, want string
		isIP       bool
	}{
		{host: "Example.COM.", want: "example.com"},
		{host: "[2001:DB8::1]", want: "2001:db8::1", isIP: true},
		{host: "2001:DB8:0:0::1", want: "2001:db8::1", isIP: true},
		{host: "::ffff:7f00:1", want: "127.0.0.1", isIP: true},
		{host: "192.0.2.1", want: "192.0.2.1", isIP: true},
	} {
		if got, isIP, err := CanonicalHost(c.host); err != nil || got != c.want || isIP != c.isIP {
			t.Errorf("%q: got %q, %t, %v", c.host, got, isIP, err)
		}
	}
	for _, host := range []string{
		"", ".", "a..b", "[example.com]", "[::1", "::1]", "[]", "1.2.3", "0x1", "a b", "a\x00", "a%b", "a:80", "fe80::1%eth0",
		"ä.com", "xn--a", "*", "*.example.com", "[1.2.3.4]", "[[::1]]", "a/b", "a@b", strings.Repeat("a.", 127) + "aa",
	} {
		if got, isIP, err := CanonicalHost(host); err == nil {
			t.Errorf("%q: got %q, %t, want an error", host, got, isIP)
		} else if got != "" || isIP {
			t.Errorf("%q: got %q, %t beside the error", host, got, isIP)
		}
	}
}
