//go:build engine

package testscripts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"
	"github.com/docker/go-units"
)

// row is one change made behind the program's back, by exactly one of its functions. What
// changes is the space web, its network inside or its volume cache.
type row struct {
	name string
	// only is the one engine that can do it, and why says what the other lacks.
	only, why string

	// recreate changes what a container is made from; it is removed and made again.
	recreate func(n names, s *spec)
	// of is the container, "web" unless said.
	of string
	// unstarted containers are those that can be made here and not started: on both
	// engines, or on one.
	unstarted   bool
	unstartedOn string
	// update changes web as it runs.
	update *container.UpdateConfig
	// endpoint changes web's place on the network inside: it leaves and joins again.
	endpoint func(n names, e *network.EndpointSettings)
	// network changes the network inside: all leave it, it is made again, all join.
	network func(n names, o *network.CreateOptions)
	// volume changes the volume cache, which is made again with its users.
	volume func(n names, o *volume.CreateOptions)
	// act does anything else.
	act func(t testing.TB, p *project)
	// covers are the fields of the API that act changes.
	covers []string
	// undo takes away what is not the program's, once it has repaired what is.
	undo func(t testing.TB, p *project)
	// restless is what goes on changing by itself, from one look to the next.
	restless bool

	// want are the differences that drift must report, no more and no less.
	want []string
}

func (r row) runsOn(kind string) bool { return r.only == "" || r.only == kind }

// and adds to what a row wants.
func (r row) and(more []string) row {
	r.want = slices.Concat(r.want, more)
	return r
}

// notStartedOn is a row whose container one engine can't start; on that its state
// differs as well.
func (r row) notStartedOn(kind string) row {
	r.unstartedOn = kind
	return r
}

func (r row) starts(kind string) bool { return !r.unstarted && r.unstartedOn != kind }

// wants are the differences that drift must report on an engine.
func (r row) wants(kind string) []string {
	if r.unstartedOn == kind {
		return slices.Concat(r.want, web("state"))
	}
	return r.want
}

// names are those of a project's things.
type names struct {
	project string
	home    string
}

func (n names) of(short string) string { return n.project + "-" + short }

// path is a path of the host beside those that are granted.
func (n names) path(name string) string { return filepath.Join(n.home, name) }

func (p *project) names() names { return names{p.name, p.home} }

func reality(subject string, fields ...string) []string {
	return sided(subject, "in reality", fields)
}

func either(subject string, fields ...string) []string {
	return sided(subject, "either", fields)
}

func sided(subject, side string, fields []string) []string {
	var out []string
	for _, f := range fields {
		out = append(out, fmt.Sprintf("%s %s [%s]", subject, f, side))
	}
	return out
}

func web(fields ...string) []string { return reality("space.web", fields...) }

const mib = 1 << 20

var (
	noCgroups = "without control of cgroups it drops the limit"
	seconds   = 7
	yes       = true
	no        = false
)

// rows are the changes, by the part of the API that makes them.
func rows() []row {
	return slices.Concat(
		imageRows(), processRows(), labelRows(), hardeningRows(), mountRows(), portRows(), endpointRows(),
		networkRows(), volumeRows(), limitRows(), namespaceRows(), hostRows(), stateRows(),
	)
}

func imageRows() []row {
	return []row{
		{
			name: "another image under the same tag",
			want: slices.Concat(
				either("image.payload", "input"), reality("space.peer", "image"),
				either("space.web", `env["PATH"]`, "image", `labels["spaces.image.input"]`),
			),
			act: func(t testing.TB, p *project) {
				p.build(t, p.name+"-payload:1", "ENV OTHER=1")
				p.recreate(t, "web", true, nil)
			},
		},
		{
			name: "a tag moved to another image",
			want: slices.Concat(either("image.payload", "input"), reality("space.peer", "image"), web("image")),
			act:  func(t testing.TB, p *project) { p.build(t, p.name+"-payload:1", "ENV OTHER=2") },
		},
		{
			name: "made from another image", want: web("image"), covers: []string{"Config.Image"},
			act: func(t testing.TB, p *project) {
				p.build(t, p.name+"-other:1", "ENV PATH=/")
				p.recreate(t, "web", true, func(n names, s *spec) { s.Config.Image = n.of("other:1") })
			},
		},
		{name: "made from the image by its id", want: web("image"), act: func(t testing.TB, p *project) {
			id := p.lab.inspect(t, p.names().of("web")).Image
			p.recreate(t, "web", true, func(_ names, s *spec) { s.Config.Image = id })
		}},
	}
}

func processRows() []row {
	set := func(name string, change func(s *spec), want ...string) row {
		return row{name: name, want: web(want...), recreate: func(_ names, s *spec) { change(s) }}
	}
	return []row{
		set("entrypoint", func(s *spec) { s.Config.Entrypoint = []string{"/payload", "wait"} }, "entrypoint"),
		set("command", func(s *spec) { s.Config.Cmd = []string{"wait", "more"} }, "command"),
		set("no command", func(s *spec) { s.Config.Cmd = nil }, "command"),
		set("variable added", func(s *spec) { s.Config.Env = append(s.Config.Env, "ADDED=1") }, `env["ADDED"]`),
		set("variable changed", func(s *spec) { setEnv(s, "GREETING=other") }, `env["GREETING"]`),
		set("variable emptied", func(s *spec) { setEnv(s, "GREETING=") }, `env["GREETING"]`),
		set("variable removed", func(s *spec) {
			s.Config.Env = slices.DeleteFunc(s.Config.Env, func(e string) bool { return e == "GREETING=hello" })
		}, `env["GREETING"]`),
		set("user", func(s *spec) { s.Config.User = "0:0" }, "user"),
		set("working directory", func(s *spec) { s.Config.WorkingDir = "/tmp" }, "working_dir"),
		{name: "host name", want: slices.Concat(
			// The engine makes it an alias as well.
			web("Config.Hostname"), either("space.web", onFront+".aliases", onInside+".aliases"),
		), recreate: func(_ names, s *spec) { s.Config.Hostname = "other" }},
		set("domain name", func(s *spec) { s.Config.Domainname = "example.com" }, "Config.Domainname").notStartedOn(rootless),
		set("terminal", func(s *spec) { s.Config.Tty = true }, "Config.Tty"),
		set("standard input open", func(s *spec) { s.Config.OpenStdin = true }, "Config.OpenStdin"),
		set("standard input once", func(s *spec) { s.Config.StdinOnce = true }, "Config.StdinOnce"),
		set("exposed port", func(s *spec) { s.Config.ExposedPorts["99/tcp"] = struct{}{} }, `Config.ExposedPorts["99/tcp"]`),
		set("shell", func(s *spec) { s.Config.Shell = []string{"/payload"} }, "Config.Shell"),
		set("stop signal", func(s *spec) { s.Config.StopSignal = "SIGINT" }, "stop_signal"),
		set("stop timeout", func(s *spec) { s.Config.StopTimeout = &seconds }, "stop_timeout"),
		set("no stop timeout", func(s *spec) { s.Config.StopTimeout = nil }, "stop_timeout"),
		set("health check's command", func(s *spec) { s.Config.Healthcheck.Test = []string{"CMD", "/payload", "ok", "x"} }, "healthcheck"),
		set("health check's times", func(s *spec) {
			s.Config.Healthcheck.Interval, s.Config.Healthcheck.Timeout = time.Hour, time.Minute
			s.Config.Healthcheck.StartPeriod, s.Config.Healthcheck.Retries = time.Minute, 9
		}, "healthcheck"),
		set("health check disabled", func(s *spec) { s.Config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}} }, "healthcheck"),
		set("health check gone", func(s *spec) { s.Config.Healthcheck = nil }, "healthcheck"),
		{name: "health check added", of: "peer", want: reality("space.peer", "healthcheck"), recreate: func(_ names, s *spec) {
			s.Config.Healthcheck = &container.HealthConfig{Test: []string{"CMD", "/payload", "ok"}}
		}},
		set("anonymous volume", func(s *spec) { s.Config.Volumes = map[string]struct{}{"/anonymous": {}} }, `mount["/anonymous"]`),
		{name: "network disabled", of: "peer", want: slices.Concat(
			reality("space.peer", "Config.NetworkDisabled"), either("space.peer", onInside, onInside+".aliases"),
		), recreate: func(_ names, s *spec) {
			s.Config.NetworkDisabled = true
		}},
		set("hardware address", func(s *spec) {
			//lint:ignore SA1019 older engines take no other
			s.Config.MacAddress = "02:42:0a:00:00:99"
		}, "Config.MacAddress"),
	}
}

func setEnv(s *spec, entry string) {
	for i, e := range s.Config.Env {
		if name, _, _ := cut(entry); e[:min(len(e), len(name)+1)] == name+"=" {
			s.Config.Env[i] = entry
		}
	}
}

func cut(entry string) (name, value string, ok bool) {
	for i := range entry {
		if entry[i] == '=' {
			return entry[:i], entry[i+1:], true
		}
	}
	return entry, "", false
}

func labelRows() []row {
	set := func(name, label, value string) row {
		return row{name: name, want: web(fmt.Sprintf("labels[%q]", label)), recreate: func(_ names, s *spec) {
			s.Config.Labels = maps.Clone(s.Config.Labels)
			s.Config.Labels[label] = value
		}}
	}
	return []row{
		set("label name", "spaces.name", "other"),
		set("label key", "spaces.key", "other"),
		set("label kind", "spaces.kind", "core"),
		set("label format", "spaces.format", "2"),
		set("label run", "spaces.run", "1"),
		set("label applied nonsense", "spaces.applied", "x"),
		{name: "label applied forged", want: web(`labels["spaces.applied"]`), recreate: func(_ names, s *spec) {
			s.Config.Labels = maps.Clone(s.Config.Labels)
			s.Config.Labels["spaces.applied"] += "0"
		}},
		set("foreign label", "com.example.extra", "1"),
		{name: "label applied gone", want: web(`labels["spaces.applied"]`), recreate: func(_ names, s *spec) {
			s.Config.Labels = maps.Clone(s.Config.Labels)
			delete(s.Config.Labels, "spaces.applied")
		}},
		{name: "label format gone", want: web(`labels["spaces.format"]`), recreate: func(_ names, s *spec) {
			s.Config.Labels = maps.Clone(s.Config.Labels)
			delete(s.Config.Labels, "spaces.format")
		}},
	}
}

// aProfile is a seccomp profile that allows everything.
const aProfile = `{"defaultAction":"SCMP_ACT_ALLOW"}`

func hardeningRows() []row {
	set := func(name string, change func(h *container.HostConfig), want ...string) row {
		return row{name: name, want: web(want...), recreate: func(_ names, s *spec) { change(s.Host) }}
	}
	// The engine switches SELinux off with it.
	privileged := set("privileged", func(h *container.HostConfig) { h.Privileged = true }, "HostConfig.Privileged", "HostConfig.SecurityOpt", "state")
	privileged.unstarted = true
	return []row{
		privileged,
		set("capability added", func(h *container.HostConfig) { h.CapAdd = append(h.CapAdd, "CHOWN") }, "cap_add"),
		set("capability not added", func(h *container.HostConfig) { h.CapAdd = nil }, "cap_add"),
		set("capabilities not dropped", func(h *container.HostConfig) { h.CapDrop = nil }, "cap_drop"),
		set("no-new-privileges gone", func(h *container.HostConfig) { h.SecurityOpt = nil }, "no_new_privileges"),
		set("no-new-privileges false", func(h *container.HostConfig) { h.SecurityOpt = []string{"no-new-privileges=false"} }, "no_new_privileges"),
		set("seccomp unconfined", func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "seccomp=unconfined") }, "seccomp"),
		set("seccomp profile", func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "seccomp="+aProfile) }, "seccomp"),
		set("apparmor unconfined", func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "apparmor=unconfined") }, "HostConfig.SecurityOpt"),
		set("selinux disabled", func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "label=disable") }, "HostConfig.SecurityOpt"),
		set("root file system writable", func(h *container.HostConfig) { h.ReadonlyRootfs = false }, "read_only"),
		set("masked paths gone", func(h *container.HostConfig) { h.MaskedPaths = []string{} }, "HostConfig.MaskedPaths"),
		set("masked path missing", func(h *container.HostConfig) { h.MaskedPaths = h.MaskedPaths[1:] }, "HostConfig.MaskedPaths"),
		set("read-only paths gone", func(h *container.HostConfig) { h.ReadonlyPaths = []string{} }, "HostConfig.ReadonlyPaths"),
		set("no init", func(h *container.HostConfig) { h.Init = &no }, "init"),
		set("init unset", func(h *container.HostConfig) { h.Init = nil }, "init"),
		set("device", func(h *container.HostConfig) {
			h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/fuse", PathInContainer: "/dev/fuse", CgroupPermissions: "rwm"}}
		}, "devices"),
		set("device rule", func(h *container.HostConfig) { h.DeviceCgroupRules = []string{"c 1:3 rwm"} }, "HostConfig.DeviceCgroupRules"),
		set("group", func(h *container.HostConfig) { h.GroupAdd = []string{"999"} }, "group_add"),
		set("sysctl", func(h *container.HostConfig) {
			h.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
		}, `sysctls["net.ipv4.ip_unprivileged_port_start"]`),
	}
}

func mountRows() []row {
	set := func(name string, change func(n names, s *spec), want ...string) row {
		return row{name: name, want: web(want...), recreate: change}
	}
	return []row{
		set("tmpfs options", func(_ names, s *spec) { s.Host.Tmpfs["/tmp"] = "exec,nosuid" }, `tmpfs["/tmp"]`),
		set("tmpfs size", func(_ names, s *spec) { s.Host.Tmpfs["/scratch"] += ",size=4194304" }, `tmpfs["/scratch"]`),
		set("tmpfs added", func(_ names, s *spec) { s.Host.Tmpfs["/more"] = "" }, `tmpfs["/more"]`),
		set("tmpfs removed", func(_ names, s *spec) { delete(s.Host.Tmpfs, "/scratch") }, `tmpfs["/scratch"]`),
		set("tmpfs as a mount", func(_ names, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeTmpfs, Target: "/more", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: mib, Mode: 0o700}})
		}, `mount["/more"]`),
		set("mount added", func(n names, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeBind, Source: n.path("other"), Target: "/other"})
		}, `mount["/other"]`),
		set("bind added", func(n names, s *spec) { s.Host.Binds = []string{n.path("other") + ":/other:ro"} }, `mount["/other"]`),
		set("volume bound", func(n names, s *spec) { s.Host.Binds = []string{n.of("cache") + ":/other"} }, `mount["/other"]`),
		set("anonymous bind", func(_ names, s *spec) { s.Host.Binds = []string{"/other"} }, `mount["/other"]`),
		set("mount removed", func(_ names, s *spec) { s.unmount("/notes") }, `mount["/notes"]`),
		set("mount as a bind", func(n names, s *spec) {
			s.unmount("/notes")
			s.Host.Binds = []string{n.path("notes") + ":/notes:ro,Z"}
		}, `mount["/notes"]`),
		set("mount moved", func(_ names, s *spec) { s.mount("/notes").Target = "/moved" }, `mount["/moved"]`, `mount["/notes"]`),
		set("mount of another source", func(n names, s *spec) { s.mount("/notes").Source = n.path("other") }, `mount["/notes"]`),
		set("mount made writable", func(_ names, s *spec) { s.mount("/notes").ReadOnly = false }, `mount["/notes"]`),
		set("mount made read-only", func(_ names, s *spec) { s.mount("/work").ReadOnly = true }, `mount["/work"]`),
		set("secret made writable", func(_ names, s *spec) { s.mount("/run/token").ReadOnly = false }, `mount["/run/token"]`),
		set("mount's propagation", func(_ names, s *spec) {
			s.mount("/notes").BindOptions = &mount.BindOptions{Propagation: mount.PropagationPrivate}
		}, `mount["/notes"]`),
		set("mount not recursive", func(_ names, s *spec) {
			s.mount("/notes").BindOptions = &mount.BindOptions{NonRecursive: true}
		}, `mount["/notes"]`),
		set("mount's consistency", func(_ names, s *spec) { s.mount("/notes").Consistency = mount.ConsistencyCached }, `mount["/notes"]`),
		set("volume read-only", func(_ names, s *spec) { s.mount("/cache").ReadOnly = true }, `mount["/cache"]`),
		set("volume without copying", func(_ names, s *spec) {
			s.mount("/cache").VolumeOptions = &mount.VolumeOptions{NoCopy: true}
		}, `mount["/cache"]`),
		set("volume with labels and a driver", func(_ names, s *spec) {
			s.mount("/cache").VolumeOptions = &mount.VolumeOptions{
				Labels:       map[string]string{"a": "b"},
				DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{"type": "tmpfs", "device": "tmpfs"}},
			}
		}, `mount["/cache"]`),
		set("anonymous mount", func(_ names, s *spec) {
			s.Host.Mounts = append(s.Host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: "/other"})
		}, `mount["/other"]`),
		set("volumes from", func(n names, s *spec) { s.Host.VolumesFrom = []string{n.of("peer")} }, "HostConfig.VolumesFrom"),
		set("volume driver", func(_ names, s *spec) { s.Host.VolumeDriver = "local" }, "HostConfig.VolumeDriver"),
		{name: "granted file replaced", want: web(`mount["/file"].file`), act: func(t testing.TB, p *project) {
			must(t, replaceFile(p.names().path("file"), "as it was"))
		}},
	}
}

func portRows() []row {
	set := func(name string, change func(s *spec), want ...string) row {
		return row{name: name, want: web(want...), recreate: func(_ names, s *spec) { change(s) }}
	}
	return []row{
		set("port added", func(s *spec) {
			s.Config.ExposedPorts["81/tcp"] = struct{}{}
			s.Host.PortBindings["81/tcp"] = []nat.PortBinding{{HostIP: "127.0.0.1"}}
		}, `publish["81/tcp"]`),
		set("second binding", func(s *spec) {
			s.Host.PortBindings["80/tcp"] = append(s.Host.PortBindings["80/tcp"], nat.PortBinding{HostIP: "127.0.0.1"})
		}, `publish["80/tcp"]`),
		set("port removed", func(s *spec) { s.Host.PortBindings, s.Config.ExposedPorts = nil, nil }, `publish["80/tcp"]`),
		set("port on all addresses", func(s *spec) { s.Host.PortBindings["80/tcp"][0].HostIP = "0.0.0.0" }, `publish["80/tcp"]`),
		set("port on no address", func(s *spec) { s.Host.PortBindings["80/tcp"][0].HostIP = "" }, `publish["80/tcp"]`),
		set("all ports published", func(s *spec) { s.Host.PublishAllPorts = true }, "HostConfig.PublishAllPorts"),
	}
}

const (
	onInside = `network["lab-inside"]`
	onFront  = `network["lab-front"]`
)

func endpointRows() []row {
	set := func(name string, change func(n names, e *network.EndpointSettings), want ...string) row {
		return row{name: name, want: either("space.web", want...), endpoint: change}
	}
	return []row{
		set("alias gone", func(_ names, e *network.EndpointSettings) { e.Aliases = []string{"one", "web"} }, onInside+".aliases"),
		set("alias added", func(_ names, e *network.EndpointSettings) { e.Aliases = append(e.Aliases, "three") }, onInside+".aliases"),
		set("all aliases gone", func(_ names, e *network.EndpointSettings) { e.Aliases = nil }, onInside+".aliases"),
		set("another address", func(n names, e *network.EndpointSettings) { e.IPAMConfig.IPv4Address = n.address(99) }, onInside+".address"),
		set("no address asked", func(_ names, e *network.EndpointSettings) { e.IPAMConfig = nil }, onInside+".address"),
		set("link-local address", func(_ names, e *network.EndpointSettings) { e.IPAMConfig.LinkLocalIPs = []string{"169.254.8.8"} }, onInside+".IPAMConfig.LinkLocalIPs"),
		set("linked", func(n names, e *network.EndpointSettings) { e.Links = []string{n.of("peer") + ":friend"} }, onInside+".Links"),
		set("endpoint's options", func(_ names, e *network.EndpointSettings) { e.DriverOpts = map[string]string{"com.example.x": "1"} }, onInside+`.DriverOpts["com.example.x"]`),
		// On a network of one's own the engine neither heeds nor tells them.
		{name: "links", unstarted: true, want: slices.Concat(
			web("HostConfig.Links", `network["bridge"]`, "network_mode", "state"), offAll(),
		), recreate: func(n names, s *spec) {
			s.Host.NetworkMode, s.Endpoints = "bridge", nil
			s.Host.Links = []string{n.of("peer") + ":friend"}
		}},
		{name: "on the engine's own network", want: reality("space.web", `network["bridge"]`), act: func(t testing.TB, p *project) {
			must(t, p.docker.NetworkConnect(t.Context(), "bridge", p.names().of("web"), nil))
		}},
		{name: "on another network of ours", want: either("space.peer", `network["lab-back"]`, `network["lab-back"].aliases`), act: func(t testing.TB, p *project) {
			must(t, p.docker.NetworkConnect(t.Context(), p.names().of("back"), p.names().of("peer"), &network.EndpointSettings{Aliases: []string{"peer"}}))
		}},
		{name: "off a network", want: either("space.web", onInside, onInside+".address", onInside+".aliases"), act: func(t testing.TB, p *project) {
			must(t, p.docker.NetworkDisconnect(t.Context(), p.names().of("inside"), p.names().of("web"), false))
		}},
		{name: "off its first network", want: either("space.web", `network["lab-front"]`, `network["lab-front"].aliases`), act: func(t testing.TB, p *project) {
			must(t, p.docker.NetworkDisconnect(t.Context(), p.names().of("front"), p.names().of("web"), false))
		}},
		{name: "first network is another", want: web("network_mode"), recreate: func(n names, s *spec) {
			s.Host.NetworkMode = container.NetworkMode(n.of("inside"))
		}},
	}
}

func networkRows() []row {
	set := func(name string, change func(n names, o *network.CreateOptions), want ...string) row {
		return row{name: name, want: either("network.inside", want...), network: change}
	}
	return []row{
		set("network not internal", func(_ names, o *network.CreateOptions) { o.Internal = false }, "internal"),
		set("network with options", func(_ names, o *network.CreateOptions) {
			o.Options = map[string]string{"com.docker.network.bridge.enable_icc": "false"}
		}, `options["com.docker.network.bridge.enable_icc"]`),
		set("network attachable", func(_ names, o *network.CreateOptions) { o.Attachable = true }, "Attachable"),
		set("network with IPv6", func(_ names, o *network.CreateOptions) {
			o.EnableIPv6 = &yes
			o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{Subnet: "fd00:77::/64"})
		}, "EnableIPv6", "IPAM.Config[1]"),
		{
			name: "network with IPv6 and an address of it", covers: []string{"EndpointSettings.IPAMConfig.IPv6Address"},
			want: slices.Concat(
				either("network.inside", "EnableIPv6", "IPAM.Config[1]"),
				either("space.web", onInside+".IPAMConfig.IPv6Address"),
			),
			act: func(t testing.TB, p *project) {
				p.remakeNetwork(t, func(_ names, o *network.CreateOptions) {
					o.EnableIPv6 = &yes
					o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{Subnet: "fd00:78::/64"})
				})
				p.rejoin(t, func(_ names, e *network.EndpointSettings) { e.IPAMConfig.IPv6Address = "fd00:78::99" })
			},
		},
		set("network with a label", func(_ names, o *network.CreateOptions) {
			o.Labels = maps.Clone(o.Labels)
			o.Labels["com.example.extra"] = "1"
		}, `labels["com.example.extra"]`),
		set("network's name label", func(_ names, o *network.CreateOptions) {
			o.Labels = maps.Clone(o.Labels)
			o.Labels["spaces.name"] = "other"
		}, `labels["spaces.name"]`),
		set("network's pool options", func(_ names, o *network.CreateOptions) { o.IPAM.Options = map[string]string{"com.example.x": "1"} }, `IPAM.Options["com.example.x"]`),
		set("network's range", func(n names, o *network.CreateOptions) { o.IPAM.Config[0].IPRange = n.address(0) + "/25" }, "ip_range"),
		set("network's gateway", func(n names, o *network.CreateOptions) { o.IPAM.Config[0].Gateway = n.address(77) }, "IPAM.Config[0].Gateway"),
		set("network's reserved addresses", func(n names, o *network.CreateOptions) {
			o.IPAM.Config[0].AuxAddress = map[string]string{"x": n.address(55)}
		}, "IPAM.Config[0].AuxiliaryAddresses"),
		set("network's subnet", func(n names, o *network.CreateOptions) { o.IPAM.Config[0].Subnet = n.address(0) + "/23" }, "subnet"),
		{name: "a stranger on our network", want: reality("network.inside", `members["lab-foreign"]`), act: func(t testing.TB, p *project) {
			p.stranger(t, true)
		}, undo: strangerStands},
		{name: "a stopped stranger on our network", want: reality("network.inside", `members["lab-foreign"]`), act: func(t testing.TB, p *project) {
			p.stranger(t, false)
		}, undo: strangerStands},
		{name: "network gone behind stopped containers", want: slices.Concat(
			either("network.inside", "missing"),
			either("space.peer", onInside+".NetworkID"), reality("space.peer", "state"),
			either("space.web", onInside+".NetworkID"), reality("space.web", "state"),
		), act: func(t testing.TB, p *project) {
			p.stop(t, "web")
			p.stop(t, "peer")
			must(t, p.docker.NetworkRemove(t.Context(), p.names().of("inside")))
		}},
		{name: "network made again behind stopped containers", want: slices.Concat(
			either("space.peer", onInside+".NetworkID"), reality("space.peer", "state"),
			either("space.web", onInside+".NetworkID"), reality("space.web", "state"),
		), act: func(t testing.TB, p *project) {
			p.stop(t, "web")
			p.stop(t, "peer")
			inside := p.names().of("inside")
			options := p.networkOptions(t, inside)
			must(t, p.docker.NetworkRemove(t.Context(), inside))
			_, err := p.docker.NetworkCreate(t.Context(), inside, options)
			must(t, err)
		}},
		{
			name: "network made from a configuration", covers: []string{"Network.ConfigFrom.Network"},
			want: slices.Concat(
				either("network.inside", "ConfigFrom.Network", "internal"), either("network lab-config", "not asked for"),
			),
			act: func(t testing.TB, p *project) {
				inside, config := p.names().of("inside"), p.names().of("config")
				options := p.networkOptions(t, inside)
				// Labels come from the configuration too.
				_, err := p.docker.NetworkCreate(t.Context(), config, network.CreateOptions{
					ConfigOnly: true, IPAM: options.IPAM, Labels: options.Labels,
				})
				must(t, err)
				p.remakeNetwork(t, func(_ names, o *network.CreateOptions) {
					*o = network.CreateOptions{Driver: o.Driver, ConfigFrom: &network.ConfigReference{Network: config}}
				})
			},
		},
		{
			name: "network that is a configuration only", covers: []string{"Network.ConfigOnly"},
			want: slices.Concat(
				either("network.inside", "ConfigOnly", "driver", "internal"),
				either("space.peer", onInside, onInside+".aliases"),
				either("space.web", onInside, onInside+".address", onInside+".aliases"),
			),
			act: func(t testing.TB, p *project) {
				inside := p.names().of("inside")
				options := p.networkOptions(t, inside)
				for _, short := range []string{"web", "peer"} {
					must(t, p.docker.NetworkDisconnect(t.Context(), inside, p.names().of(short), false))
				}
				must(t, p.docker.NetworkRemove(t.Context(), inside))
				_, err := p.docker.NetworkCreate(t.Context(), inside, network.CreateOptions{
					ConfigOnly: true, Labels: options.Labels, IPAM: options.IPAM,
				})
				must(t, err)
			},
		},
		{name: "a second network of our labels", want: either("network lab-twin", "not asked for"), act: func(t testing.TB, p *project) {
			options := p.networkOptions(t, p.names().of("inside"))
			options.IPAM = nil
			_, err := p.docker.NetworkCreate(t.Context(), p.names().of("twin"), options)
			must(t, err)
		}},
	}
}

func volumeRows() []row {
	set := func(name string, change func(n names, o *volume.CreateOptions), want ...string) row {
		return row{name: name, want: reality("volume.cache", want...), volume: change}
	}
	return []row{
		set("volume that is a directory of the host", func(n names, o *volume.CreateOptions) {
			o.DriverOpts = map[string]string{"type": "none", "o": "bind", "device": n.path("other")}
		}, `options["device"]`, `options["o"]`, `options["type"]`),
		set("volume with a label", func(_ names, o *volume.CreateOptions) {
			o.Labels = maps.Clone(o.Labels)
			o.Labels["com.example.extra"] = "1"
		}, `labels["com.example.extra"]`),
		set("volume's name label", func(_ names, o *volume.CreateOptions) {
			o.Labels = maps.Clone(o.Labels)
			o.Labels["spaces.name"] = "other"
		}, `labels["spaces.name"]`),
	}
}

func limitRows() []row {
	live := func(name string, u container.Resources, want ...string) row {
		return row{name: name, only: rootful, why: noCgroups, want: want, update: &container.UpdateConfig{Resources: u}}
	}
	set := func(name string, change func(h *container.HostConfig), want ...string) row {
		return row{name: name, only: rootful, why: noCgroups, want: want, recreate: func(_ names, s *spec) { change(s.Host) }}
	}
	pids := int64(99)
	swappiness := int64(7)
	throttle := []*blkiodev.ThrottleDevice{{Path: "/dev/loop0", Rate: mib}}
	realtime := set("real-time runtime", func(h *container.HostConfig) { h.CPURealtimeRuntime = 1000 }, web("HostConfig.CpuRealtimeRuntime", "state")...)
	realtime.unstarted = true // its parent has no such time to give
	limits := func(fields ...string) []string { return either("space.web", fields...) }
	return []row{
		live("memory", container.Resources{Memory: 128 * mib, MemorySwap: 128 * mib}, limits("limits.memory", "limits.memory_swap")...),
		live("swap", container.Resources{Memory: 64 * mib, MemorySwap: 128 * mib}, limits("limits.memory_swap")...),
		live("unlimited swap", container.Resources{Memory: 64 * mib, MemorySwap: -1}, limits("limits.memory_swap")...),
		live("pids", container.Resources{PidsLimit: &pids}, limits("limits.pids")...),
		live("cpus", container.Resources{NanoCPUs: 2e9}, limits("limits.cpus")...),
		live("cpu shares", container.Resources{CPUShares: 512}, web("HostConfig.CpuShares")...),
		live("cpuset", container.Resources{CpusetCpus: "0"}, web("HostConfig.CpusetCpus")...),
		live("memory nodes", container.Resources{CpusetMems: "0"}, web("HostConfig.CpusetMems")...),
		live("memory reservation", container.Resources{MemoryReservation: 16 * mib}, web("HostConfig.MemoryReservation")...),
		set("no limits", func(h *container.HostConfig) {
			h.Memory, h.MemorySwap, h.NanoCPUs, h.PidsLimit = 0, 0, 0, nil
		}, limits("limits.cpus", "limits.memory", "limits.memory_swap", "limits.pids")...),
		set("cpu period and quota", func(h *container.HostConfig) {
			h.NanoCPUs, h.CPUPeriod, h.CPUQuota = 0, 50000, 25000
		}, slices.Concat(web("HostConfig.CpuPeriod", "HostConfig.CpuQuota"), limits("limits.cpus"))...),
		set("swappiness", func(h *container.HostConfig) { h.MemorySwappiness = &swappiness }, web("HostConfig.MemorySwappiness")...),
		set("no swappiness", func(h *container.HostConfig) { h.MemorySwappiness = new(int64) }, web("HostConfig.MemorySwappiness")...),
		set("out of memory killer disabled", func(h *container.HostConfig) { h.OomKillDisable = &yes }, web("HostConfig.OomKillDisable")...),
		set("read bytes throttled", func(h *container.HostConfig) { h.BlkioDeviceReadBps = throttle }, web("HostConfig.BlkioDeviceReadBps")...),
		set("written bytes throttled", func(h *container.HostConfig) { h.BlkioDeviceWriteBps = throttle }, web("HostConfig.BlkioDeviceWriteBps")...),
		set("reads throttled", func(h *container.HostConfig) { h.BlkioDeviceReadIOps = throttle }, web("HostConfig.BlkioDeviceReadIOps")...),
		set("writes throttled", func(h *container.HostConfig) { h.BlkioDeviceWriteIOps = throttle }, web("HostConfig.BlkioDeviceWriteIOps")...),
		set("kernel memory", func(h *container.HostConfig) { h.KernelMemory = 32 * mib }, web("HostConfig.KernelMemory")...),
		set("kernel memory for TCP", func(h *container.HostConfig) {
			//lint:ignore SA1019 older engines take it
			h.KernelMemoryTCP = 32 * mib
		}, web("HostConfig.KernelMemoryTCP")...),
		set("real-time period", func(h *container.HostConfig) { h.CPURealtimePeriod = 900000 }, web("HostConfig.CpuRealtimePeriod")...),
		realtime,
		{name: "restart policy", want: either("space.web", "restart"), update: &container.UpdateConfig{
			RestartPolicy: container.RestartPolicy{Name: "always"},
		}},
		{name: "restart policy with retries", want: either("space.web", "restart"), update: &container.UpdateConfig{
			RestartPolicy: container.RestartPolicy{Name: "on-failure", MaximumRetryCount: 3},
		}},
		{name: "no restart policy", want: either("space.web", "restart"), update: &container.UpdateConfig{
			RestartPolicy: container.RestartPolicy{Name: "no"},
		}},
	}
}

func namespaceRows() []row {
	set := func(name string, change func(n names, s *spec), want ...string) row {
		return row{name: name, want: web(want...), recreate: change}
	}
	of := func(n names) string { return "container:" + n.of("peer") }
	return []row{
		set("processes of the host", func(_ names, s *spec) { s.Host.PidMode = "host" }, "HostConfig.PidMode", "HostConfig.SecurityOpt").notStartedOn(rootless),
		set("processes of another", func(n names, s *spec) { s.Host.PidMode = container.PidMode(of(n)) }, "HostConfig.PidMode"),
		set("shared memory of the host", func(_ names, s *spec) { s.Host.IpcMode = "host" }, "HostConfig.IpcMode", "HostConfig.SecurityOpt").notStartedOn(rootless),
		set("shared memory to share", func(_ names, s *spec) { s.Host.IpcMode = "shareable" }, "HostConfig.IpcMode"),
		set("host name of the host", func(_ names, s *spec) { s.Host.UTSMode = "host" }, "HostConfig.UTSMode"),
		set("users of the host", func(_ names, s *spec) { s.Host.UsernsMode = "host" }, "HostConfig.UsernsMode"),
		set("cgroup namespace", func(_ names, s *spec) { s.Host.CgroupnsMode = "private" }, "HostConfig.CgroupnsMode"),
		set("cgroup of another", func(n names, s *spec) { s.Host.Cgroup = container.CgroupSpec(of(n)) }, "HostConfig.Cgroup"),
		set("network of the host", func(_ names, s *spec) { s.Host.NetworkMode, s.Endpoints = "host", nil },
			"Config.Hostname", `network["host"]`, "network_mode").and(offAll()),
		set("network of another", func(n names, s *spec) {
			s.Host.NetworkMode, s.Endpoints = container.NetworkMode(of(n)), nil
			s.Host.PortBindings, s.Config.ExposedPorts = nil, nil
		}, "Config.Hostname", "network_mode", `publish["80/tcp"]`).and(offAll()),
		set("no network", func(_ names, s *spec) { s.Host.NetworkMode, s.Endpoints = "none", nil },
			`network["none"]`, "network_mode").and(offAll()),
	}
}

// offAll are the differences of web when it is on none of its networks.
func offAll() []string {
	return either("space.web", onFront, onFront+".aliases", onInside, onInside+".address", onInside+".aliases")
}

func hostRows() []row {
	set := func(name string, change func(n names, h *container.HostConfig), want ...string) row {
		return row{name: name, want: web(want...), recreate: func(n names, s *spec) { change(n, s.Host) }}
	}
	requested := set("device requested", func(_ names, h *container.HostConfig) {
		h.DeviceRequests = []container.DeviceRequest{{Driver: "nvidia", Count: -1, Capabilities: [][]string{{"gpu"}}}}
	}, "HostConfig.DeviceRequests", "state")
	requested.unstarted = true
	parent := set("parent cgroup", func(n names, h *container.HostConfig) { h.CgroupParent = "/" + n.of("parent") }, "HostConfig.CgroupParent")
	parent.undo = func(t testing.TB, p *project) {
		// In each hierarchy, or in the only one; the engine leaves them.
		for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			left, err := filepath.Glob(pattern + p.names().of("parent"))
			must(t, err)
			for _, path := range left {
				must(t, os.Remove(path))
			}
		}
	}
	return []row{
		requested,
		set("extra host", func(_ names, h *container.HostConfig) { h.ExtraHosts = []string{"example.com:192.0.2.1"} }, "HostConfig.ExtraHosts"),
		set("DNS server", func(_ names, h *container.HostConfig) { h.DNS = []string{"192.0.2.53"} }, "dns"),
		set("DNS option", func(_ names, h *container.HostConfig) { h.DNSOptions = []string{"ndots:5"} }, "HostConfig.DnsOptions"),
		set("DNS search", func(_ names, h *container.HostConfig) { h.DNSSearch = []string{"example.com"} }, "HostConfig.DnsSearch"),
		set("log driver", func(_ names, h *container.HostConfig) {
			h.LogConfig = container.LogConfig{Type: "local", Config: h.LogConfig.Config}
		}, "log_driver"),
		set("no log", func(_ names, h *container.HostConfig) { h.LogConfig = container.LogConfig{Type: "none"} }, "log_driver", `log_options["max-file"]`, `log_options["max-size"]`),
		set("log size", func(_ names, h *container.HostConfig) { h.LogConfig.Config["max-size"] = "99m" }, `log_options["max-size"]`),
		set("log option", func(_ names, h *container.HostConfig) { h.LogConfig.Config["labels"] = "x" }, `HostConfig.LogConfig.Config["labels"]`),
		set("runtime", func(_ names, h *container.HostConfig) { h.Runtime = "io.containerd.runc.v2" }, "HostConfig.Runtime"),
		set("ulimit", func(_ names, h *container.HostConfig) {
			h.Ulimits = []*units.Ulimit{{Name: "nofile", Soft: 64, Hard: 64}}
		}, `HostConfig.Ulimits["nofile"]`),
		parent,
		set("out of memory score", func(_ names, h *container.HostConfig) { h.OomScoreAdj = 500 }, "HostConfig.OomScoreAdj"),
		set("shared memory size", func(_ names, h *container.HostConfig) { h.ShmSize = 8 * mib }, "HostConfig.ShmSize"),
		set("removed when it ends", func(_ names, h *container.HostConfig) {
			h.AutoRemove, h.RestartPolicy = true, container.RestartPolicy{} // it can't have both
		}, "HostConfig.AutoRemove").and(either("space.web", "restart")),
		set("file of its id", func(n names, h *container.HostConfig) { h.ContainerIDFile = n.path("id") }, "HostConfig.ContainerIDFile"),
		set("processors", func(_ names, h *container.HostConfig) { h.CPUCount = 1 }, "HostConfig.CpuCount"),
	}
}

func stateRows() []row {
	state := func(name string, act func(t testing.TB, p *project)) row {
		return row{name: name, want: web("state"), act: act}
	}
	paused := state("paused", func(t testing.TB, p *project) {
		must(t, p.docker.ContainerPause(t.Context(), p.names().of("web")))
	})
	paused.only, paused.why = rootful, "pausing takes the freezer cgroup"
	return []row{
		paused,
		state("stopped", func(t testing.TB, p *project) { p.stop(t, "web") }),
		state("killed", func(t testing.TB, p *project) {
			must(t, p.docker.ContainerKill(t.Context(), p.names().of("web"), "KILL"))
			until(t, "the container is dead", func() bool { return !p.lab.inspect(t, p.names().of("web")).State.Running })
		}),
		{name: "removed", want: either("space.web", "missing"), act: func(t testing.TB, p *project) { p.lab.remove(t, p.names().of("web")) }},
		{name: "made and not started", want: web("state"), act: func(t testing.TB, p *project) { p.recreate(t, "web", false, nil) }},
		{name: "restarted in a loop", restless: true, want: web("command"), act: func(t testing.TB, p *project) {
			p.recreate(t, "web", true, func(_ names, s *spec) { s.Config.Cmd = strslice.StrSlice{"fail"} })
			until(t, "the engine restarts it", func() bool { return p.lab.inspect(t, p.names().of("web")).RestartCount > 0 })
		}},
		{name: "a second container of our labels", want: reality("container lab-twin", "not asked for"), act: func(t testing.TB, p *project) {
			s := specOf(p.lab.inspect(t, p.names().of("peer")))
			p.lab.create(t, p.names().of("twin"), s, true)
		}},
		{name: "a second container of our labels that holds the same port and address", want: slices.Concat(
			reality("container lab-twin", "not asked for"), either("space.web", "missing"),
		), act: func(t testing.TB, p *project) {
			s := specOf(p.lab.inspect(t, p.names().of("web")))
			p.lab.remove(t, p.names().of("web"))
			p.lab.create(t, p.names().of("twin"), s, true)
		}},
		{name: "renamed", want: slices.Concat(
			reality("container lab-other", "not asked for"), either("space.web", "missing"),
		), act: func(t testing.TB, p *project) {
			must(t, p.docker.ContainerRename(t.Context(), p.names().of("web"), p.names().of("other")))
		}},
	}
}
