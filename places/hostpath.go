package places

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"spaces/reconcile"
)

// maxLinks is how many symlinks one path may lead through, as in the kernel.
const maxLinks = 40

// located is where a path leads.
type located struct {
	// resolved has no symlink left in what exists of it; what doesn't exist is
	// appended as written.
	resolved string
	// links are where each symlink on the way stands, the last element included.
	// Whoever can write there decides where the path leads.
	links []string
	// above are the directories that resolved lies in, from "/" down.
	above []reconcile.Inode
	// last says that the path's own last element is a symlink.
	last bool
	// info is of what resolved names; nil when there is nothing.
	info fs.FileInfo
	// err is why the walk ended early, for any reason but that nothing is there.
	err error
}

// locate follows an absolute path as the kernel would and goes on where the kernel
// gives up: what a path will name once it exists matters as much as what it names now.
// A dangling link therefore counts as the place it points to.
func locate(path string) located {
	type step struct {
		name string
		own  bool // of the path itself, not of a link's target
	}
	var todo []step
	push := func(p string, own bool) {
		var add []step
		for name := range strings.SplitSeq(p, "/") {
			if name != "" && name != "." {
				add = append(add, step{name, own})
			}
		}
		todo = append(add, todo...)
	}
	push(filepath.Clean(path), true)

	var at located
	names := []string{}           // of the resolved prefix
	infos := []fs.FileInfo{nil}   // of "/" and each of names
	missing, lost := false, false // nothing is there from here on; or was, once
	join := func() string { return "/" + strings.Join(names, "/") }
	if info, err := os.Lstat("/"); err == nil {
		infos[0] = info
	}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if next.name == ".." {
			if len(names) > 0 {
				names, infos = names[:len(names)-1], infos[:len(infos)-1]
			}
			// The kernel would have given up before; what is there is where the path
			// may lead once it can be followed.
			missing = infos[len(infos)-1] == nil
			continue
		}
		names = append(names, next.name)
		if missing {
			infos = append(infos, nil)
			continue
		}
		info, err := os.Lstat(join())
		if err != nil {
			// A file where a folder should be is as absent as nothing at all.
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && at.err == nil {
				at.err = bare(err)
			}
			missing, lost = true, true
			infos = append(infos, nil)
			continue
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			infos = append(infos, info)
			continue
		}
		if next.own && len(todo) == 0 {
			at.last = true
		}
		target, err := os.Readlink(join())
		at.links = append(at.links, join())
		if err == nil && len(at.links) > maxLinks {
			err = syscall.ELOOP
		}
		if err != nil {
			if at.err == nil {
				at.err = bare(err)
			}
			missing, lost = true, true
			infos = append(infos, nil)
			continue
		}
		names = names[:len(names)-1]
		if filepath.IsAbs(target) {
			names, infos = names[:0], infos[:1]
		}
		push(target, false)
	}
	at.resolved = join()
	if !lost {
		at.info = infos[len(infos)-1]
	}
	for _, info := range infos[:len(infos)-1] {
		if info != nil {
			at.above = append(at.above, inodeOf(info))
		}
	}
	return at
}

// bare is an error without the operation and path that package os puts before it.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// inodeOf tells which file an info is of.
func inodeOf(info fs.FileInfo) reconcile.Inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return reconcile.Inode{}
	}
	return reconcile.Inode{Device: st.Dev, Number: st.Ino}
}

// ownerOf is the user id a file belongs to.
func ownerOf(info fs.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(st.Uid)
}

// modeOf are the permission bits as chmod has them.
func modeOf(info fs.FileInfo) uint32 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return uint32(info.Mode().Perm())
	}
	return st.Mode & 0o7777
}

// kindOf says what kind of file an info is of.
func kindOf(info fs.FileInfo) reconcile.PathKind {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return reconcile.PathDirectory
	case mode.IsRegular():
		return reconcile.PathFile
	case mode&fs.ModeSocket != 0:
		return reconcile.PathSocket
	default:
		return reconcile.PathOther
	}
}

// contains reports whether path is dir or lies below it; both are clean.
func contains(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
