package reconcile

import (
	"fmt"

	"spaces/schema"
)

// Move says that a space takes over from what ran under another address.
type Move struct {
	From schema.Address
	// Name is the container's that ran there.
	Name   string
	To     schema.Address
	Origin schema.Origin
}

// takeOvers finds, for the moved blocks, the containers that are to be replaced by one
// of another name. A space that is there already has taken over, or is another one.
func (w *world) takeOvers() {
	for _, m := range w.desired.Moves {
		for _, s := range w.wantSpaces {
			if s.Address == m.To {
				w.takeOver(m, s)
			}
		}
	}
}

func (w *world) takeOver(m Move, s Space) {
	from := w.containers[m.Name]
	_, claimed := w.addresses[m.Name]
	switch {
	case from == nil && !w.actual.Engine.Offline:
		w.note("moved", m.To.String(), fmt.Sprintf("nothing of %s is there: the moved block has nothing to do here", m.From), m.Origin)
	case from == nil, claimed, from.Kind() != KindSpace, addressOf(*from) != m.From.String():
	case w.containerOf(s) == nil:
		w.moved[m.Name] = s
		w.addresses[m.Name] = m.To.String()
		for i := range w.plan.Items { // of recovery: what it sets right is the new one's now
			if w.plan.Items[i].Subject == m.From.String() {
				w.plan.Items[i].Subject = m.To.String()
			}
		}
	}
}

// containerOf is the container that a space has, or takes over; nil for neither.
func (w *world) containerOf(s Space) *ObservedContainer {
	if c, exists := w.containers[s.Container.Name]; exists {
		return c
	}
	for name, to := range w.moved {
		if to.Address == s.Address {
			return w.containers[name]
		}
	}
	return nil
}

// movesTo is where the container of an address is to go by this plan.
func (w *world) movesTo(from string) (to string, moves bool) {
	for _, m := range w.desired.Moves {
		if s, pending := w.moved[m.Name]; pending && m.From.String() == from {
			return s.Address.String(), true
		}
	}
	return "", false
}

// movedReason is why a container of another name is replaced.
func (w *world) movedReason(name string) string {
	for _, m := range w.desired.Moves {
		if m.Name == name {
			return fmt.Sprintf("moved from %s (%s)", m.From, m.Origin)
		}
	}
	return ""
}
