package picture

import (
	"slices"
	"strings"

	"spaces/reconcile"
)

// Planned is the picture of a plan alone, as a kept one is: what it changes, and nothing
// of what stays.
func Planned(plan *reconcile.Plan) *Picture {
	p := &Picture{Title: "project " + plan.Project}
	for _, n := range plan.Standing {
		if n.Kind == "loosened" {
			s := p.subject(n.Subject)
			s.Lines = append(s.Lines, Line{Text: "loosened " + n.Text, Warns: true})
		}
	}
	return p.Compare(plan)
}

// Compare marks what a plan changes: what is gained, and, drawn though the files no
// longer have it, what is lost.
func (p *Picture) Compare(plan *reconcile.Plan) *Picture {
	p.Compared = true
	p.Title = "plan of project " + plan.Project
	c := comparison{p: p, gained: map[key]bool{}}
	for _, a := range plan.Access {
		c.access(a)
	}
	c.lists()
	for _, i := range plan.Items {
		c.item(i)
	}
	return p.settle()
}

// comparison is a picture that a plan is being drawn into.
type comparison struct {
	p *Picture
	// gained are the hosts that a space gains, by the target that its list names.
	gained map[key]bool
}

func (c *comparison) access(a reconcile.AccessChange) {
	change := Narrowed
	if a.Gains {
		change = Widened
	}
	space := c.p.subject(a.Space)
	switch a.Kind {
	case reconcile.AccessMount:
		c.mount(space, a, change)
	case reconcile.AccessHost:
		c.host(space, a, change)
	case reconcile.AccessPort:
		c.port(space, a, change)
	case reconcile.AccessNetwork:
		c.network(space, a, change)
	default:
		space.Lines = append(space.Lines, Line{Text: a.What + " " + a.How, Warns: true, Change: change})
	}
}

// subject is the node of what a plan calls a space.
func (p *Picture) subject(name string) *Node {
	n := Node{ID: name, Kind: NodeSpace, Title: name}
	switch {
	case strings.HasPrefix(name, "egress."):
		n.Kind = NodeProxy
	case strings.HasPrefix(name, "container "):
		n.Kind = NodeForeign
	}
	return p.ensure(n)
}

// asked is the edge of the files that stands for what is gained.
func (c *comparison) asked(space *Node, a reconcile.AccessChange, from string) *Edge {
	if !a.Gains {
		return nil
	}
	for _, e := range c.p.Edges {
		if e.access == (key{space.ID, a.Kind, a.What}) && (from == "" || e.From == from) {
			return e
		}
	}
	return nil
}

func (c *comparison) mount(space *Node, a reconcile.AccessChange, change Change) {
	e := c.asked(space, a, "")
	if e == nil || strings.HasPrefix(a.How, "what ") {
		source, kind := mountSource(a.How)
		e = c.p.connect(Edge{
			From: c.p.source(source, kind), To: space.ID, Kind: EdgeGrant, Wide: a.Wide,
			Label: mounted(a.What, a.Wide),
		})
	}
	e.Change = change
}

// mountSource reads what a plan says is behind a mount.
func mountSource(how string) (name, kind string) {
	kind, rest, ok := strings.Cut(how, " ")
	if !ok || kind != "bind" && kind != "volume" {
		return how, ""
	}
	for _, mode := range []string{" (writable)", " (read-only)"} {
		rest = strings.Replace(rest, mode, "", 1)
	}
	if kind == "bind" {
		kind = ""
	}
	return rest, kind
}

func (c *comparison) port(space *Node, a reconcile.AccessChange, change Change) {
	binding := strings.TrimPrefix(a.How, "from ")
	e := c.asked(space, a, "port "+binding)
	if e == nil {
		e = c.p.publish(space.ID, a.What, binding)
	}
	e.Change = change
}

func (c *comparison) network(space *Node, a reconcile.AccessChange, change Change) {
	kind := AreaOpen
	if !a.Wide {
		kind = AreaInternal
	}
	area := c.p.ensureArea(Area{ID: networkArea(a.What), Kind: kind, Title: "network " + a.What, Notes: []string{a.How}})
	if space.Area == "" {
		space.Area = area.ID // what only the plan knows is drawn on the first network it names
	}
	if space.Area == area.ID {
		text := "leaves "
		if a.Gains {
			text = "joins "
		}
		space.Lines = append(space.Lines, Line{Text: text + area.Title + ", " + a.How, Change: change})
		return
	}
	e := c.p.member(space.ID, area.ID, a.What)
	if e.Change == Same && (a.Gains || e.access.kind == "") {
		e.Change = change
		c.p.node(e.To).Change = change
	}
}

func (c *comparison) host(space *Node, a reconcile.AccessChange, change Change) {
	through, _, _ := strings.Cut(a.How, ": ") // what a wildcard means follows
	list := c.p.subject(strings.TrimPrefix(through, "through "))
	if c.p.edge(space.ID, list.ID, EdgeList) == nil {
		c.p.connect(Edge{From: space.ID, To: list.ID, Kind: EdgeList, Change: change})
	}
	at := slices.IndexFunc(c.p.Edges, func(e *Edge) bool { return e.access == key{list.ID, a.Kind, a.What} })
	if at < 0 {
		c.p.reach(list.ID, a.What, "", a.Wide).Change = change
	}
	if a.Gains {
		c.gained[key{space.ID, list.ID, a.What}] = true
	}
}

// lists tells what a gain of hosts is owed to: an entry that is new is gained by all that
// use the list, and a list that is new to a space brings it every entry.
func (c *comparison) lists() {
	for _, e := range c.p.Edges {
		var all []key
		for _, other := range c.p.Edges {
			switch {
			case e.Kind == EdgeHost && other.Kind == EdgeList && other.To == e.From && other.Change != Narrowed:
				all = append(all, key{other.From, e.From, e.access.what})
			case e.Kind == EdgeList && other.Kind == EdgeHost && other.From == e.To && other.Change != Narrowed:
				all = append(all, key{e.From, e.To, other.access.what})
			}
		}
		if len(all) > 0 && e.Change == Same && !slices.ContainsFunc(all, func(k key) bool { return !c.gained[k] }) {
			e.Change = Widened
		}
	}
}

// item says at a node or an area what the plan does to it.
func (c *comparison) item(i reconcile.Item) {
	text := ""
	change := Same
	switch e := i.Effects; {
	case e.Has(reconcile.Replaces):
		text = "is replaced"
	case e.Has(reconcile.Destroys):
		text, change = "is destroyed", Narrowed
	case e.Has(reconcile.Creates):
		text = "is created"
	case e.Has(reconcile.Restarts):
		text = "is restarted"
	case e.Has(reconcile.Updates):
		text = "is updated in place"
	default:
		return
	}
	for _, a := range c.p.Areas {
		if a.Title == i.Subject {
			if !slices.Contains(a.Notes, text) {
				a.Notes = append(a.Notes, text)
			}
			if change != Same {
				a.Change = change
			}
			return
		}
	}
	kind, _, _ := strings.Cut(i.Subject, ".")
	if kind != "space" && kind != "egress" && !strings.HasPrefix(kind, "container ") {
		return
	}
	n := c.p.subject(i.Subject)
	if !slices.ContainsFunc(n.Lines, func(l Line) bool { return l.Text == text }) {
		n.Lines = slices.Insert(n.Lines, 0, Line{Text: text})
	}
	if change != Same {
		n.Change = change
	}
}
