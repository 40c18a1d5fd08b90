package schema

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// valueMark is the type of our cty marks, so that no other package's can be equal.
type valueMark string

// sensitiveMark is on every value that must not be printed. It follows the value
// through expressions: what is computed from a sensitive value is sensitive.
const sensitiveMark valueMark = "sensitive"

// functions are what an expression may call: Terraform's, less those that read the
// clock, chance, the network or the file system. The same arguments give the same
// result, marks propagate, and no call makes more than maxWeight out of less. The
// map is the caller's own.
func functions() map[string]function.Function {
	all := pureFunctions()
	// A template may call everything but templatestring itself: it can't nest.
	all["templatestring"] = bounded(templateString(pureFunctions()), checkTemplate)
	return all
}

func pureFunctions() map[string]function.Function {
	all := map[string]function.Function{
		// Numbers.
		"abs":      stdlib.AbsoluteFunc,
		"ceil":     stdlib.CeilFunc,
		"floor":    stdlib.FloorFunc,
		"log":      logFunction(),
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc,
		"pow":      stdlib.PowFunc,
		"signum":   stdlib.SignumFunc,
		"sum":      sumFunction(),

		// Strings.
		"basename":    pathFunction(filepath.Base),
		"chomp":       stdlib.ChompFunc,
		"dirname":     pathFunction(filepath.Dir),
		"endswith":    stringTest("suffix", strings.HasSuffix),
		"lower":       stdlib.LowerFunc,
		"regex":       stdlib.RegexFunc,
		"startswith":  stringTest("prefix", strings.HasPrefix),
		"strcontains": stringTest("substr", strings.Contains),
		"strrev":      stdlib.ReverseFunc,
		"substr":      stdlib.SubstrFunc,
		"title":       stdlib.TitleFunc,
		"trim":        stdlib.TrimFunc,
		"trimprefix":  stdlib.TrimPrefixFunc,
		"trimspace":   stdlib.TrimSpaceFunc,
		"trimsuffix":  stdlib.TrimSuffixFunc,
		"upper":       stdlib.UpperFunc,

		// Collections.
		"alltrue":         allTrueFunction(),
		"anytrue":         anyTrueFunction(),
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        coalesceFunction(),
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"flatten":         stdlib.FlattenFunc,
		"index":           indexFunction(),
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunction(),
		"lookup":          lookupFunction(),
		"matchkeys":       matchKeysFunction(),
		"one":             oneFunction(),
		"range":           stdlib.RangeFunc, // at most 1024 elements
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"transpose":       transposeFunction(),
		"values":          stdlib.ValuesFunc,

		// Encodings.
		"base64decode":     base64DecodeFunction(),
		"base64encode":     encodeFunction(base64Encode),
		"base64gzip":       encodeFunction(base64Gzip),
		"csvdecode":        stdlib.CSVDecodeFunc,
		"jsonencode":       stdlib.JSONEncodeFunc,
		"textdecodebase64": textDecodeBase64Function(),
		"textencodebase64": textEncodeBase64Function(),
		"urlencode":        encodeFunction(urlEncode),
		"yamlencode":       ctyyaml.YAMLEncodeFunc,

		// Digests.
		"base64sha256": encodeFunction(base64SHA256),
		"base64sha512": encodeFunction(base64SHA512),
		"md5":          encodeFunction(md5Hex),
		"rsadecrypt":   rsaDecryptFunction(),
		"sha1":         encodeFunction(sha1Hex),
		"sha256":       encodeFunction(sha256Hex),
		"sha512":       encodeFunction(sha512Hex),
		"uuidv5":       uuidV5Function(),

		// Times that the files name; none reads the clock.
		"formatdate": stdlib.FormatDateFunc,
		"timeadd":    stdlib.TimeAddFunc,
		"timecmp":    timeCmpFunction(),

		// Addresses.
		"cidrhost":    cidrHostFunction(),
		"cidrnetmask": cidrNetmaskFunction(),
		"cidrsubnet":  cidrSubnetFunction(),
		"cidrsubnets": cidrSubnetsFunction(),

		// Types and marks.
		"issensitive":  isSensitiveFunction(),
		"nonsensitive": nonsensitiveFunction(),
		"sensitive":    sensitiveFunction(),
		"tobool":       stdlib.MakeToFunc(cty.Bool),
		"tolist":       stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":        stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber":     stdlib.MakeToFunc(cty.Number),
		"toset":        stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring":     stdlib.MakeToFunc(cty.String),
	}
	for name, f := range all {
		all[name] = bounded(f, nil)
	}

	// These make much out of little and are judged before they run.
	all["format"] = bounded(stdlib.FormatFunc, checkFormat)
	all["formatlist"] = bounded(stdlib.FormatListFunc, checkFormatList)
	all["indent"] = bounded(stdlib.IndentFunc, checkIndent)
	all["join"] = bounded(stdlib.JoinFunc, checkJoin)
	all["jsondecode"] = bounded(stdlib.JSONDecodeFunc, checkJSONDepth)
	all["regexall"] = bounded(stdlib.RegexAllFunc, checkRegexAll)
	all["replace"] = bounded(replaceFunction(), checkReplace)
	all["setproduct"] = bounded(stdlib.SetProductFunc, checkSetProduct)
	all["split"] = bounded(stdlib.SplitFunc, checkSplit)
	all["yamldecode"] = bounded(ctyyaml.YAMLDecodeFunc, checkYAML)

	// These panic over some arguments.
	all["merge"] = bounded(stdlib.MergeFunc, checkMerge)
	all["zipmap"] = bounded(stdlib.ZipmapFunc, checkZipmap)

	// These take expressions, not values: what is in them is bounded where it is called.
	all["can"] = tryfunc.CanFunc
	all["try"] = tryfunc.TryFunc
	return all
}

// missingFunctionHint says why a function that Terraform has is not in the
// language, and what to write instead. It is empty for any other name.
func missingFunctionHint(name string) string {
	const (
		clock  = "reads the clock: the same files must give the same desired state. Pass the time in as a variable."
		chance = "draws random bytes: the same files must give the same desired state. "
		files  = "reads files: a file that a space can write must not write its own rules. Pass the value in as a variable, or let the space read the file through a grant."
	)
	switch name {
	case "timestamp", "plantimestamp":
		return name + " " + clock
	case "uuid":
		return name + " " + chance + "uuidv5 makes a UUID from a name."
	case "bcrypt":
		return name + " " + chance + "Pass the hash in as a variable, or keep it in a file and grant it as a secret."
	case "file", "fileexists", "fileset", "filebase64", "filemd5", "filesha1", "filesha256", "filesha512",
		"filebase64sha256", "filebase64sha512":
		return name + " " + files
	case "templatefile":
		return name + " " + files + " Or: templatestring renders a template that stands in the files."
	case "pathexpand":
		return name + " reads the caller's home directory: the same files must give the same desired state. A grant's source may begin with \"~/\" as it is."
	case "abspath":
		return name + " depends on the directory the command runs in. Write \"${path.root}/…\" for a path beside the files."
	case "ephemeralasnull":
		return name + " is for ephemeral values, which this language doesn't have. A secret goes by file, in a grant."
	case "list":
		return "list is gone from Terraform too. Write [a, b], or tolist([a, b])."
	case "map":
		return "map is gone from Terraform too. Write { k = v }, or tomap({ k = v })."
	case "type":
		return "type is for Terraform's console alone; can(tostring(x)) and its like test what a value is."
	}
	return ""
}
