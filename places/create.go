package places

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
	"spaces/schema"
)

// NotAsAskedError says that the engine made, or changed, something other than what it
// was asked for. A container that was made so was never started.
type NotAsAskedError struct {
	What   string   // "container acme-web"
	Fields []string // paths of what differs
	// Warnings are the engine's own, as when it dropped a limit.
	Warnings []string
}

func (e *NotAsAskedError) Error() string {
	if len(e.Warnings) > 0 {
		return fmt.Sprintf("the engine did not make %s as asked: %s", e.What, strings.Join(e.Warnings, "; "))
	}
	return fmt.Sprintf("the engine did not make %s as asked: %s differs", e.What, strings.Join(e.Fields, ", "))
}

// createSpace makes a container, looks that it is what was asked for, and only then
// starts it. What a failure leaves is the next plan's to see: a container that was
// made and not started, or one that ended, with its log.
func (a *Applier) createSpace(ctx context.Context, s reconcile.CreateSpace) error {
	name := s.Container.Name
	if err := a.vacant(ctx, name); err != nil {
		return err
	}
	asked, err := a.prepare(ctx, s.Container)
	if err != nil {
		return err
	}
	made, err := a.create(ctx, name, asked)
	if err != nil {
		return err
	}
	a.seen.container(made)
	if err := a.waitReady(ctx, s.WaitFor); err != nil {
		return err
	}
	return a.startAndLook(ctx, made.ID, name)
}

// vacant is nil where a container may be made under a name: none is there, or one that
// is just being removed goes in time.
func (a *Applier) vacant(ctx context.Context, name string) error {
	got, err := a.find(ctx, name)
	switch {
	case err != nil:
		return err
	case got == nil:
		return nil
	case got.removing():
		return a.waitGone(ctx, got.ID, name)
	}
	return a.appeared("container", name, got.Config.Labels)
}

// prepare makes sure that what a container refers to by name is still what the plan
// saw, or what this apply made: a stranger's network of that name would give access that
// nobody reviewed, and for a volume that is gone the engine would make one without a
// word. It returns the container with what its image brings.
func (a *Applier) prepare(ctx context.Context, c reconcile.Container) (reconcile.Container, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		if isPredefined(name) {
			continue
		}
		if _, err := a.sameNetwork(ctx, name); err != nil {
			return c, err
		}
	}
	for _, target := range slices.Sorted(maps.Keys(c.Mounts)) {
		m := c.Mounts[target]
		if m.Type != string(mount.TypeVolume) {
			continue
		}
		if err := a.sameVolume(ctx, m.Source); err != nil {
			return c, err
		}
	}
	return a.withImage(ctx, c)
}

// withImage adds what an image brings to a container that the plan could not know it
// for, because the same plan makes the image.
func (a *Applier) withImage(ctx context.Context, c reconcile.Container) (reconcile.Container, error) {
	if c.ImageID != "" {
		return c, nil
	}
	facts, err := a.imageFacts(ctx, c.Image)
	if err != nil {
		return c, fmt.Errorf("cannot create container %s: %w", c.Name, err)
	}
	return reconcile.WithImage(c, facts), nil
}

// create makes a container under a name, on all its networks, as asked and verified,
// and not started. The name may differ from the one that it is to have.
func (a *Applier) create(ctx context.Context, name string, asked reconcile.Container) (*live, error) {
	filled, learn := a.filled.get()
	// The label can only be right once it is known what this engine adds by itself;
	// the first container of an apply is made twice where that is anything.
	for attempt := 0; ; attempt++ {
		made, excess, err := a.createOnce(ctx, name, asked, filled)
		if err != nil {
			learn(nil, false)
			return nil, err
		}
		if a.options.Digest == nil || attempt > 0 || slices.Equal(excess, filled) {
			learn(filled, true)
			return made, nil
		}
		if err := a.removeForce(ctx, made.ID, name); err != nil {
			learn(nil, false)
			return nil, err
		}
		filled = excess
	}
}

// createOnce also returns what the engine filled in by its own configuration.
func (a *Applier) createOnce(ctx context.Context, name string, asked reconcile.Container, filled []reconcile.Field) (*live, []reconcile.Field, error) {
	a.secrets.add(asked)
	sent := asked
	if label := reconcile.AppliedLabel(a.options.Digest, asked, filled); label != "" {
		sent.Labels = maps.Clone(asked.Labels)
		sent.Labels[reconcile.LabelApplied] = label
	}
	id, err := a.createBare(ctx, name, sent)
	if err != nil {
		return nil, nil, err
	}
	if err := a.connectAll(ctx, id, name, sent); err != nil {
		return nil, nil, err
	}
	return a.verify(ctx, id, name, sent)
}

// createBare sends the create itself, with the first network alone: more than one is
// taken from API 1.44 on. It goes by its name, which prepare saw to be no other's: of an
// id, NetworkMode would never say more.
func (a *Applier) createBare(ctx context.Context, name string, c reconcile.Container) (id string, err error) {
	config, host, err := createConfig(c)
	if err != nil {
		return "", err
	}
	var first *network.NetworkingConfig
	if endpoint, ok := c.Networks[c.NetworkMode]; ok && !isPredefined(c.NetworkMode) {
		first = &network.NetworkingConfig{
			EndpointsConfig: map[string]*network.EndpointSettings{c.NetworkMode: endpointSettings(endpoint)},
		}
	}
	send := func() (container.CreateResponse, error) {
		call, cancel := context.WithTimeout(ctx, a.timeouts.create)
		defer cancel()
		return a.docker.ContainerCreate(call, config, host, first, nil, name)
	}
	made, err := send()
	// The name of a container that was just removed is free only a little later
	// (moby/moby#37698).
	for limit := time.Now().Add(a.timeouts.name); cerrdefs.IsConflict(err) && time.Now().Before(limit); made, err = send() {
		if taken := a.vacant(ctx, name); taken != nil {
			return "", taken
		}
		if err := pause(ctx, a.timeouts.poll); err != nil {
			return "", fmt.Errorf("cannot create container %s: %w", name, err)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot create container %s: %w", name, err)
	}
	if warnings := a.real(made.Warnings); len(warnings) > 0 {
		return "", errors.Join(&NotAsAskedError{What: containerKey(name), Warnings: warnings}, a.removeForce(ctx, made.ID, name))
	}
	return made.ID, nil
}

// real drops the warnings about limits that the engine is known not to enforce, which
// a person has accepted. What remains was asked for and isn't so.
func (a *Applier) real(warnings []string) []string {
	says := map[string]string{
		limitSwap: "swap limit", limitMemory: "memory limit",
		limitPIDs: "pids limit", limitCPUs: "cpu cfs",
	}
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		return slices.ContainsFunc(a.options.Actual.Engine.Unenforced, func(limit string) bool {
			said, known := says[limit]
			return known && strings.Contains(strings.ToLower(w), said)
		})
	})
}

// connectAll puts a container on the networks that its create could not name.
func (a *Applier) connectAll(ctx context.Context, id, name string, c reconcile.Container) error {
	for _, n := range slices.Sorted(maps.Keys(c.Networks)) {
		if n == c.NetworkMode || isPredefined(n) {
			continue
		}
		if err := a.connect(ctx, id, name, n, c.Networks[n]); err != nil {
			return err
		}
	}
	return nil
}

// connect always says all of an endpoint: what is left out is lost
// (docker/compose#3498). It goes by the network's id: another may be given its name.
func (a *Applier) connect(ctx context.Context, id, name, on string, e reconcile.Endpoint) error {
	network, err := a.sameNetwork(ctx, on)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, a.timeouts.network)
	defer cancel()
	if err := a.docker.NetworkConnect(call, network, id, endpointSettings(e)); err != nil {
		return fmt.Errorf("cannot connect container %s to network %s: %w", name, on, err)
	}
	return nil
}

// verify reads a container that was just made and compares it with what was asked.
func (a *Applier) verify(ctx context.Context, id, name string, asked reconcile.Container) (*live, []reconcile.Field, error) {
	made, err := a.inspect(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if made == nil {
		return nil, nil, &MovedError{What: containerKey(name), How: "it was removed as it was made"}
	}
	differ, filled := reconcile.Differences(asked, a.engine.asMade(made.InspectResponse))
	if len(differ) > 0 {
		return nil, nil, &NotAsAskedError{What: containerKey(name), Fields: differ}
	}
	return made, filled, nil
}

func (a *Applier) start(ctx context.Context, id, name string) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.start)
	defer cancel()
	if err := a.docker.ContainerStart(call, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("cannot start container %s: %w", name, err)
	}
	return nil
}

// removeForce removes a container, running or not, with its anonymous volumes, and
// waits until it is gone. One that isn't there is no error.
func (a *Applier) removeForce(ctx context.Context, id, name string) error {
	return a.remove(ctx, id, name, true)
}

func (a *Applier) remove(ctx context.Context, id, name string, force bool) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.remove)
	defer cancel()
	err := a.docker.ContainerRemove(call, id, container.RemoveOptions{RemoveVolumes: true, Force: force})
	switch {
	case err == nil, cerrdefs.IsNotFound(err):
		return a.waitGone(ctx, id, name)
	case cerrdefs.IsConflict(err) && a.isGoing(ctx, id):
		return a.waitGone(ctx, id, name)
	}
	return fmt.Errorf("cannot remove container %s: %w", name, err)
}

// isGoing tells a removal that is under way from a container that can't be removed:
// the engine answers both with a conflict.
func (a *Applier) isGoing(ctx context.Context, id string) bool {
	got, err := a.inspect(ctx, id)
	return err == nil && (got == nil || got.removing())
}

// stop ends a container such that nothing starts it again: its restart policy goes
// first, since the engine would follow it when it is itself restarted in between.
func (a *Applier) stop(ctx context.Context, c *live, seconds *int) error {
	name := c.name()
	if err := a.setRestart(ctx, c, name, schema.Restart{Name: "no"}); err != nil {
		return err
	}
	if !c.active() {
		return nil
	}
	if c.State.Paused {
		if err := a.unpause(ctx, c.ID, name); err != nil {
			return err
		}
	}
	if seconds == nil {
		seconds = c.Config.StopTimeout
	}
	call, cancel := a.timeouts.stopping(ctx, seconds)
	defer cancel()
	err := a.docker.ContainerStop(call, c.ID, container.StopOptions{Timeout: seconds})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot stop container %s: %w", name, err)
	}
	return nil
}

// setRestart sets the restart policy of a container that has another one.
func (a *Applier) setRestart(ctx context.Context, c *live, name string, r schema.Restart) error {
	switch {
	case c.restart() == r:
		return nil
	case c.HostConfig.AutoRemove, c.State.Dead:
		return nil // the engine refuses: it has no policy to follow
	}
	to := container.UpdateConfig{RestartPolicy: restartPolicy(r)}
	// One that ends and is restarted all the time may have ended since it was looked at,
	// and the engine then fails to change the process ("cannot update a stopped
	// container") and keeps the old policy.
	for attempt := 1; ; attempt++ {
		err := a.update(ctx, c.ID, name, to)
		if err == nil || attempt == policyAttempts || !a.restarts(ctx, c.ID) {
			return err
		}
		if pause(ctx, a.timeouts.poll) != nil {
			return err
		}
	}
}

// policyAttempts are how often the policy of a container that keeps restarting is set.
const policyAttempts = 20

// restarts tells whether the engine has had to start a container again.
func (a *Applier) restarts(ctx context.Context, id string) bool {
	now, err := a.inspect(ctx, id)
	return err == nil && now != nil && (now.RestartCount > 0 || now.State.Restarting || !now.State.Running)
}

func (a *Applier) update(ctx context.Context, id, name string, to container.UpdateConfig) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.update)
	defer cancel()
	answer, err := a.docker.ContainerUpdate(call, id, to)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot update container %s: %w", name, err)
	}
	if warnings := a.real(answer.Warnings); len(warnings) > 0 {
		return &NotAsAskedError{What: containerKey(name), Warnings: warnings}
	}
	return nil
}

func (a *Applier) unpause(ctx context.Context, id, name string) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.update)
	defer cancel()
	if err := a.docker.ContainerUnpause(call, id); err != nil {
		return fmt.Errorf("cannot unpause container %s: %w", name, err)
	}
	return nil
}

func (a *Applier) rename(ctx context.Context, id, from, to string) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.update)
	defer cancel()
	if err := a.docker.ContainerRename(call, id, to); err != nil {
		return fmt.Errorf("cannot rename container %s to %s: %w", from, to, err)
	}
	return nil
}

// learnt is what an engine adds to each container by its own configuration, found out
// with the first one of an apply.
type learnt struct {
	mu     sync.Mutex
	known  bool
	fields []reconcile.Field
}

// get returns what is known. Until something is, one caller at a time learns it and
// the others wait; it must call learn, with false where it learnt nothing.
func (l *learnt) get() (fields []reconcile.Field, learn func(fields []reconcile.Field, known bool)) {
	l.mu.Lock()
	if l.known {
		defer l.mu.Unlock()
		return l.fields, func([]reconcile.Field, bool) {}
	}
	return nil, func(fields []reconcile.Field, known bool) {
		l.known, l.fields = known, fields
		l.mu.Unlock()
	}
}
