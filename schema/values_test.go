package schema

import (
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64 // 0 for an error
	}{
		{"4GiB", 4 << 30},
		{"512MiB", 512 << 20},
		{"1KiB", 1024},
		{"2TiB", 2 << 40},
		{"1.5GiB", 3 << 29},
		{"1kB", 1000},
		{"10 MB", 10e6},
		{"1.5GB", 15e8},
		{"1TB", 1e12},
		{"0.1KiB", 0},
		{"4g", 0},
		{"4GB ", 0},
		{"-1MiB", 0},
		{"1e3MiB", 0},
		{"536870912", 0},
		{"", 0},
		{"MiB", 0},
		{"KIB", 0},
		{"9000000000TiB", 0},
		{strings.Repeat("9", 100) + "GiB", 0},
	} {
		got, ok := parseSize(c.in)
		if got != c.want || ok != (c.want != 0) {
			t.Errorf("parseSize(%q) = %d, %v", c.in, got, ok)
		}
	}
}

func TestSizeMeant(t *testing.T) {
	for in, want := range map[string]string{
		"4g": "4GiB", "512m": "512MiB", "4 Gb": "4GiB", "1t": "1TiB", "64KIB": "64KiB",
		"536870912": "512MiB", "1000": "", "1024": "1KiB", "0": "", "lots": "", "4x": "", "": "",
	} {
		if got := sizeMeant(in); got != want {
			t.Errorf("sizeMeant(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"30s", 30 * time.Second, true},
		{"1m30s", 90 * time.Second, true},
		{"0s", 0, true},
		{"500ms", 500 * time.Millisecond, true},
		{"0", 0, false},
		{"30", 0, false},
		{"-5s", 0, false},
		{"+5s", 0, false},
		{"", 0, false},
		{"5 s", 0, false},
		{"1d", 0, false},
	} {
		got, ok := parseDuration(c.in)
		if ok != c.ok || (ok && got != c.want) {
			t.Errorf("parseDuration(%q) = %s, %v", c.in, got, ok)
		}
	}
}

func TestNanoCPUs(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64 // 0 for an error
	}{
		{"2", 2e9},
		{"0.5", 5e8},
		{"0.1", 1e8},
		{"0.01", 1e7},
		{"0.009", 0},
		{"0", 0},
		{"-1", 0},
		{"1e300", 0},
		{"1.0000000001", 1e9},
		{"0.333333333333", 333333333},
	} {
		f, _, err := big.ParseFloat(c.in, 10, 512, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := nanoCPUs(f); ok != (c.want != 0) || (ok && got != c.want) {
			t.Errorf("nanoCPUs(%s) = %d, %v", c.in, got, ok)
		}
	}
}

func TestCleanSource(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b": "/a/b", "/a/../b/": "/b", "/": "/", "~/x": "~/x", "~/x/../y//z/": "~/y/z",
		"~": "", "~/": "", "~/.": "", "~/..": "", "~/../x": "", "~//x": "", "~user/x": "",
		"x": "", "./x": "", "": "", "/a\x00b": "", "/a\x1bb": "", "/a\xffb": "",
	} {
		got, ok := cleanSource(in)
		if got != want || ok != (want != "") {
			t.Errorf("cleanSource(%q) = %q, %v", in, got, ok)
		}
	}
}

func TestClosest(t *testing.T) {
	options := []string{"image", "networks", "depends_on", "env"}
	for in, want := range map[string]string{
		"imag": "image", "Image": "image", "depends-on": "depends_on", "dependson": "depends_on",
		"network": "networks", "en": "env", "xyz": "", "": "", "image": "",
	} {
		if got := Closest(in, options); got != want {
			t.Errorf("Closest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCycles(t *testing.T) {
	g := &graph[int]{nodes: make([]int, 100_000), edges: make([][]int, 100_000)}
	for i := range g.nodes[1:] {
		g.edges[i] = []int{i + 1}
	}
	if n := len(g.components()); n != len(g.nodes) {
		t.Errorf("a chain has %d components", n)
	}
	g.edges[len(g.nodes)-1] = []int{0}
	groups := g.components()
	if len(groups) != 1 || len(g.cycle(groups[0])) != len(g.nodes)+1 {
		t.Errorf("a ring has %d components", len(groups))
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü\n\t": "plain ü\n\t", "a\x1b[31mb": "a?[31mb", "\u202ex": "???x", "\xff": "?", "\ufffd": "???", "\r\n": "?\n",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}
