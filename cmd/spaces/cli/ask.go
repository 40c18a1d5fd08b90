package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errDeclined ends a command whose question wasn't answered with yes.
var errDeclined = errors.New("nothing was done: only 'yes' goes ahead")

// yes is the only answer that goes ahead.
const yes = "yes"

// ask waits for a person's yes. Anything else, and the end of input, is a no.
func (a *app) ask(ctx context.Context, question string) error {
	a.flush()
	fmt.Fprintf(a.env.Question, "\n%s ", question)
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	// A read from a terminal can't be called back; at an interruption it is left behind.
	go func() {
		line, err := bufio.NewReader(a.env.Stdin).ReadString('\n')
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.env.Question)
		return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
	case got := <-answers:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return fmt.Errorf("cannot read the answer: %w", got.err)
		}
		if strings.TrimSpace(got.line) != yes {
			return errDeclined
		}
		return nil
	}
}
