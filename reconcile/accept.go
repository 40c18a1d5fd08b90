package reconcile

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"spaces/schema"
)

// Acceptance is how the files would ask for some of what is, where it isn't what they
// ask for now. Whether they then load, ask for just that and are allowed to is for
// whoever makes the edits to see.
type Acceptance struct {
	// Subject and Fields are the differences that it settles; without fields, it is the
	// whole object.
	Subject string
	Fields  []string
	// Ways are edits that may do, the likeliest first. Without any, Why says why not.
	Ways [][]schema.Edit
	Why  string
	// Instead is what else to do; empty for repairing it.
	Instead string
	Origin  schema.Origin
}

// AcceptReason stands where the files want a reason that only a person can give.
const AcceptReason = "accepted as it runs: say why"

// Accept says of each difference behind a plan how the files would ask for what is. It
// shows no value that the plan masks.
func Accept(d Desired, a Actual, p *Plan) []Acceptance {
	ac := accepter{desired: d, actual: a, taken: map[string]bool{}}
	for _, g := range d.Grants {
		ac.taken[g.Address.Name] = true
	}
	for _, i := range p.Items {
		ac.item(i)
	}
	return ac.out
}

type accepter struct {
	desired Desired
	actual  Actual
	taken   map[string]bool // names of grants
	out     []Acceptance
}

func (ac *accepter) item(i Item) {
	at := Acceptance{Subject: i.Subject, Origin: i.Origin}
	switch i.Step.(type) {
	case NotYet:
		return
	case CreateSpace, CreateNetwork:
		if i.Effects.Has(Creates) {
			ac.missing(i, at)
			return
		}
	case RenameSpace:
		at.Why = "an apply was cut short there"
		for _, c := range i.Changes {
			at.Fields = append(at.Fields, c.Field)
		}
		ac.out = append(ac.out, at)
		return
	}
	switch {
	case i.Effects.Has(Creates):
		at.Why = "there is none, and the files say what it is made of"
		ac.out = append(ac.out, at)
	case i.Effects.Has(Destroys) && !i.Effects.Has(Replaces):
		at.Why = "nothing in the files says what it is for, and an edit can't make that up"
		at.Instead = "Write a block for it by hand, or remove it: `spaces apply`."
		ac.out = append(ac.out, at)
	case len(i.Changes) > 0:
		ac.changes(i)
	}
}

// missing takes a space or a network out of the files that isn't there.
func (ac *accepter) missing(i Item, at Acceptance) {
	for _, s := range ac.desired.Spaces {
		if s.Address.String() == i.Subject {
			at.Ways = [][]schema.Edit{{schema.RemoveObject{Object: s.Address}}}
		}
	}
	for _, n := range ac.desired.Networks {
		if n.Address.String() == i.Subject {
			at.Ways = [][]schema.Edit{{schema.RemoveObject{Object: n.Address}}}
		}
	}
	ac.out = append(ac.out, at)
}

// changes goes through an item's changes, those that one edit settles together.
func (ac *accepter) changes(i Item) {
	s, got := ac.space(i.Subject)
	groups := map[string][]Change{}
	var order []string
	for _, c := range i.Changes {
		name := group(c.Field)
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], c)
	}
	for _, name := range order {
		changes := groups[name]
		at := Acceptance{Subject: i.Subject, Origin: changes[0].Origin}
		for _, c := range changes {
			at.Fields = append(at.Fields, c.Field)
		}
		switch {
		case slices.ContainsFunc(changes, func(c Change) bool { return c.Sensitive }):
			at.Why = "what it holds may be a secret, and isn't shown"
			at.Instead = "Write it by hand, a secret as a grant, or repair it: `spaces apply`."
		case s == nil || got == nil:
			ac.ofNetwork(&at, i, changes)
		default:
			at.Ways, at.Why = ac.ways(*s, got, name, changes[0])
		}
		ac.out = append(ac.out, at)
	}
}

// group is the name under which fields are settled by one edit.
func group(field string) string {
	set, element, _, keyed := cutKey(field)
	switch {
	case field == "limits.memory" || field == "limits.memory_swap":
		return "limits.memory"
	case keyed && set == "sysctls":
		return set
	case keyed && set == "network":
		return key(set, element)
	}
	return field
}

func (ac *accepter) space(subject string) (*Space, *ObservedContainer) {
	for i, s := range ac.desired.Spaces {
		if s.Address.String() != subject {
			continue
		}
		for j, c := range ac.actual.Containers {
			if c.Name == s.Container.Name {
				return &ac.desired.Spaces[i], &ac.actual.Containers[j]
			}
		}
	}
	return nil, nil
}

// ofNetwork is about a network's own fields. It can only be internal or not, and have
// addresses of its own.
func (ac *accepter) ofNetwork(at *Acceptance, i Item, changes []Change) {
	at.Why = "the language can't say it"
	for _, n := range ac.desired.Networks {
		if n.Address.String() != i.Subject {
			continue
		}
		got := ac.network(n.Name)
		if got == nil {
			return
		}
		text := func(name, value string) {
			if value == "" {
				at.Ways = [][]schema.Edit{{schema.RemoveAttribute{Object: n.Address, Name: name}}}
			} else {
				at.Ways = [][]schema.Edit{{schema.SetAttribute{Object: n.Address, Name: name, Value: schema.Text(value)}}}
			}
		}
		switch changes[0].Field {
		case "subnet":
			text("subnet", got.Subnet)
		case "ip_range":
			text("ip_range", got.IPRange)
		case "internal":
			at.Ways = internal(n.Address, got.Internal)
		}
	}
}

func internal(network schema.Address, is bool) [][]schema.Edit {
	if is {
		drop := []schema.Edit{
			schema.RemoveAttribute{Object: network, Name: "internal"},
			schema.RemoveAttribute{Object: network, Name: "reason"},
		}
		return [][]schema.Edit{drop, append(drop, schema.SetAttribute{Object: network, Name: "egress", Value: schema.Text("none")})}
	}
	open := []schema.Edit{
		schema.SetAttribute{Object: network, Name: "internal", Value: schema.Flag(false)},
		schema.SetAttribute{Object: network, Name: "reason", Value: schema.Text(AcceptReason)},
	}
	// One without a way out says so, which one with a way out must not.
	quiet := append([]schema.Edit{schema.RemoveAttribute{Object: network, Name: "egress"}}, open...)
	return [][]schema.Edit{quiet, open}
}

func (ac *accepter) network(name string) *ObservedNetwork {
	for i, n := range ac.actual.Networks {
		if n.Name == name {
			return &ac.actual.Networks[i]
		}
	}
	return nil
}

// ways are the edits of a space that would ask for what its container has of a field.
func (ac *accepter) ways(s Space, got *ObservedContainer, name string, c Change) (ways [][]schema.Edit, why string) {
	set := func(attribute string, value schema.Value, is bool) [][]schema.Edit {
		if is {
			return one(schema.SetAttribute{Object: s.Address, Name: attribute, Value: value})
		}
		return one(schema.RemoveAttribute{Object: s.Address, Name: attribute})
	}
	field, element, rest, keyed := cutKey(name)
	if keyed {
		return ac.element(s, got, field, element, rest)
	}
	switch field {
	case "command":
		return set("command", schema.Texts(got.Command), len(got.Command) > 0), ""
	case "entrypoint":
		return set("entrypoint", schema.Texts(got.Entrypoint), len(got.Entrypoint) > 0), ""
	case "user":
		return set("user", schema.Text(got.User), got.User != ""), ""
	case "working_dir":
		return set("working_dir", schema.Text(got.WorkingDir), got.WorkingDir != ""), ""
	case "stop_signal":
		return set("stop_signal", schema.Text(got.StopSignal), got.StopSignal != ""), ""
	case "stop_timeout":
		return set("stop_timeout", schema.Text(c.Before), c.BeforeSet), ""
	case "restart":
		return set("restart", schema.Text(c.Before), true), ""
	case "healthcheck":
		return healthcheckWays(s, got.Healthcheck), ""
	case "sysctls":
		var settings []string
		for _, n := range sortedKeys(got.Sysctls) {
			settings = append(settings, n+"="+got.Sysctls[n])
		}
		return loosenings(s, schema.LoosenSysctl, settings), ""
	case "state":
		return nil, "the files can't ask for a space that doesn't run"
	case "image":
		return nil, "the files say what it is made from, and an image isn't told by its name alone"
	case "labels", "network_mode", "dns":
		return nil, "it follows from the rest"
	}
	return ac.bounded(s, got, field)
}

func one(edits ...schema.Edit) [][]schema.Edit { return [][]schema.Edit{edits} }

// bounded are the limits and the hardening.
func (ac *accepter) bounded(s Space, got *ObservedContainer, field string) (ways [][]schema.Edit, why string) {
	limit := func(name string, value schema.Value, is bool) ([][]schema.Edit, string) {
		if !is {
			return nil, "the language has no word for a space without this limit"
		}
		return one(schema.SetAttribute{Object: s.Address, Block: "limits", Name: name, Value: value}), ""
	}
	literal := func(kind string, loose bool, value schema.Value) [][]schema.Edit {
		if loose {
			return one(loosening(s, kind, value))
		}
		return one(schema.RemoveBlocks{Object: s.Address, Type: "loosen", Label: kind})
	}
	switch field {
	case "limits.memory":
		return limit("memory", schema.Text(bytesValue(got.Memory)), got.Memory > 0)
	case "limits.pids":
		return limit("pids", schema.Number(countValue(got.PIDs)), got.PIDs > 0)
	case "limits.cpus":
		return limit("cpus", schema.Number(cpusValue(got.NanoCPUs)), got.NanoCPUs > 0)
	case "cap_add":
		return loosenings(s, schema.LoosenCapAdd, got.CapAdd), ""
	case "group_add":
		return loosenings(s, schema.LoosenGroupAdd, got.GroupAdd), ""
	case "devices":
		var paths []string
		for _, d := range got.Devices {
			path, _, _ := strings.Cut(d, ":")
			if d != path+":"+path+":rwm" {
				return nil, "the language gives a device whole and under its own name alone"
			}
			paths = append(paths, path)
		}
		return loosenings(s, schema.LoosenDevice, paths), ""
	case "read_only":
		return literal(schema.LoosenWritableRoot, !got.ReadOnlyRoot, schema.Flag(true)), ""
	case "no_new_privileges":
		return literal(schema.LoosenNewPrivileges, !got.NoNewPrivileges, schema.Flag(true)), ""
	case "init":
		return literal(schema.LoosenInit, !got.Init, schema.Flag(false)), ""
	case "seccomp":
		if got.Seccomp != "unconfined" && got.Seccomp != "default" {
			return nil, "the language has the engine's own profile or none"
		}
		return literal(schema.LoosenSeccomp, got.Seccomp == "unconfined", schema.Text("unconfined")), ""
	}
	return nil, "the language can't say it"
}

// loosening writes a loosening, or its value where there is one of the kind.
func loosening(s Space, kind string, value schema.Value) schema.Edit {
	for _, l := range s.Loosen {
		if l.Kind == kind {
			return schema.SetAttribute{Object: s.Address, Block: "loosen", Label: kind, Name: "value", Value: value}
		}
	}
	return schema.AddBlock{Object: s.Address, Block: schema.Block{Type: "loosen", Label: kind, Attributes: []schema.Attribute{
		{Name: "value", Value: value}, {Name: "reason", Value: schema.Text(AcceptReason)},
	}}}
}

func loosenings(s Space, kind string, values []string) [][]schema.Edit {
	if len(values) == 0 {
		return one(schema.RemoveBlocks{Object: s.Address, Type: "loosen", Label: kind})
	}
	return one(loosening(s, kind, schema.Texts(values)))
}

// healthcheckWays write the parts of a check that differ, or, where there is none or it is
// another altogether, the whole.
func healthcheckWays(s Space, h *Healthcheck) [][]schema.Edit {
	const block = "healthcheck"
	drop := schema.RemoveBlocks{Object: s.Address, Type: block}
	if h == nil {
		return one(drop)
	}
	whole := schema.AddBlock{Object: s.Address, Block: schema.Block{Type: block, Attributes: healthcheckAttributes(h)}}
	ways := [][]schema.Edit{{whole}, {drop, whole}}
	if s.Container.Healthcheck == nil {
		return ways
	}
	var parts []schema.Edit
	was := healthcheckAttributes(s.Container.Healthcheck)
	for _, a := range whole.Block.Attributes {
		if !slices.Contains(was, a) {
			parts = append(parts, schema.SetAttribute{Object: s.Address, Block: block, Name: a.Name, Value: a.Value})
		}
	}
	for _, a := range was {
		if !slices.ContainsFunc(whole.Block.Attributes, func(b schema.Attribute) bool { return a.Name == b.Name }) {
			parts = append(parts, schema.RemoveAttribute{Object: s.Address, Block: block, Name: a.Name})
		}
	}
	return append([][]schema.Edit{parts}, ways...)
}

func healthcheckAttributes(h *Healthcheck) []schema.Attribute {
	var out []schema.Attribute
	add := func(name string, value schema.Value) { out = append(out, schema.Attribute{Name: name, Value: value}) }
	switch {
	case len(h.Test) == 0:
	case h.Test[0] == "NONE":
		add("disable", schema.Flag(true))
	case h.Test[0] == "CMD-SHELL":
		add("shell", schema.Text(strings.Join(h.Test[1:], " ")))
	default:
		add("command", schema.Texts(h.Test[1:]))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"interval", h.Interval},
		{"timeout", h.Timeout},
		{"start_period", h.StartPeriod},
		{"start_interval", h.StartInterval},
	} {
		if d.d != 0 {
			add(d.name, schema.Text(brief(d.d)))
		}
	}
	if h.Retries != 0 {
		add("retries", schema.Number(strconv.Itoa(h.Retries)))
	}
	return out
}

// brief spells a duration without the parts that are zero.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// element is about one element of a set.
func (ac *accepter) element(s Space, got *ObservedContainer, set, element, rest string) (ways [][]schema.Edit, why string) {
	switch set {
	case "env":
		v, is := got.Env[element]
		if !is {
			return one(schema.RemoveElement{Object: s.Address, Name: "env", Key: element}), ""
		}
		return one(schema.SetElement{Object: s.Address, Name: "env", Key: element, Value: v.Value}), ""
	case "network":
		return ac.attachment(s, got, element)
	case "publish":
		return publishWays(s, got, element)
	case "tmpfs":
		return tmpfsWays(s, got, element)
	case "mount":
		if rest != "" {
			return nil, "the files give what the host's file holds, whatever that is"
		}
		return ac.mountWays(s, got, element)
	case "labels":
		return nil, "labels say whose a container is, and follow from the files"
	}
	return nil, "the language can't say it"
}

// attachment is a container's place on one network.
func (ac *accepter) attachment(s Space, got *ObservedContainer, network string) (ways [][]schema.Edit, why string) {
	address, ours := ac.networkAddress(network)
	e, is := got.Networks[network]
	switch {
	case network == noNetwork:
		return nil, "it follows from the networks that the space is on"
	case !ours:
		return nil, "it is no network of the files"
	case len(e.Excess) > 0:
		return nil, "the language can't say it"
	case is && !slices.Contains(e.Aliases, s.Address.FullName()):
		return nil, "a space answers to its own name on each of its networks"
	}
	item := schema.RemoveItem{Object: s.Address, Name: "networks", Text: address.String()}
	block := schema.RemoveBlocks{Object: s.Address, Type: "network", Label: address.Name}
	var drops [][]schema.Edit
	if _, was := s.Container.Networks[network]; was {
		drops = [][]schema.Edit{{block}, {item}}
	}
	if !is {
		return drops, ""
	}
	join := schema.Edit(schema.AddItem{Object: s.Address, Name: "networks", Text: address.String()})
	aliases := slices.DeleteFunc(slices.Clone(e.Aliases), func(a string) bool { return a == s.Address.FullName() })
	if len(aliases) > 0 || e.Address != "" {
		b := schema.Block{Type: "network", Label: address.Name}
		if len(aliases) > 0 {
			b.Attributes = append(b.Attributes, schema.Attribute{Name: "aliases", Value: schema.Texts(aliases)})
		}
		if e.Address != "" {
			b.Attributes = append(b.Attributes, schema.Attribute{Name: "address", Value: schema.Text(e.Address)})
		}
		join = schema.AddBlock{Object: s.Address, Block: b}
	}
	if len(drops) == 0 {
		return one(join), ""
	}
	for _, drop := range drops {
		ways = append(ways, append(drop, join))
	}
	return ways, ""
}

func (ac *accepter) networkAddress(name string) (schema.Address, bool) {
	for _, n := range ac.desired.Networks {
		if n.Name == name {
			return n.Address, true
		}
	}
	return schema.Address{}, false
}

// publishWays are about the bindings of one port: those that the files have and reality
// has not go, and the others come.
func publishWays(s Space, got *ObservedContainer, port string) (ways [][]schema.Edit, why string) {
	is, want := bindings(got.Publish[port]), bindings(s.Container.Publish[port])
	number, protocol, _ := strings.Cut(port, "/")
	var edits []schema.Edit
	for _, b := range want {
		if slices.Contains(is, b) {
			continue
		}
		at, err := netip.ParseAddrPort(b)
		if err != nil {
			return nil, "the language can't say it"
		}
		host, hostPort := at.Addr().String(), countValue(int64(at.Port()))
		edits = append(edits, schema.RemoveBlocks{
			Object: s.Address, Type: "publish",
			Where: map[string]schema.Value{
				"host": schema.Text(host), "port": schema.Number(hostPort),
				"container": schema.Number(number), "protocol": schema.Text(protocol),
			},
			Defaults: map[string]schema.Value{
				"host": schema.Text("127.0.0.1"), "container": schema.Number(hostPort), "protocol": schema.Text("tcp"),
			},
		})
	}
	for _, b := range is {
		if slices.Contains(want, b) {
			continue
		}
		at, err := netip.ParseAddrPort(b)
		if err != nil || at.Port() == 0 {
			return nil, "the language publishes on an address and a port that are written down"
		}
		block := schema.Block{Type: "publish", Attributes: []schema.Attribute{
			{Name: "host", Value: schema.Text(at.Addr().String())},
			{Name: "port", Value: schema.Number(countValue(int64(at.Port())))},
			{Name: "container", Value: schema.Number(number)},
		}}
		if protocol != "tcp" {
			block.Attributes = append(block.Attributes, schema.Attribute{Name: "protocol", Value: schema.Text(protocol)})
		}
		if !at.Addr().IsLoopback() {
			block.Attributes = append(block.Attributes, schema.Attribute{Name: "reason", Value: schema.Text(AcceptReason)})
		}
		edits = append(edits, schema.AddBlock{Object: s.Address, Block: block})
	}
	return one(edits...), ""
}

func bindings(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// tmpfsWays are about one directory in memory.
func tmpfsWays(s Space, got *ObservedContainer, at string) (ways [][]schema.Edit, why string) {
	options, is := got.Tmpfs[at]
	_, was := s.Container.Tmpfs[at]
	if !is && at == "/tmp" {
		return nil, "every space has it"
	}
	block := schema.Block{Type: "tmpfs", Label: at}
	exec := false
	if is {
		said := strings.Split(options, ",")
		for _, o := range said {
			name, value, _ := strings.Cut(o, "=")
			switch name {
			case "noexec", "nosuid":
			case "exec":
				exec = true
			case "size":
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return nil, "the language can't say its options"
				}
				block.Attributes = append(block.Attributes, schema.Attribute{Name: "size", Value: schema.Text(bytesValue(n))})
			case "mode":
				block.Attributes = append(block.Attributes, schema.Attribute{Name: "mode", Value: schema.Text(value)})
			default:
				return nil, "the language can't say its options"
			}
		}
		if !slices.Contains(said, "nosuid") {
			return nil, "the language has no directory in memory with setuid programs"
		}
	}
	var edits []schema.Edit
	switch {
	case len(block.Attributes) > 0:
		edits = append(edits, schema.AddBlock{Object: s.Address, Block: block})
	case is && at != "/tmp":
		edits = append(edits, schema.AddItem{Object: s.Address, Name: "tmpfs", Text: string(schema.Text(at))})
	}
	edits = append(edits, execEdits(s, at, exec)...)
	if !was {
		return one(edits...), ""
	}
	item := schema.RemoveItem{Object: s.Address, Name: "tmpfs", Text: string(schema.Text(at))}
	inner := schema.RemoveBlocks{Object: s.Address, Type: "tmpfs", Label: at}
	ways = [][]schema.Edit{append([]schema.Edit{inner}, edits...), append([]schema.Edit{item}, edits...)}
	if at == "/tmp" {
		ways = append(ways, edits) // it needn't be written
	}
	return ways, ""
}

// execEdits let programs be run from a directory in memory, or no longer.
func execEdits(s Space, at string, exec bool) []schema.Edit {
	var paths []string
	for _, l := range s.Loosen {
		if l.Kind == schema.LoosenTmpExec {
			paths = append(paths, l.Values...)
		}
	}
	switch may := slices.Contains(paths, at); {
	case exec && !may:
		paths = append(paths, at)
	case !exec && may:
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == at })
	default:
		return nil
	}
	slices.Sort(paths)
	return loosenings(s, schema.LoosenTmpExec, paths)[0]
}

// mountWays are about what is at one target.
func (ac *accepter) mountWays(s Space, got *ObservedContainer, target string) (ways [][]schema.Edit, why string) {
	m, is := got.Mounts[target]
	var drop []schema.Edit
	have, granted := s.Grants[target]
	if granted {
		drop = []schema.Edit{schema.RemoveItem{Object: s.Address, Name: "grants", Text: have.Address.String()}}
	}
	if !is {
		return [][]schema.Edit{drop}, ""
	}
	kinds := []schema.GrantKind{schema.GrantDirectory, schema.GrantFile}
	source := m.Source
	if m.Type == "volume" {
		short, ours := strings.CutPrefix(m.Source, ac.desired.Project+"-")
		if !ours {
			return nil, "it is a volume of others, or one without a name"
		}
		kinds, source = []schema.GrantKind{schema.GrantVolume}, short
	}
	if m.Options != "" {
		return nil, "the language mounts without options of its own"
	}
	if granted && slices.Contains(kinds, have.Kind) && s.Container.Mounts[target].Source == m.Source {
		access := schema.Text("ro")
		if m.Writable {
			access = schema.Text("rw")
		}
		ways = append(ways, one(schema.SetAttribute{Object: have.Address, Name: "access", Value: access})...)
	}
	give := func(g schema.Address, more ...schema.Edit) {
		edits := slices.Concat(drop, more, []schema.Edit{schema.AddItem{Object: s.Address, Name: "grants", Text: g.String()}})
		ways = append(ways, edits)
	}
	for _, g := range ac.desired.Grants {
		if slices.Contains(kinds, g.Kind) && g.Source == source && g.Target == target && g.Writable == m.Writable && g.Address != have.Address {
			give(g.Address)
		}
	}
	name := ac.freeName(target)
	for _, kind := range kinds {
		b := schema.Block{Type: "grant", Label: name, Attributes: []schema.Attribute{
			{Name: string(kind), Value: schema.Text(source)}, {Name: "target", Value: schema.Text(target)},
		}}
		if m.Writable {
			b.Attributes = append(b.Attributes, schema.Attribute{Name: "access", Value: schema.Text("rw")})
		}
		give(schema.Address{Kind: "grant", Name: name}, schema.AddObject{File: s.Origin.File, Block: b})
	}
	return ways, ""
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// freeName is a grant's name after what it gives, that no grant has.
func (ac *accepter) freeName(target string) string {
	base := strings.Trim(notInName.ReplaceAllString(strings.ToLower(path.Base(target)), "-"), "-")
	if base == "" {
		base = "accepted"
	}
	base = strings.TrimRight(base[:min(len(base), 40)], "-")
	name := base
	for n := 2; ac.taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	ac.taken[name] = true
	return name
}
