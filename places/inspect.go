package places

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	json "github.com/go-json-experiment/json/v1"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
)

// inspectors is how many objects are inspected at once. An engine answers from memory,
// so that of 2, 4, 8 and 16 none was faster than this on two processors, and each more
// holds another container's JSON.
const inspectors = 4

// Observer reads an engine. It has no method that changes anything, and sends nothing
// but GET and HEAD. It is safe for concurrent use.
type Observer struct {
	engine   reader
	features reconcile.Engine
	defaults defaults
	ahead    *atomic.Pointer[containerList]
	// proc is where processes are looked at, "/proc" but for tests.
	proc string
}

// Observer returns what may read the engine and do no more.
func (e *Engine) Observer() *Observer {
	return &Observer{
		engine: engineReader{e.docker, e.reads}, features: e.features, defaults: e.defaults,
		ahead: &e.ahead, proc: "/proc",
	}
}

// Query is what to look at.
type Query struct {
	// Project and Store are whose objects are ours: by both labels.
	Project string
	Store   string
	// Images are the references asked for; those that containers of ours run come by
	// themselves.
	Images []string
}

// Inspect reads everything of a project and store, and who else holds names. The
// result is sorted and the same whatever order the engine answers in. What vanishes
// while it is read is not in it.
//
// For errors of an engine that is gone or doesn't answer, IsTransient is true.
func (o *Observer) Inspect(ctx context.Context, q Query) (reconcile.Actual, error) {
	actual, vanished, err := o.inspect(ctx, q)
	if err == nil && vanished {
		// Something was being changed. Once more, so that one consistent world is seen.
		actual, _, err = o.inspect(ctx, q)
	}
	if err != nil {
		return reconcile.Actual{}, fmt.Errorf("cannot inspect the engine at %s: %w", o.features.Endpoint, err)
	}
	return actual, nil
}

func (o *Observer) inspect(ctx context.Context, q Query) (_ reconcile.Actual, vanished bool, _ error) {
	l, err := o.list(ctx)
	if err != nil {
		return reconcile.Actual{}, false, err
	}
	s := survey{
		Observer:  o,
		query:     q,
		converter: newConverter(o.features, o.defaults, l.world(q)),
		images:    map[string]reconcile.ImageFacts{},
		raw:       map[string]imageExtras{},
		buffers:   &sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
	observed, err := s.containers(ctx, l.containers)
	if err != nil {
		return reconcile.Actual{}, false, err
	}
	return s.actual(l, observed), s.vanished, nil
}

// survey is one reading of the engine.
type survey struct {
	*Observer
	query     Query
	converter *converter
	buffers   *sync.Pool // of *bytes.Buffer, as many as there are inspectors

	mu       sync.Mutex
	images   map[string]reconcile.ImageFacts
	raw      map[string]imageExtras // by id
	vanished bool
}

// actual is what was listed and inspected, as a plan compares it.
func (s *survey) actual(l listing, observed []reconcile.ObservedContainer) reconcile.Actual {
	sharers := l.sharers(s.query)
	for i := range observed {
		observed[i].SharedBy = sharers[observed[i].ID]
	}
	slices.SortFunc(observed, func(a, b reconcile.ObservedContainer) int { return strings.Compare(a.Name, b.Name) })
	taken, members := l.others(s.query)
	return reconcile.Actual{
		Engine:     s.features,
		Containers: observed,
		Networks:   s.networks(l, members),
		Volumes:    s.volumes(l),
		Images:     s.images,
		Taken:      taken,
	}
}

// containers inspects those of ours and, beside them, the images.
func (s *survey) containers(ctx context.Context, all []listed) ([]reconcile.ObservedContainer, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspectors)
	images := map[string]bool{}
	for _, ref := range s.query.Images {
		images[ref] = true
	}
	var ours []listed
	for _, c := range all {
		if c.owner.is(s.query) {
			ours = append(ours, c)
			images[c.imageID] = true
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(images)) {
		group.Go(func() error { return s.image(ctx, ref) })
	}
	observed := make([]*reconcile.ObservedContainer, len(ours))
	for i, c := range ours {
		group.Go(func() (err error) {
			observed[i], err = s.one(ctx, c.id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make([]reconcile.ObservedContainer, 0, len(observed))
	for _, c := range observed {
		if c == nil {
			s.vanished = true
			continue
		}
		c.Excess = dropImage(c.Container, s.raw[c.ImageID])
		out = append(out, *c)
	}
	return out, nil
}

// inspected is a container as the engine tells it, without what no rule compares: most
// of a thousand containers' JSON is never decoded.
type inspected struct {
	ID, Name, Image string
	State           *struct {
		Status   container.ContainerState
		Running  bool
		Pid      int
		ExitCode int
		Health   *struct{ Status container.HealthStatus }
	}
	Config          *container.Config
	HostConfig      *container.HostConfig
	Mounts          []container.MountPoint
	NetworkSettings *struct {
		Networks map[string]*network.EndpointSettings
	}
}

// response is the same as the client would have decoded it.
func (in *inspected) response() container.InspectResponse {
	out := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: in.ID, Name: in.Name, Image: in.Image, HostConfig: in.HostConfig,
			State: &container.State{
				Status: in.State.Status, Running: in.State.Running, Pid: in.State.Pid, ExitCode: in.State.ExitCode,
			},
		},
		Config: in.Config,
		Mounts: in.Mounts,
	}
	if h := in.State.Health; h != nil {
		out.State.Health = &container.Health{Status: h.Status}
	}
	if n := in.NetworkSettings; n != nil {
		out.NetworkSettings = &container.NetworkSettings{Networks: n.Networks}
	}
	return out
}

// one inspects a container; nil if it is gone.
func (s *survey) one(ctx context.Context, id string) (*reconcile.ObservedContainer, error) {
	r, err := s.inspectOne(ctx, id)
	if err != nil || r == nil {
		return nil, err
	}
	c := s.converter.observed(r.response, r.unknown)
	s.compareMounts(&c, r.pid)
	return &c, nil
}

// reading is a container as it was read: what of it doesn't depend on what else there is.
type reading struct {
	response container.InspectResponse
	unknown  []reconcile.Field
	pid      int
}

// inspectOne reads a container; nil if it is gone.
func (s *survey) inspectOne(ctx context.Context, id string) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	buffer := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(buffer)
	switch err := s.read(ctx, id, buffer); {
	case cerrdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("container %s: %w", shortID(id), err)
	}
	var in inspected
	if err := json.Unmarshal(buffer.Bytes(), &in); err != nil {
		return nil, fmt.Errorf("container %s: %w", shortID(id), err)
	}
	if in.ID == "" || in.Config == nil || in.HostConfig == nil || in.State == nil {
		return nil, fmt.Errorf("container %s: the engine told only a part of it", shortID(id))
	}
	return &reading{in.response(), unknownFields(buffer.Bytes(), s.converter.shape), in.State.Pid}, nil
}

// read fetches a container's JSON.
func (s *survey) read(ctx context.Context, id string, into *bytes.Buffer) error {
	body, err := s.engine.get(ctx, "/containers/"+id+"/json", nil)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read
	into.Reset()
	if _, err := into.ReadFrom(body); err != nil {
		return &unreachableError{err}
	}
	return nil
}

// observed converts a container with its state, and the fields that the client doesn't know.
func (k *converter) observed(in container.InspectResponse, unknown []reconcile.Field) reconcile.ObservedContainer {
	c := reconcile.ObservedContainer{
		Container: k.container(in),
		State:     reconcile.State(in.State.Status),
		ExitCode:  in.State.ExitCode,
		ID:        in.ID,
		Revision:  revisionOf(in),
	}
	if h := in.State.Health; h != nil && h.Status != container.NoHealthcheck {
		c.Health = h.Status
	}
	if len(unknown) > 0 {
		c.Excess = append(c.Excess, unknown...)
		slices.SortFunc(c.Excess, byPath)
	}
	return c
}

// imageExtras are what an image brings that containers are not compared by.
type imageExtras struct {
	any     bool // whatever there is, the image brought it
	exposed map[string]struct{}
	shell   string
}

// image reads an image under the reference asked; one that isn't there has no entry.
func (s *survey) image(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	in, err := s.engine.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("image %s: %w", ref, err)
	}
	facts, extras := imageFacts(in)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[ref] = facts
	s.raw[in.ID] = extras
	return nil
}

func imageFacts(in image.InspectResponse) (reconcile.ImageFacts, imageExtras) {
	facts := reconcile.ImageFacts{ID: in.ID, Env: map[string]string{}, Labels: map[string]string{}}
	if in.Config == nil {
		return facts, imageExtras{}
	}
	c := in.Config
	facts.Input = c.Labels[reconcile.LabelImageInput]
	facts.Entrypoint = nonEmpty(c.Entrypoint)
	facts.Command = nonEmpty(c.Cmd)
	facts.User = c.User
	facts.WorkingDir = c.WorkingDir
	facts.Labels = orEmpty(c.Labels)
	facts.Volumes = nonEmpty(slices.Sorted(maps.Keys(c.Volumes)))
	facts.Healthcheck = healthcheck(c.Healthcheck)
	facts.StopSignal = c.StopSignal
	for _, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		facts.Env[name] = value
	}
	extras := imageExtras{exposed: c.ExposedPorts}
	if len(c.Shell) > 0 {
		extras.shell = compactJSON(c.Shell)
	}
	return facts, extras
}

// dropImage is a container's excess without what its image brought, and without the
// ports that it publishes: publishing exposes them.
func dropImage(c reconcile.Container, extras imageExtras) []reconcile.Field {
	return slices.DeleteFunc(c.Excess, func(f reconcile.Field) bool {
		if f.Path == "Config.Shell" {
			return extras.any || f.Value == extras.shell
		}
		quoted, ok := strings.CutPrefix(f.Path, "Config.ExposedPorts[")
		if !ok {
			return false
		}
		port, err := strconv.Unquote(strings.TrimSuffix(quoted, "]"))
		_, exposed := extras.exposed[port]
		_, published := c.Publish[port]
		return extras.any || err == nil && (exposed || published)
	})
}

func (s *survey) networks(l listing, members map[string][]reconcile.Member) []reconcile.ObservedNetwork {
	var out []reconcile.ObservedNetwork
	for _, in := range l.networks {
		if !labelOwner(in.Labels).is(s.query) {
			continue
		}
		out = append(out, reconcile.ObservedNetwork{
			Network:  s.converter.networkOf(in),
			Members:  members[in.ID],
			Revision: networkRevision(in),
		})
	}
	// Two may have one name.
	slices.SortFunc(out, func(a, b reconcile.ObservedNetwork) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Revision, b.Revision))
	})
	return out
}

func (s *survey) volumes(l listing) []reconcile.ObservedVolume {
	users := l.volumeUsers(s.query)
	var out []reconcile.ObservedVolume
	for _, in := range l.volumes {
		if in == nil || !labelOwner(in.Labels).is(s.query) {
			continue
		}
		out = append(out, reconcile.ObservedVolume{
			Volume:   s.converter.volumeOf(*in),
			Users:    users[in.Name],
			Revision: volumeRevision(*in),
		})
	}
	slices.SortFunc(out, func(a, b reconcile.ObservedVolume) int { return strings.Compare(a.Name, b.Name) })
	return out
}
