//go:build engine

package testscripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
)

// wrong is a container that somebody made other than the files say, and the checks that
// show it.
type wrong struct {
	key    string
	change func(p *project, s *spec)
	// differs are the checks that must differ, and no other; says is in one of them.
	differs []string
	says    string
	kind    string // of engine; empty for both, where this machine can make it
	// beside, if set, adds what isn't the container itself.
	beside func(t testing.TB, p *project)
}

// wrongs are the ways. Each is one space of one project, so that a single verification
// looks at all of them.
func wrongs() []wrong {
	return []wrong{
		{"good", func(*project, *spec) {}, nil, "", "", nil},
		{"cap-add", func(p *project, s *spec) { s.Host.CapAdd = []string{"NET_RAW"} }, []string{"capabilities"}, "bounding NET_RAW", "", nil},
		{"cap-drop", func(p *project, s *spec) { s.Host.CapDrop = nil }, []string{"capabilities"}, "effective, permitted, bounding CHOWN+DAC_OVERRIDE", "", nil},
		{"privileges", func(p *project, s *spec) { s.Host.SecurityOpt = []string{"no-new-privileges=false"} }, []string{"no-new-privileges"}, "off", "", nil},
		{"seccomp", func(p *project, s *spec) { s.Host.SecurityOpt = append(s.Host.SecurityOpt, "seccomp=unconfined") }, []string{"seccomp"}, "mode 0", "", nil},
		{"root", func(p *project, s *spec) { s.Host.ReadonlyRootfs = false }, []string{"root"}, "writable", "", nil},
		{"privileged", func(p *project, s *spec) { s.Host.Privileged = true }, []string{"capabilities", "mounts", "seccomp"}, "/sys lacks ro", rootless, nil},
		{"bind-added", func(p *project, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeBind, Source: p.other(), Target: "/extra"})
		}, []string{"mounts"}, "/extra is nobody's", "", nil},
		{"bind-in-grant", func(p *project, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeBind, Source: p.other(), Target: "/work/sub"})
		}, []string{"mounts"}, "/work/sub isn't what is at", "", nil},
		{"bind-gone", func(p *project, s *spec) { s.unmount("/work") }, []string{"mounts"}, "/work isn't mounted", "", nil},
		{"bind-swapped", func(p *project, s *spec) { s.mount("/work").Source = p.other() }, []string{"mounts"}, "/work isn't what is at", "", nil},
		{"bind-writable", func(p *project, s *spec) { s.mount("/work").ReadOnly = false }, []string{"mounts"}, "/work is writable", "", nil},
		{"hosts", func(p *project, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeBind, Source: filepath.Join(p.other(), "file"), Target: "/etc/hosts"})
		}, []string{"mounts"}, "/etc/hosts shows", "", nil},
		{"volume-swapped", func(p *project, s *spec) { s.mount("/cache").Source = p.names().of("other") }, []string{"mounts"}, "/cache isn't what is at", "", nil},
		{"volume-read-only", func(p *project, s *spec) { s.mount("/cache").ReadOnly = true }, []string{"mounts"}, "/cache is read-only", "", nil},
		{"tmpfs-exec", func(p *project, s *spec) { s.Host.Tmpfs["/tmp"] = "exec" }, []string{"mounts"}, "/tmp lacks noexec", "", nil},
		{"tmpfs-size", func(p *project, s *spec) { s.Host.Tmpfs["/root"] = "noexec,nosuid,size=8m" }, []string{"mounts"}, "/root lacks size=4096k", "", nil},
		{"tmpfs-hosts", func(p *project, s *spec) {
			delete(s.Host.Tmpfs, "/tmp")
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeBind, Source: "/run", Target: "/tmp"})
		}, []string{"mounts"}, "/tmp is this host's own /", rootless, nil},
		{"tmpfs-gone", func(p *project, s *spec) { delete(s.Host.Tmpfs, "/root") }, []string{"mounts"}, "/root isn't mounted", "", nil},
		{"unmasked", func(p *project, s *spec) { s.Host.MaskedPaths = []string{} }, []string{"mounts"}, "/proc/keys isn't mounted (hidden)", "", nil},
		{"proc-writable", func(p *project, s *spec) { s.Host.ReadonlyPaths = []string{} }, []string{"mounts"}, "/proc/sys isn't mounted", "", nil},
		{"no-init", func(p *project, s *spec) { no := false; s.Host.Init = &no }, []string{"mounts"}, "/sbin/docker-init isn't mounted", "", nil},
		{"device", func(p *project, s *spec) {
			s.Host.Devices = []container.DeviceMapping{{PathOnHost: "/dev/zero", PathInContainer: "/dev/extra", CgroupPermissions: "r"}}
		}, []string{"devices"}, "/dev/extra", rootful, nil},
		{"pid-host", func(p *project, s *spec) { s.Host.PidMode = "host" }, []string{"mounts", "namespaces"}, "pid is the engine's", rootful, nil},
		{"uts-host", func(p *project, s *spec) { s.Host.UTSMode = "host" }, []string{"namespaces"}, "uts is the engine's", "", nil},
		{"ipc-host", func(p *project, s *spec) { s.Host.IpcMode = "host" }, []string{"mounts", "namespaces"}, "ipc is the engine's", rootful, nil},
		{"network-added", func(p *project, s *spec) { s.Endpoints[p.names().of("wide")] = &network.EndpointSettings{} }, []string{"networks", "routes"}, "is in none of its networks", "", nil},
		{"network-gone", func(p *project, s *spec) {
			s.Host.NetworkMode, s.Endpoints = "none", nil
		}, []string{"names", "networks"}, "it has no address on", "", nil},
		{"alias-gone", func(p *project, s *spec) { s.Endpoints[p.names().of("inside")].Aliases = nil }, []string{"names"}, "cell-alias-gone doesn't resolve", "", nil},
		{"memory", func(p *project, s *spec) { s.Host.Memory, s.Host.MemorySwap = 1<<30, 1<<30 }, []string{"limits"}, "memory 1073741824 bytes, not 536870912", rootful, nil},
		{"swap", func(p *project, s *spec) { s.Host.MemorySwap = -1 }, []string{"limits"}, "swap unlimited, not 536870912", rootful, nil},
		{"pids", func(p *project, s *spec) { s.Host.PidsLimit = nil }, []string{"limits"}, "pids unlimited, not 128", rootful, nil},
		{"cpus", func(p *project, s *spec) { s.Host.NanoCPUs = 1e9 }, []string{"limits"}, "cpus 1, not 0.5", rootful, nil},
		{"shared", func(*project, *spec) {}, []string{"namespaces"}, "others are in its net: 1", "", func(t testing.TB, p *project) {
			p.lodge(t, "lodger", container.HostConfig{NetworkMode: container.NetworkMode("container:" + p.names().of("cell-shared"))})
		}},
		{"shared-pid", func(*project, *spec) {}, []string{"capabilities", "namespaces", "no-new-privileges"}, "is in another ipc, mnt, net, uts", "", func(t testing.TB, p *project) {
			p.lodge(t, "watcher", container.HostConfig{PidMode: container.PidMode("container:" + p.names().of("cell-shared-pid")), NetworkMode: "none"})
		}},
		{"exec", func(*project, *spec) {}, []string{"capabilities"}, "(payload): effective", rootless, func(t testing.TB, p *project) {
			p.leave(t, p.names().of("cell-exec"), container.ExecOptions{Cmd: []string{"/payload", "wait"}, Privileged: true})
		}},
	}
}

// cellProject is one with a space for each key.
func cellProject(t testing.TB, l *lab, name string, keys []string) *project {
	t.Helper()
	p := newProject(t, l, name)
	p.itself = staticProgram(t)
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

grant "work" {
  directory = %q
  target    = "/work"
}

grant "cache" {
  volume = "cache"
  target = "/cache"
  access = "rw"
}

space "cell" {
  for_each = toset(%s)
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
  grants   = [grant.work, grant.cache]

  tmpfs "/root" {
    size = "4MiB"
  }
}
`, p.payload(t), p.directory(t, "work"), quotedList(keys)))
	must(t, os.MkdirAll(filepath.Join(p.home, "work", "sub"), 0o755))
	return p
}

// other is a directory that nobody is granted.
func (p *project) other() string { return filepath.Join(p.home, "other") }

func quotedList(words []string) string {
	b, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// verified is what verify --json reports.
type verified struct {
	Spaces []struct {
		Space  string
		Checks []struct{ Check, Verdict, Want, Got string }
	}
	Counts struct{ Holds, Differs, Accepted, Unproven int }
}

func (p *project) verify(t testing.TB, status int, flags ...string) verified {
	t.Helper()
	s := p.want(t, status, append([]string{"verify", "--json"}, flags...)...)
	return readVerified(t, s.out)
}

func readVerified(t testing.TB, out string) verified {
	t.Helper()
	var v verified
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return v
}

// of are the checks of a space that came to a verdict, and what they say.
func (v verified) of(t testing.TB, space, verdict string) (checks []string, text string) {
	t.Helper()
	for _, s := range v.Spaces {
		if s.Space != space {
			continue
		}
		for _, c := range s.Checks {
			if c.Verdict == verdict {
				checks = append(checks, c.Check)
				text += c.Check + ": " + c.Got + "\n"
			}
		}
		return checks, text
	}
	t.Fatalf("%s wasn't looked at", space)
	return nil, ""
}

func TestRootlessVerifyFindsWhatIsWrong(t *testing.T) { testVerify(t, openLab(t, rootless)) }
func TestRootfulVerifyFindsWhatIsWrong(t *testing.T)  { testVerify(t, openLab(t, rootful)) }

// testVerify: of spaces that are as the files say every check holds, and each check
// fails for a container that was made otherwise behind the program's back.
func testVerify(t *testing.T, l *lab) {
	var rows []wrong
	var keys []string
	for _, w := range wrongs() {
		if w.kind == "" || w.kind == l.kind {
			rows = append(rows, w)
			keys = append(keys, w.key)
		}
	}
	p := cellProject(t, l, "verify-wrong", keys)
	must(t, os.WriteFile(filepath.Join(p.directory(t, "other"), "file"), nil, 0o644))
	p.apply(t)
	good := p.verify(t, 0)
	if good.Counts.Differs > 0 || good.Counts.Holds < 10*len(rows) || len(good.Spaces) != len(rows) {
		t.Fatalf("what was just applied: %+v", good.Counts)
	}
	_, err := l.docker.NetworkCreate(t.Context(), p.names().of("wide"), network.CreateOptions{
		EnableIPv6: ptr(true),
		IPAM:       &network.IPAM{Config: []network.IPAMConfig{{Subnet: "fd5a:ce5::/64", Gateway: "fd5a:ce5::1"}}},
	})
	must(t, err)
	for _, w := range rows {
		l.makeWrong(t, p.names().of("cell-"+w.key), func(s *spec) { w.change(p, s) })
	}
	for _, w := range rows {
		if w.beside != nil {
			w.beside(t, p)
		}
	}

	found := p.verify(t, 2)
	for _, w := range rows {
		checks, text := found.of(t, fmt.Sprintf("space.cell[%q]", w.key), string(reconcile.VerdictDiffers))
		slices.Sort(checks)
		if !slices.Equal(checks, w.differs) || !strings.Contains(text, w.says) {
			t.Errorf("%s: differs in %q, want %q and %q\n%s", w.key, checks, w.differs, w.says, text)
		}
	}
	p.noProbes(t)
}

func ptr[T any](v T) *T { return &v }

// lodge runs a container that isn't the project's.
func (p *project) lodge(t testing.TB, name string, host container.HostConfig) {
	t.Helper()
	image := p.lab.inspect(t, p.names().of("cell-good")).Image
	p.lab.run(t, p.names().of(name), container.Config{Image: image, Entrypoint: []string{"/payload", "wait"}}, host)
}

// makeWrong replaces a container by another one of its name.
func (l *lab) makeWrong(t testing.TB, name string, change func(*spec)) {
	t.Helper()
	s := specOf(l.inspect(t, name))
	change(&s)
	l.remove(t, name)
	l.create(t, name, s, true)
}

// leave starts a command in a container and doesn't wait for it.
func (l *lab) leave(t testing.TB, name string, o container.ExecOptions) {
	t.Helper()
	made, err := l.docker.ContainerExecCreate(t.Context(), name, o)
	must(t, err)
	must(t, l.docker.ContainerExecStart(t.Context(), made.ID, container.ExecStartOptions{Detach: true}))
}

// noProbes fails where a probe of the project is left.
func (p *project) noProbes(t testing.TB) {
	t.Helper()
	lines, err := p.everything(p.name)
	must(t, err)
	for _, line := range lines {
		if strings.Contains(line, reconcile.SuffixProbe) {
			t.Errorf("left behind: %s", line)
		}
	}
}

// TestRootlessVerifyPorts: a published port answers where it is published, and nowhere
// else on this host.
func TestRootlessVerifyPorts(t *testing.T) {
	l := openLab(t, rootless)
	p := newProject(t, l, "verify-ports")
	p.itself = staticProgram(t)
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

network "front" {
  internal = false
  reason   = "it publishes"
}

space "web" {
  image    = image.payload
  command  = ["/payload", "greet", "0.0.0.0:80"]
  networks = [network.front]

  publish {
    host      = "127.0.0.1"
    port      = 17431
    container = 80
  }
  publish {
    host      = "127.0.0.1"
    port      = 17432
    container = 53
    protocol  = "udp"
  }
}
`, p.payload(t)))
	p.apply(t)
	if v := p.verify(t, 0); v.Counts.Differs > 0 {
		t.Fatalf("%+v", v)
	}
	for _, c := range []struct {
		host  string
		says  []string
		count int
	}{
		{"0.0.0.0", []string{"17431 answers too", "17432 answers too"}, 2},
		{"", []string{"127.0.0.1:17431 doesn't answer", "127.0.0.1:17432 doesn't answer"}, 2},
	} {
		l.makeWrong(t, p.names().of("web"), func(s *spec) {
			for port, bindings := range s.Host.PortBindings {
				for i := range bindings {
					bindings[i].HostIP = c.host
				}
				if c.host == "" {
					delete(s.Host.PortBindings, port)
				}
			}
		})
		checks, text := p.verify(t, 2).of(t, "space.web", "differs")
		if len(checks) != c.count || checks[0] != "ports" || !strings.Contains(text, c.says[0]) || !strings.Contains(text, c.says[1]) {
			t.Errorf("published on %q: %q\n%s", c.host, checks, text)
		}
	}
}

// TestRootlessVerifyProxy: a space with a list has a proxy that answers, where one runs.
// This release runs none: the one here stands in for it.
func TestRootlessVerifyProxy(t *testing.T) {
	l := openLab(t, rootless)
	p := newProject(t, l, "verify-proxy")
	p.itself = staticProgram(t)
	files := p.head() + fmt.Sprintf(`
image "payload" {
  binary = %q
}

space "web" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.agents]
}
`, p.payload(t))
	p.write(t, "main.hcl", files+`
network "agents" {
  egress = "none"
}
`)
	p.apply(t)
	p.write(t, "main.hcl", files+`
network "agents" {}

network "uplink" {
  uplink = true
}

egress "agents" {
  network = network.agents
  allow "api.example.com:443" {
    reason = "a test"
  }
}
`)
	in := l.inspect(t, p.names().of("web"))
	labels := map[string]string{
		reconcile.LabelProject: p.name, reconcile.LabelStore: in.Config.Labels[reconcile.LabelStore],
		reconcile.LabelKind: string(reconcile.KindEgress), reconcile.LabelName: "agents",
	}
	stand := func(port string) {
		name := p.names().of("egress-agents")
		l.run(t, name, container.Config{Image: in.Image, Entrypoint: []string{"/payload", "greet", "0.0.0.0:" + port}, Labels: labels},
			container.HostConfig{NetworkMode: container.NetworkMode(p.names().of("agents"))})
		until(t, "the proxy listens", func() bool { return strings.Contains(l.log(t, name), "listening") })
	}
	stand("3128")
	if checks, text := p.verify(t, 0, "--space", "space.web").of(t, "space.web", "holds"); !slices.Contains(checks, "proxy") {
		t.Errorf("the proxy wasn't asked: %s", text)
	}
	l.remove(t, p.names().of("egress-agents"))
	stand("3129")
	if checks, text := p.verify(t, 2, "--space", "space.web").of(t, "space.web", "differs"); !slices.Equal(checks, []string{"proxy"}) || !strings.Contains(text, "refused") {
		t.Errorf("%q\n%s", checks, text)
	}
}

// TestRootfulVerifyForwarding: a container that isn't told to ask nobody has its names
// resolved through the host on engines before 25.0.5 (CVE-2024-29018). The engine is one
// of our own, because of its resolv.conf; it is in a network namespace of its own, and
// so the program is run there as well.
func TestRootfulVerifyForwarding(t *testing.T) {
	l, dir := engineWith(t, rootful)
	resolv := filepath.Join(dir, "resolv.conf")
	must(t, os.WriteFile(resolv, []byte("nameserver 127.0.0.1\n"), 0o644))
	first, err := os.ReadFile(filepath.Join(dir, "init.pid"))
	must(t, err)
	bind := exec.Command("nsenter", "-m", "-t", strings.TrimSpace(string(first)), "mount", "--bind", resolv, "/etc/resolv.conf")
	if out, err := bind.CombinedOutput(); err != nil {
		t.Fatalf("cannot give the engine a resolver: %v\n%s", err, out)
	}
	p := cellProject(t, l, "verify-names", []string{"web"})
	p.apply(t)
	image := l.inspect(t, p.names().of("cell-web")).Image
	resolver := p.names().of("resolver")
	l.run(t, resolver, container.Config{Image: image, Entrypoint: []string{"/payload", "serve-dns", "127.0.0.1:53"}}, container.HostConfig{NetworkMode: "host"})
	until(t, "the resolver listens", func() bool { return strings.Contains(l.log(t, resolver), "listening") })

	verify := func() (verified, error) {
		return p.verifyIn(t, strings.TrimSpace(string(first)))
	}
	v, err := verify()
	must(t, err)
	if log := l.log(t, resolver); v.Counts.Differs > 0 || strings.Contains(log, "invalid") {
		t.Errorf("a space as it should be asks the host's resolver: %+v\n%s", v, log)
	}
	// From where the engine is, its gateway leads to a listener of ours.
	if checks, text := v.of(t, `space.cell["web"]`, "accepted"); !slices.Contains(checks, "gateway") || !strings.Contains(text, "reached a listener of this host") {
		t.Errorf("the gateway wasn't found to be the host: %q\n%s", checks, text)
	}
	l.makeWrong(t, p.names().of("cell-web"), func(s *spec) { s.Host.DNS = nil })
	v, err = verify()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 {
		t.Errorf("%v", err)
	}
	if checks, text := v.of(t, `space.cell["web"]`, "differs"); !slices.Equal(checks, []string{"forwarding"}) || !strings.Contains(text, "192.0.2.1") {
		t.Errorf("%q\n%s", checks, text)
	}
}

// verifyIn runs the program's own file in the network namespace of a process.
func (p *project) verifyIn(t testing.TB, pid string, options ...string) (verified, error) {
	t.Helper()
	args := append(append([]string{"-n", "-t", pid}, options...), p.itself, "-C", p.dir, "verify", "--json")
	c := exec.Command("nsenter", args...)
	c.Env = append(os.Environ(), "HOME="+p.home, "SPACES_DATA_ROOT="+p.data)
	c.Stderr = os.Stderr
	out, err := c.Output()
	return readVerified(t, string(out)), err
}

// TestRootfulVerifyUsers: on an engine that gives its containers users of their own, one
// that keeps the host's is told.
func TestRootfulVerifyUsers(t *testing.T) {
	l, _ := engineWith(t, rootful, "--userns-remap=spaces-engine")
	p := cellProject(t, l, "verify-users", []string{"web"})
	must(t, os.Chmod(p.home, 0o755))
	p.apply(t)
	if v := p.verify(t, 0); v.Counts.Differs > 0 {
		t.Fatalf("%+v", v)
	}
	l.makeWrong(t, p.names().of("cell-web"), func(s *spec) { s.Host.UsernsMode = "host" })
	checks, text := p.verify(t, 2).of(t, `space.cell["web"]`, "differs")
	// Its network namespace is the host's users', whom the probe isn't one of.
	if !slices.Equal(checks, []string{"user-ids", "networks"}) || !strings.Contains(text, "user 0 in it is 0 on this machine") {
		t.Errorf("%q\n%s", checks, text)
	}
}

// TestRootlessVerifyReachesTheHost: a network that isn't internal leads out of the engine,
// to this host's own addresses as to any other, and a probe finds a listener there. The
// engines of the tests have no route out, so it is given one for as long.
func TestRootlessVerifyReachesTheHost(t *testing.T) {
	l := openLab(t, rootless)
	p := cellProject(t, l, "verify-host", []string{"web"})
	p.apply(t)
	if v := p.verify(t, 0); v.Counts.Differs > 0 {
		t.Fatalf("%+v", v)
	}
	inside := enginePID(t, l)
	ip := func(args ...string) error {
		enter := []string{"-t", inside, "-U", "--preserve-credentials", "-n", "ip"}
		out, err := exec.Command("nsenter", append(enter, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	must(t, ip("route", "replace", "10.0.2.0/24", "dev", "tap0"))
	must(t, ip("route", "replace", "default", "via", "10.0.2.2"))
	t.Cleanup(func() {
		must(t, ip("route", "del", "default"))
		must(t, ip("route", "del", "10.0.2.0/24"))
	})
	if v := p.verify(t, 0); v.Counts.Differs > 0 {
		t.Fatalf("an internal network leads out: %+v", v)
	}
	// The same, but for one word: its network isn't internal.
	name, inner := p.names().of("cell-web"), p.names().of("inside")
	s := specOf(l.inspect(t, name))
	was, err := l.docker.NetworkInspect(t.Context(), inner, network.InspectOptions{})
	must(t, err)
	l.remove(t, name)
	must(t, l.docker.NetworkRemove(t.Context(), inner))
	_, err = l.docker.NetworkCreate(t.Context(), inner, network.CreateOptions{Labels: was.Labels})
	must(t, err)
	l.create(t, name, s, true)
	checks, text := p.verify(t, 2).of(t, `space.cell["web"]`, "differs")
	if !slices.Equal(checks, []string{"host"}) || !strings.Contains(text, "reached a listener of this host") {
		t.Errorf("%q\n%s", checks, text)
	}
}

// enginePID is the number here of a rootless engine's own process.
func enginePID(t testing.TB, l *lab) string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, e := range entries {
		name, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		line, bad := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bad == nil && string(name) == "dockerd\n" && strings.Contains(string(line), l.endpoint) {
			return e.Name()
		}
	}
	t.Fatal("the engine's process isn't found")
	return ""
}

// TestRootlessVerifyKilled: a verification that is killed leaves no probe behind that
// runs, and what it did not come to start goes with the next one or the next apply.
func TestRootlessVerifyKilled(t *testing.T) {
	l := openLab(t, rootless)
	p := cellProject(t, l, "verify-killed", []string{"web"})
	p.apply(t)
	c := exec.Command(p.itself, "-C", p.dir, "verify")
	c.Env = append(os.Environ(), "HOME="+p.home, "SPACES_DATA_ROOT="+p.data)
	must(t, c.Start())
	probe := p.names().of("cell-web") + reconcile.SuffixProbe
	until(t, "the probe runs", func() bool {
		in, err := l.docker.ContainerInspect(t.Context(), probe)
		return err == nil && in.State.Running
	})
	must(t, c.Process.Kill())
	_ = c.Wait()
	until(t, "the probe is gone", func() bool {
		_, err := l.docker.ContainerInspect(t.Context(), probe)
		return err != nil
	})
	p.settled(t)

	// Killed before it was started.
	in := l.inspect(t, p.names().of("cell-web"))
	labels := map[string]string{reconcile.LabelKind: string(reconcile.KindProbe)}
	for _, name := range []string{reconcile.LabelProject, reconcile.LabelStore, reconcile.LabelName, reconcile.LabelKey, reconcile.LabelFormat} {
		labels[name] = in.Config.Labels[name]
	}
	left := func() {
		_, err := l.docker.ContainerCreate(t.Context(), &container.Config{Image: in.Image, Labels: labels, Cmd: []string{"/payload"}},
			&container.HostConfig{NetworkMode: container.NetworkMode("container:" + in.ID)}, nil, nil, probe)
		must(t, err)
	}
	left()
	if s := p.want(t, 0, "plan"); !strings.Contains(s.out, "- discard "+probe) || strings.Contains(s.out, "± replace") {
		t.Errorf("the plan doesn't begin with it\n%s", s)
	}
	if v := p.verify(t, 0); v.Counts.Differs > 0 {
		t.Errorf("%+v", v)
	}
	p.noProbes(t)
	left()
	p.apply(t)
	p.settled(t)
	left()
	p.want(t, 0, "destroy", "--auto-approve")
	p.noProbes(t)
}

// TestRootlessVerifyIsHardened: the probe is what the program says that it is.
func TestRootlessVerifyIsHardened(t *testing.T) {
	l := openLab(t, rootless)
	p := cellProject(t, l, "verify-probe", []string{"web"})
	p.apply(t)
	c := exec.Command(p.itself, "-C", p.dir, "verify")
	c.Env = append(os.Environ(), "HOME="+p.home, "SPACES_DATA_ROOT="+p.data)
	must(t, c.Start())
	probe := p.names().of("cell-web") + reconcile.SuffixProbe
	var in container.InspectResponse
	until(t, "the probe runs", func() bool {
		var err error
		in, err = l.docker.ContainerInspect(t.Context(), probe)
		return err == nil && in.State.Running
	})
	must(t, c.Wait())
	h := in.HostConfig
	if !h.ReadonlyRootfs || !h.AutoRemove || len(h.CapAdd) > 0 || !slices.Equal(h.CapDrop, []string{"ALL"}) || len(h.Mounts)+len(h.Binds) > 0 ||
		!slices.Equal(h.SecurityOpt, []string{"no-new-privileges=true"}) || !strings.HasPrefix(string(h.NetworkMode), "container:") {
		t.Errorf("it isn't hardened: %+v", h)
	}
	if in.Config.Labels[reconcile.LabelKind] != string(reconcile.KindProbe) {
		t.Errorf("labels %v", in.Config.Labels)
	}
	p.settled(t)
}

// TestRootlessVerifyStopped: a space that is asked for and has no process proves nothing.
func TestRootlessVerifyStopped(t *testing.T) {
	l := openLab(t, rootless)
	p := cellProject(t, l, "verify-stopped", []string{"web"})
	if checks, text := p.verify(t, 2).of(t, `space.cell["web"]`, "differs"); !slices.Equal(checks, []string{"running"}) || !strings.Contains(text, "missing") {
		t.Errorf("%q\n%s", checks, text)
	}
	p.apply(t)
	must(t, l.docker.ContainerStop(t.Context(), p.names().of("cell-web"), container.StopOptions{}))
	if checks, text := p.verify(t, 2).of(t, `space.cell["web"]`, "differs"); !slices.Equal(checks, []string{"running"}) || !strings.Contains(text, "exited") {
		t.Errorf("%q\n%s", checks, text)
	}
}
