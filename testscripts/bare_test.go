package testscripts

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
)

// bareName is what this binary is called as when it is to be a bare client, the
// benchmarks' yardstick for a plan: bare ENDPOINT PROJECT WORKERS.
const bareName = "bare"

func bare() {
	workers, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = inspectBare(context.Background(), os.Args[1], os.Args[2], workers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// inspectBare lists what a project has and inspects each once.
func inspectBare(ctx context.Context, endpoint, project string, workers int) error {
	docker, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer docker.Close() //nolint:errcheck // only read
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	all, err := docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return err
	}
	images := sync.Map{}
	for _, c := range all {
		if c.Labels["spaces.project"] != project {
			continue
		}
		group.Go(func() error {
			_, err := docker.ContainerInspect(ctx, c.ID)
			return err
		})
		if _, seen := images.LoadOrStore(c.ImageID, true); !seen {
			group.Go(func() error {
				_, err := docker.ImageInspect(ctx, c.ImageID)
				return err
			})
		}
	}
	networks, err := docker.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "spaces.project="+project))})
	if err != nil {
		return err
	}
	for _, n := range networks {
		group.Go(func() error {
			_, err := docker.NetworkInspect(ctx, n.ID, network.InspectOptions{})
			return err
		})
	}
	return group.Wait()
}
