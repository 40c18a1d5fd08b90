package places

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// keySize is the length of the key in bytes.
const keySize = 32

// keyed makes digests that say nothing without the key.
type keyed struct {
	key [keySize]byte
	id  string
}

// newKeyed makes the digester of a key.
func newKeyed(key [keySize]byte) *keyed {
	k := &keyed{key: key}
	// Another domain than Digest's, so that no digest of anything is the key's name.
	k.id = hex.EncodeToString(k.sum("spaces: name of the key", nil))[:16]
	return k
}

// KeyID names the key, without telling anything of it.
func (k *keyed) KeyID() string { return k.id }

// Digest is the HMAC-SHA256 of the parts, each with its length before it.
func (k *keyed) Digest(parts ...string) string {
	return hex.EncodeToString(k.sum("spaces: digest", parts))
}

func (k *keyed) sum(domain string, parts []string) []byte {
	mac := hmac.New(sha256.New, k.key[:])
	var length [8]byte
	write := func(s string) {
		binary.BigEndian.PutUint64(length[:], uint64(len(s)))
		mac.Write(length[:])
		io.WriteString(mac, s) // a hash takes everything
	}
	write(domain)
	for _, part := range parts {
		write(part)
	}
	return mac.Sum(nil)
}

// LoadKey is the digester of the key that is there, or nil when there is none: then
// nothing can be compared, which a plan says.
func LoadKey(path string, h Host) (reconcile.Digester, error) {
	k, err := readKey(path, h.UID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// EnsureKey is the digester of the key that is there, made first if need be. Of two
// that start at once, both get the same. A key that is there but can't be used is an
// error and stays: with another one everything would look changed.
func EnsureKey(path string, h Host) (reconcile.Digester, error) {
	k, err := readKey(path, h.UID)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path, unnamed); err != nil {
			return nil, fmt.Errorf("cannot make the key %s: %w", path, err)
		}
		k, err = readKey(path, h.UID)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// readKey reads and judges a key; the error wraps fs.ErrNotExist when there is none.
func readKey(path string, uid int) (*keyed, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, unfit(path, "it is a symlink", "Put the file itself there.")
	case err != nil:
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	// Whoever knows the key can guess at what it digests.
	switch {
	case !info.Mode().IsRegular():
		return nil, unfit(path, "it is not a regular file", "Remove it, and the next apply makes one.")
	case ownerOf(info) != uid:
		return nil, unfit(path, fmt.Sprintf("it belongs to user %d, not to you (%d)", ownerOf(info), uid), "Remove it, and the next apply makes one (changed secrets and files can't be told until then).")
	case modeOf(info) != 0o600:
		return nil, unfit(path, fmt.Sprintf("its mode is %04o, others may have read it", modeOf(info)), fmt.Sprintf("Type chmod 600 %s if none did, or remove it, and the next apply makes one.", path))
	}
	var key [keySize + 1]byte
	n, err := io.ReadFull(f, key[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	if n != keySize {
		return nil, unfit(path, fmt.Sprintf("it isn't %d bytes long", keySize), "Restore it, or remove it, and the next apply makes one (changed secrets and files can't be told until then).")
	}
	return newKeyed([keySize]byte(key[:keySize])), nil
}

// makeKey puts a new key at path unless there is one by then. The file gets its name
// only once it is whole and on disk, by a link, which unlike a rename never takes
// another's place. A kill at any moment leaves a whole key or none.
func makeKey(path string, create func(dir string) (*os.File, string, error)) error {
	var key [keySize]byte
	rand.Read(key[:]) // never fails
	dir := filepath.Dir(path)
	f, name, err := create(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if filepath.Dir(name) == dir {
		defer os.Remove(name)
	}
	// The umask may have taken the owner's bits.
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if _, err := f.Write(key[:]); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, name, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot link it into place: %w", err)
	}
	return syncFolder(dir)
}

// unnamed opens a new file in a folder and says by what path it can be linked. The
// file has no name of its own where the file system can do that, so that a kill leaves
// nothing behind.
func unnamed(dir string) (*os.File, string, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		f := os.NewFile(uintptr(fd), dir)
		name := "/proc/self/fd/" + strconv.Itoa(fd)
		if _, err := os.Lstat(name); err == nil {
			return f, name, nil
		}
		f.Close()
	} else if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, "", &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return named(dir)
}

// named opens a new file under a name of its own; a kill can leave it behind.
func named(dir string) (*os.File, string, error) {
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return nil, "", err
	}
	return f, f.Name(), nil
}

// syncFolder puts a folder's names on disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some file systems can't, and say so by EINVAL.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
