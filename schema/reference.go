package schema

import (
	"maps"
	"slices"
	"strings"
)

// Language is the language as the loader's own tables have it: what docs/language.md
// is made from.
type Language struct {
	Blocks     []BlockReference
	Functions  []FunctionGroup
	Absent     []AbsentFunction
	Loosenings []LooseningReference
	// Capabilities are the values of loosen "cap_add", and Sysctls those of loosen
	// "sysctl" beside names under net. and fs.mqueue.
	Capabilities []string
	Sysctls      []string
	Signals      []string
	Accepts      []string
	Reserved     []string
}

// BlockReference is one kind of block.
type BlockReference struct {
	// Path is the block's type after those it stands in: "space.limits". It is empty for
	// the top of a file.
	Path string
	// Label says what the label is, empty without one.
	Label string
	// Single blocks stand at most once in their parent; Open ones take attributes of any
	// name.
	Single, Open bool
	Doc          string
	Attributes   []AttributeReference
}

// AttributeReference is one attribute of a block.
type AttributeReference struct {
	Name     string
	Type     string
	Default  string // empty for none
	Required bool
	Doc      string
}

// FunctionGroup is some functions of one purpose, sorted.
type FunctionGroup struct {
	Title string
	Names []string
}

// AbsentFunction is a function of Terraform's that the language doesn't have, and why.
type AbsentFunction struct{ Name, Why string }

// LooseningReference is one kind of loosening.
type LooseningReference struct {
	Kind  string
	Value string // the shape of its value
	Gives string
}

// Reference describes the language. It reads nothing: each call gives the same.
func Reference() Language {
	l := Language{
		Functions:    functionGroups(),
		Loosenings:   slices.Clone(looseningTexts),
		Capabilities: slices.Clone(capabilities),
		Sysctls:      slices.Clone(kernelSysctls),
		Signals:      slices.Clone(signals),
		Accepts:      slices.Clone(acceptCodes),
		Reserved:     slices.Clone(reservedWords),
	}
	for _, text := range blockTexts {
		l.Blocks = append(l.Blocks, blockReference(text))
	}
	for _, name := range absentFunctions {
		l.Absent = append(l.Absent, AbsentFunction{name, missingFunctionHint(name)})
	}
	return l
}

func blockReference(text blockText) BlockReference {
	spec := specAt(text.path)
	ref := BlockReference{Path: text.path, Label: spec.label, Single: spec.single, Open: spec.open, Doc: text.doc}
	for _, a := range text.attrs {
		ref.Attributes = append(ref.Attributes, AttributeReference{
			Name: a.name, Type: a.ty, Default: a.def, Doc: a.doc,
			// The project is one for all files, so no single file must have it.
			Required: spec.attrs[a.name] || spec == topSpec && a.name == "project",
		})
	}
	return ref
}

// specAt is the table of a block by its path, nil for a path that leads nowhere.
func specAt(path string) *blockSpec {
	spec := topSpec
	if path == "" {
		return spec
	}
	for step := range strings.SplitSeq(path, ".") {
		if spec = spec.blocks[step]; spec == nil {
			return nil
		}
	}
	return spec
}

// functionGroups sorts every function there is into its group; one that is in none
// stands in a group without a title, which a test refuses.
func functionGroups() []FunctionGroup {
	rest := functions()
	groups := make([]FunctionGroup, 0, len(functionTitles))
	for _, g := range functionTitles {
		names := slices.Sorted(slices.Values(strings.Fields(g.names)))
		for _, name := range names {
			delete(rest, name)
		}
		groups = append(groups, FunctionGroup{g.title, names})
	}
	if len(rest) > 0 {
		groups = append(groups, FunctionGroup{Names: slices.Sorted(maps.Keys(rest))})
	}
	return groups
}

var functionTitles = []struct{ title, names string }{
	{"numbers", "abs ceil floor log max min parseint pow signum sum"},
	{"strings", `basename chomp dirname endswith format formatlist indent join lower regex regexall replace split
		startswith strcontains strrev substr templatestring title trim trimprefix trimspace trimsuffix upper`},
	{"collections", `alltrue anytrue chunklist coalesce coalescelist compact concat contains distinct element flatten
		index keys length lookup matchkeys merge one range reverse setintersection setproduct setsubtract setunion
		slice sort transpose values zipmap`},
	{"encodings", `base64decode base64encode base64gzip csvdecode jsondecode jsonencode textdecodebase64
		textencodebase64 urlencode yamldecode yamlencode`},
	{"digests", "base64sha256 base64sha512 md5 rsadecrypt sha1 sha256 sha512 uuidv5"},
	{"times that the files name", "formatdate timeadd timecmp"},
	{"addresses", "cidrhost cidrnetmask cidrsubnet cidrsubnets"},
	{"types and marks", `can issensitive nonsensitive sensitive tobool tolist tomap tonumber toset tostring try`},
}

// absentFunctions are Terraform's functions that missingFunctionHint has a reason for.
var absentFunctions = strings.Fields(`abspath bcrypt ephemeralasnull file filebase64 filebase64sha256
	filebase64sha512 fileexists filemd5 fileset filesha1 filesha256 filesha512 list map pathexpand plantimestamp
	templatefile timestamp type uuid`)

var looseningTexts = []LooseningReference{
	{LoosenCapAdd, `a list of capabilities, such as ["NET_BIND_SERVICE"]`, "These capabilities of the kernel, in place of none. `ALL` isn't one."},
	{LoosenDevice, `a list of paths below /dev, such as ["/dev/fuse"]`, "These devices of the host, under the same paths, to read, write and make."},
	{LoosenGroupAdd, `a list of group ids or names, such as ["44"]`, "Membership in these groups, beside the user's own."},
	{LoosenInit, "false", "The image's own process is process 1; no init passes signals on and reaps its children."},
	{LoosenNewPrivileges, "true", "Programs with setuid, setgid or file capabilities gain the rights that they name."},
	{LoosenSeccomp, `"unconfined"`, "Every system call, in place of those of the engine's default profile."},
	{LoosenSecretEnv, `a list of names in env, such as ["API_KEY"]`, "These variables may hold sensitive values. Whoever may ask the engine can read them; plans mask them."},
	{LoosenSysctl, `a list of settings, such as ["net.core.somaxconn=1024"]`, "These kernel settings of the space's own. Settings of the whole host can't be given."},
	{LoosenTmpExec, `a list of tmpfs paths, such as ["/tmp"]`, "Programs that are written there may be run."},
	{LoosenWritableRoot, "true", "The root file system can be written. What is written is lost when the space is replaced."},
	{LoosenHoldsConfiguration, "a list of references to grants of the space", "These writable grants may reach what is loaded here: the space could write its own limits. Lifts the refusal `grant-holds-configuration`."},
	{LoosenSourceWritable, "a list of references to grants of the space", "The sources of these grants may lie where a space can write: it could lead them elsewhere before the next start. Lifts the refusal `grant-source-writable`."},
}

type blockText struct {
	path  string
	doc   string
	attrs []attrText
}

type attrText struct{ name, ty, def, doc string }

const (
	typeString   = "string"
	typeBool     = "bool"
	typeNumber   = "number"
	typeDuration = "duration"
	typeSize     = "size"
	typeStrings  = "list of strings"
	typeForEach  = "map, or set of strings"
	docForEach   = "Makes one instance for each key. See [for_each](#for_each)."
	docReason    = "Why. Printed in every plan, on one line."
)

// blockTexts are the blocks and attributes in the order that a reader meets them. What
// is there, and what must be given, is said by the tables of spec.go alone.
var blockTexts = []blockText{
	{"", "These stand at the top of a file, each once in all the files of a folder.", []attrText{
		{"project", typeString, "", "The unit of ownership, and the first word of the name of every container, network and volume. A renamed project is a new one."},
		{"data_root", "path of the host", "`$XDG_STATE_HOME/spaces/<project>`", "Where the project keeps its state on this host. `--data-root` and `SPACES_DATA_ROOT` win over it."},
	}},
	{"install", "Where spaces run. Without the block the mode is `local`. Stands once.", []attrText{
		{"mode", `"local" or "containerized"`, "", "`containerized` runs spaces on the engine that `endpoint` names. This release plans a local install and doesn't run it."},
		{"endpoint", typeString, "", "The engine's socket: `unix:///….sock`. Must be given when the mode is `containerized`, and can't be when it is `local`. `DOCKER_HOST` is never read."},
	}},
	{"accept", "Overrules one refusal. Stands at the top of a file, or in `install`; each code once. See [accept](#accept).", []attrText{
		{"reason", typeString, "", docReason},
	}},
	{"variable", "An input. See [variables](#variables).", []attrText{
		{"type", "type", "any", "As in Terraform: `string`, `number`, `bool`, `list(…)`, `set(…)`, `map(…)`, `object({…})`, `tuple([…])`, `any`; attributes of an object may be `optional(type, default)`."},
		{"default", "constant", "", "The value where nothing else sets one. Without a default, the variable must be set."},
		{"description", typeString, "", "For people."},
		{"sensitive", typeBool, "false", "The value, and whatever is computed from it, is never printed."},
		{"nullable", typeBool, "true", "`false` refuses null, and takes the default in its place."},
	}},
	{"variable.validation", "A condition on the variable's value.", []attrText{
		{"condition", typeBool, "", "What must be true. It may use any variable and local."},
		{"error_message", typeString, "", "Said where it isn't."},
	}},
	{"locals", "Names for values: `x = …` is then `local.x`. Any number of blocks, each name once.", nil},
	{"image", "An image that spaces run. Exactly one of `binary`, `build` and `reference` is given.", []attrText{
		{"binary", typeString, "", "`\"spaces\"`: an image that holds this very program and nothing else, at `/spaces` and on `PATH`. Or the path of another static program, absolute or beside the files with `./` or `../`; it is at `/` under its own name."},
		{"reference", typeString, "", "An image of a registry, as the engine knows it, with its digest: `node@sha256:…`. One without a digest is a warning. It is pulled where the engine doesn't have it, without credentials."},
		{"tag", typeString, "`latest`", "The tag of an image that is made here; the image is called `<project>-<name>:<tag>`. Not with `reference`."},
	}},
	{"image.build", "Makes the image from a Dockerfile, on the engine, with its classic builder. A build runs the Dockerfile's commands and reaches the network.", []attrText{
		{"context", "path", "", "The folder that the Dockerfile copies from, absolute or beside the files with `./` or `../`. `.dockerignore` is honoured."},
		{"dockerfile", "path in the context", "`Dockerfile`", "The Dockerfile."},
		{"args", "map of strings", "", "Build arguments. No value may be sensitive."},
		{"target", typeString, "the last stage", "The stage to build."},
	}},
	{"network", "A network of the project. Internal unless it says otherwise. See [networks](#networks).", []attrText{
		{"internal", typeBool, "true, and false for an uplink", "`false` lets every space on the network reach any address, and needs a `reason`."},
		{"reason", typeString, "", "Why the network isn't internal. Must be given with `internal = false`; an uplink needs none."},
		{"uplink", typeBool, "false", "The network that proxies leave through. It isn't internal, and no space may join it."},
		{"egress", `"none"`, "", "Says that nothing leaves this internal network. Without it, and without a list, there is a warning where spaces are on it."},
		{"subnet", "range of addresses", "the engine's choice", "In canonical form, such as `10.0.5.0/24`. No two networks may overlap. A subnet that isn't given isn't compared."},
		{"ip_range", "range of addresses", "the whole subnet", "The part of the subnet that addresses are given out from. Needs `subnet`."},
		{"protect", typeBool, "false", "Refuses whatever would remove the network, or make it again. See [protect](#protect)."},
	}},
	{"egress", "A list: the hosts and ports that the proxy of one network lets through. See [egress lists](#egress-lists).", []attrText{
		{"for_each", typeForEach, "", docForEach},
		{"network", "reference to a network", "", "The internal network whose spaces use the list. A network has one list at most."},
		{"uplink", "reference to a network", "the project's one uplink", "The network that the list's proxy leaves through."},
	}},
	{"egress.allow", "One entry. The label is the host and the port.", []attrText{
		{"reason", typeString, "", "Why. A wildcard must have one."},
		{"private", typeStrings, "", "Private ranges in which the host's addresses may lie."},
		{"address", typeBool, "false", "The host is an IP address. Without it, an address is refused."},
	}},
	{"egress.allow_each", "Entries that are computed, with what `allow` says of one.", []attrText{
		{"to", typeStrings, "", "The hosts and ports."},
		{"reason", typeString, "", "As in `allow`, for all of them."},
		{"private", typeStrings, "", "As in `allow`, for all of them."},
		{"address", typeBool, "false", "As in `allow`, for all of them."},
	}},
	{"grant", "One mount that spaces may be given. Exactly one of the six kinds is given. See [grants](#grants).", []attrText{
		{"for_each", typeForEach, "", docForEach},
		{"directory", "path of the host", "", "Gives a directory and all that is in it."},
		{"file", "path of the host", "", "Gives one file. A changed file is a change: the space is replaced."},
		{"secret", "path of the host", "", "Gives one file that is yours alone; always read-only. See [secrets](#secrets)."},
		{"socket", `"agent", "git", "human" or "launch"`, "", "Gives the directory of one socket in the data root. This release has nothing that serves it."},
		{"volume", "name", "", "Gives a named volume of the project's, called `<project>-<volume>`. Several grants may give one volume."},
		{"data", `"host" or "store"`, "", "Gives a part of the data root: `store` to the core alone, `host` read-only. This release has nothing that serves it."},
		{"target", "path in the space", "", "Where the space sees it: absolute, in its shortest form, and neither `/` nor `/dev`, nor in `/proc` or `/sys`."},
		{"access", `"ro" or "rw"`, "`ro`", "Whether the space may write."},
		{"create", typeBool, "false", "Makes a missing directory, with mode 0700. Only with `directory`."},
		{"protect", typeBool, "false", "Refuses whatever would remove the volume, or make it again. Only with `volume`. See [protect](#protect)."},
	}},
	{"space", "A container.", []attrText{
		{"for_each", typeForEach, "", docForEach},
		{"lifecycle", `"service", "core" or "on_request"`, "`service`", "Who starts it: `apply`, or, for the other two, a host process that this release doesn't have. Those are shown in plans and not made."},
		{"image", "reference to an image", "", "What it runs."},
		{"entrypoint", typeStrings, "the image's", "The first words of the command line. Where it is given, the image's command isn't used."},
		{"command", typeStrings, "the image's", "The rest of the command line."},
		{"user", typeString, "the image's", "A name or number, and a group after a colon: `\"1000:1000\"`."},
		{"working_dir", "path in the space", "the image's", "Where the process starts."},
		{"env", "map of strings", "", "Environment variables, beside the image's. A sensitive value must be loosened by `secret_env`."},
		{"networks", "list of references to networks", "", "The networks it joins. Without any, it has no network at all."},
		{"grants", "list of references to grants", "", "What it is given of the host."},
		{"tmpfs", "list of paths in the space", "", "Directories in memory, `rw,noexec,nosuid`. `/tmp` is always one."},
		{"depends_on", "list of references to spaces", "", "Spaces that must be ready before it starts: healthy, or without a healthcheck running for a second. Only services have it and stand in it."},
		{"stop_timeout", typeDuration, "the engine's, 10s", "How long it may take to end once asked to, in whole seconds."},
		{"stop_signal", typeString, "the image's, or SIGTERM", "How it is asked to end: a signal's whole name."},
		{"restart", typeString, "`unless-stopped`", "What the engine does when the process ends: `no`, `on-failure`, `on-failure:N` for N times at most, or `unless-stopped`. Only for a service; any other has `no`. `always` isn't in the language."},
		{"proxy", "reference to an egress list", "the one list of its networks", "The list that its proxy variables point at. Must be given where its networks have more than one list."},
		{"protect", typeBool, "false", "Refuses whatever would remove the space for good. See [protect](#protect)."},
	}},
	{"space.network", "Joins a network, with more than `networks` can say. The label is the network's name.", []attrText{
		{"aliases", typeStrings, "", "Names it answers to there, beside its own. `proxy` isn't one."},
		{"address", "IP address", "the engine's choice", "Its address there. The network must say its `subnet`."},
	}},
	{"space.tmpfs", "A directory in memory, with more than the list `tmpfs` can say. The label is the path.", []attrText{
		{"size", typeSize, "half of memory, by the kernel", "How much it can hold."},
		{"mode", "string of octal digits", "`1777`, by the engine", "The directory's permissions, such as `\"0700\"`."},
	}},
	{"space.limits", "What it may use at most. See [limits](#limits). Stands once.", []attrText{
		{"pids", typeNumber, "by lifecycle", "Processes and threads."},
		{"memory", typeSize, "by lifecycle", "Memory, 6MiB at least. Memory and swap together are bounded by the same value: it swaps nothing."},
		{"cpus", typeNumber, "by lifecycle", "Processors, 0.01 at least: 2, or 0.5 for half of one's time."},
	}},
	{"space.publish", "A port of the host that reaches the space. At least one of its networks must not be internal.", []attrText{
		{"port", typeNumber, "", "The host's port."},
		{"container", typeNumber, "the same as `port`", "The port in the space."},
		{"host", "IP address", "`127.0.0.1`", "The host's address. One that isn't loopback needs a `reason`, and stands in every plan."},
		{"protocol", `"tcp" or "udp"`, "`tcp`", "The protocol."},
		{"reason", typeString, "", "Why. Must be given off loopback."},
	}},
	{"space.loosen", "One step back from the hardening. The label is the kind. See [loosen](#loosen).", []attrText{
		{"value", "by kind", "", "What is loosened."},
		{"reason", typeString, "", docReason},
	}},
	{"space.healthcheck", "How to tell that it works. What isn't said is the image's. Stands once.", []attrText{
		{"command", typeStrings, "the image's", "The test, run as it is. It passes when it ends with 0."},
		{"shell", typeString, "", "The test, run by the image's `/bin/sh`. Not with `command`."},
		{"interval", typeDuration, "the image's, or 30s", "Between two tests."},
		{"timeout", typeDuration, "the image's, or 30s", "How long a test may take."},
		{"retries", typeNumber, "the image's, or 3", "Failures in a row that make it unhealthy."},
		{"start_period", typeDuration, "the image's, or 0s", "How long after the start a failure doesn't count."},
		{"start_interval", typeDuration, "the image's, or 5s", "Between two tests in the start period. An engine before 25 doesn't know it, and the space can't be made there."},
		{"disable", typeBool, "false", "Turns the image's healthcheck off. Then nothing else is said."},
	}},
	{"role", "A space that may be launched, and what its sessions may hold. This release shows roles and launches nothing.", []attrText{
		{"space", "reference to a space", "", "What is launched. Its lifecycle is `on_request`."},
		{"holds", typeStrings, "", "Of `launch` and `git`: the sockets that the space's grants may give it."},
	}},
	{"assert", "What must hold of spaces, whatever the rest of the files says. The label is the sentence that is printed where it is broken. At least one claim is made. See [assertions](assertions.md).", []attrText{
		{"from", "references to spaces and roles, or `\"*\"`", "", "Who it is about: a reference, a list of them, a whole block with `for_each`, or every space."},
		{"directly", typeBool, "false", "`true` judges what the spaces are given themselves, and not what they reach through others."},
		{"cannot", "hosts and ports", "", "What they can't reach: `\"host:port\"` or a list. The host may be a wildcard, and `*` stands for any host or any port."},
		{"cannot_mount", "grants and paths of the host", "", "What they aren't given: a grant, a path, or a list. Any part of it breaks the claim, and so does what holds it."},
		{"may_write", "references to grants", "", "All that they may write; `[]` for nothing."},
		{"cannot_join", "references to networks", "", "The networks that they aren't on."},
		{"cannot_meet", "references to spaces", "", "The spaces that they share no network, no socket, and no writable grant with. A space meets itself without breaking it."},
		{"cannot_publish", "ports", "", "What they don't publish: a port of the host, `\"off-loopback\"`, `\"*\"` for any port, or a list."},
		{"may_loosen", "kinds of loosening", "", "All that they may [loosen](#loosen); `[]` for nothing."},
	}},
	{"moved", "Says that a space goes on under another address. See [moved](#moved).", []attrText{
		{"from", "address of a space", "", "Where it was: `space.old`, or `space.old[\"key\"]`. Not in the files any more."},
		{"to", "address of a space", "", "Where it is now."},
	}},
}
