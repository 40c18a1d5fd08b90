package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"spaces/schema"
)

// generate makes a configuration that a loader could have made, small and with all
// parts likely to meet.
func generate(r *rand.Rand) *schema.Config {
	g := generator{r, r.IntN(5), &schema.Config{
		Root: "/cfg", Project: "acme",
		Install: schema.Install{Mode: schema.ModeContainerized, Endpoint: "unix:///run/docker.sock"},
	}}
	g.images()
	g.networks()
	g.grants()
	for i := range 1 + r.IntN(5) {
		g.space(i)
	}
	return g.cfg
}

type generator struct {
	r      *rand.Rand
	turned int // by how much the ports have moved from space to space
	cfg    *schema.Config
}

func (g generator) maybe() bool { return g.r.IntN(2) == 0 }

func object(kind, name string, line int) schema.Object {
	return schema.Object{
		Address: schema.Address{Kind: kind, Name: name},
		Origin:  schema.Origin{File: "main.hcl", Line: line},
		Origins: map[string]schema.Origin{},
	}
}

func (g generator) images() {
	g.cfg.Images = []schema.Image{
		{Object: object("image", "core", 1), Binary: "spaces", Tag: "latest"},
		{Object: object("image", "ref", 2), Reference: "node:1"},
	}
}

func (g generator) networks() {
	for i := range 1 + g.r.IntN(3) {
		n := schema.Network{Object: object("network", "n"+strconv.Itoa(i), 10+i), Internal: g.maybe(), NoEgress: true}
		if !n.Internal {
			n.Reason = "a test"
		}
		if g.maybe() {
			n.Subnet = fmt.Sprintf("10.%d.0.0/24", i)
		}
		g.cfg.Networks = append(g.cfg.Networks, n)
	}
}

func (g generator) grants() {
	add := func(name string, kind schema.GrantKind, source string, writable bool) {
		g.cfg.Grants = append(g.cfg.Grants, schema.Grant{
			Object: object("grant", name, 20+len(g.cfg.Grants)), Kind: kind, Source: source,
			Target: "/mnt/" + name, Writable: writable, Create: kind == schema.GrantDirectory,
		})
	}
	add("dir", schema.GrantDirectory, "/srv/dir", true)
	add("file", schema.GrantFile, "/srv/file", false)
	add("vol", schema.GrantVolume, "cache", true)
}

func (g generator) space(i int) {
	s := schema.Space{
		Object:    object("space", "s"+strconv.Itoa(i), 30+10*i),
		Lifecycle: schema.LifecycleService,
		Image:     g.cfg.Images[g.r.IntN(2)].Address,
		Command:   []string{"spaces", "pause"},
	}
	if g.maybe() {
		s.Env = []schema.EnvVar{{Name: "A", Value: strconv.Itoa(g.r.IntN(3))}}
	}
	if g.maybe() {
		s.Limits = schema.Limits{PIDs: 64 + int64(g.r.IntN(3)), Memory: int64(64+g.r.IntN(3)) << 20}
	}
	for _, n := range g.cfg.Networks {
		if g.maybe() {
			a := schema.Attachment{Network: n.Address, Aliases: []string{"a" + strconv.Itoa(g.r.IntN(2))}}
			if n.Subnet != "" && g.maybe() {
				a.Address = strings.Replace(n.Subnet, "0/24", strconv.Itoa(10+(i+g.turned)%5), 1)
			}
			s.Networks = append(s.Networks, a)
		}
	}
	for _, gr := range g.cfg.Grants {
		if g.maybe() {
			s.Grants = append(s.Grants, gr.Address)
		}
	}
	if g.maybe() {
		s.Loosen = append(s.Loosen, schema.Loosening{Kind: schema.LoosenCapAdd, Values: []string{"CHOWN"}, Reason: "a test"})
	}
	if g.maybe() {
		s.Healthcheck = &schema.Healthcheck{Command: []string{"true"}, Interval: time.Second}
	}
	if i > 0 && g.maybe() {
		s.DependsOn = []schema.Address{g.cfg.Spaces[g.r.IntN(i)].Address}
	}
	if g.maybe() {
		s.Publish = append(s.Publish, schema.Publish{Host: "127.0.0.1", Port: 8000 + (i+g.turned)%5, Container: 80, Protocol: "tcp"})
	}
	g.cfg.Spaces = append(g.cfg.Spaces, s)
}

var testRoots = Roots{DataRoot: "/data", Store: "/data/store", Executable: "/usr/bin/spaces"}

func freshModel() *model {
	return &model{
		actual: Actual{
			Engine: Engine{Name: "Docker 20.10.24", Rootless: true, CPUs: 8, InternalDNSLeaks: true},
			Images: map[string]ImageFacts{},
		},
		host: HostFacts{
			Checked: true, Digest: fakeDigester("k1"),
			Paths: map[string]PathFacts{
				"/srv/dir":  {Absolute: "/srv/dir", Resolved: "/srv/dir"},
				"/srv/file": {Absolute: "/srv/file", Resolved: "/real/file", Exists: true, Kind: PathFile, Content: "c1"},
			},
			Inputs: map[string]ImageInput{"image.core": {Digest: "sha256:aa"}},
		},
	}
}

// disturb changes the model behind our back in some ways, by chance.
func disturb(r *rand.Rand, m *model) {
	for range r.IntN(4) {
		if len(m.actual.Containers) == 0 {
			return
		}
		c := &m.actual.Containers[r.IntN(len(m.actual.Containers))]
		c.Networks, c.Env, c.Mounts = maps.Clone(c.Networks), maps.Clone(c.Env), maps.Clone(c.Mounts)
		c.Labels = maps.Clone(c.Labels)
		switch r.IntN(16) {
		case 0:
			c.Env["EVIL"] = EnvValue{Value: "1"}
		case 1:
			c.Excess = append(slices.Clone(c.Excess), Field{Path: "HostConfig.Privileged", Value: "true"})
		case 2:
			c.State, c.ExitCode = StateExited, 137
		case 3:
			c.State = StatePaused
		case 4:
			m.remove(c.Name)
		case 5:
			for _, n := range sortedKeys(c.Networks) {
				m.disconnect(c.Name, n)
			}
		case 6:
			c.Memory *= 2
		case 7:
			c.Mounts["/etc/x"] = Mount{Type: "bind", Source: "/etc", Writable: true}
		case 8:
			for i := range m.actual.Networks {
				m.actual.Networks[i].Internal = !m.actual.Networks[i].Internal
			}
		case 9:
			for i := range m.actual.Networks {
				if slices.Contains(m.actual.Networks[i].Members, Member{"stranger", false, true}) {
					continue
				}
				m.actual.Networks[i].Members = append(slices.Clone(m.actual.Networks[i].Members), Member{"stranger", false, true})
			}
		case 10:
			for i := range m.actual.Volumes {
				m.actual.Volumes[i].Options = map[string]string{"device": "/etc"}
			}
		case 11:
			twin := *c
			twin.Name += []string{"-evil", SuffixNew + SuffixOld, ".x"}[r.IntN(3)]
			if m.container(twin.Name) != nil {
				continue
			}
			twin.Networks = map[string]Endpoint{}
			m.nextID++
			twin.ID = "id" + strconv.Itoa(m.nextID)
			m.actual.Containers = append(m.actual.Containers, twin)
		case 12:
			crash(r, m, c)
		case 13:
			c.Labels[LabelName] = "other"
		case 14:
			c.SharedBy = []Member{{Name: "lodger", Running: true}}
		case 15:
			if c.State != StateRunning {
				continue
			}
			for _, n := range append(sortedKeys(c.Networks), "not-ours") {
				if n != noNetwork && r.IntN(2) == 0 {
					lost := Endpoint{Address: c.Networks[n].Address, Excess: []Field{{Path: NoEndpoint, Value: "none"}}}
					m.disconnect(c.Name, n)
					c.Networks[n] = lost
				}
			}
		}
	}
}

// crash leaves a container as a replacement cut short would.
func crash(r *rand.Rand, m *model, c *ObservedContainer) {
	if c.Labels[LabelReplaces] != "" && r.IntN(2) == 0 || m.container(c.Name+SuffixOld) != nil || m.container(c.Name+SuffixNew) != nil {
		return
	}
	next := *c
	next.Labels = maps.Clone(c.Labels)
	next.Labels[LabelReplaces] = c.ID
	next.State = StateCreated
	next.Networks = map[string]Endpoint{}
	m.nextID++
	next.ID = "id" + strconv.Itoa(m.nextID)
	name := c.Name
	rename := func(to string) {
		for i := range m.actual.Networks {
			members := slices.Clone(m.actual.Networks[i].Members)
			for j := range members {
				if members[j].Name == name {
					members[j].Name = to
				}
			}
			m.actual.Networks[i].Members = members
		}
	}
	switch r.IntN(4) {
	case 0: // made
		next.Name = name + SuffixNew
	case 1: // old aside
		next.Name = name + SuffixNew
		c.Name, c.State = name+SuffixOld, StateExited
		rename(c.Name)
	case 2: // new in place, not started
		c.Name, c.State = name+SuffixOld, StateExited
		rename(c.Name)
	case 3: // new runs, old not removed
		c.Name, c.State = name+SuffixOld, StateExited
		rename(c.Name)
		next.State = StateRunning
	}
	m.actual.Containers = append(m.actual.Containers, next)
}
