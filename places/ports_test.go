package places

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// listenLoopback does something with each connection to a port of loopback.
func listenLoopback(t *testing.T, with func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen(tcp, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			with(conn)
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

// A relay that takes a connection for a space that doesn't is no answer of the space's,
// and is there all the same.
func TestConnectionsThatEndAtOnceAreNoAnswer(t *testing.T) {
	kept := make(chan net.Conn, 8)
	for name, c := range map[string]struct {
		with    func(net.Conn)
		answers bool
	}{
		"ends": {func(c net.Conn) { _ = c.Close() }, false},
		"resets": {func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, false},
		"speaks": {func(c net.Conn) {
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}, true},
		"waits": {func(c net.Conn) { kept <- c }, true},
	} {
		at := listenLoopback(t, c.with)
		if got := dials(t.Context(), at, true); got != c.answers {
			t.Errorf("one that %s answers: %t", name, got)
		}
		if !dials(t.Context(), at, false) && name != "resets" {
			t.Errorf("one that %s isn't there", name)
		}
		e := (&Observer{}).lookAtPort(t.Context(), tcp, at.String(), []string{at.String()}, nil)
		if e.Answers != c.answers || e.Err != "" {
			t.Errorf("one that %s: %+v", name, e)
		}
	}
	for len(kept) > 0 {
		_ = (<-kept).SetDeadline(time.Time{})
	}
}
