package cli

import (
	"encoding/json"
	"fmt"
	"slices"

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

// wantsJSON is true also where the command line couldn't be read as far as its --json.
func (a *app) wantsJSON() bool {
	args := a.env.Args
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return a.json || slices.Contains(args, "--json") || slices.Contains(args, "--format=json")
}

// printJSON writes one object to standard output.
func (a *app) printJSON(v any) {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("cli: a report can't be encoded: %v", err))
	}
}

func (p *problems) messages() []message {
	out := diagnosticMessages(p.diags, p.sources)
	for _, r := range p.refusals {
		out = append(out, message{
			Severity: severityError, Code: r.Code, Summary: r.Text, Detail: r.Fix,
			Origin: originIn(r.Origin), Snippet: snippet(p.sources[r.Origin.File], r.Origin.Line, r.Origin.EndLine),
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
			m.Snippet = snippet(sources[r.Filename], r.Start.Line, r.End.Line)
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

// snippet are some lines of a source, counted from 1.
func snippet(src []byte, from, to int) string {
	var lines []byte
	line := 1
	for _, b := range src {
		if line > to {
			break
		}
		if line >= from {
			lines = append(lines, b)
		}
		if b == '\n' {
			line++
		}
	}
	return string(lines)
}
