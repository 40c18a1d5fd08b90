package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

type logsFlags struct {
	follow     bool
	since      string
	tail       int
	timestamps bool
}

func (a *app) logsVerb() *cobra.Command {
	var f logsFlags
	c := &cobra.Command{
		Use:   "logs [ADDRESS...]",
		Short: "Print what spaces have printed",
		Long: `Prints the logs of the spaces named, or of all of the project, merged in the order of
time, each line after the space that printed it. An address is as the files spell it,
space.web or space.web["a"]; "space." may be left out. A container of another project
or data root isn't read, whatever its name.

With --follow it goes on until it is interrupted: when a space is restarted or replaced,
the one that then has its name is read on, and a space that isn't there yet is waited
for.

What a container prints isn't trusted. Colours are left out, whatever else doesn't print
is shown as a question mark, on a terminal and in a pipe alike, and of a line longer
than 64 KiB the end is left out. The values of sensitive variables are shown as
(sensitive).

With --json each line is an object of its own, {at, space, container, stream, text,
cut}: the text is as it was printed, escaped, stream is stdout or stderr, and cut is how
many bytes of it were left out.

Exit status: 0, also when a follower is interrupted; 1 the engine went away or didn't
answer; 3 refused: no space has that address, the configuration is invalid or the engine
can't be used.`,
		Example: `  spaces logs
  spaces logs web worker --follow --tail 20
  spaces logs space.web --since 10m --timestamps
  spaces logs --json | jq 'select(.stream == "stderr")'`,
		RunE: func(c *cobra.Command, args []string) error { return a.logs(c.Context(), f, args) },
	}
	registerJSON(c.Flags(), &a.json)
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what is printed from now on")
	c.Flags().StringVar(&f.since, "since", "", "leave out what is older than `TIME`: 10m, or 2026-01-31T12:00:00Z")
	c.Flags().IntVar(&f.tail, "tail", -1, "begin with the last `N` lines of each space; all when negative")
	c.Flags().BoolVar(&f.timestamps, "timestamps", false, "print when each line was printed")
	return c
}

func (a *app) logs(ctx context.Context, f logsFlags, addresses []string) error {
	since, err := sinceTime(f.since, time.Now())
	if err != nil {
		return err
	}
	ctx, stop := a.cancellable(ctx)
	defer stop()
	p, err := a.project()
	if err != nil {
		return err
	}
	if err := p.namesEngine(); err != nil {
		return err
	}
	e, err := a.openOrRefuse(ctx, p)
	if err != nil {
		return err
	}
	defer closeEngine(e)
	actual, err := e.Inspect(ctx, p.query(reconcile.HostFacts{}))
	if err != nil {
		return interrupted(ctx, err)
	}
	chosen, err := chosenSpaces(spaceStatuses(p.desired, actual), addresses, p.desired.Project)
	if err != nil {
		return err
	}
	w := a.logWriter(chosen, f, p.desired)
	q := places.LogQuery{
		Project: p.desired.Project, Store: p.desired.Store, Since: since, Tail: f.tail, Follow: f.follow,
		Notice: w.notice,
	}
	for _, s := range chosen {
		q.Names = append(q.Names, s.Container)
	}
	return interrupted(ctx, e.Logs(ctx, q, w.line))
}

// sinceTime reads --since: a time, or how long ago.
func sinceTime(since string, now time.Time) (time.Time, error) {
	if since == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, since); err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(since)
	if err != nil || ago < 0 {
		return time.Time{}, usage("Write how long ago, such as --since 10m, or a time, such as --since 2026-01-31T12:00:00Z.",
			"%q is no time.", since)
	}
	return now.Add(-ago), nil
}

// chosenSpaces are those that the addresses name; all that can have a log without any.
func chosenSpaces(all []spaceStatus, addresses []string, project string) ([]spaceStatus, error) {
	if len(addresses) == 0 {
		return slices.DeleteFunc(all, func(s spaceStatus) bool { return s.State == stateNotRun }), nil
	}
	var chosen []spaceStatus
	for _, address := range addresses {
		at := slices.IndexFunc(all, func(s spaceStatus) bool {
			return slices.Contains([]string{s.Space, strings.TrimPrefix(s.Space, "space."), s.Container}, address)
		})
		if at < 0 {
			return nil, usage(nearestSpace(all, address), "Project %s has no space %q.", project, address)
		}
		if !slices.ContainsFunc(chosen, func(s spaceStatus) bool { return s.Container == all[at].Container }) {
			chosen = append(chosen, all[at])
		}
	}
	return chosen, nil
}

// nearestSpace says which space may have been meant.
func nearestSpace(all []spaceStatus, address string) string {
	const list = "`spaces status` lists them."
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Space
	}
	best := schema.Closest("space."+strings.TrimPrefix(address, "space."), names)
	if best == "" {
		return list
	}
	return fmt.Sprintf("Did you mean %s? %s", best, list)
}

// logWriter prints lines of logs.
type logWriter struct {
	app     *app
	flags   logsFlags
	spaces  map[string]string // by container
	prefix  map[string]string // painted, by container
	secrets *strings.Replacer

	mu sync.Mutex // of standard error, where notices come at once
}

func (a *app) logWriter(chosen []spaceStatus, f logsFlags, d reconcile.Desired) *logWriter {
	w := &logWriter{app: a, flags: f, spaces: map[string]string{}, prefix: map[string]string{}, secrets: sensitiveValues(d)}
	wide := 0
	for _, s := range chosen {
		wide = max(wide, len(strings.TrimPrefix(s.Space, "space.")))
	}
	paints := a.logColours()
	for i, s := range chosen {
		w.spaces[s.Container] = s.Space
		name := printable(strings.TrimPrefix(s.Space, "space."))
		w.prefix[s.Container] = paints[i%len(paints)](fmt.Sprintf("%-*s |", wide, name)) + " "
	}
	return w
}

// logColours tell spaces apart on a terminal.
func (a *app) logColours() []func(...any) string {
	if !a.colourful(a.env.Stdout) {
		return []func(...any) string{fmt.Sprint}
	}
	var out []func(...any) string
	for _, attribute := range []color.Attribute{
		color.FgCyan, color.FgYellow, color.FgGreen, color.FgMagenta, color.FgBlue,
		color.FgHiCyan, color.FgHiYellow, color.FgHiGreen, color.FgHiMagenta, color.FgHiBlue,
	} {
		c := color.New(attribute)
		c.EnableColor()
		out = append(out, c.SprintFunc())
	}
	return out
}

// shortestSecret is how long a line of a longer value is, in bytes, to be one by itself.
const shortestSecret = 8

// sensitiveValues hides what spaces were given by variables that are sensitive: a program
// may print what it was given.
func sensitiveValues(d reconcile.Desired) *strings.Replacer {
	values := map[string]bool{}
	for _, s := range d.Spaces {
		for _, v := range s.Container.Env {
			if v.Sensitive && strings.TrimSpace(v.Value) != "" {
				values[strings.TrimSpace(v.Value)] = true
				// A key of several lines is printed line by line, and a brace of them hides nothing.
				for line := range strings.Lines(v.Value) {
					if line = strings.TrimSpace(line); len(line) >= shortestSecret {
						values[line] = true
					}
				}
			}
		}
	}
	var pairs []string
	for value := range values {
		pairs = append(pairs, value)
	}
	// The longest first, or one that begins another would leave the rest of it.
	slices.SortFunc(pairs, func(a, b string) int { return len(b) - len(a) })
	for i := len(pairs); i > 0; i-- {
		pairs = slices.Insert(pairs, i, "(sensitive)")
	}
	return strings.NewReplacer(pairs...)
}

// logRecord is what logs --json prints of a line.
type logRecord struct {
	At        time.Time        `json:"at"`
	Space     string           `json:"space"`
	Container string           `json:"container"`
	Stream    places.LogStream `json:"stream"`
	Text      string           `json:"text"`
	Cut       int              `json:"cut,omitempty"`
}

func (w *logWriter) line(l places.LogLine) error {
	l.Text = w.secrets.Replace(l.Text)
	out := w.app.out
	if w.app.json {
		if err := writeJSONLine(out, logRecord{l.At, w.spaces[l.Container], l.Container, l.Stream, l.Text, l.Cut}); err != nil {
			return err
		}
	} else {
		out.WriteString(w.prefix[l.Container])
		if w.flags.timestamps {
			out.WriteString(l.At.UTC().Format("2006-01-02T15:04:05.000Z") + " ")
		}
		out.WriteString(harmless(l.Text))
		if l.Cut > 0 {
			fmt.Fprintf(out, " … (%d bytes left out)", l.Cut)
		}
		out.WriteByte('\n')
	}
	if !w.flags.follow {
		return nil // what can't be written is found when all of it is
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the logs: %w", err)
	}
	return nil
}

// notice says what became of a space, apart from what it printed.
func (w *logWriter) notice(container, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.app.env.Stderr, w.app.errColours().faint(printable(w.spaces[container]+": "+what)))
}

// harmless is a line that a program printed, with nothing in it that steers a terminal.
// What sets colours is left out, as so many programs do; the rest shows as question marks.
func harmless(text string) string {
	return printable(strings.ReplaceAll(withoutColours(text), "\n", "?"))
}

// withoutColours leaves out the sequences ESC [ … m of digits, colons and semicolons.
func withoutColours(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if after, sets := strings.CutPrefix(strings.TrimLeft(rest, "0123456789;:"), "m"); sets {
			s = after
			continue
		}
		b.WriteString("\x1b[")
		s = rest
	}
}
