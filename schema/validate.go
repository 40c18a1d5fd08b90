package schema

// validate judges the objects together. A rule that needs what could not be decoded
// keeps silent, since the cause has been reported.
func (l *loader) validate() {
	l.indexObjects()
	l.validateNames()
	l.validateNetworks()
	l.validateEgress()
	l.validateSpaces()
	l.validateAttachments()
	l.validatePublish()
	l.validateGrants()
	l.validateDependencies()
	l.validateAssertions()
	l.moves()
}

// whole reports whether an object was decoded without fault.
func (l *loader) whole(a Address) bool { return !l.broken[a] }

// indexObjects finds objects by address; the lists don't change from here on.
func (l *loader) indexObjects() {
	c := l.config
	l.networkAt = index(c.Networks, func(n *Network) Address { return n.Address })
	l.grantAt = index(c.Grants, func(g *Grant) Address { return g.Address })
	l.spaceAt = index(c.Spaces, func(s *Space) Address { return s.Address })
}

func index[T any](list []T, addr func(*T) Address) map[Address]*T {
	byAddr := make(map[Address]*T, len(list))
	for i := range list {
		byAddr[addr(&list[i])] = &list[i]
	}
	return byAddr
}

// placeOf is where an attribute of an object was written.
func (o Object) placeOf(path string) place { return at(o.At(path).hclRange()) }
