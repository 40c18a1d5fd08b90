package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"spaces/reconcile"
	"spaces/schema"
)

var update = flag.Bool("update", false, "rewrite the Markdown in testdata")

func (d *document) String() string {
	var b strings.Builder
	d.writeTo(&b)
	return b.String()
}

// The plans that reconcile pins, as comments: plan.md is made of plan.json.
func TestPlansAsMarkdown(t *testing.T) {
	files, err := filepath.Glob("../../../reconcile/testdata/plan/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pinned := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]*txtar.File{}
		for i := range archive.Files {
			sections[archive.Files[i].Name] = &archive.Files[i]
		}
		record := sections["plan.json"]
		if record == nil {
			continue
		}
		pinned++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			r, err := decodePlan(bytes.NewReader(record.Data))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := planOf(*r)
			if err != nil {
				t.Fatal(err)
			}
			got := planDocument(plan, "`spaces plan` prints all of it.").String()
			if *update {
				if sections["plan.md"] == nil {
					archive.Files = append(archive.Files, txtar.File{Name: "plan.md"})
					sections["plan.md"] = &archive.Files[len(archive.Files)-1]
				}
				sections["plan.md"].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if sections["plan.md"] == nil || got != string(sections["plan.md"].Data) {
				t.Errorf("the document is\n%s", got)
			}
		})
	}
	if pinned < 8 {
		t.Errorf("%d plans are pinned as Markdown", pinned)
	}
}

// hostilePlan has a text wherever a plan takes one.
func hostilePlan(text string, items int) *reconcile.Plan {
	at := schema.Origin{File: text, Line: 1}
	p := &reconcile.Plan{
		Project: text, Endpoint: text, Engine: text,
		Access: []reconcile.AccessChange{{Gains: true, Meets: text, Access: reconcile.Access{
			Space: text, Kind: text, What: text, How: text, Origin: at,
		}}},
		Standing: []reconcile.Notice{{Kind: text, Subject: text, Text: text, Reason: text, Origin: at}},
		Notes:    []reconcile.Notice{{Kind: text, Subject: text, Text: text, Reason: text, Origin: at}},
		Refusals: []reconcile.Refusal{{Code: text, Text: text, Fix: text, Origin: at}},
	}
	for range items {
		p.Items = append(p.Items, reconcile.Item{
			ID: text, Subject: text, Step: reconcile.UpdateSpace{}, Reasons: []string{text}, Origin: at,
			Effects: reconcile.Updates | reconcile.Widens,
			Changes: []reconcile.Change{{Field: text, Before: text, After: text, BeforeSet: true, AfterSet: true, Side: reconcile.Side(text), Origin: schema.Origin{File: text, Line: 2}}},
		})
	}
	return p
}

func hostileDrift(text string) *document {
	plan := hostilePlan(text, 1)
	return driftDocument(plan, differences(plan))
}

// ourLines are the lines that a document has outside of fences, whatever it tells of;
// what others wrote is in code there.
var ourLines = []string{
	"<!-- spaces plan -->", "<!-- spaces drift -->", "<!-- spaces plan ", "<!-- spaces drift ",
	"### spaces plan: `", "### spaces drift: `", "#### ", "**Plan: ", "**Drift: ", "**Refused: `", "**No drift", "**No changes", "**Nothing is done",
	"<details><summary><code>", "</details>", "Nobody gains", "> [!WARNING]", "> Cut, as a comment", "> `",
}

// contained fails where what is others' could be markup: outside of fences there are our
// own lines alone, in which code is closed, and each fence and tag that opens closes.
func contained(doc string) error {
	if len(doc) > maxMarkdown {
		return fmt.Errorf("it has %d characters", len(doc))
	}
	if !utf8.ValidString(doc) {
		return fmt.Errorf("it is no UTF-8")
	}
	if printable(doc) != doc || strings.ContainsAny(doc, "\r\t") {
		return fmt.Errorf("it holds what doesn't print")
	}
	fence, open := "", 0
	for i, line := range strings.Split(strings.TrimSuffix(doc, "\n"), "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if bare := strings.TrimSpace(line); len(bare) >= len(fence) && strings.Trim(bare, "`") == "" {
				if line != fence {
					return fmt.Errorf("line %d closes a fence and isn't ours: %s", i, line)
				}
				fence = ""
			}
			continue
		case len(ticks) >= 3:
			if info := line[len(ticks):]; info != "" && info != "diff" {
				return fmt.Errorf("line %d opens a fence and isn't ours: %s", i, line)
			}
			fence = ticks
			continue
		case line == "":
			continue
		}
		ours := false
		for _, prefix := range ourLines {
			ours = ours || strings.HasPrefix(line, prefix)
		}
		if !ours {
			return fmt.Errorf("line %d isn't ours: %s", i, line)
		}
		bare := withoutCode(line)
		open += strings.Count(bare, "<details>") - strings.Count(bare, "</details>")
		if rest, is := strings.CutPrefix(line, "<details><summary><code>"); is {
			quoted, end, _ := strings.Cut(rest, "<")
			if !strings.HasPrefix("<"+end, "</code>") || !strings.HasSuffix(end, "</summary>") || strings.ContainsAny(quoted, "<>") {
				return fmt.Errorf("line %d: a summary breaks out: %s", i, line)
			}
			continue
		}
		if strings.ContainsAny(bare, "`@[]\\|") && !strings.HasPrefix(line, "> ") {
			return fmt.Errorf("line %d: %s", i, line)
		}
	}
	if fence != "" || open != 0 {
		return fmt.Errorf("a fence %q or %d details stay open", fence, open)
	}
	return nil
}

// withoutCode is a line without its spans of code, as CommonMark closes them: by as many
// backticks as open them.
func withoutCode(line string) string {
	var out strings.Builder
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			out.WriteString(line)
			break
		}
		out.WriteString(line[:at])
		line = line[at:]
		n := len(line) - len(strings.TrimLeft(line, "`"))
		rest := line[n:]
		closed := false
		for from := 0; from < len(rest); {
			at := strings.IndexByte(rest[from:], '`')
			if at < 0 {
				break
			}
			from += at
			run := len(rest[from:]) - len(strings.TrimLeft(rest[from:], "`"))
			if run == n {
				line, closed = rest[from+run:], true
				break
			}
			from += run
		}
		if !closed {
			out.WriteString(line[:n])
			line = rest
		}
	}
	return out.String()
}

var hostile = []string{
	"", " ", "`", "``", "`` ` ``", "```", "```\n```", "~~~", "a\n```\n</details>\n@everyone [x](javascript:1)",
	"</details>", "</code></summary><img src=x onerror=alert(1)>", "| a | b |", "a|b\\|c", "\\`", "@org/team", "#1", "http://example.com www.example.com a@b.example",
	"\u202eevil\u2066", "\x1b[31m", "a\rb", "a\u2028b", "\x00", "\xff\xfe", "- a\n+ b", "    code", "<!-- -->", "-->", "&lt;&#64;x", "é𝄞漢",
	strings.Repeat("`", 70000), strings.Repeat("漢", 70000),
}

func TestMarkdownContainsWhatIsOthers(t *testing.T) {
	for _, text := range hostile {
		for _, d := range []*document{
			planDocument(hostilePlan(text, 2), "`spaces plan` prints all of it."),
			planDocument(hostilePlan(text, 30+2000/(1+len(text))), code("spaces show "+text)+" prints all of it."),
			hostileDrift(text),
		} {
			if err := contained(d.String()); err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range hostile {
		f.Add(text[:min(len(text), 5000)], 3)
	}
	f.Fuzz(func(t *testing.T, text string, items int) {
		items = max(0, min(items, 1000, 1<<20/(1+len(text))))
		if err := contained(planDocument(hostilePlan(text, items), code("spaces show "+text)+" prints all of it.").String()); err != nil {
			t.Error(err)
		}
		if err := contained(hostileDrift(text).String()); err != nil {
			t.Error(err)
		}
	})
}

// A cut is between entries, says how many are left out, and where all of them are.
func TestMarkdownIsCut(t *testing.T) {
	const whole = "`spaces plan` prints all of it."
	plan := hostilePlan("name", 2000)
	doc := planDocument(plan, whole).String()
	if err := contained(doc); err != nil {
		t.Error(err)
	}
	shown := strings.Count(doc, "<details>")
	says(t, doc, fmt.Sprintf("Left out: steps: %d.\n> %s\n", 2000-shown, whole))
	if len(doc) < maxMarkdown-cutRoom-500 {
		t.Errorf("only %d characters of it are used", len(doc))
	}
	for range 5000 {
		plan.Access = append(plan.Access, plan.Access[0])
	}
	doc = planDocument(plan, whole).String()
	if err := contained(doc); err != nil {
		t.Error(err)
	}
	lines := strings.Count(doc, "\n+ name")
	says(t, doc, fmt.Sprintf(
		"Left out: lines of access: %d; lines of refusals: 3; lines of what stands in every plan: 1; notes: 1; steps: 2000.", 5001-lines))
	// The refusals' codes are in the head all the same.
	says(t, doc, "**Refused: `name`**")
	if small := planDocument(hostilePlan("name", 3), whole).String(); strings.Contains(small, "Cut") {
		t.Errorf("it is cut for nothing:\n%s", small)
	}
}

func TestMarkdownBySight(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "plan", "--format=markdown")
	says(t, w.out.String(), "<!-- spaces plan acme -->\n### spaces plan: `acme`\n\n**Plan: 3 to create", "```diff\n+ space.web  network")
	w.want(2, "drift", "--format", "markdown")
	says(t, w.out.String(), "<!-- spaces drift acme -->", "  space.web\n+ missing  [either]  main.hcl:")
	w.want(0, "plan", "--out", "kept.json")
	says(t, w.out.String(), "Kept in kept.json")
	w.want(0, "plan", "--out", "kept.json", "--format=markdown")
	plan := w.out.String()
	w.want(0, "show", "--format=markdown", "kept.json")
	if w.out.String() != plan {
		t.Errorf("shown, a plan is\n%s\nand was\n%s", w.out.String(), plan)
	}
	takeName(w)
	w.want(3, "drift", "--format=markdown")
	says(t, w.out.String(), "**Refused: `name-taken`**", "#### Refused\n\n```\nname-taken  main.hcl:12")
	says(t, w.err.String(), "Error: name-taken")
}

// Where there is no report, the comment says why, and so does the log.
func TestProblemsAsMarkdown(t *testing.T) {
	w := newWorld(t, "main.hcl", small+"bogus \"x\" {\n}\n")
	w.want(3, "plan", "--offline", "--format=markdown")
	says(t, w.out.String(), "<!-- spaces plan -->", "config-invalid: 1 error", "```\nError: ", "bogus")
	says(t, w.err.String(), "Error: ", "bogus")
	if err := containedProblem(w.out.String()); err != nil {
		t.Error(err)
	}
}

func containedProblem(doc string) error {
	if strings.Count(doc, "```") != 2 {
		return fmt.Errorf("a fence stays open:\n%s", doc)
	}
	return nil
}

func TestFormatsThatConflict(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	for _, c := range []struct {
		status int
		args   []string
	}{
		{3, []string{"--json", "--format=text"}},
		{3, []string{"--json", "--format=markdown"}},
		{3, []string{"--json=false", "--format=json"}},
		{3, []string{"--format=yaml"}},
		{3, []string{"--format="}},
		{0, []string{"--json", "--format=json"}},
		{0, []string{"--json=false", "--format=markdown"}},
		{0, []string{"--json"}},
	} {
		for _, verb := range [][]string{{"plan"}, {"plan", "--offline"}} {
			w.run(append(verb, c.args...)...)
			w.want(c.status, append(verb, c.args...)...)
			if c.status == 3 {
				says(t, w.out.String()+w.err.String(), "usage")
			}
		}
	}
	w.want(0, "plan", "--out", "kept")
	w.want(3, "show", "--json", "--format=text", "kept")
	w.want(3, "drift", "--json", "--format=text")
	var r problemReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil || r.Diagnostics[0].Code != "usage" {
		t.Errorf("%v\n%s", err, w.out.String())
	}
}
