package places

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"spaces/reconcile"
)

const localDriver = "local"

// networkOptions spell a network for the engine. What the options need for the engine
// at hand (an isolated gateway) is in the network by then.
func networkOptions(n reconcile.Network) network.CreateOptions {
	o := network.CreateOptions{
		Driver:   n.Driver,
		Internal: n.Internal,
		Options:  maps.Clone(n.Options),
		Labels:   maps.Clone(n.Labels),
	}
	if n.Subnet != "" || n.IPRange != "" {
		o.IPAM = &network.IPAM{Driver: network.NetworkDefault, Config: []network.IPAMConfig{{Subnet: n.Subnet, IPRange: n.IPRange}}}
	}
	return o
}

func volumeOptions(v reconcile.Volume) volume.CreateOptions {
	return volume.CreateOptions{Name: v.Name, Driver: v.Driver, DriverOpts: maps.Clone(v.Options), Labels: maps.Clone(v.Labels)}
}

func networkLeaves(d defaults) []leaf {
	return excessLeaves(reflect.TypeFor[network.Inspect](), "", networkRules(), d)
}

func volumeLeaves(d defaults) []leaf {
	return excessLeaves(reflect.TypeFor[volume.Volume](), "", volumeRules(), d)
}

// networkOf converts a network as the engine lists it. The list has all that is
// compared; inspecting each adds only its running members.
func (k *converter) networkOf(in network.Inspect) reconcile.Network {
	n := reconcile.Network{
		Name:     in.Name,
		Driver:   in.Driver,
		Internal: in.Internal,
		Options:  orEmpty(in.Options),
		Labels:   orEmpty(in.Labels),
		Excess:   excessOf(reflect.ValueOf(in), k.network, ""),
	}
	if k.defaults.tellsIPv4 && !in.EnableIPv4 {
		n.Excess = append(n.Excess, reconcile.Field{Path: "EnableIPv4", Value: "false"})
	}
	subnets(&n, in.IPAM.Config)
	slices.SortFunc(n.Excess, byPath)
	return n
}

// subnets takes the first IPv4 subnet for the network's own. Whatever else there is, is
// excess.
func subnets(n *reconcile.Network, configs []network.IPAMConfig) {
	seen := false
	for i, c := range configs {
		path := "IPAM.Config[" + strconv.Itoa(i) + "]"
		prefix, err := netip.ParsePrefix(c.Subnet)
		if seen || err != nil || !prefix.Addr().Is4() {
			n.Excess = append(n.Excess, reconcile.Field{Path: path, Value: compactJSON(c)})
			continue
		}
		seen = true
		n.Subnet = prefix.Masked().String()
		n.IPRange = canonicalPrefix(c.IPRange)
		if g := gateway(prefix, c); g != "" {
			n.Excess = append(n.Excess, reconcile.Field{Path: path + ".Gateway", Value: g})
		}
		if len(c.AuxAddress) > 0 {
			n.Excess = append(n.Excess, reconcile.Field{Path: path + ".AuxiliaryAddresses", Value: compactJSON(c.AuxAddress)})
		}
	}
}

func canonicalPrefix(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return s
	}
	return p.Masked().String()
}

// gateway is a network's gateway unless it is the one that the engine chooses: the
// first address of the range that it takes addresses from.
func gateway(subnet netip.Prefix, c network.IPAMConfig) string {
	text, _, _ := strings.Cut(c.Gateway, "/")
	g, err := netip.ParseAddr(text)
	if err != nil {
		return c.Gateway
	}
	for _, p := range []string{subnet.String(), c.IPRange} {
		if pool, err := netip.ParsePrefix(p); err == nil && (g == pool.Masked().Addr().Next() || g == pool.Masked().Addr()) {
			return ""
		}
	}
	return g.String()
}

func (k *converter) volumeOf(in volume.Volume) reconcile.Volume {
	return reconcile.Volume{
		Name:    in.Name,
		Driver:  in.Driver,
		Options: orEmpty(in.Options),
		Labels:  orEmpty(in.Labels),
		Excess:  excessOf(reflect.ValueOf(in), k.volume, ""),
	}
}
