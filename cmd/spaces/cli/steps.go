package cli

import (
	"fmt"
	"slices"

	"spaces/reconcile"
)

// stepOf is the kind of step that a record names.
func stepOf(verb string) (reconcile.Step, error) {
	for _, s := range reconcile.Steps() {
		if (reconcile.Item{Step: s}).Verb() == verb {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no step %.40q", verb)
}

// effectsOf is the set that a record spells out.
func effectsOf(names []string) reconcile.Effects {
	var set reconcile.Effects
	for e := reconcile.Widens; e <= reconcile.Destroys; e <<= 1 {
		for _, name := range e.Names() {
			if slices.Contains(names, name) {
				set |= e
			}
		}
	}
	return set
}
