// Package probe is what runs for a moment in a space's network namespace, and looks
// around: which names resolve, what answers, where the kernel would send to. It decides
// nothing: reconcile judges what it found.
//
// Nothing is sent to an address that isn't this host's or the engine's. For a route, a
// UDP socket is connected, which asks the kernel and sends nothing.
package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"spaces/reconcile"
)

const (
	// Timeout bounds all that a probe does.
	Timeout = 30 * time.Second
	// tryTimeout bounds one try. What is dropped never answers.
	tryTimeout = 2 * time.Second
	// maxRequest bounds what is read.
	maxRequest = 1 << 20
	resolvConf = "/etc/resolv.conf"
)

// Serve reads one request, tries what it says and writes the answer. It gives up when
// what asked goes away: when in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	reader := bufio.NewReader(io.LimitReader(in, maxRequest))
	asked := make(chan reconcile.ProbeRequest, 1)
	failed := make(chan error, 1)
	go func() {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			failed <- fmt.Errorf("cannot read what to look at: %w", err)
			return
		}
		var r reconcile.ProbeRequest
		if err := json.Unmarshal(line, &r); err != nil {
			failed <- fmt.Errorf("cannot understand what to look at: %w", err)
			return
		}
		asked <- r
		if _, err := reader.ReadByte(); err != nil {
			cancel()
		}
	}()
	var request reconcile.ProbeRequest
	select {
	case request = <-asked:
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	answer := look(ctx, request)
	if ctx.Err() != nil {
		return fmt.Errorf("nobody waits for the answer: %w", ctx.Err())
	}
	return json.NewEncoder(out).Encode(answer)
}

// look tries everything at once.
func look(ctx context.Context, r reconcile.ProbeRequest) reconcile.ProbeAnswer {
	a := reconcile.ProbeAnswer{
		Names: map[string][]string{}, Connect: map[string]reconcile.Reach{},
		Routes: map[string]string{}, Dial: map[string]reconcile.Reach{},
	}
	var err error
	if a.Addresses, err = addresses(); err != nil {
		a.Err = err.Error()
		return a
	}
	if a.Nameservers, err = nameservers(); err != nil {
		a.Err = err.Error()
		return a
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	try := func(do func(ctx context.Context) (keep func())) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, tryTimeout)
			defer cancel()
			keep := do(ctx)
			mu.Lock()
			defer mu.Unlock()
			keep()
		})
	}
	resolver := &net.Resolver{PreferGo: true}
	for _, name := range r.Names {
		try(func(ctx context.Context) func() {
			found := resolve(ctx, resolver, name)
			return func() { a.Names[name] = found }
		})
	}
	if r.NoName != "" {
		try(func(ctx context.Context) func() {
			said := forwarded(ctx, resolver, r.NoName)
			return func() { a.Forwarded = said }
		})
	}
	for _, to := range r.Connect {
		try(func(ctx context.Context) func() {
			reach := connect(ctx, net.JoinHostPort(to, strconv.Itoa(r.Port)), r.Nonce)
			return func() { a.Connect[to] = reach }
		})
	}
	for _, to := range r.Dial {
		try(func(ctx context.Context) func() {
			reach := connect(ctx, to, "")
			return func() { a.Dial[to] = reach }
		})
	}
	for _, to := range r.Routes {
		a.Routes[to] = route(to)
	}
	all.Wait()
	return a
}

// addresses are those of all interfaces but loopback.
func addresses() ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list interfaces: %w", err)
	}
	var out []string
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		own, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("cannot list the addresses of %s: %w", i.Name, err)
		}
		for _, a := range own {
			out = append(out, a.String())
		}
	}
	slices.Sort(out)
	return out, nil
}

func nameservers() ([]string, error) {
	text, err := os.ReadFile(resolvConf)
	if err != nil {
		return nil, fmt.Errorf("cannot read which resolver it has: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			out = append(out, f[1])
		}
	}
	return out, nil
}

// lookup asks the resolver for exactly this name, without the search list.
func lookup(ctx context.Context, r *net.Resolver, name string) ([]netip.Addr, error) {
	return r.LookupNetIP(ctx, "ip4", name+".")
}

func resolve(ctx context.Context, r *net.Resolver, name string) []string {
	found, err := lookup(ctx, r, name)
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range found {
		out = append(out, a.Unmap().String())
	}
	slices.Sort(out)
	return out
}

// forwarded is what comes back for a name that nobody has: that there is none is an
// answer as well, which the engine's own resolver never gives by itself. One that fails or
// refuses at once has asked nobody; one that stays silent may wait for whom it asked.
func forwarded(ctx context.Context, r *net.Resolver, name string) string {
	found, err := lookup(ctx, r, name)
	var dns *net.DNSError
	switch {
	case err == nil:
		return fmt.Sprintf("it resolves to %v", found)
	case errors.As(err, &dns) && dns.IsNotFound:
		return "a resolver outside says that there is no such name"
	case ctx.Err() != nil, errors.As(err, &dns) && dns.Timeout():
		return reconcile.ForwardedSilent
	}
	return ""
}

// connect tries an address, and listens for what this host's listener says.
func connect(ctx context.Context, to, nonce string) reconcile.Reach {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", to)
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return reconcile.ReachRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL),
		errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EINVAL):
		return reconcile.ReachUnreachable
	default:
		return reconcile.ReachSilent
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	if nonce == "" {
		return reconcile.ReachOpen
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(deadline)
	if line, _ := bufio.NewReader(conn).ReadString('\n'); strings.TrimSpace(line) == nonce {
		return reconcile.ReachOurs
	}
	return reconcile.ReachOpen
}

// route is the address that the kernel would send from, empty without a way.
func route(to string) string {
	const port = "9" // discard; nothing is sent
	conn, err := net.Dial("udp", net.JoinHostPort(to, port))
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return conn.LocalAddr().String()
	}
	return host
}
