package places

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"spaces/reconcile"
)

// fakeWorld is an engine with containers, of which some vanish after they were listed.
type fakeWorld struct {
	fakeEngine
	mu         sync.Mutex
	containers []container.InspectResponse
	vanishing  map[string]bool // by id, gone once asked for
	lists      int
}

func newWorld(n int) *fakeWorld {
	w := &fakeWorld{fakeEngine: docker("28.5.2", "1.51", "name=rootless"), vanishing: map[string]bool{}}
	for i := range n {
		c := reconcile.Container{
			Name: fmt.Sprint("p-", i), ImageID: "sha256:abc",
			Labels:   map[string]string{reconcile.LabelProject: "p", reconcile.LabelStore: "/s"},
			Networks: map[string]reconcile.Endpoint{"p-net": {Aliases: []string{"b", "a"}}},
		}
		config, host, err := createConfig(c)
		if err != nil {
			panic(err)
		}
		in := echo(config, host, c, defaults{cgroupns: "host"})
		in.ID = fmt.Sprintf("%064x", i+1)
		in.Config.Hostname = in.ID[:shortIDLength]
		in.NetworkSettings.Networks["p-net"] = &network.EndpointSettings{NetworkID: "net-id", Aliases: []string{"b", shortID(in.ID), "a"}}
		w.containers = append(w.containers, in)
	}
	return w
}

func (w *fakeWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	answer := func(v any) { _ = json.NewEncoder(out).Encode(v) }
	switch {
	case path == "containers/json":
		w.lists++
		list := []container.Summary{}
		for _, c := range w.containers {
			list = append(list, container.Summary{
				ID: c.ID, Names: []string{c.Name}, Labels: c.Config.Labels, ImageID: c.Image, State: "exited",
				NetworkSettings: &container.NetworkSettingsSummary{Networks: c.NetworkSettings.Networks},
			})
		}
		answer(list)
	case path == "networks":
		answer([]network.Inspect{{ID: "net-id", Name: "p-net", Scope: "local", EnableIPv4: true}})
	case path == "volumes":
		answer(volume.ListResponse{})
	case strings.HasPrefix(path, "containers/"):
		id := strings.Split(path, "/")[1]
		for i, c := range w.containers {
			switch {
			case c.ID != id:
			case w.vanishing[id]:
				w.containers = slices.Delete(w.containers, i, i+1)
				out.WriteHeader(http.StatusNotFound)
				answer(map[string]string{"message": "No such container: " + id})
				return
			default:
				answer(c)
				return
			}
		}
		out.WriteHeader(http.StatusNotFound)
		answer(map[string]string{"message": "No such thing"})
	default:
		w.fakeEngine.ServeHTTP(out, r)
	}
}

func (w *fakeWorld) look(t *testing.T) (reconcile.Actual, error) {
	t.Helper()
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, err := e.Observer().Inspect(t.Context(), Query{Project: "p", Store: "/s", Images: []string{"none:1"}})
	a.Engine.Endpoint = "" // each look has a socket of its own
	return a, err
}

func TestInspectInAnyOrder(t *testing.T) {
	w := newWorld(20)
	first, err := w.look(t)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(w.containers)
	second, err := w.look(t)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("the order of the engine's answers shows")
	}
	if len(first.Containers) != 20 || w.lists != 2 {
		t.Errorf("saw %d containers in %d lists", len(first.Containers), w.lists)
	}
	if len(first.Images) != 0 {
		t.Errorf("made up images: %v", first.Images)
	}
}

func TestInspectWhileContainersVanish(t *testing.T) {
	w := newWorld(20)
	for _, c := range w.containers[5:9] {
		w.vanishing[c.ID] = true
	}
	a, err := w.look(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Containers) != 16 || w.lists != 2 {
		t.Errorf("saw %d containers in %d lists", len(a.Containers), w.lists)
	}
	// All that is left is gone by the second look too.
	for _, c := range w.containers {
		w.vanishing[c.ID] = true
	}
	if a, err = w.look(t); err != nil || len(a.Containers) != 0 {
		t.Errorf("saw %d containers, %v", len(a.Containers), err)
	}
}

func TestInspectFailsWhole(t *testing.T) {
	w := newWorld(3)
	w.containers[1].HostConfig = nil
	if _, err := w.look(t); err == nil || IsTransient(err) || !strings.HasPrefix(err.Error(), "cannot inspect the engine at unix:///") {
		t.Errorf("half a container: %v", err)
	}
	w = newWorld(3)
	for path, answer := range map[string]string{"containers/json": "[{", "networks": "<html>", "volumes": `{"Volumes":{}}`} {
		broken := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, path) {
				fmt.Fprint(out, answer)
				return
			}
			w.ServeHTTP(out, r)
		})
		e, err := Open(t.Context(), serve(t, broken), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Observer().Inspect(t.Context(), Query{Project: "p", Store: "/s"}); err == nil {
			t.Errorf("%s: nothing said", path)
		}
	}
}

func TestRevision(t *testing.T) {
	in := newWorld(1).containers[0]
	first := revisionOf(in)
	for name, change := range map[string]func(*container.InspectResponse){
		"env":     func(c *container.InspectResponse) { c.Config.Env = append(c.Config.Env, "A=1") },
		"host":    func(c *container.InspectResponse) { c.HostConfig.Privileged = true },
		"alias":   func(c *container.InspectResponse) { c.NetworkSettings.Networks["p-net"].Aliases = nil },
		"state":   func(c *container.InspectResponse) { c.State.Status = "running" },
		"mounts":  func(c *container.InspectResponse) { c.Mounts = []container.MountPoint{{Destination: "/x"}} },
		"name":    func(c *container.InspectResponse) { c.Name = "/other" },
		"image":   func(c *container.InspectResponse) { c.Image = "sha256:def" },
		"network": func(c *container.InspectResponse) { delete(c.NetworkSettings.Networks, "p-net") },
	} {
		c := newWorld(1).containers[0]
		change(&c)
		if revisionOf(c) == first {
			t.Errorf("%s changes nothing", name)
		}
	}
	for name, change := range map[string]func(*container.InspectResponse){
		"nothing":     func(*container.InspectResponse) {},
		"health":      func(c *container.InspectResponse) { c.State.Health = &container.Health{Status: "unhealthy"} },
		"address":     func(c *container.InspectResponse) { c.NetworkSettings.Networks["p-net"].IPAddress = "10.0.0.1" },
		"restarts":    func(c *container.InspectResponse) { c.RestartCount++ },
		"short alias": func(c *container.InspectResponse) { c.NetworkSettings.Networks["p-net"].Aliases = []string{"a", "b"} },
	} {
		c := newWorld(1).containers[0]
		change(&c)
		if revisionOf(c) != first {
			t.Errorf("%s changes it", name)
		}
	}
	restarting, running := newWorld(1).containers[0], newWorld(1).containers[0]
	restarting.State.Status, running.State.Status = "restarting", "running"
	if revisionOf(restarting) != revisionOf(running) {
		t.Error("a crash loop has no steady revision")
	}
}
