package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"spaces/cmd/spaces/picture"
)

type graphFlags struct {
	format string
	out    string
	plan   bool
}

func (a *app) graphVerb() *cobra.Command {
	var f graphFlags
	c := &cobra.Command{
		Use:   "graph [FILE]",
		Short: "Draw what each space reaches, or what a plan changes of it",
		Long: `Draws the files as a picture: networks are areas with the spaces in them; a space on
several networks stands in the first, and a mark with its name in each other one. Lines
are grants (from the source, with the target and whether it can be written), sockets
(from who serves to who uses), published ports, and hosts that a list lets through.
Loosenings stand in the space that has them.

With --plan it compares with what runs, as "spaces plan" does: what is gained is red,
what is lost grey and dashed. With FILE, a plan that "spaces plan --out" kept, it draws
what that plan changes and asks no engine. It changes nothing but the file that --out
names.

--format=dot is for Graphviz, mermaid for Markdown, svg for a browser: light or dark as
the viewer is. The same input gives the same bytes.

Exit status: 0 drawn; 1 with --plan, the engine went away or didn't answer; 3 refused:
the configuration is invalid, FILE holds no plan, or, with --plan, what refuses a plan.`,
		Example: `  spaces graph --format=svg --out reach.svg
  spaces graph --plan --format=mermaid
  spaces graph review.json --format=dot`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.graph(c.Context(), f, args) },
	}
	c.Flags().StringVar(&f.format, "format", "dot", "draw as `dot`, mermaid or svg")
	c.Flags().StringVar(&f.out, "out", "", "write to `FILE` instead of standard output")
	c.Flags().BoolVar(&f.plan, "plan", false, "mark what a plan made now would change")
	return c
}

func (a *app) graph(ctx context.Context, f graphFlags, args []string) error {
	ctx, stop := a.cancellable(ctx)
	defer stop()
	draw := map[string]func(io.Writer, *picture.Picture) error{
		"dot": picture.DOT, "mermaid": picture.Mermaid,
		"svg": func(w io.Writer, p *picture.Picture) error { return picture.SVG(ctx, w, p) },
	}[f.format]
	switch {
	case draw == nil:
		return usage("Write --format=dot, --format=mermaid or --format=svg.", "There is no format %q.", f.format)
	case f.plan && len(args) > 0:
		return usage("Leave out one of the two.", "--plan makes a plan now, and %s is one that was kept.", args[0])
	}
	p, err := a.picture(ctx, f, args)
	if err != nil {
		return err
	}
	if f.out == "" {
		return draw(a.out, p)
	}
	if err := replaceFile(a.path(f.out), pictureMode, func(w *bufio.Writer) error { return draw(w, p) }); err != nil {
		return fmt.Errorf("cannot write the picture to %s: %w", f.out, bare(err))
	}
	return nil
}

// pictureMode is that of a picture's file: a picture is made to be shown.
const pictureMode fs.FileMode = 0o644

func (a *app) picture(ctx context.Context, f graphFlags, args []string) (*picture.Picture, error) {
	if len(args) == 1 {
		saved, err := a.savedPlan(args[0])
		if err != nil {
			return nil, err
		}
		plan, err := planOf(*saved)
		if err != nil {
			return nil, usage("Name a file that `spaces plan --out` wrote.", "%s holds no plan: %v.", args[0], err)
		}
		return picture.Planned(plan), nil
	}
	p, err := a.project()
	if err != nil {
		return nil, err
	}
	drawn := picture.Of(p.desired)
	if !f.plan {
		return drawn, nil
	}
	plan, err := a.planned(ctx, p, planFlags{})
	if err != nil {
		return nil, err
	}
	if bars := barred(plan, false); len(bars) > 0 {
		return nil, &problems{refusals: bars, sources: p.sources}
	}
	return drawn.Compare(plan), nil
}
