package schema

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"go.yaml.in/yaml/v3"
)

// A configuration is written by people and read by people. These bounds are far
// above what one needs, and keep a slip (or a hostile variables file) from taking
// the host's memory.
const (
	// maxWeight bounds what a call takes and what it returns, in bytes of text plus
	// elementWeight for each value.
	maxWeight     = 4 << 20
	elementWeight = 16
	// maxFormatWidth bounds the widths and precisions of format and indent.
	maxFormatWidth = 1024
	// maxBinaryExponent bounds a number's binary exponent: 1e600000000 is ten characters in
	// a file and 600 MB as a string.
	maxBinaryExponent = 1 << 14
	// maxDocumentDepth bounds the depth of a decoded document, since decoders recurse.
	maxDocumentDepth = 512
	// maxTemplate bounds templatestring's template, since its parser recurses.
	maxTemplate = 64 << 10
)

var errTooLarge = fmt.Errorf("the value is larger than %d MiB, which no configuration needs; give a space large data as a file, in a grant", maxWeight>>20)

var errTooDeep = fmt.Errorf("the document is nested deeper than %d levels", maxDocumentDepth)

// bounded refuses a call whose arguments or result are too heavy. check, where it
// isn't nil, judges the call by its unmarked, wholly known arguments before it
// runs; a function needs one if its result can outgrow its arguments by far.
func bounded(f function.Function, check func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      f.Params(),
		VarParam:    f.VarParam(),
		// Type runs before Impl in every call, and for decoders it does the work.
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := checkArguments(args, check); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if panicked := (function.PanicError{}); errors.As(err, &panicked) {
				// A stack is no help to whoever wrote the call.
				return v, fmt.Errorf("cannot be called with these arguments: %v", panicked.Value)
			}
			if err != nil {
				return v, err
			}
			left := maxWeight
			return v, weigh(v, &left)
		},
	})
}

func checkArguments(args []cty.Value, check func(args []cty.Value) error) error {
	left := maxWeight
	plain := make([]cty.Value, len(args))
	known := true
	for i, arg := range args {
		if err := weigh(arg, &left); err != nil {
			return function.NewArgError(i, err)
		}
		plain[i], _ = arg.UnmarkDeep()
		known = known && plain[i].IsWhollyKnown()
	}
	if check == nil || !known {
		return nil
	}
	return check(plain)
}

// weigh takes v's weight off left and fails when nothing is left. A value that is
// in there twice weighs twice, as it would when written out.
func weigh(v cty.Value, left *int) error {
	v, _ = v.Unmark()
	*left -= elementWeight
	if *left < 0 {
		return errTooLarge
	}
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	switch ty := v.Type(); {
	case ty == cty.String:
		*left -= len(v.AsString())
	case ty == cty.Number:
		n := v.AsBigFloat()
		if n.IsInf() {
			return nil
		}
		if err := checkNumber(n); err != nil {
			return err
		}
		*left -= magnitude(n.MantExp(nil)) / 8
	case ty.IsCollectionType(), ty.IsTupleType(), ty.IsObjectType():
		for it := v.ElementIterator(); it.Next(); {
			k, element := it.Element()
			if !ty.IsListType() && !ty.IsTupleType() && !ty.IsSetType() {
				*left -= len(k.AsString())
			}
			if err := weigh(element, left); err != nil {
				return err
			}
		}
	}
	if *left < 0 {
		return errTooLarge
	}
	return nil
}

// checkNumber refuses a number that would take long to write out. The loader asks
// it of literals: HCL turns a number into a string without calling a function.
func checkNumber(n *big.Float) error {
	if !n.IsInf() && magnitude(n.MantExp(nil)) > maxBinaryExponent {
		return errors.New("the number is too large or too small to be written out; numbers end at about 1e4932 and 1e-4932")
	}
	return nil
}

func magnitude(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// fits fails if count things of the given size (each at least 1) are too heavy.
// It divides, because the product may overflow.
func fits(count, size int) error {
	if count > 0 && size > maxWeight/count {
		return errTooLarge
	}
	return nil
}

func weightOf(v cty.Value) int {
	left := maxWeight
	// A value over the bound never comes here: checkArguments has weighed it.
	_ = weigh(v, &left)
	return maxWeight - left
}

// checkFormat bounds format: its widths, and arguments that are used many times.
func checkFormat(args []cty.Value) error {
	if args[0].IsNull() {
		return nil // format itself says so, better
	}
	text := args[0].AsString()
	verbs, padding, err := scanFormat(text)
	if err != nil {
		return function.NewArgError(0, err)
	}
	heaviest := 1
	for _, arg := range args[1:] {
		heaviest = max(heaviest, weightOf(arg))
	}
	if len(text)+padding > maxWeight {
		return errTooLarge
	}
	return fits(verbs, heaviest)
}

// checkFormatList bounds formatlist, which formats once for each element of its
// lists, and uses what isn't a list every time.
func checkFormatList(args []cty.Value) error {
	if err := checkFormat(args); err != nil || args[0].IsNull() {
		return err
	}
	text := args[0].AsString()
	verbs, padding, _ := scanFormat(text)
	rounds, each := 1, len(text)+padding
	for _, arg := range args[1:] {
		if !arg.IsNull() && arg.CanIterateElements() {
			rounds = max(rounds, arg.LengthInt())
		} else {
			each += verbs * weightOf(arg)
		}
	}
	return fits(rounds, each)
}

// scanFormat counts the verbs of a format string and adds up their widths and
// precisions, by the grammar of cty's format function.
func scanFormat(text string) (verbs, padding int, err error) {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			continue
		}
		i++
		if i < len(text) && text[i] == '%' {
			continue
		}
		verbs++
		for i < len(text) && strings.IndexByte("0#-+ ", text[i]) >= 0 {
			i++
		}
		for range 2 { // the width, then the precision after a period
			n := 0
			for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
				n = 10*n + int(text[i]-'0')
				if n > maxFormatWidth {
					return 0, 0, fmt.Errorf("a width or precision is over %d", maxFormatWidth)
				}
			}
			padding += n
			if i >= len(text) || text[i] != '.' {
				break
			}
			i++
		}
		i-- // the verb's letter (or what is wrong there) is looked at again, and isn't a '%' twice
	}
	return verbs, padding, nil
}

// checkIndent bounds the spaces, which are added once for each line.
func checkIndent(args []cty.Value) error {
	if args[0].IsNull() || args[1].IsNull() {
		return nil
	}
	spaces := args[0].AsBigFloat()
	if spaces.Sign() < 0 || spaces.Cmp(big.NewFloat(maxFormatWidth)) > 0 {
		return function.NewArgErrorf(0, "the number of spaces must be between 0 and %d", maxFormatWidth)
	}
	n, _ := spaces.Int64()
	return fits(1+strings.Count(args[1].AsString(), "\n"), 1+int(n))
}

// checkJoin bounds the separators.
func checkJoin(args []cty.Value) error {
	elements := 0
	for _, list := range args[1:] {
		if !list.IsNull() {
			elements += list.LengthInt()
		}
	}
	if args[0].IsNull() {
		return nil
	}
	return fits(elements, 1+len(args[0].AsString()))
}

// checkReplace bounds the replacements, as often as the pattern matches.
func checkReplace(args []cty.Value) error {
	for _, arg := range args {
		if arg.IsNull() {
			return nil
		}
	}
	text, search, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
	pattern, isPattern := slashed(search)
	if !isPattern {
		return fits(strings.Count(text, search), 1+len(with))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil // replace itself says so, better
	}
	matches := len(re.FindAllStringIndex(text, maxWeight/(1+len(with))+1))
	if err := fits(matches, 1+len(with)); err != nil {
		return err
	}
	// Each $ can bring back a whole match, and the matches together are at most the text.
	return fits(strings.Count(with, "$"), 1+len(text))
}

// checkRegexAll bounds the matches times their groups.
func checkRegexAll(args []cty.Value) error {
	if args[0].IsNull() || args[1].IsNull() {
		return nil
	}
	re, err := regexp.Compile(args[0].AsString())
	if err != nil {
		return nil // regexall itself says so, better
	}
	size := elementWeight * (1 + re.NumSubexp())
	return fits(len(re.FindAllStringIndex(args[1].AsString(), maxWeight/size+1)), size)
}

// checkSetProduct bounds the number of combinations times the sets.
func checkSetProduct(args []cty.Value) error {
	combinations := 1
	for _, arg := range args {
		if arg.IsNull() || !arg.CanIterateElements() {
			return nil // setproduct itself says so, better
		}
		if arg.LengthInt() == 0 {
			return nil
		}
	}
	for _, arg := range args {
		if err := fits(combinations, arg.LengthInt()*elementWeight*len(args)); err != nil {
			return fmt.Errorf("the product has too many combinations: %w", err)
		}
		combinations *= arg.LengthInt()
	}
	return nil
}

// checkSplit bounds the pieces.
func checkSplit(args []cty.Value) error {
	if args[0].IsNull() || args[1].IsNull() {
		return nil
	}
	return fits(1+strings.Count(args[1].AsString(), args[0].AsString()), elementWeight)
}

// checkMerge and checkZipmap put into words what cty panics over.
func checkMerge(args []cty.Value) error {
	for i, arg := range args {
		if ty := arg.Type(); !arg.IsNull() && !ty.IsMapType() && !ty.IsObjectType() {
			return function.NewArgErrorf(i, "must be a map or an object, not %s", ty.FriendlyName())
		}
	}
	return nil
}

func checkZipmap(args []cty.Value) error {
	if args[0].IsNull() {
		return nil // zipmap itself says so, better
	}
	for it := args[0].ElementIterator(); it.Next(); {
		if _, key := it.Element(); key.IsNull() {
			return function.NewArgErrorf(0, "must have no null key")
		}
	}
	return nil
}

func checkTemplate(args []cty.Value) error {
	if !args[0].IsNull() && len(args[0].AsString()) > maxTemplate {
		return function.NewArgErrorf(0, "the template is longer than %d KiB", maxTemplate>>10)
	}
	return nil
}

// checkJSONDepth bounds the depth of a JSON document. It counts brackets outside of
// strings; what isn't JSON the decoder refuses.
func checkJSONDepth(args []cty.Value) error {
	if args[0].IsNull() {
		return nil
	}
	text := args[0].AsString()
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
		if depth > maxDocumentDepth {
			return function.NewArgError(0, errTooDeep)
		}
	}
	return nil
}

// checkYAML bounds the depth of a YAML document, and its size once every alias
// stands for a copy of what it names: nine lines of aliases of aliases are a
// billion values. Documents in the language are small, so parsing twice is cheap.
func checkYAML(args []cty.Value) error {
	if args[0].IsNull() {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(args[0].AsString()), &document); err != nil {
		return function.NewArgError(0, err)
	}
	if _, err := yamlWeight(&document, 0, map[*yaml.Node]int{}); err != nil {
		return function.NewArgError(0, err)
	}
	return nil
}

// yamlWeight is the weight of a node with its aliases written out.
func yamlWeight(n *yaml.Node, depth int, known map[*yaml.Node]int) (int, error) {
	if depth > maxDocumentDepth {
		return 0, errTooDeep
	}
	if w, ok := known[n]; ok {
		if w < 0 {
			return 0, errors.New("the document contains itself, through an alias")
		}
		return w, nil
	}
	known[n] = -1 // being weighed
	weight := elementWeight + len(n.Value)
	children := n.Content
	if n.Kind == yaml.AliasNode {
		children = []*yaml.Node{n.Alias}
	}
	for _, child := range children {
		w, err := yamlWeight(child, depth+1, known)
		if err != nil {
			return 0, err
		}
		if weight += w; weight > maxWeight {
			return 0, errTooLarge
		}
	}
	known[n] = weight
	return weight, nil
}
