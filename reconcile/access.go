package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"spaces/schema"
)

// The kinds of access.
const (
	AccessMount     = "mount"
	AccessHost      = "host"
	AccessNetwork   = "network"
	AccessPort      = "port"
	AccessPrivilege = "privilege"
)

// accessChanges compares what runs now with what is asked: gains first by space, then
// losses.
func (w *world) accessChanges() []AccessChange {
	before, after := w.accessNow(), w.accessAsked()
	w.plan.Reached = after
	for _, s := range w.wantSpaces {
		networks := s.Container.Networks
		if w.left[s.Address.String()] {
			networks = nil
			if c := w.containerOf(s); c != nil {
				networks = present(c.Networks)
			}
		}
		for network := range networks {
			w.members[network] = append(w.members[network], s.Address.String())
		}
	}
	for _, names := range w.members {
		slices.Sort(names)
	}
	var out []AccessChange
	for _, a := range missingFrom(before, after) {
		c := AccessChange{Gains: true, Access: a}
		if a.Kind == AccessNetwork {
			c.Meets = w.meets(a)
		}
		out = append(out, c)
	}
	for _, a := range missingFrom(after, before) {
		out = append(out, AccessChange{Access: a})
	}
	return out
}

// missingFrom are the accesses of all that have no equal in have, sorted.
func missingFrom(have, all []Access) []Access {
	known := make(map[Access]bool, len(have))
	for _, a := range have {
		known[a.bare()] = true
	}
	var out []Access
	for _, a := range all {
		if !known[a.bare()] {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Access) int {
		return cmp.Or(
			strings.Compare(a.Space, b.Space),
			strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.What, b.What),
			strings.Compare(a.How, b.How))
	})
	return slices.CompactFunc(out, func(a, b Access) bool { return a.bare() == b.bare() })
}

// bare is the access without where it is written.
func (a Access) bare() Access {
	a.Origin = schema.Origin{}
	return a
}

// accessNow is what every running container of ours, and every stranger on a network
// of ours, can reach.
func (w *world) accessNow() []Access {
	var out []Access
	for _, c := range w.actual.Containers {
		out = append(out, w.containerNow(c)...)
	}
	for _, n := range w.actual.Networks {
		out = append(out, strangersNow(n)...)
	}
	return out
}

// containerNow is what a container reaches if it runs, and who reaches it by it.
func (w *world) containerNow(c ObservedContainer) []Access {
	if !running(c.State) {
		return nil
	}
	if slices.ContainsFunc(c.Excess, func(f Field) bool { return f.EngineFilled }) {
		label, _ := parseApplied(w.host.Digest, c.Labels[LabelApplied])
		c.Excess = slices.DeleteFunc(slices.Clone(c.Excess), func(f Field) bool { return filledIn(f, label) })
	}
	c.Networks = present(c.Networks)
	out := w.containerAccess(w.subject(c), c.Container, w.isNetwork, nil)
	out = append(out, w.reachedBy(w.subject(c), c.Container)...)
	return append(out, w.sharedAccess(c)...)
}

func strangersNow(n ObservedNetwork) []Access {
	var out []Access
	for _, m := range n.Members {
		if !m.Ours && m.Running {
			out = append(out, Access{Space: foreign(m.Name), Kind: AccessNetwork, What: n.Name, How: reach(n.Network), Wide: !n.Internal})
		}
	}
	return out
}

// present are the networks that a running container really is on.
func present(networks map[string]Endpoint) map[string]Endpoint {
	there := maps.Clone(networks)
	maps.DeleteFunc(there, func(_ string, e Endpoint) bool { return e.lost() })
	return there
}

// sharedAccess is what strangers in a container's network namespace reach by it, until
// it is replaced.
func (w *world) sharedAccess(c ObservedContainer) []Access {
	var out []Access
	for _, m := range c.SharedBy {
		if m.Running && !w.untouched[c.Name] {
			for _, name := range sortedKeys(c.Networks) {
				out = append(out, networkAccess(foreign(m.Name), name, w.isNetwork)...)
			}
		}
	}
	return out
}

// accessAsked is what every space of the files will reach once the plan is carried out,
// and what goes on running untouched.
func (w *world) accessAsked() []Access {
	var out []Access
	for _, s := range w.wantSpaces {
		if !w.left[s.Address.String()] {
			out = append(out, w.spaceAccess(s)...)
		}
	}
	out = append(out, w.leftNow()...)
	for _, c := range w.actual.Containers {
		if w.untouched[c.Name] && running(c.State) {
			c.Networks = present(c.Networks)
			out = append(out, w.containerAccess(w.subject(c), c.Container, w.isNetwork, nil)...)
		}
	}
	return out
}

// leftNow is what goes on being reached because the plan leaves it out.
func (w *world) leftNow() []Access {
	var out []Access
	for _, c := range w.actual.Containers {
		if w.left[w.subject(c)] && !w.untouched[c.Name] {
			out = append(out, w.containerNow(c)...)
		}
	}
	for _, n := range w.actual.Networks {
		if w.left[w.networkSubject(n.Name)] {
			out = append(out, strangersNow(n)...)
		}
	}
	return out
}

func (w *world) spaceAccess(s Space) []Access {
	c := w.onHost(s)
	if facts, known := w.actual.Images[c.Image]; known {
		c = WithImage(c, facts)
	}
	out := w.containerAccess(s.Address.String(), c, w.willBeNetwork, &s)
	out = append(out, w.reachedBy(s.Address.String(), c)...)
	for _, e := range w.desired.Egresses {
		if !slices.Contains(s.Lists, e.Address) {
			continue
		}
		for _, entry := range e.Entries {
			how := "through " + e.Address.String()
			if entry.Entry.Wide() {
				how += ": " + entry.Entry.Explain()
			}
			out = append(out, Access{
				Space: s.Address.String(), Kind: AccessHost, What: entry.Entry.String(),
				How: how, Wide: entry.Entry.Wide(), Origin: entry.Origin,
			})
		}
	}
	return out
}

// containerAccess is what one container reaches. s, where known, says where.
func (w *world) containerAccess(subject string, c Container, network func(string) (Network, bool), s *Space) []Access {
	var out []Access
	add := func(kind, what, how string, wide bool, path string) {
		a := Access{Space: subject, Kind: kind, What: what, How: how, Wide: wide}
		if s != nil {
			a.Origin = originOf(*s, path)
		}
		out = append(out, a)
	}
	for _, target := range sortedKeys(c.Mounts) {
		m := c.Mounts[target]
		add(AccessMount, target, w.mountReach(m), m.Writable, key("mount", target))
	}
	for _, name := range sortedKeys(c.Networks) {
		for _, a := range networkAccess(subject, name, network) {
			add(a.Kind, a.What, a.How, a.Wide, key("network", name))
		}
	}
	for _, port := range sortedKeys(c.Publish) {
		for binding := range strings.SplitSeq(c.Publish[port], ",") {
			add(AccessPort, port, "from "+binding, !loopback(binding), key("publish", port))
		}
	}
	for _, p := range privileges(c) {
		add(AccessPrivilege, p.what, p.how, true, p.path)
	}
	return out
}

// networkAccess is what a place on a network reaches: nothing on none.
func networkAccess(subject, name string, network func(string) (Network, bool)) []Access {
	n, ours := network(name)
	switch {
	case name == noNetwork:
		return nil
	case ours:
		return []Access{{Space: subject, Kind: AccessNetwork, What: name, How: reach(n), Wide: !n.Internal}}
	}
	return []Access{{Space: subject, Kind: AccessNetwork, What: name, How: "not a network of this project", Wide: true}}
}

// reachedBy is what a container's directories give beyond their names: the sources of
// other grants that lie in them.
func (w *world) reachedBy(subject string, c Container) []Access {
	var out []Access
	for _, r := range w.reaches {
		m, mounted := c.Mounts[r.Target]
		if r.Space != subject || !mounted || m.Source != w.sourceOf(r.Via) {
			continue
		}
		what := r.Inside
		if what == "" {
			what = r.Target
		}
		how := "what " + r.Grant.String() + " gives, by way of " + r.Via.String()
		if m.Writable {
			how += " (writable)"
		}
		out = append(out, Access{Space: subject, Kind: AccessMount, What: what, How: how, Wide: true, Origin: r.Origin})
	}
	return out
}

// sourceOf is the path of the host that a grant gives, resolved.
func (w *world) sourceOf(grant schema.Address) string {
	for _, g := range w.desired.Grants {
		if g.Address == grant {
			return w.host.Paths[GrantPath(w.desired, g)].Resolved
		}
	}
	return ""
}

// mountReach says what is behind a mount.
func (w *world) mountReach(m Mount) string {
	how := m.String()
	if m.Type != "volume" {
		return how
	}
	for _, v := range w.actual.Volumes {
		if device := v.Options["device"]; v.Name == m.Source && device != "" {
			return how + ", which is " + device
		}
	}
	return how
}

func reach(n Network) string {
	if n.Internal {
		return "internal"
	}
	return "reaches any address"
}

func loopback(binding string) bool {
	return strings.HasPrefix(binding, "127.") || strings.HasPrefix(binding, "[::1]:")
}

type privilege struct{ what, how, path string }

// privileges are a container's steps back from the hardening.
func privileges(c Container) []privilege {
	var out []privilege
	add := func(what, how, path string) { out = append(out, privilege{what, how, path}) }
	for _, name := range c.CapAdd {
		add("capability "+name, "added", "cap_add")
	}
	if !slices.Contains(c.CapDrop, "ALL") {
		add("default capabilities", "not dropped", "cap_drop")
	}
	if !c.NoNewPrivileges {
		add("new privileges", "setuid programs gain their owner's rights", "no_new_privileges")
	}
	if c.Seccomp != "default" {
		add("system calls", "seccomp "+c.Seccomp, "seccomp")
	}
	if !c.ReadOnlyRoot {
		add("root file system", "writable", "read_only")
	}
	for _, d := range c.Devices {
		add("device "+d, "added", "devices")
	}
	for _, g := range c.GroupAdd {
		add("group "+g, "added", "group_add")
	}
	for _, name := range sortedKeys(c.Sysctls) {
		add("sysctl "+name, "= "+c.Sysctls[name], key("sysctls", name))
	}
	for _, path := range sortedKeys(c.Tmpfs) {
		if slices.Contains(strings.Split(c.Tmpfs[path], ","), "exec") {
			add("tmpfs "+path, "may hold programs", key("tmpfs", path))
		}
	}
	for _, f := range c.Excess {
		if opensUp(f.Path) {
			add(f.Path, "= "+f.Value, f.Path)
		}
	}
	return out
}

// opensUp tells whether an excess of the engine's configuration is a matter of what
// the container can reach, and not of how it is run.
func opensUp(path string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "HostConfig."), "[")
	switch name {
	case "Privileged", "PidMode", "IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode", "Cgroup",
		"Devices", "DeviceRequests", "DeviceCgroupRules", "SecurityOpt", "MaskedPaths",
		"ReadonlyPaths", "VolumesFrom", "Links", "ExtraHosts", "CgroupParent", "Runtime",
		"PublishAllPorts", "Binds", "Mounts":
		return true
	}
	return false
}

// meets names who else will be on a network that a space joins.
func (w *world) meets(a Access) string {
	const most = 6
	names := slices.DeleteFunc(slices.Clone(w.members[a.What]), func(name string) bool { return name == a.Space })
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func running(s State) bool {
	return s == StateRunning || s == StatePaused || s == StateRestarting
}

func foreign(name string) string { return "container " + name + " (not ours)" }

// subject is what a plan calls a container: its address in the files, where its name is
// the one that the address leads to, else the container by its name. No two containers
// have the same.
func (w *world) subject(c ObservedContainer) string {
	name := c.Name
	for _, suffix := range []string{SuffixOld, SuffixNew} {
		if base, cut := strings.CutSuffix(c.Name, suffix); cut && !strings.Contains(base, ".") {
			name = base // what a replacement that was cut short left
		}
	}
	if address, asked := w.addresses[name]; asked {
		return address
	}
	a := schema.Address{Name: c.Labels[LabelName], Key: c.Labels[LabelKey]}
	switch name {
	case w.desired.Project + "-" + a.FullName(), w.desired.Project + "-egress-" + a.FullName():
		return addressOf(c)
	}
	return "container " + c.Name
}

// addressOf is the address that a container's labels give, as the files would spell it.
func addressOf(c ObservedContainer) string {
	name := c.Labels[LabelName]
	if name == "" {
		return "container " + c.Name
	}
	kind := "space"
	if c.Kind() == KindEgress {
		kind = "egress"
	}
	return schema.Address{Kind: kind, Name: name, Key: c.Labels[LabelKey]}.String()
}
