package schema

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// CheckSyntax says what keeps one file, of the configuration or of variables, from being
// read at all. It is for whoever is about to hand the file to the parser: one that passes
// doesn't nest deeper than the parser's stack.
func CheckSyntax(src []byte, name string) hcl.Diagnostics {
	_, diags := parseSource(src, name)
	if isVariables(name) {
		return withoutDetails(diags)
	}
	return diags
}

// Source is a file's text as far as messages may show it, for WriteDiagnostics and
// Snippet. That of a file of variables, which may be secrets, is hidden.
func Source(src []byte, name string) []byte {
	if isVariables(name) {
		return hideSource(src)
	}
	return src
}

func isVariables(name string) bool { return path.Ext(name) == variablesExt }

func parseSource(src []byte, name string) (*hclsyntax.Body, hcl.Diagnostics) {
	if diag := checkText(src, name); diag != nil {
		return nil, hcl.Diagnostics{diag}
	}
	if diag := checkNesting(src, name); diag != nil {
		return nil, hcl.Diagnostics{diag}
	}
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	for i, d := range diags {
		diags[i] = explainSyntax(src, d)
	}
	return file.Body.(*hclsyntax.Body), diags
}

// checkText finds the first byte that isn't part of a text in UTF-8.
func checkText(src []byte, name string) *hcl.Diagnostic {
	end := len(src)
	if at := bytes.IndexByte(src, 0); at >= 0 {
		end = at
	}
	for at := 0; at < end; {
		r, size := utf8.DecodeRune(src[at:end])
		if r == utf8.RuneError && size == 1 {
			end = at
			break
		}
		at += size
	}
	if end == len(src) {
		return nil
	}
	before := src[:end]
	start := bytes.LastIndexByte(before, '\n') + 1
	pos := hcl.Pos{Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1, Byte: end}
	next := pos
	next.Column, next.Byte = pos.Column+1, pos.Byte+1
	wide := bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff"))
	return diagNotText(wide, hcl.Range{Filename: name, Start: pos, End: next})
}

// explainSyntax replaces what HCL says of a template in a label: that it is to be
// escaped, which is never what was meant.
func explainSyntax(src []byte, diag *hcl.Diagnostic) *hcl.Diagnostic {
	if !strings.HasPrefix(diag.Detail, "Template sequences are not allowed") || diag.Subject == nil || diag.Context == nil {
		return diag
	}
	before := src[:diag.Context.Start.Byte]
	words := strings.Fields(string(before[bytes.LastIndexByte(before, '\n')+1:]))
	if len(words) == 0 {
		return diag
	}
	return diagLabelTemplate(words[0], at(*diag.Subject).within(*diag.Context))
}

// withoutDetails are the parser's messages about a file of variables without what they
// may quote of it.
func withoutDetails(diags hcl.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, d := range diags {
		if Code(d) == "" {
			d = diagVarFileSyntax(d.Summary, at(subjectOf(d)))
		}
		out = append(out, d)
	}
	return out
}

// hiddenByte stands for every byte of a source that isn't shown. No file that parses
// holds it.
const hiddenByte = 0

// hideSource is a source of which nothing is shown but how long its lines are.
func hideSource(src []byte) []byte {
	hidden := make([]byte, len(src))
	for i, b := range src {
		if b == '\n' {
			hidden[i] = b
		}
	}
	return hidden
}

// showSource shows the lines of a range again.
func showSource(hidden, src []byte, r hcl.Range) {
	from := bytes.LastIndexByte(src[:r.Start.Byte], '\n') + 1
	to := len(src)
	if i := bytes.IndexByte(src[r.End.Byte:], '\n'); i >= 0 {
		to = r.End.Byte + i
	}
	copy(hidden[from:to], src[from:to])
}

// Snippet is some lines of a source, counted from 1, or empty where they aren't shown.
func Snippet(src []byte, from, to int) string {
	lines := linesOf(src, from, to)
	if bytes.IndexByte(lines, hiddenByte) >= 0 || len(lines) > maxShownLines {
		return ""
	}
	return string(lines)
}

func linesOf(src []byte, from, to int) []byte {
	for range from - 1 {
		_, src, _ = bytes.Cut(src, []byte{'\n'})
	}
	end := 0
	for range to - max(from, 1) + 1 {
		at := bytes.IndexByte(src[end:], '\n')
		if at < 0 {
			return src
		}
		end += at + 1
	}
	return src[:end]
}
