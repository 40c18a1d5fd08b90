package places

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
)

// listing is every object on the engine, ours or not, as far as lists tell.
type listing struct {
	containers []listed
	networks   []network.Inspect
	volumes    []*volume.Volume
}

// listed is what is kept of a container in the list: there may be thousands.
type listed struct {
	id      string
	name    string
	imageID string
	owner   owners
	running bool
	// shares is whose network namespace it lives in, by id or name; empty for its own.
	shares  string
	places  []place
	volumes []string
}

// place is a container's on a network: by the network's id, or its name where it has
// none yet.
type place struct {
	network string
	// there is false in a container that runs and has no endpoint on it: the engine failed
	// to connect it, and keeps what was asked.
	there bool
}

// owners are the labels that say whose an object is.
type owners struct{ project, store string }

func labelOwner(labels map[string]string) owners {
	return owners{labels[reconcile.LabelProject], labels[reconcile.LabelStore]}
}

func (o owners) is(q Query) bool {
	return q.Project != "" && o == owners{q.Project, q.Store}
}

// describe says for a reader whose an object is that isn't ours.
func (o owners) describe(what string, q Query) string {
	switch {
	case o.project == "":
		return "a " + what + " nobody labelled"
	case o.project == q.Project:
		return fmt.Sprintf("a %s of project %s from another data root %s", what, o.project, o.store)
	}
	return fmt.Sprintf("a %s of project %s", what, o.project)
}

func (o *Observer) list(ctx context.Context) (listing, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var l listing
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if l.containers, err = o.containers(ctx); err != nil {
			return fmt.Errorf("containers: %w", err)
		}
		return nil
	})
	group.Go(func() (err error) {
		l.networks, err = o.networks(ctx)
		return err
	})
	group.Go(func() (err error) {
		l.volumes, err = o.volumes(ctx)
		return err
	})
	err := group.Wait()
	return l, err
}

func (o *Observer) networks(ctx context.Context) ([]network.Inspect, error) {
	all, err := o.engine.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("networks: %w", err)
	}
	return all, nil
}

func (o *Observer) volumes(ctx context.Context) ([]*volume.Volume, error) {
	all, err := o.engine.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	return all.Volumes, nil
}

// summary is what is read of a container in the list.
type summary struct {
	ID              string
	Names           []string
	ImageID         string
	Labels          map[string]string
	State           string
	NetworkSettings *struct {
		Networks map[string]*struct{ NetworkID, EndpointID string }
	}
	HostConfig struct{ NetworkMode string }
	Mounts     []struct {
		Type mount.Type
		Name string
	}
}

// containerList is a list that is being read.
type containerList struct {
	cancel     context.CancelFunc
	done       chan struct{} // closed when the rest is there
	containers []listed
	err        error
}

func startList(ctx context.Context, engine reader) *containerList {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	l := &containerList{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		defer close(l.done)
		l.containers, l.err = listContainers(ctx, engine)
	}()
	return l
}

// containers are all on the engine: those read ahead, or else as they are now.
func (o *Observer) containers(ctx context.Context) ([]listed, error) {
	if o.ahead != nil {
		if ahead := o.ahead.Swap(nil); ahead != nil {
			defer ahead.cancel()
			select {
			case <-ahead.done:
				if ahead.err == nil {
					return ahead.containers, nil
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return listContainers(ctx, o.engine)
}

// listContainers reads the list one by one, as it comes: whole, it may be larger than
// all the rest of the program. With ids it is those containers' alone.
func listContainers(ctx context.Context, engine reader, ids ...string) ([]listed, error) {
	query := url.Values{"all": {"1"}}
	if len(ids) > 0 {
		only, err := json.Marshal(map[string][]string{"id": ids})
		if err != nil {
			return nil, err
		}
		query.Set("filters", string(only))
	}
	body, err := engine.get(ctx, "/containers/json", query)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	list := json.NewDecoder(body)
	if _, err := list.Token(); err != nil {
		return nil, err
	}
	var all []listed
	for list.More() {
		var s summary
		if err := list.Decode(&s); err != nil {
			return nil, err
		}
		all = append(all, s.listed())
	}
	_, err = list.Token()
	return all, err
}

// summarised is what is kept of a container that the client listed.
func summarised(s container.Summary) listed { return listed{id: s.ID, name: ownName(s.Names)} }

// ownName is a container's name. One that links to another gives that a second name,
// "/this/alias".
func ownName(names []string) string {
	for _, name := range names {
		if name = strings.TrimPrefix(name, "/"); !strings.Contains(name, "/") {
			return name
		}
	}
	return ""
}

func (s summary) listed() listed {
	c := listed{id: s.ID, name: ownName(s.Names), imageID: s.ImageID, owner: labelOwner(s.Labels)}
	switch reconcile.State(s.State) {
	case reconcile.StateRunning, reconcile.StatePaused, reconcile.StateRestarting:
		c.running = true
	}
	if kind, of, _ := strings.Cut(s.HostConfig.NetworkMode, ":"); kind == "container" {
		c.shares = of
	}
	if s.NetworkSettings != nil {
		for name, e := range s.NetworkSettings.Networks {
			p := place{network: name, there: !hasEndpoints(reconcile.State(s.State))}
			if e != nil {
				p.network = cmp.Or(e.NetworkID, name)
				p.there = p.there || e.EndpointID != ""
			}
			c.places = append(c.places, p)
		}
	}
	for _, m := range s.Mounts {
		if m.Type == mount.TypeVolume {
			c.volumes = append(c.volumes, m.Name)
		}
	}
	return c
}

// hasEndpoints is true in the states in which a container has an endpoint on each
// network that it is on. One that waits for its next restart has none.
func hasEndpoints(s reconcile.State) bool {
	return s == reconcile.StateRunning || s == reconcile.StatePaused
}

// world says which names go with the ids that containers refer to each other by, and
// which networks are ours.
func (l listing) world(q Query) world {
	w := world{
		containers: make(map[string]string, len(l.containers)),
		networks:   make(map[string]string, len(l.networks)),
		ours:       map[string][]string{},
	}
	for _, c := range l.containers {
		w.containers[c.id] = c.name
	}
	for _, n := range l.networks {
		w.networks[n.ID] = n.Name
		if labelOwner(n.Labels).is(q) {
			w.ours[n.Name] = append(w.ours[n.Name], n.ID)
		}
	}
	return w
}

// sharers are others' containers that live in the network namespace of one of ours, or
// of one that does, by the id of ours. Whose processes, memory or volumes a container
// shares is in no list, and strangers aren't inspected, of whom there may be thousands:
// that isn't told.
func (l listing) sharers(q Query) map[string][]reconcile.Member {
	known := make(map[string]listed, 2*len(l.containers))
	for _, c := range l.containers {
		known[c.name] = c
	}
	for _, c := range l.containers {
		known[c.id] = c
	}
	out := map[string][]reconcile.Member{}
	for _, c := range l.containers {
		if c.shares == "" || c.owner.is(q) {
			continue
		}
		host, found := known[c.shares]
		for range l.containers { // two may wait for each other and never start
			if !found || host.owner.is(q) || host.shares == "" {
				break
			}
			host, found = known[host.shares]
		}
		if found && host.owner.is(q) {
			out[host.id] = append(out[host.id], reconcile.Member{Name: c.name, Running: c.running})
		}
	}
	for _, members := range out {
		slices.SortFunc(members, byName)
	}
	return out
}

func byName(a, b reconcile.Member) int { return strings.Compare(a.Name, b.Name) }

// others are the names held by what isn't ours, and by network id every container on a
// network of ours.
func (l listing) others(q Query) (reconcile.Taken, map[string][]reconcile.Member) {
	taken := reconcile.Taken{Containers: map[string]string{}, Networks: map[string]string{}, Volumes: map[string]string{}}
	ids := map[string]string{} // of our networks, by id, and by a name that is no other's
	for _, n := range l.networks {
		switch owner := labelOwner(n.Labels); {
		case owner.is(q):
			ids[n.ID], ids[n.Name] = n.ID, n.ID
		case isPredefined(n.Name):
			taken.Networks[n.Name] = "a network of the engine's own"
		default:
			taken.Networks[n.Name] = owner.describe("network", q)
		}
	}
	for name := range taken.Networks {
		delete(ids, name)
	}
	for _, v := range l.volumes {
		if v == nil {
			continue
		}
		if owner := labelOwner(v.Labels); !owner.is(q) && volumeName(v.Name) != anonymous {
			taken.Volumes[v.Name] = owner.describe("volume", q)
		}
	}
	members := map[string][]reconcile.Member{}
	for _, c := range l.containers {
		ours := c.owner.is(q)
		if !ours {
			taken.Containers[c.name] = c.owner.describe("container", q)
		}
		for _, p := range c.places {
			// What of ours isn't there has to leave all the same, before it can join.
			if id, ok := ids[p.network]; ok && (ours || p.there) {
				members[id] = append(members[id], reconcile.Member{Name: c.name, Ours: ours, Running: c.running})
			}
		}
	}
	for _, m := range members {
		slices.SortFunc(m, byName)
	}
	return taken, members
}

// volumeUsers are the names of others' containers by the volume they mount.
func (l listing) volumeUsers(q Query) map[string][]string {
	users := map[string][]string{}
	for _, c := range l.containers {
		if c.owner.is(q) {
			continue
		}
		for _, v := range c.volumes {
			users[v] = append(users[v], c.name)
		}
	}
	for _, names := range users {
		slices.Sort(names)
	}
	return users
}
