package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// compute gives locals their values and blocks with for_each their instances, each
// after all that it refers to. References are known before anything is evaluated, so
// a cycle is found whatever a condition would choose.
func (l *loader) compute() {
	g := l.graph()
	for _, group := range g.components() {
		if cycle := g.cycle(group); cycle != nil {
			l.report(l.diagCycle(g, cycle))
			for _, i := range group { // the values stay unknown
				if d := l.objects[g.nodes[i].root][g.nodes[i].name]; d != nil {
					d.standIn()
				}
			}
			continue
		}
		t := g.nodes[group[0]]
		if t.root == "local" {
			local := l.locals[t.name]
			local.value = l.eval(local.attr.Expr, nil)
			local.weight, _ = checkValue(local.value)
			continue
		}
		l.instantiate(l.objects[t.root][t.name])
	}
	for _, d := range l.decls {
		if d.again {
			l.instantiate(d)
		}
	}
}

// graph is what locals and for_each refer to.
func (l *loader) graph() *graph[target] {
	g := &graph[target]{}
	exprs := map[target]hclsyntax.Expression{}
	for name, local := range l.locals {
		exprs[target{"local", name}] = local.attr.Expr
	}
	for kind, named := range l.objects {
		for name, d := range named {
			exprs[target{kind, name}] = nil
			if d.forEach != nil {
				exprs[target{kind, name}] = d.forEach.Expr
			}
		}
	}
	g.nodes = slices.SortedFunc(maps.Keys(exprs), func(a, b target) int {
		return compareStrings(a.root, b.root, a.name, b.name)
	})
	index := map[target]int{}
	for i, t := range g.nodes {
		index[t] = i
	}
	g.edges = make([][]int, len(g.nodes))
	for i, t := range g.nodes {
		if exprs[t] == nil {
			continue
		}
		for _, to := range l.exprs[exprs[t]].targets {
			if j, ok := index[to]; ok {
				g.edges[i] = append(g.edges[i], j)
			}
		}
	}
	return g
}

// diagCycle reports a cycle at the first name in it.
func (l *loader) diagCycle(g *graph[target], cycle []int) *hcl.Diagnostic {
	names := make([]string, 0, len(cycle))
	for _, i := range cycle {
		names = append(names, g.nodes[i].String())
	}
	first := g.nodes[cycle[0]]
	if first.root == "local" {
		attr := l.locals[first.name].attr
		return diagReferenceCycle(names, attr.Expr.Range(), attr.SrcRange)
	}
	attr := l.objects[first.root][first.name].forEach
	return diagReferenceCycle(names, attr.Expr.Range(), attr.SrcRange)
}

// instantiate makes the instances of a block and the value that stands for it.
func (l *loader) instantiate(d *decl) {
	if d.forEach == nil {
		inst := newInstance(d, "")
		d.instances = []*instance{inst}
		d.value = inst.ref
		return
	}
	elements, ok := l.forEach(d)
	if !ok {
		d.standIn()
		return
	}
	refs := map[string]cty.Value{}
	for _, key := range slices.Sorted(maps.Keys(elements)) {
		inst := newInstance(d, key)
		inst.eachKey = cty.StringVal(key)
		inst.eachVal = elements[key]
		d.instances = append(d.instances, inst)
		refs[key] = inst.ref
	}
	d.value = cty.ObjectVal(refs)
}

// standIn makes one instance of a block whose for_each could not be computed. What
// depends on each is unknown in it, and the rest is judged as in any.
func (d *decl) standIn() {
	inst := newInstance(d, "")
	inst.eachKey, inst.eachVal = cty.UnknownVal(cty.String), cty.DynamicVal
	d.instances, d.faulty = []*instance{inst}, true
}

func newInstance(d *decl, key string) *instance {
	addr := Address{Kind: d.kind.name, Name: d.name, Key: key}
	return &instance{decl: d, addr: addr, ref: cty.CapsuleVal(d.kind.ty, &reference{addr})}
}

// forEach is the elements that a for_each gives, by key.
func (l *loader) forEach(d *decl) (map[string]cty.Value, bool) {
	attr := d.forEach
	where := at(attr.Expr.Range()).within(attr.SrcRange)
	v := l.eval(attr.Expr, nil)
	switch {
	case v.IsMarked(): // a set has its elements' marks, as a map its keys'
		l.report(diagForEachSensitive(where))
		return nil, false
	case !v.IsKnown():
		return nil, false
	case v.IsNull():
		l.report(diagForEachNull(where))
		return nil, false
	}
	ty := v.Type()
	isSet := ty.IsSetType() && (ty.ElementType() == cty.String || v.LengthInt() == 0)
	if !isSet && !ty.IsMapType() && !ty.IsObjectType() {
		l.report(diagForEachType(ty.FriendlyName(), ty.IsTupleType() || ty.IsListType() || ty.IsSetType(), where))
		return nil, false
	}
	elements := map[string]cty.Value{}
	good := true
	for it := v.ElementIterator(); it.Next(); {
		key, val := it.Element()
		if !key.IsKnown() {
			return nil, false
		}
		if key.IsNull() {
			l.report(diagForEachNull(where))
			return nil, false
		}
		if !validName(key.AsString()) {
			l.report(diagForEachKey(key.AsString(), where))
			good = false
			continue
		}
		elements[key.AsString()] = val
	}
	return elements, good
}

// eval computes an expression, for one instance or none. What goes wrong is reported
// once, and gives an unknown value.
func (l *loader) eval(expr hclsyntax.Expression, inst *instance) cty.Value {
	info := l.exprs[expr]
	switch {
	case info.bad:
		return cty.DynamicVal
	case info.done:
		return info.value
	}
	if info.weight(l) > maxMentions {
		l.report(diagValueTooLarge(errTooLarge, expr.Range()))
		info.value, info.done = cty.DynamicVal, true
		return info.value
	}
	ctx := l.context(info, inst)
	v, diags := expr.Value(ctx)
	if len(diags) > 0 {
		shown := l.unrevealing(expr, ctx)
		for _, diag := range diags {
			l.report(l.explain(expr, diag, shown))
		}
	}
	if diags.HasErrors() {
		v = cty.DynamicVal
	}
	if _, err := checkValue(v); err != nil {
		l.report(diagValueTooLarge(err, expr.Range()))
		v = cty.DynamicVal
	}
	if !info.each {
		info.value, info.done = v, true
	}
	return v
}

// context holds the names that an expression mentions and no others.
func (l *loader) context(info *exprInfo, inst *instance) *hcl.EvalContext {
	ctx := &hcl.EvalContext{Functions: l.funcs}
	roots := map[string]map[string]cty.Value{}
	for _, t := range info.targets {
		if roots[t.root] == nil {
			roots[t.root] = map[string]cty.Value{}
		}
		roots[t.root][t.name] = l.valueOf(t)
	}
	if info.each && inst != nil {
		roots["each"] = map[string]cty.Value{"key": inst.eachKey, "value": inst.eachVal}
	}
	if info.path {
		roots["path"] = map[string]cty.Value{"root": cty.StringVal(l.opts.Root)}
	}
	if len(roots) > 0 {
		ctx.Variables = map[string]cty.Value{}
	}
	for root, names := range roots {
		ctx.Variables[root] = cty.ObjectVal(names)
	}
	return ctx
}

func (l *loader) valueOf(t target) cty.Value {
	switch t.root {
	case "var":
		return l.variables[t.name].value
	case "local":
		return l.locals[t.name].value
	}
	return l.objects[t.root][t.name].value
}

// explain replaces what HCL says where something better can be said, or less must be.
// shown are the messages that hold no sensitive value, nil where none can.
func (l *loader) explain(expr hclsyntax.Expression, diag *hcl.Diagnostic, shown hcl.Diagnostics) *hcl.Diagnostic {
	if better := l.explainNames(expr, diag); better != nil {
		return better
	}
	if shown == nil {
		return diag
	}
	if same := sameMessage(shown, diag); same != nil {
		return same // diag holds the values too, for whoever writes it
	}
	return reveals(expr, diag)
}

// explainNames words what is wrong with a name that stands in the files: of a function,
// or of an object, of which HCL knows only that its value is opaque.
func (l *loader) explainNames(expr hclsyntax.Expression, diag *hcl.Diagnostic) *hcl.Diagnostic {
	if diag.Subject == nil || diag.Severity != hcl.DiagError {
		return nil
	}
	if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](diag); ok {
		name := call.CalledFunctionNamespace() + call.CalledFunctionName()
		return diagUnknownFunction(name, Closest(name, slices.Sorted(maps.Keys(l.funcs))), at(*diag.Subject))
	}
	if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](diag); ok {
		if err := call.FunctionCallError(); err != nil && strings.Contains(err.Error(), opaqueText) {
			return diagReferenceArgument(at(*diag.Subject))
		}
	}
	for _, traversal := range hclsyntax.Variables(expr) {
		d, ok := l.declOf(traversal)
		if !ok || len(traversal) < 3 || !covers(traversal.SourceRange(), *diag.Subject) {
			continue
		}
		if better := l.explainStep(d, traversal); better != nil {
			return better
		}
	}
	return nil
}

func (l *loader) declOf(traversal hcl.Traversal) (*decl, bool) {
	if len(traversal) < 2 {
		return nil, false
	}
	name, ok := stepName(traversal[1])
	if !ok {
		return nil, false
	}
	d, ok := l.objects[traversal.RootName()][name]
	return d, ok
}

func (l *loader) explainStep(d *decl, traversal hcl.Traversal) *hcl.Diagnostic {
	where := traversal.SourceRange()
	name := target{d.kind.name, d.name}.String()
	if d.forEach == nil {
		if _, isIndex := traversal[2].(hcl.TraverseIndex); isIndex {
			return diagNotForEach(name, where)
		}
		return diagOpaque(name, where)
	}
	key, ok := stepName(traversal[2])
	if !ok || !d.value.IsKnown() {
		return nil
	}
	keys := slices.Sorted(maps.Keys(d.value.Type().AttributeTypes()))
	if slices.Contains(keys, key) {
		return diagOpaque(Address{Kind: d.kind.name, Name: d.name, Key: key}.String(), where)
	}
	return diagUnknownKey(name, key, keys, where)
}

// covers reports whether the range a holds the range b.
func covers(a, b hcl.Range) bool {
	return a.Filename == b.Filename && a.Start.Byte <= b.Start.Byte && b.End.Byte <= a.End.Byte
}
