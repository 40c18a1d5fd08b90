package reconcile

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spaces/schema"
)

func (m *model) planWith(t *testing.T, cfg *schema.Config, o Options) *Plan {
	t.Helper()
	p, err := Diff(Resolve(cfg, testRoots), m.host, m.actual, o)
	if err != nil {
		t.Fatalf("Diff: %v", err)
	}
	return p
}

// copy is the same world, to be changed apart.
func (m *model) copy() *model {
	c := &model{actual: m.actual, host: m.host, nextID: m.nextID}
	c.actual.Containers = slices.Clone(m.actual.Containers)
	c.actual.Volumes = slices.Clone(m.actual.Volumes)
	c.actual.Networks = slices.Clone(m.actual.Networks)
	for i := range c.actual.Networks {
		c.actual.Networks[i].Members = slices.Clone(c.actual.Networks[i].Members)
	}
	c.actual.Images, c.host.Paths = cloneMap(m.actual.Images), cloneMap(m.host.Paths)
	return c
}

func cloneMap[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// names are what there is, by name: what two ways of applying must agree on.
func (m *model) names() []string {
	var names []string
	for _, c := range m.actual.Containers {
		names = append(names, "container "+c.Name+" "+string(c.State))
	}
	for _, n := range m.actual.Networks {
		names = append(names, "network "+n.Name)
	}
	for _, v := range m.actual.Volumes {
		names = append(names, "volume "+v.Name)
	}
	slices.Sort(names)
	return names
}

// moveSome gives some spaces other names, with moved blocks that say so, by chance.
func moveSome(r *rand.Rand, cfg *schema.Config) {
	for i := range cfg.Spaces {
		if r.IntN(3) > 0 {
			continue
		}
		from := cfg.Spaces[i].Address
		to := schema.Address{Kind: "space", Name: "t" + strconv.Itoa(i)}
		cfg.Spaces[i].Address = to
		for j := range cfg.Spaces {
			for k, d := range cfg.Spaces[j].DependsOn {
				if d == from {
					cfg.Spaces[j].DependsOn[k] = to
				}
			}
		}
		cfg.Moves = append(cfg.Moves, schema.Move{From: from, To: to, Origin: schema.Origin{File: "main.hcl", Line: 90 + i}})
	}
}

// someOf are some addresses of a plan's items, by chance, and perhaps none.
func someOf(r *rand.Rand, p *Plan) []string {
	var some []string
	for _, i := range p.Items {
		if !strings.HasPrefix(i.Subject, "grant.") && r.IntN(4) == 0 {
			some = append(some, i.Subject)
		}
	}
	return some
}

// FuzzPartial checks, for generated worlds and by chance chosen parts of their plans:
// that a part holds all that it needs and whole objects, that it touches nothing else,
// that once carried out it has nothing left to do or to tell of access, and that the
// whole plan after it ends where the whole alone ends.
func FuzzPartial(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := freshModel()
		for range 3 {
			cfg := generate(r)
			moveSome(r, cfg)
			whole := m.plan(t, cfg)
			checkMoves(t, m, cfg, whole)
			o := Options{Targets: someOf(r, whole), Excludes: someOf(r, whole)}
			part := m.planWith(t, cfg, o)
			checkNeeds(t, part)
			checkShuffled(t, r, m, cfg, o, part)
			checkPart(t, whole, part, o)

			alone := m.copy()
			alone.applyAnyhow(t, r, whole)
			before := m.copy()
			m.applyAnyhow(t, r, part)
			checkUntouched(t, cfg, before, m, part)
			if again := m.planWith(t, cfg, o); part.Asked.Partial() && (again.HasChanges() && len(o.Targets) > 0 && len(part.Refusals) == 0 || len(again.Access) > 0) && !usage(again) {
				t.Fatalf("applied:\n%s\nand again it is:\n%s", part, again)
			}
			m.applyAnyhow(t, r, m.plan(t, cfg))
			if rest := m.plan(t, cfg); rest.HasChanges() || len(rest.Access) > 0 {
				t.Fatalf("after the part and the whole there is still\n%s", rest)
			}
			if got, want := m.names(), alone.names(); !slices.Equal(got, want) {
				t.Fatalf("in two parts it came to\n%v\nand at once to\n%v", got, want)
			}
			disturb(r, m)
		}
	})
}

// usage tells whether a plan's addresses are no longer those of anything.
func usage(p *Plan) bool {
	return slices.ContainsFunc(p.Refusals, func(r Refusal) bool { return r.Code == CodeUsage })
}

// checkPart: an item is in both or in one; an object is in the part whole or not at
// all; what is excluded isn't, and what is targeted is, unless it needs what is excluded.
func checkPart(t *testing.T, whole, part *Plan, o Options) {
	t.Helper()
	in := map[string]bool{}
	subjects := map[string]bool{}
	for _, i := range part.Items {
		in[i.ID], subjects[i.Subject] = true, true
		if !slices.ContainsFunc(whole.Items, func(w Item) bool { return w.ID == i.ID && reflect.DeepEqual(w.Step, i.Step) }) {
			t.Fatalf("%q is only in the part", i.ID)
		}
	}
	for _, i := range whole.Items {
		if subjects[i.Subject] && !in[i.ID] {
			t.Fatalf("%s is in the part without %q", i.Subject, i.ID)
		}
		if slices.Contains(o.Excludes, i.Subject) && in[i.ID] {
			t.Fatalf("%q is excluded and in the part", i.ID)
		}
		if len(o.Excludes) == 0 && slices.Contains(o.Targets, i.Subject) && !in[i.ID] {
			t.Fatalf("%q is a target's and not in the part", i.ID)
		}
		if in[i.ID] == slices.Contains(part.LeftOut, i.Subject) {
			t.Fatalf("%s is in the part and left out, or neither", i.Subject)
		}
	}
}

// checkUntouched: containers and networks whose objects have no item are as they were.
func checkUntouched(t *testing.T, cfg *schema.Config, before, after *model, part *Plan) {
	t.Helper()
	touched := map[string]bool{}
	for _, i := range part.Items {
		touched[i.Subject] = true
	}
	w := newWorld(Resolve(cfg, testRoots), before.host, before.actual, Options{})
	w.recovery()
	w.takeOvers()
	for _, c := range before.actual.Containers {
		if touched[w.subject(c)] {
			continue
		}
		got := after.container(c.Name)
		if got == nil || !reflect.DeepEqual(*got, c) {
			t.Fatalf("%s (%s) was touched\n%s", c.Name, w.subject(c), part)
		}
	}
	for _, n := range before.actual.Networks {
		got := after.network(n.Name)
		if !touched[w.networkSubject(n.Name)] && (got == nil || !reflect.DeepEqual(got.Network, n.Network)) {
			t.Fatalf("%s was touched\n%s", n.Name, part)
		}
	}
}

// checkMoves: a space that moves is replaced, and its old container isn't destroyed.
func checkMoves(t *testing.T, m *model, cfg *schema.Config, p *Plan) {
	t.Helper()
	for _, move := range cfg.Moves {
		old, now := m.container("acme-"+move.From.Name), m.container("acme-"+move.To.Name)
		if old == nil || now != nil || m.container("acme-"+move.To.Name+SuffixOld) != nil || addressOf(*old) != move.From.String() {
			continue
		}
		if m.container("acme-"+move.From.Name+SuffixOld) != nil {
			continue // a replacement that was cut short comes first
		}
		if slices.ContainsFunc(p.Items, func(i Item) bool { return i.ID == "remove "+move.From.String() }) {
			t.Fatalf("%s moves, and is destroyed\n%s", move.From, p)
		}
	}
}
