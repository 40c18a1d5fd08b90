//go:build engine

package places

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"
	"github.com/docker/go-units"

	"spaces/reconcile"
)

// request is a create as the plain API has it.
type request struct {
	config     *container.Config
	host       *container.HostConfig
	networking *network.NetworkingConfig
}

func TestRootlessDrift(t *testing.T) { drifts(t, rootlessLab(t)) }
func TestRootfulDrift(t *testing.T)  { drifts(t, rootfulLab(t)) }

// drifts makes the same container once for each thing that someone could have made
// otherwise with the plain API, and looks that exactly this is told, by its field.
func drifts(t *testing.T, l *lab) {
	plain := l.image("plain", "EXPOSE 7/tcp", "VOLUME /data")
	networks := []string{l.network("one"), l.network("two")}
	other := l.name("other")
	l.must(l.docker.ContainerStart(t.Context(), l.create(reconcile.Container{Name: other, Image: plain, NetworkMode: "bridge"}), container.StartOptions{}))
	_, err := l.docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: l.name("volume")})
	l.must(err)

	asked := typicalContainer(l.name("space"), plain, networks[:1])
	asked.Labels = l.labels(reconcile.KindSpace)
	asked.Healthcheck = &reconcile.Healthcheck{Test: []string{"CMD", "/wait"}, Interval: 1e12}
	asked = reconcile.WithImage(asked, l.inspect(plain).Images[plain])
	base := asked.NetworkMode
	detached := []string{`network["` + base + `"]`, `network["` + base + `"].aliases`}

	for name, c := range map[string]struct {
		change func(request)
		want   []string
	}{
		"nothing":           {func(request) {}, nil},
		"entrypoint":        {func(r request) { r.config.Entrypoint = []string{"/other"} }, []string{"entrypoint"}},
		"command":           {func(r request) { r.config.Cmd = []string{"x"} }, []string{"command"}},
		"variable added":    {func(r request) { r.config.Env = append(r.config.Env, "X=1") }, []string{`env["X"]`}},
		"variable changed":  {func(r request) { r.config.Env = append(r.config.Env, "no_proxy=*") }, []string{`env["no_proxy"]`}},
		"user":              {func(r request) { r.config.User = "0" }, []string{"user"}},
		"working directory": {func(r request) { r.config.WorkingDir = "/tmp" }, []string{"working_dir"}},
		"label of ours":     {func(r request) { r.config.Labels[reconcile.LabelKind] = "egress" }, []string{`labels["spaces.kind"]`}},
		"label added":       {func(r request) { r.config.Labels["x"] = "y" }, []string{`labels["x"]`}},
		"hostname":          {func(r request) { r.config.Hostname = "h" }, []string{"Config.Hostname"}},
		"domain name":       {func(r request) { r.config.Domainname = "d" }, []string{"Config.Domainname"}},
		"terminal":          {func(r request) { r.config.Tty = true }, []string{"Config.Tty"}},
		"standard input":    {func(r request) { r.config.OpenStdin, r.config.StdinOnce = true, true }, []string{"Config.OpenStdin", "Config.StdinOnce"}},
		"exposed port":      {func(r request) { r.config.ExposedPorts["99/udp"] = struct{}{} }, []string{`Config.ExposedPorts["99/udp"]`}},
		"network disabled":  {func(r request) { r.config.NetworkDisabled = true }, append([]string{"Config.NetworkDisabled"}, detached...)},
		"MAC":               {func(r request) { setMAC(r.config, "02:42:ac:11:00:99") }, []string{"Config.MacAddress"}},
		"stop signal":       {func(r request) { r.config.StopSignal = "SIGINT" }, []string{"stop_signal"}},
		"stop timeout":      {func(r request) { r.config.StopTimeout = new(3) }, []string{"stop_timeout"}},
		"shell":             {func(r request) { r.config.Shell = []string{"/sh"} }, []string{"Config.Shell"}},
		"health check":      {func(r request) { r.config.Healthcheck.Test = []string{"NONE"} }, []string{"healthcheck"}},
		"health interval":   {func(r request) { r.config.Healthcheck.Interval = 2e12 }, []string{"healthcheck"}},
		"privileged":        {func(r request) { r.host.Privileged = true }, []string{"HostConfig.Privileged", "HostConfig.MaskedPaths", "HostConfig.ReadonlyPaths", "HostConfig.SecurityOpt"}},
		"capability":        {func(r request) { r.host.CapAdd = []string{"cap_sys_admin"} }, []string{"cap_add"}},
		"capabilities kept": {func(r request) { r.host.CapDrop = nil }, []string{"cap_drop"}},
		"new privileges":    {func(r request) { r.host.SecurityOpt = nil }, []string{"no_new_privileges"}},
		"seccomp off":       {func(r request) { r.host.SecurityOpt = append(r.host.SecurityOpt, "seccomp=unconfined") }, []string{"seccomp"}},
		"seccomp profile": {func(r request) {
			r.host.SecurityOpt = append(r.host.SecurityOpt, `seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`)
		}, []string{"seccomp"}},
		"labelling off":    {func(r request) { r.host.SecurityOpt = append(r.host.SecurityOpt, "label=disable") }, []string{"HostConfig.SecurityOpt"}},
		"writable root":    {func(r request) { r.host.ReadonlyRootfs = false }, []string{"read_only"}},
		"tmpfs options":    {func(r request) { r.host.Tmpfs["/tmp"] = "exec" }, []string{`tmpfs["/tmp"]`}},
		"tmpfs added":      {func(r request) { r.host.Tmpfs["/x"] = "" }, []string{`tmpfs["/x"]`}},
		"image's volume":   {func(r request) { delete(r.host.Tmpfs, "/data") }, []string{`mount["/data"]`, `tmpfs["/data"]`}},
		"anonymous volume": {func(r request) { r.config.Volumes = map[string]struct{}{"/v": {}} }, []string{`mount["/v"]`}},
		"bind":             {func(r request) { r.host.Binds = []string{"/usr:/usr:ro"} }, []string{`mount["/usr"]`}},
		"bind of a volume": {func(r request) { r.host.Binds = []string{l.name("volume") + ":/v"} }, []string{`mount["/v"]`}},
		"mount": {func(r request) {
			r.host.Mounts = append(r.host.Mounts, mount.Mount{Type: "bind", Source: "/etc", Target: "/e"})
		}, []string{`mount["/e"]`}},
		"mount of tmpfs":      {func(r request) { r.host.Mounts = append(r.host.Mounts, mount.Mount{Type: "tmpfs", Target: "/e"}) }, []string{`mount["/e"]`}},
		"mount gone":          {func(r request) { r.host.Mounts = nil }, []string{`mount["/usr/share"]`}},
		"mount moved":         {func(r request) { r.host.Mounts[0].Target = "/x" }, []string{`mount["/usr/share"]`, `mount["/x"]`}},
		"mount's source":      {func(r request) { r.host.Mounts[0].Source = "/usr/lib" }, []string{`mount["/usr/share"]`}},
		"mount writable":      {func(r request) { r.host.Mounts[0].ReadOnly = false }, []string{`mount["/usr/share"]`}},
		"mount's propagation": {func(r request) { r.host.Mounts[0].BindOptions = &mount.BindOptions{Propagation: "rslave"} }, []string{`mount["/usr/share"]`}},
		"mount not recursive": {func(r request) { r.host.Mounts[0].BindOptions = &mount.BindOptions{NonRecursive: true} }, []string{`mount["/usr/share"]`}},
		"mounts of another":   {func(r request) { r.host.VolumesFrom = []string{other} }, []string{"HostConfig.VolumesFrom", `mount["/data"]`}},
		"published port": {func(r request) {
			r.host.PortBindings = nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: "7999"}}}
		}, []string{`publish["80/tcp"]`}},
		"all ports published": {func(r request) { r.host.PublishAllPorts = true }, []string{"HostConfig.PublishAllPorts"}},
		"network mode":        {func(r request) { r.host.NetworkMode, r.networking.EndpointsConfig = "host", nil }, append([]string{`network["host"]`, "network_mode", "Config.Hostname"}, detached...)},
		"another's network": {func(r request) {
			r.host.NetworkMode, r.networking.EndpointsConfig = container.NetworkMode("container:"+other), nil
			r.config.Hostname = ""
		}, append([]string{"network_mode"}, detached...)},
		"default network":    {func(r request) { r.host.NetworkMode, r.networking.EndpointsConfig = "default", nil }, append([]string{`network["bridge"]`, "network_mode"}, detached...)},
		"aliases gone":       {func(r request) { r.networking.EndpointsConfig[base].Aliases = nil }, []string{`network["` + base + `"].aliases`}},
		"endpoint's links":   {func(r request) { r.networking.EndpointsConfig[base].Links = []string{other + ":x"} }, []string{`network["` + base + `"].Links`}},
		"endpoint's options": {func(r request) { r.networking.EndpointsConfig[base].DriverOpts = map[string]string{"a": "b"} }, []string{`network["` + base + `"].DriverOpts["a"]`}},
		"link-local address": {func(r request) {
			r.networking.EndpointsConfig[base].IPAMConfig = &network.EndpointIPAMConfig{LinkLocalIPs: []string{"169.254.1.1"}}
		}, []string{`network["` + base + `"].IPAMConfig.LinkLocalIPs`}},
		"links": {func(r request) {
			r.host.NetworkMode, r.networking.EndpointsConfig = "default", nil
			r.host.Links = []string{other + ":x"}
		}, append([]string{"HostConfig.Links", `network["bridge"]`, "network_mode"}, detached...)},
		"restart policy":       {func(r request) { r.host.RestartPolicy.Name = "always" }, []string{"restart"}},
		"removed when it ends": {func(r request) { r.host.AutoRemove = true }, []string{"HostConfig.AutoRemove"}},
		"no init":              {func(r request) { r.host.Init = new(false) }, []string{"init"}},
		"init unsaid":          {func(r request) { r.host.Init = nil }, []string{"init"}},
		"pid namespace":        {func(r request) { r.host.PidMode = "host" }, []string{"HostConfig.PidMode", "HostConfig.SecurityOpt"}},
		"ipc namespace":        {func(r request) { r.host.IpcMode = "host" }, []string{"HostConfig.IpcMode", "HostConfig.SecurityOpt"}},
		"uts namespace":        {func(r request) { r.host.UTSMode = "host" }, []string{"HostConfig.UTSMode"}},
		"user namespace":       {func(r request) { r.host.UsernsMode = "host" }, []string{"HostConfig.UsernsMode"}},
		"device": {func(r request) {
			r.host.Devices = []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/x", CgroupPermissions: "r"}}
		}, []string{"devices"}},
		"device rule":        {func(r request) { r.host.DeviceCgroupRules = []string{"c 1:3 r"} }, []string{"HostConfig.DeviceCgroupRules"}},
		"device request":     {func(r request) { r.host.DeviceRequests = []container.DeviceRequest{{Driver: "x", Count: 1}} }, []string{"HostConfig.DeviceRequests"}},
		"sysctl":             {func(r request) { r.host.Sysctls = map[string]string{"net.core.somaxconn": "9"} }, []string{`sysctls["net.core.somaxconn"]`}},
		"host name added":    {func(r request) { r.host.ExtraHosts = []string{"a:127.0.0.1"} }, []string{"HostConfig.ExtraHosts"}},
		"resolver":           {func(r request) { r.host.DNS = []string{"1.1.1.1"} }, []string{"dns"}},
		"resolver's options": {func(r request) { r.host.DNSOptions = []string{"ndots:9"} }, []string{"HostConfig.DnsOptions"}},
		"search domain":      {func(r request) { r.host.DNSSearch = []string{"x"} }, []string{"HostConfig.DnsSearch"}},
		"log driver":         {func(r request) { r.host.LogConfig = container.LogConfig{Type: "none"} }, []string{"log_driver", `log_options["max-file"]`, `log_options["max-size"]`}},
		"log size":           {func(r request) { r.host.LogConfig.Config["max-size"] = "1g" }, []string{`log_options["max-size"]`}},
		"log option":         {func(r request) { r.host.LogConfig.Config["tag"] = "x" }, []string{`HostConfig.LogConfig.Config["tag"]`}},
		"group":              {func(r request) { r.host.GroupAdd = []string{"0"} }, []string{"group_add"}},
		"nothing masked":     {func(r request) { r.host.MaskedPaths = []string{} }, []string{"HostConfig.MaskedPaths"}},
		"nothing read-only":  {func(r request) { r.host.ReadonlyPaths = []string{} }, []string{"HostConfig.ReadonlyPaths"}},
		"file limits":        {func(r request) { r.host.Ulimits = []*units.Ulimit{{Name: "nofile", Soft: 9, Hard: 9}} }, []string{`HostConfig.Ulimits["nofile"]`}},
		"oom score":          {func(r request) { r.host.OomScoreAdj = 100 }, []string{"HostConfig.OomScoreAdj"}},
		"shared memory":      {func(r request) { r.host.ShmSize = 1 << 20 }, []string{"HostConfig.ShmSize"}},
		"volume driver":      {func(r request) { r.host.VolumeDriver = "local" }, []string{"HostConfig.VolumeDriver"}},
		"runtime":            {func(r request) { r.host.Runtime = "io.containerd.runc.v2" }, []string{"HostConfig.Runtime"}},
		"cgroup parent":      {func(r request) { r.host.CgroupParent = "/x" }, []string{"HostConfig.CgroupParent"}},
		"memory":             {func(r request) { r.host.Memory, r.host.MemorySwap = 64<<20, 64<<20 }, []string{"limits.memory", "limits.memory_swap"}},
		"swap":               {func(r request) { r.host.Memory, r.host.MemorySwap = 64<<20, -1 }, []string{"limits.memory", "limits.memory_swap"}},
		"cpus":               {func(r request) { r.host.NanoCPUs = 1e8 }, []string{"limits.cpus"}},
		"pids":               {func(r request) { r.host.PidsLimit = new(int64(9)) }, []string{"limits.pids"}},
		"reservation":        {func(r request) { r.host.MemoryReservation = 32 << 20 }, []string{"HostConfig.MemoryReservation"}},
		"swappiness":         {func(r request) { r.host.MemorySwappiness = new(int64(0)) }, []string{"HostConfig.MemorySwappiness"}},
		"no oom killer":      {func(r request) { r.host.OomKillDisable = new(true) }, []string{"HostConfig.OomKillDisable"}},
		"cpu shares":         {func(r request) { r.host.CPUShares = 9 }, []string{"HostConfig.CpuShares"}},
		"cpu quota":          {func(r request) { r.host.CPUPeriod, r.host.CPUQuota = 100000, 50000 }, []string{"HostConfig.CpuPeriod", "HostConfig.CpuQuota"}},
		"cpu set":            {func(r request) { r.host.CpusetCpus = "0" }, []string{"HostConfig.CpusetCpus"}},
		"block weight":       {func(r request) { r.host.BlkioDeviceReadBps = []*blkiodev.ThrottleDevice{{Path: "/dev/null", Rate: 1}} }, []string{"HostConfig.BlkioDeviceReadBps"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if limited, why := l.cannot(name); limited {
				t.Log(why)
				return
			}
			config, host, err := createConfig(asked)
			l.must(err)
			r := request{config, host, &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
				base: endpointSettings(asked.Networks[base]),
			}}}
			c.change(r)
			made, err := l.docker.ContainerCreate(t.Context(), r.config, r.host, r.networking, nil, asked.Name)
			if err != nil {
				t.Fatal(err)
			}
			defer l.docker.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
			l.told(t, asked, c.want)
		})
	}
}

// setMAC is how it was asked for before API 1.44, which no longer is how to say it.
func setMAC(c *container.Config, mac string) {
	//lint:ignore SA1019 it is what old clients send
	c.MacAddress = mac
}

// told checks which fields differ.
func (l *lab) told(t *testing.T, asked reconcile.Container, want []string) reconcile.ObservedContainer {
	t.Helper()
	a, err := l.Observer().Inspect(t.Context(), Query{Project: l.project, Store: l.store})
	l.must(err)
	for _, got := range a.Containers {
		if got.Name != asked.Name {
			continue
		}
		paths := differing(asked, got.Container)
		slices.Sort(paths)
		slices.Sort(want)
		if !slices.Equal(paths, want) {
			t.Errorf("told %q, want %q\n%s", paths, want, explain(paths, asked, got.Container))
		}
		return got
	}
	t.Error("it isn't there")
	return reconcile.ObservedContainer{}
}

// cannot says which changes an engine refuses or drops, so that nothing is there to be
// told.
func (l *lab) cannot(change string) (bool, string) {
	limits := []string{
		"memory", "swap", "cpus", "pids", "reservation", "swappiness", "no oom killer",
		"cpu shares", "cpu quota", "cpu set", "block weight",
	}
	if len(l.features.Unenforced) > 0 && slices.Contains(limits, change) {
		return true, "the engine drops what it can't enforce"
	}
	return false, ""
}

func TestRootlessLiveDrift(t *testing.T) { liveDrifts(t, rootlessLab(t)) }
func TestRootfulLiveDrift(t *testing.T)  { liveDrifts(t, rootfulLab(t)) }

// liveDrifts changes a container as it runs, one thing after the other.
func liveDrifts(t *testing.T, l *lab) {
	plain := l.image("plain")
	one, two := l.network("one"), l.network("two")
	asked := typicalContainer(l.name("space"), plain, []string{one})
	asked.Labels = l.labels(reconcile.KindSpace)
	if !slices.Contains(l.features.Unenforced, limitMemory) {
		asked.Memory, asked.MemorySwap, asked.PIDs, asked.NanoCPUs = 64<<20, 64<<20, 50, 5e8
	}
	asked = reconcile.WithImage(asked, l.inspect(plain).Images[plain])
	id := l.create(asked)
	ctx := t.Context()
	first := l.told(t, asked, nil)
	if first.State != reconcile.StateCreated {
		t.Errorf("it is %s", first.State)
	}
	l.must(l.docker.ContainerStart(ctx, id, container.StartOptions{}))
	running := l.told(t, asked, nil)
	if running.State != reconcile.StateRunning || running.Revision == first.Revision {
		t.Errorf("it is %s, revision %s then %s", running.State, first.Revision, running.Revision)
	}
	if again := l.told(t, asked, nil); again.Revision != running.Revision {
		t.Error("a revision must not change by itself")
	}

	l.must(l.docker.NetworkConnect(ctx, two, id, &network.EndpointSettings{Aliases: []string{"proxy"}}))
	extra := []string{`network["` + two + `"]`, `network["` + two + `"].aliases`}
	if l.told(t, asked, extra).Revision == running.Revision {
		t.Error("the revision must have changed")
	}
	l.must(l.docker.NetworkDisconnect(ctx, two, id, false))
	l.told(t, asked, nil)
	l.must(l.docker.NetworkDisconnect(ctx, one, id, false))
	gone := []string{`network["` + one + `"]`, `network["` + one + `"].aliases`}
	l.told(t, asked, gone)
	l.must(l.docker.NetworkConnect(ctx, one, id, nil))
	l.told(t, asked, gone[1:]) // attached again without its aliases
	l.must(l.docker.NetworkDisconnect(ctx, one, id, false))
	l.must(l.docker.NetworkConnect(ctx, one, id, endpointSettings(asked.Networks[one])))
	l.told(t, asked, nil)

	want := []string{"restart"}
	update := container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "always"}}
	if asked.Memory > 0 {
		update.Resources = container.Resources{Memory: 32 << 20, MemorySwap: 96 << 20, NanoCPUs: 1e8, PidsLimit: new(int64(99)), CPUShares: 99}
		want = append(want, "limits.memory", "limits.memory_swap", "limits.cpus", "limits.pids", "HostConfig.CpuShares")
	}
	_, err := l.docker.ContainerUpdate(ctx, id, update)
	l.must(err)
	l.told(t, asked, want)

	l.retag(plain)
	got := l.told(t, asked, want)
	if a := l.inspect(plain); a.Images[plain].ID == got.ImageID || a.Images[got.ImageID].ID != got.ImageID {
		t.Errorf("%s is %v; the container runs %s", plain, a.Images[plain].ID, got.ImageID)
	}

	if len(l.features.Unenforced) == 0 { // pausing needs a cgroup
		l.must(l.docker.ContainerPause(ctx, id))
		if got := l.told(t, asked, want); got.State != reconcile.StatePaused {
			t.Errorf("it is %s", got.State)
		}
		l.must(l.docker.ContainerUnpause(ctx, id))
	}
	l.must(l.docker.ContainerStop(ctx, id, container.StopOptions{Timeout: new(1)}))
	if got := l.told(t, asked, want); got.State != reconcile.StateExited {
		t.Errorf("it is %s", got.State)
	}

	l.must(l.docker.NetworkRemove(ctx, one))
	l.told(t, asked, append(want, `network["`+one+`"].NetworkID`))
	l.network("one")
	l.told(t, asked, append(want, `network["`+one+`"].NetworkID`))
	if m := l.inspect().Networks[0]; m.Name != one || len(m.Members) != 0 {
		t.Errorf("made again, it has members %v", m.Members)
	}
	l.must(l.docker.ContainerRename(ctx, id, l.name("renamed")))
	if a := l.inspect(); a.Containers[0].Name != l.name("renamed") {
		t.Errorf("it is called %s", a.Containers[0].Name)
	}
}

// retag puts another image under a reference.
func (l *lab) retag(ref string) {
	l.t.Helper()
	other := l.image("other", "ENV OTHER=1")
	l.must(l.docker.ImageTag(l.t.Context(), other, ref))
	_, err := l.docker.ImageRemove(l.t.Context(), other, image.RemoveOptions{})
	l.must(err)
}
