package reconcile

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spaces/gatekeeper/policy"
	"spaces/schema"
)

// FuzzJudge compares what Judge says of generated configurations and assertions with a
// slow model that knows nothing of graphs: whether a claim is broken, and by how many
// hops at least. Each path must be one, too.
func FuzzJudge(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := generateReach(r)
		judged := Judge(Resolve(cfg, testRoots), HostFacts{})
		if len(judged) != len(cfg.Assertions) {
			t.Fatalf("%d assertions, and %d judged", len(cfg.Assertions), len(judged))
		}
		m := newReachModel(cfg)
		for i, j := range judged {
			want := m.broken(cfg.Assertions[i])
			for _, b := range j.Breaks {
				least, is := want[b.Claim]
				if !is {
					t.Errorf("%s is broken, and the model says not: %s\n%s", b.Claim, b.Text, pathText(b))
					continue
				}
				if len(b.Path)-1 != least {
					t.Errorf("%s is broken by %d hops, and the model needs %d\n%s", b.Claim, len(b.Path)-1, least, pathText(b))
				}
				m.checkPath(t, cfg.Assertions[i], b)
				delete(want, b.Claim)
			}
			for claim, least := range want {
				t.Errorf("%s holds, and the model breaks it by %d hops", claim, least)
			}
		}
		if t.Failed() {
			t.Logf("seed %d: %+v", seed, cfg)
		}
	})
}

func pathText(b Break) string {
	var lines []string
	for _, h := range b.Path {
		lines = append(lines, h.String())
	}
	return strings.Join(lines, "\n")
}

// generateReach makes a small configuration in which much leads to much.
func generateReach(r *rand.Rand) *schema.Config {
	cfg := &schema.Config{Root: "/cfg", Project: "acme"}
	maybe := func(oneIn int) bool { return r.IntN(oneIn) == 0 }
	line := 0
	next := func(kind, name string) schema.Object {
		line++
		return object(kind, name, line)
	}
	hosts := []string{"a.com:443", "b.a.com:443", "b.com:22"}
	for i := range 1 + r.IntN(4) {
		n := schema.Network{Object: next("network", "n"+strconv.Itoa(i)), Internal: !maybe(6)}
		cfg.Networks = append(cfg.Networks, n)
		if n.Internal && maybe(2) {
			e := schema.Egress{Object: next("egress", "e"+strconv.Itoa(i)), Network: n.Address}
			for _, h := range append(hosts, "*.a.com:443") {
				if maybe(3) {
					line++
					p, _ := policy.Parse(h, policy.Options{HasReason: true})
					e.Entries = append(e.Entries, schema.EgressEntry{Entry: p, Origin: schema.Origin{File: "main.hcl", Line: line}})
				}
			}
			cfg.Egresses = append(cfg.Egresses, e)
		}
	}
	sources := []struct {
		kind   schema.GrantKind
		source string
	}{
		{schema.GrantDirectory, "/srv/a"},
		{schema.GrantDirectory, "/srv/a/b"},
		{schema.GrantDirectory, "/srv/ab"},
		{schema.GrantDirectory, "/srv/a"},
		{schema.GrantFile, "/srv/a/f"},
		{schema.GrantSecret, "/srv/a/b/s"},
		{schema.GrantVolume, "v"},
		{schema.GrantVolume, "v"},
		{schema.GrantVolume, "w"},
		{schema.GrantData, "store"},
		{schema.GrantSocket, "agent"},
		{schema.GrantSocket, "human"},
		{schema.GrantSocket, "launch"},
		{schema.GrantSocket, "git"},
	}
	for i, s := range sources {
		g := schema.Grant{Object: next("grant", "g"+strconv.Itoa(i)), Kind: s.kind, Source: s.source, Target: "/mnt/" + strconv.Itoa(i)}
		g.Writable = s.kind != schema.GrantSecret && s.kind != schema.GrantSocket && maybe(2)
		cfg.Grants = append(cfg.Grants, g)
	}
	sparse := 2 + r.IntN(9)
	for i := range 1 + r.IntN(6) {
		s := schema.Space{Object: next("space", "s"+strconv.Itoa(i)), Lifecycle: schema.LifecycleService}
		switch {
		case i == 0 && maybe(2):
			s.Lifecycle = schema.LifecycleCore
		case maybe(2):
			s.Lifecycle = schema.LifecycleOnRequest
			if maybe(2) {
				cfg.Roles = append(cfg.Roles, schema.Role{Object: next("role", "r"+strconv.Itoa(i)), Space: s.Address})
			}
		}
		for _, n := range cfg.Networks {
			if maybe(4) {
				s.Networks = append(s.Networks, schema.Attachment{Network: n.Address})
			}
		}
		for _, g := range cfg.Grants {
			if maybe(sparse) {
				s.Grants = append(s.Grants, g.Address)
			}
		}
		if maybe(3) {
			s.Publish = append(s.Publish, schema.Publish{Host: []string{"127.0.0.1", "::1", "192.0.2.1"}[r.IntN(3)], Port: 80 + r.IntN(2), Container: 80, Protocol: "tcp", Origin: s.Origin})
		}
		if maybe(3) {
			s.Loosen = append(s.Loosen, schema.Loosening{Kind: schema.LoosenInit, Values: []string{"false"}, Origin: s.Origin})
		}
		if maybe(5) {
			s.Loosen = append(s.Loosen, schema.Loosening{Kind: schema.LoosenSeccomp, Values: []string{"unconfined"}, Origin: s.Origin})
		}
		cfg.Spaces = append(cfg.Spaces, s)
	}
	pick := func(n int) int { return r.IntN(n) }
	for i := range 1 + r.IntN(3) {
		a := schema.Assertion{Sentence: "a" + strconv.Itoa(i), Everyone: maybe(4), Directly: maybe(4)}
		for _, s := range cfg.Spaces {
			if !a.Everyone && maybe(2) {
				a.From = append(a.From, s.Address)
			}
		}
		for _, role := range cfg.Roles {
			if !a.Everyone && maybe(3) {
				a.From = append(a.From, role.Address)
			}
		}
		for _, h := range append(hosts, "*.a.com:443", "*:*", "a.com:*", "*:22") {
			if maybe(5) {
				p, _ := policy.ParsePattern(h)
				a.Cannot = append(a.Cannot, p)
			}
		}
		a.CannotJoin = append(a.CannotJoin, cfg.Networks[pick(len(cfg.Networks))].Address)
		a.CannotMeet = append(a.CannotMeet, cfg.Spaces[pick(len(cfg.Spaces))].Address)
		a.CannotMount = []schema.MountClaim{
			{Grant: cfg.Grants[pick(len(cfg.Grants))].Address},
			{Path: []string{"/srv", "/srv/a", "/srv/a/b/c", "/srv/ab/c", "/etc"}[pick(5)]},
		}
		a.CannotPublish = []schema.PortClaim{{Any: true}, {OffLoopback: true}, {Port: 80}}[pick(3):]
		if maybe(2) {
			a.MayLoosen = []string{schema.LoosenInit}[pick(2):]
		}
		if maybe(2) {
			a.MayWrite = []schema.Address{cfg.Grants[pick(9)].Address}[pick(2):]
		}
		cfg.Assertions = append(cfg.Assertions, a)
	}
	return cfg
}

// reachModel says by the words of docs/assertions.md what spaces reach.
type reachModel struct {
	cfg *schema.Config
	// far[a][b] is by how many hops a comes to act as b, at least; absent where it doesn't.
	far map[schema.Address]map[schema.Address]int
}

func newReachModel(cfg *schema.Config) *reachModel {
	m := &reachModel{cfg: cfg, far: map[schema.Address]map[schema.Address]int{}}
	for _, a := range cfg.Spaces {
		m.far[a.Address] = map[schema.Address]int{a.Address: 0}
	}
	for range cfg.Spaces { // no shortest way passes a space twice
		for _, start := range cfg.Spaces {
			for _, a := range cfg.Spaces {
				for _, b := range cfg.Spaces {
					so, known := m.far[start.Address][a.Address]
					hops, acts := m.actsThrough(a, b)
					if have, better := m.far[start.Address][b.Address]; known && acts && (!better || so+hops < have) {
						m.far[start.Address][b.Address] = so + hops
					}
				}
			}
		}
	}
	return m
}

func (m *reachModel) grantsOf(s schema.Space) []schema.Grant {
	var out []schema.Grant
	for _, g := range m.cfg.Grants {
		if slices.Contains(s.Grants, g.Address) {
			out = append(out, g)
		}
	}
	return out
}

// least keeps the smaller of two numbers of hops; 0 stands for none yet.
func least(have, hops int) int {
	if have == 0 || hops < have {
		return hops
	}
	return have
}

func (m *reachModel) actsThrough(a, b schema.Space) (int, bool) {
	hops := 0
	for _, g := range m.grantsOf(a) {
		if g.Kind == schema.GrantSocket {
			if (g.Source == "agent" || g.Source == "human") && b.Lifecycle == schema.LifecycleCore {
				hops = least(hops, 2)
			}
			for _, role := range m.cfg.Roles {
				if g.Source == "launch" && role.Space == b.Address {
					hops = least(hops, 3)
				}
			}
			continue
		}
		for _, o := range m.grantsOf(b) {
			if o.Writable && modelRoom(g) && modelRoom(o) && modelOverlap(modelPath(g), modelPath(o)) {
				hops = least(hops, modelVia(g, o, 2))
			}
		}
	}
	return hops, hops > 0
}

// modelVia is one hop more where two grants aren't one.
func modelVia(a, b schema.Grant, hops int) int {
	if a.Address == b.Address {
		return hops
	}
	return hops + 1
}

func modelRoom(g schema.Grant) bool {
	return g.Kind != schema.GrantFile && g.Kind != schema.GrantSecret && g.Kind != schema.GrantSocket
}

func modelPath(g schema.Grant) string {
	if g.Kind == schema.GrantDirectory || g.Kind == schema.GrantFile || g.Kind == schema.GrantSecret {
		return g.Source
	}
	return "/" + string(g.Kind) + "/" + g.Source
}

func modelOverlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// broken are the claims of an assertion that are broken, with the fewest hops.
func (m *reachModel) broken(a schema.Assertion) map[string]int {
	out := map[string]int{}
	for _, start := range m.cfg.Spaces {
		prefix := 1
		if a.Everyone || slices.Contains(a.From, start.Address) {
			prefix = 0
		} else if !slices.ContainsFunc(m.cfg.Roles, func(r schema.Role) bool {
			return r.Space == start.Address && slices.Contains(a.From, r.Address)
		}) {
			continue
		}
		for _, s := range m.cfg.Spaces {
			far, reached := m.far[start.Address][s.Address]
			if !reached || a.Directly && s.Address != start.Address {
				continue
			}
			for claim, hops := range m.brokenAt(a, start, s) {
				if have, known := out[claim]; !known || prefix+far+hops < have {
					out[claim] = prefix + far + hops
				}
			}
		}
	}
	return out
}

// brokenAt are the claims that one space breaks by what it is given, for another that
// acts through it or is it.
func (m *reachModel) brokenAt(a schema.Assertion, start, s schema.Space) map[string]int {
	out := map[string]int{}
	found := func(claim string, hops int) {
		if have, known := out[claim]; !known || hops < have {
			out[claim] = hops
		}
	}
	for _, at := range s.Networks {
		for _, n := range m.cfg.Networks {
			if n.Address != at.Network {
				continue
			}
			for _, p := range a.Cannot {
				if !n.Internal {
					found("cannot "+strconv.Quote(p.String()), 1)
				}
				for _, e := range m.cfg.Egresses {
					for _, entry := range e.Entries {
						if e.Network == n.Address && p.Overlaps(entry.Entry) {
							found("cannot "+strconv.Quote(p.String()), 3)
						}
					}
				}
			}
			if slices.Contains(a.CannotJoin, n.Address) {
				found("cannot_join "+n.Address.String(), 1)
			}
		}
	}
	for _, other := range m.cfg.Spaces {
		if hops, meets := m.meets(s, other); slices.Contains(a.CannotMeet, other.Address) && other.Address != start.Address && meets {
			found("cannot_meet "+other.Address.String(), hops)
		}
	}
	for _, g := range m.grantsOf(s) {
		for _, c := range a.CannotMount {
			for _, o := range m.cfg.Grants {
				if o.Address == c.Grant && modelOverlap(modelPath(g), modelPath(o)) {
					found("cannot_mount "+c.Grant.String(), modelVia(g, o, 1))
				}
			}
			if c.Path != "" && modelOverlap(modelPath(g), c.Path) {
				hops := 2
				if modelPath(g) == c.Path {
					hops = 1
				}
				found("cannot_mount "+strconv.Quote(c.Path), hops)
			}
		}
		if a.MayWrite != nil && g.Writable && !slices.Contains(a.MayWrite, g.Address) {
			found("may_write doesn't name "+g.Address.String(), 1)
		}
	}
	for _, p := range s.Publish {
		for _, c := range a.CannotPublish {
			switch {
			case c.Any:
				found(`cannot_publish "*"`, 1)
			case c.OffLoopback && p.Host == "192.0.2.1":
				found(`cannot_publish "off-loopback"`, 1)
			case c.Port == p.Port:
				found("cannot_publish "+strconv.Itoa(p.Port), 1)
			}
		}
	}
	for _, l := range s.Loosen {
		if a.MayLoosen != nil && !slices.Contains(a.MayLoosen, l.Kind) {
			found("may_loosen doesn't name "+strconv.Quote(l.Kind), 1)
		}
	}
	return out
}

// meets says by how many hops a space meets another, which may be itself: then some
// other space is asking.
func (m *reachModel) meets(s, other schema.Space) (int, bool) {
	if s.Address == other.Address {
		return 0, true
	}
	hops := 0
	for _, n := range s.Networks {
		if slices.ContainsFunc(other.Networks, func(a schema.Attachment) bool { return a.Network == n.Network }) {
			hops = least(hops, 2)
		}
	}
	broker := func(g schema.Grant) bool {
		return g.Kind == schema.GrantSocket && (g.Source == "agent" || g.Source == "human")
	}
	for _, g := range m.grantsOf(s) {
		if broker(g) && other.Lifecycle == schema.LifecycleCore {
			hops = least(hops, 2)
		}
		for _, o := range m.grantsOf(other) {
			if (g.Writable || o.Writable) && modelOverlap(modelPath(g), modelPath(o)) {
				hops = least(hops, modelVia(g, o, 2))
			}
		}
	}
	if s.Lifecycle == schema.LifecycleCore && slices.ContainsFunc(m.grantsOf(other), broker) {
		hops = least(hops, 2)
	}
	return hops, hops > 0
}

// checkPath demands that a path begins with who the assertion is about, that no place
// is on it twice, and that each hop stands in the files.
func (m *reachModel) checkPath(t *testing.T, a schema.Assertion, b Break) {
	t.Helper()
	first := b.Path[0].What
	if a.Everyone && !strings.HasPrefix(first, "space.") || !a.Everyone && !slices.ContainsFunc(a.From, func(addr schema.Address) bool { return addr.String() == first }) {
		t.Errorf("the path begins with %s, and the assertion is about %v", first, a.From)
	}
	spaces := map[string]bool{}
	for _, h := range b.Path {
		if strings.HasPrefix(h.What, "space.") {
			if spaces[h.What] {
				t.Errorf("%s is on the path twice\n%s", h.What, pathText(b))
			}
			spaces[h.What] = true
		}
		written := h.Origin.File != ""
		if unwritten := strings.HasPrefix(h.What, "/"); !written && !unwritten {
			t.Errorf("%s stands nowhere\n%s", h.What, pathText(b))
		}
	}
	// The space that is met is no way to anything.
	if through := len(spaces) > 1; through != b.Indirect && !strings.HasPrefix(b.Claim, "cannot_meet") {
		t.Errorf("indirect is %t\n%s", b.Indirect, pathText(b))
	}
}
