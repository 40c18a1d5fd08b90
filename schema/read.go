package schema

import (
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// reader reads the attributes of one body for one instance. Each method reports what
// is wrong with its attribute; ok is false for an attribute that is absent, null or
// wrong, and the instance is then broken unless the attribute was merely absent.
type reader struct {
	l    *loader
	inst *instance // nil outside object blocks
	body *hclsyntax.Body
	// prefix is the body's path in the object: "", "limits.", "publish[0].".
	prefix string
	object *Object // whose origins are recorded; nil outside object blocks
}

// item is one element of a list and where it was written.
type item[T any] struct {
	value T
	at    place
}

// reader starts on an object block.
func (l *loader) reader(inst *instance) *reader {
	return &reader{l: l, inst: inst, body: inst.decl.block.Body, object: &Object{
		Address: inst.addr,
		Origin:  originOf(inst.decl.block.DefRange()),
		Origins: map[string]Origin{},
	}}
}

// inner reads a nested block at the given path.
func (r *reader) inner(block *hclsyntax.Block, path string) *reader {
	inner := *r
	inner.body = block.Body
	inner.prefix = path + "."
	r.record(path, block.DefRange())
	return &inner
}

// blocks are the nested blocks of one type.
func (r *reader) blocks(name string) []*hclsyntax.Block {
	var found []*hclsyntax.Block
	for _, block := range r.body.Blocks {
		if block.Type == name {
			found = append(found, block)
		}
	}
	return found
}

// block is the one nested block of a type that stands at most once.
func (r *reader) block(name string) *hclsyntax.Block {
	if found := r.blocks(name); len(found) > 0 {
		return found[0]
	}
	return nil
}

// fail reports diagnostics; the instance is then not whole.
func (r *reader) fail(diags ...*hcl.Diagnostic) {
	r.l.report(diags...)
	r.markBroken()
}

func (r *reader) markBroken() {
	if r.inst != nil {
		r.l.broken[r.inst.addr] = true
	}
}

func (r *reader) record(path string, rng hcl.Range) {
	if r.object != nil {
		r.object.Origins[path] = originOf(rng)
	}
}

func (r *reader) has(name string) bool { return r.body.Attributes[name] != nil }

// place is where an attribute's value stands.
func (r *reader) place(name string) place {
	attr := r.body.Attributes[name]
	if attr == nil {
		return place{}
	}
	return at(attr.Expr.Range()).within(attr.SrcRange)
}

// raw is an attribute's value with its marks; absent, null and unknown give false.
func (r *reader) raw(name string) (cty.Value, bool) {
	attr := r.body.Attributes[name]
	if attr == nil {
		return cty.NilVal, false
	}
	r.record(r.prefix+name, attr.SrcRange)
	v := r.l.eval(attr.Expr, r.inst)
	plain, _ := v.Unmark()
	switch {
	case !plain.IsKnown():
		r.markBroken()
		return cty.NilVal, false
	case plain.IsNull():
		return cty.NilVal, false
	}
	return v, true
}

// value is an attribute's value, which may not be sensitive nor hold unknown parts.
func (r *reader) value(name string) (cty.Value, bool) {
	v, ok := r.raw(name)
	switch {
	case !ok:
		return cty.NilVal, false
	case v.ContainsMarked():
		r.fail(diagSensitiveAt(name, r.place(name)))
		return cty.NilVal, false
	case !v.IsWhollyKnown():
		r.markBroken()
		return cty.NilVal, false
	}
	return v, true
}

// diagSensitiveAt says what to do instead of writing a sensitive value somewhere.
func diagSensitiveAt(name string, where place) *hcl.Diagnostic {
	switch name {
	case "command", "entrypoint", "shell", "args":
		return diagSensitiveCommand(name, where)
	}
	return diagSensitive(name, where)
}

// converted is an attribute's value as a primitive type.
func (r *reader) converted(name string, ty cty.Type, want string) (cty.Value, bool) {
	v, ok := r.value(name)
	if !ok {
		return cty.NilVal, false
	}
	converted, err := convert.Convert(v, ty)
	if err != nil || converted.IsNull() {
		r.fail(diagWrongType(name, want, typeName(v), r.place(name)))
		return cty.NilVal, false
	}
	return converted, true
}

func (r *reader) str(name string) (string, bool) {
	v, ok := r.converted(name, cty.String, "a string")
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

func (r *reader) boolean(name string) (value, ok bool) {
	v, ok := r.converted(name, cty.Bool, "a bool")
	if !ok {
		return false, false
	}
	return v.True(), true
}

func (r *reader) number(name string) (*big.Float, bool) {
	v, ok := r.converted(name, cty.Number, "a number")
	if !ok {
		return nil, false
	}
	return v.AsBigFloat(), true
}

// integer is a whole number within bounds.
func (r *reader) integer(name string, low, high int64) (int64, bool) {
	f, ok := r.number(name)
	if !ok {
		return 0, false
	}
	n, accuracy := f.Int64()
	if accuracy != big.Exact || n < low || n > high {
		r.fail(diagWholeNumber(name, low, high, r.place(name)))
		return 0, false
	}
	return n, true
}

// choice is a string out of a closed list.
func (r *reader) choice(name string, choices ...string) (string, bool) {
	s, ok := r.str(name)
	if !ok {
		return "", false
	}
	for _, c := range choices {
		if s == c {
			return s, true
		}
	}
	r.fail(diagNotAChoice(name, s, choices, r.place(name)))
	return "", false
}

// duration is a time with its unit, at least the given one.
func (r *reader) duration(name string, atLeast time.Duration) (time.Duration, bool) {
	s, ok := r.str(name)
	if !ok {
		return 0, false
	}
	d, ok := parseDuration(s)
	if !ok {
		r.fail(diagDuration(name, s, r.place(name)))
		return 0, false
	}
	if d < atLeast {
		r.fail(diagDurationTooShort(name, s, atLeast, r.place(name)))
		return 0, false
	}
	return d, true
}

// size is a number of bytes with its unit, at least the given one.
func (r *reader) size(name string, atLeast int64) (int64, bool) {
	s, ok := r.str(name)
	if !ok {
		return 0, false
	}
	n, ok := parseSize(s)
	if !ok {
		r.fail(diagSize(name, s, sizeMeant(s), r.place(name)))
		return 0, false
	}
	if n < atLeast {
		r.fail(diagSizeTooSmall(name, s, atLeast, r.place(name)))
		return 0, false
	}
	return n, true
}

// strs is a list of strings, each with its place.
func (r *reader) strs(name string) ([]item[string], bool) {
	v, ok := r.value(name)
	if !ok {
		return nil, false
	}
	elements, ok := r.elements(name, v, "a list of strings")
	if !ok {
		return nil, false
	}
	items := make([]item[string], 0, len(elements))
	for _, element := range elements {
		s, err := convert.Convert(element.value, cty.String)
		if err != nil || s.IsNull() {
			r.fail(diagWrongType(name, "a list of strings", "a list that holds "+typeName(element.value), element.at))
			return nil, false
		}
		items = append(items, item[string]{s.AsString(), element.at})
	}
	return items, true
}

// elements are the elements of a list, tuple or set.
func (r *reader) elements(name string, v cty.Value, want string) ([]item[cty.Value], bool) {
	ty := v.Type()
	if !ty.IsListType() && !ty.IsTupleType() && !ty.IsSetType() {
		r.fail(diagWrongType(name, want, typeName(v), r.place(name)))
		return nil, false
	}
	attr := r.body.Attributes[name]
	places := elementPlaces(attr)
	var items []item[cty.Value]
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		where := r.place(name)
		if !ty.IsSetType() && len(places) == v.LengthInt() {
			where = places[len(items)]
		}
		items = append(items, item[cty.Value]{element, where})
	}
	return items, true
}

// elementPlaces are the places of a written-out list's elements.
func elementPlaces(attr *hclsyntax.Attribute) []place {
	tuple, ok := attr.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil
	}
	places := make([]place, 0, len(tuple.Exprs))
	for _, expr := range tuple.Exprs {
		places = append(places, at(expr.Range()).within(attr.SrcRange))
	}
	return places
}

// entry is an item of a map.
type entry struct {
	item[cty.Value]
	// unnamed is set where the map is sensitive as a whole and the key doesn't stand in
	// the files, so that it may be a secret.
	unnamed bool
}

// strMap is a map of strings whose values may be sensitive.
func (r *reader) strMap(name string) (map[string]entry, bool) {
	v, ok := r.raw(name)
	if !ok {
		return nil, false
	}
	plain, marks := v.Unmark()
	if !plain.Type().IsMapType() && !plain.Type().IsObjectType() {
		r.fail(diagWrongType(name, "a map of strings", typeName(plain), r.place(name)))
		return nil, false
	}
	attr := r.body.Attributes[name]
	places, written := keyPlaces(attr), writtenKeys(attr.Expr)
	items := map[string]entry{}
	for it := plain.ElementIterator(); it.Next(); {
		key, element := it.Element()
		where, ok := places[key.AsString()]
		if !ok {
			where = r.place(name)
		}
		bare, elementMarks := element.Unmark()
		if !bare.IsKnown() {
			r.markBroken()
			continue
		}
		s, err := convert.Convert(bare, cty.String)
		if err != nil || s.IsNull() || bare.ContainsMarked() {
			r.fail(diagWrongType(name, "a map of strings", "a map that holds "+typeName(bare), where))
			continue
		}
		items[key.AsString()] = entry{
			item:    item[cty.Value]{s.WithMarks(marks, elementMarks), where},
			unnamed: len(marks) > 0 && !written[key.AsString()],
		}
	}
	return items, true
}

// writtenKeys are the keys that stand as words or plain strings in an expression.
func writtenKeys(expr hclsyntax.Expression) map[string]bool {
	keys := map[string]bool{}
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		if object, ok := node.(*hclsyntax.ObjectConsExpr); ok {
			for _, pair := range object.Items {
				if key, ok := staticKey(pair.KeyExpr); ok {
					keys[key] = true
				}
			}
		}
		return nil
	})
	return keys
}

// keyPlaces are the places of a written-out map's items, by key.
func keyPlaces(attr *hclsyntax.Attribute) map[string]place {
	object, ok := attr.Expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return nil
	}
	places := map[string]place{}
	for _, pair := range object.Items {
		key, ok := staticKey(pair.KeyExpr)
		if ok {
			places[key] = at(hcl.RangeBetween(pair.KeyExpr.Range(), pair.ValueExpr.Range())).within(attr.SrcRange)
		}
	}
	return places
}

// staticKey is a key that is written as a word or a plain string.
func staticKey(expr hclsyntax.Expression) (string, bool) {
	if word := hcl.ExprAsKeyword(expr); word != "" {
		return word, true
	}
	if len(expr.Variables()) > 0 {
		return "", false
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

// ref is a reference to one object.
func (r *reader) ref(name string, k *kind) (Address, bool) {
	v, ok := r.value(name)
	if !ok {
		return Address{}, false
	}
	addr, err := referenceOf(v, k)
	if err != nil {
		r.fail(r.notReference(name, v, k, r.body.Attributes[name].Expr, r.place(name)))
		return Address{}, false
	}
	return addr, true
}

// refs is a list of references, each object once.
func (r *reader) refs(name string, k *kind) ([]item[Address], bool) {
	v, ok := r.value(name)
	if !ok {
		return nil, false
	}
	want := "a list of references to " + k.name + " blocks"
	if keys, ok := instancesOf(v, k); ok {
		r.fail(diagInstancesForList(name, k.name, spelling(r.body.Attributes[name].Expr), keys, r.place(name)))
		return nil, false
	}
	if _, err := referenceOf(v, k); err == nil {
		r.fail(diagReferenceForList(name, spelling(r.body.Attributes[name].Expr), r.place(name)))
		return nil, false
	}
	elements, ok := r.elements(name, v, want)
	if !ok {
		return nil, false
	}
	return r.refElements(name, k, elements)
}

func (r *reader) refElements(name string, k *kind, elements []item[cty.Value]) ([]item[Address], bool) {
	exprs := elementExprs(r.body.Attributes[name], len(elements))
	items := make([]item[Address], 0, len(elements))
	seen := map[Address]bool{}
	good := true
	for i, element := range elements {
		addr, err := referenceOf(element.value, k)
		if err != nil || element.value.IsNull() {
			r.fail(r.notReference(name, element.value, k, exprs[i], element.at))
			good = false
			continue
		}
		if seen[addr] {
			r.fail(diagReferenceTwice(name, addr, element.at))
			good = false
			continue
		}
		seen[addr] = true
		r.record(r.prefix+name+"["+strconv.Quote(addr.FullName())+"]", element.at.subject)
		items = append(items, item[Address]{addr, element.at})
	}
	return items, good
}

// elementExprs are a written-out list's expressions, or the whole list's n times.
func elementExprs(attr *hclsyntax.Attribute, n int) []hclsyntax.Expression {
	if tuple, ok := attr.Expr.(*hclsyntax.TupleConsExpr); ok && len(tuple.Exprs) == n {
		return tuple.Exprs
	}
	exprs := make([]hclsyntax.Expression, n)
	for i := range exprs {
		exprs[i] = attr.Expr
	}
	return exprs
}

// notReference words why a value is not a reference to an object of a kind.
func (r *reader) notReference(name string, v cty.Value, k *kind, expr hclsyntax.Expression, where place) *hcl.Diagnostic {
	if v.IsNull() {
		return diagNullReference(name, k.name, where)
	}
	if keys, ok := instancesOf(v, k); ok && k.forEach {
		return diagInstancesForOne(name, k.name, spelling(expr), keys, where)
	}
	if v.Type() == cty.String {
		meant := ""
		if declared, _ := r.l.isDeclared(k.name, v.AsString()); declared {
			meant = k.name + "." + v.AsString()
		}
		return diagStringForReference(name, k.name, meant, where)
	}
	return diagWrongType(name, "a reference to "+article(k.name)+" block", typeName(v), where)
}

// spelling is how a plain reference stands in the file, or empty.
func spelling(expr hclsyntax.Expression) string {
	traversal, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || len(traversal) != 2 {
		return ""
	}
	name, ok := stepName(traversal[1])
	if !ok {
		return ""
	}
	return traversal.RootName() + "." + name
}

// reason is a person's reason: printable text on one line, not blank.
func (r *reader) reason() (string, bool) {
	const name = "reason"
	s, ok := r.str(name)
	if !ok {
		return "", false
	}
	s = strings.TrimSpace(s)
	if s == "" {
		r.fail(diagReasonBlank(r.place(name)))
		return "", false
	}
	if !printableLine(s) {
		r.fail(diagReasonUnprintable(r.place(name)))
		return "", false
	}
	return s, true
}

// printableLine reports whether text is not blank and can be printed on one line.
func printableLine(s string) bool {
	return strings.TrimSpace(s) != "" && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// nullRequired reports an attribute that must be given and is null.
func (r *reader) nullRequired(name string) {
	attr := r.body.Attributes[name]
	v := r.l.eval(attr.Expr, r.inst)
	if v, _ = v.Unmark(); v.IsKnown() && v.IsNull() {
		r.fail(diagNullAttribute(name, r.place(name)))
	}
}

// need passes on whether a required attribute was read, and sees to it that the
// instance is broken if not. An attribute that isn't there has been reported.
func (r *reader) need(name string, ok bool) bool {
	if ok {
		return true
	}
	if r.has(name) {
		r.nullRequired(name)
	}
	r.markBroken()
	return false
}

// typeName is a value's type in words.
func typeName(v cty.Value) string {
	switch ty := v.Type(); {
	case v.IsNull() && ty == cty.DynamicPseudoType:
		return "null"
	case ty.IsCapsuleType():
		return "a reference to " + article(ty.FriendlyName()) + " block"
	case ty.IsTupleType() || ty.IsListType():
		return "a list"
	case ty.IsObjectType() || ty.IsMapType():
		return "a map"
	case ty.IsSetType():
		return "a set"
	default:
		return article(ty.FriendlyName())
	}
}

// article puts "a" or "an" before a word.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}
