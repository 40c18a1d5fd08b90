package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"spaces/reconcile"
	"spaces/schema"
)

// formatVersion is the version of every JSON report, as reconcile.FormatVersion is the
// plan's: it changes when a field's meaning does or one goes.
const formatVersion = 1

// problemReport is what --json prints in place of a report that can't be made.
type problemReport struct {
	FormatVersion int       `json:"format_version"`
	Diagnostics   []message `json:"diagnostics"`
}

// message is a diagnostic or a refusal.
type message struct {
	Severity string `json:"severity"`
	// Code is a refusal's; every error of the configuration has config-invalid.
	Code    string `json:"code,omitempty"`
	Summary string `json:"summary"`
	// Detail says what is wrong and what to write or do instead.
	Detail string         `json:"detail,omitempty"`
	Origin *schema.Origin `json:"origin,omitempty"`
	// Snippet are the lines of the file that it is about.
	Snippet string `json:"snippet,omitempty"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

// printJSON writes one object to standard output.
func (a *app) printJSON(v any) {
	if err := writeJSON(a.out, v); err != nil {
		panic(fmt.Sprintf("cli: a report can't be encoded: %v", err))
	}
}

// writeJSON writes an object, indented. The encoder's own indenting would hold it twice
// more in memory, and that of a thousand spaces is large.
func writeJSON(w *bufio.Writer, v any) error {
	e := json.NewEncoder(&indenter{w: w})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeJSONLine writes an object on a line of its own. What doesn't print is escaped, so
// that a text of others steers no terminal that it is shown on.
func writeJSONLine(w *bufio.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for _, r := range string(b) { // invalid UTF-8 was replaced by the encoder
		writeJSONRune(w, r)
	}
	w.WriteByte('\n')
	return nil
}

// writeJSONRune writes a character of a string, spelt out if it would do something to a
// terminal or to the order of what is read there: the encoder leaves those above 0x7e.
func writeJSONRune(w *bufio.Writer, r rune) {
	switch {
	case unicode.IsPrint(r):
		w.WriteRune(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(w, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(w, `\u%04x`, r)
	}
}

// indenter breaks compact JSON into lines as it passes. Writing to a bufio.Writer, it
// leaves errors to the flush.
type indenter struct {
	w      *bufio.Writer
	depth  int
	quoted bool // in a string
	escape bool // after its backslash
	opened bool // after a bracket, before anything in it
}

func (i *indenter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if rest[0] < 0x7f || !i.quoted {
			i.put(rest[0])
			rest = rest[1:]
			continue
		}
		r, size := utf8.DecodeRune(rest) // the encoder writes each value at once
		writeJSONRune(i.w, r)
		rest = rest[size:]
	}
	return len(p), nil
}

func (i *indenter) put(c byte) {
	if i.quoted {
		i.w.WriteByte(c)
		i.quoted = i.escape || c != '"'
		i.escape = !i.escape && c == '\\'
		return
	}
	closing := c == '}' || c == ']'
	switch {
	case closing:
		i.depth--
		if !i.opened {
			i.line()
		}
	case i.opened:
		i.line()
	}
	i.opened = c == '{' || c == '['
	i.quoted = c == '"'
	i.w.WriteByte(c)
	switch {
	case i.opened:
		i.depth++
	case c == ',':
		i.line()
	case c == ':':
		i.w.WriteByte(' ')
	}
}

func (i *indenter) line() {
	i.w.WriteByte('\n')
	for range i.depth {
		i.w.WriteString("  ")
	}
}

func (p *problems) messages() []message {
	return append(diagnosticMessages(p.diags, p.sources), refusalMessages(p.refusals, p.sources)...)
}

func refusalMessages(refusals []reconcile.Refusal, sources map[string][]byte) []message {
	var out []message
	for _, r := range refusals {
		out = append(out, message{
			Severity: severityError, Code: r.Code, Summary: r.Text, Detail: r.Fix,
			Origin: originIn(r.Origin), Snippet: schema.Snippet(sources[r.Origin.File], r.Origin.Line, r.Origin.EndLine),
		})
	}
	return out
}

func diagnosticMessages(diags hcl.Diagnostics, sources map[string][]byte) []message {
	out := []message{}
	for _, d := range diags {
		m := message{Severity: severityWarning, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagError {
			m.Severity, m.Code = severityError, reconcile.CodeConfigInvalid
		}
		if r := d.Subject; r != nil {
			m.Origin = &schema.Origin{
				File: r.Filename, Line: r.Start.Line, Column: r.Start.Column,
				EndLine: r.End.Line, EndColumn: r.End.Column,
			}
			m.Snippet = schema.Snippet(sources[r.Filename], r.Start.Line, r.End.Line)
		}
		out = append(out, m)
	}
	return out
}

func originIn(o schema.Origin) *schema.Origin {
	if o.File == "" {
		return nil
	}
	return &o
}
