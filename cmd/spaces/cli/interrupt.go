package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is why a context ended: a person or the system asked.
var errInterrupted = errors.New("interrupted")

// cancellable ends the context at the first interruption, and lets the second one kill
// the process as it would any other.
func (a *app) cancellable(ctx context.Context) (context.Context, func()) {
	ctx, _, stop := a.interruptible(ctx, 1)
	return ctx, stop
}

// interruptible ends the context at the first interruption and closes aborted at the
// second. After the last one that is listened to, the next kills the process.
func (a *app) interruptible(ctx context.Context, listen int) (_ context.Context, aborted <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	abort := make(chan struct{})
	signals, release := a.signals()
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		defer release()
		for n := range listen {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n == 0 {
				cancel(errInterrupted)
			} else {
				close(abort)
			}
		}
	})
	return ctx, abort, func() {
		close(done)
		ended.Wait()
		cancel(nil)
	}
}

// signals are the interruptions of this process, until released.
func (a *app) signals() (<-chan os.Signal, func()) {
	if a.env.Signals != nil {
		return a.env.Signals, func() {}
	}
	c := make(chan os.Signal, 2) // of two that come at once none is lost
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}
