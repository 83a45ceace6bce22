package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An observer that hangs holds up the run, but not the call once its context is done; when
// it returns nothing has happened meanwhile, and the run goes on from its log.
func TestHangingObserver(t *testing.T) {
	n := 1
	for ; !t.Failed(); n++ {
		more := false
		synctest.Test(t, func(t *testing.T) { more = hangAtEvent(t, n) })
		if !more {
			break
		}
	}
	if n < 10 {
		t.Errorf("only %d events were tried", n-1)
	}
}

// hangAtEvent hangs at event n. It reports whether there was one.
func hangAtEvent(t *testing.T, n int) bool {
	var w witness
	var store memory.Store
	var events atomic.Int64
	b := dag.New[Tale]("observed")
	first := dag.Step(b, "first", w.sees(nil))
	one := dag.Step(b, "one", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Millisecond) }), first)
	two := dag.Step(b, "two", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Second) }), first)
	dag.Step(b, "last", w.sees(nil), one, two)
	g := frozen(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := time.Now().Add(time.Minute)
	res, err := process(t, g, &store, dispatcher.Options{Observe: func(dispatcher.Event) {
		if events.Add(1) == int64(n) {
			lasts(time.Hour)
		}
	}}).Run(ctx, run, nil)
	if events.Load() < int64(n) {
		completes(t, res, err)
		return false
	}
	if took := time.Since(end); took > 5*time.Second || took < 0 || err == nil || res.State == nil {
		t.Errorf("event %d: the call returned %+v, %v, %v after the end of its context", n, res, err, took)
	}
	lasts(2 * time.Hour)
	w.took()
	done := kinds(readLog(t, &store), checkpoint.Done)
	res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "first", "one", "two", "last")
	for _, visit := range w.took() {
		if slices.Contains(done, "done "+visit) {
			t.Errorf("event %d: %s was durable and ran again", n, visit)
		}
	}
	return true
}

// leftRunning are calls that leave their run running: since it drains, or since its store fails.
var leftRunning = map[string]func(ctx context.Context, d *dispatcher.Dispatcher[Tale], store *tampered) error{
	"drained": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], _ *tampered) error {
		now := make(chan struct{})
		close(now)
		_, err := d.Run(ctx, run, nil, dispatcher.Drain(now))
		return err
	},
	"store": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], store *tampered) error {
		store.before = fails("Append", 2, checkpoint.ErrFull)
		_, err := d.Run(ctx, run, nil)
		return err
	},
}

// leftAs are their statuses: one that was drained before anything of it had begun is Pending.
var leftAs = map[string]checkpoint.Status{"drained": checkpoint.StatusPending, "store": checkpoint.StatusRunning}

// The observer is told that a call leaves its run running before anybody can go on with it.
func TestObserverIsToldThatARunIsLeftBeforeTheNextCall(t *testing.T) {
	for name, leaves := range leftRunning {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var seen eventsSeen
				var d *dispatcher.Dispatcher[Tale]
				store := &tampered{Store: new(memory.Store)}
				store.after = func(c call, err error) error {
					if c.method == "Release" && c.n == 1 {
						res, err := d.Run(t.Context(), run, nil)
						completes(t, res, err)
					}
					return err
				}
				d = process(t, line(t, &w, nil), store, dispatcher.Options{Observe: seen.observe})
				if err := leaves(t.Context(), d, store); err == nil {
					t.Error("the call has not left its run")
				}
				var told []string
				for _, e := range seen.of(dispatcher.RunStarted, dispatcher.RunResumed, dispatcher.RunRested) {
					told = append(told, fmt.Sprint(e.Kind, " ", e.Status))
				}
				if want := []string{"run started ", "run rested " + string(leftAs[name]), "run resumed ", "run rested completed"}; !slices.Equal(told, want) {
					t.Errorf("the observer was told %q, want %q", told, want)
				}
			})
		})
	}
}

// While it hangs in that nobody goes on with the run, so that it is not called beside itself.
func TestObserverHangsWhenARunIsLeft(t *testing.T) {
	for name, leaves := range leftRunning {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				store := &tampered{Store: new(memory.Store)}
				g := line(t, &w, nil)
				d := process(t, g, store, dispatcher.Options{Observe: func(e dispatcher.Event) {
					if e.Kind == dispatcher.RunRested && e.Status == leftAs[name] {
						lasts(time.Minute)
					}
				}})
				if err := leaves(t.Context(), d, store); err == nil {
					t.Error("the call has not left its run")
				}
				if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.Contains(err.Error(), "Options.Observe") {
					t.Errorf("a run beside it returned %v, want ErrStillRunning of the observer", err)
				}
				if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
					t.Errorf("a run beside it in another process returned %v, want ErrBusy", err)
				}
				if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
					t.Fatal(err)
				}
				lasts(2 * time.Minute)
				isCancelledByAda(t, d, store)
				res, err := d.Run(t.Context(), run, nil)
				completes(t, res, err)
			})
		})
	}
}

// An observer that returns at once is told that a run is left beside a store that hangs, and not
// named with that.
func TestObserverBesideAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var seen eventsSeen
		free := make(chan struct{})
		store := &tampered{Store: new(memory.Store), before: hangs("Append", 2, free)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		res, err := process(t, line(t, &w, nil), store, dispatcher.Options{Observe: seen.observe}).Run(ctx, run, nil)
		stuck(t, res, err, end, "append")
		if len(res.Abandoned) != 1 {
			t.Errorf("abandoned: %q, want the append alone", res.Abandoned)
		}
		told := seen.of(dispatcher.RunRested)
		if len(told) != 1 || told[0].Status != checkpoint.StatusRunning {
			t.Errorf("the observer was told %q, want that the run is left", eventsTold(told))
		}
		close(free)
		synctest.Wait()
	})
}

// User code may call the dispatcher that runs it.
func TestCancelFromInside(t *testing.T) {
	for _, place := range []string{"node", "parallel node", "observer", "hook", "until"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cancelFrom(t, place) })
		})
	}
}

func cancelFrom(t *testing.T, place string) {
	var w witness
	var store memory.Store
	var d *dispatcher.Dispatcher[Tale]
	cancelled := false
	at := func(here string) {
		if here != place || cancelled {
			return
		}
		cancelled = true
		if res, err := d.State(t.Context(), run); err != nil || res.Run != run {
			t.Errorf("State returned %+v, %v", res, err)
		}
		if err := d.Cancel(t.Context(), run, errWeather); err != nil {
			t.Errorf("Cancel returned %v", err)
		}
	}
	body, b := dag.New[Tale]("body"), dag.New[Tale]("inside")
	dag.Step(body, "turn", w.sees(nil))
	alone := dag.Step(b, "alone", w.sees(func(context.Context, *Tale) error { at("node"); return nil }))
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { at("until"); return true }, 2, alone)
	one := dag.Step(b, "one", w.sees(func(context.Context, *Tale) error { at("parallel node"); return nil }), loop)
	two := dag.Step(b, "two", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Second) }), loop)
	dag.Step(b, "last", w.sees(nil), one, two)
	d = process(t, frozen(t, b), &store, dispatcher.Options{
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitDone {
				at("observer")
			}
		},
		InterruptIf: func(b dispatcher.Boundary) bool {
			if b.Path == "loop" {
				at("hook")
			}
			return false
		},
	})
	res, err := d.Run(t.Context(), run, nil)
	if res.Status != checkpoint.StatusCancelled || !errors.Is(err, context.Canceled) {
		t.Fatalf("the run is %s, %v, want it cancelled", res.Status, err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "alone", "loop/1/turn", "one", "two", "last")
}

// While a run is live nobody else can run it; once it is not, anybody can.
func TestBusyWhileLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		g := line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) })
		d := process(t, g, &store, dispatcher.Options{})
		ended := beginRun(t, d)
		for name, by := range map[string]*dispatcher.Dispatcher[Tale]{
			"the same dispatcher": d, "another": process(t, g, &store, dispatcher.Options{}),
		} {
			for call, try := range map[string]func() (*dispatcher.Result[Tale], error){
				"Run":    func() (*dispatcher.Result[Tale], error) { return by.Run(t.Context(), run, nil) },
				"Start":  func() (*dispatcher.Result[Tale], error) { return by.Start(t.Context(), run, nil) },
				"Resume": func() (*dispatcher.Result[Tale], error) { return by.Resume(t.Context(), run) },
			} {
				res, err := try()
				var busy *checkpoint.BusyError
				if !errors.Is(err, dispatcher.ErrBusy) || !errors.As(err, &busy) || busy.Owner == "" || res.State == nil {
					t.Errorf("%s by %s returned %v, want a BusyError that names the owner", call, name, err)
				}
			}
			res, err := by.State(t.Context(), run)
			if err != nil || res.Status != checkpoint.StatusRunning || !slices.Equal(res.Cursor.Visits, []string{"b"}) {
				t.Errorf("State by %s is %s at %q, %v", name, res.Status, res.Cursor.Visits, err)
			}
		}
		e := <-ended
		completes(t, e.res, e.err)
		w.expect(t, "a", "b", "c")
	})
}

// What has become durable of a call that breaks off the observer is told: effects of nodes, and
// what was handed over with a Lag.
func TestObserverIsToldOfAllThatIsDurable(t *testing.T) {
	for _, lag := range []int{0, 3} {
		t.Run(fmt.Sprintf("lag %d", lag), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := new(memory.Store)
				fails := 4
				if lag > 0 {
					fails = 0
				}
				store := &tampered{Store: inner, before: func(_ context.Context, c call) error {
					switch {
					case c.method == "Append" && c.n == fails, c.method == "Posts" && lag > 0:
						return errWeather
					case c.method == "Append" && lag > 0:
						lasts(50 * time.Millisecond)
					}
					return nil
				}}
				var d *dispatcher.Dispatcher[Tale]
				b := dag.New[Tale]("pays")
				last := dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
					_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "receipt", nil })
					return err
				})
				for i := range 8 {
					last = dag.Step(b, fmt.Sprint("next-", i), func(ctx context.Context, _ *Tale) error {
						if i == 5 && lag > 0 {
							return d.Enqueue(ctx, run, func(*Tale) {}, dispatcher.Message("m"))
						}
						return nil
					}, last)
				}
				var told []uint64
				d = process(t, frozen(t, b), store, dispatcher.Options{Lag: lag, Observe: func(e dispatcher.Event) {
					if !e.Live {
						told = append(told, e.Seq)
					}
				}})
				if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, errWeather) {
					t.Fatalf("Run = %v", err)
				}
				log := readLog(t, inner)
				for i := range log {
					if i >= len(told) || told[i] != log[i].Seq {
						t.Fatalf("the observer was told of the entries %d of %d", told, len(log))
					}
				}
			})
		})
	}
}

// An observer that ends its goroutine at what an effect has said is told no more, and fails the
// call, once.
func TestObserverExitsAtAnEffect(t *testing.T) {
	for _, lag := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := dag.New[Tale]("pays")
			pay := dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
				_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "receipt", nil })
				return err
			})
			dag.Step(b, "last", func(context.Context, *Tale) error { lasts(time.Second); return nil }, pay)
			told := 0
			d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Lag: lag, Observe: func(e dispatcher.Event) {
				if e.Kind == dispatcher.EffectBegun {
					told++
					runtime.Goexit()
				}
			}})
			_, err := d.Run(t.Context(), run, nil)
			if fault := (*dispatcher.FaultError)(nil); !errors.As(err, &fault) || fault.Kind != "observer" || told != 1 {
				t.Errorf("lag %d: Run = %v, told %d times", lag, err, told)
			}
		})
	}
}
