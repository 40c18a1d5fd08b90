package places

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"spaces/reconcile"
)

// ApplierOptions are what an Applier needs to know beside the steps.
type ApplierOptions struct {
	// Actual is what the plan was made from. A step on an object that isn't as it is
	// there fails.
	Actual reconcile.Actual
	// Digest keys what spaces.applied says; nil leaves the label away.
	Digest reconcile.Digester
	// Project and Store are whose objects are ours.
	Project string
	Store   string
	// Host is whose files images are made from.
	Host Host
	// Output, if set, hears the lines that builds and pulls print, by image. Steps that
	// run at once call it at once.
	Output func(image, line string)
}

// Applier carries out the steps of one plan on an engine. It is made for one apply: it
// remembers what its own steps have changed, and takes any other change for someone
// else's. It is safe for concurrent use, and steps on one container wait for each other.
type Applier struct {
	docker   *client.Client
	engine   *Engine
	options  ApplierOptions
	timeouts timeouts
	seen     seen
	busy     keyedMutex
	filled   learnt
	secrets  secrets

	dirs sync.Mutex
	made map[string]bool // directories that this apply made
}

var _ reconcile.Applier = (*Applier)(nil)

// Applier makes one for a plan that was made from what o.Actual says.
func (e *Engine) Applier(o ApplierOptions) *Applier {
	return &Applier{
		docker:   e.docker,
		engine:   e,
		options:  o,
		timeouts: defaultTimeouts(),
		seen:     seenIn(o.Actual),
		made:     map[string]bool{},
	}
}

// Apply carries out one step. The errors tell apart:
//   - *MovedError: the object isn't what the plan saw; nothing was done to it;
//   - *ReplaceError: a replacement failed, and whether the old container is back;
//   - *EndedError: the container was started and doesn't run;
//   - *NotAsAskedError: the engine made something else than what it was asked for;
//   - *reconcile.Refusal: a person must act (image-labels, image-input, name-taken).
//
// Anything else is the engine's own error, with what was being done to what.
func (a *Applier) Apply(ctx context.Context, step reconcile.Step) error {
	switch s := step.(type) {
	case reconcile.CreateDirectory:
		return a.createDirectory(s)
	case reconcile.CreateNetwork:
		return a.createNetwork(ctx, s.Network)
	case reconcile.RemoveNetwork:
		return a.removeNetwork(ctx, s.Name)
	case reconcile.CreateVolume:
		return a.createVolume(ctx, s.Volume)
	case reconcile.RemoveVolume:
		return a.removeVolume(ctx, s.Name)
	case reconcile.BuildImage:
		return a.buildImage(ctx, s)
	case reconcile.PullImage:
		return a.pullImage(ctx, s.Reference)
	case reconcile.CreateSpace:
		defer a.busy.lock(s.Container.Name)()
		return a.createSpace(ctx, s)
	case reconcile.ReplaceSpace:
		for _, name := range slices.Compact(slices.Sorted(slices.Values([]string{cmp.Or(s.From, s.Container.Name), s.Container.Name}))) {
			defer a.busy.lock(name)()
		}
		return a.replaceSpace(ctx, s)
	case reconcile.UpdateSpace:
		defer a.busy.lock(s.Name)()
		return a.updateSpace(ctx, s)
	case reconcile.ConnectSpace:
		defer a.busy.lock(s.Name)()
		return a.connectSpace(ctx, s)
	case reconcile.DisconnectSpace:
		defer a.busy.lock(s.Name)()
		return a.disconnectSpace(ctx, s)
	case reconcile.StartSpace:
		defer a.busy.lock(s.Name)()
		return a.startSpace(ctx, s)
	case reconcile.UnpauseSpace:
		defer a.busy.lock(s.Name)()
		return a.unpauseSpace(ctx, s.Name)
	case reconcile.RemoveSpace:
		defer a.busy.lock(s.Name)()
		return a.removeSpace(ctx, s)
	case reconcile.RenameSpace:
		defer a.busy.lock(s.To)()
		return a.renameSpace(ctx, s)
	case reconcile.NotYet:
		return fmt.Errorf("this release cannot do this: %s", s.What)
	default:
		return fmt.Errorf("cannot carry out a step of type %T: it isn't known here", step)
	}
}

// createDirectory makes a directory that only its owner may enter, with the parents
// that are missing, and sees to it that a crash doesn't lose it: what comes later
// mounts it.
func (a *Applier) createDirectory(s reconcile.CreateDirectory) error {
	a.dirs.Lock()
	defer a.dirs.Unlock()
	if a.made[s.Path] {
		return nil // as the parent of another one
	}
	if _, err := os.Lstat(s.Path); err == nil {
		return &MovedError{What: s.Path, How: "it exists now"}
	}
	return a.makeDirectory(s.Path)
}

func (a *Applier) makeDirectory(path string) error {
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := a.makeDirectory(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("cannot create the directory: %w", err)
	}
	a.made[path] = true
	if err := syncDirectory(parent); err != nil {
		return fmt.Errorf("cannot make the directory %s last: %w", path, err)
	}
	return nil
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (a *Applier) createNetwork(ctx context.Context, n reconcile.Network) error {
	found, err := a.networksNamed(ctx, n.Name)
	if err != nil {
		return err
	}
	if all := slices.Concat(found.ours, found.others); len(all) > 0 {
		return a.appeared("network", n.Name, all[0].Labels)
	}
	call, cancel := context.WithTimeout(ctx, a.timeouts.network)
	defer cancel()
	made, err := a.docker.NetworkCreate(call, n.Name, networkOptions(n))
	if err != nil {
		return fmt.Errorf("cannot create network %s: %w", n.Name, err)
	}
	if made.Warning != "" {
		return fmt.Errorf("network %s is not as asked: %s", n.Name, made.Warning)
	}
	found, err = a.networksNamed(ctx, n.Name)
	if err != nil {
		return err
	}
	if len(found.ours) != 1 || found.ours[0].ID != made.ID || len(found.others) > 0 {
		return &MovedError{What: networkKey(n.Name), How: "another of its name was made as it was made"}
	}
	a.seen.set(networkKey(n.Name), found.revision())
	return a.networkAsAsked(n, found.ours[0])
}

func (a *Applier) removeNetwork(ctx context.Context, name string) error {
	found, err := a.networksNamed(ctx, name)
	switch {
	case err != nil:
		return err
	case len(found.ours) == 0:
		return nil // whoever else has the name
	}
	if err := a.seen.check(networkKey(name), found.revision()); err != nil {
		return err
	}
	for _, n := range found.ours {
		if err := a.nobodyOn(ctx, n); err != nil {
			return err
		}
	}
	for _, n := range found.ours {
		call, cancel := context.WithTimeout(ctx, a.timeouts.network)
		err := a.docker.NetworkRemove(call, n.ID)
		cancel()
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("cannot remove network %s: %w", name, err)
		}
	}
	a.seen.forget(networkKey(name))
	return nil
}

// sameNetwork is the id of a network that is the one that the plan saw or this apply
// made, and the only one of its name.
func (a *Applier) sameNetwork(ctx context.Context, name string) (id string, err error) {
	found, err := a.networksNamed(ctx, name)
	if err != nil {
		return "", err
	}
	if err := a.seen.check(networkKey(name), found.revision()); err != nil {
		return "", err
	}
	switch {
	case len(found.ours) == 0:
		return "", &MovedError{What: networkKey(name), How: "there is none"}
	case len(found.ours)+len(found.others) > 1:
		return "", &MovedError{What: networkKey(name), How: "another network has its name too"}
	}
	return found.ours[0].ID, nil
}

// sameVolume does so for a volume.
func (a *Applier) sameVolume(ctx context.Context, name string) error {
	got, err := a.findVolume(ctx, name)
	switch {
	case err != nil:
		return err
	case got == nil:
		return &MovedError{What: volumeKey(name), How: "there is none"}
	}
	return a.seen.check(volumeKey(name), volumeRevision(*got))
}

// nobodyOn makes sure that a network is empty. The engine itself looks at running
// containers alone, and would leave a stopped one with a place on no network
// (docker/compose#5745).
func (a *Applier) nobodyOn(ctx context.Context, n network.Inspect) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	on, err := a.docker.ContainerList(call, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("network", n.ID)),
	})
	if err != nil {
		return fmt.Errorf("cannot list who is on network %s: %w", n.Name, err)
	}
	if len(on) == 0 {
		return nil
	}
	return &MovedError{What: networkKey(n.Name), How: fmt.Sprintf("container %s is on it", summarised(on[0]).name)}
}

// networkAsAsked compares a network that was just made with what was asked.
func (a *Applier) networkAsAsked(asked reconcile.Network, in network.Inspect) error {
	got := newConverter(a.engine.features, a.engine.defaults, world{}).networkOf(in)
	if asked.Subnet == "" {
		got.Subnet = ""
	}
	if asked.IPRange == "" {
		got.IPRange = ""
	}
	return asAsked(networkKey(asked.Name), asked.Fields(), got.Fields())
}

// asAsked compares fields, each list sorted by path.
func asAsked(what string, asked, got []reconcile.Field) error {
	values := map[string]string{}
	for _, f := range asked {
		values[f.Path] = f.Value
	}
	var differ []string
	for _, f := range got {
		if want, ok := values[f.Path]; !ok || want != f.Value {
			differ = append(differ, f.Path)
		}
		delete(values, f.Path)
	}
	differ = append(differ, slices.Sorted(maps.Keys(values))...)
	if len(differ) > 0 {
		return &NotAsAskedError{What: what, Fields: differ}
	}
	return nil
}

// namesakes are all networks of one name. Engines before API 1.44 let there be
// several.
type namesakes struct{ ours, others []network.Inspect }

// revision is that of what is ours, empty where nothing is.
func (n namesakes) revision() string {
	revisions := make([]string, 0, len(n.ours))
	for _, in := range n.ours {
		revisions = append(revisions, networkRevision(in))
	}
	slices.Sort(revisions)
	return strings.Join(revisions, " ")
}

func (n namesakes) isOurs(id string) bool {
	return slices.ContainsFunc(n.ours, func(in network.Inspect) bool { return in.ID == id })
}

// networksNamed finds them in the list. To inspect one by its name, the engine takes the
// beginning of an id for a name (moby/moby#37698), and finds none where there are two.
func (a *Applier) networksNamed(ctx context.Context, name string) (namesakes, error) {
	call, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	all, err := a.docker.NetworkList(call, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", name))})
	if err != nil {
		return namesakes{}, fmt.Errorf("cannot look for network %s: %w", name, err)
	}
	var found namesakes
	for _, n := range all {
		switch {
		case n.Name != name: // the filter takes a part of a name as well
		case labelOwner(n.Labels).is(Query{Project: a.options.Project, Store: a.options.Store}):
			found.ours = append(found.ours, n)
		default:
			found.others = append(found.others, n)
		}
	}
	return found, nil
}

func (a *Applier) createVolume(ctx context.Context, v reconcile.Volume) error {
	// The engine answers a create of a volume that exists with that volume.
	found, err := a.findVolume(ctx, v.Name)
	if err != nil {
		return err
	}
	if found != nil {
		return a.appeared("volume", v.Name, found.Labels)
	}
	call, cancel := context.WithTimeout(ctx, a.timeouts.network)
	defer cancel()
	if _, err := a.docker.VolumeCreate(call, volumeOptions(v)); err != nil {
		return fmt.Errorf("cannot create volume %s: %w", v.Name, err)
	}
	got, err := a.findVolume(ctx, v.Name)
	if err != nil {
		return err
	}
	if got == nil {
		return &MovedError{What: "volume " + v.Name, How: "it was removed as it was made"}
	}
	a.seen.set(volumeKey(v.Name), volumeRevision(*got))
	made := newConverter(a.engine.features, a.engine.defaults, world{}).volumeOf(*got)
	return asAsked(volumeKey(v.Name), v.Fields(), made.Fields())
}

func (a *Applier) removeVolume(ctx context.Context, name string) error {
	got, err := a.findVolume(ctx, name)
	switch {
	case err != nil:
		return err
	case got == nil:
		return nil
	}
	if err := a.seen.check(volumeKey(name), volumeRevision(*got)); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, a.timeouts.remove)
	defer cancel()
	if err := a.docker.VolumeRemove(call, name, false); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot remove volume %s: %w", name, err)
	}
	a.seen.forget(volumeKey(name))
	return nil
}

func (a *Applier) findVolume(ctx context.Context, name string) (*volume.Volume, error) {
	call, cancel := context.WithTimeout(ctx, a.timeouts.read)
	defer cancel()
	got, err := a.docker.VolumeInspect(call, name)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot inspect volume %s: %w", name, err)
	}
	return &got, nil
}
