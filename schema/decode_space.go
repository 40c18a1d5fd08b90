package schema

import (
	"cmp"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	minMemory = 6 << 20 // the engine's
	minTmpfs  = 1

	restartNo            = "no"
	restartOnFailure     = "on-failure"
	restartUnlessStopped = "unless-stopped"
	restartAlways        = "always"

	protocolTCP = "tcp"
	protocolUDP = "udp"

	loopback = "127.0.0.1"
	maxPort  = 65535

	tmpPath = "/tmp"
	// proxyName is what a network's proxy answers to.
	proxyName = "proxy"
)

func (l *loader) decodeSpace(inst *instance) Space {
	r := l.reader(inst)
	s := Space{Object: *r.object, Lifecycle: r.lifecycle()}
	if image, ok := r.ref("image", kindNamed("image")); r.need("image", ok) {
		s.Image = image
	}
	s.Entrypoint = r.command("entrypoint")
	s.Command = r.command("command")
	r.process(&s)
	s.Networks = r.attachments()
	s.Grants = r.addressList("grants", kindNamed("grant"))
	s.DependsOn = r.addressList("depends_on", kindNamed("space"))
	if proxy, ok := r.ref("proxy", kindNamed("egress")); ok {
		s.Proxy = proxy
	}
	s.Protect, _ = r.boolean("protect")
	s.Tmpfs = r.tmpfs()
	s.Limits = r.limits()
	s.Publish = r.publishes()
	s.Healthcheck = r.healthcheck()
	s.Restart = r.restart(s.Lifecycle)
	s.Loosen = r.loosenings()
	s.Env = r.env(s.Loosen)
	r.loosenedTmpfs(&s)
	r.loosenedEnv(&s)
	r.loosenedGrants(&s)
	return s
}

func (r *reader) lifecycle() Lifecycle {
	s, ok := r.choice("lifecycle", string(LifecycleService), string(LifecycleCore), string(LifecycleOnRequest))
	if !ok {
		return LifecycleService
	}
	return Lifecycle(s)
}

// process reads how the process runs.
func (r *reader) process(s *Space) {
	if user, ok := r.str("user"); ok {
		if !userRE.MatchString(user) {
			r.fail(diagUser(user, r.place("user")))
		}
		s.User = user
	}
	if dir, ok := r.str("working_dir"); ok {
		if !cleanInside(dir) {
			r.fail(diagInsidePath("working_dir", dir, r.place("working_dir")))
		}
		s.WorkingDir = dir
	}
	if d, ok := r.duration("stop_timeout", 0); ok {
		if d%time.Second != 0 {
			r.fail(diagWholeSeconds("stop_timeout", r.place("stop_timeout")))
		}
		s.StopTimeout = &d
	}
	if sig, ok := r.str("stop_signal"); ok {
		if !slices.Contains(signals, sig) && !signalRE.MatchString(sig) {
			r.fail(diagSignal(sig, signalMeant(sig), r.place("stop_signal")))
		}
		s.StopSignal = sig
	}
}

// signalMeant guesses the signal that a name without its whole spelling means, or "".
func signalMeant(s string) string {
	if !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if slices.Contains(signals, name) {
		return name
	}
	return Closest(name, signals)
}

// command is a list of words; an empty list inherits the image's, as does none.
func (r *reader) command(name string) []string {
	items, _ := r.strs(name)
	var words []string
	for i, it := range items {
		switch {
		case i == 0 && it.value == "":
			r.fail(diagEmpty(name, it.at))
		case strings.ContainsRune(it.value, 0):
			r.fail(diagNUL(name, it.at))
		}
		words = append(words, it.value)
	}
	return words
}

func (r *reader) addressList(name string, k *kind) []Address {
	items, _ := r.refs(name, k)
	var list []Address
	for _, it := range items {
		list = append(list, it.value)
	}
	slices.SortFunc(list, compareAddresses)
	return list
}

// attachments are the networks of the list and of the blocks, each once, by address:
// that is also the order in which the engine picks the one its default route uses.
func (r *reader) attachments() []Attachment {
	var list []Attachment
	items, _ := r.refs("networks", kindNamed("network"))
	for _, it := range items {
		list = append(list, Attachment{Network: it.value, Origin: originOf(it.at.subject)})
	}
	for _, block := range r.blocks("network") {
		if a, ok := r.attachment(block); ok {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Attachment) int { return compareAddresses(a.Network, b.Network) })
	for i := 1; i < len(list); i++ {
		if list[i-1].Network == list[i].Network {
			r.fail(diagAttachedTwice(list[i].Network, list[i].Origin.hclRange(), list[i-1].Origin.hclRange()))
		}
	}
	return slices.CompactFunc(list, func(a, b Attachment) bool { return a.Network == b.Network })
}

func (r *reader) attachment(block *hclsyntax.Block) (Attachment, bool) {
	if len(block.Labels) == 0 {
		r.markBroken()
		return Attachment{}, false // reported with the block's shape
	}
	name := block.Labels[0]
	in := r.inner(block, "network["+strconv.Quote(name)+"]")
	a := Attachment{Network: Address{Kind: "network", Name: name}, Origin: originOf(block.DefRange())}
	a.Aliases = in.aliases()
	if s, ok := in.str("address"); ok {
		addr, ok := parseAddr(s)
		if !ok {
			in.fail(diagIP("address", s, in.place("address")))
		} else {
			a.Address = addr.String()
		}
	}
	if _, ok := r.l.objects["network"][name]; !ok {
		if !r.l.mayDeclare(name) {
			r.l.report(r.l.diagUndeclared("network", name, block.LabelRanges[0]))
		}
		r.markBroken()
		return Attachment{}, false
	}
	return a, true
}

func (r *reader) aliases() []string {
	items, _ := r.strs("aliases")
	var aliases []string
	for _, it := range items {
		switch {
		case !validName(it.value) || len(it.value) > maxName:
			r.fail(diagAlias(it.value, it.at))
		case it.value == proxyName:
			r.fail(diagProxyReserved(it.at))
		case slices.Contains(aliases, it.value):
			r.fail(diagListedTwice("aliases", it.value, it.at))
		default:
			aliases = append(aliases, it.value)
		}
	}
	slices.Sort(aliases)
	return aliases
}

// tmpfs reads the list of paths and the blocks that give more than a path.
func (r *reader) tmpfs() []Tmpfs {
	var list []Tmpfs
	items, _ := r.strs("tmpfs")
	for _, it := range items {
		if !r.inside("tmpfs", it.value, it.at) {
			continue
		}
		if it.value == tmpPath {
			continue // it is always there
		}
		list = append(list, Tmpfs{Path: it.value, Origin: originOf(it.at.subject)})
	}
	for _, block := range r.blocks("tmpfs") {
		if len(block.Labels) == 0 {
			r.markBroken()
			continue // reported with the block's shape
		}
		where := at(block.LabelRanges[0]).within(block.DefRange())
		t := Tmpfs{Path: block.Labels[0], Origin: originOf(block.DefRange())}
		in := r.inner(block, "tmpfs["+strconv.Quote(t.Path)+"]")
		t.Size, _ = in.size("size", minTmpfs)
		t.Mode = in.permissions("mode")
		if r.inside("tmpfs", t.Path, where) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b Tmpfs) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(list); i++ {
		if list[i-1].Path == list[i].Path {
			r.fail(diagTmpfsTwice(list[i].Path, list[i].Origin.hclRange(), list[i-1].Origin.hclRange()))
		}
	}
	return slices.CompactFunc(list, func(a, b Tmpfs) bool { return a.Path == b.Path })
}

// permissions are a directory's permission bits in octal.
func (r *reader) permissions(name string) uint32 {
	s, ok := r.str(name)
	if !ok {
		return 0
	}
	mode, err := strconv.ParseUint(s, 8, 32)
	if !octalRE.MatchString(s) || err != nil || mode == 0 {
		r.fail(diagMode(s, r.place(name)))
		return 0
	}
	return uint32(mode)
}

func (r *reader) limits() Limits {
	block := r.block("limits")
	if block == nil {
		return Limits{}
	}
	in := r.inner(block, "limits")
	limits := Limits{Origin: originOf(block.DefRange())}
	limits.PIDs, _ = in.integer("pids", 1, 1<<22)
	limits.Memory, _ = in.size("memory", minMemory)
	if cpus, ok := in.number("cpus"); ok {
		if limits.NanoCPUs, ok = nanoCPUs(cpus); !ok {
			in.fail(diagCPUs(in.place("cpus")))
		}
	}
	return limits
}

func (r *reader) publishes() []Publish {
	type written struct {
		publish Publish
		block   *hclsyntax.Block
	}
	var list []written
	for _, block := range r.blocks("publish") {
		in := *r
		in.body, in.object = block.Body, nil
		if p, ok := in.publish(block); ok {
			list = append(list, written{p, block})
		}
	}
	slices.SortStableFunc(list, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.publish.Port, b.publish.Port), cmp.Compare(a.publish.Host, b.publish.Host),
			cmp.Compare(a.publish.Protocol, b.publish.Protocol))
	})
	var publishes []Publish
	for i, w := range list {
		path := "publish[" + strconv.Itoa(i) + "]"
		r.record(path, w.block.DefRange())
		for _, attr := range w.block.Body.Attributes {
			r.record(path+"."+attr.Name, attr.SrcRange)
		}
		publishes = append(publishes, w.publish)
	}
	return publishes
}

func (r *reader) publish(block *hclsyntax.Block) (Publish, bool) {
	p := Publish{Host: loopback, Protocol: protocolTCP, Origin: originOf(block.DefRange())}
	port, good := r.integer("port", 1, maxPort)
	r.need("port", good)
	p.Port, p.Container = int(port), int(port)
	if port, ok := r.integer("container", 1, maxPort); ok {
		p.Container = int(port)
	}
	if protocol, ok := r.choice("protocol", protocolTCP, protocolUDP); ok {
		p.Protocol = protocol
	}
	addr := netip.MustParseAddr(loopback)
	if host, ok := r.str("host"); ok {
		if addr, ok = parseAddr(host); !ok {
			r.fail(diagPublishHost(host, r.place("host")))
			good = false
		}
		p.Host = addr.String()
	}
	reason, hasReason := r.reason()
	p.Reason = reason
	if addr.IsValid() && !addr.IsLoopback() && !hasReason && !r.hasValue("reason") {
		r.fail(diagPublishReason(p.Host, block, r.place("host")))
	}
	return p, good
}

func (r *reader) healthcheck() *Healthcheck {
	block := r.block("healthcheck")
	if block == nil {
		return nil
	}
	in := r.inner(block, "healthcheck")
	h := &Healthcheck{Origin: originOf(block.DefRange())}
	h.Disable, _ = in.boolean("disable")
	h.Command = in.command("command")
	if shell, ok := in.str("shell"); ok {
		if strings.TrimSpace(shell) == "" {
			in.fail(diagEmpty("shell", in.place("shell")))
		}
		h.Shell = shell
	}
	h.Interval, _ = in.duration("interval", time.Millisecond)
	h.Timeout, _ = in.duration("timeout", time.Millisecond)
	h.StartPeriod, _ = in.duration("start_period", time.Millisecond)
	h.StartInterval, _ = in.duration("start_interval", time.Millisecond)
	retries, _ := in.integer("retries", 1, 1<<20)
	h.Retries = int(retries)
	in.healthcheckRules(h, block)
	return h
}

func (r *reader) healthcheckRules(h *Healthcheck, block *hclsyntax.Block) {
	hasCommand, hasShell := r.hasValue("command"), r.hasValue("shell")
	given := 0
	for name := range r.body.Attributes {
		if name != "disable" && r.hasValue(name) {
			given++
		}
	}
	switch {
	case h.Disable && given > 0:
		r.fail(diagHealthcheckDisabled(r.place("disable")))
	case hasCommand && hasShell:
		r.fail(diagHealthcheckTwice(r.place("shell")))
	case hasCommand && h.Command == nil && !r.l.broken[r.inst.addr]:
		r.fail(diagEmpty("command", r.place("command")))
	case !h.Disable && given == 0:
		r.fail(diagHealthcheckEmpty(block))
	}
}

var restartRE = regexp.MustCompile(`^on-failure:([1-9][0-9]{0,5})$`)

// restart is the policy; what isn't a service is started by the host alone.
func (r *reader) restart(lifecycle Lifecycle) Restart {
	const name = "restart"
	s, ok := r.str(name)
	if !ok {
		if lifecycle == LifecycleService {
			return Restart{Name: restartUnlessStopped}
		}
		return Restart{Name: restartNo}
	}
	if lifecycle != LifecycleService {
		r.fail(diagServiceOnly(name, string(lifecycle), r.place(name)))
	}
	if m := restartRE.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		return Restart{Name: restartOnFailure, MaxRetries: n}
	}
	switch s {
	case restartNo, restartOnFailure, restartUnlessStopped:
	case restartAlways:
		r.fail(diagRestartAlways(r.place(name)))
	default:
		r.fail(diagRestart(s, r.place(name)))
	}
	return Restart{Name: s}
}

// env reads the variables; a sensitive one must be loosened by name.
func (r *reader) env(loosen []Loosening) []EnvVar {
	items, _ := r.strMap("env")
	var vars []EnvVar
	for _, name := range slices.Sorted(maps.Keys(items)) {
		it := items[name]
		v := EnvVar{Name: name, Value: stringOf(it.value), Sensitive: it.value.IsMarked(), Origin: originOf(it.at.subject)}
		if it.unnamed && !isLoosened(loosen, LoosenSecretEnv, name) {
			r.fail(diagSensitiveNames("env", it.at))
			continue
		}
		r.record("env["+strconv.Quote(name)+"]", it.at.subject)
		switch {
		case it.unnamed && !envNameRE.MatchString(name):
			r.markBroken() // the loosening is at fault, for it can't hold this name
		case !envNameRE.MatchString(name):
			r.fail(diagEnvName("env", name, it.at))
		case strings.ContainsRune(v.Value, 0):
			r.fail(diagNUL("env", it.at))
		case v.Sensitive && !isLoosened(loosen, LoosenSecretEnv, name):
			r.fail(diagSensitiveEnv(name, it.at))
		}
		vars = append(vars, v)
	}
	return vars
}

// isLoosened reports whether a loosening names a value. One without values is faulty,
// which has been reported, and may have named it.
func isLoosened(loosen []Loosening, kind, value string) bool {
	return slices.ContainsFunc(loosen, func(l Loosening) bool {
		return l.Kind == kind && (len(l.Values) == 0 || slices.Contains(l.Values, value))
	})
}

var signals = []string{
	"SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
	"SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
	"SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR",
	"SIGSYS",
}
