package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// DOT writes a picture in Graphviz's language.
func DOT(w io.Writer, p *Picture) error {
	d := dot{w: bufio.NewWriter(w), p: p, ids: p.numbers()}
	d.line("digraph spaces {")
	d.line("  graph [rankdir=LR, fontname=monospace, fontsize=11, labelloc=t, nodesep=0.35, ranksep=1, label=%s]", quoted(p.Title))
	d.line("  node [shape=box, fontname=monospace, fontsize=10]")
	d.line("  edge [fontname=monospace, fontsize=9]")
	for i, a := range p.Areas {
		d.line("  subgraph cluster_%d {", i)
		d.line("    graph [label=%s, style=%s, color=%s]", quoted(append([]string{a.Title}, a.Notes...)...), quoted(areaStyle(a)), quoted(areaColour(a)))
		d.nodes(a.ID, "    ")
		d.line("  }")
	}
	d.nodes("", "  ")
	for _, e := range p.Edges {
		d.line("  %s -> %s [%s]", d.ids[e.From], d.ids[e.To], d.edge(*e))
	}
	d.legend()
	d.line("}")
	return d.w.Flush()
}

type dot struct {
	w   *bufio.Writer
	p   *Picture
	ids map[string]string
}

func (d dot) line(format string, args ...any) { fmt.Fprintf(d.w, format+"\n", args...) }

func (d dot) nodes(area, indent string) {
	for _, n := range d.p.Nodes {
		if n.Area != area {
			continue
		}
		d.line("%s%s [label=%s, style=%s, color=%s, fontcolor=%s]", indent, d.ids[n.ID],
			quoted(n.texts()...), quoted(nodeStyle(n)), quoted(nodeColour(n)), quoted(changeColour(n.Change, "black")))
	}
}

func (d dot) edge(e Edge) string {
	style, width := "solid", 1
	switch {
	case e.Change == Narrowed:
		style = "dashed"
	case e.Kind == EdgeMember:
		style = "dotted"
	}
	if e.Change == Widened || e.Wide {
		width = 2
	}
	head := "normal"
	if e.Kind == EdgeMember {
		head = "none"
	}
	colour := edgeColour(e)
	return fmt.Sprintf("label=%s, style=%s, penwidth=%d, arrowhead=%s, color=%s, fontcolor=%s",
		quoted(shortened(e.Label)), style, width, head, quoted(colour), quoted(colour))
}

func (d dot) legend() {
	all := d.p.legend()
	if len(all) == 0 {
		return
	}
	d.line("  subgraph cluster_legend {")
	d.line("    graph [label=legend, style=rounded, color=gray]")
	for i, e := range all {
		label := e.Label
		e.Label = ""
		d.line("    l%d [shape=point]", i)
		d.line("    t%d [shape=plaintext, label=%s]", i, quoted(label))
		d.line("    l%d -> t%d [%s]", i, i, d.edge(e))
	}
	d.line("  }")
}

// quoted is a label of so many lines. Graphviz reads backslashes and, as HTML does,
// names of characters in it.
func quoted(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
	var b strings.Builder
	b.WriteByte('"')
	for i, l := range lines {
		if i > 0 {
			b.WriteString(`\n`)
		}
		b.WriteString(escape.Replace(shortened(l)))
	}
	b.WriteByte('"')
	return b.String()
}

// numbers are names for nodes that need no escaping in any language, in their order.
func (p *Picture) numbers() map[string]string {
	ids := make(map[string]string, len(p.Nodes))
	for i, n := range p.Nodes {
		ids[n.ID] = fmt.Sprintf("n%d", i)
	}
	return ids
}

// texts are a node's lines as plain text, where a line can have no colour of its own.
func (n *Node) texts() []string {
	out := []string{n.Title}
	for _, l := range n.Lines {
		out = append(out, l.plain())
	}
	return out
}

// plain marks a line by a sign, as plans do.
func (l Line) plain() string {
	switch {
	case l.Change == Widened:
		return "+ " + l.Text
	case l.Change == Narrowed:
		return "- " + l.Text
	case l.Warns:
		return "! " + l.Text
	}
	return l.Text
}

func changeColour(c Change, otherwise string) string {
	switch c {
	case Widened:
		return "red"
	case Narrowed:
		return "gray50"
	}
	return otherwise
}

func areaStyle(a *Area) string {
	if a.Change == Narrowed || a.Kind == AreaHost || a.Kind == AreaOutside {
		return "rounded,dashed"
	}
	return "rounded"
}

func areaColour(a *Area) string {
	switch a.Kind {
	case AreaOpen:
		return changeColour(a.Change, "darkorange")
	case AreaInternal:
		return changeColour(a.Change, "steelblue")
	}
	return changeColour(a.Change, "gray")
}

func nodeStyle(n *Node) string {
	switch {
	case n.Change == Narrowed, n.Kind == NodeMember:
		return "rounded,dashed"
	case n.Kind == NodeSpace, n.Kind == NodeProxy:
		return "rounded"
	}
	return "solid"
}

func nodeColour(n *Node) string {
	for _, l := range n.Lines {
		if l.Change == Widened {
			return "red"
		}
	}
	for _, l := range n.Lines {
		if l.Warns && n.Change == Same {
			return "darkorange"
		}
	}
	return changeColour(n.Change, "black")
}

func edgeColour(e Edge) string {
	switch {
	case e.Change != Same:
		return changeColour(e.Change, "")
	case e.Wide:
		return "darkorange"
	case e.Kind == EdgeSocket:
		return "purple"
	case e.Kind == EdgeList, e.Kind == EdgeHost:
		return "darkgreen"
	case e.Kind == EdgeMember:
		return "gray50"
	}
	return "steelblue"
}
