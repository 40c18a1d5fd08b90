package cli

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// newFileMode is that of a file which is made: what plans tell is the owner's to share.
const newFileMode fs.FileMode = 0o600

// replaceFile writes a file such that at any moment the old or the new is there, whole.
// A link is followed, so that what it leads to is replaced and not it.
func replaceFile(path string, mode fs.FileMode, write func(*bufio.Writer) error) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	err = errors.Join(fill(f, mode, write), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncFolder(dir)
}

// fill writes a file and puts it on disk.
func fill(f *os.File, mode fs.FileMode, write func(*bufio.Writer) error) error {
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
