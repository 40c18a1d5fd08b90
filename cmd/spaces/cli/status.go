package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spaces/reconcile"
	"spaces/schema"
)

func (a *app) statusVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "List the project's spaces and what they are doing",
		Long: `Reads the files and asks the engine what of the project runs: each space with its
state, health, networks and published ports. What the files ask for and isn't there is
listed as missing; what is there and they don't ask for, as not in the files. Whether
what runs is as it should be is what "spaces drift" says. It changes nothing.

With --json the report is {format_version, project, endpoint, engine, spaces}; a space
is {space, container, kind, state, exit_code, health, networks, ports, in_files}.

Exit status: 0; 1 the engine went away or didn't answer; 3 refused: the configuration
is invalid or the engine can't be used.`,
		Example: `  spaces status
  spaces status --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runStatus(c.Context()) },
	}
	registerJSON(c.Flags(), &a.json)
	return c
}

// statusReport is what status --json prints.
type statusReport struct {
	FormatVersion int           `json:"format_version"`
	Project       string        `json:"project"`
	Endpoint      string        `json:"endpoint"`
	Engine        string        `json:"engine"`
	Spaces        []spaceStatus `json:"spaces"`
}

type spaceStatus struct {
	Space     string         `json:"space"`
	Container string         `json:"container"`
	Kind      reconcile.Kind `json:"kind"`
	// State is the engine's, or "missing".
	State    string   `json:"state"`
	ExitCode int      `json:"exit_code,omitempty"`
	Health   string   `json:"health,omitempty"`
	Networks []string `json:"networks"`
	Ports    []string `json:"ports"`
	InFiles  bool     `json:"in_files"`
}

// States that no engine has.
const (
	stateMissing = "missing"
	stateNotRun  = "not run by this release"
)

func (a *app) runStatus(ctx context.Context) error {
	ctx, stop := a.cancellable(ctx)
	defer stop()
	p, err := a.project()
	if err != nil {
		return err
	}
	actual, err := a.inspect(ctx, p)
	if err != nil {
		return err
	}
	report := statusReport{
		FormatVersion: formatVersion, Project: p.desired.Project, Endpoint: p.desired.Endpoint,
		Engine: actual.Engine.Name, Spaces: spaceStatuses(p.desired, actual),
	}
	if a.json {
		a.printJSON(report)
		return nil
	}
	a.printStatus(report)
	return nil
}

// inspect looks at the engine alone.
func (a *app) inspect(ctx context.Context, p *project) (reconcile.Actual, error) {
	if err := p.namesEngine(); err != nil {
		return reconcile.Actual{}, err
	}
	e, err := a.openOrRefuse(ctx, p)
	if err != nil {
		return reconcile.Actual{}, err
	}
	defer closeEngine(e)
	return e.Inspect(ctx, p.query(reconcile.HostFacts{}))
}

// openOrRefuse connects to the engine, and shows a refusal where the files name it.
func (a *app) openOrRefuse(ctx context.Context, p *project) (Places, error) {
	e, err := a.open(ctx, p)
	if r, refused := refusalIn(err); refused {
		r.Origin = p.endpoint
		return nil, &problems{refusals: []reconcile.Refusal{r}, sources: p.sources}
	}
	return e, err
}

// spaceStatuses are those of the files, in their order, then those the files don't have.
func spaceStatuses(d reconcile.Desired, actual reconcile.Actual) []spaceStatus {
	there := map[string]reconcile.ObservedContainer{}
	for _, c := range actual.Containers {
		there[c.Name] = c
	}
	out := []spaceStatus{}
	for _, s := range d.Spaces {
		name := s.Container.Name
		if c, ok := there[name]; ok {
			delete(there, name)
			out = append(out, statusOf(s.Address.String(), d.Project, c, true))
			continue
		}
		missing := spaceStatus{Space: s.Address.String(), Container: name, Kind: s.Kind, State: stateMissing, InFiles: true}
		if s.Kind != reconcile.KindSpace || s.Lifecycle != schema.LifecycleService {
			missing.State = stateNotRun
		}
		missing.Networks, missing.Ports = []string{}, []string{}
		out = append(out, missing)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		c := there[name]
		address := schema.Address{Kind: string(c.Kind()), Name: c.Labels[reconcile.LabelName], Key: c.Labels[reconcile.LabelKey]}
		out = append(out, statusOf(address.String(), d.Project, c, false))
	}
	return out
}

func statusOf(address, project string, c reconcile.ObservedContainer, inFiles bool) spaceStatus {
	s := spaceStatus{
		Space: address, Container: c.Name, Kind: c.Kind(), State: string(c.State), ExitCode: c.ExitCode,
		Health: c.Health, Networks: []string{}, Ports: []string{}, InFiles: inFiles,
	}
	for _, n := range slices.Sorted(maps.Keys(c.Networks)) {
		s.Networks = append(s.Networks, strings.TrimPrefix(n, project+"-"))
	}
	for _, port := range slices.Sorted(maps.Keys(c.Publish)) {
		s.Ports = append(s.Ports, c.Publish[port]+"->"+port)
	}
	return s
}

func (a *app) printStatus(r statusReport) {
	if len(r.Spaces) == 0 {
		fmt.Fprintf(a.out, "Project %s on %s: no spaces.\n", r.Project, r.Engine)
		return
	}
	fmt.Fprintf(a.out, "Project %s on %s\n\n", r.Project, r.Engine)
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SPACE\tSTATE\tHEALTH\tNETWORKS\tPORTS\tCONTAINER")
	for _, s := range r.Spaces {
		cells := []string{
			s.Space, s.stateText(), orDash(s.Health), orDash(strings.Join(s.Networks, ",")),
			orDash(strings.Join(s.Ports, ",")), s.Container,
		}
		fmt.Fprintln(t, printable(strings.Join(cells, "\t")))
	}
	_ = t.Flush() // what can't be written is found when all of it is
}

func (s spaceStatus) stateText() string {
	text := s.State
	if s.State == string(reconcile.StateExited) {
		text += fmt.Sprintf(" (%d)", s.ExitCode)
	}
	if !s.InFiles {
		text += ", not in the files"
	}
	return text
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
