package reconcile

import (
	"slices"
	"strings"
)

// CanonicalTmpfs spells a tmpfs's mount options one way: sorted, without repeats and
// without "rw", which is the default.
func CanonicalTmpfs(options string) string {
	var out []string
	for o := range strings.SplitSeq(options, ",") {
		if o = strings.TrimSpace(o); o != "" && o != "rw" {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// CanonicalCapability spells a capability without CAP_ and in upper case.
func CanonicalCapability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}
