package reconcile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"spaces/gatekeeper/policy"
	"spaces/schema"
)

// The rules on grants that need the host's files. A grant is judged by where its path
// leads, whatever its kind, and whether or not a space holds it: what is written must
// hold. Where a path leads is compared by name and by inode, so that a hard link or a
// bind mount of a directory is no way around (mount points inside a granted directory
// aren't looked for).

// maxSocketPath is the longest path of a socket: sun_path less its closing zero.
const maxSocketPath = 107

// socketFile is the name of a socket in its directory, by the grant's source.
func socketFile(source string) string {
	switch source {
	case policy.SocketAgent, policy.SocketHuman:
		return "broker.sock"
	default:
		return source + ".sock"
	}
}

// GrantPath is the path of the host that a grant gives, as its facts are found in
// HostFacts.Paths: as written, or a part of the data root. A volume has none.
func GrantPath(d Desired, g schema.Grant) string {
	switch g.Kind {
	case schema.GrantSocket:
		return path.Join(d.DataRoot, "sock", g.Source)
	case schema.GrantData:
		if g.Source == policy.DataStore {
			return d.Store
		}
		return path.Join(d.DataRoot, g.Source)
	case schema.GrantVolume:
		return ""
	default:
		return g.Source
	}
}

// accessNote says that a directory gives what another grant gives.
type accessNote struct {
	Space  string // the address of the space that has the directory
	Target string // where it has it
	// Inside is where in the space the other grant's source is; empty when it is the
	// same file by another name.
	Inside   string
	Via      schema.Address // the grant of the directory
	Grant    schema.Address // the other grant
	Writable bool
	Origin   schema.Origin
}

// hostRefusals judges every grant by what is on the host, and tells which directories
// give more than their name says. Without facts it says nothing.
func hostRefusals(d Desired, f HostFacts) ([]Refusal, []accessNote) {
	if !f.Checked {
		return nil, nil
	}
	r := rules{desired: d, facts: f, protected: slices.Clone(f.Protected)}
	slices.SortFunc(r.protected, func(a, b Protected) int { return cmp.Compare(a.Path, b.Path) })
	for _, g := range d.Grants {
		if facts, ok := f.Paths[GrantPath(d, g)]; ok && g.Kind != schema.GrantVolume {
			r.sources = append(r.sources, source{g, facts})
		}
	}
	for i, s := range r.sources {
		if s.grant.Kind == schema.GrantSecret && s.facts.Exists {
			r.secrets.add(i, s.facts)
		}
	}
	for _, s := range r.sources {
		r.forbidden(s)
		r.state(s)
	}
	for i := range d.Spaces {
		space := &d.Spaces[i]
		for _, target := range sortedTargets(space) {
			g := space.Grants[target]
			if facts, ok := f.Paths[GrantPath(d, g)]; ok && g.Kind != schema.GrantVolume {
				r.held = append(r.held, holding{space, target, source{g, facts}})
			}
		}
	}
	for i, h := range r.held {
		r.directories.add(i, h.facts)
		if h.grant.Writable {
			r.writable.add(i, h.facts)
		}
	}
	for _, h := range r.held {
		r.holdsConfiguration(h)
		r.sourceWritable(h)
	}
	r.reaches()
	slices.SortStableFunc(r.refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(r.refusals), r.notes
}

func sortedTargets(s *Space) []string {
	targets := make([]string, 0, len(s.Grants))
	for target := range s.Grants {
		targets = append(targets, target)
	}
	slices.Sort(targets)
	return targets
}

// source is a grant and what is at its path.
type source struct {
	grant schema.Grant
	facts PathFacts
}

// origin is where the grant's path is written.
func (s source) origin() schema.Origin { return s.grant.At(string(s.grant.Kind)) }

// named is the grant with its path, for a sentence.
func (s source) named() string {
	if s.facts.Absolute != s.facts.Resolved {
		return fmt.Sprintf("%s (%s, which leads to %s)", s.grant.Address, s.facts.Absolute, s.facts.Resolved)
	}
	return fmt.Sprintf("%s (%s)", s.grant.Address, s.facts.Resolved)
}

// holding is a space that has a grant.
type holding struct {
	space  *Space
	target string
	source
}

// loosened reports whether a space has loosened a rule for a grant.
func (h holding) loosened(kind string) bool {
	return slices.ContainsFunc(h.space.Loosen, func(l schema.Loosening) bool {
		return l.Kind == kind && slices.Contains(l.Grants, h.grant.Address)
	})
}

type rules struct {
	desired   Desired
	facts     HostFacts
	protected []Protected // by path
	sources   []source
	held      []holding
	refusals  []Refusal
	notes     []accessNote
	// secrets index sources, the others held.
	secrets     enclosures
	directories enclosures
	writable    enclosures
}

// enclosures find what encloses a path without comparing it with everything: a project
// has many spaces, and each its own grants.
type enclosures struct {
	byPath  map[string][]int
	byInode map[Inode][]int
}

func (e *enclosures) add(i int, f PathFacts) {
	if e.byPath == nil {
		e.byPath, e.byInode = map[string][]int{}, map[Inode][]int{}
	}
	e.byPath[f.Resolved] = append(e.byPath[f.Resolved], i)
	if f.Inode != (Inode{}) {
		e.byInode[f.Inode] = append(e.byInode[f.Inode], i)
	}
}

// at are those that are the same file, in order.
func (e *enclosures) at(f PathFacts) []int {
	found := slices.Clone(e.byPath[f.Resolved])
	if f.Inode != (Inode{}) {
		found = append(found, e.byInode[f.Inode]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// around are those that are the same file, hold it, or hold a symlink on the way to it,
// in order.
func (e *enclosures) around(f PathFacts) []int {
	found := e.at(f)
	up := func(name string) {
		for name != "/" && name != "." {
			name = path.Dir(name)
			found = append(found, e.byPath[name]...)
		}
	}
	up(f.Resolved)
	for _, link := range f.Links {
		up(link)
	}
	for _, dir := range f.Above {
		found = append(found, e.byInode[dir]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (r *rules) refuse(code string, at schema.Origin, fix, format string, args ...any) {
	r.refusals = append(r.refusals, Refusal{Code: code, Text: fmt.Sprintf(format, args...), Fix: fix, Origin: at})
}

// below reports whether name is dir or lies in it; both are clean and absolute.
func below(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// same reports whether two paths lead to one file.
func same(a, b PathFacts) bool {
	return a.Resolved == b.Resolved || a.Inode != Inode{} && a.Inode == b.Inode
}

// inside reports whether a path lies in a directory, at any depth, and isn't it.
func inside(a, dir PathFacts) bool {
	if a.Resolved != dir.Resolved && below(a.Resolved, dir.Resolved) {
		return true
	}
	return dir.Inode != Inode{} && slices.Contains(a.Above, dir.Inode)
}

// passes reports whether a symlink on the way to a path stands in a directory: whoever
// writes there decides where the path leads.
func passes(a, dir PathFacts) bool {
	return slices.ContainsFunc(a.Links, func(link string) bool { return below(link, dir.Resolved) })
}

// depth is how many elements a path has.
func depth(name string) int {
	if name == "/" {
		return 0
	}
	return strings.Count(name, "/")
}

// protectedFacts are what is at a protected path.
func (r *rules) protectedFacts(p Protected) PathFacts {
	facts, ok := r.facts.Paths[p.Path]
	if !ok {
		facts.Resolved = p.Path
	}
	return facts
}

// covers tells how deep in the file system a protected path covers a source, if it does:
// the deepest one decides.
func covers(p Protected, protected, a PathFacts) (int, bool) {
	switch {
	case same(a, protected):
		return depth(a.Resolved), true
	case below(a.Resolved, p.Path):
		return depth(p.Path), true
	case protected.Inode != Inode{}:
		i := slices.Index(a.Above, protected.Inode)
		return i, i >= 0
	}
	return 0, false
}

// forbidden refuses what no grant may give: a protected path, what holds one, and what
// lies in one.
func (r *rules) forbidden(s source) {
	const fix = "Grant a folder made for the purpose, outside of it."
	for _, p := range r.protected {
		if same(s.facts, r.protectedFacts(p)) {
			r.refuse(CodeGrantForbidden, s.origin(), fix, "%s is %s, which is never granted.", s.named(), p.What)
			return
		}
	}
	var inner Protected
	deepest := -1
	for _, p := range r.protected {
		protected := r.protectedFacts(p)
		if inside(protected, s.facts) {
			r.refuse(CodeGrantForbidden, s.origin(), "Grant a folder that doesn't hold it.",
				"%s holds %s (%s), which is never granted.", s.named(), p.What, p.Path)
			return
		}
		if at, ok := covers(p, protected, s.facts); ok && p.Whole && at > deepest {
			inner, deepest = p, at
		}
	}
	if deepest >= 0 && !slices.Contains(inner.Except, s.grant.Kind) {
		why := fix
		if slices.Contains(inner.Except, schema.GrantSecret) {
			why = "Grant it by secret = …, which is read-only and checked."
		}
		r.refuse(CodeGrantForbidden, s.origin(), why, "%s lies in %s (%s), which is never granted.", s.named(), inner.What, inner.Path)
		return
	}
	switch s.grant.Kind {
	case schema.GrantSocket, schema.GrantData:
		// The exception is for the folder there, not for what a link makes of it.
		if s.facts.Resolved != s.facts.Absolute {
			r.refuse(CodeGrantForbidden, s.origin(), "Remove the symlink; apply makes the folder.",
				"%s is not the data root's own folder.", s.named())
		}
	case schema.GrantDirectory, schema.GrantFile:
		// Only a secret's own grant has a secret's rules, so a hard link is no way
		// around them.
		if !s.facts.Exists {
			return
		}
		if found := r.secrets.at(s.facts); len(found) > 0 {
			secret := r.sources[found[0]].grant.Address
			r.refuse(CodeGrantForbidden, s.origin(), fmt.Sprintf("Give spaces %s instead.", secret),
				"%s is the file that %s gives as a secret.", s.named(), secret)
		}
	}
}

// state judges whether what a grant gives is there and is what it says.
func (r *rules) state(s source) {
	g, f := s.grant, s.facts
	if g.Kind == schema.GrantSocket {
		r.socketPath(s)
	}
	made := g.Kind == schema.GrantSocket || g.Kind == schema.GrantData
	switch {
	case !f.Exists && f.Err != "":
		r.refuse(CodeGrantSource, s.origin(), "Let your user read the folders on its way, or correct the path.",
			"%s can't be looked at: %s.", s.named(), f.Err)
		return
	case !f.Exists && (made || g.Create):
		return
	case !f.Exists:
		fix := "Make it, or correct the path."
		switch g.Kind {
		case schema.GrantDirectory:
			fix = "Make it, or write create = true, which makes it with mode 0700."
		case schema.GrantSecret:
			fix = fmt.Sprintf("Write the secret into it: install -m 600 /dev/stdin %s", shellQuote(f.Absolute))
		}
		r.refuse(CodeGrantSource, s.origin(), fix, "%s doesn't exist.", s.named())
		return
	}
	switch g.Kind {
	case schema.GrantSecret:
		r.secret(s)
	case schema.GrantFile:
		if f.Kind != PathFile {
			r.refuse(CodeGrantSource, s.origin(), kindFix(f.Kind), "%s is %s and not a regular file.", s.named(), aKind(f.Kind))
		}
	default:
		if f.Kind != PathDirectory {
			r.refuse(CodeGrantSource, s.origin(), kindFix(f.Kind), "%s is %s and not a directory.", s.named(), aKind(f.Kind))
		}
	}
}

func aKind(k PathKind) string {
	switch k {
	case PathDirectory:
		return "a directory"
	case PathFile:
		return "a file"
	case PathSocket:
		return "a socket"
	default:
		return "a pipe or a device"
	}
}

// kindFix is what to write for what was found.
func kindFix(k PathKind) string {
	switch k {
	case PathDirectory:
		return "Write directory = …, or correct the path."
	case PathFile:
		return "Write file = … (a changed file is then a change), or correct the path."
	case PathSocket:
		return "Grant the directory that the socket is in: a mounted socket is lost when its server starts again."
	default:
		return "Correct the path; a device is given by a loosen \"device\" block."
	}
}

// secret demands that a secret is the caller's alone.
func (r *rules) secret(s source) {
	f := s.facts
	var wrong, fixes []string
	quoted := shellQuote(f.Absolute)
	if f.Symlink {
		wrong = append(wrong, "is a symlink")
		fixes = append(fixes, fmt.Sprintf("name the file itself, or put it there: cp --remove-destination %s %s", shellQuote(f.Resolved), quoted))
	}
	if f.Kind != PathFile {
		wrong = append(wrong, "leads to "+aKind(f.Kind)+" and not to a regular file")
		fixes = append(fixes, "correct the path")
	}
	if f.Owner != r.facts.Caller {
		wrong = append(wrong, fmt.Sprintf("belongs to user %d and not to you (%d)", f.Owner, r.facts.Caller))
		fixes = append(fixes, fmt.Sprintf("chown %d %s", r.facts.Caller, quoted))
	}
	if f.Kind == PathFile && f.Mode != 0o600 {
		wrong = append(wrong, fmt.Sprintf("has mode %04o and not 0600", f.Mode))
		fixes = append(fixes, "chmod 600 "+quoted)
	}
	if len(wrong) == 0 {
		return
	}
	r.refuse(CodeSecretFile, s.origin(), "To make it right: "+strings.Join(fixes, "; "),
		"The secret %s %s.", s.named(), strings.Join(wrong, ", "))
}

// shellQuote makes a path one word of a command to type.
func shellQuote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+@%:,", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// socketPath demands that a socket can be bound and reached by its path.
func (r *rules) socketPath(s source) {
	file := socketFile(s.grant.Source)
	for _, in := range []struct{ path, fix string }{
		{path.Join(s.facts.Resolved, file), "Choose a shorter data_root."},
		{path.Join(s.grant.Target, file), "Choose a shorter target."},
	} {
		if len(in.path) > maxSocketPath {
			r.refuse(CodeSocketPath, s.origin(), in.fix, "The socket of %s has a path of %d bytes, and %d is the most: %s.",
				s.grant.Address, len(in.path), maxSocketPath, in.path)
		}
	}
}

// holdsConfiguration refuses a writable grant by which a space could change what is
// loaded here, and so its own limits: one that holds a loaded path or a symlink on the
// way to one, is one, or lies in a loaded folder.
func (r *rules) holdsConfiguration(h holding) {
	if !h.grant.Writable || h.loosened(schema.LoosenHoldsConfiguration) {
		return
	}
	var holds []string
	for i, loaded := range r.desired.Loaded {
		facts, ok := r.facts.Paths[loaded]
		if !ok && i < len(r.facts.Loaded) {
			facts = PathFacts{Absolute: loaded, Resolved: r.facts.Loaded[i]}
		} else if !ok {
			continue
		}
		if same(facts, h.facts) || inside(facts, h.facts) || inside(h.facts, facts) || passes(facts, h.facts) {
			holds = append(holds, loaded)
		}
	}
	if len(holds) == 0 {
		return
	}
	r.refuse(CodeGrantHoldsConfig, h.origin(),
		fmt.Sprintf("Keep what is loaded and what spaces write in folders apart, make the grant read-only, or loosen %q in %s with a reason.",
			schema.LoosenHoldsConfiguration, h.space.Address),
		"%s could write its own limits: %s is writable and reaches what is loaded here, %s.",
		h.space.Address, h.named(), several(holds))
}

// several is a list for a sentence, cut short.
func several(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// sourceWritable refuses a source that a space could swap for a symlink to anything
// before the next start: one that lies in a writable grant, or whose way leads by a
// symlink that does.
//
// The granted directory itself isn't in reach of who may write in it (its name is in
// its parent), so two grants of one directory, or one that many spaces have, are no
// case of this. Neither is a directory that holds a writable one: what is swapped in
// there stays within what it gives, since links inside a mount are followed inside.
func (r *rules) sourceWritable(h holding) {
	if h.loosened(schema.LoosenSourceWritable) {
		return
	}
	var writers []string
	for _, i := range r.writable.around(h.facts) {
		if w := r.held[i]; inside(h.facts, w.facts) || passes(h.facts, w.facts) {
			writers = append(writers, fmt.Sprintf("%s by %s", w.space.Address, w.named()))
		}
	}
	if len(writers) == 0 {
		return
	}
	slices.Sort(writers)
	r.refuse(CodeGrantSourceWritable, h.origin(),
		fmt.Sprintf("Move it out of there, make the other grant read-only, or loosen %q in %s with a reason.",
			schema.LoosenSourceWritable, h.space.Address),
		"Where %s of %s leads could be changed before its next start: it lies where a space may write, %s.",
		h.named(), h.space.Address, several(slices.Compact(writers)))
}

// reaches notes what else directories give: the sources of other grants that lie in
// them or are them, unless the space has those too and no less of them.
func (r *rules) reaches() {
	type pair struct{ held, other int }
	var pairs []pair
	for other, s := range r.sources {
		for _, held := range r.directories.around(s.facts) {
			h := r.held[held]
			if (same(s.facts, h.facts) || inside(s.facts, h.facts)) && s.grant.Address != h.grant.Address {
				pairs = append(pairs, pair{held, other})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(a.held-b.held, a.other-b.other) })
	for _, p := range pairs {
		h, other := r.held[p.held], r.sources[p.other]
		if h.facts.Exists && h.facts.Kind != PathDirectory || h.has(other.grant.Address) {
			continue
		}
		note := accessNote{
			Space: h.space.Address.String(), Target: h.target, Via: h.grant.Address, Grant: other.grant.Address,
			Writable: h.grant.Writable, Origin: h.origin(),
		}
		if below(other.facts.Resolved, h.facts.Resolved) {
			note.Inside = path.Join(h.target, strings.TrimPrefix(other.facts.Resolved, h.facts.Resolved))
		}
		r.notes = append(r.notes, note)
	}
}

// has reports whether the space has another grant too, and may do with it all that it
// may by this one.
func (h holding) has(other schema.Address) bool {
	for _, g := range h.space.Grants {
		if g.Address == other && (g.Writable || !h.grant.Writable) {
			return true
		}
	}
	return false
}
