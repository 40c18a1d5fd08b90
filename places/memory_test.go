package places

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spaces/reconcile"
)

// tellingWorld is an engine that tells what it is told to tell.
type tellingWorld struct {
	*fakeWorld
	events chan string
	mu     sync.Mutex
	asked  []string
}

func newTellingWorld(n int) *tellingWorld {
	return &tellingWorld{fakeWorld: newWorld(n), events: make(chan string)}
}

func (w *tellingWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if path == "events" {
		out.WriteHeader(http.StatusOK)
		out.(http.Flusher).Flush()
		for {
			select {
			case e, more := <-w.events:
				if !more {
					return
				}
				fmt.Fprintln(out, e)
				out.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	w.mu.Lock()
	w.asked = append(w.asked, path)
	w.mu.Unlock()
	if only := r.URL.Query().Get("filters"); path == "containers/json" && only != "" {
		var filter struct{ ID []string }
		if err := json.Unmarshal([]byte(only), &filter); err != nil {
			panic(err)
		}
		w.listOnly(out, filter.ID)
		return
	}
	w.fakeWorld.ServeHTTP(out, r)
}

// listOnly answers with some of the containers.
func (w *tellingWorld) listOnly(out io.Writer, ids []string) {
	w.fakeWorld.mu.Lock()
	defer w.fakeWorld.mu.Unlock()
	list := []map[string]any{}
	for _, c := range w.containers {
		if slices.Contains(ids, c.ID) {
			list = append(list, map[string]any{"Id": c.ID, "Names": []string{c.Name}, "Labels": c.Config.Labels, "ImageID": c.Image, "State": "exited"})
		}
	}
	_ = json.NewEncoder(out).Encode(list)
}

// took is what was asked since it was last called.
func (w *tellingWorld) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

func (w *tellingWorld) remember(t *testing.T) *Memory {
	t.Helper()
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Remember(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		_ = e.Close()
	})
	return m
}

var rememberedQuery = Query{Project: "p", Store: "/s", Images: []string{"none:1"}}

func (m *Memory) must(t *testing.T) reconcile.Actual {
	t.Helper()
	a, err := m.Inspect(t.Context(), rememberedQuery)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func containerEvent(id, action string) string {
	return fmt.Sprintf(`{"Type":"container","Action":%q,"Actor":{"ID":%q}}`, action, id)
}

// tell sends an event that counts, and waits until it was heard.
func (w *tellingWorld) tell(m *Memory, e string) {
	before := m.count()
	w.events <- e
	for m.count() == before {
		time.Sleep(time.Millisecond)
	}
}

func TestMemoryReadsOnlyWhatEventsName(t *testing.T) {
	w := newTellingWorld(20)
	m := w.remember(t)
	if got := len(m.must(t).Containers); got != 20 {
		t.Fatalf("remembers %d containers", got)
	}
	w.took()
	if m.must(t); len(w.took()) > 0 {
		t.Error("with nothing told, something was asked")
	}
	id := w.containers[3].ID
	w.fakeWorld.mu.Lock()
	w.containers[3].State.ExitCode = 7
	w.fakeWorld.mu.Unlock()
	for range 50 {
		w.tell(m, containerEvent(id, "die"))
	}
	<-m.Changed()
	a := m.must(t)
	at := slices.IndexFunc(a.Containers, func(c reconcile.ObservedContainer) bool { return c.ID == id })
	if a.Containers[at].ExitCode != 7 {
		t.Error("the container that was told of is as it was")
	}
	if asked, want := w.took(), []string{"containers/json", "containers/" + id + "/json"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}

	w.fakeWorld.mu.Lock()
	w.containers = slices.Delete(w.containers, 3, 4)
	w.fakeWorld.mu.Unlock()
	w.tell(m, containerEvent(id, "destroy"))
	if got := len(m.must(t).Containers); got != 19 {
		t.Errorf("remembers %d containers, one of 20 went", got)
	}
}

// What couldn't be read is read the next time.
func TestMemoryForgetsNothingUnread(t *testing.T) {
	w := newTellingWorld(3)
	m := w.remember(t)
	m.must(t)
	whole := w.containers[1].HostConfig
	set := func(broken bool) {
		w.fakeWorld.mu.Lock()
		defer w.fakeWorld.mu.Unlock()
		if w.containers[1].HostConfig = whole; broken {
			w.containers[1].HostConfig = nil
		}
	}
	set(true)
	w.tell(m, containerEvent(w.containers[1].ID, "update"))
	if _, err := m.Inspect(t.Context(), rememberedQuery); err == nil {
		t.Fatal("half a container is none")
	}
	set(false)
	if got := len(m.must(t).Containers); got != 3 {
		t.Errorf("remembers %d containers of 3", got)
	}
}

func TestAuditFindsWhatNoEventTold(t *testing.T) {
	w := newTellingWorld(3)
	m := w.remember(t)
	m.must(t)
	if wrong, err := m.Audit(t.Context(), rememberedQuery); err != nil || len(wrong) > 0 {
		t.Fatalf("of what is right: %v, %v", wrong, err)
	}
	w.fakeWorld.mu.Lock()
	w.containers[0].State.ExitCode = 3
	w.containers[0].Config.User = "root"
	w.containers = w.containers[:2]
	w.fakeWorld.mu.Unlock()
	wrong, err := m.Audit(t.Context(), rememberedQuery)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"container p-0: remembered otherwise than it is: User, ExitCode, Revision",
		"container p-2: remembered, and not there",
	}
	if !slices.Equal(wrong, want) {
		t.Errorf("told %q, want %q", wrong, want)
	}
	<-m.Changed()
	if got := m.must(t); len(got.Containers) != 2 || got.Containers[0].ExitCode != 3 {
		t.Error("the memory was kept")
	}
}

func TestMemoryIsLostWithTheEngine(t *testing.T) {
	w := newTellingWorld(1)
	m := w.remember(t)
	m.must(t)
	close(w.events)
	<-m.Lost()
	if m.Err() == nil {
		t.Error("nothing says why")
	}
}

func TestEventsThatCount(t *testing.T) {
	for _, c := range []struct {
		kind, action, id, container string
		want                        unread
	}{
		{"container", "start", "a", "", unread{containers: map[string]bool{"a": true}}},
		{"container", "health_status: healthy", "a", "", unread{containers: map[string]bool{"a": true}}},
		{"container", "something-new", "a", "", unread{containers: map[string]bool{"a": true}}},
		{"container", "exec_create: /bin/true", "a", "", unread{}},
		{"container", "prune", "", "", unread{}},
		{"network", "connect", "n", "a", unread{containers: map[string]bool{"a": true}}},
		{"network", "destroy", "n", "", unread{networks: true}},
		{"volume", "mount", "v", "", unread{}},
		{"volume", "create", "v", "", unread{volumes: true}},
		{"image", "untag", "i", "", unread{images: true}},
		{"daemon", "reload", "d", "", unread{all: true}},
		{"plugin", "enable", "p", "", unread{}},
	} {
		var e event
		e.Type, e.Action, e.Actor.ID = c.kind, c.action, c.id
		if c.container != "" {
			e.Actor.Attributes = map[string]string{"container": c.container}
		}
		var got unread
		if counts := got.note(e); counts != c.want.any() || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.kind, c.action, got, c.want)
		}
	}
}
