package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// The forms that plan, show and drift print their report in.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

// registerFormat gives a command --format, and --json as its short form.
func (a *app) registerFormat(c *cobra.Command) {
	registerJSON(c.Flags(), &a.json)
	c.Flags().StringVar(&a.format, "format", formatText, "print the report as `text`, json or markdown")
	c.PreRunE = a.chooseFormat
}

// chooseFormat refuses two flags that ask for different forms.
func (a *app) chooseFormat(c *cobra.Command, _ []string) error {
	a.verb = c.Name()
	if !slices.Contains([]string{formatText, formatJSON, formatMarkdown}, a.format) {
		return usage("Write --format=text, --format=json or --format=markdown.", "There is no format %q.", a.format)
	}
	both := c.Flags().Changed("json") && c.Flags().Changed("format")
	if both && a.json != (a.format == formatJSON) {
		return usage("Write one of them.", "--json=%t and --format=%s ask for different things.", a.json, a.format)
	}
	a.json = a.json || a.format == formatJSON
	return nil
}

func (a *app) markdown() bool { return a.format == formatMarkdown }

// asksFor tells whether a form was asked for, also where the command line couldn't be
// read as far as the flag that says so.
func (a *app) asksFor(format string) bool {
	args := a.env.Args
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if slices.Contains(args, "--format="+format) || format == formatJSON && (a.json || slices.Contains(args, "--json")) {
		return true
	}
	at := slices.Index(args, "--format")
	return at >= 0 && at+1 < len(args) && args[at+1] == format
}
