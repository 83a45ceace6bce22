package continuation_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// trimmed is a process whose run waits, and whose log has lost that it has asked.
func trimmed(t testing.TB, w continuation.Wait, o continuation.Options) (p *process, id string) {
	t.Helper()
	p, id = untrimmed(t, w, o)
	p.trims()
	return p, id
}

// untrimmed is one whose log has lost nothing yet.
func untrimmed(t testing.TB, w continuation.Wait, o continuation.Options) (p *process, id string) {
	t.Helper()
	asked := make(chan struct{})
	turn := dag.New[Talk]("turn")
	dag.Step(turn, "work", func(context.Context, *Talk) error {
		<-asked
		return nil
	})
	b := dag.New[Talk]("beside")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", w)
		s.Said.Append(r.Payload)
		return err
	})
	dag.Loop(b, "loop", frozen(t, turn), func(*Talk) bool { return false }, 3)
	p = under(t, dispatcher.Options{Now: o.Now, Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitInterrupted {
			close(asked)
		}
	}}, frozen(t, b), freshStore(), o)
	p.waits(run)
	return p, p.only(run).ID
}

// trims has the log lose that the run has asked.
func (p *process) trims() {
	p.t.Helper()
	if err := p.d.Trim(context.Background(), run, dispatcher.Retention{Last: 1}); err != nil {
		p.t.Fatal(err)
	}
	if slices.Contains(p.kinds(run), checkpoint.Interrupted) {
		p.t.Fatalf("the log has not lost what it was to lose: %v", p.kinds(run))
	}
}

// A wait that lies behind what was trimmed is still found, and ended.
func TestWaitBehindATrim(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{Key: "k"}, continuation.Options{})
	if v := p.stands(run, continuation.StatusPending, ""); v.ID != id {
		t.Errorf("its id is %s, and was %s", v.ID, id)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("t", "k")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v", out, err)
	}
}

// Its parts keep their bounds, which count from when it was asked.
func TestPartsBehindATrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		p, _ := trimmed(t, continuation.Any(continuation.Wait{Key: "soon", Within: time.Minute}, continuation.Wait{Key: "late"}), continuation.Options{})
		lasts(time.Minute - 1)
		if v := p.stands(run, continuation.StatusPending, ""); !v.Asked.Equal(asked) {
			t.Errorf("asked at %v, and not at %v", v.Asked, asked)
		}
		if out, err := p.rt.Trigger(t.Context(), reply2("t", "soon")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// An opener has something happen just before it is asked what is open.
type opener struct {
	continuation.Runs
	meddle func()
}

func (o *opener) Open(ctx context.Context, run string) (*dispatcher.Opened, error) {
	o.meddle()
	return o.Runs.Open(ctx, run)
}

// A wait behind a trim is also found if it gets its trigger while it is looked for, whatever
// follows that in the log.
func TestWaitBehindATrimOfALogThatGrows(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{}, continuation.Options{})
	rt, err := continuation.New(&opener{p.d, sync.OnceFunc(func() {
		tr := reply("t", "hello")
		tr.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Error(err)
		}
		if err := p.d.Note(t.Context(), run, "look", 1); err != nil {
			t.Error(err)
		}
	})}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 1 || all[0].ID != id || all[0].Trigger == nil {
		t.Errorf("%+v, %v; want the wait %s with its trigger", all, err, id)
	}
}

// A run that was trimmed and goes on whenever somebody looks keeps nobody: what it waits for is
// found, and the others are.
func TestWaitBehindATrimOfARunThatNeverRests(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{}, continuation.Options{})
	looks := 0
	rt, err := continuation.New(&opener{p.d, func() {
		if looks++; looks > 3 {
			t.Fatal("it is looked at again and again")
		}
		if err := p.d.Note(t.Context(), run, "look", looks); err != nil {
			t.Error(err)
		}
	}}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 1 || all[0].ID != id {
		t.Errorf("%+v, %v; want the wait %s", all, err, id)
	}
}

// Nor is it missed what comes to such a run when it was read and is looked at once more.
func TestWaitBehindATrimOfALogThatGrowsFurther(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{}, continuation.Options{})
	asked := false
	d := &opener{p.d, func() {
		if asked = true; p.d.Note(t.Context(), run, "look", 1) != nil {
			t.Error("nothing was noted")
		}
	}}
	triggers := sync.OnceFunc(func() {
		tr := reply("t", "hello")
		tr.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Error(err)
		}
	})
	rt, err := continuation.New(over{d, &lateStat{p.store, func() {
		if asked {
			triggers()
		}
	}}}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if all, err := rt.List(t.Context(), continuation.Filter{Run: run}); err != nil || len(all) != 1 || all[0].ID != id {
			t.Fatalf("%+v, %v; want the wait %s", all, err, id)
		}
		d.meddle = func() {}
	}
	if v, err := rt.Get(t.Context(), id); err != nil || v.Trigger == nil {
		t.Errorf("%+v, %v; want it with its trigger", v, err)
	}
}

// A lateStat has something happen just before a run is looked at.
type lateStat struct {
	checkpoint.Store
	meddle func()
}

func (s *lateStat) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	s.meddle()
	return s.Store.Stat(ctx, run)
}

// Of a run that is deleted while it is read, and begun anew under its id, the waits are those of
// the new one.
func TestWaitBehindATrimOfARunThatIsReplaced(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{}, continuation.Options{})
	q := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), p.store, continuation.Options{})
	rt, err := continuation.New(&opener{p.d, sync.OnceFunc(func() {
		if err := p.store.Delete(t.Context(), run); err != nil {
			t.Error(err)
		}
		q.waits(run)
	})}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 1 || all[0].ID == id {
		t.Errorf("%+v, %v; want the wait of the new run", all, err)
	}
}

// A lateReader has something happen just before a log is read.
type lateReader struct {
	checkpoint.Store
	meddle func()
}

func (s *lateReader) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	s.meddle()
	return s.Store.Read(ctx, run, from, to)
}

// over are the runs of a dispatcher over another store.
type over struct {
	continuation.Runs
	store checkpoint.Store
}

func (o over) Store() checkpoint.Store { return o.store }

// A wait whose log is trimmed while somebody is about to read it is found: by its id, in a list and
// by a trigger.
func TestWaitBesideATrim(t *testing.T) {
	finds := map[string]func(*testing.T, *continuation.Runtime, string){
		"Get": func(t *testing.T, rt *continuation.Runtime, id string) {
			if v, err := rt.Get(t.Context(), id); err != nil || v.ID != id {
				t.Errorf("%+v, %v; want the wait %s", v, err, id)
			}
		},
		"List": func(t *testing.T, rt *continuation.Runtime, id string) {
			all, err := rt.List(t.Context(), continuation.Filter{})
			if err != nil || len(all) != 1 || all[0].ID != id {
				t.Errorf("%+v, %v; want the wait %s", all, err, id)
			}
		},
		"Trigger": func(t *testing.T, rt *continuation.Runtime, _ string) {
			if out, err := rt.Trigger(t.Context(), reply2("t", "k")); err != nil || out.Status != continuation.StatusResolved {
				t.Errorf("%+v, %v", out, err)
			}
		},
	}
	for name, find := range finds {
		t.Run(name, func(t *testing.T) {
			p, id := untrimmed(t, continuation.Wait{Key: "k"}, continuation.Options{})
			rt, err := continuation.New(over{p.d, &lateReader{p.store, sync.OnceFunc(p.trims)}}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			find(t, rt, id)
		})
	}
}

// drained is a process whose run has its trigger, and was drained behind it: beside a loop, of
// which a superstep has ended since. What stands behind the wait is work, once it is set.
func drained(t *testing.T, work *func(context.Context) error) *process {
	t.Helper()
	ended := make(chan struct{})
	turn := dag.New[Talk]("turn")
	dag.Step(turn, "gate", func(ctx context.Context, _ *Talk) error {
		_, err := dag.Ask[string](ctx, "gate", "open?")
		return err
	})
	b := dag.New[Talk]("beside")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "k"})
		if err == nil {
			err = (*work)(ctx)
		}
		if err == nil {
			s.Said.Append(r.Payload)
		}
		return err
	})
	dag.Loop(b, "loop", frozen(t, turn), func(*Talk) bool { return true }, 3)
	p := under(t, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.SuperstepEnded && e.Path == "loop/1" {
			close(ended)
		}
	}}, frozen(t, b), freshStore(), continuation.Options{})
	p.waits(run)
	tr := reply2("t", "k")
	tr.LeaveIt = true
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	ctx, drain := context.WithCancelCause(t.Context())
	*work = func(ctx context.Context) error {
		<-ended
		return leaves(drain)(ctx)
	}
	o, err := p.d.Open(ctx, run)
	if err != nil || len(o.Interrupts) != 1 {
		t.Fatalf("%+v, %v; want one interrupt", o, err)
	}
	if err := p.d.Answer(ctx, run, o.Interrupts[0].ID, "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(ctx, run, nil); !errors.Is(err, dispatcher.ErrDrain) {
		t.Fatalf("drained: %v", err)
	}
	return p
}

// leaves is work of which nothing comes, since its process drains.
func leaves(drain context.CancelCauseFunc) func(context.Context) error {
	return func(ctx context.Context) error {
		drain(dispatcher.ErrDrain)
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// forgets has the log lose that the run has its trigger.
func (p *process) forgets() {
	p.t.Helper()
	if err := p.d.Trim(p.t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		p.t.Fatal(err)
	}
	if slices.Contains(p.kinds(run), checkpoint.Answered) {
		p.t.Fatalf("the log has not lost what it was to lose: %v", p.kinds(run))
	}
}

// A run that was drained behind its trigger is recovered, though its log was trimmed since, and
// tells of no wait.
func TestRecoverBehindATrim(t *testing.T) {
	for _, trims := range []bool{false, true} {
		var work func(context.Context) error
		p := drained(t, &work)
		if trims {
			p.forgets()
		}
		work = func(context.Context) error { return nil }
		if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("trimmed %v: swept %q, %v", trims, runs, err)
		}
		runs, err := p.rt.Recover(t.Context())
		if said := p.said(run); err != nil || !slices.Equal(runs, []string{run}) || !slices.Equal(said, []string{"x"}) {
			t.Errorf("trimmed %v: recovered %q, %v; said %q", trims, runs, err, said)
		}
	}
}

// Nobody recovers it more often than a wait may be resumed in vain: who dies or drains each time
// leaves it.
func TestRecoverBehindATrimIsBounded(t *testing.T) {
	var work func(context.Context) error
	p := drained(t, &work)
	p.forgets()
	recoveries := 0
	var spent *continuation.AttemptsError
	for ; recoveries < 10; recoveries++ {
		ctx, drain := context.WithCancelCause(t.Context())
		work = leaves(drain)
		if _, err := p.rt.Recover(ctx); errors.As(err, &spent) {
			break
		}
	}
	if spent == nil || spent.Run != run || recoveries != continuation.DefaultFailures {
		t.Fatalf("recovered %d times, %v", recoveries, spent)
	}
	p.unchanged(run, func() { _, _ = p.rt.Recover(t.Context()) })
	work = func(context.Context) error { return nil }
	if _, err := p.d.Resume(t.Context(), run); err != nil {
		t.Errorf("resumed: %v", err)
	}
}

// One that was rewound rests until somebody goes on with it, and one whose process drained in a
// turn that has not waited is none of the Runtime's: a trim of their logs makes no difference.
func TestRecoverLeavesWhatHasNotWaitedBehindATrim(t *testing.T) {
	t.Run("rewound", func(t *testing.T) {
		var work func(context.Context) error
		p := drained(t, &work)
		if err := p.d.Rewind(t.Context(), run, "", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		p.forgets()
		p.isLeft()
	})
	t.Run("in another turn", func(t *testing.T) {
		ctx, drain := context.WithCancelCause(t.Context())
		again := false
		b := dag.New[Talk]("talk")
		first := dag.Step(b, "first", func(ctx context.Context, s *Talk) error { return nil })
		dag.Step(b, "work", func(ctx context.Context, s *Talk) error {
			if again {
				return leaves(drain)(ctx)
			}
			_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "k"})
			return err
		}, first)
		p := talk(t, frozen(t, b))
		if _, err := p.rt.Trigger(t.Context(), reply2("t", "k")); err != nil {
			t.Fatal(err)
		}
		again = true
		if _, err := p.d.Turn(ctx, run, nil); !errors.Is(err, dispatcher.ErrDrain) {
			t.Fatalf("drained: %v", err)
		}
		p.isLeft()
		if err := p.d.Trim(t.Context(), run, dispatcher.Retention{Last: 2}); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(p.kinds(run), checkpoint.TurnBegun) || slices.Contains(p.kinds(run), checkpoint.Answered) {
			t.Fatal(p.kinds(run))
		}
		p.isLeft()
	})
}

// isLeft checks that nobody goes on with the run by himself.
func (p *process) isLeft() {
	p.t.Helper()
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(p.t.Context()); err != nil || len(runs) > 0 {
			p.t.Errorf("recovered %q, %v", runs, err)
		}
	})
}
