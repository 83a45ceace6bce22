package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that was left running since the store had no room, and is deleted while it waits for that,
// is not begun anew, with all that it does, but for who submits it since.
func TestARunThatIsDeletedWhileItWaitsForRoom(t *testing.T) {
	for _, submitted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, began := newDevice(), 0
			d := process(t, line(t, "line", 1, func(context.Context, int) error { began++; lasts(time.Second); return nil }), store, dispatcher.Options{})
			s := supervise(t, store, supervisor.Options{}, d)
			task := submit(t, s, d, "", "a")
			lasts(500 * time.Millisecond)
			store.full.Store(true)
			lasts(time.Second)
			holds(t, s, 1)
			if err := store.Store.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			store.full.Store(false)
			want := checkpoint.ErrNotFound
			if submitted {
				submit(t, s, d, "", "a")
				want = nil
			}
			if res, err := task.Wait(t.Context()); !errors.Is(err, want) || err != nil && strings.Contains(err.Error(), "checkpoint: ") || submitted != (res.Status == checkpoint.StatusCompleted) {
				t.Errorf("submitted again %t: Wait = %+v, %v", submitted, res, err)
			}
			if submitted != (began == 2) {
				t.Errorf("submitted again %t: it was begun %d times", submitted, began)
			}
			if _, err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// So is one that is deleted when its turn has come, and that was looked at.
func TestARunThatIsDeletedWhenItsTurnHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := newDevice(), 0
		var armed, looked, deleted atomic.Bool
		store.FailRead = func(ctx context.Context, method, run string) error {
			switch {
			case !armed.Load():
			case method == "Stat":
				looked.Store(true)
			case method == "Acquire" && looked.Load() && deleted.CompareAndSwap(false, true):
				return store.Store.Delete(ctx, run)
			}
			return nil
		}
		d := process(t, line(t, "line", 1, func(context.Context, int) error { began++; lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		task := submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		lasts(time.Second)
		holds(t, s, 1)
		store.full.Store(false)
		armed.Store(true)
		if res, err := task.Wait(t.Context()); !errors.Is(err, checkpoint.ErrNotFound) || res.Run != "a" || strings.Contains(err.Error(), "dispatcher: ") || !deleted.Load() {
			t.Errorf("Wait = %+v, %v", res, err)
		}
		if _, err := store.Store.Stat(t.Context(), "a"); !errors.Is(err, checkpoint.ErrNotFound) || began != 1 {
			t.Errorf("it was begun %d times: %v", began, err)
		}
		drains(t, s, supervisor.Drain{})
	})
}

// Who submits it when that has been found, and before its Task is done with it, begins it as well.
func TestARunThatIsSubmittedWhenItWasFoundDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := newDevice(), 0
		d := process(t, line(t, "line", 1, func(context.Context, int) error { began++; lasts(time.Second); return nil }), store, dispatcher.Options{})
		var again *supervisor.Task[parcel]
		var s *supervisor.Supervisor
		s = supervise(t, store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Ended && again == nil {
				again = submit(t, s, d, "", "a")
			}
		}}, d)
		task := submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		lasts(time.Second)
		holds(t, s, 1)
		if err := store.Store.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		store.full.Store(false)
		ends(t, task, checkpoint.ErrNotFound)
		completes(t, again)
		if began != 2 {
			t.Errorf("it was begun %d times", began)
		}
		drains(t, s, supervisor.Drain{})
	})
}

// Who has joined it at work, before it had no room, does not: that was before it was deleted.
func TestARunThatWasJoinedAndIsDeletedWhileItWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := newDevice(), 0
		d := process(t, line(t, "line", 1, func(context.Context, int) error { began++; lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		first := submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		joined := submit(t, s, d, "", "a")
		lasts(time.Second)
		holds(t, s, 1)
		if err := store.Store.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		store.full.Store(false)
		ends(t, first, checkpoint.ErrNotFound)
		ends(t, joined, checkpoint.ErrNotFound)
		if began != 1 {
			t.Errorf("it was begun %d times", began)
		}
		drains(t, s, supervisor.Drain{})
	})
}

// A run that somebody else has gone on with, brought to its end or deleted while it waited behind a
// store without room has nothing to write: who waits for it is told so, and it keeps nobody from
// trying the store.
func TestRunsThatOthersHaveMovedOnDoNotHoldUpTheOthers(t *testing.T) {
	ctx := context.Background()
	for name, of := range map[string]struct {
		continues func(at *result) []dispatcher.RunOption
		calls     func(d *dispatcher.Dispatcher[parcel], run string, drain dispatcher.RunOption) (*result, error)
		moves     func(d *dispatcher.Dispatcher[parcel], store checkpoint.Store, run string) error
		want      error
	}{
		"has an entry more": {
			continues: func(at *result) []dispatcher.RunOption { return []dispatcher.RunOption{dispatcher.From(at.Cursor)} },
			moves: func(d *dispatcher.Dispatcher[parcel], _ checkpoint.Store, run string) error {
				return d.Note(ctx, run, "shop.seen", nil)
			},
			want: dispatcher.ErrStaleCursor,
		},
		"is deleted": {
			continues: func(*result) []dispatcher.RunOption { return nil },
			moves: func(_ *dispatcher.Dispatcher[parcel], store checkpoint.Store, run string) error {
				return store.Delete(ctx, run)
			},
			want: checkpoint.ErrNotFound,
		},
		"is deleted, and made again": {
			continues: func(at *result) []dispatcher.RunOption { return []dispatcher.RunOption{dispatcher.From(at.Cursor)} },
			moves: func(d *dispatcher.Dispatcher[parcel], store checkpoint.Store, run string) error {
				return errors.Join(store.Delete(ctx, run), d.Create(ctx, run, nil))
			},
			want: checkpoint.ErrCursor,
		},
		"is answered": {
			continues: func(at *result) []dispatcher.RunOption {
				return []dispatcher.RunOption{dispatcher.Expire(at.Interrupts[0].ID)}
			},
			moves: func(d *dispatcher.Dispatcher[parcel], _ checkpoint.Store, run string) error {
				return d.Answer(ctx, run, "", true)
			},
			want: dispatcher.ErrNotAwaited,
		},
		"is completed": {
			calls: func(d *dispatcher.Dispatcher[parcel], run string, drain dispatcher.RunOption) (*result, error) {
				return d.Resume(ctx, run, drain)
			},
			moves: func(d *dispatcher.Dispatcher[parcel], _ checkpoint.Store, run string) error {
				_, err := d.Continue(ctx, run, dispatcher.Answering("", true))
				return err
			},
			want: dispatcher.ErrCompleted,
		},
		"has had no turn": {
			calls: func(d *dispatcher.Dispatcher[parcel], run string, drain dispatcher.RunOption) (*result, error) {
				return d.Turn(ctx, run, func(*parcel) {}, drain)
			},
			want: dispatcher.ErrNotCompleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				d, other := asking(t, store), asking(t, &store.Store) // for which there is room
				s := supervise(t, store, supervisor.Options{Cap: 1}, d)
				store.full.Store(true)
				first := submit(t, s, d, "", "first")
				synctest.Wait()
				var waits []func() error
				for i := range 50 {
					run := fmt.Sprint("r-", i)
					at, err := other.Run(ctx, run, nil)
					if !errors.Is(err, dispatcher.ErrInterrupted) {
						t.Fatal(err)
					}
					if of.calls != nil {
						task := calls(t, s, d, run, func(_ context.Context, drain dispatcher.RunOption) (*result, error) { return of.calls(d, run, drain) })
						waits = append(waits, func() error { _, err := task.Wait(ctx); return err })
					} else {
						task, err := s.Continue(ctx, "", run, of.continues(at)...)
						if err != nil {
							t.Fatal(err)
						}
						waits = append(waits, func() error { _, err := task.Wait(ctx); return err })
					}
					if of.moves != nil {
						if err := of.moves(other, &store.Store, run); err != nil {
							t.Fatal(err)
						}
					}
				}
				began := time.Now()
				last := submit(t, s, d, "", "last")
				for _, wait := range waits {
					if err := wait(); !errors.Is(err, of.want) {
						t.Errorf("who waits is told %v, want %v", err, of.want)
					}
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				holds(t, s, 2) // those that have to write
				store.full.Store(false)
				ends(t, first, dispatcher.ErrInterrupted)
				ends(t, last, dispatcher.ErrInterrupted)
				if _, err := s.Drain(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A run that rests already, and of which a submission asks nothing more, tells nothing of room
// either: the next one tries at once, alone, and the others wait on.
func TestARunThatRestsAndHasNothingToWriteEndsNoHold(t *testing.T) {
	for name, steps := range map[string]func(context.Context, int) error{
		"completed":   func(context.Context, int) error { return nil },
		"interrupted": func(ctx context.Context, _ int) error { _, err := dag.Ask[bool](ctx, "sure", nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				d := process(t, line(t, "line", 1, steps), store, dispatcher.Options{})
				if _, err := d.Run(t.Context(), "done", nil); err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Fatal(err)
				}
				told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.PutBack, supervisor.Ended}}
				s := supervise(t, store, supervisor.Options{Observe: told.observe}, d)
				store.full.Store(true)
				submit(t, s, d, "", "a")
				synctest.Wait()
				submit(t, s, d, "", "done")
				submit(t, s, d, "", "b")
				lasts(8 * time.Second)
				told.expect(t, "0s put back a", "1s put back a", "3s ended done", "3s put back b", "7s put back a")
				drains(t, s, supervisor.Drain{Waiting: []string{"a", "b"}})
			})
		})
	}
}

// Nor does it count as one that has found room where another run has found none.
func TestRunsWithNothingToWriteEndNoRunThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := atomic.Bool{}
		full.Store(true)
		store := fullFor("big", &full)
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		completes(t, submit(t, s, d, "", "done"))
		big := submit(t, s, d, "", "big")
		for range 8 {
			completes(t, submit(t, s, d, "", "done"))
			lasts(time.Minute)
			holds(t, s, 1)
		}
		full.Store(false)
		completes(t, big)
		drains(t, s, supervisor.Drain{})
	})
}
