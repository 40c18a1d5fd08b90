package places

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/go-units"

	"spaces/reconcile"
)

// treatment is what becomes of a field of the engine's when an object is read.
type treatment int

const (
	// compared fields are fields of reconcile's own, converted by container.go and
	// network.go.
	compared treatment = iota + 1
	// excess fields are drift wherever they differ from their default.
	excess
	// ignored fields say nothing of what a person asked for.
	ignored
)

// rule is a field's treatment. Paths are Go's: "HostConfig.PidMode", with "[]" for the
// elements of a slice or map that has rules of its own.
type rule struct {
	treatment treatment
	// note is the field of reconcile's that is compared, or why it is ignored.
	note string
	// standard is the value that isn't worth telling; nil means the zero value.
	standard func(defaults) any
	// own is a string that isn't worth telling, by the container's id.
	own func(id string) string
	// filled says that the engine may add it from its own configuration.
	filled bool
	// set says that the order of a slice's elements means nothing.
	set bool
	// told says that an empty value is no default: it is compared as well.
	told bool
	// besides are a slice's elements that are part of the default on some engines only.
	besides func(string) bool
}

// defaults are what an engine gives to a container that doesn't say.
type defaults struct {
	cgroupns string
	runtime  string
	seccomp  string // what no seccomp option means
	// tellsIPv4 says that networks are told to have IPv4 or not; before API 1.48 they
	// always have it.
	tellsIPv4 bool
}

func engineDefaults(v types.Version, info system.Info) defaults {
	d := defaults{
		cgroupns:  "host",
		runtime:   info.DefaultRuntime,
		seccomp:   seccompUnconfined,
		tellsIPv4: !versions.LessThan(v.APIVersion, "1.48"),
	}
	if info.CgroupVersion == "2" {
		d.cgroupns = "private"
	}
	for _, o := range info.SecurityOptions {
		profile, ok := strings.CutPrefix(o, "name=seccomp,profile=")
		switch {
		case !ok:
		case profile == "default", profile == "builtin":
			d.seccomp = seccompDefault
		default:
			d.seccomp = profile
		}
	}
	return d
}

func isCompared(note string) rule { return rule{treatment: compared, note: note} }
func isIgnored(why string) rule   { return rule{treatment: ignored, note: why} }

func isExcess() rule { return rule{treatment: excess} }

func (r rule) unless(v any) rule {
	r.standard = func(defaults) any { return v }
	return r
}

func (r rule) unlessFrom(f func(defaults) any) rule {
	r.standard = f
	return r
}

func (r rule) unlessOwn(f func(id string) string) rule {
	r.own = f
	return r
}

func (r rule) orFilled() rule  { r.filled = true; return r }
func (r rule) asSet() rule     { r.set = true; return r }
func (r rule) evenEmpty() rule { r.told = true; return r }

func (r rule) orWith(besides func(string) bool) rule {
	r.besides = besides
	return r
}

// Reasons that more than one field is ignored for.
const (
	whyRuntime  = "what the engine does at the moment, not what it was asked for"
	whyDerived  = "the engine makes it from fields that are compared"
	whyIdentity = "the engine's own name for a thing; things are known by our names"
	whyStorage  = "where and how the engine keeps it"
	whyLegacy   = "repeats what Networks says"
	whyUnset    = "never set by any supported engine"
	whyWindows  = "for Windows only"
)

// containerRules treat every leaf of container.InspectResponse.
func containerRules() map[string]rule {
	rules := map[string]rule{
		"ID":                      isCompared("ObservedContainer.ID"),
		"Created":                 isIgnored(whyRuntime),
		"Path":                    isIgnored(whyDerived),
		"Args":                    isIgnored(whyDerived),
		"Image":                   isCompared("image"),
		"ResolvConfPath":          isIgnored(whyStorage),
		"HostnamePath":            isIgnored(whyStorage),
		"HostsPath":               isIgnored(whyStorage),
		"LogPath":                 isIgnored(whyStorage),
		"Name":                    isCompared("Container.Name"),
		"RestartCount":            isIgnored(whyRuntime),
		"Driver":                  isIgnored(whyStorage),
		"Platform":                isIgnored("the operating system alone; the image's id says the rest"),
		"MountLabel":              isIgnored("the engine makes it from SecurityOpt"),
		"ProcessLabel":            isIgnored("the engine makes it from SecurityOpt"),
		"AppArmorProfile":         isIgnored("the engine makes it from SecurityOpt and Privileged"),
		"ExecIDs":                 isIgnored(whyRuntime),
		"GraphDriver.Data":        isIgnored(whyStorage),
		"GraphDriver.Name":        isIgnored(whyStorage),
		"SizeRw":                  isIgnored(whyRuntime),
		"SizeRootFs":              isIgnored(whyRuntime),
		"ImageManifestDescriptor": isIgnored("the image's id says it"),

		"State.Status":               isCompared("ObservedContainer.State"),
		"State.Running":              isIgnored("Status says it"),
		"State.Paused":               isIgnored("Status says it"),
		"State.Restarting":           isIgnored("Status says it"),
		"State.Dead":                 isIgnored("Status says it"),
		"State.OOMKilled":            isIgnored(whyRuntime),
		"State.Pid":                  isIgnored("only used to look at the container's mounts"),
		"State.ExitCode":             isCompared("ObservedContainer.ExitCode"),
		"State.Error":                isIgnored(whyRuntime),
		"State.StartedAt":            isIgnored(whyRuntime),
		"State.FinishedAt":           isIgnored(whyRuntime),
		"State.Health.Status":        isCompared("ObservedContainer.Health"),
		"State.Health.FailingStreak": isIgnored(whyRuntime),
		"State.Health.Log":           isIgnored(whyRuntime),

		"Mounts[].Type":        isCompared("mount"),
		"Mounts[].Name":        isCompared("mount"),
		"Mounts[].Source":      isCompared("mount"),
		"Mounts[].Destination": isCompared("mount"),
		"Mounts[].Driver":      isCompared("mount"),
		"Mounts[].Mode":        isIgnored("the engine makes it from Binds, whose options are compared"),
		"Mounts[].RW":          isCompared("mount"),
		"Mounts[].Propagation": isCompared("mount"),
	}
	maps.Copy(rules, configRules())
	maps.Copy(rules, hostConfigRules())
	maps.Copy(rules, resourceRules())
	maps.Copy(rules, mountSpecRules())
	maps.Copy(rules, endpointRules())
	return rules
}

func configRules() map[string]rule {
	return map[string]rule{
		"Config.Hostname":                  isExcess().unlessOwn(shortID),
		"Config.Domainname":                isExcess(),
		"Config.User":                      isCompared("user"),
		"Config.AttachStdin":               isIgnored("says who listened when it was made; OpenStdin is what lasts"),
		"Config.AttachStdout":              isIgnored("says who listened when it was made"),
		"Config.AttachStderr":              isIgnored("says who listened when it was made"),
		"Config.ExposedPorts":              isExcess(), // less the image's and the published, see imageExcess
		"Config.Tty":                       isExcess(),
		"Config.OpenStdin":                 isExcess(),
		"Config.StdinOnce":                 isExcess(),
		"Config.Env":                       isCompared("env"),
		"Config.Cmd":                       isCompared("command"),
		"Config.Healthcheck.Test":          isCompared("healthcheck"),
		"Config.Healthcheck.Interval":      isCompared("healthcheck"),
		"Config.Healthcheck.Timeout":       isCompared("healthcheck"),
		"Config.Healthcheck.StartPeriod":   isCompared("healthcheck"),
		"Config.Healthcheck.StartInterval": isCompared("healthcheck"),
		"Config.Healthcheck.Retries":       isCompared("healthcheck"),
		"Config.ArgsEscaped":               isIgnored(whyWindows),
		"Config.Image":                     isCompared("image"),
		"Config.Volumes":                   isIgnored("each has become one of Mounts, unless something else is mounted there"),
		"Config.WorkingDir":                isCompared("working_dir"),
		"Config.Entrypoint":                isCompared("entrypoint"),
		"Config.NetworkDisabled":           isExcess(),
		"Config.MacAddress":                isExcess(),
		"Config.OnBuild":                   isIgnored("only read when an image is built from this one"),
		"Config.Labels":                    isCompared("labels"),
		"Config.StopSignal":                isCompared("stop_signal"),
		"Config.StopTimeout":               isCompared("stop_timeout"),
		"Config.Shell":                     isExcess(), // less the image's, see imageExcess
	}
}

func hostConfigRules() map[string]rule {
	return map[string]rule{
		"HostConfig.Binds":                           isCompared("mount"),
		"HostConfig.ContainerIDFile":                 isExcess(),
		"HostConfig.LogConfig.Type":                  isCompared("log_driver"),
		"HostConfig.LogConfig.Config":                isCompared("log_options; the keys we never ask for are excess, see logOptions"),
		"HostConfig.NetworkMode":                     isCompared("network_mode"),
		"HostConfig.PortBindings":                    isCompared("publish"),
		"HostConfig.RestartPolicy.Name":              isCompared("restart"),
		"HostConfig.RestartPolicy.MaximumRetryCount": isCompared("restart"),
		"HostConfig.AutoRemove":                      isExcess(),
		"HostConfig.VolumeDriver":                    isExcess(),
		"HostConfig.VolumesFrom":                     isExcess().asSet(),
		"HostConfig.ConsoleSize":                     isIgnored("the size of a terminal at the moment it was made"),
		"HostConfig.Annotations":                     isExcess(),
		"HostConfig.CapAdd":                          isCompared("cap_add"),
		"HostConfig.CapDrop":                         isCompared("cap_drop"),
		"HostConfig.CgroupnsMode":                    isExcess().unlessFrom(func(d defaults) any { return d.cgroupns }).orFilled(),
		"HostConfig.DNS":                             isCompared("dns"),
		"HostConfig.DNSOptions":                      isExcess(),
		"HostConfig.DNSSearch":                       isExcess(),
		"HostConfig.ExtraHosts":                      isExcess().asSet(),
		"HostConfig.GroupAdd":                        isCompared("group_add"),
		"HostConfig.IpcMode":                         isExcess().unless("private").orFilled(),
		"HostConfig.Cgroup":                          isExcess(),
		"HostConfig.Links":                           isExcess().asSet(),
		"HostConfig.OomScoreAdj":                     isExcess(),
		"HostConfig.PidMode":                         isExcess(),
		"HostConfig.Privileged":                      isExcess(),
		"HostConfig.PublishAllPorts":                 isExcess(),
		"HostConfig.ReadonlyRootfs":                  isCompared("read_only"),
		"HostConfig.SecurityOpt":                     isCompared("no_new_privileges, seccomp; the rest is excess, see securityOptions"),
		"HostConfig.StorageOpt":                      isExcess(),
		"HostConfig.Tmpfs":                           isCompared("tmpfs"),
		"HostConfig.UTSMode":                         isExcess(),
		"HostConfig.UsernsMode":                      isExcess(),
		"HostConfig.ShmSize":                         isExcess().unless(int64(64 << 20)).orFilled(),
		"HostConfig.Sysctls":                         isCompared("sysctls"),
		"HostConfig.Runtime":                         isExcess().unlessFrom(func(d defaults) any { return d.runtime }).orFilled(),
		"HostConfig.Isolation":                       isExcess().unless("default"),
		"HostConfig.MaskedPaths":                     isExcess().unless(maskedPaths()).asSet().orFilled().evenEmpty().orWith(isLaterMaskedPath),
		"HostConfig.ReadonlyPaths":                   isExcess().unless(readonlyPaths()).asSet().orFilled().evenEmpty(),
		"HostConfig.Init":                            isCompared("init"),
		"HostConfig.Resources.CPUShares":             isExcess(),
		"HostConfig.Resources.Memory":                isCompared("limits.memory"),
		"HostConfig.Resources.NanoCPUs":              isCompared("limits.cpus"),
		"HostConfig.Resources.CgroupParent":          isExcess().orFilled(),
		"HostConfig.Resources.BlkioWeight":           isExcess(),
		"HostConfig.Resources.BlkioWeightDevice":     isExcess().asSet(),
		"HostConfig.Resources.BlkioDeviceReadBps":    isExcess().asSet(),
		"HostConfig.Resources.BlkioDeviceWriteBps":   isExcess().asSet(),
		"HostConfig.Resources.BlkioDeviceReadIOps":   isExcess().asSet(),
		"HostConfig.Resources.BlkioDeviceWriteIOps":  isExcess().asSet(),
		"HostConfig.Resources.Devices":               isCompared("devices"),
		"HostConfig.Resources.DeviceCgroupRules":     isExcess().asSet(),
		"HostConfig.Resources.DeviceRequests":        isExcess().asSet(),
		"HostConfig.Resources.MemorySwap":            isCompared("limits.memory_swap"),
		"HostConfig.Resources.PidsLimit":             isCompared("limits.pids"),
		"HostConfig.Resources.Ulimits":               isExcess().asSet().orFilled(),
	}
}

func resourceRules() map[string]rule {
	return map[string]rule{
		"HostConfig.Resources.CPUPeriod":          isExcess(),
		"HostConfig.Resources.CPUQuota":           isExcess(),
		"HostConfig.Resources.CPURealtimePeriod":  isExcess(),
		"HostConfig.Resources.CPURealtimeRuntime": isExcess(),
		"HostConfig.Resources.CpusetCpus":         isExcess(),
		"HostConfig.Resources.CpusetMems":         isExcess(),
		"HostConfig.Resources.KernelMemory":       isExcess(),
		"HostConfig.Resources.KernelMemoryTCP":    isExcess(),
		"HostConfig.Resources.MemoryReservation":  isExcess(),
		"HostConfig.Resources.MemorySwappiness":   isExcess().unless(int64(-1)),
		"HostConfig.Resources.OomKillDisable":     isExcess().unless(false),
		"HostConfig.Resources.CPUCount":           isExcess(),
		"HostConfig.Resources.CPUPercent":         isExcess(),
		"HostConfig.Resources.IOMaximumIOps":      isExcess(),
		"HostConfig.Resources.IOMaximumBandwidth": isExcess(),
	}
}

// mountSpecRules treat what was asked of a mount, beside what came of it in Mounts.
func mountSpecRules() map[string]rule {
	rules := map[string]rule{}
	for _, field := range []string{
		"Type", "Source", "Target", "ReadOnly", "Consistency",
		"BindOptions.Propagation", "BindOptions.NonRecursive", "BindOptions.CreateMountpoint",
		"BindOptions.ReadOnlyNonRecursive", "BindOptions.ReadOnlyForceRecursive",
		"VolumeOptions.NoCopy", "VolumeOptions.Labels", "VolumeOptions.Subpath",
		"VolumeOptions.DriverConfig.Name", "VolumeOptions.DriverConfig.Options",
		"ImageOptions.Subpath",
		"TmpfsOptions.SizeBytes", "TmpfsOptions.Mode", "TmpfsOptions.Options",
	} {
		rules["HostConfig.Mounts[]."+field] = isCompared("mount")
	}
	return rules
}

// endpointRules treat a container's networks. The elements' excess is a field of its
// endpoint, not of the container.
func endpointRules() map[string]rule {
	rules := map[string]rule{
		"NetworkSettings.NetworkSettingsBase.Bridge":                 isIgnored(whyRuntime),
		"NetworkSettings.NetworkSettingsBase.SandboxID":              isIgnored(whyRuntime),
		"NetworkSettings.NetworkSettingsBase.SandboxKey":             isIgnored(whyRuntime),
		"NetworkSettings.NetworkSettingsBase.Ports":                  isIgnored("what came of PortBindings, which is compared; empty once it stopped"),
		"NetworkSettings.NetworkSettingsBase.HairpinMode":            isIgnored(whyUnset),
		"NetworkSettings.NetworkSettingsBase.LinkLocalIPv6Address":   isIgnored(whyUnset),
		"NetworkSettings.NetworkSettingsBase.LinkLocalIPv6PrefixLen": isIgnored(whyUnset),
		"NetworkSettings.NetworkSettingsBase.SecondaryIPAddresses":   isIgnored(whyUnset),
		"NetworkSettings.NetworkSettingsBase.SecondaryIPv6Addresses": isIgnored(whyUnset),
	}
	for _, field := range []string{
		"EndpointID", "Gateway", "GlobalIPv6Address", "GlobalIPv6PrefixLen",
		"IPAddress", "IPPrefixLen", "IPv6Gateway", "MacAddress",
	} {
		rules["NetworkSettings.DefaultNetworkSettings."+field] = isIgnored(whyLegacy)
	}
	for field, r := range map[string]rule{
		"IPAMConfig.IPv4Address":  isCompared("network.address"),
		"IPAMConfig.IPv6Address":  isCompared("network.address, or excess beside an IPv4 one"),
		"IPAMConfig.LinkLocalIPs": isExcess().asSet(),
		"Links":                   isExcess().asSet(),
		"Aliases":                 isCompared("network.aliases"),
		"MacAddress":              isIgnored("the engine makes one up and shows it no differently from an asked one; see macAddress"),
		"DriverOpts":              isExcess(),
		"GwPriority":              isExcess(),
		"NetworkID":               isCompared("network, by its name"),
		"EndpointID":              isCompared("network.EndpointID, where a container runs and has none"),
		"Gateway":                 isIgnored(whyRuntime),
		"IPAddress":               isIgnored(whyRuntime),
		"IPPrefixLen":             isIgnored(whyRuntime),
		"IPv6Gateway":             isIgnored(whyRuntime),
		"GlobalIPv6Address":       isIgnored(whyRuntime),
		"GlobalIPv6PrefixLen":     isIgnored(whyRuntime),
		"DNSNames":                isIgnored("the engine makes it from the name and Aliases"),
	} {
		rules["NetworkSettings.Networks[]."+field] = r
	}
	return rules
}

// networkRules treat every leaf of network.Inspect.
func networkRules() map[string]rule {
	return map[string]rule{
		"Name":                     isCompared("Network.Name"),
		"ID":                       isIgnored(whyIdentity),
		"Created":                  isIgnored(whyRuntime),
		"Scope":                    isExcess().unless("local"),
		"Driver":                   isCompared("driver"),
		"EnableIPv4":               isCompared("excess where the engine tells that it is off"),
		"EnableIPv6":               isExcess(),
		"IPAM.Driver":              isExcess().unless("default"),
		"IPAM.Options":             isExcess(),
		"IPAM.Config[].Subnet":     isCompared("subnet; a second one is excess"),
		"IPAM.Config[].IPRange":    isCompared("ip_range"),
		"IPAM.Config[].Gateway":    isCompared("excess where it isn't the subnet's first address, see gateway"),
		"IPAM.Config[].AuxAddress": isExcess(),
		"Internal":                 isCompared("internal"),
		"Attachable":               isExcess(),
		"Ingress":                  isExcess(),
		"ConfigFrom.Network":       isExcess(),
		"ConfigOnly":               isExcess(),
		"Containers":               isIgnored("members are read from every container, as stopped ones aren't here"),
		"Options":                  isCompared("options"),
		"Labels":                   isCompared("labels"),
		"Peers":                    isIgnored("of a swarm's networks, which Scope tells"),
		"Services":                 isIgnored("of a swarm's networks, which Scope tells"),
	}
}

// volumeRules treat every leaf of volume.Volume.
func volumeRules() map[string]rule {
	return map[string]rule{
		"ClusterVolume": isIgnored("of a swarm's volumes, which Scope tells"),
		"CreatedAt":     isIgnored(whyRuntime),
		"Driver":        isCompared("driver"),
		"Labels":        isCompared("labels"),
		"Mountpoint":    isIgnored(whyStorage),
		"Name":          isCompared("Volume.Name"),
		"Options":       isCompared("options"),
		"Scope":         isExcess().unless("local"),
		"Status":        isIgnored(whyStorage),
		"UsageData":     isIgnored(whyRuntime),
	}
}

// maskedPaths are what every supported engine hides of /proc and /sys in a container
// (moby's oci/defaults.go); the order is theirs.
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
	}
}

// isLaterMaskedPath is true for what later releases hide as well.
func isLaterMaskedPath(path string) bool {
	return path == "/proc/interrupts" || path == "/sys/devices/virtual/powercap" ||
		strings.HasPrefix(path, "/sys/devices/system/cpu/cpu") && strings.HasSuffix(path, "/thermal_throttle")
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// ulimitsType is that of the one slice of which each element has a name.
var ulimitsType = reflect.TypeFor[[]*units.Ulimit]()

// leaf is a field to look at in every object of a type.
type leaf struct {
	path     string // as reported
	index    []int
	rule     rule
	standard any    // the rule's, on this engine
	spelt    string // the same, as it would be reported
}

// excessLeaves resolve the excess rules of a struct to field indexes, sorted by path.
// Rules of elements ("[]") belong to the elements' type.
func excessLeaves(t reflect.Type, prefix string, rules map[string]rule, d defaults) []leaf {
	var out []leaf
	for path, r := range rules {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok || r.treatment != excess || strings.Contains(rest, "[]") {
			continue
		}
		index, name, ok := resolveField(t, strings.Split(rest, "."))
		if !ok {
			panic("places: the table of fields names " + path + ", which doesn't exist")
		}
		l := leaf{path: name, index: index, rule: r}
		if r.standard != nil {
			l.standard = r.standard(d)
			l.spelt = spell(reflect.ValueOf(l.standard), r.set)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out
}

// resolveField finds a field by Go's path, with the path that it has in the engine's
// JSON, which knows no embedded structs.
func resolveField(t reflect.Type, path []string) (index []int, name string, ok bool) {
	var names []string
	for _, part := range path {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil, "", false
		}
		f, ok := t.FieldByName(part)
		if !ok {
			return nil, "", false
		}
		if !f.Anonymous {
			names = append(names, jsonName(f))
		}
		index, t = append(index, f.Index...), f.Type
	}
	return index, strings.Join(names, "."), true
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

// excessOf are the leaves of a struct that differ from their defaults, in the leaves'
// order. A nil pointer on the way means defaults.
func excessOf(v reflect.Value, leaves []leaf, id string) []reconcile.Field {
	var out []reconcile.Field
	for i := range leaves {
		l := &leaves[i]
		f, err := v.FieldByIndexErr(l.index)
		if err != nil || f.IsZero() && !l.rule.told {
			continue
		}
		out = append(out, l.excess(f, id)...)
	}
	return out
}

// excess spells a field's value unless it is the default. To the engine the zero value
// means the default, but for what a pointer points to.
func (l *leaf) excess(v reflect.Value, id string) []reconcile.Field {
	told := l.rule.told || v.Kind() == reflect.Pointer
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case isEmpty(v) && !told, l.isStandard(v, id):
		return nil
	case v.Kind() == reflect.Map:
		return l.entries(v)
	case v.Type() == ulimitsType:
		return l.ulimits(v.Interface().([]*units.Ulimit))
	}
	return []reconcile.Field{l.field("", spell(v, l.rule.set))}
}

func (l *leaf) isStandard(v reflect.Value, id string) bool {
	switch {
	case l.rule.own != nil:
		return v.String() == l.rule.own(id)
	case l.standard == nil:
		return false
	case v.Kind() == reflect.String:
		return v.String() == l.spelt
	}
	if list, ok := v.Interface().([]string); ok && slices.Equal(list, l.standard.([]string)) {
		return true // in the engine's own order, as nearly always
	}
	return spell(l.trimmed(v), l.rule.set) == l.spelt
}

// trimmed leaves out of a slice of strings what only some engines have by default.
func (l *leaf) trimmed(v reflect.Value) reflect.Value {
	all, ok := v.Interface().([]string)
	if !ok || l.rule.besides == nil {
		return v
	}
	return reflect.ValueOf(slices.DeleteFunc(slices.Clone(all), l.rule.besides))
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func (l *leaf) field(key, value string) reconcile.Field {
	path := l.path
	if key != "" {
		path += "[" + strconv.Quote(key) + "]"
	}
	return reconcile.Field{Path: path, Value: value, EngineFilled: l.rule.filled}
}

// entries are a field for each key of a map.
func (l *leaf) entries(v reflect.Value) []reconcile.Field {
	var out []reconcile.Field
	for _, k := range v.MapKeys() {
		out = append(out, l.field(k.String(), scalar(v.MapIndex(k))))
	}
	slices.SortFunc(out, func(a, b reconcile.Field) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (l *leaf) ulimits(all []*units.Ulimit) []reconcile.Field {
	var out []reconcile.Field
	for _, u := range all {
		out = append(out, l.field(u.Name, fmt.Sprintf("%d:%d", u.Soft, u.Hard)))
	}
	slices.SortFunc(out, func(a, b reconcile.Field) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// elements spells a slice as JSON, one that means a set in sorted order.
func elements(v reflect.Value, set bool) string {
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = compactJSON(v.Index(i).Interface())
	}
	if set {
		slices.Sort(parts)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// spell is a value as it is reported.
func spell(v reflect.Value, set bool) string {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return elements(v, set)
	}
	return scalar(v)
}

// scalar spells a value that isn't a slice; strings stand for themselves.
func scalar(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	return compactJSON(v.Interface())
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Every type in the table came out of JSON.
		panic("places: cannot spell a value of the engine's: " + err.Error())
	}
	return string(b)
}
