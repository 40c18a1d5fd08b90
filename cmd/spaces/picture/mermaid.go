package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Mermaid writes a picture as a Mermaid flowchart, which code hosts draw in Markdown.
func Mermaid(w io.Writer, p *Picture) error {
	m := mermaid{w: bufio.NewWriter(w), p: p, ids: p.numbers()}
	m.line("flowchart LR")
	m.line("  title[%s]:::plain", label(p.Title))
	for i, a := range p.Areas {
		m.line("  subgraph a%d[%s]", i, label(append([]string{a.Title}, a.Notes...)...))
		m.nodes(a.ID, "    ")
		m.line("  end")
		m.line("  class a%d %s", i, changed(a.Change, string(a.Kind)))
	}
	m.nodes("", "  ")
	for _, e := range p.Edges {
		m.edge(m.ids[e.From], m.ids[e.To], *e)
	}
	m.legend()
	m.styles()
	return m.w.Flush()
}

type mermaid struct {
	w     *bufio.Writer
	p     *Picture
	ids   map[string]string
	links []Edge // as drawn: their styles go by number
}

func (m *mermaid) line(format string, args ...any) { fmt.Fprintf(m.w, format+"\n", args...) }

func (m *mermaid) nodes(area, indent string) {
	for _, n := range m.p.Nodes {
		if n.Area != area {
			continue
		}
		open, close := "[", "]"
		if n.Kind == NodeSpace || n.Kind == NodeProxy || n.Kind == NodeMember {
			open, close = "(", ")"
		}
		m.line("%s%s%s%s%s:::%s", indent, m.ids[n.ID], open, label(n.texts()...), close, nodeClass(n))
	}
}

func (m *mermaid) edge(from, to string, e Edge) {
	arrow := "-->"
	switch {
	case e.Kind == EdgeMember:
		arrow = "-.-"
	case e.Change == Narrowed:
		arrow = "-.->"
	case e.Wide, e.Change == Widened:
		arrow = "==>"
	}
	text := ""
	if e.Label != "" {
		text = "|" + label(e.Label) + "|"
	}
	m.line("  %s %s%s %s", from, arrow, text, to)
	m.links = append(m.links, e)
}

func (m *mermaid) legend() {
	all := m.p.legend()
	if len(all) == 0 {
		return
	}
	m.line("  subgraph legend[%s]", label("legend"))
	for i, e := range all {
		m.line("    l%d[%s]:::plain", i, label(" "))
		m.line("    t%d[%s]:::plain", i, label(e.Label))
	}
	m.line("  end")
	m.line("  class legend host")
	for i, e := range all {
		e.Label = ""
		m.edge(fmt.Sprintf("l%d", i), fmt.Sprintf("t%d", i), e)
	}
}

// styles say colours that are seen on light and on dark.
func (m *mermaid) styles() {
	for i, e := range m.links {
		dash := ""
		if e.Change == Narrowed {
			dash = ",stroke-dasharray:5 4"
		}
		m.line("  linkStyle %d stroke:%s%s", i, mermaidColour(edgeColour(e)), dash)
	}
	for _, c := range []struct{ name, style string }{
		{"host", "fill:none,stroke:#8a8f98,stroke-dasharray:5 4"},
		{"outside", "fill:none,stroke:#8a8f98,stroke-dasharray:5 4"},
		{"internal", "fill:none,stroke:#4682b4,stroke-width:2px"},
		{"open", "fill:none,stroke:#d97706,stroke-width:2px"},
		{"box", "stroke:#4682b4"},
		{"mark", "stroke:#8a8f98,stroke-dasharray:3 3"},
		{"warns", "stroke:#d97706,stroke-width:2px"},
		{"widened", "stroke:#e5484d,stroke-width:3px"},
		{"narrowed", "stroke:#8a8f98,color:#8a8f98,stroke-dasharray:5 4"},
		{"plain", "fill:none,stroke:none"},
	} {
		m.line("  classDef %s %s", c.name, c.style)
	}
}

func mermaidColour(name string) string {
	return map[string]string{
		"red": "#e5484d", "gray50": "#8a8f98", "darkorange": "#d97706", "purple": "#9b59b6",
		"darkgreen": "#2e9e5b", "steelblue": "#4682b4",
	}[name]
}

func changed(c Change, otherwise string) string {
	if c == Same {
		return otherwise
	}
	return string(c)
}

func nodeClass(n *Node) string {
	switch nodeColour(n) {
	case "red":
		return "widened"
	case "gray50":
		return "narrowed"
	case "darkorange":
		return "warns"
	}
	if n.Kind == NodeMember {
		return "mark"
	}
	return "box"
}

// label is a text of so many lines in quotes. Whatever could mean something to Mermaid,
// to Markdown or to HTML is written as the number of its character.
func label(lines ...string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		l = strings.ReplaceAll(shortened(l), ". ", ".\u00a0") // "1. x" begins a list
		for _, r := range l {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ,:/.+…", r) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "#%d;", r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
