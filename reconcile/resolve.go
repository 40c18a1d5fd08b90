package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"spaces/schema"
)

// Roots are the host's paths that resolving needs, absolute and with symlinks resolved.
type Roots struct {
	DataRoot   string
	Store      string
	Executable string // this program
}

// Resolve fills in what the files leave out: full names, labels, the hardening and the
// limits every space has unless it says otherwise. The result is sorted.
func Resolve(cfg *schema.Config, r Roots) Desired {
	d := Desired{
		Project:    cfg.Project,
		Endpoint:   cfg.Install.Endpoint,
		Mode:       cfg.Install.Mode,
		Install:    cfg.Install.Origin,
		DataRoot:   r.DataRoot,
		Store:      r.Store,
		Accepts:    cfg.Accepts,
		Variables:  cfg.Variables,
		Roles:      cfg.Roles,
		Egresses:   cfg.Egresses,
		Grants:     cfg.Grants,
		Assertions: cfg.Assertions,
	}
	rs := resolver{cfg: cfg, roots: r, lists: map[schema.Address][]schema.Egress{}, grants: map[schema.Address]schema.Grant{}}
	for _, e := range cfg.Egresses {
		rs.lists[e.Network] = append(rs.lists[e.Network], e)
	}
	for _, g := range cfg.Grants {
		rs.grants[g.Address] = g
	}
	for _, i := range cfg.Images {
		d.Images = append(d.Images, rs.image(i))
	}
	for _, n := range cfg.Networks {
		d.Networks = append(d.Networks, rs.network(n))
	}
	d.Volumes = rs.volumes()
	for _, s := range cfg.Spaces {
		d.Spaces = append(d.Spaces, rs.space(s))
	}
	for _, e := range cfg.Egresses {
		d.Spaces = append(d.Spaces, rs.proxy(e))
	}
	for _, m := range cfg.Moves {
		d.Moves = append(d.Moves, Move{From: m.From, Name: rs.name(m.From), To: m.To, Origin: m.Origin})
	}
	d.Loaded = rs.loaded()
	slices.SortFunc(d.Images, func(a, b Image) int { return strings.Compare(a.Address.String(), b.Address.String()) })
	slices.SortFunc(d.Networks, func(a, b Network) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Spaces, func(a, b Space) int { return strings.Compare(a.Container.Name, b.Container.Name) })
	return d
}

type resolver struct {
	cfg    *schema.Config
	roots  Roots
	lists  map[schema.Address][]schema.Egress // by network
	grants map[schema.Address]schema.Grant
}

// defaultLimits are those of a space that names none, by its lifecycle: what a broker, a console and an
// agent's session were measured to need.
func defaultLimits(l schema.Lifecycle) schema.Limits {
	const mib = 1 << 20
	switch l {
	case schema.LifecycleOnRequest:
		return schema.Limits{PIDs: 512, Memory: 4096 * mib, NanoCPUs: 2e9}
	case schema.LifecycleCore:
		return schema.Limits{PIDs: 256, Memory: 1024 * mib, NanoCPUs: 1e9}
	default:
		return schema.Limits{PIDs: 128, Memory: 512 * mib, NanoCPUs: 5e8}
	}
}

func proxyLimits() schema.Limits {
	return schema.Limits{PIDs: 64, Memory: 128 << 20, NanoCPUs: 5e8}
}

// hardened is the container every space starts from.
func hardened() Container {
	return Container{
		Env:             map[string]EnvValue{},
		Mounts:          map[string]Mount{},
		Tmpfs:           map[string]string{},
		Publish:         map[string]string{},
		Networks:        map[string]Endpoint{},
		ReadOnlyRoot:    true,
		Init:            true,
		NoNewPrivileges: true,
		Seccomp:         "default",
		CapDrop:         []string{"ALL"},
		LogDriver:       "json-file",
		LogOptions:      map[string]string{"max-size": "10m", "max-file": "3"},
	}
}

func (r resolver) image(i schema.Image) Image {
	out := Image{Address: i.Address, Origin: i.Origin, Reference: i.Reference, Binary: i.Binary, Build: i.Build}
	if i.Reference == "" {
		out.Reference = r.name(i.Address) + ":" + i.Tag
	}
	if i.Binary == "spaces" {
		out.Binary = r.roots.Executable
	}
	return out
}

func (r resolver) network(n schema.Network) Network {
	return Network{
		Name:     r.name(n.Address),
		Address:  n.Address,
		Origin:   n.Origin,
		Origins:  n.Origins,
		Driver:   "bridge",
		Internal: n.Internal,
		Subnet:   n.Subnet,
		IPRange:  n.IPRange,
		Options:  map[string]string{},
		Labels:   r.labels(KindNetwork, n.Address),
		Uplink:   n.Uplink,
		NoEgress: n.NoEgress,
		Reason:   n.Reason,
		Protect:  n.Protect,
	}
}

// volumes are those that grants name; several grants may give one volume.
func (r resolver) volumes() []Volume {
	byName := map[string]Volume{}
	for _, g := range r.cfg.Grants {
		if _, seen := byName[g.Source]; g.Kind != schema.GrantVolume || seen {
			continue
		}
		byName[g.Source] = Volume{
			Name:    r.cfg.Project + "-" + g.Source,
			Short:   g.Source,
			Origin:  g.At("volume"),
			Driver:  "local",
			Options: map[string]string{},
			Labels:  r.labels(KindVolume, schema.Address{Kind: "volume", Name: g.Source}),
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
}

func (r resolver) space(s schema.Space) Space {
	c := hardened()
	c.Name = r.name(s.Address)
	kind := KindSpace
	if s.Lifecycle == schema.LifecycleCore {
		kind = KindCore
		c.Name = CoreName(r.cfg.Project, r.roots.Store)
	}
	c.Image = r.imageReference(s.Image)
	c.Entrypoint, c.Command = s.Entrypoint, s.Command
	c.User, c.WorkingDir = s.User, s.WorkingDir
	c.Labels = r.labels(kind, s.Address)
	for _, e := range s.Env {
		c.Env[e.Name] = EnvValue{e.Value, e.Sensitive}
	}
	out := Space{
		Object:    s.Object,
		Kind:      kind,
		Lifecycle: s.Lifecycle,
		Image:     s.Image,
		Loosen:    s.Loosen,
		Publish:   s.Publish,
		Protect:   s.Protect,
		Grants:    map[string]schema.Grant{},
	}
	for _, a := range s.Grants {
		g := r.grants[a]
		out.Grants[g.Target] = g
		c.Mounts[g.Target] = r.mount(g)
	}
	r.tmpfs(&c, s)
	r.networks(&c, s)
	out.Lists = r.proxied(&c, s)
	setLimits(&c, s.Limits, defaultLimits(s.Lifecycle))
	setRestart(&c, s)
	setProcess(&c, s)
	for _, p := range s.Publish {
		addBinding(&c, p)
	}
	for _, l := range s.Loosen {
		loosen(&c, l)
	}
	for _, a := range s.DependsOn {
		out.DependsOn = append(out.DependsOn, r.name(a))
	}
	out.Container = c
	return out
}

// CoreName is the name of the core space's container. It is keyed on the store, as the
// store's writer lock is, and not on the project alone.
func CoreName(project, store string) string {
	sum := sha256.Sum256([]byte(store))
	return project + "-core-" + hex.EncodeToString(sum[:])[:16]
}

func (r resolver) mount(g schema.Grant) Mount {
	if g.Kind == schema.GrantVolume {
		return Mount{Type: "volume", Source: r.cfg.Project + "-" + g.Source, Writable: g.Writable}
	}
	d := Desired{DataRoot: r.roots.DataRoot, Store: r.roots.Store}
	return Mount{Type: "bind", Source: GrantPath(d, g), Writable: g.Writable}
}

func (r resolver) tmpfs(c *Container, s schema.Space) {
	exec := map[string]bool{}
	for _, l := range s.Loosen {
		if l.Kind == schema.LoosenTmpExec {
			for _, p := range l.Values {
				exec[p] = true
			}
		}
	}
	c.Tmpfs["/tmp"] = tmpfsOptions(schema.Tmpfs{Exec: exec["/tmp"]})
	for _, t := range s.Tmpfs {
		t.Exec = t.Exec || exec[t.Path]
		c.Tmpfs[t.Path] = tmpfsOptions(t)
	}
}

func tmpfsOptions(t schema.Tmpfs) string {
	options := []string{"noexec", "nosuid"}
	if t.Exec {
		options[0] = "exec"
	}
	if t.Size > 0 {
		options = append(options, "size="+strconv.FormatInt(t.Size, 10))
	}
	if t.Mode > 0 {
		options = append(options, "mode="+strconv.FormatUint(uint64(t.Mode), 8))
	}
	return CanonicalTmpfs(strings.Join(options, ","))
}

func (r resolver) networks(c *Container, s schema.Space) {
	for i, a := range s.Networks {
		name := r.name(a.Network)
		if i == 0 {
			c.NetworkMode = name
		}
		aliases := slices.Concat([]string{s.Address.FullName()}, a.Aliases)
		slices.Sort(aliases)
		c.Networks[name] = Endpoint{Aliases: slices.Compact(aliases), Address: a.Address}
	}
	if len(s.Networks) == 0 {
		c.NetworkMode = noNetwork
		c.Networks[noNetwork] = Endpoint{}
	}
}

// proxied points a space's clients at its list's proxy, by the variables that they
// read, and returns the lists whose hosts it can reach.
func (r resolver) proxied(c *Container, s schema.Space) []schema.Address {
	var lists []schema.Address
	for _, a := range s.Networks {
		for _, e := range r.lists[a.Network] {
			lists = append(lists, e.Address)
		}
	}
	host := "proxy"
	switch {
	case len(lists) == 0:
		return nil
	case s.Proxy != schema.Address{}:
		host = r.proxyName(s.Proxy)
	}
	url := "http://" + host + ":" + strconv.Itoa(proxyPort)
	for name, value := range map[string]string{
		"HTTP_PROXY": url, "http_proxy": url, "HTTPS_PROXY": url, "https_proxy": url,
		"NO_PROXY": noProxy, "no_proxy": noProxy,
		// Node's fetch ignores the variables above unless told so.
		"NODE_USE_ENV_PROXY": "1",
	} {
		if _, set := c.Env[name]; !set {
			c.Env[name] = EnvValue{Value: value}
		}
	}
	return lists
}

const (
	proxyPort = 3128
	noProxy   = "localhost,127.0.0.1,::1"
	// noNetwork is what the engine calls being on no network.
	noNetwork = "none"
)

func setLimits(c *Container, l, def schema.Limits) {
	pick := func(v, def int64) int64 {
		if v != 0 {
			return v
		}
		return def
	}
	c.PIDs = pick(l.PIDs, def.PIDs)
	c.Memory = pick(l.Memory, def.Memory)
	// Without this, a container may use as much swap again (docker-run(1), --memory-swap).
	c.MemorySwap = c.Memory
	c.NanoCPUs = pick(l.NanoCPUs, def.NanoCPUs)
}

func setRestart(c *Container, s schema.Space) {
	c.Restart = s.Restart
	if c.Restart.Name == "" {
		c.Restart.Name = "no"
		if s.Lifecycle == schema.LifecycleService {
			c.Restart.Name = "unless-stopped"
		}
	}
}

func setProcess(c *Container, s schema.Space) {
	c.StopSignal = s.StopSignal
	if s.StopTimeout != nil {
		seconds := int(*s.StopTimeout / time.Second)
		c.StopTimeout = &seconds
	}
	h := s.Healthcheck
	if h == nil {
		return
	}
	c.Healthcheck = &Healthcheck{
		Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod,
		StartInterval: h.StartInterval, Retries: h.Retries,
	}
	switch {
	case h.Disable:
		c.Healthcheck = &Healthcheck{Test: []string{"NONE"}}
	case h.Shell != "":
		c.Healthcheck.Test = []string{"CMD-SHELL", h.Shell}
	case len(h.Command) > 0:
		c.Healthcheck.Test = append([]string{"CMD"}, h.Command...)
	}
}

func addBinding(c *Container, p schema.Publish) {
	port := strconv.Itoa(p.Container) + "/" + p.Protocol
	c.Publish[port] = joinBindings(c.Publish[port], hostPort(p))
}

func hostPort(p schema.Publish) string {
	host := p.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(p.Port)
}

func joinBindings(have, binding string) string {
	if have == "" {
		return binding
	}
	all := append(strings.Split(have, ","), binding)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

func loosen(c *Container, l schema.Loosening) {
	switch l.Kind {
	case schema.LoosenCapAdd:
		for _, name := range l.Values {
			c.CapAdd = append(c.CapAdd, CanonicalCapability(name))
		}
		slices.Sort(c.CapAdd)
	case schema.LoosenWritableRoot:
		c.ReadOnlyRoot = false
	case schema.LoosenNewPrivileges:
		c.NoNewPrivileges = false
	case schema.LoosenSeccomp:
		c.Seccomp = "unconfined"
	case schema.LoosenInit:
		c.Init = false
	case schema.LoosenDevice:
		for _, dev := range l.Values {
			c.Devices = append(c.Devices, dev+":"+dev+":rwm")
		}
		slices.Sort(c.Devices)
	case schema.LoosenGroupAdd:
		c.GroupAdd = slices.Sorted(slices.Values(append(c.GroupAdd, l.Values...)))
	case schema.LoosenSysctl:
		if c.Sysctls == nil {
			c.Sysctls = map[string]string{}
		}
		for _, v := range l.Values {
			name, value, _ := strings.Cut(v, "=")
			c.Sysctls[name] = value
		}
	}
	// tmp_exec is in the tmpfs options; secret_env and the two of grants change no field.
}

// proxy is the space that serves an egress list.
func (r resolver) proxy(e schema.Egress) Space {
	c := hardened()
	c.Name = r.proxyName(e.Address)
	c.Image = "spaces"
	c.Command = []string{"spaces", "egress", "serve"}
	c.Labels = r.labels(KindEgress, e.Address)
	c.Tmpfs["/tmp"] = tmpfsOptions(schema.Tmpfs{})
	setLimits(&c, schema.Limits{}, proxyLimits())
	c.Restart.Name = "unless-stopped"
	c.NetworkMode = r.name(e.Network)
	c.Networks[c.NetworkMode] = Endpoint{Aliases: []string{"proxy"}}
	if e.Uplink.Name != "" {
		c.Networks[r.name(e.Uplink)] = Endpoint{Aliases: []string{c.Name}}
	}
	return Space{Object: e.Object, Kind: KindEgress, Lifecycle: schema.LifecycleService, Container: c}
}

func (r resolver) proxyName(a schema.Address) string {
	return r.cfg.Project + "-egress-" + a.FullName()
}

// loaded are the host's paths that decide what is applied.
func (r resolver) loaded() []string {
	paths := append([]string{r.roots.Executable}, r.cfg.Files...)
	for _, i := range r.cfg.Images {
		switch {
		case i.Build != nil:
			paths = append(paths, i.Build.Context)
		case i.Binary != "" && i.Binary != "spaces":
			paths = append(paths, i.Binary)
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == "" })
}

func (r resolver) name(a schema.Address) string { return r.cfg.Project + "-" + a.FullName() }

func (r resolver) imageReference(a schema.Address) string {
	for _, i := range r.cfg.Images {
		if i.Address == a {
			return r.image(i).Reference
		}
	}
	return ""
}

func (r resolver) labels(kind Kind, a schema.Address) map[string]string {
	labels := map[string]string{
		LabelProject: r.cfg.Project,
		LabelKind:    string(kind),
		LabelName:    a.Name,
		LabelStore:   r.roots.Store,
		LabelFormat:  LabelFormatVersion,
	}
	if a.Key != "" {
		labels[LabelKey] = a.Key
	}
	return labels
}
