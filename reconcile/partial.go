package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"spaces/schema"
)

// askedFor is the reason of what no difference calls for.
const askedFor = "asked for"

// choose leaves out of the plan what wasn't asked for. Objects are chosen whole, since
// one of which only some steps are carried out would be left half done: a network that
// is made again takes along the spaces that leave and join it. A target brings with it
// all that its steps need; an excluded object takes out all whose steps need its own.
func (w *world) choose() {
	w.plan.Asked = Asked{
		Targets: sorted(w.options.Targets), Excludes: sorted(w.options.Excludes),
		Replace: sorted(w.options.Replace), AllowDestroy: sorted(w.options.AllowDestroy),
	}
	w.checkAddresses()
	if !w.plan.Asked.Partial() {
		return
	}
	needs := w.needsByObject()
	users := make(map[string][]string, len(needs))
	objects := sortedKeys(needs)
	for _, user := range objects {
		for _, n := range needs[user] {
			users[n] = append(users[n], user)
		}
	}
	targeted := func(o string) bool { return len(w.options.Targets) == 0 || matches(o, w.options.Targets) }
	out := closure(objects, users, func(o string) bool { return matches(o, w.options.Excludes) })
	chosen := closure(objects, needs, func(o string) bool { return targeted(o) && out[o] == "" })
	for _, o := range objects {
		w.left[o] = chosen[o] == ""
	}
	w.plan.Items = slices.DeleteFunc(w.plan.Items, func(i Item) bool { return w.left[i.Subject] })
	w.plan.LeftOut = slices.DeleteFunc(objects, func(o string) bool { return !w.left[o] })
	w.tellLeftOut(closure(objects, needs, targeted), out)
}

// needsByObject are the objects that each object's items need, for all objects that
// differ. Where a refusal stands in the place of an object's items, its users need it
// all the same; and a space needs the proxies of its lists.
func (w *world) needsByObject() map[string][]string {
	subject := make(map[string]string, len(w.plan.Items))
	needs := map[string][]string{}
	for _, i := range w.plan.Items {
		subject[i.ID] = i.Subject
		needs[i.Subject] = nil
	}
	for _, r := range w.plan.Refusals {
		if r.About != "" {
			needs[r.About] = nil
		}
	}
	add := func(user, needed string) {
		if _, differs := needs[needed]; differs && user != needed {
			needs[user] = append(needs[user], needed)
		}
	}
	for _, i := range w.plan.Items {
		for _, need := range i.Needs {
			if need != "" {
				add(i.Subject, subject[need])
			}
		}
	}
	for _, s := range w.wantSpaces {
		user := s.Address.String()
		if _, differs := needs[user]; !differs {
			continue
		}
		for _, used := range w.uses(s) {
			if w.isRefused(used) || strings.HasPrefix(used, "egress.") {
				add(user, used)
			}
		}
	}
	for user := range needs {
		slices.Sort(needs[user])
		needs[user] = slices.Compact(needs[user])
	}
	return needs
}

// uses are the addresses of what a space is made with.
func (w *world) uses(s Space) []string {
	used := []string{s.Image.String()}
	for name := range s.Container.Networks {
		used = append(used, w.networkSubject(name))
	}
	for _, m := range s.Container.Mounts {
		if v, is := w.wantVolumes[m.Source]; is && m.Type == "volume" {
			used = append(used, "volume."+v.Short)
		}
	}
	for _, list := range s.Lists {
		used = append(used, list.String())
	}
	return used
}

func (w *world) isRefused(address string) bool {
	return slices.ContainsFunc(w.plan.Refusals, func(r Refusal) bool { return r.About == address })
}

// closure is all that can be reached from the objects that match, each with the one it
// was reached from, itself for a match.
func closure(objects []string, edges map[string][]string, match func(string) bool) map[string]string {
	from := map[string]string{}
	var queue []string
	for _, o := range objects {
		if match(o) {
			from[o] = o
			queue = append(queue, o)
		}
	}
	for len(queue) > 0 {
		o := queue[0]
		queue = queue[1:]
		for _, to := range edges[o] {
			if _, seen := from[to]; !seen {
				from[to] = o
				queue = append(queue, to)
			}
		}
	}
	return from
}

// tellLeftOut says what is left out and why: each object that an exclusion takes out,
// and together those that nobody asked for.
func (w *world) tellLeftOut(asked, out map[string]string) {
	var others []string
	for _, o := range w.plan.LeftOut {
		switch because := out[o]; {
		case asked[o] == "":
			others = append(others, o)
		case because == o:
			w.note("left out", o, "it is excluded", schema.Origin{})
		case because != "":
			w.note("left out", o, fmt.Sprintf("it needs %s, which is left out", because), schema.Origin{})
		default:
			w.note("left out", o, "what needs it is left out", schema.Origin{})
		}
	}
	if len(others) > 0 {
		w.note("left out", "not targeted", some(others), schema.Origin{})
	}
}

// some lists a few words and counts the rest.
func some(words []string) string {
	const most = 6
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// matches tells whether an address is one of some, or an instance of a block among them.
func matches(address string, some []string) bool {
	block, _, _ := strings.Cut(address, "[")
	return slices.Contains(some, address) || slices.Contains(some, block)
}

func (w *world) replaceAsked(address string) bool { return matches(address, w.options.Replace) }

// checkAddresses refuses addresses of what is neither in the files nor on the engine.
func (w *world) checkAddresses() {
	if w.plan.Asked.String() == "" {
		return
	}
	known := w.knownAddresses()
	for _, list := range []struct {
		flag  string
		given []string
	}{
		{"--target", w.plan.Asked.Targets},
		{"--exclude", w.plan.Asked.Excludes},
		{"--allow-destroy", w.plan.Asked.AllowDestroy},
		{"--replace", w.plan.Asked.Replace},
	} {
		for _, address := range list.given {
			if !known[address] {
				w.refuseAddress(list.flag, address, known)
			}
		}
	}
	for _, address := range w.plan.Asked.Replace {
		if known[address] && !w.replaceable(address) {
			w.refuse(Refusal{
				Code: CodeUsage,
				Text: fmt.Sprintf("--replace can't make %s anew: it takes a network, or a space that apply runs, of the files.", address),
				Fix:  "Name one of these. A volume would lose what it holds, an image follows what it is made from, and what isn't in the files goes.",
			})
		}
	}
}

func (w *world) refuseAddress(flag, address string, known map[string]bool) {
	fix := "Write it as the plan does: space.web, space.web[\"key\"], network.inside, volume.cache, image.core."
	if meant := schema.Closest(address, sortedKeys(known)); meant != "" {
		fix = fmt.Sprintf("Did you mean %s?", meant)
	}
	w.refuse(Refusal{
		Code: CodeUsage, Fix: fix,
		Text: fmt.Sprintf("%s names %s, and there is no such thing in the files or on the engine.", flag, address),
	})
}

// knownAddresses are those of all objects, in the files or on the engine, and those of
// blocks with for_each.
func (w *world) knownAddresses() map[string]bool {
	known := map[string]bool{}
	add := func(address string) {
		block, _, _ := strings.Cut(address, "[")
		known[address], known[block] = true, true
	}
	d := w.desired
	for _, s := range d.Spaces {
		add(s.Address.String())
	}
	for _, n := range d.Networks {
		add(n.Address.String())
	}
	for _, v := range d.Volumes {
		add("volume." + v.Short)
	}
	for _, i := range d.Images {
		add(i.Address.String())
	}
	for _, r := range d.Roles {
		add(r.Address.String())
	}
	for _, c := range w.actual.Containers {
		add(w.subject(c))
	}
	for name := range w.networks {
		known[w.networkSubject(name)] = true
	}
	for _, v := range w.actual.Volumes {
		known[w.volumeSubject(v.Volume)] = true
	}
	return known
}

// replaceable tells whether --replace can make something anew, or all of a block.
func (w *world) replaceable(address string) bool {
	for _, n := range w.wantNetworks {
		if matches(n.Address.String(), []string{address}) {
			return true
		}
	}
	return slices.ContainsFunc(w.wantSpaces, func(s Space) bool {
		return s.Kind == KindSpace && s.Lifecycle == schema.LifecycleService && matches(s.Address.String(), []string{address})
	})
}

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// flags are the lists by the flag that sets each.
func (a Asked) flags() map[string][]string {
	return map[string][]string{
		"--target": a.Targets, "--exclude": a.Excludes, "--replace": a.Replace, "--allow-destroy": a.AllowDestroy,
	}
}

// String is the flags as somebody would type them, empty without any.
func (a Asked) String() string {
	var words []string
	flags := a.flags()
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		for _, address := range flags[flag] {
			words = append(words, flag+" "+address)
		}
	}
	return strings.Join(words, " ")
}
