package reconcile

import (
	"slices"
	"strings"
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

// What comes back unasked is the very container that was let through, and no other one
// that reaches as much.
func TestConsentKnowsTheContainer(t *testing.T) {
	const (
		other = `space "web" {
  image    = image.tool
  networks = [network.inside]
  command  = ["other"]
}
`
		limited = `space "web" {
  image    = image.tool
  networks = [network.inside]
  command  = ["other"]
  limits {
    memory = "64MiB"
  }
}
`
		moved = `space "site" {
  image    = image.tool
  networks = [network.inside]
}

moved {
  from = space.web
  to   = space.site
}
`
	)
	type step struct{ before, after, world string }
	fresh := step{"", consentWeb, ""}
	for _, c := range []struct {
		name    string
		carried []step
		then    step
		asks    []string
	}{
		{
			name: "another command, and gone", carried: []step{fresh},
			then: step{consentWeb, other, "remove acme-web"},
			asks: []string{"create space.web: it widens access"},
		},
		{
			name: "another variable, and gone", carried: []step{fresh},
			then: step{consentWeb, strings.Replace(consentWeb, "networks", "env = { A = \"b\" }\n  networks", 1), "remove acme-web"},
			asks: []string{"create space.web: it widens access"},
		},
		{
			name: "another one that somebody made, and stopped", carried: []step{fresh},
			then: step{other, other, "state acme-web exited"},
			asks: []string{"start space.web: it widens access"},
		},
		{
			name: "replaced, and gone", carried: []step{{consentWeb, other, ""}},
			then: step{other, other, "remove acme-web"},
		},
		{
			name: "replaced, and the older one gone", carried: []step{fresh, {consentWeb, other, ""}},
			then: step{other, consentWeb, "remove acme-web"},
			asks: []string{"create space.web: it widens access"},
		},
		{
			name: "started, and gone", carried: []step{{consentWeb, consentWeb, "state acme-web exited"}},
			then: step{consentWeb, consentWeb, "remove acme-web"},
		},
		{
			name: "moved, and gone", carried: []step{fresh, {consentWeb, moved, ""}},
			then: step{moved, moved, "remove acme-site"},
		},
		{
			name: "limited as it ran, and gone", carried: []step{{"", other, ""}, {other, limited, ""}},
			then: step{limited, limited, "remove acme-web"},
		},
		{
			// The limit is this watch's, and the command somebody else's.
			name: "another one that somebody made, limited as it ran, and gone", carried: []step{fresh, {other, limited, ""}},
			then: step{limited, limited, "remove acme-web"},
			asks: []string{"create space.web: it widens access"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := func(s step) *Plan {
				return planOf(t, map[string]string{"before.hcl": consentHead + s.before, "main.hcl": consentHead + s.after, "world.txt": s.world})
			}
			var consent Consent
			for _, s := range c.carried {
				p := plan(s)
				consent.Asked(p)
				consent.Carried(p)
			}
			p := plan(c.then)
			consent.Asked(p)
			var asks []string
			for _, part := range consent.Parts(p) {
				asks = append(asks, part.Asks...)
			}
			if !slices.Equal(asks, c.asks) {
				t.Errorf("asks %q, want %q\n%s", asks, c.asks, p)
			}
		})
	}
}

// An image that is made from something else isn't the one that was let through, whatever
// it is called.
func TestConsentKnowsTheImage(t *testing.T) {
	files := strings.Replace(consentHead, `reference = "tool@sha256:`+strings.Repeat("0", 64)+`"`, `binary = "spaces"`, 1) + consentWeb
	made := func(from string) *Plan {
		return planOf(t, map[string]string{
			"before.hcl": files, "main.hcl": files, "world.txt": "remove acme-web\ninput image.tool sha256:" + from,
		})
	}
	var consent Consent
	consent.Carried(made("aa"))
	for from, want := range map[string]bool{"aa": false, "bb": true} {
		p := made(from)
		if asks := slices.ContainsFunc(consent.Parts(p), func(p Part) bool { return len(p.Asks) > 0 }); asks != want {
			t.Errorf("asks %v for an image of %s\n%s", asks, from, p)
		}
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
