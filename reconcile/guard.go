package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// Guard says that an object is protected, and where that is, or was, written. The data
// root remembers those of the last apply: a block that is gone can't say it any more,
// and what runs carries no label that could change with it.
type Guard struct {
	Address string        `json:"address"`
	Origin  schema.Origin `json:"origin"`
}

// Guards are what the files protect, sorted by address.
func (d Desired) Guards() []Guard {
	var guards []Guard
	add := func(address string, o schema.Object) {
		guards = append(guards, Guard{address, o.At("protect")})
	}
	for _, s := range d.Spaces {
		if s.Protect {
			add(s.Address.String(), s.Object)
		}
	}
	for _, n := range d.Networks {
		if n.Protect {
			guards = append(guards, Guard{n.Address.String(), networkOrigin(n, "protect")})
		}
	}
	for _, g := range d.Grants {
		if g.Protect {
			add("volume."+g.Source, g.Object)
		}
	}
	slices.SortStableFunc(guards, func(a, b Guard) int { return strings.Compare(a.Address, b.Address) })
	return slices.CompactFunc(guards, func(a, b Guard) bool { return a.Address == b.Address })
}

// guard refuses to destroy what is protected. A space goes only when it is removed: a
// new container in its place is how it changes, keeps its volumes, and comes back if it
// fails. A network or a volume that is made again is another one: what held on to the
// first, or was in it, is gone.
func (w *world) guard() {
	guards := w.guards()
	for _, i := range w.plan.Items {
		g, guarded := guards[i.Subject]
		if !guarded || !destroys(i) {
			continue
		}
		if matches(i.Subject, w.options.AllowDestroy) {
			w.note("unprotected", i.Subject, "it is protected, and goes all the same: --allow-destroy names it", g.Origin)
			continue
		}
		what := "destroy it"
		if i.Effects.Has(Replaces) {
			what = "remove it and make it again"
		}
		text := fmt.Sprintf("%s is protected and this plan would %s: %s.", i.Subject, what, strings.Join(i.Reasons, "; "))
		fix := fmt.Sprintf("Keep it as it is, or write protect = false in its block and apply that first. "+
			"--exclude '%s' carries out the rest; --allow-destroy '%s' overrules it once.", i.Subject, i.Subject)
		if !w.declared(i.Subject) && g.Origin.File != "" {
			text += fmt.Sprintf(" It was protected at %s when it was last applied.", g.Origin)
			g.Origin = schema.Origin{} // the files that were there are gone
		}
		w.refuse(Refusal{Code: CodeProtected, Text: text, Fix: fix, Origin: g.Origin, About: i.Subject})
	}
	w.plan.Guards = w.guardsAfter(guards)
}

// destroys tells whether an item ends what protection is for.
func destroys(i Item) bool {
	switch i.Step.(type) {
	case RemoveNetwork, RemoveVolume:
		return true
	case RemoveSpace:
		return i.Effects.Has(Destroys) && i.ID == "remove "+i.Subject
	}
	return false
}

// guards are what is protected now, by address: what the files protect, and what they
// no longer mention and was protected when it was last applied.
func (w *world) guards() map[string]Guard {
	guards := map[string]Guard{}
	for _, g := range w.desired.Guards() {
		guards[g.Address] = g
	}
	for _, g := range w.options.Guards {
		_, still := guards[g.Address]
		switch {
		case still:
		case !w.declared(g.Address):
			guards[g.Address] = g
			if to, moves := w.movesTo(g.Address); moves {
				if _, protected := guards[to]; !protected {
					w.note("unprotected", to, g.Address+" was protected when it was last applied, and what takes over from it isn't", schema.Origin{})
				}
			}
		case !w.options.Destroy:
			w.note("unprotected", g.Address, "the files protected it and no longer do", schema.Origin{})
		}
	}
	return guards
}

// guardsAfter are what the next plan must know: what isn't in the files is protected as
// long as it is there.
func (w *world) guardsAfter(guards map[string]Guard) []Guard {
	there := map[string]bool{}
	for _, c := range w.actual.Containers {
		// Under both names, where it is to be moved: that may fail, or be left out.
		there[w.subject(c)], there[addressOf(c)] = true, true
	}
	for name := range w.networks {
		there[w.networkSubject(name)] = true
	}
	for _, v := range w.actual.Volumes {
		there[w.volumeSubject(v.Volume)] = true
	}
	var after []Guard
	for _, address := range sortedKeys(guards) {
		if w.declared(address) || there[address] {
			after = append(after, guards[address])
		}
	}
	return after
}

// declared tells whether the files have an object.
func (w *world) declared(address string) bool {
	return slices.ContainsFunc(w.desired.Spaces, func(s Space) bool { return s.Address.String() == address }) ||
		slices.ContainsFunc(w.desired.Networks, func(n Network) bool { return n.Address.String() == address }) ||
		slices.ContainsFunc(w.desired.Volumes, func(v Volume) bool { return "volume."+v.Short == address })
}
