package schema

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// kind is a kind of object block that expressions may refer to.
type kind struct {
	name    string
	ty      cty.Type // of a reference to one object
	forEach bool
}

// kinds are the kinds of object, in the order they are decoded.
var kinds = []*kind{
	{name: "image", ty: referenceType("image")},
	{name: "network", ty: referenceType("network")},
	{name: "egress", ty: referenceType("egress"), forEach: true},
	{name: "grant", ty: referenceType("grant"), forEach: true},
	{name: "space", ty: referenceType("space"), forEach: true},
	{name: "role", ty: referenceType("role")},
}

func kindNamed(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// reference is what a value that stands for an object holds. There is one for each
// object, so that two values are equal exactly when they mean the same object.
type reference struct {
	addr Address
}

// opaqueText is what an encoder says of a reference.
const opaqueText = "a reference has no value of its own"

// MarshalJSON fails: an object's address is no value that files may compute with.
func (r *reference) MarshalJSON() ([]byte, error) {
	return nil, errors.New(opaqueText)
}

func referenceType(kind string) cty.Type {
	return cty.CapsuleWithOps(kind, reflect.TypeFor[reference](), &cty.CapsuleOps{
		TypeGoString: func(reflect.Type) string { return kind },
		GoString:     func(v any) string { return v.(*reference).addr.String() },
		HashKey:      func(v any) string { return v.(*reference).addr.String() },
	})
}

// target is one name that an expression mentions: var.x, local.x or an object.
type target struct {
	root, name string
}

func (t target) String() string { return t.root + "." + t.name }

// exprInfo is what is known of an expression before it is evaluated.
type exprInfo struct {
	targets  []target       // sorted, each once
	mentions map[target]int // how often each is mentioned
	each     bool           // mentions each
	path     bool           // mentions path
	bad      bool           // mentions a name that doesn't exist, which has been reported
	// value is the outcome, kept where it is the same for each instance.
	value cty.Value
	done  bool
}

// maxMentions bounds what an expression mentions, each value as often as it is
// mentioned: a template holds a copy for every time.
const maxMentions = 4 * maxWeight

// weight is that of all values the expression mentions.
func (info *exprInfo) weight(l *loader) int {
	sum := 0
	for t, times := range info.mentions {
		switch t.root {
		case "var":
			sum += l.variables[t.name].weight * times
		case "local":
			sum += l.locals[t.name].weight * times
		}
	}
	return sum
}

// resolve looks up the names that every expression mentions.
func (l *loader) resolve() {
	for _, attr := range []*hclsyntax.Attribute{l.project, l.dataRoot} {
		if attr != nil {
			l.resolveExpr(attr.Expr, false)
		}
	}
	for _, block := range slices.Concat(l.installs, l.accepts, l.asserts) {
		l.resolveBody(block.Body, false)
	}
	for _, local := range l.locals {
		l.resolveExpr(local.attr.Expr, false)
	}
	for _, v := range l.variables {
		for _, block := range v.validations {
			l.resolveBody(block.Body, false)
		}
	}
	for _, d := range l.decls {
		if d.forEach != nil {
			l.resolveExpr(d.forEach.Expr, false)
		}
		l.resolveBody(d.block.Body, d.forEach != nil)
	}
}

func (l *loader) resolveBody(body *hclsyntax.Body, each bool) {
	for _, attr := range body.Attributes {
		if l.exprs[attr.Expr] == nil {
			l.resolveExpr(attr.Expr, each)
		}
	}
	for _, block := range body.Blocks {
		l.resolveBody(block.Body, each)
	}
}

// resolveExpr judges each name that an expression mentions.
func (l *loader) resolveExpr(expr hclsyntax.Expression, each bool) {
	info := &exprInfo{}
	l.exprs[expr] = info
	seen := map[target]int{}
	for _, traversal := range hclsyntax.Variables(expr) {
		t, diag := l.resolveTraversal(traversal, each)
		switch {
		case diag != nil:
			l.report(diag)
			info.bad = true
		case t.root == "each":
			info.each = true
		case t.root == "path":
			info.path = true
		case t.name == "":
			info.bad = true // not known to exist, in a folder that isn't known whole
		default:
			seen[t]++
		}
	}
	info.mentions = seen
	info.targets = slices.SortedFunc(maps.Keys(seen), func(a, b target) int {
		return compareStrings(a.root, b.root, a.name, b.name)
	})
}

// resolveTraversal says what a traversal such as grant.x["k"] refers to.
func (l *loader) resolveTraversal(traversal hcl.Traversal, each bool) (target, *hcl.Diagnostic) {
	root := traversal.RootName()
	where := traversal.SourceRange()
	if _, known := l.isDeclared(root, ""); !known && root != "each" && root != "path" {
		return target{}, diagUnknownReference(root, len(traversal) == 1, where)
	}
	if len(traversal) < 2 {
		return target{}, diagBareReference(root, where)
	}
	name, ok := stepName(traversal[1])
	if !ok {
		return target{}, diagBareReference(root, where)
	}
	switch {
	case root == "each" && !each:
		return target{}, diagEachOutside(where)
	case root == "each" && name != "key" && name != "value":
		return target{}, diagUnknownEach(name, where)
	case root == "path" && name != "root":
		return target{}, diagUnknownPath(name, where)
	case root == "each" || root == "path":
		return target{root, name}, nil
	}
	if declared, _ := l.isDeclared(root, name); declared {
		return target{root, name}, nil
	}
	if l.mayDeclare(name) {
		return target{}, nil
	}
	return target{}, l.diagUndeclared(root, name, where)
}

// diagUndeclared is the diagnostic for a name that nothing declares.
func (l *loader) diagUndeclared(root, name string, where hcl.Range) *hcl.Diagnostic {
	if meant := Closest(name, l.namesOf(root)); meant != "" {
		return diagUndeclaredReference(target{root, name}, target{root, meant}.String(), where)
	}
	for _, other := range []string{"var", "local", "image", "network", "egress", "grant", "space", "role"} {
		if declared, _ := l.isDeclared(other, name); declared {
			return diagUndeclaredReference(target{root, name}, target{other, name}.String(), where)
		}
	}
	return diagUndeclaredReference(target{root, name}, "", where)
}

// isDeclared reports whether there is such a name, and whether its first word can
// have names after it at all.
func (l *loader) isDeclared(root, name string) (declared, known bool) {
	switch root {
	case "var":
		return l.variables[name] != nil, true
	case "local":
		return l.locals[name] != nil, true
	}
	return l.objects[root][name] != nil, kindNamed(root) != nil
}

// namesOf are the names declared under a reference's first word, sorted; none where
// there are too many to compare a wrong one with.
func (l *loader) namesOf(root string) []string {
	switch root {
	case "var":
		return optionsIn(l.variables)
	case "local":
		return optionsIn(l.locals)
	}
	return optionsIn(l.objects[root])
}

func optionsIn[V any](named map[string]V) []string {
	if len(named) > mostOptions {
		return nil
	}
	return slices.Sorted(maps.Keys(named))
}

// stepName is the name that .name or ["name"] gives.
func stepName(step hcl.Traverser) (string, bool) {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// referenceOf is the object that a value stands for.
func referenceOf(v cty.Value, k *kind) (Address, error) {
	if v.Type().Equals(k.ty) && !v.IsNull() {
		return v.EncapsulatedValue().(*reference).addr, nil
	}
	return Address{}, errors.New("not a reference")
}

// instancesOf are the keys of a value that is a whole block with for_each.
func instancesOf(v cty.Value, k *kind) (keys []string, ok bool) {
	if !v.Type().IsObjectType() {
		return nil, false
	}
	for key, ty := range v.Type().AttributeTypes() {
		if !ty.Equals(k.ty) {
			return nil, false
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, true
}
