//go:build engine

package testscripts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRootfulPull: an image that is only referred to, and one that a build starts from,
// are pulled where the engine doesn't have them, as the plan says, and the next plan is
// empty. The registry listens on the loopback of the engine's own network namespace.
func TestRootfulPull(t *testing.T) {
	l := openLab(t, rootful)
	p := newProject(t, l, "pull")
	r := newRegistry(t)
	address := r.serve(t, need(t, "SPACES_TEST_ROOTFUL_DIR"))
	reference := address + "/app@" + r.manifestDigest
	t.Cleanup(func() { must(t, l.wipe(address)) })
	must(t, os.Mkdir(filepath.Join(p.dir, "context"), 0o755))
	p.write(t, "context/Dockerfile", "FROM "+address+"/base:1\nENV BUILT=yes\n")
	p.write(t, "main.hcl", p.head()+fmt.Sprintf(`
image "app" {
  reference = %q
}

image "built" {
  build {
    context = "./context"
  }
}

network "inside" {
  egress = "none"
}

space "app" {
  image    = image.app
  networks = [network.inside]
}

space "built" {
  image    = image.built
  networks = [network.inside]
}
`, reference))
	planned := p.want(t, 0, "plan")
	for _, want := range []string{"pull image.app", "pull " + address + "/base:1", "(known after pull)", "reaches its registry"} {
		if !strings.Contains(planned.out, want) {
			t.Errorf("the plan doesn't say %q\n%s", want, planned)
		}
	}
	if r.asked() {
		t.Error("planning asked the registry")
	}
	p.apply(t)
	p.settled(t)
	if !r.asked() {
		t.Error("nobody asked the registry")
	}
}

// registry serves one image under every name and tag
// (https://distribution.github.io/distribution/spec/api/).
type registry struct {
	blobs          map[string][]byte
	manifest       []byte
	manifestDigest string
	requests       chan struct{}
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	program, err := payload()
	must(t, err)
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	must(t, archive.WriteHeader(&tar.Header{Name: "payload", Mode: 0o755, Size: int64(len(program))}))
	_, err = archive.Write(program)
	must(t, err)
	must(t, archive.Close())
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Cmd": []string{"/payload"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}},
	})
	must(t, err)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err = z.Write(layer.Bytes())
	must(t, err)
	must(t, z.Close())
	r := &registry{
		blobs:    map[string][]byte{digest(config): config, digest(zipped.Bytes()): zipped.Bytes()},
		requests: make(chan struct{}, 1),
	}
	blob := func(kind string, content []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(content), "digest": digest(content)}
	}
	r.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": blob("application/vnd.docker.container.image.v1+json", config),
		"layers": []any{blob("application/vnd.docker.image.rootfs.diff.tar.gzip", zipped.Bytes())},
	})
	must(t, err)
	r.manifestDigest = digest(r.manifest)
	return r
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	select {
	case r.requests <- struct{}{}:
	default:
	}
	base, last := filepath.Split(q.URL.Path)
	switch {
	case strings.HasSuffix(base, "/manifests/"):
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", r.manifestDigest)
		_, _ = w.Write(r.manifest)
	case strings.HasSuffix(base, "/blobs/") && r.blobs[last] != nil:
		_, _ = w.Write(r.blobs[last])
	case q.URL.Path == "/v2/":
	default:
		http.NotFound(w, q)
	}
}

// asked tells whether anything was requested since it was last asked.
func (r *registry) asked() bool {
	select {
	case <-r.requests:
		return true
	default:
		return false
	}
}

// serve listens where the engine finds its own loopback, and returns the address.
func (r *registry) serve(t *testing.T, engineDir string) string {
	t.Helper()
	listener := make(chan net.Listener, 1)
	failed := make(chan error, 1)
	go func() {
		// The thread stays in the other namespace and so must end with this goroutine: it
		// isn't unlocked.
		runtime.LockOSThread()
		l, err := listenIn(engineDir)
		listener <- l
		failed <- err
	}()
	l := <-listener
	must(t, <-failed)
	server := &http.Server{Handler: r}
	go server.Serve(l) //nolint:errcheck // it ends when it is closed
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

func listenIn(engineDir string) (net.Listener, error) {
	pid, err := os.ReadFile(filepath.Join(engineDir, "init.pid"))
	if err != nil {
		return nil, err
	}
	namespace, err := os.Open(filepath.Join("/proc", strings.TrimSpace(string(pid)), "ns/net"))
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return net.Listen("tcp", "127.0.0.1:0")
}
