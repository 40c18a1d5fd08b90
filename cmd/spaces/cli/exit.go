package cli

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"spaces/reconcile"
)

// The exit statuses; there are no others.
const (
	// statusDone: done, or nothing to do.
	statusDone = 0
	// statusFailed: failed or busy; trying again may help.
	statusFailed = 1
	// statusDiffers: plan --detailed-exitcode, drift and fmt --check found a difference;
	// for validate alone, the configuration is invalid.
	statusDiffers = 2
	// statusRefused: a person must act first.
	statusRefused = 3
)

// errDiffers ends a command with statusDiffers once it has reported.
var errDiffers = errors.New("differs")

// problems is why a command can't go ahead until a person acts: what is wrong with the
// configuration, or refusals, all of them together.
type problems struct {
	diags    hcl.Diagnostics
	refusals []reconcile.Refusal
	// sources are the files that diagnostics and origins point into.
	sources map[string][]byte
	// outcome is what was done for all that; empty for nothing.
	outcome string
	// reported is true when all of it has been printed with something else.
	reported bool
}

func (p *problems) Error() string {
	if p.diags.HasErrors() {
		return fmt.Sprintf("%s: %s", reconcile.CodeConfigInvalid, p.diags.Error())
	}
	var errs []error
	for i := range p.refusals {
		errs = append(errs, &p.refusals[i])
	}
	return errors.Join(errs...).Error()
}

// reportedError keeps what an exit status depends on, all of which has been printed.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }

// refuse makes an error of one refusal that no file is to blame for.
func refuse(code, fix, format string, args ...any) error {
	return &problems{refusals: []reconcile.Refusal{{Code: code, Text: fmt.Sprintf(format, args...), Fix: fix}}}
}

// usage is a command line that can't be understood.
func usage(fix, format string, args ...any) error {
	return refuse(reconcile.CodeUsage, fix, format, args...)
}

// refusalIn finds a refusal at the bottom of an error.
func refusalIn(err error) (reconcile.Refusal, bool) {
	var r *reconcile.Refusal
	if errors.As(err, &r) {
		return *r, true
	}
	return reconcile.Refusal{}, false
}

// status is the exit status of what a command returned.
func status(err error) int {
	var p *problems
	var applied *reconcile.ApplyError
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, errDiffers):
		return statusDiffers
	case errors.As(err, &p):
		return statusRefused
	case errors.As(err, &applied) && applied.Interrupted != nil:
		return statusFailed
	}
	// A refusal in the midst of an apply too: trying again would meet it again.
	if _, refused := refusalIn(err); refused {
		return statusRefused
	}
	return statusFailed
}
