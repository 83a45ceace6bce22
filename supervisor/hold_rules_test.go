package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

type (
	result = dispatcher.Result[parcel]
	call   = func(context.Context, dispatcher.RunOption) (*result, error)
)

func calls(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel], run string, do call) *supervisor.Task[parcel] {
	t.Helper()
	task, err := supervisor.Go(t.Context(), s, d, "", run, do)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// ends waits for a task that has to end with all of these errors.
func ends(t *testing.T, task *supervisor.Task[parcel], with ...error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err := task.Wait(ctx)
	for _, want := range with {
		if !errors.Is(err, want) {
			t.Errorf("run %q ends with %v, want %v", task.Run(), err, want)
		}
	}
}

func drains(t *testing.T, s *supervisor.Supervisor, want supervisor.Drain) {
	t.Helper()
	report, err := s.Drain(t.Context())
	if err != nil {
		t.Error(err)
	}
	reports(t, report, want)
}

// fullFor is a store that has no room for one run while full is set.
func fullFor(run string, full *atomic.Bool) *memory.Faulty {
	store := new(memory.Faulty)
	store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
		if w.Run == run && full.Load() {
			return memory.Full
		}
		return memory.None
	}
	return store
}

// A call of Go is made once where it may have changed something, though the store has nothing of
// its run: it has left something that had not returned, or nobody knows what was written.
func TestACallOfGoThatMayHaveChangedSomethingIsNotMadeAgain(t *testing.T) {
	for _, of := range []struct {
		name string
		does call
		with []error
	}{
		{"it has abandoned a node", func(context.Context, dispatcher.RunOption) (*result, error) {
			return &result{Run: "a", Abandoned: []string{"step-0"}}, checkpoint.ErrFull
		}, []error{checkpoint.ErrFull}},
		{"a commit is unknown", func(context.Context, dispatcher.RunOption) (*result, error) {
			return &result{Run: "a"}, errors.Join(checkpoint.ErrFull, checkpoint.ErrCommitUnknown)
		}, []error{checkpoint.ErrFull, checkpoint.ErrCommitUnknown}},
	} {
		t.Run(of.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, made := newDevice(), 0
				d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d)
				ends(t, calls(t, s, d, "a", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
					made++
					return of.does(ctx, drain)
				}), of.with...)
				if lasts(time.Minute); made != 1 {
					t.Errorf("the call was made %d times", made)
				}
				drains(t, s, supervisor.Drain{})
			})
		})
	}
}

// waitsForRoom submits a run of two steps, which is put back in its first one a second later. The
// store has room then, and the steps take no time any more.
func waitsForRoom(t *testing.T) (*supervisor.Supervisor, *dispatcher.Dispatcher[parcel], *supervisor.Task[parcel]) {
	t.Helper()
	store, quick := newDevice(), atomic.Bool{}
	d := process(t, line(t, "line", 2, func(context.Context, int) error {
		if !quick.Load() {
			lasts(time.Second)
		}
		return nil
	}), store, dispatcher.Options{})
	s := supervise(t, store, supervisor.Options{}, d)
	task := submit(t, s, d, "", "a")
	lasts(500 * time.Millisecond)
	store.full.Store(true)
	lasts(time.Second)
	holds(t, s, 1)
	store.full.Store(false)
	quick.Store(true)
	return s, d, task
}

// A run that waits for room, and that somebody has cancelled, is gone on with if it was submitted
// once more.
func TestARunThatWaitsForRoomAndIsSubmittedAgainGoesOnThoughCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, first := waitsForRoom(t)
		if err := d.Cancel(t.Context(), "a", errLost); err != nil {
			t.Fatal(err)
		}
		again := submit(t, s, d, "", "a")
		completes(t, first)
		completes(t, again)
		drains(t, s, supervisor.Drain{})
	})
}

// Who has joined it before it was put back is no such submission: the run stays cancelled, for them
// as well.
func TestARunThatWaitsForRoomAndWasJoinedBeforeStaysCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		first := submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		joined := submit(t, s, d, "", "a")
		store.full.Store(true)
		lasts(time.Second)
		holds(t, s, 1)
		store.full.Store(false)
		if err := d.Cancel(t.Context(), "a", errLost); err != nil {
			t.Fatal(err)
		}
		ends(t, first, context.Canceled)
		ends(t, joined, context.Canceled)
		drains(t, s, supervisor.Drain{})
	})
}

// A run that waits for room, and that somebody else has completed, ends as one that is submitted
// when it is: with its result, and no error.
func TestARunThatWaitsForRoomAndIsCompletedMeanwhileHasItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, task := waitsForRoom(t)
		if res, err := d.Continue(t.Context(), "a"); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("Continue = %s, %v", res.Status, err)
		}
		completes(t, task)
		drains(t, s, supervisor.Drain{})
	})
}

// A run that is refused four times more while others come to rest, and not three or five times,
// ends with ErrFull. A Drain does not tell of it: the store has nothing of it.
func TestARunIsRefusedFourTimesMoreWhileOthersComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := atomic.Bool{}
		full.Store(true)
		store := fullFor("big", &full)
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		big := submit(t, s, d, "", "big")
		lasts(time.Hour) // it is refused often with nobody beside it, which does not count
		for i := range 4 {
			holds(t, s, 1)
			select {
			case <-big.Done():
				t.Fatalf("it has ended when %d others had come to rest", i)
			default:
			}
			completes(t, submit(t, s, d, "", fmt.Sprint("small-", i)))
			lasts(time.Minute)
		}
		holds(t, s, 0)
		ends(t, big, checkpoint.ErrFull)
		drains(t, s, supervisor.Drain{})
	})
}

// Began tells of a run that was put back how long it has waited since then.
func TestBeganTellsHowLongARunHasWaitedForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, waited := newDevice(), diary{}
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(5 * time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Began {
				waited.note(e.Waited.String())
			}
		}}, d)
		task := submit(t, s, d, "", "a")
		lasts(time.Second)
		store.full.Store(true)
		lasts(4500 * time.Millisecond)
		store.full.Store(false)
		completes(t, task)
		waited.expect(t, "0s", "1s")
		drains(t, s, supervisor.Drain{})
	})
}

// What was at work when the store was found full, and is refused later, makes no hold longer: one
// run tries a second after the first was refused.
func TestRunsThatWereAtWorkBeforeMakeAHoldNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := newDevice(), 0
		d := process(t, line(t, "line", 1, func(context.Context, int) error {
			began++
			lasts(time.Duration(began) * time.Second / 2)
			return nil
		}), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began, supervisor.PutBack}}
		s := supervise(t, store, supervisor.Options{Observe: told.observe}, d)
		submit(t, s, d, "", "a")
		synctest.Wait()
		submit(t, s, d, "", "b")
		synctest.Wait()
		store.full.Store(true)
		lasts(1600 * time.Millisecond)
		told.expect(t, "0s began a", "0s began b", "500ms put back a", "1s put back b", "1.5s began b", "1.5s put back b")
		drains(t, s, supervisor.Drain{Left: []string{"a", "b"}})
	})
}

// A run that was at work before the store was full, and comes to rest, ends no hold: that it has
// room for one that began tells nothing of others.
func TestARunThatWasAtWorkBeforeEndsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := atomic.Bool{}
		store := fullFor("big", &full)
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(500 * time.Millisecond); return nil }), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began, supervisor.PutBack, supervisor.Ended}}
		s := supervise(t, store, supervisor.Options{Observe: told.observe}, d)
		full.Store(true)
		before := submit(t, s, d, "", "before")
		synctest.Wait()
		submit(t, s, d, "", "big")
		holdsOthers(t, s, 1, 1)
		behind := submit(t, s, d, "another", "behind")
		completes(t, before)
		lasts(100 * time.Millisecond)
		holds(t, s, 2)
		full.Store(false)
		completes(t, behind)
		told.expect(t, "0s began before", "0s began big", "0s put back big", "500ms ended before",
			"1s began big", "1.5s began behind", "1.5s ended big", "2s ended behind")
		drains(t, s, supervisor.Drain{})
	})
}

func holdsOthers(t *testing.T, s *supervisor.Supervisor, wantWorking, wantWaiting int) {
	t.Helper()
	synctest.Wait()
	if working, waiting := s.Load(); working != wantWorking || waiting != wantWaiting {
		t.Errorf("%d runs are at work and %d wait, want %d and %d", working, waiting, wantWorking, wantWaiting)
	}
}

// A run that tries the store and writes nothing, since somebody has cancelled it meanwhile, ends no
// hold: the next one tries, alone.
func TestARunThatTriesAndWritesNothingEndsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began, supervisor.PutBack, supervisor.Ended}}
		s := supervise(t, store, supervisor.Options{Observe: told.observe}, d)
		submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		lasts(time.Second)
		submit(t, s, d, "", "b")
		submit(t, s, d, "", "c")
		store.full.Store(false)
		if err := d.Cancel(t.Context(), "a", errLost); err != nil {
			t.Fatal(err)
		}
		store.full.Store(true)
		lasts(1600 * time.Millisecond)
		told.expect(t, "0s began a", "1s put back a", "2s began a", "2s ended a", "2s began b", "2s put back b")
		drains(t, s, supervisor.Drain{Waiting: []string{"b", "c"}})
	})
}

// A Drain tells of a run for which the store had no room when it was at work, also when a call for
// it has told nothing since; and no more when one has found that it rests, is gone, or is still
// held by something that was abandoned.
func TestDrainTellsOfRunsThatWereLeftForWantOfRoom(t *testing.T) {
	refused := func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel], abandoned ...string) {
		ends(t, calls(t, s, d, "a", func(context.Context, dispatcher.RunOption) (*result, error) {
			return &result{Run: "a", Abandoned: abandoned}, checkpoint.ErrFull
		}), checkpoint.ErrFull)
	}
	type (
		sup  = supervisor.Supervisor
		disp = dispatcher.Dispatcher[parcel]
	)
	for _, then := range []struct {
		name string
		does func(*testing.T, *device, *sup, *disp)
		left []string
	}{
		{"nothing", func(*testing.T, *device, *sup, *disp) {}, []string{"a"}},
		{"it is refused once more", func(t *testing.T, _ *device, s *sup, d *disp) { refused(t, s, d) }, []string{"a"}},
		{"the store can't tell", func(t *testing.T, store *device, s *sup, d *disp) {
			store.FailRead = func(_ context.Context, method, _ string) error {
				if method == "Stat" {
					return errLost
				}
				return nil
			}
			refused(t, s, d)
			store.FailRead = nil
		}, []string{"a"}},
		{"it is abandoned", func(t *testing.T, _ *device, s *sup, d *disp) { refused(t, s, d, "step-0") }, nil},
		{"it was cancelled, and there is no room", func(t *testing.T, _ *device, s *sup, d *disp) {
			if err := d.Cancel(t.Context(), "a", errLost); err != nil {
				t.Fatal(err)
			}
			refused(t, s, d)
		}, nil},
		{"it is gone", func(t *testing.T, store *device, s *sup, d *disp) {
			if err := store.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			ends(t, calls(t, s, d, "a", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
				return d.Resume(ctx, "a", drain)
			}), checkpoint.ErrNotFound)
		}, nil},
		{"it has completed", func(t *testing.T, _ *device, s *sup, d *disp) {
			if _, err := submit(t, s, d, "", "a").Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(then.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d)
				task := calls(t, s, d, "a", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
					return d.Start(ctx, "a", nil, drain)
				})
				lasts(500 * time.Millisecond)
				store.full.Store(true)
				ends(t, task, checkpoint.ErrFull)
				store.full.Store(false)
				lasts(time.Minute) // the hold has ended
				then.does(t, store, s, d)
				drains(t, s, supervisor.Drain{Left: then.left})
			})
		})
	}
}

// A Drain does not tell of a completed run as one that was left, though the store had no room for
// what was called for it before: Recover has nothing to go on with there.
func TestDrainDoesNotTellOfACompletedRunForWhichThereWasNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		completes(t, submit(t, s, d, "", "a"))
		store.full.Store(true)
		ends(t, calls(t, s, d, "a", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
			return d.Turn(ctx, "a", func(p *parcel) { p.Name.Set("again") }, drain)
		}), checkpoint.ErrFull)
		drains(t, s, supervisor.Drain{})
	})
}

// A Drain tells, once, of a run that waited for room and was withdrawn if the store has it, also if
// it waits for its turn once more; of one that the store does not have it tells nothing.
func TestDrainTellsOfAWithdrawnRunThatWaitedForRoom(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, d, task := waitsForRoom(t)
			if !task.Withdraw() {
				t.Error("it was not withdrawn")
			}
			if again {
				submit(t, s, d, "", "a")
			}
			drains(t, s, supervisor.Drain{Left: []string{"a"}})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		store.full.Store(true)
		task := submit(t, s, d, "", "a")
		holds(t, s, 1)
		if !task.Withdraw() {
			t.Error("it was not withdrawn")
		}
		drains(t, s, supervisor.Drain{})
	})
}

// A run at work for which the store has no room when a Drain has begun stands as it was left.
func TestDrainTellsOfARunAtWorkForWhichThereIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		drains(t, s, supervisor.Drain{Left: []string{"a"}})
	})
}

// A run that tried the store and ended with an error that may be the store's tells nothing of room:
// the next one tries when it would have, and not at once.
func TestARunThatTriesAndFailsOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began}}
		s := supervise(t, store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
		store.full.Store(true)
		a := submit(t, s, d, "a", "a")
		synctest.Wait()
		fails := func(context.Context, dispatcher.RunOption) (*result, error) { return nil, errLost }
		b, c := calls(t, s, d, "b", fails), calls(t, s, d, "c", fails)
		lasts(3500 * time.Millisecond)
		store.full.Store(false)
		completes(t, a)
		ends(t, b, errLost)
		ends(t, c, errLost)
		told.expect(t, "0s began a", "1s began a", "3s began b", "5s began a", "5s began c")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
