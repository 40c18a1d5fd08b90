package places

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"spaces/reconcile"
)

const (
	// probeTimeout bounds the whole of Open: a socket that accepts and stays silent is no
	// engine.
	probeTimeout = 10 * time.Second
	// readTimeout bounds one read of an engine. A loaded engine may take seconds to look
	// at a single container.
	readTimeout = 60 * time.Second
	// idleConnections are kept for the next call. Go's default of two makes most of many
	// concurrent calls dial anew.
	idleConnections = 16
	// oldestAPI is that of Docker 20.10, the oldest release this is tested with.
	oldestAPI = "1.41"

	scheme        = "unix://"
	maxSocketPath = 107 // bytes: sun_path less its final NUL, unix(7)
)

// OpenOptions say what of an engine to overlook.
type OpenOptions struct {
	// AllowRootful accepts an engine that runs as root: someone accepted
	// endpoint-not-rootless in the files, with a reason.
	AllowRootful bool
	// Ahead begins to list the engine's containers while the engine is still asked what it
	// is: with hundreds, either takes it as long. The next Inspect, which should come at
	// once, takes that list for its own.
	Ahead bool
	// timeout replaces probeTimeout in tests.
	timeout time.Duration
}

// Engine is a Docker engine that passed the checks of Open. It is safe for concurrent
// use.
type Engine struct {
	docker   *client.Client
	reads    *http.Client // for engineReader
	endpoint string
	features reconcile.Engine
	defaults defaults
	ahead    atomic.Pointer[containerList] // nil without one, and when it was taken
}

// Open connects to the engine at an endpoint, "unix:///….sock", and checks what it is.
// The context bounds the call, which takes ten seconds at most.
//
// A missing or forbidden socket, what doesn't answer as an engine, and an engine that
// isn't rootless are an *EndpointError that holds a *reconcile.Refusal
// (endpoint-not-rootless, engine-unsupported) and tells the cause apart.
func Open(ctx context.Context, endpoint string, o OpenOptions) (*Engine, error) {
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	limit := o.timeout
	if limit == 0 {
		limit = probeTimeout
	}
	probe, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := checkSocket(probe, endpoint, path); err != nil {
		return nil, err
	}
	docker, err := dial(endpoint)
	if err != nil {
		return nil, fmt.Errorf("cannot use endpoint %s: %w", endpoint, err)
	}
	e := &Engine{docker: docker, reads: newReadClient(path), endpoint: endpoint}
	ping, err := docker.Ping(probe)
	if err == nil {
		// Or the client would ask once more before its first request.
		docker.NegotiateAPIVersionPing(ping)
		if o.Ahead {
			e.ahead.Store(startList(ctx, engineReader{e.docker, e.reads}))
		}
		err = e.check(probe, o)
	} else {
		err = e.noEngine(probe, err)
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// Features are what the engine can do and what it is called.
func (e *Engine) Features() reconcile.Engine { return e.features }

// Close lets go of idle connections. The engine stays usable.
func (e *Engine) Close() error {
	if list := e.ahead.Swap(nil); list != nil {
		list.cancel()
	}
	e.reads.CloseIdleConnections()
	return e.docker.Close()
}

// dial makes the client, which connects when it is first used. Nothing of the
// environment is read.
func dial(endpoint string) (*client.Client, error) {
	return client.NewClientWithOpts(
		client.WithHTTPClient(&http.Client{Transport: newTransport(), CheckRedirect: client.CheckRedirect}),
		client.WithHost(endpoint), // sets how the transport dials
		client.WithAPIVersionNegotiation(),
	)
}

func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns:        idleConnections,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     30 * time.Second,
		// No limit on connections in use: waits and event streams hold theirs.
	}
}

func socketPath(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, scheme)
	switch {
	case !ok, !strings.HasPrefix(path, "/"), strings.ContainsFunc(path, isSpace):
		return "", refuse(CauseNotEngine, endpoint, nil, reconcile.Refusal{
			Code: reconcile.CodeNotRootless,
			Text: fmt.Sprintf("%q is not the endpoint of an engine on this machine", endpoint),
			Fix:  `name the engine's unix socket: endpoint = "unix:///run/user/1000/docker.sock"`,
		})
	case len(path) > maxSocketPath:
		return "", refuse(CauseNotEngine, endpoint, nil, reconcile.Refusal{
			Code: reconcile.CodeNotRootless,
			Text: fmt.Sprintf("the path of %s has %d bytes; a socket's has %d at most", endpoint, len(path), maxSocketPath),
			Fix:  "have the engine listen on a shorter path",
		})
	}
	return path, nil
}

func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// checkSocket tells a missing, forbidden or wrong file before anything is sent to it.
// The client would make one text of all three.
func checkSocket(ctx context.Context, endpoint, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return denied(endpoint, err)
	case err != nil:
		return missing(endpoint, err)
	case info.Mode().Type() != fs.ModeSocket:
		return refuse(CauseNotEngine, endpoint, nil, reconcile.Refusal{
			Code: reconcile.CodeNotRootless,
			Text: fmt.Sprintf("%s is not a socket", path),
			Fix:  "name the socket that the engine listens on; `docker context inspect` shows the one Docker uses",
		})
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, fs.ErrPermission):
		return denied(endpoint, err)
	case errors.Is(err, syscall.EPROTOTYPE):
		return refuse(CauseNotEngine, endpoint, err, notEngine(endpoint, "it takes no streams"))
	}
	return unanswered(ctx, endpoint, err, missing(endpoint, err))
}

// check asks the engine what it is and fills in what it can do.
func (e *Engine) check(ctx context.Context, o OpenOptions) error {
	// Both take the engine some time: it asks its parts.
	type answer struct {
		info system.Info
		err  error
	}
	told := make(chan answer, 1)
	go func() {
		info, err := e.docker.Info(ctx)
		told <- answer{info, err}
	}()
	version, err := e.docker.ServerVersion(ctx)
	asked := <-told
	if err != nil {
		return e.unasked(ctx, err)
	}
	if err := checkVersion(e.endpoint, version); err != nil {
		return err
	}
	if asked.err != nil {
		return e.unasked(ctx, asked.err)
	}
	info := asked.info
	rootless := isRootless(info)
	if !rootless && !o.AllowRootful {
		return refuse(CauseRootful, e.endpoint, nil, reconcile.Refusal{
			Code: reconcile.CodeNotRootless,
			Text: fmt.Sprintf("the engine at %s runs as root: whatever leaves one of its containers is root on this machine", e.endpoint),
			Fix: "install a rootless engine (dockerd-rootless-setuptool.sh install) and name its socket, " +
				"or accept it in the files: accept \"endpoint-not-rootless\" { reason = \"…\" }",
		})
	}
	e.features = features(e.endpoint, version, info)
	e.defaults = engineDefaults(version, info)
	return nil
}

// engineComponent is how Docker calls itself among the components of its version.
// Podman's is "Podman Engine".
const engineComponent = "Engine"

// checkVersion refuses what isn't a Docker engine of a release that is known.
func checkVersion(endpoint string, v types.Version) error {
	if len(v.Components) == 0 && v.APIVersion == "" {
		return refuse(CauseNotEngine, endpoint, nil, notEngine(endpoint, "its version names neither a component nor an API"))
	}
	var names []string
	for _, c := range v.Components {
		names = append(names, c.Name)
	}
	unsupported := func(format string, args ...any) error {
		return refuse(CauseUnsupported, endpoint, nil, reconcile.Refusal{
			Code: reconcile.CodeEngineUnsupported,
			Text: fmt.Sprintf(format, args...),
			Fix:  "use a rootless Docker engine, 20.10 or later",
		})
	}
	switch {
	case !slices.Contains(names, engineComponent):
		return unsupported("what answers at %s is not Docker's engine but %s, which takes the same requests and quietly holds less of them",
			endpoint, orUnnamed(names))
	case v.Os != "" && v.Os != "linux":
		return unsupported("the engine at %s runs containers of %s, not Linux", endpoint, v.Os)
	case versions.LessThan(v.APIVersion, oldestAPI):
		return unsupported("the engine at %s speaks API %s; %s is the oldest supported", endpoint, v.APIVersion, oldestAPI)
	}
	return nil
}

func orUnnamed(names []string) string {
	if len(names) == 0 {
		return "one that doesn't name itself"
	}
	return strconv.Quote(names[0])
}

// isRootless looks for the very element that a rootless engine reports: a longer one,
// or one that only contains it, says something else.
func isRootless(info system.Info) bool {
	return slices.Contains(info.SecurityOptions, "name=rootless")
}

func features(endpoint string, v types.Version, info system.Info) reconcile.Engine {
	release := parseRelease(info.ServerVersion)
	rootless := isRootless(info)
	return reconcile.Engine{
		Name:                "Docker " + info.ServerVersion,
		Endpoint:            endpoint,
		Rootless:            rootless,
		Remaps:              slices.Contains(info.SecurityOptions, "name=userns"),
		CPUs:                info.NCPU,
		Unenforced:          unenforced(info),
		InternalReachesHost: release.before(28, 0, 0) && (!rootless || sharesHostNetwork(v)),
		IsolatedGateway:     !release.before(28, 0, 0),
		InternalDNSLeaks:    release.before(25, 0, 5),
		Lacks:               lacks(release, engineDefaults(v, info)),
		StorageDir:          info.DockerRootDir,
	}
}

// sharesHostNetwork is true for a rootless engine whose RootlessKit was told to stay in
// the host's network namespace. Any other has its bridges, and so the gateways of its
// internal networks, in a namespace of its own, where nothing of the host listens.
func sharesHostNetwork(v types.Version) bool {
	return slices.ContainsFunc(v.Components, func(c types.ComponentVersion) bool {
		return c.Name == "rootlesskit" && c.Details["NetworkDriver"] == "host"
	})
}

// unenforced are the limits that the engine would take and silently drop: a rootless
// one without delegated cgroup controllers, or any on a kernel without them
// (https://github.com/moby/moby/issues/42910).
func unenforced(info system.Info) []string {
	var out []string
	for _, l := range []struct {
		name string
		held bool
	}{
		{limitCPUs, info.CPUCfsPeriod && info.CPUCfsQuota},
		{limitMemory, info.MemoryLimit},
		{limitPIDs, info.PidsLimit},
		{limitSwap, info.SwapLimit},
	} {
		if !l.held {
			out = append(out, l.name)
		}
	}
	return out
}

// The limits of reconcile.Engine.Unenforced.
const (
	limitCPUs   = "cpus"
	limitMemory = "memory"
	limitPIDs   = "pids"
	limitSwap   = "swap"
)

// release is a version of Docker's, as far as it orders releases.
type release struct {
	numbers    [3]int
	prerelease bool
}

// parseRelease reads what distributions make of a version: "20.10.24+dfsg1",
// "28.0.0-rc.1", "23.0". What can't be read is taken for the oldest there is, about
// which the most is known to be amiss.
func parseRelease(s string) release {
	var r release
	s, _, _ = strings.Cut(s, "+")
	s, pre, _ := strings.Cut(s, "-")
	for i, part := range strings.SplitN(s, ".", len(r.numbers)) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return release{}
		}
		r.numbers[i] = n
	}
	for _, p := range []string{"rc", "beta", "alpha", "dev"} {
		r.prerelease = r.prerelease || strings.HasPrefix(pre, p)
	}
	return r
}

// before is true for releases older than the one given, its own candidates among them.
func (r release) before(major, minor, patch int) bool {
	switch c := slices.Compare(r.numbers[:], []int{major, minor, patch}); {
	case c == 0:
		return r.prerelease
	default:
		return c < 0
	}
}

// Cause tells apart why an endpoint is no use.
type Cause string

// The causes of an EndpointError. The first two may pass without anyone acting, as when
// the engine is still starting.
const (
	CauseMissing     Cause = "missing"     // no socket is there, or nobody listens
	CauseSilent      Cause = "silent"      // it takes connections and doesn't answer
	CauseDenied      Cause = "denied"      // we may not connect
	CauseNotEngine   Cause = "not-engine"  // it answers, but not as an engine does
	CauseRootful     Cause = "rootful"     // an engine that runs as root
	CauseUnsupported Cause = "unsupported" // an engine that isn't Docker's, or too old
)

// EndpointError is why an endpoint can't be used. errors.As finds the
// *reconcile.Refusal in it, and what was at the bottom of it.
type EndpointError struct {
	Cause    Cause
	Endpoint string
	refusal  *reconcile.Refusal
	err      error
}

// Error is the refusal's.
func (e *EndpointError) Error() string { return e.refusal.Error() }

// Unwrap gives the refusal, and the underlying error if there is one.
func (e *EndpointError) Unwrap() []error {
	if e.err == nil {
		return []error{e.refusal}
	}
	return []error{e.refusal, e.err}
}

// MayCome is true where waiting may help: an engine that is starting has no socket
// yet, or doesn't answer on it.
func (e *EndpointError) MayCome() bool {
	return e.Cause == CauseMissing || e.Cause == CauseSilent
}

func refuse(cause Cause, endpoint string, err error, r reconcile.Refusal) *EndpointError {
	return &EndpointError{Cause: cause, Endpoint: endpoint, refusal: &r, err: err}
}

func missing(endpoint string, err error) error {
	return refuse(CauseMissing, endpoint, err, reconcile.Refusal{
		Code: reconcile.CodeNotRootless,
		Text: fmt.Sprintf("no engine listens at %s: %v", endpoint, rootCause(err)),
		Fix:  "start the rootless engine (systemctl --user start docker), or correct the endpoint",
	})
}

func denied(endpoint string, err error) error {
	return refuse(CauseDenied, endpoint, err, reconcile.Refusal{
		Code: reconcile.CodeNotRootless,
		Text: fmt.Sprintf("%s may not be used by uid %d: permission denied", endpoint, os.Geteuid()),
		Fix:  "run as the user whose rootless engine it is, or name your own engine's socket",
	})
}

func notEngine(endpoint, why string) reconcile.Refusal {
	return reconcile.Refusal{
		Code: reconcile.CodeNotRootless,
		Text: fmt.Sprintf("what answers at %s is not a container engine: %s", endpoint, why),
		Fix:  "correct the endpoint; `docker -H " + endpoint + " version` shows what is there",
	}
}

// unanswered tells an endpoint that doesn't answer in time, and a caller that gave up,
// from what otherwise says.
func unanswered(ctx context.Context, endpoint string, err, otherwise error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("cannot ask the engine at %s: %w", endpoint, context.Canceled)
	case ctx.Err() != nil, isTimeout(err), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return refuse(CauseSilent, endpoint, err, reconcile.Refusal{
			Code: reconcile.CodeNotRootless,
			Text: fmt.Sprintf("what listens at %s does not answer", endpoint),
			Fix:  "see whether the engine is still starting or overloaded, or correct the endpoint",
		})
	}
	return otherwise
}

// noEngine is why what took a connection and answered isn't an engine.
func (e *Engine) noEngine(ctx context.Context, err error) error {
	return unanswered(ctx, e.endpoint, err, refuse(CauseNotEngine, e.endpoint, err, notEngine(e.endpoint, plain(err))))
}

// unasked is why what answered as an engine at first doesn't say what it is. One that
// can't just now may when it is asked again: that is no refusal.
func (e *Engine) unasked(ctx context.Context, err error) error {
	if cerrdefs.IsInternal(err) || cerrdefs.IsUnavailable(err) {
		return fmt.Errorf("cannot ask the engine at %s what it is: %w", e.endpoint, err)
	}
	return e.noEngine(ctx, err)
}

// plain cuts an error down to a line for a reader: what answered may have sent a page.
func plain(err error) string {
	const most = 120
	text := strings.Join(strings.Fields(rootCause(err).Error()), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// rootCause is the innermost error.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// IsTransient is true for errors of an engine that went away or didn't answer in time:
// the same thing may work when tried again. A refusal is none, nor an interruption by
// the caller, nor an engine's own answer that it can't.
func IsTransient(err error) bool {
	var refusal *reconcile.Refusal
	var unreachable *unreachableError
	switch {
	case err == nil, errors.As(err, &refusal), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &unreachable):
		return true
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err), client.IsErrConnectionFailed(err), cerrdefs.IsUnavailable(err):
		return true
	}
	return slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
	}, func(target error) bool { return errors.Is(err, target) })
}

// lacks are what the files can ask for, or every space gets, and an engine doesn't have.
func lacks(r release, d defaults) []string {
	var out []string
	if r.before(25, 0, 0) {
		out = append(out, reconcile.LacksStartInterval) // API 1.44
	}
	if d.seccomp != seccompDefault {
		out = append(out, reconcile.LacksSeccomp)
	}
	return out
}
