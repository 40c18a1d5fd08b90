//go:build engine

package testscripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
)

// What goes wrong in the midst of an apply or a destroy: a call that doesn't arrive, one
// whose answer doesn't, one that the engine fails, an interruption, a death. Whatever it
// is, the next apply without it finishes the work, the plan is empty then, nothing is
// left over and nobody else's container is touched.

func TestRootlessFaults(t *testing.T) { testFaults(t, rootless, allFaults) }
func TestRootfulFaults(t *testing.T)  { testFaults(t, rootful, lostAnswers) }
func TestRootlessKills(t *testing.T) {
	testKills(t, rootless, "first", "replace", "join", "network", "destroy")
}
func TestRootfulKills(t *testing.T)       { testKills(t, rootful, "first", "replace") }
func TestRootlessInterrupts(t *testing.T) { testInterrupts(t, rootless) }
func TestRootfulInterrupts(t *testing.T)  { testInterrupts(t, rootful) }

// cutFiles are the files of every project here; its variables make one state of another.
const cutFiles = `project = %q

variable "greeting" {
  type    = string
  default = "good day"
}

variable "restart" {
  type    = string
  default = "unless-stopped"
}

variable "both" {
  type    = bool
  default = false
}

variable "subnet" {
  type    = string
  default = null
}

network "inside" {
  egress = "none"
  subnet = var.subnet
}

network "second" {
  egress = "none"
}

space "web" {
  image    = image.payload
  command  = ["payload", "wait"]
  networks = var.both ? [network.inside, network.second] : [network.inside]
  restart  = var.restart
  env      = { GREETING = var.greeting }
}
`

// change is a way from one state to another: a verb each, and the variables.
type change struct {
	name     string
	from, to []string
}

var (
	up      = []string{"apply"}
	joined  = []string{"apply", "--var=restart=on-failure:3", "--var=both=true"}
	down    = []string{"destroy"}
	changes = []change{
		{"first", down, up},
		{"replace", up, []string{"apply", "--var=greeting=hello"}},
		{"join", up, joined},
		{"leave", joined, up},
		{"network", []string{"apply", "--var=subnet=10.213.%d.0/25"}, []string{"apply", "--var=subnet=10.213.%d.128/25"}},
		{"destroy", up, down},
	}
)

// cutting is a project that goes through a change, run by the program as a process.
type cutting struct {
	*lab
	name     string
	dir      string
	proxy    string // the proxy's program
	sockets  string // a folder with a short path
	bystands string // the bystander, as it was
}

func newCutting(t *testing.T, l *lab, name string, c change) (*cutting, change) {
	t.Helper()
	dir := t.TempDir()
	w := &cutting{
		lab: l, name: name, dir: dir,
		proxy: written(t, "faultproxy", faultproxy), sockets: shortDir(t),
	}
	must(t, l.wipe(name))
	t.Cleanup(func() {
		if err := l.wipe(name); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
	})
	must(t, os.WriteFile(filepath.Join(dir, "main.hcl"), fmt.Appendf(nil, cutFiles, name), 0o644))
	must(t, l.layMachine(dir, written(t, "payload", payload)))
	must(t, l.stranger(name+".else", "none"))
	w.bystands = w.bystander(t)
	// Tests that run at once don't share a subnet.
	c.from, c.to = slices.Clone(c.from), slices.Clone(c.to)
	for _, args := range [][]string{c.from, c.to} {
		for i, a := range args {
			args[i] = strings.Replace(a, "%d", fmt.Sprint(len(name)), 1)
		}
	}
	return w, c
}

func (w *cutting) bystander(t testing.TB) string {
	t.Helper()
	in := w.inspect(t, w.name+".else")
	return in.ID + " " + in.State.StartedAt + " " + in.State.Status
}

// command is the program, about to run with one step at a time.
func (w *cutting) command(endpoint string, args ...string) *exec.Cmd {
	args = append(slices.Clone(args), "--var=endpoint="+endpoint)
	if verb := args[0]; verb == "apply" || verb == "destroy" {
		args = append(args, "--auto-approve", "--json", "--parallelism=1")
	}
	c := exec.Command("spaces", args...)
	c.Dir = w.dir
	home := filepath.Join(w.dir, ".home")
	c.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+filepath.Join(home, "run"))
	return c
}

// end is what became of a command.
type end struct {
	args   []string
	status int // -1 where a signal ended it
	out    string
	err    string
}

func (e end) String() string {
	return fmt.Sprintf("$ spaces %s\nstatus %d\n--- stdout\n%s--- stderr\n%s", strings.Join(e.args, " "), e.status, e.out, e.err)
}

// result is what apply and destroy say became of the steps, nil where they didn't begin.
func (e end) result(t testing.TB) *outcome {
	t.Helper()
	var report struct {
		Plan   struct{ Items []json.RawMessage }
		Result *outcome
	}
	if err := json.Unmarshal([]byte(e.out), &report); err != nil {
		t.Fatalf("%v\n%s", err, e)
	}
	if report.Result != nil {
		report.Result.planned = len(report.Plan.Items)
	}
	return report.Result
}

type outcome struct {
	Done    []string
	Failed  []struct{ Item, Error string }
	Skipped []string

	Interrupted bool

	planned int
}

// whole tells whether each planned step is in one of the lists.
func (o *outcome) whole() bool {
	return len(o.Done)+len(o.Failed)+len(o.Skipped) == o.planned
}

func ending(t testing.TB, c *exec.Cmd, out, err *bytes.Buffer, ended error) end {
	t.Helper()
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) {
		t.Fatal(ended)
	}
	return end{c.Args[1:], c.ProcessState.ExitCode(), out.String(), err.String()}
}

func (w *cutting) run(t testing.TB, endpoint string, args ...string) end {
	t.Helper()
	var out, err bytes.Buffer
	c := w.command(endpoint, args...)
	c.Stdout, c.Stderr = &out, &err
	return ending(t, c, &out, &err, c.Run())
}

// do carries a state out, with nothing in the way.
func (w *cutting) do(t testing.TB, state []string) {
	t.Helper()
	if e := w.run(t, w.endpoint, state...); e.status != 0 {
		t.Fatal(e)
	}
}

// undo goes back to where a change starts. The image goes too where nothing is to be.
func (w *cutting) undo(t testing.TB, c change) {
	t.Helper()
	w.do(t, c.from)
	if c.from[0] == "destroy" {
		_, err := w.docker.ImageRemove(t.Context(), w.name+"-payload:latest", image.RemoveOptions{Force: true})
		if err != nil && !strings.Contains(err.Error(), "No such image") {
			t.Fatal(err)
		}
	}
}

// through runs the program with a proxy between it and the engine.
func (w *cutting) through(t testing.TB, state []string, faults ...string) (end, []string) {
	t.Helper()
	p := w.between(t, faults...)
	e := w.run(t, p.Endpoint, state...)
	p.stop()
	return e, p.calls()
}

func (w *cutting) between(t testing.TB, faults ...string) *faults {
	t.Helper()
	socket := filepath.Join(w.sockets, "e.sock")
	p, err := w.startFaults(w.proxy, socket, socket+".calls", faults...)
	must(t, err)
	t.Cleanup(p.stop)
	return p
}

// things are all that is on the engine by the project's name.
func (w *cutting) things(t testing.TB) string {
	t.Helper()
	lines, err := w.everything(w.name)
	must(t, err)
	return strings.Join(lines, "\n")
}

// finishes sees that what is left of a state that was cut short is named, and that the
// next apply comes to the state as if nothing had been.
func (w *cutting) finishes(t testing.TB, what string, state []string, want string) {
	t.Helper()
	left := w.things(t)
	if strings.Contains(left, w.name+"-web.") {
		plan := w.run(t, w.endpoint, append([]string{"plan"}, state[1:]...)...)
		if plan.status != 0 {
			t.Fatalf("%s: no plan can be made of what is left\n%s\n%s", what, left, plan)
		}
		for _, suffix := range []string{".new", ".old"} {
			name := w.name + "-web" + suffix
			if strings.Contains(left, name) && !strings.Contains(plan.out, name) {
				t.Errorf("%s: the plan doesn't name what is left\n%s\n%s", what, left, plan)
			}
		}
	}
	if next := w.run(t, w.endpoint, state...); next.status != 0 {
		t.Fatalf("%s: the next one fails\nleft:\n%s\n%s", what, left, next)
	}
	if state[0] == "apply" {
		again := w.run(t, w.endpoint, append([]string{"plan", "--detailed-exitcode"}, state[1:]...)...)
		if again.status != 0 {
			t.Fatalf("%s: the plan isn't empty\n%s", what, again)
		}
	}
	if got := w.things(t); got != want {
		t.Fatalf("%s: in the end there is\n%s\nand should be\n%s", what, got, want)
	}
	if now := w.bystander(t); now != w.bystands {
		t.Fatalf("%s: the bystander was touched: %s, and was %s", what, now, w.bystands)
	}
}

// goes goes through a change with nothing in the way, and returns what is there then.
func (w *cutting) goes(t testing.TB, c change) string {
	t.Helper()
	w.do(t, c.from)
	w.do(t, c.to)
	return w.things(t)
}

// call is one call of a change: the nth with its method.
type call struct {
	line   string
	method string
	nth    int
}

// numbered are calls with their places among those of their method. Those that are
// repeated while something is waited for count once.
func numbered(lines []string) []call {
	var out []call
	nth := map[string]int{}
	for i, line := range lines {
		method, _, _ := strings.Cut(line, " ")
		nth[method]++
		if i > 0 && line == lines[i-1] && !writing(line) {
			continue
		}
		out = append(out, call{line, method, nth[method]})
	}
	return out
}

// in tells whether that many calls with the method are among others. Paths hold ids,
// which are others each time.
func (c call) in(lines []string) bool {
	seen := 0
	for _, line := range lines {
		if strings.HasPrefix(line, c.method+" ") {
			seen++
		}
	}
	return seen >= c.nth
}

func (c call) fault(action, when string) string {
	return fmt.Sprintf("%s %s %d %s .", action, when, c.nth, c.method)
}

// allFaults are each way in which a call can go wrong; being late is tried on all at once. A read that is cut is asked again
// by Go's own client, so it fails; and a read has no effect whose answer could be lost.
func allFaults(c call) []string {
	if writing(c.line) {
		return []string{c.fault("cut", "before"), c.fault("cut", "after"), c.fault("500", "before")}
	}
	return []string{c.fault("500", "before")}
}

// lostAnswers are what is hardest to get right.
func lostAnswers(c call) []string {
	if writing(c.line) {
		return []string{c.fault("cut", "after")}
	}
	return nil
}

func testFaults(t *testing.T, kind string, of func(call) []string) {
	t.Parallel()
	l := openLab(t, kind)
	l.build(t, strangerImage)
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, c := newCutting(t, l, "faults-"+c.name, c)
			w.faultsOn(t, c, w.goes(t, c), of)
		})
	}
}

// faultsOn lets each call of a change go wrong in turn.
func (w *cutting) faultsOn(t *testing.T, c change, want string, of func(call) []string) {
	w.undo(t, c)
	e, lines := w.through(t, c.to)
	if e.status != 0 || e.result(t) == nil {
		t.Fatal(e)
	}
	calls := numbered(lines)
	first := slices.IndexFunc(calls, func(c call) bool { return writing(c.line) })
	if first < 0 {
		t.Fatalf("nothing is written:\n%s", strings.Join(lines, "\n"))
	}
	w.undo(t, c)
	if e, _ := w.through(t, c.to, "delay=50ms before 0 * ."); e.status != 0 {
		t.Errorf("%s: late isn't wrong\n%s", c.name, e)
	}
	n := 0
	for i, call := range calls {
		for _, fault := range of(call) {
			w.undo(t, c)
			what := fmt.Sprintf("%s: %s (%s)", c.name, fault, call.line)
			before := w.things(t)
			e, met := w.through(t, c.to, fault)
			w.judge(t, what, fault, e, call, met, want)
			if i < first && e.status != 0 {
				if now := w.things(t); now != before {
					t.Errorf("%s: nothing was carried out, and there is\n%s", what, now)
				}
				continue // nothing is left to finish
			}
			w.finishes(t, what, c.to, want)
			n++
		}
	}
	t.Logf("%s: %d calls, %d cut short", c.name, len(calls), n)
}

// judge looks at what the program says of a fault.
func (w *cutting) judge(t *testing.T, what, fault string, e end, c call, met []string, want string) {
	t.Helper()
	switch o := e.result(t); {
	case e.status == 0 && !c.in(met):
		// What is waited for came sooner this time.
	case e.status == 3 && o == nil && strings.Contains(e.out, "endpoint-not-rootless"):
		// What doesn't answer as an engine does to the first question is none.
		if !slices.Contains([]string{"HEAD /_ping", "GET /_ping"}, c.line) {
			t.Errorf("%s: that is a refusal only for the first question\n%s", what, e)
		}
	case e.status == 0 && !writing(c.line):
		// What was asked is only needed to say more, or was asked again.
	case e.status == 0 && strings.HasPrefix(fault, "cut after") && len(o.Failed) == 0 && o.whole():
		// It looked, and what it had asked for was so.
		if now := w.things(t); now != want {
			t.Errorf("%s: it says that nothing went wrong, and there is\n%s\n%s", what, now, e)
		}
	case e.status != 1:
		t.Errorf("%s: status %d\n%s", what, e.status, e)
	case o != nil && (len(o.Failed) == 0 || !o.whole()):
		t.Errorf("%s: not every step is listed\n%s", what, e)
	}
}

func testKills(t *testing.T, kind string, of ...string) {
	t.Parallel()
	l := openLab(t, kind)
	l.build(t, strangerImage)
	for _, c := range changes {
		if !slices.Contains(of, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, c := newCutting(t, l, "kills-"+c.name, c)
			w.killsOn(t, c, w.goes(t, c))
		})
	}
}

// killsOn kills the program as each call of a change that writes is about to reach the
// engine, and between two.
func (w *cutting) killsOn(t *testing.T, c change, want string) {
	w.undo(t, c)
	began := time.Now()
	e, lines := w.through(t, c.to)
	took := time.Since(began)
	if e.status != 0 {
		t.Fatal(e)
	}
	n := 0
	for _, call := range numbered(lines) {
		if !writing(call.line) {
			continue
		}
		w.undo(t, c)
		p := w.between(t, call.fault("delay=1m", "before"))
		program := w.start(t, p.Endpoint, c.to)
		until(t, call.line, func() bool { return call.in(p.calls()) })
		program.kill(t)
		p.stop()
		w.finishes(t, fmt.Sprintf("%s: killed before %s", c.name, call.line), c.to, want)
		n++
	}
	for i := range 3 {
		w.undo(t, c)
		program := w.start(t, w.endpoint, c.to)
		after := took * time.Duration(2*i+1) / 6
		time.Sleep(after)
		program.kill(t)
		w.finishes(t, fmt.Sprintf("%s: killed after %s", c.name, after), c.to, want)
		n++
	}
	t.Logf("%s: killed %d times", c.name, n)
}

// running is the program as it runs.
type running struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func (w *cutting) start(t testing.TB, endpoint string, args []string) *running {
	t.Helper()
	r := &running{Cmd: w.command(endpoint, args...)}
	r.Stdout, r.Stderr = &r.out, &r.err
	must(t, r.Start())
	t.Cleanup(func() {
		_ = r.Process.Kill()
	})
	return r
}

func (r *running) kill(t testing.TB) {
	t.Helper()
	_ = r.Process.Kill() // it may have ended
	_ = r.Wait()
}

func (r *running) wait(t testing.TB) end {
	t.Helper()
	return ending(t, r.Cmd, &r.out, &r.err, r.Wait())
}

// An interruption lets what runs end and starts nothing more; a second one cuts off what
// runs. Both say what became of each step.
func testInterrupts(t *testing.T, kind string) {
	t.Parallel()
	l := openLab(t, kind)
	l.build(t, strangerImage)
	for _, test := range []struct {
		name            string
		signals         []syscall.Signal
		done, failed    int
		made            string
		delay, contains string
	}{
		{"once", []syscall.Signal{syscall.SIGINT}, 1, 0, "network", "2s", ""},
		{"to end", []syscall.Signal{syscall.SIGTERM}, 1, 0, "network", "2s", ""},
		{"twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 0, 1, "", "1m", "aborted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w, c := newCutting(t, l, "interrupts-"+strings.ReplaceAll(test.name, " ", "-"), change{from: down, to: up})
			want := w.goes(t, c)
			w.do(t, down) // the image stays: the first step is a network
			p := w.between(t, "delay="+test.delay+" before 1 POST /networks/create")
			program := w.start(t, p.Endpoint, up)
			until(t, "the first step", func() bool { return slices.Contains(p.calls(), "POST /networks/create") })
			for _, s := range test.signals {
				must(t, program.Process.Signal(s))
				time.Sleep(100 * time.Millisecond) // two that come as one are one
			}
			e := program.wait(t)
			p.stop()
			o := e.result(t)
			if e.status != 1 || o == nil || !o.Interrupted || !o.whole() ||
				len(o.Done) != test.done || len(o.Failed) != test.failed || len(o.Skipped) == 0 {
				t.Errorf("not what was to be expected\n%s", e)
			}
			if o != nil && test.failed > 0 && !strings.Contains(o.Failed[0].Error, test.contains) {
				t.Errorf("what failed says %q", o.Failed[0].Error)
			}
			left := w.things(t)
			if strings.Contains(left, "container "+w.name+"-") || strings.Contains(left, "network") != (test.made != "") {
				t.Errorf("there is\n%s", left)
			}
			w.finishes(t, "interrupted", up, want)
		})
	}
}
