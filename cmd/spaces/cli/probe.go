package cli

import (
	"github.com/spf13/cobra"

	"spaces/places/probe"
)

func (a *app) probeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "probe",
		Short: "In a space's networks: look what can be reached",
		Long: `Reads one line of JSON from standard input that says what to try, and prints as JSON
what came of it: names, connections, routes. "spaces verify" runs it in a container of
its own, in the networks of a space, and it ends when standard input does. It changes
nothing.

Exit status: 0; 1 it could not look.`,
		Example: `  spaces verify              runs "spaces probe" once for each space`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return probe.Serve(c.Context(), a.env.Stdin, a.out)
		},
	}
}
