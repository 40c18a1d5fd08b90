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
}

// Places is what the commands need of an engine.
type Places interface {
	Inspect(ctx context.Context, q places.Query) (reconcile.Actual, error)
	Features() reconcile.Engine
	Applier(o places.ApplierOptions) reconcile.Applier
	Evidence(ctx context.Context, proofs []reconcile.Proof, o places.EvidenceOptions) ([]reconcile.Evidence, error)
	Close() error
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
		Stdout:   Stream{os.Stdout, columns(os.Stdout)},
		Stderr:   Stream{os.Stderr, columns(os.Stderr)},
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

// columns is the width of the terminal behind a file, 0 without one.
func columns(f *os.File) int {
	if !isatty.IsTerminal(f.Fd()) {
		return 0
	}
	const usual = 80
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usual
	}
	return int(size.Col)
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

func (e engine) Applier(o places.ApplierOptions) reconcile.Applier { return e.Engine.Applier(o) }
