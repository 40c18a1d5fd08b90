package picture

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/dop251/goja"
)

// dagre lays directed graphs out in areas; it is what Mermaid uses. dagre/LICENSE is its
// licence.
//
//go:embed dagre/dagre.min.js
var dagreSource string

// around is what dagre needs about it: the one function of browsers it uses, and a call
// that takes and gives text.
const around = `
function structuredClone(v) { return v === undefined ? v : JSON.parse(JSON.stringify(v)) }
function arrange(text) {
  var asked = JSON.parse(text)
  var g = new dagre.graphlib.Graph({ compound: true, multigraph: true })
  g.setGraph({ rankdir: "LR", nodesep: 26, ranksep: 46, edgesep: 14, ranker: asked.ranker, marginx: 0, marginy: 0 })
  asked.areas.forEach(function (a) { g.setNode(a.id, {}) })
  asked.nodes.forEach(function (n) {
    g.setNode(n.id, { width: n.w, height: n.h })
    if (n.area) g.setParent(n.id, n.area)
  })
  asked.edges.forEach(function (e, i) {
    g.setEdge(e.from, e.to, { width: e.w, height: e.h, labelpos: "c" }, "e" + i)
  })
  dagre.layout(g)
  function box(n) { var at = g.node(n.id); return { x: at.x, y: at.y, w: at.width, h: at.height } }
  return JSON.stringify({
    areas: asked.areas.map(box),
    nodes: asked.nodes.map(box),
    edges: asked.edges.map(function (e, i) {
      var at = g.edge(e.from, e.to, "e" + i)
      return { points: at.points, x: at.x || 0, y: at.y || 0 }
    }),
  })
}`

// The texts that pass between the two.
type (
	layoutAsked struct {
		// Ranker is how columns are found: the best way is too slow for hundreds of lines.
		Ranker string       `json:"ranker"`
		Areas  []layoutSize `json:"areas"`
		Nodes  []layoutSize `json:"nodes"`
		Edges  []layoutSize `json:"edges"`
	}
	layoutSize struct {
		ID   string  `json:"id,omitempty"`
		Area string  `json:"area,omitempty"`
		From string  `json:"from,omitempty"`
		To   string  `json:"to,omitempty"`
		W    float64 `json:"w"`
		H    float64 `json:"h"`
	}
	layout struct {
		Areas []box `json:"areas"`
		Nodes []box `json:"nodes"`
		Edges []struct {
			Points []point `json:"points"`
			point
		} `json:"edges"`
	}
	// box is a rectangle by its middle.
	box   struct{ X, Y, W, H float64 }
	point struct{ X, Y float64 }
)

// arrange says where everything goes. What is asked is numbers and names of our own: no
// text of the files reaches the script.
func arrange(ctx context.Context, asked layoutAsked) (*layout, error) {
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("cannot lay the picture out: %w", err)
	}
	vm := goja.New()
	stop := context.AfterFunc(ctx, func() { vm.Interrupt(context.Cause(ctx)) })
	defer stop()
	fail := func(err error) (*layout, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("cannot lay the picture out: %w", err)
	}
	for _, source := range []string{around, dagreSource} {
		if _, err := vm.RunString(source); err != nil {
			return fail(err)
		}
	}
	var call func(string) (string, error)
	if err := vm.ExportTo(vm.Get("arrange"), &call); err != nil {
		return fail(err)
	}
	answer, err := call(string(text))
	if err != nil {
		return fail(err)
	}
	var l layout
	if err := json.Unmarshal([]byte(answer), &l); err != nil {
		return fail(err)
	}
	return &l, nil
}
