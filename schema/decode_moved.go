package schema

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// move is a moved block as written. Its addresses are read and not evaluated: what it
// leads from is no longer there to refer to.
type move struct {
	from, to Address
	block    *hclsyntax.Block
}

// place is where one of its addresses stands.
func (m move) place(name string) place {
	attr := m.block.Body.Attributes[name]
	return at(attr.Expr.Range()).within(attr.SrcRange)
}

// moves reads the moved blocks and follows each to where it leads in the end.
func (l *loader) moves() {
	all := l.readMoves()
	ends := l.followMoves(all)
	hops := map[Address]int{}
	// A block that moves as a whole may meet one of its instances that moves by itself.
	type arrival struct {
		to   Address
		hops int
	}
	arrived := map[arrival]move{}
	for _, m := range all {
		end := ends[m.from]
		if end.circle || !l.leadsSomewhere(m, end.to) {
			continue
		}
		for _, pair := range l.instancesMoved(m, end.to) {
			at := arrival{pair.To, end.hops}
			if first, again := arrived[at]; again {
				l.report(diagMovedTwice("to", pair.To, first.block, m.place("to")))
				continue
			}
			arrived[at] = m
			pair.Origin = originOf(m.block.DefRange())
			l.config.Moves = append(l.config.Moves, pair)
			hops[pair.From] = end.hops
		}
	}
	slices.SortStableFunc(l.config.Moves, func(a, b Move) int {
		return cmp.Or(compareAddresses(a.To, b.To), cmp.Compare(hops[a.From], hops[b.From]), compareAddresses(a.From, b.From))
	})
}

// readMoves are the moved blocks that can be meant, in the order they stand in.
func (l *loader) readMoves() []move {
	slices.SortFunc(l.moved, func(a, b *hclsyntax.Block) int {
		x, y := a.DefRange(), b.DefRange()
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte))
	})
	var all []move
	from, to := map[Address]move{}, map[Address]move{}
	for _, block := range l.moved {
		m := move{block: block}
		var okFrom, okTo bool
		m.from, okFrom = l.movedAddress(block, "from")
		m.to, okTo = l.movedAddress(block, "to")
		if !okFrom || !okTo || l.movedFromDeclared(m) {
			continue
		}
		if first, again := from[m.from]; again {
			l.report(diagMovedTwice("from", m.from, first.block, m.place("from")))
			continue
		}
		if first, again := to[m.to]; again {
			l.report(diagMovedTwice("to", m.to, first.block, m.place("to")))
			continue
		}
		from[m.from], to[m.to] = m, m
		all = append(all, m)
	}
	return all
}

// movedAddress reads space.NAME or space.NAME["KEY"].
func (l *loader) movedAddress(block *hclsyntax.Block, name string) (Address, bool) {
	attr := block.Body.Attributes[name]
	if attr == nil {
		return Address{}, false // reported with the block's shape
	}
	where := at(attr.Expr.Range()).within(attr.SrcRange)
	traversal, diags := hcl.AbsTraversalForExpr(attr.Expr)
	if diags.HasErrors() || len(traversal) < 2 || len(traversal) > 3 {
		l.report(diagMovedAddress(name, where))
		return Address{}, false
	}
	if kind := traversal.RootName(); kind != "space" {
		if kindNamed(kind) != nil {
			l.report(diagMovedKind(kind, where))
		} else {
			l.report(diagMovedAddress(name, where))
		}
		return Address{}, false
	}
	a := Address{Kind: "space"}
	var ok bool
	if a.Name, ok = stepName(traversal[1]); !ok {
		l.report(diagMovedAddress(name, where))
		return Address{}, false
	}
	if len(traversal) == 3 {
		index, is := traversal[2].(hcl.TraverseIndex)
		if !is || index.Key.Type() != cty.String {
			l.report(diagMovedAddress(name, where))
			return Address{}, false
		}
		a.Key = index.Key.AsString()
	}
	if !validName(a.Name) {
		l.report(diagInvalidName("space", a.Name, attr.Expr.Range()))
		return Address{}, false
	}
	return a, true
}

// movedFromDeclared reports what both stays and is to move. A block that has been given
// for_each is another one than the single space that it was.
func (l *loader) movedFromDeclared(m move) bool {
	d := l.objects["space"][m.from.Name]
	if d == nil {
		return false
	}
	declared := d.forEach == nil || m.to.Key == ""
	if m.from.Key != "" {
		declared = d.has(m.from)
	}
	if declared {
		l.report(diagMovedDeclared(m.from, d.block, m.place("from")))
	}
	return declared
}

func (d *decl) has(a Address) bool {
	return slices.ContainsFunc(d.instances, func(i *instance) bool { return i.addr == a })
}

// moveEnd is where a move leads once all that follow it are done, and in how many steps.
type moveEnd struct {
	to     Address
	hops   int
	circle bool
}

// followMoves finds the end of each move, by what it leads from, and reports circles.
func (l *loader) followMoves(all []move) map[Address]moveEnd {
	next := make(map[Address]int, len(all))
	for i, m := range all {
		next[m.from] = i
	}
	ends := make(map[Address]moveEnd, len(all))
	for i := range all {
		var path []int
		passed := map[int]bool{}
		end, known := moveEnd{}, false
		for at, more := i, true; more; at, more = next[all[at].to] {
			if end, known = ends[all[at].from]; known {
				break
			}
			if passed[at] {
				first := slices.Min(path[slices.Index(path, at):])
				l.report(diagMovedCycle(all[first].from, all[first].place("from")))
				end, known = moveEnd{circle: true}, true
				break
			}
			path, passed[at] = append(path, at), true
		}
		for _, at := range slices.Backward(path) {
			if !known {
				end, known = moveEnd{to: all[at].to}, true
			}
			end.hops++
			ends[all[at].from] = end
		}
	}
	return ends
}

// leadsSomewhere reports a move to what isn't in the files, or isn't made by apply.
func (l *loader) leadsSomewhere(m move, to Address) bool {
	d := l.objects["space"][to.Name]
	switch {
	case d == nil && l.mayDeclare(to.Name), d != nil && d.faulty:
		return false // it may be in what could not be read
	case (d == nil || to.Key != "" && !d.has(to)) && m.to != to:
		return false // reported with the last of those that lead there
	case d == nil:
		l.report(diagMovedUndeclared(to, Closest(to.Name, l.namesOf("space")), m.place("to")))
		return false
	case to.Key != "" && !d.has(to):
		l.report(diagMovedUndeclared(to, "", m.place("to")))
		return false
	case to.Key == "" && d.forEach != nil && m.from.Key != "":
		l.report(diagMovedToBlock(to, m.place("to")))
		return false
	}
	for _, inst := range d.instances {
		if s := l.spaceAt[inst.addr]; s != nil && l.whole(inst.addr) && s.Lifecycle != LifecycleService && (to.Key == "" || inst.addr == to) {
			l.report(diagMovedLifecycle(to, s.Lifecycle, m.place("to")))
			return false
		}
	}
	return true
}

// instancesMoved are the spaces that a move is about: one, or each of a block.
func (l *loader) instancesMoved(m move, to Address) []Move {
	d := l.objects["space"][to.Name]
	if d.forEach == nil || to.Key != "" {
		return []Move{{From: m.from, To: to}}
	}
	pairs := make([]Move, 0, len(d.instances))
	for _, inst := range d.instances {
		from := m.from
		from.Key = inst.addr.Key
		pairs = append(pairs, Move{From: from, To: inst.addr})
	}
	return pairs
}
