//go:build engine

package testscripts

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"
)

// Reasons for which more than one field has no row.
const (
	whyOutcome = "what came of it, not what was asked"
	whyWindows = "the engine takes it on Windows alone"
	whySwarm   = "of a swarm"
	whyIgnored = "says who listened as it was made; places/fields.go ignores it, with this reason"
	whyWeight  = "the kernel has no weights for block devices, so the engine drops it"
)

// withoutRow are the fields of the API that no row changes, and why. A name that ends
// with a dot is all that it holds.
var withoutRow = map[string]string{
	"Config.AttachStdin":               whyIgnored,
	"Config.AttachStdout":              whyIgnored,
	"Config.AttachStderr":              whyIgnored,
	"Config.ArgsEscaped":               whyWindows,
	"Config.OnBuild":                   "only read when an image is built; places/fields.go ignores it",
	"Config.Healthcheck.StartInterval": "from API 1.44 on",

	"HostConfig.ConsoleSize":                  "the size of a terminal at the moment; places/fields.go ignores it",
	"HostConfig.Annotations":                  "from API 1.43 on",
	"HostConfig.StorageOpt":                   "only on XFS with project quotas",
	"HostConfig.Isolation":                    whyWindows,
	"HostConfig.Resources.CPUPercent":         whyWindows,
	"HostConfig.Resources.IOMaximumIOps":      whyWindows,
	"HostConfig.Resources.IOMaximumBandwidth": whyWindows,
	"HostConfig.Resources.BlkioWeight":        whyWeight,
	"HostConfig.Resources.BlkioWeightDevice":  whyWeight,

	"HostConfig.Mounts[].BindOptions.CreateMountpoint":       "from API 1.42 on",
	"HostConfig.Mounts[].BindOptions.ReadOnlyNonRecursive":   "from API 1.44 on",
	"HostConfig.Mounts[].BindOptions.ReadOnlyForceRecursive": "from API 1.44 on",
	"HostConfig.Mounts[].VolumeOptions.Subpath":              "from API 1.45 on",
	"HostConfig.Mounts[].ImageOptions.Subpath":               "from API 1.47 on",
	"HostConfig.Mounts[].TmpfsOptions.Options":               "from API 1.46 on",

	"EndpointSettings.MacAddress":          "from API 1.44 on; until then Config.MacAddress is it",
	"EndpointSettings.GwPriority":          "from API 1.48 on",
	"EndpointSettings.NetworkID":           whyOutcome,
	"EndpointSettings.EndpointID":          whyOutcome,
	"EndpointSettings.Gateway":             whyOutcome,
	"EndpointSettings.IPAddress":           whyOutcome,
	"EndpointSettings.IPPrefixLen":         whyOutcome,
	"EndpointSettings.IPv6Gateway":         whyOutcome,
	"EndpointSettings.GlobalIPv6Address":   whyOutcome,
	"EndpointSettings.GlobalIPv6PrefixLen": whyOutcome,
	"EndpointSettings.DNSNames":            whyOutcome,

	"Network.Driver":      "the kernel has no driver but the bridge's",
	"Network.Scope":       whySwarm,
	"Network.EnableIPv4":  "from API 1.47 on",
	"Network.IPAM.Driver": "the engine has no other one that a bridge can use",
	"Network.Ingress":     whySwarm,

	"Volume.ClusterVolumeSpec": whySwarm,
	"Volume.Driver":            "the engine has one driver without plugins",
	"Volume.Name":              "another name is another volume",
}

// TestRootlessEveryFieldHasARow: what the API takes when something is made is changed by
// a row, or stands above with its reason. It needs no engine, and runs with those that do.
func TestRootlessEveryFieldHasARow(t *testing.T) {
	var fields []string
	fields = append(fields, leaves("Config", reflect.TypeFor[container.Config]())...)
	fields = append(fields, leaves("HostConfig", reflect.TypeFor[container.HostConfig]())...)
	fields = append(fields, leaves("EndpointSettings", reflect.TypeFor[network.EndpointSettings]())...)
	fields = append(fields, leaves("Network", reflect.TypeFor[network.CreateOptions]())...)
	fields = append(fields, slices.DeleteFunc(leaves("Volume", reflect.TypeFor[volume.CreateOptions]()), func(f string) bool {
		return strings.HasPrefix(f, "Volume.ClusterVolumeSpec.") && withoutRow["Volume.ClusterVolumeSpec"] != ""
	})...)
	changed := map[string]string{}
	for _, r := range rows() {
		if r.only != "" && r.why == "" {
			t.Errorf("row %q runs on one engine and doesn't say why", r.name)
		}
		for _, f := range r.changes() {
			if !slices.Contains(fields, f) {
				t.Errorf("row %q changes %s, which isn't a field", r.name, f)
			}
			changed[f] = r.name
		}
	}
	for _, f := range fields {
		switch _, excused := withoutRow[f]; {
		case changed[f] == "" && !excused:
			t.Errorf("%s: no row changes it, and no reason is given", f)
		case changed[f] != "" && excused:
			t.Errorf("%s: row %q changes it, so the reason for having none is out of date", f, changed[f])
		}
	}
	for f := range withoutRow {
		if !slices.Contains(fields, f) && f != "Volume.ClusterVolumeSpec" {
			t.Errorf("%s has a reason and isn't a field", f)
		}
	}
	t.Logf("%d rows change %d of %d fields", len(rows()), len(changed), len(fields))
}

// TestRootlessRowsDiffer: a row is known by its name alone.
func TestRootlessRowsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] {
			t.Errorf("two rows are called %q", r.name)
		}
		seen[r.name] = true
		if len(r.want) == 0 {
			t.Errorf("row %q wants nothing", r.name)
		}
	}
}

// changes are the fields that a row changes, found by letting it change a sample.
func (r row) changes() []string {
	n := names{"lab0", "/home/lab"}
	switch {
	case r.recreate != nil:
		after := sample()
		r.recreate(n, &after)
		return changedLeaves(sample(), after)
	case r.update != nil:
		return updateLeaves(*r.update)
	case r.endpoint != nil:
		before, after := sample(), sample()
		r.endpoint(n, after.Endpoints["lab0-inside"])
		return changedLeaves(before, after)
	case r.network != nil:
		after := sampleNetwork()
		r.network(n, &after)
		return networkLeaves(sampleNetwork(), after)
	case r.volume != nil:
		after := volume.CreateOptions{Labels: map[string]string{}}
		r.volume(n, &after)
		return volumeLeaves(volume.CreateOptions{Labels: map[string]string{}}, after)
	}
	return r.covers
}

func sampleNetwork() network.CreateOptions {
	return network.CreateOptions{
		Driver: "bridge", Internal: true, Labels: map[string]string{},
		IPAM: &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: "10.0.0.0/24", Gateway: "10.0.0.1"}}},
	}
}

// sample is a container much like web, for no engine.
func sample() spec {
	timeout, init := 5, true
	bind := func(target string) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: "/source" + target, Target: target, ReadOnly: target != "/work"}
	}
	return spec{
		Config: &container.Config{
			User: "1000:1000", WorkingDir: "/scratch", Image: "lab0-payload:1",
			Env:        []string{"GREETING=hello", "EMPTY="},
			Entrypoint: []string{"/payload"}, Cmd: []string{"wait"},
			StopSignal: "SIGTERM", StopTimeout: &timeout,
			Healthcheck:  &container.HealthConfig{Test: []string{"CMD", "/payload", "ok"}, Interval: 30e9, Timeout: 5e9},
			Labels:       map[string]string{"spaces.name": "web", "spaces.applied": "1:a:b:c", "spaces.format": "1"},
			ExposedPorts: nat.PortSet{"80/tcp": {}},
		},
		Host: &container.HostConfig{
			NetworkMode: "lab0-front", ReadonlyRootfs: true, Init: &init,
			CapAdd: []string{"NET_BIND_SERVICE"}, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges=true"},
			RestartPolicy: container.RestartPolicy{Name: "unless-stopped"},
			LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "3"}},
			Tmpfs:         map[string]string{"/tmp": "noexec,nosuid", "/scratch": "noexec,nosuid"},
			PortBindings:  nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: "1"}}},
			MaskedPaths:   []string{"/proc/acpi", "/proc/keys"}, ReadonlyPaths: []string{"/proc/sys"},
			IpcMode: "private", ShmSize: 64 * mib, Runtime: "runc", CgroupnsMode: "host",
			Mounts: []mount.Mount{
				bind("/notes"), bind("/work"), bind("/file"), bind("/run/token"),
				{Type: mount.TypeVolume, Source: "lab0-cache", Target: "/cache"},
			},
			Resources: container.Resources{Memory: 64 * mib, MemorySwap: 64 * mib, NanoCPUs: 5e8},
		},
		Endpoints: map[string]*network.EndpointSettings{
			"lab0-front":  {Aliases: []string{"web"}},
			"lab0-inside": {Aliases: []string{"one", "two", "web"}, IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.0.0.10"}},
		},
	}
}
