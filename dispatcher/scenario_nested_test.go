package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// nest returns a graph with a Loop inside an Embed:
//
//	first → house { door → rounds { sweep → mop } → lock } → last
//
// It sweeps and mops twice. Bodies are given by name.
func nest(t testing.TB, w *witness, bodies map[string]part) *dag.Graph[Tale] {
	r := dag.New[Tale]("round")
	sweep := dag.Step(r, "sweep", w.sees(bodies["sweep"]))
	dag.Step(r, "mop", w.sees(func(ctx context.Context, s *Tale) error {
		s.Count.Add(1)
		if f := bodies["mop"]; f != nil {
			return f(ctx, s)
		}
		return nil
	}), sweep).With(dag.Policy{Attempts: 3, Backoff: dag.Constant(time.Minute), Retry: worthwhile})
	h := dag.New[Tale]("house")
	door := dag.Step(h, "door", w.sees(bodies["door"]))
	rounds := dag.Loop(h, "rounds", frozen(t, r), func(s *Tale) bool { return s.Count.Get() == 2 }, 5, door)
	dag.Step(h, "lock", w.sees(bodies["lock"]), rounds)
	b := dag.New[Tale]("nest")
	first := dag.Step(b, "first", w.sees(bodies["first"]))
	house := dag.Embed(b, "house", frozen(t, h),
		func(from, to *Tale) { to.Word.Set(from.Word.Get()) },
		func(from, to *Tale) { to.Said.Append(from.Said.Slice()...) }, first)
	dag.Step(b, "last", w.sees(bodies["last"]), house)
	return frozen(t, b)
}

// worthwhile says that a broken thing is not worth another attempt.
func worthwhile(err error) bool { return !errors.Is(err, errBroken) }

var errBroken = errors.New("the bucket is broken")

// nested is what an undisturbed run of nest runs.
var nested = []string{
	"first", "house/door", "house/rounds/1/sweep", "house/rounds/1/mop",
	"house/rounds/2/sweep", "house/rounds/2/mop", "house/lock", "last",
}

const (
	sweep2 = "house/rounds/2/sweep"
	mop2   = "house/rounds/2/mop"
)

// A disturbance stops a run of nest inside the second iteration of its loop.
type disturbance struct {
	rule    string
	options dispatcher.Options
	// body replaces the body of one node; times counts its calls in the second iteration,
	// stop cancels the context of the first call.
	node string
	body func(ctx context.Context, times int, stop context.CancelFunc) error

	status checkpoint.Status
	cursor string                   // where the run rests
	before int                      // how many bodies have begun by then
	kind   dispatcher.InterruptKind // of the interrupt, "" if there is none
	again  int                      // which body of nested is the first to run after the resume
	retry  string                   // how the first body after the resume is seen, if not as itself
}

var disturbances = []disturbance{
	{
		rule: "cancel", node: "sweep", status: checkpoint.StatusCancelled, cursor: mop2, before: 5, again: 5,
		body: func(_ context.Context, _ int, stop context.CancelFunc) error { stop(); return nil },
	},
	{
		rule: "deadline", node: "mop", status: checkpoint.StatusTimedOut, cursor: mop2, before: 6, again: 5,
		body: func(ctx context.Context, times int, _ context.CancelFunc) error {
			if times == 1 {
				return heeds(ctx, 24*time.Hour)
			}
			return nil
		},
	},
	{
		rule: "failure", node: "mop", status: checkpoint.StatusFailed, cursor: mop2, before: 6, again: 5, retry: mop2 + "#2",
		body: func(_ context.Context, times int, _ context.CancelFunc) error {
			if times == 1 {
				return errBroken
			}
			return nil
		},
	},
	{
		rule: "cancel during back-off", node: "mop", status: checkpoint.StatusCancelled, cursor: mop2, before: 6, again: 5, retry: mop2 + "#2",
		body: func(_ context.Context, times int, stop context.CancelFunc) error {
			if times == 1 {
				time.AfterFunc(time.Second, stop)
				return errWeather
			}
			return nil
		},
	},
	{
		rule: "interrupt before", options: dispatcher.Options{InterruptBefore: []string{mop2}},
		status: checkpoint.StatusInterrupted, cursor: mop2, before: 5, again: 5, kind: "before",
	},
	{
		rule: "interrupt after", options: dispatcher.Options{InterruptAfter: []string{sweep2}},
		status: checkpoint.StatusInterrupted, cursor: mop2, before: 5, again: 5, kind: "after",
	},
	{
		rule: "interrupt after the last of an iteration", options: dispatcher.Options{InterruptAfter: []string{mop2}},
		status: checkpoint.StatusInterrupted, cursor: mop2, before: 6, again: 6, kind: "after",
	},
	{
		rule: "asked", node: "mop", status: checkpoint.StatusInterrupted, cursor: mop2, before: 6, again: 5, kind: "asked",
		body: func(ctx context.Context, _ int, _ context.CancelFunc) error {
			_, err := dag.Ask[bool](ctx, "water", "is there water?")
			return err
		},
	},
}

// Scenario 17, and its like for everything else that stops a run: the cursor points inside,
// and another process goes on inside, without running again what was done.
func TestScenario17StoppedInsideALoopInsideAnEmbed(t *testing.T) {
	for _, c := range disturbances {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { disturb(t, c) })
		})
	}
}

func disturb(t *testing.T, c disturbance) {
	var w witness
	var store memory.Store
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
	defer cancel()
	times := 0
	g := nest(t, &w, map[string]part{c.node: func(ctx context.Context, _ *Tale) error {
		if visitPath(ctx) != mop2 && visitPath(ctx) != sweep2 {
			return nil
		}
		times++
		return c.body(ctx, times, cancel)
	}})

	res, err := process(t, g, &store, c.options).Run(ctx, run, nil)
	rests(t, res, err, c.status, c.cursor)
	w.expect(t, slices.Clone(nested[:c.before])...)
	says(t, res.State, "first") // nothing of the house is outside yet
	d := process(t, g, &store, c.options)
	if res, err := d.State(t.Context(), run); err != nil || !slices.Equal(res.Cursor.Visits, []string{c.cursor}) {
		t.Errorf("the store says %q, %v", res.Cursor.Visits, err)
	}
	pending := 0
	if c.kind != "" {
		pending = 1
	}
	if len(res.Interrupts) != pending || pending == 1 && res.Interrupts[0].Kind != c.kind {
		t.Fatalf("the interrupts are %+v, want kind %q", res.Interrupts, c.kind)
	}
	if c.kind == "asked" {
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
			t.Fatal(err)
		}
	}

	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	want := slices.Clone(nested[c.again:])
	if c.retry != "" {
		want[0] = c.retry
	}
	w.expect(t, want...)
	says(t, res.State, nested...)
}

// A node path pauses every iteration, each once.
func TestScenario32EveryIterationPauses(t *testing.T) {
	quiet(t)
	for name, o := range map[string]dispatcher.Options{
		"before": {InterruptBefore: []string{"house/rounds/mop"}},
		"after":  {InterruptAfter: []string{"house/rounds/mop"}},
		"hook":   {InterruptIf: func(b dispatcher.Boundary) bool { return b.Node == "house/rounds/mop" && !b.After }},
	} {
		t.Run(name, func(t *testing.T) {
			var w witness
			var store memory.Store
			g := nest(t, &w, nil)
			res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
			for _, visit := range []string{"house/rounds/1/mop", mop2} {
				rests(t, res, err, checkpoint.StatusInterrupted, visit)
				if len(res.Interrupts) != 1 || res.Interrupts[0].Path != visit {
					t.Errorf("the interrupts are %+v, want one of %s", res.Interrupts, visit)
				}
				// Run ends no interrupt.
				res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, visit)
				res, err = process(t, g, &store, o).Resume(t.Context(), run)
			}
			completes(t, res, err)
			w.expect(t, slices.Clone(nested)...)
			says(t, res.State, nested...)
		})
	}
}

// Scenario 24 inside an Embed: attempts count on over a deadline and a failed run.
func TestScenario24RetryCounterInANest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		g := nest(t, &w, map[string]part{"mop": func(ctx context.Context, _ *Tale) error {
			if visitPath(ctx) == mop2 && dag.Attempt(ctx) < 5 {
				return errWeather
			}
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, mop2)
		w.expect(t, append(slices.Clone(nested[:6]), mop2+"#2")...)

		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, mop2)
		w.expect(t, mop2+"#3")
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, mop2+"#4", mop2+"#5", "house/lock", "last")
		says(t, res.State, nested...)
	})
}
