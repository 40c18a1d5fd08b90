package reconcile

import (
	"slices"
	"strings"
)

// The applied label is "1:<key id>:<entry> <entry> …:<mac>". An entry is a digest of a
// field's path and one of its path and value, and "!" where the value was sensitive.
// It tells what was asked when the container was made; it never decides what is.
const (
	appliedVersion = "1"
	pathDigits     = 8  // hex digits: only tells a container's own few dozen paths apart
	valueDigits    = 16 // hex digits
	macDigits      = 32
)

// AppliedLabel is the value of LabelApplied for a container that was asked for, with
// the fields that the engine added from its own configuration. It is empty without a
// key.
func AppliedLabel(d Digester, c Container, filled []Field) string {
	if d == nil {
		return ""
	}
	fields := append(c.Fields(), filled...)
	for _, target := range sortedKeys(c.Mounts) {
		if content := c.Mounts[target].Content; content != "" {
			fields = append(fields, Field{Path: contentPath(target), Value: content})
		}
	}
	entries := make([]string, 0, len(fields))
	for _, f := range fields {
		e := pathDigest(d, f.Path) + valueDigest(d, f.Path, f.Value)
		if f.Sensitive {
			e += "!"
		}
		entries = append(entries, e)
	}
	slices.Sort(entries)
	body := strings.Join(entries, " ")
	return strings.Join([]string{appliedVersion, d.KeyID(), body, mac(d, body)}, ":")
}

// contentPath is the path under which a file grant's content is digested.
func contentPath(target string) string { return key("mount", target) + ".content" }

func isContent(path string) bool { return strings.HasSuffix(path, "].content") }

func pathDigest(d Digester, path string) string { return d.Digest("path", path)[:pathDigits] }

func valueDigest(d Digester, path, value string) string {
	return d.Digest("field", path, value)[:valueDigits]
}

func mac(d Digester, body string) string { return d.Digest("applied", body)[:macDigits] }

// applied is a label that was found good. Its entries stay as they are: of most
// containers, few are asked for or none.
type applied struct {
	digest  Digester
	entries string
}

// appliedState says what a label is worth.
type appliedState int

const (
	appliedReadable appliedState = iota
	// appliedOtherKey: made with a key we don't have; nothing can be compared.
	appliedOtherKey
	// appliedForged: it says our key made it, and that isn't so; or no key made it.
	appliedForged
)

func parseApplied(d Digester, label string) (applied, appliedState) {
	parts := strings.Split(label, ":")
	switch {
	case d == nil:
		return applied{}, appliedOtherKey
	case len(parts) < 2:
		return applied{}, appliedForged // apply never makes a container without the label
	case parts[0] != appliedVersion || parts[1] != d.KeyID():
		return applied{}, appliedOtherKey
	case len(parts) != 4:
		return applied{}, appliedForged
	}
	body := parts[2]
	if parts[3] != mac(d, body) {
		return applied{}, appliedForged
	}
	for entry := range strings.FieldsSeq(body) {
		if len(strings.TrimSuffix(entry, "!")) != pathDigits+valueDigits {
			return applied{}, appliedForged
		}
	}
	return applied{digest: d, entries: body}, appliedReadable
}

// entry is what the label says of a field.
func (a applied) entry(path string) (value string, sensitive, known bool) {
	if !a.readable() {
		return "", false, false
	}
	field := pathDigest(a.digest, path)
	for entry := range strings.FieldsSeq(a.entries) {
		if value, known := strings.CutPrefix(entry, field); known {
			value, sensitive := strings.CutSuffix(value, "!")
			return value, sensitive, true
		}
	}
	return "", false, false
}

// readable is false for the zero value: nothing is known of what was asked.
func (a applied) readable() bool { return a.digest != nil }

// asked tells whether a field was asked for at create, and whether with this value.
func (a applied) asked(path, value string) (known, same bool) {
	asked, _, known := a.entry(path)
	return known, known && asked == valueDigest(a.digest, path, value)
}

// sensitive tells whether a field was asked for with a sensitive value.
func (a applied) sensitive(path string) bool {
	_, sensitive, _ := a.entry(path)
	return sensitive
}

// side tells which side of a difference moved since the container was made. A field
// that can change in place, or that nothing is known of, can't be told.
func (a applied) side(d difference) Side {
	if d.path == "image" && movedTag(d) {
		return SideReality
	}
	if !a.readable() || changesInPlace(d.path) {
		return SideEither
	}
	moved := func(f *Field) bool {
		if f == nil {
			known, _ := a.asked(d.path, "")
			return known
		}
		_, same := a.asked(d.path, f.Value)
		return !same
	}
	files, reality := moved(d.want), moved(d.got)
	if d.want == nil && d.got.EngineFilled {
		files = false // the label has it, and yet no file asked for it
	}
	switch {
	case files && !reality:
		return SideFiles
	case reality && !files:
		return SideReality
	}
	return SideEither
}

// movedTag tells whether the engine's own images moved: one reference, two images.
func movedTag(d difference) bool {
	if d.got == nil || d.want == nil || strings.HasSuffix(d.want.Value, knownAfterBuild) {
		return false
	}
	got, _, _ := strings.Cut(d.got.Value, " ")
	want, _, _ := strings.Cut(d.want.Value, " ")
	return got == want
}
