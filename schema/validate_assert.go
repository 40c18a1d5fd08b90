package schema

import "fmt"

// validateAssertions reports claims that nothing could break: they would read as
// promises and be none.
func (l *loader) validateAssertions() {
	for i := range l.config.Assertions {
		a := &l.config.Assertions[i]
		for _, addr := range a.CannotJoin {
			if n := l.networkAt[addr]; n != nil && n.Uplink && l.whole(addr) {
				l.report(diagAssertIdle(fmt.Sprintf("no space ever joins %s, an uplink", addr), at(a.At("cannot_join").hclRange())))
			}
		}
		if len(a.CannotMeet) == 1 && len(a.From) == 1 && a.From[0] == a.CannotMeet[0] {
			l.report(diagAssertIdle(fmt.Sprintf("%s doesn't meet itself", a.From[0]), at(a.At("cannot_meet").hclRange())))
		}
	}
}
