//go:build engine

package testscripts

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// debounce is how long the program waits for quiet before it plans.
const debounce = 100 * time.Millisecond

// BenchmarkRootlessWatch is a save with 300 spaces that changes one of them: how long from
// the end of the debounce until the plan is printed, and how much the engine is asked for
// it.
func BenchmarkRootlessWatch(b *testing.B) {
	const n = 300
	p := benchProject(b, n)
	p.apply(b)
	p.settled(b)
	var asked atomic.Int64
	real, head := p.lab, p.head()
	p.lab = &lab{kind: p.kind, docker: p.docker, endpoint: counting(b, p.endpoint, &asked)}
	files := fmt.Sprintf(benchSpaces, p.payload(b), n)
	save := func(i int) {
		text := strings.Replace(files, "KEY = each.key }",
			fmt.Sprintf("KEY = each.key == \"k7\" ? \"%d\" : each.key }", i), 1)
		p.write(b, "main.hcl", p.head()+text)
	}
	w := p.program(b, "watch", "--plan-only", "--json")
	out, err := w.StdoutPipe()
	must(b, err)
	w.Stderr = os.Stderr
	must(b, w.Start())
	lines := bufio.NewReader(out)
	planned := func() (took float64) {
		for {
			line, err := lines.ReadBytes('\n')
			must(b, err)
			var e struct {
				Kind   string
				TookMS float64 `json:"took_ms"`
				Plan   struct{ Items []struct{ ID string } }
			}
			must(b, json.Unmarshal(line, &e))
			if e.Kind == "planned" {
				return e.TookMS
			}
		}
	}
	planned()
	var walls, tooks []time.Duration
	before, used := asked.Load(), cpuTime(b, w.Process.Pid)
	i := 0
	for b.Loop() {
		i++
		save(i)
		start := time.Now()
		took := planned()
		walls = append(walls, time.Since(start)-debounce)
		tooks = append(tooks, time.Duration(took*float64(time.Millisecond)))
	}
	b.ReportMetric(float64(asked.Load()-before)/float64(i), "requests/save")
	b.ReportMetric(float64((cpuTime(b, w.Process.Pid)-used).Milliseconds())/float64(i), "cpu-ms/save")
	b.ReportMetric(float64(middle(tooks).Microseconds())/1000, "plan-ms")
	b.ReportMetric(float64(middle(walls).Microseconds())/1000, "printed-ms")
	b.ReportMetric(highWater(w.Process.Pid), "peak-MB")
	must(b, w.Process.Signal(syscall.SIGINT))
	must(b, w.Wait())
	// So many containers go faster as the program removes them.
	p.lab = real
	p.write(b, "main.hcl", head+files)
	p.want(b, 0, "destroy", "--auto-approve")
}

// cpuTime is the processors' time that a process has had.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third on, proc_pid_stat(5)
	user, err := strconv.Atoi(fields[11])
	must(b, err)
	system, err := strconv.Atoi(fields[12])
	must(b, err)
	const tick = 10 * time.Millisecond // USER_HZ
	return time.Duration(user+system) * tick
}

// counting stands between a program and an engine, and counts the requests.
func counting(b *testing.B, endpoint string, asked *atomic.Int64) string {
	b.Helper()
	engine := strings.TrimPrefix(endpoint, "unix://")
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.FlushInterval = -1 // events come one by one
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", engine)
	}}
	dir, err := os.MkdirTemp("/tmp", "sp")
	must(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "e.sock"))
	must(b, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { server.Close() })
	return "unix://" + l.Addr().String()
}
