package schema

import "net/netip"

const egressNone = "none"

func (l *loader) decodeNetwork(inst *instance) Network {
	r := l.reader(inst)
	n := Network{Object: *r.object, Internal: true}
	n.Uplink, _ = r.boolean("uplink")
	internal, said := r.boolean("internal")
	if said {
		n.Internal = internal
	}
	if n.Uplink {
		if said && internal {
			r.fail(diagUplinkInternal(r.place("internal")))
		}
		n.Internal = false
	}
	reason, hasReason := r.reason()
	switch {
	case n.Internal: // a reason for what isn't done yet is no harm
	case hasReason:
		n.Reason = reason
	case !n.Uplink && !r.hasValue("reason"):
		r.fail(diagNetworkReason(inst.decl.block, r.place("internal")))
	case !n.Uplink:
		r.markBroken()
	}
	if _, ok := r.choice("egress", egressNone); ok {
		n.NoEgress = true
		if !n.Internal {
			r.fail(diagNoEgressOutside(r.place("egress")))
		}
	}
	r.addresses(&n)
	n.Protect, _ = r.boolean("protect")
	return n
}

// addresses reads the subnet and the part of it that addresses are given out from.
func (r *reader) addresses(n *Network) {
	subnet, hasSubnet := r.cidr("subnet")
	if hasSubnet {
		n.Subnet = subnet.String()
	}
	ipRange, ok := r.cidr("ip_range")
	if !ok {
		return
	}
	switch {
	case hasSubnet && (ipRange.Bits() < subnet.Bits() || !subnet.Contains(ipRange.Addr())):
		r.fail(diagRangeOutside(ipRange.String(), subnet.String(), r.place("ip_range")))
	case !r.hasValue("subnet"):
		r.fail(diagRangeWithoutSubnet(r.place("ip_range")))
	}
	n.IPRange = ipRange.String()
}

// cidr is a CIDR that a network of the engine can have.
func (r *reader) cidr(name string) (netip.Prefix, bool) {
	s, ok := r.str(name)
	if !ok {
		return netip.Prefix{}, false
	}
	p, masked, ok := parsePrefix(s)
	switch {
	case masked != "":
		r.fail(diagHostBits(name, s, masked, r.place(name)))
		return netip.Prefix{}, false
	case !ok:
		r.fail(diagCIDR(name, s, r.place(name)))
		return netip.Prefix{}, false
	case p.Addr().IsUnspecified(), p.Addr().IsLoopback(), p.Addr().IsMulticast(), p.Bits() == 0:
		r.fail(diagCIDRReserved(name, s, r.place(name)))
		return netip.Prefix{}, false
	}
	return p, true
}
