//go:build engine

package testscripts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"
)

// The benchmarks' yardstick is a bare client that does the same work on the same engine
// in the same run and nothing else: it lists and inspects, or creates, starts and
// removes, at its best concurrency. What is reported is the ratio to it.

// bareWorkers are the concurrencies that the yardstick is tried at.
var bareWorkers = []int{4, 8, 16}

const benchSpaces = `
image "payload" {
  binary = %q
}

network "inside" {
  egress = "none"
}

space "s" {
  for_each = toset([for i in range(%d) : "k${i}"])
  image    = image.payload
  networks = [network.inside]
  command  = ["/payload", "wait"]
  env      = { KEY = each.key }
}
`

func benchProject(b *testing.B, n int) *project {
	b.Helper()
	p := newProject(b, openLab(b, rootless), fmt.Sprintf("bench%d", n))
	p.write(b, "main.hcl", p.head()+fmt.Sprintf(benchSpaces, p.payload(b), n))
	return p
}

// BenchmarkRootlessPlan is a plan with nothing to do: the whole of it as a user waits
// for it, from the start of the process to its end, against a bare client, a process
// too, that lists and inspects the same containers, network and image.
func BenchmarkRootlessPlan(b *testing.B) {
	for _, n := range []int{10, 100, 300} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := benchProject(b, n)
			p.apply(b)
			p.settled(b)
			var ours []time.Duration
			bare := map[int][]time.Duration{}
			for b.Loop() {
				ours = append(ours, took(func() { must(b, p.program(b, "plan", "--detailed-exitcode").Run()) }))
				for _, workers := range bareWorkers {
					bare[workers] = append(bare[workers], took(func() { must(b, bareProgram(b, p.endpoint, p.name, workers).Run()) }))
				}
			}
			reportRatio(b, ours, bare)
			b.ReportMetric(p.peak(b, "plan"), "peak-MB")
		})
	}
}

// BenchmarkRootlessApply is a first apply of 100 spaces, and then their destroy,
// against a bare client that creates and starts, or stops and removes, as many
// containers with the same configuration.
func BenchmarkRootlessApply(b *testing.B) {
	const n = 100
	p := benchProject(b, n)
	p.apply(b) // the image is made, and there is something to copy
	specs, err := p.specs(b.Context())
	must(b, err)
	p.want(b, 0, "destroy", "--auto-approve")
	var applied, destroyed []time.Duration
	bareApplied, bareDestroyed := map[int][]time.Duration{}, map[int][]time.Duration{}
	for b.Loop() {
		applied = append(applied, took(func() { p.apply(b) }))
		destroyed = append(destroyed, took(func() { p.want(b, 0, "destroy", "--auto-approve") }))
		for _, workers := range bareWorkers {
			bareApplied[workers] = append(bareApplied[workers], took(func() { must(b, p.createBare(b.Context(), specs, workers)) }))
			bareDestroyed[workers] = append(bareDestroyed[workers], took(func() { must(b, p.removeBare(b.Context(), specs, workers)) }))
		}
	}
	reportRatio(b, applied, bareApplied)
	report(b, "destroy-", destroyed, bareDestroyed)
}

func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func reportRatio(b *testing.B, ours []time.Duration, bare map[int][]time.Duration) {
	report(b, "", ours, bare)
}

// report gives medians, and the ratio of ours to the best of the bare client's.
func report(b *testing.B, prefix string, ours []time.Duration, bare map[int][]time.Duration) {
	best := time.Duration(0)
	for _, workers := range bareWorkers {
		m := middle(bare[workers])
		b.ReportMetric(float64(m.Microseconds())/1000, fmt.Sprintf("%sbare-%d-ms", prefix, workers))
		if best == 0 || m < best {
			best = m
		}
	}
	b.ReportMetric(float64(middle(ours).Microseconds())/1000, prefix+"ours-ms")
	b.ReportMetric(float64(middle(ours))/float64(best), prefix+"ratio")
}

func middle(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// program is a command as a process of its own.
func (p *project) program(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	c := exec.Command(staticProgram(b), append([]string{"-C", p.dir, "--data-root", p.data}, args...)...)
	c.Env = append(os.Environ(), "HOME="+p.home)
	return c
}

// bareProgram is this binary as the bare client that bare_test.go has.
func bareProgram(b *testing.B, endpoint, project string, workers int) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	return &exec.Cmd{Path: self, Args: []string{bareName, endpoint, project, strconv.Itoa(workers)}, Stderr: os.Stderr}
}

// peak is the resident memory, in MB, that a command takes at most.
func (p *project) peak(b *testing.B, args ...string) float64 {
	b.Helper()
	c := p.program(b, args...)
	must(b, c.Start())
	// The kernel's own figure at the end (ru_maxrss) begins with what this process had
	// when it forked, so the peak is read as it grows.
	peak := 0.0
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			must(b, err)
			return peak
		default:
			peak = max(peak, highWater(c.Process.Pid))
		}
	}
}

// highWater is the most resident memory that a process has had so far, in MB.
func highWater(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kB float64
	_, _ = fmt.Sscan(rest, &kB)
	return kB / 1024
}

// specs are the configurations of the project's containers, for a bare client to make
// them again under other names.
func (p *project) specs(ctx context.Context) ([]container.InspectResponse, error) {
	all, err := p.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "spaces.project="+p.name))})
	if err != nil {
		return nil, err
	}
	var out []container.InspectResponse
	for _, c := range all {
		in, err := p.docker.ContainerInspect(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		in.Config.Labels["spaces.project"] = "bare"
		in.Name = p.name + "-bare-" + strings.TrimPrefix(in.Name, "/")
		out = append(out, in)
	}
	return out, nil
}

func (p *project) createBare(ctx context.Context, specs []container.InspectResponse, workers int) error {
	name := p.name + "-inside"
	if _, err := p.docker.NetworkCreate(ctx, name, network.CreateOptions{Driver: "bridge", Internal: true}); err != nil {
		return err
	}
	return each(ctx, specs, workers, func(ctx context.Context, c container.InspectResponse) error {
		endpoint := &network.EndpointSettings{Aliases: c.NetworkSettings.Networks[name].Aliases}
		made, err := p.docker.ContainerCreate(ctx, c.Config, c.HostConfig,
			&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{name: endpoint}}, nil, c.Name)
		if err != nil {
			return err
		}
		return p.docker.ContainerStart(ctx, made.ID, container.StartOptions{})
	})
}

func (p *project) removeBare(ctx context.Context, specs []container.InspectResponse, workers int) error {
	err := each(ctx, specs, workers, func(ctx context.Context, c container.InspectResponse) error {
		if err := p.docker.ContainerStop(ctx, c.Name, container.StopOptions{}); err != nil {
			return err
		}
		return p.docker.ContainerRemove(ctx, c.Name, container.RemoveOptions{RemoveVolumes: true})
	})
	if err != nil {
		return err
	}
	// The engine lets go of an endpoint some time after its container is gone.
	for range 100 {
		if err = p.docker.NetworkRemove(ctx, p.name+"-inside"); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

func each(ctx context.Context, specs []container.InspectResponse, workers int, do func(context.Context, container.InspectResponse) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, s := range specs {
		group.Go(func() error { return do(ctx, s) })
	}
	return group.Wait()
}
