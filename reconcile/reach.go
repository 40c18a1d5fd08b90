package reconcile

import (
	"fmt"
	"slices"

	"spaces/gatekeeper/policy"
	"spaces/schema"
)

// What spaces reach, as a graph of what the files name. A space leads to the grants it
// holds and the networks it is on, a network to its list. A space acts through another
// one, and so reaches all that it reaches, by
//
//   - a socket that the other serves, and by the launch socket the roles' spaces;
//   - a directory or a volume that the other may write: it may serve a socket there.
//
// Being on one network with another space is no such thing: what a space does for those
// it meets there isn't in the files, and a proxy is the one member whose work is to pass
// things on.

type nodeKind int

const (
	nodeSpace nodeKind = iota
	nodeGrant          // as a space holds it
	nodeOther          // a grant that another space may write, and gives some of the same
	nodeRole
	nodeNetwork
	nodeList
	nodeKinds
)

// node is one of the things, by its place in reachability's lists.
type node struct {
	kind nodeKind
	i    int
}

// reachability is what the files of a project give to whom, indexed.
type reachability struct {
	spaces   []Space // without the proxies
	grants   []schema.Grant
	facts    []PathFacts // of the grants
	roles    []schema.Role
	networks []Network
	lists    []schema.Egress

	spaceAt   map[schema.Address]int
	grantAt   map[schema.Address]int
	networkAt map[string]int // by the engine's name
	networkOf map[schema.Address]int
	listsOn   [][]int // by network
	members   [][]int // spaces, by network
	holders   [][]int // spaces, by grant
	// places are what grants give, by grant: those of one place give the same.
	places []int
	// shares are the grants that give some of the same, by place.
	shares [][]int
	cores  []int
	// links are what next gave, by number, kept from walk to walk.
	links [][]node
	// offsets are the numbers of each kind's first node.
	offsets [nodeKinds]int
}

func newReachability(d Desired, h HostFacts) *reachability {
	r := &reachability{
		grants: d.Grants, roles: d.Roles, networks: d.Networks, lists: d.Egresses,
		spaceAt: map[schema.Address]int{}, grantAt: map[schema.Address]int{},
		networkAt: map[string]int{}, networkOf: map[schema.Address]int{},
		listsOn: make([][]int, len(d.Networks)), members: make([][]int, len(d.Networks)),
		holders: make([][]int, len(d.Grants)),
	}
	for i, n := range d.Networks {
		r.networkAt[n.Name], r.networkOf[n.Address] = i, i
	}
	for i, e := range d.Egresses {
		if n, ok := r.networkOf[e.Network]; ok {
			r.listsOn[n] = append(r.listsOn[n], i)
		}
	}
	for i, g := range d.Grants {
		r.grantAt[g.Address] = i
		r.facts = append(r.facts, factsOf(d, h, g))
	}
	for _, s := range d.Spaces {
		if s.Kind == KindEgress {
			continue
		}
		i := len(r.spaces)
		r.spaces, r.spaceAt[s.Address] = append(r.spaces, s), i
		if s.Lifecycle == schema.LifecycleCore {
			r.cores = append(r.cores, i)
		}
		for _, name := range sortedKeys(s.Container.Networks) {
			if n, ok := r.networkAt[name]; ok {
				r.members[n] = append(r.members[n], i)
			}
		}
		for _, g := range r.held(i) {
			r.holders[g] = append(r.holders[g], i)
		}
	}
	r.findShares()
	total := 0
	for kind := range nodeKinds {
		r.offsets[kind] = total
		total += r.count(kind)
	}
	r.links = make([][]node, total)
	return r
}

// count is how many nodes there are of a kind.
func (r *reachability) count(kind nodeKind) int {
	return [nodeKinds]int{
		len(r.spaces), len(r.grants), len(r.grants), len(r.roles), len(r.networks), len(r.lists),
	}[kind]
}

// factsOf is what is at a grant's source. A volume is a place of its own, and so is what
// lies in a data root that nobody has looked for.
func factsOf(d Desired, h HostFacts, g schema.Grant) PathFacts {
	inRoot := g.Kind == schema.GrantSocket || g.Kind == schema.GrantData
	if g.Kind == schema.GrantVolume || inRoot && d.DataRoot == "" {
		return PathFacts{Resolved: string(g.Kind) + " " + g.Source}
	}
	return h.at(GrantPath(d, g))
}

// at is what is at a path, or where nobody looked the path as it is written.
func (h HostFacts) at(path string) PathFacts {
	if f := h.Paths[path]; f.Resolved != "" {
		return f
	}
	return PathFacts{Absolute: path, Resolved: path}
}

// held are the grants of a space, in the order of its targets.
func (r *reachability) held(space int) []int {
	s := &r.spaces[space]
	var out []int
	for _, target := range sortedTargets(s) {
		if g, ok := r.grantAt[s.Grants[target].Address]; ok {
			out = append(out, g)
		}
	}
	return out
}

// findShares finds which grants give some of the same files. Many grants may give one
// directory, so that it is asked of each place once.
func (r *reachability) findShares() {
	type place struct {
		path  string
		inode Inode
	}
	numbers := map[place]int{}
	var facts []PathFacts // by place
	var grants [][]int    // by place
	var all enclosures
	for i, f := range r.facts {
		p, known := numbers[place{f.Resolved, f.Inode}]
		if !known {
			p = len(facts)
			numbers[place{f.Resolved, f.Inode}] = p
			facts, grants = append(facts, f), append(grants, nil)
			all.add(p, f)
		}
		grants[p] = append(grants[p], i)
		r.places = append(r.places, p)
	}
	r.shares = make([][]int, len(facts))
	for p, f := range facts {
		for _, other := range all.around(f) {
			if !overlap(f, facts[other]) {
				continue
			}
			r.shares[p] = append(r.shares[p], grants[other]...)
			if !same(f, facts[other]) {
				r.shares[other] = append(r.shares[other], grants[p]...) // which lies in it, and so isn't around it
			}
		}
	}
	for p := range r.shares {
		slices.Sort(r.shares[p])
		r.shares[p] = slices.Compact(r.shares[p])
	}
}

// sharing are the grants that give some of the same as a grant, itself among them.
func (r *reachability) sharing(grant int) []int { return r.shares[r.places[grant]] }

// overlap reports whether two paths have files in common.
func overlap(a, b PathFacts) bool { return same(a, b) || inside(a, b) || inside(b, a) }

// servedByCore reports whether a grant gives the socket of something that a core runs.
func servedByCore(g schema.Grant) bool {
	return g.Kind == schema.GrantSocket && (g.Source == policy.SocketAgent || g.Source == policy.SocketHuman)
}

// holdsSockets reports whether a space that may write a grant's source can serve a
// socket to those who have it: in a mount of one file there is no room for one.
func holdsSockets(g schema.Grant) bool {
	return g.Kind == schema.GrantDirectory || g.Kind == schema.GrantVolume || g.Kind == schema.GrantData
}

// next are the nodes that a node leads to, in a fixed order, but for those that it leads
// to by its place.
func (r *reachability) next(n node) []node {
	var out []node
	add := func(kind nodeKind, list ...int) {
		for _, i := range list {
			out = append(out, node{kind, i})
		}
	}
	switch n.kind {
	case nodeSpace:
		add(nodeGrant, r.held(n.i)...)
		for _, name := range sortedKeys(r.spaces[n.i].Container.Networks) {
			if i, ok := r.networkAt[name]; ok {
				add(nodeNetwork, i)
			}
		}
	case nodeGrant:
		switch g := r.grants[n.i]; {
		case servedByCore(g):
			add(nodeSpace, r.cores...)
		case g.Kind == schema.GrantSocket && g.Source == policy.SocketLaunch:
			for i := range r.roles {
				add(nodeRole, i)
			}
		case g.Writable && holdsSockets(g):
			add(nodeSpace, r.holders[n.i]...)
		}
	case nodeOther:
		add(nodeSpace, r.holders[n.i]...)
	case nodeRole:
		if i, ok := r.spaceAt[r.roles[n.i].Space]; ok {
			add(nodeSpace, i)
		}
	case nodeNetwork:
		add(nodeList, r.listsOn[n.i]...)
	}
	return out
}

// number is a node's place among all nodes.
func (r *reachability) number(n node) int { return r.offsets[n.kind] + n.i }

// step is how a walk came to a node.
type step struct {
	seen   bool
	from   node // the node before, on a shortest path
	depth  int  // the length of that path
	direct bool // no other space is on it
}

// walk is all that one space reaches.
type walk struct {
	start int
	// order has the nearest first; those equally near are in the order of next.
	order []node
	steps []step // by number
	been  []bool // by place
}

func (r *reachability) newWalk() *walk {
	return &walk{steps: make([]step, len(r.links)), been: make([]bool, len(r.shares))}
}

// walk goes to all that a space reaches, from wherever the walk was before.
func (r *reachability) walk(w *walk, start int) {
	first := node{nodeSpace, start}
	clear(w.steps)
	clear(w.been)
	w.start, w.order = start, append(w.order[:0], first)
	w.steps[r.number(first)] = step{seen: true, direct: true}
	for at := 0; at < len(w.order); at++ {
		n := w.order[at]
		number := r.number(n)
		if r.links[number] == nil {
			r.links[number] = r.next(n)
		}
		before := w.steps[number]
		visit := func(to node) {
			if s := &w.steps[r.number(to)]; !s.seen {
				*s = step{true, n, before.depth + 1, before.direct && to.kind != nodeSpace}
				w.order = append(w.order, to)
			}
		}
		for _, to := range r.links[number] {
			visit(to)
		}
		// Of a place, the first grant leads to all that others may write there; those of
		// its own were nearer.
		if n.kind != nodeGrant || !holdsSockets(r.grants[n.i]) || w.been[r.places[n.i]] {
			continue
		}
		w.been[r.places[n.i]] = true
		for _, other := range r.sharing(n.i) {
			if o := r.grants[other]; other != n.i && o.Writable && holdsSockets(o) {
				visit(node{nodeOther, other})
			}
		}
	}
}

// path is a shortest path from the walk's start to a node.
func (r *reachability) path(w *walk, n node) []Hop {
	var hops []Hop
	for first := (node{nodeSpace, w.start}); ; {
		before := w.steps[r.number(n)].from
		hops = append(hops, r.hop(before, n, n == first))
		if n == first {
			break
		}
		n = before
	}
	slices.Reverse(hops)
	return hops
}

// hop words a node as it is reached from the one before.
func (r *reachability) hop(before, n node, first bool) Hop {
	switch n.kind {
	case nodeSpace:
		return r.spaceHop(n.i, r.why(before, first))
	case nodeGrant:
		return r.grantHop(n.i, "")
	case nodeOther:
		return r.grantHop(n.i, r.relation(before.i, n.i))
	case nodeRole:
		role := r.roles[n.i]
		return Hop{role.Address.String(), "which it may launch", role.Origin}
	case nodeNetwork:
		network, how := r.networks[n.i], ""
		if !network.Internal {
			how = "which reaches any address"
		}
		return Hop{network.Address.String(), how, network.Origin}
	default:
		list := r.lists[n.i]
		return Hop{list.Address.String(), "its list", list.Origin}
	}
}

// why says why a space is reached.
func (r *reachability) why(before node, first bool) string {
	switch {
	case first:
		return ""
	case before.kind == nodeRole:
		return "which that runs"
	case before.kind == nodeGrant && servedByCore(r.grants[before.i]):
		return "which serves it"
	}
	return "which may write it"
}

func (r *reachability) spaceHop(space int, how string) Hop {
	s := r.spaces[space]
	return Hop{s.Address.String(), how, s.Origin}
}

// grantHop says what a grant gives, and how that relates to the grant before.
func (r *reachability) grantHop(grant int, relation string) Hop {
	g := r.grants[grant]
	how := string(g.Kind) + " " + g.Source
	if g.Writable {
		how += ", writable"
	}
	if relation != "" {
		how += ", " + relation
	}
	return Hop{g.Address.String(), how, g.Origin}
}

// relation says how the source of a grant relates to that of another.
func (r *reachability) relation(to, grant int) string {
	return relation(r.facts[grant], r.facts[to])
}

// relation says how what is at one path relates to what is at another.
func relation(a, to PathFacts) string {
	switch {
	case same(a, to):
		return "which is the same"
	case inside(a, to):
		return "which lies in it"
	}
	return "which holds it"
}

// String is a hop as a path spells it.
func (h Hop) String() string {
	text := h.What
	if h.How != "" {
		text += ", " + h.How
	}
	if at := h.Origin.String(); at != "" {
		text += fmt.Sprintf(" (%s)", at)
	}
	return text
}
