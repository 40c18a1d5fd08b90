package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"spaces/gatekeeper/policy"
	"spaces/schema"
)

// claim is one thing that an assertion says.
type claim struct {
	attribute string // "cannot"
	value     string // as the files spell it; empty where each breach has its own
	says      string // how a breach reads: "reaches github.com:443", or with %s for the value
	// except is a space that never breaks it, or -1.
	except int
	// breaches are all that break it, whoever reaches them.
	breaches []breach
}

// breach is what breaks a claim at a node: the hops from there on, and what to call it.
type breach struct {
	value string
	rest  []Hop
	node  node
}

// here is a breach at the node itself.
var here = []breach{{}}

func (j *judge) claims(a schema.Assertion) []claim {
	var out []claim
	add := func(attribute, value, says string, broken func(node) []breach) {
		out = append(out, claim{attribute, value, says, -1, j.breaches(broken)})
	}
	for _, p := range a.Cannot {
		add("cannot", strconv.Quote(p.String()), "reaches "+p.String(), j.reaches(p))
	}
	for _, addr := range a.CannotJoin {
		network := node{nodeNetwork, j.networkOf[addr]}
		add("cannot_join", addr.String(), "is on "+addr.String(), func(n node) []breach {
			if n == network {
				return here
			}
			return nil
		})
	}
	for _, addr := range a.CannotMeet {
		add("cannot_meet", addr.String(), "meets "+addr.String(), j.meets(j.spaceAt[addr]))
		out[len(out)-1].except = j.spaceAt[addr]
	}
	for _, m := range a.CannotMount {
		value := m.String()
		if m.Path != "" {
			value = strconv.Quote(m.Path)
		}
		add("cannot_mount", value, "is given "+m.String(), j.isGiven(m))
	}
	for _, p := range a.CannotPublish {
		value := p.String()
		if p.Port == 0 {
			value = strconv.Quote(value)
		}
		add("cannot_publish", value, publishes(p), j.publishes(p))
	}
	if a.MayLoosen != nil {
		add("may_loosen", "", "loosens %s", j.loosens(a.MayLoosen))
	}
	if a.MayWrite != nil {
		add("may_write", "", "may write %s", j.writes(a.MayWrite))
	}
	return out
}

// breaches are what breaks a claim at every node, as it is told of one.
func (j *judge) breaches(broken func(node) []breach) []breach {
	var out []breach
	for kind := range nodeKinds {
		for i := range j.count(kind) {
			n := node{kind, i}
			for _, b := range broken(n) {
				b.node = n
				out = append(out, b)
			}
		}
	}
	return out
}

// reaches finds a list that lets through what a pattern is about, and a network that
// lets everything through.
func (j *judge) reaches(p policy.Pattern) func(node) []breach {
	return func(n node) []breach {
		switch n.kind {
		case nodeNetwork:
			if !j.networks[n.i].Internal {
				return here
			}
		case nodeList:
			for _, e := range j.lists[n.i].Entries {
				if !p.Overlaps(e.Entry) {
					continue
				}
				how := ""
				if e.Entry.Wide() || p.Address && !e.Entry.Address {
					how = e.Entry.Explain()
				}
				return []breach{{rest: []Hop{{"allow " + strconv.Quote(e.Entry.String()), how, e.Origin}}}}
			}
		}
		return nil
	}
}

// meets finds a space on a network, behind a socket on either side of it, or at the
// other end of files that one of the two may write.
func (j *judge) meets(other int) func(node) []breach {
	is := j.spaces[other]
	return func(n node) []breach {
		end := func(how string, before ...Hop) []breach {
			return []breach{{rest: append(before, j.spaceHop(other, how))}}
		}
		switch n.kind {
		case nodeSpace:
			if n.i == other {
				return here
			}
			if !slices.Contains(j.cores, n.i) {
				return nil
			}
			for _, g := range j.held(other) {
				if servedByCore(j.grants[g]) {
					return end("which has it", j.grantHop(g, "which it serves"))
				}
			}
		case nodeNetwork:
			if _, on := is.Container.Networks[j.networks[n.i].Name]; on {
				return end("which is on it too")
			}
		case nodeGrant:
			g := j.grants[n.i]
			switch {
			case servedByCore(g) && is.Lifecycle == schema.LifecycleCore:
				return end("which serves it")
			case g.Writable && slices.Contains(j.holders[n.i], other):
				return end("which has it too")
			}
			for _, theirs := range j.sharing(n.i) {
				t := j.grants[theirs]
				if theirs != n.i && (g.Writable || t.Writable) && slices.Contains(j.holders[theirs], other) {
					return end("which has that", j.grantHop(theirs, j.relation(n.i, theirs)))
				}
			}
		}
		return nil
	}
}

// isGiven finds a grant that gives any of what a claim names.
func (j *judge) isGiven(m schema.MountClaim) func(node) []breach {
	grant, isGrant := j.grantAt[m.Grant]
	var facts PathFacts
	if isGrant {
		facts = j.facts[grant]
	} else {
		facts = j.host.at(m.Path)
	}
	return func(n node) []breach {
		switch {
		case n.kind != nodeGrant || !overlap(j.facts[n.i], facts):
			return nil
		case isGrant && n.i == grant:
			return here
		case isGrant:
			return []breach{{rest: []Hop{j.grantHop(grant, j.relation(n.i, grant))}}}
		}
		if how := relation(facts, j.facts[n.i]); facts.Resolved != j.facts[n.i].Resolved {
			return []breach{{rest: []Hop{{What: m.Path, How: how}}}}
		}
		return here
	}
}

func publishes(p schema.PortClaim) string {
	switch {
	case p.Any:
		return "publishes a port"
	case p.OffLoopback:
		return "publishes a port off loopback"
	}
	return "publishes port " + strconv.Itoa(p.Port)
}

func (j *judge) publishes(p schema.PortClaim) func(node) []breach {
	return func(n node) []breach {
		if n.kind != nodeSpace {
			return nil
		}
		for _, published := range j.spaces[n.i].Publish {
			on := hostPort(published)
			if p.Any || p.OffLoopback && !loopback(on) || p.Port == published.Port {
				port := fmt.Sprintf("port %d/%s", published.Container, published.Protocol)
				return []breach{{rest: []Hop{{port, "published on " + on, published.Origin}}}}
			}
		}
		return nil
	}
}

func (j *judge) loosens(may []string) func(node) []breach {
	return func(n node) []breach {
		if n.kind != nodeSpace {
			return nil
		}
		var out []breach
		for _, l := range j.spaces[n.i].Loosen {
			if !slices.Contains(may, l.Kind) {
				kind := strconv.Quote(l.Kind)
				out = append(out, breach{value: kind, rest: []Hop{{"loosen " + kind, loosenedText(l), l.Origin}}})
			}
		}
		return out
	}
}

// loosenedText is what a loosening gives, as a list.
func loosenedText(l schema.Loosening) string {
	values := slices.Clone(l.Values)
	for _, g := range l.Grants {
		values = append(values, g.String())
	}
	return strings.Join(values, ", ")
}

func (j *judge) writes(may []schema.Address) func(node) []breach {
	return func(n node) []breach {
		if n.kind != nodeGrant || !j.grants[n.i].Writable || slices.Contains(may, j.grants[n.i].Address) {
			return nil
		}
		return []breach{{value: j.grants[n.i].Address.String()}}
	}
}
