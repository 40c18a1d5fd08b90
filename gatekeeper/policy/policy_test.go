package policy

import (
	"strings"
	"testing"
)

func entry(t testing.TB, raw string, o Options) Entry {
	t.Helper()
	e, err := Parse(raw, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMatch(t *testing.T) {
	reason := Options{HasReason: true}
	address := Options{Address: true}
	for _, c := range []struct {
		entry string
		o     Options
		host  string
		port  uint16
		want  bool
	}{
		{"example.com:443", Options{}, "example.com", 443, true},
		{"example.com:443", Options{}, "example.com", 22, false},
		{"example.com:443", Options{}, "example.com", 0, false},
		{"example.com:443", Options{}, "notexample.com", 443, false},
		{"example.com:443", Options{}, "example.com.evil.com", 443, false},
		{"example.com:443", Options{}, "a.example.com", 443, false},
		{"example.com:443", Options{}, "EXAMPLE.com", 443, false}, // not canonical
		{"example.com:443", Options{}, "example.com.", 443, false},
		{"example.com:443", Options{}, "", 443, false},
		{"*.example.com:443", reason, "a.example.com", 443, true},
		{"*.example.com:443", reason, "a.b.example.com", 443, true},
		{"*.example.com:443", reason, "example.com", 443, false},
		{"*.example.com:443", reason, ".example.com", 443, false},
		{"*.example.com:443", reason, "..example.com", 443, false},
		{"*.example.com:443", reason, "notexample.com", 443, false},
		{"*.example.com:443", reason, "a.example.com.evil.com", 443, false},
		{"*.example.com:443", reason, "a.example.com", 80, false},
		{"*.example.com:443", reason, "evil.com\x00.example.com", 443, false},
		{"*.example.com:443", reason, "evil.com/.example.com", 443, false},
		{"*.example.com:443", reason, "evil.com:80#.example.com", 443, false},
		{"*.example.com:443", reason, "A.example.com", 443, false},
		{"*.example.com:443", reason, "*.example.com", 443, false},
		{"*.example.com:443", reason, "ä.example.com", 443, false},
		{"*.example.com:443", reason, "-.example.com", 443, false},
		{"*.example.com:443", reason, strings.Repeat("a", 64) + ".example.com", 443, false},
		{"*.example.com:443", reason, strings.Repeat("a.", 125) + "example.com", 443, false},
		{"93.184.216.34:443", address, "93.184.216.34", 443, true},
		{"93.184.216.34:443", address, "::ffff:93.184.216.34", 443, false},
		{"[2606:4700::1111]:443", address, "2606:4700::1111", 443, true},
		{"[2606:4700::1111]:443", address, "[2606:4700::1111]", 443, false},
	} {
		if got := entry(t, c.entry, c.o).Match(c.host, c.port); got != c.want {
			t.Errorf("%s lets %q:%d through: %t", c.entry, c.host, c.port, got)
		}
	}
	if (Entry{}).Match("", 0) || (Entry{Wildcard: true, Port: 443}).Match("a.", 443) {
		t.Error("the zero entry lets something through")
	}
}

func TestFind(t *testing.T) {
	list := []Entry{
		entry(t, "*.example.com:443", Options{HasReason: true}),
		entry(t, "*.b.example.com:443", Options{HasReason: true}),
		entry(t, "a.b.example.com:443", Options{}),
	}
	backwards := []Entry{list[2], list[1], list[0]}
	for host, want := range map[string]string{
		"a.b.example.com": "a.b.example.com:443",
		"c.b.example.com": "*.b.example.com:443",
		"b.example.com":   "*.example.com:443",
		"example.com":     "",
	} {
		for _, l := range [][]Entry{list, backwards} {
			e, ok := Find(l, host, 443)
			if got := map[bool]string{true: e.String()}[ok]; got != want {
				t.Errorf("%s: found %q, want %q", host, got, want)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		entry, want string
		o           Options
		wide        bool
	}{
		{entry: "example.com:443", want: "the name example.com alone, nothing below it"},
		{entry: "*.example.com:443", o: Options{HasReason: true}, wide: true, want: "any name below example.com, by one label or more (a.example.com, a.b.example.com), and not example.com itself"},
		{entry: "10.0.5.1:443", o: Options{Address: true, Private: []string{"10.0.5.0/24"}}, want: "the address 10.0.5.1, asked for as an address; it may lie in the private range 10.0.5.0/24"},
		{entry: "db:1", o: Options{Private: []string{"fd12::/64", "10.0.5.0/24"}}, want: "the name db alone, nothing below it; it may lie in the private ranges 10.0.5.0/24, fd12::/64"},
	} {
		e := entry(t, c.entry, c.o)
		if got := e.Explain(); got != c.want {
			t.Errorf("%s: %q, want %q", c.entry, got, c.want)
		}
		if e.Wide() != c.wide {
			t.Errorf("%s is wide: %t", c.entry, e.Wide())
		}
	}
}
