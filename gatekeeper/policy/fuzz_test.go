package policy

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func fuzzSeeds(f *testing.F, add func(string)) {
	f.Helper()
	for _, raw := range []string{
		"example.com:443", "EXAMPLE.com.:443", "*.example.com:443", "exämple.com:443", "xn--exmple-cua.com:443", "日本語.jp:1",
		"93.184.216.34:443", "[2606:4700::1111]:65535", "[::ffff:1.2.3.4]:443", "10.0.5.1:443", "127.1:443", "0x7f.1:443",
		"u@example.com:443", "https://example.com/", "evil.com\x00.example.com:443", "[fe80::1%25eth0]:443", "a\u200db.com:1",
		"xn--example-.com:1", "faß.de:443", "Σίσυφος.gr:443", "İ.com:1", "K.com:1", "ſ.com:1", "נאָמען.example:443", "xn--a:1", ":", "[]:", "",
	} {
		add(raw)
	}
}

// An entry that is accepted has one spelling, which is accepted as the same entry,
// and lets through the request that names it and not its neighbours.
func FuzzParse(f *testing.F) {
	fuzzSeeds(f, func(raw string) {
		f.Add(raw, false, true, "")
		f.Add(raw, true, false, "10.0.5.0/24")
	})
	f.Fuzz(func(t *testing.T, raw string, address, reason bool, private string) {
		o := Options{Address: address, HasReason: reason}
		if private != "" {
			o.Private = strings.Split(private, ",")
		}
		e, err := Parse(raw, o)
		if err != nil {
			checkError(t, err)
			if !reflect.DeepEqual(e, Entry{}) {
				t.Fatalf("an entry beside an error: %#v", e)
			}
			return
		}
		text := e.String()
		for i := range len(text) {
			if c := text[i]; c <= ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' || strings.IndexByte(`@/?#\%"'`, c) >= 0 {
				t.Fatalf("%q became %q", raw, text)
			}
		}
		again, err := Parse(text, o)
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %s", raw, text, err)
		}
		if !reflect.DeepEqual(again, e) || again.String() != text {
			t.Fatalf("%q became %q, which became %q", raw, text, again)
		}
		if e.Explain() == "" || e.Wide() != e.Wildcard || e.Address != address || e.Wildcard && !reason {
			t.Fatalf("%q: %#v", raw, e)
		}
		request := text
		if e.Wildcard {
			if e.Match(e.Host, e.Port) {
				t.Fatalf("%s lets %s through", e, e.Host)
			}
			request = "a" + strings.TrimPrefix(text, "*")
		}
		host, port, isIP, err := ParseTarget(request)
		if err != nil || !e.Match(host, port) || isIP != e.Address {
			t.Fatalf("%s doesn't let %q through: %q, %d, %t, %v", e, request, host, port, isIP, err)
		}
		if e.Match(host, port^1) || e.Match("x"+host, port) && !e.Wildcard || e.Match(host+".", port) || e.Match(host+".evil.com", port) {
			t.Fatalf("%s lets a neighbour through", e)
		}
		if e.Address {
			if err := AllowedAnswer(e, netip.MustParseAddr(e.Host)); err != nil {
				t.Fatalf("%s is accepted, and refused when it is dialled: %s", e, err)
			}
		}
	})
}

// A host has one canonical form, and an address can't pass for a name.
func FuzzCanonicalHost(f *testing.F) {
	fuzzSeeds(f, func(raw string) {
		f.Add(raw)
		f.Add(strings.TrimSuffix(raw, ":443"))
	})
	f.Fuzz(func(t *testing.T, raw string) {
		host, isIP, err := CanonicalHost(raw)
		if err != nil {
			checkError(t, err)
			return
		}
		again, againIP, err := CanonicalHost(host)
		if err != nil || again != host || againIP != isIP {
			t.Fatalf("%q became %q, which became %q, %t, %v", raw, host, again, againIP, err)
		}
		ip, bad := netip.ParseAddr(host)
		if (bad == nil) != isIP || isIP && (ip.String() != host || ip.Is4In6() || ip.Zone() != "") {
			t.Fatalf("%q became %q, an address: %t", raw, host, isIP)
		}
		if isIP {
			return
		}
		if len(host) == 0 || len(host) > maxName {
			t.Fatalf("%q became %q", raw, host)
		}
		for label := range strings.SplitSeq(host, ".") {
			if label == "" || len(label) > maxLabel || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Fatalf("%q became %q", raw, host)
			}
		}
		// What a request may say, a list may say too, and both mean the same.
		e, err := Parse(host+":443", Options{})
		if err == nil && e.Host != host {
			t.Fatalf("%q is %q in a list", host, e.Host)
		}
		var entryErr *EntryError
		if errors.As(err, &entryErr) && entryErr.Code != CodeLoopbackName {
			t.Fatalf("%q is a host of requests, and no list may have it: %s", host, err)
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var bad *EntryError
	if !errors.As(err, &bad) || bad.Code == "" || bad.Message == "" || bad.Fix == "" {
		t.Fatalf("the error is %#v", err)
	}
	for _, r := range bad.Error() {
		if r < ' ' || r == 0x7f {
			t.Fatalf("the error has a control character: %q", bad.Error())
		}
	}
}
