package schema

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// wholeDiagnostics is how many diagnostics are written whole. Nobody reads hundreds at
// once, and each costs hcl's writer a walk through its file, line by line.
const wholeDiagnostics = 100

// WriteDiagnostics writes diagnostics as text with the lines they point to, wrapped
// at width columns (0 for no wrapping); of more than a hundred, the rest a line each. The
// files may come from anyone: what would steer a terminal is shown as question marks.
func WriteDiagnostics(w io.Writer, sources map[string][]byte, diags hcl.Diagnostics, width uint, color bool) error {
	files := map[string]*shownFile{}
	whole, rest := diags[:min(len(diags), wholeDiagnostics)], diags[min(len(diags), wholeDiagnostics):]
	for _, diag := range whole {
		plain := *diag
		plain.Summary, plain.Detail = printable(diag.Summary), printable(diag.Detail)
		var excerpts map[string]*hcl.File
		if diag.Subject != nil {
			name := diag.Subject.Filename
			if files[name] == nil {
				files[name] = newShownFile(name, sources)
			}
			excerpts = map[string]*hcl.File{name: files[name].excerpt(&plain)}
		}
		write := hcl.NewDiagnosticTextWriter(w, excerpts, width, color).WriteDiagnostic
		if why := whyHidden(diag, sources); why != "" {
			write = func(*hcl.Diagnostic) error { return writeHidden(w, &plain, why, width, color) }
		}
		if err := write(&plain); err != nil {
			return err
		}
	}
	return writeBriefly(w, rest)
}

func writeBriefly(w io.Writer, diags hcl.Diagnostics) error {
	if len(diags) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "And %d more:\n\n", len(diags))
	for _, diag := range diags {
		b.WriteString("  ")
		if diag.Subject != nil {
			fmt.Fprintf(&b, "%s:%d: ", printable(diag.Subject.Filename), diag.Subject.Start.Line)
		}
		b.WriteString(printable(diag.Summary) + "\n")
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// maxShownLines bounds the lines that are shown of one diagnostic, in bytes, and
// maxShownText what it says.
const (
	maxShownLines = 16 << 10
	maxShownText  = 2 << 10
)

// whyHidden says why the lines that a diagnostic is about aren't shown, if they aren't.
func whyHidden(diag *hcl.Diagnostic, sources map[string][]byte) string {
	if diag.Subject == nil {
		return ""
	}
	r := *diag.Subject
	if diag.Context != nil {
		r = hcl.RangeOver(r, *diag.Context)
	}
	switch lines := linesOf(sources[r.Filename], r.Start.Line, r.End.Line); {
	case bytes.IndexByte(lines, hiddenByte) >= 0:
		return "since it may be a secret"
	case len(lines) > maxShownLines:
		return "since it is too long"
	}
	return ""
}

// writeHidden writes a diagnostic with its place alone.
func writeHidden(w io.Writer, diag *hcl.Diagnostic, why string, width uint, color bool) error {
	var b strings.Builder
	if err := hcl.NewDiagnosticTextWriter(&b, nil, width, color).WriteDiagnostic(diag); err != nil {
		return err
	}
	text := strings.Replace(b.String(), "(source code not available)", "(not shown, "+why+")", 1)
	_, err := io.WriteString(w, text)
	return err
}

// shorten leaves out the middle of a text that nobody reads to its end: a message may
// quote a name of any length.
func shorten(text string) string {
	if len(text) <= maxShownText {
		return text
	}
	const part = maxShownText / 2
	return strings.ToValidUTF8(text[:part], "") + " … " + strings.ToValidUTF8(text[len(text)-part:], "")
}

// shownFile is a file for the writer: its text made printable, and its blocks, by
// which the writer says what a line is in.
type shownFile struct {
	*hcl.File       // nil for one that isn't there
	lines     []int // at which byte each starts
}

func newShownFile(name string, sources map[string][]byte) *shownFile {
	src, ok := sources[name]
	if !ok {
		return &shownFile{}
	}
	file := &hcl.File{}
	if checkNesting(src, name) == nil {
		file, _ = hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	}
	file.Bytes = []byte(printable(string(src)))
	lines := []int{0}
	for i, c := range file.Bytes {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	return &shownFile{file, lines}
}

// excerpt is a file with nothing but the lines that a diagnostic points to, each where
// it was, and moves the diagnostic's ranges to them: the writer reads every character
// from the first on.
func (f *shownFile) excerpt(diag *hcl.Diagnostic) *hcl.File {
	if f.File == nil {
		return nil
	}
	r := *diag.Subject
	if diag.Context != nil {
		r = hcl.RangeOver(r, *diag.Context)
	}
	first, next := r.Start.Line-1, r.End.Line
	if first < 0 || next > len(f.lines) || r.Start.Byte < f.lines[first] {
		return f.File
	}
	from, to := f.lines[first], len(f.Bytes)
	if next < len(f.lines) {
		to = f.lines[next]
	}
	if r.End.Byte > to {
		return f.File
	}
	moved := from - first
	move := func(r *hcl.Range) *hcl.Range {
		if r == nil {
			return nil
		}
		there := *r
		there.Start.Byte -= moved
		there.End.Byte -= moved
		return &there
	}
	diag.Subject, diag.Context = move(diag.Subject), move(diag.Context)
	return &hcl.File{
		Bytes: append(bytes.Repeat([]byte{'\n'}, first), f.Bytes[from:to]...),
		Nav:   movedContext{f.Nav, moved},
	}
}

// movedContext tells what a line is in by where it was.
type movedContext struct {
	nav   any
	moved int
}

// ContextString is what hcl's writer asks of a file.
func (m movedContext) ContextString(offset int) string {
	if nav, ok := m.nav.(interface{ ContextString(int) string }); ok {
		return shorten(nav.ContextString(offset + m.moved))
	}
	return ""
}

// printable replaces what does not print, byte for byte, so that places stay right.
func printable(s string) string {
	var b strings.Builder
	for i, c := range s {
		size := utf8.RuneLen(c)
		if c == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		if c == '\n' || c == '\t' || (unicode.IsPrint(c) && c != utf8.RuneError) {
			b.WriteString(s[i : i+size])
			continue
		}
		b.WriteString(strings.Repeat("?", size))
	}
	return b.String()
}

// Format lays a configuration file out in the canonical style. A file that does not
// parse is laid out as far as its tokens go.
func Format(src []byte) []byte { return hclwrite.Format(src) }
