package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// recovery finds what an apply that was cut short left behind and makes setting it
// right the plan's first steps. What follows is compared with the world as it will be
// after them.
//
// A replacement goes: make x.new; stop x; rename x to x.old; rename x.new to x; start
// x; remove x.old. Until the new x runs, the old one is what's known to work.
func (w *world) recovery() {
	for _, name := range sortedKeys(w.containers) {
		base, isOld := strings.CutSuffix(name, SuffixOld)
		if !isOld || strings.Contains(base, ".") {
			continue // what a replacement made has a name of ours, which has no dot
		}
		old, cur := w.containers[name], w.containers[base]
		switch {
		case cur == nil:
			w.restore(base, old)
		case running(cur.State) || cur.Labels[LabelReplaces] != old.ID:
			w.discard(old, "the container that took its place runs")
		default:
			w.discard(cur, "it was to replace "+base+" and doesn't run")
			w.restore(base, old)
		}
	}
	for _, name := range sortedKeys(w.containers) {
		if base, isNew := strings.CutSuffix(name, SuffixNew); isNew && !strings.Contains(base, ".") {
			w.discard(w.containers[name], "it was to replace "+base+" when an apply was cut short")
		}
	}
	for _, name := range sortedKeys(w.containers) {
		base, isProbe := strings.CutSuffix(name, SuffixProbe)
		if c := w.containers[name]; isProbe && c.Kind() == KindProbe {
			w.discard(c, "it looks around in the networks of "+base+", and goes with the verification that runs it")
		}
	}
}

func (w *world) discard(c *ObservedContainer, reason string) {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(c.Name, SuffixOld), SuffixNew), SuffixProbe)
	id := w.add(Item{
		ID: "discard " + c.Name, Subject: w.subject(*c),
		Step:    RemoveSpace{Name: c.Name, StopTimeout: c.StopTimeout},
		Reasons: []string{reason},
		Effects: Destroys, Side: SideEither,
		Needs: slices.Clone(w.first[base]),
	})
	w.first[base] = append(w.first[base], id)
	for _, n := range w.networks {
		n.Members = slices.DeleteFunc(n.Members, func(m Member) bool { return m.Name == c.Name })
	}
	for name := range c.Networks {
		w.discarded[name] = append(w.discarded[name], id)
	}
	for _, m := range c.Mounts {
		if m.Type == "volume" {
			w.discarded[m.Source] = append(w.discarded[m.Source], id)
		}
	}
	delete(w.containers, c.Name)
}

func (w *world) restore(base string, old *ObservedContainer) {
	id := w.add(Item{
		ID: "recover " + base, Subject: w.subject(*old),
		Step:    RenameSpace{From: old.Name, To: base},
		Changes: []Change{{Field: "name", Before: old.Name, BeforeSet: true, After: base, AfterSet: true, Side: SideEither}},
		Reasons: []string{"an apply was cut short while it was being replaced"},
		Effects: Updates, Side: SideEither,
		Needs: slices.Clone(w.first[base]),
	})
	w.first[base] = append(w.first[base], id)
	for _, n := range w.networks {
		for i := range n.Members {
			if n.Members[i].Name == old.Name {
				n.Members[i].Name = base
			}
		}
	}
	delete(w.containers, old.Name)
	restored := *old
	restored.Name = base
	w.containers[base] = &restored
}

// makeSpaces plans every space of the files.
func (w *world) makeSpaces() {
	for _, s := range w.wantSpaces {
		if s.Kind != KindSpace || s.Lifecycle != schema.LifecycleService {
			w.shownOnly(s)
			continue
		}
		c := w.onHost(s)
		w.plan.asking[s.Address.String()] = asking{c, w.imageInput[c.Image]}
		if got := w.containerOf(s); got != nil {
			w.compareSpace(s, c, got)
		} else {
			w.createSpace(s, c)
		}
	}
	w.waitForEachOther()
	w.takeTurns()
}

// waitForEachOther lets a space's item need those that make ready what it depends on.
func (w *world) waitForEachOther() {
	for i := range w.plan.Items {
		item := &w.plan.Items[i]
		var waits []string
		switch step := item.Step.(type) {
		case CreateSpace:
			waits = step.WaitFor
		case ReplaceSpace:
			waits = step.WaitFor
		case StartSpace:
			waits = step.WaitFor
		}
		for _, name := range waits {
			item.Needs = cloneNeeds(item.Needs, []string{w.ready[name]})
		}
	}
}

// shownOnly stands for what this release describes but doesn't run.
func (w *world) shownOnly(s Space) {
	what := fmt.Sprintf("a space with lifecycle %q", s.Lifecycle)
	if s.Kind == KindEgress {
		what = "an egress list's proxy"
	}
	if c, exists := w.containers[s.Container.Name]; exists {
		w.untouched[c.Name] = true
		w.differs(s, c, what)
		return
	}
	w.add(Item{
		ID: "create " + s.Address.String(), Subject: s.Address.String(),
		Step:    NotYet{what},
		Changes: w.created(w.onHost(s).Fields(), func(path string) schema.Origin { return originOf(s, path) }),
		Reasons: []string{"shown, and not run by this release"},
		Origin:  s.Origin, Effects: Creates, Side: SideFiles,
	})
}

// differs shows what of a container that apply doesn't replace isn't as the files say.
func (w *world) differs(s Space, got *ObservedContainer, what string) {
	label, _ := parseApplied(w.host.Digest, got.Labels[LabelApplied])
	want, _ := w.expected(w.onHost(s), got, label)
	changes := w.changes(differences(w.observedFields(got, label), want.Fields()), label, func(path string) schema.Origin { return originOf(s, path) })
	changes = append(changes, sharedChanges(s, got)...)
	if len(changes) == 0 {
		return
	}
	w.add(Item{
		ID: "leave " + s.Address.String(), Subject: s.Address.String(), Step: NotYet{what},
		Changes: changes, Reasons: []string{"it runs and differs: the host replaces it when it starts it next"},
		Origin: s.Origin, Side: SideEither,
	})
}

func (w *world) createSpace(s Space, c Container) {
	name := c.Name
	if holder, taken := w.actual.Taken.Containers[name]; taken {
		w.refuseTaken("container", name, holder, s.Address.String(), s.Origin)
		return
	}
	shown := c
	if facts, known := w.actual.Images[c.Image]; known && w.imageItem[c.Image] == "" {
		shown = WithImage(c, facts)
	}
	w.ready[name] = w.add(Item{
		ID: "create " + s.Address.String(), Subject: s.Address.String(),
		Step:    CreateSpace{Space: s, Container: c, WaitFor: s.DependsOn},
		Changes: w.created(withContent(shown), func(path string) schema.Origin { return originOf(s, path) }),
		Origin:  s.Origin, Effects: Creates, Side: SideEither,
		Needs: cloneNeeds(w.first[name], w.needsOf(c)),
	})
}

// withContent are a container's fields and, for reading, the digests of its file grants.
func withContent(c Container) []Field {
	f := fieldList{fields: c.Fields()}
	for target, m := range c.Mounts {
		f.add(contentPath(target), m.Content)
	}
	return f.sorted()
}

// needsOf are the items that make what a container uses.
func (w *world) needsOf(c Container) []string {
	needs := []string{w.imageItem[c.Image]}
	for name := range c.Networks {
		needs = append(needs, w.netMade[name])
	}
	for _, m := range c.Mounts {
		if m.Type == "volume" {
			needs = append(needs, w.volMade[m.Source])
		} else {
			needs = append(needs, w.dirMade[m.Source])
		}
	}
	return needs
}

// compareSpace plans what makes a container that exists what is asked.
func (w *world) compareSpace(s Space, c Container, got *ObservedContainer) {
	label, state := parseApplied(w.host.Digest, got.Labels[LabelApplied])
	want, image := w.expected(c, got, label)
	ds := differences(w.observedFields(got, label), want.Fields())
	changes := w.changes(ds, label, func(path string) schema.Origin { return originOf(s, path) })
	w.imageSides(changes, c, got, label)
	changes = append(changes, w.hostChanges(s, c, got, label)...)
	if state == appliedForged {
		_, there := got.Labels[LabelApplied]
		forged := Change{
			Field: key("labels", LabelApplied), BeforeSet: there,
			After: "(written at create)", AfterSet: true, Forces: true, Side: SideReality, Origin: s.Origin,
		}
		if there {
			forged.Before = "(not what was written)"
		}
		changes = append(changes, forged)
	}
	if state == appliedOtherKey && w.host.Digest != nil && hasContent(c) {
		w.note("uncompared", s.Address.String(),
			"made with a key that isn't here: whether its file grants have changed since can't be told", s.Origin)
	}
	settleLost(changes, c)
	changes = append(changes, sharedChanges(s, got)...)
	if c := stateChange(got); c != nil {
		changes = append(changes, *c)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	switch {
	case got.State == StateDead || got.State == StateRemoving || w.recreated(got.Name):
		w.recreate(s, c, got, changes)
	case got.Name != c.Name, w.replaceAsked(s.Address.String()), slices.ContainsFunc(changes, func(c Change) bool { return c.Forces }):
		w.replace(s, c, got, changes, image)
	default:
		w.update(s, c, got, changes)
	}
}

// expected is the container that is asked for with what its image brings. While the
// image changes, the other fields are compared as the image that the container was
// made from has them: anything else would show differences nobody made.
func (w *world) expected(c Container, got *ObservedContainer, a applied) (Container, string) {
	facts, exists := w.actual.Images[c.Image]
	if running, known := w.actual.Images[got.ImageID]; known && (!exists || running.ID != facts.ID || w.imageItem[c.Image] != "") {
		id := facts.ID
		if w.imageItem[c.Image] != "" {
			id = ""
		} else if _, same := a.asked("image", imageValue(c.Image, facts.ID)); exists && same {
			// It was asked to be made from today's image and runs another: the files ask for
			// what they always did.
			running = facts
		}
		c = WithImage(c, running)
		c.ImageID = id
		return c, "the image"
	}
	if exists {
		c = WithImage(c, facts)
	}
	if w.imageItem[c.Image] != "" {
		c.ImageID = ""
	}
	return c, ""
}

// imageSides corrects what the applied label can't know about images. One that is made
// anew has no id to compare, but where a container runs an image made from what the
// files still say, it is the name that somebody gave to another one. And while a
// container runs an image that it was not asked to, what images bring proves nothing
// about the files.
func (w *world) imageSides(changes []Change, c Container, got *ObservedContainer, a applied) {
	at := slices.IndexFunc(changes, func(c Change) bool { return c.Field == "image" })
	if at < 0 {
		return
	}
	input, told := w.imageInput[c.Image]
	running, known := w.actual.Images[got.ImageID]
	if told && w.imageItem[c.Image] != "" && known && running.Input == input && got.Image == c.Image {
		changes[at].Side = SideReality
	}
	if _, same := a.asked("image", imageValue(got.Image, got.ImageID)); same {
		return
	}
	for i := range changes {
		if changes[i].Side == SideFiles {
			changes[i].Side = SideEither
		}
	}
}

// observedFields are a container's fields but for what the engine is known to have
// filled in when it was made. Where its label can't be read, that isn't known of any
// that an engine may fill in, and they are left out.
func (w *world) observedFields(got *ObservedContainer, a applied) []Field {
	return slices.DeleteFunc(got.Fields(), func(f Field) bool { return filledIn(f, a) })
}

func filledIn(f Field, a applied) bool {
	if !f.EngineFilled {
		return false // most are, and a digest has its price
	}
	_, same := a.asked(f.Path, f.Value)
	return same || !a.readable()
}

// hostChanges are differences between a running container and the host's files: a file
// grant whose content was another when it was given, a single-file mount that shows a
// file which is no longer there.
func (w *world) hostChanges(s Space, c Container, got *ObservedContainer, a applied) []Change {
	var out []Change
	for _, target := range sortedKeys(c.Mounts) {
		path := contentPath(target)
		if content := c.Mounts[target].Content; content != "" {
			if known, same := a.asked(path, content); known && !same {
				out = append(out, Change{
					Field: path, Before: "as it was given", BeforeSet: true, After: "changed since", AfterSet: true,
					Forces: true, Side: SideFiles, Origin: originOf(s, key("mount", target)),
				})
			}
		}
		if slices.Contains(got.Stale, target) {
			out = append(out, Change{
				Field: key("mount", target) + ".file", Before: "a file that was replaced", BeforeSet: true,
				After: "the file at " + c.Mounts[target].Source, AfterSet: true,
				Forces: true, Side: SideReality, Origin: originOf(s, key("mount", target)),
			})
		}
		if slices.Contains(got.Unread, target) {
			w.note("unchecked", s.Address.String(),
				"whether "+target+" still shows the file at "+c.Mounts[target].Source+" can't be looked at", originOf(s, key("mount", target)))
		}
	}
	return out
}

func hasContent(c Container) bool {
	for _, m := range c.Mounts {
		if m.Content != "" {
			return true
		}
	}
	return false
}

// settleLost says what becomes of places on networks that are configured and not there.
// Connecting anew puts a container there. What no file asks for the engine can't take
// away, as it never came, but with the container: at its next start it would be there.
func settleLost(changes []Change, asked Container) {
	for i := range changes {
		set, network, rest, _ := cutKey(changes[i].Field)
		if set != "network" || rest != "."+NoEndpoint {
			continue
		}
		_, want := asked.Networks[network]
		changes[i].Side, changes[i].Forces = SideReality, !want
	}
}

// sharedChanges are strangers in a container's network namespace. They have no place of
// their own that could be taken from them: they lose it with the container.
func sharedChanges(s Space, got *ObservedContainer) []Change {
	var out []Change
	for _, m := range got.SharedBy {
		out = append(out, Change{
			Field: key("namespace", m.Name), Before: "shared by " + m.Name + ", which isn't ours", BeforeSet: true,
			Forces: true, Side: SideReality, Origin: s.Origin,
		})
	}
	return out
}

func stateChange(got *ObservedContainer) *Change {
	before := string(got.State)
	switch got.State {
	case StateRunning:
		return nil
	case StateExited:
		before = fmt.Sprintf("exited with status %d", got.ExitCode)
	case StateRestarting:
		before = fmt.Sprintf("restarting: its command keeps ending, last with status %d", got.ExitCode)
	}
	return &Change{Field: "state", Before: before, BeforeSet: true, After: "running", AfterSet: true, Side: SideReality}
}

// recreated tells whether a container must go before its successor is made, since a
// volume it uses is remade.
func (w *world) recreated(name string) bool {
	c, exists := w.containers[name]
	if !exists {
		return false
	}
	for _, m := range c.Mounts {
		if m.Type == "volume" && w.volGone[m.Source] != "" {
			return true
		}
	}
	return false
}

// recreate removes a container and makes it again, with a gap between.
func (w *world) recreate(s Space, c Container, got *ObservedContainer, changes []Change) {
	gone := w.removeContainer(got, Replaces, SideEither, "it goes before its successor is made")
	w.setReady(got, c, w.add(Item{
		ID: "create " + s.Address.String(), Subject: s.Address.String(),
		Step:    CreateSpace{Space: s, Container: c, WaitFor: s.DependsOn},
		Changes: changes,
		Origin:  s.Origin, Effects: Replaces, Side: SideEither,
		Needs: cloneNeeds([]string{gone}, w.first[c.Name], w.needsOf(c)),
	}))
}

// setReady notes the item that makes a container ready, by its name and by the one it
// takes over from.
func (w *world) setReady(got *ObservedContainer, c Container, id string) {
	w.ready[got.Name], w.ready[c.Name] = id, id
}

func (w *world) replace(s Space, c Container, got *ObservedContainer, changes []Change, reason string) {
	name := c.Name
	for _, n := range []string{name, name + SuffixNew, name + SuffixOld} {
		if holder, taken := w.actual.Taken.Containers[n]; taken {
			w.refuseTaken("container", n, holder, s.Address.String(), s.Origin)
			return
		}
	}
	step := ReplaceSpace{Space: s, Container: c, WaitFor: s.DependsOn}
	item := Item{
		ID: "replace " + s.Address.String(), Subject: s.Address.String(),
		Changes: changes, Origin: s.Origin, Effects: Replaces,
		Needs: cloneNeeds(w.first[name], w.first[got.Name], w.needsOf(c)),
	}
	if got.Name != name {
		step.From = got.Name
		item.Reasons = append(item.Reasons, w.movedReason(got.Name))
	}
	item.Step = step
	if w.replaceAsked(s.Address.String()) {
		item.Reasons = append(item.Reasons, askedFor)
	}
	var forces []string
	for _, change := range changes {
		if change.Forces {
			forces = append(forces, change.Field)
		}
	}
	if len(forces) > 0 {
		item.Reasons = append(item.Reasons, "can't change in place: "+strings.Join(forces, ", "))
	}
	if reason != "" && w.imageItem[c.Image] != "" {
		item.Reasons = append(item.Reasons, "its image is made anew")
	}
	if !got.hasImage(w.actual) {
		item.Reasons = append(item.Reasons, "the image it was made from is gone, so what came from it can't be verified")
	}
	w.setReady(got, c, w.add(item))
}

func (c ObservedContainer) hasImage(a Actual) bool {
	_, ok := a.Images[c.ImageID]
	return ok
}

// update changes a container as it runs.
func (w *world) update(s Space, c Container, got *ObservedContainer, changes []Change) {
	var live, state []Change
	endpoints := map[string][]Change{}
	for _, change := range changes {
		switch set, network, _, _ := cutKey(change.Field); {
		case change.Field == "state":
			state = append(state, change)
		case set == "network":
			endpoints[network] = append(endpoints[network], change)
		default:
			live = append(live, change)
		}
	}
	needs := slices.Clone(w.first[got.Name])
	if len(live) > 0 {
		needs = append(needs, w.add(w.updateItem(s, c, live, needs)))
	}
	for network := range w.detach {
		_, is := got.Networks[network]
		if _, want := c.Networks[network]; is && want && endpoints[network] == nil {
			endpoints[network] = []Change{}
		}
	}
	for _, network := range sortedKeys(endpoints) {
		needs = append(needs, w.reconnect(s, c, got, network, endpoints[network])...)
	}
	switch {
	case got.State == StatePaused:
		needs = append(needs, w.add(Item{
			ID: "unpause " + s.Address.String(), Subject: s.Address.String(), Step: UnpauseSpace{got.Name},
			Changes: state, Reasons: []string{"it is paused"},
			Origin: s.Origin, Effects: Updates, Needs: cloneNeeds(needs),
		}))
	case len(state) > 0:
		needs = append(needs, w.add(Item{
			ID: "start " + s.Address.String(), Subject: s.Address.String(),
			Step:    StartSpace{Name: got.Name, WaitFor: s.DependsOn},
			Changes: state, Reasons: []string{"it doesn't run"},
			Origin: s.Origin, Effects: Restarts, Needs: cloneNeeds(needs, w.needsOf(c)),
		}))
	}
	if len(needs) > 0 {
		w.ready[got.Name] = needs[len(needs)-1]
	}
}

func (w *world) updateItem(s Space, c Container, live []Change, needs []string) Item {
	item := Item{
		ID: "update " + s.Address.String(), Subject: s.Address.String(),
		Changes: live, Reasons: []string{"the engine changes these as it runs"},
		Origin: s.Origin, Effects: Updates, Needs: slices.Clone(needs),
	}
	var fields []string
	for _, change := range live {
		fields = append(fields, change.Field)
	}
	item.Step = UpdateSpace{Name: c.Name, Fields: fields, To: c}
	return item
}

// reconnect puts a container's endpoint on one network right: it leaves, where it is
// there, and joins, where it is asked to be.
func (w *world) reconnect(s Space, c Container, got *ObservedContainer, network string, changes []Change) []string {
	_, is := got.Networks[network]
	endpoint, want := c.Networks[network]
	var ids []string
	if is {
		id := "disconnect " + s.Address.String() + " " + w.networkSubject(network)
		if !w.detach[network] {
			item := Item{
				ID: id, Subject: s.Address.String(), Step: DisconnectSpace{Name: got.Name, Network: network},
				Changes: changes, Origin: s.Origin, Effects: Updates, Needs: slices.Clone(w.first[got.Name]),
			}
			if want {
				// What differs stands with the joining, once.
				item.Changes = nil
				item.Reasons = []string{"an endpoint can't be changed: it leaves and joins again"}
			}
			w.add(item)
		}
		ids = append(ids, id)
	}
	if want {
		ids = append(ids, w.add(Item{
			Reasons: connectReasons(is, w.detach[network]),
			ID:      "connect " + s.Address.String() + " " + w.networkSubject(network), Subject: s.Address.String(),
			Step:    ConnectSpace{Name: got.Name, Network: network, Endpoint: endpoint},
			Changes: changes, Origin: originOf(s, key("network", network)), Effects: Updates,
			Side:  SideEither,
			Needs: cloneNeeds(ids, w.first[got.Name], []string{w.netMade[network]}),
		}))
	}
	return ids
}

func connectReasons(is, remade bool) []string {
	switch {
	case remade:
		return []string{"its network is made again"}
	case !is:
		return []string{"it isn't on it"}
	}
	return nil
}

// removals removes containers of ours that the files don't ask for. The host's own
// (a core, sessions, probes) are the host's to remove, until everything goes.
func (w *world) removals() {
	for _, name := range sortedKeys(w.containers) {
		c := w.containers[name]
		if w.wanted(name) || w.untouched[name] {
			continue
		}
		if w.hosts(c) {
			w.untouched[name] = true
			w.note("host's", w.subject(*c), fmt.Sprintf("the container %s is the host's: apply leaves it", name), schema.Origin{})
			continue
		}
		side, reason := SideEither, w.goneReason()
		if twin := w.twin(c); twin != "" {
			side, reason = SideReality, "it carries the labels of "+twin+" and isn't its container"
		}
		w.makeRoom(c, w.removeContainer(c, Destroys, side, reason))
	}
	if w.options.Destroy {
		w.removeInReverse()
	}
}

func (w *world) removeContainer(c *ObservedContainer, effect Effects, side Side, reason string) string {
	subject := w.subject(*c)
	id := w.add(Item{
		ID: "remove " + subject, Subject: subject, Step: RemoveSpace{Name: c.Name, StopTimeout: c.StopTimeout},
		Reasons: []string{reason},
		Effects: effect, Side: side, Needs: slices.Clone(w.first[c.Name]),
	})
	for name := range c.Networks {
		w.need(w.netGone[name], id)
	}
	for _, m := range c.Mounts {
		if m.Type == "volume" {
			w.need(w.volGone[m.Source], id)
		}
	}
	return id
}

// removeInReverse lets what others depend on go after them, as far as the files tell.
func (w *world) removeInReverse() {
	for _, s := range w.desired.Spaces {
		for _, dependency := range s.DependsOn {
			if c, exists := w.containers[dependency]; exists && w.containers[s.Container.Name] != nil {
				w.need("remove "+w.subject(*c), "remove "+s.Address.String())
			}
		}
	}
}

func (w *world) wanted(name string) bool {
	if _, moves := w.moved[name]; moves {
		return true
	}
	return slices.ContainsFunc(w.wantSpaces, func(s Space) bool { return s.Container.Name == name })
}

// removed tells whether a container goes for good.
func (w *world) removed(c *ObservedContainer) bool {
	return !w.wanted(c.Name) && !w.untouched[c.Name] && !w.hosts(c)
}

// hosts tells whether a container is the host's to keep.
func (w *world) hosts(c *ObservedContainer) bool {
	switch c.Kind() {
	case KindCore, KindSession, KindProbe:
		return !w.options.Destroy
	}
	return false
}

// twin is the space whose labels a container carries without being its container.
func (w *world) twin(c *ObservedContainer) string {
	for _, s := range w.wantSpaces {
		if s.Address.String() == addressOf(*c) && s.Container.Name != c.Name {
			return s.Address.String()
		}
	}
	return ""
}

// originOf is where the files say what a field of a container is.
func originOf(s Space, path string) schema.Origin {
	set, element, _, keyed := cutKey(path)
	if !keyed {
		switch path {
		case "cap_add", "read_only", "no_new_privileges", "seccomp", "init", "devices", "group_add":
			return loosenedAt(s, path)
		}
		return s.At(path)
	}
	switch set {
	case "mount":
		if g, ok := s.Grants[element]; ok {
			return g.Origin
		}
	case "sysctls":
		return loosenedAt(s, set)
	case "network":
		return s.At("networks")
	}
	if at, ok := s.Origins[path]; ok {
		return at
	}
	return s.At(set)
}

func loosenedAt(s Space, field string) schema.Origin {
	kind := map[string]string{
		"cap_add": schema.LoosenCapAdd, "read_only": schema.LoosenWritableRoot,
		"no_new_privileges": schema.LoosenNewPrivileges, "seccomp": schema.LoosenSeccomp,
		"init": schema.LoosenInit, "devices": schema.LoosenDevice,
		"group_add": schema.LoosenGroupAdd, "sysctls": schema.LoosenSysctl,
	}[field]
	for _, l := range s.Loosen {
		if l.Kind == kind {
			return l.Origin
		}
	}
	return s.Origin
}
