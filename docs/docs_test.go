// Package docs_test holds the documents to what the program is: their generated parts
// are fresh, every example loads, every command line is one that exists, every refusal
// is explained and every link leads somewhere.
package docs_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"spaces/cmd/spaces/cli"
	"spaces/reconcile"
	"spaces/schema"
)

func documents(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil || len(names) < 4 {
		t.Fatalf("found %v (%v)", names, err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages are the documents and the pages beside them that lead here.
func pages(t *testing.T) []string {
	t.Helper()
	return append(documents(t), "../README.md", "../ARCHITECTURE.md")
}

// fence is a fenced block of a document.
type fence struct {
	at   string   // "language.md:12"
	info []string // "hcl", "invalid"
	body string
	// after is the text from its end to the next fence or heading.
	after string
}

func (f fence) is(word string) bool { return slices.Contains(f.info, word) }

func fences(t *testing.T, name string) []fence {
	t.Helper()
	var all []fence
	open := false
	for i, line := range strings.Split(read(t, name), "\n") {
		info, marked := strings.CutPrefix(line, "```")
		switch {
		case marked && open:
			open = false
		case marked:
			open = true
			all = append(all, fence{at: fmt.Sprintf("%s:%d", name, i+1), info: strings.Fields(info)})
		case open:
			all[len(all)-1].body += line + "\n"
		case len(all) > 0:
			last := &all[len(all)-1]
			if strings.HasPrefix(line, "#") {
				last.after += "\x00" // what follows belongs to another section
			}
			last.after += line + "\n"
		}
	}
	if open {
		t.Errorf("%s: a block isn't closed", name)
	}
	for i := range all {
		all[i].after, _, _ = strings.Cut(all[i].after, "\x00")
	}
	return all
}

// stock is the folder around an example that begins in the middle of things: of these
// blocks, those that the example refers to and doesn't have are added to it.
var stock = map[string]string{
	"image.core":     "image \"core\" {\n  binary = \"spaces\"\n}\n",
	"network.inside": "network \"inside\" {\n  egress = \"none\"\n}\n",
	"network.agents": "network \"agents\" {}\n",
	"network.uplink": "network \"uplink\" {\n  uplink = true\n}\n",
	"grant.work":     "grant \"work\" {\n  directory = \"/srv/work\"\n  target    = \"/work\"\n}\n",
	"space.worker":   "space \"worker\" {\n  image = image.core\n}\n",
	"project":        "project = \"acme\"\n",
}

// folder is an example's source with what surrounds it:
//
//	hcl whole   a whole folder, as it stands
//	hcl         what stands at the top of files, with the stock that it refers to
//	hcl space   what stands in a space block, likewise
func (f fence) folder() string {
	source := f.body
	if f.is("whole") {
		return source
	}
	if f.is("space") {
		source = "space \"example\" {\n  image = image.core\n" + source + "}\n"
	}
	if !regexp.MustCompile(`(?m)^project\b`).MatchString(source) {
		source += stock["project"]
	}
	for again := true; again; {
		again = false
		for name, block := range stock {
			kind, label, _ := strings.Cut(name, ".")
			header := regexp.MustCompile(`(?m)^` + kind + ` "` + label + `"`)
			refers := regexp.MustCompile(`\b` + kind + `\.` + label + `\b`)
			if label != "" && refers.MatchString(source) && !header.MatchString(source) {
				source += block
				again = true
			}
		}
	}
	return source
}

func TestExamplesLoad(t *testing.T) {
	found := 0
	for _, name := range documents(t) {
		all := fences(t, name)
		for i, f := range all {
			if !f.is("hcl") {
				continue
			}
			found++
			t.Run(f.at, func(t *testing.T) {
				cfg := f.load(t)
				broken := brokenIn(cfg)
				next := fence{}
				if i+1 < len(all) {
					next = all[i+1]
				}
				switch {
				case f.is("broken") && (broken == "" || !next.is("text") || next.body != broken):
					t.Errorf("the text after it should be\n%s", broken)
				case !f.is("broken") && broken != "":
					t.Errorf("it isn't marked as broken:\n%s", broken)
				}
			})
		}
	}
	if found < 20 {
		t.Errorf("only %d examples found", found)
	}
}

// load loads an example. One that is invalid, or has a warning, must be followed by the
// summaries of what is wrong with it, in code marks.
func (f fence) load(t *testing.T) *schema.Config {
	for _, word := range f.info[1:] {
		if !slices.Contains([]string{"whole", "space", "invalid", "warning", "broken"}, word) {
			t.Fatalf("%q is no mark of an example", word)
		}
	}
	source := f.folder()
	cfg, diags := schema.Load(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, schema.Options{Root: "/srv/acme"})
	if diags.HasErrors() != f.is("invalid") {
		t.Fatalf("is it wrong: %t\n%v\n%s", diags.HasErrors(), diags, source)
	}
	if f.is("warning") && len(diags) == 0 {
		t.Fatal("no warning")
	}
	if !f.is("invalid") && !f.is("warning") && len(diags) > 0 {
		t.Errorf("it has warnings: %v", diags)
	}
	for _, d := range diags {
		if !strings.Contains(f.after, "`"+d.Summary+"`") {
			t.Errorf("the text after it doesn't say `%s`: %s", d.Summary, d.Detail)
		}
	}
	// Whole lines of an example are laid out as spaces fmt does.
	if formatted := string(schema.Format([]byte(f.body))); formatted != f.body {
		t.Errorf("it isn't formatted; this is:\n%s", formatted)
	}
	return cfg
}

// brokenIn is what is said of the assertions of a configuration that are broken.
func brokenIn(cfg *schema.Config) string {
	var text strings.Builder
	for _, r := range reconcile.BrokenAssertions(reconcile.Judge(reconcile.Resolve(cfg, reconcile.Roots{}), reconcile.HostFacts{})) {
		text.WriteString(r.Text + "\n")
	}
	return text.String()
}

// TestCommandsExist: every command line in a transcript, a script or a code mark is a
// verb with flags that it has.
func TestCommandsExist(t *testing.T) {
	inline := regexp.MustCompile("`(spaces [^`\n]+)`")
	found := 0
	for _, name := range pages(t) {
		for _, f := range fences(t, name) {
			if f.is("console") || f.is("sh") {
				for _, command := range commands(f.body) {
					found++
					checkCommand(t, f.at, command)
				}
			}
		}
		for _, m := range inline.FindAllStringSubmatch(read(t, name), -1) {
			found++
			checkCommand(t, name, strings.Fields(m[1]))
		}
	}
	if found < 20 {
		t.Errorf("only %d commands found", found)
	}
}

// commands are the command lines of spaces in a script or transcript, in words. It knows
// as much of a shell as the documents use.
func commands(script string) [][]string {
	var all [][]string
	for line := range strings.Lines(script) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, part := range regexp.MustCompile(`&&|\|\||;;|;|\||>`).Split(line, -1) {
			words := strings.Fields(part)
			for len(words) > 0 && (strings.Contains(words[0], "=") || strings.HasSuffix(words[0], ")")) {
				words = words[1:] // VAR=value, and the pattern of a case
			}
			if len(words) > 0 && words[0] == "spaces" {
				all = append(all, words)
			}
		}
	}
	return all
}

func checkCommand(t *testing.T, at string, words []string) {
	t.Helper()
	verb := ""
	help := helpOf(t, "")
	skip := false
	for _, w := range words[1:] {
		flag, _, hasValue := strings.Cut(w, "=")
		switch {
		case skip:
			skip = false
		case strings.HasPrefix(w, "-") && w != "-":
			line := regexp.MustCompile(`(?m)^ .*` + regexp.QuoteMeta(flag) + `[ ,](.*)$`).FindStringSubmatch(help)
			if line == nil {
				t.Errorf("%s: %q has no flag %s", at, strings.Join(words, " "), flag)
				continue
			}
			// A flag that takes a value shows what it is, one space on.
			skip = !hasValue && regexp.MustCompile(`(^| --\w+ )\S`).MatchString(line[1])
		case verb == "":
			verb = w
			help = helpOf(t, verb)
			if help == "" {
				t.Errorf("%s: %q: there is no verb %s", at, strings.Join(words, " "), verb)
				return
			}
		}
	}
	if verb == "" {
		t.Errorf("%s: %q has no verb", at, strings.Join(words, " "))
	}
}

// helpOf is what --help prints for a verb; empty for one that isn't there.
func helpOf(t *testing.T, verb string) string {
	t.Helper()
	args := []string{"help"}
	if verb != "" {
		args = append(args, verb)
	}
	var out bytes.Buffer
	status := cli.Main(cli.Env{Args: args, Dir: "/", Stdout: cli.Stream{Writer: &out}, Stderr: cli.Stream{Writer: &bytes.Buffer{}}})
	if status != 0 {
		return ""
	}
	return out.String()
}

// constant is a string constant of a package.
type constant struct{ name, value string }

// constants are those whose names begin with a prefix and a capital, as they stand.
func constants(t *testing.T, dir, prefix string) []constant {
	t.Helper()
	var all []constant
	eachFile(t, dir, func(file *ast.File) {
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					rest, ok := strings.CutPrefix(name.Name, prefix)
					if !ok || rest == "" || rest[0] < 'A' || rest[0] > 'Z' || i >= len(v.Values) {
						continue
					}
					if lit, ok := v.Values[i].(*ast.BasicLit); ok {
						if value, err := strconv.Unquote(lit.Value); err == nil {
							all = append(all, constant{name.Name, value})
						}
					}
				}
			}
		}
	})
	if len(all) == 0 {
		t.Fatalf("no constant %s… in %s", prefix, dir)
	}
	return all
}

func eachFile(t *testing.T, dir string, do func(*ast.File)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(file)
	}
}

// TestEveryRefusalIsExplained: the table of plan.md has each code there is, and no other.
func TestEveryRefusalIsExplained(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "plan.md"), "\n## Refusals\n")
	explained := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section, -1) {
		if explained[m[1]] {
			t.Errorf("%s is explained twice", m[1])
		}
		explained[m[1]] = true
	}
	for _, c := range constants(t, "../reconcile", "Code") {
		if !explained[c.value] {
			t.Errorf("plan.md doesn't explain %s", c.value)
		}
		delete(explained, c.value)
	}
	for code := range explained {
		t.Errorf("plan.md explains %s, which nothing refuses with", code)
	}
}

// TestEveryWatchEventIsExplained: so does that of watch.md with the kinds of events, and it
// says what each decision is.
func TestEveryWatchEventIsExplained(t *testing.T) {
	text := read(t, "watch.md")
	for _, c := range constants(t, "../cmd/spaces/cli", "kind") {
		if !strings.Contains(text, "\n| `"+c.value+"` |") {
			t.Errorf("watch.md doesn't explain %s", c.value)
		}
	}
	for _, c := range constants(t, "../cmd/spaces/cli", "decision") {
		if c.name != "decisionAsk" && !strings.Contains(text, "\n- `"+c.value+"`") {
			t.Errorf("watch.md doesn't explain %s", c.value)
		}
	}
}

// TestRefusalsHaveNamedCodes: a code that stands in place, as text, would escape the
// table.
func TestRefusalsHaveNamedCodes(t *testing.T) {
	for _, dir := range []string{"../reconcile", "../places", "../cmd/spaces/cli"} {
		eachFile(t, dir, func(file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				kv, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
					if lit, ok := kv.Value.(*ast.BasicLit); ok {
						t.Errorf("%s has the code %s in place", dir, lit.Value)
					}
				}
				return true
			})
		})
	}
}

// stepVerbs are what a record can call a step, as Verb says them.
func stepVerbs(t *testing.T) []string {
	t.Helper()
	var verbs []string
	eachFile(t, "../reconcile", func(file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Verb" {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if lit, ok := r.Results[0].(*ast.BasicLit); ok {
						if verb, err := strconv.Unquote(lit.Value); err == nil {
							verbs = append(verbs, verb)
						}
					}
				}
				return true
			})
		}
	})
	if len(verbs) == 0 {
		t.Fatal("no step has a verb")
	}
	return verbs
}

// TestLinksLead: links to files of the repository, and to headings in them, lead there.
func TestLinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if strings.HasPrefix(m[1], "https://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			if file == "" {
				file = name
			} else {
				file = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", name, m[1])
			}
		}
	}
}

// anchors are the names that a page's headings get on GitHub.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}
