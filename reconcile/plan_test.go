package reconcile

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"

	"spaces/schema"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata")

// TestPlans reads testdata/plan/*.txtar. Each holds main.hcl; perhaps before.hcl, which
// is applied to the model first; perhaps world.txt, which says what happened since (see
// happen); and plan.txt, the printed plan. Some hold plan.json too, its record, which
// cmd/spaces/cli makes plan.md of.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d plans found (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			plan := planOf(t, parts)
			got, record := plan.String(), recordOf(t, plan)
			if *update {
				setPart(archive, "plan.txt", got)
				if parts["plan.json"] != "" {
					setPart(archive, "plan.json", record)
				}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != parts["plan.txt"] {
				t.Errorf("the plan is\n%s\nand should be\n%s", got, parts["plan.txt"])
			}
			if want := parts["plan.json"]; want != "" && record != want {
				t.Errorf("its record is\n%s\nand should be\n%s", record, want)
			}
		})
	}
}

// recordOf is a plan's record as JSON, which docs/plan.schema.json must describe.
func recordOf(t *testing.T, plan *Plan) string {
	t.Helper()
	b, err := json.MarshalIndent(plan.Record(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := jsonschema.NewCompiler().Compile("../docs/plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
	return string(b) + "\n"
}

func planOf(t *testing.T, parts map[string]string) *Plan {
	t.Helper()
	m := freshModel()
	if before := parts["before.hcl"]; before != "" {
		m.host.Paths = pathFacts(t, before)
		m.apply(t, m.plan(t, load(t, before)))
		// What was pulled or built is another image than the one of a later build.
	}
	main := parts["main.hcl"]
	facts := pathFacts(t, main)
	maps.Copy(facts, m.host.Paths)
	m.host.Paths = facts
	var o Options
	for line := range strings.Lines(parts["world.txt"]) {
		if err := happen(m, &o, strings.Fields(line)); err != nil {
			t.Fatalf("world.txt: %q: %v", line, err)
		}
	}
	p, err := Diff(Resolve(load(t, main), testRoots), m.host, m.actual, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t *testing.T, source string) *schema.Config {
	t.Helper()
	cfg, diags := schema.Load(mapFS("main.hcl", source), schema.Options{Root: "/cfg"})
	if diags.HasErrors() {
		t.Fatalf("main.hcl: %v", diags)
	}
	return cfg
}

// pathFacts says of every source that it is as it should be.
func pathFacts(t *testing.T, source string) map[string]PathFacts {
	t.Helper()
	facts := map[string]PathFacts{}
	for _, g := range load(t, source).Grants {
		f := PathFacts{Absolute: g.Source, Resolved: g.Source, Exists: true}
		switch g.Kind {
		case schema.GrantDirectory:
			f.Kind = PathDirectory
		case schema.GrantSecret:
			f.Kind, f.Mode, f.Content = PathFile, 0o600, "content1"
		case schema.GrantFile:
			f.Kind, f.Content = PathFile, "content1"
		default:
			continue
		}
		facts[g.Source] = f
	}
	return facts
}

// happen carries out one line of world.txt.
func happen(m *model, o *Options, words []string) error {
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	name, value := arg(1), arg(2)
	switch words[0] {
	case "destroy":
		o.Destroy = true
	case "volumes":
		o.RemoveVolumes = true
	case "target":
		o.Targets = append(o.Targets, words[1:]...)
	case "exclude":
		o.Excludes = append(o.Excludes, words[1:]...)
	case "replace":
		o.Replace = append(o.Replace, words[1:]...)
	case "allow-destroy":
		o.AllowDestroy = append(o.AllowDestroy, words[1:]...)
	case "remembered":
		o.Guards = append(o.Guards, Guard{Address: name, Origin: schema.Origin{File: "main.hcl", Line: 7}})
	case "unenforced":
		m.actual.Engine.Unenforced = words[1:]
	case "lacks":
		m.actual.Engine.Lacks = words[1:]
	case "reaches-host":
		m.actual.Engine.Rootless, m.actual.Engine.InternalReachesHost = false, true
	case "no-key":
		m.host.Digest = nil
	case "other-key":
		m.host.Digest = fakeDigester("k2")
	case "unchecked":
		m.host = HostFacts{}
	case "offline":
		m.actual = Actual{Engine: Engine{Name: "no engine", Offline: true}}
	case "taken":
		m.actual.Taken.Containers = map[string]string{name: "a container nobody labelled"}
	case "input":
		m.host.Inputs = map[string]ImageInput{name: {Digest: value, Bases: words[3:]}}
	case "unmakeable":
		m.host.Inputs = map[string]ImageInput{name: {Problem: "it isn't there", Fix: "Make it."}}
	case "content":
		f := m.host.Paths[name]
		f.Content = value
		m.host.Paths[name] = f
	case "unreadable":
		f := m.host.Paths[name]
		f.Content, f.Err = "", "its content can't be read: permission denied"
		m.host.Paths[name] = f
	case "missing":
		f := m.host.Paths[name]
		f.Exists = false
		m.host.Paths[name] = f
	case "image":
		facts := m.actual.Images[name]
		facts.ID = value
		m.actual.Images[name] = facts
	case "stranger":
		m.network(name).Members = append(m.network(name).Members, Member{value, false, true})
	case "twin-network":
		twin := *m.network(name)
		twin.Members = nil
		m.actual.Networks = append(m.actual.Networks, twin)
	case "taken-network":
		m.actual.Taken.Networks = map[string]string{name: "a network nobody labelled"}
	case "not-internal":
		m.network(name).Internal = false
	case "volume-device":
		m.actual.Volumes[0].Options = map[string]string{"device": value, "o": "bind"}
	default:
		return happenToContainer(m, words[0], name, value, arg)
	}
	return nil
}

func happenToContainer(m *model, verb, name, value string, arg func(int) string) error {
	c := m.container(name)
	if c == nil {
		return fmt.Errorf("no container %q, or no such verb", name)
	}
	field, v, _ := strings.Cut(value, "=")
	switch verb {
	case "env":
		c.Env = maps.Clone(c.Env)
		c.Env[field] = EnvValue{Value: v}
	case "excess":
		c.Excess = append(c.Excess, Field{Path: field, Value: v})
	case "filled":
		c.Excess = append(c.Excess, Field{Path: field, Value: v, EngineFilled: true})
	case "label":
		c.Labels = maps.Clone(c.Labels)
		c.Labels[field] = v
	case "user":
		c.User = value
	case "state":
		c.State, c.ExitCode = State(value), 1
	case "remove":
		m.remove(name)
	case "detach":
		m.disconnect(name, value)
	case "shared":
		c.SharedBy = append(c.SharedBy, Member{Name: value, Running: arg(3) != "stopped"})
	case "lost":
		c.Networks = maps.Clone(c.Networks)
		e := c.Networks[value]
		e.Excess = []Field{{Path: NoEndpoint, Value: "none: it is configured and not there"}}
		c.Networks[value] = e
	case "attach":
		c.Networks = maps.Clone(c.Networks)
		c.Networks[value] = Endpoint{}
	case "mount":
		c.Mounts = maps.Clone(c.Mounts)
		c.Mounts[value] = Mount{Type: "bind", Source: arg(3), Writable: true}
	case "memory":
		c.Memory *= 2
	case "stale":
		c.Stale = append(c.Stale, value)
	case "twin":
		twin := *c
		twin.Name, twin.ID, twin.Networks = value, "idtwin", nil
		m.actual.Containers = append(m.actual.Containers, twin)
	case "probe":
		probe := ObservedContainer{State: State(value), ID: "idprobe"}
		probe.Container = Proof{Container: c.Container, ID: c.ID, Labels: probeLabels(c.Labels)}.Probe("spaces-probe:1")
		m.actual.Containers = append(m.actual.Containers, probe)
	case "rename":
		c.Name, c.State = value, StateExited
	default:
		return fmt.Errorf("no such verb %q", verb)
	}
	return nil
}

func setPart(a *txtar.Archive, name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(data)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(data)})
}
