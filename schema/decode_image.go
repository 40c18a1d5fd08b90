package schema

import (
	"path"
	"path/filepath"
	"strings"

	imageref "github.com/distribution/reference"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	// ownBinary is the binary that stands for this very executable.
	ownBinary         = "spaces"
	defaultTag        = "latest"
	defaultDockerfile = "Dockerfile"
)

func (l *loader) decodeImage(inst *instance) Image {
	r := l.reader(inst)
	img := Image{Object: *r.object}
	build := r.block("build")
	var given []string
	for _, name := range []string{"binary", "reference"} {
		if r.hasValue(name) {
			given = append(given, name)
		}
	}
	if build != nil {
		given = append(given, "build")
	}
	if len(given) != 1 {
		r.fail(diagImageSource(inst.decl.block, given))
	}
	img.Binary = r.binary()
	img.Reference = r.imageReference()
	if build != nil {
		img.Build = r.inner(build, "build").build(build)
	}
	img.Tag = r.tag(r.hasValue("reference"))
	return img
}

func (r *reader) binary() string {
	const name = "binary"
	s, ok := r.str(name)
	if !ok {
		return ""
	}
	if s == ownBinary {
		return s
	}
	abs, ok := r.beside(s)
	if !ok || abs == "/" {
		r.fail(diagBinary(s, r.place(name)))
		return ""
	}
	return abs
}

// beside is a path that may be relative to the folder: absolute, or with "./" or "../".
func (r *reader) beside(s string) (string, bool) {
	switch {
	case hasControl(s):
		return "", false
	case path.IsAbs(s):
		return path.Clean(s), true
	case s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../"):
		return filepath.Join(r.l.opts.Root, s), true
	}
	return "", false
}

func (r *reader) imageReference() string {
	const name = "reference"
	s, ok := r.str(name)
	if !ok {
		return ""
	}
	named, err := imageref.ParseNormalizedNamed(s)
	if err != nil {
		r.fail(diagImageReference(s, err, r.place(name)))
		return ""
	}
	if _, pinned := named.(imageref.Canonical); !pinned {
		r.l.report(diagImageUnpinned(s, r.place(name)))
	}
	return s
}

func (r *reader) build(block *hclsyntax.Block) *Build {
	b := &Build{Dockerfile: defaultDockerfile}
	if s, ok := r.str("context"); r.need("context", ok) {
		dir, ok := r.beside(s)
		if !ok || dir == "/" {
			r.fail(diagBuildContext(s, r.place("context")))
		}
		b.Context = dir
	}
	if s, ok := r.str("dockerfile"); ok {
		if !filepath.IsLocal(s) || path.Clean(s) != s || s == "." || hasControl(s) {
			r.fail(diagDockerfile(s, r.place("dockerfile")))
		}
		b.Dockerfile = s
	}
	if s, ok := r.str("target"); ok {
		if s == "" || strings.ContainsAny(s, " \t\n") {
			r.fail(diagEmpty("target", r.place("target")))
		}
		b.Target = s
	}
	b.Args = r.buildArgs()
	return b
}

func (r *reader) buildArgs() map[string]string {
	items, ok := r.strMap("args")
	if !ok {
		return nil
	}
	args := map[string]string{}
	for name, it := range items {
		v := it.value
		switch {
		case v.IsMarked():
			r.fail(diagSensitiveAt("args", it.at))
		case !envNameRE.MatchString(name):
			r.fail(diagEnvName("args", name, it.at))
		default:
			args[name] = stringOf(v)
		}
	}
	return args
}

// stringOf is a known string, its marks aside.
func stringOf(v cty.Value) string {
	plain, _ := v.Unmark()
	return plain.AsString()
}

func (r *reader) tag(hasReference bool) string {
	const name = "tag"
	s, ok := r.str(name)
	switch {
	case ok && hasReference:
		r.fail(diagTagOfReference(r.place(name)))
		return ""
	case hasReference:
		return ""
	case !ok:
		return defaultTag
	case !tagRE.MatchString(s):
		r.fail(diagTag(s, r.place(name)))
	}
	return s
}
