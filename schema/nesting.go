package schema

import (
	"bytes"
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	// maxNesting bounds how deep an expression may reach. The parser and the
	// evaluator call themselves for each level, and a stack that overflows ends the
	// program, so depth is judged on the tokens, before anything is parsed.
	maxNesting = 250
	// maxNumber bounds the length of a number, digits and exponent: a short
	// exponent can stand for more digits than memory holds.
	maxNumber   = 64
	maxExponent = 4 // "e400", say
)

// checkValue refuses what an expression came to if it is too heavy or too deep to be
// walked and written out: a few lines can double a value forty times.
func checkValue(v cty.Value) (weight int, err error) {
	left := maxWeight
	if err := weigh(v, &left); err != nil {
		return 0, err
	}
	if deeper(v, maxNesting) {
		return 0, errors.New("the value is nested too deeply")
	}
	return maxWeight - left, nil
}

// deeper reports whether a value holds values in more than so many levels.
func deeper(v cty.Value, levels int) bool {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return false
	}
	switch ty := v.Type(); {
	case levels == 0:
		return true
	case ty.IsCollectionType() && ty.ElementType().IsPrimitiveType():
		return false // and reading a set's elements puts them in order first
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, element := it.Element(); deeper(element, levels-1) {
			return true
		}
	}
	return false
}

// checkNesting finds what would take the parser too deep: brackets, and chains of
// operators and steps, which nest too.
func checkNesting(src []byte, name string) *hcl.Diagnostic {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos) // its faults are the parser's to report
	m := nestingMeter{}
	for _, token := range tokens {
		if token.Type == hclsyntax.TokenNumberLit && numberTooLong(token.Bytes) {
			return diagNumberTooLong(token.Range)
		}
		m.step(token.Type)
		if m.depth() > maxNesting {
			return diagTooDeep(token.Range)
		}
	}
	return nil
}

func numberTooLong(number []byte) bool {
	if len(number) > maxNumber {
		return true
	}
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		return len(bytes.TrimLeft(number[i+1:], "+-0")) > maxExponent-1
	}
	return false
}

// nestingMeter counts, for each open bracket, the operators since the last separator.
type nestingMeter struct {
	levels []level // the innermost last; the first is the file's
	sum    int
	last   hclsyntax.TokenType
	line   bool // a newline that may end an item was read
}

type level struct {
	open  hclsyntax.TokenType
	chain int
}

func (m *nestingMeter) depth() int { return len(m.levels) + m.sum }

func (m *nestingMeter) step(token hclsyntax.TokenType) {
	if len(m.levels) == 0 {
		m.levels = append(m.levels, level{})
	}
	top := &m.levels[len(m.levels)-1]
	switch token {
	case hclsyntax.TokenNewline:
		m.line = m.line || top.open == 0 || top.open == hclsyntax.TokenOBrace
		return
	case hclsyntax.TokenComment:
		m.line = m.line || top.open == 0 || top.open == hclsyntax.TokenOBrace
		return
	}
	// In a for expression a newline ends nothing, and nothing starts with an operator
	// or an index.
	if m.line && !deepens(token) && !deepens(m.last) && token != hclsyntax.TokenOBrack {
		m.reset(top)
	}
	m.line = false
	m.last = token
	switch {
	case opens(token):
		// A bracket counts in its parent too: f[a][b][c] is one inside the other, and
		// so is %{ if a }%{ if b }; only interpolations stand side by side.
		if token != hclsyntax.TokenTemplateInterp {
			m.add(top)
		}
		m.levels = append(m.levels, level{open: token})
	case closes(token):
		m.reset(top)
		if len(m.levels) > 1 {
			m.levels = m.levels[:len(m.levels)-1]
		}
	case token == hclsyntax.TokenComma:
		m.reset(top)
	case deepens(token):
		m.add(top)
	}
}

func (m *nestingMeter) add(l *level) {
	l.chain++
	m.sum++
}

func (m *nestingMeter) reset(l *level) {
	m.sum -= l.chain
	l.chain = 0
}

func opens(token hclsyntax.TokenType) bool {
	switch token {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		return true
	}
	return false
}

func closes(token hclsyntax.TokenType) bool {
	switch token {
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
		return true
	}
	return false
}

// deepens reports whether a token extends an expression that then holds the part before it.
func deepens(token hclsyntax.TokenType) bool {
	switch token {
	case hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent,
		hclsyntax.TokenBang, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
		hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq,
		hclsyntax.TokenQuestion, hclsyntax.TokenColon, hclsyntax.TokenDot:
		return true
	}
	return false
}
