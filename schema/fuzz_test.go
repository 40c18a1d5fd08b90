package schema

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// FuzzLoad loads any bytes as a file: nothing panics, every diagnostic points into
// the file, and a folder without errors means the same in any order.
func FuzzLoad(f *testing.F) {
	for _, fixture := range append(fixtures(f, "valid"), fixtures(f, "invalid")...) {
		for _, file := range fixture.archive.Files {
			if path.Ext(file.Name) == configExt {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		fsys := fstest.MapFS{"main.hcl": {Data: src}}
		opts := Options{Root: fixtureRoot}
		c, diags := Load(fsys, opts)
		for _, diag := range diags {
			if diag.Summary == "" || diag.Detail == "" {
				t.Errorf("empty diagnostic: %+v", diag)
			}
			inFile(t, c, diag)
		}
		if err := WriteDiagnostics(io.Discard, c.Sources, diags, 80, false); err != nil {
			t.Error(err)
		}
		if diags.HasErrors() {
			return
		}
		want := dump(c, false)
		scattered := scatter(t, fsys, rand.New(rand.NewPCG(uint64(len(src)), 2)))
		again, diags := Load(scattered, opts)
		if diags.HasErrors() {
			t.Fatalf("scattered, the files have errors: %s", render(t, again, diags))
		}
		if got := dump(again, false); got != want {
			t.Errorf("scattered, the files mean something else:\n%s\n--- not\n%s", got, want)
		}
	})
}

// FuzzVariables sets a variable of each sort to any text.
func FuzzVariables(f *testing.F) {
	f.Add("x", []byte("a = 1"))
	f.Add(`["a", {b = 1}]`, []byte("s = null\no = { a = [1] }"))
	f.Add("1e9", []byte("n = \"1e999999999\""))
	f.Fuzz(func(t *testing.T, value string, file []byte) {
		const src = `project = "p"
variable "s" { type = string }
variable "n" { type = number }
variable "a" {}
variable "x" { type = any }
variable "o" {
  type      = object({ a = optional(list(number), [1]), b = optional(map(bool)) })
  sensitive = true
}
`
		opts := Options{Root: fixtureRoot, VarFiles: []VarFile{{"v.spacesvars", "/v.spacesvars", file}}}
		for _, name := range []string{"s", "n", "a", "x", "o"} {
			opts.Environ = append(opts.Environ, envPrefix+name+"="+value)
		}
		opts.Vars = []Assignment{{"x", value}}
		c, diags := Load(fstest.MapFS{"main.hcl": {Data: []byte(src)}}, opts)
		for _, diag := range diags {
			inFile(t, c, diag)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"4GiB", "512MiB", "1.5GB", "0.1KiB", "4g", "1e3MiB", " 4GiB", "9223372036854775807TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := parseSize(s)
		if n < 0 || (!ok && n != 0) {
			t.Errorf("%q gives %d, %v", s, n, ok)
		}
		if meant := sizeMeant(s); meant != "" && !ok {
			if _, good := parseSize(meant); !good {
				t.Errorf("for %q, %q is proposed, which is no size", s, meant)
			}
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "1m30s", "-5s", "0", "+1s", "1e9h", "500ms", "30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := parseDuration(s)
		if !ok {
			return
		}
		if d < 0 {
			t.Errorf("%q is negative: %s", s, d)
		}
		if again, err := time.ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q gives %s, which doesn't read back", s, d)
		}
	})
}

// FuzzPrintable keeps the length, and lets no control character through.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("a\x1b[31m\u202e\u009b\xffé\n\t"))
	f.Fuzz(func(t *testing.T, src []byte) {
		got := printable(string(src))
		if len(got) != len(src) {
			t.Fatalf("%q became %q", src, got)
		}
		if strings.ContainsAny(got, "\x1b\r\x00\u202e\u009b") {
			t.Errorf("%q still holds a control character", got)
		}
	})
}

// FuzzFormat lays out any bytes without changing what they mean.
func FuzzFormat(f *testing.F) {
	for _, fixture := range fixtures(f, "valid") {
		f.Add(fixture.file("main.hcl"))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, ok := (&loader{config: &Config{Sources: map[string][]byte{}}}).parse("x.hcl", src); !ok {
			return
		}
		once := Format(bytes.Clone(src))
		if twice := Format(bytes.Clone(once)); !bytes.Equal(once, twice) {
			t.Errorf("laid out twice, it changes:\n%s\n--- then\n%s", once, twice)
		}
		opts := Options{Root: fixtureRoot}
		c, diags := Load(fstest.MapFS{"x.hcl": {Data: src}}, opts)
		again, againDiags := Load(fstest.MapFS{"x.hcl": {Data: once}}, opts)
		if dump(c, false) != dump(again, false) || countErrors(diags) != countErrors(againDiags) {
			t.Errorf("laid out, it means something else:\n%s", once)
		}
	})
}

func countErrors(diags hcl.Diagnostics) (n int) {
	for _, diag := range diags {
		if diag.Severity == hcl.DiagError {
			n++
		}
	}
	return n
}
