package schema

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
)

// validateSpaces judges each space against the networks and lists it uses.
func (l *loader) validateSpaces() {
	var core *Space
	for i := range l.config.Spaces {
		s := &l.config.Spaces[i]
		if s.Lifecycle == LifecycleCore {
			if core != nil {
				l.report(diagTwoCores(s.Address, core.Address, s.placeOf("lifecycle"), core.At("lifecycle").hclRange()))
			} else {
				core = s
			}
		}
		l.proxyOf(s)
		l.shadows(s)
	}
}

// proxyOf judges which list a space uses.
func (l *loader) proxyOf(s *Space) {
	var lists []string
	found := false
	for i := range l.config.Egresses {
		e := &l.config.Egresses[i]
		if !l.whole(e.Address) {
			return
		}
		on := slices.ContainsFunc(s.Networks, func(a Attachment) bool { return a.Network == e.Network })
		if on {
			lists = append(lists, e.Address.String())
			found = found || e.Address == s.Proxy
		}
	}
	if !l.whole(s.Address) {
		return
	}
	slices.Sort(lists)
	switch {
	case s.Proxy != (Address{}) && !found:
		l.report(diagProxyElsewhere(s.Proxy, lists, s.placeOf("proxy")))
	case s.Proxy == (Address{}) && len(lists) > 1:
		l.report(diagProxyUnnamed(lists, s.placeOf("networks")))
	}
}

// mount is something mounted in a space.
type mount struct {
	target string
	what   string // in words
	tmpfs  bool
	at     Origin
}

// shadows reports mounts of which one hides another: the same target, or one inside
// a grant's. In a tmpfs there is nothing to hide.
func (l *loader) shadows(s *Space) {
	mounts := l.mounts(s)
	slices.SortStableFunc(mounts, func(a, b mount) int { return compareStrings(a.target, b.target) })
	for i, inner := range mounts {
		for _, outer := range mounts[:i] {
			switch {
			case inner.target == outer.target:
				l.report(diagSameTarget(inner.what, outer.what, inner.target, at(inner.at.hclRange())))
			case lies(inner.target, outer.target) && !outer.tmpfs:
				l.report(diagTargetInside(inner.what, inner.target, outer.what, outer.target, at(inner.at.hclRange())))
			}
		}
	}
}

func (l *loader) mounts(s *Space) []mount {
	mounts := []mount{{target: tmpPath, what: "the space's own tmpfs", tmpfs: true, at: s.Origin}}
	for _, t := range s.Tmpfs {
		if t.Path != tmpPath {
			mounts = append(mounts, mount{target: t.Path, what: "a tmpfs", tmpfs: true, at: t.Origin})
		}
	}
	for _, a := range s.Grants {
		if g := l.grantAt[a]; g != nil && g.Target != "" {
			where := s.At("grants[" + strconv.Quote(a.FullName()) + "]")
			mounts = append(mounts, mount{target: g.Target, what: a.String(), at: where})
		}
	}
	return mounts
}

// validateAttachments judges who is on each network under which names and addresses.
func (l *loader) validateAttachments() {
	names := map[Address]map[string]Address{}
	addresses := map[Address]map[string]Address{}
	for i := range l.config.Spaces {
		s := &l.config.Spaces[i]
		for _, a := range s.Networks {
			where := s.attachmentPlace(a)
			n := l.networkAt[a.Network]
			if n == nil {
				continue
			}
			if l.whole(n.Address) && n.Uplink {
				l.report(diagJoinsUplink(n.Address, where))
			}
			l.claim(names, a.Network, s, []string{s.Address.FullName()}, where, diagNameOnNetwork)
			l.claim(names, a.Network, s, a.Aliases, s.attachmentAttr(a, "aliases"), diagNameOnNetwork)
			if a.Address == "" {
				continue
			}
			where = s.attachmentAttr(a, "address")
			if l.whole(n.Address) {
				l.addressWithin(n, a.Address, where)
			}
			l.claim(addresses, a.Network, s, []string{a.Address}, where, diagAddressOnNetwork)
		}
	}
}

type clashDiag = func(what string, network, other Address, where place) *hcl.Diagnostic

// claim notes what a space has on a network, and reports what another has already.
func (l *loader) claim(taken map[Address]map[string]Address, network Address, s *Space, claims []string, where place, clash clashDiag) {
	if taken[network] == nil {
		taken[network] = map[string]Address{}
	}
	for _, claim := range claims {
		if other, ok := taken[network][claim]; ok {
			l.report(clash(claim, network, other, where))
			continue
		}
		taken[network][claim] = s.Address
	}
}

// attachmentPlace is where a space says that it joins a network.
func (s *Space) attachmentPlace(a Attachment) place { return at(a.Origin.hclRange()) }

func (s *Space) attachmentAttr(a Attachment, name string) place {
	return s.placeOf("network[" + strconv.Quote(a.Network.Name) + "]." + name)
}

func (l *loader) addressWithin(n *Network, address string, where place) {
	if n.Subnet == "" {
		l.report(diagAddressWithoutSubnet(n.Address, where))
		return
	}
	subnet, err := netip.ParsePrefix(n.Subnet)
	addr, addrErr := netip.ParseAddr(address)
	if err != nil || addrErr != nil {
		return
	}
	switch {
	case !subnet.Contains(addr):
		l.report(diagAddressOutside(address, n.Address, n.Subnet, where))
	case addr == subnet.Addr() || addr == lastAddress(subnet):
		l.report(diagAddressReserved(address, n.Subnet, where))
	}
}

// lastAddress is the broadcast address of an IPv4 subnet, and the zero Addr for IPv6.
func lastAddress(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() {
		return netip.Addr{}
	}
	b := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}

// validatePublish judges published ports: each needs a way in, and one owner.
func (l *loader) validatePublish() {
	type port struct {
		number   int
		protocol string
	}
	type taken struct {
		space Address
		host  string
	}
	ports := map[port][]taken{}
	for i := range l.config.Spaces {
		s := &l.config.Spaces[i]
		if len(s.Publish) > 0 && l.internalOnly(s) {
			l.report(diagPublishInternal(at(s.Publish[0].Origin.hclRange())))
		}
		for _, p := range s.Publish {
			key := port{p.Port, p.Protocol}
			for _, other := range ports[key] {
				if hostsClash(p.Host, other.host) {
					l.report(diagPortTaken(p.Host, p.Port, p.Protocol, other.space, at(p.Origin.hclRange())))
					break
				}
			}
			ports[key] = append(ports[key], taken{s.Address, p.Host})
		}
	}
}

// internalOnly reports whether nothing outside can reach a space.
func (l *loader) internalOnly(s *Space) bool {
	if !l.whole(s.Address) {
		return false
	}
	for _, a := range s.Networks {
		n := l.networkAt[a.Network]
		if n == nil || !l.whole(n.Address) || !n.Internal {
			return false
		}
	}
	return true
}

// hostsClash reports whether two addresses of the host cannot both have one port.
func hostsClash(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil || x.Is4() != y.Is4() {
		return false
	}
	return x == y || x.IsUnspecified() || y.IsUnspecified()
}

// validateDependencies judges what spaces wait for.
func (l *loader) validateDependencies() {
	g := &graph[*Space]{}
	order := slices.SortedFunc(maps.Keys(l.spaceAt), compareAddresses)
	position := map[Address]int{}
	for i, a := range order {
		position[a] = i
		g.nodes = append(g.nodes, l.spaceAt[a])
	}
	g.edges = make([][]int, len(g.nodes))
	for i, s := range g.nodes {
		if len(s.DependsOn) > 0 && s.Lifecycle != LifecycleService {
			l.report(diagServiceOnly("depends_on", string(s.Lifecycle), s.placeOf("depends_on")))
		}
		for _, need := range s.DependsOn {
			other := l.spaceAt[need]
			if other == nil {
				continue
			}
			if other.Lifecycle != LifecycleService {
				where := s.placeOf("depends_on[" + strconv.Quote(need.FullName()) + "]")
				l.report(diagDependsOnLaunched(need, string(other.Lifecycle), where))
			}
			g.edges[i] = append(g.edges[i], position[need])
		}
	}
	for _, group := range g.components() {
		if cycle := g.cycle(group); cycle != nil {
			names := make([]string, 0, len(cycle))
			for _, i := range cycle {
				names = append(names, g.nodes[i].Address.String())
			}
			l.report(diagDependencyCycle(names, g.nodes[cycle[0]].placeOf("depends_on")))
		}
	}
}
