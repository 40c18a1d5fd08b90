package schema

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// CheckSyntax says what keeps one file, of the configuration or of variables, from being
// read at all. It is for whoever is about to hand the file to the parser: one that passes
// doesn't nest deeper than the parser's stack.
func CheckSyntax(src []byte, name string) hcl.Diagnostics {
	if diag := checkNesting(src, name); diag != nil {
		return hcl.Diagnostics{diag}
	}
	_, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	return diags
}
