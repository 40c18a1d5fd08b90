package reconcile

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"spaces/schema"
)

// hostWorld is a project and what the host has for it.
type hostWorld struct {
	d Desired
	f HostFacts
}

func newHostWorld() *hostWorld {
	w := &hostWorld{
		d: Desired{Project: "acme", DataRoot: "/home/u/state", Store: "/home/u/state/store"},
		f: HostFacts{Checked: true, Caller: 1000, Paths: map[string]PathFacts{}},
	}
	for _, p := range []Protected{
		{Path: "/", What: "the root of the file system"},
		{Path: "/home/u", What: "the home directory"},
		{Path: "/home/u/.config/spaces", What: "the configuration directory", Whole: true},
		{Path: "/home/u/.config/spaces/secrets", What: "the secrets directory", Whole: true, Except: []schema.GrantKind{schema.GrantSecret}},
		{Path: "/home/u/state", What: "the data root", Whole: true, Except: []schema.GrantKind{schema.GrantSocket, schema.GrantData}},
		{Path: "/run/user/1000", What: "the directory of the engine's socket", Whole: true},
		{Path: "/run/user/1000/docker.sock", What: "the engine's socket", Whole: true},
	} {
		w.f.Protected = append(w.f.Protected, p)
		w.dir(p.Path)
	}
	return w
}

// fake is the inode of a path nobody aliased.
func fake(name string) Inode {
	n := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		n = (n ^ uint64(c)) * 1099511628211
	}
	return Inode{1, n}
}

func (w *hostWorld) put(name string, f PathFacts) PathFacts {
	f.Absolute, f.Owner = name, 1000
	if f.Resolved == "" {
		f.Resolved = name
	}
	if f.Exists && f.Inode == (Inode{}) {
		f.Inode = fake(f.Resolved)
	}
	if f.Above == nil {
		for dir := f.Resolved; dir != "/"; {
			dir = path.Dir(dir)
			f.Above = append([]Inode{fake(dir)}, f.Above...)
		}
	}
	w.f.Paths[name] = f
	return f
}

func (w *hostWorld) dir(name string) {
	w.put(name, PathFacts{Exists: true, Kind: PathDirectory, Mode: 0o755})
}

func (w *hostWorld) file(name string, mode uint32) {
	w.put(name, PathFacts{Exists: true, Kind: PathFile, Mode: mode})
}

// grant declares a grant and puts what is at its path, unless that is there.
func (w *hostWorld) grant(kind schema.GrantKind, name, source string, more ...string) schema.Grant {
	g := schema.Grant{
		Object: schema.Object{
			Address: schema.Address{Kind: "grant", Name: name}, Origin: schema.Origin{File: "main.hcl", Line: len(w.d.Grants) + 1},
			Origins: map[string]schema.Origin{string(kind): {File: "main.hcl", Line: 100 + len(w.d.Grants)}},
		},
		Kind: kind, Source: source, Target: "/mnt/" + name,
		Writable: slices.Contains(more, "rw"), Create: slices.Contains(more, "create"),
	}
	w.d.Grants = append(w.d.Grants, g)
	at := GrantPath(w.d, g)
	if _, ok := w.f.Paths[at]; ok || at == "" {
		return g
	}
	switch {
	case slices.Contains(more, "missing"):
		w.put(at, PathFacts{})
	case kind == schema.GrantFile:
		w.file(at, 0o644)
	case kind == schema.GrantSecret:
		w.file(at, 0o600)
	default:
		w.dir(at)
	}
	return g
}

// space declares a space that holds grants.
func (w *hostWorld) space(name string, grants ...schema.Grant) *Space {
	s := Space{Object: schema.Object{Address: schema.Address{Kind: "space", Name: name}}, Grants: map[string]schema.Grant{}}
	for _, g := range grants {
		s.Grants[g.Target] = g
	}
	w.d.Spaces = append(w.d.Spaces, s)
	return &w.d.Spaces[len(w.d.Spaces)-1]
}

func (w *hostWorld) load(names ...string) {
	for _, name := range names {
		w.d.Loaded = append(w.d.Loaded, name)
		if _, ok := w.f.Paths[name]; !ok {
			w.file(name, 0o644)
		}
		w.f.Loaded = append(w.f.Loaded, w.f.Paths[name].Resolved)
	}
}

func TestHostRefusals(t *testing.T) {
	const (
		dir    = schema.GrantDirectory
		file   = schema.GrantFile
		secret = schema.GrantSecret
	)
	for _, c := range []struct {
		name string
		set  func(w *hostWorld)
		want []string // "code: part of the text"
	}{
		{"nothing", func(w *hostWorld) {}, nil},
		{"plain grants", func(w *hostWorld) {
			w.space("a", w.grant(dir, "work", "/srv/work", "rw"), w.grant(file, "f", "/srv/f"), w.grant(secret, "s", "/home/u/.config/spaces/secrets/acme/s"),
				w.grant(schema.GrantSocket, "agent", "agent"), w.grant(schema.GrantData, "store", "store", "rw"), w.grant(schema.GrantData, "host", "host"), w.grant(schema.GrantVolume, "v", "cache", "rw"))
		}, nil},
		{"a folder of the home", func(w *hostWorld) { w.grant(dir, "g", "/home/u/src") }, nil},
		{"a new folder", func(w *hostWorld) { w.grant(dir, "g", "/srv/new", "create", "missing") }, nil},
		{"data root to be", func(w *hostWorld) {
			w.grant(schema.GrantSocket, "git", "git", "missing")
			w.grant(schema.GrantData, "store", "store", "missing")
		}, nil},

		// Never grantable.
		{"root", func(w *hostWorld) { w.grant(dir, "g", "/") }, []string{"grant-forbidden: is the root"}},
		{"home", func(w *hostWorld) { w.grant(dir, "g", "/home/u") }, []string{"grant-forbidden: is the home directory"}},
		{"above home", func(w *hostWorld) { w.grant(dir, "g", "/home") }, []string{"grant-forbidden: holds the home directory"}},
		{"above the socket", func(w *hostWorld) { w.grant(dir, "g", "/run") }, []string{"grant-forbidden: holds the directory of the engine's socket"}},
		{"beside the socket", func(w *hostWorld) { w.grant(dir, "g", "/run/user/1000/bus.d") }, []string{"grant-forbidden: lies in the directory of the engine's socket"}},
		{"the socket as a file", func(w *hostWorld) { w.grant(file, "g", "/run/user/1000/docker.sock") }, []string{"grant-forbidden: is the engine's socket", "grant-source: is a directory"}},
		{"configuration", func(w *hostWorld) { w.grant(file, "g", "/home/u/.config/spaces/x") }, []string{"grant-forbidden: lies in the configuration directory"}},
		{"above configuration", func(w *hostWorld) { w.grant(dir, "g", "/home/u/.config") }, []string{"grant-forbidden: holds the configuration directory"}},
		{"a secret as a file", func(w *hostWorld) { w.grant(file, "g", "/home/u/.config/spaces/secrets/x") }, []string{"grant-forbidden: lies in the secrets directory"}},
		{"the secrets", func(w *hostWorld) { w.grant(dir, "g", "/home/u/.config/spaces/secrets") }, []string{"grant-forbidden: is the secrets directory"}},
		{"a secret of the configuration", func(w *hostWorld) { w.grant(secret, "g", "/home/u/.config/spaces/x") }, []string{"grant-forbidden: lies in the configuration directory"}},
		{"the data root", func(w *hostWorld) { w.grant(dir, "g", "/home/u/state") }, []string{"grant-forbidden: is the data root"}},
		{"the store as a directory", func(w *hostWorld) { w.grant(dir, "g", "/home/u/state/store") }, []string{"grant-forbidden: lies in the data root"}},
		{"a secret in the data root", func(w *hostWorld) { w.grant(secret, "g", "/home/u/state/state/key") }, []string{"grant-forbidden: lies in the data root"}},
		{"to be made in the data root", func(w *hostWorld) { w.grant(dir, "g", "/home/u/state/x", "create", "missing") }, []string{"grant-forbidden: lies in the data root"}},
		{"by a link", func(w *hostWorld) {
			w.put("/srv/l", PathFacts{Exists: true, Kind: PathDirectory, Resolved: "/home/u", Symlink: true})
			w.grant(dir, "g", "/srv/l")
		}, []string{"grant-forbidden: /srv/l, which leads to /home/u"}},
		{"by a link to what will be", func(w *hostWorld) {
			w.put("/srv/l", PathFacts{Resolved: "/run/user/1000/podman"})
			w.grant(dir, "g", "/srv/l", "create")
		}, []string{"grant-forbidden: lies in"}},
		{"a bind mount of the home", func(w *hostWorld) {
			w.put("/mnt/h", PathFacts{Exists: true, Kind: PathDirectory, Inode: fake("/home/u")})
			w.grant(dir, "g", "/mnt/h")
		}, []string{"grant-forbidden: is the home directory"}},
		{"in a bind mount of the configuration", func(w *hostWorld) {
			w.put("/mnt/c/x", PathFacts{Exists: true, Kind: PathFile, Above: []Inode{fake("/"), fake("/mnt"), fake("/home/u/.config/spaces")}})
			w.grant(file, "g", "/mnt/c/x")
		}, []string{"grant-forbidden: lies in the configuration directory"}},
		{"a bind mount of what holds the home", func(w *hostWorld) {
			w.put("/mnt/all", PathFacts{Exists: true, Kind: PathDirectory, Inode: fake("/home")})
			w.grant(dir, "g", "/mnt/all")
		}, []string{"grant-forbidden: holds the home directory"}},
		{"a hard link of the socket", func(w *hostWorld) {
			w.put("/srv/s", PathFacts{Exists: true, Kind: PathSocket, Inode: fake("/run/user/1000/docker.sock")})
			w.grant(file, "g", "/srv/s")
		}, []string{"grant-forbidden: is the engine's socket", "grant-source: is a socket"}},
		{"a hard link of a secret", func(w *hostWorld) {
			w.grant(secret, "s", "/home/u/.config/spaces/secrets/s")
			w.put("/srv/s", PathFacts{Exists: true, Kind: PathFile, Mode: 0o600, Inode: fake("/home/u/.config/spaces/secrets/s")})
			w.grant(file, "g", "/srv/s", "rw")
		}, []string{"grant-forbidden: is the file that grant.s gives as a secret"}},
		{"a socket's directory that is a link", func(w *hostWorld) {
			w.put("/home/u/state/sock/agent", PathFacts{Exists: true, Kind: PathDirectory, Resolved: "/srv/x", Symlink: true})
			w.grant(schema.GrantSocket, "g", "agent")
		}, []string{"grant-forbidden: not the data root's own folder"}},
		{"a data directory that is a link inside", func(w *hostWorld) {
			w.put("/home/u/state/host", PathFacts{Exists: true, Kind: PathDirectory, Resolved: "/home/u/state/state", Symlink: true})
			w.grant(schema.GrantData, "g", "host")
		}, []string{"grant-forbidden: not the data root's own folder"}},
		{"a name that only begins alike", func(w *hostWorld) { w.grant(dir, "g", "/home/user"); w.grant(dir, "h", "/home/u/state2") }, nil},

		// What is there.
		{"missing", func(w *hostWorld) {
			w.grant(dir, "d", "/srv/d", "missing")
			w.grant(file, "f", "/srv/f", "missing")
			w.grant(secret, "s", "/srv/s", "missing")
		}, []string{"grant-source: grant.d (/srv/d) doesn't exist", "grant-source: grant.f", "grant-source: grant.s"}},
		{"unreadable", func(w *hostWorld) {
			w.put("/srv/x/y", PathFacts{Err: "permission denied"})
			w.grant(dir, "g", "/srv/x/y", "create")
		}, []string{"grant-source: can't be looked at: permission denied"}},
		{"wrong kinds", func(w *hostWorld) {
			w.file("/srv/f", 0o644)
			w.put("/srv/p", PathFacts{Exists: true, Kind: PathOther})
			w.put("/home/u/state/store", PathFacts{Exists: true, Kind: PathFile})
			w.dir("/srv/d")
			w.grant(dir, "a", "/srv/f")
			w.grant(file, "b", "/srv/d")
			w.grant(file, "c", "/srv/p")
			w.grant(schema.GrantData, "d", "store")
		}, []string{"grant-source: grant.a (/srv/f) is a file and not a directory", "grant-source: is a directory and not a regular", "grant-source: is a pipe or a device", "grant-source: grant.d"}},
		{"secrets", func(w *hostWorld) {
			w.file("/srv/mode", 0o640)
			w.file("/srv/setuid", 0o4600)
			w.file("/srv/less", 0o400)
			w.file("/srv/owner", 0o600)
			f := w.f.Paths["/srv/owner"]
			f.Owner = 0
			w.f.Paths["/srv/owner"] = f
			w.put("/srv/link", PathFacts{Exists: true, Kind: PathFile, Mode: 0o644, Resolved: "/srv/there", Symlink: true})
			w.dir("/srv/dir")
			for _, name := range []string{"mode", "setuid", "less", "owner", "link", "dir"} {
				w.grant(secret, name, "/srv/"+name)
			}
		}, []string{
			"secret-file: (/srv/mode) has mode 0640 and not 0600", "secret-file: mode 4600", "secret-file: mode 0400",
			"secret-file: belongs to user 0 and not to you (1000)", "secret-file: is a symlink, has mode 0644", "secret-file: leads to a directory",
		}},
		{"a long socket path", func(w *hostWorld) {
			w.d.DataRoot = "/srv/" + strings.Repeat("x", 78)
			w.grant(schema.GrantSocket, "git", "git")            // …/sock/git/git.sock: 101 bytes
			w.grant(schema.GrantSocket, "human", "human")        // 107 bytes
			w.grant(schema.GrantSocket, "launch", "launch")      // 107
			w.d.Grants[0].Target = "/" + strings.Repeat("t", 98) // 108
			w.d.Grants[1].Target = "/" + strings.Repeat("t", 93) // 106
		}, []string{"socket-path: 108 bytes"}},

		// A space's own limits.
		{"the folder of the files", func(w *hostWorld) {
			w.load("/p/main.hcl", "/p/x.spacesvars")
			w.space("a", w.grant(dir, "g", "/p", "rw"))
		}, []string{"grant-holds-configuration: space.a could write its own limits: grant.g (/p) is writable and reaches what is loaded here, /p/main.hcl, /p/x.spacesvars."}},
		{"read-only", func(w *hostWorld) {
			w.load("/p/main.hcl")
			w.space("a", w.grant(dir, "g", "/p"))
		}, nil},
		{"held by none", func(w *hostWorld) {
			w.load("/p/main.hcl")
			w.grant(dir, "g", "/p", "rw")
		}, nil},
		{"a folder beside the files", func(w *hostWorld) {
			w.load("/p/main.hcl")
			w.space("a", w.grant(dir, "g", "/p/work", "rw"))
		}, nil},
		{"far above", func(w *hostWorld) {
			w.load("/srv/a/b/c/main.hcl")
			w.space("a", w.grant(dir, "g", "/srv", "rw"))
		}, []string{"grant-holds-configuration: /srv/a/b/c/main.hcl"}},
		{"a file itself", func(w *hostWorld) {
			w.load("/p/v.spacesvars")
			w.space("a", w.grant(file, "g", "/p/v.spacesvars", "rw"))
		}, []string{"grant-holds-configuration: v.spacesvars"}},
		{"a hard link of a file", func(w *hostWorld) {
			w.load("/p/main.hcl")
			w.put("/q/other", PathFacts{Exists: true, Kind: PathFile, Inode: fake("/p/main.hcl")})
			w.space("a", w.grant(file, "g", "/q/other", "rw"))
		}, []string{"grant-holds-configuration: /p/main.hcl"}},
		{"in a build context", func(w *hostWorld) {
			w.dir("/p/image")
			w.load("/p/image")
			w.space("a", w.grant(dir, "g", "/p/image/src", "rw"))
		}, []string{"grant-holds-configuration: /p/image"}},
		{"the files through a bind mount", func(w *hostWorld) {
			w.load("/p/main.hcl")
			w.put("/mnt/p", PathFacts{Exists: true, Kind: PathDirectory, Inode: fake("/p")})
			w.space("a", w.grant(dir, "g", "/mnt/p", "rw"))
		}, []string{"grant-holds-configuration: /p/main.hcl"}},
		{"a link to a file, in reach", func(w *hostWorld) {
			w.put("/p/main.hcl", PathFacts{Exists: true, Kind: PathFile, Resolved: "/safe/main.hcl", Links: []string{"/w/l"}})
			w.load("/p/main.hcl")
			w.space("a", w.grant(dir, "g", "/w", "rw"))
		}, []string{"grant-holds-configuration: /p/main.hcl"}},
		{"loosened", func(w *hostWorld) {
			w.load("/p/main.hcl")
			g := w.grant(dir, "g", "/p", "rw")
			w.space("a", g).Loosen = []schema.Loosening{{Kind: schema.LoosenHoldsConfiguration, Grants: []schema.Address{g.Address}}}
		}, nil},
		{"loosened in another space, or for another grant or rule", func(w *hostWorld) {
			w.load("/p/main.hcl")
			g, h := w.grant(dir, "g", "/p", "rw"), w.grant(dir, "h", "/q", "rw")
			w.space("a", g).Loosen = []schema.Loosening{
				{Kind: schema.LoosenHoldsConfiguration, Grants: []schema.Address{h.Address}},
				{Kind: schema.LoosenSourceWritable, Grants: []schema.Address{g.Address}},
			}
			w.space("b", g).Loosen = []schema.Loosening{{Kind: schema.LoosenHoldsConfiguration, Grants: []schema.Address{g.Address}}}
		}, []string{"grant-holds-configuration: space.a"}},
		{"many", func(w *hostWorld) {
			for i := range 6 {
				w.load(fmt.Sprintf("/p/%d.hcl", i))
			}
			w.space("a", w.grant(dir, "g", "/p", "rw"))
		}, []string{"grant-holds-configuration: /p/2.hcl and 3 more."}},

		// A source that can be swapped.
		{"in a writable one", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"))
			w.space("b", w.grant(dir, "s", "/w/x/y"))
		}, []string{"grant-source-writable: Where grant.s (/w/x/y) of space.b leads could be changed before its next start: it lies where a space may write, space.a by grant.w (/w)."}},
		{"in its own writable one", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"), w.grant(dir, "s", "/w/s", "rw"))
		}, []string{"grant-source-writable: grant.s"}},
		{"a secret in a writable one", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"))
			w.space("b", w.grant(secret, "s", "/w/token"))
		}, []string{"grant-source-writable: grant.s"}},
		{"one writable directory of two spaces", func(w *hostWorld) {
			g := w.grant(dir, "w", "/w", "rw")
			w.space("a", g)
			w.space("b", g)
			w.space("c", w.grant(dir, "r", "/w"))
		}, nil},
		{"a writable one in a read-only one", func(w *hostWorld) {
			w.space("a", w.grant(dir, "r", "/r"))
			w.space("b", w.grant(dir, "w", "/r/w", "rw"))
		}, nil},
		{"by a link in reach", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"))
			w.put("/srv/s", PathFacts{Exists: true, Kind: PathDirectory, Resolved: "/else", Links: []string{"/srv/s", "/w/l"}, Symlink: true})
			w.space("b", w.grant(dir, "s", "/srv/s"))
		}, []string{"grant-source-writable: grant.s"}},
		{"by a link that its own target holds", func(w *hostWorld) {
			w.put("/w/l", PathFacts{Exists: true, Kind: PathDirectory, Resolved: "/w", Links: []string{"/w/l"}, Symlink: true})
			w.space("a", w.grant(dir, "w", "/w/l", "rw"))
		}, []string{"grant-source-writable: grant.w"}},
		{"in a bind mount of a writable one", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"))
			w.put("/mnt/w/s", PathFacts{Exists: true, Kind: PathDirectory, Above: []Inode{fake("/"), fake("/mnt"), fake("/w")}})
			w.space("b", w.grant(dir, "s", "/mnt/w/s"))
		}, []string{"grant-source-writable: grant.s"}},
		{"beside a writable file", func(w *hostWorld) {
			w.space("a", w.grant(file, "w", "/w/f", "rw"))
			w.space("b", w.grant(dir, "s", "/w/s"))
		}, nil},
		{"loosened where it is held", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw"))
			s := w.grant(dir, "s", "/w/s")
			w.space("b", s).Loosen = []schema.Loosening{{Kind: schema.LoosenSourceWritable, Grants: []schema.Address{s.Address}}}
			w.space("c", s)
		}, []string{"grant-source-writable: of space.c"}},
		{"to be made in a writable one to be made", func(w *hostWorld) {
			w.space("a", w.grant(dir, "w", "/w", "rw", "create", "missing"))
			w.space("b", w.grant(dir, "s", "/w/s", "create", "missing"))
		}, []string{"grant-source-writable: grant.s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHostWorld()
			c.set(w)
			got, _ := hostRefusals(w.d, w.f)
			var texts []string
			for _, r := range got {
				texts = append(texts, r.Code+": "+r.Text)
				if r.Fix == "" || r.Origin.Line < 100 || !strings.HasSuffix(r.Text, ".") && r.Code != CodeSocketPath {
					t.Errorf("incomplete: %+v", r)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %d refusals, want %d:\n%s", len(got), len(c.want), strings.Join(texts, "\n"))
			}
			for _, want := range c.want {
				code, part, _ := strings.Cut(want, ": ")
				if !slices.ContainsFunc(got, func(r Refusal) bool { return r.Code == code && strings.Contains(r.Text, part) }) {
					t.Errorf("no %q in\n%s", want, strings.Join(texts, "\n"))
				}
			}
			w.f.Checked = false
			if refusals, notes := hostRefusals(w.d, w.f); refusals != nil || notes != nil {
				t.Error("judged without facts")
			}
		})
	}
}

func TestHostRefusalsAreSorted(t *testing.T) {
	build := func(reverse bool) []Refusal {
		w := newHostWorld()
		w.load("/p/main.hcl")
		w.space("b", w.grant(schema.GrantDirectory, "p", "/p", "rw"), w.grant(schema.GrantSecret, "s", "/p/s"), w.grant(schema.GrantDirectory, "h", "/home/u"), w.grant(schema.GrantFile, "x", "/x", "missing"))
		w.space("a", w.d.Grants[0], w.d.Grants[1])
		if reverse {
			slices.Reverse(w.d.Grants)
			slices.Reverse(w.d.Spaces)
			slices.Reverse(w.f.Protected)
		}
		r, _ := hostRefusals(w.d, w.f)
		return r
	}
	if a, b := build(false), build(true); !slices.Equal(a, b) || len(a) != 6 {
		t.Errorf("%d refusals, and in another order\n%v\n%v", len(a), a, b)
	}
}

func TestSecretFix(t *testing.T) {
	w := newHostWorld()
	w.file("/srv/it's", 0o644)
	f := w.f.Paths["/srv/it's"]
	f.Owner = 5
	w.f.Paths["/srv/it's"] = f
	w.grant(schema.GrantSecret, "s", "/srv/it's")
	got, _ := hostRefusals(w.d, w.f)
	if len(got) != 1 || got[0].Fix != `To make it right: chown 1000 '/srv/it'\''s'; chmod 600 '/srv/it'\''s'` {
		t.Errorf("got %v", got)
	}
}

func TestAccessNotes(t *testing.T) {
	w := newHostWorld()
	big, inner, token := w.grant(schema.GrantDirectory, "big", "/srv"), w.grant(schema.GrantDirectory, "inner", "/srv/a/b", "rw"), w.grant(schema.GrantSecret, "token", "/srv/token")
	twin := w.grant(schema.GrantDirectory, "twin", "/srv/a/b")
	w.put("/mnt/srv", PathFacts{Exists: true, Kind: PathDirectory, Inode: fake("/srv/a")})
	bound := w.grant(schema.GrantDirectory, "bound", "/mnt/srv", "rw")
	w.space("all", big, inner, token, twin)
	w.space("some", big, twin)
	w.space("bound", bound)
	_, notes := hostRefusals(w.d, w.f)
	var got []string
	for _, n := range notes {
		got = append(got, fmt.Sprintf("%s %s gives %s at %q, rw %v", n.Space, n.Target, n.Grant, n.Inside, n.Writable))
	}
	want := []string{
		// It has the twin too, but read-only.
		`space.all /mnt/inner gives grant.twin at "/mnt/inner", rw true`,
		`space.some /mnt/big gives grant.inner at "/mnt/big/a/b", rw false`,
		`space.some /mnt/big gives grant.token at "/mnt/big/token", rw false`,
		`space.some /mnt/twin gives grant.inner at "/mnt/twin", rw false`,
		`space.bound /mnt/bound gives grant.inner at "", rw true`,
		`space.bound /mnt/bound gives grant.twin at "", rw true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func BenchmarkHostRefusals(b *testing.B) {
	w := newHostWorld()
	shared := w.grant(schema.GrantDirectory, "shared", "/srv/shared")
	for i := range 20 {
		w.load(fmt.Sprintf("/p/%d.hcl", i))
	}
	for i := range 1000 {
		name := fmt.Sprint("s", i)
		w.space(name, shared,
			w.grant(schema.GrantDirectory, "w"+name, "/home/u/agents/work/"+name, "rw"),
			w.grant(schema.GrantSecret, "t"+name, "/home/u/.config/spaces/secrets/acme/"+name))
	}
	for b.Loop() {
		if refusals, notes := hostRefusals(w.d, w.f); len(refusals)+len(notes) > 0 {
			b.Fatal(refusals, notes)
		}
	}
}
