package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rig is an engine that counts, a proxy before it and a client.
type rig struct {
	*Proxy
	client *http.Client
	done   atomic.Int32
}

func newRig(t *testing.T) *rig {
	t.Helper()
	// A socket's path is short, and t.TempDir's may not be.
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{}
	engine := filepath.Join(dir, "e.sock")
	l, err := net.Listen("unix", engine)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.done.Add(1)
		io.WriteString(w, "done")
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	socket := filepath.Join(dir, "p.sock")
	if r.Proxy, err = Start(socket, engine); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	r.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return r
}

func (r *rig) post(path string) (int, error) {
	answer, err := r.client.Post("http://x"+path, "", nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault  string
		status [3]int // 0 for a cut connection
		done   int32
	}{
		{"500 before 2 POST /start$", [3]int{200, 500, 200}, 2},
		{"500 after 2 POST /start$", [3]int{200, 500, 200}, 3},
		{"cut before 1 POST /start$", [3]int{0, 200, 200}, 2},
		{"cut after 3 * .", [3]int{200, 200, 0}, 3},
		{"cut after 0 POST .", [3]int{0, 0, 0}, 3},
		{"500 before 1 GET .", [3]int{200, 200, 200}, 3},
		{"delay=1ms before 1 POST .", [3]int{200, 200, 200}, 3},
	} {
		r := newRig(t)
		f, err := Parse(c.fault)
		if err != nil {
			t.Fatal(err)
		}
		r.Arm(f)
		for i, want := range c.status {
			got, err := r.post("/v1.41/containers/x/start?t=1")
			if got != want || (err != nil) != (want == 0) {
				t.Errorf("%s: call %d: %d, %v, want %d", c.fault, i+1, got, err, want)
			}
		}
		if r.done.Load() != c.done {
			t.Errorf("%s: the engine did %d, want %d", c.fault, r.done.Load(), c.done)
		}
		if calls := r.Calls(); len(calls) != 3 || calls[0] != (Call{"POST", "/containers/x/start", "t=1"}) {
			t.Errorf("%s: recorded %v", c.fault, calls)
		}
	}
}

func TestDelay(t *testing.T) {
	r := newRig(t)
	r.Arm(Fault{Action: Delay, Delay: time.Hour, When: Before})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Do(q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if r.Hits() != 1 {
		t.Errorf("%d hits", r.Hits())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{"", "cut after 1 POST", "hang after 1 * .", "cut during 1 * .", "cut after x * .", "cut after 1 * [", "delay after 1 * ."} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), "cannot read fault") {
			t.Errorf("%q: %v", s, err)
		}
	}
}
