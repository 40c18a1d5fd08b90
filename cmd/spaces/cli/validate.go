package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"spaces/reconcile"
	"spaces/schema"
)

// validateReport is what validate --json prints.
type validateReport struct {
	FormatVersion int       `json:"format_version"`
	Valid         bool      `json:"valid"`
	Diagnostics   []message `json:"diagnostics"`
	// Assertions are judged where nothing else is wrong.
	Assertions []reconcile.RecordAssertion `json:"assertions"`
	// Unchecked says what takes a look at the host or the engine.
	Unchecked []string `json:"unchecked"`
}

func (a *app) validateVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Say whether the files are right, as far as files alone tell",
		Long: `Reads every .hcl file of the folder, auto.spacesvars and the variables files given,
and reports all that is wrong with them. Where nothing is, it judges the files'
assertions, with the paths as they are written. It looks neither at the host's files
nor at an engine, says so, and changes nothing.

With --json the report is {format_version, valid, diagnostics, assertions, unchecked};
a diagnostic is {severity, code, summary, detail, origin, snippet}, and an assertion as
in a plan.

Exit status: 0 valid (there may be warnings); 2 invalid, or an assertion is broken; 3
the command line can't be understood.`,
		Example: `  spaces validate
  spaces validate --var release=1.4.0 --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.validate() },
	}
	registerJSON(c.Flags(), &a.json)
	return c
}

func (a *app) validate() error {
	cfg, diags, err := a.load()
	if err != nil {
		return err
	}
	var judged []reconcile.Judgement
	if !diags.HasErrors() {
		judged = reconcile.Judge(reconcile.Resolve(cfg, reconcile.Roots{}), reconcile.HostFacts{})
	}
	broken := reconcile.BrokenAssertions(judged)
	valid := !diags.HasErrors() && len(broken) == 0
	unchecked := []string{
		"the host: whether grants' sources exist, secrets' owners and modes, builds' contexts",
		"the engine: what runs, which names are taken, which limits are enforced",
	}
	switch {
	case a.json:
		messages := append(diagnosticMessages(diags, cfg.Sources), refusalMessages(broken, cfg.Sources)...)
		a.printJSON(validateReport{formatVersion, valid, messages, reconcile.RecordAssertions(judged), unchecked})
	case valid:
		a.printDiagnostics(diags, cfg.Sources)
		fmt.Fprintf(a.out, "The configuration is valid: %s.\n\nNot checked, as only a plan looks there:\n", contents(cfg))
		for _, what := range unchecked {
			fmt.Fprintf(a.out, "  %s\n", what)
		}
	default:
		a.printDiagnostics(diags, cfg.Sources)
		a.printRefusals(broken, cfg.Sources, false)
		fmt.Fprintf(a.env.Stderr, "%s %s.\n", a.errColours().refused("The configuration is invalid:"),
			count(len(diags.Errs())+len(broken), "error", "errors"))
	}
	if !valid {
		return errDiffers
	}
	return nil
}

// contents counts what a configuration describes.
func contents(cfg *schema.Config) string {
	var parts []string
	for _, kind := range []struct {
		n         int
		one, many string
	}{
		{len(cfg.Spaces), "space", "spaces"},
		{len(cfg.Networks), "network", "networks"},
		{len(cfg.Egresses), "egress list", "egress lists"},
		{len(cfg.Grants), "grant", "grants"},
		{len(cfg.Images), "image", "images"},
		{len(cfg.Roles), "role", "roles"},
		{len(cfg.Assertions), "assertion that holds", "assertions that hold"},
	} {
		if kind.n > 0 {
			parts = append(parts, count(kind.n, kind.one, kind.many))
		}
	}
	if len(parts) == 0 {
		return "it describes nothing yet"
	}
	return strings.Join(parts, ", ")
}
