package schema

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite want.txt in the fixtures")

const (
	fixtureRoot = "/home/me/acme"
	wantFile    = "want.txt"
	optionsFile = "options.txt"
)

// fixture is a folder, and the options it is loaded with.
type fixture struct {
	path    string
	archive *txtar.Archive
}

func fixtures(t testing.TB, dir string) []fixture {
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures in %s: %v", dir, err)
	}
	var all []fixture
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fixture{path, archive})
	}
	return all
}

func (f fixture) name() string { return strings.TrimSuffix(filepath.Base(f.path), ".txtar") }

// folder is the fixture's files as a file system, and its options: lines of
// "var NAME=VALUE", "env NAME=VALUE" and "var-file NAME".
func (f fixture) folder() (fstest.MapFS, Options) {
	fsys := fstest.MapFS{}
	for _, file := range f.archive.Files {
		if file.Name != wantFile && file.Name != optionsFile {
			fsys[file.Name] = &fstest.MapFile{Data: file.Data}
		}
	}
	opts := Options{Root: fixtureRoot}
	for _, line := range strings.Split(string(f.file(optionsFile)), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "var":
			name, value, _ := strings.Cut(rest, "=")
			opts.Vars = append(opts.Vars, Assignment{name, value})
		case "env":
			opts.Environ = append(opts.Environ, rest)
		case "var-file":
			opts.VarFiles = append(opts.VarFiles, VarFile{rest, "/elsewhere/" + rest, f.file(rest)})
		}
	}
	return fsys, opts
}

func (f fixture) file(name string) []byte {
	for _, file := range f.archive.Files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

// check compares with want.txt, or rewrites it.
func (f fixture) check(t *testing.T, got string) {
	t.Helper()
	if want := string(f.file(wantFile)); got == want {
		return
	} else if !*update {
		t.Fatalf("%s:\n--- got\n%s--- want\n%s", f.path, got, want)
	}
	f.archive.Files = slices.DeleteFunc(f.archive.Files, func(file txtar.File) bool { return file.Name == wantFile })
	f.archive.Files = append(f.archive.Files, txtar.File{Name: wantFile, Data: []byte(got)})
	if err := os.WriteFile(f.path, txtar.Format(f.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func render(t testing.TB, c *Config, diags hcl.Diagnostics) string {
	var out bytes.Buffer
	if err := WriteDiagnostics(&out, c.Sources, diags, 100, false); err != nil {
		t.Fatal(err)
	}
	// Editors and git dislike what the writer leaves: blanks at the ends of lines,
	// and a blank line at the end.
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimLeft(strings.Join(lines, "\n")+"\n", "\n")
}

func TestValid(t *testing.T) {
	for _, f := range fixtures(t, "valid") {
		t.Run(f.name(), func(t *testing.T) {
			fsys, opts := f.folder()
			c, diags := Load(fsys, opts)
			if diags.HasErrors() {
				t.Fatal(render(t, c, diags))
			}
			got := dump(c, true)
			if len(diags) > 0 {
				got = render(t, c, diags) + "\n" + got
			}
			f.check(t, got)
		})
	}
}

func TestInvalid(t *testing.T) {
	for _, f := range fixtures(t, "invalid") {
		t.Run(f.name(), func(t *testing.T) {
			fsys, opts := f.folder()
			c, diags := Load(fsys, opts)
			f.check(t, render(t, c, diags))
			if !diags.HasErrors() {
				t.Error("no error")
			}
			for _, diag := range diags {
				inFile(t, c, diag)
			}
		})
	}
}

// inFile fails the test where a diagnostic points outside the files.
func inFile(t testing.TB, c *Config, diag *hcl.Diagnostic) {
	t.Helper()
	for _, r := range []*hcl.Range{diag.Subject, diag.Context} {
		if r == nil {
			continue
		}
		src, ok := c.Sources[r.Filename]
		if !ok || r.Start.Byte < 0 || r.End.Byte > len(src) || r.Start.Byte > r.End.Byte || r.Start.Line < 1 {
			t.Errorf("%s points outside the files: %v", diag.Summary, r)
		}
	}
}

// oddFiles are folders that no archive can hold.
func oddFiles(t *testing.T) map[string]fs.FS {
	t.Helper()
	linked := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(linked, "a.hcl"), []byte(someProject), 0o600),
		os.Symlink("a.hcl", filepath.Join(linked, "b.hcl")),
	); err != nil {
		t.Fatal(err)
	}
	many := fstest.MapFS{}
	for i := range 12 {
		many[fmt.Sprintf("f%02d.hcl", i)] = &fstest.MapFile{Data: []byte("# " + strings.Repeat("x", 3<<20))}
	}
	return map[string]fs.FS{
		"linked":     os.DirFS(linked),
		"many":       many,
		"not text":   fstest.MapFS{"a.hcl": {Data: []byte(someProject + "# caf\xe9\n")}},
		"utf-16":     fstest.MapFS{"a.hcl": {Data: []byte("\xff\xfep\x00r\x00o\x00")}, "b.hcl": {Data: []byte(someProject)}},
		"pipe":       fstest.MapFS{"a.hcl": {Mode: fs.ModeNamedPipe}},
		"large":      fstest.MapFS{"a.hcl": {Data: make([]byte, maxFileSize+1)}},
		"unreadable": failingFS{fstest.MapFS{"a.hcl": {}}, "a.hcl"},
		"no folder":  failingFS{fstest.MapFS{}, "."},
	}
}

type failingFS struct {
	fs.FS
	name string
}

func (f failingFS) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

func TestOddFiles(t *testing.T) {
	var got strings.Builder
	odd := oddFiles(t)
	for _, name := range slices.Sorted(maps.Keys(odd)) {
		c, diags := Load(odd[name], Options{Root: fixtureRoot})
		fmt.Fprintf(&got, "# %s\n%s", name, render(t, c, diags))
	}
	const want = `# large
Error: File is too large

a.hcl is larger than 4 MiB, which no configuration needs. Rename it or move it away.
# linked
Error: File by two names

b.hcl and a.hcl are one file, by a link, and each .hcl file of the folder is read. Remove one of the
two.
# many
Error: Folder is too large

With f10.hcl, the folder's files are larger than 32 MiB together, which no configuration needs; it
and what comes after it isn't read. Move away what isn't configuration.
# no folder
Error: Folder can't be read

The configuration's folder can't be listed: open .: permission denied.
# not text
Error: Not text in UTF-8

  on a.hcl line 2:
   2: # caf?

This isn't text in UTF-8, and the rest of the file isn't read. Save the file in UTF-8.
# pipe
Error: Not a regular file

a.hcl is a pipe, a socket or a device. A folder's .hcl files and its auto.spacesvars are read;
rename it or move it away.
# unreadable
Error: File can't be read

a.hcl can't be read: open a.hcl: permission denied.
# utf-16
Error: Not text in UTF-8

  on a.hcl line 1:
   1: ??p?r?o?

This is text in UTF-16. Save the file in UTF-8.
`
	if got.String() != want {
		t.Errorf("got\n%s", got.String())
	}
}

// TestEveryDiagnosticIsPinned fails for a diagnostic in diag*.go that no fixture
// produces, so that none is without a pinned text and place.
func TestEveryDiagnosticIsPinned(t *testing.T) {
	seen := map[string]bool{}
	note := func(fsys fs.FS, opts Options) {
		_, diags := Load(fsys, opts)
		for _, diag := range diags {
			seen[Code(diag)] = true
		}
	}
	for _, f := range slices.Concat(fixtures(t, "invalid"), fixtures(t, "valid")) {
		note(f.folder())
	}
	for _, fsys := range oddFiles(t) {
		note(fsys, Options{Root: fixtureRoot})
	}
	for name, codes := range diagnosticCodes(t) {
		if len(codes) != 1 {
			t.Errorf("%s has %d codes, and should have one", name, len(codes))
		}
		for _, code := range codes {
			if !seen[code] {
				t.Errorf("no fixture produces %s (%s)", code, name)
			}
		}
	}
}

// diagnosticCodes are the codes that each function of diag*.go gives.
func diagnosticCodes(t *testing.T) map[string][]string {
	paths, err := filepath.Glob("diag*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal("no diag files", err)
	}
	codes, owner := map[string][]string{}, map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "diag") || f.Name.Name == "diagnostic" {
				continue
			}
			codes[f.Name.Name] = nil
			ast.Inspect(f, func(n ast.Node) bool {
				if code, ok := diagnosticCode(n); ok {
					codes[f.Name.Name] = append(codes[f.Name.Name], code)
					if other := owner[code]; other != "" {
						t.Errorf("%s and %s both have the code %s", other, f.Name.Name, code)
					}
					owner[code] = f.Name.Name
				}
				return true
			})
		}
	}
	return codes
}

func diagnosticCode(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok || (name.Name != "problem" && name.Name != "warning") {
		return "", false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	code, err := strconv.Unquote(lit.Value)
	return code, err == nil
}
