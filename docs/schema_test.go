package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spaces/cmd/spaces/cli"
	"spaces/reconcile"
)

const schemaFile = "plan.schema.json"

// definitions are the names of the schema's parts, by the Go type that they describe; the
// first are the reports themselves.
var definitions = map[string]string{
	"Record": "plan", "driftReport": "drift", "acceptReport": "accept", "problemReport": "problems",

	"RecordAccess": "access", "RecordItem": "item", "RecordChange": "change", "RecordNotice": "notice",
	"RecordRefusal": "refusal", "RecordCounts": "counts", "Origin": "origin",
	"RecordAssertion": "assertion", "RecordBreak": "break", "RecordHop": "hop",
	"difference": "difference", "driftCounts": "drift_counts",
	"acceptEdit": "edit", "acceptLeft": "left",
	"message": "diagnostic",
}

// reportTexts are the fields of the reports that docs/plan.md doesn't tabulate.
var reportTexts = map[string]string{
	"driftReport.format_version": "1.",
	"driftReport.project":        "The project.",
	"driftReport.endpoint":       "The engine's endpoint.",
	"driftReport.engine":         "The engine's name and release.",
	"driftReport.differences":    "What isn't as the files say.",
	"driftReport.counts":         "The differences by the side that moved.",
	"driftReport.notes":          "What wasn't looked at or compared, and what stays.",
	"driftReport.refusals":       "What keeps the plan, or its apply, from going ahead.",

	"difference.subject": "The object: `space.web`, or a stranger's container.",
	"difference.field":   "The field's path; absent where the whole object is meant.",
	"difference.before":  "What it is; null where it isn't set.",
	"difference.after":   "What the files ask for; null where they ask for none.",
	"difference.side":    "`in the files`, `in reality` or `either`.",
	"difference.what":    "`missing`, `not asked for` or `different`.",
	"difference.reasons": "Why, for people, where the whole object is meant.",
	"difference.origin":  "Where in the files.",

	"driftCounts.in_the_files": "Differences that the files made.",
	"driftCounts.in_reality":   "Differences that somebody made behind the program's back.",
	"driftCounts.either":       "Differences of which that can't be told.",

	"acceptReport.format_version": "1.",
	"acceptReport.project":        "The project.",
	"acceptReport.edits":          "The edits that would make reality what the files say, a file each.",
	"acceptReport.left":           "The differences that no edit of the files accepts.",

	"acceptEdit.file": "The file, in the folder of the configuration.",
	"acceptEdit.diff": "A unified diff, for `patch -p1` or `git apply` in that folder.",

	"acceptLeft.subject": "The object.",
	"acceptLeft.field":   "The field's path; absent where the whole object is meant.",
	"acceptLeft.why":     "Why no edit accepts it.",
	"acceptLeft.instead": "What to do.",
	"acceptLeft.origin":  "Where in the files.",

	"problemReport.format_version": "1.",
	"problemReport.diagnostics":    "Why there is no report.",

	"message.severity": "`error` or `warning`.",
	"message.code":     "One of the codes of refusals; absent for a warning or a failure.",
	"message.summary":  "What is wrong.",
	"message.detail":   "More of it, and what to write or do instead.",
	"message.origin":   "Where in the files.",
	"message.snippet":  "Those lines of the file; absent where one may hold a secret.",
}

// enums are the fields that hold one of a few words.
func enums() map[string][]string {
	sides := []string{string(reconcile.SideFiles), string(reconcile.SideReality), string(reconcile.SideEither)}
	var steps []string
	for _, s := range reconcile.Steps() {
		steps = append(steps, reconcile.Item{Step: s}.Verb())
	}
	return map[string][]string{
		"RecordAccess.change": {"gains", "loses"},
		"RecordAccess.kind":   {"mount", "host", "network", "port", "privilege"},
		"RecordItem.step":     steps,
		"RecordItem.effects":  reconcile.Effects(^uint(0)).Names(),
		"RecordItem.side":     sides,
		"RecordChange.side":   sides,
		"difference.side":     sides,
		"difference.what":     {"missing", "not asked for", "different"},
		"message.severity":    {"error", "warning"},
	}
}

// node is one schema, its keywords in the order of people.
type node struct {
	Schema      string     `json:"$schema,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	OneOf       []node     `json:"oneOf,omitempty"`
	Ref         string     `json:"$ref,omitempty"`
	Type        any        `json:"type,omitempty"`
	Const       any        `json:"const,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Items       *node      `json:"items,omitempty"`
	Properties  properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	// Additional is false, or of what kind what isn't named is.
	Additional any        `json:"additionalProperties,omitempty"`
	Minimum    *int       `json:"minimum,omitempty"`
	Defs       properties `json:"$defs,omitempty"`
}

// properties keep their order.
type properties []property

type property struct {
	name string
	node node
}

func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, each := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(each.name)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(each.node)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaMaker describes types and those that they hold.
type schemaMaker struct {
	t     *testing.T
	enums map[string][]string
	texts map[string]string
	told  map[string]bool
	queue []reflect.Type
	defs  properties
}

// TestSchemaIsFresh: the schema of the JSON reports is that of the types behind them, and
// closed: a field that is added is one that the schema gets, with what it means.
func TestSchemaIsFresh(t *testing.T) {
	m := &schemaMaker{t: t, enums: enums(), texts: map[string]string{}, told: map[string]bool{}}
	for _, texts := range []map[string]string{recordTexts, reportTexts} {
		for key, text := range texts {
			m.texts[key] = text
		}
	}
	root := node{
		Schema: "https://json-schema.org/draft/2020-12/schema",
		Title:  "Reports of spaces, format_version 1",
		Description: "What `spaces plan --json` prints and `spaces plan --out` keeps (plan), what `spaces drift --json` prints (drift), " +
			"with --accept (accept), and what either prints in its place where it can't go ahead (problems). " +
			"It is closed, for it is that of one release: a later one of the same format_version may add fields, and adds them here.",
	}
	for _, ty := range []reflect.Type{
		reflect.TypeFor[reconcile.Record](), reflect.TypeFor[cli.DriftReport](),
		reflect.TypeFor[cli.AcceptReport](), reflect.TypeFor[cli.ProblemReport](),
	} {
		root.OneOf = append(root.OneOf, *m.refer(ty))
	}
	m.all()
	root.Defs = m.defs
	for key := range m.texts {
		if !m.told[key] {
			t.Errorf("%s is described and is in no report", key)
		}
	}
	for key := range m.enums {
		if !m.told[key] {
			t.Errorf("%s holds certain words and is in no report", key)
		}
	}
	var fresh bytes.Buffer
	e := json.NewEncoder(&fresh)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, fresh.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, schemaFile) != fresh.String() {
		t.Errorf("%s is stale: go test ./docs -update", schemaFile)
	}
}

// refer is a reference to the description of a type, which is made once.
func (m *schemaMaker) refer(ty reflect.Type) *node {
	name := definitions[ty.Name()]
	if name == "" {
		m.t.Fatalf("%s has no name in the schema", ty)
	}
	if !slices.Contains(m.queue, ty) {
		m.queue = append(m.queue, ty)
	}
	return &node{Ref: "#/$defs/" + name}
}

func (m *schemaMaker) all() {
	for i := 0; i < len(m.queue); i++ {
		m.defs = append(m.defs, property{definitions[m.queue[i].Name()], m.object(m.queue[i])})
	}
}

func (m *schemaMaker) object(ty reflect.Type) node {
	n := node{Type: "object", Additional: false, Required: []string{}}
	for i := range ty.NumField() {
		f := ty.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		key := ty.Name() + "." + name
		m.told[key] = true
		if m.texts[key] == "" {
			m.t.Errorf("nothing says what %s is", key)
		}
		of := m.value(key, f.Type)
		of.Description = bareText(m.texts[key])
		optional := strings.Contains(options, "omitempty")
		if f.Type.Kind() == reflect.Pointer && !optional {
			of.Type = []any{of.Type, "null"}
		}
		if name == "format_version" {
			of.Const, of.Minimum = reconcile.FormatVersion, nil
		}
		n.Properties = append(n.Properties, property{name, of})
		if !optional {
			n.Required = append(n.Required, name)
		}
	}
	return n
}

func (m *schemaMaker) value(key string, ty reflect.Type) node {
	zero := 0
	switch ty.Kind() {
	case reflect.Slice:
		items := m.value(key, ty.Elem())
		return node{Type: "array", Items: &items}
	case reflect.Map:
		return node{Type: "object", Additional: node{Type: "string"}}
	case reflect.Pointer:
		return m.value(key, ty.Elem())
	case reflect.Struct:
		return *m.refer(ty)
	case reflect.Int:
		return node{Type: "integer", Minimum: &zero}
	case reflect.Bool:
		return node{Type: "boolean"}
	case reflect.String:
		return node{Type: "string", Enum: m.enums[key]}
	}
	m.t.Fatalf("%s is a %s, which no report holds", key, ty)
	return node{}
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// bareText is a text of docs/plan.md without its links.
func bareText(s string) string { return link.ReplaceAllString(s, "$1") }
