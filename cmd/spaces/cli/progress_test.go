package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hinshun/vt10x"

	"spaces/reconcile"
)

// screen is a terminal that progress is shown on, and a clock that is moved by hand.
type screen struct {
	t    *testing.T
	term vt10x.Terminal
	now  time.Time
	p    *progress
	stop context.CancelFunc
}

// lineEnds does what a terminal's driver does with the end of a line.
type lineEnds struct{ w io.Writer }

func (l lineEnds) Write(b []byte) (int, error) {
	_, err := l.w.Write([]byte(strings.ReplaceAll(string(b), "\n", "\r\n")))
	return len(b), err
}

func newScreen(t *testing.T, columns, rows int, items ...reconcile.Item) *screen {
	s := &screen{t: t, term: vt10x.New(vt10x.WithSize(columns, rows)), now: time.Unix(1000, 0)}
	size := func() (int, int) { return s.term.Size() }
	a := &app{env: Env{Stdout: Stream{Writer: lineEnds{s.term}, Columns: columns, Size: size}}, out: bufio.NewWriter(lineEnds{s.term})}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	s.p = newProgress(ctx, a, &reconcile.Plan{Items: items}, func() time.Time { return s.now })
	return s
}

func (s *screen) event(phase reconcile.Phase, items ...string) {
	for _, item := range items {
		e := reconcile.Event{Item: item, Phase: phase}
		if phase == reconcile.PhaseFailed {
			e.Err = errors.New("it broke\nin two places")
		}
		s.p.event(e)
	}
}

// after lets time pass, and what runs be drawn anew.
func (s *screen) after(d time.Duration) {
	s.now = s.now.Add(d)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.draw("")
}

// shows compares all that stands on the screen.
func (s *screen) shows(want ...string) {
	s.t.Helper()
	var got []string
	for line := range strings.SplitSeq(strings.TrimRight(s.term.String(), " \n"), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("the screen shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func steps(n int) []reconcile.Item {
	items := []reconcile.Item{{ID: "pull image.ref", Step: reconcile.PullImage{Reference: "tool:1"}}}
	for i := range n - 1 {
		items = append(items, reconcile.Item{ID: fmt.Sprint("create space.s", i), Step: reconcile.CreateSpace{}})
	}
	return items
}

func TestProgress(t *testing.T) {
	s := newScreen(t, 40, 12, steps(20)...)
	s.event(reconcile.PhaseStarted, "pull image.ref", "create space.s0")
	s.shows("0 of 20", "  pull image.ref", "  create space.s0")
	s.after(3 * time.Second)
	s.p.output("tool:1", "layer \x1b[2J1 of many that are being fetched")
	s.shows("0 of 20, 3s", "  pull image.ref  3s  | layer ?[2J1 of…", "  create space.s0  3s")
	s.event(reconcile.PhaseDone, "create space.s0")
	s.event(reconcile.PhaseStarted, "create space.s1")
	s.after(62 * time.Second)
	s.shows("✓ create space.s0  3s",
		"1 of 20, 1m5s", "  pull image.ref  1m5s  | layer ?[2J1 …", "  create space.s1  1m2s")

	// More than there is room for are counted.
	s.event(reconcile.PhaseStarted, "create space.s2", "create space.s3", "create space.s4", "create space.s5")
	s.shows("✓ create space.s0  3s",
		"1 of 20, 1m5s", "  pull image.ref  1m5s  | layer ?[2J1 …", "  create space.s1  1m2s", "  create space.s2", "  create space.s3", "  and 2 more")

	// A failure, and then an interruption, are told for as long as something runs.
	s.event(reconcile.PhaseFailed, "create space.s3")
	s.event(reconcile.PhaseDone, "create space.s1", "create space.s2", "create space.s4")
	s.shows("✓ create space.s0  3s", "✗ create space.s3: it broke", "    in two places", "✓ create space.s1  1m2s", "✓ create space.s2", "✓ create space.s4",
		"5 of 20, 1m5s, 1 failed; stopping: wai…", "  pull image.ref  1m5s  | layer ?[2J1 …", "  create space.s5")
	s.stop()
	s.after(0)
	if !strings.Contains(s.term.String(), "5 of 20, 1m5s, 1 failed; stopping: wai…") {
		t.Error(s.term.String())
	}
	s.event(reconcile.PhaseDone, "pull image.ref", "create space.s5")
	s.event(reconcile.PhaseSkipped, "create space.s6")

	// Nothing of it is left, and what comes next begins a line.
	s.p.end()
	fmt.Fprintln(s.p.app.out, "next")
	s.p.app.flush()
	s.shows("✓ create space.s0  3s", "✗ create space.s3: it broke", "    in two places", "✓ create space.s1  1m2s", "✓ create space.s2", "✓ create space.s4",
		"✓ pull image.ref  1m5s", "✓ create space.s5", "next")
	if c := s.term.Cursor(); c.X != 0 {
		t.Errorf("the cursor is at %+v", c)
	}
}

// An interruption leaves nothing of what ran.
func TestProgressInterrupted(t *testing.T) {
	s := newScreen(t, 80, 12, steps(3)...)
	s.event(reconcile.PhaseStarted, "create space.s0")
	s.stop()
	fmt.Fprint(s.term, "^C") // the terminal's own echo
	s.after(0)
	s.shows("0 of 3; stopping: waiting for what runs, interrupt again to abort it", "  create space.s0")
	s.p.end()
	s.shows("")
}

// At the bottom of the screen what is printed scrolls.
func TestProgressScrolls(t *testing.T) {
	s := newScreen(t, 30, 5, steps(9)...)
	for i := range 8 {
		s.event(reconcile.PhaseStarted, fmt.Sprint("create space.s", i))
		if i > 0 {
			s.event(reconcile.PhaseDone, fmt.Sprint("create space.s", i-1))
		}
	}
	s.shows("✓ create space.s4", "✓ create space.s5", "✓ create space.s6", "7 of 9", "  create space.s7")
}

// Lines fit a terminal that has become narrower or wider, and wide letters count twice.
func TestProgressResized(t *testing.T) {
	s := newScreen(t, 40, 8, steps(3)...)
	s.event(reconcile.PhaseStarted, "pull image.ref")
	s.p.output("tool:1", "字字字字字字字字字字字字字字")
	s.shows("0 of 3", "  pull image.ref  | 字字字字字字字字字…")
	s.term.Resize(20, 8)
	s.after(0)
	if last := lineWidth(s.p.region.lines[1]); last > 19 {
		t.Errorf("a line of %d columns on a terminal of 20", last)
	}
	s.term.Resize(60, 8)
	s.after(0)
	if last := lineWidth(s.p.region.lines[1]); last < 45 {
		t.Errorf("a line of %d columns on a terminal of 60", last)
	}
}

// A terminal that broke the lines has more rows to clear.
func TestRegionBroken(t *testing.T) {
	var r region
	r.frame("", []string{"\x1b[1m" + strings.Repeat("x", 30) + "\x1b[0m", "y"}, 40)
	if got := r.frame("", nil, 10); got != "\r\x1b[3A\x1b[J" {
		t.Errorf("got %q", got)
	}
	if got := r.frame("z\n", nil, 10); got != "z\n" {
		t.Errorf("got %q", got)
	}
	// What is the same isn't drawn again, and what is another is drawn over it.
	r.frame("", []string{"a", "b"}, 10)
	if got := r.frame("", []string{"a", "b"}, 10); got != "" {
		t.Errorf("got %q", got)
	}
	if got := r.frame("", []string{"a"}, 10); got != "\r\x1b[1Aa\x1b[K\x1b[J" {
		t.Errorf("got %q", got)
	}
}

// Without a terminal, or on one that can't move its cursor, there are plain lines alone.
func TestProgressWithoutATerminal(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.step = func(_ context.Context, s reconcile.Step) error {
		if pull, is := s.(reconcile.PullImage); is {
			w.engine.options.Output(pull.Reference, "layer\x1b[2J 1")
		}
		return nil
	}
	for _, terminal := range []bool{false, true} {
		if terminal {
			w.env.Stdout.Columns = 40
			w.env.Environ = append(w.env.Environ, "TERM=dumb")
		}
		w.want(0, "apply", "--auto-approve", "--parallelism", "1")
		if strings.Contains(w.out.String(), "\x1b") || strings.Contains(w.out.String(), "of 3") {
			t.Errorf("printed %q", w.out.String())
		}
		says(t, w.out.String(), "@sha256:0000000000000000000000000000000000000000000000000000000000000000 | layer?[2J 1\n✓ pull image.ref\n✓ create network.inside\n✓ create space.web\n\nDone: 3 steps.\n")
	}
}

// NO_COLOR keeps colour away and nothing else.
func TestProgressWithoutColour(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.env.Stdout.Columns = 40
	w.env.Environ = append(w.env.Environ, "NO_COLOR=1")
	w.want(0, "apply", "--auto-approve", "--parallelism", "1")
	says(t, w.out.String(), "0 of 3\x1b[K\n  pull image.ref\x1b[K\x1b[J", "\r\x1b[1A\x1b[J✓ create space.web\n\nDone")
	if strings.Contains(w.out.String(), "m✓") {
		t.Errorf("painted: %q", w.out.String())
	}
}
