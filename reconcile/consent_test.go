package reconcile

import (
	"slices"
	"testing"
)

const consentHead = `project = "acme"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "tool" {
  reference = "tool@sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

network "inside" {
  egress = "none"
}

network "more" {
  egress = "none"
}

`

const consentWeb = `space "web" {
  image    = image.tool
  networks = [network.inside]
}
`

// What asks, and for what; no reasons mean that nobody is asked.
func TestConsentAsks(t *testing.T) {
	for _, c := range []struct {
		name, before, after, world string
		free                       []string // items of parts that nobody is asked about
		asks                       []string
	}{
		{
			name: "a limit", before: consentWeb,
			after: `space "web" {
  image    = image.tool
  networks = [network.inside]
  limits {
    memory = "64MiB"
  }
}
`,
			free: []string{"update space.web"},
		},
		{
			name: "one network less", before: `space "web" {
  image    = image.tool
  networks = [network.inside, network.more]
}
`, after: consentWeb,
			free: []string{"disconnect space.web network.more"},
		},
		{
			name: "one network more", before: consentWeb, after: `space "web" {
  image    = image.tool
  networks = [network.inside, network.more]
}
`,
			asks: []string{"connect space.web network.more: it widens access"},
		},
		{
			name: "a space that reaches something", before: "", after: consentWeb,
			asks: []string{"create space.web: it widens access"},
		},
		{
			name: "a space that reaches nothing", before: "", after: `space "web" {
  image = image.tool
}
`,
			free: []string{"create space.web"},
		},
		{
			name: "another command", before: consentWeb, after: `space "web" {
  image    = image.tool
  networks = [network.inside]
  command  = ["other"]
}
`,
			asks: []string{"replace space.web: it replaces"},
		},
		{
			name: "a space less", before: consentWeb, after: "",
			asks: []string{"remove space.web: it destroys"},
		},
		{
			name: "a stopped space that isn't known", before: consentWeb, after: consentWeb, world: "state acme-web exited",
			asks: []string{"start space.web: it widens access"},
		},
		{
			name: "a stranger", before: consentWeb, after: consentWeb, world: "stranger acme-inside evil",
			asks: []string{"disconnect evil network.inside: it is about a container that isn't this project's"},
		},
		{
			name: "two that don't hang together", before: consentWeb,
			after: `space "web" {
  image    = image.tool
  networks = [network.inside]
  limits {
    memory = "64MiB"
  }
}

space "new" {
  image    = image.tool
  networks = [network.inside]
}
`,
			free: []string{"update space.web"},
			asks: []string{"create space.new: it widens access"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The networks and the image are there before, by a space that uses them.
			keep := consentHead + `space "keep" {
  image    = image.tool
  networks = [network.inside, network.more]
}

`
			p := planOf(t, map[string]string{"before.hcl": keep + c.before, "main.hcl": keep + c.after, "world.txt": c.world})
			var free, asked []string
			for _, part := range new(Consent).Parts(p) {
				if len(part.Asks) == 0 {
					free = append(free, part.Items...)
				}
				asked = append(asked, part.Asks...)
			}
			if !slices.Equal(free, c.free) || !slices.Equal(asked, c.asks) {
				t.Errorf("free %q, want %q\nasks %q, want %q\n%s", free, c.free, asked, c.asks, p)
			}
		})
	}
}

// What was carried out is brought back unasked, as long as the files ask for it.
func TestConsentKnowsWhatItCarried(t *testing.T) {
	first := planOf(t, map[string]string{"main.hcl": consentHead + consentWeb})
	gone := planOf(t, map[string]string{"before.hcl": consentHead + consentWeb, "main.hcl": consentHead + consentWeb, "world.txt": "remove acme-web"})
	more := planOf(t, map[string]string{"before.hcl": consentHead + consentWeb, "world.txt": "remove acme-web", "main.hcl": consentHead + `space "web" {
  image    = image.tool
  networks = [network.inside, network.more]
}
`})
	without := planOf(t, map[string]string{"before.hcl": consentHead + consentWeb, "main.hcl": consentHead})
	asked := func(c *Consent, p *Plan) bool {
		return slices.ContainsFunc(c.Parts(p), func(p Part) bool { return len(p.Asks) > 0 })
	}
	var c Consent
	if !asked(&c, gone) {
		t.Error("what was never carried out is brought back unasked")
	}
	c.Carried(first)
	c.Asked(gone)
	if asked(&c, gone) {
		t.Error("what was carried out isn't brought back unasked")
	}
	if !asked(&c, more) {
		t.Error("it comes back with more than it had")
	}
	c.Asked(without)
	if !asked(&c, gone) {
		t.Error("what the files no longer asked for came back unasked")
	}
}

// A change that is half asked is asked whole.
func TestConsentKeepsTogether(t *testing.T) {
	p := planOf(t, map[string]string{"main.hcl": consentHead + `space "reaches" {
  image      = image.tool
  networks   = [network.inside]
  depends_on = [space.nothing]
}

space "nothing" {
  image = image.tool
}
`})
	parts := new(Consent).Parts(p)
	if len(parts) != 2 { // network "more" is for itself
		t.Fatalf("%d parts: %+v", len(parts), parts)
	}
	all := 0
	for _, part := range parts {
		all += len(part.Items)
		only := p.Only(part.Items)
		if _, err := Order(only.Items); err != nil || len(only.Items) != len(part.Items) {
			t.Errorf("part %v can't be carried out: %v", part.Items, err)
		}
	}
	if all != len(p.Items) {
		t.Errorf("%d items in parts, of %d", all, len(p.Items))
	}
}
