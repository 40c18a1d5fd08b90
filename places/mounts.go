package places

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"spaces/reconcile"
)

// anonymous stands for the random name of a volume that nobody named.
const anonymous = "(anonymous)"

// mountsOf are what a container sees, by target: what the engine mounts, by whichever
// of the API's ways it was asked, with the options it was asked with.
func mountsOf(in container.InspectResponse) map[string]reconcile.Mount {
	out := map[string]reconcile.Mount{}
	for _, m := range in.Mounts {
		out[path.Clean(m.Destination)] = mountPoint(m)
	}
	if in.HostConfig == nil {
		return out
	}
	for _, m := range in.HostConfig.Mounts {
		askMount(out, m)
	}
	for _, b := range in.HostConfig.Binds {
		askBind(out, b)
	}
	return out
}

func mountPoint(m container.MountPoint) reconcile.Mount {
	out := reconcile.Mount{Type: string(m.Type), Source: m.Source, Writable: m.RW}
	var options []string
	switch m.Type {
	case mount.TypeVolume:
		out.Source = volumeName(m.Name)
		if m.Driver != "" && m.Driver != localDriver {
			options = append(options, "driver="+m.Driver)
		}
	case mount.TypeBind:
		// "" is what it is before the first start on some releases.
		if m.Propagation != "" && m.Propagation != mount.PropagationRPrivate {
			options = append(options, "propagation="+string(m.Propagation))
		}
	}
	out.Options = strings.Join(options, ",")
	return out
}

// volumeName hides the name of an anonymous volume, which differs each time: 64 hex
// digits, which no volume of ours has.
func volumeName(name string) string {
	const digits = 64
	if len(name) == digits && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdef", r)
	}) {
		return anonymous
	}
	return name
}

// askMount adds what was asked of a mount beside its type, source and target.
func askMount(out map[string]reconcile.Mount, spec mount.Mount) {
	target := path.Clean(spec.Target)
	m, ok := out[target]
	if !ok {
		m = reconcile.Mount{Type: string(spec.Type), Source: spec.Source, Writable: !spec.ReadOnly, Options: "not mounted"}
	}
	options := append(splitOptions(m.Options), mountOptions(spec)...)
	if spec.Type != mount.Type(m.Type) {
		options = append(options, "asked="+string(spec.Type))
	}
	if spec.Source != "" && spec.Source != m.Source {
		options = append(options, "asked="+spec.Source)
	}
	if spec.ReadOnly == m.Writable {
		options = append(options, "asked-writable="+strconv.FormatBool(!spec.ReadOnly))
	}
	m.Options = joinOptions(options)
	out[target] = m
}

func mountOptions(spec mount.Mount) []string {
	var out []string
	flag := func(set bool, name string) {
		if set {
			out = append(out, name)
		}
	}
	value := func(name, v string) {
		if v != "" {
			out = append(out, name+"="+v)
		}
	}
	if spec.Consistency != mount.ConsistencyDefault {
		value("consistency", string(spec.Consistency))
	}
	if o := spec.BindOptions; o != nil {
		// Propagation is in the mount point.
		flag(o.NonRecursive, "non-recursive")
		flag(o.CreateMountpoint, "create-source")
		flag(o.ReadOnlyNonRecursive, "read-only-non-recursive")
		flag(o.ReadOnlyForceRecursive, "read-only-force-recursive")
	}
	if o := spec.VolumeOptions; o != nil {
		flag(o.NoCopy, "no-copy")
		value("subpath", o.Subpath)
		if len(o.Labels) > 0 {
			value("labels", compactJSON(o.Labels))
		}
		if d := o.DriverConfig; d != nil && (d.Name != "" && d.Name != localDriver || len(d.Options) > 0) {
			value("driver", compactJSON(d))
		}
	}
	if o := spec.ImageOptions; o != nil {
		value("subpath", o.Subpath)
	}
	if o := spec.TmpfsOptions; o != nil {
		flag(o.SizeBytes != 0, fmt.Sprintf("size=%d", o.SizeBytes))
		flag(o.Mode != 0, fmt.Sprintf("mode=%o", o.Mode))
		flag(len(o.Options) > 0, "options="+compactJSON(o.Options))
	}
	return out
}

// askBind adds the options of a bind's third part that the mount point doesn't say.
func askBind(out map[string]reconcile.Mount, bind string) {
	parts := strings.Split(bind, ":")
	if len(parts) < 2 {
		return // "/target", an anonymous volume
	}
	target := path.Clean(parts[1])
	m, ok := out[target]
	if !ok {
		m = reconcile.Mount{Type: string(mount.TypeBind), Source: parts[0], Options: "not mounted"}
	}
	options := splitOptions(m.Options)
	if len(parts) > 2 {
		for o := range strings.SplitSeq(parts[2], ",") {
			if o != "rw" && o != "ro" && !slices.Contains(mount.Propagations, mount.Propagation(o)) {
				options = append(options, o)
			}
		}
	}
	m.Options = joinOptions(options)
	out[target] = m
}

func splitOptions(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func joinOptions(options []string) string {
	slices.Sort(options)
	return strings.Join(slices.Compact(options), ",")
}
