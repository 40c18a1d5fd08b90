package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const envPrefix = "SPACES_VAR_"

// variable is an input variable: what its block says, then the value it got.
type variable struct {
	name      string
	block     *hclsyntax.Block
	ty        cty.Type
	defaults  *typeexpr.Defaults
	literal   bool // a value from outside a file is text, not an expression
	sensitive bool
	nullable  bool
	// hidden is set where no message may show the value: it is sensitive, or the files
	// say so in a way that is wrong.
	hidden      bool
	validations []*hclsyntax.Block
	// broken is set when the block or the value is wrong; the value is then unknown.
	broken bool

	value  cty.Value
	weight int
	from   string
}

// given is one value that something outside the configuration files gives.
type given struct {
	from string
	// expr is set for a value from a variables file, text for any other.
	expr hclsyntax.Expression
	text string
	at   place
}

// varFile is a variables file that parsed.
type varFile struct {
	name string
	src  []byte
	body *hclsyntax.Body
}

func (l *loader) readVarFile(name string, src []byte) {
	l.config.Sources[name] = hideSource(src)
	body, diags := parseSource(src, name)
	l.report(withoutDetails(diags)...)
	if diags.HasErrors() {
		l.incomplete = true
		return
	}
	l.varFiles = append(l.varFiles, varFile{name, src, body})
}

func (l *loader) collectVariable(block *hclsyntax.Block) {
	if len(block.Labels) == 0 {
		return // reported with the block's shape
	}
	name := block.Labels[0]
	if !hclsyntax.ValidIdentifier(name) {
		l.report(diagInvalidVariableName(name, block.LabelRanges[0]))
		return
	}
	if first, ok := l.variables[name]; ok {
		l.report(diagDuplicateName("variable", name, block.DefRange(), first.block.DefRange()))
		first.hide(block)
		return
	}
	v := &variable{name: name, block: block, ty: cty.DynamicPseudoType, literal: true, nullable: true, value: cty.DynamicVal}
	l.variables[name] = v
	l.variableType(v)
	v.sensitive = l.constantBool(v, "sensitive", false)
	v.hide(block)
	v.nullable = l.constantBool(v, "nullable", true)
	l.checkDescription(v)
	for _, inner := range block.Body.Blocks {
		if inner.Type == "validation" {
			v.validations = append(v.validations, inner)
		}
	}
}

// hide sees to it that the value isn't shown if one of the variable's blocks says that it
// is sensitive, however that is written. Where it isn't written as it should be, the
// value is also kept from expressions.
func (v *variable) hide(block *hclsyntax.Block) {
	for name, attr := range block.Body.Attributes {
		switch {
		case name == "sensitive":
			val, diags := attr.Expr.Value(nil)
			if !diags.HasErrors() && (val.IsNull() || val.RawEquals(cty.False)) {
				continue
			}
		case Closest(name, []string{"sensitive"}) == "":
			continue
		}
		v.hidden = true
		v.broken = v.broken || !v.sensitive
	}
}

func (l *loader) variableType(v *variable) {
	attr := v.block.Body.Attributes["type"]
	if attr == nil {
		return
	}
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
	l.report(diags...)
	if diags.HasErrors() {
		v.broken = true
		return
	}
	v.ty, v.defaults = ty, defaults
	v.literal = ty.IsPrimitiveType()
}

// constant is the value of an attribute that may not refer to anything.
func (l *loader) constant(v *variable, name string) (cty.Value, place, bool) {
	attr := v.block.Body.Attributes[name]
	if attr == nil {
		return cty.NilVal, place{}, false
	}
	val, diags := attr.Expr.Value(nil)
	l.report(diags...)
	if diags.HasErrors() {
		v.broken = true
		return cty.NilVal, place{}, false
	}
	return val, at(attr.Expr.Range()).within(attr.SrcRange), true
}

func (l *loader) constantBool(v *variable, name string, otherwise bool) bool {
	val, where, ok := l.constant(v, name)
	if !ok || val.IsNull() {
		return otherwise
	}
	converted, err := convert.Convert(val, cty.Bool)
	if err != nil {
		l.report(diagWrongType(name, "a bool", typeName(val), where))
		v.broken = true
		return otherwise
	}
	return converted.True()
}

func (l *loader) checkDescription(v *variable) {
	val, where, ok := l.constant(v, "description")
	if ok && !val.IsNull() && val.Type() != cty.String {
		l.report(diagWrongType("description", "a string", typeName(val), where))
	}
}

// setVariables gives every variable its value: the environment's, then what the
// folder's own variables file, the --var-file files and the --var flags say, each
// over the one before, and the default where nothing does.
func (l *loader) setVariables() {
	values := map[string]given{}
	l.fromEnvironment(values)
	for _, file := range l.varFiles {
		l.fromFile(file, values)
	}
	l.fromFlags(values)
	for _, name := range slices.Sorted(maps.Keys(l.variables)) {
		l.setVariable(l.variables[name], values)
	}
}

func (l *loader) fromEnvironment(values map[string]given) {
	for _, entry := range l.opts.Environ {
		key, value, _ := strings.Cut(entry, "=")
		name, ok := strings.CutPrefix(key, envPrefix)
		if v := l.variables[name]; ok && v != nil {
			values[name] = given{from: key, text: value, at: at(v.block.DefRange())}
		}
	}
}

func (l *loader) fromFile(file varFile, values map[string]given) {
	for _, block := range file.body.Blocks {
		l.report(diagVarFileBlock(block))
	}
	for _, attr := range sortedAttributes(file.body) {
		v := l.variables[attr.Name]
		if v == nil {
			if !l.mayDeclare(attr.Name) {
				l.report(diagUndeclaredInFile(attr, Closest(attr.Name, slices.Sorted(maps.Keys(l.variables)))))
			}
			continue
		}
		if !v.hidden {
			showSource(l.config.Sources[file.name], file.src, attr.SrcRange)
		}
		where := at(attr.Expr.Range()).within(attr.SrcRange)
		values[attr.Name] = given{from: file.name, expr: attr.Expr, at: where}
	}
}

func (l *loader) fromFlags(values map[string]given) {
	for _, flag := range l.opts.Vars {
		v := l.variables[flag.Name]
		if v == nil {
			if !l.mayDeclare(flag.Name) {
				l.report(diagUndeclaredInFlag(flag.Name, Closest(flag.Name, slices.Sorted(maps.Keys(l.variables)))))
			}
			continue
		}
		values[flag.Name] = given{from: "--var", text: flag.Value, at: at(v.block.DefRange())}
	}
}

func (l *loader) setVariable(v *variable, values map[string]given) {
	val, from, where := l.rawValue(v, values)
	defer l.keepVariable(v)
	if v.broken {
		return
	}
	if from == "" {
		l.report(diagMissingVariable(v.name, v.block.DefRange()))
		v.broken = true
		return
	}
	v.from = from
	if v.defaults != nil && !val.IsNull() {
		val = v.defaults.Apply(val)
	}
	val, err := convert.Convert(val, v.ty)
	if err == nil {
		v.weight, err = checkValue(val)
	}
	if err != nil {
		l.report(diagVariableType(v.name, from, v.conversionFault(err), l.shown(v, where)))
		v.broken = true
		return
	}
	if val.IsNull() && !v.nullable {
		l.report(diagVariableNull(v.name, from, l.shown(v, where)))
		v.broken = true
		return
	}
	v.value = val
	if v.sensitive {
		v.value = val.Mark(sensitiveMark)
	}
}

// rawValue is the value that wins, before it is converted, and what gave it.
func (l *loader) rawValue(v *variable, values map[string]given) (val cty.Value, from string, where place) {
	def, defAt, hasDefault := l.constant(v, "default")
	g, ok := values[v.name]
	if !ok {
		if hasDefault {
			return def, "default", defAt
		}
		return cty.NilVal, "", place{}
	}
	val, diags := l.givenValue(v, g)
	l.report(diags...)
	if diags.HasErrors() {
		v.broken = true
	}
	if !v.broken && val.IsNull() && !v.nullable && hasDefault {
		return def, "default", defAt
	}
	return val, g.from, g.at
}

func (l *loader) givenValue(v *variable, g given) (cty.Value, hcl.Diagnostics) {
	switch {
	case g.expr != nil:
		val, diags := g.expr.Value(nil)
		if diags.HasErrors() && v.hidden {
			diags = hcl.Diagnostics{diagVariableSyntax(v.name, g.from, unshownFault, l.shown(v, g.at))}
		}
		return val, diags
	case v.literal:
		return cty.StringVal(g.text), nil
	}
	// The text is an expression. Its place is the variable's, for it stands in no file.
	const name = "value"
	if checkNesting([]byte(g.text), name) != nil {
		return cty.DynamicVal, hcl.Diagnostics{diagVariableSyntax(v.name, g.from, "it is nested too deeply", g.at)}
	}
	expr, diags := hclsyntax.ParseExpression([]byte(g.text), name, hcl.InitialPos)
	var val cty.Value
	if !diags.HasErrors() {
		val, diags = expr.Value(nil)
	}
	if diags.HasErrors() {
		return cty.DynamicVal, hcl.Diagnostics{diagVariableSyntax(v.name, g.from, l.faultOf(v, diags), g.at)}
	}
	return val, nil
}

// unshownFault stands for what is wrong with a value that isn't shown.
const unshownFault = "what is wrong with it isn't shown, since the value is sensitive"

// faultOf words what is wrong with a value's syntax, without the value if it is hidden.
func (l *loader) faultOf(v *variable, diags hcl.Diagnostics) string {
	if v.hidden {
		return unshownFault
	}
	return strings.TrimSuffix(diags[0].Detail, ".")
}

// shown is the place to show for a fault of a variable's value: not the value's own
// line where it is hidden.
func (l *loader) shown(v *variable, where place) place {
	if v.hidden {
		return at(v.block.DefRange())
	}
	return where
}

// keepVariable records the variable in the Config.
func (l *loader) keepVariable(v *variable) {
	kept := Variable{Name: v.name, Sensitive: v.sensitive, From: v.from, Origin: originOf(v.block.DefRange())}
	if !v.broken {
		plain, _ := v.value.UnmarkDeep()
		if json, err := ctyjson.Marshal(plain, plain.Type()); err == nil {
			kept.JSON = json
		}
	}
	l.config.Variables = append(l.config.Variables, kept)
}

// checkVariables judges the values by the variables' own validation blocks.
func (l *loader) checkVariables() {
	for _, name := range slices.Sorted(maps.Keys(l.variables)) {
		v := l.variables[name]
		if v.broken {
			continue
		}
		for _, block := range v.validations {
			l.checkValidation(v, block)
		}
	}
}

func (l *loader) checkValidation(v *variable, block *hclsyntax.Block) {
	condition, message := block.Body.Attributes["condition"], block.Body.Attributes["error_message"]
	if condition == nil || message == nil {
		return // reported with the block's shape
	}
	where := at(condition.Expr.Range()).within(condition.SrcRange)
	holds, _ := l.eval(condition.Expr, nil).Unmark()
	text := l.eval(message.Expr, nil)
	if !holds.IsKnown() || !text.IsKnown() {
		return
	}
	converted, err := convert.Convert(holds, cty.Bool)
	if err != nil || converted.IsNull() {
		l.report(diagWrongType("condition", "a bool", typeName(holds), where))
		return
	}
	if converted.True() {
		return
	}
	l.report(diagVariableInvalid(v.name, v.from, l.validationText(text, message), where))
}

// validationText is the error_message, if it may be shown.
func (l *loader) validationText(text cty.Value, message *hclsyntax.Attribute) string {
	const hidden = "The error_message holds a sensitive value and is not shown."
	if text.ContainsMarked() {
		return hidden
	}
	converted, err := convert.Convert(text, cty.String)
	if err != nil || converted.IsNull() {
		where := at(message.Expr.Range()).within(message.SrcRange)
		l.report(diagWrongType("error_message", "a string", typeName(text), where))
		return ""
	}
	return converted.AsString()
}

// conversionFault words an error of a type conversion, with the place in the value. The
// names in a hidden value are hidden, too.
func (v *variable) conversionFault(err error) string {
	if v.hidden && !v.ty.IsPrimitiveType() {
		return unshownFault
	}
	var pathErr cty.PathError
	if errors.As(err, &pathErr) && len(pathErr.Path) > 0 {
		return fmt.Sprintf("%s: %s", pathText(pathErr.Path), err)
	}
	return err.Error()
}

// pathText spells a path into a value the way an expression would.
func pathText(path cty.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			fmt.Fprintf(&b, ".%s", step.Name)
		case cty.IndexStep:
			switch {
			case step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull():
				fmt.Fprintf(&b, "[%q]", step.Key.AsString())
			case step.Key.Type() == cty.Number && step.Key.IsKnown() && !step.Key.IsNull():
				fmt.Fprintf(&b, "[%s]", step.Key.AsBigFloat().Text('f', -1))
			default:
				b.WriteString("[…]")
			}
		}
	}
	return b.String()
}
