package reconcile

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spaces/schema"
)

// plan makes the plan of a configuration in a model.
func (m *model) plan(t *testing.T, cfg *schema.Config) *Plan {
	t.Helper()
	p, err := Diff(Resolve(cfg, testRoots), m.host, m.actual, Options{})
	if err != nil {
		t.Fatalf("Diff: %v", err)
	}
	return p
}

func (m *model) apply(t *testing.T, p *Plan) {
	t.Helper()
	if _, err := Apply(context.Background(), p, m, ApplyOptions{Parallelism: 4}); err != nil {
		t.Fatalf("Apply: %v\n%s", err, p)
	}
}

// applyAnyhow carries a plan out in an order that its needs allow, by chance: what one
// step needs of another must be said, and not only come of how the plan is listed.
func (m *model) applyAnyhow(t *testing.T, r *rand.Rand, p *Plan) {
	t.Helper()
	done := map[string]bool{}
	left := slices.Clone(p.Items)
	for len(left) > 0 {
		var ready []int
		for i, item := range left {
			if !slices.ContainsFunc(item.Needs, func(need string) bool { return !done[need] }) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			t.Fatalf("nothing can start of what is left\n%s", p)
		}
		i := ready[r.IntN(len(ready))]
		if err := m.Apply(context.Background(), left[i].Step); err != nil {
			t.Fatalf("%q, as soon as its needs are met: %v\n%s", left[i].ID, err, p)
		}
		done[left[i].ID] = true
		left = slices.Delete(left, i, i+1)
	}
}

// FuzzProperties checks, for generated configurations and worlds disturbed in between,
// that applying a plan makes the next one empty, that needs come before their users,
// that shuffled input gives the same bytes and that nothing of others is touched.
func FuzzProperties(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := freshModel()
		for range 3 {
			cfg := generate(r)
			p := m.plan(t, cfg)
			checkNeeds(t, p)
			checkShuffled(t, r, m, cfg, Options{}, p)
			checkOwned(t, m, p)
			m.applyAnyhow(t, r, p)
			if again := m.plan(t, cfg); again.HasChanges() || len(again.Access) > 0 {
				t.Fatalf("applied:\n%s\nand the next plan is:\n%s", p, again)
			}
			disturb(r, m)
			p = m.plan(t, cfg)
			checkNeeds(t, p)
			checkOwned(t, m, p)
			m.applyAnyhow(t, r, p)
			if again := m.plan(t, cfg); again.HasChanges() || len(again.Access) > 0 {
				t.Fatalf("repaired:\n%s\nand the next plan is:\n%s", p, again)
			}
			disturb(r, m)
		}
	})
}

func checkNeeds(t *testing.T, p *Plan) {
	t.Helper()
	seen := map[string]bool{}
	for _, i := range p.Items {
		for _, need := range i.Needs {
			if !seen[need] {
				t.Fatalf("%q needs %q, which comes later\n%s", i.ID, need, p)
			}
		}
		seen[i.ID] = true
	}
}

func checkShuffled(t *testing.T, r *rand.Rand, m *model, cfg *schema.Config, o Options, p *Plan) {
	t.Helper()
	shuffled, actual := *cfg, m.actual
	shuffled.Spaces = shuffle(r, cfg.Spaces)
	shuffled.Networks = shuffle(r, cfg.Networks)
	shuffled.Grants = shuffle(r, cfg.Grants)
	shuffled.Images = shuffle(r, cfg.Images)
	actual.Containers = shuffle(r, m.actual.Containers)
	actual.Networks = shuffle(r, m.actual.Networks)
	actual.Volumes = shuffle(r, m.actual.Volumes)
	for i := range actual.Networks {
		actual.Networks[i].Members = shuffle(r, actual.Networks[i].Members)
	}
	other := model{actual: actual, host: m.host}
	o.Targets, o.Excludes = shuffle(r, o.Targets), shuffle(r, o.Excludes)
	if q := other.planWith(t, &shuffled, o); q.String() != p.String() || essence(q.Record()) != essence(p.Record()) {
		t.Fatalf("shuffled, the plan is another:\n%s\n%s", p, strings.Join(p.Record().Moved(q.Record()), "\n"))
	}
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// checkOwned: a step names only objects of ours, or ones that don't exist, and what it
// does to a stranger is to take it off a network of ours.
func checkOwned(t *testing.T, m *model, p *Plan) {
	t.Helper()
	for _, i := range p.Items {
		switch s := i.Step.(type) {
		case DisconnectSpace:
			if m.network(s.Network) == nil {
				t.Fatalf("%q touches a network that isn't ours", i.ID)
			}
			if ours := m.container(s.Name) != nil || m.container(s.Name+SuffixOld) != nil; s.Foreign == ours {
				t.Fatalf("%q is wrong about whose container it is", i.ID)
			}
		case RemoveSpace:
			if m.container(s.Name) == nil && m.container(s.Name+SuffixOld) == nil {
				t.Fatalf("%q removes what isn't ours", i.ID)
			}
		case RemoveNetwork:
			if m.network(s.Name) == nil {
				t.Fatalf("%q removes what isn't ours", i.ID)
			}
		}
	}
}

// TestTaken: a name that somebody else has is a refusal, and no step goes near it.
func TestTaken(t *testing.T) {
	cfg := generate(rand.New(rand.NewPCG(1, 1)))
	m := freshModel()
	m.actual.Taken = Taken{
		Containers: map[string]string{"acme-s0": "a container nobody labelled"},
		Networks:   map[string]string{"acme-n0": "a network nobody labelled"},
		Volumes:    map[string]string{"acme-cache": "a volume nobody labelled"},
	}
	p := m.plan(t, cfg)
	var codes []string
	for _, r := range p.Refusals {
		codes = append(codes, r.Code)
	}
	if want := []string{CodeNameTaken, CodeNameTaken, CodeNameTaken}; !slices.Equal(codes, want) {
		t.Errorf("refusals are %v, want %v", codes, want)
	}
	for _, i := range p.Items {
		if strings.Contains(i.ID, "space.s0") || i.ID == "create network.n0" || i.ID == "create volume.cache" {
			t.Errorf("%q goes near a name that is taken", i.ID)
		}
	}
}
