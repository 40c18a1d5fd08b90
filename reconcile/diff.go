package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// Options say what Diff is asked for beyond making reality what the files say.
type Options struct {
	// Destroy asks for nothing of the project to remain, whatever the files say.
	Destroy bool
	// RemoveVolumes lets volumes, and what they hold, go with it.
	RemoveVolumes bool
	// Targets and Excludes choose a part of the plan, by address; a block with for_each
	// stands for all that it makes. No target is everything.
	Targets  []string
	Excludes []string
	// Replace are the addresses of spaces and networks to be made anew, whatever differs.
	Replace []string
	// AllowDestroy are the addresses that may go though they are protected.
	AllowDestroy []string
	// Guards are what the last apply found protected.
	Guards []Guard
}

// Diff compares what is asked with what is and returns what would make them the same.
// It reads no clock, socket or file: the same input gives the same plan. An error is a
// defect of this package: a plan that can't be ordered.
func Diff(d Desired, h HostFacts, a Actual, o Options) (*Plan, error) {
	w := newWorld(d, h, a, o)
	w.recovery()
	w.takeOvers()
	w.directories()
	w.makeImages()
	w.makeVolumes()
	w.makeNetworks()
	w.makeSpaces()
	w.removals()
	w.roles()
	w.choose()
	w.guard()
	w.variables()
	w.plan.Access = w.accessChanges()
	w.effects()
	w.standing()
	w.refusals()
	for i := range w.plan.Items {
		w.plan.Items[i].Needs = cloneNeeds(w.plan.Items[i].Needs)
	}
	items, err := Order(w.plan.Items)
	if err != nil {
		return nil, err
	}
	w.plan.Items = items
	return &w.plan, nil
}

// world is one comparison: its input, indexed, and the plan as it grows.
type world struct {
	desired Desired
	host    HostFacts
	actual  Actual
	options Options

	wantSpaces   []Space
	wantNetworks map[string]Network
	wantVolumes  map[string]Volume
	containers   map[string]*ObservedContainer
	networks     map[string]*ObservedNetwork
	// twins are the names that several networks of ours have.
	twins   map[string]bool
	volumes map[string]*ObservedVolume

	// imageItem is what makes an image, and imageInput what each image of the files is to be
	// made from, whether it is there or not, by reference.
	imageItem  map[string]string
	imageInput map[string]string
	// netGone, netMade and volMade are the ids of the items that remove and make.
	netGone map[string]string
	netMade map[string]string
	volGone map[string]string
	volMade map[string]string
	dirMade map[string]string // by resolved path
	// detach are networks that every endpoint leaves, because they are removed or remade.
	detach map[string]bool
	// first are the ids of recovery's items, by container name; discarded are those that
	// free a network or a volume, by its name.
	first     map[string][]string
	discarded map[string][]string
	// ready is the last item of a space, by container name.
	ready map[string]string
	// members are the addresses of the spaces that are to be on a network, sorted.
	members map[string][]string
	// addresses are those of the files' spaces, by container name.
	addresses map[string]string
	// untouched are containers that go on as they are: the host's own.
	untouched map[string]bool
	refused   map[string]bool
	// moved are the spaces that take over from a container of another name, by that name.
	moved map[string]Space
	// left are the addresses of what differs and is left out of the plan.
	left map[string]bool
	// hostRefusals and reaches are what the host's files make of the grants.
	hostRefusals []Refusal
	reaches      []accessNote

	plan Plan
}

func newWorld(d Desired, h HostFacts, a Actual, o Options) *world {
	w := &world{
		desired: d, host: h, actual: a, options: o,
		wantNetworks: map[string]Network{},
		wantVolumes:  map[string]Volume{},
		containers:   map[string]*ObservedContainer{},
		networks:     map[string]*ObservedNetwork{},
		twins:        map[string]bool{},
		volumes:      map[string]*ObservedVolume{},
		imageItem:    map[string]string{},
		imageInput:   map[string]string{},
		netGone:      map[string]string{},
		netMade:      map[string]string{},
		volGone:      map[string]string{},
		volMade:      map[string]string{},
		dirMade:      map[string]string{},
		detach:       map[string]bool{},
		first:        map[string][]string{},
		discarded:    map[string][]string{},
		ready:        map[string]string{},
		members:      map[string][]string{},
		addresses:    make(map[string]string, len(d.Spaces)),
		untouched:    map[string]bool{},
		refused:      map[string]bool{},
		moved:        map[string]Space{},
		left:         map[string]bool{},
		plan:         Plan{Project: d.Project, Endpoint: d.Endpoint, Engine: a.Engine.Name, asking: make(map[string]asking, len(d.Spaces))},
	}
	for _, s := range d.Spaces {
		w.addresses[s.Container.Name] = s.Address.String()
	}
	for i := range a.Containers {
		w.containers[a.Containers[i].Name] = &a.Containers[i]
	}
	for i := range a.Networks {
		n := a.Networks[i]
		n.Members = slices.Clone(n.Members) // recovery gives some their names back
		if first, again := w.networks[n.Name]; again {
			w.twins[n.Name] = true
			first.Members = append(first.Members, n.Members...)
			continue
		}
		w.networks[n.Name] = &n
	}
	for i := range a.Volumes {
		w.volumes[a.Volumes[i].Name] = &a.Volumes[i]
	}
	if o.Destroy {
		return w
	}
	w.wantSpaces = d.Spaces
	w.hostRefusals, w.reaches = hostRefusals(d, h)
	for _, n := range d.Networks {
		w.wantNetworks[n.Name] = w.onEngine(n)
	}
	for _, v := range d.Volumes {
		w.wantVolumes[v.Name] = v
	}
	return w
}

func (w *world) add(i Item) string {
	w.plan.Items = append(w.plan.Items, i)
	return i.ID
}

func (w *world) refuse(r Refusal) {
	w.plan.Refusals = append(w.plan.Refusals, r)
}

// isNetwork looks a network up as it is; willBeNetwork as it will be.
func (w *world) isNetwork(name string) (Network, bool) {
	if n, ok := w.networks[name]; ok {
		return n.Network, true
	}
	return Network{}, false
}

func (w *world) willBeNetwork(name string) (Network, bool) {
	n, ok := w.wantNetworks[name]
	return n, ok
}

// directories makes the missing sources of grants that ask for it.
func (w *world) directories() {
	if w.options.Destroy || !w.host.Checked {
		return
	}
	given := map[string]bool{}
	for _, s := range w.wantSpaces {
		for _, g := range s.Grants {
			given[g.Source] = true
		}
	}
	for _, g := range w.desired.Grants {
		facts, known := w.host.Paths[g.Source]
		if !g.Create || !known || facts.Exists || !given[g.Source] || w.dirMade[facts.Resolved] != "" {
			continue
		}
		w.dirMade[facts.Resolved] = w.add(Item{
			ID:      "create directory " + facts.Resolved,
			Subject: g.Address.String(),
			Step:    CreateDirectory{facts.Resolved},
			Changes: []Change{{Field: "mode", After: "0700", AfterSet: true, Origin: g.At("create"), Side: SideEither}},
			Reasons: []string{g.Address.String() + " gives it and it doesn't exist"},
			Origin:  g.Origin,
			Effects: Creates,
			Side:    SideEither,
		})
	}
}

// makeImages plans a build for each image that isn't there or was made from something
// else, and a pull for each that is only referred to and isn't there.
func (w *world) makeImages() {
	if w.options.Destroy {
		return
	}
	used := map[string]bool{}
	for _, s := range w.wantSpaces {
		if s.Kind == KindSpace {
			used[s.Container.Image] = true
		}
	}
	for _, i := range w.desired.Images {
		if !used[i.Reference] {
			continue
		}
		facts, exists := w.actual.Images[i.Reference]
		if i.Binary == "" && i.Build == nil {
			if !exists {
				w.pullImage(i.Address.String(), i.Address.String(), i.Reference, i.Origin)
			}
		} else {
			w.makeImage(i, facts, exists)
		}
		if r := facts.LabelRefusal(i.Reference, i.Origin); r != nil && w.imageItem[i.Reference] == "" {
			r.About = i.Address.String()
			w.refuse(*r)
		}
	}
}

// pullImage plans a pull, once for each reference, and returns its item.
func (w *world) pullImage(what, subject, reference string, at schema.Origin) string {
	if w.imageItem[reference] == "" {
		w.imageItem[reference] = w.add(Item{
			ID: "pull " + what, Subject: subject,
			Step:    PullImage{reference},
			Changes: []Change{{Field: "reference", After: reference, AfterSet: true, Origin: at, Side: SideEither}},
			Reasons: []string{"the engine doesn't have it; pulling reaches its registry"},
			Origin:  at, Effects: Creates, Side: SideEither,
		})
	}
	return w.imageItem[reference]
}

// pullBases plans pulls of the images that an image starts from and the engine doesn't
// have: what it is made from is known only then.
func (w *world) pullBases(i Image, input ImageInput) []string {
	var pulls []string
	for _, base := range input.Bases {
		if _, there := w.actual.Images[base]; !there {
			pulls = append(pulls, w.pullImage(base, i.Address.String(), base, i.Origin))
		}
	}
	return pulls
}

func (w *world) makeImage(i Image, facts ImageFacts, exists bool) {
	input, checked := w.host.Inputs[i.Address.String()]
	if input.Problem != "" {
		w.refuse(Refusal{
			Code: CodeImageInput, Text: fmt.Sprintf("%s can't be made: %s.", i.Address, input.Problem),
			Fix: input.Fix, Origin: i.Origin, About: i.Address.String(),
		})
		return
	}
	want := input.Joined(w.actual.Images)
	if checked {
		w.imageInput[i.Reference] = want
	}
	if exists && checked && facts.Input == want {
		return
	}
	after := want
	pulls := w.pullBases(i, input)
	switch {
	case !checked:
		after = "(known when the host is looked at)"
	case len(pulls) > 0:
		want, after = "", "(known after pull)"
	}
	item := Item{
		ID: "build " + i.Address.String(), Subject: i.Address.String(),
		Step:    BuildImage{Image: i, From: input, Input: want},
		Changes: []Change{{Field: "input", Before: facts.Input, BeforeSet: facts.Input != "", After: after, AfterSet: true, Origin: i.Origin, Side: SideEither}},
		Origin:  i.Origin, Effects: Creates, Side: SideEither, Needs: pulls,
	}
	switch {
	case !exists:
		item.Reasons = append(item.Reasons, "the engine has no image "+i.Reference)
	case facts.Input == "":
		item.Effects = Updates
		item.Reasons = append(item.Reasons, i.Reference+" was not made here")
	default:
		item.Effects = Updates
		item.Reasons = append(item.Reasons, "what it is made from has changed")
	}
	if i.Build != nil {
		item.Reasons = append(item.Reasons, "a build runs its own commands and reaches the network")
	}
	w.imageItem[i.Reference] = w.add(item)
}

// Joined is the digest of all that an image is made from: what the host knows, joined
// with the ids of the images that a Dockerfile starts from.
func (i ImageInput) Joined(images map[string]ImageFacts) string {
	if len(i.Bases) == 0 {
		return i.Digest
	}
	parts := []string{i.Digest}
	for _, b := range i.Bases {
		parts = append(parts, b+"="+images[b].ID)
	}
	return digestOf(parts)
}

// makeNetworks plans the networks themselves; their members are the spaces' matter,
// but for strangers.
func (w *world) makeNetworks() {
	for _, name := range sortedKeys(w.wantNetworks) {
		want := w.wantNetworks[name]
		got, exists := w.networks[name]
		if !exists {
			if holder, taken := w.actual.Taken.Networks[name]; taken {
				w.refuseTaken("network", name, holder, want.Address.String(), want.Origin)
				continue
			}
			w.netMade[name] = w.add(w.createNetwork(want, nil, SideEither))
			continue
		}
		if w.ambiguous(want) {
			continue
		}
		ds := differences(got.comparableTo(want).Fields(), want.Fields())
		changes := w.changes(ds, applied{}, func(path string) schema.Origin { return networkOrigin(want, path) })
		if asked := w.replaceAsked(want.Address.String()); len(changes) > 0 || asked {
			for i := range changes {
				// A network can't change and carries no digest of what was asked.
				changes[i].Forces, changes[i].Side = true, SideEither
			}
			w.detach[name] = true
			w.netGone[name] = w.add(Item{
				ID: "remove " + want.Address.String(), Subject: want.Address.String(),
				Step:    RemoveNetwork{name},
				Reasons: remakeReasons(len(changes) > 0, asked),
				Origin:  want.Origin, Effects: Replaces, Side: SideEither,
				Needs: w.discarded[name],
			})
			w.netMade[name] = w.add(w.createNetwork(want, changes, SideEither, w.netGone[name]))
		}
	}
	for _, name := range sortedKeys(w.networks) {
		got := w.networks[name]
		if _, wanted := w.wantNetworks[name]; !wanted {
			w.removeNetwork(got)
		}
		w.strangers(got)
	}
	// The engine keeps a network that is the configuration of another.
	for _, name := range sortedKeys(w.networks) {
		for _, f := range w.networks[name].Excess {
			if f.Path == "ConfigFrom.Network" {
				w.need(w.netGone[f.Value], w.netGone[name])
			}
		}
	}
	// Every endpoint leaves before the network goes: what each container says of itself
	// counts, since one that is configured and not there is no member.
	for _, name := range sortedKeys(w.detach) {
		for _, container := range sortedKeys(w.containers) {
			c := w.containers[container]
			if _, on := c.Networks[name]; on && !w.leaves(c) {
				w.disconnect(c, name, w.networkSubject(name)+" is removed")
			}
		}
	}
}

func remakeReasons(differs, asked bool) []string {
	var reasons []string
	if asked {
		reasons = append(reasons, askedFor)
	}
	if differs {
		reasons = append(reasons, "a network can't be changed: it is removed and made again")
	}
	return reasons
}

// ambiguous refuses a network of ours whose name another has too: nobody can tell which
// of them is meant.
func (w *world) ambiguous(n Network) bool {
	holder, taken := w.actual.Taken.Networks[n.Name]
	switch {
	case taken:
	case w.twins[n.Name]:
		holder = "another network of this project"
	default:
		return false
	}
	w.refuse(Refusal{
		Code: CodeNameTaken,
		Text: fmt.Sprintf("The network %s and %s have one name.", n.Name, holder),
		Fix: fmt.Sprintf("Remove the other one by its id: docker network ls --no-trunc --filter name=%s shows both, "+
			"docker network inspect ID what each is, docker network rm ID removes one.", n.Name),
		Origin: n.Origin, About: n.Address.String(),
	})
	return true
}

func (w *world) createNetwork(n Network, changes []Change, side Side, needs ...string) Item {
	item := Item{
		ID: "create " + n.Address.String(), Subject: n.Address.String(),
		Step: CreateNetwork{n}, Changes: changes,
		Origin: n.Origin, Effects: Creates, Side: side, Needs: needs,
	}
	if changes == nil {
		item.Changes = w.created(n.Fields(), func(path string) schema.Origin { return networkOrigin(n, path) })
	} else {
		item.Effects = Replaces
	}
	return item
}

func (w *world) networkSubject(name string) string {
	if n, ok := w.wantNetworks[name]; ok {
		return n.Address.String()
	}
	if n, ok := w.networks[name]; ok && name == w.desired.Project+"-"+n.Labels[LabelName] {
		return "network." + n.Labels[LabelName]
	}
	return "network " + name
}

func (w *world) removeNetwork(got *ObservedNetwork) {
	if w.options.Destroy {
		for _, m := range got.Members {
			if !m.Ours {
				w.refuse(Refusal{
					Code:  CodeNetworkInUse,
					Text:  fmt.Sprintf("The network %s stays: %s is on it, which isn't ours.", got.Name, m.Name),
					Fix:   fmt.Sprintf("Take it off (docker network disconnect %s %s) and destroy again.", got.Name, m.Name),
					Stays: true, About: w.networkSubject(got.Name),
				})
				w.refused[got.Name] = true
			}
		}
		if w.refused[got.Name] {
			return
		}
	}
	subject := w.networkSubject(got.Name)
	reasons := []string{w.goneReason()}
	if w.twins[got.Name] {
		reasons = append(reasons, "several networks of ours have the name, and all of them go")
	}
	w.detach[got.Name] = true
	w.netGone[got.Name] = w.add(Item{
		ID: "remove " + subject, Subject: subject, Step: RemoveNetwork{got.Name},
		Reasons: reasons, Effects: Destroys, Side: SideEither,
		Needs: w.discarded[got.Name],
	})
}

func (w *world) goneReason() string {
	switch {
	case w.options.Destroy && len(w.options.Targets) > 0:
		return "it is in the part of the project that goes"
	case w.options.Destroy:
		return "everything of the project goes"
	}
	return "it is not in the files"
}

// strangers takes what isn't ours off our networks: its endpoint is ours though the
// container is not.
func (w *world) strangers(got *ObservedNetwork) {
	if w.refused[got.Name] {
		return
	}
	for _, m := range got.Members {
		if m.Ours {
			continue
		}
		id := w.add(Item{
			ID:      "disconnect " + m.Name + " " + w.networkSubject(got.Name),
			Subject: w.networkSubject(got.Name),
			Step:    DisconnectSpace{Name: m.Name, Network: got.Name, Foreign: true},
			Changes: []Change{{Field: key("members", m.Name), Before: "attached", BeforeSet: true, Side: SideReality}},
			Reasons: []string{"the container " + m.Name + " is not ours and is on a network of ours"},
			Effects: Narrows | Updates, Side: SideReality,
		})
		w.need(w.netGone[got.Name], id)
	}
}

// leaves tells whether a container is removed by this plan anyway.
func (w *world) leaves(c *ObservedContainer) bool {
	return w.removed(c) || w.recreated(c.Name)
}

// disconnect takes a container of ours off a network, and lets the network's removal
// wait for it.
func (w *world) disconnect(c *ObservedContainer, network, reason string) string {
	subject := w.subject(*c)
	id := w.add(Item{
		ID: "disconnect " + subject + " " + w.networkSubject(network), Subject: subject,
		Step:    DisconnectSpace{Name: c.Name, Network: network},
		Reasons: []string{reason},
		Effects: Updates, Side: SideEither, Needs: slices.Clone(w.first[c.Name]),
	})
	w.need(w.netGone[network], id)
	return id
}

// need adds what an item must wait for; an empty id is none.
func (w *world) need(id string, needs ...string) {
	if id == "" {
		return
	}
	for i := range w.plan.Items {
		if w.plan.Items[i].ID == id {
			w.plan.Items[i].Needs = append(w.plan.Items[i].Needs, needs...)
		}
	}
}

// makeVolumes plans the volumes. One that differs was remade by somebody, since a
// volume can't change; it goes, with what it holds now, and its users with it.
func (w *world) makeVolumes() {
	for _, name := range sortedKeys(w.wantVolumes) {
		want := w.wantVolumes[name]
		got, exists := w.volumes[name]
		if !exists {
			if holder, taken := w.actual.Taken.Volumes[name]; taken {
				w.refuseTaken("volume", name, holder, "volume."+want.Short, want.Origin)
				continue
			}
			w.volMade[name] = w.add(w.createVolume(want, nil))
			continue
		}
		ds := differences(got.Fields(), want.Fields())
		if len(ds) == 0 {
			continue
		}
		changes := w.changes(ds, applied{}, func(string) schema.Origin { return want.Origin })
		for i := range changes {
			changes[i].Forces, changes[i].Side = true, SideReality
		}
		if len(got.Users) > 0 {
			w.refuse(Refusal{
				Code: CodeVolumeInUse,
				Text: fmt.Sprintf("The volume %s was remade behind our back and %s, which isn't ours, uses it.", name, strings.Join(got.Users, ", ")),
				Fix:  "Stop and remove what uses it, then apply again.", Origin: want.Origin, About: "volume." + want.Short,
			})
			continue
		}
		w.volGone[name] = w.add(Item{
			ID: "remove volume." + want.Short, Subject: "volume." + want.Short, Step: RemoveVolume{name},
			Reasons: []string{"a volume can't be changed: it is removed, with what it holds now, and made again"},
			Origin:  want.Origin, Effects: Destroys | Replaces, Side: SideReality,
			Needs: w.discarded[name],
		})
		item := w.createVolume(want, changes)
		item.Needs = []string{w.volGone[name]}
		w.volMade[name] = w.add(item)
	}
	for _, name := range sortedKeys(w.volumes) {
		if _, wanted := w.wantVolumes[name]; wanted {
			continue
		}
		w.leaveVolume(w.volumes[name])
	}
}

func (w *world) createVolume(v Volume, changes []Change) Item {
	item := Item{
		ID: "create volume." + v.Short, Subject: "volume." + v.Short, Step: CreateVolume{v},
		Changes: changes, Origin: v.Origin, Effects: Creates, Side: SideEither,
	}
	if changes == nil {
		item.Changes = w.created(v.Fields(), func(string) schema.Origin { return v.Origin })
	} else {
		item.Effects = Replaces
	}
	return item
}

// leaveVolume keeps a volume that nothing asks for, since removing it loses data,
// unless that was asked for by name.
func (w *world) leaveVolume(got *ObservedVolume) {
	subject := w.volumeSubject(got.Volume)
	switch {
	case !w.options.RemoveVolumes:
		w.note("kept", subject, "nothing in the files uses it; it stays, with what it holds", schema.Origin{})
	case len(got.Users) > 0:
		w.refuse(Refusal{
			Code: CodeVolumeInUse, Stays: true, About: subject,
			Text: fmt.Sprintf("The volume %s stays: %s, which isn't ours, uses it.", got.Name, strings.Join(got.Users, ", ")),
			Fix:  "Remove what uses it and destroy again.",
		})
	default:
		w.volGone[got.Name] = w.add(Item{
			ID: "remove " + subject, Subject: subject, Step: RemoveVolume{got.Name},
			Reasons: []string{w.goneReason() + "; what it holds is lost"},
			Effects: Destroys, Side: SideEither, Needs: w.discarded[got.Name],
		})
	}
}

func (w *world) volumeSubject(v Volume) string {
	if short := v.Labels[LabelName]; v.Name == w.desired.Project+"-"+short {
		return "volume." + short
	}
	return "volume " + v.Name
}

func (w *world) note(kind, subject, text string, at schema.Origin) {
	w.plan.Notes = append(w.plan.Notes, Notice{kind, subject, text, "", at})
}

// variables digests what the variables were given, so that a plan that is applied later
// can tell whether it was made from the same.
func (w *world) variables() {
	for _, v := range w.desired.Variables {
		d := VariableDigest{Name: v.Name}
		if w.host.Digest != nil {
			d.Digest = w.host.Digest.Digest("variable", v.Name, string(v.JSON))
		}
		w.plan.Variables = append(w.plan.Variables, d)
	}
}

func (w *world) refuseTaken(kind, name, holder, about string, at schema.Origin) {
	w.refuse(Refusal{
		Code:   CodeNameTaken,
		Text:   fmt.Sprintf("The %s name %s is taken by %s.", kind, name, holder),
		Fix:    "Remove or rename it, or give yours another name; what isn't ours is never touched.",
		Origin: at, About: about,
	})
}

// changes turns differences into what a reader sees of them.
func (w *world) changes(ds []difference, a applied, origin func(string) schema.Origin) []Change {
	out := make([]Change, 0, len(ds))
	for _, d := range ds {
		c := Change{Field: d.path, Forces: !changesInPlace(d.path), Side: a.side(d), Origin: origin(d.path)}
		if set, network, _, _ := cutKey(d.path); set == "network" && w.isForeign(network) {
			c.Side = SideReality // the files have no words for it
		}
		if d.want != nil {
			c.After, c.AfterSet, c.Sensitive = d.want.Value, true, d.want.Sensitive
		} else {
			// Limits are raised and lowered in place but not taken away: to the engine,
			// zero means unchanged (moby/moby#22516).
			c.Forces = c.Forces || strings.HasPrefix(d.path, "limits.")
		}
		if d.got != nil {
			c.Before, c.BeforeSet = d.got.Value, true
			c.Sensitive = c.Sensitive || hidden(d, a)
		}
		if c.Sensitive {
			w.mask(&c)
		}
		out = append(out, c)
	}
	return out
}

// isForeign tells whether a network is neither asked for nor one that we made.
func (w *world) isForeign(network string) bool {
	_, asked := w.wantNetworks[network]
	_, made := w.networks[network]
	return !asked && !made && network != noNetwork
}

// hidden tells whether what an inspected variable holds may not be shown: it was
// sensitive when it was asked for, or nobody here knows what it is.
func hidden(d difference, a applied) bool {
	if set, _, _, _ := cutKey(d.path); set != "env" {
		return false
	}
	known, _ := a.asked(d.path, "")
	return !a.readable() || a.sensitive(d.path) || !known && d.want == nil
}

// mask hides a change's values; its digest still tells one value from another.
func (w *world) mask(c *Change) {
	if w.host.Digest != nil {
		c.Digest = w.host.Digest.Digest("sensitive", c.Field, c.Before, c.After)
	}
	if c.BeforeSet {
		c.Before = masked
	}
	if c.AfterSet {
		c.After = masked
	}
}

const masked = "(sensitive)"

// created shows the fields of a thing that is made.
func (w *world) created(fields []Field, origin func(string) schema.Origin) []Change {
	out := make([]Change, 0, len(fields))
	for _, f := range fields {
		c := Change{Field: f.Path, After: f.Value, AfterSet: true, Side: SideEither, Sensitive: f.Sensitive, Origin: origin(f.Path)}
		if c.Sensitive {
			w.mask(&c)
		}
		out = append(out, c)
	}
	return out
}

// changesInPlace tells whether the engine can change a field of a container that runs.
// Everything else, labels included, takes a new container.
func changesInPlace(path string) bool {
	switch path {
	case "limits.memory", "limits.memory_swap", "limits.cpus", "limits.pids", "restart", "state":
		return true
	}
	set, network, _, ok := cutKey(path)
	return ok && set == "network" && network != noNetwork
}

func networkOrigin(n Network, path string) schema.Origin {
	if at, ok := n.Origins[path]; ok {
		return at
	}
	return n.Origin
}

// effects marks the items of each space that gains or loses access.
func (w *world) effects() {
	gains, loses := map[string]bool{}, map[string]bool{}
	for _, a := range w.plan.Access {
		if a.Gains {
			gains[a.Space] = true
		} else {
			loses[a.Space] = true
		}
	}
	for i := range w.plan.Items {
		item := &w.plan.Items[i]
		switch item.Step.(type) {
		case CreateSpace, StartSpace, ReplaceSpace, ConnectSpace, UnpauseSpace, NotYet:
			if gains[item.Subject] {
				item.Effects |= Widens
			}
		}
		switch item.Step.(type) {
		case ReplaceSpace, RemoveSpace, DisconnectSpace:
			if loses[item.Subject] {
				item.Effects |= Narrows
			}
		}
	}
}

func cloneNeeds(parts ...[]string) []string {
	all := slices.Concat(parts...)
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.Sort(all)
	return slices.Compact(all)
}
