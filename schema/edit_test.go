package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// editable has each thing that is edited, written in the ways that people write it.
const editable = `project = "acme"

locals {
  size = "64MiB"
}

image "ref" {
  reference = "a@sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

network "a" {
  internal = false
  reason   = "it publishes"
}

network "b" { egress = "none" }

space "one" {
  image = image.ref
}

space "two" {
  image      = image.ref
  command    = ["a", "b"]
  user       = "1:1" # the first
  networks   = [network.a]
  tmpfs      = [
    "/x",
    "/y"
  ]
  env        = { A = "1", "B" = "2" }
  depends_on = []

  limits {
    memory = local.size
    pids   = 64
  }

  publish {
    port = 80
  }
}

space "three" { image = image.ref }

space "each" {
  for_each = toset(["k"])
  image    = image.ref
  env = {
    A = each.key # it
    B = "2"
  }
}

space "lines" {
  image = image.ref
  env = {
    A = "1" # one
    B = "2"
  }
  command = [
    "a", # the program
    "b",
  ]
  stop_signal = "SIGINT"
}
`

func space(name string) Address { return Address{Kind: "space", Name: name} }

func TestEdits(t *testing.T) {
	one, two, three, lines := space("one"), space("two"), space("three"), space("lines")
	for name, c := range map[string]struct {
		edits []Edit
		// want are lines of the outcome that were not there, gone those that were.
		want, gone []string
	}{
		"attribute":         {[]Edit{SetAttribute{Object: two, Name: "user", Value: Text("2:2")}}, []string{`  user     = "2:2" # the first`}, []string{`  user       = "1:1" # the first`}},
		"new attribute":     {[]Edit{SetAttribute{Object: one, Name: "user", Value: Text("2:2")}}, []string{`  user  = "2:2"`}, nil},
		"escaped":           {[]Edit{SetAttribute{Object: one, Name: "user", Value: Text("${a}\"\n%{b}")}}, []string{`  user  = "$${a}\"\n%%{b}"`}, nil},
		"in one line":       {[]Edit{SetAttribute{Object: three, Name: "user", Value: Text("2")}}, []string{`space "three" {`, `  user  = "2"`}, []string{`space "three" { image = image.ref }`}},
		"inside":            {[]Edit{SetAttribute{Object: two, Block: "limits", Name: "pids", Value: Number("7")}}, []string{`    pids   = 7`}, []string{`    pids   = 64`}},
		"new inside":        {[]Edit{SetAttribute{Object: two, Block: "limits", Name: "cpus", Value: Number("0.5")}}, []string{`    cpus   = 0.5`}, nil},
		"new block":         {[]Edit{SetAttribute{Object: one, Block: "limits", Name: "cpus", Value: Number("0.5")}}, []string{`  limits {`, `    cpus = 0.5`}, nil},
		"removed":           {[]Edit{RemoveAttribute{Object: two, Name: "user"}}, nil, []string{`  user       = "1:1" # the first`}},
		"element":           {[]Edit{SetElement{two, "env", "A", "9"}}, []string{`  env = { A = "9", "B" = "2" }`}, nil},
		"new element":       {[]Edit{SetElement{two, "env", "C", "3"}}, []string{`  env = { A = "1", "B" = "2", C = "3" }`}, nil},
		"element of none":   {[]Edit{SetElement{one, "env", "C", "3"}}, []string{`  env = {`, `    C = "3"`}, nil},
		"element on a line": {[]Edit{SetElement{lines, "env", "C", "3"}}, []string{`    C = "3"`}, nil},
		"element gone":      {[]Edit{RemoveElement{two, "env", "B"}}, []string{`  env = { A = "1" }`}, nil},
		"first gone":        {[]Edit{RemoveElement{two, "env", "A"}}, []string{`  env = { "B" = "2" }`}, nil},
		"line gone":         {[]Edit{RemoveElement{lines, "env", "A"}}, nil, []string{`    A = "1" # one`}},
		"all gone":          {[]Edit{RemoveElement{lines, "env", "A"}, RemoveElement{lines, "env", "B"}}, nil, []string{`  env = {`, `    B = "2"`}},
		"item":              {[]Edit{AddItem{two, "networks", "network.b"}}, []string{`  networks = [network.a, network.b]`}, nil},
		"item of none":      {[]Edit{AddItem{one, "networks", "network.b"}}, []string{`  networks = [network.b]`}, nil},
		"item of empty":     {[]Edit{AddItem{two, "depends_on", "space.one"}}, []string{`  depends_on = [space.one]`}, nil},
		"item on a line":    {[]Edit{AddItem{two, "tmpfs", `"/z"`}}, []string{`    "/y",`, `    "/z",`}, []string{`    "/y"`}},
		"item gone":         {[]Edit{RemoveItem{two, "networks", "network.a"}}, nil, []string{`  networks   = [network.a]`}},
		"item of lines":     {[]Edit{RemoveItem{two, "tmpfs", `"/x"`}}, nil, []string{`    "/x",`}},
		"last of lines":     {[]Edit{RemoveItem{two, "tmpfs", `"/y"`}}, nil, []string{`    "/y"`}},
		"block":             {[]Edit{AddBlock{one, Block{"loosen", "init", []Attribute{{"value", Flag(false)}, {"reason", Text("r")}}}}}, []string{`  loosen "init" {`, `    value  = false`, `    reason = "r"`}, nil},
		"block gone": {[]Edit{RemoveBlocks{
			Object: two, Type: "publish", Where: map[string]Value{"port": Number("80"), "host": Text("127.0.0.1")}, Defaults: map[string]Value{"host": Text("127.0.0.1")},
		}}, nil, []string{`  publish {`, `    port = 80`}},
		"object":      {[]Edit{AddObject{"main.hcl", Block{"network", "c", []Attribute{{"egress", Text("none")}}}}}, []string{`network "c" {`}, nil},
		"object gone": {[]Edit{RemoveObject{space("one")}}, nil, []string{`space "one" {`}},
	} {
		t.Run(name, func(t *testing.T) {
			source := string(Format([]byte(editable)))
			// Alignment isn't what is looked at.
			bare := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			before := map[string]int{}
			for l := range strings.Lines(source) {
				before[bare(l)]++
			}
			next, err := NewDraft(map[string][]byte{"main.hcl": []byte(source)}).With(c.edits...)
			if err != nil {
				t.Fatal(err)
			}
			got := string(next.Files()["main.hcl"])
			if string(Format([]byte(got))) != got {
				t.Errorf("it isn't laid out:\n%s", got)
			}
			after := map[string]int{}
			for l := range strings.Lines(got) {
				after[bare(l)]++
			}
			for _, l := range c.want {
				if after[bare(l)] <= before[bare(l)] {
					t.Errorf("no line %q in\n%s", l, got)
				}
			}
			for _, l := range c.gone {
				if after[bare(l)] >= before[bare(l)] {
					t.Errorf("the line %q stays in\n%s", l, got)
				}
			}
			if _, diags := load(got); diags != "" {
				switch name {
				case "escaped", "block", "item gone": // values that the language refuses, for spelling's sake
				default:
					t.Errorf("it doesn't load: %s\n%s", diags, got)
				}
			}
		})
	}
}

func load(source string) (*Config, string) {
	cfg, diags := Load(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, Options{Root: "/cfg"})
	if diags.HasErrors() {
		return cfg, diags.Error()
	}
	return cfg, ""
}

func TestEditsThatFilesDoNotTake(t *testing.T) {
	two := space("two")
	for name, c := range map[string]struct {
		edit Edit
		why  string
		line int
	}{
		"local":             {SetAttribute{Object: two, Block: "limits", Name: "memory", Value: Text("1GiB")}, "its value comes from local.size", 4},
		"each":              {SetElement{space("each"), "env", "A", "2"}, `space.each is one of those that for_each makes of one block`, 47},
		"no such block":     {SetAttribute{Object: space("nobody"), Name: "user", Value: Text("1")}, "no block of the files is space.nobody", 0},
		"element of none":   {RemoveElement{space("one"), "env", "A"}, "space.one doesn't write it: it comes from the image or is a default", 18},
		"no such element":   {RemoveElement{two, "env", "Z"}, "space.two doesn't write it: it comes from the image or is a default", 31},
		"no such item":      {RemoveItem{two, "networks", "network.b"}, "networks of space.two doesn't list network.b", 26},
		"no such publish":   {RemoveBlocks{Object: two, Type: "publish", Where: map[string]Value{"port": Number("81")}}, "space.two has no such publish block that is written literally", 0},
		"nothing to remove": {RemoveAttribute{Object: two, Name: "stop_signal"}, "space.two doesn't write stop_signal: it comes from the image or is a default", 22},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewDraft(map[string][]byte{"main.hcl": []byte(editable)}).With(c.edit)
			var no *EditError
			if !errors.As(err, &no) {
				t.Fatalf("it is %v", err)
			}
			if no.Why != c.why || no.At.Line != c.line {
				t.Errorf("%q at line %d, want %q at %d", no.Why, no.At.Line, c.why, c.line)
			}
		})
	}
}

// Whatever the files and the edit are, what comes of it parses, and where it loads, it
// says what it was to say.
func FuzzEdits(f *testing.F) {
	for i := range 8 {
		f.Add(editable, "two", "A", "v", i)
	}
	f.Add("space \"a\" {\n  env = {\n    A = \"1\", B = \"2\"\n  }\n}\n", "a", "B", "x", 1)
	f.Add("space \"a\" { env = {} }", "a", "B-c d", "${x}\n", 0)
	f.Add("space \"a\" {\r\n  env = {\r\n A = \"1\" }\r\n}\r\n", "a", "Z", "", 0)
	f.Add("space \"a\" {\n  tmpfs = [<<X\n/a\nX\n  ]\n}\n", "a", "/b", "", 3)
	f.Fuzz(func(t *testing.T, source, name, key, value string, kind int) {
		object := space(name)
		edits := []Edit{
			SetElement{object, "env", key, value},
			RemoveElement{object, "env", key},
			SetAttribute{Object: object, Name: "user", Value: Text(value)},
			AddItem{object, "tmpfs", string(Text(key))},
			RemoveItem{object, "tmpfs", string(Text(key))},
			AddBlock{object, Block{"loosen", key, []Attribute{{"value", Text(value)}}}},
			RemoveObject{object},
			SetAttribute{Object: object, Block: "limits", Name: "pids", Value: Number("7")},
			RemoveAttribute{Object: object, Name: "env"},
		}
		edit := edits[((kind%len(edits))+len(edits))%len(edits)]
		if CheckSyntax([]byte(source), "main.hcl").HasErrors() {
			return
		}
		next, err := NewDraft(map[string][]byte{"main.hcl": []byte(source)}).With(edit)
		if err != nil {
			return
		}
		src, edited := next.Files()["main.hcl"]
		if !edited {
			return
		}
		if diags := CheckSyntax(src, "main.hcl"); diags.HasErrors() {
			t.Fatalf("%s: %v\n%q", fmt.Sprintf("%T", edit), diags, src)
		}
		cfg, diags := load(string(src))
		if diags != "" {
			return
		}
		for _, s := range cfg.Spaces {
			if s.Address != object {
				continue
			}
			said := ""
			for _, v := range s.Env {
				if v.Name == key {
					said = "=" + v.Value
				}
			}
			switch edit.(type) {
			case SetElement:
				if said != "="+value {
					t.Errorf("env says %q\n%q", said, src)
				}
			case RemoveElement:
				if said != "" {
					t.Errorf("env still says %q\n%q", said, src)
				}
			}
		}
	})
}
