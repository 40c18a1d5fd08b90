//go:build engine

package places

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"

	"spaces/reconcile"
)

func TestRootlessMemory(t *testing.T) { remembers(t, rootlessLab(t)) }
func TestRootfulMemory(t *testing.T)  { remembers(t, rootfulLab(t)) }

// remembers makes one change after another, of ours and of others', and sees the memory
// become what an Observer reads, with no more than the events to go by.
func remembers(t *testing.T, l *lab) {
	plain := l.image("plain")
	n, other := l.network("one"), l.network("two")
	q := Query{Project: l.project, Store: l.store, Images: []string{plain, l.name("later") + ":1"}}
	r, endpoint := record(t, l.endpoint)
	e, err := Open(t.Context(), endpoint, OpenOptions{AllowRootful: true})
	l.must(err)
	t.Cleanup(func() { _ = e.Close() })
	m, err := e.Remember(t.Context())
	l.must(err)
	t.Cleanup(m.Close)
	ctx := t.Context()

	ours := typicalContainer(l.name("ours"), plain, []string{n})
	ours.Labels = l.labels(reconcile.KindSpace)
	theirs := typicalContainer(l.name("theirs"), plain, []string{other})
	var id, stranger string
	for _, change := range []struct {
		what string
		make func() error
	}{
		{"nothing", func() error { return nil }},
		{"create", func() error { id = l.create(ours); return nil }},
		{"start", func() error { return l.docker.ContainerStart(ctx, id, container.StartOptions{}) }},
		{"create a stranger's", func() error { stranger = l.create(theirs); return nil }},
		{"start the stranger's", func() error { return l.docker.ContainerStart(ctx, stranger, container.StartOptions{}) }},
		{"connect the stranger's", func() error { return l.docker.NetworkConnect(ctx, n, stranger, nil) }},
		{"disconnect it", func() error { return l.docker.NetworkDisconnect(ctx, n, stranger, false) }},
		{"connect", func() error { return l.docker.NetworkConnect(ctx, other, id, nil) }},
		{"pause", func() error {
			if len(e.Features().Unenforced) > 0 {
				return nil // no cgroup to freeze
			}
			return errors.Join(l.docker.ContainerPause(ctx, id), l.docker.ContainerUnpause(ctx, id))
		}},
		{"rename", func() error { return l.docker.ContainerRename(ctx, id, l.name("renamed")) }},
		{"update", func() error {
			_, err := l.docker.ContainerUpdate(ctx, id, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "unless-stopped"}})
			return err
		}},
		{"kill", func() error { return l.docker.ContainerKill(ctx, id, "KILL") }},
		{"start again", func() error { return l.docker.ContainerStart(ctx, id, container.StartOptions{}) }},
		{"make a volume", func() error {
			_, err := l.docker.VolumeCreate(ctx, volume.CreateOptions{Name: l.name("volume"), Labels: l.labels(reconcile.KindVolume)})
			return err
		}},
		{"remove the volume", func() error { return l.docker.VolumeRemove(ctx, l.name("volume"), false) }},
		{"make a network", func() error { l.network("three"); return nil }},
		{"remove the network", func() error { return l.docker.NetworkRemove(ctx, l.name("three")) }},
		{"tag an image", func() error { return l.docker.ImageTag(ctx, plain, l.name("later")+":1") }},
		{"untag it", func() error {
			_, err := l.docker.ImageRemove(ctx, l.name("later")+":1", image.RemoveOptions{})
			return err
		}},
		{"remove", func() error { return l.docker.ContainerRemove(ctx, id, container.RemoveOptions{Force: true}) }},
	} {
		l.must(change.make())
		var want, got reconcile.Actual
		same := false
		for range 200 {
			want = l.inspect(q.Images...)
			got, err = m.Inspect(ctx, q)
			l.must(err)
			want.Engine.Endpoint = got.Engine.Endpoint
			if same = reflect.DeepEqual(want, got); same {
				break
			}
			time.Sleep(20 * time.Millisecond) // the event is on its way
		}
		if !same {
			t.Errorf("after %s: %v", change.what, differences(got, want))
		}
	}

	r.mu.Lock()
	for _, asked := range r.asked {
		if method, _, _ := strings.Cut(asked, " "); method != http.MethodGet && method != http.MethodHead {
			t.Errorf("sent %s", asked)
		}
	}
	r.mu.Unlock()
	// Others' tests make the engine tell of theirs now and then.
	var asked []string
	for range 200 {
		r.mu.Lock()
		r.asked = nil
		r.mu.Unlock()
		_, err = m.Inspect(ctx, q)
		l.must(err)
		r.mu.Lock()
		asked = r.asked
		r.mu.Unlock()
		if len(asked) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(asked) > 0 {
		t.Errorf("with nothing told, asked %v", asked)
	}
	if wrong, err := m.Audit(ctx, q); err != nil || len(wrong) > 0 {
		t.Errorf("audit: %v, %v", wrong, err)
	}
}
