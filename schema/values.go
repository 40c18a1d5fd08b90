package schema

import (
	"cmp"
	"math/big"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

var (
	nameRE     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	endpointRE = regexp.MustCompile(`^unix:///[^\s]+\.sock$`)
	envNameRE  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	tagRE      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	userRE     = regexp.MustCompile(`^[^\s:]+(:[^\s:]+)?$`)
	groupRE    = regexp.MustCompile(`^[^\s:]+$`)
	sizeRE     = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(KiB|MiB|GiB|TiB|kB|MB|GB|TB)$`)
	bareSizeRE = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)$`)
	signalRE   = regexp.MustCompile(`^SIG(RTMIN(\+([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?)$`)
	octalRE    = regexp.MustCompile(`^0?[0-7]{3,4}$`)
)

// maxName is the length of the longest name of a container, network or volume: a DNS
// label's.
const maxName = 63

func validName(s string) bool { return nameRE.MatchString(s) }

// ValidProject reports whether a project can be called so.
func ValidProject(s string) bool { return validName(s) && len(s) <= maxName }

// maxQuantity bounds the text of a size: big.Rat takes any length.
const maxQuantity = 32

var sizeUnits = map[string]int64{
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// parseSize reads a size such as "4GiB" or "1.5GB" as a whole number of bytes.
func parseSize(s string) (int64, bool) {
	m := sizeRE.FindStringSubmatch(s)
	if m == nil || len(s) > maxQuantity {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, false
	}
	n.Mul(n, new(big.Rat).SetInt64(sizeUnits[m[2]]))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// sizeMeant guesses what a size that lacks a clear unit was meant to be, or "".
func sizeMeant(s string) string {
	meant := sizeGuess(s)
	if _, ok := parseSize(meant); !ok {
		return ""
	}
	return meant
}

func sizeGuess(s string) string {
	m := bareSizeRE.FindStringSubmatch(s)
	if m == nil || len(s) > maxQuantity {
		return ""
	}
	switch strings.ToLower(m[2]) {
	case "k", "kb", "ki", "kib":
		return m[1] + "KiB"
	case "m", "mb", "mi", "mib":
		return m[1] + "MiB"
	case "g", "gb", "gi", "gib":
		return m[1] + "GiB"
	case "t", "tb", "ti", "tib":
		return m[1] + "TiB"
	case "", "b":
		return wholeUnits(m[1])
	}
	return ""
}

// wholeUnits spells a number of bytes in the largest unit that divides it.
func wholeUnits(bytes string) string {
	n, ok := new(big.Int).SetString(bytes, 10)
	if !ok || n.Sign() == 0 {
		return ""
	}
	for _, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		count, rest := new(big.Int).QuoRem(n, big.NewInt(sizeUnits[unit]), new(big.Int))
		if rest.Sign() == 0 {
			return count.String() + unit
		}
	}
	return ""
}

// parseDuration reads a duration such as "30s" or "1m30s".
func parseDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0 && s != "0" && !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-")
}

// nanoCPUs turns a number of CPUs into billionths, rounded to the nearest.
func nanoCPUs(cpus *big.Float) (int64, bool) {
	if cpus.IsInf() || cpus.Cmp(big.NewFloat(maxCPUs)) > 0 {
		return 0, false
	}
	nano := new(big.Float).Mul(cpus, big.NewFloat(1e9))
	nano.Add(nano, big.NewFloat(0.5))
	n, _ := nano.Int64()
	return n, n >= minNanoCPUs
}

const (
	maxCPUs     = 1 << 20
	minNanoCPUs = 1e7 // the engine's minimum, a hundredth
)

// parsePrefix reads a CIDR in canonical form; masked is what a prefix with host bits
// set should have been.
func parsePrefix(s string) (p netip.Prefix, masked string, ok bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, "", false
	}
	if p != p.Masked() {
		return netip.Prefix{}, p.Masked().String(), false
	}
	return p, "", true
}

// parseAddr reads an IP address without a zone.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == "" && !a.Is4In6()
}

// hasControl reports whether a path holds a character that does not print.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s)
}

// cleanInside reports whether a path of a space is absolute and clean.
func cleanInside(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && !hasControl(s)
}

// cleanSource is a path of the host in clean form: absolute, or below "~/".
func cleanSource(s string) (string, bool) {
	if hasControl(s) {
		return "", false
	}
	if path.IsAbs(s) {
		return path.Clean(s), true
	}
	rest, ok := strings.CutPrefix(s, "~/")
	if !ok {
		return "", false
	}
	rest = path.Clean(rest)
	if rest == "." || rest == ".." || strings.HasPrefix(rest, "../") || path.IsAbs(rest) {
		return "", false
	}
	return "~/" + rest, true
}

// lies reports whether the path inside equals outer or lies in it.
func lies(inside, outer string) bool {
	return inside == outer || outer == "/" || strings.HasPrefix(inside, outer+"/")
}

// mostOptions bounds what a word is compared with: thousands of wrong names among
// thousands of right ones would take minutes, and who has that many didn't type them.
const mostOptions = 500

// Closest is the option that a misspelt word was most likely meant to be, or "" if none
// is close.
func Closest(word string, options []string) string {
	const far = 3
	if len(options) > mostOptions || len(word) > maxName+far {
		return ""
	}
	folded := foldWord(word)
	best, bestDistance := "", far
	for _, option := range options {
		if option == word || max(len(option)-len(word), len(word)-len(option)) >= far {
			continue
		}
		distance := levenshtein.Distance(folded, foldWord(option), nil)
		if distance < bestDistance && distance < len(option) {
			best, bestDistance = option, distance
		}
	}
	return best
}

func foldWord(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// compareStrings compares pairs of strings, the first that differ deciding.
func compareStrings(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if c := cmp.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}

func compareAddresses(a, b Address) int {
	return compareStrings(a.Kind, b.Kind, a.Name, b.Name, a.Key, b.Key)
}

// sort puts every list in the order of addresses.
func (c *Config) sort() {
	slices.SortFunc(c.Accepts, func(a, b Accept) int { return cmp.Compare(a.Code, b.Code) })
	slices.SortFunc(c.Images, func(a, b Image) int { return compareAddresses(a.Address, b.Address) })
	slices.SortFunc(c.Networks, func(a, b Network) int { return compareAddresses(a.Address, b.Address) })
	slices.SortFunc(c.Egresses, func(a, b Egress) int { return compareAddresses(a.Address, b.Address) })
	slices.SortFunc(c.Grants, func(a, b Grant) int { return compareAddresses(a.Address, b.Address) })
	slices.SortFunc(c.Spaces, func(a, b Space) int { return compareAddresses(a.Address, b.Address) })
	slices.SortFunc(c.Roles, func(a, b Role) int { return compareAddresses(a.Address, b.Address) })
	slices.Sort(c.Files)
}
