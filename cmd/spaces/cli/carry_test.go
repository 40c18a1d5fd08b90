package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spaces/places"
	"spaces/reconcile"
)

// stepsOfSmall are what makes the small configuration on an engine with nothing on it.
var stepsOfSmall = []string{"create_network", "create_space", "pull_image"}

func sortedSteps(w *world) []string { return slices.Sorted(slices.Values(w.engine.steps)) }

func TestApplyAsks(t *testing.T) {
	const question = "Apply these steps? Only 'yes' goes ahead: "
	for name, c := range map[string]struct {
		answer string
		want   int
	}{
		"yes":               {"yes\n", 0},
		"yes, with spaces":  {"  yes \n", 0},
		"yes, without line": {"yes", 0},
		"y":                 {"y\n", 1},
		"YES":               {"YES\n", 1},
		"no":                {"no\n", 1},
		"nothing":           {"\n", 1},
		"end of input":      {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "main.hcl", small)
			w.answers(c.answer)
			w.want(c.want, "apply")
			says(t, w.out.String(), "+ create space.web", "Plan: 3 to create")
			says(t, w.err.String(), question)
			if c.want == 0 {
				if !slices.Equal(sortedSteps(w), stepsOfSmall) {
					t.Errorf("steps %v, want %v", w.engine.steps, stepsOfSmall)
				}
				says(t, w.out.String(), "✓ create space.web", "Done: 3 steps.")
				return
			}
			if len(w.engine.steps) > 0 {
				t.Errorf("steps ran: %v", w.engine.steps)
			}
			if _, err := os.Stat(w.dataRoot()); err == nil {
				t.Error("a declined apply made the data root")
			}
		})
	}
}

func TestApplyLeavesItsMark(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "apply", "--auto-approve")
	source, err := os.ReadFile(filepath.Join(w.dataRoot(), "state/source"))
	if err != nil || strings.TrimSpace(string(source)) != w.env.Dir {
		t.Errorf("source is %q (%v), want %s", source, err, w.env.Dir)
	}
	if w.engine.options.Digest == nil {
		t.Error("the first apply had no key")
	}
	if o := w.engine.options; o.Project != "acme" || o.Store != filepath.Join(w.dataRoot(), "store") {
		t.Errorf("applied as %s of %s", o.Project, o.Store)
	}
	if w.engine.closed == 0 {
		t.Error("the engine wasn't closed")
	}
}

func TestNothingToApplyAsksNothingAndTakesNoLock(t *testing.T) {
	w := newWorld(t, "main.hcl", strings.Split(small, "image ")[0])
	w.want(0, "apply")
	says(t, w.out.String(), "No changes")
	if _, err := os.Stat(w.dataRoot()); err == nil {
		t.Error("the data root was made for nothing")
	}
}

// What was approved is done, or nothing is.
func TestApprovedPlanThatMoved(t *testing.T) {
	moves := func(n int, a *reconcile.Actual) {
		if n == 2 { // as the person reads
			a.Taken = reconcile.Taken{Containers: map[string]string{"acme-web": "project other"}}
		}
	}
	w := newWorld(t, "main.hcl", small)
	w.engine.onLook = moves
	w.answers("yes\n")
	w.want(3, "apply")
	says(t, w.err.String(), "Error: plan-stale", `step "create space.web" is gone`)
	if len(w.engine.steps) > 0 {
		t.Errorf("steps ran: %v", w.engine.steps)
	}

	// A plan that was reviewed before is no less approved for not asking.
	w = newWorld(t, "main.hcl", small)
	w.want(0, "plan", "--out", "review.json")
	w.engine.looks, w.engine.onLook = 0, moves
	w.want(3, "apply", "--auto-approve", "review.json")
	says(t, w.err.String(), "Error: plan-stale", `step "create space.web" is gone`)

	// Nobody read the first of two plans when nobody was asked.
	w = newWorld(t, "main.hcl", small)
	w.engine.onLook = moves
	w.want(3, "apply", "--auto-approve")
	says(t, w.err.String(), "Error: name-taken")
}

func TestAutoApproveShowsThePlanThatIsDone(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.onLook = func(n int, a *reconcile.Actual) {
		if n == 2 {
			a.Images = map[string]reconcile.ImageFacts{"tool@sha256:" + strings.Repeat("0", 64): {ID: "sha256:1"}}
		}
	}
	w.want(0, "apply", "--auto-approve")
	if strings.Contains(w.out.String(), "pull image.ref") || strings.Count(w.out.String(), "Plan: ") != 1 {
		t.Errorf("the plan shown isn't the one done:\n%s", w.out.String())
	}
	if want := []string{"create_network", "create_space"}; !slices.Equal(sortedSteps(w), want) {
		t.Errorf("steps %v, want %v", w.engine.steps, want)
	}
}

func TestSavedPlan(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "plan", "--out", "review.json")
	says(t, w.out.String(), "Kept in review.json")
	shown, _, _ := strings.Cut(w.out.String(), "\nKept in")
	info, err := os.Stat(filepath.Join(w.env.Dir, "review.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kept with mode %v (%v)", info.Mode(), err)
	}

	w.want(0, "show", "review.json")
	if w.out.String() != shown {
		t.Errorf("show prints\n%s\nand plan printed\n%s", w.out.String(), shown)
	}

	// Lines and comments may move.
	w.write("main.hcl", "# a comment\n\n"+small)
	w.want(0, "apply", "review.json")
	if !slices.Equal(sortedSteps(w), stepsOfSmall) {
		t.Errorf("steps %v, want %v", w.engine.steps, stepsOfSmall)
	}

	w.engine.steps = nil
	w.write("main.hcl", small+"\nnetwork \"more\" {\n  egress = \"none\"\n}\n")
	w.want(3, "apply", "review.json")
	says(t, w.err.String(), "Error: plan-stale", `step "create network.more" is new`, "→ Plan again")
	w.want(3, "apply", "review.json", "--auto-approve")
	if len(w.engine.steps) > 0 {
		t.Errorf("a stale plan was applied: %v", w.engine.steps)
	}
}

// A sensitive value has no digest before the first apply made the key; that alone
// doesn't make the plan another one.
func TestSavedPlanOfTheFirstApply(t *testing.T) {
	w := newWorld(t, "main.hcl", strings.Replace(small, "  networks = [network.inside]\n}", `  networks = [network.inside]
  env      = { TOKEN = var.token }
  loosen "secret_env" {
    value  = ["TOKEN"]
    reason = "a test"
  }
}

variable "token" {
  type      = string
  sensitive = true
}`, 1))
	w.want(0, "plan", "--var", "token=x", "--out", "review.json")
	w.want(0, "apply", "--var", "token=x", "review.json")
	if w.engine.options.Digest == nil {
		t.Error("applied without a key")
	}
}

func TestSavedPlanOfAnotherFormat(t *testing.T) {
	w := newWorld(t, "main.hcl", small, "old.json", `{"format_version": 99}`)
	w.want(3, "apply", "old.json")
	says(t, w.err.String(), "plan-stale", "format 99")
	w.want(3, "show", "old.json")
}

func TestFailedApplySaysWhatBecameOfEachStep(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.step = func(_ context.Context, s reconcile.Step) error {
		if _, is := s.(reconcile.PullImage); is {
			return errors.New("the registry is gone")
		}
		return nil
	}
	w.want(1, "apply", "--auto-approve", "--parallelism", "1")
	says(t, w.out.String(), "✗ pull image.ref: the registry is gone")
	says(t, w.err.String(), "1 failed", "✗ failed  pull image.ref", "the registry is gone", "- skipped create space.web")

	w.want(1, "apply", "--auto-approve", "--parallelism", "1", "--json")
	var r applyReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if f := r.Result.Failed; len(f) != 1 || f[0].Item != "pull image.ref" || f[0].Error != "the registry is gone" {
		t.Errorf("failed: %+v", f)
	}
	if !slices.Contains(r.Result.Skipped, "create space.web") || r.Plan.Project != "acme" || w.err.Len() > 0 {
		t.Errorf("report: %+v, stderr %q", r.Result, w.err.String())
	}
}

func TestRefusedStepNeedsAPerson(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.engine.step = func(context.Context, reconcile.Step) error {
		return &reconcile.Refusal{Code: reconcile.CodeNameTaken, Text: "it is taken", Fix: "give it another name"}
	}
	w.want(3, "apply", "--auto-approve")
	says(t, w.err.String(), "name-taken: it is taken", "→ give it another name")
}

func TestInterruptions(t *testing.T) {
	signals := make(chan os.Signal)
	running := make(chan struct{})
	t.Run("the first lets steps end", func(t *testing.T) {
		w := newWorld(t, "main.hcl", small)
		w.env.Signals = signals
		w.engine.step = func(ctx context.Context, s reconcile.Step) error {
			if _, is := s.(reconcile.PullImage); is {
				signals <- os.Interrupt
				time.Sleep(20 * time.Millisecond)
				return ctx.Err() // not cancelled
			}
			return nil
		}
		w.want(1, "apply", "--auto-approve", "--parallelism", "1")
		says(t, w.err.String(), "Interrupted: 1 done, 0 failed, 2 skipped.")
	})
	t.Run("the second aborts them", func(t *testing.T) {
		w := newWorld(t, "main.hcl", small)
		w.env.Signals = signals
		w.engine.step = func(ctx context.Context, _ reconcile.Step) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		go func() {
			<-running
			signals <- os.Interrupt
			signals <- os.Interrupt
		}()
		w.want(1, "apply", "--auto-approve", "--parallelism", "1")
		says(t, w.err.String(), "Interrupted: 0 done, 1 failed, 2 skipped.", "aborted")
	})
	t.Run("a question that waits ends", func(t *testing.T) {
		w := newWorld(t, "main.hcl", small)
		w.env.Signals = signals
		read, write := io.Pipe()
		defer write.Close()
		w.env.Question, w.env.Stdin = &w.err, read
		go func() { signals <- os.Interrupt }()
		w.want(1, "apply")
		says(t, w.err.String(), "nothing was done: interrupted")
	})
}

func TestBusy(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "apply", "--auto-approve")
	lock, err := places.Acquire(t.Context(), places.DataRoot(w.dataRoot()).ApplyLock(),
		places.Holder{PID: os.Getpid(), Verb: "apply", Folder: "/there"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.want(1, "apply", "--auto-approve")
	says(t, w.err.String(), "spaces apply", "from /there) holds it")
	go func() {
		time.Sleep(50 * time.Millisecond)
		lock.Release()
	}()
	w.want(0, "apply", "--auto-approve", "--lock-timeout", "10s")
}

func TestAppliedFromElsewhere(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "apply", "--auto-approve")
	other := newWorld(t, "main.hcl", strings.Split(small, "image ")[0])
	other.home, other.env.Environ, other.env.Host = w.home, w.env.Environ, w.env.Host
	other.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}

	other.want(0, "plan") // it shows, and says what will stop it
	says(t, other.err.String(), "Warning: applied-from-elsewhere", w.env.Dir)
	for _, verb := range []string{"apply", "destroy"} {
		other.want(3, verb, "--auto-approve")
		says(t, other.err.String(), "Error: applied-from-elsewhere", "→ Run it from that folder, or add --take-over")
	}
	if len(other.engine.steps) > 0 {
		t.Fatalf("steps ran: %v", other.engine.steps)
	}
	other.want(0, "apply", "--auto-approve", "--take-over")
	if want := []string{"remove_space"}; !slices.Equal(other.engine.steps, want) {
		t.Errorf("steps %v, want %v", other.engine.steps, want)
	}
	other.want(0, "destroy", "--auto-approve") // it is this folder's now

	// A project changes hands without anything else to do, too.
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.want(3, "destroy", "--auto-approve")
	w.engine.actual.Containers = nil
	w.want(0, "destroy", "--take-over")
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.want(0, "destroy", "--auto-approve")
}

func TestDestroyWithoutFiles(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"Acme", "a_b", "-a", strings.Repeat("a", 64)} {
		w.want(3, "destroy", "--project="+name, "--endpoint", fakeEndpoint)
		says(t, w.err.String(), "can't be a project's name")
	}
	var opened places.OpenOptions
	w.env.Open = func(_ context.Context, endpoint string, o places.OpenOptions) (Places, error) {
		if endpoint != fakeEndpoint {
			t.Errorf("opened %s", endpoint)
		}
		opened = o
		return w.engine, nil
	}
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.answers("yes\n")
	w.want(0, "destroy", "--project", "acme", "--endpoint", fakeEndpoint)
	says(t, w.err.String(), "Destroy all of this? Only 'yes' goes ahead: ")
	if !opened.AllowRootful {
		t.Error("a rootful engine was refused")
	}
	if want := []string{"remove_space"}; !slices.Equal(w.engine.steps, want) {
		t.Errorf("steps %v, want %v", w.engine.steps, want)
	}
	w.want(3, "destroy", "--project", "Acme/..", "--endpoint", fakeEndpoint)
	w.want(3, "destroy", "--project", "acme", "--endpoint", fakeEndpoint, "--var", "x=y")
}

// What stays keeps destroy from being done, and the rest from nothing.
func TestDestroyLeavesWhatIsInUse(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	n := reconcile.ObservedNetwork{Members: []reconcile.Member{{Name: "stranger", Running: true}}, Revision: "1"}
	n.Name = "acme-inside"
	n.Labels = w.running("inside").Labels
	w.engine.actual.Networks = []reconcile.ObservedNetwork{n}
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.want(3, "destroy", "--auto-approve")
	says(t, w.err.String(), "Error: network-in-use", "stranger")
	if want := []string{"remove_space"}; !slices.Equal(w.engine.steps, want) {
		t.Errorf("steps %v, want %v", w.engine.steps, want)
	}
}
