//go:build engine

package places

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"spaces/places/internal/faultproxy"
	"spaces/reconcile"
)

// testFaults lets each call of a create and of a replacement go wrong in turn, in each
// way, and looks at what is left: under the name either the old container runs or the
// new one, nothing remains but what the next plan knows for its own, and nobody else's
// container is touched.
func testFaults(t *testing.T, w *workbench) {
	n, second := w.network(t, "faulty"), w.network(t, "faulty2")
	stranger := w.stranger(t, w.name("bystander"), &container.HostConfig{})
	c := w.asked("faulted", n)
	c.Networks[second] = reconcile.Endpoint{Aliases: []string{"faulted"}}

	dir, err := os.MkdirTemp("", "fp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	proxy, err := faultproxy.Start(filepath.Join(dir, "p.sock"), strings.TrimPrefix(w.endpoint, scheme))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	engine, err := Open(t.Context(), proxy.Endpoint, OpenOptions{AllowRootful: true})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()

	for name, step := range map[string]reconcile.Step{
		"create":  reconcile.CreateSpace{Container: c},
		"replace": reconcile.ReplaceSpace{Container: c},
	} {
		t.Run(name, func(t *testing.T) {
			replaces := name == "replace"
			run := func(faults ...faultproxy.Fault) (old string, err error) {
				w.drop(t, c.Name)
				if replaces {
					old = w.space(t, c)
				}
				a := w.applierOn(engine)
				a.timeouts.look = 50 * time.Millisecond
				proxy.Forget()
				proxy.Arm(faults...)
				defer proxy.Arm()
				return old, a.Apply(t.Context(), step)
			}
			if _, err := run(); err != nil {
				t.Fatal(err)
			}
			calls := proxy.Calls()
			t.Logf("%d calls: %v", len(calls), calls)
			if len(calls) < 5 {
				t.Fatal("too few calls to mean anything")
			}
			for i, call := range calls {
				for _, fault := range []faultproxy.Fault{
					{Nth: i + 1, Action: faultproxy.Error, When: faultproxy.Before},
					{Nth: i + 1, Action: faultproxy.Cut, When: faultproxy.After},
				} {
					what := fmt.Sprintf("%s %s call %d, %s", fault.Action, fault.When, i+1, call)
					old, err := run(fault)
					if hits := proxyHit(proxy, i); !hits {
						t.Errorf("%s: the fault wasn't met", what)
					}
					w.judge(t, what, c.Name, old, err)
				}
			}
		})
	}
	if got := w.get(t, w.name("bystander")); got.ID != stranger || !got.State.Running {
		t.Error("the bystander was touched")
	}
	w.drop(t, c.Name, w.name("bystander"))
}

func proxyHit(p *faultproxy.Proxy, i int) bool { return len(p.Calls()) > i }

// judge looks at what a fault has left.
func (w *workbench) judge(t *testing.T, what, name, old string, err error) {
	t.Helper()
	now := w.look(t, name)
	next, aside := w.look(t, name+reconcile.SuffixNew), w.look(t, name+reconcile.SuffixOld)
	for _, c := range []*live{now, next, aside} {
		if c != nil && !labelOwner(c.Config.Labels).is(Query{Project: w.project, Store: w.store}) {
			t.Errorf("%s: %s isn't known for ours", what, c.name())
		}
	}
	switch {
	case old == "" && err == nil:
		if now == nil || !now.State.Running {
			t.Errorf("%s: no error, and it doesn't run", what)
		}
	case old == "":
		// A create may leave what it made, for the next plan.
	case now == nil || !now.State.Running:
		t.Errorf("%s: nothing runs under the name (error %v)", what, err)
	case err == nil && (now.ID == old || next != nil || aside != nil):
		t.Errorf("%s: no error, but old %v, new %v, aside %v", what, now.ID == old, next != nil, aside != nil)
	case err != nil && now.ID == old && aside != nil:
		t.Errorf("%s: the old one is back and something is aside", what)
	case now.ID == old && now.HostConfig.RestartPolicy.Name != "unless-stopped":
		t.Errorf("%s: the old one's restart policy is %s", what, now.HostConfig.RestartPolicy.Name)
	case next != nil && next.State.Running:
		t.Errorf("%s: two of them run", what)
	}
}
