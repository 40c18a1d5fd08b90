package schema

import "net/netip"

// validateNetworks judges networks against each other and the lists.
func (l *loader) validateNetworks() {
	l.subnetsOverlap()
	listed := map[Address]bool{}
	sure := true // every list's network is known
	for i := range l.config.Egresses {
		e := &l.config.Egresses[i]
		listed[e.Network] = true
		sure = sure && l.whole(e.Address)
	}
	for _, d := range l.decls {
		sure = sure && d.value.IsKnown()
	}
	used := map[Address]bool{}
	for i := range l.config.Spaces {
		for _, a := range l.config.Spaces[i].Networks {
			used[a.Network] = true
		}
	}
	for i := range l.config.Networks {
		n := &l.config.Networks[i]
		if sure && l.whole(n.Address) && n.Internal && !n.NoEgress && !listed[n.Address] && used[n.Address] {
			l.report(diagNetworkWithoutList(n.Address, n.placeOf("")))
		}
	}
}

// subnetsOverlap reports two networks that claim the same addresses.
func (l *loader) subnetsOverlap() {
	var networks []*Network
	var prefixes []netip.Prefix
	for i := range l.config.Networks {
		n := &l.config.Networks[i]
		p, err := netip.ParsePrefix(n.Subnet)
		if err != nil {
			continue
		}
		for j, other := range prefixes {
			if p.Overlaps(other) {
				l.report(diagSubnetsOverlap(n.Subnet, networks[j].Address, networks[j].Subnet, n.placeOf("subnet")))
				break
			}
		}
		networks, prefixes = append(networks, n), append(prefixes, p)
	}
}
