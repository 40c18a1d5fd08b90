package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

func (a *app) doctorVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what of this machine, its engine and the files would be in the way",
		Long: `Looks at the machine (cgroups, ids for containers, keys, ports, inotify, lingering,
git), at the engine, at the project's state and at the files, and says of each thing
whether it is fine, will be in the way, or would refuse a plan or its apply, and what
to do about it. What refuses is told in the words and by the code that a plan uses.

Without files in the folder it looks at the machine and at the engine where yours
usually is. An engine that is missing or broken is a finding like any other. It
changes nothing.

With --json the report is {format_version, project, findings, counts}; a finding is
{check, rating, code, text, fix, origin}, and a rating ok, unknown, warning or
refused.

Exit status: 0 nothing refuses, though there may be warnings; 1 it couldn't look, as
when the engine went away meanwhile; 3 something refuses.`,
		Example: `  spaces doctor
  spaces doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
	registerJSON(c.Flags(), &a.json)
	return c
}

// doctorReport is what doctor --json prints.
type doctorReport struct {
	FormatVersion int             `json:"format_version"`
	Project       string          `json:"project,omitempty"`
	Findings      []doctorFinding `json:"findings"`
	Counts        doctorCounts    `json:"counts"`
}

type doctorFinding struct {
	Check  string           `json:"check"`
	Rating reconcile.Rating `json:"rating"`
	Code   string           `json:"code,omitempty"`
	Text   string           `json:"text"`
	Fix    string           `json:"fix,omitempty"`
	Origin *schema.Origin   `json:"origin,omitempty"`
}

type doctorCounts struct {
	Fine    int `json:"ok"`
	Unknown int `json:"unknown"`
	Warning int `json:"warning"`
	Refused int `json:"refused"`
}

func (a *app) doctor(ctx context.Context) error {
	ctx, stop := a.cancellable(ctx)
	defer stop()
	host, err := a.env.Host()
	if err != nil {
		return err
	}
	d := doctor{app: a, host: host}
	if err := d.files(); err != nil {
		return err
	}
	if err := d.machine(ctx); err != nil {
		return interrupted(ctx, err)
	}
	d.print()
	if d.report().Counts.Refused > 0 {
		return &problems{reported: true}
	}
	return nil
}

// doctor is one look at everything.
type doctor struct {
	*app
	host     places.Host
	project  *project // nil without files that can be used
	findings []reconcile.Finding
}

// files looks at the configuration. Only a command line that can't be meant is an error.
func (d *doctor) files() error {
	const check = "configuration"
	files, err := filepath.Glob(filepath.Join(globbed(d.dir), "[^.]*.hcl"))
	if err != nil {
		return fmt.Errorf("cannot look for files in %s: %w", d.dir, err)
	}
	if len(files) == 0 {
		d.find(check, reconcile.RatingUnknown, fmt.Sprintf("there are no files in %s; the machine alone is looked at", d.dir))
		return nil
	}
	p, err := d.app.project()
	var wrong *problems
	switch {
	case err == nil:
		d.project = p
		d.find(check, reconcile.RatingFine, fmt.Sprintf("project %s, %s", p.desired.Project, count(len(files), "file", "files")))
		return nil
	case !errors.As(err, &wrong):
		return err
	}
	for _, m := range wrong.messages() {
		if m.Severity != severityError {
			continue
		}
		f := reconcile.Finding{Check: check, Rating: reconcile.RatingRefused, Code: m.Code, Text: m.Summary, Fix: m.Detail}
		if m.Origin != nil {
			f.Origin = *m.Origin
		}
		d.findings = append(d.findings, f)
	}
	return nil
}

// globbed is a folder's path with nothing in it that a pattern means.
func globbed(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// machine looks at the machine and the engine, and at what a plan comes to on them.
func (d *doctor) machine(ctx context.Context) error {
	m := places.SurveyMachine(ctx, d.host)
	if d.project != nil {
		places.SurveyDataRoot(&m, d.host, d.project.root)
	}
	e, err := d.engine(ctx, &m)
	if err != nil {
		return err
	}
	defer closeEngine(e)
	d.findings = append(d.findings, reconcile.Examine(m)...)
	if d.project == nil {
		if m.Engine.Known {
			d.refusals("engine", reconcile.ExamineEngine(m.Engine.Engine), "it holds what spaces ask of it")
		}
		return nil
	}
	if m.DataRootRefusal != nil {
		return nil // it has been told, and the key can't be read
	}
	v, err := d.plan(ctx, d.project, e, reconcile.Options{})
	if r, refused := refusalIn(err); refused {
		d.refusals("plan", []reconcile.Refusal{r}, "")
		return nil
	}
	if err != nil {
		return err
	}
	d.refusals("plan", v.plan.Refusals, "nothing refuses one")
	return nil
}

// engine opens the engine that the files name, or the caller's own without any.
func (d *doctor) engine(ctx context.Context, m *reconcile.MachineFacts) (Places, error) {
	o := places.OpenOptions{}
	switch {
	case d.project == nil:
		m.Endpoint = d.usualEndpoint()
	case d.project.desired.Mode != schema.ModeContainerized:
		return nil, nil // the plan says what that comes to
	default:
		m.Endpoint, o.AllowRootful = d.project.desired.Endpoint, d.project.rootful
	}
	e, err := d.env.Open(ctx, m.Endpoint, o)
	if r, refused := refusalIn(err); refused {
		if d.project != nil {
			r.Origin = d.project.endpoint
		}
		m.EndpointRefusal = &r
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Engine, err = e.Examine(ctx); err != nil {
		closeEngine(e)
		return nil, err
	}
	return e, nil
}

// usualEndpoint is where the caller's engine is, or would be.
func (d *doctor) usualEndpoint() string {
	all := usualEndpoints(d.host)
	for _, endpoint := range all {
		if _, err := os.Stat(strings.TrimPrefix(endpoint, "unix://")); err == nil {
			return endpoint
		}
	}
	return all[0]
}

func (d *doctor) find(check string, v reconcile.Rating, text string) {
	d.findings = append(d.findings, reconcile.Finding{Check: check, Rating: v, Text: text})
}

// refusals are findings, or one that says there are none.
func (d *doctor) refusals(check string, all []reconcile.Refusal, none string) {
	if len(all) == 0 {
		d.find(check, reconcile.RatingFine, none)
	}
	for _, r := range all {
		f := reconcile.FindingOf(check, r)
		if r.Stays {
			f.Rating = reconcile.RatingWarning
		}
		d.findings = append(d.findings, f)
	}
}

func (d *doctor) report() doctorReport {
	r := doctorReport{FormatVersion: formatVersion, Findings: []doctorFinding{}}
	if d.project != nil {
		r.Project = d.project.desired.Project
	}
	for _, f := range d.findings {
		r.Findings = append(r.Findings, doctorFinding{f.Check, f.Rating, f.Code, f.Text, f.Fix, originIn(f.Origin)})
		switch f.Rating {
		case reconcile.RatingFine:
			r.Counts.Fine++
		case reconcile.RatingWarning:
			r.Counts.Warning++
		case reconcile.RatingRefused:
			r.Counts.Refused++
		default:
			r.Counts.Unknown++
		}
	}
	return r
}

func (d *doctor) print() {
	r := d.report()
	if d.json {
		d.printJSON(r)
		return
	}
	colours := d.outColours()
	paints := map[reconcile.Rating]func(...any) string{
		reconcile.RatingFine: colours.gained, reconcile.RatingWarning: colours.changed,
		reconcile.RatingRefused: colours.refused, reconcile.RatingUnknown: colours.faint,
	}
	for _, f := range r.Findings {
		text := f.Text
		if f.Code != "" {
			text = f.Code + ": " + text
		}
		if f.Origin != nil {
			text += "  " + f.Origin.String()
		}
		fmt.Fprintf(d.out, "%s  %s\n", paints[f.Rating](fmt.Sprintf("%-7s", f.Rating)), printable(fmt.Sprintf("%-18s  %s", f.Check, text)))
		if f.Fix != "" {
			fmt.Fprintln(d.out, printable(besides(fixLines(f.Fix))))
		}
	}
	fmt.Fprintln(d.out, "\n"+r.Counts.String())
}

// besides sets what to do below the text that it belongs to.
func besides(text string) string {
	const by = "                             "
	return by + strings.ReplaceAll(text, "\n", "\n"+by+"  ")
}

func (c doctorCounts) String() string {
	if c.Refused == 0 && c.Warning == 0 {
		return "Nothing is in the way."
	}
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{c.Refused, "thing refuses", "things refuse"},
		{c.Warning, "may be in the way", "may be in the way"},
	} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.one, p.many))
		}
	}
	return strings.Join(parts, ", ") + "."
}
