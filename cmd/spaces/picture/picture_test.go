package picture

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spaces/reconcile"
	"spaces/schema"
)

var update = flag.Bool("update", false, "write the pictures that the tests compare")

// team is the desired state of a project with every kind of thing in it.
func team(t testing.TB, change func(string) string) reconcile.Desired {
	t.Helper()
	source, err := os.ReadFile("testdata/team/main.hcl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := string(source)
	if change != nil {
		text = change(text)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, diags := schema.Load(os.DirFS(dir), schema.Options{Root: "/home/me/team"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	root := "/home/me/.local/state/spaces/team"
	return reconcile.Resolve(cfg, reconcile.Roots{DataRoot: root, Store: root + "/store", Executable: "/usr/bin/spaces"})
}

// running is a world in which all that the files ask for runs.
func running(d reconcile.Desired) reconcile.Actual {
	a := reconcile.Actual{}
	for _, s := range d.Spaces {
		c := reconcile.ObservedContainer{Container: s.Container, State: reconcile.StateRunning, ID: s.Container.Name}
		a.Containers = append(a.Containers, c)
	}
	for _, n := range d.Networks {
		a.Networks = append(a.Networks, reconcile.ObservedNetwork{Network: n})
	}
	return a
}

// planned is the picture of what it takes to get from one desired state to another.
func planned(t testing.TB, from, to reconcile.Desired) *Picture {
	t.Helper()
	plan, err := reconcile.Diff(to, reconcile.HostFacts{}, running(from), reconcile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Of(to).Compare(plan)
}

func drawn(t testing.TB, p *Picture, draw func(io.Writer, *Picture) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := draw(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func drawSVG(t testing.TB) func(io.Writer, *Picture) error {
	return func(w io.Writer, p *Picture) error { return SVG(t.Context(), w, p) }
}

func TestGolden(t *testing.T) {
	before := team(t, func(s string) string {
		s = strings.Replace(s, `target    = "/guide"`, `target    = "/old"`, 1)
		return strings.Replace(s, "port = 7332", "port = 7000", 1)
	})
	for name, p := range map[string]*Picture{
		"team": Of(team(t, nil)),
		"plan": planned(t, before, team(t, nil)),
	} {
		for ending, draw := range map[string]func(io.Writer, *Picture) error{"dot": DOT, "mmd": Mermaid, "svg": drawSVG(t)} {
			file := filepath.Join("testdata", name+"."+ending)
			got := drawn(t, p, draw)
			if again := drawn(t, p, draw); again != got {
				t.Errorf("%s: drawn again it is another", file)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got {
				t.Errorf("%s differs; run with -update and look at it\n%s", file, got)
			}
		}
	}
}

// svgTexts are the texts of an SVG, and the classes of its lines.
func svgTexts(t testing.TB, s string) (texts, edges []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	inText := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts, edges
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, s)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			if token.Name.Local == "script" || token.Name.Local == "foreignObject" {
				t.Errorf("the picture holds a %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("the picture holds %s=%q", a.Name.Local, a.Value)
				}
				if a.Name.Local == "class" && token.Name.Local == "path" && strings.HasPrefix(a.Value, "edge ") {
					edges = append(edges, a.Value)
				}
			}
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func TestSVGSaysWhatIsReached(t *testing.T) {
	p := Of(team(t, nil))
	texts, edges := svgTexts(t, drawn(t, p, drawSVG(t)))
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		"network.agents", "space.session", "role.builder holds launch", "! loosened tmp_exec /tmp", "/work writable",
		"/guide read-only", "*.pythonhosted.org", "! any name below it", "127.0.0.1:7332", "port 7332/tcp",
		"agent socket at /run/spaces/agent read-only", "uplink: for proxies only,", "port 22 private [10.0.5.0/24]",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if got, want := len(edges), len(p.Edges)+len(p.legend()); got != want {
		t.Errorf("%d lines are drawn, of %d", got, want)
	}
}

// Nothing at all, and more than the best way of laying out can take, are drawn too.
func TestSVGOfFewAndMany(t *testing.T) {
	svgTexts(t, drawn(t, (&Picture{Title: "none"}).settle(), drawSVG(t)))
	many := &Picture{}
	for i := range manyEdges + 1 {
		many.ensure(Node{ID: strconv.Itoa(i), Title: strconv.Itoa(i)})
		many.connect(Edge{From: strconv.Itoa(i / 2), To: strconv.Itoa(i), Kind: EdgeGrant})
	}
	texts, _ := svgTexts(t, drawn(t, many.settle(), drawSVG(t)))
	if len(texts) < manyEdges {
		t.Errorf("only %d texts", len(texts))
	}
}

// Laying out ends when whoever asked no longer wants it.
func TestSVGIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	if err := SVG(ctx, io.Discard, Of(team(t, nil))); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func edgesOf(p *Picture, change Change) []string {
	var out []string
	for _, e := range p.Edges {
		if e.Change == change {
			out = append(out, e.From+" -> "+e.To+": "+e.Label)
		}
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestCompare(t *testing.T) {
	now := team(t, nil)
	// Nothing serves lists in this release, so that no host is reached before.
	always := edgesOf(planned(t, now, now), Widened)
	always = slices.DeleteFunc(always, func(s string) bool { return !strings.Contains(s, "egress.") })
	t.Run("nothing", func(t *testing.T) {
		p := planned(t, now, now)
		same(t, "gained", edgesOf(p, Widened), always...)
		same(t, "lost", edgesOf(p, Narrowed))
	})
	t.Run("a grant becomes writable", func(t *testing.T) {
		p := planned(t, now, team(t, func(s string) string {
			return strings.Replace(s, "/guide\"\n}", "/guide\"\n  access    = \"rw\"\n}", 1)
		}))
		same(t, "gained", edgesOf(p, Widened), slices.Insert(slices.Clone(always), 5,
			"source /home/me/src/guide -> space.console: /guide writable",
			"source /home/me/src/guide -> space.session: /guide writable")...)
		same(t, "lost", edgesOf(p, Narrowed), "source /home/me/src/guide -> space.console: /guide read-only")
	})
	t.Run("a network and a port go", func(t *testing.T) {
		p := planned(t, now, team(t, func(s string) string {
			s = strings.Replace(s, "networks = [network.console, network.services]\n  grants   = [grant.guide, grant.human]", "networks = [network.console]\n  grants   = [grant.guide]", 1)
			return strings.Replace(s, "  publish {\n    host = \"127.0.0.1\"\n    port = 7332\n  }\n", "", 1)
		}))
		same(t, "lost", edgesOf(p, Narrowed),
			"port 127.0.0.1:7332 -> space.console: port 7332/tcp",
			"source /home/me/.local/state/spaces/team/sock/human -> space.console: /run/spaces/human read-only",
			"space.console -> space.console on team-services: ")
	})
	t.Run("a new entry is the list's, a new network the space's", func(t *testing.T) {
		c := comparison{p: &Picture{}, gained: map[key]bool{}}
		for _, s := range []string{"space.a", "space.b"} {
			c.p.subject(s)
			c.p.connect(Edge{From: s, To: "egress.l", Kind: EdgeList})
		}
		c.p.reach("egress.l", "old:443", "", false)
		c.p.reach("egress.l", "new:443", "", false)
		gain := func(space, what string) {
			c.access(reconcile.AccessChange{Gains: true, Access: reconcile.Access{Space: space, Kind: reconcile.AccessHost, What: what, How: "through egress.l"}})
		}
		gain("space.a", "new:443")
		gain("space.b", "new:443")
		c.lists()
		same(t, "a new entry", edgesOf(c.p.settle(), Widened), "egress.l -> host new: port 443")
		gain("space.b", "old:443")
		c.lists()
		same(t, "and a space that joined", edgesOf(c.p.settle(), Widened),
			"egress.l -> host new: port 443", "space.b -> egress.l: ")
	})
}

// A kept plan has no files beside it, and is drawn all the same.
func TestPlanned(t *testing.T) {
	plan, err := reconcile.Diff(team(t, nil), reconcile.HostFacts{}, reconcile.Actual{}, reconcile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts, _ := svgTexts(t, drawn(t, Planned(plan), drawSVG(t)))
	for _, want := range []string{"space.session", "egress.agents", "api.anthropic.com", "+ joins network team-console, reaches any address", "red: access gained"} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("%q is missing in %q", want, texts)
		}
	}
}

// hostile is a picture that says one text wherever it says anything.
func hostile(s string) *Picture {
	p := &Picture{
		Title: s, Areas: []*Area{{ID: "area", Kind: AreaOpen, Title: s, Notes: []string{s}}},
		Nodes: []*Node{{ID: "1" + s, Area: "area", Title: s, Lines: []Line{{Text: s}}}, {ID: "2", Kind: NodeSpace, Title: s}},
		Edges: []*Edge{{From: "1" + s, To: "2", Kind: EdgeGrant, Label: s}},
	}
	return p.settle()
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{
		"", `"`, `\`, `\"`, `]]>`, "</text><script>", "a\nb", "\u202eabc", "end", "%%{init: {}}%%", "#quot;", "`x`", "&lt;", `"]; x -> y; n["`, "\x00", "\xff", "𝔘", "字字",
		strings.Repeat("long", 40),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := hostile(s)
		texts, _ := svgTexts(t, drawn(t, p, drawSVG(t)))
		shown := shortened(printable(s))
		if shown != "" && strings.Count(strings.Join(texts, "\x00"), shown) < 4 {
			t.Errorf("%q isn't what the picture shows: %q", s, texts)
		}
		for _, draw := range []func(io.Writer, *Picture) error{DOT, Mermaid} {
			got := drawn(t, p, draw)
			plain := drawn(t, hostile("x"), draw)
			if strings.Count(got, "\n") != strings.Count(plain, "\n") {
				t.Errorf("%q breaks lines:\n%s", s, got)
			}
			if printable(got) != strings.ReplaceAll(got, "\n", "?") {
				t.Errorf("%q leaves something that doesn't print:\n%q", s, got)
			}
		}
		// Outside the quotes nothing of a text may stand: taking the quoted parts away
		// leaves what is there for every text.
		if s == "" {
			return // a line without a label
		}
		if got, want := unquoted(drawn(t, p, DOT), true), unquoted(drawn(t, hostile("x"), DOT), true); got != want {
			t.Errorf("%q leaves its quotes in DOT:\n%s\nwant\n%s", s, got, want)
		}
		if got, want := unquoted(drawn(t, p, Mermaid), false), unquoted(drawn(t, hostile("x"), Mermaid), false); got != want {
			t.Errorf("%q leaves its quotes in Mermaid:\n%s\nwant\n%s", s, got, want)
		}
	})
}

// unquoted is a text without what stands in double quotes.
func unquoted(s string, backslashes bool) string {
	var b strings.Builder
	in, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			escaped = false
		case in && backslashes && r == '\\':
			escaped = true
		case r == '"':
			in = !in
		case !in:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestGraphvizReads asks the real program, which the whole suite installs.
func TestGraphvizReads(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		if os.Getenv("SPACES_TEST_ENGINES") != "" {
			t.Fatal(err)
		}
		t.Skip("no dot on this machine: testscripts/test.sh installs it")
	}
	for _, s := range []string{`\`, `a\"b`, `"]; x -> y; n["`, "&lt;&amp;", `\N\G`, "end", "字"} {
		c := exec.CommandContext(t.Context(), dot, "-Tplain")
		c.Stdin = strings.NewReader(drawn(t, hostile(s), DOT))
		out, err := c.Output()
		if err != nil {
			t.Fatalf("dot can't read a picture of %q: %v", s, err)
		}
		if got := strings.Count(string(out), "\nedge "); got != 2 { // one is the legend's
			t.Errorf("%q: dot sees %d edges, want 2:\n%s", s, got, out)
		}
	}
}

// TestMermaidReads asks Mermaid's own parser, where SPACES_TEST_MERMAID says it is
// (testdata/mermaid.mjs).
func TestMermaidReads(t *testing.T) {
	if os.Getenv("SPACES_TEST_MERMAID") == "" {
		t.Skip("SPACES_TEST_MERMAID isn't set")
	}
	pictures := []*Picture{Of(team(t, nil))}
	for _, s := range []string{
		`"`, "end", "%%{init: {}}%%", "#quot;", "`x`", "&lt;", `"]; x --> y; n["`, "--> |x|", "subgraph", "<br/>", "1. x", "- x", "$$x$$", "fa:fa-car",
	} {
		pictures = append(pictures, hostile(s))
	}
	args := []string{"testdata/mermaid.mjs"}
	want := ""
	for i, p := range pictures {
		file := filepath.Join(t.TempDir(), strconv.Itoa(i)+".mmd")
		if err := os.WriteFile(file, []byte(drawn(t, p, Mermaid)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
		legend := len(p.legend())
		want += fmt.Sprintln(1+len(p.Nodes)+2*legend, len(p.Edges)+legend)
	}
	out, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("Mermaid sees (%v)\n%s\nwant\n%s", err, out, want)
	}
}
