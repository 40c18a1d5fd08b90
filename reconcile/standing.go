package reconcile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"spaces/schema"
)

// standing lists what a reviewer must see in every plan, changed or not: each step back
// from the hardening with its reason, each network and host that reaches further than
// a name says, each refusal a person overruled and what the engine doesn't hold.
func (w *world) standing() {
	if w.options.Destroy {
		return
	}
	for _, a := range w.desired.Accepts {
		if w.acceptMatters(a.Code) {
			w.standBecause("accepted", a.Code, "", a.Reason, a.Origin)
		} else {
			w.standBecause("accepted", a.Code, "needless on this engine", a.Reason, a.Origin)
		}
	}
	if limits := w.actual.Engine.Unenforced; len(limits) > 0 && len(w.wantSpaces) > 0 {
		if _, ok := w.accepted(schema.AcceptLimitsUnenforced); ok {
			w.stand("unenforced", "limits", strings.Join(limits, ", ")+": this engine holds no space to them", w.desired.Install)
		}
	}
	for _, s := range w.wantSpaces {
		w.standingSpace(s)
	}
	for _, n := range w.desired.Networks {
		switch {
		case n.Uplink:
			w.stand("wide", n.Address.String(), "an uplink: the proxies on it reach any address", n.Origin)
		case !n.Internal:
			w.standBecause("wide", n.Address.String(), "reaches any address, for "+w.membersAsked(n.Name), n.Reason, n.Origin)
		}
	}
	for _, e := range w.desired.Egresses {
		for _, entry := range e.Entries {
			if entry.Entry.Wide() {
				w.standBecause("wide", e.Address.String(), entry.Entry.String()+" is "+entry.Entry.Explain(), entry.Reason, entry.Origin)
			}
		}
	}
}

// roles shows what this release doesn't run.
func (w *world) roles() {
	if w.options.Destroy {
		return
	}
	for _, r := range w.desired.Roles {
		w.plan.Items = append(w.plan.Items, Item{
			ID: "create " + r.Address.String(), Subject: r.Address.String(), Step: NotYet{"a role"},
			Changes: []Change{
				{Field: "space", After: r.Space.String(), AfterSet: true, Side: SideFiles, Origin: r.At("space")},
				{Field: "holds", After: strings.Join(r.Holds, ", "), AfterSet: true, Side: SideFiles, Origin: r.At("holds")},
			},
			Reasons: []string{"shown, and not run by this release"},
			Origin:  r.Origin, Effects: Creates, Side: SideFiles,
		})
	}
}

func (w *world) standingSpace(s Space) {
	for _, l := range s.Loosen {
		w.standBecause("loosened", s.Address.String(), strings.TrimSpace(l.Kind+" "+loosenedText(l)), l.Reason, l.Origin)
	}
	for _, port := range sortedKeys(s.Container.Publish) {
		for binding := range strings.SplitSeq(s.Container.Publish[port], ",") {
			if !loopback(binding) {
				w.stand("wide", s.Address.String(), fmt.Sprintf("port %s is published on %s, off loopback", port, binding), originOf(s, key("publish", port)))
			}
		}
	}
	if facts, known := w.actual.Images[s.Container.Image]; known {
		for _, v := range uncovered(s.Container, facts.Volumes) {
			w.stand("tmpfs", s.Address.String(), v+" is a volume of the image with no grant: what is written there is in memory and is lost", s.Origin)
		}
	}
}

func (w *world) stand(kind, subject, text string, at schema.Origin) {
	w.standBecause(kind, subject, text, "", at)
}

func (w *world) standBecause(kind, subject, text, reason string, at schema.Origin) {
	w.plan.Standing = append(w.plan.Standing, Notice{kind, subject, text, reason, at})
}

func (w *world) membersAsked(network string) string {
	var names []string
	for _, s := range w.wantSpaces {
		if _, on := s.Container.Networks[network]; on {
			names = append(names, s.Address.String())
		}
	}
	if len(names) == 0 {
		return "nothing yet"
	}
	return strings.Join(names, ", ")
}

func (w *world) accepted(code string) (schema.Accept, bool) {
	for _, a := range w.desired.Accepts {
		if a.Code == code {
			return a, true
		}
	}
	return schema.Accept{}, false
}

// acceptMatters tells whether what a person accepted is so on this engine. Without an
// engine it can't be known, and the acceptance is shown.
func (w *world) acceptMatters(code string) bool {
	e := w.actual.Engine
	switch {
	case e.Offline:
		return true
	case code == schema.AcceptNotRootless:
		return !e.Rootless
	case code == schema.AcceptLimitsUnenforced:
		return len(e.Unenforced) > 0
	case code == schema.AcceptNetworkNotIsolated:
		return e.InternalReachesHost
	}
	return true
}

// refusals judges what the plan and the engine, or the plan and the host, come to
// together.
func (w *world) refusals() {
	w.engineRefusals()
	if !w.options.Destroy {
		w.plan.Refusals = append(w.plan.Refusals, w.hostRefusals...)
		w.plan.Assertions = Judge(w.desired, w.host)
		w.plan.Refusals = append(w.plan.Refusals, BrokenAssertions(w.plan.Assertions)...)
		w.notYet()
		w.unchecked()
	}
	w.plan.Refusals = slices.DeleteFunc(w.plan.Refusals, func(r Refusal) bool { return w.left[r.About] })
	slices.SortStableFunc(w.plan.Refusals, func(a, b Refusal) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Origin.String(), b.Origin.String()), strings.Compare(a.Text, b.Text))
	})
	w.plan.Refusals = slices.Compact(w.plan.Refusals)
}

func (w *world) engineRefusals() {
	e := w.actual.Engine
	if e.Offline || w.options.Destroy {
		return
	}
	if len(e.Unenforced) > 0 && len(w.wantSpaces) > 0 {
		w.overrulable(Refusal{
			Code:   CodeLimitsUnenforced,
			Text:   fmt.Sprintf("The engine doesn't hold a space to its limits: %s.", strings.Join(e.Unenforced, ", ")),
			Fix:    "Give the engine control of them (cgroup v2 with delegated controllers), or accept it in the files: " + acceptBlock(CodeLimitsUnenforced),
			Origin: w.desired.Install,
		})
	}
	if e.InternalReachesHost {
		for _, n := range w.desired.Networks {
			if n.Internal {
				w.overrulable(Refusal{
					Code:   CodeNetworkNotIsolated,
					Text:   "On this engine a space on an internal network reaches services of the engine's host through the network's gateway address.",
					Fix:    "Use a rootless engine with a network of its own, or Docker 28 or later, or accept it in the files: " + acceptBlock(CodeNetworkNotIsolated),
					Origin: n.Origin,
				})
				break
			}
		}
	}
	for _, s := range w.wantSpaces {
		if h := s.Container.Healthcheck; h != nil && h.StartInterval > 0 && slices.Contains(e.Lacks, LacksStartInterval) {
			w.refuse(Refusal{
				Code: CodeEngineLacks,
				Text: fmt.Sprintf("%s asks for a health check's start interval, which this engine doesn't know.", s.Address),
				Fix:  "Leave start_interval out, or use Docker 25 or later.", Origin: s.At("healthcheck"), About: s.Address.String(),
			})
		}
		if s.Container.Seccomp == "default" && slices.Contains(e.Lacks, LacksSeccomp) {
			w.refuse(Refusal{
				Code: CodeEngineLacks,
				Text: "This engine doesn't give containers the default seccomp profile.",
				Fix:  "Start dockerd without --seccomp-profile, on a kernel with seccomp, or loosen \"seccomp\" in each space with a reason.", Origin: w.desired.Install,
			})
		}
		if e.CPUs > 0 && w.onHost(s).NanoCPUs > int64(e.CPUs)*1e9 {
			w.refuse(Refusal{
				Code:   CodeCPUs,
				Text:   fmt.Sprintf("%s asks for %s CPUs and the engine has %d.", s.Address, cpusValue(s.Container.NanoCPUs), e.CPUs),
				Fix:    fmt.Sprintf("Write cpus = %d or less.", e.CPUs),
				Origin: s.At("limits.cpus"), About: s.Address.String(),
			})
		}
	}
}

func (w *world) overrulable(r Refusal) {
	if _, ok := w.accepted(r.Code); !ok {
		w.refuse(r)
	}
}

func acceptBlock(code string) string {
	return fmt.Sprintf("accept %q { reason = \"…\" }", code)
}

// notYet refuses the apply of a plan that shows what this release doesn't run.
func (w *world) notYet() {
	refuse := func(text, fix, about string, at schema.Origin) {
		w.refuse(Refusal{Code: CodeNotYetSupported, Text: text, Fix: fix, Origin: at, ApplyOnly: true, About: about})
	}
	const takeOut = "Take it out of the files, or wait for the release that runs it."
	if w.desired.Mode == schema.ModeLocal {
		refuse("Without an install block that names an engine, spaces would run on this host itself, which this release doesn't do.",
			"Add\n\ninstall {\n  mode     = \"containerized\"\n  endpoint = \"unix:///run/user/1000/docker.sock\"\n}\n\nwith the path of your rootless engine's socket.", "", w.desired.Install)
	}
	for _, i := range w.plan.Items {
		if step, is := i.Step.(NotYet); is {
			refuse(fmt.Sprintf("%s is %s, which this release shows but doesn't run.", i.Subject, step.What), takeOut, i.Subject, i.Origin)
		}
	}
	for _, s := range w.wantSpaces {
		for _, target := range sortedKeys(s.Grants) {
			if g := s.Grants[target]; s.Lifecycle == schema.LifecycleService && (g.Kind == schema.GrantSocket || g.Kind == schema.GrantData) {
				refuse(fmt.Sprintf("%s gives %s a %s grant, and nothing serves it in this release.", g.Address, s.Address, g.Kind), takeOut, s.Address.String(), g.Origin)
			}
		}
	}
}

// unreadable says which secrets a space's own user can't read: a secret is its owner's
// alone, and inside that is the container's root.
func (w *world) unreadable() {
	for _, s := range w.wantSpaces {
		c := s.Container
		if facts, known := w.actual.Images[c.Image]; known {
			c = WithImage(c, facts)
		}
		switch user, _, _ := strings.Cut(c.User, ":"); user {
		case "", "0", "root":
			continue
		}
		for _, target := range sortedKeys(s.Grants) {
			if s.Grants[target].Kind == schema.GrantSecret {
				w.note("unreadable", s.Address.String(), fmt.Sprintf("%s is for the container's root, and the space runs as %s", target, c.User), originOf(s, key("mount", target)))
			}
		}
	}
}

// unchecked says what nobody looked at.
func (w *world) unchecked() {
	w.unreadable()
	if !w.host.Checked {
		w.note("unchecked", "host", "grants' sources, secrets' owners and modes, builds' contexts: the host wasn't looked at", schema.Origin{})
	}
	if w.actual.Engine.Offline {
		w.note("unchecked", "engine", "compared with an empty world: no engine was asked", schema.Origin{})
	}
	if w.host.Checked && w.host.Digest == nil && len(w.actual.Containers) > 0 {
		w.note("uncompared", "key", "the key in state/key is missing: which side a difference is on can't be told, nor whether files that grants give have changed, nor what the engine added by itself", schema.Origin{})
	}
	for _, g := range w.desired.Grants {
		if facts := w.host.Paths[GrantPath(w.desired, g)]; facts.Exists && facts.Err != "" {
			w.note("uncompared", g.Address.String(), facts.Err, g.Origin)
		}
	}
}

func digestOf(parts []string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
