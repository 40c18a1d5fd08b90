package places

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
	// networks are the ids of those it is on, or the name where it has none yet.
	networks []string
	volumes  []string
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
	group.Go(func() error {
		if err := o.listContainers(ctx, &l); err != nil {
			return fmt.Errorf("containers: %w", err)
		}
		return nil
	})
	group.Go(func() (err error) {
		if l.networks, err = o.engine.NetworkList(ctx, network.ListOptions{}); err != nil {
			return fmt.Errorf("networks: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		all, err := o.engine.VolumeList(ctx, volume.ListOptions{})
		if err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		l.volumes = all.Volumes
		return nil
	})
	return l, group.Wait()
}

// summary is what is read of a container in the list.
type summary struct {
	ID              string
	Names           []string
	ImageID         string
	Labels          map[string]string
	State           string
	NetworkSettings *struct {
		Networks map[string]*struct{ NetworkID string }
	}
	Mounts []struct {
		Type mount.Type
		Name string
	}
}

// listContainers reads the list one by one, as it comes: whole, it may be larger than
// all the rest of the program.
func (o *Observer) listContainers(ctx context.Context, l *listing) error {
	body, err := o.engine.get(ctx, "/containers/json", url.Values{"all": {"1"}})
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read
	list := json.NewDecoder(body)
	if _, err := list.Token(); err != nil {
		return err
	}
	for list.More() {
		var s summary
		if err := list.Decode(&s); err != nil {
			return err
		}
		l.containers = append(l.containers, s.listed())
	}
	_, err = list.Token()
	return err
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
	if s.NetworkSettings != nil {
		for name, e := range s.NetworkSettings.Networks {
			if e != nil && e.NetworkID != "" {
				name = e.NetworkID
			}
			c.networks = append(c.networks, name)
		}
	}
	for _, m := range s.Mounts {
		if m.Type == mount.TypeVolume {
			c.volumes = append(c.volumes, m.Name)
		}
	}
	return c
}

// world says which names go with the ids that containers refer to each other by.
func (l listing) world() world {
	w := world{containers: make(map[string]string, len(l.containers)), networks: make(map[string]string, len(l.networks))}
	for _, c := range l.containers {
		w.containers[c.id] = c.name
	}
	for _, n := range l.networks {
		w.networks[n.ID] = n.Name
	}
	return w
}

// others are the names held by what isn't ours, and by network id every container on a
// network of ours.
func (l listing) others(q Query) (reconcile.Taken, map[string][]reconcile.Member) {
	taken := reconcile.Taken{Containers: map[string]string{}, Networks: map[string]string{}, Volumes: map[string]string{}}
	ids := map[string]string{} // of our networks, by id and by name
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
		for _, n := range c.networks {
			if id, ok := ids[n]; ok {
				members[id] = append(members[id], reconcile.Member{Name: c.name, Ours: ours, Running: c.running})
			}
		}
	}
	for _, m := range members {
		slices.SortFunc(m, func(a, b reconcile.Member) int { return strings.Compare(a.Name, b.Name) })
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
