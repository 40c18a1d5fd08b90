package cli

import "github.com/spf13/cobra"

func (a *app) pauseVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "pause",
		Short: "In a space: wait until asked to end",
		Long: `Waits for SIGTERM or SIGINT and ends. It is the command of a space that has nothing
else to run yet, in examples and tests. It reads and changes nothing.

Exit status: 0 once asked to end.`,
		Example: `  space "idle" {
    image   = image.core
    command = ["spaces", "pause"]
  }`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signals, release := a.signals()
			defer release()
			<-signals
			return nil
		},
	}
}
