package places

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
)

// provers is how many spaces are looked at at once. Each has a container of its own for
// that time.
const provers = 8

// EvidenceOptions say whose spaces to look at, and whose program looks.
type EvidenceOptions struct {
	// Project and Store are whose objects are ours.
	Project string
	Store   string
	Host    Host
	// Actual is what the proofs were made from.
	Actual reconcile.Actual
}

// Evidence gathers what there is to see of each space that runs, in the order of the
// proofs. Of its processes it asks the kernel; inside its networks it runs a probe, a
// container that is removed before Evidence returns, and by the engine itself should
// this process be killed. Whoever calls it holds the project's lock: any other probe of
// the project was left behind, and goes.
//
// What could not be seen of a space is said in its evidence. An error is of the engine,
// for which IsTransient may be true, or an *InputError of this program, which can't be
// run in a container.
func (e *Engine) Evidence(ctx context.Context, proofs []reconcile.Proof, o EvidenceOptions) ([]reconcile.Evidence, error) {
	p := &prober{
		Applier: e.Applier(ApplierOptions{Actual: o.Actual, Project: o.Project, Store: o.Store, Host: o.Host}),
		observe: e.Observer(),
	}
	if err := p.removeLeft(ctx); err != nil {
		return nil, err
	}
	out := make([]reconcile.Evidence, len(proofs))
	if !slices.ContainsFunc(proofs, asked) {
		return out, nil
	}
	var err error
	if p.host, err = hostAddresses(); err != nil {
		return nil, err
	}
	if p.gateways, err = p.readGateways(ctx); err != nil {
		return nil, err
	}
	if p.image, err = p.readyImage(ctx); err != nil {
		return nil, err
	}
	listener, err := listenOnHost()
	if err != nil {
		return nil, err
	}
	defer listener.close()
	p.listener = listener
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(provers)
	for i, proof := range proofs {
		if !asked(proof) {
			continue
		}
		group.Go(func() (err error) {
			out[i], err = p.prove(ctx, proof)
			return err
		})
	}
	return out, group.Wait()
}

// asked is true for a space that there is something to see of.
func asked(p reconcile.Proof) bool { return p.Runs() && !p.Unasked }

// prover gathers the evidence of spaces, one lot of them.
type prober struct {
	*Applier
	observe  *Observer
	image    string // the probe's, by id
	host     []netip.Addr
	gateways map[string][]string // by network
	listener *hostListener
}

func (p *prober) prove(ctx context.Context, proof reconcile.Proof) (reconcile.Evidence, error) {
	e := reconcile.Evidence{}
	now, err := p.inspect(ctx, proof.ID)
	switch {
	case err != nil:
		return e, err
	case now == nil || !now.State.Running:
		e.Unread, e.NoProbe = "it ended while it was looked at", "it ended while it was looked at"
		return e, nil
	}
	if err := p.observe.lookAtKernel(proof, now.State.Pid, &e); err != nil {
		e.Unread = err.Error()
	}
	e.Ports = p.observe.lookAtPorts(ctx, proof.Container.Publish, p.host)
	for name := range proof.Container.Networks {
		e.Gateways = append(e.Gateways, p.gateways[name]...)
	}
	slices.Sort(e.Gateways)
	for _, a := range p.host {
		// One of the engine's own bridges is a gateway, and may be this network's.
		if !slices.Contains(e.Gateways, a.String()) {
			e.HostAddresses = append(e.HostAddresses, a.String())
		}
	}
	answer, err := p.ask(ctx, proof, p.request(proof, e))
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case err != nil:
		e.NoProbe = err.Error()
	default:
		e.Network = answer
	}
	return e, nil
}

func (p *prober) request(proof reconcile.Proof, e reconcile.Evidence) reconcile.ProbeRequest {
	r := reconcile.ProbeRequest{Names: []string{proof.Alias}, Nonce: p.listener.nonce, Port: p.listener.port}
	if proof.Proxy != "" {
		r.Dial = []string{proof.Proxy}
	}
	if proof.Open {
		return r // it may reach anything, so that there is nothing to try
	}
	r.NoName = reconcile.NoName
	r.Connect = slices.Concat(e.Gateways, e.HostAddresses)
	r.Routes = []string{reconcile.OutsideIPv4, reconcile.OutsideIPv6, reconcile.MetadataIP}
	return r
}

// readGateways are those of all networks, by name. It is only where to look: what
// answers there is for the probe to tell.
func (p *prober) readGateways(ctx context.Context) (map[string][]string, error) {
	call, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := p.docker.NetworkList(call, network.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list networks: %w", err)
	}
	out := map[string][]string{}
	for _, n := range all {
		for _, c := range n.IPAM.Config {
			text, _, _ := strings.Cut(c.Gateway, "/")
			if g, err := netip.ParseAddr(text); err == nil {
				out[n.Name] = append(out[n.Name], g.String())
			}
		}
	}
	return out, nil
}

// hostListener listens on all addresses of this host, so that a probe that gets to it
// has reached the host. It says a word that nobody else knows, and takes nothing.
type hostListener struct {
	listener net.Listener
	port     int
	nonce    string
}

// greetTimeout bounds a greeting: whoever connects may not read.
const greetTimeout = 5 * time.Second

func listenOnHost() (*hostListener, error) {
	word := make([]byte, 16)
	if _, err := rand.Read(word); err != nil {
		return nil, fmt.Errorf("cannot make a random word: %w", err)
	}
	l, err := net.Listen(tcp, ":0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen on this host, to see whether spaces reach it: %w", err)
	}
	h := &hostListener{listener: l, port: l.Addr().(*net.TCPAddr).Port, nonce: hex.EncodeToString(word)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(greetTimeout))
			_, _ = conn.Write([]byte(h.nonce + "\n"))
			_ = conn.Close()
		}
	}()
	return h, nil
}

func (h *hostListener) close() { _ = h.listener.Close() }
