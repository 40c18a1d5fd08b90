package schema

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"spaces/gatekeeper/policy"
)

const (
	// everything stands for every space, and for every port.
	everything  = "*"
	offLoopback = "off-loopback"
)

// claims are the attributes of an assertion that say something of spaces.
var claims = []string{
	"cannot", "cannot_join", "cannot_meet", "cannot_mount", "cannot_publish", "may_loosen", "may_write",
}

// decodeAssertions reads the assertions in the order of their sentences, each of which
// stands once.
func (l *loader) decodeAssertions() {
	blocks := slices.DeleteFunc(slices.Clone(l.asserts), func(b *hclsyntax.Block) bool { return len(b.Labels) == 0 })
	slices.SortStableFunc(blocks, func(a, b *hclsyntax.Block) int { return cmp.Compare(a.Labels[0], b.Labels[0]) })
	for i, block := range blocks {
		sentence, where := block.Labels[0], at(block.LabelRanges[0]).within(block.DefRange())
		switch {
		case !printableLine(sentence):
			l.report(diagAssertSentence(where))
		case i > 0 && sentence == blocks[i-1].Labels[0]:
			l.report(diagDuplicateName("assert", sentence, block.DefRange(), blocks[i-1].DefRange()))
		}
		l.config.Assertions = append(l.config.Assertions, l.decodeAssertion(sentence, block))
	}
}

func (l *loader) decodeAssertion(sentence string, block *hclsyntax.Block) Assertion {
	object := &Object{Origin: originOf(block.DefRange()), Origins: map[string]Origin{}}
	r := &reader{l: l, body: block.Body, object: object}
	a := Assertion{Sentence: sentence, Origin: object.Origin, Origins: object.Origins}
	r.from(&a)
	a.Directly, _ = r.boolean("directly")
	said := false
	for _, name := range claims {
		said = said || r.hasValue(name)
	}
	if !said {
		l.report(diagAssertNothing(at(block.DefRange())))
		return a
	}
	r.hosts(&a)
	r.mounts(&a)
	a.CannotJoin = r.forbiddenRefs("cannot_join", kindNamed("network"))
	a.CannotMeet = r.forbiddenRefs("cannot_meet", kindNamed("space"))
	r.ports(&a)
	a.MayWrite, _ = r.severalRefs("may_write", kindNamed("grant"))
	r.loosenable(&a)
	return a
}

// from reads who an assertion is about.
func (r *reader) from(a *Assertion) {
	const name = "from"
	if v, ok := r.value(name); ok && v.Type() == cty.String && v.AsString() == everything {
		a.Everyone = true
		return
	}
	from, ok := r.severalRefs(name, kindNamed("space"), kindNamed("role"))
	if !r.need(name, ok) {
		return
	}
	if len(from) == 0 {
		r.l.report(diagAssertNobody(r.place(name)))
	}
	a.From = from
}

func (r *reader) hosts(a *Assertion) {
	const name = "cannot"
	for _, it := range r.forbidden(name) {
		s, ok := r.text(name, it, "a host and port")
		if !ok {
			continue
		}
		p, err := policy.ParsePattern(s)
		var fault *policy.EntryError
		switch {
		case errors.As(err, &fault):
			r.fail(diagAssertHost(s, fault, it.at))
		case slices.Contains(a.Cannot, p):
			r.fail(diagListedTwice(name, p.String(), it.at))
		default:
			a.Cannot = append(a.Cannot, p)
		}
	}
	slices.SortFunc(a.Cannot, func(a, b policy.Pattern) int { return cmp.Compare(a.String(), b.String()) })
}

func (r *reader) mounts(a *Assertion) {
	const name = "cannot_mount"
	for _, it := range r.forbidden(name) {
		var claim MountClaim
		if addr, err := referenceOf(it.value, kindNamed("grant")); err == nil {
			claim.Grant = addr
		} else {
			s, ok := r.text(name, it, "a reference to a grant block, or a path of the host")
			if !ok {
				continue
			}
			if claim.Path, ok = cleanSource(s); !ok {
				r.fail(diagHostPath(name, s, it.at))
				continue
			}
		}
		if slices.Contains(a.CannotMount, claim) {
			r.fail(diagListedTwice(name, claim.String(), it.at))
			continue
		}
		a.CannotMount = append(a.CannotMount, claim)
	}
	slices.SortFunc(a.CannotMount, func(a, b MountClaim) int { return cmp.Compare(a.String(), b.String()) })
}

func (r *reader) ports(a *Assertion) {
	const name = "cannot_publish"
	for _, it := range r.forbidden(name) {
		s, ok := r.text(name, it, "a port")
		if !ok {
			continue
		}
		var claim PortClaim
		switch s {
		case everything:
			claim.Any = true
		case offLoopback:
			claim.OffLoopback = true
		default:
			port, err := strconv.ParseUint(s, 10, 16)
			if err != nil || port == 0 {
				r.fail(diagAssertPort(s, it.at))
				continue
			}
			claim.Port = int(port)
		}
		if slices.Contains(a.CannotPublish, claim) {
			r.fail(diagListedTwice(name, s, it.at))
			continue
		}
		a.CannotPublish = append(a.CannotPublish, claim)
	}
	slices.SortFunc(a.CannotPublish, func(a, b PortClaim) int { return cmp.Compare(a.String(), b.String()) })
}

func (r *reader) loosenable(a *Assertion) {
	const name = "may_loosen"
	items, ok := r.several(name)
	if !ok {
		return
	}
	a.MayLoosen = []string{}
	for _, it := range items {
		kind, ok := r.text(name, it, "a kind of loosening")
		switch {
		case !ok:
		case loosenKinds[kind] == nil:
			r.fail(diagLoosenKind(kind, loosenMeant(kind), it.at.subject, it.at.context))
		case slices.Contains(a.MayLoosen, kind):
			r.fail(diagListedTwice(name, kind, it.at))
		default:
			a.MayLoosen = append(a.MayLoosen, kind)
		}
	}
	if len(a.MayLoosen) == len(loosenKinds) {
		r.fail(diagAssertIdle("\"may_loosen\" names every kind of loosening there is", r.place(name)))
	}
	slices.Sort(a.MayLoosen)
}

// forbidden are the elements of a list of what can't be; one that names nothing would
// always hold.
func (r *reader) forbidden(name string) []item[cty.Value] {
	items, ok := r.several(name)
	if ok && len(items) == 0 {
		r.fail(diagAssertEmpty(name, r.place(name)))
	}
	return items
}

func (r *reader) forbiddenRefs(name string, k *kind) []Address {
	addrs, ok := r.severalRefs(name, k)
	if ok && len(addrs) == 0 {
		r.fail(diagAssertEmpty(name, r.place(name)))
	}
	return addrs
}

// several is an attribute's value as a list: what stands alone is a list of one, and a
// whole block with for_each is all its instances.
func (r *reader) several(name string) ([]item[cty.Value], bool) {
	v, ok := r.value(name)
	if !ok {
		return nil, false
	}
	list := []item[cty.Value]{{v, r.place(name)}}
	if ty := v.Type(); ty.IsTupleType() || ty.IsListType() || ty.IsSetType() {
		list, _ = r.elements(name, v, "a list")
	}
	flat := []item[cty.Value]{}
	for _, it := range list {
		instances, ok := references(it.value)
		if !ok {
			instances = []cty.Value{it.value}
		}
		for _, one := range instances {
			flat = append(flat, item[cty.Value]{one, it.at})
		}
	}
	return flat, true
}

// references are the values of a whole block with for_each, by key.
func references(v cty.Value) ([]cty.Value, bool) {
	for _, k := range kinds {
		if keys, ok := instancesOf(v, k); ok && !v.IsNull() {
			refs := make([]cty.Value, 0, len(keys))
			for _, key := range keys {
				refs = append(refs, v.GetAttr(key))
			}
			return refs, true
		}
	}
	return nil, false
}

// severalRefs is refs for one reference too, and for objects of several kinds; sorted.
func (r *reader) severalRefs(name string, allowed ...*kind) ([]Address, bool) {
	items, ok := r.several(name)
	if !ok {
		return nil, false
	}
	addrs, good := []Address{}, true
	for _, it := range items {
		addr, ok := referenceAmong(it.value, allowed)
		switch {
		case !ok:
			r.fail(r.notReference(name, it.value, allowed[0], r.body.Attributes[name].Expr, it.at))
			good = false
		case slices.Contains(addrs, addr):
			r.fail(diagReferenceTwice(name, addr, it.at))
			good = false
		default:
			addrs = append(addrs, addr)
		}
	}
	slices.SortFunc(addrs, compareAddresses)
	return addrs, good
}

func referenceAmong(v cty.Value, allowed []*kind) (Address, bool) {
	for _, k := range allowed {
		if addr, err := referenceOf(v, k); err == nil {
			return addr, true
		}
	}
	return Address{}, false
}

// text is an element that is a string or a number.
func (r *reader) text(name string, it item[cty.Value], want string) (string, bool) {
	s, err := convert.Convert(it.value, cty.String)
	switch {
	case it.value.IsNull():
		r.fail(diagWrongType(name, want, "null", it.at))
	case err != nil:
		r.fail(diagWrongType(name, want, typeName(it.value), it.at))
	default:
		return s.AsString(), true
	}
	return "", false
}
