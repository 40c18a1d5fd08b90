package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const watched = `
project = "acme"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "core" {
  binary = "spaces"
}

network "inside" {
  egress = "none"
}

grant "cache" {
  volume = "cache"
  target = "/cache"
}

space "web" {
  image    = image.core
  networks = [network.inside]
  grants   = [grant.cache]
}
`

// What somebody changes behind our back is told by field, once, and on its side.
func TestChangesBehindOurBack(t *testing.T) {
	const image = "acme-core:latest"
	label := func(change func(string) string) func(*model, *ObservedContainer) {
		return func(_ *model, c *ObservedContainer) {
			c.Labels = maps.Clone(c.Labels)
			c.Labels[LabelApplied] = change(c.Labels[LabelApplied])
			if c.Labels[LabelApplied] == "" {
				delete(c.Labels, LabelApplied)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*model, *ObservedContainer)
		want   []string
	}{
		"applied gone":      {label(func(string) string { return "" }), []string{`space.web labels["spaces.applied"] in reality`}},
		"applied nonsense":  {label(func(string) string { return "nonsense" }), []string{`space.web labels["spaces.applied"] in reality`}},
		"applied cut":       {label(func(s string) string { return s[:strings.LastIndex(s, ":")] }), []string{`space.web labels["spaces.applied"] in reality`}},
		"applied forged":    {label(func(s string) string { return s + "0" }), []string{`space.web labels["spaces.applied"] in reality`}},
		"applied elsewhere": {label(func(string) string { return "1:another key:x:y" }), nil},
		"alias": {func(_ *model, c *ObservedContainer) {
			c.Networks = maps.Clone(c.Networks)
			c.Networks["acme-inside"] = Endpoint{Aliases: []string{"evil"}}
		}, []string{`space.web network["acme-inside"].aliases either`}},
		"filled in otherwise": {func(m *model, c *ObservedContainer) {
			filled := []Field{{Path: "HostConfig.ShmSize", Value: "128"}}
			c.Labels = maps.Clone(c.Labels)
			c.Labels[LabelApplied] = AppliedLabel(m.host.Digest, c.Container, filled)
			c.Excess = []Field{{Path: "HostConfig.ShmSize", Value: "8", EngineFilled: true}}
		}, []string{"space.web HostConfig.ShmSize in reality"}},
		"range": {func(m *model, _ *ObservedContainer) { m.network("acme-inside").IPRange = "10.0.0.0/30" }, []string{"network.inside ip_range either"}},
		"volume": {func(m *model, _ *ObservedContainer) {
			m.actual.Volumes[0].Options = map[string]string{"device": "/etc"}
		}, []string{
			`volume.cache options["device"] in reality`,
		}},
		"tag moved": {func(m *model, c *ObservedContainer) {
			m.actual.Images[c.ImageID] = m.actual.Images[image]
			m.actual.Images[image] = ImageFacts{ID: "sha256:evil"}
		}, []string{"image.core input either", "space.web image in reality"}},
		"tag moved, and made from that": {func(m *model, c *ObservedContainer) {
			m.actual.Images[image] = ImageFacts{ID: "sha256:evil", Env: map[string]string{"EVIL": "1"}}
			m.actual.Images["sha256:evil"] = m.actual.Images[image]
			c.ImageID = "sha256:evil"
			c.Env = map[string]EnvValue{"EVIL": {Value: "1"}}
		}, []string{
			"image.core input either", "space.web image either",
			`space.web labels["spaces.image.input"] either`, `space.web tmpfs["/data"] either`,
		}},
		"made from another image": {func(m *model, c *ObservedContainer) {
			m.actual.Images["sha256:evil"] = ImageFacts{ID: "sha256:evil"}
			c.ImageID = "sha256:evil"
		}, []string{"space.web image in reality"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := freshModel()
			cfg := load(t, watched)
			m.apply(t, m.plan(t, cfg))
			if p := m.plan(t, cfg); len(p.Items) > 0 {
				t.Fatalf("the second plan has steps:\n%s", p)
			}
			c.change(m, m.container("acme-web"))
			var got []string
			for _, i := range m.plan(t, cfg).Items {
				for _, change := range i.Changes {
					got = append(got, i.Subject+" "+change.Field+" "+string(change.Side))
				}
			}
			slices.Sort(got)
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

// What can't run beside a container that goes waits for it: a space under a new name
// has the old one's port.
func TestStartsWaitForWhatHoldsTheirPlace(t *testing.T) {
	files := func(name, host, port, address string) string {
		return strings.NewReplacer("NAME", name, "HOST", host, "PORT", port, "ADDRESS", address).Replace(`
project = "acme"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "core" {
  binary = "spaces"
}

network "front" {
  internal = false
  reason   = "it publishes"
  subnet   = "10.1.0.0/24"
}

space "NAME" {
  image = image.core

  network "front" {
    address = "ADDRESS"
  }

  publish {
    host      = "HOST"
    port      = PORT
    container = 80
    reason    = "a test"
  }
}
`)
	}
	for name, c := range map[string]struct {
		host, port, address string
		waits               bool
	}{
		"same port":          {"127.0.0.1", "80", "10.1.0.9", true},
		"on every address":   {"0.0.0.0", "80", "10.1.0.9", true},
		"of IPv6":            {"::", "80", "10.1.0.9", true},
		"on another address": {"127.0.0.2", "80", "10.1.0.9", false},
		"another port":       {"127.0.0.1", "81", "10.1.0.9", false},
		"same address":       {"127.0.0.1", "81", "10.1.0.8", true},
	} {
		t.Run(name, func(t *testing.T) {
			m := freshModel()
			m.apply(t, m.plan(t, load(t, files("old", "127.0.0.1", "80", "10.1.0.8"))))
			p := m.plan(t, load(t, files("new", c.host, c.port, c.address)))
			for _, i := range p.Items {
				if i.ID == "create space.new" && slices.Contains(i.Needs, "remove space.old") != c.waits {
					t.Errorf("it needs %v", i.Needs)
				}
			}
			m.apply(t, p)
			if p := m.plan(t, load(t, files("new", c.host, c.port, c.address))); len(p.Items) > 0 {
				t.Errorf("the second plan has steps:\n%s", p)
			}
		})
	}
}

// A network that another is made from goes after that one.
func TestConfigurationNetworkGoesLast(t *testing.T) {
	m := freshModel()
	cfg := load(t, watched)
	m.apply(t, m.plan(t, cfg))
	inside := m.network("acme-inside")
	inside.Excess = []Field{{Path: "ConfigFrom.Network", Value: "acme-config"}}
	config := *inside
	config.Name, config.Excess, config.Members = "acme-config", []Field{{Path: "ConfigOnly", Value: "true"}}, nil
	m.actual.Networks = append(m.actual.Networks, config)
	seen := false
	for _, i := range m.plan(t, cfg).Items {
		seen = seen || i.ID == "remove network acme-config" && slices.Contains(i.Needs, "remove network.inside")
	}
	if !seen {
		t.Errorf("the plan is\n%s", m.plan(t, cfg))
	}
}
