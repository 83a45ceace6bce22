package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// Never more than Cap runs are at work, and as many as that if there are; all are run, and no
// goroutine is left. The dispatcher of any graph is a Runner.
func TestCap(t *testing.T) {
	quiet(t)
	const runs, most = 1000, 8
	var at, peak atomic.Int64
	full := make(chan struct{}) // closed when most runs are at work: none goes on before
	var fill sync.Once
	var store memory.Store
	g := line(t, "line", 3, func(_ context.Context, step int) error {
		if step == 0 {
			n := at.Add(1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			if n >= most {
				fill.Do(func() { close(full) })
			}
		}
		<-full
		runtime.Gosched()
		if step == 2 {
			at.Add(-1)
		}
		return nil
	})
	d := process(t, g, &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Cap: most}, d)
	var tasks [runs]*supervisor.Task[parcel]
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := w; i < runs; i += 4 {
				tasks[i] = submit(t, s, d, fmt.Sprint("tenant ", i%7), fmt.Sprint("run-", i))
			}
		})
	}
	all.Wait()
	for _, task := range tasks {
		completes(t, task)
	}
	if p := peak.Load(); p != most {
		t.Errorf("%d runs were at work at once, the cap is %d", p, most)
	}
	if working, waiting := s.Load(); waiting != 0 || working > most {
		t.Errorf("Load() = %d, %d", working, waiting)
	}
}

// A run that waits between two attempts is at work, and keeps its place.
func TestARunBetweenAttemptsIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		b := dag.New[parcel]("line")
		var tries atomic.Int32
		dag.Step(b, "try", func(ctx context.Context, _ *parcel) error {
			if tries.Add(1) == 1 {
				return errors.New("not now")
			}
			return nil
		}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(time.Hour)})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		first := submit(t, s, d, "", "a")
		synctest.Wait()
		second := submit(t, s, d, "", "b")
		synctest.Wait()
		if working, waiting := s.Load(); working != 1 || waiting != 1 || tries.Load() != 1 {
			t.Errorf("%d runs are at work and %d wait, behind %d attempts", working, waiting, tries.Load())
		}
		completes(t, first)
		completes(t, second)
	})
}

// Keys take turns: who submits a thousand runs doesn't keep waiting who submits one.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var order diary
		g := line(t, "line", 1, func(ctx context.Context, _ int) error {
			order.note(dag.Key(ctx)[:2])
			lasts(time.Second)
			return nil
		})
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		var tasks []*supervisor.Task[parcel]
		for _, run := range []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3", "c1"} {
			tasks = append(tasks, submit(t, s, d, run[:1], run))
			synctest.Wait()
		}
		lasts(3500 * time.Millisecond)
		tasks = append(tasks, submit(t, s, d, "c", "c2"), submit(t, s, d, "", "d1"))
		for _, task := range tasks {
			completes(t, task)
		}
		order.expect(t, "a1", "a2", "b1", "c1", "a3", "b2", "c2", "d1", "a4", "b3", "a5")
	})
}

// A tenant with 10,000 runs in the queue and one with a single run. There is one place, so
// that bodies begin in the order in which runs have their turn.
func TestOneRunAmongTenThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		before := 0
		var mu sync.Mutex
		g := line(t, "line", 1, func(ctx context.Context, _ int) error {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(dag.Key(ctx), "single/") && before > 1 {
				t.Errorf("%d runs began before the single one", before)
			}
			before++
			return nil
		})
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Queue: 20_000, PerKey: 10_000}, d)
		gate := make(chan struct{})
		_, err := supervisor.Go(t.Context(), s, d, "gate", "gate", // has the place until the queue is full
			func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				<-gate
				return nil, errLost
			})
		if err != nil {
			t.Fatal(err)
		}
		var last *supervisor.Task[parcel]
		for i := range 10_000 {
			last = submit(t, s, d, "large", fmt.Sprint("large-", i))
		}
		single := submit(t, s, d, "small", "single")
		close(gate)
		completes(t, single)
		completes(t, last)
	})
}

// A run that is submitted while it waits or works is run once, and all get its result. So do
// those who know no state, or for whom it was continued.
func TestSameRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var ran atomic.Int64
		g := line(t, "line", 2, func(context.Context, int) error {
			ran.Add(1)
			lasts(time.Second)
			return nil
		})
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		first, second := submit(t, s, d, "", "run"), submit(t, s, d, "other", "run")
		behind, alike := submit(t, s, d, "", "next"), submit(t, s, d, "", "next")
		one, err := first.Wait(t.Context())
		two, err2 := second.Wait(t.Context())
		if one != two || err != nil || err2 != nil {
			t.Errorf("two results %p and %p, %v, %v", one, two, err, err2)
		}
		completes(t, behind)
		completes(t, alike)
		if n := ran.Load(); n != 4 {
			t.Errorf("%d bodies ran, want 4", n)
		}
		// Both orders of one who has a state and one who has none.
		bare, err := s.Continue(t.Context(), "", "run")
		if err != nil {
			t.Fatal(err)
		}
		completes(t, submit(t, s, d, "", "run"))
		res, err := bare.Wait(t.Context())
		if err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("Continue = %s, %v", res.Status, err)
		}
		third := submit(t, s, d, "", "third")
		lasts(time.Millisecond)
		bare, err = s.Continue(t.Context(), "", "third")
		if err != nil {
			t.Fatal(err)
		}
		if res, err := bare.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted || res.Run != "third" {
			t.Errorf("Continue beside Submit = %+v, %v", res, err)
		}
		completes(t, third)
	})
}

// Too many runs are refused by name, and nothing has happened; so are too many of one key.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 2, Queue: 3, PerKey: 2}, d)
		tasks := []*supervisor.Task[parcel]{
			submit(t, s, d, "a", "1"), submit(t, s, d, "a", "2"), submit(t, s, d, "a", "3"), submit(t, s, d, "a", "4"),
		}
		_, err := supervisor.Submit(t.Context(), s, d, "a", "5", nil)
		var full *supervisor.QueueError
		if !errors.As(err, &full) || !errors.Is(err, supervisor.ErrQueueFull) || *full != (supervisor.QueueError{Run: "5", Key: "a", Waiting: 2, PerKey: true}) {
			t.Errorf("a run beyond those of its key: %v", err)
		}
		if want := `supervisor: run "5": queue is full: 2 runs of "a" wait: come again later, or raise Options.PerKey`; err.Error() != want {
			t.Errorf("it is told %q, want %q", err, want)
		}
		tasks = append(tasks, submit(t, s, d, "b", "6"), submit(t, s, d, "b", "1"))
		_, err = supervisor.Submit(t.Context(), s, d, "c", "7", nil)
		if !errors.As(err, &full) || *full != (supervisor.QueueError{Run: "7", Key: "c", Waiting: 3}) {
			t.Errorf("a run beyond all: %v", err)
		}
		for _, task := range tasks {
			completes(t, task)
		}
		if all := statuses(t, &store); len(all) != 5 {
			t.Errorf("the store has the runs %v", all)
		}
		completes(t, submit(t, s, d, "a", "5"))
	})
}

// The context of a Wait ends the waiting and nothing else; that of a Submit gives its values.
func TestWaitIsNotTheRun(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
			if ctx.Value(key{}) != "value" {
				t.Error("the value of the submission is lost")
			}
			return heeds(ctx, time.Minute)
		}), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		var tasks []*supervisor.Task[parcel]
		for _, run := range []string{"works", "waits"} {
			task, err := supervisor.Submit(ctx, s, d, "", run, func(p *parcel) { p.Name.Set(run) })
			if err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, task)
		}
		for _, task := range tasks {
			if res, err := task.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || res == nil || res.Run != task.Run() || res.Status != "" {
				t.Errorf("Wait = %+v, %v", res, err)
			}
		}
		if _, err := supervisor.Submit(ctx, s, d, "", "late", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Submit with a context that has ended = %v", err)
		}
		for _, task := range tasks {
			completes(t, task)
		}
	})
}

// A Wait for work that is over has its result, also under a context that is done.
func TestWaitForWorkThatIsOver(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{}, d)
	task := submit(t, s, d, "", "run")
	<-task.Done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select would choose the context in some of them
		if res, err := task.Wait(ctx); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("Wait = %+v, %v", res, err)
		}
	}
}

// The context of a call ends with it, so that what it has left behind ends too.
func TestContextOfACallEndsWithIt(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{}, d)
	var of context.Context
	task, err := supervisor.Go(t.Context(), s, d, "", "run",
		func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			of = ctx
			res, err := d.Run(ctx, "run", nil, drain)
			if ctx.Err() != nil {
				t.Errorf("the context has ended before the call: %v", context.Cause(ctx))
			}
			return res, err
		})
	if err != nil {
		t.Fatal(err)
	}
	<-task.Done()
	if of.Err() == nil {
		t.Error("the call is over, and its context has not ended")
	}
}

// The slice of options that is given stays the caller's, with all that it has room for.
func TestOptionsStayTheCallers(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{}, d)
	options := make([]dispatcher.RunOption, 2)
	options[0] = dispatcher.Labels(map[string]string{"of": "tests"})
	task, err := supervisor.Submit(t.Context(), s, d, "", "run", func(p *parcel) { p.Name.Set("run") }, options[:1]...)
	if err != nil {
		t.Fatal(err)
	}
	completes(t, task)
	if options[1].Name() != "" {
		t.Error("Submit wrote into the options behind those that it was given")
	}
	again, err := s.Continue(t.Context(), "", "run", options[:1]...)
	if err != nil {
		t.Fatal(err)
	}
	<-again.Done()
	if options[1].Name() != "" {
		t.Error("Continue wrote into the options behind those that it was given")
	}
}

// What a run rests as is told to who waits; a run that was interrupted is continued.
func TestResultsAreTheDispatchers(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 2, func(_ context.Context, step int) error {
		if step == 1 {
			return errLost
		}
		return nil
	}), &store, dispatcher.Options{InterruptBefore: []string{"step-1"}})
	s := supervise(t, &store, supervisor.Options{}, d)
	res, err := submit(t, s, d, "", "run").Wait(t.Context())
	if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 || res.State.Name.Get() != "run" {
		t.Fatalf("Wait = %+v, %v", res, err)
	}
	if err := d.Answer(t.Context(), "run", res.Interrupts[0].ID, dispatcher.Approve); err != nil {
		t.Fatal(err)
	}
	bare, err := s.Continue(t.Context(), "", "run")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := bare.Wait(t.Context()); !errors.Is(err, errLost) || res.Status != checkpoint.StatusFailed || len(res.Failures) != 1 {
		t.Errorf("Wait = %+v, %v", res, err)
	}
	task, err := supervisor.Go(t.Context(), s, d, "", "run",
		func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			return d.Resume(ctx, "run", drain, dispatcher.From(checkpoint.Cursor{Run: "run", Seq: 1}))
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Wait(t.Context()); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("Wait = %v", err)
	}
	if _, err := s.Continue(t.Context(), "", "no run"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Continue of no run = %v", err)
	}
	if _, err := supervisor.Submit(t.Context(), s, d, "", "", nil); !errors.Is(err, checkpoint.ErrRunID) {
		t.Errorf("Submit of no id = %v", err)
	}
}

// A run whose interrupt is answered, and which is submitted again, before it is known here that the
// work on it is over, is gone on with: also if what ends there is a call of the caller's own.
func TestJoiningAnInterruptedRunGoesOnWithIt(t *testing.T) {
	for _, where := range []string{"in the call", "when it has ended"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				var told diary
				var s *supervisor.Supervisor
				var bare *supervisor.Task[struct{}]
				var typed *supervisor.Task[parcel]
				d := asking(t, &store)
				answers := func() {
					if err := d.Answer(t.Context(), "run", "", true); err != nil {
						t.Error(err)
					}
					var err error
					if bare, err = s.Continue(t.Context(), "k", "run"); err != nil {
						t.Error(err)
					}
					typed = submit(t, s, d, "", "run")
				}
				s = supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
					told.note(e.String())
					if e.Kind == supervisor.Ended && typed == nil {
						answers()
					}
					if e.Waited != 0 {
						t.Errorf("%s: waited %v from when it had its place in the queue", e, e.Waited)
					}
				}}, d)
				first, err := supervisor.Go(t.Context(), s, d, "", "run",
					func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
						res, err := d.Run(ctx, "run", nil, drain)
						if where == "in the call" {
							answers()
							lasts(time.Second)
						}
						return res, err
					})
				if err != nil {
					t.Fatal(err)
				}
				if res, err := first.Wait(t.Context()); !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 {
					t.Errorf("who called it gets %+v, %v, want that it is interrupted", res, err)
				}
				if res, err := bare.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
					t.Errorf("who goes on behind the answer gets %s, %v, want that it is completed", res.Status, err)
				}
				if res, err := typed.Wait(t.Context()); err != nil || res.State.Steps.Len() != 2 {
					t.Errorf("who joined gets %s, %q, %v, want both steps", res.Status, res.State.Steps, err)
				}
				synctest.Wait()
				want := []string{
					"run: queued of line for line", "run: began of line for line", `run: ended of line for line: dispatcher: run "run" is interrupted at step-1: Answer what it waits for, and Resume`,
					"run: joined of line for k", "run: joined of line for line",
					"run: queued of line for k", "run: began of line for k", "run: ended of line for k",
				}
				if where == "in the call" {
					want = slices.Concat(want[:2], want[3:5], want[2:3], want[5:])
				}
				told.expect(t, want...)
			})
		})
	}
}

// A cursor from which somebody is to go on who joins the run at work is of before that: no From
// keeps the run from being gone on with for all who have joined it, also if it comes first. One
// that was read behind the end of the call still does if somebody else has gone on with the run
// since.
func TestJoiningAnInterruptedRunFromACursor(t *testing.T) {
	for name, of := range map[string]struct {
		behind, passed bool
		want           error
	}{
		"of before":                       {},
		"of behind":                       {behind: true},
		"of behind, and passed by others": {behind: true, passed: true, want: dispatcher.ErrStaleCursor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				d := asking(t, &store)
				if err := d.Create(t.Context(), "run", nil); err != nil {
					t.Fatal(err)
				}
				s := supervise(t, &store, supervisor.Options{}, d)
				var first *supervisor.Task[struct{}]
				var second *supervisor.Task[parcel]
				joins := func() {
					at, err := d.State(t.Context(), "run")
					if err != nil {
						t.Error(err)
					}
					if first, err = s.Continue(t.Context(), "", "run", dispatcher.From(at.Cursor)); err != nil {
						t.Error(err)
					}
					second = submit(t, s, d, "", "run")
				}
				task := calls(t, s, d, "run", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
					if !of.behind {
						joins()
					}
					res, err := d.Continue(ctx, "run", drain)
					if err := d.Answer(ctx, "run", "", true); err != nil {
						t.Error(err)
					}
					if of.behind {
						joins()
					}
					if of.passed {
						if err := d.Note(ctx, "run", "shop.seen", nil); err != nil {
							t.Error(err)
						}
					}
					return &result{Run: res.Run, Status: res.Status, Cursor: res.Cursor}, err
				})
				ends(t, task, dispatcher.ErrInterrupted)
				if res, err := first.Wait(t.Context()); !errors.Is(err, of.want) || err == nil && res.Status != checkpoint.StatusCompleted {
					t.Errorf("who goes on from the cursor gets that it is %s, %v", res.Status, err)
				}
				if res, err := second.Wait(t.Context()); !errors.Is(err, of.want) || err == nil && res.Status != checkpoint.StatusCompleted {
					t.Errorf("who has joined with that gets that it is %s, %v", res.Status, err)
				}
			})
		})
	}
}

// A run that was completed takes what was enqueued behind that, though it is submitted before it is
// known here that the work on it is over.
func TestJoiningACompletedRunTakesWhatWasEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var s *supervisor.Supervisor
		var task *supervisor.Task[parcel]
		hold := make(chan struct{})
		d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
		s = supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Ended && task == nil {
				if err := d.Enqueue(t.Context(), "run", func(*parcel) {}); err != nil {
					t.Error(err)
				}
				task = submit(t, s, d, "", "run")
			}
		}}, d)
		first := submit(t, s, d, "", "run")
		synctest.Wait()
		second := submit(t, s, d, "", "run")
		close(hold)
		for _, task := range []*supervisor.Task[parcel]{first, second} {
			if res, err := task.Wait(t.Context()); err != nil || res.Turn != 1 {
				t.Errorf("who submitted it, or joined it at work, gets turn %d, %v, want the first", res.Turn, err)
			}
		}
		if res, err := task.Wait(t.Context()); err != nil || res.Turn != 2 {
			t.Errorf("who enqueued more gets turn %d, %v, want the second", res.Turn, err)
		}
	})
}

// Input that is enqueued when the call has looked for some the last time is taken for who submits
// the run then, though all who joined it before that, too, share the further turn.
func TestJoiningACallThatIsAboutToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var d *dispatcher.Dispatcher[parcel]
		var s *supervisor.Supervisor
		var joined []*supervisor.Task[parcel]
		ends := func(context.Context, dispatcher.End) error {
			if len(joined) == 0 {
				joined = append(joined, submit(t, s, d, "", "run"))
				if err := d.Enqueue(t.Context(), "run", func(*parcel) {}); err != nil {
					t.Error(err)
				}
				joined = append(joined, submit(t, s, d, "", "run"))
			}
			return nil
		}
		d = process(t, line(t, "line", 1, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: ends}})
		s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Ended && len(joined) == 2 {
				joined = append(joined, submit(t, s, d, "", "run"))
			}
		}}, d)
		if res, err := submit(t, s, d, "", "run").Wait(t.Context()); err != nil || res.Turn != 1 {
			t.Errorf("who submitted it gets turn %d, %v, want the first", res.Turn, err)
		}
		for i, task := range joined {
			if res, err := task.Wait(t.Context()); err != nil || res.Turn != 2 {
				t.Errorf("%d: who joined it gets turn %d, %v, want the second", i, res.Turn, err)
			}
		}
		if len(joined) != 3 {
			t.Errorf("%d have joined it", len(joined))
		}
		if working, waiting := s.Load(); working+waiting != 0 {
			t.Errorf("%d are at work and %d wait", working, waiting)
		}
	})
}

// A trimming is a store in which something comes when a run is trimmed, once.
type trimming struct {
	*memory.Store
	comes func()
}

func (s *trimming) Trim(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, e checkpoint.Entry, bases ...[]byte) (checkpoint.Head, error) {
	if comes := s.comes; comes != nil {
		s.comes = nil
		comes()
	}
	return s.Store.Trim(ctx, l, after, e, bases...)
}

// So it is while the run is trimmed, as Options.Retention says.
func TestInputWhileARunIsTrimmed(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &trimming{Store: new(memory.Store)}
			d := process(t, line(t, "line", 3, nil), store, dispatcher.Options{
				Retention: dispatcher.Retention{Last: 1}, Limits: dispatcher.Limits{StateBytes: 10 << 10},
			})
			calls := 0
			s := supervise(t, store, supervisor.Options{Observe: func(e supervisor.Event) {
				if e.Kind == supervisor.Began {
					calls++
				}
			}}, d)
			var second *supervisor.Task[struct{}]
			store.comes = func() {
				err := d.Enqueue(t.Context(), "run", func(p *parcel) {
					if p.Name.Set("more"); refused {
						p.Name.Set(strings.Repeat("more", 5<<10))
					}
				})
				if err == nil {
					second, err = s.Continue(t.Context(), "", "run")
				}
				if err != nil {
					t.Error(err)
				}
			}
			completes(t, submit(t, s, d, "", "run"))
			want := 2
			if refused {
				want = 1
			}
			res, err := second.Wait(t.Context())
			if err != nil || res.Turn != want || refused != (len(res.Warnings) == 1) {
				t.Errorf("who enqueued it and continued gets turn %d, %q, %v, want turn %d", res.Turn, res.Warnings, err, want)
			}
			synctest.Wait()
			if posts, err := store.Posts(t.Context(), "run"); err != nil || len(posts) > 0 || calls != 2 {
				t.Errorf("%d messages wait behind %d calls, %v", len(posts), calls, err)
			}
		})
	}
}

// Who joined a run at work is done with it if nothing waits: one more call would find nothing to
// do. It is made if the store can't tell, or does what no store may.
func TestJoiningACompletedRunForWhichNothingWaits(t *testing.T) {
	for name, c := range map[string]struct {
		posts func() error
		calls int
	}{
		"nothing waits": {func() error { return nil }, 1},
		"an error":      {func() error { return errLost }, 2},
		"a panic":       {func() error { panic("lost") }, 2},
		"a goexit":      {func() error { runtime.Goexit(); return nil }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released, looked, calls := false, false, 0
				store := &memory.Faulty{FailRead: func(_ context.Context, method, _ string) error {
					if released = released || method == "Release"; method == "Posts" && released && !looked {
						looked = true
						return c.posts()
					}
					return nil
				}}
				hold := make(chan struct{})
				d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
					if e.Kind == supervisor.Began && e.Run == "run" {
						calls++
					}
				}}, d)
				first := submit(t, s, d, "", "run")
				synctest.Wait()
				second, other := submit(t, s, d, "", "run"), submit(t, s, d, "", "other")
				close(hold)
				for _, task := range []*supervisor.Task[parcel]{first, second, other} {
					completes(t, task)
				}
				synctest.Wait()
				if calls != c.calls || !looked {
					t.Errorf("%d calls, want %d", calls, c.calls)
				}
			})
		})
	}
}

// Input for which the call could not look, since the store failed then, is taken all the same for
// who has joined the run before. Who submitted it is told of the failure.
func TestJoiningACompletedRunWhoseInputCouldNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Faulty)
		var released atomic.Bool // the run's goroutines and the caller's ask
		store.FailRead = func(ctx context.Context, method, run string) error {
			if method == "Release" {
				released.Store(true)
			}
			if info, err := store.Store.Stat(ctx, run); method == "Posts" && !released.Load() && err == nil && info.Status == checkpoint.StatusCompleted {
				return errLost
			}
			return nil
		}
		hold := make(chan struct{})
		d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		first := submit(t, s, d, "", "run")
		synctest.Wait()
		if err := d.Enqueue(t.Context(), "run", func(*parcel) {}); err != nil {
			t.Fatal(err)
		}
		second := submit(t, s, d, "", "run")
		close(hold)
		if res, err := first.Wait(t.Context()); !errors.Is(err, errLost) || res.Status != checkpoint.StatusCompleted {
			t.Errorf("who submitted it gets that it is %s, %v", res.Status, err)
		}
		if res, err := second.Wait(t.Context()); err != nil || res.Turn != 2 {
			t.Errorf("who has enqueued input and joined it gets turn %d, %v, want the second", res.Turn, err)
		}
	})
}

// Of a run that something abandoned still holds all who have joined it get the one result: it can't
// be gone on with.
func TestJoiningARunThatHasAbandonedSomething(t *testing.T) {
	for _, status := range []checkpoint.Status{checkpoint.StatusInterrupted, checkpoint.StatusCompleted} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			store := &memory.Faulty{FailRead: func(_ context.Context, method, _ string) error {
				if method == "Release" {
					<-free
				}
				return nil
			}}
			g := line(t, "line", 1, func(ctx context.Context, _ int) (err error) {
				if status == checkpoint.StatusInterrupted {
					_, err = dag.Ask[bool](ctx, "sure", "?")
				}
				return err
			})
			ends := func(context.Context, dispatcher.End) error { return nil } // the lease goes back behind that, at the very end
			d := process(t, g, store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: ends}})
			var s *supervisor.Supervisor
			late := make(chan *supervisor.Task[parcel], 1)
			s = supervise(t, store, supervisor.Options{Observe: func(e supervisor.Event) {
				if e.Kind == supervisor.Ended {
					late <- submit(t, s, d, "", "run")
				}
			}}, d)
			first := submit(t, s, d, "", "run")
			synctest.Wait()
			second := submit(t, s, d, "", "run")
			for _, task := range []*supervisor.Task[parcel]{first, second, <-late} {
				res, err := task.Wait(t.Context())
				if res.Status != status || len(res.Abandoned) != 1 {
					t.Errorf("Wait = %s, and has abandoned %q, want %s, and the release of the lease", res.Status, res.Abandoned, status)
				}
				if asks := status == checkpoint.StatusInterrupted; asks != errors.Is(err, dispatcher.ErrInterrupted) || asks != (len(res.Interrupts) == 1) {
					t.Errorf("%s: Wait = %+v, %v", status, res, err)
				}
			}
			close(free)
		})
	}
}

// Who observes that an interrupted run waits once more keeps nobody else from a turn.
func TestJoiningAnInterruptedRunKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		hold, ended := make(chan struct{}), make(chan struct{})
		queued := 0
		d := asking(t, &store)
		s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
			switch {
			case e.Kind == supervisor.Began:
				<-hold
			case e.Kind == supervisor.Queued && e.Run == "run":
				if queued++; queued == 2 {
					<-ended
				}
			case e.Kind == supervisor.Ended && e.Run == "other":
				close(ended)
			}
		}}, d)
		submit(t, s, d, "", "run")
		other, joined := submit(t, s, d, "", "other"), submit(t, s, d, "", "run")
		close(hold)
		for _, task := range []*supervisor.Task[parcel]{other, joined} {
			if res, err := task.Wait(t.Context()); !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 {
				t.Errorf("Wait = %+v, %v", res, err)
			}
		}
	})
}

// Who joins a run at work that is interrupted when the supervisor drains gets its result. Nothing
// begins for it.
func TestJoiningAnInterruptedRunBesideADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		hold := make(chan struct{})
		d := asking(t, &store)
		s := supervise(t, &store, supervisor.Options{}, d)
		call := func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			res, err := d.Run(ctx, "run", nil, drain)
			<-hold
			return res, err
		}
		if _, err := supervisor.Go(t.Context(), s, d, "", "run", call); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		task := submit(t, s, d, "", "run")
		drained := make(chan supervisor.Drain)
		go func() { // ends when the test receives from drained
			r, err := s.Drain(t.Context())
			if err != nil {
				t.Error(err)
			}
			drained <- r
		}()
		synctest.Wait()
		close(hold)
		if r := <-drained; !slices.Equal(r.Finished, []string{"run"}) || len(r.Left)+len(r.Stuck)+len(r.Waiting) > 0 {
			t.Errorf("Drain = %+v", r)
		}
		if res, err := task.Wait(t.Context()); !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 {
			t.Errorf("who has joined gets %+v, %v, want that it is interrupted", res, err)
		}
	})
}

// A call that panics or ends its goroutine has failed, and the next one has its turn.
func TestBrokenCalls(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
	gate := make(chan struct{})
	var broken []*supervisor.Task[parcel]
	for i, call := range []func(){func() { panic(errLost) }, runtime.Goexit, func() { panic("text") }} {
		task, err := supervisor.Go(t.Context(), s, d, "", fmt.Sprint("broken-", i),
			func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				<-gate
				call()
				return nil, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		broken = append(broken, task)
	}
	last := submit(t, s, d, "", "last")
	close(gate)
	for i, task := range broken {
		res, err := task.Wait(t.Context())
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || fault.Kind != "call" || len(fault.Stack) == 0 || errors.Is(err, errLost) != (i == 0) || res == nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	completes(t, last)
}

// Options that can't be are refused by name.
func TestOptionsAreChecked(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	for name, make := range map[string]func() (*supervisor.Supervisor, error){
		"Cap":     func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{Cap: -1}) },
		"Queue":   func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{Queue: -1}) },
		"AtWork":  func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{AtWork: -1}) },
		"PerKey":  func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{PerKey: -1}) },
		"Grace":   func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{Grace: -1}) },
		"store":   func() (*supervisor.Supervisor, error) { return supervisor.New(nil, supervisor.Options{}, d) },
		"runners": func() (*supervisor.Supervisor, error) { return supervisor.New(&store, supervisor.Options{}, d, d) },
	} {
		var e *supervisor.OptionError
		if s, err := make(); !errors.As(err, &e) || e.Option != name || s != nil {
			t.Errorf("%s: New = %v, %v", name, s, err)
		}
	}
	if _, err := supervisor.New(&store, supervisor.Options{}, nil); err == nil {
		t.Error("New with a nil runner = nil")
	}
}

// The observer sees what becomes of each run; its panics are its own affair.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var seen diary
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Queue: 1, Observe: func(e supervisor.Event) {
			seen.note(e.String())
			if e.Kind == supervisor.Began && e.Run == "b" && e.Waited != time.Second || e.Kind == supervisor.Ended && e.Duration != time.Second {
				t.Errorf("%s: waited %v, took %v", e, e.Waited, e.Duration)
			}
			panic("the observer's")
		}}, d)
		a := submit(t, s, d, "k", "a")
		synctest.Wait()
		b := submit(t, s, d, "", "b")
		submit(t, s, d, "", "b")
		if _, err := supervisor.Submit(t.Context(), s, d, "", "c", nil); !errors.Is(err, supervisor.ErrQueueFull) {
			t.Error(err)
		}
		completes(t, a)
		completes(t, b)
		synctest.Wait()
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		seen.expect(t, "a: queued of line for k", "a: began of line for k", "b: queued of line for line",
			"b: joined of line for line", `c: refused of line for line: supervisor: run "c": queue is full: 1 runs wait: come again later, or raise Options.Queue`,
			"a: ended of line for k", "b: began of line for line", "b: ended of line for line", "supervisor: drained")
	})
	var names []string
	for k := supervisor.Queued; k <= supervisor.Recovered; k++ {
		names = append(names, k.String())
	}
	if slices.Sort(names); len(slices.Compact(names)) != int(supervisor.Recovered) {
		t.Errorf("the names of kinds are %q", names)
	}
	if got := supervisor.EventKind(99).String(); got != "event 99" {
		t.Errorf("an unknown kind is %q", got)
	}
}

// What a submission was given is its own, however long it waits and whatever becomes of that
// meanwhile.
func TestAWaitingSubmissionKeepsItsOptions(t *testing.T) {
	var store memory.Store
	begun, free := make(chan struct{}), make(chan struct{})
	d := process(t, line(t, "line", 1, func(context.Context, int) error {
		begun <- struct{}{}
		<-free
		return nil
	}), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
	options, labels := make([]dispatcher.RunOption, 1), map[string]string{}
	tasks := map[string]*supervisor.Task[parcel]{}
	for _, id := range []string{"first", "second", "third"} {
		labels["tenant"] = id
		options[0] = dispatcher.Labels(labels)
		task, err := supervisor.Submit(t.Context(), s, d, "", id, func(p *parcel) { p.Name.Set(id) }, options...)
		if err != nil {
			t.Fatal(err)
		}
		tasks[id] = task
		if id == "first" {
			<-begun
		}
	}
	close(free)
	go func() {
		for range 2 {
			<-begun
		}
	}()
	for id, task := range tasks {
		completes(t, task)
		info, err := store.Stat(t.Context(), id)
		if err != nil || info.Labels["tenant"] != id {
			t.Errorf("run %s has the labels %v, %v", id, info.Labels, err)
		}
	}
}

// Of several options that can't be the first one is named, and the same one each time.
func TestTheFirstOptionThatCanNotBeIsNamed(t *testing.T) {
	for range 20 {
		_, err := supervisor.New(new(memory.Store), supervisor.Options{Cap: -1, Queue: -1, PerKey: -1, Grace: -1})
		var e *supervisor.OptionError
		if !errors.As(err, &e) || e.Option != "Cap" {
			t.Fatalf("New = %v, want that Cap can't be", err)
		}
	}
}
