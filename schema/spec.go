package schema

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// blockSpec is the shape of one kind of block: what may stand in it.
type blockSpec struct {
	// label says what the block's label is; empty for a block without one.
	label string
	// attrs are the attributes, true where one must be given.
	attrs map[string]bool
	// open blocks take attributes of any name.
	open   bool
	blocks map[string]*blockSpec
	// single blocks stand at most once in their parent.
	single bool
	// hints say what to write in place of words that other tools use.
	hints map[string]string
}

const (
	optional = false
	required = true
)

var acceptSpec = &blockSpec{
	label: "code",
	attrs: map[string]bool{"reason": required},
}

// topSpec is the language: every block and attribute there is.
var topSpec = &blockSpec{
	attrs: map[string]bool{"project": optional, "data_root": optional}, // project is one for all files
	blocks: map[string]*blockSpec{
		"install":  installSpec,
		"accept":   acceptSpec,
		"variable": variableSpec,
		"locals":   {open: true},
		"image":    imageSpec,
		"network":  networkSpec,
		"egress":   egressSpec,
		"grant":    grantSpec,
		"space":    spaceSpec,
		"role":     roleSpec,
		"assert":   assertSpec,
		"moved":    {attrs: map[string]bool{"from": required, "to": required}},
	},
	hints: map[string]string{
		"resource":  "Write the thing's own block: space, network, egress, grant, image or role.",
		"container": "A container is a space block.",
		"service":   "A service is a space block; its lifecycle is service unless said.",
		"services":  "Write one space block for each service.",
		"networks":  "Write one network block for each network.",
		"volume":    "A volume is a grant block with a volume attribute.",
		"volumes":   "A volume is a grant block with a volume attribute.",
		"mount":     "A mount is a grant block.",
		"secret":    "A secret is a grant block with a secret attribute.",
		"secrets":   "A secret is a grant block with a secret attribute.",
		"terraform": "There is nothing to configure about the program itself; remove the block.",
		"provider":  "The engine is named by the endpoint of the install block.",
		"data":      "Files cannot look things up while they are read; write the value, or pass it in as a variable.",
		"output":    "Nothing is handed on; spaces show --json prints what is there.",
		"count":     "Write for_each in a space, egress or grant block.",
		"endpoint":  "The engine is named by the endpoint of the install block.",
		"name":      "The name of the whole is the project attribute.",
		"version":   "The language has no version attribute; remove it.",
	},
}

var installSpec = &blockSpec{
	attrs:  map[string]bool{"mode": required, "endpoint": optional},
	blocks: map[string]*blockSpec{"accept": acceptSpec},
}

var variableSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{
		"type": optional, "default": optional, "description": optional, "sensitive": optional, "nullable": optional,
	},
	blocks: map[string]*blockSpec{
		"validation": {attrs: map[string]bool{"condition": required, "error_message": required}},
	},
}

var imageSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{"binary": optional, "reference": optional, "tag": optional},
	blocks: map[string]*blockSpec{
		"build": {
			attrs:  map[string]bool{"context": required, "dockerfile": optional, "args": optional, "target": optional},
			single: true,
		},
	},
	hints: map[string]string{
		"context":    "Write it in a build block.",
		"dockerfile": "Write it in a build block.",
		"args":       "Write it in a build block.",
		"for_each":   "Only space, egress and grant blocks take for_each.",
		"image":      "An image of a registry is named by the reference attribute.",
		"name":       "An image of a registry is named by the reference attribute.",
	},
}

var networkSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{
		"uplink": optional, "internal": optional, "reason": optional, "egress": optional,
		"subnet": optional, "ip_range": optional, "protect": optional,
	},
	hints: map[string]string{
		"for_each": "Only space, egress and grant blocks take for_each.",
		"driver":   "Every network is a bridge of the engine; remove it.",
		"gateway":  "The engine chooses the gateway; remove it.",
		"ipam":     "Write the subnet and ip_range attributes.",
		"allow":    "What a network lets through stands in an egress block.",
	},
}

var egressSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{"for_each": optional, "network": required, "uplink": optional},
	blocks: map[string]*blockSpec{
		"allow": {
			label: "host:port",
			attrs: map[string]bool{"reason": optional, "private": optional, "address": optional},
		},
		"allow_each": {
			attrs: map[string]bool{"to": required, "reason": optional, "private": optional, "address": optional},
		},
	},
	hints: map[string]string{
		"deny":    "A list names what passes; everything else is refused.",
		"dynamic": "Entries that are computed stand in an allow_each block.",
	},
}

var grantSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{
		"for_each": optional, "directory": optional, "file": optional, "secret": optional, "socket": optional,
		"volume": optional, "data": optional, "target": required, "access": optional, "create": optional,
		"protect": optional,
	},
	hints: map[string]string{
		"source":    "Write the attribute for what it is: directory, file, secret, socket, volume or data.",
		"path":      "Write the attribute for what it is: directory, file, secret, socket, volume or data.",
		"read_only": `Write access = "ro" or "rw"; it is "ro" unless said.`,
		"readonly":  `Write access = "ro" or "rw"; it is "ro" unless said.`,
		"mode":      `Write access = "ro" or "rw"; it is "ro" unless said.`,
	},
}

var spaceSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{
		"for_each": optional, "lifecycle": optional, "image": required, "entrypoint": optional, "command": optional,
		"user": optional, "working_dir": optional, "env": optional, "networks": optional, "grants": optional,
		"tmpfs": optional, "depends_on": optional, "stop_timeout": optional, "stop_signal": optional,
		"restart": optional, "proxy": optional, "protect": optional,
	},
	blocks: map[string]*blockSpec{
		"network": {label: "name", attrs: map[string]bool{"aliases": optional, "address": optional}},
		"tmpfs":   {label: "path", attrs: map[string]bool{"size": optional, "mode": optional}},
		"limits": {
			attrs:  map[string]bool{"pids": optional, "memory": optional, "cpus": optional},
			single: true,
			hints: map[string]string{
				"swap":        "Swap is set to the same value as memory.",
				"memory_swap": "Swap is set to the same value as memory.",
				"cpu":         "Write cpus.",
			},
		},
		"publish": {attrs: map[string]bool{
			"host": optional, "port": required, "container": optional, "protocol": optional, "reason": optional,
		}},
		"loosen": {label: "kind", attrs: map[string]bool{"value": required, "reason": required}},
		"healthcheck": {
			attrs: map[string]bool{
				"disable": optional, "command": optional, "shell": optional, "interval": optional, "timeout": optional,
				"start_period": optional, "start_interval": optional, "retries": optional,
			},
			single: true,
			hints:  map[string]string{"test": "Write command, a list, or shell, a string."},
		},
	},
	hints: map[string]string{
		"ports":        "Write a publish block for each port.",
		"expose":       "Spaces on one network reach each other's ports; publish is for the host's.",
		"volumes":      "Write grant blocks, and name them in grants.",
		"mount":        "Write grant blocks, and name them in grants.",
		"mounts":       "Write grant blocks, and name them in grants.",
		"environment":  "Write env.",
		"count":        "Write for_each.",
		"build":        "Write a build block in an image block, and name that image.",
		"hostname":     "A space answers to its own name; more names are aliases of a network block.",
		"name":         "The block's label is the name.",
		"labels":       "Labels belong to the program: they say who owns a thing.",
		"memory":       "Write it in a limits block.",
		"cpus":         "Write it in a limits block.",
		"pids":         "Write it in a limits block.",
		"mem_limit":    "Write memory in a limits block.",
		"privileged":   "It isn't in the language; a loosen block gives single rights.",
		"cap_add":      `Write a loosen "cap_add" block, with its reason.`,
		"cap_drop":     "All capabilities are dropped already.",
		"read_only":    `The root is read-only already; a loosen "writable_root" block changes that.`,
		"security_opt": `Write a loosen "seccomp" or "new_privileges" block, with its reason.`,
		"devices":      `Write a loosen "device" block, with its reason.`,
		"sysctls":      `Write a loosen "sysctl" block, with its reason.`,
		"group_add":    `Write a loosen "group_add" block, with its reason.`,
		"init":         `An init is there already; a loosen "init" block takes it away.`,
		"dns":          "A space asks the engine's own resolver, and on internal networks nothing above it.",
		"network_mode": "Write networks.",
		"workdir":      "Write working_dir.",
		"secrets":      "Write grant blocks with a secret attribute, and name them in grants.",
		"egress":       "Write an egress block for the network, and proxy to choose among lists.",
	},
}

var roleSpec = &blockSpec{
	label: "name",
	attrs: map[string]bool{"space": required, "holds": optional},
	hints: map[string]string{"for_each": "Only space, egress and grant blocks take for_each."},
}

var assertSpec = &blockSpec{
	label: "sentence",
	attrs: map[string]bool{
		"from": required, "directly": optional, "cannot": optional, "cannot_join": optional, "cannot_meet": optional,
		"cannot_mount": optional, "cannot_publish": optional, "may_loosen": optional, "may_write": optional,
	},
	hints: map[string]string{
		"cannot_reach":  `Write cannot, with hosts and ports such as "example.com:443".`,
		"cannot_egress": `Write cannot, with hosts and ports such as "example.com:443".`,
		"cannot_write":  "Write may_write, the grants that may be written; [] is for none.",
		"cannot_loosen": "Write may_loosen, the kinds that may be loosened; [] is for none.",
		"reason":        "The block's label is the sentence that says why.",
		"for_each":      "One assertion may be about many spaces: from takes a list, or a whole block with for_each.",
	},
}

// reservedWords are kept for what may come.
var reservedWords = []string{"module", "import", "removed"}

// checkShape reports what may not stand in a body, and what must but doesn't. The
// block is nil for a file's own body.
func (l *loader) checkShape(body *hclsyntax.Body, block *hclsyntax.Block, spec *blockSpec) {
	misspelt := map[string]bool{} // what unknown attributes were taken to mean
	for _, attr := range sortedAttributes(body) {
		if _, ok := spec.attrs[attr.Name]; !ok && !spec.open {
			misspelt[l.unknownAttribute(attr, spec)] = true
		}
	}
	seen := map[string]*hclsyntax.Block{}
	for _, inner := range body.Blocks {
		innerSpec, ok := spec.blocks[inner.Type]
		if !ok {
			misspelt[l.unknownBlock(inner, spec)] = true
			continue
		}
		if first := seen[inner.Type]; first != nil && innerSpec.single {
			l.report(diagDuplicateBlock(inner, first))
		} else {
			seen[inner.Type] = inner
		}
		l.checkLabels(inner, innerSpec)
		l.checkShape(inner.Body, inner, innerSpec)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.attrs)) {
		if spec.attrs[name] && body.Attributes[name] == nil && !misspelt[name] {
			l.report(diagMissingAttribute(name, block))
		}
	}
}

// unknownAttribute reports an attribute that isn't in the language, and returns the
// name that it was taken to mean.
func (l *loader) unknownAttribute(attr *hclsyntax.Attribute, spec *blockSpec) string {
	name := attr.Name
	hint, hinted := spec.hints[name]
	switch {
	case slices.Contains(reservedWords, name) && spec == topSpec:
		l.report(diagReservedWord(name, attr.NameRange, attr.SrcRange))
	case spec.blocks[name] != nil:
		l.report(diagBlockExpected(attr, spec.blocks[name]))
		return name
	case hinted:
		l.report(diagUnknownAttribute(attr, "", hint))
	default:
		meant := Closest(name, slices.Sorted(maps.Keys(spec.attrs)))
		if meant == "" {
			if meant = Closest(name, slices.Sorted(maps.Keys(spec.blocks))); meant != "" {
				l.report(diagUnknownAttribute(attr, "", blockHint(meant, spec.blocks[meant])))
				return meant
			}
		}
		l.report(diagUnknownAttribute(attr, meant, ""))
		return meant
	}
	return ""
}

// unknownBlock is unknownAttribute for a block.
func (l *loader) unknownBlock(block *hclsyntax.Block, spec *blockSpec) string {
	name := block.Type
	_, isAttr := spec.attrs[name]
	hint, hinted := spec.hints[name]
	switch {
	case slices.Contains(reservedWords, name) && spec == topSpec:
		l.report(diagReservedWord(name, block.TypeRange, block.DefRange()))
	case isAttr:
		l.report(diagAttributeExpected(block))
		return name
	case hinted:
		l.report(diagUnknownBlock(block, "", hint))
	default:
		meant := Closest(name, slices.Sorted(maps.Keys(spec.blocks)))
		if meant == "" {
			if meant = Closest(name, slices.Sorted(maps.Keys(spec.attrs))); meant != "" {
				l.report(diagUnknownBlock(block, "", "Did you mean the attribute "+meant+" = …?"))
				return meant
			}
		}
		l.report(diagUnknownBlock(block, meant, ""))
		return meant
	}
	return ""
}

func (l *loader) checkLabels(block *hclsyntax.Block, spec *blockSpec) {
	want := 0
	if spec.label != "" {
		want = 1
	}
	switch {
	case len(block.Labels) < want:
		l.report(diagMissingLabel(block, spec.label))
	case len(block.Labels) > want:
		extra := hcl.RangeBetween(block.LabelRanges[want], block.LabelRanges[len(block.LabelRanges)-1])
		l.report(diagExtraLabel(block, spec.label, extra))
	}
}
