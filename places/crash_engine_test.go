//go:build engine

package places

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"spaces/places/internal/faultproxy"
	"spaces/reconcile"
	"spaces/schema"
)

func TestRootlessCrash(t *testing.T) { testCrash(t, newWorkbench(t, rootlessLab(t))) }
func TestRootfulCrash(t *testing.T)  { testCrash(t, newWorkbench(t, rootfulLab(t))) }

// testCrash ends an apply at each of its calls in turn, as kill -9 does: the engine has
// done that call and hears nothing more, no rollback either. Whatever is left, the next
// plan and apply finish the work, a third plan is empty, and nothing else remains.
func testCrash(t *testing.T, w *workbench) {
	dir, err := os.MkdirTemp("", "fp") // a socket's path is short
	must(t, err)
	defer os.RemoveAll(dir)
	proxy, err := faultproxy.Start(filepath.Join(dir, "p.sock"), strings.TrimPrefix(w.endpoint, scheme))
	must(t, err)
	defer proxy.Close()
	proxied, err := Open(t.Context(), proxy.Endpoint, OpenOptions{AllowRootful: true})
	must(t, err)
	defer proxied.Close()
	c := &crasher{workbench: w, project: w.project + "x", proxied: proxied}
	bystander := w.stranger(t, w.name("bystander"), &container.HostConfig{})

	before := c.config("1")
	before.Moves = nil
	before.Spaces[0].Address.Name = "site"
	for name, first := range map[string]*schema.Config{"create": nil, "replace": c.config("1"), "move": before} {
		t.Run(name, func(t *testing.T) {
			second := c.config("2")
			c.converge(t, first)
			proxy.Forget()
			must(t, c.apply(t, c.plan(t, second), proxied))
			calls := len(proxy.Calls())
			if calls < 10 {
				t.Fatalf("%d calls are too few to mean anything", calls)
			}
			for i := range calls {
				c.converge(t, first)
				held := c.volume(t)
				proxy.Forget()
				plan := c.plan(t, second)
				proxy.Arm(endsAt(i + 1)...)
				err := c.apply(t, plan, proxied)
				made := proxy.Calls()
				proxy.Arm()
				if err == nil {
					t.Errorf("call %d: the apply came to its end after %v", i+1, made)
				}
				c.converge(t, second)
				when := fmt.Sprintf("after call %d of %v", i+1, made)
				c.judge(t, when)
				if now := c.volume(t); first != nil && now != held {
					t.Errorf("%s: the volume is another", when)
				}
			}
		})
	}
	c.converge(t, nil)
	if got := w.get(t, w.name("bystander")); got.ID != bystander || !got.State.Running {
		t.Error("the bystander was touched")
	}
}

// endsAt cuts the answer to the nth call and everything after it.
func endsAt(n int) []faultproxy.Fault {
	others := 0
	return []faultproxy.Fault{
		{Nth: n, Action: faultproxy.Cut, When: faultproxy.After},
		{Action: faultproxy.Cut, When: faultproxy.Before, Match: func(faultproxy.Call) bool {
			others++
			return others >= n
		}},
	}
}

// crasher has a project that is planned and applied as a whole.
type crasher struct {
	*workbench
	project string
	proxied *Engine
}

// config is one space on two networks, with a volume, a port and an address, which two
// containers can't have at once; the version is what it is told apart by. It may have
// been called site.
func (c *crasher) config(version string) *schema.Config {
	object := func(kind, name string) schema.Object {
		return schema.Object{Address: schema.Address{Kind: kind, Name: name}, Origins: map[string]schema.Origin{}}
	}
	cfg := &schema.Config{
		Project: c.project,
		Install: schema.Install{Mode: schema.ModeContainerized, Endpoint: c.endpoint},
		Images:  []schema.Image{{Object: object("image", "payload"), Reference: c.image}},
		Networks: []schema.Network{
			{Object: object("network", "a"), Internal: true, NoEgress: true},
			{Object: object("network", "b"), Reason: "a port", Subnet: "10.213.77.0/24"},
		},
		Grants: []schema.Grant{{Object: object("grant", "data"), Kind: schema.GrantVolume, Source: "data", Target: "/data", Writable: true}},
	}
	for _, code := range []string{schema.AcceptNotRootless, schema.AcceptLimitsUnenforced, schema.AcceptNetworkNotIsolated} {
		cfg.Accepts = append(cfg.Accepts, schema.Accept{Code: code, Reason: "a test"})
	}
	cfg.Spaces = []schema.Space{{
		Object:    object("space", "web"),
		Lifecycle: schema.LifecycleService,
		Image:     cfg.Images[0].Address,
		Command:   []string{"payload", "wait"},
		Env:       []schema.EnvVar{{Name: "VERSION", Value: version}},
		Networks:  []schema.Attachment{{Network: cfg.Networks[0].Address}, {Network: cfg.Networks[1].Address, Address: "10.213.77.10"}},
		Grants:    []schema.Address{cfg.Grants[0].Address},
		Publish:   []schema.Publish{{Host: "127.0.0.1", Port: 18377, Container: 80, Protocol: "tcp"}},
	}}
	cfg.Moves = []schema.Move{{From: schema.Address{Kind: "space", Name: "site"}, To: cfg.Spaces[0].Address}}
	return cfg
}

// volume is the revision of the project's volume, which its making is part of; empty
// without one.
func (c *crasher) volume(t *testing.T) string {
	t.Helper()
	actual, err := c.Observer().Inspect(t.Context(), Query{Project: c.project, Store: c.store})
	must(t, err)
	if len(actual.Volumes) != 1 {
		return ""
	}
	return actual.Volumes[0].Revision
}

// planned is a plan and what it was made from.
type planned struct {
	*reconcile.Plan
	actual reconcile.Actual
}

// plan is one for a configuration, nil for nothing at all.
func (c *crasher) plan(t *testing.T, cfg *schema.Config) planned {
	t.Helper()
	o := reconcile.Options{Destroy: cfg == nil, RemoveVolumes: cfg == nil}
	if cfg == nil {
		cfg = c.config("")
	}
	desired := reconcile.Resolve(cfg, reconcile.Roots{DataRoot: c.store, Store: c.store, Executable: "/spaces"})
	actual, err := c.Observer().Inspect(t.Context(), Query{Project: c.project, Store: c.store, Images: []string{c.image}})
	must(t, err)
	plan, err := reconcile.Diff(desired, reconcile.HostFacts{Checked: true, Digest: testKey{}}, actual, o)
	must(t, err)
	return planned{plan, actual}
}

func (c *crasher) apply(t *testing.T, p planned, on *Engine) error {
	t.Helper()
	a := on.Applier(ApplierOptions{Actual: p.actual, Digest: testKey{}, Project: c.project, Store: c.store, Host: c.host})
	a.timeouts.attempt = time.Millisecond
	_, err := reconcile.Apply(context.Background(), p.Plan, a, reconcile.ApplyOptions{})
	return err
}

// converge applies a configuration and makes sure that nothing is left to do.
func (c *crasher) converge(t *testing.T, cfg *schema.Config) {
	t.Helper()
	p := c.plan(t, cfg)
	if err := c.apply(t, p, c.Engine); err != nil {
		t.Fatalf("%v\nof %s", err, p)
	}
	if p := c.plan(t, cfg); len(p.Items) > 0 {
		t.Fatalf("still to do:\n%s", p)
	}
}

// judge makes sure that the second version runs, alone.
func (c *crasher) judge(t *testing.T, when string) {
	t.Helper()
	actual, err := c.Observer().Inspect(t.Context(), Query{Project: c.project, Store: c.store})
	must(t, err)
	if len(actual.Containers) != 1 || len(actual.Networks) != 2 {
		t.Fatalf("%s: %d containers, %d networks", when, len(actual.Containers), len(actual.Networks))
	}
	got := actual.Containers[0]
	if got.Name != c.project+"-web" || got.State != reconcile.StateRunning || got.Env["VERSION"].Value != "2" {
		t.Errorf("%s: %s is %s, version %s", when, got.Name, got.State, got.Env["VERSION"].Value)
	}
}
