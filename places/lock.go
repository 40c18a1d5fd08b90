package places

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Holder is who holds a lock, as its file says for the next one's message.
type Holder struct {
	PID    int       `json:"pid"`
	Verb   string    `json:"verb"`
	Since  time.Time `json:"since"`
	Folder string    `json:"folder"`
}

// String names the holder to a person.
func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("spaces %s (pid %d, since %s, from %s)", h.Verb, h.PID, h.Since.Format(time.RFC3339), h.Folder)
}

// BusyError says that another process holds a lock.
type BusyError struct {
	Path string
	// Holder is who; its PID is zero where it couldn't be told.
	Holder Holder
	// Waited is how long was waited in vain.
	Waited time.Duration
}

// Error names the holder.
func (e *BusyError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" after %s", e.Waited)
	}
	return fmt.Sprintf("cannot take the lock %s%s: %s holds it", e.Path, waited, e.Holder)
}

// Lock is a lock that this process holds.
type Lock struct{ f *os.File }

// Acquire takes the lock of a file, making it if need be, and writes into it who
// holds it. While another process has the lock it waits for the timeout, then fails
// with a *BusyError. The kernel gives the lock back when the holder ends, however it
// ends, and the file stays: removing it would let two hold what each takes for the lock.
func Acquire(ctx context.Context, path string, holder Holder, timeout time.Duration) (*Lock, error) {
	fail := func(err error) (*Lock, error) {
		return nil, fmt.Errorf("cannot take the lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fail(bare(err))
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return fail(errors.New("it is not a regular file; remove it"))
	}
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	// flock can wait by itself, but then nothing could call it back.
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := flock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return fail(err)
		}
		if timeout <= 0 {
			defer f.Close()
			return nil, &BusyError{Path: path, Holder: readHolder(f)}
		}
		select {
		case <-ctx.Done():
			f.Close()
			return fail(context.Cause(ctx))
		case <-expired:
			defer f.Close()
			return nil, &BusyError{Path: path, Holder: readHolder(f), Waited: timeout}
		case <-time.After(pause):
		}
	}
	l := &Lock{f}
	// What a holder that died left here is overwritten, never believed.
	if err := l.write(holder); err != nil {
		l.Release()
		return fail(err)
	}
	return l, nil
}

// Release gives the lock back.
func (l *Lock) Release() error {
	// Emptied first, so that the next one to wait is not told of us.
	err := l.f.Truncate(0)
	if closed := l.f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("cannot release the lock %s: %w", l.f.Name(), err)
	}
	return nil
}

func (l *Lock) write(holder Holder) error {
	line, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err = l.f.WriteAt(append(line, '\n'), 0)
	return err
}

// flock takes the lock if nobody has it. It belongs to the open file: it ends with the
// last descriptor of it, and programs that this process starts inherit none.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

// readHolder reads who holds a lock that couldn't be had. Between taking the lock and
// writing, the file still has what the one before left, which is told by its process
// being gone.
func readHolder(f *os.File) Holder {
	for range 5 {
		var holder Holder
		line := make([]byte, 4096)
		n, err := f.ReadAt(line, 0)
		if (err == nil || errors.Is(err, io.EOF)) && json.Unmarshal(line[:n], &holder) == nil && holder.PID > 0 {
			if err := syscall.Kill(holder.PID, 0); err == nil || errors.Is(err, syscall.EPERM) {
				return holder
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return Holder{}
}

// AppliedFrom is the folder that last applied, empty when none has.
func (r DataRoot) AppliedFrom() (string, error) {
	data, err := os.ReadFile(r.SourceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell which folder last applied: %w", err)
	}
	folder := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(folder) {
		return "", fmt.Errorf("cannot tell which folder last applied: %s holds no path; remove it if you know", r.SourceFile())
	}
	return folder, nil
}

// SetAppliedFrom records the folder that applies.
func (r DataRoot) SetAppliedFrom(folder string) error {
	if err := ReplaceFile(r.SourceFile(), 0o600, func(w *bufio.Writer) error {
		_, err := w.WriteString(folder + "\n")
		return err
	}); err != nil {
		return fmt.Errorf("cannot record which folder applied: %w", err)
	}
	return nil
}

// AppliedElsewhere is the folder that last applied if it is another than this one, and
// empty if it is this one or none has. Two paths of one folder are the same folder.
func (r DataRoot) AppliedElsewhere(folder string) (string, error) {
	last, err := r.AppliedFrom()
	if err != nil || last == "" || SameFolder(last, folder) {
		return "", err
	}
	return last, nil
}

// SameFolder reports whether two paths lead to one folder.
func SameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, y := locate(a), locate(b)
	if x.info != nil && y.info != nil {
		return os.SameFile(x.info, y.info)
	}
	return x.resolved == y.resolved
}
