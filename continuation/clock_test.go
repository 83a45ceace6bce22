package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

const year = 365 * 24 * time.Hour

// wall is a clock that a test can set.
func wall(jump *atomic.Int64) func() time.Time {
	return func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
}

// The wall clock jumps between any two things that happen to a wait, by a year either way and by a
// nanosecond back. Nothing fires twice; and no wait lasts longer for a process that serves it than
// it was to, though the clock says that it is a year too early.
func TestClockJumpsEndNoWaitTwice(t *testing.T) {
	waits := map[string]continuation.Wait{
		"reply":     {Within: time.Hour},
		"default":   {Within: time.Hour, OnExpire: continuation.Default("nothing")},
		"again":     {Within: time.Hour, OnExpire: continuation.Again(2)},
		"escalates": {Within: time.Hour, OnExpire: continuation.Escalate(dag.Human, time.Minute)},
		"timer":     {Kind: continuation.KindTimer, After: time.Hour},
		"any":       continuation.Any(continuation.Wait{}, continuation.Wait{Kind: continuation.KindTimer, After: time.Hour}),
	}
	for name, w := range waits {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(30) {
				synctest.Test(t, func(t *testing.T) { jumps(t, w, seed) })
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func jumps(t *testing.T, w continuation.Wait, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	var jump atomic.Int64
	bodies := 0
	g := waiting(t, w, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		bodies++
		return says(ctx, s, r)
	})
	store := freshStore()
	o := continuation.Options{Now: wall(&jump)}
	p := begin(t, g, store, o)
	p.waits(run)
	for step := range 12 {
		jump.Add(int64([]time.Duration{0, year, -year, -1}[random.IntN(4)]))
		var err error
		switch random.IntN(5) {
		case 0:
			_, err = p.rt.Sweep(t.Context())
		case 1:
			if random.IntN(4) == 0 {
				_, err = p.rt.Trigger(t.Context(), reply(fmt.Sprint("t", step), "hello"))
			}
		case 2:
			p = begin(t, g, store, o) // another process
			_, err = p.rt.Recover(t.Context())
		case 3:
			_, err = p.d.Run(t.Context(), run, nil)
		case 4:
			lasts(time.Duration(random.IntN(60)) * time.Minute)
		}
		if err != nil && !refusal(err) {
			t.Errorf("step %d: %v", step, err)
		}
	}
	stop := p.serves(t.Context())
	for range 3 { // levels at most, which expire one after the other
		synctest.Wait()
		jump.Add(int64([]time.Duration{0, -year, -1}[random.IntN(3)]))
		lasts(time.Hour)
	}
	synctest.Wait()
	stop()
	asked, ended := 0, 0
	for _, k := range p.kinds(run) {
		switch k {
		case checkpoint.Interrupted:
			asked++
		case checkpoint.Answered:
			ended++
		}
	}
	if asked != ended || bodies > 1 {
		t.Errorf("%d asked, %d ended, the body ran %d times", asked, ended, bodies)
	}
	if v := p.only(run); v.Status == continuation.StatusExpired != (bodies == 0) || !slices.Contains([]continuation.Status{
		continuation.StatusExpired, continuation.StatusResolved,
	}, v.Status) {
		t.Errorf("the wait is %s, the body ran %d times", v.Status, bodies)
	}
}

// refusal reports whether an error says that a wait has ended, or is not for that; or how the run
// rests.
func refusal(err error) bool {
	var mismatch *continuation.MismatchError
	var rest *dispatcher.Rest
	return errors.Is(err, dag.ErrExpired) || errors.Is(err, continuation.ErrTerminal) || errors.Is(err, continuation.ErrTaken) ||
		errors.As(err, &mismatch) || errors.As(err, &rest)
}

// servesForAnHour serves a run, in virtual time, whose wait is pending until the hour is over.
func servesForAnHour(t *testing.T, p *process) {
	t.Helper()
	stop := p.serves(t.Context())
	defer stop()
	lasts(time.Hour - 1)
	synctest.Wait()
	p.stands(run, continuation.StatusPending, "")
	lasts(time.Nanosecond)
	synctest.Wait()
}

// The clock is set back by a year behind a wait. The process that serves it ends it when it has
// waited for as long as it was to, and not before; triggers hear the same.
func TestClockSetBackEndsAWaitInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		p := begin(t, waiting(t, continuation.Wait{Within: time.Hour}, dag.Policy{}, says), freshStore(), continuation.Options{Now: wall(&jump)})
		p.waits(run)
		jump.Store(-int64(year))
		servesForAnHour(t, p)
		p.stands(run, continuation.StatusExpired, continuation.Expired)
		if _, err := p.rt.Trigger(t.Context(), reply("late", "hello")); !errors.Is(err, continuation.ErrTerminal) {
			t.Errorf("a trigger behind it: %v", err)
		}
	})
}

// So does one whose log was trimmed.
func TestClockSetBackBehindATrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		w := continuation.Wait{Within: time.Hour, OnExpire: continuation.Default("nothing")}
		p, _ := trimmed(t, w, continuation.Options{Now: wall(&jump)})
		jump.Store(-int64(year))
		servesForAnHour(t, p)
		if said := p.said(run); !slices.Equal(said, []string{"nothing"}) {
			t.Errorf("the state says %q", said)
		}
	})
}

// A trigger that comes before the next sweep is as late as the sweep would find it.
func TestClockSetBackMakesTriggersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		p := begin(t, waiting(t, continuation.Wait{Within: time.Hour}, dag.Policy{}, says), freshStore(), continuation.Options{Now: wall(&jump)})
		p.waits(run)
		if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
			t.Fatalf("swept %v, %v", runs, err)
		}
		jump.Store(-int64(year))
		lasts(time.Hour)
		if _, err := p.rt.Trigger(t.Context(), reply("late", "hello")); !errors.Is(err, dag.ErrExpired) {
			t.Errorf("a trigger after an hour: %v", err)
		}
		p.stands(run, continuation.StatusExpired, continuation.Expired)
	})
}

// Nor does a run that can't be read, which says so, keep the others from ending in time.
func TestClockSetBackBesideARunThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		store, o := &memory.Store{}, continuation.Options{Now: wall(&jump)}
		g := waiting(t, continuation.Wait{Within: time.Hour}, dag.Policy{}, says)
		begin(t, g, store, o).waits("torn")
		p := begin(t, g, &torn{store, "torn"}, o)
		p.waits(run)
		for _, back := range []time.Duration{0, -year} {
			jump.Store(int64(back))
			if _, err := p.rt.Sweep(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), `run "torn"`) {
				t.Errorf("swept: %v", err)
			}
			p.stands(run, continuation.StatusPending, "")
			lasts(30 * time.Minute)
		}
		_, _ = p.rt.Sweep(t.Context())
		p.stands(run, continuation.StatusExpired, continuation.Expired)
	})
}

// What was seen to wait counts on while its own run can't be read.
func TestClockSetBackWhileARunCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		store, o := &torn{Store: &memory.Store{}}, continuation.Options{Now: wall(&jump)}
		p := begin(t, waiting(t, continuation.Wait{Within: time.Hour}, dag.Policy{}, says), store, o)
		p.waits(run)
		_, _ = p.rt.Sweep(t.Context())
		lasts(time.Hour - 1)
		jump.Store(-int64(year))
		if err := p.d.Note(t.Context(), run, "app.seen", "it"); err != nil { // so that it is read again
			t.Fatal(err)
		}
		store.run = run
		if _, err := p.rt.Sweep(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("swept: %v", err)
		}
		lasts(time.Nanosecond)
		store.run = ""
		_, _ = p.rt.Sweep(t.Context())
		p.stands(run, continuation.StatusExpired, continuation.Expired)
	})
}

// Two clocks are that of the store and the one that dispatcher and Runtime are given, behind it or
// ahead of it by a year.
func twoClocks(t *testing.T, test func(*testing.T, func() time.Time)) {
	for name, apart := range map[string]time.Duration{"behind": -year, "ahead": year} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func() time.Time { return time.Now().Add(apart) })
			})
		})
	}
}

// The bounds of the parts of an Any count from when it was asked by the clock that the dispatcher
// is given, whatever the store's says; so they do when it is asked again.
func TestClockOfTheStoreBoundsNoPart(t *testing.T) {
	twoClocks(t, func(t *testing.T, now func() time.Time) {
		p := begin(t, waiting(t, continuation.Any(
			continuation.Wait{Key: "soon", Within: time.Hour, OnExpire: continuation.Again(1)},
			continuation.Wait{Key: "late", Within: 5 * time.Hour},
		), dag.Policy{}, says), freshStore(), continuation.Options{Now: now})
		for _, level := range []int{1, 2} {
			for id, after := range map[string]time.Duration{"in time": time.Hour - 1, "late": time.Hour} {
				other := fmt.Sprint(level, id)
				begun := time.Now()
				p.waits(other)
				if level == 2 {
					lasts(5 * time.Hour)
					if _, err := p.rt.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if v := p.only(other); v.Level != level || !v.Asked.Equal(now()) {
					t.Errorf("at %v it is %+v", now(), v)
				}
				lasts(after)
				tr := reply2(other, "soon")
				tr.Run = other
				var late *continuation.ExpiredError
				if _, err := p.rt.Trigger(t.Context(), tr); errors.As(err, &late) != (id == "late") || err != nil && late == nil {
					t.Errorf("level %d, %v behind the beginning: %v", level, time.Since(begun), err)
				}
			}
		}
	})
}

// By the clock that the dispatcher is given, whatever the machine's says, an Until is to come or is
// in the past, also in an item of an Each; of the parts of an Any the longer one bounds it; and a
// timer is missed or is not.
func TestClockOfTheMachineJudgesNoInstant(t *testing.T) {
	twoClocks(t, func(t *testing.T, now func() time.Time) {
		o := continuation.Options{Now: now}
		for _, after := range []time.Duration{time.Hour, -time.Hour} {
			await := func(ctx context.Context) error {
				_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Until: now().Add(after)})
				return err
			}
			b := dag.New[Talk]("talk")
			dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error { return await(ctx) })
			dag.Each(b, "each", func(*Talk) []int { return []int{1, 2} }, func(ctx context.Context, _ *Talk, _ int) error { return await(ctx) })
			res, err := begin(t, frozen(t, b), freshStore(), o).d.Run(t.Context(), run, nil)
			var argument *continuation.ArgumentError
			if past := after < 0; errors.As(err, &argument) != past || !past && len(res.Interrupts) != 3 {
				t.Errorf("until %v from now: %v", after, err)
			}
		}

		p := begin(t, waiting(t, continuation.Any(
			continuation.Wait{Key: "long", Within: 5 * time.Hour}, continuation.Wait{Key: "short", Until: now().Add(2 * time.Hour)},
		), dag.Policy{}, says), freshStore(), o)
		p.waits(run)
		lasts(3 * time.Hour)
		if _, err := p.rt.Trigger(t.Context(), reply2("in time", "long")); err != nil {
			t.Errorf("a trigger within the five hours: %v", err)
		}

		for name, w := range map[string]continuation.Wait{"after": {After: time.Hour}, "at": {At: now().Add(time.Hour)}} {
			for late, missed := range map[time.Duration]bool{0: false, time.Minute - 1: false, time.Minute: true} {
				w.Kind, w.Within = continuation.KindTimer, time.Minute
				if !w.At.IsZero() {
					w.At = now().Add(time.Hour)
				}
				var woken []bool
				p := begin(t, waiting(t, w, dag.Policy{}, func(_ context.Context, _ *Talk, r continuation.Reply[string]) error {
					woken = append(woken, r.Missed)
					return nil
				}), freshStore(), o)
				p.waits(run)
				lasts(time.Hour + late)
				if _, err := p.rt.Sweep(t.Context()); err != nil || !slices.Equal(woken, []bool{missed}) {
					t.Errorf("a timer, %s, that is late by %v is missed: %v, %v", name, late, woken, err)
				}
			}
		}
	})
}

// A clock that dispatcher and Runtime are given, and that jumps, has a timer be missed as any other
// clock does.
func TestClockThatJumpsOverATimer(t *testing.T) {
	for jumps, missed := range map[time.Duration]bool{time.Hour: false, time.Hour + 30*time.Second: false, time.Hour + time.Minute: true, year: true} {
		for name, w := range map[string]continuation.Wait{"after": {After: time.Hour}, "at": {}} {
			synctest.Test(t, func(t *testing.T) {
				var jump atomic.Int64
				w.Kind, w.Within = continuation.KindTimer, time.Minute
				if name == "at" {
					w.At = time.Now().Add(time.Hour)
				}
				var woken []continuation.Reply[string]
				p := begin(t, waiting(t, w, dag.Policy{}, func(_ context.Context, _ *Talk, r continuation.Reply[string]) error {
					woken = append(woken, r)
					return nil
				}), freshStore(), continuation.Options{Now: wall(&jump)})
				p.waits(run)
				jump.Store(int64(jumps))
				if _, err := p.rt.Sweep(t.Context()); err != nil || len(woken) != 1 || woken[0].Missed != missed || !woken[0].At.Equal(time.Now().Add(jumps)) {
					t.Errorf("a timer, %s, over which the clock has jumped to %v: %+v, %v", name, jumps, woken, err)
				}
			})
		}
	}
}

// A delivery that failed is tried again when Redeliver has passed on the clock that the Runtime is
// given, whatever the store's says.
func TestClockOfTheStoreDelaysNoDelivery(t *testing.T) {
	twoClocks(t, func(t *testing.T, now func() time.Time) {
		man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
		p := finished(t, freshStore(), continuation.Options{Deliverer: &man, Deliveries: 5, Redeliver: time.Minute, Now: now})
		for tries := 1; tries <= 3; tries++ {
			p.delivers(continuation.DeliveryPending)
			lasts(time.Minute - 1)
			p.delivers(continuation.DeliveryPending)
			if n := len(man.keys); n != tries {
				t.Errorf("just before the minute is over it was tried %d times, want %d", n, tries)
			}
			lasts(time.Nanosecond)
		}
	})
}

// A failure that an earlier build has noted, without its instant, counts from its entry.
func TestFailureNotedWithoutItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		man := postman{}
		p := finished(t, freshStore(), continuation.Options{Deliverer: &man})
		note := map[string]any{"status": continuation.DeliveryFailed, "key": "k", "reason": "down"}
		if err := p.d.Note(t.Context(), run, "continuation.delivery", note); err != nil {
			t.Fatal(err)
		}
		lasts(time.Minute - 1)
		p.delivers(continuation.DeliveryPending)
		lasts(time.Nanosecond)
		p.delivers(continuation.Delivered)
	})
}

// neverEnds waits for somebody who has an hour, or for somebody who has longer than a duration can
// say.
func neverEnds() continuation.Wait {
	return continuation.Any(continuation.Wait{Key: "soon", Within: time.Hour},
		continuation.Wait{Key: "never", Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)})
}

// However far away the end of one part is, the others have their bounds, by the clock that the
// dispatcher is given: also behind a sweep, and a trim.
func TestPartsBesideOneThatNeverEnds(t *testing.T) {
	for name, sets := range map[string]func(*process){
		"whole":   func(*process) {},
		"trimmed": (*process).trims,
	} {
		for _, after := range []time.Duration{time.Hour - 1, time.Hour} {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				twoClocks(t, func(t *testing.T, now func() time.Time) {
					asked := now()
					p, _ := untrimmed(t, neverEnds(), continuation.Options{Now: now})
					lasts(time.Minute)
					sets(p)
					if v := p.only(run); !v.Asked.Equal(asked) {
						t.Errorf("asked at %v, want %v", v.Asked, asked)
					}
					if _, err := p.rt.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
					lasts(after - time.Minute)
					var late *continuation.ExpiredError
					if _, err := p.rt.Trigger(t.Context(), reply2("t", "soon")); errors.As(err, &late) != (after == time.Hour) || err != nil && late == nil {
						t.Errorf("a trigger after %v: %v", after, err)
					}
				})
			})
		}
	}
}

// An older store has what programs wrote that did not say when such a question was asked.
type olderStore struct{ memory.Store }

func (s *olderStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, es []checkpoint.Entry) (checkpoint.Head, error) {
	es = slices.Clone(es)
	for i, e := range es {
		var data map[string]json.RawMessage
		if e.Kind == checkpoint.Interrupted && json.Unmarshal(e.Data, &data) == nil && data["asked"] != nil {
			delete(data, "asked")
			es[i].Data, _ = json.Marshal(data)
		}
	}
	return s.Store.Append(ctx, l, after, es)
}

// Where the log of an older program does not say when a question was asked that never ends, its
// entry does.
func TestPartsBesideOneThatNeverEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, store := waiting(t, neverEnds(), dag.Policy{}, says), &olderStore{}
		asked := time.Now()
		begin(t, g, store, continuation.Options{}).waits(run)
		p := begin(t, g, store, continuation.Options{})
		lasts(time.Hour)
		if v := p.only(run); !v.Asked.Equal(asked) {
			t.Errorf("asked at %v, want %v", v.Asked, asked)
		}
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var late *continuation.ExpiredError
		if _, err := p.rt.Trigger(t.Context(), reply2("t", "soon")); !errors.As(err, &late) {
			t.Errorf("an hour later: %v", err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply2("u", "never")); err != nil {
			t.Errorf("of the part that does not end: %v", err)
		}
	})
}
