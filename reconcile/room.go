package reconcile

import (
	"slices"
	"strings"
)

// makeRoom lets what starts wait until a container that holds its port or its address
// is gone.
func (w *world) makeRoom(holder *ObservedContainer, gone string) {
	for _, s := range w.wantSpaces {
		if clash(holder.Container, s.Container) {
			w.need(w.ready[s.Container.Name], gone)
		}
	}
}

// takeTurns lets a space that takes a port or an address start, or join, only once the
// one that gives it up has. Where that one waits for the first in turn, as when two
// spaces change ports, it goes before its successor is made.
func (w *world) takeTurns() {
	if len(w.plan.Items) == 0 {
		return
	}
	var holders []string
	for _, name := range sortedKeys(w.containers) {
		if takesRoom(w.containers[name].Container) {
			holders = append(holders, name)
		}
	}
	for _, taker := range w.wantSpaces {
		if !takesRoom(taker.Container) {
			continue
		}
		for _, name := range holders {
			giver := w.containers[name]
			if name == taker.Container.Name || w.moved[name].Container.Name == taker.Container.Name {
				continue
			}
			if portsClash(giver.Container, taker.Container) {
				w.takeTurn(w.makes(taker.Container.Name), w.makes(name), giver)
			}
			for _, network := range addressesClash(giver.Container, taker.Container) {
				w.takeTurn(w.joins(taker.Container.Name, network), w.parts(giver, network), giver)
			}
		}
	}
}

// takesRoom tells whether a container asks for a port of the host or an address.
func takesRoom(c Container) bool {
	for _, e := range c.Networks {
		if e.Address != "" {
			return true
		}
	}
	return len(c.Publish) > 0
}

// takeTurn lets one item need the other that makes room for it; either may be none.
func (w *world) takeTurn(takes, gives string, giver *ObservedContainer) {
	if takes == "" || gives == "" {
		return
	}
	switch gone := "remove " + w.subject(*giver); {
	case w.item(gone) != nil:
		w.need(takes, gone)
	case w.waitsFor(gives, takes):
		w.goFirst(giver, gives)
		w.need(takes, gone)
	default:
		w.need(takes, gives)
	}
}

// makes is the item that makes a container anew, if one does.
func (w *world) makes(name string) string {
	if item := w.item(w.ready[name]); item != nil {
		switch item.Step.(type) {
		case CreateSpace, ReplaceSpace:
			return item.ID
		}
	}
	return ""
}

// joins and parts are the items by which a container joins and leaves a network.
func (w *world) joins(name, network string) string {
	return w.endpointItem(name, func(s Step) bool {
		c, is := s.(ConnectSpace)
		return is && c.Name == name && c.Network == network
	})
}

func (w *world) parts(c *ObservedContainer, network string) string {
	return w.endpointItem(c.Name, func(s Step) bool {
		d, is := s.(DisconnectSpace)
		return is && d.Name == c.Name && d.Network == network
	})
}

// endpointItem is the first item with such a step, or the one that makes the container.
func (w *world) endpointItem(name string, is func(Step) bool) string {
	for _, i := range w.plan.Items {
		if is(i.Step) {
			return i.ID
		}
	}
	return w.makes(name)
}

// goFirst has a container removed before its successor is made, where it would have
// been replaced.
func (w *world) goFirst(c *ObservedContainer, replaces string) {
	item := w.item(replaces)
	step, is := item.Step.(ReplaceSpace)
	if !is {
		return
	}
	made := "create " + item.Subject
	item.ID, item.Step = made, CreateSpace{Space: step.Space, Container: step.Container, WaitFor: step.WaitFor}
	w.setReady(c, step.Container, made)
	for i := range w.plan.Items {
		for j, need := range w.plan.Items[i].Needs {
			if need == replaces {
				w.plan.Items[i].Needs[j] = made
			}
		}
	}
	gone := w.removeContainer(c, Replaces, SideEither, "it goes before its successor is made: another space takes its port or address, and gives its own up to it")
	w.need(made, gone)
}

// waitsFor tells whether one item needs another, directly or not.
func (w *world) waitsFor(from, to string) bool {
	seen := map[string]bool{}
	queue := []string{from}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if id == to {
			return true
		}
		item := w.item(id)
		if item == nil || seen[id] {
			continue
		}
		seen[id] = true
		queue = append(queue, item.Needs...)
	}
	return false
}

func (w *world) item(id string) *Item {
	at := slices.IndexFunc(w.plan.Items, func(i Item) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return &w.plan.Items[at]
}

// clash tells whether two containers can't run at once.
func clash(a, b Container) bool { return portsClash(a, b) || len(addressesClash(a, b)) > 0 }

// addressesClash are the networks on which two containers ask for one address.
func addressesClash(a, b Container) []string {
	var networks []string
	for _, name := range sortedKeys(a.Networks) {
		if address := a.Networks[name].Address; address != "" && address == b.Networks[name].Address {
			networks = append(networks, name)
		}
	}
	return networks
}

// portsClash tells whether two containers publish one port of the host.
func portsClash(a, b Container) bool {
	for port, bindings := range a.Publish {
		for other, taken := range b.Publish {
			if protocol(port) == protocol(other) && bindingsClash(bindings, taken) {
				return true
			}
		}
	}
	return false
}

func protocol(port string) string {
	_, protocol, _ := strings.Cut(port, "/")
	return protocol
}

func bindingsClash(a, b string) bool {
	for one := range strings.SplitSeq(a, ",") {
		ip, port := cutPort(one)
		for other := range strings.SplitSeq(b, ",") {
			otherIP, otherPort := cutPort(other)
			// Whether one of both families leaves room for one of the other isn't worth knowing.
			if port == otherPort && (ip == otherIP || everyAddress(ip) || everyAddress(otherIP)) {
				return true
			}
		}
	}
	return false
}

func cutPort(binding string) (ip, port string) {
	at := strings.LastIndex(binding, ":")
	return strings.Trim(binding[:max(at, 0)], "[]"), binding[at+1:]
}

func everyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
