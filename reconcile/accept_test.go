package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzAccept checks, for generated worlds that were disturbed, that each difference of a
// plan is either said in edits or has a reason why not; that no edit holds what the
// plan masks; and that the same input gives the same edits.
func FuzzAccept(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := freshModel()
		cfg := generate(r)
		m.apply(t, m.plan(t, cfg))
		disturb(r, m)
		desired := Resolve(cfg, testRoots)
		p := m.plan(t, cfg)
		all := Accept(desired, m.actual, p)
		if again := Accept(desired, m.actual, p); fmt.Sprint(all) != fmt.Sprint(again) {
			t.Errorf("once\n%v\nand again\n%v", all, again)
		}
		said := map[string]int{}
		for _, a := range all {
			if len(a.Ways) == 0 && a.Why == "" {
				t.Errorf("%s %v: neither edits nor why not", a.Subject, a.Fields)
			}
			for _, way := range a.Ways {
				if text := fmt.Sprintf("%#v", way); strings.Contains(text, masked) || strings.Contains(text, "EVIL") {
					t.Errorf("%s %v: an edit holds what is masked: %s", a.Subject, a.Fields, text)
				}
			}
			for _, field := range a.Fields {
				said[a.Subject+" "+field]++
			}
		}
		for _, i := range p.Items {
			if _, shown := i.Step.(NotYet); shown || i.Effects.Has(Creates) || i.Effects.Has(Destroys) && !i.Effects.Has(Replaces) {
				continue
			}
			for _, c := range i.Changes {
				if n := said[i.Subject+" "+c.Field]; n == 0 {
					t.Errorf("nothing is told of %s %s", i.Subject, c.Field)
				}
			}
		}
	})
}

// What edits there are for what was done to a container, by the verbs of TestPlans.
func TestAccept(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/plan/nothing.txtar")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range archive.Files {
		parts[f.Name] = string(f.Data)
	}
	for world, want := range map[string]string{
		"env acme-web MODE=other":                    `schema.SetElement{space.web env MODE other}`,
		"env acme-web ADDED=secret":                  "what it holds may be a secret, and isn't shown",
		"user acme-web 9:9":                          `schema.SetAttribute{space.web   user "9:9"}`,
		"mount acme-web /host /etc":                  `schema.AddObject{main.hcl {grant host [{directory "/etc"} {target "/host"} {access "rw"}]}} schema.AddItem{space.web grants grant.host}`,
		"memory acme-web":                            "limits",
		"label acme-web a=b":                         "labels say whose a container is, and follow from the files",
		"excess acme-web HostConfig.Privileged=true": "the language can't say it",
		"state acme-web exited":                      "the files can't ask for a space that doesn't run",
		"detach acme-web acme-inside":                `schema.RemoveItem{space.web networks network.inside}`,
		"attach acme-web foreign":                    "it is no network of the files",
		"stranger acme-inside intruder":              "the language can't say it",
		"remove acme-web":                            `schema.RemoveObject{space.web}`,
	} {
		t.Run(world, func(t *testing.T) {
			m := freshModel()
			source := parts["main.hcl"]
			m.host.Paths = pathFacts(t, source)
			cfg := load(t, source)
			m.apply(t, m.plan(t, cfg))
			if err := happen(m, &Options{}, strings.Fields(world)); err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, a := range Accept(Resolve(cfg, testRoots), m.actual, m.plan(t, cfg)) {
				told = append(told, a.Why)
				for _, way := range a.Ways {
					var edits []string
					for _, e := range way {
						edits = append(edits, fmt.Sprintf("%T%v", e, e))
					}
					told = append(told, strings.Join(edits, " "))
				}
			}
			if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("told are\n%s\nand not\n%s", strings.Join(told, "\n"), want)
			}
		})
	}
}
