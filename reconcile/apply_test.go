package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stepper carries out steps by their NotYet text, which tests use as the item's ID.
type stepper func(ctx context.Context, id string) error

func (s stepper) Apply(ctx context.Context, step Step) error {
	return s(ctx, step.(NotYet).What)
}

func succeed(context.Context, string) error { return nil }

// itemsOf reads "a", "b: a", "c: a b".
func itemsOf(lines ...string) []Item {
	var items []Item
	for _, line := range lines {
		id, needs, _ := strings.Cut(line, ":")
		items = append(items, Item{ID: id, Step: NotYet{id}, Needs: strings.Fields(needs)})
	}
	return items
}

func idsOf(items []Item) []string {
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	return ids
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		items []string
		want  string
		err   string
	}{
		{items: nil, want: ""},
		{items: []string{"c", "b", "a"}, want: "a b c"},
		{items: []string{"a: c", "b", "c"}, want: "b c a"},
		{items: []string{"a: b b", "b"}, want: "b a"},
		{items: []string{"d: b c", "c: a", "b: a", "a"}, want: "a b c d"},
		{items: []string{"b: z", "a: z", "z", "y"}, want: "y z a b"},
		{items: []string{"a", "a"}, err: `"a" stands in it twice`},
		{items: []string{"a: x"}, err: `"a" needs "x", which isn't in it`},
		{items: []string{"a: a"}, err: `"a" needs "a"`},
		{items: []string{"x", "d: c", "a: d", "c: a x", "b: d"}, err: `"a" needs "d", which needs "c", which needs "a"`},
		// What only leads to a cycle isn't named.
		{items: []string{"a: b", "b: c", "c: b"}, err: `plan: "b" needs "c", which needs "b"`},
	} {
		ordered, err := Order(itemsOf(c.items...))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %s", c.items, err, c.err)
			}
			continue
		}
		if got := strings.Join(idsOf(ordered), " "); err != nil || got != c.want {
			t.Errorf("%q: %s, %v, want %s", c.items, got, err, c.want)
		}
	}
}

func TestOrderIsTheSameHoweverListed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		items := randomItems(rng, 12)
		want, err := Order(items)
		if err != nil {
			t.Fatal(err)
		}
		position := map[string]int{}
		for i, item := range want {
			position[item.ID] = i
			for _, need := range item.Needs {
				if at, ok := position[need]; !ok || at >= i {
					t.Fatalf("%s comes before %s, which it needs", item.ID, need)
				}
			}
		}
		rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		got, err := Order(items)
		if err != nil || !slices.Equal(idsOf(got), idsOf(want)) {
			t.Fatalf("shuffled: %v, %v, want %v", idsOf(got), err, idsOf(want))
		}
	}
}

// randomItems make an acyclic graph, in random order.
func randomItems(rng *rand.Rand, n int) []Item {
	names := rng.Perm(n)
	items := make([]Item, n)
	for i := range items {
		id := fmt.Sprintf("i%02d", names[i])
		items[i] = Item{ID: id, Step: NotYet{id}}
		for j := range i {
			if rng.IntN(4) == 0 {
				items[i].Needs = append(items[i].Needs, items[j].ID)
			}
		}
	}
	rng.Shuffle(n, func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

func TestApplyKeepsNeedsAndParallelism(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		items := randomItems(rng, 30)
		needs := map[string][]string{}
		for _, i := range items {
			needs[i.ID] = i.Needs
		}
		limit := 1 + rng.IntN(5)
		var mu sync.Mutex
		done := map[string]bool{}
		running := 0
		result, err := Apply(t.Context(), &Plan{Items: items}, stepper(func(_ context.Context, id string) error {
			mu.Lock()
			running++
			if running > limit {
				t.Errorf("%d at once, %d allowed", running, limit)
			}
			for _, n := range needs[id] {
				if !done[n] {
					t.Errorf("%s started before %s had succeeded", id, n)
				}
			}
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			defer mu.Unlock()
			running--
			done[id] = true
			return nil
		}), ApplyOptions{Parallelism: limit})
		if err != nil || !slices.Equal(result.Done, idsOf(items)) {
			t.Fatalf("%v, %v", result, err)
		}
	}
}

// Compose's executor tells a step's dependents that it ended before it looks at the
// error, so that now and then one starts after a failure.
func TestApplyNeverStartsWhatNeedsAFailedStep(t *testing.T) {
	boom := errors.New("boom")
	items := itemsOf("fails", "other", "user: fails", "both: fails other", "last: user")
	rounds := 20000
	if testing.Short() {
		rounds = 500
	}
	for range rounds {
		var ran atomic.Int32
		result, err := Apply(t.Context(), &Plan{Items: items}, stepper(func(_ context.Context, id string) error {
			switch id {
			case "fails":
				return boom
			case "other":
			default:
				ran.Add(1)
			}
			return nil
		}), ApplyOptions{})
		if ran.Load() > 0 {
			t.Fatal("a step ran though its need had failed")
		}
		if !errors.Is(err, boom) || len(result.Failed) != 1 || !slices.Contains(result.Skipped, "last") {
			t.Fatalf("%+v, %v", result, err)
		}
	}
}

func TestApplyLetsRunningStepsEnd(t *testing.T) {
	boom := errors.New("boom")
	slowRuns, failed := make(chan struct{}), make(chan struct{})
	result, err := Apply(t.Context(), &Plan{Items: itemsOf("after: slow", "fails", "slow")},
		stepper(func(ctx context.Context, id string) error {
			switch id {
			case "fails":
				<-slowRuns
				return boom
			case "slow":
				close(slowRuns)
				<-failed
				return ctx.Err()
			}
			return nil
		}), ApplyOptions{Progress: func(e Event) {
			if e.Phase == PhaseFailed {
				close(failed)
			}
		}})
	var applyError *ApplyError
	if !errors.As(err, &applyError) || !errors.Is(err, boom) {
		t.Fatalf("error %v", err)
	}
	want := Result{Done: []string{"slow"}, Failed: []Failure{{"fails", boom}}, Skipped: []string{"after"}}
	if fmt.Sprint(result) != fmt.Sprint(want) || fmt.Sprint(applyError.Result) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", result, want)
	}
	if got := err.Error(); got != "cannot fails: boom (1 done, 1 failed, 1 skipped)" {
		t.Fatal(got)
	}
}

func TestApplyInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("ctrl-c")
	result, err := Apply(ctx, &Plan{Items: itemsOf("a", "b: a", "c")}, stepper(func(step context.Context, id string) error {
		cancel(why)
		time.Sleep(time.Millisecond)
		return step.Err() // a step that runs isn't cancelled
	}), ApplyOptions{Parallelism: 1})
	if !errors.Is(err, why) {
		t.Fatalf("error %v", err)
	}
	if want := (Result{Done: []string{"a"}, Skipped: []string{"b", "c"}}); fmt.Sprint(result) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", result, want)
	}
}

func TestApplyAborted(t *testing.T) {
	abort := make(chan struct{})
	result, err := Apply(t.Context(), &Plan{Items: itemsOf("a", "b: a")}, stepper(func(step context.Context, _ string) error {
		close(abort)
		<-step.Done()
		return context.Cause(step)
	}), ApplyOptions{Abort: abort})
	if !errors.Is(err, ErrAborted) || len(result.Failed) != 1 || len(result.Skipped) != 1 {
		t.Fatalf("%v, %v", result, err)
	}
}

func TestApplyInterruptedAtTheEndIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	result, err := Apply(ctx, &Plan{Items: itemsOf("a")}, stepper(func(context.Context, string) error {
		cancel()
		return nil
	}), ApplyOptions{})
	if err != nil || len(result.Done) != 1 {
		t.Fatalf("%v, %v", result, err)
	}
}

func TestApplyTellsEachItem(t *testing.T) {
	var at atomic.Int32
	phases := map[string][]Phase{}
	items := itemsOf("a", "b", "c: a b", "d: c", "e: d")
	result, _ := Apply(t.Context(), &Plan{Items: items}, stepper(func(_ context.Context, id string) error {
		if id == "d" {
			return errors.New("no")
		}
		return nil
	}), ApplyOptions{Progress: func(e Event) {
		if at.Add(1) != 1 {
			t.Error("called by two at once")
		}
		phases[e.Item] = append(phases[e.Item], e.Phase)
		if (e.Err != nil) != (e.Phase == PhaseFailed) {
			t.Errorf("event %+v", e)
		}
		at.Add(-1)
	}})
	want := map[string][]Phase{
		"a": {PhaseStarted, PhaseDone},
		"b": {PhaseStarted, PhaseDone},
		"c": {PhaseStarted, PhaseDone},
		"d": {PhaseStarted, PhaseFailed},
		"e": {PhaseSkipped},
	}
	if fmt.Sprint(phases) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", phases, want)
	}
	if fmt.Sprint(result.Done, result.Skipped) != "[a b c] [e]" {
		t.Fatal(result)
	}
}

func TestApplyDoesNothingItMayNot(t *testing.T) {
	never := stepper(func(context.Context, string) error {
		t.Error("a step ran")
		return nil
	})
	stale := Refusal{Code: CodePlanStale, Text: "moved"}
	_, err := Apply(t.Context(), &Plan{Items: itemsOf("a"), Refusals: []Refusal{stale}}, never, ApplyOptions{})
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodePlanStale {
		t.Errorf("refused plan: %v", err)
	}
	stays := Refusal{Code: CodeNetworkInUse, Stays: true}
	result, err := Apply(t.Context(), &Plan{Items: itemsOf("a"), Refusals: []Refusal{stays}}, stepper(succeed), ApplyOptions{})
	if err != nil || len(result.Done) != 1 {
		t.Errorf("a refusal that bars nothing: %v, %v", result, err)
	}
	if _, err := Apply(t.Context(), &Plan{Items: itemsOf("a", "b: c", "c: b")}, never, ApplyOptions{}); err == nil {
		t.Error("no error for a cycle")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	result, err = Apply(cancelled, &Plan{Items: itemsOf("a")}, never, ApplyOptions{})
	if !errors.Is(err, context.Canceled) || len(result.Skipped) != 1 {
		t.Errorf("cancelled: %v, %v", result, err)
	}
	if _, err := Apply(cancelled, &Plan{}, stepper(succeed), ApplyOptions{}); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
}
