package places

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

func TestUnknownFields(t *testing.T) {
	found := func(path, value string) reconcile.Field {
		return reconcile.Field{Path: path, Value: value, EngineFilled: true}
	}
	for raw, want := range map[string][]reconcile.Field{
		`{}`:                      nil,
		`{"New":{"Thing":true}}`:  nil, // outside of what is asked for
		`{"HostConfig":null}`:     nil,
		`{"HostConfig":{"A":1}}`:  {found("HostConfig.A", "1")},
		`{"Config":{"A": [ 1 ]}}`: {found("Config.A", "[1]")},
		`{"HostConfig":{"A":0,"B":"","C":null,"D":[],"E":{},"F":false}}`: nil,
		`{"HostConfig":{"memory":1,"CPUSHARES":2}}`:                      nil, // as encoding/json matches them
		`{"HostConfig":{"Mounts":[{"Type":"bind"},{"New":"x","BindOptions":{"N":true}}]}}`: {
			found("HostConfig.Mounts[1].New", `"x"`), found("HostConfig.Mounts[1].BindOptions.N", "true"),
		},
		`{"HostConfig":{"PortBindings":{"80/tcp":[{"HostIp":"","New":1}]}}}`:            {found(`HostConfig.PortBindings["80/tcp"][0].New`, "1")},
		`{"HostConfig":{"Sysctls":{"any":"key"},"LogConfig":{"Config":{"any":"key"}}}}`: nil,
		`{ "Config" : { "Env" : [ "A=\"]}" , "\\" ] , "Ne\u0077" : { "a" : "}" } } }`:   {found("Config.New", `{"a":"}"}`)},
	} {
		if got := unknownFields([]byte(raw), containerShape()); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", raw, got, want)
		}
	}
}

// Whatever decodes can be walked, and what the structs themselves say is known.
func FuzzUnknownFields(f *testing.F) {
	known, err := json.Marshal(container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{Init: new(true)}},
		Config:            &container.Config{Env: []string{`A="\`}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(known)
	f.Add([]byte(`{"HostConfig":{"A":[{}],"B":"\""}} `))
	s := containerShape()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		for _, field := range unknownFields(raw, s) {
			if !json.Valid([]byte(field.Value)) {
				t.Errorf("%s: %v is no value", raw, field)
			}
		}
		var in container.InspectResponse
		if json.Unmarshal(raw, &in) != nil {
			return
		}
		again, err := json.Marshal(in)
		if err != nil {
			return
		}
		if got := unknownFields(again, s); len(got) > 0 {
			t.Errorf("known fields taken for unknown: %v", got)
		}
	})
}
