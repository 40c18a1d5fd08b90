// Package cli is the command line of spaces: one file a verb, each of which reads flags,
// asks the packages below for what it needs, and prints. It decides nothing about spaces
// itself.
//
// Main is the entry. The flow from files to a plan is in session.go, the carrying out of
// one in carry.go, every exit status in exit.go, and all text for people in render.go.
package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs one command and returns its exit status.
func Main(env Env) int {
	out := bufio.NewWriter(env.Stdout)
	a := &app{env: env, out: out, dir: env.Dir}
	root := a.root()
	root.SetArgs(append([]string{}, env.Args...)) // nil would mean os.Args
	root.SetIn(env.Stdin)
	root.SetOut(out)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		a.report(err)
	}
	// A report that didn't arrive whole must not look like one that did.
	if flushed := out.Flush(); flushed != nil && err == nil {
		err = fmt.Errorf("cannot write the report: %w", flushed)
		a.report(err)
	}
	return status(err)
}

// app is one run of the program.
type app struct {
	env Env
	out *bufio.Writer // standard output, flushed before anything is asked or waited for

	dirs    []string // -C, as given
	dir     string   // the folder that all paths start from
	inputs  inputs
	noColor bool
	json    bool
	format  string // of the commands that have --format
	verb    string // of those, which one runs
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "spaces",
		Short: "Run programs in containers that reach exactly what files say they do",
		Long: `Files describe containers ("spaces"), the networks they are on, what of this host
they are granted, and the hosts they may reach. spaces compares that with what a
rootless container engine really runs, shows the difference as a plan, and carries
out what you approved.

The environment says three things: SPACES_VAR_name sets a variable, SPACES_DATA_ROOT
says where state is kept, and NO_COLOR keeps colour away. DOCKER_HOST is never read:
the engine is the one that the files name.

Exit status, of every command:
  0  done, or nothing to do
  1  failed or busy; trying again may help
  2  differs (plan --detailed-exitcode, drift, verify, fmt --check), or, of validate
     alone, the configuration is invalid
  3  refused: a person must act first; each refusal has a code that never changes`,
		Example: `  spaces init demo           start a folder
  spaces -C demo plan        show what would be done
  spaces -C demo apply       do it, once you said yes`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Whatever isn't a verb is refused as usage, with what may have been meant.
		Args:              a.knownVerb,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.enter() },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SuggestionsMinimumDistance = 2
	root.PersistentFlags().StringArrayVarP(&a.dirs, "chdir", "C", nil, "run as if started in `DIR`; several are taken one after the other")
	a.inputs.register(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&a.noColor, "no-color", false, "print no colour; NO_COLOR in the environment says the same")
	root.PersistentFlags().BoolP("help", "h", false, "show how a command is used")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Sprintf("`%s --help` lists the flags.", c.CommandPath()), "%s", sentence(err.Error()))
	})
	root.AddCommand(
		a.initVerb(), a.validateVerb(), a.fmtVerb(),
		a.planVerb(), a.applyVerb(), a.watchVerb(), a.driftVerb(), a.destroyVerb(),
		a.showVerb(), a.statusVerb(), a.verifyVerb(), a.graphVerb(), a.logsVerb(), a.doctorVerb(),
		a.pauseVerb(), a.probeVerb(), a.versionVerb(), a.completionVerb(),
	)
	help := helpVerb(root)
	root.SetHelpCommand(help)
	root.AddCommand(help)
	for _, c := range root.Commands() {
		c.Args = asUsage(c, c.Args)
	}
	return root
}

// knownVerb refuses what stands where a verb should.
func (a *app) knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	fix := "`spaces help` lists the commands."
	if close := c.SuggestionsFor(args[0]); len(close) > 0 {
		fix = fmt.Sprintf("Did you mean %s? %s", strings.Join(close, " or "), fix)
	}
	return usage(fix, "There is no command %q.", args[0])
}

// asUsage makes a refusal of what a check of arguments says.
func asUsage(c *cobra.Command, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return usage(fmt.Sprintf("It is used as `%s`.", c.UseLine()), "%s", sentence(err.Error()))
		}
		return nil
	}
}

// sentence gives another's message a capital and a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
