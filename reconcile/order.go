package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Order sorts items so that each comes after all that it needs, and otherwise by the
// kind of step, as a reader would want to go through them, and by ID: the same set gives the same order, however it was listed. It fails when an ID stands
// twice, when an item needs one that isn't there, and on a cycle, which it names.
func Order(items []Item) ([]Item, error) {
	g, err := newGraph(items)
	if err != nil {
		return nil, err
	}
	waits, ready := g.start()
	byID := func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(items[a]), rank(items[b])), strings.Compare(items[a].ID, items[b].ID))
	}
	slices.SortFunc(ready, byID)
	ordered := make([]Item, 0, len(items))
	for len(ready) > 0 {
		next := ready[0]
		ready = ready[1:]
		ordered = append(ordered, items[next])
		for _, user := range g.users[next] {
			if waits[user]--; waits[user] == 0 {
				at, _ := slices.BinarySearchFunc(ready, user, byID)
				ready = slices.Insert(ready, at, user)
			}
		}
	}
	if len(ordered) < len(items) {
		return nil, fmt.Errorf("cannot order the plan: %s", g.cycle(waits))
	}
	return ordered, nil
}

// graph is who needs whom, by index in a list of items.
type graph struct {
	items []Item
	needs [][]int
	users [][]int
}

func newGraph(items []Item) (graph, error) {
	at := make(map[string]int, len(items))
	for i, item := range items {
		if _, twice := at[item.ID]; twice {
			return graph{}, fmt.Errorf("cannot order the plan: %q stands in it twice", item.ID)
		}
		at[item.ID] = i
	}
	g := graph{items, make([][]int, len(items)), make([][]int, len(items))}
	for i, item := range items {
		for _, id := range item.Needs {
			need, ok := at[id]
			if !ok {
				return graph{}, fmt.Errorf("cannot order the plan: %q needs %q, which isn't in it", item.ID, id)
			}
			if !slices.Contains(g.needs[i], need) {
				g.needs[i] = append(g.needs[i], need)
				g.users[need] = append(g.users[need], i)
			}
		}
	}
	return g, nil
}

// start counts what each item waits for, and lists those that wait for nothing.
func (g graph) start() (waits, ready []int) {
	waits = make([]int, len(g.items))
	for i := range g.items {
		if waits[i] = len(g.needs[i]); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	return waits, ready
}

// cycle names one cycle among the items that still wait: following needs that wait
// themselves can't end but in a circle.
func (g graph) cycle(waits []int) string {
	waiting := func(i int) bool { return waits[i] > 0 }
	at := g.smallest(waiting)
	var path []int
	for !slices.Contains(path, at) {
		path = append(path, at)
		at = g.smallest(func(i int) bool { return waiting(i) && slices.Contains(g.needs[path[len(path)-1]], i) })
	}
	path = append(path[slices.Index(path, at):], at)
	names := make([]string, len(path))
	for i, p := range path {
		names[i] = fmt.Sprintf("%q", g.items[p].ID)
	}
	return names[0] + " needs " + strings.Join(names[1:], ", which needs ")
}

// smallest is the matching item with the smallest ID.
func (g graph) smallest(match func(int) bool) int {
	best := -1
	for i := range g.items {
		if match(i) && (best < 0 || g.items[i].ID < g.items[best].ID) {
			best = i
		}
	}
	return best
}

// rank puts first what an apply that was cut short left to set right, then what spaces
// stand on, then the spaces.
func rank(i Item) int {
	switch s := i.Step.(type) {
	case RenameSpace:
		return 0
	case RemoveSpace:
		if strings.HasSuffix(s.Name, SuffixOld) || strings.HasSuffix(s.Name, SuffixNew) || strings.HasSuffix(s.Name, SuffixProbe) {
			return 0
		}
		return 5
	case CreateDirectory, BuildImage, PullImage:
		return 1
	case DisconnectSpace:
		return 2
	case RemoveNetwork, CreateNetwork:
		return 3
	case RemoveVolume, CreateVolume:
		return 4
	case NotYet:
		return 7
	}
	return 6
}
