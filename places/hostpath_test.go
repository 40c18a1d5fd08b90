package places

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree makes files below a temporary directory: "dir/", "file=content", "link->target".
// "$" in a target stands for the directory.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, e := range entries {
		name, content, isFile := strings.Cut(e, "=")
		if link, target, ok := strings.Cut(e, "->"); ok {
			at := filepath.Join(root, link)
			must(t, os.MkdirAll(filepath.Dir(at), 0o755))
			must(t, os.Symlink(strings.ReplaceAll(target, "$", root), at))
			continue
		}
		at := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if !isFile {
			content = name
		}
		must(t, os.WriteFile(at, []byte(content), 0o644))
	}
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLocate(t *testing.T) {
	root := tree(t, "dir/sub/file", "a->dir", "b->$/dir/sub", "up->dir/sub/../../dir", "dangling->$/none/x",
		"deep->none/y", "loop1->loop2", "loop2->loop1", "self->self", "dir/back->../a/sub", "chain->a/back", "slash->dir/", "tofile->dir/sub/file",
		"odd->none/../dir")
	for _, c := range []struct {
		path, want string
		links      string
		last       bool
		exists     bool
		err        error
	}{
		{path: "dir/sub/file", want: "dir/sub/file", exists: true},
		{path: "dir//sub/./file/", want: "dir/sub/file", exists: true},
		{path: "none/x/y", want: "none/x/y"},
		{path: "a", want: "dir", links: "a", last: true, exists: true},
		{path: "a/sub", want: "dir/sub", links: "a", exists: true},
		{path: "b/file", want: "dir/sub/file", links: "b", exists: true},
		{path: "up/sub", want: "dir/sub", links: "up", exists: true},
		{path: "dangling", want: "none/x", links: "dangling", last: true},
		{path: "dangling/more", want: "none/x/more", links: "dangling"},
		{path: "deep", want: "none/y", links: "deep", last: true},
		{path: "chain/file", want: "dir/sub/file", links: "chain a dir/back a", exists: true},
		{path: "slash", want: "dir", links: "slash", last: true, exists: true},
		{path: "tofile", want: "dir/sub/file", links: "tofile", last: true, exists: true},
		{path: "odd/sub", want: "dir/sub", links: "odd"},
		{path: "dir/sub/file/below", want: "dir/sub/file/below"},
		{path: "self", want: "self", last: true, err: syscall.ELOOP},
		{path: "loop1/x", err: syscall.ELOOP},
	} {
		t.Run(c.path, func(t *testing.T) {
			at := locate(root + "/" + c.path)
			if c.want != "" && at.resolved != filepath.Join(root, c.want) {
				t.Errorf("resolved %s, want %s", at.resolved, filepath.Join(root, c.want))
			}
			if at.last != c.last || (at.info != nil) != c.exists || at.err != c.err {
				t.Errorf("last %v, exists %v, err %v; want %v, %v, %v", at.last, at.info != nil, at.err, c.last, c.exists, c.err)
			}
			if c.err != nil {
				return
			}
			var links []string
			for _, l := range at.links {
				links = append(links, strings.TrimPrefix(l, root+"/"))
			}
			if got := strings.Join(links, " "); got != c.links {
				t.Errorf("links %q, want %q", got, c.links)
			}
			if c.exists {
				kernel, err := filepath.EvalSymlinks(filepath.Join(root, c.path))
				if err != nil || kernel != at.resolved {
					t.Errorf("the kernel goes to %s (%v), we to %s", kernel, err, at.resolved)
				}
				if n := strings.Count(at.resolved, "/"); len(at.above) != n {
					t.Errorf("%d directories above %s, want %d", len(at.above), at.resolved, n)
				}
			}
		})
	}
	if at := locate("/"); at.resolved != "/" || at.info == nil || len(at.above) != 0 {
		t.Errorf("the root: %+v", at)
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/", "/a", true}, {"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false},
	} {
		if got := contains(c.dir, c.path); got != c.want {
			t.Errorf("contains(%s, %s) = %v", c.dir, c.path, got)
		}
	}
}
