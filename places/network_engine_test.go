//go:build engine

package places

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
)

func TestRootlessPhantom(t *testing.T) { testPhantom(t, newWorkbench(t, rootlessLab(t))) }
func TestRootfulPhantom(t *testing.T)  { testPhantom(t, newWorkbench(t, rootfulLab(t))) }

// testPhantom lets the engine fail to put a running container on a network, after which
// its configuration says that it is there. It is told as a difference, and a disconnect
// and a connect put it there.
func testPhantom(t *testing.T, w *workbench) {
	ctx := t.Context()
	n := reconcile.Network{
		Name: w.name("narrow"), Driver: "bridge", Internal: true, Subnet: "10.231.9.0/24",
		Labels: w.labels(reconcile.KindNetwork), Options: map[string]string{},
	}
	w.do(t, w.applier(), reconcile.CreateNetwork{Network: n})
	other := w.network(t, "wide")
	holder := w.asked("holder", n.Name)
	holder.Networks[n.Name] = reconcile.Endpoint{Address: "10.231.9.5"}
	w.space(t, holder)
	c := w.asked("phantom", other)
	id := w.space(t, c)
	lose := func(name string) {
		t.Helper()
		err := w.docker.NetworkConnect(ctx, n.Name, name, endpointSettings(reconcile.Endpoint{Address: "10.231.9.5"}))
		if err == nil {
			t.Fatal("two containers have one address")
		}
		if e := w.get(t, name).NetworkSettings.Networks[n.Name]; e == nil || e.EndpointID != "" {
			t.Skipf("this engine leaves %+v, and so nothing to tell", e)
		}
	}
	path := `network["` + n.Name + `"].EndpointID`
	told := func() bool {
		t.Helper()
		for _, got := range w.lab.inspect().Containers {
			if got.Name == c.Name {
				return slices.ContainsFunc(got.Fields(), func(f reconcile.Field) bool { return f.Path == path })
			}
		}
		t.Fatal("it isn't there")
		return false
	}
	lose(c.Name)
	if !told() {
		t.Error("a place that isn't there is no difference")
	}
	a := w.applier()
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: n.Name})
	w.do(t, a, reconcile.ConnectSpace{Name: c.Name, Network: n.Name, Endpoint: reconcile.Endpoint{Address: "10.231.9.6", Aliases: []string{"nick"}}})
	got := w.get(t, c.Name).NetworkSettings.Networks[n.Name]
	if got == nil || got.EndpointID == "" || got.IPAddress != "10.231.9.6" || !slices.Contains(got.Aliases, "nick") || told() {
		t.Errorf("endpoint %+v", got)
	}
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: n.Name})
	if live := w.get(t, c.Name); live.isOn(n.Name) || live.ID != id {
		t.Error("it is still there")
	}

	// A stranger that isn't there isn't a member.
	w.stranger(t, w.name("lost"), &container.HostConfig{})
	lose(w.name("lost"))
	for _, seen := range w.lab.inspect().Networks {
		if slices.ContainsFunc(seen.Members, func(m reconcile.Member) bool { return !m.Ours }) {
			t.Errorf("members %v", seen.Members)
		}
	}
	w.drop(t, c.Name, holder.Name, w.name("lost"))
}

func TestRootlessSharedNamespace(t *testing.T) {
	testSharedNamespace(t, newWorkbench(t, rootlessLab(t)))
}

func TestRootfulSharedNamespace(t *testing.T) { testSharedNamespace(t, newWorkbench(t, rootfulLab(t))) }

// testSharedNamespace lets strangers live in a container's network, one by way of
// another, and looks that both are told and gone once it is replaced.
func testSharedNamespace(t *testing.T, w *workbench) {
	n := w.network(t, "shared")
	c := w.asked("host", n)
	w.space(t, c)
	w.stranger(t, w.name("lodger"), &container.HostConfig{NetworkMode: container.NetworkMode("container:" + c.Name)})
	w.stranger(t, w.name("guest"), &container.HostConfig{NetworkMode: container.NetworkMode("container:" + w.name("lodger"))})
	w.stranger(t, w.name("apart"), &container.HostConfig{})
	sharing := func() []reconcile.Member {
		a := w.lab.inspect()
		if len(a.Containers) != 1 {
			t.Fatalf("%d containers", len(a.Containers))
		}
		return a.Containers[0].SharedBy
	}
	want := []reconcile.Member{{Name: w.name("guest"), Running: true}, {Name: w.name("lodger"), Running: true}}
	if got := sharing(); !slices.Equal(got, want) {
		t.Errorf("shared by %v", got)
	}
	w.do(t, w.applier(), reconcile.ReplaceSpace{Container: c})
	if got := sharing(); len(got) != 0 {
		t.Errorf("still shared by %v", got)
	}
	w.drop(t, w.name("guest"), w.name("lodger"), w.name("apart"), c.Name)
}

func TestRootlessTwinNetworks(t *testing.T) { testTwinNetworks(t, newWorkbench(t, rootlessLab(t))) }
func TestRootfulTwinNetworks(t *testing.T)  { testTwinNetworks(t, newWorkbench(t, rootfulLab(t))) }

// testTwinNetworks makes second networks of a name, a stranger's and one with our
// labels, and looks that ours alone is acted on, and can be removed.
func testTwinNetworks(t *testing.T, w *workbench) {
	ctx := t.Context()
	t.Run("a stranger's", func(t *testing.T) {
		n := w.network(t, "double")
		ours := w.id(t, n)
		c := w.asked("double", n)
		w.space(t, c)
		before := w.applier()
		theirs := w.twin(t, n, nil)
		a := w.lab.inspect()
		if len(a.Networks) != 1 || a.Taken.Networks[n] == "" || len(a.Networks[0].Members) != 1 {
			t.Errorf("networks %v, taken %v", a.Networks, a.Taken.Networks)
		}
		late := w.asked("late", n)
		fails[*MovedError](t, before, reconcile.CreateSpace{Container: late})
		if w.look(t, late.Name) != nil {
			t.Error("it was made")
		}

		// Moved to the other one, its name is the same.
		must(t, w.docker.NetworkDisconnect(ctx, ours, c.Name, false))
		must(t, w.docker.NetworkConnect(ctx, theirs, c.Name, endpointSettings(c.Networks[n])))
		seen := w.lab.inspect().Containers[0]
		if differ := differing(c, seen.Container); !slices.Contains(differ, `network["`+n+`"].NetworkID`) {
			t.Errorf("on a stranger's network of the same name, it differs in %v", differ)
		}
		w.do(t, w.applier(), reconcile.DisconnectSpace{Name: c.Name, Network: n})
		must(t, w.docker.NetworkConnect(ctx, ours, c.Name, nil))
		w.do(t, w.applier(), reconcile.DisconnectSpace{Name: c.Name, Network: n})
		w.do(t, w.applier(), reconcile.RemoveNetwork{Name: n})
		if left := w.named(t, n); !slices.Equal(left, []string{theirs}) {
			t.Errorf("left are %v", left)
		}
		fails[*reconcile.Refusal](t, w.applier(), reconcile.CreateNetwork{Network: reconcile.Network{Name: n}})
		w.drop(t, c.Name)
	})
	t.Run("one with our labels", func(t *testing.T) {
		n := w.network(t, "again")
		w.twin(t, n, w.labels(reconcile.KindNetwork))
		first := w.lab.inspect()
		if len(first.Networks) != 2 {
			t.Errorf("%d networks", len(first.Networks))
		}
		fails[*MovedError](t, w.applier(), reconcile.CreateSpace{Container: w.asked("nowhere", n)})
		a := w.applier()
		third := w.twin(t, n, w.labels(reconcile.KindNetwork))
		fails[*MovedError](t, a, reconcile.RemoveNetwork{Name: n})
		must(t, w.docker.NetworkRemove(ctx, third))
		w.do(t, a, reconcile.RemoveNetwork{Name: n})
		w.do(t, a, reconcile.RemoveNetwork{Name: n})
		if left := w.named(t, n); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// twin makes a network under a name that is in use, which the client would not ask for.
func (w *workbench) twin(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	body, err := json.Marshal(network.CreateRequest{Name: name, CreateOptions: network.CreateOptions{Labels: labels}})
	must(t, err)
	through := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(w.endpoint, scheme))
	}}}
	answer, err := through.Post("http://engine/v1.41/networks/create", "application/json", bytes.NewReader(body))
	must(t, err)
	defer answer.Body.Close() //nolint:errcheck // only read
	var made network.CreateResponse
	must(t, json.NewDecoder(answer.Body).Decode(&made))
	if made.ID == "" {
		t.Skipf("this engine makes no second network of a name: %s", answer.Status)
	}
	return made.ID
}

// named are the ids of all networks of a name.
func (w *workbench) named(t *testing.T, name string) []string {
	t.Helper()
	all, err := w.docker.NetworkList(t.Context(), network.ListOptions{})
	must(t, err)
	var ids []string
	for _, n := range all {
		if n.Name == name {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func (w *workbench) id(t *testing.T, name string) string {
	t.Helper()
	ids := w.named(t, name)
	if len(ids) != 1 {
		t.Fatalf("%d networks are called %s", len(ids), name)
	}
	return ids[0]
}
