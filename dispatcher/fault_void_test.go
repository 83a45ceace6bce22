package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// conflicting checks that a run has failed by a conflict of these visits.
func conflicting(t *testing.T, err error, one, other string) {
	t.Helper()
	var c *state.ConflictError
	if !errors.As(err, &c) || c.Visits != [2]string{one, other} {
		t.Errorf("the error is %v, want a conflict of %s and %s", err, one, other)
	}
}

// A conflict inside a Loop inside an Embed: the cursor points inside, and the resume runs
// the two visits, there, and nothing else again.
func TestConflictInANest(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	mended := false
	body, house, b := dag.New[Tale]("body"), dag.New[Tale]("house"), dag.New[Tale]("top")
	write := func(word string) part {
		return func(ctx context.Context, s *Tale) error {
			if !mended && s.Count.Get() == 1 {
				s.Word.Set(word)
			}
			return nil
		}
	}
	one, two := dag.Step(body, "one", w.sees(write("one"))), dag.Step(body, "two", w.sees(write("two")))
	three := dag.Step(body, "three", w.sees(nil))
	dag.Step(body, "count", w.sees(counts), one, two, three)
	dag.Loop(house, "rounds", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 2 }, 5)
	embed := dag.Embed(b, "house", frozen(t, house), func(_, _ *Tale) {}, func(from, to *Tale) { to.Count.Add(from.Count.Get()) })
	dag.Step(b, "last", w.sees(nil), embed)
	g := frozen(t, b)

	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "house/rounds/2/one", "house/rounds/2/two")
	conflicting(t, err, "house/rounds/2/one", "house/rounds/2/two")
	w.took()
	mended = true
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "house/rounds/2/one", "house/rounds/2/two", "house/rounds/2/count", "last")
	if n := res.State.Count.Get(); n != 2 {
		t.Errorf("the count is %d, want 2", n)
	}
}

// One of the writers is a Loop that failed and whose failure is followed: what it had
// finished conflicts, and it is taken back with its failure. Mended, it doesn't fail.
func TestConflictWithALoopThatFailed(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	mended := false
	body, b := dag.New[Tale]("body"), dag.New[Tale]("top")
	dag.Step(body, "turn", w.sees(func(ctx context.Context, s *Tale) error {
		switch {
		case mended:
			return nil
		case visitPath(ctx) == "loop/2/turn":
			return errWeather
		}
		s.Word.Set("loop")
		return nil
	}))
	one := dag.Step(b, "one", w.sees(func(_ context.Context, s *Tale) error { s.Word.Set("one"); return nil }))
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2)
	dag.Step(b, "rescue", w.sees(nil), loop.Failed())
	dag.Step(b, "well", w.sees(nil), dag.All[Tale](one, loop))
	g := frozen(t, b)

	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "loop")
	conflicting(t, err, "one", "loop")
	w.expect(t, "one", "loop/1/turn", "loop/2/turn")
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "one", "loop")
	w.expect(t, "one", "loop/1/turn", "loop/2/turn")
	mended = true
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "loop/1/turn", "loop/2/turn", "well")
}

// What is taken back runs again as it began: an interrupt before it that was taken is not
// taken again, and a question that was answered isn't asked again.
func TestVoidedVisitKeepsInterruptsAndAnswers(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	mended := false
	b := dag.New[Tale]("top")
	one := dag.Step(b, "one", w.sees(func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?")
		s.Word.Set(word)
		return err
	}))
	two := dag.Step(b, "two", w.sees(func(_ context.Context, s *Tale) error {
		if !mended {
			s.Word.Set("two")
		}
		return nil
	}))
	dag.Step(b, "last", w.sees(nil), one, two)
	g := frozen(t, b)
	o := dispatcher.Options{InterruptBefore: []string{"two"}}

	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "one", "two")
	if len(res.Interrupts) != 2 {
		t.Fatalf("the interrupts are %+v, want two", res.Interrupts)
	}
	d := process(t, g, &store, o)
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "this"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	conflicting(t, err, "one", "two")
	w.took()
	mended = true
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "last")
	if got := res.State.Word.Get(); got != "this" {
		t.Errorf("the word is %q, want the answer", got)
	}
}

// What is taken back has a new budget of attempts. Those that failed count on; the one that
// is taken back did not fail, and is made again under its number.
func TestVoidedVisitHasANewBudget(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("top")
	calls := 0
	dag.Step(b, "one", w.sees(func(_ context.Context, s *Tale) error {
		calls++
		if calls%2 == 1 {
			return errWeather
		}
		if calls == 2 {
			s.Word.Set("one")
		}
		return nil
	})).With(dag.Policy{Attempts: 2})
	dag.Step(b, "two", w.sees(func(_ context.Context, s *Tale) error { s.Word.Set("two"); return nil }))
	g := frozen(t, b)
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	conflicting(t, err, "one", "two")
	w.expect(t, "one", "one#2", "two")
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one#2", "one#3", "two")
}

// A conflict in a superstep that a cancel has ended comes up in its turn.
func TestConflictRanksBehindACancel(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	mended := false
	ctx, cancel := context.WithCancel(t.Context())
	b := dag.New[Tale]("top")
	write := func(word string) part {
		return func(_ context.Context, s *Tale) error {
			if mended {
				return nil
			}
			s.Word.Set(word)
			if word == "two" {
				cancel()
			}
			return nil
		}
	}
	one, two := dag.Step(b, "one", w.sees(write("one"))), dag.Step(b, "two", w.sees(write("two")))
	dag.Step(b, "last", w.sees(nil), one, two)
	g := frozen(t, b)
	res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
	if res.Status != checkpoint.StatusCancelled {
		t.Fatalf("the run is %s, %v, want it cancelled", res.Status, err)
	}
	w.took()
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	conflicting(t, err, "one", "two")
	w.took()
	mended = true
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "last")
}

// Where a decision blows up and the failure of its node is followed, the run goes on there:
// with what a Loop had finished, and with nothing of an Embed.
func TestDecisionThatFailsAtAnEdge(t *testing.T) {
	for _, c := range []struct {
		place string
		count int
	}{{"until", 2}, {"in", 0}, {"out", 0}} {
		t.Run(c.place, func(t *testing.T) {
			quiet(t)
			var w witness
			var store memory.Store
			var told []dag.Failure
			body, b := dag.New[Tale]("body"), dag.New[Tale]("top")
			dag.Step(body, "turn", w.sees(counts))
			blow := func(at string) {
				if at == c.place {
					panic(errWeather)
				}
			}
			var failed dag.Edge[Tale]
			if c.place == "until" {
				rounds := 0
				l := dag.Loop(b, "node", frozen(t, body), func(*Tale) bool {
					if rounds++; rounds == 2 {
						blow("until")
					}
					return false
				}, 5)
				failed = l.Failed()
				dag.End(b, dag.Edge[Tale](l))
			} else {
				e := dag.Embed(b, "node", frozen(t, body), func(_, to *Tale) { to.Word.Set("in"); blow("in") },
					func(from, to *Tale) { to.Count.Add(100); blow("out") })
				failed = e.Failed()
				dag.End(b, dag.Edge[Tale](e))
			}
			dag.Step(b, "rescue", w.sees(func(ctx context.Context, _ *Tale) error { told = dag.Failures(ctx); return nil }), failed)
			res, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			if n := res.State.Count.Get(); n != c.count {
				t.Errorf("the count is %d, want %d", n, c.count)
			}
			if len(told) != 1 || told[0].Path != "node" || told[0].Kind != dag.FailedPanic || told[0].Message != errWeather.Error() {
				t.Errorf("the follower was told %+v", told)
			}
		})
	}
}
