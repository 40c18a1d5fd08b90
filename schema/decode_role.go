package schema

import (
	"slices"

	"spaces/gatekeeper/policy"
)

func (l *loader) decodeRole(inst *instance) Role {
	r := l.reader(inst)
	role := Role{Object: *r.object}
	if space, ok := r.ref("space", kindNamed("space")); r.need("space", ok) {
		role.Space = space
	}
	items, _ := r.strs("holds")
	for _, it := range items {
		switch {
		case !slices.Contains(policy.Holds(), it.value):
			r.fail(diagNotAChoice("holds", it.value, policy.Holds(), it.at))
		case slices.Contains(role.Holds, it.value):
			r.fail(diagListedTwice("holds", it.value, it.at))
		default:
			role.Holds = append(role.Holds, it.value)
		}
	}
	slices.Sort(role.Holds)
	return role
}
