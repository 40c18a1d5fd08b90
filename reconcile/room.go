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

// takeTurns lets a space that takes a port or an address start only once the one that
// gives it up has been replaced. Where that one waits for the first in turn, as when
// two spaces change ports, it goes before its successor is made.
func (w *world) takeTurns() {
	for _, taker := range w.wantSpaces {
		for _, name := range sortedKeys(w.containers) {
			giver := w.containers[name]
			if name == taker.Container.Name || !clash(giver.Container, taker.Container) {
				continue
			}
			takes, gives := w.ready[taker.Container.Name], w.ready[name]
			if !w.makes(takes) || !w.makes(gives) {
				continue
			}
			switch gone := "remove " + w.subject(*giver); {
			case w.item(gone) != nil:
				w.need(takes, gone)
			case w.waitsFor(gives, takes):
				w.goFirst(giver, gives)
				w.need(w.ready[taker.Container.Name], gone)
			default:
				w.need(takes, gives)
			}
		}
	}
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
	item.ID, item.Step = made, CreateSpace(step)
	w.ready[c.Name] = made
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

// makes tells whether an item makes a container anew.
func (w *world) makes(id string) bool {
	item := w.item(id)
	if item == nil {
		return false
	}
	switch item.Step.(type) {
	case CreateSpace, ReplaceSpace:
		return true
	}
	return false
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
func clash(a, b Container) bool {
	for name, e := range a.Networks {
		if e.Address != "" && e.Address == b.Networks[name].Address {
			return true
		}
	}
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
