//go:build engine

package testscripts

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// The replays are what others' tools got wrong, each by its public thread, with what is
// right here.

// single is a project of one space, whose body is given.
func single(t testing.TB, l *lab, name, body string) *project {
	t.Helper()
	p := newProject(t, l, name)
	p.payload(t)
	p.space(t, body)
	return p
}

// space writes the project's files with another body of its one space.
func (p *project) space(t testing.TB, body string) {
	t.Helper()
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

network "front" {
  internal = false
  reason   = "it publishes"
}

space "web" {
  image   = image.payload
  command = ["/payload", "wait"]
%s
}
`, p.names().path("payload"), body))
}

func TestRootlessReplays(t *testing.T) { testReplays(t, openLab(t, rootless)) }
func TestRootfulReplays(t *testing.T)  { testReplays(t, openLab(t, rootful)) }

func testReplays(t *testing.T, l *lab) {
	for name, replay := range map[string]func(*testing.T, *lab){
		"device":             replayDevice,
		"dual stack":         replayDualStack,
		"network mode":       replayNetworkMode,
		"swap":               replaySwap,
		"failed replacement": replayFailedReplacement,
		"only reads":         replayOnlyReads,
		"killed":             replayKilled,
		"restarting":         replayRestarting,
		"removed and made":   replayRemovedAndMade,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay(t, l)
		})
	}
}

// kreuzwerker/terraform-provider-docker#603: a device by its host path alone.
func replayDevice(t *testing.T, l *lab) {
	p := single(t, l, "device", `
  networks = [network.inside]

  loosen "device" {
    value  = ["/dev/fuse"]
    reason = "a test"
  }
`)
	p.apply(t)
	p.settledAlways(t)
	got := p.lab.inspect(t, p.names().of("web")).HostConfig.Devices
	want := []container.DeviceMapping{{PathOnHost: "/dev/fuse", PathInContainer: "/dev/fuse", CgroupPermissions: "rwm"}}
	if !slices.Equal(got, want) {
		t.Errorf("devices %v", got)
	}
}

// kreuzwerker/terraform-provider-docker#910: one port on all addresses of both families.
func replayDualStack(t *testing.T, l *lab) {
	port := 23610
	if l.kind == rootless {
		port++
	}
	publish := func(host string) string {
		return fmt.Sprintf("\n  publish {\n    host      = %q\n    port      = %d\n    container = 80\n    reason    = \"a test\"\n  }\n", host, port)
	}
	const networks = "  networks = [network.front]\n"
	p := single(t, l, "dual", networks+publish("0.0.0.0")+publish("::"))
	p.apply(t)
	p.settledAlways(t)
	p.space(t, networks+publish("0.0.0.0"))
	if found := p.drift(t); len(found) != 1 || found[0] != `space.web publish["80/tcp"] [in the files]` {
		t.Errorf("dropping one of two addresses comes to %q", found)
	}
	p.apply(t)
	p.settledAlways(t)
}

// ansible-collections/community.docker#934: the network mode is never named.
func replayNetworkMode(t *testing.T, l *lab) {
	p := single(t, l, "mode", `
  networks = [network.front, network.inside]

  limits {
    memory = "100MiB"
  }
`)
	p.apply(t)
	p.settledAlways(t)
	if mode := p.lab.inspect(t, p.names().of("web")).HostConfig.NetworkMode; mode != "mode-front" {
		t.Errorf("network mode %q", mode)
	}
}

// moby/moby#22516 and #25460: a limit is taken away, and raised past what swap allows.
// sous-chefs/docker#833: it is asked for where it can't be held.
func replaySwap(t *testing.T, l *lab) {
	limits := func(memory string) string {
		return "  networks = [network.inside]\n\n  limits {\n    memory = \"" + memory + "\"\n  }\n"
	}
	p := single(t, l, "swap", limits("100MiB"))
	if l.kind == rootless {
		files, err := os.ReadFile(filepath.Join(p.dir, "main.hcl"))
		must(t, err)
		p.write(t, "main.hcl", strings.Replace(string(files), "accept \"limits-unenforced\" {\n  reason = \"a test\"\n}\n", "", 1))
		if s := p.want(t, 3, "plan"); strings.Count(s.err, "limits-unenforced") == 0 || !strings.Contains(s.err, "swap") {
			t.Errorf("limits that can't be held are not refused\n%s", s)
		}
		p.space(t, limits("100MiB"))
		p.apply(t)
		if s := p.settled(t); strings.Count(s.out, "holds no space to them") != 1 {
			t.Errorf("that limits aren't held doesn't stand in the plan once\n%s", s)
		}
		p.settledAlways(t)
		return
	}
	p.apply(t)
	p.settled(t)
	web := p.names().of("web")
	id := p.lab.inspect(t, web).ID
	to := func(body string, memory int64) {
		t.Helper()
		p.space(t, body)
		if s := p.want(t, 2, "plan", "--detailed-exitcode"); !strings.Contains(s.out, "0 to create, 1 to update in place, 0 to replace") {
			t.Errorf("it isn't one change in place\n%s", s)
		}
		p.apply(t)
		p.settled(t)
		in := p.lab.inspect(t, web)
		if in.ID != id || in.HostConfig.Memory != memory || in.HostConfig.MemorySwap != memory {
			t.Errorf("memory %d and swap %d, want both %d, in place", in.HostConfig.Memory, in.HostConfig.MemorySwap, memory)
		}
	}
	to(limits("400MiB"), 400*mib)
	to(limits("50MiB"), 50*mib)
	// No space is without a limit: what isn't said is the default, and is set.
	to("  networks = [network.inside]\n", 512*mib)
}

// docker/compose#13391: a replacement that fails leaves what ran running under its own
// name, however often it is tried.
func replayFailedReplacement(t *testing.T, l *lab) {
	p := single(t, l, "failing", "")
	granted := p.directory(t, "granted")
	files := func(command string) {
		p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

grant "granted" {
  directory = %q
  target    = "/granted"
}

space "web" {
  image   = image.payload
  command = ["/payload", %q]
  grants  = [grant.granted]
}
`, p.names().path("payload"), granted, command))
	}
	files("wait")
	p.apply(t)
	p.settled(t)
	want := p.snapshot(t)
	id := p.lab.inspect(t, p.names().of("web")).ID
	// A command that ends at once, then a source that isn't there any more.
	files("fail")
	for range 3 {
		if s := p.want(t, 1, "apply", "--auto-approve"); !strings.Contains(s.err, "the old one is back as it was") {
			t.Errorf("it isn't said that the old one is back\n%s", s)
		}
		if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
			t.Errorf("after a replacement that failed the engine has\n  %s", strings.Join(differs, "\n  "))
		}
	}
	must(t, os.Remove(granted))
	for range 5 {
		if s := p.want(t, 3, "apply", "--auto-approve"); !strings.Contains(s.err, "grant-source") {
			t.Errorf("refused for another reason\n%s", s)
		}
	}
	if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
		t.Errorf("after applies that were refused the engine has\n  %s", strings.Join(differs, "\n  "))
	}
	if now := p.lab.inspect(t, p.names().of("web")); now.ID != id || !now.State.Running {
		t.Errorf("the container isn't the one that ran: %s", now.State.Status)
	}
}

// recorder passes calls on to an engine and keeps those that may change something.
type recorder struct {
	endpoint string
	mu       sync.Mutex
	calls    int
	writes   []string
}

func record(t testing.TB, l *lab) *recorder {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "spr") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s.sock")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	r := &recorder{endpoint: "unix://" + socket}
	forward := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "engine" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(l.endpoint, "unix://"))
		}},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // calls that are given up
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.calls++
		if q.Method != http.MethodGet && q.Method != http.MethodHead {
			r.writes = append(r.writes, q.Method+" "+q.URL.Path)
		}
		r.mu.Unlock()
		forward.ServeHTTP(w, q)
	})}
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { server.Close() })
	return r
}

// docker/compose#14029: what only looks must not touch, whatever there is to do.
func replayOnlyReads(t *testing.T, l *lab) {
	r := record(t, l)
	p := newProject(t, l, "reading")
	// What the test itself does goes past the recorder.
	p.lab = &lab{kind: l.kind, endpoint: r.endpoint, docker: l.docker}
	p.payload(t)
	p.space(t, "  networks = [network.front]\n")
	look := func(when string) {
		t.Helper()
		r.writes = nil
		want := p.snapshot(t)
		for _, args := range [][]string{
			{"plan"},
			{"plan", "--json"},
			{"plan", "--format", "json"},
			{"plan", "--detailed-exitcode"},
			{"plan", "--out", "plan.json"},
			{"plan", "--detailed-exitcode", "--json", "--out", "plan.json"},
			{"plan", "--offline"},
			{"plan", "--offline", "--json", "--detailed-exitcode"},
			{"show", "plan.json"},
			{"show", "--json", "plan.json"},
			{"drift"},
			{"drift", "--json"},
			{"drift", "--only-reality"},
			{"drift", "--only-reality", "--json"},
			{"validate"},
			{"validate", "--json"},
			{"status"},
			{"status", "--json"},
			{"apply"},
			{"destroy"}, // without a terminal nobody says yes
		} {
			if s := p.spaces(args...); s.status == 1 {
				t.Errorf("%s: %s", when, s)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.writes) > 0 {
			t.Errorf("%s, what only looks sent %q", when, r.writes)
		}
		if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
			t.Errorf("%s, what only looks changed\n  %s", when, strings.Join(differs, "\n  "))
		}
	}
	look("with nothing made")
	p.apply(t)
	if len(r.writes) == 0 {
		t.Fatal("the recorder sees no writes of an apply: it proves nothing")
	}
	look("with nothing to do")
	id := p.lab.inspect(t, p.names().of("web")).ID
	p.space(t, "  networks = [network.inside]\n  env      = { CHANGED = \"1\" }\n")
	look("with a replacement to do")
	p.build(t, p.names().of("payload:latest"), "ENV OTHER=1")
	p.recreate(t, "web", false, func(_ names, s *spec) { s.Host.ShmSize = 8 * mib })
	look("with an image to make and a container that is stopped")
	if p.lab.inspect(t, p.names().of("web")).ID == id {
		t.Error("the container was not remade by the test")
	}
	if r.calls < 100 {
		t.Errorf("the recorder saw only %d calls", r.calls)
	}
}

// hashicorp/terraform-provider-docker#211: a space with ports that is killed comes back,
// though its ports are not in the engine's account of it while it is dead.
func replayKilled(t *testing.T, l *lab) {
	port := 23612
	if l.kind == rootless {
		port++
	}
	p := single(t, l, "killed", fmt.Sprintf("  networks = [network.front]\n  restart  = \"no\"\n\n  publish {\n    port = %d\n  }\n", port))
	p.apply(t)
	p.settled(t)
	want := p.snapshot(t)
	web := p.names().of("web")
	must(t, p.docker.ContainerKill(t.Context(), web, "KILL"))
	until(t, "it is dead", func() bool { return !p.lab.inspect(t, web).State.Running })
	if found := p.drift(t); len(found) != 1 || found[0] != "space.web state [in reality]" {
		t.Errorf("a killed space comes to %q", found)
	}
	p.apply(t)
	p.settled(t)
	if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
		t.Errorf("after the repair the engine has\n  %s", strings.Join(differs, "\n  "))
	}
}

// A space that ends by itself again and again is as it was asked to be, and yet a plan
// says so.
func replayRestarting(t *testing.T, l *lab) {
	p := newProject(t, l, "ending")
	dir := p.directory(t, "dir")
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

grant "dir" {
  directory = %q
  target    = "/dir"
}

space "web" {
  image   = image.payload
  command = ["/payload", "wait-unless", "/dir/end"]
  grants  = [grant.dir]
}
`, p.payload(t), dir))
	p.apply(t)
	p.settled(t)
	must(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o644))
	until(t, "the plan says that it keeps ending", func() bool {
		s := p.spaces("plan", "--detailed-exitcode")
		return s.status == 2 && strings.Contains(s.out, "restarting: its command keeps ending, last with status 4")
	})
	must(t, os.Remove(filepath.Join(dir, "end")))
	until(t, "it runs again", func() bool { return p.spaces("plan", "--detailed-exitcode").status == 0 })
	p.want(t, 0, "drift")
}

// moby/moby#37698: the name of a container that was just removed is still taken.
func replayRemovedAndMade(t *testing.T, l *lab) {
	p := single(t, l, "again", "  networks = [network.inside]\n")
	p.apply(t)
	want := p.snapshot(t)
	for range 8 {
		p.lab.remove(t, p.names().of("web"))
		p.apply(t)
	}
	p.settled(t)
	if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
		t.Errorf("in the end the engine has\n  %s", strings.Join(differs, "\n  "))
	}
}
