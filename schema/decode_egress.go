package schema

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"spaces/gatekeeper/policy"
)

func (l *loader) decodeEgress(inst *instance) Egress {
	r := l.reader(inst)
	e := Egress{Object: *r.object}
	network, ok := r.ref("network", kindNamed("network"))
	if r.need("network", ok) {
		e.Network = network
	}
	if r.has("uplink") {
		e.Uplink, _ = r.ref("uplink", kindNamed("network"))
	}
	for _, block := range r.body.Blocks {
		switch block.Type {
		case "allow":
			e.Entries = append(e.Entries, r.allow(block)...)
		case "allow_each":
			e.Entries = append(e.Entries, r.allowEach(block)...)
		}
	}
	slices.SortStableFunc(e.Entries, func(a, b EgressEntry) int { return compareEntries(a.Entry, b.Entry) })
	r.duplicateEntries(e.Entries)
	return e
}

// allow reads one entry.
func (r *reader) allow(block *hclsyntax.Block) []EgressEntry {
	if len(block.Labels) == 0 {
		r.markBroken()
		return nil // reported with the block's shape
	}
	in := *r
	in.body, in.object = block.Body, nil
	where := at(block.LabelRanges[0]).within(block.DefRange())
	return in.entries([]item[string]{{block.Labels[0], where}})
}

// allowEach reads a computed list of entries.
func (r *reader) allowEach(block *hclsyntax.Block) []EgressEntry {
	in := *r
	in.body, in.object = block.Body, nil
	to, ok := in.strs("to")
	if !in.need("to", ok) {
		return nil
	}
	return in.entries(to)
}

func (r *reader) entries(to []item[string]) []EgressEntry {
	reason, hasReason := r.reason()
	if r.hasValue("reason") && !hasReason {
		hasReason = true // its fault has been reported
	}
	options := policy.Options{HasReason: hasReason}
	options.Address, _ = r.boolean("address")
	if ranges, ok := r.strs("private"); ok {
		for _, it := range ranges {
			if r.privateRange(it) {
				options.Private = append(options.Private, it.value)
			}
		}
	}
	var entries []EgressEntry
	for _, it := range to {
		entry, err := policy.Parse(it.value, options)
		var fault *policy.EntryError
		if errors.As(err, &fault) {
			where := it.at
			if strings.HasPrefix(string(fault.Code), "entry-private") {
				where = r.place("private")
			}
			r.fail(diagEgressEntry(it.value, fault, where))
			continue
		}
		entries = append(entries, EgressEntry{Entry: entry, Reason: reason, Origin: originOf(it.at.subject)})
	}
	return entries
}

// privateRange judges a range where its own place can be shown.
func (r *reader) privateRange(it item[string]) bool {
	_, masked, ok := parsePrefix(it.value)
	switch {
	case masked != "":
		r.fail(diagHostBits("private", it.value, masked, it.at))
	case !ok:
		r.fail(diagCIDR("private", it.value, it.at))
	}
	return ok
}

func (r *reader) duplicateEntries(entries []EgressEntry) {
	for i := 1; i < len(entries); i++ {
		if compareEntries(entries[i-1].Entry, entries[i].Entry) == 0 {
			first, again := entries[i-1].Origin.hclRange(), entries[i].Origin.hclRange()
			r.fail(diagDuplicateEntry(entryText(entries[i].Entry), again, first))
		}
	}
}

func compareEntries(a, b policy.Entry) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), boolCompare(a.Wildcard, b.Wildcard))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// entryText spells an entry as the files would.
func entryText(e policy.Entry) string {
	if addr, err := netip.ParseAddr(e.Host); err == nil {
		return netip.AddrPortFrom(addr, e.Port).String()
	}
	host := e.Host
	if e.Wildcard {
		host = "*." + host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
}
