package places

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// BeingWritten tells whether some program has one of a folder's files open to write to:
// what is in it may be half of what will be. It can be told of the caller's own files; of
// others it isn't known, and the answer is no.
func BeingWritten(folder string, reads func(name string) bool) bool {
	entries, _ := os.ReadDir(folder) // one that is gone holds nothing
	for _, e := range entries {
		if reads(e.Name()) && openToWrite(filepath.Join(folder, e.Name())) {
			return true
		}
	}
	return false
}

// openToWrite asks for a lease to read, which the kernel gives only where nobody can be
// writing (fcntl(2)), and gives it back at once.
func openToWrite(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // only read
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return errors.Is(err, unix.EAGAIN)
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK) // closing gives it back too
	return false
}
