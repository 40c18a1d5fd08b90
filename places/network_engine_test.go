//go:build engine

package places

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	subnet := w.subnet(0)
	n := reconcile.Network{
		Name: w.name("narrow"), Driver: "bridge", Internal: true, Subnet: subnet + "0/24",
		Labels: w.labels(reconcile.KindNetwork), Options: map[string]string{},
	}
	w.do(t, w.applier(), reconcile.CreateNetwork{Network: n})
	other := w.network(t, "wide")
	c := w.asked("phantom", other)
	id := w.space(t, c)
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
	w.lose(t, c.Name, n.Name, subnet+"5")
	if !told() {
		t.Error("a place that isn't there is no difference")
	}
	a := w.applier()
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: n.Name})
	w.do(t, a, reconcile.ConnectSpace{Name: c.Name, Network: n.Name, Endpoint: reconcile.Endpoint{Address: subnet + "6", Aliases: []string{"nick"}}})
	got := w.get(t, c.Name).NetworkSettings.Networks[n.Name]
	if got == nil || got.EndpointID == "" || got.IPAddress != subnet+"6" || !slices.Contains(got.Aliases, "nick") || told() {
		t.Errorf("endpoint %+v", got)
	}
	w.do(t, a, reconcile.DisconnectSpace{Name: c.Name, Network: n.Name})
	if live := w.get(t, c.Name); live.isOn(n.Name) || live.ID != id {
		t.Error("it is still there")
	}

	// A stranger that isn't there isn't a member.
	w.stranger(t, w.name("lost"), &container.HostConfig{})
	w.lose(t, w.name("lost"), n.Name, subnet+"5")
	for _, seen := range w.lab.inspect().Networks {
		if slices.ContainsFunc(seen.Members, func(m reconcile.Member) bool { return !m.Ours }) {
			t.Errorf("members %v", seen.Members)
		}
	}
	w.drop(t, c.Name, w.name("lost"))
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

func TestRootlessNetworksConverge(t *testing.T) {
	testNetworksConverge(t, newWorkbench(t, rootlessLab(t)))
}

func TestRootfulNetworksConverge(t *testing.T) {
	testNetworksConverge(t, newWorkbench(t, rootfulLab(t)))
}

// testNetworksConverge lets plans and applies set right what happens to networks behind
// a project's back.
func testNetworksConverge(t *testing.T, w *workbench) {
	ctx := t.Context()
	c := &crasher{workbench: w, project: w.project + "x"}
	cfg := c.config("1")
	cfg.Networks[0].Subnet = w.subnet(1) + "0/24"
	cfg.Spaces[0].Networks[0].Address = w.subnet(1) + "5"
	c.converge(t, cfg)
	web, a := c.project+"-web", c.project+"-a"
	query := Query{Project: c.project, Store: c.store}

	t.Run("a lost place", func(t *testing.T) {
		w.lose(t, web, a, w.subnet(1)+"5")
		c.converge(t, cfg)
		if e := w.get(t, web).NetworkSettings.Networks[a]; e.EndpointID == "" || e.IPAddress != w.subnet(1)+"5" {
			t.Errorf("endpoint %+v", e)
		}
	})
	t.Run("a lost place on a network that is remade", func(t *testing.T) {
		w.lose(t, web, a, w.subnet(1)+"5")
		cfg.Networks[0].Subnet, cfg.Spaces[0].Networks[0].Address = w.subnet(2)+"0/24", w.subnet(2)+"5"
		c.converge(t, cfg)
		if e := w.get(t, web).NetworkSettings.Networks[a]; e.EndpointID == "" || e.IPAddress != w.subnet(2)+"5" {
			t.Errorf("endpoint %+v", e)
		}
	})
	t.Run("a lost place that nothing asks for", func(t *testing.T) {
		id := w.get(t, web).ID
		other, err := w.docker.NetworkCreate(ctx, w.name("strangers"), network.CreateOptions{
			IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: w.subnet(3) + "0/24"}}},
		})
		must(t, err)
		w.lose(t, web, w.name("strangers"), w.subnet(3)+"5")
		c.converge(t, cfg)
		if got := w.get(t, web); got.ID == id || got.isOn(w.name("strangers")) {
			t.Errorf("networks %v", got.NetworkSettings.Networks)
		}
		must(t, w.docker.NetworkRemove(ctx, other.ID))
	})
	t.Run("a stranger in its namespace", func(t *testing.T) {
		w.stranger(t, w.name("lodger"), &container.HostConfig{NetworkMode: container.NetworkMode("container:" + web)})
		if p := c.plan(t, cfg); len(p.Items) != 1 || !strings.Contains(p.String(), "shared by "+w.name("lodger")) {
			t.Errorf("the plan is %s", p)
		}
		c.converge(t, cfg)
		w.drop(t, w.name("lodger"))
	})
	t.Run("networks of one name", func(t *testing.T) {
		theirs := w.twin(t, a, nil)
		refused := func() {
			t.Helper()
			if p := c.plan(t, cfg); len(p.Refusals) != 1 || p.Refusals[0].Code != reconcile.CodeNameTaken {
				t.Errorf("the plan is %s", p)
			}
		}
		refused()
		must(t, w.docker.NetworkRemove(ctx, theirs))
		c.converge(t, cfg)
		labels := map[string]string{reconcile.LabelProject: c.project, reconcile.LabelStore: c.store}
		w.twin(t, a, labels)
		refused()
		theirs = w.twin(t, a, nil)
		c.converge(t, nil)
		if left, err := w.Observer().Inspect(ctx, query); err != nil || len(left.Networks)+len(left.Containers) != 0 {
			t.Errorf("left are %v, %v, %v", left.Networks, left.Containers, err)
		}
		if left := w.named(t, a); !slices.Equal(left, []string{theirs}) {
			t.Errorf("left of the name are %v", left)
		}
	})
	c.converge(t, nil)
}

// lose makes the engine fail to put a running container on a network, where it may be
// now: somebody else has the address that it is to have.
func (w *workbench) lose(t *testing.T, name, on, address string) {
	t.Helper()
	ctx := t.Context()
	if w.get(t, name).isOn(on) {
		must(t, w.docker.NetworkDisconnect(ctx, on, name, false))
	}
	thief := w.stranger(t, w.name("thief"), &container.HostConfig{})
	must(t, w.docker.NetworkConnect(ctx, on, thief, endpointSettings(reconcile.Endpoint{Address: address})))
	if err := w.docker.NetworkConnect(ctx, on, name, endpointSettings(reconcile.Endpoint{Address: address, Aliases: []string{"web"}})); err == nil {
		t.Fatal("two containers have one address")
	}
	w.drop(t, w.name("thief"))
	if e := w.get(t, name).NetworkSettings.Networks[on]; e == nil || e.EndpointID != "" {
		t.Skipf("this engine leaves %+v, and so nothing to tell", e)
	}
}

// subnet is the beginning of addresses that other tests are unlikely to use at the same
// time.
func (w *workbench) subnet(i int) string {
	random, err := hex.DecodeString(strings.TrimPrefix(w.project, "obs"))
	w.must(err)
	return fmt.Sprintf("10.%d.%d.", 100+int(random[0])%100, 4*(int(random[1])%64)+i)
}
