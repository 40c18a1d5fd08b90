package schema

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// Functions that no library has. Parameters don't allow marks unless said, so that
// cty takes marks off the arguments and puts them all on the result.

// computed is a function of wholly known arguments with a result of one type.
func computed(result cty.Type, params []function.Parameter, impl func(args []cty.Value) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: params,
		Type:   function.StaticReturnType(result),
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			for _, arg := range args {
				if !arg.IsWhollyKnown() {
					return cty.UnknownVal(result), nil
				}
			}
			return impl(args)
		},
	})
}

// stringParams names parameters that are strings.
func stringParams(names ...string) []function.Parameter {
	params := make([]function.Parameter, len(names))
	for i, name := range names {
		params[i] = function.Parameter{Name: name, Type: cty.String}
	}
	return params
}

func anyParam(name string) []function.Parameter {
	return []function.Parameter{{Name: name, Type: cty.DynamicPseudoType}}
}

// logFunction is cty's, with words for what has no logarithm.
func logFunction() function.Function {
	return computed(cty.Number, stdlib.LogFunc.Params(), func(args []cty.Value) (cty.Value, error) {
		for i, arg := range args {
			if n, _ := arg.AsBigFloat().Float64(); n <= 0 || math.IsInf(n, 0) {
				return cty.NilVal, function.NewArgErrorf(i, "must be a number above 0")
			}
		}
		if args[1].RawEquals(cty.NumberIntVal(1)) {
			return cty.NilVal, function.NewArgErrorf(1, "1 is the base of no logarithm")
		}
		return stdlib.LogFunc.Call(args)
	})
}

func sumFunction() function.Function {
	return computed(cty.Number, anyParam("list"), func(args []cty.Value) (cty.Value, error) {
		ty := args[0].Type()
		if !ty.IsListType() && !ty.IsSetType() && !ty.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "must be a list, set or tuple of numbers")
		}
		if args[0].LengthInt() == 0 {
			return cty.NilVal, function.NewArgErrorf(0, "cannot sum an empty list")
		}
		total := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, v := it.Element()
			n, err := convert.Convert(v, cty.Number)
			if err != nil || n.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "every element must be a number")
			}
			total = total.Add(n)
		}
		return total, nil
	})
}

// Paths are the host's: spaces runs on Linux.
func pathFunction(part func(string) string) function.Function {
	return computed(cty.String, stringParams("path"), func(args []cty.Value) (cty.Value, error) {
		return cty.StringVal(part(args[0].AsString())), nil
	})
}

func stringTest(what string, test func(text, part string) bool) function.Function {
	return computed(cty.Bool, stringParams("str", what), func(args []cty.Value) (cty.Value, error) {
		return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
	})
}

// slashed says whether a search of replace is a pattern, written between slashes.
func slashed(search string) (pattern string, ok bool) {
	if len(search) > 1 && search[0] == '/' && search[len(search)-1] == '/' {
		return search[1 : len(search)-1], true
	}
	return "", false
}

// replaceFunction takes a search between slashes for a regular expression, as
// Terraform does; cty has a function for each.
func replaceFunction() function.Function {
	return computed(cty.String, stringParams("str", "search", "replace"), func(args []cty.Value) (cty.Value, error) {
		if pattern, ok := slashed(args[1].AsString()); ok {
			return stdlib.RegexReplace(args[0], cty.StringVal(pattern), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	})
}

// templateString renders a template with the given variables. It can't nest: the
// functions within are those it is given.
func templateString(within map[string]function.Function) function.Function {
	return computed(cty.String, append(stringParams("template"), anyParam("vars")...), func(args []cty.Value) (cty.Value, error) {
		if ty := args[1].Type(); !ty.IsObjectType() && !ty.IsMapType() {
			return cty.NilVal, function.NewArgErrorf(1, "must be a map or an object of the template's variables")
		}
		variables := args[1].AsValueMap()
		for name := range variables {
			if !hclsyntax.ValidIdentifier(name) {
				return cty.NilVal, function.NewArgErrorf(1, "%q is no name of a variable: a name starts with a letter, and has letters, digits, - and _", name)
			}
		}
		expr, diags := hclsyntax.ParseTemplate([]byte(args[0].AsString()), "template", hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, function.NewArgError(0, errors.New(firstError(diags)))
		}
		v, diags := expr.Value(&hcl.EvalContext{Variables: variables, Functions: within})
		if diags.HasErrors() {
			return cty.NilVal, function.NewArgError(0, errors.New(firstError(diags)))
		}
		return convert.Convert(v, cty.String)
	})
}

// firstError is what is wrong in a template, where the template is no file that a
// diagnostic could point into.
func firstError(diags hcl.Diagnostics) string {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			where := ""
			if d.Subject != nil {
				where = fmt.Sprintf("line %d, column %d of the template: ", d.Subject.Start.Line, d.Subject.Start.Column)
			}
			return where + d.Summary + ": " + d.Detail
		}
	}
	return "the template is invalid"
}

// boolsFunction folds a list of bools; null is false, as Terraform has it.
func boolsFunction(fold func(sofar, next cty.Value) cty.Value, start cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := start
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				if v.IsNull() {
					v = cty.False
				}
				result = fold(result, v)
			}
			return result, nil
		},
	})
}

func allTrueFunction() function.Function { return boolsFunction(cty.Value.And, cty.True) }
func anyTrueFunction() function.Function { return boolsFunction(cty.Value.Or, cty.False) }

// coalesceFunction returns the first argument that is neither null nor "": cty's
// own doesn't pass over "".
func coalesceFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{
			Name: "vals", Type: cty.DynamicPseudoType,
			AllowNull: true, AllowUnknown: true, AllowDynamicType: true,
		},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, len(args))
			for i, arg := range args {
				types[i] = arg.Type()
			}
			ty, _ := convert.UnifyUnsafe(types)
			if ty == cty.NilType {
				return cty.NilType, errors.New("all arguments must have the same type")
			}
			return ty, nil
		},
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			for i, arg := range args {
				v, err := convert.Convert(arg, result)
				if err != nil {
					return cty.NilVal, function.NewArgError(i, err)
				}
				if !v.IsKnown() {
					return cty.UnknownVal(result), nil
				}
				if v.IsNull() || (v.Type() == cty.String && v.AsString() == "") {
					continue
				}
				return v, nil
			}
			return cty.NilVal, errors.New("no argument is other than null or an empty string")
		},
	})
}

// same compares as == does, but for two nulls, which are the same in any type.
func same(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	eq := a.Equals(b)
	return eq.IsKnown() && eq.True()
}

func indexFunction() function.Function {
	return computed(cty.Number, append(anyParam("list"), anyParam("value")...), func(args []cty.Value) (cty.Value, error) {
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "must be a list or a tuple")
		}
		for it := args[0].ElementIterator(); it.Next(); {
			k, v := it.Element()
			if same(v, args[1]) {
				return k, nil
			}
		}
		return cty.NilVal, function.NewArgErrorf(1, "is not in the list")
	})
}

// lengthFunction counts elements, attributes, or characters as people see them.
// Its argument may be marked: the length of a list isn't secret because an
// element is.
func lengthFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType,
			AllowDynamicType: true, AllowUnknown: true, AllowMarked: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsTupleType() || ty.IsObjectType() || ty.IsCollectionType() {
				return cty.Number, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "must be a string, a collection, an object or a tuple")
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			switch ty := v.Type(); {
			case ty == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number).WithMarks(marks), nil
			case ty == cty.String:
				n, err := stdlib.Strlen(v)
				return n.WithMarks(marks), err
			case ty.IsObjectType():
				return cty.NumberIntVal(int64(len(ty.AttributeTypes()))).WithMarks(marks), nil
			default:
				return v.Length().WithMarks(marks), nil
			}
		},
	})
}

// lookupFunction is cty's, with a default that may be left out.
func lookupFunction() function.Function {
	params := stdlib.LookupFunc.Params()
	fallback := params[2]
	return function.New(&function.Spec{
		Params:   params[:2],
		VarParam: &fallback,
		Type: func(args []cty.Value) (cty.Type, error) {
			switch {
			case len(args) == 3:
				return stdlib.LookupFunc.ReturnTypeForValues(args)
			case len(args) > 3:
				return cty.NilType, errors.New("lookup takes a map, a key and at most one default")
			}
			key, _ := args[1].Unmark()
			switch ty := args[0].Type(); {
			case ty.IsMapType():
				return ty.ElementType(), nil
			case !ty.IsObjectType():
				return cty.NilType, function.NewArgErrorf(0, "must be a map or an object")
			case !key.IsKnown():
				return cty.DynamicPseudoType, nil
			case !ty.HasAttribute(key.AsString()):
				return cty.NilType, function.NewArgErrorf(1, "there is no %q, and no default is given", key.AsString())
			default:
				return ty.AttributeType(key.AsString()), nil
			}
		},
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			if len(args) == 3 {
				return stdlib.LookupFunc.Call(args)
			}
			in, marks := args[0].Unmark()
			key, keyMarks := args[1].Unmark()
			switch {
			case !in.IsKnown() || !key.IsKnown():
				return cty.UnknownVal(result).WithMarks(marks, keyMarks), nil
			case in.Type().IsObjectType():
				return in.GetAttr(key.AsString()).WithMarks(marks, keyMarks), nil
			case in.HasIndex(key).False():
				return cty.NilVal, function.NewArgErrorf(1, "there is no %q, and no default is given", key.AsString())
			default:
				return in.Index(key).WithMarks(marks, keyMarks), nil
			}
		},
	})
}

// matchKeysFunction keeps the values whose key is searched for.
func matchKeysFunction() function.Function {
	list := func(name string) function.Parameter {
		return function.Parameter{Name: name, Type: cty.List(cty.DynamicPseudoType)}
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{list("values"), list("keys"), list("search")},
		Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			for _, arg := range args {
				if !arg.IsWhollyKnown() {
					return cty.UnknownVal(result), nil
				}
			}
			values, keys, search := args[0].AsValueSlice(), args[1].AsValueSlice(), args[2].AsValueSlice()
			if len(values) != len(keys) {
				return cty.NilVal, errors.New("there must be as many keys as values")
			}
			var kept []cty.Value
			for i, key := range keys {
				if slices.ContainsFunc(search, func(v cty.Value) bool { return same(v, key) }) {
					kept = append(kept, values[i])
				}
			}
			if len(kept) == 0 {
				return cty.ListValEmpty(result.ElementType()), nil
			}
			return cty.ListVal(kept), nil
		},
	})
}

// oneFunction turns a list of at most one element into the element or null.
func oneFunction() function.Function {
	return function.New(&function.Spec{
		Params: anyParam("list"),
		Type: func(args []cty.Value) (cty.Type, error) {
			switch ty := args[0].Type(); {
			case ty.IsListType(), ty.IsSetType():
				return ty.ElementType(), nil
			case ty.IsTupleType() && ty.Length() == 0:
				return cty.DynamicPseudoType, nil
			case ty.IsTupleType() && ty.Length() == 1:
				return ty.TupleElementType(0), nil
			case ty.IsTupleType():
				return cty.NilType, function.NewArgErrorf(0, "must have one element or none")
			default:
				return cty.NilType, function.NewArgErrorf(0, "must be a list, set or tuple")
			}
		},
		Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
			n := args[0].Length()
			if !n.IsKnown() {
				return cty.UnknownVal(result), nil
			}
			switch n.AsBigFloat().Cmp(big.NewFloat(1)) {
			case 1:
				return cty.NilVal, function.NewArgErrorf(0, "must have one element or none")
			case -1:
				return cty.NullVal(result), nil
			}
			it := args[0].ElementIterator()
			it.Next()
			_, v := it.Element()
			return v, nil
		},
	})
}

// transposeFunction swaps keys and values of a map of lists of strings.
func transposeFunction() function.Function {
	ty := cty.Map(cty.List(cty.String))
	return computed(ty, []function.Parameter{{Name: "values", Type: ty}}, func(args []cty.Value) (cty.Value, error) {
		swapped := map[string][]cty.Value{}
		for it := args[0].ElementIterator(); it.Next(); { // in the order of keys
			key, list := it.Element()
			if list.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "must have no null list")
			}
			for elements := list.ElementIterator(); elements.Next(); {
				_, v := elements.Element()
				if v.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "must have no null string")
				}
				swapped[v.AsString()] = append(swapped[v.AsString()], key)
			}
		}
		if len(swapped) == 0 {
			return cty.MapValEmpty(cty.List(cty.String)), nil
		}
		lists := make(map[string]cty.Value, len(swapped))
		for name, keys := range swapped {
			lists[name] = cty.ListVal(keys)
		}
		return cty.MapVal(lists), nil
	})
}

// encodeFunction is a function of one string's bytes.
func encodeFunction(encode func([]byte) string) function.Function {
	return computed(cty.String, stringParams("str"), func(args []cty.Value) (cty.Value, error) {
		return cty.StringVal(encode([]byte(args[0].AsString()))), nil
	})
}

func base64Encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
func urlEncode(b []byte) string    { return url.QueryEscape(string(b)) }

func base64SHA256(b []byte) string { sum := sha256.Sum256(b); return base64Encode(sum[:]) }
func base64SHA512(b []byte) string { sum := sha512.Sum512(b); return base64Encode(sum[:]) }
func md5Hex(b []byte) string       { sum := md5.Sum(b); return hex.EncodeToString(sum[:]) }
func sha1Hex(b []byte) string      { sum := sha1.Sum(b); return hex.EncodeToString(sum[:]) }
func sha256Hex(b []byte) string    { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
func sha512Hex(b []byte) string    { sum := sha512.Sum512(b); return hex.EncodeToString(sum[:]) }

// base64Gzip leaves the header's time and name empty, so that the same text gives
// the same bytes.
func base64Gzip(b []byte) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return base64Encode(out.Bytes())
}

func base64DecodeFunction() function.Function {
	return computed(cty.String, stringParams("str"), func(args []cty.Value) (cty.Value, error) {
		b, err := base64.StdEncoding.DecodeString(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "isn't base64: %w", err)
		}
		if !utf8.Valid(b) {
			return cty.NilVal, function.NewArgErrorf(0, "decodes to bytes that are no UTF-8 text, which a string can't hold")
		}
		return cty.StringVal(string(b)), nil
	})
}

// textEncoding finds a character encoding by its IANA name.
func textEncoding(name string) (encoding.Encoding, error) {
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil || e == nil {
		return nil, function.NewArgErrorf(1, "%q is no character encoding of the IANA registry that is supported here; UTF-8, UTF-16LE and ISO-8859-1 are", name)
	}
	return e, nil
}

func textEncodeBase64Function() function.Function {
	return computed(cty.String, stringParams("string", "encoding"), func(args []cty.Value) (cty.Value, error) {
		e, err := textEncoding(args[1].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		b, err := e.NewEncoder().Bytes([]byte(args[0].AsString()))
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "has a character that %s doesn't have", args[1].AsString())
		}
		return cty.StringVal(base64Encode(b)), nil
	})
}

func textDecodeBase64Function() function.Function {
	return computed(cty.String, stringParams("source", "encoding"), func(args []cty.Value) (cty.Value, error) {
		e, err := textEncoding(args[1].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		b, err := base64.StdEncoding.DecodeString(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "isn't base64: %w", err)
		}
		text, err := e.NewDecoder().Bytes(b)
		if err != nil || !utf8.Valid(text) || bytes.ContainsRune(text, utf8.RuneError) {
			return cty.NilVal, function.NewArgErrorf(0, "isn't text in %s", args[1].AsString())
		}
		return cty.StringVal(string(text)), nil
	})
}

// rsaDecryptFunction is Terraform's, PKCS #1 v1.5 (RFC 8017 section 7.2). Its
// result is always sensitive: nobody encrypts what may be printed.
func rsaDecryptFunction() function.Function {
	return computed(cty.String, stringParams("ciphertext", "privatekey"), func(args []cty.Value) (cty.Value, error) {
		ciphertext, err := base64.StdEncoding.DecodeString(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "isn't base64: %w", err)
		}
		block, _ := pem.Decode([]byte(args[1].AsString()))
		if block == nil {
			return cty.NilVal, function.NewArgErrorf(1, "isn't a key in PEM form")
		}
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			other, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(1, "isn't an RSA private key in PKCS #1 or PKCS #8 form")
			}
			var ok bool
			if key, ok = other.(*rsa.PrivateKey); !ok {
				return cty.NilVal, function.NewArgErrorf(1, "isn't an RSA key")
			}
		}
		//lint:ignore SA1019 the scheme is Terraform's, and no peer can watch this decryption
		text, err := rsa.DecryptPKCS1v15(nil, key, ciphertext)
		if err != nil || !utf8.Valid(text) {
			return cty.NilVal, function.NewArgErrorf(0, "can't be decrypted to text with this key")
		}
		return cty.StringVal(string(text)).Mark(sensitiveMark), nil
	})
}

// uuidV5Function makes the UUID of a name in a namespace (RFC 9562 section 5.5).
func uuidV5Function() function.Function {
	return computed(cty.String, stringParams("namespace", "name"), func(args []cty.Value) (cty.Value, error) {
		space, err := uuidNamespace(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		sum := sha1.Sum(append(space, args[1].AsString()...))
		id := sum[:16]
		id[6] = id[6]&0x0f | 5<<4 // the version
		id[8] = id[8]&0x3f | 0x80 // the variant
		return cty.StringVal(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])), nil
	})
}

// uuidNamespace is a UUID's bytes, given as such or as one of the names of RFC
// 9562 section 6.6.
func uuidNamespace(name string) ([]byte, error) {
	switch name {
	case "dns":
		name = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	case "url":
		name = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
	case "oid":
		name = "6ba7b812-9dad-11d1-80b4-00c04fd430c8"
	case "x500":
		name = "6ba7b814-9dad-11d1-80b4-00c04fd430c8"
	}
	parts := strings.Split(name, "-")
	b, err := hex.DecodeString(strings.Join(parts, ""))
	if err != nil || len(parts) != 5 || len(parts[0]) != 8 || len(parts[1]) != 4 || len(parts[2]) != 4 || len(parts[3]) != 4 || len(parts[4]) != 12 {
		return nil, errors.New(`must be "dns", "url", "oid", "x500" or a UUID`)
	}
	return b, nil
}

func timeCmpFunction() function.Function {
	return computed(cty.Number, stringParams("timestamp_a", "timestamp_b"), func(args []cty.Value) (cty.Value, error) {
		var times [2]time.Time
		for i, arg := range args {
			t, err := time.Parse(time.RFC3339, arg.AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(i, `isn't a time in RFC 3339 form, such as "2026-03-01T12:00:00Z"`)
			}
			times[i] = t
		}
		return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
	})
}

// prefixArg reads a CIDR. Leading zeros are refused, as some read them as octal.
func prefixArg(v cty.Value) (*net.IPNet, error) {
	_, prefix, err := net.ParseCIDR(v.AsString())
	if err != nil {
		return nil, function.NewArgErrorf(0, `%q isn't an address range such as "10.0.0.0/8"`, v.AsString())
	}
	return prefix, nil
}

func prefixParams(numbers ...string) []function.Parameter {
	params := stringParams("prefix")
	for _, name := range numbers {
		params = append(params, function.Parameter{Name: name, Type: cty.Number})
	}
	return params
}

func wholeArg(args []cty.Value, i int) (*big.Int, error) {
	n, accuracy := args[i].AsBigFloat().Int(nil)
	if n == nil || accuracy != big.Exact {
		return nil, function.NewArgErrorf(i, "must be a whole number")
	}
	return n, nil
}

func cidrHostFunction() function.Function {
	return computed(cty.String, prefixParams("hostnum"), func(args []cty.Value) (cty.Value, error) {
		prefix, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		n, err := wholeArg(args, 1)
		if err != nil {
			return cty.NilVal, err
		}
		ip, err := cidr.HostBig(prefix, n)
		if err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(ip.String()), nil
	})
}

func cidrNetmaskFunction() function.Function {
	return computed(cty.String, prefixParams(), func(args []cty.Value) (cty.Value, error) {
		prefix, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		if len(prefix.IP) != net.IPv4len {
			return cty.NilVal, function.NewArgErrorf(0, "IPv6 has no netmasks")
		}
		return cty.StringVal(net.IP(prefix.Mask).String()), nil
	})
}

func cidrSubnetFunction() function.Function {
	return computed(cty.String, prefixParams("newbits", "netnum"), func(args []cty.Value) (cty.Value, error) {
		prefix, err := prefixArg(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		bits, err := newBits(args, 1)
		if err != nil {
			return cty.NilVal, err
		}
		n, err := wholeArg(args, 2)
		if err != nil {
			return cty.NilVal, err
		}
		subnet, err := cidr.SubnetBig(prefix, bits, n)
		if err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(subnet.String()), nil
	})
}

func newBits(args []cty.Value, i int) (int, error) {
	var bits int
	if err := gocty.FromCtyValue(args[i], &bits); err != nil || bits < 0 || bits > 128 {
		return 0, function.NewArgErrorf(i, "must be a number of bits to add, from 0 to 128")
	}
	return bits, nil
}

// cidrSubnetsFunction takes subnets of a range one after the other.
func cidrSubnetsFunction() function.Function {
	return function.New(&function.Spec{
		Params:   prefixParams(),
		VarParam: &function.Parameter{Name: "newbits", Type: cty.Number},
		Type:     function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			prefix, err := prefixArg(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			ones, size := prefix.Mask.Size()
			var subnets []cty.Value
			var last *net.IPNet
			for i := 1; i < len(args); i++ {
				bits, err := newBits(args, i)
				if err != nil {
					return cty.NilVal, err
				}
				length := ones + bits
				if bits < 1 || length > size {
					return cty.NilVal, function.NewArgErrorf(i, "a /%d range can be extended by 1 to %d bits", ones, size-ones)
				}
				next := &net.IPNet{IP: prefix.IP, Mask: net.CIDRMask(length, size)}
				if last != nil {
					var beyond bool
					if next, beyond = cidr.NextSubnet(last, length); beyond || !prefix.Contains(next.IP) {
						return cty.NilVal, function.NewArgErrorf(i, "%s has no room left for a /%d", prefix, length)
					}
				}
				last = next
				subnets = append(subnets, cty.StringVal(next.String()))
			}
			if len(subnets) == 0 {
				return cty.ListValEmpty(cty.String), nil
			}
			return cty.ListVal(subnets), nil
		},
	})
}

// markParam takes any value with its marks.
func markParam() []function.Parameter {
	return []function.Parameter{{
		Name: "value", Type: cty.DynamicPseudoType,
		AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true,
	}}
}

func sameType(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil }

func sensitiveFunction() function.Function {
	return function.New(&function.Spec{
		Params: markParam(),
		Type:   sameType,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return args[0].Mark(sensitiveMark), nil
		},
	})
}

// nonsensitiveFunction takes the mark off a value, not off what is in it.
func nonsensitiveFunction() function.Function {
	return function.New(&function.Spec{
		Params: markParam(),
		Type:   sameType,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			delete(marks, sensitiveMark)
			return v.WithMarks(marks), nil
		},
	})
}

func isSensitiveFunction() function.Function {
	return function.New(&function.Spec{
		Params: markParam(),
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch {
			case args[0].HasMark(sensitiveMark):
				return cty.True, nil
			case !args[0].IsKnown():
				return cty.UnknownVal(cty.Bool), nil // it may turn out to be
			default:
				return cty.False, nil
			}
		},
	})
}
