package places

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
	"spaces/schema"
)

// differing are the paths of the fields in which two containers differ, whoever fills
// them.
func differing(asked, got reconcile.Container) []string {
	paths, filled := reconcile.Differences(asked, got)
	for _, f := range filled {
		paths = append(paths, f.Path)
	}
	return paths
}

// explain says what two containers have at some paths.
func explain(paths []string, asked, got reconcile.Container) string {
	var out strings.Builder
	at := func(c reconcile.Container, path string) string {
		for _, f := range c.Fields() {
			if f.Path == path {
				return strconv.Quote(f.Value)
			}
		}
		return "nothing"
	}
	for _, p := range paths {
		fmt.Fprintf(&out, "%s: asked %s, got %s\n", p, at(asked, p), at(got, p))
	}
	return out.String()
}

// randomContainer is any container that the files can ask for, less its name, labels
// and image.
func randomContainer(r *rand.Rand, e reconcile.Engine, networks []string) reconcile.Container {
	c := reconcile.Container{
		Env:             map[string]reconcile.EnvValue{},
		Mounts:          map[string]reconcile.Mount{},
		Tmpfs:           map[string]string{"/tmp": "noexec,nosuid"},
		Publish:         map[string]string{},
		Networks:        map[string]reconcile.Endpoint{},
		ReadOnlyRoot:    flip(r),
		Init:            flip(r),
		NoNewPrivileges: flip(r),
		Seccomp:         pick(r, seccompDefault, seccompUnconfined),
		CapDrop:         []string{"ALL"},
		LogDriver:       "json-file",
		LogOptions:      map[string]string{"max-size": "10m", "max-file": "3"},
		StopSignal:      pick(r, "", "SIGUSR1"),
		User:            pick(r, "", "1000", "0:0"),
		WorkingDir:      pick(r, "", "/", "/run"),
	}
	if flip(r) {
		c.Entrypoint = []string{"/wait"}
		c.Command = []string{"a b", "", `"quoted"`}
	}
	for i := range r.IntN(4) {
		c.Env[fmt.Sprint("NAME", i)] = reconcile.EnvValue{Value: pick(r, "", "v", "a=b", "spaced out", "ü\n")}
	}
	if flip(r) {
		c.Tmpfs["/var/cache"] = pick(r, "", "mode=755,noexec,size=1048576")
	}
	if flip(r) {
		c.Mounts["/mnt"] = reconcile.Mount{Type: "bind", Source: "/usr/share", Writable: flip(r)}
	}
	if flip(r) {
		c.StopTimeout = new(r.IntN(20))
	}
	if flip(r) {
		c.CapAdd = []string{"CHOWN", "NET_BIND_SERVICE"}
		c.GroupAdd = []string{"27", "4"}
		c.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
		c.Devices = []string{"/dev/null:/dev/null:rwm"}
	}
	c.Healthcheck = randomHealthcheck(r)
	c.Restart = pick(r,
		schema.Restart{Name: "no"}, schema.Restart{Name: "unless-stopped"},
		schema.Restart{Name: "on-failure"}, schema.Restart{Name: "on-failure", MaxRetries: 3})
	randomLimits(r, e, &c)
	randomNetworks(r, networks, &c)
	return c
}

func randomHealthcheck(r *rand.Rand) *reconcile.Healthcheck {
	return pick(r, nil,
		&reconcile.Healthcheck{Test: []string{"NONE"}},
		&reconcile.Healthcheck{Test: []string{"CMD", "/wait"}, Interval: time.Hour, Retries: 2},
		&reconcile.Healthcheck{Test: []string{"CMD-SHELL", "x"}, Interval: time.Hour, Timeout: time.Minute, StartPeriod: time.Second})
}

func randomLimits(r *rand.Rand, e reconcile.Engine, c *reconcile.Container) {
	held := func(limit string) bool { return flip(r) && !slices.Contains(e.Unenforced, limit) }
	if held(limitMemory) {
		c.Memory = 64 << 20
		if !slices.Contains(e.Unenforced, limitSwap) {
			c.MemorySwap = c.Memory
		}
	}
	if held(limitPIDs) {
		c.PIDs = 64
	}
	if held(limitCPUs) {
		c.NanoCPUs = 5e8
	}
}

func randomNetworks(r *rand.Rand, names []string, c *reconcile.Container) {
	for _, n := range names {
		if flip(r) {
			c.Networks[n] = reconcile.Endpoint{Aliases: pick(r, nil, []string{"a", "b"})}
		}
	}
	if len(c.Networks) == 0 {
		c.NetworkMode = "none"
		c.Networks["none"] = reconcile.Endpoint{}
		return
	}
	c.NetworkMode = slices.Sorted(maps.Keys(c.Networks))[0]
	c.DNS = pick(r, nil, []string{"127.0.0.1"})
	c.Publish = pick(r, map[string]string{},
		map[string]string{"8080/tcp": "127.0.0.1:0"},
		map[string]string{"53/udp": "127.0.0.1:0,[::1]:0"})
}

func flip(r *rand.Rand) bool { return r.IntN(2) == 0 }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// echo is what an engine makes of a create, as far as it is known to: defaults filled
// in, ids given, mount points made.
func echo(config *container.Config, host *container.HostConfig, c reconcile.Container, d defaults) container.InspectResponse {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	config.Hostname = id[:shortIDLength]
	host.IpcMode, host.ShmSize, host.Runtime = "private", 64<<20, d.runtime
	host.CgroupnsMode = container.CgroupnsMode(d.cgroupns)
	host.MaskedPaths, host.ReadonlyPaths = maskedPaths(), readonlyPaths()
	host.OomKillDisable = new(bool)
	in := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: id, Name: "/" + c.Name, Image: c.ImageID, HostConfig: host,
			State: &container.State{Status: "created"},
		},
		Config:          config,
		NetworkSettings: &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{}},
	}
	for _, m := range host.Mounts {
		point := container.MountPoint{
			Type: m.Type, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly, Propagation: mount.PropagationRPrivate,
		}
		if m.Type == mount.TypeVolume {
			point.Name, point.Source, point.Driver, point.Propagation = m.Source, "/volumes/"+m.Source, localDriver, ""
		}
		in.Mounts = append(in.Mounts, point)
	}
	for name, e := range c.Networks {
		s := endpointSettings(e)
		if !isPredefined(name) {
			s.Aliases = append(s.Aliases, id[:shortIDLength])
		}
		in.NetworkSettings.Networks[name] = s
	}
	return in
}

func TestContainerRoundTrip(t *testing.T) {
	d := defaults{cgroupns: "host", runtime: "runc", seccomp: seccompDefault}
	k := newConverter(reconcile.Engine{}, d, world{})
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		asked := randomContainer(r, reconcile.Engine{}, []string{"p-one", "p-two"})
		asked.Name, asked.Image, asked.ImageID = "p-web", "p-image:1", "sha256:abc"
		asked.Labels = map[string]string{reconcile.LabelProject: "p"}
		if flip(r) {
			asked.Mounts["/cache"] = reconcile.Mount{Type: "volume", Source: "p-cache", Writable: true}
		}
		config, host, err := createConfig(asked)
		if err != nil {
			t.Fatal(err)
		}
		got := k.container(echo(config, host, asked, d))
		got.Excess = dropImage(got, imageExtras{})
		if differ := differing(asked, got); len(differ) > 0 {
			t.Fatalf("seed %d: %s", seed, explain(differ, asked, got))
		}
	}
}

func TestCreateConfigRefusesWhatItCannotSay(t *testing.T) {
	for name, c := range map[string]reconcile.Container{
		"mount options": {Mounts: map[string]reconcile.Mount{"/a": {Type: "bind", Source: "/b", Options: "non-recursive"}}},
		"mount type":    {Mounts: map[string]reconcile.Mount{"/a": {Type: "tmpfs"}}},
		"port":          {Publish: map[string]string{"80/tcp": "80"}},
		"device":        {Devices: []string{"/dev/kvm"}},
	} {
		if _, _, err := createConfig(c); err == nil || !strings.HasPrefix(err.Error(), "cannot ask for container") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
