package schema

import (
	"errors"
	"strconv"

	"spaces/gatekeeper/policy"
)

// validateGrants judges who is given what. Who may hold what is the policy's to say;
// a space that roles launch is asked about once for each role.
func (l *loader) validateGrants() {
	roles := map[Address][]*Role{}
	for i := range l.config.Roles {
		role := &l.config.Roles[i]
		l.roleSpace(role)
		if s := l.spaceAt[role.Space]; s != nil && s.Lifecycle == LifecycleOnRequest && l.whole(role.Address) {
			roles[role.Space] = append(roles[role.Space], role)
		}
	}
	for i := range l.config.Spaces {
		s := &l.config.Spaces[i]
		core := s.Lifecycle == LifecycleCore
		for _, a := range s.Grants {
			g := l.grantAt[a]
			if g == nil || !l.whole(a) {
				continue
			}
			where := s.placeOf("grants[" + strconv.Quote(a.FullName()) + "]")
			if g.Kind == GrantSocket && g.Writable && !core {
				l.report(diagSocketWritable(a, where))
			}
			if len(roles[s.Address]) == 0 {
				l.hold(g, policy.Holder{Core: core}, where)
			}
			for _, role := range roles[s.Address] {
				l.hold(g, policy.Holder{Core: core, Role: role.Address.Name, Holds: role.Holds}, where)
			}
		}
	}
}

// hold reports what a space may not be given.
func (l *loader) hold(g *Grant, h policy.Holder, where place) {
	var err error
	switch g.Kind {
	case GrantSocket:
		err = policy.MayHoldSocket(h, g.Source)
	case GrantData:
		err = policy.MayHoldData(h, g.Source, g.Writable)
	}
	var hold *policy.HoldError
	if errors.As(err, &hold) {
		l.report(diagHold(g.Address, hold, where))
	}
}

// roleSpace judges what a role launches.
func (l *loader) roleSpace(role *Role) {
	s := l.spaceAt[role.Space]
	if s != nil && l.whole(s.Address) && s.Lifecycle != LifecycleOnRequest {
		l.report(diagRoleSpace(s.Address, string(s.Lifecycle), role.placeOf("space")))
	}
}
