//go:build engine

package testscripts

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

const (
	rootless = "rootless"
	rootful  = "rootful"
)

// lab is a real engine, spoken to with the plain API: it is who changes things behind
// the program's back.
type lab struct {
	kind     string
	endpoint string
	docker   *client.Client
}

// openLab fails where the engine that testscripts/test.sh starts isn't there: a test
// that is skipped proves nothing.
func openLab(t testing.TB, kind string) *lab {
	t.Helper()
	variable := "SPACES_TEST_" + strings.ToUpper(kind)
	return labAt(t, kind, need(t, variable))
}

// need is a variable that testscripts/test.sh sets.
func need(t testing.TB, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set: run testscripts/test.sh", variable)
	}
	return value
}

func labAt(t testing.TB, kind, endpoint string) *lab {
	t.Helper()
	docker, err := client.NewClientWithOpts(
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}),
		client.WithHost(endpoint), client.WithAPIVersionNegotiation(),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { docker.Close() })
	l := &lab{kind: kind, endpoint: endpoint, docker: docker}
	if _, err := docker.Ping(t.Context()); err != nil {
		t.Fatalf("the %s engine doesn't answer: %v", kind, err)
	}
	return l
}

// payload is the static program that the tests' spaces run.
var payload = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "payload")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, err := filepath.Abs("testdata/payload/main.go")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "payload")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build the payload: %w\n%s", err, out)
	}
	return os.ReadFile(program)
})

// build makes an image of the payload alone, with more lines of a Dockerfile.
func (l *lab) build(t testing.TB, reference string, lines ...string) {
	t.Helper()
	program, err := payload()
	must(t, err)
	dockerfile := strings.Join(append([]string{"FROM scratch", "COPY payload /payload"}, lines...), "\n")
	var sent bytes.Buffer
	archive := tar.NewWriter(&sent)
	for name, content := range map[string][]byte{"Dockerfile": []byte(dockerfile), "payload": program} {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := archive.Write(content)
		must(t, err)
	}
	must(t, archive.Close())
	answer, err := l.docker.ImageBuild(t.Context(), &sent, build.ImageBuildOptions{
		Tags: []string{reference}, Remove: true, ForceRemove: true, Dockerfile: "Dockerfile",
	})
	must(t, err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	must(t, err)
	if bytes.Contains(said, []byte("errorDetail")) {
		t.Fatalf("cannot build %s: %s", reference, said)
	}
}

// inspect is a container that must be there.
func (l *lab) inspect(t testing.TB, name string) container.InspectResponse {
	t.Helper()
	in, err := l.docker.ContainerInspect(t.Context(), name)
	must(t, err)
	return in
}

// log is all that a container printed.
func (l *lab) log(t testing.TB, name string) string {
	t.Helper()
	stream, err := l.docker.ContainerLogs(t.Context(), name, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	must(t, err)
	defer stream.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, stream)
	must(t, err)
	return out.String()
}

// exec runs a command in a container and returns what it printed and its exit status.
func (l *lab) exec(t testing.TB, name string, command ...string) (string, int) {
	t.Helper()
	made, err := l.docker.ContainerExecCreate(t.Context(), name, container.ExecOptions{
		Cmd: command, AttachStdout: true, AttachStderr: true,
	})
	must(t, err)
	attached, err := l.docker.ContainerExecAttach(t.Context(), made.ID, container.ExecAttachOptions{})
	must(t, err)
	defer attached.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, attached.Reader)
	must(t, err)
	ran, err := l.docker.ContainerExecInspect(t.Context(), made.ID)
	must(t, err)
	return strings.TrimSpace(out.String()), ran.ExitCode
}

// until waits for something that must come to be so.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wipe removes everything whose name begins with a prefix, ours or not.
func (l *lab) wipe(prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs []error
	containers, err := l.docker.ContainerList(ctx, container.ListOptions{All: true})
	errs = append(errs, err)
	for _, c := range containers {
		if strings.HasPrefix(c.Names[0], "/"+prefix) {
			if c.State == container.StatePaused {
				errs = append(errs, l.docker.ContainerUnpause(ctx, c.ID))
			}
			errs = append(errs, l.docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
		}
	}
	networks, err := l.docker.NetworkList(ctx, network.ListOptions{})
	errs = append(errs, err)
	// One that is the configuration of another goes after it.
	slices.SortFunc(networks, func(a, b network.Summary) int { return cmp.Compare(b.ConfigFrom.Network, a.ConfigFrom.Network) })
	for _, n := range networks {
		if strings.HasPrefix(n.Name, prefix) {
			errs = append(errs, l.docker.NetworkRemove(ctx, n.ID))
		}
	}
	volumes, err := l.docker.VolumeList(ctx, volume.ListOptions{})
	errs = append(errs, err)
	for _, v := range volumes.Volumes {
		if strings.HasPrefix(v.Name, prefix) {
			errs = append(errs, l.docker.VolumeRemove(ctx, v.Name, true))
		}
	}
	images, err := l.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", prefix+"*"))})
	errs = append(errs, err)
	for _, i := range images {
		for _, tag := range i.RepoTags {
			_, err := l.docker.ImageRemove(ctx, tag, image.RemoveOptions{Force: true})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// run makes and starts a container that isn't the program's.
func (l *lab) run(t testing.TB, name string, config container.Config, host container.HostConfig) string {
	t.Helper()
	made, err := l.docker.ContainerCreate(t.Context(), &config, &host, nil, nil, name)
	must(t, err)
	must(t, l.docker.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	return made.ID
}

// remove removes a container by force.
func (l *lab) remove(t testing.TB, name string) {
	t.Helper()
	must(t, l.docker.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}))
}

func networkOf(in container.InspectResponse, name string) *network.EndpointSettings {
	return cmp.Or(in.NetworkSettings.Networks[name], &network.EndpointSettings{})
}
