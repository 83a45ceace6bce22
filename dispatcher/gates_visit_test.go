package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gatesTell gates the node tell.
var gatesTell = gated(dispatcher.Gates{Names: []string{"tell"}})

// The approval of a visit lets it run through all its attempts, in all processes, until it has
// failed for good; when the failed run is resumed it needs another.
func TestGatesVisitApprovalLasts(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	fail := errors.New("not now")
	b := dag.New[Tale]("one")
	dag.Step(b, "tell", w.sees(func(ctx context.Context, _ *Tale) error {
		if dag.Attempt(ctx) < 5 {
			return fail
		}
		return nil
	})).With(dag.Policy{Attempts: 3})
	g := frozen(t, b)
	first := gatesStops(t, g, &store, gatesTell, "before tell#")
	gatesDecide(t, g, &store, gatesTell, first, dispatcher.Approve)
	res, err := process(t, g, &store, gatesTell).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "tell")
	w.expect(t, "tell", "tell#2", "tell#3")
	second := gatesStops(t, g, &store, gatesTell, "before tell#")
	if second.ID == first.ID {
		t.Error("the interrupt that was answered waits again")
	}
	w.expect(t)
	gatesDecide(t, g, &store, gatesTell, second, dispatcher.Approve)
	res, err = process(t, g, &store, gatesTell).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "tell#4", "tell#5")
}

// A visit that waits for its next attempt when its process ends is asked about before that, if it
// has a gate by then or an interceptor asks: the run waits, can be read, and goes on with what is
// said.
func TestGatesVisitBetweenTwoAttempts(t *testing.T) {
	for name, o := range map[string]dispatcher.Options{
		"gate": gatesTell, "interceptor": hookBefore([]string{"tell"}, always(dispatcher.Ask("again?"))),
	} {
		for _, v := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
			t.Run(fmt.Sprint(name, "/", v), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					var store memory.Store
					b := dag.New[Tale]("one")
					dag.Step(b, "tell", w.sees(func(ctx context.Context, _ *Tale) error {
						if dag.Attempt(ctx) == 1 {
							return errWeather
						}
						return nil
					})).With(dag.Policy{Attempts: 3, Backoff: dag.Constant(time.Hour)})
					g := frozen(t, b)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
					rests(t, res, err, checkpoint.StatusTimedOut, "tell")
					lasts(time.Hour)
					i := gatesStops(t, g, &store, o, "before tell#")
					gatesDecide(t, g, &store, o, i, v)
					res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
					if v == dispatcher.Approve {
						completes(t, res, err)
						w.expect(t, "tell", "tell#2")
						return
					}
					rests(t, res, err, checkpoint.StatusFailed, "tell")
					w.expect(t, "tell")
				})
			})
		}
	}
}

// A visit that was cut off goes on under its approval: it had not ended.
func TestGatesVisitCutOff(t *testing.T) {
	var w witness
	store := new(mortal)
	b := dag.New[Tale]("one")
	dag.Step(b, "tell", w.sees(nil))
	g := frozen(t, b)
	i := gatesStops(t, g, store, gatesTell, "before tell#")
	gatesDecide(t, g, store, gatesTell, i, dispatcher.Approve)
	if err := store.revive(t.Context(), 2, false); err != nil { // resumed, done
		t.Fatal(err)
	}
	if _, err := process(t, g, store, gatesTell).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
		t.Fatalf("the store died, and the call returns %v", err)
	}
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	res, err := process(t, g, store, gatesTell).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "tell", "tell")
}

// A visit that was voided has spent its approval: before it runs again it needs another, as
// the other writer does.
func TestGatesVoidedVisit(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	clash := true
	b := dag.New[Tale]("conflict")
	for _, name := range []string{"tell", "shout"} {
		dag.Step(b, name, w.sees(func(_ context.Context, s *Tale) error {
			if clash || name == "tell" {
				s.Word.Set(name)
			}
			return nil
		}))
	}
	g := frozen(t, b)
	i := gatesStops(t, g, &store, gatesTell, "before tell#")
	gatesDecide(t, g, &store, gatesTell, i, dispatcher.Approve)
	res, err := process(t, g, &store, gatesTell).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "tell", "shout")
	w.expect(t, "tell", "shout")
	clash = false
	i = gatesStops(t, g, &store, gatesTell, "before tell#")
	w.expect(t, "shout")
	gatesDecide(t, g, &store, gatesTell, i, dispatcher.Approve)
	res, err = process(t, g, &store, gatesTell).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "tell")
}

// In each iteration, and for each item, there is another approval.
func TestGatesEachIterationAndItem(t *testing.T) {
	var store memory.Store
	got := gatesAsked(t, gatesNested(t), &store, gated(dispatcher.Gates{
		Names: []string{"rounds/pay", "rounds/pay#charge", "all/*#charge", "tree/leaf"},
	}))
	gatesSame(t, "asked", got, []string{
		"rounds/1/pay", "rounds/1/pay#charge", "rounds/2/pay", "rounds/2/pay#charge",
		"all/1#charge", "all/2#charge", "tree/1/leaf", "tree/2/leaf",
	})
}

// Part 2, number 40: an approval that was pending when the process died is still pending, is
// listed, and can be decided, in memory and in Badger. Deciding it twice fails, and so does
// deciding one of an unknown id, or something that is no verdict; none of it changes anything.
func TestLife40ApprovalPendingAtACrash(t *testing.T) {
	for _, kind := range []string{"before tell#", "effect pay#charge"} {
		for _, badger := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s badger=%t", kind, badger), func(t *testing.T) { gatesPending(t, kind, badger) })
		}
	}
}

func gatesPending(t *testing.T, kind string, badger bool) {
	var w witness
	var bank effectBank
	g := gatesShop(t, &w, &bank)
	o := gated(dispatcher.Gates{Names: []string{"tell"}})
	if kind == "effect pay#charge" {
		o = gatesCharge
	}
	var store checkpoint.Store = new(memory.Store)
	dir := t.TempDir()
	reopen := func() {} // as another process
	if badger {
		var open *badgerstore.Store
		reopen = func() {
			if open != nil {
				if err := open.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if open, err = badgerstore.Open(t.Context(), dir, badgerstore.Options{}); err != nil {
				t.Fatal(err)
			}
			store = open
		}
		reopen()
		t.Cleanup(func() { _ = open.Close() })
	}
	first := gatesStops(t, g, store, o, kind)
	reopen()
	res, err := process(t, g, store, o).State(t.Context(), run)
	if err != nil || len(res.Interrupts) != 1 || res.Interrupts[0].ID != first.ID {
		t.Fatalf("another process finds %v, %v", res.Interrupts, err)
	}
	d := process(t, g, store, o)
	res, err = d.Resume(t.Context(), run)
	i := gatesOne(t, res, err, kind)
	refuses := func(what, id string, answer any, want error) {
		t.Helper()
		unchanged(t, store, run, func() {
			if err := d.Answer(t.Context(), run, id, answer); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		})
	}
	refuses("an unknown id", "nobody", dispatcher.Approve, dispatcher.ErrNotAwaited)
	refuses("no verdict", i.ID, "perhaps", dispatcher.ErrAnswerType)
	refuses("nothing", i.ID, nil, dispatcher.ErrAnswerType)
	gatesDecide(t, g, store, o, i, dispatcher.Approve)
	refuses("the second verdict", i.ID, dispatcher.Reject, dispatcher.ErrNotAwaited)
	reopen()
	d = process(t, g, store, o)
	refuses("one in another process", i.ID, dispatcher.Reject, dispatcher.ErrNotAwaited)
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if bank.counts()["tale/pay#charge"] != 1 {
		t.Errorf("done %v", bank.counts())
	}
}

// What was denied can be a value that the
// graph goes on with, or a route.
func TestGatesDeniedEffectIsARoute(t *testing.T) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	b := dag.New[Tale]("order")
	pay := dag.Route(b, "pay", func(ctx context.Context, s *Tale) (way, error) {
		_, err := dag.Effect(ctx, "charge", 5, bank.pay)
		if errors.Is(err, dag.ErrDenied) {
			return right, nil
		}
		return left, err
	}, []way{left, right})
	dag.Step(b, "ship", func(_ context.Context, s *Tale) error { s.Said.Append("shipped"); return nil }, pay.On(left))
	dag.Step(b, "cancel", func(_ context.Context, s *Tale) error { s.Said.Append("cancelled"); return nil }, pay.On(right))
	g := frozen(t, b)
	i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Reject)
	res, err := process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "cancelled")
	gatesUndone(t, &bank)
}
