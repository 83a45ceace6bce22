package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

var errByUser = errors.New("by the user")

// A run that is cancelled between its Continue and its turn stays so, be it that it waits in the
// queue or that its turn has just come: who was told that it is cancelled has been told the truth.
func TestCancelledBeforeItsTurnStaysCancelled(t *testing.T) {
	for _, when := range []string{"queued", "began"} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			ran := 0
			hold := make(chan struct{})
			d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
				ran++
				<-hold
				return nil
			}), &store, dispatcher.Options{})
			cancel := func(at string, run string) {
				if at == when && run == "run" {
					if err := d.Cancel(t.Context(), run, errByUser, dispatcher.Author("Ada")); err != nil {
						t.Error(err)
					}
				}
			}
			s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) { cancel(e.Kind.String(), e.Run) }}, d)
			first := submit(t, s, d, "a", "first")
			synctest.Wait()
			if err := d.Create(t.Context(), "run", nil); err != nil {
				t.Fatal(err)
			}
			task, err := s.Continue(t.Context(), "a", "run")
			if err != nil {
				t.Fatal(err)
			}
			close(hold)
			completes(t, first)
			res, err := task.Wait(t.Context())
			if !errors.Is(err, context.Canceled) || res.Status != checkpoint.StatusCancelled || ran != 1 {
				t.Errorf("%s: the run is %s, and %d nodes ran: %v", when, res.Status, ran, err)
			}
			saysWhoCancelled(t, err)
			if now, err := store.Stat(t.Context(), "run"); err != nil || now.Status != checkpoint.StatusCancelled {
				t.Errorf("%s: the store has it %s: %v", when, now.Status, err)
			}

			again, err := s.Continue(t.Context(), "a", "run") // as a cancelled one
			if err != nil {
				t.Fatal(err)
			}
			if res, err := again.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("%s: continued, the run is %s: %v", when, res.Status, err)
			}
		})
	}
}

// Who submits a cancelled run while it waits goes on with it, also for who came before the cancel.
func TestCancelledAndSubmittedAgainGoesOn(t *testing.T) {
	for name, again := range map[string]func(context.Context, *supervisor.Supervisor, *dispatcher.Dispatcher[parcel]) error{
		"Continue": func(ctx context.Context, s *supervisor.Supervisor, _ *dispatcher.Dispatcher[parcel]) error {
			_, err := s.Continue(ctx, "a", "run")
			return err
		},
		"Submit": func(ctx context.Context, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel]) error {
			_, err := supervisor.Submit(ctx, s, d, "a", "run", nil)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			hold := make(chan struct{})
			d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
			s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
			first := submit(t, s, d, "a", "first")
			synctest.Wait()
			if err := d.Create(t.Context(), "run", nil); err != nil {
				t.Fatal(err)
			}
			task, err := s.Continue(t.Context(), "a", "run")
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Cancel(t.Context(), "run", errByUser); err != nil {
				t.Fatal(err)
			}
			if err := again(t.Context(), s, d); err != nil {
				t.Fatal(err)
			}
			close(hold)
			completes(t, first)
			if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("%s: the run is %s: %v", name, res.Status, err)
			}
		})
	}
}

// A run that a Recover brought back and a Continue has joined stays cancelled too.
func TestCancelledInARecoveryThatWasJoined(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		d := process(t, line(t, "line", 2, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		first := submit(t, s, d, "a", "first")
		synctest.Wait()
		recovered := recovering(t, s)
		synctest.Wait()
		task, err := s.Continue(t.Context(), "a", "run")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "run", errByUser); err != nil {
			t.Fatal(err)
		}
		close(hold)
		completes(t, first)
		if res, err := task.Wait(t.Context()); !errors.Is(err, context.Canceled) || res.Status != checkpoint.StatusCancelled {
			t.Errorf("the run is %s: %v", res.Status, err)
		}
		if r := <-recovered; len(r.Rested) != 1 {
			t.Errorf("recovered %+v", r)
		}
	})
}

// A run that was joined at work, and is gone on with since it was interrupted, stays cancelled for
// a Continue alone; it is gone on with if any of those who have joined it was a Submit.
func TestCancelledBehindACallThatWasJoined(t *testing.T) {
	for _, submitted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var task *supervisor.Task[struct{}]
			var s *supervisor.Supervisor
			d := asking(t, &store)
			s = supervise(t, &store, supervisor.Options{}, d)
			calls(t, s, d, "run", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
				res, err := d.Run(ctx, "run", nil, drain)
				if err := d.Answer(ctx, "run", "", true); err != nil {
					t.Error(err)
				}
				var joined error
				if task, joined = s.Continue(ctx, "", "run"); joined != nil {
					t.Error(joined)
				}
				if submitted {
					submit(t, s, d, "", "run")
				}
				if err := d.Cancel(ctx, "run", errByUser); err != nil {
					t.Error(err)
				}
				return res, err
			})
			synctest.Wait()
			want := checkpoint.StatusCancelled
			if submitted {
				want = checkpoint.StatusCompleted
			}
			if res, err := task.Wait(t.Context()); res.Status != want {
				t.Errorf("submitted is %t: the run is %s: %v", submitted, res.Status, err)
			}
		})
	}
}

// So it is of one that was completed, and for whose input it is gone on with: somebody else has
// taken that, and was cancelled. Who came last counts as well.
func TestCancelledBehindACompletedCallThatWasJoined(t *testing.T) {
	for _, submitted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var task *supervisor.Task[struct{}]
			var s *supervisor.Supervisor
			var d, other *dispatcher.Dispatcher[parcel]
			joins := func(ctx context.Context, _ dispatcher.End) (err error) {
				if task == nil {
					task, err = s.Continue(ctx, "", "run")
					err = errors.Join(err, d.Enqueue(ctx, "run", func(*parcel) {}))
				}
				return err
			}
			d = process(t, line(t, "line", 1, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: joins}})
			other = process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
				if err := other.Cancel(ctx, "run", errByUser); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}), &store, dispatcher.Options{})
			ended, queued := 0, 0
			s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
				switch e.Kind {
				case supervisor.Ended:
					if ended++; ended == 1 && submitted {
						submit(t, s, d, "", "run")
					}
				case supervisor.Queued:
					if queued++; queued == 2 {
						if _, err := other.Continue(t.Context(), "run"); !errors.Is(err, context.Canceled) {
							t.Errorf("somebody else's call returns %v", err)
						}
					}
				}
			}}, d)
			completes(t, submit(t, s, d, "", "run"))
			want := checkpoint.StatusCancelled
			if submitted {
				want = checkpoint.StatusCompleted
			}
			if res, err := task.Wait(t.Context()); res.Status != want || res.Turn != 2 {
				t.Errorf("submitted is %t: the run is %s in turn %d: %v", submitted, res.Status, res.Turn, err)
			}
		})
	}
}

// saysWhoCancelled checks that err is that of a run that Ada has cancelled, for errByUser.
func saysWhoCancelled(t *testing.T, err error) {
	t.Helper()
	var rest *dispatcher.Rest
	if !errors.As(err, &rest) || rest.Status != checkpoint.StatusCancelled || rest.By != "Ada" || rest.Cause == nil || rest.Cause.Error() != errByUser.Error() {
		t.Errorf("the run ends with %v, want that Ada has cancelled it, and why", err)
	}
}

// A plainRunner is a Runner that does not tell which options it takes, and may know none.
type plainRunner struct {
	d     *dispatcher.Dispatcher[parcel]
	calls int
}

func (r *plainRunner) Graph() string { return r.d.Graph() }

func (r *plainRunner) Continue(ctx context.Context, run string, _ ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	r.calls++
	return r.d.Continue(ctx, run)
}

// Of a run that is left cancelled such a Runner is not asked: it might go on with it.
func TestARunnerThatKnowsNoOptionsIsNotAskedWhoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		hold := make(chan struct{})
		d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
		r := &plainRunner{d: d}
		s := supervise(t, &store, supervisor.Options{Cap: 1}, r)
		first := submit(t, s, d, "", "first")
		synctest.Wait()
		if err := d.Create(t.Context(), "run", nil); err != nil {
			t.Fatal(err)
		}
		task, err := s.Continue(t.Context(), "", "run")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "run", errByUser); err != nil {
			t.Fatal(err)
		}
		close(hold)
		completes(t, first)
		if res, err := task.Wait(t.Context()); !errors.Is(err, context.Canceled) || res.Status != checkpoint.StatusCancelled || r.calls != 0 {
			t.Errorf("the run is %s, behind %d calls: %v", res.Status, r.calls, err)
		}
	})
}

// A run that is rewound between the look that finds it cancelled and the one that finds why is one
// that is to run.
func TestCancelledAndRewoundBeforeItsTurnGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Faulty)
		left(t, "line", 2, store, "run")
		hold := make(chan struct{})
		d := process(t, line(t, "line", 2, func(context.Context, int) error { <-hold; return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		first := submit(t, s, d, "", "first")
		synctest.Wait()
		task, err := s.Continue(t.Context(), "", "run")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "run", errByUser); err != nil {
			t.Fatal(err)
		}
		rewound := false
		store.FailRead = func(ctx context.Context, method, run string) error {
			if method == "Acquire" && run == "run" && !rewound {
				rewound = true
				if err := d.Rewind(ctx, "run", "0", dispatcher.RewindOptions{}); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		close(hold)
		completes(t, first)
		if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted || !rewound {
			t.Errorf("the run is %s: %v", res.Status, err)
		}
	})
}
