package places

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/patternmatcher"

	"spaces/schema"
)

// sent is what a build's context sends: the digest, the bytes, and the names in order.
func sent(t *testing.T, b schema.Build) (string, []byte, []string) {
	t.Helper()
	in, err := OpenBuild(b)
	must(t, err)
	defer in.Close()
	var buffer bytes.Buffer
	digest, err := in.WriteTar(t.Context(), &buffer)
	must(t, err)
	again, err := in.Digest(t.Context())
	must(t, err)
	if digest != again {
		t.Errorf("sent %s, digested %s", digest, again)
	}
	var names []string
	for name, header := range entries(t, buffer.Bytes()) {
		names = append(names, name)
		if !header.ModTime.Equal(fileTime) || header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s has %v, %d:%d", name, header.ModTime, header.Uid, header.Gid)
		}
	}
	return digest, buffer.Bytes(), names
}

// entries are a tar's headers in order.
func entries(t *testing.T, data []byte) func(yield func(string, *tar.Header) bool) {
	return func(yield func(string, *tar.Header) bool) {
		r := tar.NewReader(bytes.NewReader(data))
		for {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			must(t, err)
			if !yield(header.Name, header) {
				return
			}
		}
	}
}

// TestIgnore has the cases of Docker's own documentation of .dockerignore.
func TestIgnore(t *testing.T) {
	for _, c := range []struct {
		name   string
		ignore string
		files  string
		want   string // beside Dockerfile and .dockerignore
	}{
		{name: "comment", ignore: "# comment\n", files: "a #x", want: "#x a"},
		{name: "a folder below any", ignore: "*/temp*", files: "somedir/temporary.txt somedir/temp/x somedir/a temp x/y/temp", want: "somedir/ somedir/a temp x/ x/y/ x/y/temp"},
		{name: "two below", ignore: "*/*/temp*", files: "somedir/subdir/temporary.txt somedir/temp", want: "somedir/ somedir/subdir/ somedir/temp"},
		{name: "one character", ignore: "temp?", files: "tempa tempb/x temp tempab", want: "temp tempab"},
		{name: "exception", ignore: "*.md\n!README.md", files: "README.md a.md b", want: "README.md b"},
		{name: "last line wins, out", ignore: "*.md\n!README*.md\nREADME-secret.md", files: "README.md README-secret.md a.md", want: "README.md"},
		{name: "last line wins, in", ignore: "*.md\nREADME-secret.md\n!README*.md", files: "README.md README-secret.md a.md", want: "README-secret.md README.md"},
		{name: "any depth", ignore: "**/*.go", files: "a.go x/a.go x/y/a.go x/y/b", want: "x/ x/y/ x/y/b"},
		{name: "slashes around", ignore: "/foo/bar\n/lib/\nbaz/", files: "foo/bar foo/baz lib/x baz/y z", want: "foo/ foo/baz z"},
		{name: "spaces and dots", ignore: "  ./a/../b  \n\n.\n", files: "a b", want: "a"},
		{name: "list of what to send", ignore: "*\n!src\n!go.mod", files: "src/a src/b/c go.mod go.sum x/src/d", want: "go.mod src/ src/a src/b/ src/b/c"},
		{name: "exception in a folder", ignore: "docs\n!docs/keep/x", files: "docs/a docs/keep/x docs/keep/y docs/z/x", want: "docs/ docs/keep/ docs/keep/x"},
		{name: "exception by wildcard", ignore: "node_modules\n!**/keep", files: "node_modules/a/b node_modules/a/keep", want: "node_modules/ node_modules/a/ node_modules/a/keep"},
		{name: "exclusion inside an exception", ignore: "*\n!src\nsrc/secret", files: "src/a src/secret/b", want: "src/ src/a"},
		{name: "exception and back", ignore: "a\n!a/b\na/b/c\n!a/b/c/d", files: "a/x a/b/y a/b/c/z a/b/c/d", want: "a/ a/b/ a/b/c/ a/b/c/d a/b/y"},
		{name: "always sent", ignore: "Dockerfile\n.dockerignore\n**", files: "a", want: ""},
		{name: "git", ignore: ".git\n**/.DS_Store", files: ".git/config x/.DS_Store x/y", want: "x/ x/y"},
		{name: "ranges", ignore: "[a-c].txt\n[^z]9", files: "a.txt d.txt y9 z9", want: "d.txt z9"},
		{name: "escaped", ignore: "\\#a\n\\!b", files: "#a !b c", want: "c"},
		{name: "byte order mark", ignore: "\xef\xbb\xbfa", files: "a b", want: "b"},
		{name: "no directory pattern catches a longer name", ignore: "foo", files: "foobar foo/x", want: "foobar"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, append(strings.Fields(c.files), "Dockerfile=FROM scratch")...)
			must(t, os.WriteFile(filepath.Join(root, ".dockerignore"), []byte(c.ignore), 0o644))
			_, _, names := sent(t, schema.Build{Context: root, Dockerfile: "Dockerfile"})
			want := append(strings.Fields(c.want), "Dockerfile", ".dockerignore")
			slices.Sort(want)
			slices.Sort(names)
			if !slices.Equal(names, want) {
				t.Errorf("sent %q, want %q", names, want)
			}
		})
	}
}

func TestIgnoreFileOfADockerfile(t *testing.T) {
	root := tree(t, "docker/build.Dockerfile=FROM scratch", "docker/build.Dockerfile.dockerignore=*.md\ndocker", ".dockerignore=*.txt", "a.md", "a.txt")
	_, _, names := sent(t, schema.Build{Context: root, Dockerfile: "./docker/build.Dockerfile"})
	if got := strings.Join(names, " "); got != ".dockerignore a.txt docker/ docker/build.Dockerfile" {
		t.Errorf("sent %s", got)
	}
}

func TestContext(t *testing.T) {
	base := tree(t, "outside=secret", "c/Dockerfile=FROM scratch", "c/b/", "c/a/x=x", "c/run.sh=#!", "c/bad->$/outside", "c/up->../outside",
		"c/in->a", "c/"+strings.Repeat("long/", 40)+"name=x", "c/ü\xff=u", "c/big="+strings.Repeat("0123456789", 50000))
	root := filepath.Join(base, "c")
	must(t, os.Chmod(filepath.Join(root, "run.sh"), 0o750))
	must(t, syscall.Chmod(filepath.Join(root, "a"), 0o2775))
	must(t, os.Link(filepath.Join(root, "a/x"), filepath.Join(root, "hard")))
	listener, err := net.Listen("unix", filepath.Join(root, "sock"))
	must(t, err)
	defer listener.Close()
	b := schema.Build{Context: root, Dockerfile: "Dockerfile", Args: map[string]string{"A": "1"}}
	digest, data, names := sent(t, b)
	if !slices.IsSortedFunc(names, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	}) {
		t.Errorf("not sorted: %q", names)
	}
	all := maps.Collect(entries(t, data))
	for name, want := range map[string]tar.Header{
		"a/":     {Typeflag: tar.TypeDir, Mode: 0o775},
		"b/":     {Typeflag: tar.TypeDir, Mode: 0o755},
		"run.sh": {Typeflag: tar.TypeReg, Mode: 0o750, Size: 2},
		"hard":   {Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		"a/x":    {Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		"bad":    {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: base + "/outside"},
		"up":     {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "../outside"},
		"in":     {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "a"},
		"ü\xff":  {Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		"big":    {Typeflag: tar.TypeReg, Mode: 0o644, Size: 500000},
	} {
		got := all[name]
		if got == nil || got.Typeflag != want.Typeflag || got.Mode != want.Mode || got.Size != want.Size || got.Linkname != want.Linkname {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if all["sock"] != nil || bytes.Contains(data, []byte("secret")) {
		t.Error("a socket or something from outside was sent")
	}

	// The digest follows what an image can be made of, and nothing else.
	later := time.Now().Add(time.Hour)
	must(t, os.Chtimes(filepath.Join(root, "a/x"), later, later))
	if again, _, _ := sent(t, b); again != digest {
		t.Error("a time changed the digest")
	}
	digests := map[string]string{"": digest}
	check := func(what string, b schema.Build) {
		t.Helper()
		got, _, _ := sent(t, b)
		for other, d := range digests {
			if d == got {
				t.Errorf("%q and %q have one digest", what, other)
			}
		}
		digests[what] = got
	}
	other := b
	other.Args = map[string]string{"A": "2"}
	check("argument", other)
	other.Args = map[string]string{"A1": ""}
	check("argument's name", other)
	other = b
	other.Target = "x"
	check("target", other)
	must(t, os.WriteFile(filepath.Join(root, "Dockerfile2"), []byte("FROM scratch"), 0o644))
	check("a file more", b)
	other = b
	other.Dockerfile = "Dockerfile2"
	check("another Dockerfile", other)
	must(t, os.Chmod(filepath.Join(root, "run.sh"), 0o640))
	check("mode", b)
	must(t, os.Remove(filepath.Join(root, "in")))
	must(t, os.Symlink("b", filepath.Join(root, "in")))
	check("link", b)
}

func TestContextProblems(t *testing.T) {
	for _, c := range []struct {
		name    string
		tree    []string
		spoil   func(root string) error
		build   schema.Build
		problem string
	}{
		{name: "no folder", build: schema.Build{Context: "none"}, problem: "cannot open the build context"},
		{name: "a file", tree: []string{"f"}, build: schema.Build{Context: "f"}, problem: "cannot open the build context"},
		{name: "no Dockerfile", tree: []string{"f"}, problem: "cannot read the Dockerfile"},
		{name: "outside", tree: []string{"c/f", "Dockerfile=FROM a"}, build: schema.Build{Context: "c", Dockerfile: "../Dockerfile"}, problem: "cannot read the Dockerfile"},
		{name: "link out", tree: []string{"c/Dockerfile->$/Dockerfile", "Dockerfile=FROM a"}, build: schema.Build{Context: "c"}, problem: "cannot read the Dockerfile"},
		{name: "Dockerfile is a folder", tree: []string{"Dockerfile/"}, problem: "not a regular file"},
		{name: "Dockerfile is a pipe", spoil: func(root string) error { return syscall.Mkfifo(root+"/Dockerfile", 0o600) }, problem: "not a regular file"},
		{name: "large Dockerfile", tree: []string{"Dockerfile=" + strings.Repeat("#", maxDockerfile+1)}, problem: "larger"},
		{name: "bad pattern", tree: []string{"Dockerfile=FROM a", ".dockerignore=[a-"}, problem: "cannot use the ignore file"},
		{name: "ignore file is a folder", tree: []string{"Dockerfile=FROM a", ".dockerignore/"}, problem: "cannot use the ignore file"},
		{name: "ignore file from outside", tree: []string{"Dockerfile=FROM a", ".dockerignore->/etc/passwd"}, problem: "cannot use the ignore file"},
		{name: "pipe", tree: []string{"Dockerfile=FROM a"}, spoil: func(root string) error { return syscall.Mkfifo(root+"/p", 0o600) }, problem: "cannot send p"},
		{name: "no base", tree: []string{"Dockerfile=FROM $X"}, problem: "cannot tell what the Dockerfile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, c.tree...)
			if c.spoil != nil {
				must(t, c.spoil(root))
			}
			c.build.Context = filepath.Join(root, c.build.Context)
			_, err := surveyBuild(t.Context(), Host{}, c.build)
			var wrong *InputError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, c.problem) || wrong.Fix == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("an ignored pipe", func(t *testing.T) {
		root := tree(t, "Dockerfile=FROM a", ".dockerignore=p")
		must(t, syscall.Mkfifo(root+"/p", 0o600))
		sent(t, schema.Build{Context: root})
	})
	t.Run("cancelled", func(t *testing.T) {
		in, err := OpenBuild(schema.Build{Context: tree(t, "Dockerfile=FROM a")})
		must(t, err)
		defer in.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := in.Digest(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a writer's error", func(t *testing.T) {
		in, err := OpenBuild(schema.Build{Context: tree(t, "Dockerfile=FROM a")})
		must(t, err)
		defer in.Close()
		_, end := io.Pipe()
		broken := errors.New("broken")
		end.CloseWithError(nil)
		r, w := io.Pipe()
		r.CloseWithError(broken)
		var wrong *InputError
		if _, err := in.WriteTar(t.Context(), w); !errors.Is(err, broken) || errors.As(err, &wrong) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzIgnore sends a small context under any ignore file: what is sent is what the
// matcher keeps when it is asked for each file alone, and the digest is the stream's.
func FuzzIgnore(f *testing.F) {
	for _, ignore := range []string{"", "*\n!src", "**/*.go\n!src/a.go", "a\n!a/b\na/b/c", "# x\n!\n.", "[a-", "\\", "/\n!/a/b/c/", "src/\n!s*/**/d"} {
		f.Add(ignore)
	}
	root := f.TempDir()
	files := []string{"Dockerfile", "a/b/c/d", "a/x", "b.md", "src/a.go", "src/sub/d", "z/é"}
	for _, name := range files {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte("FROM scratch"), 0o644)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, ignore string) {
		must(t, os.WriteFile(filepath.Join(root, ".dockerignore"), []byte(ignore), 0o644))
		in, err := OpenBuild(schema.Build{Context: root})
		if err != nil {
			return
		}
		defer in.Close()
		var buffer bytes.Buffer
		digest, err := in.WriteTar(t.Context(), &buffer)
		if err != nil {
			var wrong *InputError
			if !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			return
		}
		sum := sha256.Sum256(buffer.Bytes())
		if want := digestOf("build 1", hex.EncodeToString(sum[:]), "Dockerfile", ""); digest != want {
			t.Errorf("digest %s, of the stream %s", digest, want)
		}
		got := map[string]bool{}
		for name, header := range entries(t, buffer.Bytes()) {
			if header.Typeflag == tar.TypeDir {
				continue
			}
			got[name] = true
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				if !bytes.Contains(buffer.Bytes(), []byte(dir+"/\x00")) {
					t.Errorf("%s without %s", name, dir)
				}
			}
		}
		for _, name := range append(files, ".dockerignore") {
			// As the engine's own client does it: from the top down, each folder's
			// result going into what it holds.
			matcher, err := patternmatcher.New(in.ignore)
			must(t, err)
			ignored, match := false, patternmatcher.MatchInfo{}
			for i := range len(name) + 1 {
				if i == len(name) || name[i] == '/' {
					ignored, match, err = matcher.MatchesUsingParentResults(name[:i], match)
					must(t, err)
				}
			}
			kept := !ignored || name == "Dockerfile" || name == ".dockerignore"
			if got[name] != kept {
				t.Errorf("%q: %s sent %v, want %v", ignore, name, got[name], kept)
			}
		}
		if len(got) > len(files)+1 {
			t.Error(fmt.Sprint("more was sent than there is: ", got))
		}
	})
}
