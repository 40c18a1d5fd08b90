package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// testKey is nobody's key: it was made for this test.
const testKey = `-----BEGIN RSA PRIVATE KEY-----
MIICXAIBAAKBgQC4ZyhAfbZAsxmpKMrAllCLZ2syhb+O+GCrjaIDJV491BVwWxqm
CeYzPNA/v4XCbe7wdQsROzq8hf5z+v8QRbQUuEUByUoL7uxspq/k0EfmGwx5OS8B
S6YDnYPruVYYskAlXiCZAkR8zfXAUjXB/t9qY4HnFPvSrOWbs7Rx4g8V8wIDAQAB
AoGABUGLeCsdIsL4HEY5YTvnl9Ge0JXXW+/gcYNb9tL92K1O3yD5pXnqwdMd7HM9
EMmpYdk0M42Iow7+rbedxYz3EQO2+YGkQPenPkr3/QqUX1sM4vzFeZLZ9PLlJOIO
LBVsIROykvs9Dn36HO/9aLXgX0Rc6RYcMy8GrgoKLowJdwECQQDmzZbaMeAL+H49
JfB8jAmTi9Qtakq7HZVnCPuEBBJwlBGhPWE378dwJyQPzkpWkD45mA+2YEfldC/C
ZWGjGL4TAkEAzIjKx+6zTLkCZErpj0qr0gWSupMOOoh1OO8uz30JmeZjy7x6a32V
tFYo2noCceQe6BuG69yZI0gpg6R/xUPEoQJBAKdYXY5rJ0XGsNFpVssXRkJC2l7r
eK/fLVp9us/nm+8gjP/Z30mNg4+f8Ze8PU4yW8uqo4namYaXDaHnnDmDUR0CQAxT
2lT+kBP5uqks0rLuPzjjWRqhrmPcwaPy1pFu6ds6xZ0L+Rztbs51uvSgEfGnXC2F
KzagDyLPQKFMkt7i3MECQBQWCAFcYMQGJZK3BOHRCWN5/JIXgcYUWqWZnJCZOaiS
0VCKRV1+H4tJRRHnTTJx5QRSysDP958ubfg0tVCz0J0=
-----END RSA PRIVATE KEY-----
`

const testCiphertext = "epNl5gM6DrkID46/Qhi5qQrTlhj0rpIezA4eT+QA8hEyTawVtoWGNHipQvb6KEfAw0Xvag49D5J6MUlsAUeZbHtRIoO3FyUxLUf16ODhxz4W4yqxQyhCkMR0hq6PrUSG16YcKBI3tbELpl2Wa12xc3Ysqgb0C6ivCgdgTYH1Qpw="

// functionCases has at least one call of every function: the expression, and one
// that gives the same value, or the text of the error.
var functionCases = []struct{ name, expr, want, err string }{
	{name: "abs", expr: `abs(-5)`, want: `5`},
	{name: "alltrue", expr: `alltrue([true, "true"])`, want: `true`},
	{name: "alltrue", expr: `alltrue([])`, want: `true`},
	{name: "alltrue", expr: `alltrue([true, null])`, want: `false`},
	{name: "anytrue", expr: `anytrue([false, true])`, want: `true`},
	{name: "anytrue", expr: `anytrue([])`, want: `false`},
	{name: "base64decode", expr: `base64decode("SGVsbG8=")`, want: `"Hello"`},
	{name: "base64decode", expr: `base64decode("/w==")`, err: "no UTF-8 text"},
	{name: "base64decode", expr: `base64decode("?")`, err: "isn't base64"},
	{name: "base64encode", expr: `base64encode("Hello")`, want: `"SGVsbG8="`},
	{name: "base64gzip", expr: `base64gzip("Hello")`, want: `"H4sIAAAAAAAA//JIzcnJBwQAAP//gonR9wUAAAA="`},
	{name: "base64sha256", expr: `base64sha256("hello world")`, want: `"uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="`},
	{name: "base64sha512", expr: `base64sha512("")`, want: `"z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="`},
	{name: "basename", expr: `basename("a/b/c.txt")`, want: `"c.txt"`},
	{name: "can", expr: `[can(1 + 1), can({}.a)]`, want: `[true, false]`},
	{name: "ceil", expr: `ceil(5.1)`, want: `6`},
	{name: "chomp", expr: `chomp("a\r\n\n")`, want: `"a"`},
	{name: "chunklist", expr: `chunklist(["a", "b", "c"], 2)`, want: `[["a", "b"], ["c"]]`},
	{name: "cidrhost", expr: `cidrhost("10.12.112.0/20", 16)`, want: `"10.12.112.16"`},
	{name: "cidrhost", expr: `cidrhost("fd00:fd12:3456:7890::/56", 34)`, want: `"fd00:fd12:3456:7800::22"`},
	{name: "cidrhost", expr: `cidrhost("10.0.0.0/24", -2)`, want: `"10.0.0.254"`},
	{name: "cidrhost", expr: `cidrhost("10.0.0.0/30", 4)`, err: "does not accommodate"},
	{name: "cidrhost", expr: `cidrhost("010.0.0.0/30", 1)`, err: "isn't an address range"},
	{name: "cidrhost", expr: `cidrhost("10.0.0.0/30", 1.5)`, err: "whole number"},
	{name: "cidrnetmask", expr: `cidrnetmask("172.16.0.0/12")`, want: `"255.240.0.0"`},
	{name: "cidrnetmask", expr: `cidrnetmask("fd00::/8")`, err: "no netmasks"},
	{name: "cidrsubnet", expr: `cidrsubnet("172.16.0.0/12", 4, 2)`, want: `"172.18.0.0/16"`},
	{name: "cidrsubnet", expr: `cidrsubnet("10.1.2.0/24", 4, 15)`, want: `"10.1.2.240/28"`},
	{name: "cidrsubnet", expr: `cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`, want: `"fd00:fd12:3456:7800:a200::/72"`},
	{name: "cidrsubnet", expr: `cidrsubnet("10.0.0.0/24", 9, 0)`, err: "insufficient address space"},
	{name: "cidrsubnet", expr: `cidrsubnet("10.0.0.0/24", 1e9, 0)`, err: "from 0 to 128"},
	{name: "cidrsubnets", expr: `cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`, want: `["10.1.0.0/20", "10.1.16.0/20", "10.1.32.0/24", "10.1.48.0/20"]`},
	{name: "cidrsubnets", expr: `cidrsubnets("fd00::/56", 8)`, want: `["fd00::/64"]`},
	{name: "cidrsubnets", expr: `cidrsubnets("10.0.0.0/24", 1, 1, 1)`, err: "no room left"},
	{name: "cidrsubnets", expr: `cidrsubnets("10.0.0.0/24", 9)`, err: "by 1 to 8 bits"},
	{name: "coalesce", expr: `coalesce(null, "", "b", "c")`, want: `"b"`},
	{name: "coalesce", expr: `coalesce("", "")`, err: "no argument is other than"},
	{name: "coalesce", expr: `coalesce()`, err: "same type"},
	{name: "coalescelist", expr: `coalescelist([], ["a"])`, want: `["a"]`},
	{name: "compact", expr: `compact(["a", "", "b", null])`, want: `["a", "b"]`},
	{name: "concat", expr: `concat(["a"], ["b", "c"])`, want: `["a", "b", "c"]`},
	{name: "contains", expr: `contains(["a", "b"], "b")`, want: `true`},
	{name: "csvdecode", expr: `csvdecode("a,b\n1,2\n")`, want: `[{ a = "1", b = "2" }]`},
	{name: "dirname", expr: `dirname("a/b/c.txt")`, want: `"a/b"`},
	{name: "distinct", expr: `distinct(["a", "b", "a"])`, want: `["a", "b"]`},
	{name: "element", expr: `element(["a", "b", "c"], 4)`, want: `"b"`},
	{name: "endswith", expr: `[endswith("hello", "lo"), endswith("hello", "he")]`, want: `[true, false]`},
	{name: "flatten", expr: `flatten([["a", ["b"]], [], "c"])`, want: `["a", "b", "c"]`},
	{name: "floor", expr: `floor(4.9)`, want: `4`},
	{name: "format", expr: `format("%s has %05.1f%% of %q: %v", "a", 2.25, "b", [1])`, want: `"a has 002.2% of \"b\": [1]"`},
	{name: "format", expr: `format("%[2]s%[1]s", "a", "b")`, want: `"ba"`},
	{name: "formatdate", expr: `formatdate("DD MMM YYYY hh:mm ZZZ", "2018-01-02T23:12:01Z")`, want: `"02 Jan 2018 23:12 UTC"`},
	{name: "formatlist", expr: `formatlist("%s-%s", "x", ["a", "b"])`, want: `["x-a", "x-b"]`},
	{name: "indent", expr: `indent(2, "a\nb")`, want: `"a\n  b"`},
	{name: "index", expr: `index(["a", "b"], "b")`, want: `1`},
	{name: "index", expr: `index(["a"], "b")`, err: "is not in the list"},
	{name: "index", expr: `index({ a = 1 }, 1)`, err: "must be a list"},
	{name: "issensitive", expr: `[issensitive(sensitive(1)), issensitive(1)]`, want: `[true, false]`},
	{name: "join", expr: `join(", ", ["a", "b"])`, want: `"a, b"`},
	{name: "jsondecode", expr: `jsondecode("{\"a\":[1,null]}")`, want: `{ a = [1, null] }`},
	{name: "jsonencode", expr: `jsonencode({ a = [1, true] })`, want: `"{\"a\":[1,true]}"`},
	{name: "keys", expr: `keys({ b = 1, a = 2 })`, want: `["a", "b"]`},
	{name: "length", expr: `[length("né"), length([1, 2]), length({ a = 1 }), length(toset(["a"])), length([])]`, want: `[2, 2, 1, 1, 0]`},
	{name: "length", expr: `length(5)`, err: "must be a string"},
	{name: "log", expr: `log(16, 2)`, want: `4`},
	{name: "log", expr: `log(0, 2)`, err: "above 0"},
	{name: "log", expr: `log(2, 1)`, err: "base"},
	{name: "lookup", expr: `lookup({ a = "x" }, "a", "d")`, want: `"x"`},
	{name: "lookup", expr: `lookup(tomap({ a = "x" }), "b", "d")`, want: `"d"`},
	{name: "lookup", expr: `lookup(tomap({ a = "x" }), "a")`, want: `"x"`},
	{name: "lookup", expr: `lookup({ a = 1, b = "x" }, "a")`, want: `1`},
	{name: "lookup", expr: `lookup(tomap({ a = "x" }), "b")`, err: "there is no \"b\""},
	{name: "lookup", expr: `lookup({ a = "x" }, "b")`, err: "there is no \"b\""},
	{name: "lookup", expr: `lookup(["a"], "b")`, err: "must be a map"},
	{name: "lookup", expr: `lookup({ a = "x" }, "a", "b", "c")`, err: "at most one default"},
	{name: "lower", expr: `lower("ÀB")`, want: `"àb"`},
	{name: "matchkeys", expr: `matchkeys(["i1", "i2", "i3"], ["a", "b", "a"], ["a"])`, want: `["i1", "i3"]`},
	{name: "matchkeys", expr: `matchkeys(["i1"], ["a"], ["b"])`, want: `[]`},
	{name: "matchkeys", expr: `matchkeys(["i1"], ["a", "b"], ["b"])`, err: "as many keys"},
	{name: "max", expr: `max(3, 12, 9)`, want: `12`},
	{name: "md5", expr: `md5("hello world")`, want: `"5eb63bbbe01eeed093cb22bb8f5acdc3"`},
	{name: "merge", expr: `merge({ a = 1, b = 1 }, { b = 2 })`, want: `{ a = 1, b = 2 }`},
	{name: "merge", expr: `merge(null, "a")`, err: "must be a map or an object"},
	{name: "min", expr: `min(12, 3, 9)`, want: `3`},
	{name: "nonsensitive", expr: `nonsensitive(sensitive("a"))`, want: `"a"`},
	{name: "nonsensitive", expr: `nonsensitive("a")`, want: `"a"`},
	{name: "one", expr: `[one(["a"]), one([]), one(toset(["b"]))]`, want: `["a", null, "b"]`},
	{name: "one", expr: `one(tolist(["a", "b"]))`, err: "one element or none"},
	{name: "one", expr: `one(["a", 1])`, err: "one element or none"},
	{name: "one", expr: `one("a")`, err: "must be a list"},
	{name: "parseint", expr: `parseint("ff", 16)`, want: `255`},
	{name: "pow", expr: `pow(3, 2)`, want: `9`},
	{name: "range", expr: `range(1, 4)`, want: `[1, 2, 3]`},
	{name: "regex", expr: `regex("(?P<a>[a-z]+)", "53ab")`, want: `{ a = "ab" }`},
	{name: "regexall", expr: `regexall("[a-z]", "1a2b")`, want: `["a", "b"]`},
	{name: "replace", expr: `replace("1 + 2 + 3", "+", "-")`, want: `"1 - 2 - 3"`},
	{name: "replace", expr: `replace("hello world", "/w.*d/", "everybody")`, want: `"hello everybody"`},
	{name: "replace", expr: `replace("ab", "/(a)(b)/", "$2$1")`, want: `"ba"`},
	{name: "replace", expr: `replace("a/b", "/", "-")`, want: `"a-b"`},
	{name: "replace", expr: `replace("ab", "/(/", "x")`, err: "missing closing )"},
	{name: "reverse", expr: `reverse([1, 2, 3])`, want: `[3, 2, 1]`},
	{name: "rsadecrypt", expr: `rsadecrypt(ciphertext, key)`, want: `"open sesame"`},
	{name: "rsadecrypt", expr: `rsadecrypt("aaaa", key)`, err: "can't be decrypted"},
	{name: "rsadecrypt", expr: `rsadecrypt(ciphertext, "key")`, err: "PEM"},
	{name: "rsadecrypt", expr: `rsadecrypt(ciphertext, replace(key, "MII", "MIJ"))`, err: "RSA private key"},
	{name: "sensitive", expr: `nonsensitive(sensitive("a"))`, want: `"a"`},
	{name: "setintersection", expr: `setintersection(["a", "b"], ["b", "c"])`, want: `["b"]`},
	{name: "setproduct", expr: `setproduct(["a", "b"], [1])`, want: `[["a", 1], ["b", 1]]`},
	{name: "setproduct", expr: `setproduct(["a", "b"], [])`, want: `[]`},
	{name: "setsubtract", expr: `setsubtract(["a", "b"], ["b"])`, want: `["a"]`},
	{name: "setunion", expr: `setunion(["a"], ["b"])`, want: `["a", "b"]`},
	{name: "sha1", expr: `sha1("hello world")`, want: `"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed"`},
	{name: "sha256", expr: `sha256("hello world")`, want: `"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"`},
	{name: "sha512", expr: `substr(sha512("hello world"), 0, 16)`, want: `"309ecc489c12d6eb"`},
	{name: "signum", expr: `signum(-13)`, want: `-1`},
	{name: "slice", expr: `slice(["a", "b", "c"], 1, 2)`, want: `["b"]`},
	{name: "sort", expr: `sort(["b", "a"])`, want: `["a", "b"]`},
	{name: "split", expr: `split(",", "a,b")`, want: `["a", "b"]`},
	{name: "startswith", expr: `[startswith("hello", "he"), startswith("hello", "lo")]`, want: `[true, false]`},
	{name: "strcontains", expr: `[strcontains("hello", "ll"), strcontains("hello", "x")]`, want: `[true, false]`},
	{name: "strrev", expr: `strrev("abc")`, want: `"cba"`},
	{name: "substr", expr: `substr("hello", 1, 3)`, want: `"ell"`},
	{name: "sum", expr: `sum([1, 2.5, "3"])`, want: `6.5`},
	{name: "sum", expr: `sum([])`, err: "empty list"},
	{name: "sum", expr: `sum(["a"])`, err: "must be a number"},
	{name: "sum", expr: `sum({ a = 1 })`, err: "must be a list"},
	{name: "templatestring", expr: `templatestring("hi $${who}%%{ for n in list } $${upper(n)}%%{ endfor }", { who = "you", list = ["a", "b"] })`, want: `"hi you A B"`},
	{name: "templatestring", expr: `templatestring("$${1}", {})`, want: `"1"`},
	{name: "templatestring", expr: `templatestring("$${a}", {})`, err: "line 1, column 3 of the template"},
	{name: "templatestring", expr: `templatestring("$${", {})`, err: "of the template"},
	{name: "templatestring", expr: `templatestring("$${templatestring(\"\", {})}", {})`, err: "no function named"},
	{name: "templatestring", expr: `templatestring("", { "a b" = 1 })`, err: "no name of a variable"},
	{name: "templatestring", expr: `templatestring("", [])`, err: "must be a map"},
	{name: "textdecodebase64", expr: `textdecodebase64("SABlAGwAbABvAA==", "UTF-16LE")`, want: `"Hello"`},
	{name: "textdecodebase64", expr: `textdecodebase64("SABlAGwAbABvAA==", "utf-17")`, err: "no character encoding"},
	{name: "textdecodebase64", expr: `textdecodebase64("/w==", "UTF-8")`, err: "isn't text in UTF-8"},
	{name: "textdecodebase64", expr: `textdecodebase64("?", "UTF-8")`, err: "isn't base64"},
	{name: "textencodebase64", expr: `textencodebase64("Hello", "UTF-16LE")`, want: `"SABlAGwAbABvAA=="`},
	{name: "textencodebase64", expr: `textencodebase64("Hello", "UTF-8")`, want: `"SGVsbG8="`},
	{name: "textencodebase64", expr: `textencodebase64("日", "ISO-8859-1")`, err: "doesn't have"},
	{name: "timeadd", expr: `timeadd("2017-11-22T00:00:00Z", "10m")`, want: `"2017-11-22T00:10:00Z"`},
	{name: "timecmp", expr: `timecmp("2017-11-22T01:00:00+01:00", "2017-11-22T00:00:00Z")`, want: `0`},
	{name: "timecmp", expr: `timecmp("2017-11-22T00:00:00Z", "2017-11-22T00:00:01Z")`, want: `-1`},
	{name: "timecmp", expr: `timecmp("2017-11-22", "2017-11-22T00:00:01Z")`, err: "RFC 3339"},
	{name: "title", expr: `title("hello world")`, want: `"Hello World"`},
	{name: "tobool", expr: `tobool("true")`, want: `true`},
	{name: "tolist", expr: `tolist(toset(["b", "a"]))`, want: `["a", "b"]`},
	{name: "tomap", expr: `tomap({ a = 1, b = "x" })`, want: `{ a = "1", b = "x" }`},
	{name: "tonumber", expr: `tonumber("5.5")`, want: `5.5`},
	{name: "toset", expr: `toset(["b", "a", "b"])`, want: `["a", "b"]`},
	{name: "tostring", expr: `tostring(5)`, want: `"5"`},
	{name: "transpose", expr: `transpose({ a = ["1", "2"], b = ["2"] })`, want: `{ "1" = ["a"], "2" = ["a", "b"] }`},
	{name: "transpose", expr: `transpose({ a = null })`, err: "no null list"},
	{name: "transpose", expr: `transpose({ a = [null] })`, err: "no null string"},
	{name: "transpose", expr: `transpose({})`, want: `{}`},
	{name: "trim", expr: `trim("?!hello?!", "!?")`, want: `"hello"`},
	{name: "trimprefix", expr: `trimprefix("helloworld", "hello")`, want: `"world"`},
	{name: "trimspace", expr: `trimspace("  a\n")`, want: `"a"`},
	{name: "trimsuffix", expr: `trimsuffix("helloworld", "world")`, want: `"hello"`},
	{name: "try", expr: `try({}.a, "fallback")`, want: `"fallback"`},
	{name: "upper", expr: `upper("a")`, want: `"A"`},
	{name: "urlencode", expr: `urlencode("a b/ü")`, want: `"a+b%2F%C3%BC"`},
	{name: "uuidv5", expr: `uuidv5("dns", "www.terraform.io")`, want: `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`},
	{name: "uuidv5", expr: `uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.terraform.io")`, want: `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`},
	{name: "uuidv5", expr: `uuidv5("6ba7b8109dad11d180b400c04fd430c8", "a")`, err: "or a UUID"},
	{name: "values", expr: `values({ b = 1, a = 2 })`, want: `[2, 1]`},
	{name: "yamldecode", expr: `yamldecode("a: &x [1, b]\nc: *x\n")`, want: `{ a = [1, "b"], c = [1, "b"] }`},
	{name: "yamlencode", expr: `yamlencode({ a = ["x"] })`, want: `"\"a\":\n- \"x\"\n"`},
	{name: "zipmap", expr: `zipmap(["a", "b"], [1, 2])`, want: `{ a = 1, b = 2 }`},
	{name: "zipmap", expr: `zipmap([null], [1])`, err: "no null key"},

	// What would take the host's memory is refused, at once and in words.
	{name: "format", expr: `format("%1000000000d", 1)`, err: "over 1024"},
	{name: "format", expr: `format("%.1000000000f", 1)`, err: "over 1024"},
	{name: "format", expr: `format("%-099999999999999999999s", "a")`, err: "over 1024"},
	{name: "format", expr: `format("%1000.2000[1]s", "a")`, err: "over 1024"},
	{name: "format", expr: `format(join("", [for i in range(1000) : "%[1]s"]), mb)`, err: "larger than 4 MiB"},
	{name: "format", expr: `format(join("", [for i in range(1000) : "%[1]v"]), [mb])`, err: "larger than 4 MiB"},
	{name: "format", expr: `format(wide, 1)`, err: "larger than 4 MiB"},
	{name: "formatlist", expr: `formatlist("%s%s", mb, range(1000))`, err: "larger than 4 MiB"},
	{name: "formatlist", expr: `formatlist(wide, range(100))`, err: "larger than 4 MiB"},
	{name: "indent", expr: `indent(1000000000, "a\nb")`, err: "between 0 and 1024"},
	{name: "indent", expr: `indent(-1, "a\nb")`, err: "between 0 and 1024"},
	{name: "indent", expr: `indent(1000, lines)`, err: "larger than 4 MiB"},
	{name: "join", expr: `join(mb, range(1000))`, err: "larger than 4 MiB"},
	{name: "replace", expr: `replace(mb, "", mb)`, err: "larger than 4 MiB"},
	{name: "replace", expr: `replace(mb, "a", "12345")`, err: "larger than 4 MiB"},
	{name: "replace", expr: `replace(substr(mb, 0, 10000), "/a/", substr(mb, 0, 1000))`, err: "larger than 4 MiB"},
	{name: "replace", expr: `replace(mb, "/[^b]+/", "$0$0$0$0$0")`, err: "larger than 4 MiB"},
	{name: "regexall", expr: `regexall(join("", [for i in range(500) : "()"]), substr(mb, 0, 20000))`, err: "larger than 4 MiB"},
	{name: "setproduct", expr: `setproduct(range(1024), range(1024), range(1024), range(1024), range(1024), range(1024), range(1024))`, err: "too many combinations"},
	{name: "setproduct", expr: `setproduct(range(1024), range(1024))`, err: "too many combinations"},
	{name: "split", expr: `split("", mb)`, err: "larger than 4 MiB"},
	{name: "concat", expr: `concat([mb, mb], [mb, mb])`, err: "larger than 4 MiB"},
	{name: "jsonencode", expr: `jsonencode([for i in range(1000) : mb])`, err: "larger than 4 MiB"},
	{name: "jsondecode", expr: `jsondecode("1e600000000")`, err: "to be written out"},
	{name: "jsondecode", expr: `jsondecode(deep)`, err: "nested deeper"},
	{name: "tonumber", expr: `tonumber("1e-600000000")`, err: "to be written out"},
	{name: "tostring", expr: `tostring(1e600000000)`, err: "to be written out"},
	{name: "format", expr: `format("%d", 1e600000000)`, err: "to be written out"},
	{name: "pow", expr: `tostring(pow(10, 300))`, want: `tostring(pow(10, 300))`},
	{name: "yamldecode", expr: `yamldecode(deep)`, err: "nested deeper"},
	{name: "yamldecode", expr: `yamldecode(laughs)`, err: "larger than 4 MiB"},
	{name: "yamldecode", expr: `yamldecode("&a [*a]")`, err: "contains itself"},
	{name: "range", expr: `range(1000000)`, err: "more than 1024"},
	{name: "templatestring", expr: `templatestring(mb, {})`, err: "longer than 64 KiB"},
	{name: "upper", expr: `upper("${mb}${mb}${mb}${mb}${mb}")`, err: "larger than 4 MiB"},
}

func functionContext() *hcl.EvalContext {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 20; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [*a%[3]d,*a%[3]d,*a%[3]d,*a%[3]d,*a%[3]d,*a%[3]d]\n", i, i, i-1)
	}
	return &hcl.EvalContext{
		Functions: functions(),
		Variables: map[string]cty.Value{
			"key":        cty.StringVal(testKey),
			"ciphertext": cty.StringVal(testCiphertext),
			"mb":         cty.StringVal(strings.Repeat("a", 1<<20)),
			"wide":       cty.StringVal(strings.Repeat("%1000d%[1]d", 5000)),
			"lines":      cty.StringVal(strings.Repeat("\n", 10_000)),
			"deep":       cty.StringVal(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)),
			"laughs":     cty.StringVal(laughs.String()),
		},
	}
}

func parseExpr(t *testing.T, src string) hclsyntax.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("cannot parse %s: %s", src, diags)
	}
	return expr
}

func TestFunctions(t *testing.T) {
	ctx := functionContext()
	tested := map[string]bool{}
	for _, c := range functionCases {
		tested[c.name] = true
		t.Run(c.expr, func(t *testing.T) {
			t.Parallel()
			got, diags := parseExpr(t, c.expr).Value(ctx)
			if c.err != "" {
				if !diags.HasErrors() || !strings.Contains(diags.Error(), c.err) {
					t.Fatalf("diagnostics %v, want an error with %q", diags, c.err)
				}
				return
			}
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			want, diags := parseExpr(t, c.want).Value(ctx)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if plain(got) != plain(want) {
				t.Errorf("got %s, want %s", plain(got), plain(want))
			}
		})
	}
	for name := range ctx.Functions {
		if !tested[name] {
			t.Errorf("%s has no test case", name)
		}
	}
}

// What is refused as too large was refused before it was made.
func TestFunctionsRefuseBeforeTheyAllocate(t *testing.T) {
	ctx := functionContext()
	for _, c := range functionCases {
		if c.err == "" {
			continue
		}
		expr := parseExpr(t, c.expr)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = expr.Value(ctx)
		runtime.ReadMemStats(&after)
		if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 256 {
			t.Errorf("%s allocated %d MiB", c.expr, spent)
		}
	}
}

// plain prints a value so that lists, sets and tuples of the same elements agree.
func plain(v cty.Value) string {
	v, _ = v.UnmarkDeep()
	switch ty := v.Type(); {
	case v.IsNull():
		return "null"
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			parts = append(parts, plain(element))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case ty.IsMapType() || ty.IsObjectType():
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			k, element := it.Element()
			parts = append(parts, k.AsString()+" = "+plain(element))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case ty == cty.Number:
		return v.AsBigFloat().Text('g', 20)
	default:
		return fmt.Sprintf("%#v", v)
	}
}

// What is computed from a sensitive value is sensitive, whichever argument it is.
func TestFunctionsPropagateMarks(t *testing.T) {
	ctx := functionContext()
	marked := map[string]bool{}
	for _, c := range functionCases {
		if c.err != "" {
			continue
		}
		call, ok := parseExpr(t, c.expr).(*hclsyntax.FunctionCallExpr)
		if !ok || call.Name != c.name {
			continue
		}
		for i := range call.Args {
			t.Run(fmt.Sprintf("%s/%d", c.expr, i), func(t *testing.T) {
				got, err := callMarked(t, ctx, call, i)
				if err != nil {
					t.Fatal(err)
				}
				has := false
				_ = cty.Walk(got, func(_ cty.Path, v cty.Value) (bool, error) {
					has = has || v.HasMark(sensitiveMark)
					return true, nil
				})
				switch c.name {
				case "nonsensitive":
					if has {
						t.Error("is still sensitive")
					}
				case "coalesce", "coalescelist", "lookup", "try":
					// One argument may not matter; what matters is tested below.
				default:
					if !has {
						t.Errorf("%#v lost the mark", got)
					}
				}
			})
			marked[c.name] = true
		}
	}
	for _, c := range []string{
		`coalesce(sensitive(null), "b")`, `coalesce(sensitive(""), "b")`, `coalesce(sensitive("a"), "b")`,
		`coalescelist(sensitive(["a"]), ["b"])`, `lookup(sensitive({ a = 1 }), "a")`, `lookup({ a = sensitive(1) }, "a")`,
		`lookup(tomap({ a = sensitive("x") }), "a")`, `lookup({ a = 1 }, sensitive("a"))`, `lookup({ a = 1 }, "b", sensitive(2))`,
		`lookup(tomap({ a = "x" }), sensitive("a"))`, `lookup(sensitive(tomap({ a = "x" })), "a")`,
		`try(sensitive("a"), "b")`, `length(sensitive(["a"]))`, `jsonencode({ a = sensitive("x") })`, `rsadecrypt(ciphertext, key)`,
		`templatestring("$${a}", { a = sensitive("x") })`, `can(sensitive("a"))`, `element([sensitive("a")], 0)`, `index([sensitive("a")], "a")`,
	} {
		got, diags := parseExpr(t, c).Value(ctx)
		if diags.HasErrors() {
			t.Errorf("%s: %s", c, diags)
		} else if !got.HasMark(sensitiveMark) && c != `can(sensitive("a"))` {
			t.Errorf("%s lost the mark", c)
		}
	}
	for _, c := range []string{`length([sensitive("a")])`, `lookup({ a = sensitive(1), b = 2 }, "b")`, `issensitive([sensitive("a")])`} {
		got, diags := parseExpr(t, c).Value(ctx)
		if diags.HasErrors() {
			t.Errorf("%s: %s", c, diags)
		} else if got.HasMark(sensitiveMark) {
			t.Errorf("%s is sensitive, which nothing in it makes it", c)
		}
	}
}

func callMarked(t *testing.T, ctx *hcl.EvalContext, call *hclsyntax.FunctionCallExpr, sensitive int) (cty.Value, error) {
	t.Helper()
	child := ctx.NewChild()
	child.Variables = map[string]cty.Value{}
	src := call.Name + "("
	for i, arg := range call.Args {
		v, diags := arg.Value(ctx)
		if diags.HasErrors() {
			// try and can take expressions that fail.
			return cty.DynamicVal.Mark(sensitiveMark), nil
		}
		if i == sensitive {
			v = v.Mark(sensitiveMark)
		}
		name := fmt.Sprintf("arg%d", i)
		child.Variables[name] = v
		src += name + ", "
	}
	v, diags := parseExpr(t, strings.TrimSuffix(src, ", ")+")").Value(child)
	if diags.HasErrors() {
		return v, diags
	}
	return v, nil
}

// Unknown arguments give unknown results, never a panic.
func TestFunctionsTakeUnknowns(t *testing.T) {
	for name, f := range functions() {
		if name == "try" || name == "can" {
			continue
		}
		params := f.Params()
		if f.VarParam() != nil {
			params = append(params, *f.VarParam())
		}
		for _, ty := range []cty.Type{cty.String, cty.List(cty.String), cty.Map(cty.String), cty.DynamicPseudoType} {
			args := make([]cty.Value, len(params))
			for i, p := range params {
				if args[i] = cty.UnknownVal(p.Type); p.Type == cty.DynamicPseudoType {
					args[i] = cty.UnknownVal(ty)
				}
			}
			if _, err := f.Call(args); err != nil && strings.Contains(err.Error(), "cannot be called with these arguments") {
				t.Errorf("%s: %s", name, err)
			}
		}
		for i := range params {
			args := make([]cty.Value, len(params))
			for j, p := range params {
				if args[j] = cty.UnknownVal(p.Type); i == j {
					args[j] = cty.NullVal(p.Type)
				}
			}
			if _, err := f.Call(args); err != nil && strings.Contains(err.Error(), "cannot be called with these arguments") {
				t.Errorf("%s: %s", name, err)
			}
		}
	}
}

// Nulls and empty collections are errors or values, never a panic.
func TestFunctionsTakeOddValues(t *testing.T) {
	odd := []cty.Value{
		cty.NullVal(cty.DynamicPseudoType), cty.NullVal(cty.String), cty.NullVal(cty.List(cty.String)), cty.StringVal(""), cty.Zero, cty.NumberIntVal(-1),
		cty.PositiveInfinity, cty.NegativeInfinity, cty.True, cty.EmptyTupleVal, cty.EmptyObjectVal,
		cty.ListValEmpty(cty.String), cty.SetValEmpty(cty.String), cty.MapValEmpty(cty.String),
		cty.ListVal([]cty.Value{cty.NullVal(cty.String)}), cty.ListVal([]cty.Value{cty.UnknownVal(cty.String)}),
		cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType)}), cty.ObjectVal(map[string]cty.Value{"a": cty.NullVal(cty.String)}),
	}
	for name, f := range functions() {
		if name == "try" || name == "can" {
			continue
		}
		call := func(args ...cty.Value) {
			known := cty.TupleVal(args).IsWhollyKnown() // beside unknowns some panic, which bounded turns into an error
			if v, err := f.Call(args); err != nil && known && strings.Contains(err.Error(), "cannot be called with these arguments") {
				t.Errorf("%s(%#v): %s", name, args, err)
			} else if err == nil && v == cty.NilVal {
				t.Errorf("%s(%#v) has no value", name, args)
			}
		}
		n := len(f.Params())
		for _, a := range odd {
			if n <= 1 && converts(f, 0, &a) {
				call(a)
			}
			for _, b := range odd {
				a, b := a, b
				if (n == 2 || f.VarParam() != nil) && converts(f, 0, &a) && converts(f, 1, &b) {
					call(a, b)
				}
				for _, c := range odd {
					if n == 3 && converts(f, 0, &a) && converts(f, 1, &b) && converts(f, 2, &c) {
						call(a, b, c)
					}
				}
			}
		}
	}
}

// converts does what HCL does before a call.
func converts(f function.Function, i int, v *cty.Value) bool {
	var p function.Parameter
	if params := f.Params(); i < len(params) {
		p = params[i]
	} else if p2 := f.VarParam(); p2 != nil {
		p = *p2
	} else {
		return false
	}
	got, err := convert.Convert(*v, p.Type)
	if err == nil {
		*v = got
	}
	return err == nil
}

// The language has all of Terraform's functions, or says why not.
func TestFunctionsAreTerraforms(t *testing.T) {
	all := functions()
	terraform := strings.Fields(`abs abspath alltrue anytrue base64decode base64encode base64gzip base64sha256
		base64sha512 basename bcrypt can ceil chomp chunklist cidrhost cidrnetmask cidrsubnet cidrsubnets coalesce
		coalescelist compact concat contains csvdecode dirname distinct element endswith ephemeralasnull file
		filebase64 filebase64sha256 filebase64sha512 fileexists filemd5 fileset filesha1 filesha256 filesha512
		flatten floor format formatdate formatlist indent index issensitive join jsondecode jsonencode keys length
		list log lookup lower map matchkeys max md5 merge min nonsensitive one parseint pathexpand plantimestamp
		pow range regex regexall replace reverse rsadecrypt sensitive setintersection setproduct setsubtract
		setunion sha1 sha256 sha512 signum slice sort split startswith strcontains strrev substr sum templatefile
		templatestring textdecodebase64 textencodebase64 timeadd timecmp timestamp title tobool tolist tomap
		tonumber toset tostring transpose trim trimprefix trimspace trimsuffix try type upper urlencode uuid
		uuidv5 values yamldecode yamlencode zipmap`)
	for _, name := range terraform {
		_, has := all[name]
		if hint := missingFunctionHint(name); has == (hint != "") {
			t.Errorf("%s: in the language is %t, and the hint is %q", name, has, hint)
		}
	}
	if hint := missingFunctionHint("timestamp"); !strings.Contains(hint, "reads the clock: the same files must give the same desired state") {
		t.Errorf("timestamp's hint is %q", hint)
	}
	if hint := missingFunctionHint("frobnicate"); hint != "" {
		t.Errorf("a name that is nobody's has the hint %q", hint)
	}
}
