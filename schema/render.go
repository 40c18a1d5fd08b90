package schema

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// WriteDiagnostics writes diagnostics as text with the lines they point to, wrapped
// at width columns (0 for no wrapping). The files may come from anyone: what would
// steer a terminal is shown as question marks.
func WriteDiagnostics(w io.Writer, sources map[string][]byte, diags hcl.Diagnostics, width uint, color bool) error {
	files := map[string]*hcl.File{}
	for _, diag := range diags {
		if diag.Subject != nil && files[diag.Subject.Filename] == nil {
			files[diag.Subject.Filename] = shownFile(diag.Subject.Filename, sources)
		}
	}
	writer := hcl.NewDiagnosticTextWriter(w, files, width, color)
	for _, diag := range diags {
		plain := *diag
		plain.Summary, plain.Detail = printable(diag.Summary), printable(diag.Detail)
		write := writer.WriteDiagnostic
		if isHidden(diag, sources) {
			write = func(d *hcl.Diagnostic) error { return writeHidden(w, d, width, color) }
		}
		if err := write(&plain); err != nil {
			return err
		}
	}
	return nil
}

// isHidden reports whether a diagnostic is about lines that aren't shown.
func isHidden(diag *hcl.Diagnostic, sources map[string][]byte) bool {
	if diag.Subject == nil {
		return false
	}
	r := *diag.Subject
	if diag.Context != nil {
		r = hcl.RangeOver(r, *diag.Context)
	}
	return bytes.IndexByte(linesOf(sources[r.Filename], r.Start.Line, r.End.Line), hiddenByte) >= 0
}

// writeHidden writes a diagnostic with its place alone.
func writeHidden(w io.Writer, diag *hcl.Diagnostic, width uint, color bool) error {
	var b strings.Builder
	if err := hcl.NewDiagnosticTextWriter(&b, nil, width, color).WriteDiagnostic(diag); err != nil {
		return err
	}
	text := strings.Replace(b.String(), "(source code not available)", "(not shown, since it may be a secret)", 1)
	_, err := io.WriteString(w, text)
	return err
}

// shownFile is a file for the writer: its text made printable, and its blocks, by
// which the writer says what a line is in.
func shownFile(name string, sources map[string][]byte) *hcl.File {
	src, ok := sources[name]
	if !ok {
		return nil
	}
	file := &hcl.File{}
	if checkNesting(src, name) == nil {
		file, _ = hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	}
	file.Bytes = []byte(printable(string(src)))
	return file
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
