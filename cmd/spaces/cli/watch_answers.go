package cli

import (
	"bufio"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// answers are the lines that a person types. Each goes with the question that stood when
// it came: what was typed for an older one is no answer to a newer.
type answers struct {
	lines  chan answer // nil until the first question
	number atomic.Int64
	over   bool // nobody will answer any more
}

type answer struct {
	line     string
	question int64
	ended    bool // nobody will answer any more
}

// next makes way for a new question.
func (a *answers) next(from io.Reader) {
	a.number.Add(1)
	if terminal, is := from.(*os.File); is {
		// Half a line for the question before would end up in the answer to this one.
		_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	}
	if a.lines != nil {
		return
	}
	a.lines = make(chan answer)
	go func() {
		in := bufio.NewScanner(from)
		for in.Scan() {
			a.lines <- answer{line: in.Text(), question: a.number.Load()}
		}
		a.lines <- answer{ended: true}
	}()
}
