package places

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	cerrdefs "github.com/containerd/errdefs"

	"spaces/reconcile"
)

// ReplaceError says that a container could not be replaced, and what of the old one.
type ReplaceError struct {
	Name string
	// Err is what failed.
	Err error
	// Rollback is why the old container is not as it was; nil where it is: under its
	// name, with its restart policy and its networks, and running if it ran.
	Rollback error
}

func (e *ReplaceError) Error() string {
	s := fmt.Sprintf("cannot replace container %s: %v", e.Name, e.Err)
	if e.Rollback != nil {
		return s + fmt.Sprintf("; and the old one is not back: %v", e.Rollback)
	}
	return s + "; the old one is back as it was"
}

// Unwrap gives both causes.
func (e *ReplaceError) Unwrap() []error {
	if e.Rollback == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Rollback}
}

// replacement is one container on its way into another's place.
type replacement struct {
	*Applier
	name string
	// from is the name that the old one has, another where its space was moved.
	from string
	old  *live // as it was before anything was done
	// newID is empty until it is known; a create that failed may have made one all the
	// same (hashicorp/nomad#6325), so a rollback looks for it by its label.
	newID string
}

// replaceSpace makes the new container under <name>.new, stops the old one and renames
// it <name>.old, gives its name to the new one, starts that, looks that it runs, and
// then removes the old one. At any moment one of them has its own name or can be given
// it: what a crash leaves says by its names and by spaces.replaces how far it went.
// Where a step fails the old one comes back; once the new one runs there is no way
// back, and an old one that can't be removed is left as <name>.old, stopped. The old one
// of a space that was moved has another name until it is <name>.old, and has it again
// where it comes back.
func (a *Applier) replaceSpace(ctx context.Context, s reconcile.ReplaceSpace) error {
	name := s.Container.Name
	from := cmp.Or(s.From, name)
	old, err := a.existing(ctx, from)
	if err != nil {
		return err
	}
	free := []string{name + reconcile.SuffixNew, name + reconcile.SuffixOld}
	if from != name {
		free = append(free, name)
	}
	for _, n := range free {
		if err := a.vacant(ctx, n); err != nil {
			return err
		}
	}
	asked, err := a.prepare(ctx, s.Container)
	if err != nil {
		return err
	}
	asked.Labels = maps.Clone(asked.Labels)
	if asked.Labels == nil {
		asked.Labels = map[string]string{}
	}
	asked.Labels[reconcile.LabelReplaces] = old.ID
	r := &replacement{Applier: a, name: name, from: from, old: old}
	if err := r.swap(ctx, asked, s.WaitFor); err != nil {
		return &ReplaceError{Name: from, Err: err, Rollback: r.rollBack(ctx)}
	}
	if from != name {
		a.seen.forget(containerKey(from))
	}
	if err := a.remove(ctx, old.ID, name+reconcile.SuffixOld, false); err != nil {
		return fmt.Errorf("container %s was replaced, but the old one is left as %s%s: %w", name, name, reconcile.SuffixOld, err)
	}
	return nil
}

// swap does all that can still be undone. It returns with the new container running.
func (r *replacement) swap(ctx context.Context, asked reconcile.Container, waitFor []string) error {
	made, err := r.create(ctx, r.name+reconcile.SuffixNew, asked)
	if err != nil {
		return err
	}
	r.newID = made.ID
	if err := r.waitReady(ctx, waitFor); err != nil {
		return err
	}
	if err := r.stop(ctx, r.old, nil); err != nil {
		return err
	}
	if err := r.moveAside(ctx); err != nil {
		return err
	}
	if err := r.rename(ctx, r.newID, r.name+reconcile.SuffixNew, r.name); err != nil {
		return err
	}
	if err := r.start(ctx, r.newID, r.name); err != nil {
		return err
	}
	// The old one is removed once this is done, so the look is as long as others wait for
	// a container to count as ready.
	now, err := r.runs(ctx, r.newID, r.name, r.timeouts.steady)
	if err != nil {
		return err
	}
	r.seen.container(now)
	return nil
}

// moveAside takes the name from the old container. One that the engine removes as soon
// as it stops, which is never how we made it, takes its name with it.
func (r *replacement) moveAside(ctx context.Context) error {
	if r.old.HostConfig.AutoRemove && r.old.active() {
		return r.waitGone(ctx, r.old.ID, r.from)
	}
	return r.rename(ctx, r.old.ID, r.from, r.name+reconcile.SuffixOld)
}

// rollBack puts the old container back as it was. It goes by what it finds, not by
// which calls seemed to succeed, and isn't cut short when the apply is aborted.
func (r *replacement) rollBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeouts.rollback)
	defer cancel()
	// The new one has to go first: it may hold the name and the ports.
	dropped := r.try(ctx, r.dropNew)
	restored := r.try(ctx, r.restoreOld)
	if restored == nil {
		restored = r.try(ctx, func(ctx context.Context) error { return r.remember(ctx, r.old.ID) })
	}
	return errors.Join(dropped, restored)
}

// rollbackAttempts are how often a part of a rollback is tried: the engine's one
// failure led here, a second one isn't to leave nothing running.
const rollbackAttempts = 4

func (r *replacement) try(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	for range rollbackAttempts - 1 {
		if err == nil || pause(ctx, r.timeouts.attempt) != nil {
			return err
		}
		err = do(ctx)
	}
	return err
}

// dropNew removes what was made to replace the old container, and only that.
func (r *replacement) dropNew(ctx context.Context) error {
	if r.newID != "" {
		return r.removeForce(ctx, r.newID, r.name)
	}
	for _, name := range []string{r.name + reconcile.SuffixNew, r.name} {
		got, err := r.find(ctx, name)
		if err != nil {
			return err
		}
		if got == nil || got.Config.Labels[reconcile.LabelReplaces] != r.old.ID {
			continue
		}
		if err := r.removeForce(ctx, got.ID, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *replacement) restoreOld(ctx context.Context) error {
	now, err := r.inspect(ctx, r.old.ID)
	switch {
	case err != nil:
		return err
	case now == nil:
		return errors.New("it is gone")
	}
	if have := now.name(); have != r.from {
		if err := r.rename(ctx, now.ID, have, r.from); err != nil {
			return err
		}
	}
	// What follows is tried in any case: without its policy it is better than stopped.
	return errors.Join(r.restorePolicy(ctx, now), r.restoreState(ctx, now))
}

func (r *replacement) restorePolicy(ctx context.Context, now *live) error {
	return r.setRestart(ctx, now, r.from, r.old.restart())
}

// restoreState starts the old container if it ran, and pauses it if it was paused.
func (r *replacement) restoreState(ctx context.Context, now *live) error {
	was, is := r.old.State, now.State
	if !r.old.active() {
		return nil
	}
	if !is.Running {
		if err := r.start(ctx, now.ID, r.from); err != nil {
			return err
		}
	}
	if was.Paused && !is.Paused {
		call, cancel := context.WithTimeout(ctx, r.timeouts.update)
		defer cancel()
		if err := r.docker.ContainerPause(call, now.ID); err != nil && !cerrdefs.IsConflict(err) {
			return fmt.Errorf("cannot pause container %s again: %w", r.from, err)
		}
	}
	return nil
}
