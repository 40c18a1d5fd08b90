package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Edit is one change to a block of the files, as a person would make it.
type Edit interface {
	edit(*Draft) error
}

// The edits. Object is the block that each is made in. Block and Label name a block
// inside, and are empty for the object's own attributes.
type (
	// SetAttribute writes a value where a literal one stands or none.
	SetAttribute struct {
		Object             Address
		Block, Label, Name string
		Value              Value
	}
	// RemoveAttribute takes away an attribute with a literal value.
	RemoveAttribute struct {
		Object             Address
		Block, Label, Name string
	}
	// SetElement writes one element of a map, RemoveElement takes it away.
	SetElement struct {
		Object    Address
		Name, Key string
		Value     string
	}
	// RemoveElement takes away one element of a map that is written literally.
	RemoveElement struct {
		Object    Address
		Name, Key string
	}
	// AddItem adds to a list what Text spells, RemoveItem takes it out of the list.
	AddItem struct {
		Object     Address
		Name, Text string
	}
	// RemoveItem takes out of a list the item that Text spells.
	RemoveItem struct {
		Object     Address
		Name, Text string
	}
	// AddBlock adds a block inside the object.
	AddBlock struct {
		Object Address
		Block  Block
	}
	// RemoveBlocks takes away the blocks of a type and label whose attributes have the
	// values given, those that aren't written having the one of Defaults.
	RemoveBlocks struct {
		Object      Address
		Type, Label string
		Where       map[string]Value
		Defaults    map[string]Value
	}
	// AddObject adds a block to a file, behind all that is there.
	AddObject struct {
		File  string
		Block Block
	}
	// RemoveObject takes away a whole block.
	RemoveObject struct{ Object Address }
)

// Block is a block to be written.
type Block struct {
	Type, Label string
	Attributes  []Attribute
}

// Attribute is one of a block that is to be written.
type Attribute struct {
	Name  string
	Value Value
}

// Value is what an attribute is given, as the files spell it.
type Value string

// Text, Texts, Number and Flag spell values.
func Text(s string) Value { return spell(cty.StringVal(s)) }

// Texts spells a list of strings.
func Texts(list []string) Value {
	items := make([]string, len(list))
	for i, s := range list {
		items[i] = string(Text(s))
	}
	return Value("[" + strings.Join(items, ", ") + "]")
}

// Number spells a number that is written in decimal digits.
func Number(digits string) Value { return Value(digits) }

// Flag spells true or false.
func Flag(b bool) Value { return spell(cty.BoolVal(b)) }

func spell(v cty.Value) Value { return Value(hclwrite.TokensForValue(v).Bytes()) }

// EditError is why the files can't be edited so, and where what is in the way stands.
type EditError struct {
	Why string
	At  Origin
	// Elsewhere is true where a person who edits At decides what the edit was to.
	Elsewhere bool
}

func (e *EditError) Error() string { return e.Why }

func (e SetAttribute) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	if e.Block != "" {
		inner := b.inner(e.Block, e.Label)
		if inner == nil {
			return d.addBlock(b, Block{e.Block, e.Label, []Attribute{{e.Name, e.Value}}})
		}
		b = inner
	}
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return d.addLine(b, e.Name+" = "+string(e.Value))
	}
	if err := d.literal(attr.Expr); err != nil {
		return err
	}
	d.splice(attr.Expr.Range(), string(e.Value))
	return nil
}

func (e RemoveAttribute) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	if e.Block != "" {
		if b = b.inner(e.Block, e.Label); b == nil {
			return &EditError{Why: fmt.Sprintf("%s has no %s block", e.Object, e.Block)}
		}
	}
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return &EditError{Why: fmt.Sprintf("%s doesn't write %s: it comes from the image or is a default", e.Object, e.Name), At: originOf(b.DefRange())}
	}
	if err := d.literal(attr.Expr); err != nil {
		return err
	}
	d.cutLines(attr.SrcRange)
	return nil
}

func (e SetElement) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	line := elementName(e.Key) + " = " + string(Text(e.Value))
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return d.addLine(b, fmt.Sprintf("%s = {\n%s\n}", e.Name, line))
	}
	elements, err := d.elements(attr)
	if err != nil {
		return err
	}
	if i, ok := indexOf(elements, e.Key); ok {
		value := elements.Items[i].ValueExpr
		if err := d.literal(value); err != nil {
			return err
		}
		d.splice(value.Range(), string(Text(e.Value)))
		return nil
	}
	d.addAfter(elements.SrcRange, elementRanges(elements), line)
	return nil
}

func (e RemoveElement) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return &EditError{Why: fmt.Sprintf("%s doesn't write it: it comes from the image or is a default", e.Object), At: originOf(b.DefRange())}
	}
	elements, err := d.elements(attr)
	if err != nil {
		return err
	}
	i, ok := indexOf(elements, e.Key)
	if !ok {
		return &EditError{Why: fmt.Sprintf("%s doesn't write it: it comes from the image or is a default", e.Object), At: originOf(attr.SrcRange)}
	}
	if err := d.literal(elements.Items[i].ValueExpr); err != nil {
		return err
	}
	d.removeOne(attr, elementRanges(elements), i)
	return nil
}

func (e AddItem) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return d.addLine(b, e.Name+" = ["+e.Text+"]")
	}
	list, err := d.items(attr)
	if err != nil {
		return err
	}
	d.addAfter(list.SrcRange, itemRanges(list), e.Text)
	return nil
}

func (e RemoveItem) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	attr := b.Body.Attributes[e.Name]
	if attr == nil {
		return &EditError{Why: fmt.Sprintf("%s has no %s", e.Object, e.Name), At: originOf(b.DefRange())}
	}
	list, err := d.items(attr)
	if err != nil {
		return err
	}
	src := d.files[attr.SrcRange.Filename]
	i := slices.IndexFunc(list.Exprs, func(x hclsyntax.Expression) bool {
		return string(x.Range().SliceBytes(src)) == e.Text
	})
	if i < 0 {
		return &EditError{Why: fmt.Sprintf("%s of %s doesn't list %s", e.Name, e.Object, e.Text), At: originOf(attr.SrcRange)}
	}
	d.removeOne(attr, itemRanges(list), i)
	return nil
}

func (e AddBlock) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	return d.addBlock(b, e.Block)
}

func (e RemoveBlocks) edit(d *Draft) error {
	removed := false
	for {
		b, err := d.block(e.Object)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(b.Body.Blocks, func(in *hclsyntax.Block) bool { return e.matches(d, in) })
		if i < 0 {
			break
		}
		d.cutLines(b.Body.Blocks[i].Range())
		removed = true
	}
	if !removed {
		return &EditError{Why: fmt.Sprintf("%s has no such %s block that is written literally", e.Object, e.Type)}
	}
	return nil
}

func (e RemoveBlocks) matches(d *Draft, b *hclsyntax.Block) bool {
	if b.Type != e.Type || e.Label != "" && !slices.Equal(b.Labels, []string{e.Label}) {
		return false
	}
	for name, want := range e.Where {
		attr := b.Body.Attributes[name]
		switch {
		case attr == nil && e.Defaults[name] != want:
			return false
		case attr == nil:
		case d.literal(attr.Expr) != nil:
			return false
		default:
			v, diags := attr.Expr.Value(nil)
			if diags.HasErrors() || v.IsNull() || spell(v) != want {
				return false
			}
		}
	}
	return true
}

func (e AddObject) edit(d *Draft) error {
	src := d.files[e.File]
	if src == nil {
		return &EditError{Why: "there is no file " + e.File}
	}
	text := string(src)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	d.files[e.File] = []byte(text + "\n" + e.Block.text())
	return nil
}

func (e RemoveObject) edit(d *Draft) error {
	b, err := d.block(e.Object)
	if err != nil {
		return err
	}
	d.cutLines(b.Range())
	return nil
}

// text is the block as the files have it.
func (b Block) text() string {
	header := b.Type
	if b.Label != "" {
		header += " " + string(Text(b.Label))
	}
	var lines strings.Builder
	for _, a := range b.Attributes {
		lines.WriteString(a.Name + " = " + string(a.Value) + "\n")
	}
	return string(Format([]byte(header + " {\n" + lines.String() + "}\n")))
}
