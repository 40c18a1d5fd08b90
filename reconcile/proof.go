package reconcile

import (
	"maps"
	"slices"
	"strconv"

	"spaces/schema"
)

// Proof is what the kernel must show of one space, for the plan to be true of it.
type Proof struct {
	Subject string // the address
	// Space is what the files say; the zero Space where they don't have it.
	Space Space
	// Container is as it was asked for, fit to the engine and with what its image brings.
	Container Container
	// ID is the container that is to show it, empty where none does; State is what it is
	// doing.
	ID    string
	State State
	// Engine says what is known of the engine: what it doesn't hold is accepted.
	Engine Engine
	// Unasked: the files don't have it, and so nothing of it can be as they say.
	Unasked bool
	// Subnets are those of the space's networks as they are, by network name.
	Subnets map[string]string
	// Open: one of its networks leads out, so that any address may be reached.
	Open bool
	// Accepts are the refusals that a person accepted in the files.
	Accepts []string
	// Alias is the name that the space answers to on its networks.
	Alias string
	// Proxy is the host and port of the proxy that it uses, empty without one.
	Proxy string
	// Labels are those that a probe of it carries.
	Labels map[string]string
}

// Runs is true where there is a process to look at.
func (p Proof) Runs() bool { return p.ID != "" && running(p.State) && p.State != StateRestarting }

// Prove says what each space must show, by the name of its container: all that the
// files run, and what of ours runs and isn't in them.
func Prove(d Desired, h HostFacts, a Actual) []Proof {
	w := newWorld(d, h, a, Options{})
	w.makeImages() // or an image's part would be compared that is about to change
	var out []Proof
	unasked := maps.Clone(w.containers)
	for _, s := range w.wantSpaces {
		got, exists := w.containers[s.Container.Name]
		if !exists && (s.Kind != KindSpace || s.Lifecycle != schema.LifecycleService) {
			continue // this release doesn't run it
		}
		delete(unasked, s.Container.Name)
		out = append(out, w.prove(s, got))
	}
	for _, name := range sortedKeys(unasked) {
		if c := unasked[name]; running(c.State) && c.Kind() != KindProbe {
			out = append(out, Proof{Subject: w.subject(*c), Container: c.Container, ID: c.ID, State: c.State, Unasked: true})
		}
	}
	return out
}

func (w *world) prove(s Space, got *ObservedContainer) Proof {
	p := Proof{
		Subject: s.Address.String(), Space: s, Engine: w.actual.Engine,
		Container: w.onHost(s), Subnets: map[string]string{}, Alias: s.Address.FullName(),
		Labels: probeLabels(s.Container.Labels),
	}
	if got != nil {
		p.ID, p.State = got.ID, got.State
		label, _ := parseApplied(w.host.Digest, got.Labels[LabelApplied])
		p.Container, _ = w.expected(p.Container, got, label)
	}
	for name := range p.Container.Networks {
		if n, exists := w.networks[name]; exists {
			p.Subnets[name] = n.Subnet
		}
		n, ours := w.wantNetworks[name]
		p.Open = p.Open || ours && !n.Internal
	}
	for _, a := range w.desired.Accepts {
		p.Accepts = append(p.Accepts, a.Code)
	}
	p.Proxy = w.proxyOf(s)
	return p
}

// proxyOf is where a space's proxy must answer. This release runs none by itself, so
// only one that is there is asked.
func (w *world) proxyOf(s Space) string {
	for _, e := range w.desired.Egresses {
		name := resolver{cfg: &schema.Config{Project: w.desired.Project}}.proxyName(e.Address)
		if c, exists := w.containers[name]; exists && running(c.State) && slices.Contains(s.Lists, e.Address) {
			return name + ":" + strconv.Itoa(proxyPort)
		}
	}
	return ""
}

// probeLabels are a space's own, but for the kind.
func probeLabels(space map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{LabelProject, LabelName, LabelKey, LabelStore, LabelFormat} {
		if value, there := space[name]; there {
			out[name] = value
		}
	}
	out[LabelKind] = string(KindProbe)
	return out
}

// Probe is the container that looks around in a space's network namespace: hardened as
// every space is, with nothing mounted and no network of its own. The image is named by
// its id.
func (p Proof) Probe(image string) Container {
	c := hardened()
	c.Name = p.Container.Name + SuffixProbe
	c.Image = image
	c.Command = []string{"spaces", "probe"}
	c.Labels = p.Labels
	c.NetworkMode = "container:" + p.ID
	c.Restart.Name = "no"
	c.LogDriver, c.LogOptions = "none", map[string]string{}
	setLimits(&c, schema.Limits{}, proxyLimits())
	return c.enforced(p.Engine)
}
