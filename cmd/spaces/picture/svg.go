package picture

import (
	"bufio"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Measures, in the picture's own units. Text is set in a fixed width, so that boxes fit
// whatever font a viewer has: no letter of such a font is wider than this.
const (
	cellTitle  = 7.25 // of 12 units
	cellText   = 6.65 // of 11
	cellLabel  = 6.05 // of 10
	lineHeight = 15
	padding    = 10
	margin     = 24
	headLine   = 14 // of an area's title and notes

	// manyEdges are laid out the quicker way: 900 take five seconds and not two minutes.
	manyEdges = 200
)

// SVG draws a picture. The context bounds the laying out, which for hundreds of spaces
// takes seconds.
func SVG(ctx context.Context, w io.Writer, p *Picture) error {
	ids := p.numbers()
	areas := map[string]string{}
	for i, a := range p.Areas {
		areas[a.ID] = fmt.Sprintf("a%d", i)
	}
	asked := layoutAsked{Ranker: "network-simplex", Areas: []layoutSize{}, Nodes: []layoutSize{}, Edges: []layoutSize{}}
	if len(p.Edges) > manyEdges {
		asked.Ranker = "tight-tree"
	}
	shown := p.occupied()
	for _, a := range shown {
		asked.Areas = append(asked.Areas, layoutSize{ID: areas[a.ID]})
	}
	for _, n := range p.Nodes {
		size := layoutSize{ID: ids[n.ID], Area: areas[n.Area], W: n.width(), H: n.height()}
		if a := p.area(n.Area); a != nil {
			size.W = math.Max(size.W, a.width()) // so that the title has room above
		}
		asked.Nodes = append(asked.Nodes, size)
	}
	for _, e := range p.Edges {
		size := layoutSize{From: ids[e.From], To: ids[e.To]}
		if e.Label != "" {
			size.W, size.H = cells(shortened(e.Label))*cellLabel+8, lineHeight
		}
		asked.Edges = append(asked.Edges, size)
	}
	at, err := arrange(ctx, asked)
	if err != nil {
		return err
	}
	s := svg{w: bufio.NewWriter(w), p: p, at: at}
	s.draw(shown)
	return s.w.Flush()
}

// occupied are the areas with something in them. An empty network is told below the rest.
func (p *Picture) occupied() []*Area {
	var out []*Area
	for _, a := range p.Areas {
		for _, n := range p.Nodes {
			if n.Area == a.ID {
				out = append(out, a)
				break
			}
		}
	}
	return out
}

type svg struct {
	w  *bufio.Writer
	p  *Picture
	at *layout
}

// bounds is a rectangle by its corners.
type bounds struct{ left, top, right, bottom float64 }

func (b *bounds) take(o bounds) {
	b.left, b.top = math.Min(b.left, o.left), math.Min(b.top, o.top)
	b.right, b.bottom = math.Max(b.right, o.right), math.Max(b.bottom, o.bottom)
}

func (b box) bounds() bounds {
	return bounds{b.X - b.W/2, b.Y - b.H/2, b.X + b.W/2, b.Y + b.H/2}
}

func (s *svg) draw(areas []*Area) {
	s.makeRoom(areas)
	boxes := make([]bounds, len(areas))
	all := bounds{right: 260}
	for i, a := range areas {
		boxes[i] = s.at.Areas[i].bounds()
		boxes[i].top -= a.head()
		all.take(boxes[i])
	}
	for _, n := range s.at.Nodes {
		all.take(n.bounds())
	}
	for _, e := range s.at.Edges {
		for _, p := range e.Points {
			all.take(bounds{p.X, p.Y, p.X, p.Y})
		}
	}
	legend := s.p.legend()
	const legendRow = 20
	below := all.bottom + 30
	height := below + float64(legendRow*len(legend)) - all.top + 2*margin + 30
	width := math.Max(all.right-all.left, cells(s.p.Title)*9) + 2*margin
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="%s %s %s %s" role="img">`,
		num(width), num(height), num(all.left-margin), num(all.top-margin-30), num(width), num(height))
	s.printf("<title>%s</title>", text(s.p.Title))
	s.printf("<style>%s</style>", style())
	s.printf(`<rect class="paper" x="%s" y="%s" width="%s" height="%s"/>`, num(all.left-margin), num(all.top-margin-30), num(width), num(height))
	s.markers()
	s.printf(`<text class="head" x="%s" y="%s">%s</text>`, num(all.left), num(all.top-24), text(s.p.Title))
	for i, a := range areas {
		s.area(a, boxes[i])
	}
	for i, e := range s.p.Edges {
		s.edge(*e, s.at.Edges[i].Points)
	}
	for i, n := range s.p.Nodes {
		s.node(n, s.at.Nodes[i].bounds())
	}
	for i, e := range s.p.Edges {
		s.label(*e, s.at.Edges[i].point)
	}
	for i, e := range legend {
		y := below + float64(legendRow*i)
		label := e.Label
		e.Label = ""
		s.edge(e, []point{{all.left, y}, {all.left + 46, y}})
		s.printf(`<text class="note" x="%s" y="%s">%s</text>`, num(all.left+56), num(y+3.5), text(label))
	}
	s.printf("</svg>")
}

// makeRoom moves what stands at an area's top and below it down, for the area's title:
// the library knows of none. All keep their order, so nothing that was apart meets.
func (s *svg) makeRoom(areas []*Area) {
	type gap struct{ at, size float64 }
	var gaps []gap
	for i, a := range areas {
		gaps = append(gaps, gap{s.at.Areas[i].bounds().top, a.head()})
	}
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size)) })
	const beside = 20 // tops so near are moved as one
	var merged []gap
	for _, g := range gaps {
		if last := len(merged) - 1; last >= 0 && g.at-merged[last].at < beside {
			merged[last].size = math.Max(merged[last].size, g.size)
			continue
		}
		merged = append(merged, g)
	}
	down := func(y float64) float64 {
		by := 0.0
		for _, g := range merged {
			if y >= g.at {
				by += g.size
			}
		}
		return y + by
	}
	for i, a := range s.at.Areas {
		b := a.bounds()
		b.top, b.bottom = down(b.top), down(b.bottom)
		s.at.Areas[i].Y, s.at.Areas[i].H = (b.top+b.bottom)/2, b.bottom-b.top
	}
	at := map[string]box{}
	for i, n := range s.p.Nodes {
		s.at.Nodes[i].Y = down(s.at.Nodes[i].Y)
		at[n.ID] = s.at.Nodes[i]
	}
	for i, e := range s.p.Edges {
		line := &s.at.Edges[i]
		line.Y = down(line.Y)
		for j := range line.Points {
			line.Points[j].Y = down(line.Points[j].Y)
		}
		if last := len(line.Points) - 1; last > 0 {
			line.Points[0] = at[e.From].meet(line.Points[1])
			line.Points[last] = at[e.To].meet(line.Points[last-1])
		}
	}
}

// meet is where a line from a point to the middle of a box crosses its side.
func (b box) meet(from point) point {
	dx, dy := from.X-b.X, from.Y-b.Y
	if dx == 0 && dy == 0 {
		return from
	}
	scale := math.Min(math.Abs(b.W/2/dx), math.Abs(b.H/2/dy)) // of 0 is infinite
	return point{b.X + dx*scale, b.Y + dy*scale}
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

// markers are the heads of arrows, one for each colour a line can have.
func (s *svg) markers() {
	s.printf("<defs>")
	for _, name := range []string{"grant", "wide", "socket", "port", "list", "reach", "widened", "narrowed"} {
		s.printf(`<marker id="head-%s" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="head-%[1]s" d="M0 0.5 L8 4 L0 7.5 z"/></marker>`, name)
	}
	s.printf("</defs>")
}

func (s *svg) area(a *Area, b bounds) {
	s.printf(`<g class="area %s %s">%s`, a.Kind, a.Change, full(append([]string{a.Title}, a.Notes...)...))
	s.printf(`<rect x="%s" y="%s" width="%s" height="%s" rx="10"/>`, num(b.left), num(b.top), num(b.right-b.left), num(b.bottom-b.top))
	y := b.top + headLine + 2
	s.printf(`<text class="name" x="%s" y="%s">%s</text>`, num(b.left+padding), num(y), text(shortened(a.Title)))
	for _, line := range a.lines() {
		y += headLine
		s.printf(`<text class="note" x="%s" y="%s">%s</text>`, num(b.left+padding), num(y), text(line))
	}
	s.printf("</g>")
}

// lines are the notes of an area, broken so that they make no area wide.
func (a *Area) lines() []string {
	const most = 34
	var out []string
	for _, note := range a.Notes {
		line := ""
		for word := range strings.FieldsSeq(note) {
			word = shortened(word)
			if line != "" && cells(line)+1+cells(word) > most {
				out = append(out, line)
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		out = append(out, line)
	}
	return out
}

// head is the height of what stands above an area's nodes.
func (a *Area) head() float64 { return float64(headLine * (1 + len(a.lines()))) }

func (a *Area) width() float64 {
	most := cells(shortened(a.Title)) * cellTitle
	for _, line := range a.lines() {
		most = math.Max(most, cells(line)*cellLabel)
	}
	return most
}

func (n *Node) width() float64 {
	most := cells(shortened(n.Title)) * cellTitle
	for _, l := range n.Lines {
		most = math.Max(most, cells(shortened(l.plain()))*cellText)
	}
	return math.Max(most, 40) + 2*padding
}

func (n *Node) height() float64 { return float64(lineHeight*(1+len(n.Lines))) + padding }

func (s *svg) node(n *Node, b bounds) {
	round := 3
	switch n.Kind {
	case NodeSpace, NodeProxy, NodeMember:
		round = 8
	}
	s.printf(`<g class="node %s %s">%s`, n.Kind, nodeClass(n), full(n.texts()...))
	s.printf(`<rect x="%s" y="%s" width="%s" height="%s" rx="%d"/>`, num(b.left), num(b.top), num(b.right-b.left), num(b.bottom-b.top), round)
	y := b.top + lineHeight
	s.printf(`<text class="name" x="%s" y="%s">%s</text>`, num(b.left+padding), num(y), text(shortened(n.Title)))
	for _, l := range n.Lines {
		y += lineHeight
		class := "line"
		if l.Warns {
			class += " warns"
		}
		s.printf(`<text class="%s %s" x="%s" y="%s">%s</text>`, class, l.Change, num(b.left+padding), num(y), text(shortened(l.plain())))
	}
	s.printf("</g>")
}

// class is the look of an edge: what becomes of it, or else what it is.
func (e Edge) class() string {
	switch {
	case e.Change != Same:
		return string(e.Change)
	case e.Wide:
		return "wide"
	}
	return string(e.Kind)
}

// edge draws a line through its points, rounded at each.
func (s *svg) edge(e Edge, points []point) {
	if len(points) < 2 {
		return
	}
	var d strings.Builder
	fmt.Fprintf(&d, "M%s %s", num(points[0].X), num(points[0].Y))
	for i := 1; i < len(points)-1; i++ {
		half := point{(points[i].X + points[i+1].X) / 2, (points[i].Y + points[i+1].Y) / 2}
		if i == len(points)-2 {
			half = points[i+1]
		}
		fmt.Fprintf(&d, " Q%s %s %s %s", num(points[i].X), num(points[i].Y), num(half.X), num(half.Y))
	}
	if len(points) == 2 {
		fmt.Fprintf(&d, " L%s %s", num(points[1].X), num(points[1].Y))
	}
	end := fmt.Sprintf(` marker-end="url(#head-%s)"`, e.class())
	if e.Kind == EdgeMember {
		end = ""
	}
	s.printf(`<path class="edge %s %s" d="%s"%s>%s</path>`, e.Kind, e.class(), d.String(), end, full(e.Label))
}

func (s *svg) label(e Edge, at point) {
	if e.Label == "" {
		return
	}
	shown := shortened(e.Label)
	wide := cells(shown)*cellLabel + 6
	s.printf(`<g class="label %s"><rect x="%s" y="%s" width="%s" height="13" rx="2"/><text x="%s" y="%s">%s</text></g>`,
		e.class(), num(at.X-wide/2), num(at.Y-6.5), num(wide), num(at.X), num(at.Y+3.5), text(shown))
}

// full is the whole of a text that may have been shortened, for whoever points at it.
func full(lines ...string) string {
	for _, l := range lines {
		if shortened(l) != l {
			return "<title>" + text(strings.Join(lines, "; ")) + "</title>"
		}
	}
	return ""
}

// Cells is how many columns a text takes on a terminal, or in a font of a fixed width.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			continue // set upon the one before
		}
		n++
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n++
		}
	}
	return n
}

func cells(s string) float64 { return float64(Cells(s)) }

// text is a text between tags.
func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}

// num writes a measure: a tenth is less than anyone sees.
func num(f float64) string {
	s := fmt.Sprintf("%.1f", f)
	return strings.TrimSuffix(strings.Replace(s, "-0.0", "0", 1), ".0")
}

// style has two sets of colours: the viewer's own, light or dark, is taken. They are written
// out, as few programs but browsers know variables.
func style() string {
	return shapes + colouredBy(light) + "@media (prefers-color-scheme: dark) {\n" + colouredBy(dark) + "}\n"
}

func colouredBy(palette []string) string { return strings.NewReplacer(palette...).Replace(coloured) }

var (
	light = []string{
		"$paper", "#ffffff", "$ink", "#1c2024", "$faint", "#60646c", "$box", "#ffffff", "$area", "#f6f8fa", "$openfill", "#fff7ed",
		"$blue", "#2f6fb0", "$orange", "#b45309", "$green", "#1f7a46", "$purple", "#7c3aa8", "$red", "#d1242f", "$grey", "#8b8d98",
	}
	dark = []string{
		"$paper", "#111418", "$ink", "#edeef0", "$faint", "#a3a8b1", "$box", "#1b2027", "$area", "#161a20", "$openfill", "#241c12",
		"$blue", "#6cb0f0", "$orange", "#f0a34a", "$green", "#56c288", "$purple", "#c792ea", "$red", "#ff6b6b", "$grey", "#777b84",
	}
)

const shapes = `
text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; white-space: pre; }
.head { font-size: 15px; font-weight: 600; }
.name { font-size: 12px; font-weight: 600; }
.note { font-size: 10px; }
.area > rect { stroke-width: 1.5; }
.area.host > rect, .area.outside > rect { fill: none; stroke-dasharray: 5 4; }
.area.narrowed > rect { stroke-dasharray: 5 4; }
.node > rect { stroke-width: 1.2; }
.node.member > rect { stroke-dasharray: 3 3; }
.node.widened > rect { stroke-width: 2; }
.node.narrowed > rect { stroke-dasharray: 5 4; }
.line.narrowed { text-decoration: line-through; }
.edge { fill: none; stroke-width: 1.3; }
.edge.wide { stroke-width: 2; }
.edge.member { stroke-dasharray: 2 4; }
.edge.widened { stroke-width: 2.4; }
.edge.narrowed { stroke-width: 1.5; stroke-dasharray: 6 4; }
.label > text { font-size: 10px; text-anchor: middle; }
.label.widened > text { font-weight: 600; }
.label.narrowed > text { text-decoration: line-through; }
`

const coloured = `.paper { fill: $paper; }
text { fill: $ink; }
.note { fill: $faint; }
.area > rect { fill: $area; stroke: $blue; }
.area.open > rect { fill: $openfill; stroke: $orange; }
.area.host > rect, .area.outside > rect { stroke: $grey; }
.area.narrowed > rect { stroke: $grey; }
.area.widened > rect { stroke: $red; }
.node > rect { fill: $box; stroke: $ink; }
.node.proxy > rect, .node.host > rect { stroke: $green; }
.node.source > rect, .node.port > rect, .node.server > rect { stroke: $grey; }
.node.member > rect { stroke: $grey; }
.node.warns > rect { stroke: $orange; }
.node.widened > rect { stroke: $red; }
.node.narrowed > rect { stroke: $grey; }
.node.narrowed .name, .node.member .name, .line { fill: $faint; }
.line.warns { fill: $orange; }
.line.widened { fill: $red; }
.line.narrowed { fill: $grey; }
.edge { stroke: $blue; }
.edge.socket { stroke: $purple; }
.edge.list, .edge.reach { stroke: $green; }
.edge.port { stroke: $ink; }
.edge.member { stroke: $grey; }
.edge.wide { stroke: $orange; }
.edge.widened { stroke: $red; }
.edge.narrowed { stroke: $grey; }
.head-grant { fill: $blue; }
.head-wide { fill: $orange; }
.head-socket { fill: $purple; }
.head-port { fill: $ink; }
.head-list, .head-reach { fill: $green; }
.head-widened { fill: $red; }
.head-narrowed { fill: $grey; }
.label > rect { fill: $paper; }
.label > text { fill: $faint; }
.label.wide > text { fill: $orange; }
.label.widened > text { fill: $red; }
.label.narrowed > text { fill: $grey; }
`
