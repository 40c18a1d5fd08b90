package places

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"

	"spaces/reconcile"
)

// fakeEngine answers the requests of Open.
type fakeEngine struct {
	version types.Version
	info    system.Info
}

func docker(release, api string, security ...string) fakeEngine {
	return fakeEngine{
		version: types.Version{
			Version: release, APIVersion: api, Os: "linux",
			Components: []types.ComponentVersion{{Name: "Engine", Version: release}, {Name: "containerd"}},
		},
		info: system.Info{
			ID: "X", ServerVersion: release, SecurityOptions: security, NCPU: 4, DockerRootDir: "/data",
			MemoryLimit: true, SwapLimit: true, PidsLimit: true, CPUCfsPeriod: true, CPUCfsQuota: true,
		},
	}
}

func (f fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", f.version.APIVersion)
	switch {
	case strings.HasSuffix(r.URL.Path, "/_ping"):
		fmt.Fprint(w, "OK")
	case strings.HasSuffix(r.URL.Path, "/version"):
		_ = json.NewEncoder(w).Encode(f.version)
	case strings.HasSuffix(r.URL.Path, "/info"):
		_ = json.NewEncoder(w).Encode(f.info)
	default:
		http.NotFound(w, r)
	}
}

// shortDir is a temporary directory whose sockets' paths are short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "se")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	path := filepath.Join(shortDir(t), "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, "unix://" + path
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	l, endpoint := listen(t)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return endpoint
}

// talk serves every connection with a function.
func talk(t *testing.T, with func(net.Conn)) string {
	t.Helper()
	l, endpoint := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				with(c)
			}()
		}
	}()
	return endpoint
}

func TestOpenTellsCausesApart(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(dir, "orphan.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: orphan, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	datagram := filepath.Join(dir, "datagram.sock")
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagram, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	answer := func(status int, kind, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
	}
	podman := docker("4.6.0", "1.41", "name=rootless")
	podman.version.Components[0].Name = "Podman Engine"
	nameless := docker("17.05", "1.41", "name=rootless")
	nameless.version.Components = nil
	windows := docker("28.0.0", "1.48", "name=rootless")
	windows.version.Os = "windows"

	for name, c := range map[string]struct {
		endpoint string
		cause    Cause
		code     string
		says     string
	}{
		"another scheme":      {"tcp://127.0.0.1:2375", CauseNotEngine, reconcile.CodeNotRootless, "not the endpoint"},
		"a relative path":     {"unix://docker.sock", CauseNotEngine, reconcile.CodeNotRootless, "not the endpoint"},
		"nothing":             {"", CauseNotEngine, reconcile.CodeNotRootless, "not the endpoint"},
		"a path too long":     {"unix:///" + strings.Repeat("a", 107), CauseNotEngine, reconcile.CodeNotRootless, "108 bytes"},
		"no socket":           {"unix://" + filepath.Join(dir, "none.sock"), CauseMissing, reconcile.CodeNotRootless, "no engine listens"},
		"nobody listens":      {"unix://" + orphan, CauseMissing, reconcile.CodeNotRootless, "no engine listens"},
		"a file":              {"unix://" + file, CauseNotEngine, reconcile.CodeNotRootless, "not a socket"},
		"a directory":         {"unix://" + dir, CauseNotEngine, reconcile.CodeNotRootless, "not a socket"},
		"datagrams":           {"unix://" + datagram, CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"silence":             {talk(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), CauseSilent, reconcile.CodeNotRootless, "does not answer"},
		"a closed door":       {talk(t, func(net.Conn) {}), CauseSilent, reconcile.CodeNotRootless, "does not answer"},
		"garbage":             {talk(t, func(c net.Conn) { fmt.Fprint(c, "\x00\x01\x02 garbage\r\n\r\n") }), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"another protocol":    {talk(t, func(c net.Conn) { fmt.Fprint(c, "220 mail ESMTP\r\n") }), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"a page":              {answer(200, "text/html", "<html>hello</html>"), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"a page, not found":   {answer(404, "text/html", "<html>"+strings.Repeat("no ", 999)+"</html>"), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"other JSON":          {answer(200, "application/json", `{"hello":"world"}`), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"a list":              {answer(200, "application/json", `[]`), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"an error":            {answer(500, "application/json", `{"message":"broken"}`), CauseNotEngine, reconcile.CodeNotRootless, "500"},
		"a redirection":       {serve(t, http.RedirectHandler("http://example.com/", http.StatusMovedPermanently)), CauseNotEngine, reconcile.CodeNotRootless, "not a container engine"},
		"rootful":             {serve(t, docker("28.0.0", "1.48", "name=seccomp,profile=builtin")), CauseRootful, reconcile.CodeNotRootless, "runs as root"},
		"almost rootless":     {serve(t, docker("28.0.0", "1.48", "name=rootless,foo")), CauseRootful, reconcile.CodeNotRootless, "runs as root"},
		"called rootless":     {serve(t, docker("28.0.0", "1.48", "name=seccomp,profile=name=rootless")), CauseRootful, reconcile.CodeNotRootless, "runs as root"},
		"Podman":              {serve(t, podman), CauseUnsupported, reconcile.CodeEngineUnsupported, "Podman Engine"},
		"without a component": {serve(t, nameless), CauseUnsupported, reconcile.CodeEngineUnsupported, "doesn't name itself"},
		"Windows":             {serve(t, windows), CauseUnsupported, reconcile.CodeEngineUnsupported, "windows"},
		"too old":             {serve(t, docker("19.03", "1.40", "name=rootless")), CauseUnsupported, reconcile.CodeEngineUnsupported, "1.40"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), c.endpoint, OpenOptions{timeout: time.Second})
			var endpoint *EndpointError
			var refusal *reconcile.Refusal
			if !errors.As(err, &endpoint) || !errors.As(err, &refusal) {
				t.Fatalf("got %v", err)
			}
			if endpoint.Cause != c.cause || refusal.Code != c.code || !strings.Contains(refusal.Text, c.says) {
				t.Errorf("got %s, %s: %s", endpoint.Cause, refusal.Code, refusal.Text)
			}
			if refusal.Fix == "" || len(refusal.Text) > 300 || strings.Contains(refusal.Text, "\n") {
				t.Errorf("not fit for a reader: %q, %q", refusal.Text, refusal.Fix)
			}
			if IsTransient(err) {
				t.Error("a refusal must not pass for something that passes by itself")
			}
		})
	}
}

// An engine that can't say what it is just now is no refusal: it may when asked again.
func TestOpenEngineInTrouble(t *testing.T) {
	for _, path := range []string{"/info", "/version"} {
		well := docker("28.0.0", "1.48", "name=rootless")
		endpoint := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, path) {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, `{"message":"out of descriptors"}`)
				return
			}
			well.ServeHTTP(w, r)
		}))
		_, err := Open(t.Context(), endpoint, OpenOptions{Ahead: true})
		var refusal *reconcile.Refusal
		if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "out of descriptors") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestOpenAllowsRootfulOnly(t *testing.T) {
	rootful := docker("20.10.24+dfsg1", "1.41")
	e, err := Open(t.Context(), serve(t, rootful), OpenOptions{AllowRootful: true})
	if err != nil {
		t.Fatal(err)
	}
	if f := e.Features(); f.Rootless || !f.InternalReachesHost || f.IsolatedGateway || !f.InternalDNSLeaks || f.Name != "Docker 20.10.24+dfsg1" {
		t.Errorf("got %+v", f)
	}
	podman := docker("4.6.0", "1.41")
	podman.version.Components[0].Name = "Podman Engine"
	if _, err := Open(t.Context(), serve(t, podman), OpenOptions{AllowRootful: true}); err == nil {
		t.Error("Podman must stay refused")
	}
}

func TestOpenForbidden(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may connect to every socket; the test of a rootless engine runs as a user.
		err := denied("unix:///x.sock", syscall.EACCES)
		var refusal *reconcile.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, "permission denied") {
			t.Errorf("got %v", err)
		}
		return
	}
	_, endpoint := listen(t)
	if err := os.Chmod(strings.TrimPrefix(endpoint, scheme), 0); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), endpoint, OpenOptions{timeout: time.Second})
	var e *EndpointError
	if !errors.As(err, &e) || e.Cause != CauseDenied {
		t.Errorf("got %v", err)
	}
}

func TestOpenInterrupted(t *testing.T) {
	endpoint := talk(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := Open(ctx, endpoint, OpenOptions{})
	var refusal *reconcile.Refusal
	if !errors.Is(err, context.Canceled) || errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

func TestNothingOfDockersEnvironmentIsRead(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere.sock")
	t.Setenv("DOCKER_API_VERSION", "1.24")
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	t.Setenv("DOCKER_CERT_PATH", "/nowhere")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	e, err := Open(t.Context(), serve(t, docker("28.5.2", "1.51", "name=rootless")), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := e.docker.ClientVersion(); v != "1.51" {
		t.Errorf("speaks API %s", v)
	}
}

func TestFeatures(t *testing.T) {
	withNetwork := func(driver string) fakeEngine {
		f := docker("20.10.24", "1.41", "name=rootless")
		f.version.Components = append(f.version.Components,
			types.ComponentVersion{Name: "rootlesskit", Details: map[string]string{"NetworkDriver": driver}})
		return f
	}
	for name, c := range map[string]struct {
		engine                     fakeEngine
		reaches, isolated, leaking bool
	}{
		"20.10 rootless":          {docker("20.10.24+dfsg1", "1.41", "name=rootless"), false, false, true},
		"slirp4netns":             {withNetwork("slirp4netns"), false, false, true},
		"in the host's namespace": {withNetwork("host"), true, false, true},
		"25.0.4 rootful":          {docker("25.0.4", "1.44"), true, false, true},
		"25.0.5 rootful":          {docker("25.0.5", "1.44"), true, false, false},
		"27.5.1 rootless":         {docker("27.5.1", "1.47", "name=rootless"), false, false, false},
		"28 candidate rootful":    {docker("28.0.0-rc.1", "1.48"), true, false, false},
		"28 rootful":              {docker("28.0.0", "1.48"), false, true, false},
		"29 rootless":             {docker("29.1.0", "1.52", "name=rootless"), false, true, false},
		"a version of no sort":    {docker("library-import", "1.41"), true, false, true},
	} {
		f := features("unix:///x.sock", c.engine.version, c.engine.info)
		if f.InternalReachesHost != c.reaches || f.IsolatedGateway != c.isolated || f.InternalDNSLeaks != c.leaking {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestUnenforced(t *testing.T) {
	for want, info := range map[string]system.Info{
		"cpus memory pids swap": {},
		"":                      {CPUCfsPeriod: true, CPUCfsQuota: true, MemoryLimit: true, PidsLimit: true, SwapLimit: true},
		"swap":                  {CPUCfsPeriod: true, CPUCfsQuota: true, MemoryLimit: true, PidsLimit: true},
		"cpus swap":             {CPUCfsPeriod: true, MemoryLimit: true, PidsLimit: true},
	} {
		if got := strings.Join(unenforced(info), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReleaseOrder(t *testing.T) {
	ordered := []string{
		"dev", "19.03.15", "20.10.24+dfsg1", "23.0", "24.0.0-beta.2", "24.0.0", "25.0.4", "25.0.5",
		"28.0.0-rc.1", "28.0.0", "28.0.1+azure-1", "28.5.2-1~deb12", "29",
	}
	for i, older := range ordered {
		for _, newer := range ordered[i+1:] {
			n := parseRelease(newer)
			if !parseRelease(older).before(n.numbers[0], n.numbers[1], n.numbers[2]) && !n.prerelease {
				t.Errorf("%s isn't before %s", older, newer)
			}
		}
		o := parseRelease(older)
		if !o.prerelease && o.before(o.numbers[0], o.numbers[1], o.numbers[2]) {
			t.Errorf("%s is before itself", older)
		}
	}
}

func TestIsTransient(t *testing.T) {
	endpoint := serve(t, docker("28.5.2", "1.51", "name=rootless"))
	e, err := Open(t.Context(), endpoint, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, refused := e.docker.ContainerInspect(t.Context(), "none")
	if IsTransient(refused) || refused == nil {
		t.Errorf("an engine's own answer: %v", refused)
	}
	gone := docker("28.5.2", "1.51", "name=rootless")
	server := &httptest.Server{Config: &http.Server{Handler: gone}}
	l, endpoint := listen(t)
	server.Listener = l
	server.Start()
	if e, err = Open(t.Context(), endpoint, OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := e.Observer().Inspect(t.Context(), Query{Project: "p"}); !IsTransient(err) {
		t.Errorf("an engine that went away: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Observer().Inspect(canceled, Query{Project: "p"}); IsTransient(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption: %v", err)
	}
	for _, err := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, context.DeadlineExceeded} {
		if !IsTransient(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{nil, os.ErrNotExist, errors.New("no space left")} {
		if IsTransient(err) {
			t.Errorf("%v", err)
		}
	}
}

func TestSeccompOfTheEngine(t *testing.T) {
	for option, want := range map[string]string{
		"name=seccomp,profile=default":     seccompDefault,
		"name=seccomp,profile=builtin":     seccompDefault,
		"name=seccomp,profile=unconfined":  seccompUnconfined,
		"name=seccomp,profile=/etc/p.json": "/etc/p.json",
		"name=apparmor":                    seccompUnconfined,
	} {
		if got := engineDefaults(types.Version{}, system.Info{SecurityOptions: []string{option}}).seccomp; got != want {
			t.Errorf("%s: got %s, want %s", option, got, want)
		}
	}
	for profile, lacking := range map[string]bool{"default": false, "unconfined": true} {
		info := system.Info{SecurityOptions: []string{"name=seccomp,profile=" + profile}}
		if got := features("", types.Version{}, info).Lacks; slices.Contains(got, reconcile.LacksSeccomp) != lacking {
			t.Errorf("%s: lacks %v", profile, got)
		}
	}
	if !slices.Contains([]string{"host", "private"}, engineDefaults(types.Version{}, system.Info{}).cgroupns) {
		t.Error("no default")
	}
}
