package places

import (
	"reflect"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
)

var (
	oursQuery  = Query{Project: "p", Store: "/s"}
	oursOwner  = owners{"p", "/s"}
	oursLabels = map[string]string{reconcile.LabelProject: "p", reconcile.LabelStore: "/s"}
)

func TestWhoSharesANamespaceOfOurs(t *testing.T) {
	l := listing{containers: []listed{
		{id: "1", name: "p-web", owner: oursOwner, running: true},
		{id: "2", name: "p-db", owner: oursOwner},
		{id: "3", name: "z", shares: "1", running: true},
		{id: "4", name: "by-name", shares: "p-web"},
		{id: "5", name: "by-way-of-z", shares: "3", running: true},
		{id: "6", name: "of-nobody", shares: "gone"},
		{id: "7", name: "round", shares: "8"},
		{id: "8", name: "and-round", shares: "7"},
		{id: "9", name: "p-sidecar", owner: oursOwner, shares: "1"},
		{id: "10", name: "alone"},
	}}
	want := map[string][]reconcile.Member{"1": {
		{Name: "by-name"}, {Name: "by-way-of-z", Running: true}, {Name: "z", Running: true},
	}}
	if got := l.sharers(oursQuery); !reflect.DeepEqual(got, want) {
		t.Errorf("shared: %v", got)
	}
}

func TestListedContainer(t *testing.T) {
	s := summary{ID: "1", Names: []string{"/a/b", "/web"}, State: "running"}
	s.HostConfig.NetworkMode = "container:2"
	s.NetworkSettings = &struct {
		Networks map[string]*struct{ NetworkID, EndpointID string }
	}{map[string]*struct{ NetworkID, EndpointID string }{"n": {"n-id", "e"}, "lost": {}}}
	c := s.listed()
	if c.shares != "2" || c.name != "web" {
		t.Errorf("listed %+v", c)
	}
	for _, p := range c.places {
		if p.there != (p.network == "n-id") {
			t.Errorf("place %+v", p)
		}
	}
	// Before it starts, nothing is there yet and all of it will be.
	s.State = "created"
	if c := s.listed(); len(c.places) != 2 || slices.ContainsFunc(c.places, func(p place) bool { return !p.there }) {
		t.Errorf("listed %+v", c)
	}
}

func TestMembersOfNetworksOfOneName(t *testing.T) {
	on := func(name string, owner owners, network string, there bool) listed {
		return listed{id: name, name: name, owner: owner, running: true, places: []place{{network, there}}}
	}
	l := listing{
		networks: []network.Inspect{
			{ID: "ours", Name: "p-net", Labels: oursLabels}, {ID: "theirs", Name: "p-net"}, {ID: "alone", Name: "p-alone", Labels: oursLabels},
		},
		containers: []listed{
			on("a", oursOwner, "ours", true), on("b", owners{}, "theirs", true), on("c", owners{}, "p-net", true),
			on("d", owners{}, "p-alone", true), on("e", owners{}, "alone", false), on("f", oursOwner, "p-alone", false),
		},
	}
	taken, members := l.others(oursQuery)
	if taken.Networks["p-net"] == "" {
		t.Errorf("taken %v", taken.Networks)
	}
	want := map[string][]reconcile.Member{
		"ours":  {{Name: "a", Ours: true, Running: true}},
		"alone": {{Name: "d", Running: true}, {Name: "f", Ours: true, Running: true}},
	}
	if !reflect.DeepEqual(members, want) {
		t.Errorf("members %v", members)
	}
}

// A running container whose place on a network has no endpoint isn't on it, whatever
// its configuration says.
func TestPlacesThatAreNotThere(t *testing.T) {
	in := newWorld(1).containers[0]
	in.NetworkSettings.Networks["none"] = &network.EndpointSettings{}
	k := newConverter(reconcile.Engine{}, defaults{}, world{})
	for state, there := range map[string]bool{"created": true, "exited": true, "restarting": true, "running": false, "paused": false} {
		in.State = &container.State{Status: state, Running: !there}
		for name, e := range k.container(in).Networks {
			want := 0
			if name == "p-net" && !there {
				want = 1
			}
			if len(e.Excess) != want || want == 1 && e.Excess[0].Path != reconcile.NoEndpoint {
				t.Errorf("%s on %s: excess %v", state, name, e.Excess)
			}
		}
	}
	in.NetworkSettings.Networks["p-net"].EndpointID = "e"
	if e := k.container(in).Networks["p-net"]; len(e.Excess) != 0 {
		t.Errorf("excess %v", e.Excess)
	}
}

func TestPlaceOnAnotherNetworkOfTheName(t *testing.T) {
	in := newWorld(1).containers[0]
	excess := func(networks ...network.Inspect) []reconcile.Field {
		w := listing{networks: networks}.world(oursQuery)
		return newConverter(reconcile.Engine{}, defaults{}, w).container(in).Networks["p-net"].Excess
	}
	ours := network.Inspect{ID: "ours", Name: "p-net", Labels: oursLabels}
	if e := excess(ours, network.Inspect{ID: "net-id", Name: "p-net"}); len(e) != 1 || e[0].Path != "NetworkID" {
		t.Errorf("on a stranger's: %v", e)
	}
	if e := excess(ours, network.Inspect{ID: "net-id", Name: "p-net", Labels: oursLabels}); len(e) != 0 {
		t.Errorf("on one of two of ours: %v", e)
	}
	if e := excess(network.Inspect{ID: "net-id", Name: "p-net"}); len(e) != 0 {
		t.Errorf("where none is ours: %v", e)
	}
}
