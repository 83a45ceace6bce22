package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// doubtEdges are graphs in which a visit pays, and a refund follows its failure, or that of a
// frame around it, at any depth.
func doubtEdges(t *testing.T, w *witness, pay part) map[string]*dag.Graph[Tale] {
	t.Helper()
	graphs := map[string]*dag.Graph[Tale]{}
	body := func() *dag.Graph[Tale] {
		b := dag.New[Tale]("body")
		dag.Step(b, "beside", w.sees(nil))
		dag.Step(b, "pay", w.sees(pay))
		return frozen(t, b)
	}
	items := func(*Tale) []int { return []int{1, 2, 3} }
	only := func(ctx context.Context, s *Tale, i int) error {
		if i == 2 {
			return w.sees(pay)(ctx, s)
		}
		return w.sees(nil)(ctx, s)
	}
	merge := func(from, to *Tale) {
		to.Word.Set(from.Word.Get())
		to.Said.Append(from.Said.Slice()...)
	}
	for name, add := range map[string]func(*dag.Builder[Tale]) dag.Edge[Tale]{
		"a step": func(b *dag.Builder[Tale]) dag.Edge[Tale] { return dag.Step(b, "pay", w.sees(pay)).Failed() },
		"an embed": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			return dag.Embed(b, "hold", body(), func(_, _ *Tale) {}, merge).Failed()
		},
		"a loop": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			return dag.Loop(b, "hold", body(), func(*Tale) bool { return true }, 2).Failed()
		},
		"a loop in an embed": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			house := dag.New[Tale]("house")
			dag.Loop(house, "rooms", body(), func(*Tale) bool { return true }, 2)
			return dag.Embed(b, "hold", frozen(t, house), func(_, _ *Tale) {}, merge).Failed()
		},
		"an item": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			return dag.Each(b, "hold", items, only).With(dag.Policy{Parallel: 1}).Failed()
		},
		"an item that is collected": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			return dag.Each(b, "hold", items, only).With(dag.Policy{Parallel: 1, Errors: dag.Collect}).Failed()
		},
		"a graph of an item": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			return dag.EachGraph(b, "hold", func(*Tale) []int { return []int{1} }, body(),
				func(*Tale, int, *Tale) {}, func(from *Tale, _ int, to *Tale) { merge(from, to) }).
				With(dag.Policy{Errors: dag.Collect}).Failed()
		},
	} {
		b := dag.New[Tale]("edges")
		dag.Step(b, "refund", w.sees(nil), add(b))
		graphs[name] = frozen(t, b)
	}
	return graphs
}

// What follows the failure of a visit would have to guess whether an effect in doubt happened: a
// refund behind a payment that was made pays twice. An effect that lets the visit fail, or asks
// a person, has the failure edge not taken, wherever it is, also if its function panics: the run
// rests until somebody says what happened. Then the visit runs, and nothing was refunded.
func TestDoubtTakesNoFailureEdge(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtFails, dag.DoubtAsks} {
		for _, panics := range []bool{false, true} {
			var side *doubtSide
			var w witness
			for name, g := range doubtEdges(t, &w, func(ctx context.Context, s *Tale) error {
				receipt, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, cents int) (string, error) {
					if panics && side.calls == 0 {
						side.calls++
						panic("in the middle")
					}
					return side.charge(ctx, cents)
				}, dag.InDoubt(doubt))
				s.Word.Set(receipt)
				return err
			}) {
				name = fmt.Sprintf("%s, %s, panics=%t", name, doubt, panics)
				side = &doubtSide{fails: 1}
				if panics {
					side.fails = 0
				}
				store := new(memory.Store)
				d := process(t, g, store, dispatcher.Eager(dispatcher.Options{}))
				res, err := d.Run(t.Context(), run, nil)
				switch {
				case doubt == dag.DoubtAsks && doubtOutcome(res) == "interrupted doubt": // the visit waits, and has not failed
				case doubt == dag.DoubtAsks || doubtOutcome(res) != "failed in_doubt" || res.Cursor.Visits[0] != res.Failures[0].Path:
					t.Fatalf("%s: the run is %s at %q: %v", name, doubtOutcome(res), res.Cursor.Visits, err)
				case !errors.Is(err, dag.ErrInDoubt):
					t.Errorf("%s: the error is %v", name, err)
				}
				sameMachine(t, d, run)
				e := doubtOpened(t, d).Effects[0]
				if _, err := d.Resume(t.Context(), run, dispatcher.Manual()); !errors.As(err, new(*dispatcher.DoubtError)) {
					t.Errorf("%s: a manual resume returns %v", name, err)
				}
				if err := d.Resolve(t.Context(), run, e.Path, e.Key, dispatcher.Happened("by hand")); err != nil {
					t.Fatal(name, err)
				}
				res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
				if completes(t, res, err); res.State.Word.Get() != "by hand" || side.calls != 1 {
					t.Errorf("%s: the state has %q, and the effect was done %d times", name, res.State.Word.Get(), side.calls)
				}
				if ran := w.took(); slices.Contains(ran, "refund") || strings.Contains(name, "collected") && !slices.Contains(ran, "hold/3") {
					t.Errorf("%s: what ran is %q", name, ran)
				}
			}
		}
	}
}

// The default leaves it to the node: one that returns the error has decided that the visit fails,
// and who follows its failure finds among dag.Failures that an effect is in doubt.
func TestDoubtToldToTheFailureEdge(t *testing.T) {
	var w witness
	for name, g := range doubtEdges(t, &w, func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { return 0, errDoubtReset })
		return err
	}) {
		if strings.Contains(name, "item") {
			continue // told to who follows the Each
		}
		res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if ran := w.took(); !slices.Contains(ran, "refund") {
			t.Errorf("%s: what ran is %q", name, ran)
		}
	}
	b := dag.New[Tale]("told")
	pay := dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { return 0, errDoubtReset })
		return err
	})
	dag.Step(b, "refund", func(ctx context.Context, s *Tale) error {
		for _, f := range dag.Failures(ctx) {
			if f.Kind == dag.FailedInDoubt {
				s.Word.Set("nobody knows what came of " + f.Path)
			}
		}
		return nil
	}, pay.Failed())
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	if completes(t, res, err); res.State.Word.Get() != "nobody knows what came of pay" {
		t.Errorf("who follows the failure saw %q", res.State.Word.Get())
	}
}

// A frame may reach a dag.Fail beside a doubt, and its failure be followed. That is no dead end of
// the run: once the doubt is resolved the frame fails, as it would have, and its failure edge is
// taken.
func TestDoubtBesideADeadEnd(t *testing.T) {
	for _, nested := range []bool{false, true} {
		quiet(t)
		var w witness
		var side doubtSide
		ends := func(b *dag.Builder[Tale]) { dag.Fail(b, "over", dag.Step(b, "ends", w.sees(nil))) }
		house, room := dag.New[Tale]("house"), dag.New[Tale]("room")
		first := dag.Step(house, "first", w.sees(nil))
		dag.Step(house, "pay", side.pay(dag.InDoubt(dag.DoubtFails)), first)
		if ends(room); nested {
			dag.Embed(house, "room", frozen(t, room), func(_, _ *Tale) {}, func(_, _ *Tale) {}, first)
		} else {
			ends(house)
		}
		b := dag.New[Tale]("top")
		hold := dag.Embed(b, "hold", frozen(t, house), func(_, _ *Tale) {}, func(_, _ *Tale) {})
		dag.Step(b, "refund", w.sees(nil), hold.Failed())
		store := new(memory.Store)
		side.fails = 1
		d := process(t, frozen(t, b), store, dispatcher.Eager(dispatcher.Options{}))
		if res, err := d.Run(t.Context(), run, nil); res.Status != checkpoint.StatusFailed || !errors.Is(err, dag.ErrInDoubt) {
			t.Fatalf("nested=%t: the run is %s: %v", nested, res.Status, err)
		}
		if err := d.Resolve(t.Context(), run, "hold/pay", "charge", dispatcher.Happened("by hand")); err != nil {
			t.Fatal(err)
		}
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if ran := w.took(); side.calls != 1 || side.ran != 2 || !slices.Contains(ran, "refund") {
			t.Errorf("nested=%t: charged %d times in %d attempts, and %q ran", nested, side.calls, side.ran, ran)
		}
		sameMachine(t, d, run)
	}
}

// An effect that an earlier attempt has left in doubt holds the failure edge back also if the visit
// fails before it comes to the effect again: in its first line, or since an interceptor denies it,
// a person rejects it, or whoever is asked about it panics.
func TestDoubtLeftBehindTakesNoFailureEdge(t *testing.T) {
	intercepted := func(before func(context.Context, dispatcher.Call) dispatcher.Ruling) (o dispatcher.Options) {
		o.Hooks.Intercept = []dispatcher.Interceptor{{Name: "no", Before: before}}
		return o
	}
	for _, doubt := range []dag.Doubt{dag.DoubtFails, dag.DoubtAsks} {
		for fails, o := range map[string]dispatcher.Options{
			"in its first line": {},
			"denied":            intercepted(func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Deny("closed") }),
			"not decided":       intercepted(func(context.Context, dispatcher.Call) dispatcher.Ruling { panic("no rules") }),
			"not asked about":   {InterruptIf: func(dispatcher.Boundary) bool { panic("no rules") }},
			"rejected":          {InterruptBefore: []string{"pay"}},
		} {
			var w witness
			ctx, cancel := context.WithCancel(t.Context())
			calls, broken := 0, true
			b := dag.New[Tale]("edges")
			pay := dag.Step(b, "pay", w.sees(func(ctx context.Context, s *Tale) error {
				if calls++; calls > 1 && broken {
					return errWeather
				}
				receipt, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (string, error) {
					cancel()
					<-ctx.Done()
					return "", ctx.Err()
				}, dag.InDoubt(doubt))
				s.Word.Set(receipt)
				return err
			}))
			dag.Step(b, "refund", w.sees(nil), pay.Failed())
			g, store := frozen(t, b), new(memory.Store)
			res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
			if doubt == dag.DoubtFails {
				rests(t, res, err, checkpoint.StatusCancelled, "pay")
			} else if err == nil {
				t.Fatal("nothing is in doubt")
			}
			d := process(t, g, store, o)
			res, err = d.Resume(t.Context(), run)
			for _, i := range res.Interrupts {
				if i.Kind == dispatcher.KindBefore {
					if err := d.Answer(t.Context(), run, i.ID, dispatcher.Reject); err != nil {
						t.Fatal(err)
					}
					res, err = d.Resume(t.Context(), run)
				}
			}
			if ran := w.took(); err == nil || slices.Contains(ran, "refund") {
				t.Errorf("%s, %s: the run is %s, %v, and %q ran", doubt, fails, res.Status, err, ran)
			}
			if doubt == dag.DoubtFails {
				rests(t, res, err, checkpoint.StatusFailed, "pay")
			}
			sameMachine(t, d, run)
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("found")); err != nil {
				t.Fatal(err)
			}
			broken = false
			res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
			if completes(t, res, err); res.State.Word.Get() != "found" || slices.Contains(w.took(), "refund") {
				t.Errorf("%s, %s: the state has %q, and %q ran", doubt, fails, res.State.Word.Get(), w.took())
			}
		}
	}
}

// An effect that is in doubt in a frame that was voided holds back the failure edge of what held
// the frame, and of what is around that, if it fails before the visit comes to the effect again:
// inside the frame, or before that begins.
func TestDoubtInAVoidedFrameTakesNoFailureEdge(t *testing.T) {
	items := func(*Tale) []int { return []int{1} }
	none, once := func(_, _ *Tale) {}, func(*Tale) bool { return true }
	for name, at := range map[string]string{
		"an embed": "hold", "a loop": "hold/1", "items": "hold/1", "a loop around an embed": "hold/1/in",
	} {
		for _, fails := range []string{"in a visit before it", "in its input", "denied", "rejected", "it is met"} {
			if fails == "in its input" && name != "an embed" {
				continue
			}
			var w witness
			ctx, cancel := context.WithCancel(t.Context())
			broken := false
			body, b := dag.New[Tale]("body"), dag.New[Tale]("edges")
			first := dag.Step(body, "first", w.sees(func(context.Context, *Tale) error {
				if broken && fails == "in a visit before it" {
					return errWeather
				}
				return nil
			}))
			dag.Step(body, "pay", w.sees(func(ctx context.Context, s *Tale) error {
				receipt, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (string, error) {
					cancel()
					<-ctx.Done()
					return "", ctx.Err()
				}, dag.InDoubt(dag.DoubtFails))
				s.Word.Set(receipt)
				return err
			}), first)
			input := func(_, _ *Tale) {
				if broken && fails == "in its input" {
					panic("no input")
				}
			}
			gives := func(from, to *Tale) { to.Word.Set(from.Word.Get()) }
			var hold interface{ Failed() dag.Edge[Tale] }
			switch name {
			case "an embed":
				hold = dag.Embed(b, "hold", frozen(t, body), input, gives)
			case "a loop":
				hold = dag.Loop(b, "hold", frozen(t, body), once, 1)
			case "items":
				hold = dag.EachGraph(b, "hold", items, frozen(t, body), func(*Tale, int, *Tale) {},
					func(from *Tale, _ int, to *Tale) { gives(from, to) })
			default:
				around := dag.New[Tale]("around")
				dag.Embed(around, "in", frozen(t, body), none, gives)
				hold = dag.Loop(b, "hold", frozen(t, around), once, 1)
			}
			dag.Step(b, "refund", w.sees(nil), hold.Failed())
			dag.End(b, hold.(dag.Edge[Tale]))
			g, store := frozen(t, b), new(memory.Store)
			res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
			rests(t, res, err, checkpoint.StatusCancelled, at+"/pay")

			var o dispatcher.Options
			switch fails {
			case "denied":
				o.Hooks.Intercept = []dispatcher.Interceptor{{Name: "no", Before: func(context.Context, dispatcher.Call) dispatcher.Ruling {
					return dispatcher.Deny("closed")
				}}}
			case "rejected":
				o.InterruptBefore = []string{"hold"}
			}
			d := process(t, g, store, dispatcher.Eager(o))
			if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"hold"}}); err != nil {
				t.Fatal(name, err)
			}
			broken = true
			res, err = d.Resume(t.Context(), run)
			for _, i := range res.Interrupts {
				if err := d.Answer(t.Context(), run, i.ID, dispatcher.Reject); err != nil {
					t.Fatal(name, err)
				}
				res, err = d.Resume(t.Context(), run)
			}
			if ran := w.took(); res.Status != checkpoint.StatusFailed || slices.Contains(ran, "refund") {
				t.Errorf("%s, %s: the run is %s, %v, and %q ran", name, fails, res.Status, err, ran)
				continue
			}
			sameMachine(t, d, run)
			if err := d.Resolve(t.Context(), run, at+"/pay", "charge", dispatcher.Happened("found")); err != nil {
				t.Errorf("%s, %s: %v", name, fails, err)
				continue
			}
			broken = false
			res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
			if completes(t, res, err); res.State.Word.Get() != "found" || slices.Contains(w.took(), "refund") {
				t.Errorf("%s, %s: the state has %q", name, fails, res.State.Word.Get())
			}
		}
	}
}

// An effect in doubt in a frame that was voided holds nothing back if no visit comes to it any
// more.
func TestDoubtThatNobodyMeetsHoldsNothingBack(t *testing.T) {
	var w witness
	ctx, cancel := context.WithCancel(t.Context())
	again := false
	body, around, b := dag.New[Tale]("body"), dag.New[Tale]("around"), dag.New[Tale]("edges")
	dag.Step(body, "pay", w.sees(func(ctx context.Context, _ *Tale) error {
		if again {
			return nil
		}
		_, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}, dag.InDoubt(dag.DoubtFails))
		return err
	}))
	none := func(_, _ *Tale) {}
	in := dag.Embed(around, "in", frozen(t, body), none, none)
	dag.Step(around, "last", w.sees(func(context.Context, *Tale) error { return errWeather }), in)
	hold := dag.Embed(b, "hold", frozen(t, around), none, none)
	dag.Step(b, "refund", w.sees(nil), hold.Failed())
	dag.End(b, dag.Edge[Tale](hold))
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusCancelled, "hold/in/pay")
	d := process(t, g, store, dispatcher.Options{})
	if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"hold"}}); err != nil {
		t.Fatal(err)
	}
	again = true
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "hold/in/pay", "hold/in/pay", "hold/last", "refund")
}

// Of two effects in doubt in one attempt, of which one would have the visit ask and one has it
// fail, the second one decides: the visit fails, whichever was in doubt first.
func TestDoubtOfTwoEffects(t *testing.T) {
	for _, doubts := range [][2]dag.Doubt{{dag.DoubtFails, dag.DoubtAsks}, {dag.DoubtAsks, dag.DoubtFails}} {
		b := dag.New[Tale]("two")
		dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
			var begun sync.WaitGroup
			begun.Add(2)
			doubted := [2]chan error{make(chan error, 1), make(chan error, 1)}
			first := make(chan struct{}) // is in doubt
			for i, doubt := range doubts {
				go func() {
					_, err := dag.Effect(ctx, doubt.String(), 5, func(context.Context, int) (int, error) {
						begun.Done()
						if begun.Wait(); i == 1 {
							<-first
						}
						return 0, errWeather
					}, dag.InDoubt(doubt))
					doubted[i] <- err
				}()
			}
			err := <-doubted[0]
			close(first)
			return errors.Join(err, <-doubted[1])
		})
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		if len(res.Failures) != 1 || res.Failures[0].Kind != dag.FailedInDoubt || len(res.Interrupts) > 0 {
			t.Errorf("%s: failures %+v, and %v waits", doubts, res.Failures, res.Interrupts)
		}
		sameMachine(t, d, run)
	}
}

// An effect whose function panics, calls runtime.Goexit or returns that the time of the visit is
// over is in doubt as one that returns another error: it is not done again, and whichever attempt
// goes on is told. If that returns the error no further one is made, and the failure edge is taken.
// Who follows it is told as well if there is none to go on.
func TestDoubtOfAFunctionThatBreaks(t *testing.T) {
	for name, c := range map[string]struct {
		breaks   func(context.Context)
		attempts int // of those that the policy allows
		allowed  int
	}{
		"a panic":                     {func(context.Context) { panic("no network") }, 2, 5},
		"runtime.Goexit":              {func(context.Context) { runtime.Goexit() }, 2, 5},
		"a timeout":                   {func(ctx context.Context) { <-ctx.Done() }, 1, 5},
		"a panic, at the last":        {func(context.Context) { panic("no network") }, 1, 1},
		"runtime.Goexit, at the last": {func(context.Context) { runtime.Goexit() }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				visits, calls := 0, 0
				b := dag.New[Tale]("breaks")
				pay := dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
					visits++
					_, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (int, error) {
						calls++
						c.breaks(ctx)
						return 0, ctx.Err()
					})
					return err
				}).With(dag.Policy{Attempts: c.allowed, Timeout: time.Minute})
				dag.Step(b, "refund", func(ctx context.Context, s *Tale) error {
					for _, f := range dag.Failures(ctx) {
						s.Word.Set(string(f.Kind))
					}
					return nil
				}, pay.Failed())
				res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
				if completes(t, res, err); calls != 1 || visits != c.attempts || res.State.Word.Get() != string(dag.FailedInDoubt) {
					t.Errorf("the effect was done %d times in %d attempts, and who follows the failure saw %q", calls, visits, res.State.Word.Get())
				}
			})
		})
	}
}

// A node may survive that the function of its effect panics, or calls runtime.Goexit in a goroutine
// that the node has begun. What is declared for the doubt comes of the visit all the same: the node
// has been told nothing that it could have decided by.
func TestDoubtOfABreakThatTheNodeSurvives(t *testing.T) {
	for name, c := range map[string]struct {
		around             func(effect func(breaks func()))
		tells, fails, asks string
	}{
		"a panic": {func(effect func(func())) {
			defer func() { _ = recover() }()
			effect(func() { panic("no network") })
		}, "completed", "failed in_doubt", "interrupted doubt"},
		"runtime.Goexit": {func(effect func(func())) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				effect(runtime.Goexit)
			}()
			<-done
		}, "completed", "failed in_doubt", "interrupted doubt"},
		"a panic that goes on": {func(effect func(func())) {
			effect(func() { panic("no network") })
		}, "completed", "failed in_doubt", "interrupted doubt"}, // it may be tried again, but for one that lets the visit fail
	} {
		for doubt, want := range map[dag.Doubt]string{dag.DoubtTells: c.tells, dag.DoubtFails: c.fails, dag.DoubtAsks: c.asks} {
			calls := 0
			g := effectNode(t, func(ctx context.Context, _ *Tale) error {
				c.around(func(breaks func()) {
					_, _ = dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
						calls++
						breaks()
						return "", nil
					}, dag.InDoubt(doubt))
				})
				return nil
			}, dag.Policy{Attempts: 2})
			store := new(memory.Store)
			d := process(t, g, store, dispatcher.Eager(dispatcher.Options{}))
			res, err := d.Run(t.Context(), run, nil)
			if got := doubtOutcome(res); got != want || calls != 1 {
				t.Errorf("%s, %s: the run is %s, want %s, and the effect was done %d times: %v", name, doubt, got, want, calls, err)
			}
			if doubt == dag.DoubtTells {
				continue
			}
			sameMachine(t, d, run)
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
				t.Fatal(name, doubt, err)
			}
			res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
			if completes(t, res, err); calls != 1 {
				t.Errorf("%s, %s: behind the resolution the effect was done %d times", name, doubt, calls)
			}
		}
	}
}
