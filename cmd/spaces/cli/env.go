package cli

import (
	"context"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"spaces/places"
	"spaces/reconcile"
)

// Env is all that a command takes from outside itself. Tests put their own in place of
// the process's.
type Env struct {
	Args    []string // without the program's name
	Environ []string // "NAME=value"
	Dir     string   // the working directory, absolute

	Stdin  io.Reader
	Stdout Stream
	Stderr Stream
	// Question is where a question reaches a person whose answer comes on Stdin; nil
	// where nobody would answer.
	Question io.Writer

	// Host describes the caller's machine.
	Host func() (places.Host, error)
	// Open connects to an engine.
	Open func(ctx context.Context, endpoint string, o places.OpenOptions) (Places, error)
	// Signals are the interruptions that apply listens to; nil for the process's own.
	Signals <-chan os.Signal
}

// Stream is where text goes.
type Stream struct {
	io.Writer
	// Columns is the width of the terminal behind it, 0 where there is none.
	Columns int
	// Size, if set, is the terminal's size now.
	Size func() (columns, rows int)
}

// size is how large the terminal behind a stream is at this moment.
func (s Stream) size() (columns, rows int) {
	const usual = 24
	if s.Size == nil {
		return s.Columns, usual
	}
	return s.Size()
}

// Places is what the commands need of an engine.
type Places interface {
	Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error)
	Features() reconcile.Engine
	Examine(ctx context.Context) (reconcile.EngineFacts, error)
	Logs(ctx context.Context, q places.LogQuery, hear func(places.LogLine) error) error
	Applier(o places.ApplierOptions) reconcile.Applier
	// Remember begins to follow what happens on it.
	Remember(ctx context.Context) (Memory, error)
	Evidence(ctx context.Context, proofs []reconcile.Proof, o places.EvidenceOptions) ([]reconcile.Evidence, error)
	Close() error
}

// Memory is what an engine holds, kept as it tells (places.Memory).
type Memory interface {
	Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error)
	Changed() <-chan struct{}
	Lost() <-chan struct{}
	Err() error
	Forget()
	Audit(ctx context.Context, q places.Query) ([]string, error)
	Close()
}

// System is the environment of this process.
func System() Env {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/" // whatever is read there says what it can't find
	}
	return Env{
		Args: os.Args[1:], Environ: os.Environ(), Dir: dir,
		Stdin:    os.Stdin,
		Stdout:   terminalStream(os.Stdout),
		Stderr:   terminalStream(os.Stderr),
		Question: question(),
		Host:     places.CurrentHost,
		Open:     openEngine,
	}
}

// question is where to ask when a terminal is at standard input: on standard error, or,
// where that goes elsewhere, on the terminal itself.
func question() io.Writer {
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	if isatty.IsTerminal(os.Stderr.Fd()) {
		return os.Stderr
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return terminal
}

// terminalStream is a file, and the size of the terminal behind it.
func terminalStream(f *os.File) Stream {
	if !isatty.IsTerminal(f.Fd()) {
		return Stream{Writer: f}
	}
	size := func() (columns, rows int) {
		const usualColumns, usualRows = 80, 24
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 || size.Row == 0 {
			return usualColumns, usualRows
		}
		return int(size.Col), int(size.Row)
	}
	columns, _ := size()
	return Stream{Writer: f, Columns: columns, Size: size}
}

// engine is the real Places.
type engine struct{ *places.Engine }

func openEngine(ctx context.Context, endpoint string, o places.OpenOptions) (Places, error) {
	e, err := places.Open(ctx, endpoint, o)
	if err != nil {
		return nil, err
	}
	return engine{e}, nil
}

func (e engine) Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error) {
	return e.Observer().Inspect(ctx, q)
}

func (e engine) Logs(ctx context.Context, q places.LogQuery, hear func(places.LogLine) error) error {
	return e.Observer().Logs(ctx, q, hear)
}

func (e engine) Remember(ctx context.Context) (Memory, error) {
	m, err := e.Engine.Remember(ctx)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (e engine) Applier(o places.ApplierOptions) reconcile.Applier { return e.Engine.Applier(o) }
