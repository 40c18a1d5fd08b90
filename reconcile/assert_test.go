package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spaces/schema"
)

// mosaic is a folder with a bit of everything that leads from one space to another.
const mosaic = `
project = "acme"
image "core" {
  binary = "spaces"
}
network "agents" {}
network "services" {}
network "quiet" {
  egress = "none"
}
network "front" {
  internal = false
  reason   = "a test"
}
network "uplink" {
  uplink = true
}
egress "agents" {
  network = network.agents
  allow "api.example.com:443" {}
}
egress "services" {
  network = network.services
  allow "git.corp.example:443" {
    private = ["10.20.0.0/16"]
  }
  allow "*.github.com:443" {
    reason = "a test"
  }
}
grant "agent" {
  socket = "agent"
  target = "/run/spaces/agent"
}
grant "human" {
  socket = "human"
  target = "/run/spaces/human"
}
grant "launch" {
  socket = "launch"
  target = "/run/spaces/launch"
}
grant "git" {
  socket = "git"
  target = "/run/spaces/git"
}
grant "store" {
  data   = "store"
  target = "/store"
  access = "rw"
}
grant "work" {
  directory = "/srv/work"
  target    = "/work"
  access    = "rw"
}
grant "look" {
  directory = "/srv/work/out"
  target    = "/out"
}
grant "note" {
  file   = "/srv/work/out/note"
  target = "/note"
}
grant "token" {
  secret = "/srv/token"
  target = "/token"
}
grant "cache" {
  volume = "cache"
  target = "/cache"
  access = "rw"
}
grant "cached" {
  volume = "cache"
  target = "/cached"
}
space "core" {
  lifecycle = "core"
  image     = image.core
  networks  = [network.services]
  grants    = [grant.store]
}
space "session" {
  lifecycle = "on_request"
  image     = image.core
  networks  = [network.agents]
  grants    = [grant.agent, grant.work]
}
role "builder" {
  space = space.session
}
space "starter" {
  image    = image.core
  networks = [network.quiet]
  grants   = [grant.launch, grant.git]
}
space "reader" {
  image  = image.core
  grants = [grant.look]
}
space "noted" {
  image  = image.core
  grants = [grant.note, grant.cached]
}
space "filler" {
  image    = image.core
  networks = [network.front]
  grants   = [grant.cache]
  publish {
    port = 8080
  }
  publish {
    host   = "192.0.2.1"
    port   = 9090
    reason = "a test"
  }
  loosen "tmp_exec" {
    value  = ["/tmp"]
    reason = "a test"
  }
}
space "watcher" {
  image    = image.core
  networks = [network.quiet]
  grants   = [grant.token]
}
`

// judged is what breaks an assertion of a body, a line each: what is said, and the path.
func judged(t *testing.T, roots Roots, body string) string {
	t.Helper()
	var lines []string
	for _, j := range Judge(Resolve(load(t, mosaic+"assert \"it holds\" {\n"+body+"\n}\n"), roots), HostFacts{}) {
		for _, b := range j.Breaks {
			var path []string
			for _, h := range b.Path {
				path = append(path, h.What)
			}
			lines = append(lines, b.Text+": "+strings.Join(path, " > "))
			if len(b.Others) > 0 {
				lines = append(lines, "  and "+strings.Join(b.Others, ", "))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestJudge(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{
			"its list", `from = space.session
			cannot = "api.example.com:443"`,
			`space.session reaches api.example.com:443: space.session > network.agents > egress.agents > allow "api.example.com:443"`,
		},
		{"another port", `from = space.session
			cannot = "api.example.com:22"`, ""},
		{
			"any port", `from = space.session
			cannot = "api.example.com:*"`,
			`space.session reaches api.example.com:*: space.session > network.agents > egress.agents > allow "api.example.com:443"`,
		},
		{
			"through a socket", `from = space.session
			cannot = "api.github.com:443"`,
			`space.session reaches api.github.com:443 through space.core: space.session > grant.agent > space.core > network.services > egress.services > allow "*.github.com:443"`,
		},
		{"the apex of a wildcard", `from = space.session
			cannot = "github.com:443"`, ""},
		{
			"a wildcard of a wildcard", `from = space.session
			cannot = "*.api.github.com:443"`,
			`space.session reaches *.api.github.com:443 through space.core: space.session > grant.agent > space.core > network.services > egress.services > allow "*.github.com:443"`,
		},
		{
			"an address in a private range", `from = space.session
			cannot = "10.20.0.7:443"`,
			`space.session reaches 10.20.0.7:443 through space.core: space.session > grant.agent > space.core > network.services > egress.services > allow "git.corp.example:443"`,
		},
		{"directly", `from = space.session
			directly = true
			cannot = "api.github.com:443"`, ""},
		{
			"an open network", `from = space.filler
			cannot = "169.254.169.254:80"`,
			`space.filler reaches 169.254.169.254:80: space.filler > network.front`,
		},
		{
			"by launching", `from = space.starter
			cannot = "api.example.com:443"`,
			`space.starter reaches api.example.com:443 through space.session: space.starter > grant.launch > role.builder > space.session > network.agents > egress.agents > allow "api.example.com:443"`,
		},
		{
			"by launching, and then a socket", `from = space.starter
			cannot = "*.github.com:443"`,
			`space.starter reaches *.github.com:443 through space.core: space.starter > grant.launch > role.builder > space.session > grant.agent > space.core > network.services > egress.services > allow "*.github.com:443"`,
		},
		{
			"a role", `from = role.builder
			cannot = "api.example.com:443"`,
			`space.session reaches api.example.com:443: role.builder > space.session > network.agents > egress.agents > allow "api.example.com:443"`,
		},
		{
			"a directory that another writes", `from = space.reader
			cannot = "api.example.com:443"`,
			`space.reader reaches api.example.com:443 through space.session: space.reader > grant.look > grant.work > space.session > network.agents > egress.agents > allow "api.example.com:443"`,
		},
		{
			"a volume that another writes", `from = space.noted
			cannot = "*:*"`,
			`space.noted reaches *:* through space.filler: space.noted > grant.cached > grant.cache > space.filler > network.front`,
		},
		{"no socket in a file, none for who only reads", `from = [space.core, space.filler]
			cannot_mount = [grant.work, grant.note]`, ""},
		{"a network is no hand", `from = space.watcher
			cannot = "*:*"`, ""},
		{
			"everyone", `from = "*"
			cannot = "api.example.com:443"`,
			`space.filler reaches api.example.com:443: space.filler > network.front
  and space.noted, space.reader, space.session, space.starter`,
		},
		{"a grant", `from = space.session
			cannot_mount = grant.work`, `space.session is given grant.work: space.session > grant.work`},
		{
			"what holds a grant", `from = space.session
			cannot_mount = [grant.look, grant.note]`,
			"space.session is given grant.look: space.session > grant.work > grant.look\n" +
				"space.session is given grant.note: space.session > grant.work > grant.note",
		},
		{
			"a part of a grant", `from = space.noted
			directly = true
			cannot_mount = [grant.look, grant.cache]`,
			"space.noted is given grant.cache: space.noted > grant.cached > grant.cache\n" +
				"space.noted is given grant.look: space.noted > grant.note > grant.look",
		},
		{
			"a path", `from = "*"
			directly = true
			cannot_mount = ["/srv/work/out", "/srv/token", "/srv/wor", "/srv/token/x", "/etc"]`,
			"space.watcher is given /srv/token: space.watcher > grant.token\n" +
				"space.watcher is given /srv/token/x: space.watcher > grant.token > /srv/token/x\n" +
				"space.reader is given /srv/work/out: space.reader > grant.look\n  and space.noted, space.session",
		},
		{
			"the store, by asking", `from = space.session
			cannot_mount = grant.store`,
			`space.session is given grant.store through space.core: space.session > grant.agent > space.core > grant.store`,
		},
		{"the store is no path of the files'", `from = space.core
			cannot_mount = ["/etc", "~/x", grant.work]`, ""},
		{"the store itself", `from = space.session
			directly = true
			cannot_mount = grant.store`, ""},
		{"may write", `from = space.session
			may_write = [grant.work, grant.store]`, ""},
		{
			"may write nothing", `from = space.session
			may_write = []`,
			"space.session may write grant.store through space.core: space.session > grant.agent > space.core > grant.store\n" +
				"space.session may write grant.work: space.session > grant.work",
		},
		{
			"join", `from = [space.session, space.starter]
			cannot_join = [network.agents, network.front]`,
			"space.session is on network.agents: space.session > network.agents\n  and space.starter",
		},
		{
			"meet on a network", `from = space.watcher
			cannot_meet = space.starter`,
			`space.watcher meets space.starter: space.watcher > network.quiet > space.starter`,
		},
		{"meet itself", `from = [space.watcher, space.reader]
			cannot_meet = space.watcher`, ""},
		{
			"meet in a directory", `from = space.session
			directly = true
			cannot_meet = [space.reader, space.noted, space.filler]`,
			"space.session meets space.noted: space.session > grant.work > grant.note > space.noted\n" +
				"space.session meets space.reader: space.session > grant.work > grant.look > space.reader",
		},
		{"meet in what neither writes", `from = space.reader
			directly = true
			cannot_meet = space.noted`, ""},
		{
			"meet behind a socket", `from = space.session
			directly = true
			cannot_meet = space.core`,
			`space.session meets space.core: space.session > grant.agent > space.core`,
		},
		{
			"meet who has the socket", `from = space.core
			directly = true
			cannot_meet = space.session`,
			`space.core meets space.session: space.core > grant.agent > space.session`,
		},
		{
			"meet what is launched", `from = space.starter
			cannot_meet = space.session`,
			`space.starter meets space.session: space.starter > grant.launch > role.builder > space.session`,
		},
		{
			"publish", `from = "*"
			directly = true
			cannot_publish = ["off-loopback", 8080, 80, "*"]`,
			"space.filler publishes a port: space.filler > port 8080/tcp\n" +
				"space.filler publishes a port off loopback: space.filler > port 9090/tcp\n" +
				"space.filler publishes port 8080: space.filler > port 8080/tcp",
		},
		{
			"publish through another", `from = space.noted
			cannot_publish = "*"`,
			`space.noted publishes a port through space.filler: space.noted > grant.cached > grant.cache > space.filler > port 8080/tcp`,
		},
		{
			"loosen", `from = "*"
			directly = true
			may_loosen = []`,
			`space.filler loosens "tmp_exec": space.filler > loosen "tmp_exec"`,
		},
		{"loosened as it may be", `from = "*"
			may_loosen = "tmp_exec"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// validate knows nothing of this machine.
			for _, roots := range []Roots{testRoots, {}} {
				if got := judged(t, roots, c.body); got != c.want {
					t.Errorf("with %+v it is\n%s\nand should be\n%s", roots, got, c.want)
				}
			}
		})
	}
}

// Where a host's files are known, paths are compared by where they lead.
func TestJudgeByFacts(t *testing.T) {
	d := Resolve(load(t, mosaic+`
		grant "link" {
		  directory = "~/link"
		  target    = "/link"
		}
		space "linked" {
		  image  = image.core
		  grants = [grant.link]
		}
		assert "by grant" {
		  from         = space.linked
		  cannot_mount = grant.look
		}
		assert "by path" {
		  from         = space.linked
		  cannot_mount = "~/out"
		}
		assert "by inode" {
		  from         = space.linked
		  cannot_mount = "/mnt"
		}`), testRoots)
	holds := func(h HostFacts) (out []bool) {
		for _, j := range Judge(d, h) {
			out = append(out, j.Holds())
		}
		return out
	}
	if got := holds(HostFacts{}); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("by name: %v", got)
	}
	facts := HostFacts{Checked: true, Paths: map[string]PathFacts{
		"~/link": {Absolute: "/home/me/link", Resolved: "/srv/work", Inode: Inode{1, 2}},
		"~/out":  {Absolute: "/home/me/out", Resolved: "/srv/work/out/a"},
		"/mnt":   {Absolute: "/mnt", Resolved: "/mnt", Inode: Inode{1, 2}},
	}}
	if got := holds(facts); !slices.Equal(got, []bool{false, false, false}) {
		t.Errorf("by facts: %v", got)
	}
}

// A refusal has its path a hop a line, and names a few of the others.
func TestBrokenAssertionsAreSpelled(t *testing.T) {
	spaces := ""
	for i := range 6 {
		spaces += fmt.Sprintf("space \"s%d\" {\n  image = image.core\n  networks = [network.agents]\n}\n", i)
	}
	refusals := BrokenAssertions(Judge(Resolve(load(t, mosaic+spaces+`
assert "no way out" {
  from   = [space.s0, space.s1, space.s2, space.s3, space.s4, space.s5]
  cannot = "*:*"
}
`), testRoots), HostFacts{}))
	const want = `"no way out" is broken: space.s0 reaches *:*.
  space.s0 (main.hcl:128)
  -> network.agents (main.hcl:6)
  -> egress.agents, its list (main.hcl:18)
  -> allow "api.example.com:443" (main.hcl:20)
The same is so of space.s1, space.s2, space.s3 and 2 more.`
	if len(refusals) != 1 || refusals[0].Text != want || refusals[0].Code != CodeAssertionBroken {
		t.Errorf("got\n%+v", refusals)
	}
	if fix := refusals[0].Fix; strings.Contains(fix, "directly") {
		t.Errorf("no other space is on the path, and the fix is %q", fix)
	}
}

// BenchmarkJudge judges a large folder in which every claim looks at all that every
// space reaches, and many share a writable directory.
func BenchmarkJudge(b *testing.B) {
	for _, spaces := range []int{300, 1000} {
		b.Run(fmt.Sprintf("spaces=%d", spaces), func(b *testing.B) {
			cfg := generateReach(rand.New(rand.NewPCG(1, 1)))
			kinds := cfg.Spaces
			for i := len(kinds); i < spaces; i++ {
				s := kinds[i%len(kinds)]
				s.Lifecycle = schema.LifecycleService
				s.Object = object("space", "s"+strconv.Itoa(i), i)
				s.Grants = append(slices.Clone(s.Grants), cfg.Grants[0].Address)
				cfg.Spaces = append(cfg.Spaces, s)
			}
			cfg.Grants[0].Writable = true
			for i := range cfg.Assertions {
				cfg.Assertions[i].Everyone, cfg.Assertions[i].Directly = true, false
			}
			d := Resolve(cfg, testRoots)
			for b.Loop() {
				Judge(d, HostFacts{})
			}
		})
	}
}
