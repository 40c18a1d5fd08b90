package picture

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"spaces/reconcile"
	"spaces/schema"
)

// The ids of the two areas that are no network. They sort before and after those.
const (
	hostArea    = "1 host"
	outsideArea = "9 outside"
)

func networkArea(name string) string { return "2 " + name }

// Of is the picture of what the files ask for.
func Of(d reconcile.Desired) *Picture {
	f := files{desired: d, p: &Picture{Title: "project " + d.Project}}
	for _, n := range d.Networks {
		f.network(n)
	}
	for _, s := range d.Spaces {
		f.space(s)
	}
	for _, e := range d.Egresses {
		f.list(e)
	}
	return f.p.settle()
}

// files is a picture that is being made from files.
type files struct {
	desired reconcile.Desired
	p       *Picture
}

func (f *files) network(n reconcile.Network) {
	a := Area{ID: networkArea(n.Name), Kind: AreaInternal, Title: n.Address.String(), Notes: []string{"internal"}}
	switch {
	case n.Uplink:
		a.Kind, a.Notes = AreaOpen, []string{"uplink: for proxies only, reaches any address"}
	case !n.Internal:
		a.Kind, a.Notes = AreaOpen, []string{"reaches any address: " + n.Reason}
	case n.NoEgress:
		a.Notes = []string{"internal, no way out"}
	}
	f.p.ensureArea(a)
}

func (f *files) space(s reconcile.Space) {
	id := s.Address.String()
	n := Node{ID: id, Kind: NodeSpace, Title: id}
	if s.Kind == reconcile.KindEgress {
		n.Kind = NodeProxy
	} else if s.Lifecycle != schema.LifecycleService {
		n.Lines = append(n.Lines, Line{Text: string(s.Lifecycle)})
	}
	for _, r := range f.desired.Roles {
		if r.Space == s.Address {
			text := r.Address.String()
			if len(r.Holds) > 0 {
				text += " holds " + strings.Join(r.Holds, ", ")
			}
			n.Lines = append(n.Lines, Line{Text: text})
		}
	}
	for _, l := range s.Loosen {
		n.Lines = append(n.Lines, Line{Text: loosened(l), Warns: true})
	}
	n.Area = f.home(s)
	if n.Area == "" && s.Kind != reconcile.KindEgress {
		n.Lines = append(n.Lines, Line{Text: "on no network"})
	}
	f.p.Nodes = append(f.p.Nodes, &n)
	for _, network := range slices.Sorted(maps.Keys(s.Container.Networks)) {
		if area := networkArea(network); area != n.Area && f.p.area(area) != nil {
			f.p.member(id, area, network).access = key{id, reconcile.AccessNetwork, network}
		}
	}
	for _, target := range slices.Sorted(maps.Keys(s.Grants)) {
		f.grant(s, target, s.Grants[target])
	}
	for _, port := range slices.Sorted(maps.Keys(s.Container.Publish)) {
		for binding := range strings.SplitSeq(s.Container.Publish[port], ",") {
			f.p.publish(id, port, binding)
		}
	}
	for _, list := range s.Lists {
		f.p.connect(Edge{From: id, To: list.String(), Kind: EdgeList})
	}
}

// home is the area that a space is drawn in.
func (f *files) home(s reconcile.Space) string {
	if area := networkArea(s.Container.NetworkMode); f.p.area(area) != nil {
		return area
	}
	return ""
}

// member marks a space in the area of a network that it isn't drawn in.
func (p *Picture) member(space, area, network string) *Edge {
	id := space + " on " + network
	p.ensure(Node{ID: id, Kind: NodeMember, Area: area, Title: space})
	if have := p.edge(space, id, EdgeMember); have != nil {
		return have
	}
	return p.connect(Edge{From: space, To: id, Kind: EdgeMember})
}

func (f *files) grant(s reconcile.Space, target string, g schema.Grant) {
	e := Edge{
		To: s.Address.String(), Kind: EdgeGrant, Wide: g.Writable, Label: mounted(target, g.Writable),
		access: key{s.Address.String(), reconcile.AccessMount, target},
	}
	switch g.Kind {
	case schema.GrantSocket:
		e.Kind, e.Label = EdgeSocket, g.Source+" socket at "+mounted(target, g.Writable)
		e.From = f.server(g)
	case schema.GrantData:
		e.From = f.p.source("data root, "+g.Source, string(g.Kind))
	case schema.GrantVolume:
		e.From = f.p.source(s.Container.Mounts[target].Source, string(g.Kind))
	default:
		e.From = f.p.source(g.Source, string(g.Kind))
	}
	if e.From != e.To {
		f.p.connect(e)
	}
}

func mounted(target string, writable bool) string {
	if writable {
		return target + " writable"
	}
	return target + " read-only"
}

// source is the node of what a grant gives.
func (p *Picture) source(name, kind string) string {
	p.ensureArea(Area{ID: hostArea, Kind: AreaHost, Title: "this host"})
	n := Node{ID: "source " + name, Kind: NodeSource, Area: hostArea, Title: name}
	if kind != "" {
		n.Lines = []Line{{Text: kind}}
	}
	return p.ensure(n).ID
}

// server is the node of who serves a socket: the core's broker, or the host process.
func (f *files) server(g schema.Grant) string {
	if g.Source == "agent" || g.Source == "human" {
		for _, s := range f.desired.Spaces {
			if s.Kind == reconcile.KindCore {
				return s.Address.String()
			}
		}
		return f.serverNode("the broker", "of no core space here")
	}
	return f.serverNode("spaces host", "on this host")
}

func (f *files) serverNode(title, text string) string {
	f.p.ensureArea(Area{ID: hostArea, Kind: AreaHost, Title: "this host"})
	return f.p.ensure(Node{ID: "server " + title, Kind: NodeServer, Area: hostArea, Title: title, Lines: []Line{{Text: text}}}).ID
}

// publish draws a port of this machine that leads to a space.
func (p *Picture) publish(space, port, binding string) *Edge {
	p.ensureArea(Area{ID: hostArea, Kind: AreaHost, Title: "this host"})
	n := p.ensure(Node{ID: "port " + binding, Kind: NodePort, Area: hostArea, Title: binding})
	loopback := strings.HasPrefix(binding, "127.") || strings.HasPrefix(binding, "[::1]:")
	if !loopback && len(n.Lines) == 0 {
		n.Lines = []Line{{Text: "not only this machine", Warns: true}}
	}
	return p.connect(Edge{From: n.ID, To: space, Kind: EdgePort, Label: "port " + port, Wide: !loopback, access: key{space, reconcile.AccessPort, port}})
}

func (f *files) list(e schema.Egress) {
	for _, entry := range e.Entries {
		label := ""
		if len(entry.Entry.Private) > 0 {
			label = fmt.Sprintf("private %v", entry.Entry.Private)
		}
		f.p.reach(e.Address.String(), entry.Entry.String(), label, entry.Entry.Wide())
	}
}

// reach draws a host that a list lets through.
func (p *Picture) reach(list, target, label string, wide bool) *Edge {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = target, ""
	}
	p.ensureArea(Area{ID: outsideArea, Kind: AreaOutside, Title: "outside"})
	n := p.ensure(Node{ID: "host " + host, Kind: NodeHost, Area: outsideArea, Title: host})
	if wide && len(n.Lines) == 0 {
		n.Lines = []Line{{Text: "any name below it", Warns: true}}
	}
	if _, err := strconv.Atoi(port); err == nil {
		label = strings.TrimSpace("port " + port + " " + label)
	}
	return p.connect(Edge{From: list, To: n.ID, Kind: EdgeHost, Label: label, Wide: wide, access: key{list, reconcile.AccessHost, target}})
}

func loosened(l schema.Loosening) string {
	values := slices.Clone(l.Values)
	for _, g := range l.Grants {
		values = append(values, g.String())
	}
	return "loosened " + strings.TrimSpace(l.Kind+" "+strings.Join(values, ", "))
}
