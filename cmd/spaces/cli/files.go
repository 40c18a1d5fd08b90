package cli

import (
	"bufio"
	"io/fs"
	"path/filepath"

	"spaces/places"
)

// newFileMode is that of a file which is made: what plans tell is the owner's to share.
const newFileMode fs.FileMode = 0o600

// replaceFile writes a file whole or not at all. A link is followed, so that what it
// leads to is replaced and not it.
func replaceFile(path string, mode fs.FileMode, write func(*bufio.Writer) error) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return places.ReplaceFile(path, mode, write)
}
