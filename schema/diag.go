package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Every message of the loader. A summary is fixed text, and names nothing of the
// user's; the detail says what is wrong, why, and what to write instead. No message
// shows a sensitive value.

// place is where a diagnostic points: the exact range, and what it stands in.
type place struct {
	subject hcl.Range
	context hcl.Range
}

func at(r hcl.Range) place { return place{subject: r, context: r} }

func (p place) within(r hcl.Range) place {
	p.context = r
	return p
}

// code is a diagnostic's stable name.
type code string

// Code is the stable name of a diagnostic of this package, for programs to tell
// diagnostics apart by; it is empty for those of HCL itself.
func Code(d *hcl.Diagnostic) string {
	c, _ := hcl.DiagnosticExtra[code](d)
	return string(c)
}

func problem(name code, summary string, where place, detail string) *hcl.Diagnostic {
	return diagnostic(hcl.DiagError, name, summary, where, detail)
}

func warning(name code, summary string, where place, detail string) *hcl.Diagnostic {
	return diagnostic(hcl.DiagWarning, name, summary, where, detail)
}

func diagnostic(severity hcl.DiagnosticSeverity, name code, summary string, where place, detail string) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Extra: name}
	if where.subject.Filename != "" {
		d.Subject = where.subject.Ptr()
		d.Context = where.context.Ptr()
	}
	return d
}

// tidy puts diagnostics in order and drops those that say the same of the same
// place: a fault in a block with for_each is one fault.
func tidy(diags hcl.Diagnostics) hcl.Diagnostics {
	for i, d := range diags {
		if len(d.Detail) > maxShownText {
			short := *d
			short.Detail = shorten(d.Detail)
			diags[i] = &short
		}
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		x, y := subjectOf(a), subjectOf(b)
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte),
			cmp.Compare(x.End.Byte, y.End.Byte), cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.CompactFunc(diags, func(a, b *hcl.Diagnostic) bool {
		return subjectOf(a) == subjectOf(b) && a.Summary == b.Summary && a.Detail == b.Detail
	})
}

func subjectOf(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}

// lineOf says where something else stands.
func lineOf(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// didYouMean is a question after a sentence, or nothing.
func didYouMean(meant string) string {
	if meant == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %s?", meant)
}

// quoted lists words: "a", "b" or "c".
func quoted(words []string, last string) string {
	all := make([]string, 0, len(words))
	for _, w := range words {
		all = append(all, fmt.Sprintf("%q", w))
	}
	return listed(all, last)
}

// listed lists words, the last after a conjunction.
func listed(words []string, last string) string {
	switch len(words) {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// few is at most eight words, and says how many it leaves out.
func few(words []string) []string {
	const most = 8
	if len(words) <= most {
		return words
	}
	return append(slices.Clone(words[:most]), fmt.Sprintf("%d more", len(words)-most))
}

// Files.

func diagFolderUnreadable(err error) *hcl.Diagnostic {
	return problem("folder-unreadable", "Folder can't be read", place{}, fmt.Sprintf("The configuration's folder can't be listed: %s.", err))
}

func diagNoFiles() *hcl.Diagnostic {
	return problem("no-files", "No configuration", place{},
		"The folder holds no .hcl file. Configuration is every .hcl file of one folder, not of the folders in it. spaces init writes a first one.")
}

func diagFileUnreadable(name string, err error) *hcl.Diagnostic {
	return problem("file-unreadable", "File can't be read", place{}, fmt.Sprintf("%s can't be read: %s.", name, err))
}

func diagFileNotRegular(name string) *hcl.Diagnostic {
	return problem("file-not-regular", "Not a regular file", place{},
		fmt.Sprintf("%s is a pipe, a socket or a device. A folder's .hcl files and its auto.spacesvars are read; rename it or move it away.", name))
}

func diagFolderTooLarge(name string) *hcl.Diagnostic {
	return problem("folder-too-large", "Folder is too large", place{},
		fmt.Sprintf("With %s, the folder's files are larger than %d MiB together, which no configuration needs; it and what comes after it isn't read. Move away what isn't configuration.", name, maxFolderSize>>20))
}

func diagFileTwice(name, other string) *hcl.Diagnostic {
	return problem("file-twice", "File by two names", place{},
		fmt.Sprintf("%s and %s are one file, by a link, and each .hcl file of the folder is read. Remove one of the two.", name, other))
}

func diagNotText(wide bool, r hcl.Range) *hcl.Diagnostic {
	what := "This isn't text in UTF-8, and the rest of the file isn't read."
	if wide {
		what = "This is text in UTF-16."
	}
	return problem("not-text", "Not text in UTF-8", at(r), what+" Save the file in UTF-8.")
}

func diagFileTooLarge(name string) *hcl.Diagnostic {
	return problem("file-too-large", "File is too large", place{},
		fmt.Sprintf("%s is larger than %d MiB, which no configuration needs. Rename it or move it away.", name, maxFileSize>>20))
}

func diagTooDeep(r hcl.Range) *hcl.Diagnostic {
	return problem("too-deep", "Nested too deeply", at(r),
		fmt.Sprintf("Here brackets and operators are nested more than %d deep. Take parts of the expression out into locals.", maxNesting))
}

func diagLabelTemplate(block string, where place) *hcl.Diagnostic {
	write := "Write the name out."
	if block == "allow" {
		write = "Entries that are computed stand in an allow_each block: to = [\"${…}:443\"]."
	} else if k := kindNamed(block); k != nil && k.forEach {
		write = "Write the name out, or, for several blocks, use for_each, whose keys become part of their names."
	}
	return problem("label-template", "Template in a block's label", where,
		"What a block is called is text as it stands, and nothing in it is computed. "+write)
}

func diagNumberTooLong(r hcl.Range) *hcl.Diagnostic {
	return problem("number-too-long", "Number is too long", at(r),
		fmt.Sprintf("A number has at most %d digits and an exponent of at most %d.", maxNumber, maxExponent-1))
}

func diagValueTooLarge(err error, r hcl.Range) *hcl.Diagnostic {
	return problem("value-too-large", "Value is too large", at(r), upperFirst(err.Error())+".")
}

// Shape.

func diagUnknownBlock(block *hclsyntax.Block, meant, hint string) *hcl.Diagnostic {
	return problem("unknown-block", "Unknown block", at(block.TypeRange).within(block.DefRange()),
		unknownText("block", block.Type, meant, hint))
}

func diagUnknownAttribute(attr *hclsyntax.Attribute, meant, hint string) *hcl.Diagnostic {
	return problem("unknown-attribute", "Unknown attribute", at(attr.NameRange).within(attr.SrcRange),
		unknownText("attribute", attr.Name, meant, hint))
}

func unknownText(what, name, meant, hint string) string {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	text := fmt.Sprintf("The language has no %s %q here.", what, name) + didYouMean(meant)
	if hint != "" {
		text += " " + hint
	}
	return text
}

// blockHint says how a block that was written as an attribute is spelt.
func blockHint(name string, spec *blockSpec) string {
	return fmt.Sprintf("Did you mean the block %s?", blockForm(name, spec))
}

func blockForm(name string, spec *blockSpec) string {
	if spec.label != "" {
		return fmt.Sprintf("%s %q { … }", name, spec.label)
	}
	return name + " { … }"
}

func diagBlockExpected(attr *hclsyntax.Attribute, spec *blockSpec) *hcl.Diagnostic {
	return problem("block-expected", "Block expected", at(attr.NameRange).within(attr.SrcRange),
		fmt.Sprintf("%q is a block, not an attribute. Write %s, without an equals sign.", attr.Name, blockForm(attr.Name, spec)))
}

func diagAttributeExpected(block *hclsyntax.Block) *hcl.Diagnostic {
	return problem("attribute-expected", "Attribute expected", at(block.TypeRange).within(block.DefRange()),
		fmt.Sprintf("%q is an attribute, not a block. Write %s = …, with an equals sign.", block.Type, block.Type))
}

func diagReservedWord(word string, r, context hcl.Range) *hcl.Diagnostic {
	return problem("reserved-word", "Reserved word", at(r).within(context),
		fmt.Sprintf("%q is reserved for a later version of the language. It isn't there yet; remove it.", word))
}

func diagMissingAttribute(name string, block *hclsyntax.Block) *hcl.Diagnostic {
	return problem("missing-attribute", "Missing attribute", at(block.DefRange()),
		fmt.Sprintf("%s block needs the attribute %q. Write %s = ….", upperFirst(article(block.Type)), name, name))
}

func diagNullAttribute(name string, where place) *hcl.Diagnostic {
	return problem("null-attribute", "Missing value", where,
		fmt.Sprintf("%q must be given, and its value is null.", name))
}

func diagDuplicateBlock(block, first *hclsyntax.Block) *hcl.Diagnostic {
	return problem("duplicate-block", "Block repeated", at(block.DefRange()),
		fmt.Sprintf("There can be one %s block here, and one stands at %s. Write it all in one block.", block.Type, lineOf(first.DefRange())))
}

func diagDuplicateAttribute(attr, first *hclsyntax.Attribute) *hcl.Diagnostic {
	return problem("duplicate-attribute", "Attribute repeated", at(attr.NameRange).within(attr.SrcRange),
		fmt.Sprintf("%q is set once for all files of the folder, and stands at %s already. Remove one.", attr.Name, lineOf(first.SrcRange)))
}

func diagMissingLabel(block *hclsyntax.Block, label string) *hcl.Diagnostic {
	return problem("missing-label", "Missing label", at(block.TypeRange).within(block.DefRange()),
		fmt.Sprintf("The block needs its %s in quotes: %s %q { … }.", label, block.Type, label))
}

func diagExtraLabel(block *hclsyntax.Block, label string, r hcl.Range) *hcl.Diagnostic {
	want := "no label"
	if label != "" {
		want = "one label, its " + label
	}
	return problem("extra-label", "Too many labels", at(r).within(block.DefRange()),
		fmt.Sprintf("A block of type %q has %s. Remove the rest.", block.Type, want))
}

// Names.

const nameRule = "lower-case letters, digits and hyphens, with a letter or digit at both ends"

func diagInvalidName(kind, name string, r hcl.Range) *hcl.Diagnostic {
	return problem("invalid-name", "Invalid name", at(r),
		fmt.Sprintf("%q can't be the name of %s: a name is made of %s.", name, article(kind), nameRule))
}

func diagInvalidVariableName(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("invalid-variable-name", "Invalid name", at(r),
		fmt.Sprintf("%q can't be the name of a variable: it is written as var.NAME, so it is made of letters, digits, underscores and hyphens, and starts with a letter.", name))
}

func diagInvalidProject(name string, where place) *hcl.Diagnostic {
	return problem("invalid-project", "Invalid project name", where,
		fmt.Sprintf("%q can't be the project's name: it begins the name of every container, so it is made of %s, %d at most.", name, nameRule, maxName))
}

func diagProjectMissing() *hcl.Diagnostic {
	return problem("project-missing", "No project", place{},
		"No file names the project, the unit of ownership on the engine. Write project = \"name\" at the top of one file.")
}

func diagDuplicateName(kind, name string, r, first hcl.Range) *hcl.Diagnostic {
	write := "Rename or remove one."
	if kind == "accept" {
		write = "Remove one."
	}
	return problem("duplicate-name", "Name used twice", at(r),
		fmt.Sprintf("%s %q stands at %s already. %s", upperFirst(article(kind)), name, lineOf(first), write))
}

func diagNameCollision(a, b Address, r, first hcl.Range) *hcl.Diagnostic {
	return problem("name-collision", "Two objects with one name", at(r),
		fmt.Sprintf("%s and %s (%s) are both called %q on the engine: an instance's name is its block's, a hyphen and its key. Rename one block or key.", a, b, lineOf(first), a.FullName()))
}

func diagReservedName(name string, where place) *hcl.Diagnostic {
	return problem("reserved-name", "Reserved name", where,
		fmt.Sprintf("%q can't be used: names that begin with the word core or egress are those of containers the program makes itself. Only the space whose lifecycle is core may be called core.", name))
}

func diagProxyReserved(where place) *hcl.Diagnostic {
	return problem("proxy-reserved", "Reserved name", where,
		"\"proxy\" is what the proxy of a network answers to, on each network. Choose another name.")
}

func diagNameTooLong(what, name string, where place) *hcl.Diagnostic {
	return problem("name-too-long", "Name is too long", where,
		fmt.Sprintf("The name of the %s would be %q, %d bytes long, and it can have %d. Shorten the project's name, the block's or the key.", what, name, len(name), maxName))
}

// References.

func diagUnknownReference(root string, single bool, r hcl.Range) *hcl.Diagnostic {
	where := at(r)
	const known = "A reference begins with var, local, each, path or a kind of block: image, network, egress, grant, space or role."
	roots := []string{"var", "local", "each", "path", "image", "network", "egress", "grant", "space", "role"}
	hints := map[string]string{
		"self":      "Write the name of the block.",
		"count":     "Write for_each, and each.key.",
		"data":      "Files cannot look things up; pass the value in as a variable.",
		"terraform": "There is no workspace; pass the value in as a variable.",
		"module":    "Modules are reserved for a later version of the language.",
		"locals":    "Write local.NAME.",
		"env":       "Declare a variable x, which SPACES_VAR_x then sets.",
	}
	detail := fmt.Sprintf("Nothing is called %q. %s", root, known)
	switch meant := Closest(root, roots); {
	case hints[root] != "":
		detail = fmt.Sprintf("Nothing is called %q. %s", root, hints[root])
	case single:
		detail = fmt.Sprintf("Nothing is called %q. For a string, write it in quotes: %q. %s", root, root, known)
	case meant != "":
		detail += didYouMean(fmt.Sprintf("%q", meant))
	}
	return problem("unknown-reference", "Unknown reference", where, detail)
}

func diagBareReference(root string, r hcl.Range) *hcl.Diagnostic {
	return problem("bare-reference", "Incomplete reference", at(r),
		fmt.Sprintf("%q needs the name of one thing after it, written in full: %s.NAME. A reference can't be computed from a string.", root, root))
}

func diagUndeclaredReference(t target, meant string, r hcl.Range) *hcl.Diagnostic {
	what := t.root + " block"
	switch t.root {
	case "var":
		what = "variable block"
	case "local":
		what = "local"
	}
	return problem("undeclared-reference", "Reference to something that isn't there", at(r),
		fmt.Sprintf("There is no %s called %q.", what, t.name)+didYouMean(meant))
}

func diagEachOutside(r hcl.Range) *hcl.Diagnostic {
	return problem("each-outside", "No each here", at(r),
		"each.key and each.value are those of one instance: they can be used in a block that has for_each, and not in the for_each itself.")
}

func diagUnknownEach(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("unknown-each", "Unknown reference", at(r),
		fmt.Sprintf("each has no attribute %q. Write each.key or each.value.", name))
}

func diagUnknownPath(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("unknown-path", "Unknown reference", at(r),
		fmt.Sprintf("path has no attribute %q. Write path.root, the folder of these files.", name))
}

func diagReferenceCycle(names []string, r, context hcl.Range) *hcl.Diagnostic {
	return problem("reference-cycle", "References in a circle", at(r).within(context),
		fmt.Sprintf("This needs its own value: %s. Take one of the references out.", strings.Join(names, " → ")))
}

func diagUnknownFunction(name, meant string, where place) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	detail := fmt.Sprintf("The language has no function %q.", name) + didYouMean(meant)
	if hint, ok := strings.CutPrefix(missingFunctionHint(name), name+" "); ok {
		detail = fmt.Sprintf("The language has no function %q, which %s", name, hint)
	}
	return problem("unknown-function", "Unknown function", where, detail)
}

func diagReferenceArgument(where place) *hcl.Diagnostic {
	return problem("reference-argument", "A reference has no value", where,
		"A reference stands for a block, and no function can turn it into text. Put what is wanted of the block in a local, and use it in both places.")
}

func diagSensitiveFault(function string, where place) *hcl.Diagnostic {
	return problem("sensitive-fault", "Error in a function call", where,
		fmt.Sprintf("The call of %q fails. Why isn't shown, since a value in it is sensitive and the message may repeat it.", function))
}

func diagSensitiveExpression(fault string, where place) *hcl.Diagnostic {
	return problem("sensitive-expression", "Error in an expression", where,
		fmt.Sprintf("This can't be computed: %q. More isn't shown, since a value in it is sensitive and the message may repeat it.", fault))
}

func diagOpaque(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("opaque-reference", "A reference has no attributes", at(r),
		fmt.Sprintf("%s stands for the block itself; what is in the block can't be read through it. Put the value in a local, and use it in both places.", name))
}

func diagNotForEach(name string, r hcl.Range) *hcl.Diagnostic {
	return problem("not-for-each", "No instances", at(r),
		fmt.Sprintf("%s has no for_each, so it has no keys. Write %s.", name, name))
}

func diagUnknownKey(name, key string, keys []string, r hcl.Range) *hcl.Diagnostic {
	detail := fmt.Sprintf("%s has no instance %q.", name, key)
	switch meant := Closest(key, keys); {
	case meant != "":
		detail += didYouMean(fmt.Sprintf("%s[%q]", name, meant))
	case len(keys) > 0:
		detail += fmt.Sprintf(" Its keys are %s.", quoted(few(keys), "and"))
	default:
		detail += " Its for_each is empty."
	}
	return problem("unknown-key", "No such instance", at(r), detail)
}

func diagInstancesForOne(name, kind, spelt string, keys []string, where place) *hcl.Diagnostic {
	return problem("instances-for-one", "One instance expected", where,
		fmt.Sprintf("%q wants %s block, and this is all instances of one that has for_each. Write %s.", name, article(kind), instanceForms(kind, spelt, keys)))
}

func diagInstancesForList(name, kind, spelt string, keys []string, where place) *hcl.Diagnostic {
	if spelt == "" {
		spelt = kind + ".NAME"
	}
	return problem("instances-for-list", "List expected", where,
		fmt.Sprintf("%q wants a list, and this is a map of instances by key. Write values(%s), or [%s].", name, spelt, instanceForm(spelt, keys)))
}

func instanceForms(kind, spelt string, keys []string) string {
	if spelt == "" {
		spelt = kind + ".NAME"
	}
	return fmt.Sprintf("%s for one, or values(%s) where a list is wanted", instanceForm(spelt, keys), spelt)
}

func instanceForm(spelt string, keys []string) string {
	key := "key"
	if len(keys) > 0 {
		key = keys[0]
	}
	return fmt.Sprintf("%s[%q]", spelt, key)
}

func diagReferenceForList(name, spelt string, where place) *hcl.Diagnostic {
	write := "Put it in brackets."
	if spelt != "" {
		write = fmt.Sprintf("Write [%s].", spelt)
	}
	return problem("reference-for-list", "List expected", where,
		fmt.Sprintf("%q wants a list of references, and this is one. %s", name, write))
}

func diagStringForReference(name, kind, meant string, where place) *hcl.Diagnostic {
	write := fmt.Sprintf("Write %s.NAME without quotes.", kind)
	if meant != "" {
		write = fmt.Sprintf("Write %s without quotes.", meant)
	}
	return problem("string-for-reference", "Reference expected", where,
		fmt.Sprintf("%q wants a reference to %s block, and this is a string. %s", name, article(kind), write))
}

func diagNullReference(name, kind string, where place) *hcl.Diagnostic {
	return problem("null-reference", "Reference expected", where,
		fmt.Sprintf("%q wants references to %s blocks, and this one is null. To leave one out, build the list with a for expression and an if.", name, kind))
}

func diagReferenceTwice(name string, a Address, where place) *hcl.Diagnostic {
	return problem("reference-twice", "Listed twice", where,
		fmt.Sprintf("%s stands in %q already. Remove one.", a, name))
}

// for_each.

func diagForEachSensitive(where place) *hcl.Diagnostic {
	return problem("for-each-sensitive", "Sensitive for_each", where,
		"The keys of for_each become names, which everyone may see, and this value is sensitive. Use keys that are not; nonsensitive(…) says that a value is no secret.")
}

func diagForEachNull(where place) *hcl.Diagnostic {
	return problem("for-each-null", "Null in for_each", where,
		"for_each is null or holds a null key. For no instances, write an empty map: {}.")
}

func diagForEachType(given string, isList bool, where place) *hcl.Diagnostic {
	write := "Write { key = value }."
	if isList {
		write = "For a list of strings, write toset(…)."
	}
	return problem("for-each-type", "Wrong type for for_each", where,
		fmt.Sprintf("for_each wants a map or a set of strings, whose keys tell the instances apart, and this is of type %s. %s", given, write))
}

func diagForEachKey(key string, where place) *hcl.Diagnostic {
	return problem("for-each-key", "Invalid key", where,
		fmt.Sprintf("%q can't be a key of for_each: keys become part of names, which are made of %s.", key, nameRule))
}

// Values.

func diagWrongType(name, want, got string, where place) *hcl.Diagnostic {
	return problem("wrong-type", "Wrong type", where, fmt.Sprintf("%q wants %s, and this is %s.", name, want, got))
}

func diagSensitive(name string, where place) *hcl.Diagnostic {
	return problem("sensitive-value", "Sensitive value", where,
		fmt.Sprintf("%q is shown in plans, and this value is sensitive. Use one that isn't; nonsensitive(…) says that a value is no secret. A secret goes to a space by file, with a grant that has a secret attribute.", name))
}

func diagSensitiveCommand(name string, where place) *hcl.Diagnostic {
	return problem("sensitive-command", "Sensitive value", where,
		fmt.Sprintf("The engine shows %q to whoever may ask it, and this value is sensitive. Keep it in a file, and hand the file over with a grant that has a secret attribute.", name))
}

func diagSensitiveNames(name string, where place) *hcl.Diagnostic {
	return problem("sensitive-names", "Sensitive names", where,
		fmt.Sprintf("The engine shows %q to whoever may ask it, and this map is sensitive as a whole: a name in it, which isn't shown here, may be part of the secret. Name every variable in loosen \"secret_env\", or write the map out with values alone that are sensitive.", name))
}

func diagSensitiveEnv(variable string, where place) *hcl.Diagnostic {
	return problem("sensitive-env", "Sensitive value", where,
		fmt.Sprintf("The engine shows environment variables to whoever may ask it, and the value of %q is sensitive. Keep it in a file, and hand the file over with a grant that has a secret attribute. Where a program takes it from the environment only, add loosen \"secret_env\" with value = [%q] and the reason.", variable, variable))
}

func diagNotAChoice(name, given string, choices []string, where place) *hcl.Diagnostic {
	return problem("not-a-choice", "Unknown value", where,
		fmt.Sprintf("%q can't be %q. Write %s.", name, given, quoted(choices, "or")))
}

func diagWholeNumber(name string, low, high int64, where place) *hcl.Diagnostic {
	return problem("whole-number", "Number out of range", where,
		fmt.Sprintf("%q wants a whole number from %d to %d.", name, low, high))
}

func diagDuration(name, given string, where place) *hcl.Diagnostic {
	return problem("duration", "Invalid duration", where,
		fmt.Sprintf("%q can't be %q. Write a number with its unit, such as \"30s\", \"500ms\" or \"1m30s\".", name, given))
}

func diagDurationTooShort(name, given string, atLeast time.Duration, where place) *hcl.Diagnostic {
	return problem("duration-too-short", "Duration is too short", where,
		fmt.Sprintf("%q can't be %q: the shortest is %s. To have the default, leave it out.", name, given, atLeast))
}

func diagWholeSeconds(name string, where place) *hcl.Diagnostic {
	return problem("whole-seconds", "Whole seconds expected", where,
		fmt.Sprintf("%q is counted in whole seconds. Write, for example, \"10s\".", name))
}

func diagSize(name, given, meant string, where place) *hcl.Diagnostic {
	if meant != "" {
		meant = fmt.Sprintf("%q", meant)
	}
	return problem("size", "Invalid size", where,
		fmt.Sprintf("%q can't be %q: a size says its unit, KiB, MiB, GiB or TiB, or in powers of ten kB, MB, GB or TB, and is a whole number of bytes.", name, given)+didYouMean(meant))
}

func diagSizeTooSmall(name, given string, atLeast int64, where place) *hcl.Diagnostic {
	return problem("size-too-small", "Size is too small", where,
		fmt.Sprintf("%q can't be %q: the least is %s.", name, given, sizeText(atLeast)))
}

func sizeText(n int64) string {
	if n >= sizeUnits["MiB"] {
		return fmt.Sprintf("%dMiB", n/sizeUnits["MiB"])
	}
	return fmt.Sprintf("%d byte", n)
}

func diagCPUs(where place) *hcl.Diagnostic {
	return problem("cpus", "Number out of range", where,
		"\"cpus\" wants a number of CPUs, 0.01 at least: 2, or 0.5 for half of one.")
}

func diagIP(name, given string, where place) *hcl.Diagnostic {
	return problem("ip-address", "Invalid IP address", where,
		fmt.Sprintf("%q can't be %q. Write one address without a zone or a prefix length, such as \"10.0.5.7\".", name, given))
}

func diagCIDR(name, given string, where place) *hcl.Diagnostic {
	return problem("cidr", "Invalid range of addresses", where,
		fmt.Sprintf("%q can't be %q. Write a network and its prefix length, such as \"10.0.5.0/24\".", name, given))
}

func diagHostBits(name, given, masked string, where place) *hcl.Diagnostic {
	return problem("host-bits", "Address inside the range", where,
		fmt.Sprintf("%q can't be %q, an address inside a range. For the whole range, write %q.", name, given, masked))
}

func diagCIDRReserved(name, given string, where place) *hcl.Diagnostic {
	return problem("cidr-reserved", "Reserved range of addresses", where,
		fmt.Sprintf("%q can't be %q: loopback, multicast and unspecified addresses are not a network's. Write a private range, such as \"10.0.5.0/24\".", name, given))
}

func diagHostPath(name, given string, where place) *hcl.Diagnostic {
	return problem("host-path", "Invalid path", where,
		fmt.Sprintf("%q can't be %q: a path of the host is absolute, or begins with \"~/\" and stays below it. For one beside these files, write \"${path.root}/…\".", name, given))
}

func diagRootPath(name string, where place) *hcl.Diagnostic {
	return problem("root-path", "Whole file system", where,
		fmt.Sprintf("%q can't be the root of the host's file system, which holds everything. Write the one directory that is meant.", name))
}

func diagInsidePath(name, given string, where place) *hcl.Diagnostic {
	return problem("inside-path", "Invalid path", where,
		fmt.Sprintf("%q can't be %q: a path in a space is absolute and in its shortest form, without \"..\", \"//\" or a slash at the end.", name, given))
}

func diagReservedPath(name, given string, where place) *hcl.Diagnostic {
	return problem("reserved-path", "Reserved path", where,
		fmt.Sprintf("%q can't be %q: /, /dev, /proc and /sys are the kernel's and the image's own. Choose another path.", name, given))
}

func diagEmpty(name string, where place) *hcl.Diagnostic {
	return problem("empty-value", "Empty value", where,
		fmt.Sprintf("%q is empty or blank here. Write the value, or leave the attribute out.", name))
}

func diagNUL(name string, where place) *hcl.Diagnostic {
	return problem("nul-byte", "NUL in a value", where,
		fmt.Sprintf("%q holds a NUL byte, which ends a string for the kernel. Remove it.", name))
}

func diagListedTwice(name, value string, where place) *hcl.Diagnostic {
	return problem("listed-twice", "Listed twice", where, fmt.Sprintf("%q stands in %q already. Remove one.", value, name))
}

func diagReasonBlank(where place) *hcl.Diagnostic {
	return problem("reason-blank", "Blank reason", where,
		"A reason is read in every plan by whoever reviews it, and this one is blank. Say why.")
}

func diagReasonUnprintable(where place) *hcl.Diagnostic {
	return problem("reason-unprintable", "Reason can't be printed", where,
		"A reason is printed in every plan, on one line, and this one holds a line break or a character that does not print. Remove it.")
}

func diagEnvName(name, given string, where place) *hcl.Diagnostic {
	return problem("env-name", "Invalid variable name", where,
		fmt.Sprintf("%q can't hold %q: the name of an environment variable or build argument is made of letters, digits and underscores, and doesn't begin with a digit.", name, given))
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
