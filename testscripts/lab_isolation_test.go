//go:build engine

package testscripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

// inside is a project of two spaces on an internal network.
func insideProject(t testing.TB, l *lab, name string) *project {
	t.Helper()
	p := newProject(t, l, name)
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

space "web" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
}

space "peer" {
  image    = image.payload
  command  = ["/payload", "wait"]
  networks = [network.inside]
}
`, p.payload(t)))
	return p
}

// TestRootfulNoNameLeavesAnInternalNetwork: on engines before 25.0.5, whose resolver is
// on the host's loopback, every name that a container on an internal network asks for
// goes there, and so does what it wants to tell the world (CVE-2024-29018). A space's
// doesn't. The engine is one of our own, because of its resolv.conf.
func TestRootfulNoNameLeavesAnInternalNetwork(t *testing.T) {
	l, dir := engineWith(t, rootful)
	resolv := filepath.Join(dir, "resolv.conf")
	must(t, os.WriteFile(resolv, []byte("nameserver 127.0.0.1\n"), 0o644))
	pid, err := os.ReadFile(filepath.Join(dir, "init.pid"))
	must(t, err)
	bind := exec.Command("nsenter", "-m", "-t", strings.TrimSpace(string(pid)), "mount", "--bind", resolv, "/etc/resolv.conf")
	if out, err := bind.CombinedOutput(); err != nil {
		t.Fatalf("cannot give the engine a resolver: %v\n%s", err, out)
	}
	p := insideProject(t, l, "names")
	p.apply(t)
	p.settled(t)

	resolver := p.names().of("resolver")
	image := p.lab.inspect(t, p.names().of("web")).Image
	l.run(t, resolver, container.Config{Image: image, Entrypoint: []string{"/payload", "serve-dns", "127.0.0.1:53"}}, container.HostConfig{NetworkMode: "host"})
	until(t, "the resolver listens", func() bool { return strings.Contains(l.log(t, resolver), "listening") })

	// That the resolver is asked at all: by a container like any other.
	plain := p.names().of("plain")
	_, err = l.docker.NetworkCreate(t.Context(), plain, network.CreateOptions{Internal: true})
	must(t, err)
	l.run(t, plain, container.Config{Image: image, Entrypoint: []string{"/payload", "wait"}}, container.HostConfig{NetworkMode: container.NetworkMode(plain)})
	if out, status := l.exec(t, plain, "/payload", "resolve", "leaks.example.test"); status != 0 || !strings.Contains(l.log(t, resolver), "leaks") {
		t.Fatalf("no query came out of a plain container, so that none comes out of a space proves nothing: %s\n%s", out, l.log(t, resolver))
	}

	web := p.names().of("web")
	if out, status := l.exec(t, web, "/payload", "resolve", "secret.example.test"); status == 0 {
		t.Errorf("a space on an internal network resolves a name of the world: %s", out)
	}
	if log := l.log(t, resolver); strings.Contains(log, "secret") {
		t.Errorf("the host's resolver was asked from an internal network:\n%s", log)
	}
	if out, status := l.exec(t, web, "/payload", "resolve", "peer"); status != 0 {
		t.Errorf("a space doesn't find its peer: %s", out)
	}
}

// TestRootfulInternalNetworkReachesTheHost is the reason of network-not-isolated: on a
// rootful engine before 28, the gateway's address of an internal network is the host's.
func TestRootfulInternalNetworkReachesTheHost(t *testing.T) {
	l := openLab(t, rootful)
	p := insideProject(t, l, "gateway")
	files, err := os.ReadFile(filepath.Join(p.dir, "main.hcl"))
	must(t, err)
	accept := "accept \"network-not-isolated\" {\n  reason = \"a test\"\n}\n"
	if !strings.Contains(string(files), accept) {
		t.Fatal("the files don't accept it to begin with")
	}
	p.write(t, "main.hcl", strings.Replace(string(files), accept, "", 1))
	for _, args := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"drift"}} {
		if s := p.want(t, 3, args...); !strings.Contains(s.err, "network-not-isolated") {
			t.Errorf("refused for another reason\n%s", s)
		}
	}
	if left := p.snapshot(t); len(left) > 0 {
		t.Errorf("a refused apply made %v", sortedKeys(left))
	}

	p.write(t, "main.hcl", string(files))
	if s := p.want(t, 0, "plan"); !strings.Contains(s.out, "network-not-isolated") {
		t.Errorf("what is accepted doesn't stand in the plan\n%s", s)
	}
	p.apply(t)
	p.settled(t)
	in := p.lab.inspect(t, p.names().of("web"))
	inside, err := l.docker.NetworkInspect(t.Context(), p.names().of("inside"), network.InspectOptions{})
	must(t, err)
	// The host's network is the engine's here.
	host := p.names().of("host")
	l.run(t, host, container.Config{Image: in.Image, Entrypoint: []string{"/payload", "greet", "0.0.0.0:7399"}}, container.HostConfig{NetworkMode: "host"})
	until(t, "the host's service listens", func() bool { return strings.Contains(l.log(t, host), "listening") })
	if out, status := l.exec(t, in.ID, "/payload", "dial", "tcp", inside.IPAM.Config[0].Gateway+":7399"); status != 0 || out != "hello" {
		t.Errorf("an internal network doesn't reach the host, so there is nothing to refuse: %s", out)
	}
}
