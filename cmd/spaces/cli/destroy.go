package cli

import (
	"context"

	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

type destroyFlags struct {
	carry    carryFlags
	volumes  bool
	project  string
	endpoint string
	part     part
}

func (a *app) destroyVerb() *cobra.Command {
	var f destroyFlags
	c := &cobra.Command{
		Use:   "destroy",
		Short: "Remove all that a project runs, once it is approved",
		Long: `Shows what of the project is on the engine, asks, and removes it: containers first, then
networks. Volumes stay, with what they hold, unless --volumes is given; images, the
data root and all granted folders stay in any case. A network that something foreign
is on stays too, and says so. What is protected keeps all from going, unless --exclude
leaves it out or --allow-destroy lets it go. --target removes an object and what can't
be without it; --exclude leaves one, and what it needs.

The project is that of the files, or, with --project and --endpoint, one whose files
are gone; such an engine may be rootful. A data root other than the default must be
named as it was when the project was applied: what another data root's project runs
isn't this one's.

With --json the report is {format_version, plan, result: {done, failed, skipped}}.

Exit status: 0 all is gone, or there was nothing; 1 failed, interrupted, declined, or
another apply holds the lock; 3 refused, or something stays (network-in-use,
volume-in-use) after the rest was removed.`,
		Example: `  spaces destroy
  spaces destroy --auto-approve --volumes
  spaces destroy --target space.web
  spaces destroy --project old --endpoint unix:///run/user/1000/docker.sock`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.destroy(c.Context(), f) },
	}
	f.carry.register(c.Flags())
	f.part.destroying(c.Flags())
	registerJSON(c.Flags(), &a.json)
	c.Flags().BoolVar(&f.volumes, "volumes", false, "remove the project's volumes too; what they hold is lost")
	c.Flags().StringVar(&f.project, "project", "", "the project called `NAME`, without its files; needs --endpoint")
	c.Flags().StringVar(&f.endpoint, "endpoint", "", "the engine that the project is on, at `URL`; needs --project")
	return c
}

func (a *app) destroy(ctx context.Context, f destroyFlags) error {
	c := carry{
		app: a, carryFlags: f.carry, verb: "destroy",
		options:  f.part.options(reconcile.Options{Destroy: true, RemoveVolumes: f.volumes}),
		question: "Destroy all of this? Only 'yes' goes ahead:",
	}
	if err := c.check(); err != nil {
		return err
	}
	p, err := a.doomed(f)
	if err != nil {
		return err
	}
	c.project = p
	if err := p.namesEngine(); err != nil {
		return err
	}
	return c.run(ctx)
}

// doomed is the project to destroy: the files', or one that is only named.
func (a *app) doomed(f destroyFlags) (*project, error) {
	switch {
	case f.project == "" && f.endpoint == "":
		return a.project()
	case f.project == "", f.endpoint == "":
		return nil, usage("Give both, or neither to destroy the project of the files here.",
			"A project without its files is named by --project and --endpoint.")
	case len(a.inputs.vars) > 0 || len(a.inputs.varFiles) > 0:
		return nil, usage("Leave --var and --var-file out.", "With --project no files are read, so no variables are either.")
	case !schema.ValidProject(f.project):
		return nil, usage("Write it as the files did: lower-case letters, digits and hyphens, 63 at most.", "%q can't be a project's name.", f.project)
	}
	host, err := a.env.Host()
	if err != nil {
		return nil, err
	}
	root, err := places.ResolveDataRoot(host, a.dataRootChoice(f.project))
	if err != nil {
		return nil, err
	}
	return &project{
		host: host, root: root, rootful: true,
		desired: reconcile.Desired{
			Project: f.project, Endpoint: f.endpoint, Mode: schema.ModeContainerized,
			DataRoot: string(root), Store: root.Store(),
		},
	}, nil
}
