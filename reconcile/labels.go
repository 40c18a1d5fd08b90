package reconcile

// The labels of everything this program makes. A label can't change on a running
// container, so each says only what stays true for the object's life, and the set is
// whole from the first release.
const (
	LabelProject  = "spaces.project"  // the owning project
	LabelKind     = "spaces.kind"     // one of the kinds below
	LabelName     = "spaces.name"     // the name in the files
	LabelKey      = "spaces.key"      // the for_each key, absent without one
	LabelRun      = "spaces.run"      // a session's run
	LabelStore    = "spaces.store"    // the data root's store path: whose project this is
	LabelFormat   = "spaces.format"   // the version of this set
	LabelReplaces = "spaces.replaces" // the id of the container this one took over from
	LabelApplied  = "spaces.applied"  // keyed digests, by field, of what was asked at create

	// LabelPrefix is the namespace of all of them.
	LabelPrefix = "spaces."
	// LabelImagePrefix is the one part of it that an image may carry, since a container
	// inherits its image's labels.
	LabelImagePrefix = "spaces.image."
	// LabelImageInput is the digest of what an image was made from.
	LabelImageInput = "spaces.image.input"

	// LabelFormatVersion is the value of LabelFormat this release writes.
	LabelFormatVersion = "1"
)

// Kind is the value of LabelKind.
type Kind string

// The kinds of object the program makes.
const (
	KindSpace   Kind = "space"
	KindEgress  Kind = "egress"
	KindCore    Kind = "core"
	KindSession Kind = "session"
	KindProbe   Kind = "probe"
	KindNetwork Kind = "network"
	KindVolume  Kind = "volume"
)
