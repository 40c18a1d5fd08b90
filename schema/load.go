package schema

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

const (
	configExt     = ".hcl"
	variablesExt  = ".spacesvars"
	autoVariables = "auto" + variablesExt
	maxFileSize   = 4 << 20
	maxFolderSize = 32 << 20
)

// Load reads the folder fsys and says what its files mean. The Config is never nil,
// but only its Sources and Files are of use when the diagnostics hold an error.
// Diagnostics come in a stable order: by file, then by place in it.
func Load(fsys fs.FS, opts Options) (*Config, hcl.Diagnostics) {
	l := &loader{
		fsys:      fsys,
		opts:      opts,
		config:    &Config{Root: opts.Root, Sources: map[string][]byte{}},
		funcs:     functions(),
		objects:   map[string]map[string]*decl{},
		locals:    map[string]*local{},
		variables: map[string]*variable{},
		exprs:     map[hclsyntax.Expression]*exprInfo{},
		broken:    map[Address]bool{},
	}
	l.read()
	l.collect()
	l.setVariables()
	l.resolve()
	l.compute()
	l.checkVariables()
	l.decode()
	l.validate()
	l.config.sort()
	return l.config, tidy(l.diags)
}

// loader is the state of one Load.
type loader struct {
	fsys   fs.FS
	opts   Options
	config *Config
	diags  hcl.Diagnostics
	funcs  map[string]function.Function
	// blindFuncs are funcs for computing without sensitive values, made when needed.
	blindFuncs map[string]function.Function

	// bodies are the files that parsed, by name.
	bodies   []*hclsyntax.Body
	varFiles []varFile
	// incomplete is set when a file could not be read or parsed: what it would have
	// declared is unknown. unparsed are the sources of those that could be read, and
	// unread is set when one could not.
	incomplete bool
	// size is how much was read, and infos are the files it was read from.
	size     int64
	infos    []namedInfo
	unparsed [][]byte
	unread   bool

	project  *hclsyntax.Attribute
	dataRoot *hclsyntax.Attribute
	installs []*hclsyntax.Block
	accepts  []*hclsyntax.Block
	asserts  []*hclsyntax.Block
	moved    []*hclsyntax.Block

	decls     []*decl                     // every object block, as read
	objects   map[string]map[string]*decl // the first of each name, by kind
	locals    map[string]*local
	variables map[string]*variable
	exprs     map[hclsyntax.Expression]*exprInfo

	// broken holds the instances that were not decoded whole.
	broken map[Address]bool

	networkAt map[Address]*Network
	grantAt   map[Address]*Grant
	spaceAt   map[Address]*Space
}

// decl is one object block of the files.
type decl struct {
	kind    *kind
	name    string
	block   *hclsyntax.Block
	forEach *hclsyntax.Attribute
	// again is set on the second and later blocks of one name: they are checked, but
	// are not part of the configuration.
	again     bool
	instances []*instance
	// faulty is set where for_each could not be computed: one instance stands for those
	// that it would have made, to find what else is wrong, and is no part of the
	// configuration.
	faulty bool
	// value is what a reference to the block gives: an opaque value, or with for_each
	// an object of these. Unknown when for_each could not be computed.
	value cty.Value
}

// instance is one object that a block makes.
type instance struct {
	decl    *decl
	addr    Address
	ref     cty.Value
	eachKey cty.Value // nil without for_each
	eachVal cty.Value
}

// local is one attribute of a locals block.
type local struct {
	attr   *hclsyntax.Attribute
	value  cty.Value
	weight int
}

func (l *loader) report(diags ...*hcl.Diagnostic) {
	l.diags = append(l.diags, diags...)
}

// Reads tells whether a file of a configuration's folder is read, by its name.
func Reads(name string) bool {
	return !strings.HasPrefix(name, ".") && (path.Ext(name) == configExt || name == autoVariables)
}

// read parses every configuration and variables file. A file that does not parse is
// left out whole: what is left of it would only give errors that follow from the first.
func (l *loader) read() {
	entries, err := fs.ReadDir(l.fsys, ".")
	if err != nil {
		l.report(diagFolderUnreadable(err))
		l.incomplete, l.unread = true, true
	}
	found := false
	for _, entry := range entries { // sorted by name
		name := entry.Name()
		if !Reads(name) {
			continue
		}
		src, ok := l.readFile(name)
		if !ok {
			continue
		}
		if name == autoVariables {
			l.readVarFile(name, src)
			continue
		}
		found = true
		if body, ok := l.parse(name, src); ok {
			l.bodies = append(l.bodies, body)
		}
	}
	if !found && err == nil && !l.incomplete {
		l.report(diagNoFiles())
		l.incomplete, l.unread = true, true
	}
	for _, file := range l.opts.VarFiles {
		name := file.Name
		if _, taken := l.config.Sources[name]; taken {
			name += " (--var-file)"
		}
		if !slices.Contains(l.config.Files, file.Path) {
			l.config.Files = append(l.config.Files, file.Path)
		}
		l.readVarFile(name, file.Bytes)
	}
}

// namedInfo is a file by the name in the folder, whatever it leads to.
type namedInfo struct {
	fs.FileInfo
	name string
}

// readFile reads a file of the folder; ok is false for what is not a file.
func (l *loader) readFile(name string) (src []byte, ok bool) {
	info, err := fs.Stat(l.fsys, name)
	switch {
	case err != nil:
		l.report(diagFileUnreadable(name, err))
		l.incomplete, l.unread = true, true
		return nil, false
	case info.IsDir():
		return nil, false
	case !info.Mode().IsRegular():
		l.report(diagFileNotRegular(name))
		l.incomplete, l.unread = true, true
		return nil, false
	case info.Size() > maxFileSize:
		l.report(diagFileTooLarge(name))
		l.incomplete, l.unread = true, true
		return nil, false
	case l.size+info.Size() > maxFolderSize:
		if l.size <= maxFolderSize {
			l.report(diagFolderTooLarge(name))
		}
		l.size = maxFolderSize + 1 // nothing more is read
		l.incomplete, l.unread = true, true
		return nil, false
	}
	for _, other := range l.infos {
		if os.SameFile(other.FileInfo, info) {
			l.report(diagFileTwice(name, other.name))
			return nil, false
		}
	}
	l.infos = append(l.infos, namedInfo{info, name})
	l.size += info.Size()
	src, err = fs.ReadFile(l.fsys, name)
	if err != nil {
		l.report(diagFileUnreadable(name, err))
		l.incomplete, l.unread = true, true
		return nil, false
	}
	l.config.Files = append(l.config.Files, filepath.Join(l.opts.Root, name))
	return src, true
}

// parse reads the syntax of one file of the configuration.
func (l *loader) parse(name string, src []byte) (*hclsyntax.Body, bool) {
	// A zero byte, which no text holds, would be taken for what is hidden.
	l.config.Sources[name] = bytes.ReplaceAll(src, []byte{hiddenByte}, []byte{'?'})
	body, diags := parseSource(src, name)
	l.report(diags...)
	if diags.HasErrors() {
		l.incomplete = true
		l.unparsed = append(l.unparsed, src)
	}
	return body, !diags.HasErrors()
}

// mayDeclare tells whether a file that could not be read or parsed may declare a name:
// it would have to spell it, as it stands or by an escape.
func (l *loader) mayDeclare(name string) bool {
	return l.unread || slices.ContainsFunc(l.unparsed, func(src []byte) bool {
		return bytes.Contains(src, []byte(name)) || bytes.Contains(src, []byte(`\u`)) || bytes.Contains(src, []byte(`\U`))
	})
}

// collect files every block away by kind and checks the shape of each.
func (l *loader) collect() {
	for _, body := range l.bodies {
		l.checkShape(body, nil, topSpec)
		l.collectAttributes(body)
		for _, block := range body.Blocks {
			l.collectBlock(block)
		}
	}
	if l.project == nil && !l.mayDeclare("project") {
		l.report(diagProjectMissing())
	}
	for i, block := range l.installs {
		if i > 0 {
			l.report(diagDuplicateBlock(block, l.installs[0]))
		}
	}
}

func (l *loader) collectAttributes(body *hclsyntax.Body) {
	for _, top := range []struct {
		name string
		into **hclsyntax.Attribute
	}{{"project", &l.project}, {"data_root", &l.dataRoot}} {
		attr, ok := body.Attributes[top.name]
		switch {
		case !ok:
		case *top.into == nil:
			*top.into = attr
		default:
			l.report(diagDuplicateAttribute(attr, *top.into))
		}
	}
}

func (l *loader) collectBlock(block *hclsyntax.Block) {
	switch block.Type {
	case "install":
		l.installs = append(l.installs, block)
	case "accept":
		l.accepts = append(l.accepts, block)
	case "assert":
		l.asserts = append(l.asserts, block)
	case "moved":
		l.moved = append(l.moved, block)
	case "locals":
		l.collectLocals(block)
	case "variable":
		l.collectVariable(block)
	default:
		if kind := kindNamed(block.Type); kind != nil {
			l.collectObject(kind, block)
		}
	}
}

func (l *loader) collectLocals(block *hclsyntax.Block) {
	for _, attr := range sortedAttributes(block.Body) {
		if first, ok := l.locals[attr.Name]; ok {
			l.report(diagDuplicateName("local", attr.Name, attr.NameRange, first.attr.NameRange))
			continue
		}
		l.locals[attr.Name] = &local{attr: attr, value: cty.DynamicVal}
	}
}

func (l *loader) collectObject(kind *kind, block *hclsyntax.Block) {
	if len(block.Labels) == 0 {
		return // reported with the block's shape
	}
	d := &decl{kind: kind, name: block.Labels[0], block: block, value: cty.DynamicVal}
	if !validName(d.name) {
		l.report(diagInvalidName(kind.name, d.name, block.LabelRanges[0]))
	}
	if kind.forEach {
		d.forEach = block.Body.Attributes["for_each"]
	}
	named := l.objects[kind.name]
	if named == nil {
		named = map[string]*decl{}
		l.objects[kind.name] = named
	}
	if first, ok := named[d.name]; ok {
		l.report(diagDuplicateName(kind.name, d.name, block.DefRange(), first.block.DefRange()))
		d.again = true
	} else {
		named[d.name] = d
	}
	l.decls = append(l.decls, d)
}

// sortedAttributes are a body's attributes in the order they stand.
func sortedAttributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	attrs := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, attr := range body.Attributes {
		attrs = append(attrs, attr)
	}
	slices.SortFunc(attrs, func(a, b *hclsyntax.Attribute) int {
		return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte
	})
	return attrs
}
