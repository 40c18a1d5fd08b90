package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

const someProject = "project = \"p\"\n"

// loadText loads one file, and returns what is said of it.
func loadText(t *testing.T, src string) (*Config, hcl.Diagnostics, string) {
	t.Helper()
	c, diags := Load(fstest.MapFS{"a.hcl": {Data: []byte(src)}}, Options{Root: fixtureRoot})
	return c, diags, render(t, c, diags)
}

// A file is text in UTF-8, with either kind of line end and perhaps a mark before it. Of
// one that isn't, the first byte that isn't is told, once.
func TestEncodings(t *testing.T) {
	const good = someProject + "network \"n\" {\n  egress = \"none\"\n}\n"
	plain, _, _ := loadText(t, good)
	for name, src := range map[string]string{
		"mark":         "\ufeff" + good,
		"crlf":         strings.ReplaceAll(good, "\n", "\r\n"),
		"mark, crlf":   "\ufeff" + strings.ReplaceAll(good, "\n", "\r\n"),
		"no last line": strings.TrimSuffix(good, "\n"),
	} {
		c, diags, said := loadText(t, src)
		if len(diags) > 0 || dump(c, false) != dump(plain, false) {
			t.Errorf("%s: %s%s", name, said, dump(c, false))
		}
	}
	for name, test := range map[string]struct {
		src          string
		line, column int
		says         string
	}{
		"latin 1":   {someProject + "# caf\xe9\nx = 1\n", 2, 6, "isn't text in UTF-8"},
		"a value":   {someProject + "locals {\n  a = \"é\xff\"\n}\n", 3, 9, "isn't text in UTF-8"},
		"cut short": {someProject + "# \xe2\x82", 2, 3, "isn't text in UTF-8"},
		"surrogate": {someProject + "# \xed\xa0\x80", 2, 3, "isn't text in UTF-8"},
		"zero":      {someProject + "# a\x00b\n", 2, 4, "isn't text in UTF-8"},
		"utf-16 le": {"\xff\xfep\x00r\x00", 1, 1, "is text in UTF-16"},
		"utf-16 be": {"\xfe\xff\x00p\x00r", 1, 1, "is text in UTF-16"},
	} {
		_, diags, said := loadText(t, test.src)
		diags = slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return Code(d) == "project-missing" })
		if len(diags) != 1 || Code(diags[0]) != "not-text" || !strings.Contains(said, test.says) {
			t.Errorf("%s: %s", name, said)
			continue
		}
		if at := diags[0].Subject.Start; at.Line != test.line || at.Column != test.column {
			t.Errorf("%s: it is at %d,%d, want %d,%d", name, at.Line, at.Column, test.line, test.column)
		}
		if strings.Contains(said, "\x00") || !utf8.ValidString(said) {
			t.Errorf("%s: the bytes are shown", name)
		}
	}
}

// Links within a folder: one file by two names is told, and what leads nowhere is.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(someProject+"network \"n\" {\n  egress = \"none\"\n}\n"), 0o600))
	must(os.Symlink("a.hcl", filepath.Join(dir, "b.hcl")))
	must(os.Link(filepath.Join(dir, "a.hcl"), filepath.Join(dir, "c.hcl")))
	must(os.Symlink("nowhere.hcl", filepath.Join(dir, "d.hcl")))
	must(os.Symlink("e.hcl", filepath.Join(dir, "e.hcl")))
	must(os.Mkdir(filepath.Join(dir, "f.hcl"), 0o700))
	c, diags := Load(os.DirFS(dir), Options{Root: dir})
	said := render(t, c, diags)
	for _, want := range []string{
		"b.hcl and a.hcl are one file", "c.hcl and a.hcl are one file",
		"d.hcl can't be read", "e.hcl can't be read",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q isn't said:\n%s", want, said)
		}
	}
	if len(diags) != 4 {
		t.Errorf("%d diagnostics:\n%s", len(diags), said)
	}
}

// A name, word or line of any length is told in a message of bounded length.
func TestLongWords(t *testing.T) {
	long := strings.Repeat("a", 200<<10)
	for name, src := range map[string]string{
		"a network":    someProject + "network \"" + long + "\" {\n  egress = \"none\"\n}\n",
		"what it's in": someProject + "network \"" + long + "\" {\n  egress = \"some\"\n}\n",
		"an attribute": someProject + long + " = 1\n",
		"a block":      someProject + long + " {}\n",
		"a value":      someProject + "network \"n\" {\n  egress = \"" + long + "\"\n}\n",
		"a reference":  someProject + "locals {\n  a = local." + long + "\n}\n",
		"a comment":    someProject + "x = 1 # " + long + "\n",
		"a project":    "project = \"" + long + "\"\n",
		"a move":       someProject + "moved {\n  from = space." + long + "\n  to   = space.b\n}\n",
		"a key":        someProject + "image \"i\" {\n  binary = \"spaces\"\n}\nspace \"s\" {\n  for_each = toset([\"" + long + "\"])\n  image    = image.i\n}\n",
	} {
		c, diags, said := loadText(t, src)
		if !diags.HasErrors() || len(said) > 16<<10 {
			t.Errorf("%s: %d bytes are said of it", name, len(said))
		}
		for _, d := range diags {
			if snippet := Snippet(c.Sources["a.hcl"], d.Subject.Start.Line, d.Subject.End.Line); len(snippet)+len(d.Detail) > 32<<10 {
				t.Errorf("%s: its diagnostic holds %d bytes", name, len(snippet)+len(d.Detail))
			}
		}
	}
}

// Thousands of blocks are loaded whole, and thousands that are wrong are all told. Moves
// are followed once each, however long the chain, and a circle is told once.
func TestThousands(t *testing.T) {
	const n = 2_000
	blocks := func(format string) string {
		var b strings.Builder
		b.WriteString(someProject)
		for i := range n {
			b.WriteString(strings.NewReplacer("#+", fmt.Sprint(i+1), "#", fmt.Sprint(i)).Replace(format))
		}
		return b.String()
	}
	const network = "network \"n#\" {}\n"
	c, diags, said := loadText(t, blocks(network+"egress \"e#\" {\n  network = network.n#\n  uplink = network.up\n}\n")+"network \"up\" {\n  uplink = true\n}\n")
	if diags.HasErrors() || len(c.Networks) != n+1 {
		t.Errorf("%d networks\n%.2000s", len(c.Networks), said)
	}
	if _, diags, _ := loadText(t, blocks("role \"r#\" {\n  space = space.s#\n}\n")); len(diags) != n {
		t.Errorf("%d diagnostics of %d dangling references", len(diags), n)
	}
	const moved = "moved {\n  from = space.a#\n  to   = space.a#+\n}\n"
	if _, diags, said := loadText(t, blocks(moved)); len(diags) != 1 || !strings.Contains(said, fmt.Sprintf("There is no space.a%d", n)) {
		t.Errorf("%d diagnostics of a chain that leads nowhere\n%.2000s", len(diags), said)
	}
	if _, diags, said := loadText(t, blocks(moved)+fmt.Sprintf("moved {\n  from = space.a%d\n  to = space.a0\n}\n", n)); len(diags) != 1 || !strings.Contains(said, "leads back to it") {
		t.Errorf("%d diagnostics of a circle\n%.2000s", len(diags), said)
	}
	c, diags, said = loadText(t, blocks(moved)+"image \"i\" {\n  binary = \"spaces\"\n}\nspace \"a"+fmt.Sprint(n)+"\" {\n  image = image.i\n}\n")
	if diags.HasErrors() || len(c.Moves) != n || c.Moves[0].From.Name != fmt.Sprint("a", n-1) {
		t.Errorf("%d moves\n%.2000s", len(c.Moves), said)
	}
}

// What can't be computed is unknown, and nothing that is made of it is taken apart.
func TestUnknownCollections(t *testing.T) {
	for _, use := range []string{
		"toset(local.k)", "tolist(local.k)", "tomap(local.k)", "[for x in local.k : x]", "{ for k, v in local.k : k => v }",
		"toset([for x in local.k : \"${x[0]}-${x[1]}\"])", "merge(local.k, {})", "flatten([local.k])",
	} {
		src := someProject + "locals {\n  k = local.k\n}\nimage \"i\" {\n  binary = \"spaces\"\n}\nspace \"s\" {\n  for_each = " + use + `
  image    = image.i
  command  = [for x in each.value : x]
  env      = { for k, v in each.value : k => v }
  networks = each.value.networks
  tmpfs    = each.value
  limits {
    memory = each.value.memory
    cpus   = each.value
  }
  publish {
    port = each.key
  }
}
`
		if _, diags, said := loadText(t, src); len(diags) != 1 {
			t.Errorf("%s: %s", use, said)
		}
	}
}
