package places

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBeingWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.hcl"), "a")
	if BeingWritten(dir, readsHCL) {
		t.Error("nobody writes")
	}
	reader, err := os.Open(filepath.Join(dir, "main.hcl"))
	do(t, err)
	defer reader.Close()
	writer, err := os.OpenFile(filepath.Join(dir, "main.hcl"), os.O_WRONLY, 0)
	do(t, err)
	other, err := os.Create(filepath.Join(dir, "other"))
	do(t, err)
	defer other.Close()
	if !BeingWritten(dir, readsHCL) {
		t.Error("somebody writes")
	}
	do(t, writer.Close())
	if BeingWritten(dir, readsHCL) {
		t.Error("nobody writes what is read any more")
	}
	if BeingWritten(filepath.Join(dir, "none"), readsHCL) {
		t.Error("there is no folder")
	}
}
