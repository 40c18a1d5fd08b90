package schema

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// decode reads the project, the install and every object.
func (l *loader) decode() {
	l.decodeProject()
	l.decodeInstall()
	slices.SortFunc(l.accepts, func(a, b *hclsyntax.Block) int {
		x, y := a.DefRange(), b.DefRange()
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte))
	})
	for _, block := range l.accepts {
		l.decodeAccept(block)
	}
	for _, k := range kinds {
		for _, d := range l.decls {
			if d.kind != k {
				continue
			}
			for _, inst := range d.instances {
				l.decodeObject(inst)
			}
		}
	}
	l.decodeAssertions()
}

// decodeObject reads one instance. A block that repeats another's name, or whose
// for_each failed, is read for what is wrong with it, and is no part of the Config.
func (l *loader) decodeObject(inst *instance) {
	c, keep := l.config, !inst.decl.again && !inst.decl.faulty
	switch inst.decl.kind.name {
	case "image":
		c.Images = appendIf(keep, c.Images, l.decodeImage(inst))
	case "network":
		c.Networks = appendIf(keep, c.Networks, l.decodeNetwork(inst))
	case "egress":
		c.Egresses = appendIf(keep, c.Egresses, l.decodeEgress(inst))
	case "grant":
		c.Grants = appendIf(keep, c.Grants, l.decodeGrant(inst))
	case "space":
		c.Spaces = appendIf(keep, c.Spaces, l.decodeSpace(inst))
	case "role":
		c.Roles = appendIf(keep, c.Roles, l.decodeRole(inst))
	}
}

func appendIf[T any](keep bool, list []T, v T) []T {
	if !keep {
		return list
	}
	return append(list, v)
}

// topReader reads attributes that stand outside object blocks.
func (l *loader) topReader(attrs ...*hclsyntax.Attribute) *reader {
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for _, attr := range attrs {
		if attr != nil {
			body.Attributes[attr.Name] = attr
		}
	}
	return &reader{l: l, body: body}
}

func (l *loader) decodeProject() {
	r := l.topReader(l.project, l.dataRoot)
	if l.project != nil {
		l.config.ProjectOrigin = originOf(l.project.SrcRange)
		if name, ok := r.str("project"); r.need("project", ok) {
			if !ValidProject(name) {
				l.report(diagInvalidProject(name, r.place("project")))
			} else {
				l.config.Project = name
			}
		}
	}
	if l.dataRoot != nil {
		l.config.DataRootOrigin = originOf(l.dataRoot.SrcRange)
		if dir, ok := r.str("data_root"); ok {
			clean, ok := cleanSource(dir)
			switch {
			case !ok:
				l.report(diagHostPath("data_root", dir, r.place("data_root")))
			case clean == "/":
				l.report(diagRootPath("data_root", r.place("data_root")))
			default:
				l.config.DataRoot = clean
			}
		}
	}
}

func (l *loader) decodeInstall() {
	l.config.Install.Mode = ModeLocal
	if len(l.installs) == 0 {
		return
	}
	for _, inner := range l.installs[0].Body.Blocks {
		if inner.Type == "accept" {
			l.accepts = append(l.accepts, inner)
		}
	}
	block := l.installs[0]
	install := &l.config.Install
	install.Origin = originOf(block.DefRange())
	r := &reader{l: l, body: block.Body}
	mode, modeOK := r.choice("mode", string(ModeLocal), string(ModeContainerized))
	endpoint, endpointOK := r.str("endpoint")
	if r.has("endpoint") {
		install.EndpointOrigin = originOf(block.Body.Attributes["endpoint"].SrcRange)
	}
	if r.need("mode", modeOK) {
		install.Mode = Mode(mode)
	}
	if endpointOK && !endpointRE.MatchString(endpoint) {
		l.report(diagEndpoint(endpoint, r.place("endpoint")))
		endpoint = ""
	}
	switch {
	case !modeOK:
	case install.Mode == ModeContainerized && !r.hasValue("endpoint"):
		l.report(diagEndpointMissing(block))
	case install.Mode == ModeLocal && endpointOK:
		l.report(diagEndpointLocal(r.place("endpoint")))
	}
	install.Endpoint = endpoint
}

// hasValue reports whether an attribute stands there with something that isn't null,
// even if it is wrong.
func (r *reader) hasValue(name string) bool {
	attr := r.body.Attributes[name]
	if attr == nil {
		return false
	}
	v, _ := r.l.eval(attr.Expr, r.inst).Unmark()
	return !v.IsKnown() || !v.IsNull()
}

// acceptCodes are the refusals that a person may overrule.
var acceptCodes = []string{AcceptNotRootless, AcceptLimitsUnenforced, AcceptNetworkNotIsolated}

func (l *loader) decodeAccept(block *hclsyntax.Block) {
	if len(block.Labels) == 0 {
		return // reported with the block's shape
	}
	code := block.Labels[0]
	r := &reader{l: l, body: block.Body}
	reason, ok := r.reason()
	r.need("reason", ok)
	known := false
	for _, c := range acceptCodes {
		known = known || c == code
	}
	if !known {
		l.report(diagAcceptCode(code, Closest(code, acceptCodes), block.LabelRanges[0], block.DefRange()))
		return
	}
	for _, accept := range l.config.Accepts {
		if accept.Code == code {
			l.report(diagDuplicateName("accept", code, block.DefRange(), accept.Origin.hclRange()))
			return
		}
	}
	// A faulty reason keeps the block, so that the same code again is found.
	l.config.Accepts = append(l.config.Accepts, Accept{Code: code, Reason: reason, Origin: originOf(block.DefRange())})
}

// originOf is a range as the Config keeps it.
func originOf(r hcl.Range) Origin {
	return Origin{
		File: r.Filename,
		Line: r.Start.Line, Column: r.Start.Column,
		EndLine: r.End.Line, EndColumn: r.End.Column,
		StartByte: r.Start.Byte, EndByte: r.End.Byte,
	}
}

// hclRange is the origin as diagnostics want it.
func (o Origin) hclRange() hcl.Range {
	return hcl.Range{
		Filename: o.File,
		Start:    hcl.Pos{Line: o.Line, Column: o.Column, Byte: o.StartByte},
		End:      hcl.Pos{Line: o.EndLine, Column: o.EndColumn, Byte: o.EndByte},
	}
}
