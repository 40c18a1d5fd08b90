package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"spaces/reconcile"
	"spaces/schema"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// generatedPart is what stands between two markers. What is in it follows from the
// program: go test ./docs -update writes it.
var generatedPart = regexp.MustCompile(`(?s)<!-- generated: ([^\n]*?) -->\n.*?<!-- /generated -->`)

func TestGeneratedPartsAreFresh(t *testing.T) {
	used := map[string]bool{}
	for _, name := range documents(t) {
		old := read(t, name)
		if begun, whole := strings.Count(old, "<!-- generated: "), len(generatedPart.FindAllString(old, -1)); begun != whole {
			t.Errorf("%s: %d generated parts begin and %d are whole", name, begun, whole)
		}
		fresh := generatedPart.ReplaceAllStringFunc(old, func(part string) string {
			what := generatedPart.FindStringSubmatch(part)[1]
			used[what] = true
			return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- /generated -->", what, generate(t, what))
		})
		switch {
		case fresh == old:
		case *update:
			if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is stale: go test ./docs -update", name)
		}
	}
	for _, b := range schema.Reference().Blocks {
		if what := "block " + pathOrTop(b.Path); !used[what] {
			t.Errorf("no document has the table of %q", what)
		}
	}
}

func pathOrTop(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func generate(t *testing.T, what string) string {
	t.Helper()
	l := schema.Reference()
	kind, argument, _ := strings.Cut(what, " ")
	switch kind {
	case "block":
		for _, b := range l.Blocks {
			if pathOrTop(b.Path) == argument {
				return blockTable(b)
			}
		}
	case "functions":
		return functionsTable(l)
	case "absent":
		return absentTable(l)
	case "loosen":
		return looseningsTable(l)
	case "capabilities":
		return codes(l.Capabilities)
	case "sysctls":
		return codes(l.Sysctls)
	case "signals":
		return codes(l.Signals)
	case "reserved":
		return codes(l.Reserved)
	case "accepts":
		return acceptsTable(t, l)
	case "hardening":
		return hardeningTable(t)
	case "limits":
		return limitsTable(t)
	case "mounts":
		return mountsTable()
	case "labels":
		return labelsTable(t)
	case "plan":
		return pinnedPlan(t, argument)
	case "record":
		return recordTables(t)
	case "steps":
		return codes(stepVerbs(t))
	}
	t.Fatalf("nothing generates %q", what)
	return ""
}

// table is a table in Markdown.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		b.WriteString("| " + strings.Join(escaped, " | ") + " |\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// codes is a list of words, wrapped.
func codes(words []string) string {
	var b strings.Builder
	column := 0
	for i, w := range words {
		w = "`" + w + "`"
		if i < len(words)-1 {
			w += ","
		} else {
			w += "."
		}
		switch {
		case column == 0:
		case column+1+len(w) > 90:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += len(w)
	}
	return b.String() + "\n"
}

func blockTable(b schema.BlockReference) string {
	var out strings.Builder
	name := b.Path[strings.LastIndex(b.Path, ".")+1:]
	switch {
	case b.Path == "":
	case b.Label != "":
		fmt.Fprintf(&out, "**`%s \"%s\" { … }`**", name, b.Label)
	default:
		fmt.Fprintf(&out, "**`%s { … }`**", name)
	}
	if parent := strings.TrimSuffix(b.Path, name); parent != "" && b.Path != "" {
		fmt.Fprintf(&out, ", in %s", strings.TrimSuffix(parent, "."))
	}
	if out.Len() > 0 {
		out.WriteString(". ")
	}
	out.WriteString(b.Doc + "\n")
	if len(b.Attributes) == 0 {
		return out.String()
	}
	var rows [][]string
	for _, a := range b.Attributes {
		def := a.Default
		switch {
		case a.Required:
			def = "must be given"
		case def == "":
			def = "–"
		}
		rows = append(rows, []string{"`" + a.Name + "`", a.Type, def, a.Doc})
	}
	out.WriteString("\n" + table([]string{"attribute", "type", "default", "meaning"}, rows))
	return out.String()
}

func functionsTable(l schema.Language) string {
	var rows [][]string
	for _, g := range l.Functions {
		rows = append(rows, []string{g.Title, strings.TrimSuffix(strings.ReplaceAll(codes(g.Names), "\n", " "), ". ")})
	}
	return table([]string{"for", "functions"}, rows)
}

// absentTable puts functions with one reason on one line.
func absentTable(l schema.Language) string {
	names := map[string][]string{}
	var reasons []string
	for _, a := range l.Absent {
		why := strings.TrimPrefix(a.Why, a.Name+" ")
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], "`"+a.Name+"`")
	}
	var rows [][]string
	for _, why := range reasons {
		rows = append(rows, []string{strings.Join(names[why], ", "), upperFirst(why)})
	}
	return table([]string{"absent", "why, and what to write"}, rows)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func looseningsTable(l schema.Language) string {
	var rows [][]string
	for _, k := range l.Loosenings {
		value := k.Value
		if shape, example, ok := strings.Cut(value, "such as "); ok {
			value = shape + "such as `" + example + "`"
		} else if !strings.Contains(value, " ") {
			value = "`" + value + "`"
		}
		rows = append(rows, []string{"`" + k.Kind + "`", value, k.Gives})
	}
	return table([]string{"kind", "`value`", "gives"}, rows)
}

func acceptsTable(t *testing.T, l schema.Language) string {
	lets := map[string]string{
		schema.AcceptNotRootless:        "An engine that runs as root. A missing one, or what is no engine, stays refused.",
		schema.AcceptLimitsUnenforced:   "An engine that can't enforce some limits. They are neither sent nor compared.",
		schema.AcceptNetworkNotIsolated: "An engine on which an internal network reaches the host's own services.",
	}
	var rows [][]string
	for _, code := range l.Accepts {
		if lets[code] == "" {
			t.Errorf("nothing says what accept %q lets pass", code)
		}
		rows = append(rows, []string{"`" + code + "`", lets[code]})
	}
	return table([]string{"code", "lets pass"}, rows)
}

// resolved is a small folder, resolved as for apply.
func resolved(t *testing.T, source string) reconcile.Desired {
	t.Helper()
	cfg, diags := schema.Load(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, schema.Options{Root: "/srv/acme"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return reconcile.Resolve(cfg, reconcile.Roots{DataRoot: "/data", Store: "/data/store", Executable: "/bin/spaces"})
}

// everyLifecycle is a folder with a space of each lifecycle, and a proxy.
const everyLifecycle = `
project = "acme"
image "core" { binary = "spaces" }
network "inside" {}
network "uplink" { uplink = true }
egress "inside" { network = network.inside }
space "a-service" { image = image.core }
space "core" {
  image     = image.core
  lifecycle = "core"
}
space "session" {
  image     = image.core
  lifecycle = "on_request"
}
`

func limitsTable(t *testing.T) string {
	var rows [][]string
	for _, want := range []struct {
		title string
		is    func(reconcile.Space) bool
	}{
		{"`service`", func(s reconcile.Space) bool {
			return s.Kind == reconcile.KindSpace && s.Lifecycle == schema.LifecycleService
		}},
		{"`on_request`", func(s reconcile.Space) bool { return s.Lifecycle == schema.LifecycleOnRequest }},
		{"`core`", func(s reconcile.Space) bool { return s.Lifecycle == schema.LifecycleCore }},
		{"an egress list's proxy", func(s reconcile.Space) bool { return s.Kind == reconcile.KindEgress }},
	} {
		row := []string{want.title}
		for _, s := range resolved(t, everyLifecycle).Spaces {
			if !want.is(s) {
				continue
			}
			fields := fieldsOf(s.Container)
			if fields["limits.memory"] != fields["limits.memory_swap"] {
				t.Errorf("%s may swap", want.title)
			}
			row = append(row, fields["limits.pids"], fields["limits.memory"], fields["limits.cpus"])
		}
		if len(row) != 4 {
			t.Errorf("%s is %d spaces", want.title, len(row)/3)
		}
		rows = append(rows, row)
	}
	return table([]string{"lifecycle", "`pids`", "`memory`", "`cpus`"}, rows)
}

func fieldsOf(c reconcile.Container) map[string]string {
	fields := map[string]string{}
	for _, f := range c.Fields() {
		fields[f.Path] = f.Value
	}
	return fields
}

// hardeningTable reads the values from a space that says nothing.
func hardeningTable(t *testing.T) string {
	texts := []struct{ field, what, loosened string }{
		{"read_only", "The root file system is read-only.", "writable_root"},
		{"cap_drop", "All capabilities are dropped.", "cap_add"},
		{"no_new_privileges", "No program gains rights that its parent doesn't have.", "new_privileges"},
		{"seccomp", "System calls are those of the engine's default profile.", "seccomp"},
		{"init", "An init is process 1: it passes signals on and reaps children.", "init"},
		{`tmpfs["/tmp"]`, "`/tmp` is in memory, and empty at each start.", "tmp_exec"},
		{`log_options["max-size"]`, "The log is kept in files of this size,", ""},
		{`log_options["max-file"]`, "and this many of them,", ""},
		{"log_driver", "by this driver of the engine's.", ""},
	}
	var space reconcile.Space
	for _, s := range resolved(t, everyLifecycle).Spaces {
		if s.Address.Name == "a-service" {
			space = s
		}
	}
	fields := fieldsOf(space.Container)
	kinds := map[string]bool{}
	for _, l := range schema.Reference().Loosenings {
		kinds[l.Kind] = true
	}
	var rows [][]string
	for _, text := range texts {
		value, there := fields[text.field]
		if !there {
			t.Errorf("a space has no field %s", text.field)
		}
		delete(fields, text.field)
		loosened := "–"
		if text.loosened != "" {
			if !kinds[text.loosened] {
				t.Errorf("there is no loosening %s", text.loosened)
			}
			loosened = "`" + text.loosened + "`"
		}
		rows = append(rows, []string{"`" + text.field + "`", "`" + value + "`", text.what, loosened})
	}
	// Whatever else a space has that says nothing is told elsewhere.
	told := regexp.MustCompile(`^(image|labels\[.*|limits\..*|restart|network_mode|network\["none"\])$`)
	for field := range fields {
		if !told.MatchString(field) {
			t.Errorf("the field %s of every space is in no table", field)
		}
	}
	return table([]string{"field", "value", "meaning", "`loosen`"}, rows)
}

func mountsTable() string {
	var rows [][]string
	for _, m := range reconcile.StandardMounts() {
		rows = append(rows, []string{"`" + m.Target + "`", m.What, strings.Join(m.Options, ","), m.Need})
	}
	return table([]string{"target", "what it is", "must be", "is there"}, rows)
}

func labelsTable(t *testing.T) string {
	texts := map[string]string{
		reconcile.LabelProject:    "the project",
		reconcile.LabelKind:       "what it is: space, egress, core, session, probe, network or volume",
		reconcile.LabelName:       "its name in the files",
		reconcile.LabelKey:        "its `for_each` key, absent without one",
		reconcile.LabelRun:        "a session's run",
		reconcile.LabelStore:      "the path of the data root's store: whose project this is",
		reconcile.LabelFormat:     "the version of this set, " + reconcile.LabelFormatVersion,
		reconcile.LabelReplaces:   "the id of the container it took over from",
		reconcile.LabelApplied:    "keyed digests, by field, of what was asked for when it was made",
		reconcile.LabelImageInput: "on images: a digest of what the image was made from",
	}
	var rows [][]string
	for _, label := range constants(t, "../reconcile", "Label") {
		if label.value == reconcile.LabelPrefix || label.value == reconcile.LabelImagePrefix || label.value == reconcile.LabelFormatVersion {
			continue
		}
		if texts[label.value] == "" {
			t.Errorf("nothing says what %s is", label.value)
		}
		rows = append(rows, []string{"`" + label.value + "`", texts[label.value]})
	}
	return table([]string{"label", "says"}, rows)
}

// pinnedPlan is a plan that the tests of reconcile pin.
func pinnedPlan(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("../reconcile/testdata/plan", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == "plan.txt" {
			return "```text\n" + string(bytes.TrimSpace(f.Data)) + "\n```\n"
		}
	}
	t.Fatalf("%s holds no plan", name)
	return ""
}

// recordTexts are the fields of a plan's record, by type and JSON name.
var recordTexts = map[string]string{
	"Record.format_version": "1.",
	"Record.project":        "The project.",
	"Record.targets":        "What `--target` named, absent without any.",
	"Record.excludes":       "What `--exclude` named, likewise.",
	"Record.replace":        "What `--replace` named, likewise.",
	"Record.allow_destroy":  "What `--allow-destroy` named, likewise.",
	"Record.left_out":       "The addresses of what differs and isn't in this part of the plan.",
	"Record.endpoint":       "The engine's endpoint; absent without one.",
	"Record.engine":         "The engine's name and release; absent where none was asked.",
	"Record.variables":      "Keyed digests of the variables' values, by name; empty without a key.",
	"Record.access":         "Who gains or loses what.",
	"Record.items":          "The steps, in an order in which they can be carried out.",
	"Record.standing":       "What stands in every plan.",
	"Record.notes":          "What wasn't looked at or compared, and what stays.",
	"Record.assertions":     "The files' [assertions](assertions.md), and how each stands.",
	"Record.refusals":       "What keeps the plan, or its apply, from going ahead.",
	"Record.counts":         "What the last line of a printed plan counts.",

	"RecordAccess.change": "`gains` or `loses`.",
	"RecordAccess.space":  "Who: an address such as `space.web`, or a stranger's container.",
	"RecordAccess.kind":   "`mount`, `host`, `network`, `port` or `privilege`.",
	"RecordAccess.what":   "What is reached.",
	"RecordAccess.how":    "Through what, and how far.",
	"RecordAccess.meets":  "Who else is on a network that is joined.",
	"RecordAccess.wide":   "True where more is reached than is named, or written.",
	"RecordAccess.origin": "Where in the files.",

	"RecordItem.id":      "The step's name, unique in the plan: `create network.inside`.",
	"RecordItem.subject": "The object it is about: `network.inside`.",
	"RecordItem.step":    "The kind of step.",
	"RecordItem.effects": "Its [effects](#effects).",
	"RecordItem.changes": "The fields that change.",
	"RecordItem.needs":   "The ids of steps that must have succeeded before it starts.",
	"RecordItem.side":    "What moved, where the whole object is missing or isn't asked for.",
	"RecordItem.reasons": "Why, for people. Nothing is decided by them.",
	"RecordItem.origin":  "Where in the files; absent for what isn't in them.",

	"RecordChange.field":              "The field's path: `limits.memory`, `env[\"TZ\"]`. One of the engine's own names is a fact that the language can't express.",
	"RecordChange.before":             "What it is; null where it isn't set.",
	"RecordChange.after":              "What it is to be; null where it isn't to be set.",
	"RecordChange.sensitive":          "True where the values are masked.",
	"RecordChange.digest":             "Tells one sensitive change from another, with the data root's key.",
	"RecordChange.forces_replacement": "True where it can't be made in place.",
	"RecordChange.side":               "`in the files`, `in reality` or `either`.",
	"RecordChange.origin":             "Where in the files.",

	"RecordNotice.kind":    "The first word of its line in a printed plan.",
	"RecordNotice.subject": "What it is about.",
	"RecordNotice.text":    "What there is to say.",
	"RecordNotice.reason":  "Why, in the words of whoever wrote the files.",
	"RecordNotice.origin":  "Where in the files.",

	"RecordAssertion.sentence": "The sentence.",
	"RecordAssertion.holds":    "True where nothing breaks it.",
	"RecordAssertion.breaks":   "What breaks it.",
	"RecordAssertion.origin":   "Where in the files.",

	"RecordBreak.claim":    "The part of the assertion that is broken.",
	"RecordBreak.text":     "What is reached that shouldn't be, in a sentence.",
	"RecordBreak.path":     "How it is reached, by as few hops as can be.",
	"RecordBreak.others":   "Other spaces that break the same claim.",
	"RecordBreak.indirect": "True where another space is on the path.",
	"RecordBreak.origin":   "Where the claim stands.",

	"RecordHop.what":   "An address, or the start of a block in the one before.",
	"RecordHop.how":    "What there is to say of it.",
	"RecordHop.origin": "Where in the files.",

	"RecordRefusal.code":       "One of the [codes](#refusals).",
	"RecordRefusal.text":       "What is wrong.",
	"RecordRefusal.fix":        "What to do.",
	"RecordRefusal.stays":      "True where it bars nothing: the rest goes ahead and the thing itself is left.",
	"RecordRefusal.apply_only": "True where the plan stands and only its apply is barred.",
	"RecordRefusal.origin":     "Where in the files.",

	"RecordCounts.create":        "Objects to create.",
	"RecordCounts.update":        "Objects to change in place.",
	"RecordCounts.replace":       "Objects to replace.",
	"RecordCounts.destroy":       "Objects to destroy.",
	"RecordCounts.access_gained": "Entries of `access` that gain.",
	"RecordCounts.access_lost":   "Entries of `access` that lose.",

	"Origin.file":       "The file.",
	"Origin.line":       "The first line, from 1.",
	"Origin.column":     "The first column, from 1.",
	"Origin.end_line":   "The last line.",
	"Origin.end_column": "The column after the last.",
}

// recordTables are a table for each type in a plan's record.
func recordTables(t *testing.T) string {
	titles := map[string]string{
		"Record": "The record", "RecordAccess": "An entry of `access`", "RecordItem": "An entry of `items`",
		"RecordChange": "An entry of `changes`", "RecordNotice": "An entry of `standing` or `notes`",
		"RecordAssertion": "An entry of `assertions`", "RecordBreak": "An entry of `breaks`", "RecordHop": "An entry of `path`",
		"RecordRefusal": "An entry of `refusals`", "RecordCounts": "`counts`", "Origin": "An `origin`",
	}
	told := map[string]bool{}
	var out strings.Builder
	queue := []reflect.Type{reflect.TypeFor[reconcile.Record]()}
	for len(queue) > 0 {
		ty := queue[0]
		queue = queue[1:]
		var rows [][]string
		for i := range ty.NumField() {
			f := ty.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			key := ty.Name() + "." + name
			if recordTexts[key] == "" {
				t.Errorf("nothing says what %s is", key)
			}
			told[key] = true
			kind, inner := jsonType(f.Type)
			if inner != nil && !slices.Contains(queue, inner) && !told[inner.Name()] {
				queue = append(queue, inner)
				told[inner.Name()] = true
			}
			text := recordTexts[key]
			if strings.Contains(options, "omitempty") {
				kind += ", may be absent"
			}
			rows = append(rows, []string{"`" + name + "`", kind, text})
		}
		if titles[ty.Name()] == "" {
			t.Errorf("%s has no title", ty.Name())
		}
		fmt.Fprintf(&out, "%s:\n\n%s\n", titles[ty.Name()], table([]string{"field", "is", "meaning"}, rows))
	}
	for key := range recordTexts {
		if !told[key] {
			t.Errorf("%s is described and isn't in a record", key)
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// jsonType is what a field is in JSON, and the type of the objects in it.
func jsonType(ty reflect.Type) (string, reflect.Type) {
	switch ty.Kind() {
	case reflect.Slice:
		kind, inner := jsonType(ty.Elem())
		return "list of " + kind + "s", inner
	case reflect.Pointer:
		kind, inner := jsonType(ty.Elem())
		if inner == nil {
			kind += " or null"
		}
		return kind, inner
	case reflect.Struct:
		return "object", ty
	case reflect.Int:
		return "number", nil
	case reflect.Bool:
		return "boolean", nil
	default:
		return "string", nil
	}
}
