package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// model is an engine in memory: it carries steps out on an Actual and refuses what an
// engine refuses.
type model struct {
	mu     sync.Mutex
	actual Actual
	host   HostFacts
	nextID int
	log    []string
}

func (m *model) Apply(_ context.Context, step Step) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, fmt.Sprintf("%T", step))
	switch s := step.(type) {
	case CreateDirectory:
		for path, facts := range m.host.Paths {
			if facts.Resolved == s.Path {
				facts.Exists, facts.Kind = true, PathDirectory
				m.host.Paths[path] = facts
			}
		}
	case CreateNetwork:
		if m.network(s.Network.Name) != nil {
			return fmt.Errorf("network %s exists", s.Network.Name)
		}
		n := s.Network
		if n.Subnet == "" {
			n.Subnet = "172.18.0.0/16"
		}
		m.actual.Networks = append(m.actual.Networks, ObservedNetwork{Network: n})
	case RemoveNetwork:
		n := m.network(s.Name)
		if n == nil || len(n.Members) > 0 {
			return fmt.Errorf("network %s is gone or has endpoints", s.Name)
		}
		m.actual.Networks = slices.DeleteFunc(m.actual.Networks, func(n ObservedNetwork) bool { return n.Name == s.Name })
	case CreateVolume:
		m.actual.Volumes = append(m.actual.Volumes, ObservedVolume{Volume: s.Volume})
	case RemoveVolume:
		for _, c := range m.actual.Containers {
			for _, mount := range c.Mounts {
				if mount.Type == "volume" && mount.Source == s.Name {
					return fmt.Errorf("volume %s is in use by %s", s.Name, c.Name)
				}
			}
		}
		m.actual.Volumes = slices.DeleteFunc(m.actual.Volumes, func(v ObservedVolume) bool { return v.Name == s.Name })
	case BuildImage:
		m.nextID++
		m.actual.Images[s.Image.Reference] = ImageFacts{
			ID: "sha256:built" + strconv.Itoa(m.nextID), Input: s.Input,
			Labels: map[string]string{LabelImageInput: s.Input}, Env: map[string]string{"PATH": "/"},
			Volumes: []string{"/data"},
		}
	case PullImage:
		m.nextID++
		m.actual.Images[s.Reference] = ImageFacts{ID: "sha256:pulled" + strconv.Itoa(m.nextID)}
	case CreateSpace:
		return m.create(s.Container, s.Container.Name, "")
	case ReplaceSpace:
		old := m.container(cmp.Or(s.From, s.Container.Name))
		if old == nil {
			return fmt.Errorf("no container %s to replace", s.Container.Name)
		}
		id := old.ID
		m.remove(old.Name)
		return m.create(s.Container, s.Container.Name, id)
	case UpdateSpace:
		c := m.container(s.Name)
		for _, f := range s.Fields {
			switch f {
			case "limits.memory":
				c.Memory = s.To.Memory
			case "limits.memory_swap":
				c.MemorySwap = s.To.MemorySwap
			case "limits.cpus":
				c.NanoCPUs = s.To.NanoCPUs
			case "limits.pids":
				c.PIDs = s.To.PIDs
			case "restart":
				c.Restart = s.To.Restart
			default:
				return fmt.Errorf("field %s doesn't change in place", f)
			}
		}
	case ConnectSpace:
		n := m.network(s.Network)
		if n == nil {
			return fmt.Errorf("no network %s", s.Network)
		}
		c := m.container(s.Name)
		for _, other := range m.actual.Containers {
			if e, on := other.Networks[s.Network]; on && other.Name != c.Name && e.Address != "" && e.Address == s.Endpoint.Address {
				return fmt.Errorf("%s has the address that %s wants", other.Name, c.Name)
			}
		}
		if e, on := c.Networks[s.Network]; on && !e.lost() {
			return fmt.Errorf("%s is on %s already", s.Name, s.Network)
		}
		c.Networks = maps.Clone(c.Networks)
		c.Networks[s.Network] = s.Endpoint
		n.Members = append(n.Members, Member{c.Name, true, true})
	case DisconnectSpace:
		c := m.container(s.Name)
		lost := c != nil && c.Networks[s.Network].lost()
		var kept Endpoint
		if lost {
			kept = c.Networks[s.Network]
		}
		m.disconnect(s.Name, s.Network)
		if lost { // the engine forgets only what was there
			c.Networks[s.Network] = kept
		}
	case StartSpace:
		if err := m.room(m.container(s.Name).Container); err != nil {
			return err
		}
		m.container(s.Name).State = StateRunning
	case UnpauseSpace:
		m.container(s.Name).State = StateRunning
	case RemoveSpace:
		m.remove(s.Name)
	case RenameSpace:
		c := m.container(s.From)
		if c == nil || m.container(s.To) != nil {
			return fmt.Errorf("can't rename %s to %s", s.From, s.To)
		}
		for i := range m.actual.Networks {
			for j := range m.actual.Networks[i].Members {
				if m.actual.Networks[i].Members[j].Name == s.From {
					m.actual.Networks[i].Members[j].Name = s.To
				}
			}
		}
		c.Name = s.To
	default:
		return fmt.Errorf("step %T isn't known to the model", step)
	}
	return nil
}

func (m *model) create(c Container, name, replaces string) error {
	if m.container(name) != nil {
		return fmt.Errorf("container %s exists", name)
	}
	image, ok := m.actual.Images[c.Image]
	if !ok {
		return fmt.Errorf("no image %s", c.Image)
	}
	m.actual.Images[image.ID] = image
	c = WithImage(c, image)
	c.Labels = maps.Clone(c.Labels)
	c.Labels[LabelApplied] = AppliedLabel(m.host.Digest, c, nil)
	if replaces != "" {
		c.Labels[LabelReplaces] = replaces
	}
	c.Name = name
	if err := m.room(c); err != nil {
		return err
	}
	for network := range c.Networks {
		if n := m.network(network); n != nil {
			n.Members = append(n.Members, Member{name, true, true})
		} else if network != noNetwork {
			return fmt.Errorf("no network %s", network)
		}
	}
	for _, mount := range c.Mounts {
		if mount.Type == "bind" && !m.exists(mount.Source) {
			return fmt.Errorf("no source %s", mount.Source)
		}
	}
	m.nextID++
	m.actual.Containers = append(m.actual.Containers, ObservedContainer{Container: c, State: StateRunning, ID: "id" + strconv.Itoa(m.nextID)})
	return nil
}

// room refuses a port that another container has.
func (m *model) room(c Container) error {
	for _, other := range m.actual.Containers {
		if other.Name != c.Name && running(other.State) && clash(other.Container, c) {
			return fmt.Errorf("%s has a port that %s wants", other.Name, c.Name)
		}
	}
	return nil
}

func (m *model) exists(source string) bool {
	for _, f := range m.host.Paths {
		if f.Resolved == source {
			return f.Exists
		}
	}
	return true
}

func (m *model) remove(name string) {
	for i := range m.actual.Networks {
		m.disconnect(name, m.actual.Networks[i].Name)
	}
	m.actual.Containers = slices.DeleteFunc(m.actual.Containers, func(c ObservedContainer) bool { return c.Name == name })
}

func (m *model) disconnect(name, network string) {
	if n := m.network(network); n != nil {
		n.Members = slices.DeleteFunc(slices.Clone(n.Members), func(e Member) bool { return e.Name == name })
	}
	if c := m.container(name); c != nil {
		c.Networks = maps.Clone(c.Networks)
		delete(c.Networks, network)
	}
}

func (m *model) container(name string) *ObservedContainer {
	for i := range m.actual.Containers {
		if m.actual.Containers[i].Name == name {
			return &m.actual.Containers[i]
		}
	}
	return nil
}

func (m *model) network(name string) *ObservedNetwork {
	for i := range m.actual.Networks {
		if m.actual.Networks[i].Name == name {
			return &m.actual.Networks[i]
		}
	}
	return nil
}

// fakeDigester digests with a name for a key; good enough to tell values apart.
type fakeDigester string

func (d fakeDigester) KeyID() string { return string(d) }

func (d fakeDigester) Digest(parts ...string) string {
	return strings.TrimPrefix(digestOf(append([]string{string(d)}, parts...)), "sha256:")
}
