package cli

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"testing"

	"spaces/reconcile"
	"spaces/schema"
)

// steps lists each kind that reconcile has.
func TestStepsAreAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../reconcile/step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name == "step" {
			want = append(want, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	for _, s := range reconcile.Steps() {
		got = append(got, reflect.TypeOf(s).Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("steps are %v, reconcile's are %v", got, want)
	}
}

// A plan that was kept prints as it did.
func TestPlanOfARecord(t *testing.T) {
	at := schema.Origin{File: "main.hcl", Line: 3, Column: 1, EndLine: 3, EndColumn: 9}
	plan := &reconcile.Plan{
		Project: "acme", Endpoint: fakeEndpoint, Engine: "Docker 28.0.0",
		Access: []reconcile.AccessChange{{
			Gains: true, Meets: "space.b",
			Access: reconcile.Access{Space: "space.a", Kind: "network", What: "inside", How: "internal", Wide: true, Origin: at},
		}},
		Standing: []reconcile.Notice{{Kind: "loosened", Subject: "space.a", Text: "init", Origin: at}},
		Notes:    []reconcile.Notice{{Kind: "kept", Subject: "volume.a", Text: "it stays"}},
		Refusals: []reconcile.Refusal{{Code: "name-taken", Text: "it is taken", Fix: "rename it", Origin: at, ApplyOnly: true}},
	}
	for n, s := range reconcile.Steps() {
		effects := reconcile.Effects(1 << (n % 7))
		plan.Items = append(plan.Items, reconcile.Item{
			ID: string(rune('a' + n)), Subject: "space.a", Step: s, Effects: effects | reconcile.Widens, Origin: at,
			Reasons: []string{"so"}, Needs: []string{"x"}, Side: reconcile.SideReality,
			Changes: []reconcile.Change{
				{Field: "user", After: "", AfterSet: true, Side: reconcile.SideFiles, Forces: true, Origin: at},
				{Field: "env", Before: "(sensitive)", BeforeSet: true, Sensitive: true, Digest: "00"},
			},
		})
	}
	b, err := json.Marshal(plan.Record())
	if err != nil {
		t.Fatal(err)
	}
	var kept reconcile.Record
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	again, err := planOf(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.String(), plan.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if moved := again.Record().Moved(plan.Record()); len(moved) > 0 {
		t.Errorf("moved: %v", moved)
	}
	if _, err := planOf(reconcile.Record{Items: []reconcile.RecordItem{{Step: "dance"}}}); err == nil {
		t.Error("an unknown step was taken")
	}
}
