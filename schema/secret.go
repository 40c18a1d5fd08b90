package schema

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// HCL's messages, and the errors of functions, quote values: keys, attributes' names,
// arguments. Which of them do isn't written down and may change with any release. So a
// failed expression over sensitive values is computed once more without knowing them:
// a message that comes again is the same whatever they are, and may be shown. Any
// other is replaced.

// unrevealing are the messages of a failed expression that are the same whatever the
// sensitive values in it are. It is nil where nothing in it is sensitive.
func (l *loader) unrevealing(expr hclsyntax.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	blind := &hcl.EvalContext{Functions: l.funcs, Variables: map[string]cty.Value{}}
	sensitive := callsForSecrets(expr)
	for root, names := range ctx.Variables {
		sensitive = sensitive || names.ContainsMarked()
		blind.Variables[root] = withoutSecrets(names)
	}
	if !sensitive {
		return nil
	}
	if l.blindFuncs == nil {
		l.blindFuncs = blindFunctions()
	}
	blind.Functions = l.blindFuncs
	_, diags := expr.Value(blind)
	if diags == nil {
		diags = hcl.Diagnostics{}
	}
	return diags
}

// reveals is the message to show in place of one that may quote a sensitive value.
func reveals(expr hclsyntax.Expression, diag *hcl.Diagnostic) *hcl.Diagnostic {
	where := at(expr.Range())
	if diag.Subject != nil {
		where = at(*diag.Subject)
		if diag.Context != nil {
			where = where.within(*diag.Context)
		}
	}
	if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](diag); ok {
		return diagSensitiveFault(call.CalledFunctionName(), where)
	}
	return diagSensitiveExpression(diag.Summary, where)
}

// sameMessage is the diagnostic that says the same of the same place, or nil.
func sameMessage(diags hcl.Diagnostics, diag *hcl.Diagnostic) *hcl.Diagnostic {
	for _, d := range diags {
		if d.Summary == diag.Summary && d.Detail == diag.Detail && subjectOf(d) == subjectOf(diag) {
			return d
		}
	}
	return nil
}

// withoutSecrets is a value with what is sensitive in it unknown. Of a value that holds
// others not even the type is known, since an object's type has the names in it.
func withoutSecrets(v cty.Value) cty.Value {
	switch ty := v.Type(); {
	case !v.ContainsMarked():
		return v
	case v.IsMarked() && ty.IsPrimitiveType():
		return cty.UnknownVal(ty).Mark(sensitiveMark)
	case !v.IsMarked() && (ty.IsObjectType() || ty.IsTupleType()):
		return withoutSecretsInside(v)
	}
	return cty.DynamicVal.Mark(sensitiveMark)
}

func withoutSecretsInside(v cty.Value) cty.Value {
	names := map[string]cty.Value{}
	var list []cty.Value
	for it := v.ElementIterator(); it.Next(); {
		key, element := it.Element()
		element = withoutSecrets(element)
		if v.Type().IsObjectType() {
			names[key.AsString()] = element
		} else {
			list = append(list, element)
		}
	}
	if v.Type().IsObjectType() {
		return cty.ObjectVal(names)
	}
	return cty.TupleVal(list)
}

// secretFunctions are those whose results are sensitive whatever their arguments are.
var secretFunctions = map[string]cty.Type{"sensitive": cty.DynamicPseudoType, "rsadecrypt": cty.String}

// callsForSecrets reports whether an expression makes a sensitive value of its own. A
// template's text may come from anywhere, and may call anything.
func callsForSecrets(expr hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		if call, ok := node.(*hclsyntax.FunctionCallExpr); ok {
			_, secret := secretFunctions[call.Name]
			found = found || secret || call.Name == "templatestring"
		}
		return nil
	})
	return found
}

// blindFunctions are the language's functions with the results of secretFunctions
// unknown, in templates too.
func blindFunctions() map[string]function.Function {
	within := pureFunctions()
	blindFold(within)
	all := pureFunctions()
	all["templatestring"] = bounded(templateString(within), checkTemplate)
	blindFold(all)
	return all
}

func blindFold(all map[string]function.Function) {
	for name, ty := range secretFunctions {
		all[name] = unknownFunction(all[name], cty.UnknownVal(ty).Mark(sensitiveMark))
	}
}

// unknownFunction takes what f takes and gives always the same.
func unknownFunction(f function.Function, result cty.Value) function.Function {
	plain, _ := result.Unmark()
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type:     function.StaticReturnType(plain.Type()),
		Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return result, nil },
	})
}
