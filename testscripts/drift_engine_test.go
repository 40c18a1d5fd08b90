//go:build engine

package testscripts

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
)

func TestRootlessDrift(t *testing.T) { testDrift(t, openLab(t, rootless)) }
func TestRootfulDrift(t *testing.T)  { testDrift(t, openLab(t, rootful)) }

// lanes are how many projects the rows are spread over. Most of a row is waiting for
// the engine, and projects must not mind each other.
const lanes = 4

// testDrift makes every change behind the program's back, one after another in each
// lane, and sees each reported and repaired.
func testDrift(t *testing.T, l *lab) {
	todo := make(chan row)
	var all sync.WaitGroup
	for i := range lanes {
		p := newDrifting(t, l, i)
		want := p.snapshot(t)
		all.Go(func() {
			for r := range todo {
				if !t.Run(r.name, func(t *testing.T) { p.prove(t, r, want) }) {
					p.startOver(t, want)
				}
			}
		})
	}
	for _, r := range rows() {
		if r.runsOn(l.kind) {
			todo <- r
		}
	}
	close(todo)
	all.Wait()
}

// prove makes one change and sees it reported by field on the right side, in each way
// of looking, accepted by an edit as far as one can, and repaired for good.
func (p *project) prove(t *testing.T, r row, want snapshot) {
	start := time.Now()
	p.disturb(t, r)
	changed := time.Now()
	found := p.drift(t)
	if expected := slices.Sorted(slices.Values(r.wants(p.kind))); !slices.Equal(found, expected) {
		t.Errorf("drift reports\n  %s\nand should report\n  %s", strings.Join(found, "\n  "), strings.Join(expected, "\n  "))
	}
	// None of it is in the files.
	p.tells(t, found, p.want(t, 2, "drift", "--only-reality"))
	p.tells(t, found, p.want(t, 2, "plan", "--detailed-exitcode"))
	looked := time.Now()
	p.accept(t, r)
	out := time.Now()
	p.apply(t)
	applied := time.Now()
	p.settled(t)
	if r.undo != nil {
		r.undo(t, p)
	}
	if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
		t.Errorf("after the repair the engine has\n  %s", strings.Join(differs, "\n  "))
	}
	t.Logf("%s: changed in %v, reported in %v, accepted in %v, repaired in %v", p.name, changed.Sub(start).Round(time.Millisecond),
		looked.Sub(changed).Round(time.Millisecond), out.Sub(looked).Round(time.Millisecond), applied.Sub(out).Round(time.Millisecond))
}

// tells fails unless a report for people names each field and each subject.
func (p *project) tells(t *testing.T, found []string, s said) {
	t.Helper()
	text := p.anonymous(s.out)
	for _, f := range found {
		subject, rest, _ := strings.Cut(f, " ")
		if subject == "container" || subject == "network" {
			_, rest, _ = strings.Cut(rest, " ")
		}
		field, _, _ := strings.Cut(rest, " [")
		if field == "missing" || field == "not asked for" {
			continue // the plan shows the step instead
		}
		if !strings.Contains(text, field) || !strings.Contains(text, subject) {
			t.Errorf("%s of %s isn't told by\n%s", field, subject, s)
		}
	}
}

// startOver makes the project anew after a row that failed, so that the next one is
// judged by itself.
func (p *project) startOver(t *testing.T, want snapshot) {
	if err := p.wipe(p.name); err != nil {
		t.Errorf("cannot start over: %v", err)
	}
	if s := p.spaces("apply", "--auto-approve"); s.status != 0 {
		t.Errorf("cannot start over: %s", s)
	}
	if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
		t.Errorf("having started over: %s", strings.Join(differs, "\n"))
	}
}

// newDrifting applies the project that the rows disturb: web with as much as a file can
// say, peer with as little.
func newDrifting(t testing.TB, l *lab, lane int) *project {
	t.Helper()
	p := newProject(t, l, fmt.Sprintf("drift%d", lane))
	for _, dir := range []string{"notes", "work", "other"} {
		p.directory(t, dir)
	}
	must(t, os.WriteFile(p.names().path("file"), []byte("as it was"), 0o644))
	token := p.secret(t, "token", "a secret of lane "+p.name)
	port := 23400 + lane
	if l.kind == rootless {
		port += 50 // its ports are those of the machine
	}
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
  tag    = "1"
}

network "inside" {
  egress = "none"
  subnet = %q
}

network "back" {
  egress = "none"
  subnet = %q
}

network "front" {
  internal = false
  reason   = "it publishes"
  subnet   = %q
}

grant "notes" {
  directory = %q
  target    = "/notes"
}

grant "work" {
  directory = %q
  target    = "/work"
  access    = "rw"
}

grant "file" {
  file   = %q
  target = "/file"
}

grant "token" {
  secret = %q
  target = "/run/token"
}

grant "cache" {
  volume = "cache"
  target = "/cache"
  access = "rw"
}

space "web" {
  image        = image.payload
  entrypoint   = ["/payload"]
  command      = ["wait"]
  user         = "1000:1000"
  working_dir  = "/scratch"
  stop_timeout = "5s"
  stop_signal  = "SIGTERM"
  networks     = [network.front]
  grants       = [grant.notes, grant.work, grant.file, grant.token, grant.cache]
  tmpfs        = ["/scratch"]

  env = {
    GREETING = "hello"
    EMPTY    = ""
  }

  network "inside" {
    aliases = ["one", "two"]
    address = %q
  }

  publish {
    port      = %d
    container = 80
  }

  healthcheck {
    command  = ["/payload", "ok"]
    interval = "30s"
    timeout  = "5s"
  }

  limits {
    pids   = 64
    memory = "64MiB"
    cpus   = 0.5
  }

  loosen "cap_add" {
    value  = ["NET_BIND_SERVICE"]
    reason = "to have one"
  }
}

space "peer" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
}
`, p.payload(t), p.names().address(0)+"/24", p.names().subnet(1), p.names().subnet(2),
		p.names().path("notes"), p.names().path("work"), p.names().path("file"), token,
		p.names().address(10), port))
	p.apply(t)
	p.settled(t)
	return p
}

// subnet is one of the four of a lane; the first is that of the network inside, and the
// one after it is free for a wider one.
func (n names) subnet(i int) string {
	return fmt.Sprintf("10.%d.%d.0/24", 190+n.lane(), 2*i)
}

// address is one on the network inside.
func (n names) address(host int) string {
	return fmt.Sprintf("10.%d.0.%d", 190+n.lane(), host)
}

// lane is the last digit of a project's name.
func (n names) lane() int { return int(n.project[len(n.project)-1]-'0') % 10 }

// disturb makes a row's change with the plain API.
func (p *project) disturb(t testing.TB, r row) {
	t.Helper()
	web := p.names().of("web")
	switch {
	case r.recreate != nil:
		p.recreate(t, cmp.Or(r.of, "web"), r.starts(p.kind), r.recreate)
	case r.update != nil:
		_, err := p.docker.ContainerUpdate(t.Context(), web, *r.update)
		must(t, err)
	case r.endpoint != nil:
		p.rejoin(t, r.endpoint)
	case r.network != nil:
		p.remakeNetwork(t, r.network)
	case r.volume != nil:
		p.remakeVolume(t, r.volume)
	default:
		r.act(t, p)
	}
}

// recreate removes a container and makes it again from its own account of itself, with
// something changed.
func (p *project) recreate(t testing.TB, short string, start bool, change func(names, *spec)) {
	t.Helper()
	name := p.names().of(short)
	s := specOf(p.lab.inspect(t, name))
	if change != nil {
		change(p.names(), &s)
	}
	p.lab.remove(t, name)
	p.lab.create(t, name, s, start)
}

func (p *project) networkOptions(t testing.TB, name string) network.CreateOptions {
	t.Helper()
	in, err := p.docker.NetworkInspect(t.Context(), name, network.InspectOptions{})
	must(t, err)
	return network.CreateOptions{
		Driver: in.Driver, Internal: in.Internal, Options: in.Options, Labels: in.Labels,
		IPAM: &network.IPAM{Driver: in.IPAM.Driver, Config: in.IPAM.Config},
	}
}

// rejoin has web leave the network inside and join it again, with something changed.
func (p *project) rejoin(t testing.TB, change func(names, *network.EndpointSettings)) {
	t.Helper()
	inside, web := p.names().of("inside"), p.names().of("web")
	in := p.lab.inspect(t, web)
	e := askedOf(in, networkOf(in, inside))
	change(p.names(), e)
	must(t, p.docker.NetworkDisconnect(t.Context(), inside, web, false))
	must(t, p.docker.NetworkConnect(t.Context(), inside, web, e))
}

// remakeNetwork makes the network inside again, with all its containers on it.
func (p *project) remakeNetwork(t testing.TB, change func(names, *network.CreateOptions)) {
	t.Helper()
	inside := p.names().of("inside")
	options := p.networkOptions(t, inside)
	change(p.names(), &options)
	moved := map[string]*network.EndpointSettings{}
	for _, short := range []string{"web", "peer"} {
		in := p.lab.inspect(t, p.names().of(short))
		moved[in.ID] = askedOf(in, networkOf(in, inside))
		must(t, p.docker.NetworkDisconnect(t.Context(), inside, in.ID, false))
	}
	must(t, p.docker.NetworkRemove(t.Context(), inside))
	_, err := p.docker.NetworkCreate(t.Context(), inside, options)
	must(t, err)
	for id, e := range moved {
		must(t, p.docker.NetworkConnect(t.Context(), inside, id, e))
	}
}

// remakeVolume makes the volume cache again, and web that uses it.
func (p *project) remakeVolume(t testing.TB, change func(names, *volume.CreateOptions)) {
	t.Helper()
	web, cache := p.names().of("web"), p.names().of("cache")
	s := specOf(p.lab.inspect(t, web))
	in, err := p.docker.VolumeInspect(t.Context(), cache)
	must(t, err)
	options := volume.CreateOptions{Name: in.Name, Driver: in.Driver, DriverOpts: in.Options, Labels: in.Labels}
	change(p.names(), &options)
	p.lab.remove(t, web)
	must(t, p.docker.VolumeRemove(t.Context(), cache, false))
	_, err = p.docker.VolumeCreate(t.Context(), options)
	must(t, err)
	p.lab.create(t, web, s, true)
}

func (p *project) stop(t testing.TB, short string) {
	t.Helper()
	must(t, p.docker.ContainerStop(t.Context(), p.names().of(short), container.StopOptions{}))
}

// stranger puts a container that isn't ours on a network of ours.
func (p *project) stranger(t testing.TB, running bool) {
	t.Helper()
	name := p.names().of("foreign")
	inside := p.names().of("inside")
	made, err := p.docker.ContainerCreate(t.Context(),
		&container.Config{Image: p.name + "-payload:1", Entrypoint: []string{"/payload", "wait"}},
		&container.HostConfig{NetworkMode: container.NetworkMode(inside)},
		&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{inside: {}}}, nil, name)
	must(t, err)
	if running {
		must(t, p.docker.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	}
}

// strangerStands checks that the container itself was let alone, and removes it.
func strangerStands(t testing.TB, p *project) {
	in := p.lab.inspect(t, p.names().of("foreign"))
	defer p.lab.remove(t, in.ID)
	if _, on := in.NetworkSettings.Networks[p.names().of("inside")]; on {
		t.Errorf("the stranger is still on the network")
	}
}

// replaceFile saves as editors do: under another name, which then takes the old one's.
func replaceFile(path, content string) error {
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}
