package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePattern(t *testing.T) {
	for raw, want := range map[string]Pattern{
		"github.com:443":      {Host: "github.com", Port: 443},
		"GitHub.com.:443":     {Host: "github.com", Port: 443},
		"exämple.com:443":     {Host: "xn--exmple-cua.com", Port: 443},
		"github.com:*":        {Host: "github.com"},
		"*.github.com:443":    {Host: "github.com", Port: 443, Wildcard: true},
		"*.github.com:*":      {Host: "github.com", Wildcard: true},
		"*:22":                {Port: 22},
		"*:*":                 {},
		"10.20.0.7:8443":      {Host: "10.20.0.7", Port: 8443, Address: true},
		"10.20.0.7:*":         {Host: "10.20.0.7", Address: true},
		"169.254.169.254:80":  {Host: "169.254.169.254", Port: 80, Address: true},
		"[2606:4700::1111]:*": {Host: "2606:4700::1111", Address: true},
		"[fe80::1]:443":       {Host: "fe80::1", Port: 443, Address: true},
	} {
		got, err := ParsePattern(raw)
		if err != nil || got != want {
			t.Errorf("%s: %#v, %v", raw, got, err)
			continue
		}
		if again, err := ParsePattern(got.String()); err != nil || again != got {
			t.Errorf("%s became %s, which became %#v, %v", raw, got, again, err)
		}
	}
	for raw, code := range map[string]Code{
		"":                      CodeEmpty,
		"github.com":            CodePortMissing,
		"*":                     CodePortMissing,
		"*.com:443":             CodeStarTooWide,
		"a.*.com:443":           CodeStar,
		"*:0":                   CodePort,
		"*:https":               CodePort,
		"*:":                    CodePortMissing,
		":*":                    CodeHostMissing,
		"github.com:**":         CodePort,
		"https://github.com:*":  CodeScheme,
		"localhost:*":           CodeLoopbackName,
		"127.1:443":             CodeAmbiguousNumber,
		"[::ffff:1.2.3.4]:443":  CodeAddressMapped,
		"2606:4700::1111:443":   CodeColons,
		"user@github.com:*":     CodeUserinfo,
		"github.com:443/path/*": CodePath,
	} {
		_, err := ParsePattern(raw)
		var bad *EntryError
		if !errors.As(err, &bad) || bad.Code != code {
			t.Errorf("%q: %v, want %s", raw, err, code)
		}
	}
}

func pattern(t testing.TB, raw string) Pattern {
	t.Helper()
	p, err := ParsePattern(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return p
}

func TestOverlaps(t *testing.T) {
	private := Options{Private: []string{"10.20.0.0/16"}}
	address := Options{Address: true, Private: []string{"10.20.0.0/16"}}
	wide := Options{HasReason: true}
	for _, c := range []struct {
		pattern, entry string
		o              Options
		want           bool
	}{
		{"github.com:443", "github.com:443", Options{}, true},
		{"github.com:443", "GITHUB.com.:443", Options{}, true},
		{"github.com:443", "github.com:22", Options{}, false},
		{"github.com:*", "github.com:22", Options{}, true},
		{"github.com:443", "api.github.com:443", Options{}, false},
		{"*:*", "api.github.com:443", Options{}, true},
		{"*:443", "api.github.com:443", Options{}, true},
		{"*:22", "api.github.com:443", Options{}, false},
		// A wildcard isn't its apex, on either side.
		{"github.com:443", "*.github.com:443", wide, false},
		{"*.github.com:443", "github.com:443", Options{}, false},
		{"api.github.com:443", "*.github.com:443", wide, true},
		{"a.b.github.com:443", "*.github.com:443", wide, true},
		{"*.github.com:443", "api.github.com:443", Options{}, true},
		{"*.github.com:443", "a.b.github.com:443", Options{}, true},
		{"*.github.com:443", "evilgithub.com:443", Options{}, false},
		// Two wildcards have a name in common where one is the other or below it.
		{"*.github.com:443", "*.github.com:443", wide, true},
		{"*.github.com:443", "*.api.github.com:443", wide, true},
		{"*.api.github.com:443", "*.github.com:443", wide, true},
		{"*.github.com:443", "*.evilgithub.com:443", wide, false},
		{"*.github.com:22", "*.github.com:443", wide, false},
		{"*.a.github.com:443", "*.b.github.com:443", wide, false},
		// Addresses.
		{"10.20.0.7:443", "10.20.0.7:443", address, true},
		{"10.20.0.7:443", "10.20.0.8:443", address, false},
		{"10.20.0.7:443", "git.corp.example:443", private, true},
		{"10.21.0.7:443", "git.corp.example:443", private, false},
		{"93.184.216.34:443", "example.com:443", Options{}, false},
		{"git.corp.example:443", "10.20.0.7:443", address, false},
		{"*:443", "10.20.0.7:443", address, true},
		{"*.0.7.example:443", "10.20.0.7:443", address, false},
	} {
		if got := pattern(t, c.pattern).Overlaps(entry(t, c.entry, c.o)); got != c.want {
			t.Errorf("%s and %s: %t", c.pattern, c.entry, got)
		}
	}
	if pattern(t, "*:*").Overlaps(Entry{}) {
		t.Error("the zero entry lets something through")
	}
}

// TestOverlapsByNames compares with what overlapping is: a name that both are about,
// looked for among all names of up to five labels out of three.
func TestOverlapsByNames(t *testing.T) {
	labels := []string{"a", "b", "com"}
	names := [][]string{labels}
	for range 4 {
		var longer []string
		for _, name := range names[len(names)-1] {
			for _, l := range labels {
				longer = append(longer, l+"."+name)
			}
		}
		names = append(names, longer)
	}
	var hosts []string // those that are the base of some wildcard
	for _, list := range names[1:3] {
		hosts = append(hosts, list...)
	}
	about := func(p Pattern, name string) bool {
		return p.Host == name && !p.Wildcard || p.Wildcard && strings.HasSuffix(name, "."+p.Host)
	}
	for _, one := range hosts {
		for _, other := range hosts {
			for _, stars := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
				p := Pattern{Host: one, Port: 443, Wildcard: stars[0]}
				e := Entry{Host: other, Port: 443, Wildcard: stars[1]}
				want := false
				for _, list := range names {
					for _, name := range list {
						want = want || about(p, name) && e.Match(name, 443)
					}
				}
				if got := p.Overlaps(e); got != want {
					t.Fatalf("%s and %s: %t", p, e, got)
				}
			}
		}
	}
}

// A pattern that is accepted has one spelling, and overlaps the entry of that spelling.
func FuzzParsePattern(f *testing.F) {
	fuzzSeeds(f, func(raw string) { f.Add(raw) })
	for _, raw := range []string{"*:*", "*:443", "github.com:*", "*.github.com:*", "[fe80::1]:*", "*", ":*", "*:"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := ParsePattern(raw)
		if err != nil {
			checkError(t, err)
			if p != (Pattern{}) {
				t.Fatalf("a pattern beside an error: %#v", p)
			}
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Fatalf("%q became %q, which became %#v, %v", raw, p, again, err)
		}
		port := p.Port
		if port == 0 {
			port = 443
		}
		e := Entry{Host: p.Host, Port: port, Wildcard: p.Wildcard, Address: p.Address}
		if p.Host == "" {
			e.Host = "example.com"
		}
		if !p.Overlaps(e) || p.Port != 0 && p.Overlaps(Entry{Host: e.Host, Port: port ^ 1, Wildcard: e.Wildcard, Address: e.Address}) {
			t.Fatalf("%s and its own entry %s", p, e)
		}
	})
}
