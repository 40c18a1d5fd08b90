package places

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

// updateSpace changes limits and the restart policy of a container as it runs. Zero
// means unchanged to the engine, so only values are sent; memory and swap go together,
// since either is refused where it contradicts what the other was
// (moby/moby#25460).
func (a *Applier) updateSpace(ctx context.Context, s reconcile.UpdateSpace) error {
	c, err := a.existing(ctx, s.Name)
	if err != nil {
		return err
	}
	to, err := updateConfig(s)
	if err != nil {
		return err
	}
	if err := a.update(ctx, c.ID, s.Name, to); err != nil {
		return errors.Join(err, a.remember(ctx, c.ID))
	}
	now, err := a.inspect(ctx, c.ID)
	if err != nil {
		return err
	}
	if now == nil {
		return &MovedError{What: containerKey(s.Name), How: "it was removed"}
	}
	a.seen.container(now)
	differ, _ := reconcile.Differences(s.To, a.engine.asMade(now.InspectResponse))
	differ = slices.DeleteFunc(differ, func(path string) bool { return !slices.Contains(s.Fields, path) })
	if len(differ) > 0 {
		return &NotAsAskedError{What: containerKey(s.Name), Fields: differ}
	}
	return nil
}

func updateConfig(s reconcile.UpdateSpace) (container.UpdateConfig, error) {
	var to container.UpdateConfig
	for _, field := range s.Fields {
		switch field {
		case "limits.memory", "limits.memory_swap":
			to.Memory, to.MemorySwap = s.To.Memory, s.To.MemorySwap
		case "limits.cpus":
			to.NanoCPUs = s.To.NanoCPUs
		case "limits.pids":
			to.PidsLimit = &s.To.PIDs
		case "restart":
			to.RestartPolicy = restartPolicy(s.To.Restart)
		default:
			return to, fmt.Errorf("cannot update container %s: %s doesn't change in place", s.Name, field)
		}
	}
	return to, nil
}

func (a *Applier) connectSpace(ctx context.Context, s reconcile.ConnectSpace) error {
	c, err := a.existing(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := a.connect(ctx, c.ID, s.Name, s.Network, s.Endpoint); err != nil {
		return errors.Join(err, a.remember(ctx, c.ID))
	}
	return a.remember(ctx, c.ID)
}

// disconnectSpace takes an endpoint off a network of ours. A stranger's container is
// not ours to change, but its endpoint here is: nothing of it is compared but that it
// is still there.
func (a *Applier) disconnectSpace(ctx context.Context, s reconcile.DisconnectSpace) error {
	if s.Foreign {
		return a.disconnectStranger(ctx, s)
	}
	c, err := a.existing(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := a.disconnect(ctx, c, s.Network); err != nil {
		return errors.Join(err, a.remember(ctx, c.ID))
	}
	return a.remember(ctx, c.ID)
}

func (a *Applier) disconnectStranger(ctx context.Context, s reconcile.DisconnectSpace) error {
	found, err := a.networksNamed(ctx, s.Network)
	switch {
	case err != nil:
		return err
	case len(found.ours) == 0 && len(found.others) == 0:
		return nil
	case len(found.ours) == 0:
		return &MovedError{What: networkKey(s.Network), How: "it isn't ours any more"}
	}
	c, err := a.find(ctx, s.Name)
	if err != nil || c == nil {
		return err
	}
	if id := c.networkID(s.Network); len(found.others) > 0 && !found.isOurs(id) {
		return nil // it is on the other one
	}
	return a.disconnect(ctx, c, s.Network)
}

// disconnect is plain first: by force the engine forgets an endpoint without taking the
// interface out of the container. Where there never was an endpoint the engine does
// neither, and nothing is left to do: the next connect writes over what was configured.
func (a *Applier) disconnect(ctx context.Context, c *live, from string) error {
	if !c.isOn(from) {
		return nil
	}
	on := from
	if c.State.Running { // the configuration of one that doesn't is changed by the name
		on = cmp.Or(c.networkID(from), from)
	}
	failed := a.disconnectOnce(ctx, c, from, on, false)
	if failed == nil {
		return nil
	}
	now, err := a.inspect(ctx, c.ID)
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case now == nil, !now.isOn(from), now.isLost(from):
		return nil
	case !cerrdefs.IsNotFound(failed):
		return failed
	}
	// The network went from behind the endpoint; only force takes that away, by the name.
	return a.disconnectOnce(ctx, c, from, from, true)
}

func (a *Applier) disconnectOnce(ctx context.Context, c *live, from, id string, force bool) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.network)
	defer cancel()
	if err := a.docker.NetworkDisconnect(call, id, c.ID, force); err != nil {
		return fmt.Errorf("cannot disconnect container %s from network %s: %w", c.name(), from, err)
	}
	return nil
}

func (a *Applier) startSpace(ctx context.Context, s reconcile.StartSpace) error {
	c, err := a.existing(ctx, s.Name)
	if err != nil {
		return err
	}
	if err := a.waitReady(ctx, s.WaitFor); err != nil {
		return err
	}
	return a.startAndLook(ctx, c.ID, s.Name)
}

// startAndLook starts a container and looks that it runs.
func (a *Applier) startAndLook(ctx context.Context, id, name string) error {
	if err := a.start(ctx, id, name); err != nil {
		return errors.Join(err, a.remember(ctx, id))
	}
	now, err := a.runs(ctx, id, name, a.timeouts.look)
	if err != nil {
		return errors.Join(err, a.remember(ctx, id))
	}
	a.seen.container(now)
	return nil
}

func (a *Applier) unpauseSpace(ctx context.Context, name string) error {
	c, err := a.existing(ctx, name)
	if err != nil {
		return err
	}
	if err := a.unpause(ctx, c.ID, name); err != nil {
		return errors.Join(err, a.remember(ctx, c.ID))
	}
	return a.remember(ctx, c.ID)
}

// removeSpace stops a container, removes it with its anonymous volumes, and waits until
// it is gone. One that is gone already is what was wanted.
func (a *Applier) removeSpace(ctx context.Context, s reconcile.RemoveSpace) error {
	c, err := a.find(ctx, s.Name)
	switch {
	case err != nil:
		return err
	case c == nil:
		a.seen.forget(containerKey(s.Name))
		return nil
	case c.removing():
		// Its revision says no more than that it goes.
	default:
		if err := a.seen.check(containerKey(s.Name), revisionOf(c.InspectResponse)); err != nil {
			return err
		}
		if err := a.stop(ctx, c, s.StopTimeout); err != nil {
			return errors.Join(err, a.remember(ctx, c.ID))
		}
	}
	if err := a.remove(ctx, c.ID, s.Name, c.State.Dead); err != nil {
		return errors.Join(err, a.remember(ctx, c.ID))
	}
	a.seen.forget(containerKey(s.Name))
	return nil
}

func (a *Applier) renameSpace(ctx context.Context, s reconcile.RenameSpace) error {
	c, err := a.existing(ctx, s.From)
	if err != nil {
		return err
	}
	if err := a.vacant(ctx, s.To); err != nil {
		return err
	}
	if err := a.rename(ctx, c.ID, s.From, s.To); err != nil {
		return err
	}
	a.seen.forget(containerKey(s.From))
	return a.remember(ctx, c.ID)
}
