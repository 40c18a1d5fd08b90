package cli

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"spaces/reconcile"
)

// maxMarkdown is what GitHub takes as a comment, in characters. It is counted in bytes, of
// which no text has fewer.
const maxMarkdown = 65536

const (
	// maxLine bounds one line of a fence, and maxQuoted what is quoted in a paragraph: a
	// value may be as long as its file.
	maxLine   = 2000
	maxQuoted = 200
	// cutRoom is kept for saying what a cut left out.
	cutRoom = 1500
)

// document is a report in Markdown, for a comment on a pull request. What comes from
// files, the engine or a kept plan stands in fences and code alone, where nothing is
// markup, mentions anybody or links anywhere.
type document struct {
	sections []section
	// whole says how to see all of it.
	whole string
}

// section is a piece of a document that opens nothing it doesn't close.
type section struct {
	// what names the section's entries, for counting those that are left out; empty for what
	// isn't counted.
	what string
	// single is true where all the lines are one entry.
	single      bool
	open, close string
	lines       []string
}

// text adds a paragraph of our own words, in which all that is others' is quoted.
func (d *document) text(format string, args ...any) {
	d.sections = append(d.sections, section{lines: []string{fmt.Sprintf(format, args...)}, close: "\n"})
}

// fence adds lines as they are, under a title. Those that begin with a sign are coloured
// where the language is diff.
func (d *document) fence(what, title, language string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p := fenced(language, lines)
	p.what = what
	p.open = "#### " + title + "\n\n" + p.open
	d.sections = append(d.sections, p)
}

// details adds lines that are seen once the summary is clicked on.
func (d *document) details(what, summary, language string, lines []string, single bool) {
	p := fenced(language, lines)
	p.what, p.single = what, single
	p.open = "<details><summary>" + summary + "</summary>\n\n" + p.open
	p.close += "</details>\n\n"
	d.sections = append(d.sections, p)
}

// fenced puts lines between fences longer than any run of backticks in them.
func fenced(language string, lines []string) section {
	kept := make([]string, len(lines))
	longest := 2
	for i, line := range lines {
		kept[i] = shortened(asLine(line), maxLine)
		longest = max(longest, longestRun(kept[i]))
	}
	fence := strings.Repeat("`", longest+1)
	return section{open: fence + language + "\n", lines: kept, close: fence + "\n\n"}
}

// asLine is a text that takes one line and steers nothing.
func asLine(s string) string { return printable(reconcile.OneLine(s)) }

func longestRun(s string) int {
	longest, run := 0, 0
	for _, c := range []byte(s) {
		run++
		if c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// shortened says how much it leaves out of a line of more than so many bytes.
func shortened(line string, most int) string {
	if len(line) <= most {
		return line
	}
	end := most
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s… (and %d more characters)", line[:end], utf8.RuneCountInString(line[end:]))
}

// code quotes others' words in a paragraph.
func code(s string) string {
	s = shortened(asLine(s), maxQuoted)
	ticks := strings.Repeat("`", longestRun(s)+1)
	if s == "" || strings.Trim(s, "` ") != s {
		s = " " + s + " " // these two aren't shown
	}
	return ticks + s + ticks
}

// tag quotes others' words between tags of HTML.
func tag(s string) string {
	return "<code>" + html.EscapeString(shortened(asLine(s), maxQuoted)) + "</code>"
}

// writeTo writes as much of the document as a comment takes, and what is left out.
func (d *document) writeTo(w io.StringWriter) {
	room := maxMarkdown
	if d.size() > room {
		room -= cutRoom
	}
	left := omissions{counts: map[string]int{}}
	cut := false
	var out strings.Builder
	for _, p := range d.sections {
		n := 0
		if !cut {
			n = p.fits(room)
		}
		if n < len(p.lines) {
			cut = true
			left.add(p, n)
		}
		if n == 0 {
			continue
		}
		text := p.first(n)
		room -= len(text)
		out.WriteString(text)
	}
	if cut {
		fmt.Fprintf(&out, "> [!WARNING]\n> Cut, as a comment holds no more than %d characters. Left out: %s.\n> %s\n", maxMarkdown, left, d.whole)
	}
	w.WriteString(strings.TrimRight(out.String(), "\n") + "\n")
}

func (d *document) size() int {
	n := 0
	for _, p := range d.sections {
		n += len(p.first(len(p.lines)))
	}
	return n
}

// first is the section with so many of its lines.
func (p section) first(n int) string {
	var b strings.Builder
	b.WriteString(p.open)
	for _, line := range p.lines[:n] {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteString(p.close)
	return b.String()
}

// fits is how many of a section's lines there is room for.
func (p section) fits(room int) int {
	room -= len(p.open) + len(p.close)
	for n, line := range p.lines {
		if room -= len(line) + 1; room < 0 {
			return n
		}
	}
	return len(p.lines)
}

// omissions counts what a cut leaves out, by what it is.
type omissions struct {
	order  []string
	counts map[string]int
}

func (o *omissions) add(p section, kept int) {
	if p.what == "" {
		return
	}
	if _, seen := o.counts[p.what]; !seen {
		o.order = append(o.order, p.what)
	}
	if p.single {
		o.counts[p.what]++
		return
	}
	o.counts[p.what] += len(p.lines) - kept
}

func (o omissions) String() string {
	var sections []string
	for _, what := range o.order {
		sections = append(sections, fmt.Sprintf("%s: %d", what, o.counts[what]))
	}
	return strings.Join(sections, "; ")
}

// marker lets a workflow find the comment that it made before. A project's name has
// nothing to be quoted; what isn't one is left out.
func marker(verb, project string) string {
	for _, c := range []byte(project) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return "<!-- spaces " + verb + " -->"
		}
	}
	return strings.TrimSuffix("<!-- spaces "+verb+" "+strings.Trim(project, "-"), " ") + " -->"
}

func (d *document) head(verb, project, conclusion string, refusals []reconcile.Refusal) {
	d.text("%s\n### spaces %s: %s\n\n**%s**", marker(verb, project), verb, code(project), conclusion)
	var refused []string
	for _, r := range refusals {
		if what := code(r.Code); len(refused) == 0 || refused[len(refused)-1] != what {
			refused = append(refused, what)
		}
	}
	if most := 10; len(refused) > most {
		refused = append(refused[:most], "…")
	}
	if len(refused) > 0 {
		d.text("**Refused: %s**", strings.Join(refused, ", "))
	}
}

// planDocument is a plan for its reviewers: the counts, who gains or loses access, what
// stands in the way and what stands in every plan, and then each step to unfold.
func planDocument(plan *reconcile.Plan, whole string) *document {
	d := &document{whole: whole}
	d.head("plan", plan.Project, plan.Summary(), plan.Refusals)
	if plan.Asked.Partial() {
		d.text("A part of the plan (%s); %s.", code(plan.Asked.String()), plan.LeftOutCount())
	}
	d.access(plan, "Access")
	d.refusals(plan.Refusals)
	d.fence("lines of what stands in every plan", "In every plan", "diff", outdented(reconcile.NoticeLines(plan.Standing)))
	d.fence("notes", "Notes", "diff", outdented(reconcile.NoticeLines(plan.Notes)))
	if len(plan.Items) > 0 {
		d.text("#### Steps")
	}
	for _, i := range plan.Items {
		lines := i.Lines()
		summary := tag(strings.TrimSpace(lines[0]))
		if i.Effects.Has(reconcile.Widens) {
			summary += " widens access"
		}
		if i.Effects.Has(reconcile.Narrows) {
			summary += " narrows access"
		}
		d.details("steps", summary, "", outdented(outdented(outdented(lines[1:]))), true)
	}
	return d
}

func (d *document) access(plan *reconcile.Plan, title string) {
	if len(plan.Access) == 0 {
		d.text("Nobody gains or loses access.")
		return
	}
	d.fence("lines of access", title+" (+ gained, - lost, ! wide or writable)", "diff", outdented(plan.AccessLines()))
}

func (d *document) refusals(refusals []reconcile.Refusal) {
	var lines []string
	for _, r := range refusals {
		lines = append(lines, strings.TrimSpace(r.Code+"  "+r.Origin.String()))
		for line := range strings.SplitSeq(r.Text, "\n") {
			lines = append(lines, "  "+line)
		}
		for line := range strings.SplitSeq(r.Fix, "\n") {
			lines = append(lines, strings.TrimRight("  → "+line, " →"))
		}
	}
	d.fence("lines of refusals", "Refused", "", lines)
}

// outdented takes lines a step to the left, so that a sign comes first.
func outdented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimPrefix(line, "  ")
	}
	return out
}

// driftDocument is drift's report: what reaches more or less than it should, and each
// difference.
func driftDocument(plan *reconcile.Plan, found []difference) *document {
	d := &document{whole: "`spaces drift` prints all of it."}
	d.head("drift", plan.Project, concluded(plan, found), plan.Refusals)
	if len(found) > 0 {
		d.access(plan, "What an apply would give and take")
	}
	d.refusals(plan.Refusals)
	var lines []string
	subject := ""
	for _, f := range found {
		if f.Subject != subject {
			subject = f.Subject
			lines = append(lines, "  "+subject)
		}
		lines = append(lines, f.sign()+strings.TrimPrefix(f.line(newColours(false)), " "))
	}
	d.fence("lines of differences", "Differences", "diff", lines)
	d.fence("notes", "Notes", "diff", outdented(reconcile.NoticeLines(plan.Notes)))
	return d
}

// problemDocument is what a report is replaced by where there is none: the diagnostics as
// a terminal shows them.
func problemDocument(verb string, told []byte) *document {
	d := &document{whole: "The command prints all of it on standard error, too."}
	d.text("%s\n### spaces %s\n\n**There is no report.**", marker(verb, ""), verb)
	d.fence("lines", "Why", "", strings.Split(string(bytes.TrimSpace(told)), "\n"))
	return d
}
