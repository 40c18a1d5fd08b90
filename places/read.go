package places

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errhttp"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
)

// reader is what of an engine an Observer has: nothing that writes.
type reader interface {
	ImageInspect(ctx context.Context, ref string, o ...client.ImageInspectOption) (image.InspectResponse, error)
	NetworkList(context.Context, network.ListOptions) ([]network.Inspect, error)
	VolumeList(context.Context, volume.ListOptions) (volume.ListResponse, error)
	// get is for containers, of which there are many. The client decodes them whole,
	// and then inspecting a thousand takes three times the memory and half again the time.
	get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error)
}

// engineReader reads an engine by its client, and by connections of its own that do
// without the client's tracing.
type engineReader struct {
	*client.Client
	http *http.Client
}

func newReadClient(socket string) *http.Client {
	transport := newTransport()
	transport.DisableCompression = true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
}

// get sends a GET and returns the body of the answer, or the engine's own error, for
// which the tests of errdefs hold as they do for the client's.
func (r engineReader) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	address := url.URL{
		Scheme: "http", Host: client.DummyHost,
		Path: "/v" + r.ClientVersion() + path, RawQuery: query.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return nil, &unreachableError{err}
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	return nil, engineError(answer)
}

// engineError is what an engine says went wrong.
func engineError(answer *http.Response) error {
	const most = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(answer.Body, most))
	var said struct{ Message string }
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = answer.Status
	}
	kind := errhttp.ToNative(answer.StatusCode)
	if kind == nil {
		kind = cerrdefs.ErrUnknown
	}
	return fmt.Errorf("%w: the engine says: %s", kind, strings.TrimSpace(said.Message))
}

// unreachableError is that an engine could not be asked.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }
