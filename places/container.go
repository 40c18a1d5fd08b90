package places

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"

	"spaces/reconcile"
	"spaces/schema"
)

const (
	seccompDefault    = "default"
	seccompUnconfined = "unconfined"

	shortIDLength = 12

	tcp = "tcp"
)

// shortID is the form of an id that an engine uses as host name and as an alias.
func shortID(id string) string { return id[:min(shortIDLength, len(id))] }

// createConfig spells a container for the engine, but for its networks: see
// endpointSettings. What reconcile leaves empty is left to the engine, so limits that it
// can't hold must be zero. A value that has no spelling is an error: the container
// would not be as it was asked.
func createConfig(c reconcile.Container) (*container.Config, *container.HostConfig, error) {
	host, err := hostConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot ask for container %s: %w", c.Name, err)
	}
	config := &container.Config{
		User:         c.User,
		Env:          environment(c.Env),
		Cmd:          c.Command,
		Entrypoint:   c.Entrypoint,
		Image:        c.Image,
		WorkingDir:   c.WorkingDir,
		Labels:       maps.Clone(c.Labels),
		StopSignal:   c.StopSignal,
		StopTimeout:  c.StopTimeout,
		Healthcheck:  healthConfig(c.Healthcheck),
		ExposedPorts: nat.PortSet{},
	}
	// A binding of a port that isn't exposed publishes nothing.
	for port := range host.PortBindings {
		config.ExposedPorts[port] = struct{}{}
	}
	return config, host, nil
}

// isPredefined is true for the engine's own networks, which have no endpoint settings.
func isPredefined(name string) bool {
	return name == network.NetworkNone || name == network.NetworkHost || name == network.NetworkBridge
}

func hostConfig(c reconcile.Container) (*container.HostConfig, error) {
	mounts, err := mountSpecs(c.Mounts)
	if err != nil {
		return nil, err
	}
	bindings, err := portMap(c.Publish)
	if err != nil {
		return nil, err
	}
	devices, err := deviceMappings(c.Devices)
	if err != nil {
		return nil, err
	}
	init := c.Init
	return &container.HostConfig{
		NetworkMode:    container.NetworkMode(c.NetworkMode),
		PortBindings:   bindings,
		RestartPolicy:  restartPolicy(c.Restart),
		LogConfig:      container.LogConfig{Type: c.LogDriver, Config: maps.Clone(c.LogOptions)},
		CapAdd:         c.CapAdd,
		CapDrop:        c.CapDrop,
		DNS:            c.DNS,
		GroupAdd:       c.GroupAdd,
		ReadonlyRootfs: c.ReadOnlyRoot,
		SecurityOpt:    securityOpt(c),
		Tmpfs:          maps.Clone(c.Tmpfs),
		Sysctls:        maps.Clone(c.Sysctls),
		Mounts:         mounts,
		Init:           &init,
		Resources:      resources(c, devices),
	}, nil
}

func resources(c reconcile.Container, devices []container.DeviceMapping) container.Resources {
	r := container.Resources{
		Memory:     c.Memory,
		MemorySwap: c.MemorySwap,
		NanoCPUs:   c.NanoCPUs,
		Devices:    devices,
	}
	if c.PIDs != 0 {
		pids := c.PIDs
		r.PidsLimit = &pids
	}
	return r
}

func restartPolicy(r schema.Restart) container.RestartPolicy {
	return container.RestartPolicy{
		Name:              container.RestartPolicyMode(cmp.Or(r.Name, "no")),
		MaximumRetryCount: r.MaxRetries,
	}
}

func securityOpt(c reconcile.Container) []string {
	// Said even when false, as an engine may have it on unless told.
	opts := []string{"no-new-privileges=" + strconv.FormatBool(c.NoNewPrivileges)}
	if c.Seccomp == seccompUnconfined {
		opts = append(opts, "seccomp="+seccompUnconfined)
	}
	return opts
}

// environment spells variables in the order of their names, so that the same container
// is always asked for in the same words.
func environment(env map[string]reconcile.EnvValue) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name].Value)
	}
	return out
}

// mountSpecs are of the kind that fails on a missing source; Binds would create it, as
// root on a rootful engine.
func mountSpecs(mounts map[string]reconcile.Mount) ([]mount.Mount, error) {
	var out []mount.Mount
	for _, target := range slices.Sorted(maps.Keys(mounts)) {
		m := mounts[target]
		if m.Options != "" || m.Type != string(mount.TypeBind) && m.Type != string(mount.TypeVolume) {
			return nil, fmt.Errorf("mount at %s: %s can't be asked for", target, m)
		}
		out = append(out, mount.Mount{
			Type:     mount.Type(m.Type),
			Source:   m.Source,
			Target:   target,
			ReadOnly: !m.Writable,
		})
	}
	return out, nil
}

// portMap parses "ip:port", several joined by ",", by "port/proto".
func portMap(publish map[string]string) (nat.PortMap, error) {
	out := nat.PortMap{}
	for port, bindings := range publish {
		for binding := range strings.SplitSeq(bindings, ",") {
			ip, hostPort, err := net.SplitHostPort(binding)
			if err != nil {
				return nil, fmt.Errorf("port %s: %w", port, err)
			}
			out[nat.Port(port)] = append(out[nat.Port(port)], nat.PortBinding{HostIP: ip, HostPort: hostPort})
		}
	}
	return out, nil
}

func deviceMappings(devices []string) ([]container.DeviceMapping, error) {
	var out []container.DeviceMapping
	for _, d := range devices {
		parts := strings.Split(d, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("device %q isn't host:container:permissions", d)
		}
		out = append(out, container.DeviceMapping{
			PathOnHost: parts[0], PathInContainer: parts[1], CgroupPermissions: parts[2],
		})
	}
	return out, nil
}

func healthConfig(h *reconcile.Healthcheck) *container.HealthConfig {
	if h == nil {
		return nil
	}
	return &container.HealthConfig{
		Test: h.Test, Interval: h.Interval, Timeout: h.Timeout,
		StartPeriod: h.StartPeriod, StartInterval: h.StartInterval, Retries: h.Retries,
	}
}

// endpointSettings are the whole of what is asked of an endpoint. Connecting without
// them would lose the aliases and the address
// (https://github.com/docker/compose/issues/3498).
func endpointSettings(e reconcile.Endpoint) *network.EndpointSettings {
	s := &network.EndpointSettings{Aliases: slices.Clone(e.Aliases)}
	if e.Address == "" {
		return s
	}
	s.IPAMConfig = &network.EndpointIPAMConfig{}
	if a, err := netip.ParseAddr(e.Address); err == nil && a.Is6() && !a.Is4In6() {
		s.IPAMConfig.IPv6Address = e.Address
	} else {
		s.IPAMConfig.IPv4Address = e.Address
	}
	return s
}

// converter turns what an engine inspects into reconcile's terms. It is immutable, and
// so shared by all that convert at once.
type converter struct {
	features reconcile.Engine
	defaults defaults
	world    world
	leaves   []leaf // of container.InspectResponse
	endpoint []leaf // of network.EndpointSettings
	network  []leaf
	volume   []leaf
	shape    *shape
}

// world is who is who on the engine: ids appear where names were asked for. The zero
// world knows nobody, and then nothing is said of who is gone.
type world struct {
	containers map[string]string   // id → name
	networks   map[string]string   // id → name
	ours       map[string][]string // name → ids of our networks
}

func newConverter(features reconcile.Engine, d defaults, w world) *converter {
	rules := containerRules()
	return &converter{
		features: features,
		defaults: d,
		world:    w,
		leaves:   excessLeaves(reflect.TypeFor[container.InspectResponse](), "", rules, d),
		endpoint: excessLeaves(reflect.TypeFor[network.EndpointSettings](), "NetworkSettings.Networks[].", rules, d),
		network:  networkLeaves(d),
		volume:   volumeLeaves(d),
		shape:    containerShape(),
	}
}

// container converts an inspected container. Image and engine defaults are in it, as
// the engine has long merged them.
func (k *converter) container(in container.InspectResponse) reconcile.Container {
	c := reconcile.Container{Name: strings.TrimPrefix(in.Name, "/"), ImageID: in.Image}
	fromConfig(&c, in.Config)
	k.fromHostConfig(&c, in.HostConfig)
	c.Mounts = mountsOf(in)
	c.Networks = k.endpoints(in)
	c.Excess = append(c.Excess, excessOf(reflect.ValueOf(in), k.leaves, in.ID)...)
	k.nameOwners(c.Excess)
	slices.SortFunc(c.Excess, byPath)
	return c
}

// asMade converts a container that was made a moment ago, to compare it with what was
// asked. Ports that it exposes, or a shell, can only be its image's.
func (e *Engine) asMade(in container.InspectResponse) reconcile.Container {
	c := newConverter(e.features, e.defaults, world{}).container(in)
	c.Excess = dropImage(c, imageExtras{any: true})
	return c
}

func byPath(a, b reconcile.Field) int { return strings.Compare(a.Path, b.Path) }

func fromConfig(c *reconcile.Container, in *container.Config) {
	c.Image = in.Image
	c.Entrypoint = nonEmpty(in.Entrypoint)
	c.Command = nonEmpty(in.Cmd)
	c.User = in.User
	c.WorkingDir = in.WorkingDir
	c.Labels = orEmpty(in.Labels)
	c.StopSignal = in.StopSignal
	c.StopTimeout = in.StopTimeout
	c.Healthcheck = healthcheck(in.Healthcheck)
	c.Env = make(map[string]reconcile.EnvValue, len(in.Env))
	for _, e := range in.Env {
		name, value, _ := strings.Cut(e, "=")
		c.Env[name] = reconcile.EnvValue{Value: value}
	}
}

func (k *converter) fromHostConfig(c *reconcile.Container, in *container.HostConfig) {
	c.Tmpfs = map[string]string{}
	for path, options := range in.Tmpfs {
		c.Tmpfs[path] = reconcile.CanonicalTmpfs(options)
	}
	c.Publish = publish(in.PortBindings)
	c.NetworkMode = k.networkMode(string(in.NetworkMode))
	c.DNS = nonEmpty(in.DNS)
	k.limits(c, in.Resources)
	c.Restart = schema.Restart{
		Name:       cmp.Or(string(in.RestartPolicy.Name), "no"),
		MaxRetries: in.RestartPolicy.MaximumRetryCount,
	}
	c.ReadOnlyRoot = in.ReadonlyRootfs
	c.Init = in.Init != nil && *in.Init
	k.securityOptions(c, in.SecurityOpt)
	c.CapAdd, c.CapDrop = capabilities(in.CapAdd), capabilities(in.CapDrop)
	c.Devices = devices(in.Devices)
	c.GroupAdd = sorted(in.GroupAdd)
	c.Sysctls = orEmpty(in.Sysctls)
	c.LogDriver = in.LogConfig.Type
	logOptions(c, in.LogConfig.Config)
}

// networkMode is the name of the first network, whatever it was asked by.
func (k *converter) networkMode(mode string) string {
	if mode == network.NetworkDefault {
		return network.NetworkBridge // what the engine makes of it, from release 26.1 on openly
	}
	if name, ok := k.world.networks[mode]; ok {
		return name
	}
	return k.ownerName(mode)
}

// ownerName spells "container:ID", and a plain id, with the container's name: an engine
// answers with the id whatever was asked.
func (k *converter) ownerName(ref string) string {
	prefix, id, found := strings.Cut(ref, ":")
	if name, ok := k.world.containers[id]; found && prefix == "container" && ok {
		return prefix + ":" + name
	}
	return ref
}

// nameOwners does so for the namespaces that a container may share.
func (k *converter) nameOwners(fields []reconcile.Field) {
	for i, f := range fields {
		switch f.Path {
		case "HostConfig.IpcMode", "HostConfig.PidMode", "HostConfig.Cgroup":
			fields[i].Value = k.ownerName(f.Value)
		}
	}
}

// limits leaves out those that the engine doesn't hold: it may store what it was given,
// or a value of its own, and neither means anything.
func (k *converter) limits(c *reconcile.Container, in container.Resources) {
	held := func(limit string, v int64) int64 {
		if slices.Contains(k.features.Unenforced, limit) {
			return 0
		}
		return v
	}
	c.Memory = held(limitMemory, in.Memory)
	c.MemorySwap = held(limitSwap, in.MemorySwap)
	c.NanoCPUs = held(limitCPUs, in.NanoCPUs)
	if in.PidsLimit != nil {
		c.PIDs = held(limitPIDs, max(*in.PidsLimit, 0)) // -1 is no limit either
	}
}

// securityOptions takes the two options that the language knows out of their several
// spellings (moby's daemon/daemon_unix.go, parseSecurityOpt). The rest is excess.
func (k *converter) securityOptions(c *reconcile.Container, opts []string) {
	c.Seccomp = k.defaults.seccomp
	var rest []string
	for _, opt := range opts {
		name, value, found := strings.Cut(opt, "=")
		if !found {
			name, value, found = strings.Cut(opt, ":")
		}
		switch {
		case name == "no-new-privileges":
			on, err := strconv.ParseBool(value)
			c.NoNewPrivileges = !found || err == nil && on
		case name == "seccomp":
			c.Seccomp = seccompProfile(value)
		default:
			rest = append(rest, opt)
		}
	}
	if len(rest) > 0 {
		slices.Sort(rest)
		c.Excess = append(c.Excess, reconcile.Field{Path: "HostConfig.SecurityOpt", Value: compactJSON(rest)})
	}
}

// seccompProfile names a profile: by its digest if the client sent it along, whatever
// its white space.
func seccompProfile(value string) string {
	switch value {
	case seccompUnconfined:
		return seccompUnconfined
	case seccompDefault, "builtin", "":
		return seccompDefault
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(value)); err != nil {
		return value
	}
	sum := sha256.Sum256(compact.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isAskedLogOption names the options that a space's logging is asked with. Others are
// excess that an engine copies from its own configuration at create
// (https://github.com/kreuzwerker/terraform-provider-docker/issues/873).
func isAskedLogOption(name string) bool { return name == "max-size" || name == "max-file" }

func logOptions(c *reconcile.Container, in map[string]string) {
	c.LogOptions = map[string]string{}
	for name, value := range in {
		if isAskedLogOption(name) {
			c.LogOptions[name] = value
			continue
		}
		c.Excess = append(c.Excess, reconcile.Field{
			Path:         "HostConfig.LogConfig.Config[" + strconv.Quote(name) + "]",
			Value:        value,
			EngineFilled: true,
		})
	}
}

func capabilities(in []string) []string {
	out := make([]string, 0, len(in))
	for _, name := range in {
		out = append(out, reconcile.CanonicalCapability(name))
	}
	return sorted(out)
}

func devices(in []container.DeviceMapping) []string {
	var out []string
	for _, d := range in {
		out = append(out, d.PathOnHost+":"+cmp.Or(d.PathInContainer, d.PathOnHost)+":"+d.CgroupPermissions)
	}
	slices.Sort(out)
	return out
}

// publish spells what was asked, not what came of it: NetworkSettings.Ports is doubled
// for IPv6 and empty once the container stopped
// (https://github.com/moby/moby/issues/42313).
func publish(in nat.PortMap) map[string]string {
	out := map[string]string{}
	for port, bindings := range in {
		spelt := make([]string, 0, len(bindings))
		for _, b := range bindings {
			spelt = append(spelt, net.JoinHostPort(b.HostIP, b.HostPort))
		}
		key := string(port)
		if !strings.Contains(key, "/") {
			key += "/" + tcp
		}
		out[key] = strings.Join(sorted(spelt), ",")
	}
	return out
}

func healthcheck(in *container.HealthConfig) *reconcile.Healthcheck {
	switch {
	case in == nil:
		return nil
	case len(in.Test) > 0 && in.Test[0] == "NONE":
		return &reconcile.Healthcheck{Test: []string{"NONE"}}
	case reflect.DeepEqual(*in, dockerspec.HealthcheckConfig{}):
		return nil
	}
	return &reconcile.Healthcheck{
		Test: nonEmpty(in.Test), Interval: in.Interval, Timeout: in.Timeout,
		StartPeriod: in.StartPeriod, StartInterval: in.StartInterval, Retries: in.Retries,
	}
}

// endpoints are a container's places on networks, stopped or not.
func (k *converter) endpoints(in container.InspectResponse) map[string]reconcile.Endpoint {
	out := map[string]reconcile.Endpoint{}
	if in.NetworkSettings == nil {
		return out
	}
	for name, s := range in.NetworkSettings.Networks {
		if s == nil {
			s = &network.EndpointSettings{}
		}
		if known, ok := k.world.networks[name]; ok {
			name = known // asked for by id, and not started since
		}
		out[name] = k.endpointOf(in, name, s)
	}
	return out
}

func (k *converter) endpointOf(in container.InspectResponse, name string, s *network.EndpointSettings) reconcile.Endpoint {
	e := reconcile.Endpoint{
		Aliases: aliases(s.Aliases, in.ID),
		Excess:  excessOf(reflect.ValueOf(*s), k.endpoint, ""),
	}
	if c := s.IPAMConfig; c != nil {
		e.Address = cmp.Or(c.IPv4Address, c.IPv6Address)
		if c.IPv4Address != "" && c.IPv6Address != "" {
			e.Excess = append(e.Excess, reconcile.Field{Path: "IPAMConfig.IPv6Address", Value: c.IPv6Address})
		}
	}
	switch ours := k.world.ours[name]; {
	case k.isGone(name, s.NetworkID):
		e.Excess = append(e.Excess, reconcile.Field{Path: "NetworkID", Value: "of a network that is gone"})
	case s.NetworkID != "" && len(ours) > 0 && !slices.Contains(ours, s.NetworkID):
		e.Excess = append(e.Excess, reconcile.Field{Path: "NetworkID", Value: "of a network of this name that isn't ours"})
	}
	if isLost(in.State, name, s) {
		e.Excess = append(e.Excess, reconcile.Field{Path: reconcile.NoEndpoint, Value: "none: it is configured and not there"})
	}
	if mac := k.macAddress(in, s); mac != "" {
		e.Excess = append(e.Excess, reconcile.Field{Path: "MacAddress", Value: mac})
	}
	slices.SortFunc(e.Excess, byPath)
	return e
}

// isGone is true where a network was removed behind a stopped container, and perhaps
// made again under its name: the container holds on to the old id and can't start
// (https://github.com/docker/compose/issues/5745).
func (k *converter) isGone(name, id string) bool {
	if id == "" || isPredefined(name) || k.world.networks == nil {
		return false
	}
	_, ok := k.world.networks[id]
	return !ok
}

// isLost is true for a place on a network in a container that runs and isn't there. An
// engine that fails to connect a running container keeps what was asked of it.
func isLost(state *container.State, name string, s *network.EndpointSettings) bool {
	return state != nil && hasEndpoints(reconcile.State(state.Status)) && s.EndpointID == "" && !isPredefined(name)
}

// macAddress is one that was asked for, where that can be told: while a container runs,
// the engine shows the address it made up in the same place.
func (k *converter) macAddress(in container.InspectResponse, s *network.EndpointSettings) string {
	if in.State == nil || in.State.Running || s.EndpointID != "" {
		return ""
	}
	return s.MacAddress
}

// aliases leaves out the short id, which engines before API 1.45 add.
func aliases(in []string, id string) []string {
	out := slices.DeleteFunc(slices.Clone(in), func(a string) bool {
		return len(a) == shortIDLength && strings.HasPrefix(id, a)
	})
	return slices.Compact(sorted(out))
}

func sorted(in []string) []string {
	out := nonEmpty(slices.Clone(in))
	slices.Sort(out)
	return out
}

// nonEmpty makes the two spellings of nothing one.
func nonEmpty(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	return in
}

func orEmpty(in map[string]string) map[string]string {
	if in == nil {
		return map[string]string{}
	}
	return in
}
