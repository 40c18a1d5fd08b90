//go:build engine

package testscripts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"spaces/reconcile"
)

// snapshot is all that was asked of everything of a project, in the engine's own words
// and by name, less what differs each time a thing is made (ids, times, addresses that
// the engine chose). It owes nothing to the code under test: two equal ones are the
// proof that a repair is complete.
type snapshot map[string]string

func (p *project) snapshot(t testing.TB) snapshot {
	t.Helper()
	s := snapshot{}
	networks, err := p.docker.NetworkList(t.Context(), network.ListOptions{})
	must(t, err)
	ids := map[string]string{}
	for _, n := range networks {
		ids[n.Name] = n.ID
		if strings.HasPrefix(n.Name, p.name+"-") {
			n.ID, n.Containers, n.Created = "", nil, time.Time{}
			s["network "+n.Name] = spell(t, n)
		}
	}
	// By name and by label: a thing under another name is here as well.
	containers, err := p.docker.ContainerList(t.Context(), container.ListOptions{All: true})
	must(t, err)
	for _, c := range containers {
		if strings.HasPrefix(c.Names[0], "/"+p.name+"-") || c.Labels[reconcile.LabelProject] == p.name {
			name := strings.TrimPrefix(c.Names[0], "/")
			s["container "+name] = spell(t, lasting(p.inspect(t, c.ID), ids))
		}
	}
	volumes, err := p.docker.VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", p.name+"-"))})
	must(t, err)
	for _, v := range volumes.Volumes {
		v.CreatedAt = ""
		s["volume "+v.Name] = spell(t, v)
	}
	return s
}

// lasting is the part of a container that is the same for each that is made alike.
func lasting(in container.InspectResponse, networks map[string]string) any {
	short := in.ID[:12]
	config := *in.Config
	if config.Hostname == short {
		config.Hostname = "(its id)"
	}
	labels := map[string]string{}
	for name, value := range config.Labels {
		if name != reconcile.LabelReplaces {
			labels[name] = value
		}
	}
	config.Labels = labels
	slices.Sort(config.Env)
	type endpoint struct {
		IPAM, Options any
		Links         []string
		Aliases       []string
		Known         bool
	}
	endpoints := map[string]endpoint{}
	for name, e := range in.NetworkSettings.Networks {
		aliases := slices.DeleteFunc(slices.Sorted(slices.Values(e.Aliases)), func(a string) bool { return a == short })
		// An empty list of settings and none are one.
		var ipam any
		if c := e.IPAMConfig; c != nil && (c.IPv4Address != "" || c.IPv6Address != "" || len(c.LinkLocalIPs) > 0) {
			ipam = c
		}
		endpoints[name] = endpoint{
			IPAM: ipam, Options: e.DriverOpts, Links: e.Links, Aliases: slices.Compact(aliases),
			Known: networks[name] == e.NetworkID,
		}
	}
	host := *in.HostConfig
	for _, list := range []*[]string{&host.DNS, &host.DNSOptions, &host.DNSSearch} {
		*list = slices.Concat([]string{}, *list) // an engine that was restarted has no nulls
	}
	mounts := slices.Clone(in.Mounts)
	slices.SortFunc(mounts, func(a, b container.MountPoint) int { return strings.Compare(a.Destination, b.Destination) })
	return map[string]any{
		"Name": in.Name, "Image": in.Image, "State": in.State.Status,
		"Config": config, "HostConfig": host, "Mounts": mounts, "Endpoints": endpoints,
	}
}

func spell(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(b)
}

// differs lists the lines in which another snapshot isn't this one.
func (s snapshot) differs(other snapshot) []string {
	var out []string
	for _, name := range sortedKeys(s) {
		if _, ok := other[name]; !ok {
			out = append(out, name+" is gone")
			continue
		}
		was, is := strings.Split(s[name], "\n"), strings.Split(other[name], "\n")
		for _, line := range was {
			if !slices.Contains(is, line) {
				out = append(out, fmt.Sprintf("%s: - %s", name, line))
			}
		}
		for _, line := range is {
			if !slices.Contains(was, line) {
				out = append(out, fmt.Sprintf("%s: + %s", name, line))
			}
		}
	}
	for _, name := range sortedKeys(other) {
		if _, ok := s[name]; !ok {
			out = append(out, name+" is new")
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
