//go:build engine

package places

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// BenchmarkInspect compares an Observer's reading of 300 containers with a bare
// client's inspecting the same objects at once, at several numbers of workers. Both run
// in turns, so that neither has the better moments; the ratio is of the medians.
func BenchmarkInspectRootful(b *testing.B)  { benchmarkInspect(b, rootfulLab(b)) }
func BenchmarkInspectRootless(b *testing.B) { benchmarkInspect(b, rootlessLab(b)) }

func benchmarkInspect(b *testing.B, l *lab) {
	const containers = 300
	l.fill(containers)
	o := l.Observer()
	q := Query{Project: l.project, Store: l.store, Images: []string{l.name("plain") + ":1"}}
	bare, err := client.NewClientWithOpts(client.WithHost(l.endpoint), client.WithAPIVersionNegotiation())
	l.must(err)
	defer bare.Close()
	workers := []int{4, 8, 16}
	ours, theirs := []cost{}, make([][]cost, len(workers))
	for b.Loop() {
		ours = append(ours, measure(func() {
			a, err := o.Inspect(b.Context(), q)
			l.must(err)
			if len(a.Containers) != containers {
				b.Fatalf("saw %d containers", len(a.Containers))
			}
		}))
		for i, n := range workers {
			theirs[i] = append(theirs[i], measure(func() {
				l.must(inspectBare(b.Context(), bare, n, l.project))
			}))
		}
	}
	best := median(theirs[0])
	for i, n := range workers {
		m := median(theirs[i])
		b.ReportMetric(milliseconds(m.wall), fmt.Sprintf("ms-bare-%d", n))
		best.wall, best.cpu = min(best.wall, m.wall), min(best.cpu, m.cpu)
	}
	m := median(ours)
	b.ReportMetric(milliseconds(m.wall), "ms-ours")
	b.ReportMetric(milliseconds(best.cpu), "cpu-ms-bare")
	b.ReportMetric(milliseconds(m.cpu), "cpu-ms-ours")
	b.ReportMetric(float64(m.wall)/float64(best.wall), "ratio")
}

// cost is what something took, of the clock's time and of this process's.
type cost struct{ wall, cpu time.Duration }

func measure(f func()) cost {
	start, used := time.Now(), cpuTime()
	f()
	return cost{time.Since(start), cpuTime() - used}
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(costs []cost) cost {
	var wall, cpu []time.Duration
	for _, c := range costs {
		wall, cpu = append(wall, c.wall), append(cpu, c.cpu)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	return cost{wall[len(wall)/2], cpu[len(cpu)/2]}
}

// inspectBare lists and inspects what is ours, keeps all of it, and does no more.
func inspectBare(ctx context.Context, c *client.Client, workers int, project string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	all, err := c.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var kept []any
	keep := func(v any, err error) error {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, v)
		return err
	}
	for _, s := range all {
		if s.Labels[reconcile.LabelProject] == project {
			group.Go(func() error { return keep(c.ContainerInspect(ctx, s.ID)) })
		}
	}
	networks, err := c.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range networks {
		if n.Labels[reconcile.LabelProject] == project {
			group.Go(func() error { return keep(c.NetworkInspect(ctx, n.ID, network.InspectOptions{})) })
		}
	}
	return group.Wait()
}

// fill makes containers like those of a real project, without starting them.
func (l *lab) fill(n int) {
	l.t.Helper()
	image := l.image("plain")
	networks := []string{l.network("a"), l.network("b")}
	group, _ := errgroup.WithContext(l.t.Context())
	group.SetLimit(4)
	for i := range n {
		group.Go(func() error {
			c := typicalContainer(l.name(fmt.Sprint("c", i)), image, networks)
			c.Labels = l.labels(reconcile.KindSpace)
			l.create(c)
			return nil
		})
	}
	l.must(group.Wait())
}

func typicalContainer(name, image string, networks []string) reconcile.Container {
	c := reconcile.Container{
		Name: name, Image: image, Command: []string{"spaces", "runner", "/run/spaces/run"},
		Env: map[string]reconcile.EnvValue{}, NetworkMode: networks[0],
		Networks:     map[string]reconcile.Endpoint{},
		Tmpfs:        map[string]string{"/tmp": "noexec,nosuid"},
		Mounts:       map[string]reconcile.Mount{"/usr/share": {Type: "bind", Source: "/usr/share"}},
		ReadOnlyRoot: true, Init: true, NoNewPrivileges: true, Seccomp: seccompDefault, CapDrop: []string{"ALL"},
		LogDriver: "json-file", LogOptions: map[string]string{"max-size": "10m", "max-file": "3"},
	}
	for _, n := range networks {
		c.Networks[n] = reconcile.Endpoint{Aliases: []string{"web"}}
	}
	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"} {
		c.Env[v] = reconcile.EnvValue{Value: "http://proxy:3128"}
	}
	return c
}
