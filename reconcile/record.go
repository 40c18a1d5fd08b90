package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// FormatVersion is the version of a plan's record. It changes when a field's meaning
// does or one goes; a new field alone leaves it.
const FormatVersion = 1

// Record is a plan as JSON: what `plan --json` prints and `plan --out` keeps. A saved
// one is for review, not instructions: apply makes the plan again and compares.
type Record struct {
	FormatVersion int    `json:"format_version"`
	Project       string `json:"project"`
	Endpoint      string `json:"endpoint,omitempty"`
	Engine        string `json:"engine,omitempty"`
	// Targets, Excludes, Replace and AllowDestroy are the flags that decided what is in
	// the plan.
	Targets      []string `json:"targets,omitempty"`
	Excludes     []string `json:"excludes,omitempty"`
	Replace      []string `json:"replace,omitempty"`
	AllowDestroy []string `json:"allow_destroy,omitempty"`
	// LeftOut are the objects that differ and are left as they are.
	LeftOut []string `json:"left_out,omitempty"`
	// Variables are keyed digests of the variables' values, by name; empty without a key.
	Variables map[string]string `json:"variables"`
	Access    []RecordAccess    `json:"access"`
	Items     []RecordItem      `json:"items"`
	Standing  []RecordNotice    `json:"standing"`
	Notes     []RecordNotice    `json:"notes"`
	// Assertions are those of the files, by sentence.
	Assertions []RecordAssertion `json:"assertions"`
	Refusals   []RecordRefusal   `json:"refusals"`
	Counts     RecordCounts      `json:"counts"`
}

// RecordAccess is an AccessChange.
type RecordAccess struct {
	Change string         `json:"change"` // "gains" or "loses"
	Space  string         `json:"space"`
	Kind   string         `json:"kind"`
	What   string         `json:"what"`
	How    string         `json:"how,omitempty"`
	Meets  string         `json:"meets,omitempty"`
	Wide   bool           `json:"wide,omitempty"`
	Origin *schema.Origin `json:"origin,omitempty"`
}

// RecordItem is an Item.
type RecordItem struct {
	ID      string         `json:"id"`
	Subject string         `json:"subject"`
	Step    string         `json:"step"`
	Effects []string       `json:"effects"`
	Changes []RecordChange `json:"changes"`
	Needs   []string       `json:"needs"`
	Side    Side           `json:"side,omitempty"`
	Reasons []string       `json:"reasons,omitempty"`
	Origin  *schema.Origin `json:"origin,omitempty"`
}

// RecordChange is a Change. Before and After are null where the field isn't set.
type RecordChange struct {
	Field     string         `json:"field"`
	Before    *string        `json:"before"`
	After     *string        `json:"after"`
	Sensitive bool           `json:"sensitive,omitempty"`
	Digest    string         `json:"digest,omitempty"` // keyed, of a sensitive change
	Forces    bool           `json:"forces_replacement,omitempty"`
	Side      Side           `json:"side,omitempty"`
	Origin    *schema.Origin `json:"origin,omitempty"`
}

// RecordNotice is a Notice.
type RecordNotice struct {
	Kind    string         `json:"kind"`
	Subject string         `json:"subject"`
	Text    string         `json:"text"`
	Reason  string         `json:"reason,omitempty"`
	Origin  *schema.Origin `json:"origin,omitempty"`
}

// RecordAssertion is a Judgement.
type RecordAssertion struct {
	Sentence string         `json:"sentence"`
	Holds    bool           `json:"holds"`
	Breaks   []RecordBreak  `json:"breaks"`
	Origin   *schema.Origin `json:"origin,omitempty"`
}

// RecordBreak is a Break.
type RecordBreak struct {
	Claim    string         `json:"claim"`
	Text     string         `json:"text"`
	Path     []RecordHop    `json:"path"`
	Others   []string       `json:"others,omitempty"`
	Indirect bool           `json:"indirect,omitempty"`
	Origin   *schema.Origin `json:"origin,omitempty"`
}

// RecordHop is a Hop.
type RecordHop struct {
	What   string         `json:"what"`
	How    string         `json:"how,omitempty"`
	Origin *schema.Origin `json:"origin,omitempty"`
}

// RecordRefusal is a Refusal.
type RecordRefusal struct {
	Code      string         `json:"code"`
	Text      string         `json:"text"`
	Fix       string         `json:"fix,omitempty"`
	ApplyOnly bool           `json:"apply_only,omitempty"`
	Stays     bool           `json:"stays,omitempty"`
	Origin    *schema.Origin `json:"origin,omitempty"`
}

// RecordCounts are Counts.
type RecordCounts struct {
	Create  int `json:"create"`
	Update  int `json:"update"`
	Replace int `json:"replace"`
	Destroy int `json:"destroy"`
	Gains   int `json:"access_gained"`
	Loses   int `json:"access_lost"`
}

// Record makes a plan's record.
func (p *Plan) Record() Record {
	c := p.Counts()
	r := Record{
		FormatVersion: FormatVersion, Project: p.Project, Endpoint: p.Endpoint, Engine: p.Engine,
		Targets: p.Asked.Targets, Excludes: p.Asked.Excludes,
		Replace: p.Asked.Replace, AllowDestroy: p.Asked.AllowDestroy, LeftOut: p.LeftOut,
		Variables: map[string]string{},
		Access:    []RecordAccess{}, Items: []RecordItem{}, Refusals: []RecordRefusal{},
		Standing: recordNotices(p.Standing), Notes: recordNotices(p.Notes),
		Assertions: RecordAssertions(p.Assertions),
		Counts:     RecordCounts(c),
	}
	for _, v := range p.Variables {
		r.Variables[v.Name] = v.Digest
	}
	for _, a := range p.Access {
		change := "loses"
		if a.Gains {
			change = "gains"
		}
		r.Access = append(r.Access, RecordAccess{change, a.Space, a.Kind, a.What, a.How, a.Meets, a.Wide, recordOrigin(a.Origin)})
	}
	for _, i := range p.Items {
		r.Items = append(r.Items, recordItem(i))
	}
	for _, f := range p.Refusals {
		r.Refusals = append(r.Refusals, RecordRefusal{f.Code, f.Text, f.Fix, f.ApplyOnly, f.Stays, recordOrigin(f.Origin)})
	}
	return r
}

func recordItem(i Item) RecordItem {
	out := RecordItem{
		ID: i.ID, Subject: i.Subject, Step: i.Verb(), Effects: i.Effects.Names(),
		Changes: []RecordChange{}, Needs: slices.Clone(i.Needs), Side: i.Side,
		Reasons: i.Reasons, Origin: recordOrigin(i.Origin),
	}
	if out.Needs == nil {
		out.Needs = []string{}
	}
	for _, c := range i.Changes {
		rc := RecordChange{
			Field: c.Field, Sensitive: c.Sensitive, Digest: c.Digest,
			Forces: c.Forces, Side: c.Side, Origin: recordOrigin(c.Origin),
		}
		if c.BeforeSet {
			rc.Before = &c.Before
		}
		if c.AfterSet {
			rc.After = &c.After
		}
		out.Changes = append(out.Changes, rc)
	}
	return out
}

// Verb names the kind of an item's step: "create_network".
func (i Item) Verb() string {
	switch i.Step.(type) {
	case CreateDirectory:
		return "create_directory"
	case CreateNetwork:
		return "create_network"
	case RemoveNetwork:
		return "remove_network"
	case CreateVolume:
		return "create_volume"
	case RemoveVolume:
		return "remove_volume"
	case BuildImage:
		return "build_image"
	case PullImage:
		return "pull_image"
	case CreateSpace:
		return "create_space"
	case ReplaceSpace:
		return "replace_space"
	case UpdateSpace:
		return "update_space"
	case ConnectSpace:
		return "connect_space"
	case DisconnectSpace:
		return "disconnect_space"
	case StartSpace:
		return "start_space"
	case UnpauseSpace:
		return "unpause_space"
	case RemoveSpace:
		return "remove_space"
	case RenameSpace:
		return "rename_space"
	case NotYet:
		return "not_yet_supported"
	}
	panic(fmt.Sprintf("reconcile: step %T has no verb", i.Step))
}

func recordNotices(notices []Notice) []RecordNotice {
	out := []RecordNotice{}
	for _, n := range notices {
		out = append(out, RecordNotice{n.Kind, n.Subject, n.Text, n.Reason, recordOrigin(n.Origin)})
	}
	return out
}

// RecordAssertions makes a record of assertions, for those who report them alone.
func RecordAssertions(judged []Judgement) []RecordAssertion {
	out := []RecordAssertion{}
	for _, a := range judged {
		r := RecordAssertion{Sentence: a.Sentence, Holds: a.Holds(), Breaks: []RecordBreak{}, Origin: recordOrigin(a.Origin)}
		for _, b := range a.Breaks {
			path := []RecordHop{}
			for _, h := range b.Path {
				path = append(path, RecordHop{h.What, h.How, recordOrigin(h.Origin)})
			}
			r.Breaks = append(r.Breaks, RecordBreak{b.Claim, b.Text, path, b.Others, b.Indirect, recordOrigin(b.Origin)})
		}
		out = append(out, r)
	}
	return out
}

func recordOrigin(o schema.Origin) *schema.Origin {
	if o.File == "" {
		return nil
	}
	return &o
}

// Moved compares a saved record with one made now and says what moved, a line each;
// nothing means that what was reviewed is what would be done. Lines, comments and
// reasons of the files may differ: what is done doesn't follow from them.
func (r Record) Moved(now Record) []string {
	var moved []string
	if r.FormatVersion != now.FormatVersion {
		return []string{fmt.Sprintf("the saved plan has format %d, this program writes %d", r.FormatVersion, now.FormatVersion)}
	}
	for _, f := range []struct{ name, then, now string }{
		{"project", r.Project, now.Project},
		{"endpoint", r.Endpoint, now.Endpoint},
		{"engine", r.Engine, now.Engine},
		{"flags", orNo(r.Asked().String()), orNo(now.Asked().String())},
	} {
		if f.then != f.now {
			moved = append(moved, fmt.Sprintf("%s: %s, was %s", f.name, f.now, f.then))
		}
	}
	moved = append(moved, compareLists("step", r.Items, now.Items, func(i RecordItem) (string, string) {
		return i.ID, essence(i.bare())
	}, fieldsMoved)...)
	moved = append(moved, compareLists("access", r.Access, now.Access, func(a RecordAccess) (string, string) {
		a.Origin = nil
		return strings.Join([]string{a.Change, a.Space, a.Kind, a.What, a.How}, " "), essence(a)
	}, nil)...)
	moved = append(moved, compareLists("accepted or wide", r.Standing, now.Standing, func(n RecordNotice) (string, string) {
		return n.Kind + " " + n.Subject, n.Text
	}, nil)...)
	moved = append(moved, compareVariables(r.Variables, now.Variables)...)
	return moved
}

// Asked are the flags that decided what is in the plan.
func (r Record) Asked() Asked {
	return Asked{Targets: r.Targets, Excludes: r.Excludes, Replace: r.Replace, AllowDestroy: r.AllowDestroy}
}

func orNo(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// WithoutDigests leaves out what a plan has only where there is a key, for comparing it
// with one that was made before there was.
func (r Record) WithoutDigests() Record {
	r.Variables = map[string]string{}
	r.Items = slices.Clone(r.Items)
	for i, item := range r.Items {
		var kept []RecordChange
		for _, c := range item.Changes {
			if isContent(c.Field) {
				continue
			}
			c.Digest = ""
			kept = append(kept, c)
		}
		r.Items[i].Changes = kept
	}
	return r
}

// compareVariables says which variables have another value. A digest that was made
// without a key tells nothing.
func compareVariables(then, now map[string]string) []string {
	var out []string
	for _, name := range sortedKeys(now) {
		if was, known := then[name]; known && was != "" && now[name] != "" && was != now[name] {
			out = append(out, fmt.Sprintf("variable %q has another value", name))
		}
	}
	return out
}

func (i RecordItem) bare() RecordItem {
	i.Reasons, i.Origin = nil, nil
	i.Changes = slices.Clone(i.Changes)
	for n := range i.Changes {
		i.Changes[n].Origin = nil
	}
	return i
}

func essence(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("reconcile: a record can't be encoded: %v", err))
	}
	return string(b)
}

// fieldsMoved are the fields whose change is another one in two items.
func fieldsMoved(then, now RecordItem) []string {
	was, is := map[string]string{}, map[string]string{}
	for _, c := range then.bare().Changes {
		was[c.Field] = essence(c)
	}
	for _, c := range now.bare().Changes {
		is[c.Field] = essence(c)
		if _, known := was[c.Field]; !known {
			was[c.Field] = ""
		}
	}
	return slices.DeleteFunc(sortedKeys(was), func(field string) bool { return was[field] == is[field] })
}

// compareLists says which elements are new, gone or different, by a name and by all
// that matters of them, and in what the different ones are, if how can tell.
func compareLists[T any](kind string, then, now []T, identify func(T) (name, essence string), how func(then, now T) []string) []string {
	was, first := map[string][]string{}, map[string]T{}
	for _, e := range then {
		name, what := identify(e)
		was[name] = append(was[name], what)
		first[name] = e
	}
	is, ways := map[string][]string{}, map[string]string{}
	for _, e := range now {
		name, what := identify(e)
		is[name] = append(is[name], what)
		if then, known := first[name]; known && how != nil {
			if in := how(then, e); len(in) > 0 {
				ways[name] = ": " + strings.Join(in, ", ")
			}
		}
	}
	var out []string
	for _, name := range sortedKeys(is) {
		if _, known := was[name]; !known {
			out = append(out, fmt.Sprintf("%s %q is new", kind, name))
		} else if !slices.Equal(was[name], is[name]) {
			out = append(out, fmt.Sprintf("%s %q is different%s", kind, name, ways[name]))
		}
	}
	for _, name := range sortedKeys(was) {
		if _, still := is[name]; !still {
			out = append(out, fmt.Sprintf("%s %q is gone", kind, name))
		}
	}
	return out
}
