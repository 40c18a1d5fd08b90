package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func helpVerb(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command is used",
		Long: `Shows what a command reads and changes, its flags, its exit statuses and an example;
without a command, the list of them.

Exit status: 0; 3 for a command that isn't known.`,
		Example: `  spaces help
  spaces help apply`,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				for _, sub := range root.Commands() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage("`spaces help` lists the commands.", "There is no command %q.", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
