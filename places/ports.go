package places

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"spaces/reconcile"
)

// portTimeout bounds one try of a port of this host: whatever answers, answers at once.
const portTimeout = time.Second

// hangUpTimeout is for how long a connection that was taken is watched: the engine's
// relays take each, and end it at once where nothing in the space does.
const hangUpTimeout = 200 * time.Millisecond

// hostAddresses are this host's own but for loopback and what needs a zone.
func hostAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot tell this host's addresses: %w", err)
	}
	var out []netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() {
			continue
		}
		out = append(out, p.Addr().Unmap())
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

// lookAtPorts tries each published port at the address it is published on, and at all
// others of this host.
func (o *Observer) lookAtPorts(ctx context.Context, publish map[string]string, host []netip.Addr) map[string]reconcile.PortEvidence {
	out := map[string]reconcile.PortEvidence{}
	for port, bindings := range publish {
		_, protocol, _ := strings.Cut(port, "/")
		asked := strings.Split(bindings, ",")
		for _, binding := range asked {
			out[reconcile.PortKey(port, binding)] = o.lookAtPort(ctx, protocol, binding, asked, host)
		}
	}
	return out
}

func (o *Observer) lookAtPort(ctx context.Context, protocol, binding string, asked []string, host []netip.Addr) reconcile.PortEvidence {
	at, err := netip.ParseAddrPort(binding)
	if err != nil {
		return reconcile.PortEvidence{Err: fmt.Sprintf("%s is no address and port", binding)}
	}
	answers := func(to netip.AddrPort) bool { return dials(ctx, to, true) }
	taken := func(to netip.AddrPort) bool { return dials(ctx, to, false) }
	if protocol == "udp" {
		bound, err := o.bound(protocol, at.Port())
		if err != nil {
			return reconcile.PortEvidence{Err: "the kernel's sockets can't be listed: " + err.Error()}
		}
		answers = func(to netip.AddrPort) bool {
			return slices.ContainsFunc(bound, func(a netip.Addr) bool { return a == to.Addr() || a.IsUnspecified() })
		}
		taken = answers
	}
	var e reconcile.PortEvidence
	others := slices.Concat([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, host)
	if at.Addr().IsUnspecified() {
		e.Answers = answers(netip.AddrPortFrom(others[0], at.Port()))
		return e
	}
	e.Answers = answers(at)
	for _, a := range others {
		to := netip.AddrPortFrom(a, at.Port())
		if !slices.Contains(asked, to.String()) && taken(to) {
			e.Elsewhere = append(e.Elsewhere, to.String())
		}
	}
	return e
}

// dials tells whether something takes a connection at an address of this host, and, if
// asked, whether it keeps it or says something on it.
func dials(ctx context.Context, to netip.AddrPort, kept bool) bool {
	ctx, cancel := context.WithTimeout(ctx, portTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, tcp, to.String())
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	if !kept {
		return true
	}
	if conn.SetReadDeadline(time.Now().Add(hangUpTimeout)) != nil {
		return false
	}
	n, err := conn.Read(make([]byte, 1))
	return n > 0 || errors.Is(err, os.ErrDeadlineExceeded)
}

// bound are the addresses of this host at which a port is held: what takes datagrams
// can't be told from what drops them by sending some.
func (o *Observer) bound(protocol string, port uint16) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, name := range []string{protocol, protocol + "6"} {
		text, err := os.ReadFile(filepath.Join(o.proc, "self", "net", name))
		if err != nil {
			return nil, bare(err)
		}
		for line := range strings.Lines(string(text)) {
			if a, ok := socketAddress(line); ok && a.Port() == port {
				out = append(out, a.Addr())
			}
		}
	}
	return out, nil
}

// socketAddress reads the local address of a line of /proc/net/udp (proc_pid_net(5)):
// words of the machine's byte order, in hex.
func socketAddress(line string) (netip.AddrPort, bool) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return netip.AddrPort{}, false
	}
	spelt, hexPort, ok := strings.Cut(f[1], ":")
	words, err := hex.DecodeString(spelt)
	port, bad := strconv.ParseUint(hexPort, 16, 16)
	if !ok || err != nil || bad != nil || len(words)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(words); i += 4 {
		binary.NativeEndian.PutUint32(words[i:], binary.BigEndian.Uint32(words[i:]))
	}
	a, ok := netip.AddrFromSlice(words)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), ok
}
