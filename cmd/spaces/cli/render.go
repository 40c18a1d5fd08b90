package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"

	"spaces/reconcile"
	"spaces/schema"
)

// report prints why a command ended: to people on standard error, and where --json was
// asked for as one object on standard output.
func (a *app) report(err error) {
	var told *reportedError
	if errors.Is(err, errDiffers) || errors.As(err, &told) {
		return
	}
	p := asProblems(err)
	switch {
	case p != nil && p.reported:
	case a.asksFor(formatJSON) && p != nil:
		a.printJSON(problemReport{FormatVersion: formatVersion, Diagnostics: p.messages()})
	case a.asksFor(formatJSON):
		a.printJSON(problemReport{FormatVersion: formatVersion, Diagnostics: []message{{Severity: severityError, Summary: err.Error()}}})
	case a.asksFor(formatMarkdown):
		// Whoever reads the comment learns it, and whoever reads the job's log.
		var told bytes.Buffer
		plain := *a
		plain.env.Stderr = Stream{Writer: &told}
		plain.tell(err, p)
		problemDocument(a.verb, told.Bytes()).writeTo(a.out)
		a.tell(err, p)
	default:
		a.tell(err, p)
	}
}

// tell prints on standard error why a command ended.
func (a *app) tell(err error, p *problems) {
	if p != nil {
		a.printProblems(p)
		return
	}
	fmt.Fprintf(a.env.Stderr, "%s %s\n", a.errColours().refused("Error:"), printable(err.Error()))
}

// asProblems makes one thing of all that stops a command until a person acts.
func asProblems(err error) *problems {
	var p *problems
	if errors.As(err, &p) {
		return p
	}
	if r, ok := refusalIn(err); ok {
		return &problems{refusals: []reconcile.Refusal{r}}
	}
	return nil
}

// printProblems writes every diagnostic and refusal alike, with the lines of the files
// that they are about.
func (a *app) printProblems(p *problems) {
	a.printDiagnostics(p.diags, p.sources)
	a.printRefusals(p.refusals, p.sources, false)
	if p.diags.HasErrors() {
		fmt.Fprintf(a.env.Stderr, "%s %s in the configuration: %s.\n", a.errColours().refused(reconcile.CodeConfigInvalid+":"),
			count(len(p.diags.Errs()), "error", "errors"), cmp.Or(p.outcome, "nothing was done"))
	}
}

func (a *app) printDiagnostics(diags hcl.Diagnostics, sources map[string][]byte) {
	columns := a.env.Stderr.Columns
	const tooNarrow = 20
	if columns < tooNarrow {
		columns = 0 // no wrapping
	}
	// An error here is the terminal's, and there is nobody left to tell.
	_ = schema.WriteDiagnostics(a.env.Stderr, sources, diags, uint(columns), a.colourful(a.env.Stderr))
}

// printable shows what doesn't print as question marks, so that no name or text of a
// file, an image or an engine steers the terminal. It is for text before it is painted.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// printRefusals writes refusals as diagnostics are written. Those that bar nothing here
// are warnings.
func (a *app) printRefusals(refusals []reconcile.Refusal, sources map[string][]byte, warn bool) {
	var diags hcl.Diagnostics
	for _, r := range refusals {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: r.Code, Detail: r.Text, Subject: rangeOf(r.Origin)}
		if warn {
			d.Severity = hcl.DiagWarning
		}
		if r.Fix != "" {
			d.Detail += "\n" + fixLines(r.Fix)
		}
		diags = append(diags, d)
	}
	a.printDiagnostics(diags, sources)
}

// fixLines sets what to do apart from what is wrong.
func fixLines(fix string) string { return "→ " + fix }

// rangeOf is an origin as hcl has it, nil for a default's.
func rangeOf(o schema.Origin) *hcl.Range {
	if o.File == "" {
		return nil
	}
	return &hcl.Range{
		Filename: o.File,
		Start:    hcl.Pos{Line: o.Line, Column: o.Column, Byte: o.StartByte},
		End:      hcl.Pos{Line: o.EndLine, Column: o.EndColumn, Byte: o.EndByte},
	}
}

// printPlan writes a plan without its refusals: those come after it, on standard error
// and with the lines they are about.
func (a *app) printPlan(plan *reconcile.Plan) {
	shown := *plan
	shown.Refusals = nil
	a.out.WriteString(a.outColours().plan(shown.String()))
}

// colours paint text, or leave it as it is.
type colours struct {
	gained, lost, changed, replaced, refused, faint, title func(a ...any) string
}

func (a *app) outColours() colours { return newColours(a.colourful(a.env.Stdout)) }
func (a *app) errColours() colours { return newColours(a.colourful(a.env.Stderr)) }

// colourful tells whether a stream takes colour: a terminal that isn't a dumb one, where
// nobody said otherwise.
func (a *app) colourful(s Stream) bool {
	return s.Columns > 0 && !a.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// plan paints a printed plan by the signs its lines begin with.
func (c colours) plan(text string) string {
	var b strings.Builder
	for line := range strings.Lines(printable(text)) {
		line, end := strings.CutSuffix(line, "\n")
		b.WriteString(c.line(line))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (c colours) line(line string) string {
	rest, indented := strings.CutPrefix(line, "  ")
	sign, _, _ := strings.Cut(rest, " ")
	switch {
	case line == "":
		return line
	case !indented:
		return c.title(line)
	case sign == "+":
		return c.gained(line)
	case sign == "-":
		return c.lost(line)
	case sign == "~", sign == "!":
		return c.changed(line)
	case sign == "±":
		return c.replaced(line)
	case sign == "?":
		return c.faint(line)
	}
	return line // a field or a reason, further in
}

// verdict paints a check's line.
func (c colours) verdict(v reconcile.Verdict, line string) string {
	switch v {
	case reconcile.VerdictHolds:
		return line
	case reconcile.VerdictDiffers:
		return c.lost(line)
	}
	return c.changed(line)
}
