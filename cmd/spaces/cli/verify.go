package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

// verify is one verification.
type verify struct {
	*app
	space       string
	lockTimeout time.Duration
}

func (a *app) verifyVerb() *cobra.Command {
	v := verify{app: a}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Show that the kernel enforces what the files say",
		Long: `Looks at each space that runs and compares what the kernel says with what the files do,
loosenings and accepted refusals included: capabilities, new privileges, seccomp,
namespaces, users, the root file system, every mount with its source, limits. From
inside each space's networks, a probe looks what can be reached: a container of this
very program, hardened as a space is, that is there for a few seconds. Published ports
are tried at all of this host's addresses. docs/verify.md says what each check proves.

It changes nothing of the project. It waits for no apply and lets none run meanwhile,
and leaves the probe's image, spaces-probe, on the engine.

A check holds, or differs; what couldn't be looked at differs too. It is accepted where
the engine doesn't hold it and the files accept that, and unproven where nothing on
this engine could tell.

With --json the report is {format_version, project, endpoint, engine, spaces, counts,
refusals}; a space is {space, container, checks}, a check {check, verdict, want, got,
origin}.

Exit status: 0 everything holds; 1 the engine went away, or an apply is under way; 2 a
difference; 3 refused, as plan is.`,
		Example: `  spaces verify
  spaces verify --space space.web --json
  spaces verify --lock-timeout 30s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c.Context()) },
	}
	registerJSON(c.Flags(), &a.json)
	c.Flags().StringVar(&v.space, "space", "", "look at the space with this `ADDRESS` alone, such as space.web")
	c.Flags().DurationVar(&v.lockTimeout, "lock-timeout", 0, "how long, `DURATION`, to wait for an apply to end")
	return c
}

// verifyReport is what verify --json prints.
type verifyReport struct {
	FormatVersion int                       `json:"format_version"`
	Project       string                    `json:"project"`
	Endpoint      string                    `json:"endpoint"`
	Engine        string                    `json:"engine"`
	Spaces        []verifiedSpace           `json:"spaces"`
	Counts        verifyCounts              `json:"counts"`
	Refusals      []reconcile.RecordRefusal `json:"refusals"`
}

type verifiedSpace struct {
	Space     string        `json:"space"`
	Container string        `json:"container"`
	Checks    []verifyCheck `json:"checks"`
}

type verifyCheck struct {
	Check   string            `json:"check"`
	Verdict reconcile.Verdict `json:"verdict"`
	Want    string            `json:"want"`
	Got     string            `json:"got"`
	Origin  *schema.Origin    `json:"origin,omitempty"`
}

type verifyCounts struct {
	Holds    int `json:"holds"`
	Differs  int `json:"differs"`
	Accepted int `json:"accepted"`
	Unproven int `json:"unproven"`
}

func (v *verify) run(ctx context.Context) error {
	if err := checkLockTimeout(v.lockTimeout); err != nil {
		return err
	}
	ctx, stop := v.cancellable(ctx)
	defer stop()
	p, err := v.project()
	if err != nil {
		return err
	}
	if err := p.namesEngine(); err != nil {
		return err
	}
	// While an apply runs, nothing is as it will be; and of two verifications, each would
	// take the other's probes for left behind.
	lock, err := p.lock(ctx, p.root.ApplyLock(), "verify", v.lockTimeout)
	if err != nil {
		return err
	}
	defer lock.Release()
	e, seen, err := v.look(ctx, p, reconcile.Options{})
	if err != nil {
		return err
	}
	defer closeEngine(e)
	proofs := reconcile.Prove(p.desired, seen.facts, seen.actual)
	if v.space != "" {
		proofs = slices.DeleteFunc(proofs, func(p reconcile.Proof) bool { return p.Subject != v.space })
		if len(proofs) == 0 {
			return usage("`spaces status` lists the spaces.", "There is no space %s to verify.", v.space)
		}
	}
	evidence, err := e.Evidence(ctx, proofs, places.EvidenceOptions{
		Project: p.desired.Project, Store: p.desired.Store, Host: p.host, Actual: seen.actual,
	})
	if err != nil {
		return interrupted(ctx, err)
	}
	return v.conclude(p, seen, verified(proofs, evidence))
}

func verified(proofs []reconcile.Proof, evidence []reconcile.Evidence) []verifiedSpace {
	out := []verifiedSpace{}
	for i, p := range proofs {
		s := verifiedSpace{Space: p.Subject, Container: p.Container.Name, Checks: []verifyCheck{}}
		for _, c := range p.Judge(evidence[i]) {
			s.Checks = append(s.Checks, verifyCheck{c.Name, c.Verdict, c.Want, c.Got, originIn(c.Origin)})
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b verifiedSpace) int { return strings.Compare(a.Space, b.Space) })
	return out
}

func countVerdicts(spaces []verifiedSpace) verifyCounts {
	var n verifyCounts
	for _, s := range spaces {
		for _, c := range s.Checks {
			switch c.Verdict {
			case reconcile.VerdictHolds:
				n.Holds++
			case reconcile.VerdictAccepted:
				n.Accepted++
			case reconcile.VerdictUnproven:
				n.Unproven++
			default:
				n.Differs++
			}
		}
	}
	return n
}

// conclude reports. What the plan refuses, a verification can't overlook.
func (v *verify) conclude(p *project, seen *view, spaces []verifiedSpace) error {
	counts := countVerdicts(spaces)
	bars := barred(seen.plan, false)
	if v.json {
		r := seen.plan.Record()
		v.printJSON(verifyReport{formatVersion, r.Project, r.Endpoint, r.Engine, spaces, counts, r.Refusals})
	} else {
		v.print(spaces, counts)
	}
	switch {
	case len(bars) > 0:
		return &problems{refusals: bars, sources: p.sources, reported: v.json}
	case counts.Differs > 0:
		return errDiffers
	}
	return nil
}

// print is a table a space: what holds in a line each, what doesn't with what was found.
func (v *verify) print(spaces []verifiedSpace, counts verifyCounts) {
	colours := v.outColours()
	for _, s := range spaces {
		fmt.Fprintln(v.out, colours.title(printable(s.Space)))
		var b strings.Builder
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, c := range s.Checks {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", c.Verdict, c.Check, oneLine(c.text()))
		}
		_ = t.Flush() // a strings.Builder takes everything
		for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
			fmt.Fprintln(v.out, colours.verdict(s.Checks[i].Verdict, line))
		}
		fmt.Fprintln(v.out)
	}
	fmt.Fprintln(v.out, counts.summary(len(spaces)))
}

// oneLine keeps what a space named itself, a process or a path, in its cell.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "?", "\t", "?").Replace(printable(s))
}

// text is what is so and, where it isn't what was asked for, what that was and where.
func (c verifyCheck) text() string {
	if c.Got == c.Want {
		return c.Want
	}
	text := c.Got
	if c.Verdict != reconcile.VerdictHolds {
		text += " (asked: " + c.Want + ")"
	}
	if c.Verdict == reconcile.VerdictDiffers && c.Origin != nil {
		text += "  " + c.Origin.String()
	}
	return text
}

func (n verifyCounts) summary(spaces int) string {
	if spaces == 0 {
		return "Nothing runs that could be verified."
	}
	text := fmt.Sprintf("%s in %s: %d hold, %d differ", count(n.Holds+n.Differs+n.Accepted+n.Unproven, "check", "checks"),
		count(spaces, "space", "spaces"), n.Holds, n.Differs)
	if n.Accepted > 0 {
		text += fmt.Sprintf(", %d accepted", n.Accepted)
	}
	if n.Unproven > 0 {
		text += fmt.Sprintf(", %d unproven", n.Unproven)
	}
	return text + "."
}
