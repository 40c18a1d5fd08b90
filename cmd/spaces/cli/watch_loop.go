package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

// writing bounds how long a file that is open to write to puts a plan off.
const writing = 5 * time.Second

// What made a watch plan.
const (
	triggerStart  = "start"
	triggerFiles  = "files"
	triggerEngine = "engine"
)

// loop waits for something to happen, and does what follows from it, until interrupted.
func (w *watch) loop(ctx context.Context, aborted <-chan struct{}) error {
	reload, trigger := false, triggerEngine // of the next plan
	err := w.reconcile(ctx, aborted, triggerStart, true)
	for ctx.Err() == nil && err == nil {
		select {
		case <-ctx.Done():
		case <-w.files.Changed():
			reload, trigger = true, triggerFiles
			w.clock.heard(time.Now())
		case <-w.changed():
			w.clock.heard(time.Now())
		case <-w.lost():
			w.sayGone(w.memory.Err())
			w.disconnect()
			w.withdraw() // nobody can go ahead without it
			w.shown = nil
			w.clock.lost(time.Now())
		case <-w.clock.settle.C:
			if reload && w.halfWritten(time.Now()) {
				w.clock.settle.Reset(quiet)
				continue
			}
			w.clock.since = time.Time{}
			err = w.reconcile(ctx, aborted, trigger, reload)
			reload, trigger = false, triggerEngine
		case <-w.clock.retry.C:
			err = w.reconcile(ctx, aborted, triggerEngine, false)
		case <-w.clock.reconnect.C:
			err = w.returned(ctx, aborted)
		case <-w.clock.audit.C:
			w.audit(ctx)
			// Files on a file system that tells of no change are looked at now, at least.
			reload = true
			w.clock.heard(time.Now())
		case a := <-w.answers.lines:
			err = w.answered(ctx, aborted, a)
		}
	}
	w.sayStopped()
	return err
}

// changed and lost are an engine's; none while there is none.
func (w *watch) changed() <-chan struct{} {
	if w.memory == nil {
		return nil
	}
	return w.memory.Changed()
}

func (w *watch) lost() <-chan struct{} {
	if w.memory == nil {
		return nil
	}
	return w.memory.Lost()
}

// halfWritten is true while somebody still writes what would be read, within bounds.
func (w *watch) halfWritten(now time.Time) bool {
	return now.Sub(w.clock.since) < writing && places.BeingWritten(w.project.folder, schema.Reads)
}

// returned looks whether the engine is back.
func (w *watch) returned(ctx context.Context, aborted <-chan struct{}) error {
	if err := w.connect(ctx); err != nil {
		var endpoint *places.EndpointError
		if !errors.As(err, &endpoint) || !endpoint.MayCome() {
			w.sayProblem(ofEngine, err)
		}
		w.clock.lookAgain()
		return nil
	}
	w.solved(ofEngine)
	w.sayBack()
	return w.reconcile(ctx, aborted, triggerEngine, false)
}

// audit proves that what is remembered is so.
func (w *watch) audit(ctx context.Context) {
	if w.memory == nil {
		return
	}
	wrong, err := w.memory.Audit(ctx, w.project.query(reconcile.HostFacts{}))
	switch {
	case err != nil && ctx.Err() == nil:
		w.sayProblem(ofEngine, err)
	case len(wrong) > 0:
		w.sayDefect(wrong)
	}
}

// reconcile plans, and does what may be done. The error ends the watch.
func (w *watch) reconcile(ctx context.Context, aborted <-chan struct{}, trigger string, reload bool) error {
	start := time.Now()
	if reload {
		w.follow()
		if w.reload() {
			w.follow() // what the new configuration names, before it is looked at
		} else {
			trigger = triggerEngine // what is planned isn't what was saved
		}
	}
	if w.memory == nil {
		return nil // planned once the engine is back
	}
	v, err := w.plan(ctx, w.project, remembered{w.engine, w.memory}, w.options)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		w.sayProblem(ofEngine, err)
		w.retryIn(firstPause)
		return nil
	}
	w.solved(ofEngine)
	w.consent.Asked(v.plan)
	return w.decide(ctx, aborted, v, planned{trigger: trigger, took: time.Since(start)})
}

func (w *watch) follow() {
	if err := w.files.Follow(places.FilesFor(w.project.desired, w.project.host, w.project.folder, schema.Reads)); err != nil {
		w.sayProblem(ofWatching, err)
	}
}

// reload reads the files, and reports whether what they say is in force. With an error in
// them the configuration before it stays.
func (w *watch) reload() bool {
	p, warnings, err := w.read("what runs and the last good configuration stay")
	if err == nil && !w.isOf(p) {
		err = errors.New("the files now are of another project, data root or engine than the one that is watched: start the watch again to follow it; the last good configuration stays")
	}
	if err != nil {
		w.sayProblem(ofFiles, err)
		return false
	}
	if len(warnings.diags) > 0 {
		w.sayProblem(ofFiles, warnings)
	} else {
		w.solved(ofFiles)
	}
	if !sameSources(p.sources, w.project.sources) {
		w.pace.renew()
		w.clock.busy = 0
	}
	w.adopt(p)
	return true
}

// isOf is true for a configuration of the project that this watch holds the lock of.
func (w *watch) isOf(p *project) bool {
	is := w.project
	return p.root == is.root && p.rootful == is.rootful && p.desired.Project == is.desired.Project &&
		p.desired.Mode == is.desired.Mode && p.desired.Endpoint == is.desired.Endpoint
}

func sameSources(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if other, known := b[name]; !known || !slices.Equal(text, other) {
			return false
		}
	}
	return true
}

// problemKey tells one problem from another.
func problemKey(err error) string {
	var p *problems
	if !errors.As(err, &p) {
		return err.Error()
	}
	var parts []string
	for _, d := range p.diags {
		parts = append(parts, (&hcl.Diagnostic{Severity: d.Severity, Summary: d.Summary, Detail: d.Detail, Subject: d.Subject}).Error())
	}
	for i := range p.refusals {
		parts = append(parts, p.refusals[i].Error())
	}
	return strings.Join(parts, "\n")
}
