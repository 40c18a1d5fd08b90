package cli

import (
	"context"

	"github.com/spf13/cobra"

	"spaces/reconcile"
)

type applyFlags struct {
	carry carryFlags
	part  part
}

func (a *app) applyVerb() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use:   "apply [FILE]",
		Short: "Make what runs what the files say, once it is approved",
		Long: `Plans as "spaces plan" does, shows the plan, asks, and carries it out. Only 'yes' goes
ahead. Nothing is created, stopped or removed that the plan didn't show: it is made
again once no other apply can run, and if it has moved meanwhile nothing is done.

With FILE, a plan that "spaces plan --out" kept and somebody reviewed, nothing is
asked: the plan is made again, with the same flags, and goes on only if it is the same.

--target, --exclude and --replace choose as they do for "spaces plan". What is protected
isn't removed nor, but for a space, made again; --allow-destroy lets it go.

Changes the engine's containers, networks, volumes and images of this project, the
folders that grants create, and the project's state in the data root. What isn't this
project's is never touched.

Independent steps run at once. After a failure no new step starts, those that run end,
and each step is listed as done, failed or skipped. One interruption (Ctrl-C, SIGTERM)
does the same; a second one aborts the steps that run.

With --json the report is {format_version, plan, result: {done, failed, skipped}}.

Exit status: 0 done, or no changes; 1 failed, interrupted, declined, or another apply
holds the lock; 3 refused, with nothing done: no terminal to ask, plan-stale,
applied-from-elsewhere, and all that refuses a plan; or a step was refused after
others were done.`,
		Example: `  spaces apply
  spaces apply --auto-approve --lock-timeout 1m
  spaces apply --target space.web
  spaces apply --replace 'space.worker["a"]'
  spaces plan --out review.json && spaces apply review.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.apply(c.Context(), f, args)
		},
	}
	f.carry.register(c.Flags())
	f.part.register(c.Flags())
	registerJSON(c.Flags(), &a.json)
	return c
}

func (a *app) apply(ctx context.Context, f applyFlags, args []string) error {
	c := carry{
		app: a, carryFlags: f.carry, verb: "apply", options: f.part.options(reconcile.Options{}),
		question: "Apply these steps? Only 'yes' goes ahead:",
	}
	if len(args) == 1 {
		saved, err := a.savedPlan(args[0])
		if err != nil {
			return err
		}
		c.saved = saved
	}
	if err := c.check(); err != nil {
		return err
	}
	p, err := a.project()
	if err != nil {
		return err
	}
	c.project = p
	return c.run(ctx)
}
