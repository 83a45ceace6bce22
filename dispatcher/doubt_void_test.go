package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// voidedFrames are graphs of a node, hold, in whose frame a visit has an effect, and of a step
// beside it; by the path of that visit.
func voidedFrames(t *testing.T, pay part) map[string]*dag.Graph[Tale] {
	t.Helper()
	graphs := map[string]*dag.Graph[Tale]{}
	body := func() *dag.Graph[Tale] {
		b := dag.New[Tale]("body")
		dag.Step(b, "pay", pay)
		return frozen(t, b)
	}
	one := func(*Tale) []string { return []string{"one"} }
	for path, add := range map[string]func(*dag.Builder[Tale]){
		"hold/2/pay": func(b *dag.Builder[Tale]) {
			dag.Loop(b, "hold", body(), func(s *Tale) bool { return s.Said.Len() > 1 }, 5)
		},
		"hold/pay": func(b *dag.Builder[Tale]) {
			dag.Embed(b, "hold", body(), func(_, _ *Tale) {}, func(from, to *Tale) { to.Word.Set(from.Word.Get()) })
		},
		"hold/1": func(b *dag.Builder[Tale]) {
			dag.Each(b, "hold", one, func(ctx context.Context, s *Tale, _ string) error { return pay(ctx, s) })
		},
		"hold/1/pay": func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "hold", one, body(),
				func(*Tale, string, *Tale) {}, func(from *Tale, _ string, to *Tale) { to.Word.Set(from.Word.Get()) })
		},
	} {
		b := dag.New[Tale]("voided")
		add(b)
		dag.Step(b, "beside", func(context.Context, *Tale) error { return nil })
		graphs[path] = frozen(t, b)
	}
	return graphs
}

// A visit inside a Loop, an Embed or an item that has handled its doubt has decided what
// happened, and nobody need be asked. If the frame around it is voided it will run again and
// meet the doubt: Manual and Open say so, although the visit is not there, and somebody can say
// what happened, which the visit is told when it runs.
func TestDoubtInAVoidedFrame(t *testing.T) {
	var side *doubtSide
	pay := func(ctx context.Context, s *Tale) error {
		if side.ran++; strings.HasPrefix(visitPath(ctx), "hold/1/pay") && side.loop {
			s.Said.Append("first")
			return nil
		}
		s.Said.Append("paid")
		receipt, err := dag.Effect(ctx, "charge", 5, side.charge)
		if errors.Is(err, dag.ErrInDoubt) {
			receipt, err = "unclear", nil
		}
		s.Word.Set(receipt)
		return err
	}
	for path, g := range voidedFrames(t, pay) {
		side = &doubtSide{fails: 1, loop: path == "hold/2/pay"}
		store := new(memory.Store)
		d := process(t, g, store, dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"beside"}}))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "beside")
		if o := doubtOpened(t, d); !strings.HasPrefix(o.Effects[0].Advice, "Nothing has to be done") {
			t.Errorf("%s: before the frame is voided: %s", path, o.Effects[0].Advice)
		}
		if _, err := d.Run(t.Context(), run, nil, dispatcher.Manual()); errors.Is(err, dag.ErrInDoubt) {
			t.Errorf("%s: before the frame is voided: %v", path, err)
		}
		if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"hold"}}); err != nil {
			t.Fatal(path, err)
		}
		if o := doubtOpened(t, d); o.Effects[0].Path != path || !strings.HasPrefix(o.Effects[0].Advice, "Ask the other side") {
			t.Errorf("%s: once it is voided: %+v", path, o.Effects[0])
		}
		unchanged(t, store, run, func() {
			_, err := d.Resume(t.Context(), run, dispatcher.Manual())
			var doubt *dispatcher.DoubtError
			if !errors.As(err, &doubt) || len(doubt.Effects) != 1 || doubt.Effects[0].Path != path {
				t.Errorf("%s: a manual resume returns %v", path, err)
			}
		})
		if err := d.Resolve(t.Context(), run, path, "charge", dispatcher.Happened("by hand"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(path, err)
		}
		sameMachine(t, d, run)
		res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run, dispatcher.Manual())
		if completes(t, res, err); res.State.Word.Get() != "by hand" || side.calls != 1 {
			t.Errorf("%s: the state has %q, and the effect was done %d times", path, res.State.Word.Get(), side.calls)
		}
	}
}

// While a voided Loop is at work on an iteration, a doubt of a later one may still be met, and
// one of an earlier one may not: Open tells them apart.
func TestDoubtInIterations(t *testing.T) {
	body := dag.New[Tale]("body")
	ask := dag.Step(body, "ask", func(ctx context.Context, s *Tale) error {
		_, err := dag.Ask[string](ctx, "go on", "?")
		return err
	})
	dag.Step(body, "pay", func(ctx context.Context, s *Tale) error {
		s.Count.Add(1)
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { return 0, errDoubtReset })
		if errors.Is(err, dag.ErrInDoubt) {
			return nil
		}
		return err
	}, ask)
	b := dag.New[Tale]("iterations")
	dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 3 }, 5)
	dag.Step(b, "beside", func(context.Context, *Tale) error { return nil })
	g := frozen(t, b)
	store := new(memory.Store)
	d := process(t, g, store, dispatcher.Options{InterruptBefore: []string{"beside"}})
	step := func() {
		t.Helper()
		res, err := d.Run(t.Context(), run, nil)
		if res.Status != checkpoint.StatusInterrupted {
			t.Fatal(res.Status, err)
		}
		for _, i := range res.Interrupts {
			if i.Path != "beside" {
				if err := d.Answer(t.Context(), run, i.ID, "yes"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 4 {
		step()
	}
	open := func() (met []string) {
		o, err := d.Open(t.Context(), run)
		if err != nil || len(o.InDoubt()) != 3 {
			t.Fatalf("%+v, %v", o, err)
		}
		for _, e := range o.InDoubt() {
			if strings.HasPrefix(e.Advice, "Ask the other side") {
				met = append(met, e.Path)
			}
		}
		return met
	}
	if met := open(); met != nil {
		t.Errorf("the loop is done, and may meet %q", met)
	}
	if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
		t.Fatal(err)
	}
	if met := open(); !slices.Equal(met, []string{"loop/1/pay", "loop/2/pay", "loop/3/pay"}) {
		t.Errorf("once the loop is voided it may meet %q", met)
	}
	step() // asks in the first iteration
	step() // in the second one
	if met := open(); !slices.Equal(met, []string{"loop/2/pay", "loop/3/pay"}) {
		t.Errorf("in the second iteration it may meet %q", met)
	}
	if err := d.Resolve(t.Context(), run, "loop/1/pay", "charge", dispatcher.Happened(1)); !errors.Is(err, dispatcher.ErrNotInDoubt) {
		t.Errorf("what is over is resolved: %v", err)
	}
	if err := d.Resolve(t.Context(), run, "loop/3/pay", "charge", dispatcher.Happened(3)); err != nil {
		t.Error(err)
	}
	sameMachine(t, d, run)
}

// A Loop that has failed in doubt may be voided. Begun anew it fails as any other, once somebody
// has said what happened: its failure edge is taken, and what has finished in it counts.
func TestDoubtInAVoidedLoopIsOver(t *testing.T) {
	quiet(t)
	var w witness
	broken := false
	side := &doubtSide{fails: 1}
	body, b := dag.New[Tale]("body"), dag.New[Tale]("voided")
	first := dag.Step(body, "first", w.sees(func(_ context.Context, s *Tale) error {
		s.Said.Append("first")
		return nil
	}))
	dag.Step(body, "pay", func(ctx context.Context, s *Tale) error {
		if broken {
			return errWeather
		}
		return side.pay(dag.InDoubt(dag.DoubtFails))(ctx, s)
	}, first)
	hold := dag.Loop(b, "hold", frozen(t, body), func(*Tale) bool { return true }, 1)
	dag.Step(b, "refund", w.sees(nil), hold.Failed())
	dag.End(b, hold)
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Eager(dispatcher.Options{}))
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "hold/1/pay")
	if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"hold"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Resolve(t.Context(), run, "hold/1/pay", "charge", dispatcher.NotHappened("by hand")); err != nil {
		t.Fatal(err)
	}
	sameMachine(t, d, run)
	broken = true
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if got := res.State.Said.Slice(); !slices.Equal(got, []string{"hold/1/first", "first", "refund"}) {
		t.Errorf("the state has %q", got)
	}
	if ran := w.took(); !slices.Equal(ran, []string{"hold/1/first", "hold/1/first", "refund"}) {
		t.Errorf("what ran is %q", ran)
	}
	sameMachine(t, d, run)
}
