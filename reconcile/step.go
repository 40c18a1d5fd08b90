package reconcile

// Step is one thing apply does. The interface is sealed: an applier's switch over the
// types below is complete.
//
//sumtype:decl
type Step interface{ step() }

type (
	// CreateDirectory makes a grant's missing source, 0700.
	CreateDirectory struct{ Path string }
	// CreateNetwork makes a network.
	CreateNetwork struct{ Network Network }
	// RemoveNetwork removes a network that has no endpoint left.
	RemoveNetwork struct{ Name string }
	// CreateVolume makes a named volume.
	CreateVolume struct{ Volume Volume }
	// RemoveVolume removes a volume and all it holds.
	RemoveVolume struct{ Name string }
	// BuildImage makes an image on the engine from a binary or a context.
	BuildImage struct {
		Image Image
		From  ImageInput
		// Input goes into LabelImageInput: From joined with the ids of its bases, or empty
		// where a base is pulled first.
		Input string
	}
	// PullImage fetches an image that the engine doesn't have.
	PullImage struct{ Reference string }
	// CreateSpace creates a container, connects it to its networks and starts it.
	CreateSpace struct {
		Space     Space
		Container Container // with what the image and the engine add
		WaitFor   []string  // containers that must be ready before it starts
	}
	// ReplaceSpace puts a new container in an old one's place such that at any moment
	// one of the two can run; the old one comes back if the new one doesn't start.
	ReplaceSpace struct {
		// From is the old one's name where it is another, of a space that was moved.
		From      string
		Space     Space
		Container Container
		WaitFor   []string
	}
	// UpdateSpace changes limits or the restart policy of a container as it runs.
	UpdateSpace struct {
		Name   string
		Fields []string // paths of what changes
		// To holds the values; only the fields named are sent.
		To Container
	}
	// ConnectSpace puts a container on a network.
	ConnectSpace struct {
		Name     string
		Network  string
		Endpoint Endpoint
	}
	// DisconnectSpace takes a container, ours or not, off a network of ours.
	DisconnectSpace struct {
		Name    string
		Network string
		Foreign bool
	}
	// StartSpace starts a container that isn't running.
	StartSpace struct {
		Name    string
		WaitFor []string
	}
	// UnpauseSpace lets a paused container go on.
	UnpauseSpace struct{ Name string }
	// RemoveSpace stops and removes a container, with its anonymous volumes.
	RemoveSpace struct {
		Name        string
		StopTimeout *int
	}
	// RenameSpace gives a container its name back after an apply was cut short.
	RenameSpace struct{ From, To string }
	// NotYet stands for something that this release shows but doesn't run.
	NotYet struct{ What string }
)

func (CreateDirectory) step() {}
func (CreateNetwork) step()   {}
func (RemoveNetwork) step()   {}
func (CreateVolume) step()    {}
func (RemoveVolume) step()    {}
func (BuildImage) step()      {}
func (PullImage) step()       {}
func (CreateSpace) step()     {}
func (ReplaceSpace) step()    {}
func (UpdateSpace) step()     {}
func (ConnectSpace) step()    {}
func (DisconnectSpace) step() {}
func (StartSpace) step()      {}
func (UnpauseSpace) step()    {}
func (RemoveSpace) step()     {}
func (RenameSpace) step()     {}
func (NotYet) step()          {}

// Steps has one of each kind, empty.
func Steps() []Step {
	return []Step{
		CreateDirectory{},
		CreateNetwork{},
		RemoveNetwork{},
		CreateVolume{},
		RemoveVolume{},
		BuildImage{},
		PullImage{},
		CreateSpace{},
		ReplaceSpace{},
		UpdateSpace{},
		ConnectSpace{},
		DisconnectSpace{},
		StartSpace{},
		UnpauseSpace{},
		RemoveSpace{},
		RenameSpace{},
		NotYet{},
	}
}

// Suffixes of the names of containers that are there for a while: a space's while it is
// being replaced, and verify's. A space's name has no dot, so they collide with nothing of ours.
const (
	SuffixNew = ".new" // the new container, until the old one is aside
	SuffixOld = ".old" // the old container, until the new one runs
	// SuffixProbe is of the container that verify looks around in a space's networks from.
	SuffixProbe = ".probe"
)
