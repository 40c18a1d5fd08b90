package places

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

// lateWorld makes containers without saying so: whoever asked for one has gone before.
type lateWorld struct {
	fakeEngine
	mu      sync.Mutex
	made    *container.InspectResponse
	asked   func()            // called once a container is made
	labels  map[string]string // put on it beside those that were asked for
	removed bool
}

func (w *lateWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !strings.HasPrefix(path, "containers/") {
		w.fakeEngine.ServeHTTP(out, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case path == "containers/create":
		var config container.CreateRequest
		_ = json.NewDecoder(r.Body).Decode(&config)
		_, _ = io.Copy(io.Discard, r.Body)
		for name, value := range w.labels {
			config.Labels[name] = value
		}
		w.made = &container.InspectResponse{
			ContainerJSONBase: &container.ContainerJSONBase{
				ID: strings.Repeat("a", 64), Name: "/" + r.URL.Query().Get("name"), HostConfig: config.HostConfig, State: &container.State{Status: "created"},
			},
			Config: config.Config, NetworkSettings: &container.NetworkSettings{},
		}
		w.asked()
		<-r.Context().Done()
	case r.Method == http.MethodDelete:
		w.made, w.removed = nil, true
	case w.made == nil:
		out.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(out, `{"message": "No such container"}`)
	default:
		_ = json.NewEncoder(out).Encode(w.made)
	}
}

// A probe that was made while its verification was given up goes, and one of the same
// name that isn't ours stays.
func TestProbesThatNobodyHeardOfGo(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		goes   bool
	}{
		"ours":      {nil, true},
		"another's": {map[string]string{reconcile.LabelStore: "/other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &lateWorld{fakeEngine: docker("28.5.2", "1.51", "name=rootless"), asked: cancel, labels: c.labels}
			e, err := Open(t.Context(), serve(t, w), OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			p := &prober{Applier: e.Applier(ApplierOptions{Project: "p", Store: "/s"}), image: "sha256:1"}
			proof := reconcile.Proof{ID: "0123", Container: reconcile.Container{Name: "p-web"}, Labels: map[string]string{
				reconcile.LabelProject: "p", reconcile.LabelStore: "/s",
			}}
			if _, err := p.ask(ctx, proof, reconcile.ProbeRequest{}); err == nil {
				t.Error("a probe that was given up answers")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.made == nil != c.goes || w.removed != c.goes {
				t.Errorf("it was made: %+v, and removed: %t", w.made, w.removed)
			}
		})
	}
}
