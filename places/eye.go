package places

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
	"spaces/schema"
)

// live is a container as it is at this moment. All parts of it are there.
type live struct{ container.InspectResponse }

func (l *live) name() string { return strings.TrimPrefix(l.Name, "/") }

func (l *live) state() reconcile.State { return reconcile.State(l.State.Status) }

// active is true for a container that has a process or is about to: stopping it means
// something.
func (l *live) active() bool { return l.State.Running || l.State.Restarting }

func (l *live) removing() bool { return l.state() == reconcile.StateRemoving }

func (l *live) restart() schema.Restart {
	p := l.HostConfig.RestartPolicy
	return schema.Restart{Name: cmp.Or(string(p.Name), "no"), MaxRetries: p.MaximumRetryCount}
}

func (l *live) isOn(network string) bool {
	_, on := l.NetworkSettings.Networks[network]
	return on
}

// networkID is that of the network of this name that a container is on, empty where the
// engine has yet to look it up.
func (l *live) networkID(network string) string {
	if e := l.NetworkSettings.Networks[network]; e != nil {
		return e.NetworkID
	}
	return ""
}

// isLost is true for a running container that isn't on a network that it is to be on.
func (l *live) isLost(network string) bool {
	e := l.NetworkSettings.Networks[network]
	return e != nil && isLost(l.State, network, e)
}

// inspect is a container by name or id, nil for none.
func (a *Applier) inspect(ctx context.Context, nameOrID string) (*live, error) {
	call, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	in, err := a.docker.ContainerInspect(call, nameOrID)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot inspect container %s: %w", nameOrID, err)
	case in.ContainerJSONBase == nil || in.Config == nil || in.HostConfig == nil || in.State == nil || in.NetworkSettings == nil:
		return nil, fmt.Errorf("cannot inspect container %s: the engine told only a part of it", nameOrID)
	}
	return &live{in}, nil
}

// find is the container of exactly this name, nil for none: the engine's own lookup
// takes the beginning of an id for a name (moby/moby#37698).
func (a *Applier) find(ctx context.Context, name string) (*live, error) {
	got, err := a.inspect(ctx, name)
	if err != nil || got == nil || got.name() != name {
		return nil, err
	}
	return got, nil
}

// existing is the container that the plan saw under a name, as it still is.
func (a *Applier) existing(ctx context.Context, name string) (*live, error) {
	got, err := a.find(ctx, name)
	if err != nil {
		return nil, err
	}
	now := ""
	if got != nil {
		now = revisionOf(got.InspectResponse)
	}
	if err := a.seen.check(containerKey(name), now); err != nil {
		return nil, err
	}
	if got == nil {
		return nil, &MovedError{What: containerKey(name), How: "there is none"}
	}
	return got, nil
}

// remember takes a container as it is now for what this apply knows of it. Failing to
// read it makes the next step on it stop, which is right: nobody knows what it is.
func (a *Applier) remember(ctx context.Context, id string) error {
	got, err := a.inspect(ctx, id)
	if err == nil && got != nil {
		a.seen.container(got)
	}
	return err
}

// imageFacts are those of an image that must be there.
func (a *Applier) imageFacts(ctx context.Context, reference string) (reconcile.ImageFacts, error) {
	call, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	in, err := a.docker.ImageInspect(call, reference)
	if err != nil {
		return reconcile.ImageFacts{}, fmt.Errorf("cannot inspect image %s: %w", reference, err)
	}
	facts, _ := imageFacts(in)
	return facts, nil
}
