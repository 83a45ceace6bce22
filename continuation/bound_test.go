package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// failing is a graph of one node that asks anew what has failed, and fails behind each trigger.
func failing(t *testing.T, w continuation.Wait, p dag.Policy, bodies *int) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		w := w
		w.Question = fmt.Sprintf("attempt %d", dag.Attempt(ctx))
		if _, err := continuation.Await[string](ctx, "answer", w); err != nil {
			return err
		}
		*bodies++
		return errWeather
	}).With(p)
	return frozen(t, b)
}

// A bound is one of the visit and the name of the wait: what fails behind one question counts when
// another one is asked, since that may tell what has failed.
func TestFailuresCountAcrossQuestions(t *testing.T) {
	for name, p := range map[string]dag.Policy{"no policy": {}, "many attempts": {Attempts: 10}} {
		for _, most := range []int{1, 2, 3} {
			t.Run(fmt.Sprint(name, ", ", most), func(t *testing.T) {
				bodies := 0
				p := talk(t, failing(t, continuation.Wait{MaxFailures: most}, p, &bodies))
				var out continuation.Outcome
				for i := 1; i <= most; i++ {
					v := p.open()
					if want := fmt.Sprintf(`"attempt %d"`, i); string(v.Question) != want || v.Failures != i-1 {
						t.Errorf("behind %d triggers it waits for %+v", i-1, v)
					}
					var err error
					if out, err = p.rt.Trigger(t.Context(), reply(fmt.Sprint("t", i), "yes")); err != nil {
						t.Fatal(err)
					}
				}
				if out.Status != continuation.StatusFailed || out.EndReason != continuation.MaxAttempts || bodies != most {
					t.Errorf("behind %d triggers it is %s (%s), and the node ran %d times behind them", most, out.Status, out.EndReason, bodies)
				}
				if info, err := p.store.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusFailed {
					t.Errorf("the run is %s, %v", info.Status, err)
				}
				var ended *continuation.TerminalError
				p.unchanged(run, func() {
					if _, err := p.rt.Trigger(t.Context(), reply("more", "yes")); !errors.As(err, &ended) {
						t.Errorf("one more: %v", err)
					}
				})
			})
		}
	}
}

// A failure behind a denial that the node was told of is none: what is asked in its place has the
// whole bound.
func TestAFailureBehindADenialCountsForNoOtherQuestion(t *testing.T) {
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{
			Kind: continuation.KindApproval, Question: fmt.Sprintf("attempt %d", dag.Attempt(ctx)), OnDeny: continuation.Feed, MaxFailures: 1,
		})
		if err != nil {
			return err
		}
		if r.Denied {
			return errWeather
		}
		return says(ctx, s, r)
	}).With(dag.Policy{Attempts: 2})
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Trigger(t.Context(), decide("no", continuation.Denied)); err != nil {
		t.Fatal(err)
	}
	if v := p.open(); string(v.Question) != `"attempt 2"` || v.Failures != 0 {
		t.Errorf("behind the denial it waits for %+v", v)
	}
	out, err := p.rt.Trigger(t.Context(), decide("yes", continuation.Approved))
	if err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v; want that it goes on", out, err)
	}
}

// What was asked in an attempt before counts for nothing when the same words are asked again, and
// its failure still does.
func TestFailuresCountWhereTheWordsComeBack(t *testing.T) {
	bodies, words := 0, []string{"one", "two", "one", "two", "one"}
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		w := continuation.Wait{Question: words[dag.Attempt(ctx)-1], MaxFailures: 4}
		if _, err := continuation.Await[string](ctx, "answer", w); err != nil {
			return err
		}
		bodies++
		return errWeather
	})
	p := talk(t, frozen(t, b))
	for i := 1; i <= 4; i++ {
		if v := p.open(); v.Failures != i-1 {
			t.Errorf("behind %d triggers it waits for %+v", i-1, v)
		}
		out, err := p.rt.Trigger(t.Context(), reply(fmt.Sprint("t", i), "yes"))
		if err != nil || bodies != i || i == 4 && out.EndReason != continuation.MaxAttempts {
			t.Errorf("behind %d triggers the node ran %d times, and it is %+v, %v", i, bodies, out, err)
		}
	}
}

// What one name has asked in turn is one hop, and it is one until what it asks now has ended too.
func TestWhatANameHasAskedIsOneHop(t *testing.T) {
	for most, want := range map[int]continuation.Status{1: continuation.StatusFailed, 2: continuation.StatusPending} {
		b := dag.New[Talk]("talk")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			if _, err := continuation.Await[string](ctx, "first", continuation.Wait{Question: s.Said.Slice()}); err != nil {
				return err
			}
			_, err := continuation.Await[string](ctx, "second", continuation.Wait{MaxHops: most})
			return err
		})
		p := talk(t, frozen(t, b))
		for i := range 2 {
			tr := reply(fmt.Sprint("t", i), "yes")
			tr.LeaveIt = i == 0
			if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				break
			}
			p.instead(nil, "eve") // the first is superseded
			if _, err := p.rt.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
		if last := all[len(all)-1]; err != nil || last.Status != want {
			t.Errorf("with %d hops it is %+v, %v", most, last, err)
		}
	}
}
