package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"spaces/reconcile"
)

// versionReport is what version --json prints.
type versionReport struct {
	FormatVersion int    `json:"format_version"`
	Version       string `json:"version"`
	Revision      string `json:"revision,omitempty"`
	Modified      bool   `json:"modified,omitempty"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
	// PlanFormat and LabelFormat are the versions of what other releases must read.
	PlanFormat  int    `json:"plan_format"`
	LabelFormat string `json:"label_format"`
}

func (a *app) versionVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Say which spaces this is",
		Long: `Prints the version, the revision it was built from and the platform. It reads and
changes nothing.

Exit status: 0.`,
		Example: `  spaces version
  spaces version --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if a.json {
				a.printJSON(v)
				return nil
			}
			fmt.Fprintln(a.out, v)
			return nil
		},
	}
	registerJSON(c.Flags(), &a.json)
	return c
}

// thisVersion is what the linker wrote into the program.
func thisVersion() versionReport {
	v := versionReport{
		FormatVersion: formatVersion, Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		PlanFormat: reconcile.FormatVersion, LabelFormat: reconcile.LabelFormatVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionReport) String() string {
	revision := ""
	if v.Revision != "" {
		revision = " " + v.Revision
		if v.Modified {
			revision += " (modified)"
		}
	}
	return fmt.Sprintf("spaces %s%s %s %s", v.Version, revision, v.Go, v.Platform)
}
