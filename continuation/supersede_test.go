package continuation_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// superseded checks that these runs were superseded, and told so, the newest first.
func (p *process) superseded(ends []continuation.End, runs ...string) {
	p.t.Helper()
	var told []string
	for _, end := range ends {
		told = append(told, end.Run)
	}
	if !slices.Equal(told, runs) {
		p.t.Errorf("told of the ends of %q, want %q", told, runs)
	}
	for _, id := range runs {
		p.stands(id, continuation.StatusSuperseded, continuation.Superseded)
	}
}

// A run of the scope that can't be read, be it listed or not, keeps no other from being superseded.
func TestSupersedeGoesAroundADamagedRun(t *testing.T) {
	for name, part := range map[string]checkpoint.Part{"it can't be listed": checkpoint.PartInfo, "its log can't be read": checkpoint.PartLog} {
		t.Run(name, func(t *testing.T) {
			store := &memory.Faulty{}
			p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, continuation.Options{})
			for _, id := range []string{"a", "b", "c"} {
				p.waits(id, dispatcher.Labels(continuation.Owed(nil)))
			}
			store.Spoil("b", part)
			p = begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, continuation.Options{})
			ends, err := p.rt.Supersede(t.Context(), continuation.Owed(nil), "", "me")
			namesDamage(t, err)
			p.superseded(ends, "c", "a")
		})
	}
}

// A canceller has something happen before a run is cancelled.
type canceller struct {
	continuation.Runs
	meddle func(run string) error
}

func (c *canceller) Cancel(ctx context.Context, run string, cause error, o ...dispatcher.RunOption) error {
	if err := c.meddle(run); err != nil {
		return err
	}
	return c.Runs.Cancel(ctx, run, cause, o...)
}

// Nor does one that is deleted meanwhile, which is no error; nor one that can't be stopped, which
// is told; nor one that has come to its end: it stays what it is, and its follow-up is not brought.
func TestSupersedeBesideWhatHappensToARun(t *testing.T) {
	deleted := func(p *process) error { return p.store.Delete(p.t.Context(), "b") }
	completed := func(p *process) error {
		tr := reply("t", "hello")
		tr.Run = "b"
		_, err := p.rt.Trigger(p.t.Context(), tr)
		return err
	}
	for name, c := range map[string]struct {
		before  string // this run is cancelled
		happens func(*process) error
		ends    []string
		err     error
	}{
		"it is deleted before its turn":   {before: "c", happens: deleted, ends: []string{"c", "a"}},
		"it is deleted in its turn":       {before: "b", happens: deleted, ends: []string{"c", "a"}},
		"it has ended before its turn":    {before: "c", happens: completed, ends: []string{"c", "b", "a"}},
		"it has ended in its turn":        {before: "b", happens: completed, ends: []string{"c", "b", "a"}},
		"it can't be stopped in its turn": {before: "b", happens: func(*process) error { return errWeather }, ends: []string{"c", "a"}, err: errWeather},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{})
			for _, id := range []string{"a", "b", "c"} {
				p.waits(id, dispatcher.Labels(continuation.Owed(nil)))
			}
			rt, err := continuation.New(&canceller{p.d, func(run string) error {
				if run == c.before {
					return c.happens(p)
				}
				return nil
			}}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ends, err := rt.Supersede(t.Context(), continuation.Owed(nil), "", "me")
			if !errors.Is(err, c.err) {
				t.Errorf("superseded: %v, want %v", err, c.err)
			}
			if k := slices.Index(c.ends, "b"); k >= 0 {
				if ends[k].Reason != continuation.Completed {
					t.Errorf("the run that was completed has ended so: %+v", ends[k])
				}
				if v := p.stands("b", continuation.StatusResolved, continuation.Completed); v.Delivery != continuation.SuppressedSuperseded {
					t.Errorf("its follow-up is %s", v.Delivery)
				}
				ends, c.ends = slices.Delete(ends, k, k+1), slices.Delete(c.ends, k, k+1)
			}
			p.superseded(ends, c.ends...)
		})
	}
}

// Who supersedes and is to end leaves the rest, and says so.
func TestSupersedeEndsWithItsContext(t *testing.T) {
	over := errors.New("the service ends")
	ctx, end := context.WithCancelCause(t.Context())
	p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{})
	for _, id := range []string{"a", "b"} {
		p.waits(id, dispatcher.Labels(continuation.Owed(nil)))
	}
	rt, err := continuation.New(&canceller{p.d, func(string) error { end(over); return over }}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ends, err := rt.Supersede(ctx, continuation.Owed(nil), "", "me"); len(ends) > 0 || !errors.Is(err, over) {
		t.Errorf("superseded %+v, %v", ends, err)
	}
	p.stands("a", continuation.StatusPending, "")
}

// A run that is deleted just as it is stopped is not found.
func TestStopOfARunThatIsDeleted(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	rt, err := continuation.New(&canceller{p.d, func(string) error { return p.store.Delete(t.Context(), run) }}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser})
	if missing := new(continuation.NotFoundError); !errors.As(err, &missing) || missing.Run != run {
		t.Errorf("stopped: %v", err)
	}
}

// Who notes or tags something has the lease of a run for a moment: what is superseded then is
// suppressed behind that.
func TestSupersedeBesideAnAmendment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		p := finished(t, &store, continuation.Options{})
		l, err := store.Acquire(t.Context(), run, checkpoint.Amender("somebody"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := p.rt.Supersede(context.Background(), continuation.Owed(nil), "", "me")
			done <- err
		}()
		time.Sleep(5 * time.Second) // of virtual time: it waits for twice as long
		synctest.Wait()
		if len(done) > 0 {
			t.Fatalf("Supersede returned %v while the follow-up was %s", <-done, p.only(run).Delivery)
		}
		if err := store.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if v := p.only(run); v.Delivery != continuation.SuppressedSuperseded {
			t.Errorf("the follow-up is %s", v.Delivery)
		}
	})
}

// Whoever has brought a run to its end, and does something about that under its lease, is waited
// for: the follow-up is suppressed behind that, or Supersede says that it is not.
func TestSupersedeBesideWhatIsDoneAboutAnEnd(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a second": time.Second, "a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var man postman
				p := under(t, dispatcher.Options{Grace: time.Hour, Hooks: dispatcher.Hooks{OnEnd: func(_ context.Context, end dispatcher.End) error {
					if end.Status == checkpoint.StatusCompleted {
						lasts(takes)
					}
					return nil
				}}}, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{Deliverer: &man})
				p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
				done := make(chan error, 1)
				go func() { // waited for below
					_, err := p.rt.Trigger(context.Background(), reply("t", "hello"))
					done <- err
				}()
				synctest.Wait()
				supersede := func(want error) {
					t.Helper()
					before := time.Now()
					ends, err := p.rt.Supersede(t.Context(), continuation.Owed(nil), "", "me")
					if len(ends) > 0 || !errors.Is(err, want) || time.Since(before) > 15*time.Second {
						t.Errorf("superseded %+v, %v after %v; want %v", ends, err, time.Since(before), want)
					}
				}
				if takes < 10*time.Second {
					supersede(nil)
				} else {
					supersede(dispatcher.ErrBusy)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if takes >= 10*time.Second {
					supersede(nil)
				}
				if runs, err := p.rt.Deliver(t.Context()); err != nil || len(runs) > 0 || len(man.keys) > 0 {
					t.Errorf("delivered %q, %v", runs, err)
				}
				p.follows(continuation.FollowUp{Status: continuation.SuppressedSuperseded})
			})
		})
	}
}

// Nor is one that is deleted just as a trigger is given to it.
func TestTriggerOfARunThatIsDeleted(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	rt, err := continuation.New(&lagging{p.d, func() {
		if err := p.store.Delete(t.Context(), run); err != nil {
			t.Error(err)
		}
	}}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.Trigger(t.Context(), reply("t", "hello"))
	if missing := new(continuation.NotFoundError); !errors.As(err, &missing) || missing.Run != run {
		t.Errorf("triggered: %v", err)
	}
}

// A follow-up that could not be brought yet, or as often as it may be tried, is suppressed as one
// that was never tried.
func TestSupersedeOfAFollowUpThatFailed(t *testing.T) {
	for name, most := range map[string]int{"it is to be tried again": 2, "it is not": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
				p := finished(t, freshStore(), continuation.Options{Deliverer: &man, Deliveries: most})
				if _, err := p.rt.Deliver(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := p.rt.Supersede(t.Context(), continuation.Owed(nil), "", "me"); err != nil {
					t.Fatal(err)
				}
				lasts(time.Hour)
				if p.delivers(continuation.SuppressedSuperseded); len(man.keys) != 1 {
					t.Errorf("it was tried %d times", len(man.keys))
				}
			})
		})
	}
}
