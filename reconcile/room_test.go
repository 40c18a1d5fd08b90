package reconcile

import (
	"fmt"
	"slices"
	"testing"

	"spaces/schema"
)

const roomFiles = `project = "acme"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "core" {
  binary = "spaces"
}

network "n" {
  egress = "none"
  subnet = "10.0.0.0/24"
}

space "a" {
  image = image.core
  env   = { V = "%s" }

  network "n" {
    address = "10.0.0.%d"
  }
}

space "b" {
  image = image.core
  env   = { V = "%s" }

  network "n" {
    address = "10.0.0.%d"
  }
}
`

// TestAddressesMove: who takes an address waits for who gives it up, whether each is
// changed in place or replaced, and whether or not one takes what the other gives.
func TestAddressesMove(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   string // their variables after; "1" before
		to     [2]int
		needs  map[string]string
		absent string
	}{
		"swapped in place": {"1", "1", [2]int{6, 5}, map[string]string{
			"connect space.a network.n": "disconnect space.b network.n",
			"connect space.b network.n": "disconnect space.a network.n",
		}, ""},
		"taken by one that is replaced": {"1", "2", [2]int{7, 5}, map[string]string{
			"replace space.b": "disconnect space.a network.n",
		}, ""},
		"given by one that is replaced": {"1", "2", [2]int{6, 7}, map[string]string{
			"connect space.a network.n": "replace space.b",
		}, ""},
		"swapped, both replaced": {"2", "2", [2]int{6, 5}, map[string]string{
			"create space.a":  "replace space.b",
			"replace space.b": "remove space.a",
		}, "replace space.a"},
	} {
		t.Run(name, func(t *testing.T) {
			m := freshModel()
			m.apply(t, m.plan(t, load(t, fmt.Sprintf(roomFiles, "1", 5, "1", 6))))
			after := load(t, fmt.Sprintf(roomFiles, c.a, c.to[0], c.b, c.to[1]))
			p := m.plan(t, after)
			for id, need := range c.needs {
				if item := itemOf(p, id); item == nil || !slices.Contains(item.Needs, need) {
					t.Errorf("%q doesn't wait for %q:\n%s", id, need, p)
				}
			}
			if c.absent != "" && itemOf(p, c.absent) != nil {
				t.Errorf("%q is in the plan:\n%s", c.absent, p)
			}
			m.apply(t, p)
			checkEmpty(t, m, after)
		})
	}
}

func itemOf(p *Plan, id string) *Item {
	at := slices.IndexFunc(p.Items, func(i Item) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return &p.Items[at]
}

func checkEmpty(t *testing.T, m *model, cfg *schema.Config) {
	t.Helper()
	if p := m.plan(t, cfg); p.HasChanges() {
		t.Errorf("the next plan isn't empty:\n%s", p)
	}
}
