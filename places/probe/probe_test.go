package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spaces/reconcile"
)

// ask runs a probe and keeps its input open until it has answered.
func ask(t *testing.T, request string) (reconcile.ProbeAnswer, error) {
	t.Helper()
	in, input := io.Pipe()
	defer input.Close()
	go func() { _, _ = io.WriteString(input, request+"\n") }()
	var out bytes.Buffer
	if err := Serve(t.Context(), in, &out); err != nil {
		return reconcile.ProbeAnswer{}, err
	}
	var a reconcile.ProbeAnswer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return a, nil
}

// greeter says a word to whoever connects, on a port of this host's loopback.
func greeter(t *testing.T, word string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, word+"\n")
			_ = conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestProbeTellsWhatItReaches(t *testing.T) {
	port := greeter(t, "secret")
	for nonce, want := range map[string]reconcile.Reach{"secret": reconcile.ReachOurs, "other": reconcile.ReachOpen} {
		r := reconcile.ProbeRequest{Connect: []string{"127.0.0.1", "127.0.0.2"}, Port: port, Nonce: nonce, Dial: []string{"127.0.0.1:" + strconv.Itoa(port)}, Routes: []string{"127.0.0.9"}}
		request, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ask(t, string(request))
		if err != nil {
			t.Fatal(err)
		}
		if a.Connect["127.0.0.1"] != want || a.Connect["127.0.0.2"] != reconcile.ReachRefused || a.Dial[r.Dial[0]] != reconcile.ReachOpen {
			t.Errorf("connections: %v, %v", a.Connect, a.Dial)
		}
		if a.Routes["127.0.0.9"] == "" {
			t.Errorf("there is no way to loopback: %v", a.Routes)
		}
		if !slices.IsSorted(a.Addresses) || slices.ContainsFunc(a.Addresses, func(s string) bool { return strings.HasPrefix(s, "127.") }) {
			t.Errorf("addresses: %v", a.Addresses)
		}
	}
}

// resolverWith asks one on loopback, that answers each query with a code of its own, or
// not at all.
func resolverWith(t *testing.T, code int) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if n < 12 || code < 0 {
				continue
			}
			query[2], query[3] = query[2]|0x80, byte(code)
			_, _ = server.WriteTo(query[:n], from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// Only a resolver that fails or refuses has sent nothing on.
func TestProbeTellsWhetherANameWasSentOn(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		says string
	}{
		"silent":  {-1, reconcile.ForwardedSilent},
		"failed":  {2, ""},
		"no name": {3, "no such name"},
		"refused": {5, ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		got := forwarded(ctx, resolverWith(t, c.code), reconcile.NoName)
		cancel()
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestProbeRefusesWhatItCannotRead(t *testing.T) {
	for _, request := range []string{"", "{", "[]", `{"Port": "x"}`} {
		if _, err := ask(t, request); err == nil || !strings.Contains(err.Error(), "cannot understand") {
			t.Errorf("%q: %v", request, err)
		}
	}
}

// A probe whose verification was killed ends, and answers nobody. It is kept at it by a
// listener that says nothing.
func TestProbeEndsWithWhoAsked(t *testing.T) {
	var out bytes.Buffer
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	request := fmt.Sprintf(`{"Connect": ["127.0.0.1"], "Nonce": "x", "Port": %d}`, silent.Addr().(*net.TCPAddr).Port)
	if err := Serve(t.Context(), strings.NewReader(request+"\n"), &out); err == nil || out.Len() > 0 {
		t.Errorf("it answered %q to nobody: %v", out.String(), err)
	}
	if err := Serve(t.Context(), strings.NewReader(""), &out); err == nil {
		t.Error("it answered what nobody asked")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	never, input := io.Pipe()
	defer input.Close()
	if err := Serve(ctx, never, &out); err == nil {
		t.Error("it waits for a request after its time")
	}
}
