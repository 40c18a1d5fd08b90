package cli

import (
	"io/fs"
	"os"
	"path/filepath"
)

// newFileMode is that of a file which is made: what plans tell is the owner's to share.
const newFileMode fs.FileMode = 0o600

// replaceFile puts content into a file such that at any moment the old or the new is
// there, whole. A link is followed, so that what it leads to is replaced and not it.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	if err := fill(f, content, mode); err != nil {
		os.Remove(f.Name())
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncFolder(dir)
}

func fill(f *os.File, content []byte, mode fs.FileMode) error {
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
