package places

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readsHCL(name string) bool {
	return strings.HasSuffix(name, ".hcl") && !strings.HasPrefix(name, ".")
}

// files is a folder that is followed.
type files struct {
	*Files
	t    *testing.T
	base string
	of   FilesOf
}

func followed(t *testing.T, lay func(base string) FilesOf) *files {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := FollowFiles()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	out := &files{Files: f, t: t, base: base, of: lay(base)}
	out.again()
	return out
}

// again is what a reader does before it reads.
func (f *files) again() {
	f.t.Helper()
	if err := f.Follow(f.of); err != nil {
		f.t.Fatal(err)
	}
}

// tells sees a change told, and all that comes with it.
func (f *files) tells(what string) {
	f.t.Helper()
	select {
	case <-f.Changed():
	case <-time.After(30 * time.Second):
		f.t.Fatalf("%s: nothing told", what)
	}
	f.quiet()
	f.again()
}

// quiet waits until all that happened so far was heard: the mark comes last.
func (f *files) quiet() (told bool) {
	f.t.Helper()
	mark := filepath.Join(f.base, "mark")
	marked, err := FollowFiles()
	if err != nil {
		f.t.Fatal(err)
	}
	defer marked.Close()
	if err := marked.Follow(FilesOf{Paths: []string{mark}}); err != nil {
		f.t.Fatal(err)
	}
	write(f.t, mark, "1")
	<-marked.Changed()
	time.Sleep(20 * time.Millisecond) // two watchers are told apart from each other
	select {
	case <-f.Changed():
		return true
	default:
		return false
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesFollowTheFolder(t *testing.T) {
	f := followed(t, func(base string) FilesOf {
		dir := filepath.Join(base, "work")
		do(t, os.Mkdir(dir, 0o700))
		write(t, filepath.Join(dir, "main.hcl"), "a")
		return FilesOf{Folder: dir, Reads: readsHCL}
	})
	in := func(name string) string { return filepath.Join(f.of.Folder, name) }
	write(t, in("main.hcl"), "b")
	f.tells("truncate and write")
	write(t, in("main.hcl.tmp"), "c")
	do(t, os.Rename(in("main.hcl.tmp"), in("main.hcl")))
	f.tells("rename over")
	do(t, os.Rename(in("main.hcl"), in("main.hcl~")))
	write(t, in("main.hcl"), "d")
	f.tells("backup file")
	write(t, in("more.hcl"), "")
	f.tells("added")
	do(t, os.Rename(in("more.hcl"), in("other.hcl")))
	f.tells("renamed")
	do(t, os.Remove(in("other.hcl")))
	f.tells("removed")

	// None of these is read.
	write(t, in("4913"), "")
	do(t, os.Remove(in("4913")))
	write(t, in(".main.hcl.swp"), "")
	write(t, in("main.hcl~"), "")
	write(t, in("#main.hcl#"), "")
	do(t, os.Mkdir(in("sub"), 0o700))
	write(t, in("sub/x.hcl"), "")
	if f.quiet() {
		t.Error("told of files that aren't read")
	}

	do(t, os.RemoveAll(f.of.Folder))
	f.tells("the folder removed")
	do(t, os.Mkdir(f.of.Folder, 0o700))
	write(t, in("main.hcl"), "e")
	f.tells("the folder restored")
	write(t, in("main.hcl"), "f")
	f.tells("in the restored folder")

	do(t, os.Rename(f.of.Folder, f.of.Folder+".old"), os.Mkdir(f.of.Folder, 0o700))
	f.tells("another folder in its place")
	write(t, in("main.hcl"), "g")
	f.tells("in the other folder")
}

func TestFilesFollowLinks(t *testing.T) {
	f := followed(t, func(base string) FilesOf {
		for _, dir := range []string{"one", "two", "shared"} {
			do(t, os.Mkdir(filepath.Join(base, dir), 0o700))
		}
		write(t, filepath.Join(base, "shared/common"), "a")
		do(t, os.Symlink("one", filepath.Join(base, "current")),
			os.Symlink("../shared/common", filepath.Join(base, "one/common.hcl")))
		return FilesOf{Folder: filepath.Join(base, "current"), Reads: readsHCL}
	})
	write(t, filepath.Join(f.base, "one/main.hcl"), "a")
	f.tells("where the link leads")
	write(t, filepath.Join(f.base, "shared/common"), "b")
	f.tells("what a link in the folder leads to")
	do(t, os.Symlink("two", filepath.Join(f.base, "next")), os.Rename(filepath.Join(f.base, "next"), filepath.Join(f.base, "current")))
	f.tells("the link turned")
	write(t, filepath.Join(f.base, "two/main.hcl"), "a")
	f.tells("where the link leads now")
	write(t, filepath.Join(f.base, "one/main.hcl"), "b")
	if f.quiet() {
		t.Error("told of where the link led before")
	}
}

func TestFilesFollowPathsAndTrees(t *testing.T) {
	f := followed(t, func(base string) FilesOf {
		do(t, os.MkdirAll(filepath.Join(base, "context/sub"), 0o700), os.Mkdir(filepath.Join(base, "data"), 0o700))
		write(t, filepath.Join(base, "secret"), "a")
		return FilesOf{
			Paths: []string{filepath.Join(base, "secret"), filepath.Join(base, "data"), filepath.Join(base, "not/yet")},
			Trees: []string{filepath.Join(base, "context")},
		}
	})
	write(t, filepath.Join(f.base, "secret"), "b")
	f.tells("content")
	do(t, os.Chmod(filepath.Join(f.base, "secret"), 0o644))
	f.tells("mode")
	write(t, filepath.Join(f.base, "context/sub/Dockerfile"), "b")
	f.tells("in a tree")
	do(t, os.Mkdir(filepath.Join(f.base, "context/new"), 0o700))
	f.tells("a folder in a tree")
	write(t, filepath.Join(f.base, "context/new/file"), "b")
	f.tells("in the new folder")
	write(t, filepath.Join(f.base, "data/file"), "b")
	if f.quiet() {
		t.Error("told of what is in a directory that is only given")
	}
	do(t, os.Mkdir(filepath.Join(f.base, "not"), 0o700))
	f.tells("a part of a path")
	write(t, filepath.Join(f.base, "not/yet"), "b")
	f.tells("its end")
	do(t, os.Remove(filepath.Join(f.base, "data")+"/file"), os.Remove(filepath.Join(f.base, "data")))
	f.tells("a directory gone")
}
