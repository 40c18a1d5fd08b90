package schema

// validateEgress judges each list's network and uplink, and finds the uplink that
// isn't named.
func (l *loader) validateEgress() {
	first := map[Address]*Egress{}
	for i := range l.config.Egresses {
		e := &l.config.Egresses[i]
		if n := l.networkAt[e.Network]; n != nil && l.whole(n.Address) {
			l.listedNetwork(e, n)
		}
		if e.Network != (Address{}) {
			if other := first[e.Network]; other != nil {
				l.report(diagTwoLists(e.Network, other.Address, e.placeOf("network"), other.Origin.hclRange()))
			} else {
				first[e.Network] = e
			}
		}
		l.uplink(e)
	}
}

func (l *loader) listedNetwork(e *Egress, n *Network) {
	switch {
	case n.Uplink:
		l.report(diagListOnUplink(n.Address, e.placeOf("network")))
	case !n.Internal:
		l.report(diagListOutside(n.Address, e.placeOf("network")))
	case n.NoEgress:
		l.report(diagListAndNone(n.Address, e.placeOf("network"), n.At("egress").hclRange()))
	}
}

// uplink checks the named uplink network, or takes the only one.
func (l *loader) uplink(e *Egress) {
	if e.Uplink != (Address{}) {
		if n := l.networkAt[e.Uplink]; n != nil && l.whole(n.Address) && !n.Uplink {
			l.report(diagNotUplink(n.Address, e.placeOf("uplink")))
		}
		return
	}
	if _, written := e.Origins["uplink"]; written && !l.whole(e.Address) {
		return
	}
	var uplinks []Address
	for i := range l.config.Networks {
		n := &l.config.Networks[i]
		if !l.whole(n.Address) {
			return
		}
		if n.Uplink {
			uplinks = append(uplinks, n.Address)
		}
	}
	switch {
	case len(uplinks) == 1:
		e.Uplink = uplinks[0]
	case l.incomplete:
	case len(uplinks) == 0:
		l.report(diagNoUplink(e.placeOf("")))
	default:
		l.report(diagManyUplinks(addressNames(uplinks), e.placeOf("")))
	}
}
