package places

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"spaces/reconcile"
)

// FilesOf are the host's files that a plan is made from.
type FilesOf struct {
	// Folder is a folder of which every file counts that Reads is true for, by its name.
	Folder string
	Reads  func(name string) bool
	// Paths count by what is at them: their content, owner and mode, and that they exist.
	Paths []string
	// Trees are folders of which everything counts, however deep.
	Trees []string
}

// maxTreeFolders bounds how many folders of trees are followed: the kernel gives a user
// so many watches and no more.
const maxTreeFolders = 4096

// Files tells when the host's files change that a plan is made from: it follows the
// folders they are in, those that their paths lead through, and the links on the way, so
// that a file that is replaced, a folder that comes back and a link that is turned all
// count. It reads nothing. It is for one goroutine.
type Files struct {
	watcher *fsnotify.Watcher
	changed chan struct{}
	ended   chan struct{}
	rules   chan rules
	watched map[string]reconcile.Inode // folders, by path
}

// rules say, by folder, which names in it count.
type rules map[string]folderRule

// folderRule says which names in a folder count.
type folderRule struct {
	all   bool                   // whatever is in it
	reads func(name string) bool // what it holds by name; nil for nothing
	names map[string]bool        // true for those whose content counts, false for parts of a path
}

// FollowFiles begins to follow nothing. Close it.
func FollowFiles() (*Files, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("cannot follow files: %w", err)
	}
	f := &Files{
		watcher: w, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		rules: make(chan rules), watched: map[string]reconcile.Inode{},
	}
	go f.listen()
	return f, nil
}

// listen takes what the kernel tells, always: what isn't taken is lost.
func (f *Files) listen() {
	defer close(f.ended)
	var now rules
	for {
		select {
		case now = <-f.rules:
		case e, more := <-f.watcher.Events:
			if !more {
				return
			}
			if now.counts(e) {
				f.signal()
			}
		case _, more := <-f.watcher.Errors:
			if !more {
				return
			}
			f.signal() // events were lost
		}
	}
}

func (f *Files) signal() {
	select {
	case f.changed <- struct{}{}:
	default: // whoever listens has yet to take the one before
	}
}

// Changed receives once something has changed since it last did.
func (f *Files) Changed() <-chan struct{} { return f.changed }

// Close stops following.
func (f *Files) Close() error {
	err := f.watcher.Close()
	<-f.ended
	return err
}

// Follow says which files count from now on, and looks anew where they lead: it is to be
// called after each change, before the files are read. An error is that not all of them
// can be followed; those that can are.
func (f *Files) Follow(of FilesOf) error {
	r := rules{}
	var errs []error
	if of.Folder != "" {
		at := r.path(of.Folder, false)
		rule := r[at]
		rule.reads = of.Reads
		r[at] = rule
		r.linksIn(of)
	}
	for _, p := range of.Paths {
		if filepath.IsAbs(p) {
			r.path(p, true)
		}
	}
	left := maxTreeFolders
	for _, tree := range of.Trees {
		if filepath.IsAbs(tree) {
			left = r.tree(r.path(tree, false), left)
		}
	}
	if left < 0 {
		errs = append(errs, fmt.Errorf("build contexts have more than %d folders: what changes in the rest isn't noticed by itself", maxTreeFolders))
	}
	f.rules <- r
	errs = append(errs, f.watch(r)...)
	return errors.Join(errs...)
}

// linksIn follows the links in the folder to where the files are.
func (r rules) linksIn(of FilesOf) {
	// Without an entry the folder is gone, and comes back perhaps.
	entries, _ := os.ReadDir(of.Folder)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && of.Reads(e.Name()) {
			r.path(filepath.Join(of.Folder, e.Name()), true)
		}
	}
}

// path makes all count that decides where a path leads, and gives where that is.
func (r rules) path(path string, content bool) string {
	at := locate(path)
	for _, link := range at.links {
		r.parts(link)
	}
	r.parts(at.resolved)
	if content {
		r.name(at.resolved, true)
	}
	return at.resolved
}

// parts makes a path and each folder that it lies in count, by name.
func (r rules) parts(path string) {
	for ; path != "/"; path = filepath.Dir(path) {
		r.name(path, false)
	}
}

func (r rules) name(path string, content bool) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	rule := r[dir]
	if rule.names == nil {
		rule.names = map[string]bool{}
	}
	rule.names[name] = rule.names[name] || content
	r[dir] = rule
}

// tree makes a folder and those in it count whole, as far as there are any left.
func (r rules) tree(root string, left int) int {
	// What can't be read can't be followed, and is told by who reads it.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if left--; left < 0 {
			return filepath.SkipAll
		}
		rule := r[path]
		rule.all = true
		r[path] = rule
		return nil
	})
	return left
}

// watch asks the kernel for the folders of the rules and for no others.
func (f *Files) watch(r rules) []error {
	now := map[string]reconcile.Inode{}
	for dir := range r {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			now[dir] = inodeOf(info)
		}
	}
	alive := map[string]bool{}
	for _, dir := range f.watcher.WatchList() {
		alive[dir] = true
	}
	for dir, inode := range f.watched {
		// Another folder may have taken the place of the one that is watched.
		if now[dir] != inode || !alive[dir] {
			_ = f.watcher.Remove(dir) // it may be gone by itself
			delete(f.watched, dir)
		}
	}
	var errs []error
	for dir, inode := range now {
		if _, is := f.watched[dir]; is {
			continue
		}
		switch err := f.watcher.Add(dir); {
		case err == nil:
			f.watched[dir] = inode
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			// It went just now, or isn't ours to read: nor to change, then.
		default:
			errs = append(errs, fmt.Errorf("cannot follow %s: %w", dir, bare(err)))
		}
	}
	return errs
}

// counts tells whether an event is of something that counts.
func (r rules) counts(e fsnotify.Event) bool {
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	if _, itself := r[e.Name]; itself && e.Has(fsnotify.Remove|fsnotify.Rename) {
		return true
	}
	rule := r[dir]
	content, known := rule.names[name]
	moved := e.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename)
	switch {
	case rule.all, content:
		return true
	case rule.reads != nil && rule.reads(name):
		return true
	case known:
		return moved
	}
	return false
}

// FilesFor are the files that a plan of a configuration is made from, whose folder is
// read by name.
func FilesFor(d reconcile.Desired, h Host, folder string, reads func(name string) bool) FilesOf {
	of := FilesOf{Folder: folder, Reads: reads}
	contexts := map[string]bool{}
	for _, i := range d.Images {
		if i.Build != nil {
			contexts[i.Build.Context] = true
			of.Trees = append(of.Trees, h.expand(i.Build.Context))
		}
	}
	for _, path := range d.Loaded {
		if !contexts[path] {
			of.Paths = append(of.Paths, h.expand(path))
		}
	}
	for _, g := range d.Grants {
		// What is in a directory is the space's business and no plan's.
		if path := reconcile.GrantPath(d, g); path != "" {
			of.Paths = append(of.Paths, h.expand(path))
		}
	}
	return of
}
