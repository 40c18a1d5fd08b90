package cli

import "github.com/spf13/cobra"

func (a *app) completionVerb() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a shell's completion script",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Long: `Prints a script that lets a shell complete commands and flags. It reads and changes
nothing.

Exit status: 0; 3 for a shell that isn't known.`,
		Example: `  source <(spaces completion bash)
  spaces completion zsh > "${fpath[1]}/_spaces"
  spaces completion fish > ~/.config/fish/completions/spaces.fish
  spaces completion powershell | Out-String | Invoke-Expression`,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
		},
	}
}
