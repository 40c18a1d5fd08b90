package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	root := (&app{}).root()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for what, text := range map[string]string{"Short": c.Short, "Long": c.Long, "Example": c.Example} {
			if text == "" {
				t.Errorf("%s has no %s", c.CommandPath(), what)
			}
		}
		if !strings.Contains(c.Long, "Exit status") {
			t.Errorf("%s doesn't say how it exits", c.CommandPath())
		}
		if !strings.Contains(c.Example, c.Name()) {
			t.Errorf("%s's example doesn't use it", c.CommandPath())
		}
		for _, line := range strings.Split(c.Long, "\n") {
			if n := len([]rune(line)); n > 88 {
				t.Errorf("%s's help has a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// A flag that nobody finds in a command's examples or text is one nobody learns of.
func TestEveryFlagIsInTheHelp(t *testing.T) {
	w := newWorld(t)
	for _, c := range (&app{}).root().Commands() {
		w.want(0, c.Name(), "--help")
		byFlag := w.out.String()
		w.want(0, "help", c.Name())
		if w.out.String() != byFlag {
			t.Errorf("help %s differs from %s --help", c.Name(), c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) { says(t, byFlag, "--"+f.Name) })
		says(t, byFlag, "Usage:", "Examples:", "Exit status")
	}
	w.want(0, "help")
	for _, c := range (&app{}).root().Commands() {
		says(t, w.out.String(), c.Name(), c.Short)
	}
}
