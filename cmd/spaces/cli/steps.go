package cli

import (
	"fmt"
	"slices"

	"spaces/reconcile"
)

// steps has one of each kind: what a record says of a step is its kind alone.
func steps() []reconcile.Step {
	return []reconcile.Step{
		reconcile.CreateDirectory{},
		reconcile.CreateNetwork{},
		reconcile.RemoveNetwork{},
		reconcile.CreateVolume{},
		reconcile.RemoveVolume{},
		reconcile.BuildImage{},
		reconcile.PullImage{},
		reconcile.CreateSpace{},
		reconcile.ReplaceSpace{},
		reconcile.UpdateSpace{},
		reconcile.ConnectSpace{},
		reconcile.DisconnectSpace{},
		reconcile.StartSpace{},
		reconcile.UnpauseSpace{},
		reconcile.RemoveSpace{},
		reconcile.RenameSpace{},
		reconcile.NotYet{},
	}
}

// stepOf is the kind of step that a record names.
func stepOf(verb string) (reconcile.Step, error) {
	for _, s := range steps() {
		if (reconcile.Item{Step: s}).Verb() == verb {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no step %q", verb)
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
