//go:build engine

package testscripts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// brief is a context for a call that takes no time unless something is wrong.
func brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// serve answers on a socket as something else than a rootless Docker engine would.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || others[args[0]] == nil {
		ts.Fatalf("usage: serve %s SOCKET", strings.Join(sortedKeys(others), "|"))
	}
	listener, err := net.Listen("unix", ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Defer(func() { listener.Close() })
	go others[args[0]](listener)
}

// others are what may be at an endpoint in place of an engine of ours.
var others = map[string]func(net.Listener){
	"garbage": func(l net.Listener) { greet(l, "\x00\x01 this is no HTTP\r\n\r\n") },
	"silent":  func(l net.Listener) { greet(l, "") },
	"html":    func(l net.Listener) { _ = http.Serve(l, http.HandlerFunc(page)) },
	"podman5": func(l net.Listener) { _ = http.Serve(l, http.HandlerFunc(podman5)) },
	"docker19": func(l net.Listener) {
		_ = http.Serve(l, answers(`{"ApiVersion":"1.40","Os":"linux","Version":"19.03.15","Components":[{"Name":"Engine","Version":"19.03.15"}]}`,
			`{"ServerVersion":"19.03.15","SecurityOptions":["name=rootless"]}`))
	},
	// Says something that only holds the word.
	"almost": func(l net.Listener) {
		_ = http.Serve(l, answers(`{"ApiVersion":"1.41","Os":"linux","Version":"20.10.24","Components":[{"Name":"Engine","Version":"20.10.24"}]}`,
			`{"ServerVersion":"20.10.24","SecurityOptions":["name=rootless-not","no-name=rootless"]}`))
	},
}

// greet says the same to everyone who connects, and waits for them to leave.
func greet(l net.Listener, greeting string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if greeting != "" {
				_, _ = bufio.NewReader(conn).ReadString('\n')
				_, _ = io.WriteString(conn, greeting)
				return
			}
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>It works!</body></html>\n")
}

// podman5 says what Podman 5.4.0 says: that it is rootless, in Docker's very words.
func podman5(w http.ResponseWriter, r *http.Request) {
	answers(`{"Platform":{"Name":"linux/amd64/fedora-41"},"Components":[`+
		`{"Name":"Podman Engine","Version":"5.4.0","Details":{"APIVersion":"5.4.0","MinAPIVersion":"4.0.0","Os":"linux"}},`+
		`{"Name":"Conmon","Version":"conmon version 2.1.12"},{"Name":"OCI Runtime (crun)","Version":"crun version 1.20"}],`+
		`"Version":"5.4.0","ApiVersion":"1.41","MinAPIVersion":"1.24","Os":"linux","Arch":"amd64"}`,
		`{"ServerVersion":"5.4.0","SecurityOptions":["name=seccomp,profile=default","name=rootless"],"MemoryLimit":true,`+
			`"SwapLimit":true,"PidsLimit":true,"CpuCfsPeriod":true,"CpuCfsQuota":true,"NCPU":8}`)(w, r)
}

func answers(version, info string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			_, _ = io.WriteString(w, "OK")
		case strings.HasSuffix(r.URL.Path, "/version"):
			_, _ = io.WriteString(w, version)
		case strings.HasSuffix(r.URL.Path, "/info"):
			_, _ = io.WriteString(w, info)
		default:
			http.Error(w, `{"message":"page not found"}`, http.StatusNotFound)
		}
	}
}

// faults is a running proxy that records the calls and lets some go wrong.
type faults struct {
	Endpoint string
	command  *exec.Cmd
	record   string
	once     sync.Once
}

// faultproxy is the proxy's program.
var faultproxy = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "faultproxy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "faultproxy")
	build := exec.Command("go", "build", "-o", path, "spaces/places/internal/faultproxy/faultproxy")
	// The user whose engine it is has no modules, and it needs none.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build the proxy: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// startFaults lets a proxy listen on a socket. A fault is faultproxy's: "cut after 1 POST /start$".
func (l *lab) startFaults(program, socket, record string, what ...string) (*faults, error) {
	p := &faults{Endpoint: "unix://" + socket, record: record}
	p.command = exec.Command(program, append([]string{"-listen", socket, "-engine", l.endpoint, "-record", record}, what...)...)
	p.command.Stderr = os.Stderr
	ready, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		p.stop()
		return nil, fmt.Errorf("the proxy doesn't come up: %w", err)
	}
	return p, nil
}

// stop ends it. It may be called again.
func (p *faults) stop() {
	p.once.Do(func() {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		_ = p.command.Wait()
	})
}

// calls are those so far: "POST /containers/create".
func (p *faults) calls() []string {
	b, err := os.ReadFile(p.record)
	if err != nil {
		return nil
	}
	whole := string(b[:strings.LastIndexByte(string(b), '\n')+1])
	return strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
}

// writing tells calls that may change something.
func writing(call string) bool {
	return !strings.HasPrefix(call, "GET ") && !strings.HasPrefix(call, "HEAD ")
}

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sp")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

type faultsKey struct{}

// proxies are those of a script, by what it calls their sockets.
type proxies struct {
	program string
	running map[string]*faults
}

func startProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: proxy SOCKET [FAULT...]")
	}
	socket := ts.MkAbs(args[0])
	of := ts.Value(faultsKey{}).(*proxies)
	p, err := labOf(ts).startFaults(of.program, socket, socket+".calls", args[1:]...)
	ts.Check(err)
	ts.Defer(p.stop)
	of.running[args[0]] = p
}

// awaitCall waits until a proxy has seen a call.
func awaitCall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaits SOCKET CALL")
	}
	p := ts.Value(faultsKey{}).(*proxies).running[args[0]]
	if p == nil {
		ts.Fatalf("no proxy listens on %s", args[0])
	}
	for limit := time.Now().Add(30 * time.Second); !slices.Contains(p.calls(), args[1]); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			ts.Fatalf("in vain waited for %s", args[1])
		}
	}
}

// printCalls ends a proxy and prints the calls that may have changed something.
func printCalls(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: calls SOCKET")
	}
	p := ts.Value(faultsKey{}).(*proxies).running[args[0]]
	if p == nil {
		ts.Fatalf("no proxy listens on %s", args[0])
	}
	p.stop()
	for _, c := range p.calls() {
		if writing(c) {
			fmt.Fprintln(ts.Stdout(), c)
		}
	}
}
