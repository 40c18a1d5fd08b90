//go:build engine

package testscripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRootlessImageDefaults(t *testing.T) { testImageDefaults(t, openLab(t, rootless), "defaults") }

func TestRootfulImageDefaults(t *testing.T) { testImageDefaults(t, openLab(t, rootful), "defaults") }

// fullImage is a Dockerfile that says all that an image can say of its containers.
const fullImage = `FROM scratch
COPY payload /payload
ENV ONE=1 TWO="2 and more"
LABEL com.example.one=1
USER 1000:1000
WORKDIR /work
VOLUME ["/volume", "/work/volume"]
EXPOSE 99 98/udp
HEALTHCHECK --interval=20s --timeout=3s --retries=5 CMD ["/payload", "ok"]
STOPSIGNAL SIGINT
SHELL ["/payload", "-c"]
ONBUILD ENV THREE=3
ENTRYPOINT ["/payload"]
CMD ["wait"]
`

// testImageDefaults: what an image says of its containers is neither in the files nor a
// difference (kreuzwerker/terraform-provider-docker#14), whether it is made here or only
// referred to, and whether a space says nothing or some of it again.
func testImageDefaults(t *testing.T, l *lab, name string) *project {
	t.Helper()
	p := newProject(t, l, name)
	image := p.directory(t, "image")
	program, err := payload()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(image, "payload"), program, 0o755))
	must(t, os.WriteFile(filepath.Join(image, "Dockerfile"), []byte(fullImage), 0o644))
	lines := strings.Split(strings.TrimSpace(fullImage), "\n")[2:]
	l.build(t, p.names().of("referred:1"), lines...)
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "made" {
  build {
    context = %q
  }
}

image "referred" {
  reference = %q
}

network "inside" {
  egress = "none"
}

space "silent" {
  image    = image.made
  networks = [network.inside]
}

space "referring" {
  image    = image.referred
  networks = [network.inside]
}

# An empty list is no list (ansible-collections/community.docker#1080).
space "empty" {
  image      = image.referred
  entrypoint = []
  command    = []
  env        = {}
  networks   = [network.inside]
}

space "telling" {
  image    = image.made
  command  = ["wait", "more"]
  user     = "0:0"
  env      = { ONE = "other" }
  networks = [network.inside]
  tmpfs    = ["/volume"]

  healthcheck {
    interval = "10s"
  }
}

space "disabled" {
  image = image.made

  healthcheck {
    disable = true
  }
}
`, image, p.names().of("referred:1")))
	p.apply(t)
	p.settledAlways(t)
	before := p.lab.inspect(t, p.names().of("empty")).ID
	files, err := os.ReadFile(filepath.Join(p.dir, "main.hcl"))
	must(t, err)
	p.write(t, "main.hcl", strings.Replace(string(files), `command    = []`, `command    = ["wait", "x"]`, 1))
	if s := p.want(t, 2, "plan", "--detailed-exitcode"); !strings.Contains(s.out, "± replace space.empty") {
		t.Errorf("a command over the image's doesn't replace\n%s", s)
	}
	p.apply(t)
	p.settled(t)
	if p.lab.inspect(t, p.names().of("empty")).ID == before {
		t.Error("the space with another command was not replaced")
	}
	return p
}

// settledAlways plans often: the plan stays empty and its bytes the same.
func (p *project) settledAlways(t testing.TB) {
	t.Helper()
	const times = 20
	text, record := p.settled(t).out, p.want(t, 0, "plan", "--detailed-exitcode", "--json").out
	for range times / 2 {
		if again := p.settled(t).out; again != text {
			t.Fatalf("an empty plan isn't what it was:\n%s\n%s", text, again)
		}
		if again := p.want(t, 0, "plan", "--detailed-exitcode", "--json").out; again != record {
			t.Fatalf("an empty plan isn't what it was:\n%s\n%s", record, again)
		}
	}
	p.want(t, 0, "drift")
}

// engineWith starts an engine of one's own, which takes root.
func engineWith(t *testing.T, kind string, args ...string) (l *lab, dir string) {
	t.Helper()
	engines := need(t, "SPACES_TEST_ENGINES")
	// Sockets have short paths, which t.TempDir hasn't.
	dir, err := os.MkdirTemp("/tmp", "spe")
	must(t, err)
	must(t, os.Remove(dir))
	t.Cleanup(func() {
		if out, err := exec.Command(engines, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("cannot stop the engine: %v\n%s", err, out)
		}
	})
	start := exec.Command(engines, append([]string{"start", kind, dir}, args...)...)
	start.Stderr = os.Stderr
	endpoint, err := start.Output()
	if err != nil {
		t.Fatalf("cannot start an engine: %v", err)
	}
	return labAt(t, kind, strings.TrimSpace(string(endpoint))), dir
}

// TestRootfulEngineDefaults: what an engine adds to every container by its own
// configuration is no difference either
// (kreuzwerker/terraform-provider-docker#873), and after the engine was restarted its
// spaces are back and are as they were. It is for root, which starts engines.
func TestRootfulEngineDefaults(t *testing.T) {
	logging := []string{
		"--log-driver=json-file", "--log-opt", "max-size=100m", "--log-opt", "max-file=7",
		"--log-opt", "compress=true", "--log-opt", "labels=com.example.one",
	}
	process := []string{
		"--default-ulimit", "nofile=1024:2048", "--init", "--default-shm-size", "128m", "--default-ipc-mode", "shareable",
	}
	network := []string{
		"--dns", "10.0.0.9", "--default-address-pool", "base=10.77.0.0/16,size=24", "--default-ipc-mode", "private",
		"--no-new-privileges",
	}
	for _, c := range []struct {
		name string
		kind string
		args []string
	}{
		{"another log driver", rootful, []string{"--log-driver=local", "--log-opt", "max-size=5m"}},
		{"log options and processes", rootful, append(logging, process...)},
		{"network", rootful, network},
		{"all", rootless, append(append(logging, process...), network[:4]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, dir := engineWith(t, c.kind, c.args...)
			p := testImageDefaults(t, l, "own")
			want := p.snapshot(t)
			if out, err := exec.Command(need(t, "SPACES_TEST_ENGINES"), "restart", dir).CombinedOutput(); err != nil {
				t.Fatalf("cannot restart the engine: %v\n%s", err, out)
			}
			for _, space := range []string{"silent", "referring", "empty", "telling", "disabled"} {
				until(t, space+" is back", func() bool {
					in, err := p.docker.ContainerInspect(t.Context(), p.names().of(space))
					return err == nil && in.State.Running
				})
			}
			p.settledAlways(t)
			if differs := want.differs(p.snapshot(t)); len(differs) > 0 {
				t.Errorf("after the restart the engine has\n  %s", strings.Join(differs, "\n  "))
			}
			// What the engine adds by itself hides nothing that somebody else adds.
			p.recreate(t, "silent", true, func(_ names, s *spec) { s.Host.ShmSize = 8 * mib })
			if found := p.drift(t); len(found) != 1 || found[0] != "space.silent HostConfig.ShmSize [in reality]" {
				t.Errorf("drift reports %q", found)
			}
			p.apply(t)
			p.settled(t)
		})
	}
}
