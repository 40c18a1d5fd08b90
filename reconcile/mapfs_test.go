package reconcile

import (
	"io/fs"
	"testing/fstest"
)

func mapFS(name, content string) fs.FS {
	return fstest.MapFS{name: {Data: []byte(content)}}
}
