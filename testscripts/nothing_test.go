package testscripts

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// startNothing makes "engine SOCKET" start a rootless engine that has nothing on it and
// refuses to be given anything: enough for what happens before the first step. Scripts
// that go further run with a real one.
func startNothing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: engine SOCKET")
	}
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	server := &http.Server{Handler: http.HandlerFunc(answerNothing)}
	go server.Serve(l)
	ts.Defer(func() { server.Close() })
}

func answerNothing(w http.ResponseWriter, r *http.Request) {
	path := regexp.MustCompile(`^/v1\.[0-9]+`).ReplaceAllString(r.URL.Path, "")
	w.Header().Set("Api-Version", "1.47")
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, v any) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	const ok = http.StatusOK
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		answer(http.StatusInternalServerError, map[string]string{"message": "nothing may be changed here: " + r.Method + " " + path})
	case path == "/_ping":
		answer(ok, "OK")
	case path == "/version":
		answer(ok, map[string]any{
			"Version": "28.0.0", "ApiVersion": "1.47", "MinAPIVersion": "1.24", "Os": "linux",
			"Components": []map[string]string{{"Name": "Engine", "Version": "28.0.0"}},
		})
	case path == "/info":
		answer(ok, map[string]any{
			"ServerVersion": "28.0.0", "NCPU": 4, "DockerRootDir": "/nowhere/data", "SecurityOptions": []string{"name=seccomp,profile=builtin", "name=rootless"},
			"MemoryLimit": true, "SwapLimit": true, "PidsLimit": true, "CpuCfsPeriod": true, "CpuCfsQuota": true,
		})
	case path == "/volumes":
		answer(ok, map[string]any{"Volumes": []any{}})
	case path == "/containers/json", path == "/images/json", path == "/networks":
		answer(ok, []any{})
	default:
		answer(http.StatusNotFound, map[string]string{"message": "no such thing"})
	}
}
