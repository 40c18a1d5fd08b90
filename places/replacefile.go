package places

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file, with a mode, such that at any moment the old or the new is
// there, whole: written beside it, synced, renamed over it. A symlink is replaced itself.
func ReplaceFile(path string, mode fs.FileMode, write func(*bufio.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	if err = write(out); err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncFolder(dir)
}
