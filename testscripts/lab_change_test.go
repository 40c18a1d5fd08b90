//go:build engine

package testscripts

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
)

// spec is what a container is created from: the engine's own account of one that is
// there, with something changed.
type spec struct {
	Config    *container.Config
	Host      *container.HostConfig
	Endpoints map[string]*network.EndpointSettings
}

// mount is the mount at a target.
func (s *spec) mount(target string) *mount.Mount {
	for i := range s.Host.Mounts {
		if s.Host.Mounts[i].Target == target {
			return &s.Host.Mounts[i]
		}
	}
	panic("nothing is mounted at " + target)
}

func (s *spec) unmount(target string) {
	s.Host.Mounts = slices.DeleteFunc(s.Host.Mounts, func(m mount.Mount) bool { return m.Target == target })
}

// specOf is what would make a container once more.
func specOf(in container.InspectResponse) spec {
	config := *in.Config
	if config.Hostname == in.ID[:12] {
		config.Hostname = ""
	}
	s := spec{Config: &config, Host: in.HostConfig, Endpoints: map[string]*network.EndpointSettings{}}
	for name, e := range in.NetworkSettings.Networks {
		s.Endpoints[name] = askedOf(in, e)
	}
	return s
}

// askedOf is what was asked of an endpoint, without what came of it.
func askedOf(in container.InspectResponse, e *network.EndpointSettings) *network.EndpointSettings {
	asked := &network.EndpointSettings{
		Links: e.Links, DriverOpts: e.DriverOpts,
		Aliases: slices.DeleteFunc(slices.Clone(e.Aliases), func(a string) bool { return a == in.ID[:12] }),
	}
	if e.IPAMConfig != nil {
		ipam := *e.IPAMConfig
		asked.IPAMConfig = &ipam
	}
	return asked
}

// create makes a container, and starts it unless this machine can't.
func (l *lab) create(t testing.TB, name string, s spec, start bool) {
	t.Helper()
	first := string(s.Host.NetworkMode)
	var networking *network.NetworkingConfig
	if e, ok := s.Endpoints[first]; ok {
		networking = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{first: e}}
	}
	made, err := l.docker.ContainerCreate(t.Context(), s.Config, s.Host, networking, nil, name)
	must(t, err)
	for _, other := range slices.Sorted(maps.Keys(s.Endpoints)) {
		if other != first && networking != nil {
			must(t, l.docker.NetworkConnect(t.Context(), other, made.ID, s.Endpoints[other]))
		}
	}
	if start {
		must(t, l.docker.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	}
}

// The leaves of what the API takes are named as Go has them, from the struct that holds
// them: "HostConfig.Mounts[].BindOptions.Propagation".

// changedLeaves are the leaves in which two specs differ.
func changedLeaves(before, after spec) []string {
	var out []string
	compare(&out, "Config", reflect.ValueOf(*before.Config), reflect.ValueOf(*after.Config))
	compare(&out, "HostConfig", reflect.ValueOf(*before.Host), reflect.ValueOf(*after.Host))
	for name, e := range after.Endpoints {
		was := before.Endpoints[name]
		if was == nil {
			was = &network.EndpointSettings{}
		}
		compare(&out, "EndpointSettings", reflect.ValueOf(*was), reflect.ValueOf(*e))
	}
	return out
}

func networkLeaves(before, after network.CreateOptions) []string {
	var out []string
	compare(&out, "Network", reflect.ValueOf(before), reflect.ValueOf(after))
	return out
}

func volumeLeaves(before, after volume.CreateOptions) []string {
	var out []string
	compare(&out, "Volume", reflect.ValueOf(before), reflect.ValueOf(after))
	return out
}

func updateLeaves(u container.UpdateConfig) []string {
	var out []string
	compare(&out, "HostConfig.Resources", reflect.ValueOf(container.Resources{}), reflect.ValueOf(u.Resources))
	compare(&out, "HostConfig.RestartPolicy", reflect.ValueOf(container.RestartPolicy{}), reflect.ValueOf(u.RestartPolicy))
	return out
}

// compare goes down structs, through pointers, and into slices of structs of the API's
// that are worth it; anything else is a leaf.
func compare(out *[]string, path string, before, after reflect.Value) {
	switch kindOf(before.Type()) {
	case leafStruct:
		for i := range before.NumField() {
			compare(out, path+"."+before.Type().Field(i).Name, before.Field(i), after.Field(i))
		}
	case leafPointer:
		if after.IsNil() {
			after = reflect.New(after.Type().Elem())
		}
		if before.IsNil() {
			before = reflect.New(before.Type().Elem())
		}
		compare(out, path, before.Elem(), after.Elem())
	case leafSlice:
		for i := range after.Len() {
			was := reflect.Zero(after.Type().Elem())
			if i < before.Len() {
				was = before.Index(i)
			}
			compare(out, path+"[]", was, after.Index(i))
		}
	default:
		if !reflect.DeepEqual(before.Interface(), after.Interface()) {
			*out = append(*out, path)
		}
	}
}

// leaves are all leaves of a struct.
func leaves(path string, t reflect.Type) []string {
	switch kindOf(t) {
	case leafStruct:
		var out []string
		for i := range t.NumField() {
			out = append(out, leaves(path+"."+t.Field(i).Name, t.Field(i).Type)...)
		}
		return out
	case leafPointer:
		return leaves(path, t.Elem())
	case leafSlice:
		return leaves(path+"[]", t.Elem())
	}
	return []string{path}
}

type leafKind int

const (
	leaf leafKind = iota
	leafStruct
	leafPointer // to a struct
	leafSlice   // of structs
)

func kindOf(t reflect.Type) leafKind {
	switch {
	case t.Kind() == reflect.Struct:
		return leafStruct
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		return leafPointer
	case t == reflect.TypeFor[[]mount.Mount](), t == reflect.TypeFor[[]network.IPAMConfig]():
		return leafSlice
	}
	return leaf
}
