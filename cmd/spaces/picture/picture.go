// Package picture draws what a project's spaces reach: networks as areas, spaces in them,
// and each grant, list of hosts, socket and published port as a labelled line.
//
// Of makes a Picture from the files, and Compare marks in it what a plan changes. A
// Picture is data and says nothing of how it looks; DOT, Mermaid and SVG spell it. The
// same input gives the same bytes.
//
// A space on several networks is drawn once, on the first of them. On each other one
// stands a mark with its name, joined to it by a line: so whoever looks at an area sees
// all that are on the network, and no space twice.
package picture

import (
	"slices"
	"strings"
	"unicode"
)

// Picture is what is to be seen.
type Picture struct {
	Title string
	// Compared is true where the picture shows what a plan changes.
	Compared bool
	Areas    []*Area
	Nodes    []*Node
	Edges    []*Edge
}

// Area holds nodes: a network, or one of the two sides of the world beyond.
type Area struct {
	ID    string
	Kind  AreaKind
	Title string
	Notes []string
	// Change is what becomes of the area itself.
	Change Change
}

// AreaKind is what an area stands for.
type AreaKind string

// The kinds of area.
const (
	AreaHost     AreaKind = "host"     // this machine
	AreaInternal AreaKind = "internal" // a network without a way out
	AreaOpen     AreaKind = "open"     // a network that reaches any address
	AreaOutside  AreaKind = "outside"  // hosts that lists name
)

// Node is one thing that reaches or is reached.
type Node struct {
	ID     string
	Kind   NodeKind
	Area   string // the id of the area that it is in, empty for none
	Title  string
	Lines  []Line
	Change Change
}

// NodeKind is what a node stands for.
type NodeKind string

// The kinds of node.
const (
	NodeSpace   NodeKind = "space"
	NodeProxy   NodeKind = "proxy"   // the space that serves an egress list
	NodeMember  NodeKind = "member"  // a space that is drawn elsewhere and is on this network too
	NodeSource  NodeKind = "source"  // what a grant gives
	NodePort    NodeKind = "port"    // an address of this machine
	NodeHost    NodeKind = "host"    // a host outside
	NodeServer  NodeKind = "server"  // what serves a socket and is no space of the files
	NodeForeign NodeKind = "foreign" // a container that isn't the project's
)

// Line is a line of text in a node, below its title.
type Line struct {
	Text   string
	Warns  bool // a step back from the hardening
	Change Change
}

// Edge is a way from one node to another, in the direction that things are given.
type Edge struct {
	From, To string
	Kind     EdgeKind
	Label    string
	// Wide is true for what can be written, and for hosts beyond the ones named.
	Wide   bool
	Change Change

	// access is what the edge stands for in a plan, by space, kind and what is reached.
	access key
}

// EdgeKind is what an edge stands for.
type EdgeKind string

// The kinds of edge.
const (
	EdgeGrant  EdgeKind = "grant"  // from a source to a space
	EdgeSocket EdgeKind = "socket" // from who serves it to who uses it
	EdgePort   EdgeKind = "port"   // from an address of this machine to a space
	EdgeList   EdgeKind = "list"   // from a space to the list that it uses
	EdgeHost   EdgeKind = "reach"  // from a list to a host
	EdgeMember EdgeKind = "member" // from a space to its mark on another network
)

// Change is what a plan does to a part of the picture.
type Change string

// The changes.
const (
	Same     Change = ""
	Widened  Change = "widened"
	Narrowed Change = "narrowed"
)

// key names one access.
type key struct{ space, kind, what string }

func (p *Picture) area(id string) *Area {
	for _, a := range p.Areas {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (p *Picture) node(id string) *Node {
	for _, n := range p.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// ensure is the node of an id, made if it isn't there.
func (p *Picture) ensure(n Node) *Node {
	if have := p.node(n.ID); have != nil {
		return have
	}
	p.Nodes = append(p.Nodes, &n)
	return &n
}

func (p *Picture) ensureArea(a Area) *Area {
	if have := p.area(a.ID); have != nil {
		return have
	}
	p.Areas = append(p.Areas, &a)
	return &a
}

func (p *Picture) edge(from, to string, kind EdgeKind) *Edge {
	for _, e := range p.Edges {
		if e.From == from && e.To == to && e.Kind == kind {
			return e
		}
	}
	return nil
}

func (p *Picture) connect(e Edge) *Edge {
	p.Edges = append(p.Edges, &e)
	return &e
}

// settle puts everything in the order it is drawn in, and makes every text printable.
func (p *Picture) settle() *Picture {
	slices.SortStableFunc(p.Areas, func(a, b *Area) int { return strings.Compare(a.ID, b.ID) })
	slices.SortStableFunc(p.Nodes, func(a, b *Node) int { return strings.Compare(a.ID, b.ID) })
	slices.SortStableFunc(p.Edges, func(a, b *Edge) int {
		return strings.Compare(a.From+"\x00"+a.To+"\x00"+string(a.Kind)+"\x00"+a.Label, b.From+"\x00"+b.To+"\x00"+string(b.Kind)+"\x00"+b.Label)
	})
	p.Title = printable(p.Title)
	for _, a := range p.Areas {
		a.Title = printable(a.Title)
		for i := range a.Notes {
			a.Notes[i] = printable(a.Notes[i])
		}
	}
	for _, n := range p.Nodes {
		n.Title = printable(n.Title)
		for i := range n.Lines {
			n.Lines[i].Text = printable(n.Lines[i].Text)
		}
	}
	for _, e := range p.Edges {
		e.Label = printable(e.Label)
	}
	return p
}

// printable shows what doesn't print as question marks: a name that turns the text round
// or breaks a line would show something else than what is there.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, s)
}

// shortened leaves the middle out of a text that is too long for a picture.
func shortened(s string) string {
	const most, head = 56, 22
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-head-1):])
}

// legend says what the lines of a picture mean, for those that are in it.
func (p *Picture) legend() []Edge {
	var out []Edge
	has := func(is func(*Edge) bool) bool { return slices.ContainsFunc(p.Edges, is) }
	add := func(e Edge, is func(*Edge) bool) {
		if has(is) {
			out = append(out, e)
		}
	}
	add(Edge{Kind: EdgeGrant, Label: "grant, read-only"}, func(e *Edge) bool { return e.Kind == EdgeGrant && !e.Wide })
	add(Edge{Kind: EdgeGrant, Wide: true, Label: "grant, writable"}, func(e *Edge) bool { return e.Kind == EdgeGrant && e.Wide })
	add(Edge{Kind: EdgeSocket, Label: "socket, from who serves it"}, func(e *Edge) bool { return e.Kind == EdgeSocket })
	add(Edge{Kind: EdgePort, Label: "published port"}, func(e *Edge) bool { return e.Kind == EdgePort })
	add(Edge{Kind: EdgeHost, Label: "hosts that a list lets through"}, func(e *Edge) bool { return e.Kind == EdgeHost || e.Kind == EdgeList })
	add(Edge{Kind: EdgeMember, Label: "the same space, on another network"}, func(e *Edge) bool { return e.Kind == EdgeMember })
	if p.Compared {
		out = append(out,
			Edge{Kind: EdgeGrant, Change: Widened, Label: "red: access gained"},
			Edge{Kind: EdgeGrant, Change: Narrowed, Label: "grey, dashed: access lost"})
	}
	return out
}
