package schema

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Draft is the files of a configuration as edits would leave them. Nothing is written.
type Draft struct {
	// files are those of the configuration, and not of variables, by name.
	files map[string][]byte
	was   map[string][]byte
}

// NewDraft starts on the files of a configuration that loads.
func NewDraft(sources map[string][]byte) *Draft {
	d := &Draft{files: map[string][]byte{}}
	for name, src := range sources {
		if strings.HasSuffix(name, configExt) {
			d.files[name] = src
		}
	}
	d.was = maps.Clone(d.files)
	return d
}

// With is the draft with some more edits, or the first reason why there is no such draft.
func (d *Draft) With(edits ...Edit) (*Draft, error) {
	next := &Draft{files: maps.Clone(d.files), was: d.was}
	for _, e := range edits {
		if err := e.edit(next); err != nil {
			return nil, err
		}
	}
	for name, src := range next.files {
		if bytes.Equal(src, d.files[name]) {
			continue
		}
		if _, diags := parseSource(src, name); diags.HasErrors() {
			return nil, &EditError{Why: "the way it is written leaves no room for an edit"}
		}
	}
	return next, nil
}

// Files are the edited files alone, by name. One that was laid out in the canonical style
// is so again.
func (d *Draft) Files() map[string][]byte {
	out := map[string][]byte{}
	for name, src := range d.files {
		if bytes.Equal(src, d.was[name]) {
			continue
		}
		if bytes.Equal(Format(d.was[name]), d.was[name]) {
			src = Format(src)
		}
		out[name] = src
	}
	return out
}

// Secret tells the lines of a file, from 1, that may hold a sensitive value.
func Secret(src []byte, name string) map[int]bool {
	lines := map[int]bool{}
	body, diags := parseSource(src, name)
	if diags.HasErrors() {
		return lines
	}
	hide := func(r hcl.Range) {
		for line := r.Start.Line; line <= r.End.Line; line++ {
			lines[line] = true
		}
	}
	for _, b := range body.Blocks {
		if b.Type == "variable" && b.Body.Attributes["sensitive"] != nil && b.Body.Attributes["default"] != nil {
			hide(b.Body.Attributes["default"].SrcRange)
		}
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, is := n.(*hclsyntax.FunctionCallExpr); is && call.Name == "sensitive" {
			hide(call.Range())
		}
		return nil
	})
	return lines
}

// body is a file's syntax as it is now. A draft is of files that parse; where an edit
// broke one, nothing of it is found.
func (d *Draft) body(name string) *hclsyntax.Body {
	body, diags := parseSource(d.files[name], name)
	if diags.HasErrors() {
		return &hclsyntax.Body{}
	}
	return body
}

// found is a block of the draft.
type found struct{ *hclsyntax.Block }

// inner is the one block of a type and label inside, nil for none.
func (b found) inner(kind, label string) *found {
	for _, in := range b.Body.Blocks {
		if in.Type == kind && (label == "" || slices.Equal(in.Labels, []string{label})) {
			return &found{in}
		}
	}
	return nil
}

// block is the block of one object.
func (d *Draft) block(object Address) (*found, error) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		for _, b := range d.body(name).Blocks {
			if b.Type != object.Kind || !slices.Equal(b.Labels, []string{object.Name}) {
				continue
			}
			if each := b.Body.Attributes["for_each"]; each != nil {
				return nil, &EditError{
					Why: fmt.Sprintf("%s is one of those that for_each makes of one block", object),
					At:  originOf(each.SrcRange), Elsewhere: true,
				}
			}
			return &found{b}, nil
		}
	}
	return nil, &EditError{Why: fmt.Sprintf("no block of the files is %s", object)}
}

// literal is an error for an expression that isn't spelt out where it stands.
func (d *Draft) literal(x hclsyntax.Expression) error {
	var computed hclsyntax.Node
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr, *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr, *hclsyntax.TupleConsExpr,
			*hclsyntax.ObjectConsExpr, *hclsyntax.ParenthesesExpr, *hclsyntax.UnaryOpExpr:
		case *hclsyntax.ObjectConsKeyExpr:
		case *hclsyntax.ScopeTraversalExpr:
			// A bare key is one, too, and names nothing.
			if hcl.ExprAsKeyword(n) == "" && computed == nil {
				computed = n
			}
		default:
			if computed == nil {
				computed = n
			}
		}
		return nil
	})
	if computed == nil && len(x.Variables()) == 0 {
		return nil
	}
	return d.comesFrom(x)
}

// comesFrom says where the value of an expression is decided.
func (d *Draft) comesFrom(x hclsyntax.Expression) error {
	for _, t := range x.Variables() {
		root, name := t.RootName(), ""
		if len(t) > 1 {
			if attr, is := t[1].(hcl.TraverseAttr); is {
				name = attr.Name
			}
		}
		if at, ok := d.defined(root, name); ok {
			return &EditError{Why: fmt.Sprintf("its value comes from %s.%s", root, name), At: at, Elsewhere: true}
		}
	}
	return &EditError{Why: "its value is computed", At: originOf(x.Range()), Elsewhere: true}
}

// defined is where a variable or a local stands.
func (d *Draft) defined(root, name string) (Origin, bool) {
	for _, file := range slices.Sorted(maps.Keys(d.files)) {
		for _, b := range d.body(file).Blocks {
			switch {
			case root == "var" && b.Type == "variable" && slices.Equal(b.Labels, []string{name}):
				return originOf(b.DefRange()), true
			case root == "local" && b.Type == "locals" && b.Body.Attributes[name] != nil:
				return originOf(b.Body.Attributes[name].SrcRange), true
			}
		}
	}
	return Origin{}, false
}

// elements are a map's, where they are written one by one.
func (d *Draft) elements(attr *hclsyntax.Attribute) (*hclsyntax.ObjectConsExpr, error) {
	if x, is := attr.Expr.(*hclsyntax.ObjectConsExpr); is {
		return x, nil
	}
	return nil, d.comesFrom(attr.Expr)
}

func (d *Draft) items(attr *hclsyntax.Attribute) (*hclsyntax.TupleConsExpr, error) {
	if x, is := attr.Expr.(*hclsyntax.TupleConsExpr); is {
		return x, nil
	}
	return nil, d.comesFrom(attr.Expr)
}

func indexOf(x *hclsyntax.ObjectConsExpr, key string) (int, bool) {
	for i, item := range x.Items {
		v, diags := item.KeyExpr.Value(nil)
		if !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "string" && v.AsString() == key {
			return i, true
		}
	}
	return 0, false
}

func elementName(key string) string {
	if hclsyntax.ValidIdentifier(key) {
		return key
	}
	return string(Text(key))
}

func elementRanges(x *hclsyntax.ObjectConsExpr) []hcl.Range {
	var out []hcl.Range
	for _, i := range x.Items {
		out = append(out, hcl.RangeBetween(i.KeyExpr.Range(), i.ValueExpr.Range()))
	}
	return out
}

func itemRanges(x *hclsyntax.TupleConsExpr) []hcl.Range {
	var out []hcl.Range
	for _, i := range x.Exprs {
		out = append(out, i.Range())
	}
	return out
}

// splice puts text in the place of a range.
func (d *Draft) splice(r hcl.Range, text string) {
	d.replace(r.Filename, r.Start.Byte, r.End.Byte, text)
}

func (d *Draft) replace(name string, from, to int, text string) {
	src := d.files[name]
	d.files[name] = slices.Concat(src[:from], []byte(text), src[to:])
}

// lineOf are the bounds of the lines that a range lies on, with their end.
func (d *Draft) linesOf(r hcl.Range) (from, to int) {
	src := d.files[r.Filename]
	from = bytes.LastIndexByte(src[:r.Start.Byte], '\n') + 1
	to = r.End.Byte
	if to > 0 && src[to-1] == '\n' {
		return from, to // a heredoc ends with its line
	}
	if end := bytes.IndexByte(src[to:], '\n'); end >= 0 {
		return from, to + end + 1
	}
	return from, len(src)
}

// cutLines takes away the lines of a range, and an empty one before them where one
// follows or the block ends.
func (d *Draft) cutLines(r hcl.Range) {
	src := d.files[r.Filename]
	from, to := d.linesOf(r)
	before, after := src[:from], bytes.TrimLeft(src[to:], " \t")
	if bytes.HasSuffix(before, []byte("\n\n")) && (len(after) == 0 || after[0] == '\n' || after[0] == '}') {
		from--
	}
	d.replace(r.Filename, from, to, "")
}

// open gives a block that stands on one line lines of its own.
func (d *Draft) open(b *found) *found {
	if b.OpenBraceRange.Start.Line != b.CloseBraceRange.Start.Line {
		return b
	}
	name := b.OpenBraceRange.Filename
	d.replace(name, b.CloseBraceRange.Start.Byte, b.CloseBraceRange.Start.Byte, "\n")
	d.replace(name, b.OpenBraceRange.End.Byte, b.OpenBraceRange.End.Byte, "\n")
	return d.again(b)
}

// again finds a block that starts where one did.
func (d *Draft) again(b *found) *found {
	var is *found
	_ = hclsyntax.VisitAll(d.body(b.OpenBraceRange.Filename), func(n hclsyntax.Node) hcl.Diagnostics {
		if block, ok := n.(*hclsyntax.Block); ok && block.TypeRange.Start == b.TypeRange.Start {
			is = &found{block}
		}
		return nil
	})
	if is == nil {
		return b
	}
	return is
}

// addLine adds an attribute behind the others of a block.
func (d *Draft) addLine(b *found, text string) error {
	b = d.open(b)
	name := b.OpenBraceRange.Filename
	_, at := d.linesOf(b.OpenBraceRange)
	for _, attr := range b.Body.Attributes {
		if _, end := d.linesOf(attr.SrcRange); end > at {
			at = end
		}
	}
	d.replace(name, at, at, d.indented(b, text))
	return nil
}

// addBlock adds a block inside another, behind all that is there.
func (d *Draft) addBlock(b *found, inner Block) error {
	b = d.open(b)
	name := b.OpenBraceRange.Filename
	at := bytes.LastIndexByte(d.files[name][:b.CloseBraceRange.Start.Byte], '\n') + 1
	text := d.indented(b, inner.text())
	if len(b.Body.Attributes)+len(b.Body.Blocks) > 0 {
		text = "\n" + text
	}
	d.replace(name, at, at, text)
	return nil
}

// indented are lines as far to the right as what stands in a block.
func (d *Draft) indented(b *found, text string) string {
	src := d.files[b.OpenBraceRange.Filename]
	from, _ := d.linesOf(b.TypeRange)
	lead := string(src[from:b.TypeRange.Start.Byte]) + "  "
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		out.WriteString(lead + line)
	}
	return out.String()
}

// addAfter adds to a list or a map, behind what it has, on a line where each has one.
func (d *Draft) addAfter(whole hcl.Range, have []hcl.Range, text string) {
	src := d.files[whole.Filename]
	if len(have) == 0 {
		open, end := src[whole.Start.Byte:whole.Start.Byte+1], src[whole.End.Byte-1:whole.End.Byte]
		if open[0] == '{' {
			text = " " + text + " "
		}
		d.splice(whole, string(open)+text+string(end))
		return
	}
	last := have[len(have)-1]
	if last.Start.Line == whole.Start.Line {
		d.replace(whole.Filename, last.End.Byte, last.End.Byte, ", "+text)
		return
	}
	from, to := d.linesOf(last)
	lead := src[from : from+len(src[from:])-len(bytes.TrimLeft(src[from:], " \t"))]
	if to > whole.End.Byte-1 {
		// The list ends on the last one's line.
		d.replace(whole.Filename, last.End.Byte, last.End.Byte, ",\n"+string(lead)+text)
		return
	}
	if src[whole.Start.Byte] == '[' {
		text += ","
	}
	d.replace(whole.Filename, to, to, string(lead)+text+"\n")
	if rest := bytes.TrimLeft(src[last.End.Byte:to], " \t"); src[whole.Start.Byte] == '[' && rest[0] != ',' {
		d.replace(whole.Filename, last.End.Byte, last.End.Byte, ",")
	}
}

// removeOne takes one of a list or a map away, and the whole attribute with the last.
func (d *Draft) removeOne(attr *hclsyntax.Attribute, have []hcl.Range, i int) {
	if len(have) == 1 {
		d.cutLines(attr.SrcRange)
		return
	}
	src := d.files[attr.SrcRange.Filename]
	one := have[i]
	from, to := d.linesOf(one)
	before := bytes.TrimSpace(src[from:one.Start.Byte])
	after := bytes.TrimSpace(src[one.End.Byte:to])
	if len(before) == 0 && (len(after) == 0 || after[0] == ',' && len(bytes.TrimSpace(after[1:])) == 0) {
		d.replace(attr.SrcRange.Filename, from, to, "")
		return
	}
	if i+1 < len(have) {
		d.replace(attr.SrcRange.Filename, one.Start.Byte, have[i+1].Start.Byte, "")
		return
	}
	d.replace(attr.SrcRange.Filename, have[i-1].End.Byte, one.End.Byte, "")
}
