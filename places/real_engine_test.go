//go:build engine

package places

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"spaces/reconcile"
)

// Tests in files with the tag "engine" need engines of testscripts/engines.sh. Those
// named TestRootless… run as the rootless engine's user, the others as root:
//
//	go test -tags engine -run Rootless -exec "$PWD/testscripts/engines.sh exec-test DIR" ./places
//	go test -tags engine -run Rootful ./places

// lab is a real engine with a project of its own on it, all of which goes when the
// test ends.
type lab struct {
	*Engine
	t       testing.TB
	project string
	store   string
}

func rootlessLab(t testing.TB) *lab { return newLab(t, "SPACES_TEST_ROOTLESS", OpenOptions{}) }

func rootfulLab(t testing.TB) *lab {
	return newLab(t, "SPACES_TEST_ROOTFUL", OpenOptions{AllowRootful: true})
}

func newLab(t testing.TB, variable string, o OpenOptions) *lab {
	t.Helper()
	endpoint := os.Getenv(variable)
	if endpoint == "" {
		t.Fatalf("%s doesn't name an engine; testscripts/engines.sh start prints what to set it to", variable)
	}
	e, err := Open(t.Context(), endpoint, o)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	l := &lab{Engine: e, t: t, project: "obs" + hex.EncodeToString(random)}
	l.store = "/store/" + l.project
	t.Cleanup(l.clear)
	return l
}

// name is a name on the engine that only this test uses.
func (l *lab) name(s string) string { return l.project + "-" + s }

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// clear removes everything with the project's prefix, and its images.
func (l *lab) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	containers, err := l.docker.ContainerList(ctx, container.ListOptions{All: true})
	l.check(err)
	for _, c := range containers {
		if strings.HasPrefix(c.Names[0], "/"+l.project) {
			l.check(l.docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
		}
	}
	all, err := l.list(ctx)
	l.check(err)
	for _, n := range all.networks {
		if strings.HasPrefix(n.Name, l.project) {
			l.check(l.docker.NetworkRemove(ctx, n.ID))
		}
	}
	for _, v := range all.volumes {
		if strings.HasPrefix(v.Name, l.project) {
			l.check(l.docker.VolumeRemove(ctx, v.Name, false))
		}
	}
	images, err := l.docker.ImageList(ctx, image.ListOptions{All: true})
	l.check(err)
	for _, i := range images {
		for _, tag := range i.RepoTags {
			if strings.HasPrefix(tag, l.project) {
				_, err := l.docker.ImageRemove(ctx, tag, image.RemoveOptions{})
				l.check(err)
			}
		}
	}
	l.check(l.Close())
}

func (l *lab) list(ctx context.Context) (listing, error) { return l.Observer().list(ctx) }

func (l *lab) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Errorf("cannot clean up: %v", err)
	}
}

// image makes an image around a program that waits for ever, with the Dockerfile
// instructions given, and returns its reference.
func (l *lab) image(name string, instructions ...string) string {
	l.t.Helper()
	ref := l.name(name) + ":1"
	lines := append([]string{"FROM scratch", "COPY . /", `ENTRYPOINT ["/wait"]`}, instructions...)
	answer, err := l.docker.ImageBuild(l.t.Context(), buildContext(l.t, strings.Join(lines, "\n")), build.ImageBuildOptions{
		Tags: []string{ref}, Remove: true, ForceRemove: true, Dockerfile: "Dockerfile",
	})
	l.must(err)
	said, err := io.ReadAll(answer.Body)
	l.must(err)
	l.must(answer.Body.Close())
	if bytes.Contains(said, []byte("errorDetail")) {
		l.t.Fatalf("cannot build %s: %s", ref, said)
	}
	return ref
}

// buildContext holds a Dockerfile, a few directories and /wait.
func buildContext(t testing.TB, dockerfile string) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range []string{"tmp/", "etc/", "run/"} {
		if err := w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"wait": waiter(t), "Dockerfile": []byte(dockerfile)} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// waiter is an executable made here, as the user that tests run as has no compiler.
func waiter(t testing.TB) []byte {
	t.Helper()
	var machine elf.Machine
	var code []byte
	switch runtime.GOARCH {
	case "amd64":
		machine = elf.EM_X86_64
		code = []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7} // pause; again
	case "arm64":
		machine = elf.EM_AARCH64
		for _, instruction := range []uint32{
			0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, // x0…x3 = 0: no descriptors, for ever
			0xd2800928, 0xd4000001, 0x17fffffa, // ppoll; again
		} {
			code = binary.LittleEndian.AppendUint32(code, instruction)
		}
	default:
		t.Fatalf("no program for %s", runtime.GOARCH)
	}
	const base, headers = 0x400000, 64 + 56
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: base + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	size := uint64(headers + len(code))
	p := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base,
		Filesz: size, Memsz: size, Align: 0x1000,
	}
	var out bytes.Buffer
	for _, part := range []any{h, p, code} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func (l *lab) labels(kind reconcile.Kind) map[string]string {
	return map[string]string{
		reconcile.LabelProject: l.project,
		reconcile.LabelStore:   l.store,
		reconcile.LabelKind:    string(kind),
	}
}

// network makes a network of ours, internal.
func (l *lab) network(name string) string {
	l.t.Helper()
	n := reconcile.Network{Name: l.name(name), Driver: "bridge", Internal: true, Labels: l.labels(reconcile.KindNetwork)}
	_, err := l.docker.NetworkCreate(l.t.Context(), n.Name, networkOptions(n))
	l.must(err)
	return n.Name
}

// create makes a container the way the applier does: one network, then the others.
func (l *lab) create(c reconcile.Container) string {
	l.t.Helper()
	config, host, err := createConfig(c)
	l.must(err)
	networking := &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
	if e, ok := c.Networks[c.NetworkMode]; ok && !isPredefined(c.NetworkMode) {
		networking.EndpointsConfig[c.NetworkMode] = endpointSettings(e)
	}
	made, err := l.docker.ContainerCreate(l.t.Context(), config, host, networking, nil, c.Name)
	l.must(err)
	for name, e := range c.Networks {
		if name != c.NetworkMode {
			l.must(l.docker.NetworkConnect(l.t.Context(), name, made.ID, endpointSettings(e)))
		}
	}
	return made.ID
}

func (l *lab) inspect(images ...string) reconcile.Actual {
	l.t.Helper()
	a, err := l.Observer().Inspect(l.t.Context(), Query{Project: l.project, Store: l.store, Images: images})
	l.must(err)
	return a
}
