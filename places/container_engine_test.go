//go:build engine

package places

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

func TestRootlessRoundTrip(t *testing.T) { roundTrips(t, rootlessLab(t)) }
func TestRootfulRoundTrip(t *testing.T)  { roundTrips(t, rootfulLab(t)) }

// roundTrips makes containers of every sort and reads them back: what an engine was
// asked for is what it says it has, before and after a start.
func roundTrips(t *testing.T, l *lab) {
	plain := l.image("plain")
	rich := l.image("rich",
		`ENV A=1 PATH=/bin`, `LABEL there=already`, `USER 65534:65534`, `WORKDIR /run`, `VOLUME /data`,
		`EXPOSE 8080/tcp`, `HEALTHCHECK --interval=5m CMD ["/wait"]`, `STOPSIGNAL SIGINT`,
		`CMD ["some","thing"]`)
	networks := []string{l.network("one"), l.network("two")}
	images := l.inspect(plain, rich).Images
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := &lab{Engine: l.Engine, t: t, project: l.project, store: l.store}
			r := rand.New(rand.NewPCG(seed, 1))
			asked := randomContainer(r, l.Features(), networks)
			asked.Name = l.name(fmt.Sprint("c", seed))
			asked.Labels = l.labels(reconcile.KindSpace)
			asked.Image = plain
			if seed%2 == 1 {
				asked.Image = rich
			}
			asked = reconcile.WithImage(asked, images[asked.Image])
			id := l.create(asked)
			l.same("created", asked)
			l.must(l.docker.ContainerStart(t.Context(), id, container.StartOptions{}))
			l.same("started", asked)
			l.must(l.docker.ContainerKill(t.Context(), id, "KILL"))
			l.wait(id)
			l.same("stopped", asked)
			l.must(l.docker.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true}))
		})
	}
}

func (l *lab) wait(id string) {
	l.t.Helper()
	done, failed := l.docker.ContainerWait(l.t.Context(), id, container.WaitConditionNotRunning)
	select {
	case err := <-failed:
		l.must(err)
	case <-done:
	}
}

func (l *lab) same(when string, asked reconcile.Container) {
	l.t.Helper()
	for _, got := range l.inspect().Containers {
		if got.Name == asked.Name {
			if differ := differing(asked, got.Container); len(differ) > 0 {
				l.t.Errorf("%s: %s", when, explain(differ, asked, got.Container))
			}
			return
		}
	}
	l.t.Errorf("%s: %s isn't there", when, asked.Name)
}
