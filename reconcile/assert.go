package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// Judgement is an assertion of the files and how it stands with all that they give.
type Judgement struct {
	Sentence string
	Origin   schema.Origin
	// Breaks are what breaks it; none where it holds.
	Breaks []Break
}

// Holds tells whether nothing breaks it.
func (j Judgement) Holds() bool { return len(j.Breaks) == 0 }

// Break is one thing that an assertion rules out and the files give.
type Break struct {
	// Claim is the part of the assertion that is broken: `cannot "github.com:443"`.
	Claim string
	// Text says what is reached: "space.session reaches github.com:443 through space.core".
	Text string
	// Path leads from the space to it, by as few hops as can be.
	Path []Hop
	// Others are the addresses of other spaces that break the same claim alike.
	Others []string
	// Indirect is true where another space is on the path.
	Indirect bool
	Origin   schema.Origin // of the claim
}

// Hop is one step of a path.
type Hop struct {
	What   string // an address, or what stands in the block before
	How    string // what there is to say of it; may be empty
	Origin schema.Origin
}

// Judge says how each assertion stands with what the files ask for. It is pure: with the
// facts of a host's files paths are compared by where they lead, without them by name.
func Judge(d Desired, h HostFacts) []Judgement {
	if len(d.Assertions) == 0 {
		return nil
	}
	j := judge{newReachability(d, h), h}
	out := make([]Judgement, len(d.Assertions))
	found := make([]findings, len(d.Assertions))
	claimed := make([][]claim, len(d.Assertions))
	about := make([]map[int]*schema.Role, len(d.Assertions))
	for i, a := range d.Assertions {
		out[i] = Judgement{Sentence: a.Sentence, Origin: a.Origin}
		claimed[i], about[i] = j.claims(a), j.about(a)
		found[i] = findings{}
	}
	w := j.newWalk()
	for start := range j.spaces {
		walked := false
		for i, a := range d.Assertions {
			role, is := about[i][start]
			if !is {
				continue
			}
			if !walked {
				j.walk(w, start)
				walked = true
			}
			for _, c := range claimed[i] {
				j.find(found[i], c, w, role, a.Directly)
			}
		}
	}
	for i := range out {
		out[i].Breaks = j.breaks(found[i], d.Assertions[i])
	}
	return out
}

type judge struct {
	*reachability
	host HostFacts
}

// about are the spaces that an assertion is about, each with the role that it is about
// as, if it is named by one alone.
func (j *judge) about(a schema.Assertion) map[int]*schema.Role {
	out := map[int]*schema.Role{}
	if a.Everyone {
		for i := range j.spaces {
			out[i] = nil
		}
		return out
	}
	for i := range j.roles {
		if slices.Contains(a.From, j.roles[i].Address) {
			if s, ok := j.spaceAt[j.roles[i].Space]; ok && out[s] == nil {
				out[s] = &j.roles[i]
			}
		}
	}
	for _, addr := range a.From {
		if s, ok := j.spaceAt[addr]; ok {
			out[s] = nil
		}
	}
	return out
}

// finding is the shortest path to what breaks a claim, among those who do.
type finding struct {
	claim  claim
	value  string // the breach's
	path   []Hop
	space  int
	others []int
	// through is the last other space on the path, if there is one.
	through string
}

// findings are by claim and what breaks it.
type findings map[[2]string]*finding

// find looks for what breaks a claim in all that a space reaches.
func (j *judge) find(found findings, c claim, w *walk, role *schema.Role, directly bool) {
	if c.except == w.start {
		return
	}
	nearest := map[string]breach{}
	length := func(b breach) int { return w.steps[j.number(b.node)].depth + len(b.rest) }
	for _, b := range c.breaches {
		s := w.steps[j.number(b.node)]
		if !s.seen || directly && !s.direct {
			continue
		}
		if have, known := nearest[b.value]; !known || length(b) < length(have) {
			nearest[b.value] = b
		}
	}
	for value, b := range nearest {
		hops := length(b) + 1
		if role != nil {
			hops++
		}
		k := [2]string{c.attribute + " " + c.value, value}
		f := found[k]
		switch {
		case f == nil:
			f = &finding{claim: c, value: value}
			found[k] = f
		case hops < len(f.path):
			f.others = append(f.others, f.space)
		default:
			f.others = append(f.others, w.start)
			continue
		}
		f.path, f.space, f.through = append(j.path(w, b.node), b.rest...), w.start, j.through(w, b.node)
		if role != nil {
			f.path[0].How = "which that runs"
			f.path = slices.Insert(f.path, 0, Hop{role.Address.String(), "", role.Origin})
		}
	}
}

// through is the last other space on the path to a node, if there is one.
func (j *judge) through(w *walk, n node) string {
	for ; n != (node{nodeSpace, w.start}); n = w.steps[j.number(n)].from {
		if n.kind == nodeSpace {
			return j.spaces[n.i].Address.String()
		}
	}
	return ""
}

// breaks words what was found, in the order of the claims.
func (j *judge) breaks(found findings, a schema.Assertion) []Break {
	keys := make([][2]string, 0, len(found))
	for k := range found {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	var out []Break
	for _, k := range keys {
		f := found[k]
		says, value := f.claim.says, f.claim.value
		if value == "" {
			says, value = fmt.Sprintf(says, f.value), "doesn't name "+f.value
		}
		b := Break{
			Claim:    f.claim.attribute + " " + value,
			Text:     j.spaces[f.space].Address.String() + " " + says,
			Path:     f.path,
			Indirect: f.through != "",
			Origin:   a.At(f.claim.attribute),
		}
		if b.Indirect && !strings.HasSuffix(b.Text, " "+f.through) {
			b.Text += " through " + f.through
		}
		for _, other := range f.others {
			b.Others = append(b.Others, j.spaces[other].Address.String())
		}
		slices.Sort(b.Others)
		out = append(out, b)
	}
	return out
}

// BrokenAssertions are one refusal for each break.
func BrokenAssertions(judged []Judgement) []Refusal {
	var out []Refusal
	for _, a := range judged {
		for _, b := range a.Breaks {
			out = append(out, b.refusal(a.Sentence))
		}
	}
	return out
}

// refusal spells a break with its path, a hop a line.
func (b Break) refusal(sentence string) Refusal {
	lines := []string{fmt.Sprintf("%q is broken: %s.", sentence, b.Text)}
	for i, h := range b.Path {
		arrow := ""
		if i > 0 {
			arrow = "-> "
		}
		lines = append(lines, "  "+arrow+h.String())
	}
	if len(b.Others) > 0 {
		lines = append(lines, fmt.Sprintf("The same is so of %s.", several(b.Others)))
	}
	fix := "Take one of these hops out of the files, or change the assertion."
	if b.Indirect {
		fix += " With directly = true it is about what spaces are given themselves."
	}
	return Refusal{Code: CodeAssertionBroken, Text: strings.Join(lines, "\n"), Fix: fix, Origin: b.Origin}
}
