package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// hookBefore returns options with interceptors of these Befores, called first, second, third…,
// who stand at nodes.
func hookBefore(nodes []string, befores ...func(dispatcher.Call) dispatcher.Ruling) dispatcher.Options {
	var o dispatcher.Options
	for i, before := range befores {
		o.Hooks.Intercept = append(o.Hooks.Intercept, dispatcher.Interceptor{
			Name: []string{"first", "second", "third"}[i], Nodes: nodes,
			Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling { return before(c) },
		})
	}
	return o
}

// always rules the same before every visit.
func always(r dispatcher.Ruling) func(dispatcher.Call) dispatcher.Ruling {
	return func(dispatcher.Call) dispatcher.Ruling { return r }
}

// saying is a substitute that says word in the state.
func saying(word string, outcomes ...string) dispatcher.Substitute {
	return func(_ context.Context, s any) ([]string, error) {
		s.(*Tale).Said.Append(word)
		return outcomes, nil
	}
}

// possibleRulings are all of them, the least restrictive first.
var possibleRulings = []struct {
	name   string
	ruling dispatcher.Ruling
}{
	{"continue", dispatcher.Continue()},
	{"instead", dispatcher.Instead(saying("substitute"))},
	{"ask", dispatcher.Ask("may it?")},
	{"deny", dispatcher.Deny("never")},
	{"zero", dispatcher.Ruling{}},
	{"instead of nothing", dispatcher.Instead(nil)},
	{"unspeakable question", dispatcher.Ask(func() {})},
	{"large question", dispatcher.Ask(strings.Repeat("x", 2000))},
}

// Part 2, number 44: of several rulings the most restrictive wins, in whatever order they
// come; what says nothing, or can't be followed, denies.
func TestRulings(t *testing.T) {
	for i, one := range possibleRulings {
		for k, two := range possibleRulings {
			t.Run(one.name+" and "+two.name, func(t *testing.T) {
				quiet(t)
				var w witness
				var store memory.Store
				o := hookBefore([]string{"b"}, always(one.ruling), always(two.ruling))
				o.Limits.ValueBytes = 1000
				d := process(t, line(t, &w, nil), &store, o)
				res, err := d.Run(t.Context(), run, nil)
				switch strictest := max(i, k); {
				case strictest >= 3:
					rests(t, res, err, checkpoint.StatusFailed, "b")
					by := map[bool]string{true: "first", false: "second"}[i >= 3]
					denied(t, err, "b", by)
					w.expect(t, "a")
				case strictest == 2:
					rests(t, res, err, checkpoint.StatusInterrupted, "b")
					w.expect(t, "a")
					var by []string
					for _, i := range res.Interrupts {
						by = append(by, i.String())
						if i.Kind != dispatcher.KindBefore || string(i.Question) != `"may it?"` {
							t.Errorf("the interrupt is %+v", i)
						}
						if err := d.Answer(t.Context(), run, i.ID, dispatcher.Approve); err != nil {
							t.Fatal(err)
						}
					}
					var want []string
					if i == 2 {
						want = append(want, `first asks before b: "may it?"`)
					}
					if k == 2 {
						want = append(want, `second asks before b: "may it?"`)
					}
					if !slices.Equal(by, want) {
						t.Errorf("interrupts %q, want %q", by, want)
					}
					// The substitute is asked for again, in another process.
					res, err = process(t, line(t, &w, nil), &store, o).Run(t.Context(), run, nil)
					completes(t, res, err)
					ranOrWas(t, &w, res, min(i, k) == 1)
				default:
					completes(t, res, err)
					if began := w.took(); !slices.Equal(began, map[bool][]string{true: {"a", "c"}, false: {"a", "b", "c"}}[strictest == 1]) {
						t.Errorf("bodies that ran: %q", began)
					}
					saysWith(t, res, strictest == 1)
				}
			})
		}
	}
}

// Of several that put something in a node's place the first counts, and is named in the log.
func TestFirstInstead(t *testing.T) {
	var w witness
	var store memory.Store
	instead := func(word string) func(dispatcher.Call) dispatcher.Ruling {
		return always(dispatcher.Instead(saying(word)))
	}
	o := hookBefore([]string{"b"}, always(dispatcher.Continue()), instead("this"), instead("that"))
	res, err := process(t, line(t, &w, nil), &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "c")
	says(t, res.State, "a", "this", "c")
	if by := substitution(t, &store, "b").Instead; by != "second" {
		t.Errorf("the log says that %q ran something in place of b, want second", by)
	}
}

func ranOrWas(t *testing.T, w *witness, res *dispatcher.Result[Tale], substituted bool) {
	t.Helper()
	if substituted {
		w.expect(t, "c")
	} else {
		w.expect(t, "b", "c")
	}
	saysWith(t, res, substituted)
}

func saysWith(t *testing.T, res *dispatcher.Result[Tale], substituted bool) {
	t.Helper()
	says(t, res.State, "a", map[bool]string{true: "substitute", false: "b"}[substituted], "c")
}

// denied checks that a run failed because an interceptor denied a visit.
func denied(t testing.TB, err error, path, by string) {
	t.Helper()
	var n *dispatcher.NodeError
	if !errors.As(err, &n) || n.Kind != dag.FailedDenied || n.Path != path || !strings.Contains(err.Error(), fmt.Sprintf("interceptor %q: ", by)) {
		t.Errorf("the error is %v, want %s denied by %s", err, path, by)
	}
}

// A denial is in the log, with whose it is and why; nobody tries the visit again, and who
// follows its failure is told. Only a resume of the failed run asks anew.
func TestDenied(t *testing.T) {
	for _, followed := range []bool{true, false} {
		t.Run(fmt.Sprintf("followed=%t", followed), func(t *testing.T) { deniedOnce(t, followed) })
	}
}

func deniedOnce(t *testing.T, followed bool) {
	quiet(t)
	var w witness
	var store memory.Store
	asked, deny := 0, true
	b := dag.New[Tale]("denied")
	pay := dag.Step(b, "pay", w.sees(nil)).With(dag.Policy{Attempts: 3})
	if followed {
		dag.Step(b, "apologise", func(ctx context.Context, s *Tale) error {
			for _, f := range dag.Failures(ctx) {
				s.Said.Append(fmt.Sprintf("%s %s %d: %s", f.Path, f.Kind, f.Attempts, f.Message))
			}
			return nil
		}, pay.Failed())
	}
	d := process(t, frozen(t, b), &store, hookBefore([]string{"pay"}, func(dispatcher.Call) dispatcher.Ruling {
		if asked++; deny {
			return dispatcher.Deny("too late")
		}
		return dispatcher.Continue()
	}))
	res, err := d.Run(t.Context(), run, nil)
	var entry checkpoint.FailedAttempt
	for _, e := range readLog(t, &store) {
		if e.Kind == checkpoint.AttemptFailed {
			if err := json.Unmarshal(e.Data, &entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	if entry.By != "first" || entry.Kind != "denied" || !entry.Final || entry.Message != `interceptor "first": too late` {
		t.Errorf("the entry is %+v", entry)
	}
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
	w.expect(t)
	if followed {
		completes(t, res, err)
		says(t, res.State, `pay denied 0: interceptor "first": too late`)
		return
	}
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	denied(t, err, "pay", "first")
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	deny = false
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "pay")
	if asked != 3 {
		t.Errorf("it was asked %d times, want 3", asked)
	}
}

// What an interceptor asks holds its visit until it is approved: neither Run nor Resume ends
// it. It is spent once: in the next iteration it is asked again.
func TestApprovals(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	body := dag.New[Tale]("body")
	dag.Step(body, "pay", w.sees(nil))
	b := dag.New[Tale]("outer")
	dag.Loop(b, "rounds", frozen(t, body), func(*Tale) bool { return false }, 2)
	g := frozen(t, b)
	o := hookBefore([]string{"rounds/pay"}, func(c dispatcher.Call) dispatcher.Ruling {
		return dispatcher.Ask(map[string]any{"pay": c.State.(*Tale).Said.Len() + 1})
	})
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	for round := 1; round <= 2; round++ {
		path := fmt.Sprintf("rounds/%d/pay", round)
		rests(t, res, err, checkpoint.StatusInterrupted, path)
		if i := res.Interrupts[0]; len(res.Interrupts) != 1 || i.By != "first" || string(i.Question) != fmt.Sprintf(`{"pay":%d}`, round) {
			t.Fatalf("the interrupts are %+v", res.Interrupts)
		}
		d := process(t, g, &store, o)
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, path)
		w.expect(t)
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "perhaps"); !errors.Is(err, dispatcher.ErrAnswerType) {
			t.Errorf("the answer perhaps was taken: %v", err)
		}
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
		w.expect(t, path)
	}
	completes(t, res, err)
}

// An approval is of one question. It survives an attempt that was cut off; if the question
// has become another one it does not count.
func TestApprovalOfAnotherQuestion(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	sum := 40
	var saw []string
	o := hookBefore([]string{"b"}, func(c dispatcher.Call) dispatcher.Ruling {
		for _, q := range c.Approved {
			saw = append(saw, string(q))
		}
		return dispatcher.Ask(fmt.Sprintf("pay %d?", sum))
	})
	g := line(t, &w, func(ctx context.Context, _ *Tale) error { return ctx.Err() })
	approve := func(question string) {
		t.Helper()
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		if q := string(res.Interrupts[0].Question); q != question {
			t.Fatalf("the question is %s, want %s", q, question)
		}
		if err := process(t, g, &store, o).Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
	}
	approve(`"pay 40?"`)
	sum = 4000
	approve(`"pay 4000?"`)
	sum = 40
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "b", "c")
	if want := []string{`"pay 40?"`, `"pay 40?"`, `"pay 4000?"`}; !slices.Equal(saw, want) {
		t.Errorf("the interceptor saw as approved %q, want %q", saw, want)
	}
}

// A rejection fails the visit, whatever else was approved; after a resume it is asked again.
func TestRejectedApproval(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	o := hookBefore([]string{"b"}, always(dispatcher.Ask("one?")), always(dispatcher.Ask("two?")), always(dispatcher.Ask("three?")))
	d := process(t, line(t, &w, nil), &store, o)
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	ids := make([]string, 3)
	for k, i := range res.Interrupts {
		ids[k] = i.ID
	}
	for k, v := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
		if err := d.Answer(t.Context(), run, ids[k], v); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Answer(t.Context(), run, ids[2], dispatcher.Approve); !errors.Is(err, dispatcher.ErrNotAwaited) {
		t.Errorf("the third question still waits: %v", err)
	}
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "b")
	var n *dispatcher.NodeError
	if !errors.As(err, &n) || n.Kind != dag.FailedRejected {
		t.Errorf("the error is %v, want one of kind rejected", err)
	}
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	if len(res.Interrupts) != 2 || string(res.Interrupts[0].Question) != `"two?"` || string(res.Interrupts[1].Question) != `"three?"` {
		t.Errorf("after a resume these wait: %v", res.Interrupts)
	}
	w.expect(t, "a")
}

// An approval that is posted while the run is live lets the visit begin at once.
func TestApprovalOfALiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		b := dag.New[Tale]("beside")
		dag.Step(b, "gated", w.sees(nil))
		for _, name := range []string{"long", "longer"} { // alone it would have the owner's goroutine
			dag.Step(b, name, w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }))
		}
		d := process(t, frozen(t, b), &store, hookBefore([]string{"gated"}, always(dispatcher.Ask("may it?"))))
		ended := beginRun(t, d)
		res, err := d.State(t.Context(), run)
		if err != nil || len(res.Interrupts) != 1 {
			t.Fatalf("interrupts %v, %v", res.Interrupts, err)
		}
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect(t, "gated", "long", "longer")
		e := <-ended
		completes(t, e.res, e.err)
	})
}

// An interrupt by name comes before the interceptors are asked, and each is taken once.
func TestInterruptAndApproval(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	asked := 0
	o := hookBefore([]string{"b"}, func(dispatcher.Call) dispatcher.Ruling { asked++; return dispatcher.Ask("may it?") })
	o.InterruptBefore = []string{"b"}
	d := process(t, line(t, &w, nil), &store, o)
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	if res.Interrupts[0].By != "" || asked > 0 {
		t.Fatalf("the interrupt is %+v", res.Interrupts[0])
	}
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	if len(res.Interrupts) != 1 || res.Interrupts[0].By != "first" {
		t.Fatalf("the interrupts are %+v", res.Interrupts)
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "a", "b", "c")
}

// Without a store nobody can be asked; the other rulings are followed.
func TestRulingsWithoutAStore(t *testing.T) {
	quiet(t)
	for _, c := range possibleRulings[:4] {
		var w witness
		d, err := dispatcher.New(line(t, &w, nil), nil, hookBefore([]string{"b"}, always(c.ruling)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Start(t.Context(), run, nil)
		switch c.name {
		case "continue", "instead":
			completes(t, res, err)
			saysWith(t, res, c.name == "instead")
		default:
			rests(t, res, err, checkpoint.StatusFailed, "b")
			denied(t, err, "b", "first")
			w.expect(t, "a")
		}
	}
}

// Before blows up: the visit fails, before its body began.
func TestBlastInBefore(t *testing.T) {
	for _, k := range blasts {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				armed := true
				d := process(t, line(t, &w, nil), &store, hookBefore([]string{"b"}, func(dispatcher.Call) dispatcher.Ruling {
					if armed {
						k.blast()
					}
					return dispatcher.Continue()
				}))
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "b")
				var n *dispatcher.NodeError
				if !errors.As(err, &n) || n.Kind != k.kind || n.Path != "b" || len(n.Stack) == 0 {
					t.Errorf("the error is %v, want one of b, kind %s", err, k.kind)
				}
				if k.found != nil && !k.found(err) {
					t.Errorf("what was panicked with is not found in %v", err)
				}
				w.expect(t, "a")
				armed = false
				res, err = d.Resume(t.Context(), run)
				completes(t, res, err)
				w.expect(t, "b", "c")
			})
		})
	}
}

// Before hangs: the call returns in time, and the visit has not begun.
func TestHangingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		hung := false
		g, o := line(t, &w, nil), hookBefore([]string{"b"}, func(dispatcher.Call) dispatcher.Ruling {
			if !hung {
				hung = true
				lasts(time.Hour)
			}
			return dispatcher.Continue()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := process(t, g, &store, o).Run(ctx, run, nil)
		stuck(t, res, err, time.Now().Add(-5*time.Second), "Interceptor.Before for b")
		lasts(2 * time.Hour)
		w.expect(t, "a")
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "a", "b", "c") // a would have shared an append with the ruling
	})
}

// Rule 10: the context is read after the interceptors were asked. No body begins once one
// of them has cancelled the run, nor is another one asked.
func TestInterceptorCancels(t *testing.T) {
	for _, store := range []checkpoint.Store{new(memory.Store), nil} {
		for _, parallel := range []bool{false, true} {
			quiet(t)
			var w witness
			ctx, cancel := context.WithCancel(t.Context())
			b := dag.New[Tale]("beside")
			first := dag.Step(b, "first", w.sees(nil))
			dag.Step(b, "one", w.sees(nil), first)
			if parallel {
				dag.Step(b, "two", w.sees(nil), first)
			}
			var asked []string
			d, err := dispatcher.New(frozen(t, b), store, hookBefore(nil, func(c dispatcher.Call) dispatcher.Ruling {
				if asked = append(asked, c.Path); c.Path == "one" {
					cancel()
				}
				return dispatcher.Continue()
			}))
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Start(ctx, run, nil)
			if !errors.Is(err, context.Canceled) || res.Status != checkpoint.StatusCancelled {
				t.Errorf("the run is %s, %v", res.Status, err)
			}
			w.expect(t, "first")
			if !slices.Equal(asked, []string{"first", "one"}) {
				t.Errorf("asked before %q", asked)
			}
			if store != nil {
				if err := store.Delete(t.Context(), run); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Interceptors that can't be are refused by New.
func TestInterceptorsThatCannotBe(t *testing.T) {
	var w witness
	g := nest(t, &w, nil)
	before := func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Continue() }
	for name, all := range map[string][]dispatcher.Interceptor{
		"nothing":   {{Name: "empty"}},
		"nowhere":   {{Nodes: []string{}, Before: before}},
		"no node":   {{Nodes: []string{"first", "nobody"}, Before: before}},
		"twice":     {{Name: "gate", Before: before}, {Name: "gate", Before: before}},
		"a number":  {{Before: before}, {Name: "#1", Before: before}},
		"not UTF-8": {{Name: "\xff", Before: before}},
	} {
		o := dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: all}}
		if _, err := dispatcher.New(g, &memory.Store{}, o); !isOptionError(err) {
			t.Errorf("%s: New returned %v", name, err)
		}
	}
}

// A visit that was voided begins anew: what was approved of it was approved for what it was to do
// then, and the interceptor that asks the same question again is to have an answer.
func TestApprovalOfAVoidedVisit(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("sums")
	sum := dag.Step(b, "sum", func(_ context.Context, s *Tale) error {
		s.Word.Set("80")
		return nil
	})
	dag.Step(b, "pay", w.sees(nil), sum)
	dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error { // holds the superstep open
		_, err := dag.Ask[string](ctx, "word", "which?")
		return err
	}, sum)
	o := hookBefore([]string{"pay"}, func(dispatcher.Call) dispatcher.Ruling { return dispatcher.Ask("may it?") })
	d := process(t, frozen(t, b), &store, o)
	res, err := d.Run(t.Context(), run, nil)
	for round := range 2 {
		rests(t, res, err, checkpoint.StatusInterrupted, "pay", "asks")
		w.expect(t)
		k := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Path == "pay" })
		if k < 0 {
			t.Fatalf("round %d: nobody is asked about pay: %v", round, res.Interrupts)
		}
		if err := d.Answer(t.Context(), run, res.Interrupts[k].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		w.expect(t, "pay")
		dearer := func(s *Tale) { s.Word.Set("80000") }
		if err := d.Edit(t.Context(), run, dearer, dispatcher.EditOptions{Void: []string{"pay"}}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
	}
}
