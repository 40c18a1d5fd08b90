// Package faultproxy stands between a client and an engine's socket, records every
// call, and lets chosen ones go wrong: before the engine hears of them, or after it
// has done them and the client hasn't heard. It is for tests, and answers what an
// engine would: streams, and connections that are taken over, pass through.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Call is one request.
type Call struct {
	Method string
	// Path is without the API's version.
	Path string
	// Query is as sent.
	Query string
}

// String is "METHOD /path".
func (c Call) String() string { return c.Method + " " + c.Path }

// Writes is true for what may change something.
func (c Call) Writes() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// Action is what goes wrong.
type Action string

// The actions. Cut closes the client's connection without an answer; Error answers 500;
// Delay answers late.
const (
	Cut   Action = "cut"
	Error Action = "500"
	Delay Action = "delay"
)

// When is whether the engine gets the call.
type When string

// The two ends of a call.
const (
	Before When = "before" // the engine never hears of it
	After  When = "after"  // the engine has done it
)

// Fault is one thing that goes wrong.
type Fault struct {
	// Match selects calls; nil is all.
	Match func(Call) bool
	// Nth is which of those, from 1; 0 is each.
	Nth    int
	Action Action
	When   When
	// Delay is for the action of that name.
	Delay time.Duration
}

// Proxy is a running proxy.
type Proxy struct {
	// Endpoint is where it listens: "unix:///….sock".
	Endpoint string

	server *http.Server
	done   chan struct{}

	mu     sync.Mutex
	calls  []Call
	faults []*armed
}

type armed struct {
	Fault
	seen, hit int
}

// Start listens on a socket and forwards to an engine's; both are paths. The faults
// count calls from here on.
func Start(listen, engine string, faults ...Fault) (*Proxy, error) {
	if err := os.Remove(listen); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	listener, err := net.Listen("unix", listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	p := &Proxy{Endpoint: "unix://" + listen, done: make(chan struct{})}
	p.Arm(faults...)
	p.server = &http.Server{
		Handler:           p.handler(engine),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // cut connections are what this is for
	}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener) // ends with Close
	}()
	return p, nil
}

// Close ends it and all that goes through it.
func (p *Proxy) Close() error {
	err := p.server.Close()
	<-p.done
	return err
}

// Arm replaces the faults and begins to count for them.
func (p *Proxy) Arm(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
	for _, f := range faults {
		p.faults = append(p.faults, &armed{Fault: f})
	}
}

// Forget drops what was recorded.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// Calls are the calls so far, in the order in which they came.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// Hits is how many calls went wrong since the faults were armed.
func (p *Proxy) Hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, f := range p.faults {
		n += f.hit
	}
	return n
}

var version = regexp.MustCompile(`^/v[0-9.]+/`)

// meet records a call and returns the fault that it is to suffer, if any.
func (p *Proxy) meet(r *http.Request) (Fault, bool) {
	c := Call{Method: r.Method, Path: version.ReplaceAllString(r.URL.Path, "/"), Query: r.URL.RawQuery}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	for _, f := range p.faults {
		if f.Match != nil && !f.Match(c) {
			continue
		}
		if f.seen++; f.Nth == 0 || f.Nth == f.seen {
			f.hit++
			return f.Fault, true
		}
	}
	return Fault{}, false
}

type faultKey struct{}

var errAfter = errors.New("fault after the call")

func (p *Proxy) handler(engine string) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine"
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", engine)
			},
			MaxIdleConnsPerHost: 16,
			DisableCompression:  true,
		},
		FlushInterval: -1, // streams are read as they come
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			if _, faulty := r.Request.Context().Value(faultKey{}).(Fault); !faulty {
				return nil
			}
			// The engine is only done with a call once its answer is whole.
			_, err := io.Copy(io.Discard, r.Body)
			return errors.Join(errAfter, err)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if f, faulty := r.Context().Value(faultKey{}).(Fault); faulty && errors.Is(err, errAfter) {
				fail(w, f)
				return
			}
			// The engine itself didn't answer: neither do we.
			fail(w, Fault{Action: Cut})
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, faulty := p.meet(r)
		switch {
		case !faulty:
		case f.Action == Delay:
			wait(r.Context(), f.Delay)
		case f.When == Before:
			fail(w, f)
			return
		default:
			r = r.WithContext(context.WithValue(r.Context(), faultKey{}, f))
		}
		forward.ServeHTTP(w, r)
	})
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func fail(w http.ResponseWriter, f Fault) {
	if f.Action == Error {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"message":"injected fault"}`)
		return
	}
	panic(http.ErrAbortHandler) // closes the connection
}

// Parse reads a fault: "ACTION WHEN NTH METHOD REGEXP", as in "cut after 1 POST /start$"
// or "500 before 2 * .". NTH 0 is each call, and ACTION may be a delay, "delay=2s".
func Parse(s string) (Fault, error) {
	fields := strings.Fields(s)
	if len(fields) != 5 {
		return Fault{}, fmt.Errorf("cannot read fault %q: want ACTION WHEN NTH METHOD REGEXP", s)
	}
	f := Fault{When: When(fields[1])}
	action, delay, _ := strings.Cut(fields[0], "=")
	f.Action = Action(action)
	var err error
	switch f.Action {
	case Cut, Error:
	case Delay:
		if f.Delay, err = time.ParseDuration(delay); err != nil {
			return Fault{}, fmt.Errorf("cannot read fault %q: %w", s, err)
		}
	default:
		return Fault{}, fmt.Errorf("cannot read fault %q: no action %q", s, action)
	}
	if f.When != Before && f.When != After {
		return Fault{}, fmt.Errorf("cannot read fault %q: %q is neither before nor after", s, fields[1])
	}
	if _, err := fmt.Sscanf(fields[2], "%d", &f.Nth); err != nil {
		return Fault{}, fmt.Errorf("cannot read fault %q: %w", s, err)
	}
	path, err := regexp.Compile(fields[4])
	if err != nil {
		return Fault{}, fmt.Errorf("cannot read fault %q: %w", s, err)
	}
	f.Match = func(c Call) bool {
		return (fields[3] == "*" || fields[3] == c.Method) && path.MatchString(c.Path)
	}
	return f, nil
}
