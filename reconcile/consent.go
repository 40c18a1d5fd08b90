package reconcile

import (
	"slices"
	"strings"
)

// Consent is what somebody who watches the files has let through so far, and decides by
// it what of a plan needs a person's yes. The zero value has let nothing through.
type Consent struct {
	granted map[Access]bool // as Access.bare has them
	// applied is what each space was asked to be when it was let through, by address.
	// Access alone tells nothing of what uses it: another command isn't what was approved.
	applied map[string][]Field
}

// asking is all that the files and the host ask of a space.
type asking struct {
	container Container // with the digests of its file grants
	input     string    // what its image is made from; empty for one that isn't made here
}

func (a asking) fields() []Field {
	f := fieldList{withContent(a.container)}
	f.add("image.input", a.input)
	return f.sorted()
}

// Part is some of a plan's items that hang together: none of them needs an item that
// isn't in it.
type Part struct {
	// Items are the ids, in the plan's order, and Subjects what they are about, each once.
	Items    []string
	Subjects []string
	// Asks say why a person has to be asked, "create space.web: it widens access"; empty
	// where nobody has to.
	Asks []string
}

// Parts splits a plan. What needs nobody's yes neither widens access nor stops, replaces
// or destroys anything; access that was carried out before, and is still asked for by the
// same container, isn't widened by bringing it back. What hangs together is asked
// together: half a change may be worse than none.
func (c *Consent) Parts(p *Plan) []Part {
	group := together(p.Items)
	widens := c.widened(p)
	at := map[int]int{} // of a group's first item, the index of its part
	var out []Part
	for i, item := range p.Items {
		if _, shown := item.Step.(NotYet); shown {
			continue
		}
		n, begun := at[group[i]]
		if !begun {
			n = len(out)
			at[group[i]] = n
			out = append(out, Part{})
		}
		part := &out[n]
		part.Items = append(part.Items, item.ID)
		if !slices.Contains(part.Subjects, item.Subject) {
			part.Subjects = append(part.Subjects, item.Subject)
		}
		if why := asks(item, widens); why != "" {
			part.Asks = append(part.Asks, item.ID+": "+why)
		}
	}
	return out
}

// asks is why an item needs a yes; empty if it needs none.
func asks(i Item, widens map[string]bool) string {
	switch s := i.Step.(type) {
	case DisconnectSpace:
		if s.Foreign {
			return "it is about a container that isn't this project's"
		}
	case BuildImage:
		if s.Image.Build != nil {
			return "it runs what a Dockerfile says"
		}
	case RemoveSpace, RemoveNetwork, RemoveVolume:
		return "it destroys"
	case ReplaceSpace:
		return "it replaces"
	}
	switch {
	case i.Effects.Has(Destroys):
		return "it destroys"
	case i.Effects.Has(Replaces):
		return "it replaces"
	case i.Effects.Has(Widens) && widens[i.Subject]:
		return "it widens access"
	case widens[hostsOfOthers] && strings.HasPrefix(i.Subject, "egress."):
		return "it widens access"
	}
	return ""
}

// hostsOfOthers stands for the spaces that reach more hosts once a proxy is changed. No
// space is called so.
const hostsOfOthers = ""

// widened are the subjects that gain what wasn't let through before.
func (c *Consent) widened(p *Plan) map[string]bool {
	out := map[string]bool{}
	for _, a := range p.Access {
		if !a.Gains || c.granted[a.bare()] && c.knows(p, a.Space) {
			continue
		}
		out[a.Space] = true
		if a.Kind == AccessHost {
			out[hostsOfOthers] = true
		}
	}
	return out
}

// together gives each item the index of the first one that it hangs together with.
func together(items []Item) []int {
	index := make(map[string]int, len(items))
	group := make([]int, len(items))
	for i, item := range items {
		index[item.ID], group[i] = i, i
	}
	var first func(i int) int
	first = func(i int) int {
		if group[i] != i {
			group[i] = first(group[i])
		}
		return group[i]
	}
	for i, item := range items {
		for _, need := range item.Needs {
			if j, known := index[need]; known {
				a, b := first(i), first(j)
				group[max(a, b)] = min(a, b)
			}
		}
	}
	for i := range group {
		group[i] = first(i)
	}
	return group
}

// knows tells whether a space is asked to be what it was when it was let through.
func (c *Consent) knows(p *Plan, subject string) bool {
	before, known := c.applied[subject]
	now, asked := p.asking[subject]
	return known && asked && slices.Equal(before, now.fields())
}

// Carried takes a plan whose items were all carried out for let through.
func (c *Consent) Carried(p *Plan) {
	if c.granted == nil {
		c.granted, c.applied = map[Access]bool{}, map[string][]Field{}
	}
	steps := map[string][]Step{}
	for _, i := range p.Items {
		steps[i.Subject] = append(steps[i.Subject], i.Step)
	}
	whole := map[string]bool{}
	for subject, done := range steps {
		now, asked := p.asking[subject]
		if !asked {
			continue
		}
		whole[subject] = slices.ContainsFunc(done, runsWhole)
		before, known := c.applied[subject]
		if fields := now.fields(); whole[subject] || known && reaches(done, before, fields) {
			c.applied[subject] = fields
		}
	}
	for _, a := range p.Access {
		if len(steps[a.Space]) > 0 && a.Gains {
			c.granted[a.bare()] = true
		}
	}
	for _, a := range p.Reached {
		if whole[a.Space] {
			c.granted[a.bare()] = true
		}
	}
}

// runsWhole is true for a step after which all that is asked of a space runs.
func runsWhole(s Step) bool {
	switch s.(type) {
	case CreateSpace, ReplaceSpace, StartSpace:
		return true
	}
	return false
}

// reaches tells whether steps that change a container as it runs make what was let
// through what is asked now. What else differs came about in another way.
func reaches(done []Step, before, now []Field) bool {
	for _, d := range differences(before, now) {
		set, element, _, _ := cutKey(d.path)
		if !slices.ContainsFunc(done, func(s Step) bool {
			switch s := s.(type) {
			case UpdateSpace:
				return slices.Contains(s.Fields, d.path)
			case ConnectSpace:
				return set == "network" && element == s.Network
			case DisconnectSpace:
				return set == "network" && element == s.Network
			}
			return false
		}) {
			return false
		}
	}
	return true
}

// Asked forgets what the files no longer ask for: giving it again later is new.
func (c *Consent) Asked(p *Plan) {
	asked := make(map[Access]bool, len(p.Reached))
	for _, a := range p.Reached {
		asked[a.bare()] = true
	}
	for a := range c.granted {
		if !asked[a] {
			delete(c.granted, a)
		}
	}
	for subject := range c.applied {
		if _, is := p.asking[subject]; !is {
			delete(c.applied, subject)
		}
	}
}

// Only is the plan of some of its items, by id, and of the access that they are about.
// The items must hang together with no other.
func (p *Plan) Only(ids []string) *Plan {
	part := *p
	part.Items, part.Access = nil, nil
	subjects := map[string]bool{}
	for _, i := range p.Items {
		if slices.Contains(ids, i.ID) {
			part.Items = append(part.Items, i)
			subjects[i.Subject] = true
		}
	}
	for _, a := range p.Access {
		if subjects[a.Space] {
			part.Access = append(part.Access, a)
		}
	}
	return &part
}
