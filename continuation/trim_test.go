package continuation_test

import (
	"context"
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

// A wait behind a trim is also found if it gets its trigger while it is looked for.
func TestWaitBehindATrimOfALogThatGrows(t *testing.T) {
	p, id := trimmed(t, continuation.Wait{}, continuation.Options{})
	rt, err := continuation.New(&opener{p.d, sync.OnceFunc(func() {
		tr := reply("t", "hello")
		tr.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
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

// A wait whose log is trimmed while somebody is about to read it is found: by its id, in a list and by a
// trigger.
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
