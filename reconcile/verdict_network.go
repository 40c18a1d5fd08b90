package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"spaces/schema"
)

// network judges what a probe found from inside the space's networks, and what answers
// at its published ports.
func (j *trial) network() {
	switch {
	case j.e.NoProbe != "":
		j.differs(CheckAddresses, "they can be looked at from inside", j.e.NoProbe)
	case j.e.Network.Err != "":
		j.differs(CheckAddresses, "they can be looked at from inside", j.e.Network.Err)
	default:
		j.addresses()
		j.names()
		j.forwarding()
		j.gateways()
		j.host()
		j.routes()
		j.proxy()
	}
	j.ports()
}

// networks are those it is to be on, but for none.
func (j *trial) networks() []string {
	return slices.DeleteFunc(sortedKeys(j.Container.Networks), func(n string) bool { return n == noNetwork })
}

// addresses looks that it has one in each of its networks and nowhere else.
func (j *trial) addresses() {
	var found []string
	met := map[string]bool{}
	for _, text := range j.e.Network.Addresses {
		prefix, err := netip.ParsePrefix(text)
		if err == nil && prefix.Addr().IsLinkLocalUnicast() && prefix.Addr().Is6() {
			continue // every interface has one
		}
		on := slices.IndexFunc(j.networks(), func(name string) bool {
			subnet, bad := netip.ParsePrefix(j.Subnets[name])
			return err == nil && bad == nil && subnet.Contains(prefix.Addr())
		})
		if on < 0 {
			found = append(found, text+" is in none of its networks")
			continue
		}
		met[j.networks()[on]] = true
	}
	for _, name := range j.networks() {
		if !met[name] {
			found = append(found, "it has no address on "+name)
		}
	}
	want := "none"
	if names := j.networks(); len(names) > 0 {
		want = strings.Join(names, ", ")
	}
	j.settle(CheckAddresses, want, found)
}

// names looks that the engine's resolver is asked, and knows the space.
func (j *trial) names() {
	if len(j.networks()) == 0 {
		return
	}
	const embedded = "127.0.0.11"
	var found []string
	for _, n := range j.e.Network.Nameservers {
		if n != embedded {
			found = append(found, "it asks the resolver "+n)
		}
	}
	if len(j.e.Network.Nameservers) == 0 {
		found = append(found, "it has no resolver")
	}
	addresses := j.e.Network.Names[j.Alias]
	if len(addresses) == 0 {
		found = append(found, j.Alias+" doesn't resolve")
	}
	for _, a := range addresses {
		if !slices.ContainsFunc(j.e.Network.Addresses, func(own string) bool { return strings.HasPrefix(own, a+"/") }) {
			found = append(found, j.Alias+" resolves to "+a+", which isn't its own address")
		}
	}
	j.settle(CheckNames, j.Alias+" by the engine's resolver", found)
}

// forwarding looks that no name but the engine's own gets an answer from anywhere.
func (j *trial) forwarding() {
	const want = "no other name is answered"
	switch found := NoName + ": " + j.e.Network.Forwarded; {
	case j.Open:
		j.holds(CheckForwarding, "any name (a network of its leads out)")
	case j.e.Network.Forwarded == ForwardedSilent && j.Engine.InternalDNSLeaks:
		// These resolvers stay silent as well where the one that they are told to ask, in
		// the space itself, isn't there.
		j.add(CheckForwarding, VerdictUnproven, want, found+"; nor does this engine answer where it can ask nobody")
	case j.e.Network.Forwarded != "":
		j.differs(CheckForwarding, want, found)
	default:
		j.holds(CheckForwarding, want)
	}
}

// hostReached is true where the engine lets internal networks reach this host, and a
// person accepted it.
func (j *trial) hostReached() bool {
	return j.Engine.InternalReachesHost && slices.Contains(j.Accepts, schema.AcceptNetworkNotIsolated)
}

// unheard is the check of an engine that lets internal networks reach this host, where
// nothing answered: one port was tried, and others are as open.
func (j *trial) unheard(check, want string) {
	v := VerdictUnproven
	if j.hostReached() {
		v = VerdictAccepted
	}
	j.add(check, v, want, "nothing answered on the port that was tried; this engine keeps nobody from the others")
}

// gateways looks what answers at its networks' own gateways.
func (j *trial) gateways() {
	if j.Open || len(j.networks()) == 0 {
		return // its gateway is its way out
	}
	const want = "nothing of this host answers"
	var found, refused []string
	for _, g := range j.e.Gateways {
		reach, tried := j.e.Network.Connect[g]
		switch {
		case !tried:
			found = append(found, g+" was not tried")
		case reach == ReachRefused && !j.Engine.IsolatedGateway && !j.Engine.InternalReachesHost:
			refused = append(refused, g)
		case reach.answered():
			found = append(found, fmt.Sprintf("%s: %s", g, reach))
		}
	}
	switch {
	case len(j.e.Gateways) == 0 && !j.Engine.IsolatedGateway:
		j.differs(CheckGateway, want, "no gateway is known of its networks")
	case len(found) > 0 && j.hostReached():
		j.add(CheckGateway, VerdictAccepted, want, strings.Join(found, "; "))
	case len(found) > 0:
		j.differs(CheckGateway, want, strings.Join(found, "; "))
	case len(refused) > 0:
		j.add(CheckGateway, VerdictHolds, want, strings.Join(refused, ", ")+" refused: it is the engine's own namespace, not this host's")
	case j.Engine.InternalReachesHost:
		j.unheard(CheckGateway, want)
	default:
		j.holds(CheckGateway, want)
	}
}

// host looks that this host's own addresses don't answer. They stand for any address
// outside as well: what leads there leads out.
func (j *trial) host() {
	const want = "none of this host's addresses answers"
	var found []string
	for _, h := range j.e.HostAddresses {
		switch reach, tried := j.e.Network.Connect[h]; {
		case !tried:
			found = append(found, h+" was not tried")
		case reach.answered():
			found = append(found, fmt.Sprintf("%s: %s", h, reach))
		}
	}
	switch {
	case j.Open:
		j.holds(CheckHost, "any address (a network of its leads out)")
	case len(j.e.HostAddresses) == 0:
		j.add(CheckHost, VerdictUnproven, want, "this host has no address but loopback")
	case len(found) > 0 && j.hostReached():
		j.add(CheckHost, VerdictAccepted, want, strings.Join(found, "; "))
	case len(found) == 0 && j.Engine.InternalReachesHost && len(j.networks()) > 0:
		j.unheard(CheckHost, want)
	default:
		j.settle(CheckHost, want, found)
	}
}

// routes looks that the kernel would send nothing outside.
func (j *trial) routes() {
	if j.Open {
		j.holds(CheckRoutes, "to any address (a network of its leads out)")
		return
	}
	const want = "to no address outside"
	var found, gateway []string
	for _, a := range []string{OutsideIPv4, OutsideIPv6, MetadataIP} {
		source, asked := j.e.Network.Routes[a]
		switch {
		case !asked:
			found = append(found, a+" was not tried")
		case source == "":
		case !j.Engine.IsolatedGateway && a != OutsideIPv6 && len(j.networks()) > 0:
			gateway = append(gateway, a)
		default:
			found = append(found, a+" is sent from "+source)
		}
	}
	switch {
	case len(found) > 0:
		j.differs(CheckRoutes, want, strings.Join(append(found, gateway...), "; "))
	case len(gateway) > 0:
		// Before release 28 an internal network has a way to its gateway, where the engine's
		// packet filter drops what would go on. Whether it does, no route tells.
		j.add(CheckRoutes, VerdictUnproven, want,
			"the way to "+strings.Join(gateway, ", ")+" is the gateway, where this engine drops it; from release 28 on there is none")
	default:
		j.holds(CheckRoutes, want)
	}
}

func (j *trial) proxy() {
	if j.Proxy == "" {
		return
	}
	want := j.Proxy + " answers"
	if reach := j.e.Network.Dial[j.Proxy]; reach != ReachOpen {
		if reach == "" {
			reach = "was not tried"
		}
		j.differs(CheckProxy, want, string(reach))
		return
	}
	j.holds(CheckProxy, want)
}

// PortKey names a published port in Evidence.Ports.
func PortKey(port, binding string) string { return port + " " + binding }

func (j *trial) ports() {
	for _, port := range sortedKeys(j.Container.Publish) {
		for binding := range strings.SplitSeq(j.Container.Publish[port], ",") {
			want := binding + " answers, and no other address of this host"
			e, tried := j.e.Ports[PortKey(port, binding)]
			var found []string
			switch {
			case !tried:
				found = append(found, "it was not tried")
			case e.Err != "":
				found = append(found, e.Err)
			case !e.Answers:
				found = append(found, binding+" doesn't answer")
			}
			for _, a := range e.Elsewhere {
				found = append(found, a+" answers too")
			}
			v, got := VerdictHolds, want
			if len(found) > 0 {
				v, got = VerdictDiffers, strings.Join(found, "; ")
			}
			j.addAt(CheckPorts, v, want, got, key("publish", port))
		}
	}
}
