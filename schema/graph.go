package schema

import "slices"

// graph is a directed graph over nodes; edges[i] are the nodes that node i needs.
type graph[T any] struct {
	nodes []T
	edges [][]int
}

// components are the strongly connected components (Tarjan's algorithm, with its own
// stack, since the depth is the input's), each after those it needs.
func (g *graph[T]) components() [][]int {
	t := tarjan{
		index:   make([]int, len(g.nodes)),
		low:     make([]int, len(g.nodes)),
		onStack: make([]bool, len(g.nodes)),
	}
	for start := range g.nodes {
		if t.index[start] == 0 {
			t.visit(g.edges, start)
		}
	}
	return t.groups
}

type tarjan struct {
	index, low []int // from 1; 0 is unvisited
	onStack    []bool
	stack      []int
	next       int
	groups     [][]int
}

type tarjanFrame struct{ node, edge int }

func (t *tarjan) visit(edges [][]int, start int) {
	frames := []tarjanFrame{{start, 0}}
	t.enter(start)
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if f.edge < len(edges[f.node]) {
			to := edges[f.node][f.edge]
			f.edge++
			switch {
			case t.index[to] == 0:
				t.enter(to)
				frames = append(frames, tarjanFrame{to, 0})
			case t.onStack[to]:
				t.low[f.node] = min(t.low[f.node], t.index[to])
			}
			continue
		}
		node := f.node
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			parent := frames[len(frames)-1].node
			t.low[parent] = min(t.low[parent], t.low[node])
		}
		if t.low[node] == t.index[node] {
			t.leave(node)
		}
	}
}

func (t *tarjan) enter(node int) {
	t.next++
	t.index[node], t.low[node] = t.next, t.next
	t.onStack[node] = true
	t.stack = append(t.stack, node)
}

func (t *tarjan) leave(node int) {
	i := len(t.stack) - 1
	for t.stack[i] != node {
		i--
	}
	group := slices.Clone(t.stack[i:])
	t.stack = t.stack[:i]
	for _, n := range group {
		t.onStack[n] = false
	}
	slices.Sort(group)
	t.groups = append(t.groups, group)
}

// cycle is a shortest way from the group's first node back to it, or nil if the
// group is a single node that doesn't need itself. The first node ends it too.
func (g *graph[T]) cycle(group []int) []int {
	first := group[0]
	if len(group) == 1 && !slices.Contains(g.edges[first], first) {
		return nil
	}
	inside := map[int]bool{}
	for _, node := range group {
		inside[node] = true
	}
	from := map[int]int{}
	queue := []int{first}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, to := range g.edges[node] {
			if to == first {
				return pathBack(from, first, node)
			}
			if _, seen := from[to]; !seen && inside[to] {
				from[to] = node
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// pathBack is first … last first, where from says whence each node was reached.
func pathBack(from map[int]int, first, last int) []int {
	way := []int{first}
	for node := last; node != first; node = from[node] {
		way = append(way, node)
	}
	way = append(way, first)
	slices.Reverse(way)
	return way
}
