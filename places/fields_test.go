package places

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-units"

	"spaces/reconcile"
)

// Every field of the engine's structs is in the table, and the table has no other: a
// new release of the client brings the decision what to do with its new fields.
func TestEveryFieldHasARule(t *testing.T) {
	for name, c := range map[string]struct {
		of    reflect.Type
		rules map[string]rule
	}{
		"container": {reflect.TypeFor[container.InspectResponse](), containerRules()},
		"network":   {reflect.TypeFor[network.Inspect](), networkRules()},
		"volume":    {reflect.TypeFor[volume.Volume](), volumeRules()},
	} {
		t.Run(name, func(t *testing.T) {
			have := leavesOf(c.of, "", c.rules)
			for path := range have {
				if _, ok := c.rules[path]; !ok {
					t.Errorf("%s is in no rule: compare it, or say why not", path)
				}
			}
			for path, r := range c.rules {
				if !have[path] {
					t.Errorf("there is no field %s", path)
				}
				if r.treatment != excess && r.note == "" {
					t.Errorf("%s: neither a field nor a reason", path)
				}
			}
		})
	}
}

// leavesOf are the paths of a struct's fields. A struct, or elements that are structs,
// count as one field where a rule names them as a whole.
func leavesOf(t reflect.Type, path string, rules map[string]rule) map[string]bool {
	out := map[string]bool{}
	if _, whole := rules[path]; whole {
		out[path] = true
		return out
	}
	switch t.Kind() {
	case reflect.Pointer:
		return leavesOf(t.Elem(), path, rules)
	case reflect.Slice, reflect.Map:
		if elem := deref(t.Elem()); elem.Kind() == reflect.Struct && elem.NumField() > 0 {
			return leavesOf(elem, path+"[]", rules)
		}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			break
		}
		for i := range t.NumField() {
			f := t.Field(i)
			sub := f.Name
			// A pointer that is embedded is only Go's way of sharing fields.
			if f.Anonymous && f.Type.Kind() == reflect.Pointer {
				sub = ""
			}
			for p := range leavesOf(f.Type, join(path, sub), rules) {
				out[p] = true
			}
		}
		return out
	}
	out[path] = true
	return out
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func TestExcess(t *testing.T) {
	d := defaults{cgroupns: "private", runtime: "runc", seccomp: seccompDefault}
	k := newConverter(reconcile.Engine{}, d, world{containers: map[string]string{"abc": "other"}})
	zero := int64(0)
	for name, c := range map[string]struct {
		change func(*container.InspectResponse)
		want   []reconcile.Field
	}{
		"none":          {func(*container.InspectResponse) {}, nil},
		"privileged":    {func(in *container.InspectResponse) { in.HostConfig.Privileged = true }, []reconcile.Field{{Path: "HostConfig.Privileged", Value: "true"}}},
		"pid mode":      {func(in *container.InspectResponse) { in.HostConfig.PidMode = "container:abc" }, []reconcile.Field{{Path: "HostConfig.PidMode", Value: "container:other"}}},
		"hostname":      {func(in *container.InspectResponse) { in.Config.Hostname = "h" }, []reconcile.Field{{Path: "Config.Hostname", Value: "h"}}},
		"no oom killer": {func(in *container.InspectResponse) { in.HostConfig.OomKillDisable = new(true) }, []reconcile.Field{{Path: "HostConfig.OomKillDisable", Value: "true"}}},
		"swappiness 0":  {func(in *container.InspectResponse) { in.HostConfig.MemorySwappiness = &zero }, []reconcile.Field{{Path: "HostConfig.MemorySwappiness", Value: "0"}}},
		"annotations": {func(in *container.InspectResponse) {
			in.HostConfig.Annotations = map[string]string{"b": "2", "a": "1"}
		}, []reconcile.Field{{Path: `HostConfig.Annotations["a"]`, Value: "1"}, {Path: `HostConfig.Annotations["b"]`, Value: "2"}}},
		"ulimits": {func(in *container.InspectResponse) {
			in.HostConfig.Ulimits = []*units.Ulimit{{Name: "nofile", Soft: 1, Hard: 2}}
		}, []reconcile.Field{{Path: `HostConfig.Ulimits["nofile"]`, Value: "1:2", EngineFilled: true}}},
		"a set in any order": {func(in *container.InspectResponse) {
			in.HostConfig.ExtraHosts = []string{"b:1", "a:1"}
		}, []reconcile.Field{{Path: "HostConfig.ExtraHosts", Value: `["a:1","b:1"]`}}},
		"a list in its own": {func(in *container.InspectResponse) {
			in.HostConfig.DNSSearch = []string{"b", "a"}
		}, []reconcile.Field{{Path: "HostConfig.DnsSearch", Value: `["b","a"]`}}},
		"nothing masked": {func(in *container.InspectResponse) { in.HostConfig.MaskedPaths = []string{} }, []reconcile.Field{{Path: "HostConfig.MaskedPaths", Value: "[]", EngineFilled: true}}},
		"masked as later releases do": {func(in *container.InspectResponse) {
			in.HostConfig.MaskedPaths = append(maskedPaths(), "/proc/interrupts", "/sys/devices/system/cpu/cpu0/thermal_throttle")
			slices.Reverse(in.HostConfig.MaskedPaths)
		}, nil},
		"one of the log's own keys": {func(in *container.InspectResponse) {
			in.HostConfig.LogConfig.Config = map[string]string{"max-size": "1m", "tag": "x"}
		}, []reconcile.Field{{Path: `HostConfig.LogConfig.Config["tag"]`, Value: "x", EngineFilled: true}}},
		"other security options": {func(in *container.InspectResponse) {
			in.HostConfig.SecurityOpt = []string{"label=disable", "apparmor=unconfined", "no-new-privileges"}
		}, []reconcile.Field{{Path: "HostConfig.SecurityOpt", Value: `["apparmor=unconfined","label=disable"]`}}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := reconcile.Container{Name: "p-web"}
			config, host, err := createConfig(asked)
			if err != nil {
				t.Fatal(err)
			}
			in := echo(config, host, asked, d)
			c.change(&in)
			if got := k.container(in).Excess; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSecurityOptions(t *testing.T) {
	k := newConverter(reconcile.Engine{}, defaults{seccomp: seccompDefault}, world{})
	for opt, want := range map[string]struct {
		noNew   bool
		seccomp string
	}{
		"":                         {false, "default"},
		"no-new-privileges":        {true, "default"},
		"no-new-privileges:true":   {true, "default"},
		"no-new-privileges=true":   {true, "default"},
		"no-new-privileges=false":  {false, "default"},
		"no-new-privileges:false":  {false, "default"},
		"seccomp=unconfined":       {false, "unconfined"},
		"seccomp:unconfined":       {false, "unconfined"},
		"seccomp=builtin":          {false, "default"},
		`seccomp={"a": 1}`:         {false, seccompProfile(`{"a":1}`)},
		`seccomp={ "a" : 1 }` + "": {false, seccompProfile(`{"a":1}`)},
	} {
		var c reconcile.Container
		k.securityOptions(&c, []string{opt})
		if opt == "" {
			c.Excess = nil
		}
		if c.NoNewPrivileges != want.noNew || c.Seccomp != want.seccomp || len(c.Excess) > 0 {
			t.Errorf("%q: got %v %q %v", opt, c.NoNewPrivileges, c.Seccomp, c.Excess)
		}
	}
}
