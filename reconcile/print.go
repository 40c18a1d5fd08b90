package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// HasChanges tells whether there is anything to do. What this release only shows is
// nothing to do.
func (p *Plan) HasChanges() bool {
	for _, i := range p.Items {
		if _, shown := i.Step.(NotYet); !shown {
			return true
		}
	}
	return false
}

// Counts are how many objects a plan creates, changes in place, replaces and destroys,
// and how much access it gives and takes.
type Counts struct {
	Create, Update, Replace, Destroy int
	Gains, Loses                     int
}

// Counts counts the plan's objects, each once: an object with several items counts as
// the gravest of them.
func (p *Plan) Counts() Counts {
	var c Counts
	grave := map[string]Effects{}
	var subjects []string
	for _, i := range p.Items {
		if _, shown := i.Step.(NotYet); shown {
			continue
		}
		if _, seen := grave[i.Subject]; !seen {
			subjects = append(subjects, i.Subject)
		}
		grave[i.Subject] |= i.Effects
	}
	for _, s := range subjects {
		switch e := grave[s]; {
		case e.Has(Replaces), e.Has(Destroys) && e.Has(Creates):
			c.Replace++
		case e.Has(Destroys):
			c.Destroy++
		case e.Has(Creates):
			c.Create++
		default:
			c.Update++
		}
	}
	for _, a := range p.Access {
		if a.Gains {
			c.Gains++
		} else {
			c.Loses++
		}
	}
	return c
}

// Has tells whether all of some effects are in the set.
func (e Effects) Has(all Effects) bool { return e&all == all }

// Names are the effects in the set, in a fixed order.
func (e Effects) Names() []string {
	names := []string{}
	for i, name := range []string{"widens", "narrows", "creates", "updates", "restarts", "replaces", "destroys"} {
		if e.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// Sign is the one character that stands for an item in a printed plan.
func (i Item) Sign() string {
	switch i.Step.(type) {
	case NotYet:
		return "?"
	case BuildImage:
		if i.Effects.Has(Updates) {
			return "~"
		}
		return "+"
	case RemoveSpace, RemoveNetwork, RemoveVolume:
		return "-"
	case ReplaceSpace:
		return "±"
	case CreateSpace, CreateNetwork, CreateVolume, CreateDirectory, PullImage:
		return "+"
	}
	return "~"
}

// String prints the plan for a reader: access first, then each step with its fields,
// then what stands in every plan, then what wasn't checked or is refused, then counts.
func (p *Plan) String() string {
	var b strings.Builder
	p.printHeading(&b)
	p.printAccess(&b)
	p.printItems(&b)
	printNotices(&b, "In every plan", p.Standing)
	printNotices(&b, "Notes", p.Notes)
	p.printRefusals(&b)
	b.WriteString(p.Summary())
	b.WriteByte('\n')
	return b.String()
}

// AccessLines are the lines of a printed plan about access, without their title.
func (p *Plan) AccessLines() []string { return linesUnder(p.printAccess) }

// Lines are the item as a printed plan has it: its name first, then why, then its fields.
func (i Item) Lines() []string { return linesOf(i.print) }

// NoticeLines are notices as a printed plan has them, without a title.
func NoticeLines(notices []Notice) []string {
	return linesUnder(func(b *strings.Builder) { printNotices(b, "", notices) })
}

func linesOf(write func(*strings.Builder)) []string {
	var b strings.Builder
	write(&b)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func linesUnder(write func(*strings.Builder)) []string { return linesOf(write)[1:] }

// OneLine spells breaks of lines and tabs as Go does, so that no value of a file, an
// image or an engine passes for a line of its own.
func OneLine(s string) string { return breaks.Replace(s) }

var breaks = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// Summary is the plan's closing line.
func (p *Plan) Summary() string {
	switch {
	case p.HasChanges():
		c := p.Counts()
		return fmt.Sprintf("Plan: %d to create, %d to update in place, %d to replace, %d to destroy. Access: %d gained, %d lost.",
			c.Create, c.Update, c.Replace, c.Destroy, c.Gains, c.Loses) + p.held()
	case slices.ContainsFunc(p.Refusals, func(r Refusal) bool { return !r.ApplyOnly && !r.Stays }):
		return "Nothing is done before what is refused is settled."
	case len(p.LeftOut) > 0:
		return "No changes in what was asked for; " + p.LeftOutCount() + "." + p.held()
	}
	return "No changes: reality is what the files say." + p.held()
}

// held says how many of the files' assertions hold, where there are any.
func (p *Plan) held() string {
	if len(p.Assertions) == 0 {
		return ""
	}
	holding := 0
	for _, a := range p.Assertions {
		if a.Holds() {
			holding++
		}
	}
	return fmt.Sprintf(" Assertions: %d of %d hold.", holding, len(p.Assertions))
}

// printHeading says first that this isn't the whole plan.
func (p *Plan) printHeading(b *strings.Builder) {
	if !p.Asked.Partial() {
		return
	}
	fmt.Fprintf(b, "A part of the plan (%s); %s.\n\n", p.Asked, p.LeftOutCount())
}

// LeftOutCount says how much that differs isn't in a part of a plan.
func (p *Plan) LeftOutCount() string {
	switch n := len(p.LeftOut); n {
	case 0:
		return "nothing else differs"
	case 1:
		return "1 object that differs is left out"
	default:
		return fmt.Sprintf("%d objects that differ are left out", n)
	}
}

func (p *Plan) printAccess(b *strings.Builder) {
	if len(p.Access) == 0 {
		return
	}
	b.WriteString("Access (+ gained, - lost, ! wide or writable)\n")
	var t table
	for _, a := range p.Access {
		sign := "-"
		if a.Gains {
			sign = "+"
		}
		how := a.How
		if a.Meets != "" {
			how += "; meets " + a.Meets
		}
		if a.Wide {
			how += " !"
		}
		t.row("  "+sign+" "+a.Space, a.Kind, a.What, how, a.Origin.String())
	}
	t.write(b)
	b.WriteByte('\n')
}

func (p *Plan) printItems(b *strings.Builder) {
	if len(p.Items) == 0 {
		return
	}
	b.WriteString("Steps\n")
	for _, i := range p.Items {
		i.print(b)
	}
	b.WriteByte('\n')
}

func (i Item) print(b *strings.Builder) {
	fmt.Fprintf(b, "  %s %s", i.Sign(), OneLine(i.ID))
	if at := i.Origin.String(); at != "" {
		b.WriteString("  " + OneLine(at))
	}
	b.WriteByte('\n')
	for _, r := range i.Reasons {
		b.WriteString("      why: " + OneLine(r) + "\n")
	}
	making := i.Effects.Has(Creates)
	var t table
	usual := 0
	for _, c := range i.Changes {
		if making && usualValue(c) {
			usual++
			continue
		}
		t.row("      "+c.Field, c.values(making), c.remarks(making), originUnless(c, i))
	}
	t.write(b)
	if usual > 0 {
		fmt.Fprintf(b, "      and %d as always (docs/language.md, hardening)\n", usual)
	}
}

// originUnless leaves out a change's origin where it is the item's own.
func originUnless(c Change, i Item) string {
	if c.Origin == i.Origin {
		return ""
	}
	return c.Origin.String()
}

func (c Change) values(making bool) string {
	switch {
	case making:
		return quoteEmpty(c.After)
	case !c.BeforeSet:
		return "(none) → " + quoteEmpty(c.After)
	case !c.AfterSet:
		return quoteEmpty(c.Before) + " → (none)"
	}
	return quoteEmpty(c.Before) + " → " + quoteEmpty(c.After)
}

func (c Change) remarks(making bool) string {
	if making {
		return ""
	}
	s := string(c.Side)
	if c.Forces {
		s += ", forces replacement"
	}
	return s
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

// usualValue tells whether a field of a thing that is made has the value that every
// such thing has: no reviewer learns from it. A loosened one is never usual.
func usualValue(c Change) bool {
	if usual, known := usualValues[c.Field]; known {
		return c.After == usual
	}
	set, element, _, keyed := cutKey(c.Field)
	switch {
	case c.Field == "driver":
		return c.After == "bridge" || c.After == "local"
	case keyed && set == "labels":
		return strings.HasPrefix(element, LabelPrefix)
	case keyed && set == "tmpfs":
		return element == "/tmp" && c.After == imageVolumeOptions
	case keyed && set == "mount":
		return isContent(c.Field) // a digest, to tell that a file changed
	}
	return false
}

var usualValues = map[string]string{
	"read_only":               "true",
	"init":                    "true",
	"no_new_privileges":       "true",
	"seccomp":                 "default",
	"cap_drop":                "ALL",
	"log_driver":              "json-file",
	`log_options["max-size"]`: "10m",
	`log_options["max-file"]`: "3",
}

func printNotices(b *strings.Builder, title string, notices []Notice) {
	if len(notices) == 0 {
		return
	}
	b.WriteString(title + "\n")
	var t table
	for _, n := range notices {
		text := n.Text
		if n.Reason != "" {
			text = strings.TrimPrefix(text+": "+strconv.Quote(n.Reason), ": ")
		}
		t.row("  ! "+n.Kind, n.Subject, text, n.Origin.String())
	}
	t.write(b)
	b.WriteByte('\n')
}

func (p *Plan) printRefusals(b *strings.Builder) {
	for _, r := range p.Refusals {
		fmt.Fprintf(b, "Refused: %s\n", r.Code)
		if at := r.Origin.String(); at != "" {
			fmt.Fprintf(b, "  at %s\n", at)
		}
		for line := range strings.SplitSeq(r.Text, "\n") {
			b.WriteString("  " + line + "\n")
		}
		for line := range strings.SplitSeq(r.Fix, "\n") {
			b.WriteString(strings.TrimRight("  → "+line, " →") + "\n")
		}
		b.WriteByte('\n')
	}
}

// table aligns columns; the last cells of a row are cut where they are empty. Columns
// that would be wider than most leave the row unaligned from there on.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = OneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

const widestColumn = 48

func (t *table) write(b *strings.Builder) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := len([]rune(cell)); n <= widestColumn {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			if i > 0 && widths[i] > 0 || cell != "" && i > 0 {
				line += "  "
			}
			line += cell + strings.Repeat(" ", max(0, widths[i]-len([]rune(cell))))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
