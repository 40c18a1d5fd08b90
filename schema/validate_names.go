package schema

import (
	"slices"
	"strings"
)

// storeHashLength is the length of the store's hash in a core container's name.
const storeHashLength = 16

// reservedFirstWords begin the names of containers that the program makes.
var reservedFirstWords = []string{"core", "egress"}

// validateNames judges the names that the engine and the spaces will see.
func (l *loader) validateNames() {
	l.fullNamesTwice()
	c := l.config
	for i := range c.Spaces {
		s := &c.Spaces[i]
		l.spaceName(s)
		if s.Lifecycle == LifecycleCore {
			l.nameLength("core container", c.Project+"-core-"+strings.Repeat("0", storeHashLength), s.Object)
		} else {
			l.nameLength("container", c.Project+"-"+s.Address.FullName(), s.Object)
		}
	}
	for i := range c.Networks {
		l.nameLength("network", c.Project+"-"+c.Networks[i].Address.FullName(), c.Networks[i].Object)
	}
	for i := range c.Egresses {
		l.nameLength("proxy's container", c.Project+"-egress-"+c.Egresses[i].Address.FullName(), c.Egresses[i].Object)
	}
	for i := range c.Grants {
		if g := &c.Grants[i]; g.Kind == GrantVolume {
			l.nameLength("volume", c.Project+"-"+g.Source, g.Object)
		}
	}
	for i := range c.Roles {
		role := &c.Roles[i]
		l.nameLength("session's container", c.Project+"-"+role.Address.Name+"-", role.Object)
		if slices.Contains(reservedFirstWords, firstWord(role.Address.Name)) {
			l.report(diagReservedName(role.Address.Name, role.placeOf("")))
		}
	}
}

// fullNamesTwice reports two instances that come to one name: space "a-b" and the
// instance "b" of space "a".
func (l *loader) fullNamesTwice() {
	seen := map[[2]string]*instance{}
	for _, d := range l.decls {
		if d.again || d.faulty {
			continue
		}
		for _, inst := range d.instances {
			key := [2]string{inst.addr.Kind, inst.addr.FullName()}
			first, ok := seen[key]
			if !ok {
				seen[key] = inst
				continue
			}
			l.report(diagNameCollision(inst.addr, first.addr, d.block.DefRange(), first.decl.block.DefRange()))
		}
	}
}

func (l *loader) spaceName(s *Space) {
	name := s.Address.FullName()
	switch {
	case name == proxyName:
		l.report(diagProxyReserved(s.placeOf("")))
	case s.Lifecycle == LifecycleCore && name == "core":
	case slices.Contains(reservedFirstWords, firstWord(name)):
		l.report(diagReservedName(name, s.placeOf("")))
	}
}

func firstWord(name string) string {
	word, _, _ := strings.Cut(name, "-")
	return word
}

func (l *loader) nameLength(what, name string, o Object) {
	if l.config.Project != "" && len(name) > maxName {
		l.report(diagNameTooLong(what, name, o.placeOf("")))
	}
}
