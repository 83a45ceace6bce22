package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// A device is a store that has no room now and then.
type device struct {
	memory.Faulty
	full atomic.Bool
}

func newDevice() *device {
	d := new(device)
	d.Fail = func(context.Context, memory.Write) memory.Fault {
		if d.full.Load() {
			return memory.Full
		}
		return memory.None
	}
	return d
}

// events keeps those of some kinds, and when they were told.
type events struct {
	mu    sync.Mutex
	kinds []supervisor.EventKind
	began time.Time
	lines []string
}

func (e *events) observe(of supervisor.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.kinds, of.Kind) {
		e.lines = append(e.lines, fmt.Sprintf("%v %s %s", time.Since(e.began).Truncate(time.Millisecond), of.Kind, of.Run))
	}
}

func (e *events) expect(t *testing.T, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.lines) // those of one moment come in any order
	if slices.Sort(want); !slices.Equal(e.lines, want) {
		t.Errorf("told were\n%q, want\n%q", e.lines, want)
	}
}

func holds(t *testing.T, s *supervisor.Supervisor, wantWaiting int) {
	t.Helper()
	synctest.Wait()
	if working, waiting := s.Load(); working != 0 || waiting != wantWaiting {
		t.Errorf("%d runs are at work and %d wait, want 0 and %d", working, waiting, wantWaiting)
	}
}

// While the store has no room nothing that waits is lost: a run that it refused is at the head of
// its key again, tries the store a second later, and waits behind the others then; and all go on
// when one could.
func TestRunsWaitForAStoreThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		var ran diary
		d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
			ran.note(dag.Key(ctx))
			return nil
		}), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.PutBack}}
		s := supervise(t, store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
		store.full.Store(true)
		var tasks []*supervisor.Task[parcel]
		for i := range 5 {
			tasks = append(tasks, submit(t, s, d, "", fmt.Sprintf("r-%d", i)))
		}
		holds(t, s, 5)
		lasts(2500 * time.Millisecond)
		holds(t, s, 5)
		store.full.Store(false)
		for _, task := range tasks {
			completes(t, task)
		}
		if took := time.Since(told.began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		told.expect(t, "0s put back r-0", "1s put back r-0")
		ran.expect(t, "r-1/step-0", "r-2/step-0", "r-3/step-0", "r-4/step-0", "r-0/step-0")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// One run tries a store that stays full, each time twice as long behind the last one, and at most
// half a minute.
func TestAFullStoreIsTriedByOneRunNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.PutBack, supervisor.Ended}}
		s := supervise(t, store, supervisor.Options{Cap: 3, Observe: told.observe}, d)
		store.full.Store(true)
		submit(t, s, d, "", "a")
		synctest.Wait()
		for _, run := range []string{"b", "c", "d"} {
			submit(t, s, d, "", run)
		}
		lasts(100 * time.Second)
		holds(t, s, 4)
		told.expect(t, "0s put back a", "1s put back a", "3s put back b", "7s put back c", "15s put back d",
			"31s put back a", "1m1s put back b", "1m31s put back c")
		report, err := s.Drain(t.Context())
		if err != nil {
			t.Error(err)
		}
		reports(t, report, supervisor.Drain{Waiting: []string{"a", "b", "c", "d"}})
	})
}

// The store has room again when a run that tries it is at work for as long as others waited: they
// don't wait for its end.
func TestRunsDoNotWaitForALongOneThatTriesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Hour); return nil }), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began}}
		s := supervise(t, store, supervisor.Options{Cap: 3, Observe: told.observe}, d)
		store.full.Store(true)
		first := submit(t, s, d, "", "a")
		holds(t, s, 1)
		second, third := submit(t, s, d, "", "b"), submit(t, s, d, "", "c")
		store.full.Store(false)
		completes(t, first)
		completes(t, second)
		completes(t, third)
		told.expect(t, "0s began a", "1s began a", "2s began b", "2s began c")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run for which the store had no room when it was at work goes on when there is some, as a
// Recover would have it; a call of Go is not made twice then, and ends: Drain tells of it, and the
// next process goes on.
func TestRunsThatHadBegunWhenTheStoreWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		var ran diary
		g := line(t, "line", 2, func(ctx context.Context, step int) error {
			ran.note(dag.Key(ctx))
			lasts(time.Second)
			return nil
		})
		d := process(t, g, store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		submitted := submit(t, s, d, "", "submitted")
		called, err := supervisor.Go(t.Context(), s, d, "", "called",
			func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				return d.Start(ctx, "called", nil, drain)
			})
		if err != nil {
			t.Fatal(err)
		}
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		if _, err := called.Wait(t.Context()); !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("who waits for the call is told %v", err)
		}
		holds(t, s, 1)
		store.full.Store(false)
		completes(t, submitted)
		report, err := s.Drain(t.Context())
		if err != nil {
			t.Error(err)
		}
		reports(t, report, supervisor.Drain{Left: []string{"called"}})
		next := supervise(t, store, supervisor.Options{}, process(t, g, store, dispatcher.Options{}))
		if r, err := next.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"called"}) {
			t.Errorf("Recover = %+v, %v", r, err)
		}
	})
}

// A call of Go is made once more if the store had no room to open its run: it has changed nothing.
func TestACallOfGoIsMadeAgainIfItsRunWasNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		store.full.Store(true)
		task, err := supervisor.Go(t.Context(), s, d, "", "a",
			func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				return d.Start(ctx, "a", func(p *parcel) { p.Name.Set("a") }, drain)
			})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, s, 1)
		store.full.Store(false)
		completes(t, task)
		if d, err := s.Drain(t.Context()); err != nil {
			t.Errorf("Drain = %+v, %v", d, err)
		}
	})
}

// A Drain while the store is full ends at once, and tells which runs stand in the store; whoever
// waits is told both reasons.
func TestDrainWhileTheStoreIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		began := submit(t, s, d, "", "began")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		refused := submit(t, s, d, "", "refused")
		asked := time.Now()
		withdrawn := submit(t, s, d, "", "withdrawn")
		lasts(time.Second)
		holds(t, s, 3)
		if !withdrawn.Withdraw() {
			t.Error("a run that waits for room can't be withdrawn")
		}
		if _, err := withdrawn.Wait(t.Context()); !errors.Is(err, supervisor.ErrWithdrawn) {
			t.Errorf("who waits for what was withdrawn is told %v", err)
		}
		report, err := s.Drain(t.Context())
		if took := time.Since(asked); err != nil || took != time.Second {
			t.Errorf("Drain = %v after %v", err, took)
		}
		reports(t, report, supervisor.Drain{Left: []string{"began"}, Waiting: []string{"refused"}})
		for _, task := range []*supervisor.Task[parcel]{began, refused} {
			if _, err := task.Wait(t.Context()); !errors.Is(err, supervisor.ErrDraining) || !errors.Is(err, checkpoint.ErrFull) {
				t.Errorf("who waits for %s is told %v", task.Run(), err)
			}
		}
	})
}

// A Recover of a store that is full waits until it has room.
func TestRecoverWaitsForRoomInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		left(t, "line", 2, store, "a", "b", "c")
		d := process(t, line(t, "line", 2, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		store.full.Store(true)
		recovered := recovering(t, s)
		holds(t, s, 3)
		store.full.Store(false)
		if r := <-recovered; !slices.Equal(r.Rested, []string{"a", "b", "c"}) || len(r.Failed) > 0 {
			t.Errorf("Recover = %+v", r)
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run that was left running since the store was full, and that somebody has cancelled before its
// turn came again, stays so.
func TestARunThatWaitsForRoomStaysCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		task := submit(t, s, d, "", "a")
		lasts(500 * time.Millisecond)
		store.full.Store(true)
		lasts(time.Second)
		holds(t, s, 1)
		store.full.Store(false)
		if err := d.Cancel(t.Context(), "a", errByUser, dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		res, err := task.Wait(t.Context())
		if res.Status != checkpoint.StatusCancelled || res.State.Name.Get() != "a" {
			t.Errorf("Wait = %s of %q, %v", res.Status, res.State.Name.Get(), err)
		}
		saysWhoCancelled(t, err)
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run that somebody has cancelled before a Recover had its turn, and that was submitted before,
// is gone on with for who submitted it, also if there was no room for that at first.
func TestARecoveredRunThatWasSubmittedWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, full := new(memory.Faulty), atomic.Bool{}
		store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
			if w.Run == "a" && full.Load() {
				return memory.Full
			}
			return memory.None
		}
		left(t, "line", 2, store, "a")
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		first := submit(t, s, d, "", "first")
		recovered := recovering(t, s)
		synctest.Wait()
		task := submit(t, s, d, "", "a")
		if err := d.Cancel(t.Context(), "a", errLost); err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		completes(t, first)
		lasts(time.Minute)
		holds(t, s, 1)
		full.Store(false)
		if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("Wait = %s, %v", res.Status, err)
		}
		if r := <-recovered; !slices.Equal(r.Rested, []string{"a"}) {
			t.Errorf("Recover = %+v", r)
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that returns ErrFull, of another store, has failed, and keeps nobody from the store.
func TestANodeThatFindsNoRoomElsewhereFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, func(context.Context, int) error { return checkpoint.ErrFull }), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d)
		first, second := submit(t, s, d, "", "a"), submit(t, s, d, "", "b")
		for _, task := range []*supervisor.Task[parcel]{first, second} {
			if res, err := task.Wait(t.Context()); res.Status != checkpoint.StatusFailed {
				t.Errorf("Wait = %s, %v", res.Status, err)
			}
		}
		if report, err := s.Drain(t.Context()); err != nil || len(report.Left) > 0 {
			t.Errorf("Drain = %+v, %v", report, err)
		}
	})
}

// So has a hook, or what is asked of a dependency, or a call that panics: the task ends with what
// it returned, it is not asked again, and others begin.
func TestAHookThatFindsNoRoomElsewhereFails(t *testing.T) {
	depends := func(ctx context.Context, step int) error {
		if step == 1 {
			return errLost
		}
		return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
	}
	for name, of := range map[string]func(asked *int) (dispatcher.Options, call){
		"a hook": func(asked *int) (dispatcher.Options, call) {
			hooks := dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error {
				*asked++
				return checkpoint.ErrFull
			}}
			return dispatcher.Options{Hooks: hooks, Revalidate: func(context.Context, dag.Dependency) error { return nil }}, nil
		},
		"what is asked of a dependency": func(asked *int) (dispatcher.Options, call) {
			return dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error {
				*asked++
				return checkpoint.ErrFull
			}}, nil
		},
		"a panic": func(asked *int) (dispatcher.Options, call) {
			return dispatcher.Options{}, func(context.Context, dispatcher.RunOption) (*result, error) {
				*asked++
				panic(checkpoint.ErrFull)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, asked := newDevice(), 0
				o, do := of(&asked)
				g := line(t, "line", 2, depends)
				if res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), "a", nil); res.Status != checkpoint.StatusFailed {
					t.Fatalf("it is %s, %v", res.Status, err)
				}
				d, other := process(t, g, store, o), process(t, line(t, "other", 1, nil), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{Cap: 1}, d, other)
				var first *supervisor.Task[parcel]
				if do != nil {
					first = calls(t, s, d, "a", do)
				} else {
					first = submit(t, s, d, "", "a")
				}
				second := submit(t, s, other, "", "b")
				began := time.Now()
				ends(t, first, checkpoint.ErrFull)
				completes(t, second)
				if took := time.Since(began); took != 0 || asked != 1 {
					t.Errorf("it took %v, and was asked %d times", took, asked)
				}
				if _, err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Who has joined a run at work that had no room shares the one result, with its state, when it has
// found some.
func TestWhoHasJoinedARunThatFindsRoomSharesItsResult(t *testing.T) {
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
		completes(t, first)
		completes(t, joined)
		one, _ := first.Wait(t.Context())
		if two, _ := joined.Wait(t.Context()); one != two || one.State.Steps.Len() != 2 {
			t.Errorf("they get %p and %p, %q", one, two, one.State.Steps.Slice())
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Who has joined a run at work that waits for room now is told what becomes of it: by a Drain, or
// who withdraws it, which is theirs to do as well.
func TestWhoHasJoinedARunThatWaitsForRoom(t *testing.T) {
	for _, ends := range []struct {
		name string
		by   func(s *supervisor.Supervisor, first, joined *supervisor.Task[parcel]) error
		why  error
	}{
		{"a drain", func(s *supervisor.Supervisor, _, _ *supervisor.Task[parcel]) error {
			_, err := s.Drain(context.Background())
			return err
		}, supervisor.ErrDraining},
		{"the first", func(_ *supervisor.Supervisor, first, _ *supervisor.Task[parcel]) error {
			return unless(first.Withdraw())
		}, supervisor.ErrWithdrawn},
		{"who has joined", func(_ *supervisor.Supervisor, _, joined *supervisor.Task[parcel]) error {
			return unless(joined.Withdraw())
		}, supervisor.ErrWithdrawn},
	} {
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
			if err := ends.by(s, first, joined); err != nil {
				t.Fatalf("%s: %v", ends.name, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for _, task := range []*supervisor.Task[parcel]{first, joined} {
				if _, err := task.Wait(ctx); !errors.Is(err, ends.why) || !errors.Is(err, checkpoint.ErrFull) {
					t.Errorf("%s: who waits is told %v", ends.name, err)
				}
			}
			if _, err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func unless(done bool) error {
	if !done {
		return errors.New("it did not")
	}
	return nil
}

// A run for which alone the store has no room holds up nobody for long, of its key or another one,
// and ends with ErrFull in the end.
func TestARunThatAloneHasNoRoomHoldsUpNobody(t *testing.T) {
	for _, key := range []string{"", "another"} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memory.Faulty)
			store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
				if w.Run == "big" {
					return memory.Full
				}
				return memory.None
			}
			d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
			s := supervise(t, store, supervisor.Options{Cap: 1}, d)
			began := time.Now()
			big := submit(t, s, d, "", "big")
			var small []*supervisor.Task[parcel]
			for i := range 100 {
				small = append(small, submit(t, s, d, key, fmt.Sprintf("small-%d", i)))
			}
			for _, task := range small {
				completes(t, task)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("others of key %q took %v", key, took)
			}
			submitAgain := submit(t, s, d, key, "one more") // with nobody beside it big waits for room as long as it takes
			completes(t, submitAgain)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for i := 0; ctx.Err() == nil; i++ { // others come now and then
				completes(t, submit(t, s, d, key, fmt.Sprintf("later-%d", i)))
				select {
				case <-big.Done():
					cancel()
				case <-time.After(time.Minute):
				}
			}
			if _, err := big.Wait(t.Context()); !errors.Is(err, checkpoint.ErrFull) {
				t.Errorf("big is told %v", err)
			}
			if _, err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a run does before it finds no room is not done again and again without a longer and longer
// wait, also if it takes longer than that.
func TestALongNodeBeforeAFullStoreIsNotBegunAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, attempts := newDevice(), 0
		d := process(t, line(t, "line", 1, func(context.Context, int) error {
			attempts++
			lasts(5 * time.Second)
			store.full.Store(true)
			return nil
		}), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Began {
				store.full.Store(false)
			}
		}}, d)
		submit(t, s, d, "", "a")
		lasts(10 * time.Minute)
		if attempts > 25 {
			t.Errorf("it was begun %d times in ten minutes", attempts)
		}
		store.full.Store(true)
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// So it is of many runs, however many there are: as long as none comes to rest they wait longer and
// longer together.
func TestManyLongNodesBeforeAFullStoreAreNotBegunAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attempts, appends := 0, map[string]int{}
		store := new(memory.Faulty)
		store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
			mu.Lock()
			defer mu.Unlock()
			if w.Method == "Append" {
				appends[w.Run]++
			}
			if w.Method == "Append" && appends[w.Run]%2 == 0 { // that it begins is a small one
				return memory.Full
			}
			return memory.None
		}
		d := process(t, line(t, "line", 1, func(context.Context, int) error {
			mu.Lock()
			attempts++
			mu.Unlock()
			lasts(5 * time.Second)
			return nil
		}), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{}, d)
		const runs = 64
		for i := range runs {
			submit(t, s, d, "", fmt.Sprint("r-", i))
		}
		lasts(10 * time.Minute)
		if attempts > 10*runs {
			t.Errorf("%d runs were begun %d times in ten minutes", runs, attempts)
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run whose opening was refused when a Drain had ended its call is nowhere in the store, and told
// so.
func TestDrainTellsWhatWasNeverOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Faulty)
		store.Fail = func(context.Context, memory.Write) memory.Fault {
			lasts(2*time.Minute + 2*time.Second)
			return memory.Full
		}
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Grace: time.Minute}, d)
		submit(t, s, d, "", "a")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		report, err := s.Drain(ctx)
		if err != nil {
			t.Error(err)
		}
		reports(t, report, supervisor.Drain{Waiting: []string{"a"}})
	})
}

// A run that had nothing to write tells nothing of room, and the next one tries the store at once:
// a thousand of them are no hours in which nothing is done.
func TestRunsWithNothingToWriteDoNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 4}, d)
		start := func(run string) *supervisor.Task[parcel] {
			task, err := supervisor.Go(t.Context(), s, d, "", run,
				func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
					return d.Start(ctx, run, nil, drain)
				})
			if err != nil {
				t.Fatal(err)
			}
			return task
		}
		var exist []*supervisor.Task[parcel]
		for i := range 1000 {
			if err := d.Create(t.Context(), fmt.Sprint(i), nil); err != nil {
				t.Fatal(err)
			}
		}
		store.full.Store(true)
		first := submit(t, s, d, "", "first")
		synctest.Wait()
		for i := range 1000 {
			exist = append(exist, start(fmt.Sprint(i)))
		}
		last := submit(t, s, d, "", "last")
		lasts(10 * time.Second)
		holds(t, s, 2) // those that have to write
		store.full.Store(false)
		began := time.Now()
		completes(t, first)
		completes(t, last)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the last run took %v", took)
		}
		for _, task := range exist {
			if _, err := task.Wait(t.Context()); !errors.Is(err, checkpoint.ErrExists) {
				t.Errorf("a run that exists: %v", err)
			}
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A run that tries the store behind one that had nothing to write has the whole wait for that: the
// others don't begin since the time of that one is over.
func TestARunThatTriesNextHasTimeForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(700 * time.Millisecond); return nil }), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began, supervisor.PutBack, supervisor.Ended}}
		s := supervise(t, store, supervisor.Options{Cap: 2, Observe: told.observe}, d)
		if err := d.Create(t.Context(), "exists", nil); err != nil {
			t.Fatal(err)
		}
		if err := d.Create(t.Context(), "b", nil); err != nil {
			t.Fatal(err)
		}
		store.full.Store(true)
		submit(t, s, d, "", "a") // finds no room, and tries once more a second later
		synctest.Wait()
		if _, err := supervisor.Go(t.Context(), s, d, "", "exists",
			func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				lasts(1900 * time.Millisecond)
				return d.Start(ctx, "exists", nil, drain)
			}); err != nil {
			t.Fatal(err)
		}
		submit(t, s, d, "", "b")
		submit(t, s, d, "", "c")
		lasts(4 * time.Second)
		store.full.Store(false) // b, which tries from 4.9 s on, has room, and comes to rest at 5.6 s
		lasts(1500 * time.Millisecond)
		told.expect(t, "0s began a", "0s put back a", "1s began a", "1s put back a", "3s began exists", "4.9s ended exists", "4.9s began b")
		lasts(10 * time.Second)
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
