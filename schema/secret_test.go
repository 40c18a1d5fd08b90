package schema

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// secret is in no file of these tests' folders, so that no message may hold it.
const secret = "HUNTER2"

// faultySecrets are expressions that fail, or that no attribute takes, over variables
// that hold the secret: s a string, l a list, m a map whose key and value are the
// secret, o an object of one, k an object with a key that isn't a secret, p the
// secret twice with a blank between, n a number that spells it.
var faultySecrets = []string{
	`{ for k in [var.s, var.s] : k => 1 }`,
	`{ for k in [local.s, local.s] : k => 1 }`,
	`{ for k in var.l : k => 1 }`,
	`{ for k in concat(var.l, [var.s]) : upper(lower(k)) => k }`,
	`{ for k, v in var.m : "x" => v, if v }`,
	`{ for k, v in var.m : v => k if k }`,
	`{ for k, v in var.m : [k] => v }`,
	`[ for k in var.l : k.field ]`,
	`[ for k in var.l : k["field"] ]`,
	`[ for k in var.l : k + 1 ]`,
	`[ for k in var.l : k if k ]`,
	`[ for k, v in var.m : { (k) = v }.missing ]`,
	`[ for k, v in var.m : { (k) = v }[v].missing ]`,
	`[ for k in var.l : grant.none[k] ]`,
	`[ for k in var.s : k ]`,
	`{ (var.s) = 1 }.missing`,
	`{ (var.s) = 1 }["missing"]`,
	`{ a = 1 }[var.s]`,
	`{ a = 1, (var.s) = 2 }[var.p]`,
	`{ HUNTER = 1 }[var.s]`,
	`[1][var.s]`,
	`[1][var.n]`,
	`tomap({ a = 1 })[var.s]`,
	`tomap({ (var.s) = 1 })["HUNTER"]`,
	`tomap({ (var.s) = 1 }).HUNTER`,
	`var.s.field`,
	`var.s["field"]`,
	`var.m["missing"]`,
	`var.m.missing`,
	`var.o.missing`,
	`var.o[var.s].missing`,
	`var.k.missing`,
	`var.k.a.missing`,
	`var.l[7]`,
	`var.l[var.s]`,
	`var.l.missing`,
	`var.s + 1`,
	`1 - var.s`,
	`-var.s`,
	`!var.s`,
	`var.s && true`,
	`var.s > 1`,
	`var.s ? 1 : 2`,
	`true ? var.o : { a = 1 }`,
	`true ? { a = 1 } : { (var.s) = "x" }`,
	`false ? [var.o] : [{ a = 1 }]`,
	`"a ${var.o} b"`,
	`"a ${var.l} b"`,
	`"%{ for x in var.s }${x}%{ endfor }"`,
	`"%{ if var.s }x%{ endif }"`,
	`{ (var.l) = 1 }`,
	`{ (var.o) = 1 }`,
	`var.s.*.a[var.s]`,
	`var.l[*].missing`,
	`[var.o][*].missing`,
	`merge(var.s, {})`,
	`merge(var.o, var.l)`,
	`zipmap([var.s, var.s], [1])`,
	`zipmap([var.s], [1]).missing`,
	`parseint(var.s, 10)`,
	`tonumber(var.s)`,
	`tobool(var.s)`,
	`tonumber(local.nested.a.b)`,
	`tolist([var.s, var.o])`,
	`tomap({ (var.s) = 1, b = [] })`,
	`toset(var.s)`,
	`regex("(", var.s)`,
	`regex(var.p, "x")`,
	`regex("${var.s}(", "x")`,
	`regex("nothing like it", var.s)`,
	`replace("x", "/${var.s}(/", "")`,
	`jsondecode(var.s)`,
	`jsondecode("{\"${var.s}\": }")`,
	`yamldecode("${var.s}: [")`,
	`yamldecode("a: *${var.s}")`,
	`base64decode(var.s)`,
	`csvdecode("a,a\n${var.s},\"")`,
	`csvdecode("${var.s},${var.s}\n1,2")`,
	`cidrsubnet(var.s, 8, 1)`,
	`cidrhost(var.s, 8)`,
	`formatdate(var.s, "2026-03-01T12:00:00Z")`,
	`formatdate("YYYY", var.s)`,
	`timeadd("2026-03-01T12:00:00Z", var.s)`,
	`timecmp(var.s, "2026-03-01T12:00:00Z")`,
	`uuidv5(var.s, "x")`,
	`format("%d", var.s)`,
	`format("%${var.s}", 1)`,
	`format(var.s, 1)`,
	`formatlist("%d", var.l)`,
	`lookup({ a = 1 }, var.s)`,
	`lookup(var.m, "missing")`,
	`lookup(var.o, "missing")`,
	`index(["a"], var.s)`,
	`element([], var.s)`,
	`element(var.l, var.s)`,
	`one([var.s, var.s])`,
	`slice(var.l, 0, 9)`,
	`sum(var.l)`,
	`max(var.s, 1)`,
	`substr(var.s, "a", 1)`,
	`textencodebase64("x", var.s)`,
	`textdecodebase64(var.s, "UTF-8")`,
	`rsadecrypt(var.s, var.p)`,
	`try(tonumber(var.s), parseint(var.s, 10))`,
	`try({ for k in [var.s, var.s] : k => 1 }, var.s.x)`,
	`templatestring("$${x + 1}", { x = var.s })`,
	`templatestring(var.p, {})`,
	`templatestring("$${${var.s}}", {})`,
	`templatestring("x", { (var.p) = 1 })`,
	`templatestring("$${nope(x)}", { x = var.s })`,
	`{ for k in [var.s, var.s] : k => tonumber(var.s) }`,
	`nonsensitive({ for k in [var.s, var.s] : k => 1 })`,
	`nonexistent(var.s)`,
	`grant.none[var.s]`,
	`grant.none["${var.s}"]`,
	`jsonencode([grant.none, var.s])`,
	`{ for k in keys(var.m) : k => 1, if true }`,
	`sensitive(var.s) + 1`,
	`coalesce(var.s, [])`,
	`coalescelist(var.s)`,
	`contains(var.s, 1)`,
	`setproduct(var.s)`,
	`transpose(var.m)`,
	`chunklist(var.l, var.s)`,
	`range(var.s)`,
	`pow(var.s, 2)`,
	`var.s...`,
	`flatten(var.s)`,
	`join(var.l, var.s)`,
	`sort(var.o)`,
}

// secretVariables declares the variables of faultySecrets, and secretValues sets them.
const (
	secretVariables = `project = "p"
variable "s" { sensitive = true }
variable "p" { sensitive = true }
variable "l" {
  type      = list(string)
  sensitive = true
}
variable "m" {
  type      = map(string)
  sensitive = true
}
variable "o" {
  type      = any
  sensitive = true
}
variable "k" {
  type      = object({ a = map(string) })
  sensitive = true
}
variable "n" { sensitive = true }
variable "key" {
  default   = ""
  sensitive = true
}
locals {
  s      = "${var.s}"
  nested = { a = { b = var.s, c = 1 } }
}
image "i" { binary = "spaces" }
grant "none" {
  for_each  = {}
  directory = "/srv"
  target    = "/srv"
}
`
	secretValues = `s = "HUNTER2"
p = "(HUNTER2 HUNTER2 $${"
l = ["HUNTER2", "HUNTER2"]
m = { HUNTER2 = "HUNTER2" }
o = { HUNTER2 = { HUNTER2 = "HUNTER2" } }
k = { a = { HUNTER2 = "HUNTER2" } }
n = "5.HUNTER2"
`
)

// secretPlaces are where an expression may stand.
var secretPlaces = []string{
	"locals { x = %s }\n",
	"locals {\n  x = %s\n  y = local.x.z\n}\n",
	"locals {\n  x = try(%[1]s, %[1]s)\n  y = { for k in [local.x, local.x] : k => 1 }\n}\n",
	"grant \"g\" {\n  for_each  = %s\n  directory = \"/srv\"\n  target    = each.key\n}\n",
	"grant \"g\" {\n  for_each  = { a = %s }\n  directory = each.value\n  target    = \"/x/${each.value + 1}\"\n}\n",
	"space \"g\" {\n  image = image.i\n  env   = %s\n}\n",
	"space \"g\" {\n  image = image.i\n  env   = { A = %s }\n}\n",
	"space \"g\" {\n  image = image.i\n  env   = { \"${%s}\" = 1 }\n}\n",
	"space \"g\" {\n  image   = image.i\n  command = %s\n  loosen \"secret_env\" {\n    value  = %[1]s\n    reason = %[1]s\n  }\n}\n",
	"network \"n\" { subnet = %s }\n",
	"data_root = %s\n",
	"image \"b\" {\n  build {\n    context = %s\n    args    = %[1]s\n  }\n}\n",
	"variable \"v\" {\n  default = 1\n  validation {\n    condition     = %s\n    error_message = %[1]s\n  }\n}\n",
}

func wantNoSecret(t *testing.T, src string, opts Options) (rendered string) {
	t.Helper()
	c, diags := Load(fstest.MapFS{"main.hcl": {Data: []byte(src)}}, opts)
	var out bytes.Buffer
	if err := WriteDiagnostics(&out, c.Sources, diags, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, d := range diags {
		fmt.Fprintf(&out, "%s: %s\n", d.Summary, d.Detail) // what --json shows
		if d.Subject != nil && d.Subject.Filename != "main.hcl" {
			out.Write(c.Sources[d.Subject.Filename])
		}
	}
	if i := strings.Index(out.String(), secret); i >= 0 {
		t.Errorf("%s\nsays the secret: …%s…", src, out.String()[max(0, i-200):min(out.Len(), i+60)])
	}
	return out.String()
}

// TestNoDiagnosticHoldsASecret fails expressions over sensitive variables wherever an
// expression may stand, and looks for the value in all that is said.
func TestNoDiagnosticHoldsASecret(t *testing.T) {
	opts := Options{Root: fixtureRoot, VarFiles: []VarFile{{"v.spacesvars", "/v.spacesvars", []byte(secretValues)}}}
	for _, expr := range faultySecrets {
		t.Run(expr, func(t *testing.T) {
			t.Parallel()
			said := false
			for _, place := range secretPlaces {
				src := secretVariables + fmt.Sprintf(place, expr)
				said = wantNoSecret(t, src, opts) != "" || said
			}
			if !said {
				t.Error("nothing is wrong with it")
			}
		})
	}
}

// What rsadecrypt gives is a secret though its arguments stand in the files.
func TestNoDiagnosticHoldsWhatWasDecrypted(t *testing.T) {
	const decrypted = "rsadecrypt(local.text, local.key)"
	for _, expr := range []string{
		"tonumber(" + decrypted + ")",
		"{ for k in [" + decrypted + ", " + decrypted + "] : k => 1 }",
		`templatestring("$${tonumber(rsadecrypt(text, key))}", { text = local.text, key = local.key })`,
	} {
		src := "project = \"p\"\nlocals {\n  text = \"" + testCiphertext + "\"\n  key = <<KEY\n" + testKey + "KEY\n  x = " + expr + "\n}\n"
		_, diags := Load(fstest.MapFS{"main.hcl": {Data: []byte(src)}}, Options{Root: fixtureRoot})
		if !diags.HasErrors() {
			t.Errorf("%s: nothing is wrong with it", expr)
		}
		for _, d := range diags {
			if c := Code(d); c != "sensitive-fault" && c != "sensitive-expression" {
				t.Errorf("%s: %s: %s", expr, d.Summary, d.Detail)
			}
		}
	}
}

// hiddenValues are variables files, and values given otherwise, that are wrong or may
// belong to a sensitive variable. Where they are wrong, a line of them isn't shown.
var hiddenValues = []string{
	`s = HUNTER2`,
	`s = "HUNTER2`,
	`s = "HUNTER2\H"`,
	`s = "HUNTER2 ${HUNTER2}"`,
	`s = HUNTER2("HUNTER2")`,
	`s = { for k in ["HUNTER2", "HUNTER2"] : k => 1 }`,
	`s = { HUNTER2 = 1 }.HUNTER2.x["HUNTER2"]`,
	`s = "HUNTER2" "HUNTER2"`,
	`s = <<HUNTER2`,
	`s = <<HUNTER2 HUNTER2`,
	`s = { a = "HUNTER2 }`,
	`s = 'HUNTER2'`,
	`s = "${"HUNTER2"`,
	`s = "%{ HUNTER2 }"`,
	`s = "%{ if true }%{ HUNTER2 }%{ endif HUNTER2 }"`,
	"s = \"HUNTER2\"\ns = \"HUNTER2\"",
	`s: "HUNTER2"`,
	`s "HUNTER2"`,
	`s "HUNTER2" {`,
	`s { HUNTER2 = 1 }`,
	`HUNTER2`,
	`"HUNTER2"`,
	`"HUNTER2" = 1`,
	`HUNTER2 HUNTER2 HUNTER2`,
	`s = [1, HUNTER2`,
	`s = 1HUNTER2`,
	`secret = "HUNTER2"`,
	`secret = { a = "HUNTER2" }`,
	"open = 1\nsecret = <<X\nHUNTER2\nX\n",
	`maybe = { a = "HUNTER2" }`,
	`maybe = HUNTER2`,
	`mistyped = { a = "HUNTER2" }`,
	`twice = { a = "HUNTER2" }`,
	`m = { HUNTER2 = "x" }`,
	`m = ["HUNTER2"]`,
	`m = null`,
	`o = { HUNTER2 = "x" }`,
	`o = { n = "HUNTER2" }`,
	`o = { n = { HUNTER2 = 1 } }`,
	`u = "HUNTER2"`,
	`u = { HUNTER2 = "x" }`,
	`l = [["HUNTER2"], "HUNTER2"]`,
	"s = " + strings.Repeat("[", 300) + `"HUNTER2"`,
	"s = \"HUNTER2\xff\"",
	"s = \"HUNTER2\"\nblock {\n  x = \"HUNTER2\"\n}\n",
}

func TestNoDiagnosticHoldsAGivenSecret(t *testing.T) {
	const src = `project = "p"
variable "s" {
  default   = ""
  sensitive = true
}
variable "maybe" {
  type      = string
  default   = ""
  sensitive = "perhaps"
}
variable "mistyped" {
  type      = string
  default   = ""
  sensitve  = true
}
variable "twice" {
  type    = string
  default = ""
}
variable "twice" {
  type      = string
  sensitive = true
}
variable "m" {
  type      = map(number)
  default   = {}
  sensitive = true
  nullable  = false
}
variable "o" {
  type      = object({ n = optional(number) })
  default   = {}
  sensitive = true
}
variable "u" {
  type      = set(map(bool))
  default   = []
  sensitive = true
}
variable "l" {
  type      = list(list(list(number)))
  default   = []
  sensitive = true
}
variable "open" { default = 1 }
locals {
  maybe    = [var.maybe][var.maybe]
  mistyped = [var.mistyped][var.mistyped]
  twice    = [var.twice][var.twice]
}
`
	for _, given := range hiddenValues {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			file := VarFile{"v.spacesvars", "/v.spacesvars", []byte(given)}
			wantNoSecret(t, src, Options{Root: fixtureRoot, VarFiles: []VarFile{file}})
			name, value, ok := strings.Cut(given, " = ")
			if !ok || strings.Contains(name, secret) {
				return
			}
			wantNoSecret(t, src, Options{Root: fixtureRoot, Vars: []Assignment{{name, value}}})
			wantNoSecret(t, src, Options{Root: fixtureRoot, Environ: []string{envPrefix + name + "=" + value}})
		})
	}
}
