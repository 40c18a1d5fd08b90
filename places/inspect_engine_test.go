//go:build engine

package places

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
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

// recorder stands between a client and an engine and notes what is asked.
type recorder struct {
	mu    sync.Mutex
	asked []string
}

// record serves a socket that leads to an engine.
func record(t *testing.T, endpoint string) (*recorder, string) {
	t.Helper()
	path := strings.TrimPrefix(endpoint, scheme)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = newReadClient(path).Transport
	r := &recorder{}
	return r, serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req.Method+" "+req.URL.Path)
		r.mu.Unlock()
		proxy.ServeHTTP(w, req)
	}))
}

func TestRootlessReadsOnly(t *testing.T) { readsOnly(t, rootlessLab(t)) }
func TestRootfulReadsOnly(t *testing.T)  { readsOnly(t, rootfulLab(t)) }

// readsOnly looks at everything through a recorder: opening and inspecting send GET and
// HEAD alone, and each object is asked for once.
func readsOnly(t *testing.T, l *lab) {
	plain := l.image("plain")
	n := l.network("one")
	for i := range 3 {
		c := typicalContainer(l.name(fmt.Sprint("c", i)), plain, []string{n})
		c.Labels = l.labels(reconcile.KindSpace)
		l.create(c)
	}
	r, endpoint := record(t, l.endpoint)
	e, err := Open(t.Context(), endpoint, OpenOptions{AllowRootful: true})
	l.must(err)
	a, err := e.Observer().Inspect(t.Context(), Query{Project: l.project, Store: l.store, Images: []string{plain, "none:such"}})
	l.must(err)
	if len(a.Containers) != 3 || len(a.Networks) != 1 {
		t.Errorf("saw %d containers and %d networks", len(a.Containers), len(a.Networks))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.asked)
	for i, asked := range r.asked {
		if method, _, _ := strings.Cut(asked, " "); method != http.MethodGet && method != http.MethodHead {
			t.Errorf("sent %s", asked)
		}
		if i > 0 && r.asked[i-1] == asked {
			t.Errorf("sent %s twice", asked)
		}
	}
	// Ping, version, info; three lists; three containers; the image by both names, and
	// the one that isn't there.
	if want := 3 + 3 + 3 + 3; len(r.asked) != want {
		t.Errorf("sent %d requests, want %d:\n%s", len(r.asked), want, strings.Join(r.asked, "\n"))
	}
	observer := reflect.TypeFor[*Observer]()
	for i := range observer.NumMethod() {
		if name := observer.Method(i).Name; name != "Inspect" && name != "Logs" {
			t.Errorf("an Observer reads, by Inspect and Logs; it has %s", name)
		}
	}
}

func TestRootlessWorld(t *testing.T) { worlds(t, rootlessLab(t)) }
func TestRootfulWorld(t *testing.T)  { worlds(t, rootfulLab(t)) }

// worlds looks at whose is what, with other projects and data roots about.
func worlds(t *testing.T, l *lab) {
	ctx := t.Context()
	plain := l.image("plain")
	shared := l.network("shared")
	label := func(project, store string) map[string]string {
		return map[string]string{reconcile.LabelProject: project, reconcile.LabelStore: store}
	}
	for name, labels := range map[string]map[string]string{
		"ours": label(l.project, l.store), "twin": label(l.project, "/other/store"),
		"alien": label("alien", l.store), "nobody": nil,
	} {
		_, err := l.docker.ContainerCreate(ctx,
			&container.Config{Image: plain, Labels: labels},
			&container.HostConfig{NetworkMode: container.NetworkMode(shared), Binds: []string{l.name("data") + ":/data"}},
			nil, nil, l.name(name))
		l.must(err)
		_, err = l.docker.NetworkCreate(ctx, l.name("net-"+name), network.CreateOptions{Labels: labels})
		l.must(err)
		_, err = l.docker.VolumeCreate(ctx, volume.CreateOptions{Name: l.name("vol-" + name), Labels: labels})
		l.must(err)
	}
	l.must(l.docker.ContainerStart(ctx, l.name("nobody"), container.StartOptions{}))

	a := l.inspect()
	if len(a.Containers) != 1 || a.Containers[0].Name != l.name("ours") {
		t.Errorf("took %d containers for ours", len(a.Containers))
	}
	var names []string
	for _, n := range a.Networks {
		names = append(names, n.Name)
	}
	if want := []string{l.name("net-ours"), shared}; !slices.Equal(names, want) {
		t.Errorf("our networks are %q, want %q", names, want)
	}
	members := []reconcile.Member{
		{Name: l.name("alien")},
		{Name: l.name("nobody"), Running: true},
		{Name: l.name("ours"), Ours: true},
		{Name: l.name("twin")},
	}
	if !slices.Equal(a.Networks[1].Members, members) {
		t.Errorf("members are %v, want %v", a.Networks[1].Members, members)
	}
	if len(a.Volumes) != 1 || a.Volumes[0].Name != l.name("vol-ours") {
		t.Errorf("our volumes are %v", a.Volumes)
	}
	for kind, taken := range map[string]map[string]string{
		"container": a.Taken.Containers, "network": a.Taken.Networks, "volume": a.Taken.Volumes,
	} {
		prefix := map[string]string{"container": "", "network": "net-", "volume": "vol-"}[kind]
		for name, want := range map[string]string{
			"twin":   "a " + kind + " of project " + l.project + " from another data root /other/store",
			"alien":  "a " + kind + " of project alien",
			"nobody": "a " + kind + " nobody labelled",
			"ours":   "",
		} {
			if got := taken[l.name(prefix+name)]; got != want {
				t.Errorf("%s %s: %q, want %q", kind, name, got, want)
			}
		}
	}
	if a.Taken.Networks["bridge"] == "" {
		t.Error("the engine's own networks have their names")
	}
	if again := l.inspect(); !reflect.DeepEqual(a, again) {
		t.Error("the same world reads differently")
	}
}

func TestRootlessNetworks(t *testing.T) { networksReadBack(t, rootlessLab(t)) }
func TestRootfulNetworks(t *testing.T)  { networksReadBack(t, rootfulLab(t)) }

// networksReadBack makes networks as asked and otherwise, and looks at what is told of
// each, in the list and inspected alone.
func networksReadBack(t *testing.T, l *lab) {
	off := false
	gateway := func(c network.IPAMConfig) func(*network.CreateOptions) {
		return func(o *network.CreateOptions) { o.IPAM = &network.IPAM{Config: []network.IPAMConfig{c}} }
	}
	for name, c := range map[string]struct {
		change func(*network.CreateOptions)
		want   []string
	}{
		"as-asked":     {func(*network.CreateOptions) {}, nil},
		"not-internal": {func(o *network.CreateOptions) { o.Internal = false }, []string{"internal"}},
		"attachable":   {func(o *network.CreateOptions) { o.Attachable = true }, []string{"Attachable"}},
		"ipv6": {func(o *network.CreateOptions) {
			on := true
			o.EnableIPv6 = &on
			o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{Subnet: "fd00:a9::/64"})
		}, []string{"EnableIPv6", "IPAM.Config[1]"}},
		"option": {func(o *network.CreateOptions) {
			o.Options = map[string]string{"com.docker.network.bridge.enable_icc": "false"}
		}, []string{`options["com.docker.network.bridge.enable_icc"]`}},
		"gateway-mode": {func(o *network.CreateOptions) {
			o.Options = map[string]string{"com.docker.network.bridge.gateway_mode_ipv4": "nat"}
		}, []string{`options["com.docker.network.bridge.gateway_mode_ipv4"]`}},
		"label":         {func(o *network.CreateOptions) { o.Labels["x"] = "y" }, []string{`labels["x"]`}},
		"other-subnet":  {gateway(network.IPAMConfig{Subnet: "10.231.8.0/24"}), []string{"ip_range", "subnet"}},
		"other-gateway": {gateway(network.IPAMConfig{Subnet: "10.231.7.0/24", IPRange: "10.231.7.128/25", Gateway: "10.231.7.77"}), []string{"IPAM.Config[0].Gateway"}},
		"reserved":      {gateway(network.IPAMConfig{Subnet: "10.231.7.0/24", IPRange: "10.231.7.128/25", AuxAddress: map[string]string{"a": "10.231.7.9"}}), []string{"IPAM.Config[0].AuxiliaryAddresses"}},
		"ipam-options":  {func(o *network.CreateOptions) { o.IPAM.Options = map[string]string{"a": "b"} }, []string{`IPAM.Options["a"]`}},
		"no-ipv4":       {func(o *network.CreateOptions) { o.EnableIPv4 = &off }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no-ipv4" && !l.defaults.tellsIPv4 {
				return // before API 1.48 it can't be said
			}
			asked := reconcile.Network{
				Name: l.name(name), Driver: "bridge", Internal: true, Subnet: "10.231.7.0/24", IPRange: "10.231.7.128/25",
				Options: map[string]string{}, Labels: l.labels(reconcile.KindNetwork),
			}
			o := networkOptions(asked)
			c.change(&o)
			made, err := l.docker.NetworkCreate(t.Context(), asked.Name, o)
			if err != nil {
				t.Fatal(err)
			}
			defer l.docker.NetworkRemove(t.Context(), made.ID)
			alone, err := l.docker.NetworkInspect(t.Context(), made.ID, network.InspectOptions{})
			l.must(err)
			for _, got := range l.inspect().Networks {
				if got.Name != asked.Name {
					continue
				}
				if paths := differingFields(asked.Fields(), got.Fields()); !slices.Equal(paths, c.want) {
					t.Errorf("told %q, want %q: %v", paths, c.want, got.Fields())
				}
				if got.Revision != networkRevision(alone) {
					t.Errorf("listed and inspected, it has two revisions")
				}
			}
		})
	}
}

func differingFields(a, b []reconcile.Field) []string {
	values := map[string][2]string{}
	for i, fields := range [][]reconcile.Field{a, b} {
		for _, f := range fields {
			v := values[f.Path]
			v[i] = "=" + f.Value
			values[f.Path] = v
		}
	}
	var out []string
	for path, v := range values {
		if v[0] != v[1] {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func TestRootlessAddress(t *testing.T) { addresses(t, rootlessLab(t)) }
func TestRootfulAddress(t *testing.T)  { addresses(t, rootfulLab(t)) }

// addresses are told only where they were asked for, running or not.
func addresses(t *testing.T, l *lab) {
	ctx := t.Context()
	plain := l.image("plain")
	n := reconcile.Network{
		Name: l.name("net"), Driver: "bridge", Internal: true, Subnet: "10.231.9.0/24", Labels: l.labels(reconcile.KindNetwork),
	}
	_, err := l.docker.NetworkCreate(ctx, n.Name, networkOptions(n))
	l.must(err)
	for name, address := range map[string]string{"fixed": "10.231.9.55", "any": ""} {
		c := typicalContainer(l.name(name), plain, []string{n.Name})
		c.Labels = l.labels(reconcile.KindSpace)
		c.Networks[n.Name] = reconcile.Endpoint{Aliases: []string{"web"}, Address: address}
		c = reconcile.WithImage(c, l.inspect(plain).Images[plain])
		id := l.create(c)
		l.told(t, c, nil)
		l.must(l.docker.ContainerStart(ctx, id, container.StartOptions{}))
		l.told(t, c, nil)
		l.must(l.docker.ContainerKill(ctx, id, "KILL"))
		l.wait(id)
		l.told(t, c, nil)
	}
}

func TestRootlessVolumes(t *testing.T) { volumesReadBack(t, rootlessLab(t)) }
func TestRootfulVolumes(t *testing.T)  { volumesReadBack(t, rootfulLab(t)) }

func volumesReadBack(t *testing.T, l *lab) {
	asked := reconcile.Volume{Name: l.name("v"), Driver: localDriver, Options: map[string]string{}, Labels: l.labels(reconcile.KindVolume)}
	_, err := l.docker.VolumeCreate(t.Context(), volumeOptions(asked))
	l.must(err)
	_, err = l.docker.ContainerCreate(t.Context(), &container.Config{Image: l.image("plain")},
		&container.HostConfig{Binds: []string{asked.Name + ":/v"}}, nil, nil, l.name("stranger"))
	l.must(err)
	got := l.inspect().Volumes[0]
	if paths := differingFields(asked.Fields(), got.Fields()); len(paths) > 0 {
		t.Errorf("differs in %q", paths)
	}
	if !slices.Equal(got.Users, []string{l.name("stranger")}) {
		t.Errorf("used by %q", got.Users)
	}
	alone, err := l.docker.VolumeInspect(t.Context(), asked.Name)
	l.must(err)
	if got.Revision != volumeRevision(alone) {
		t.Error("listed and inspected, it has two revisions")
	}
	l.must(l.docker.ContainerRemove(t.Context(), l.name("stranger"), container.RemoveOptions{}))
	l.must(l.docker.VolumeRemove(t.Context(), asked.Name, false))
	asked.Options = map[string]string{"type": "tmpfs", "device": "tmpfs"}
	_, err = l.docker.VolumeCreate(t.Context(), volumeOptions(asked))
	l.must(err)
	if again := l.inspect().Volumes[0]; again.Revision == got.Revision || again.Options["type"] != "tmpfs" {
		t.Errorf("made again otherwise, it reads %v", again.Fields())
	}
}

func TestRootlessStaleMounts(t *testing.T) { staleMounts(t, rootlessLab(t)) }
func TestRootfulStaleMounts(t *testing.T)  { staleMounts(t, rootfulLab(t)) }

// staleMounts saves files the way editors do, below running containers.
func staleMounts(t *testing.T, l *lab) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	save := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := l.image("plain")
	c := typicalContainer(l.name("space"), plain, []string{l.network("one")})
	c.Labels = l.labels(reconcile.KindSpace)
	c.User = "1000" // whose processes the engine's user may look at all the same
	for _, name := range []string{"kept", "replaced", "removed"} {
		c.Mounts["/run/"+name] = reconcile.Mount{Type: "bind", Source: save(name, "1")}
	}
	id := l.create(c)
	look := func(stale ...string) {
		t.Helper()
		got := l.inspect().Containers[0]
		if !slices.Equal(got.Stale, stale) || len(got.Unread) > 0 {
			t.Errorf("stale %q, unread %q, want %q", got.Stale, got.Unread, stale)
		}
	}
	look()
	l.must(l.docker.ContainerStart(t.Context(), id, container.StartOptions{}))
	look()
	save("replaced", "2")
	if err := os.Remove(filepath.Join(dir, "removed")); err != nil {
		t.Fatal(err)
	}
	look("/run/removed", "/run/replaced")
	save("removed", "2")
	look("/run/removed", "/run/replaced")

	o := l.Observer()
	o.proc = "/nowhere"
	a, err := o.Inspect(t.Context(), Query{Project: l.project, Store: l.store})
	l.must(err)
	if got := a.Containers[0]; len(got.Unread) != 3 || len(got.Stale) > 0 {
		t.Errorf("blind, stale %q, unread %q", got.Stale, got.Unread)
	}
	l.must(l.docker.ContainerRestart(t.Context(), id, container.StopOptions{Timeout: new(0)}))
	look()
}

// The engine's own JSON holds no setting that the client lacks.
func TestRootlessKnowsAllSettings(t *testing.T) { knowsAll(t, rootlessLab(t)) }

func knowsAll(t *testing.T, l *lab) {
	c := typicalContainer(l.name("c"), l.image("plain"), []string{l.network("one")})
	id := l.create(c)
	_, raw, err := l.docker.ContainerInspectWithRaw(t.Context(), id, false)
	l.must(err)
	var parts map[string]json.RawMessage
	l.must(json.Unmarshal(raw, &parts))
	if len(parts["HostConfig"]) < 100 || len(unknownFields(raw, containerShape())) > 0 {
		t.Errorf("unknown: %v", unknownFields(raw, containerShape()))
	}
}
