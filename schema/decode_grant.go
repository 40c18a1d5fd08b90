package schema

import "spaces/gatekeeper/policy"

const (
	accessRead  = "ro"
	accessWrite = "rw"
)

// grantKinds are the attributes that say what a grant gives.
var grantKinds = []GrantKind{GrantDirectory, GrantFile, GrantSecret, GrantSocket, GrantVolume, GrantData}

func (l *loader) decodeGrant(inst *instance) Grant {
	r := l.reader(inst)
	g := Grant{Object: *r.object}
	var given []string
	for _, k := range grantKinds {
		// Written as null is not given: that is how one block chooses by a variable.
		if r.hasValue(string(k)) {
			given = append(given, string(k))
			g.Kind = k
		}
	}
	if len(given) == 1 {
		g.Source = r.grantSource(g.Kind)
	} else {
		r.fail(diagGrantKind(inst.decl.block, given))
		g.Kind = ""
	}
	if s, ok := r.str("target"); r.need("target", ok) {
		if r.inside("target", s, r.place("target")) {
			g.Target = s
		}
	}
	access, ok := r.choice("access", accessRead, accessWrite)
	g.Writable = ok && access == accessWrite
	g.Create, _ = r.boolean("create")
	g.Protect, _ = r.boolean("protect")
	r.grantRules(&g)
	return g
}

func (r *reader) grantSource(k GrantKind) string {
	name := string(k)
	switch k {
	case GrantSocket:
		s, _ := r.choice(name, policy.Sockets()...)
		return s
	case GrantData:
		s, _ := r.choice(name, policy.DataParts()...)
		return s
	case GrantVolume:
		s, ok := r.str(name)
		if ok && !validName(s) {
			r.fail(diagInvalidName("volume", s, r.place(name).subject))
		}
		return s
	}
	s, ok := r.str(name)
	if !ok {
		return ""
	}
	clean, ok := cleanSource(s)
	switch {
	case !ok:
		r.fail(diagHostPath(name, s, r.place(name)))
		return ""
	case clean == "/":
		r.fail(diagRootPath(name, r.place(name)))
		return ""
	}
	return clean
}

// inside judges a path in a space where something is mounted.
func (r *reader) inside(name, s string, where place) bool {
	switch {
	case !cleanInside(s):
		r.fail(diagInsidePath(name, s, where))
		return false
	case s == "/", s == "/dev", lies(s, "/proc"), lies(s, "/sys"):
		r.fail(diagReservedPath(name, s, where))
		return false
	}
	return true
}

// grantRules judges what may be said of each kind of grant.
func (r *reader) grantRules(g *Grant) {
	if g.Writable && g.Kind == GrantSecret {
		r.fail(diagSecretWritable(r.place("access")))
	}
	if g.Create && g.Kind != GrantDirectory && g.Kind != "" {
		r.fail(diagCreate(string(g.Kind), r.place("create")))
	}
	if g.Protect && g.Kind != GrantVolume && g.Kind != "" {
		r.fail(diagProtectGrant(string(g.Kind), r.place("protect")))
	}
}
