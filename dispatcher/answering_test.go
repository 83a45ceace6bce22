package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// waiting is a run of askChain(n) that asks, in the store.
func waiting(t *testing.T, store checkpoint.Store, n int) (d *dispatcher.Dispatcher[Tale], interrupt string) {
	t.Helper()
	d = callsDispatcher(t, askChain(t, n), store, dispatcher.Options{})
	r, err := d.Start(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	return d, r.Interrupts[0].ID
}

// countsCalls counts the calls of a store that write, but for leases.
func countsCalls(made map[string]int) func(context.Context, call) error {
	return func(_ context.Context, c call) error {
		if c.method == "Post" || c.method == "Append" || c.method == "Acquire" {
			made[c.method]++
		}
		return nil
	}
}

// An answer to a run that nobody is at work on is one append, and no message.
func TestAnswerIsOneAppend(t *testing.T) {
	var inner memory.Store
	d, id := waiting(t, &inner, 3)
	made := map[string]int{}
	by := callsDispatcher(t, askChain(t, 3), &tampered{Store: &inner, before: countsCalls(made)}, dispatcher.Options{})
	if err := by.Answer(t.Context(), run, id, true); err != nil {
		t.Fatal(err)
	}
	if made["Append"] != 1 || made["Post"] != 0 {
		t.Errorf("the answer made the calls %v, want one Append and no Post", made)
	}
	refused(t, d.Answer(t.Context(), run, id, true), dispatcher.ErrNotAwaited)
	r, err := d.Run(t.Context(), run, nil)
	completes(t, r, err)
}

// Whatever somebody else does between the look of who answers and his append, the answer counts
// once, and who is told that his does is told the truth: two of one call are one.
func TestAnswerBesideOthersCountsOnce(t *testing.T) {
	yes := func(ctx context.Context, other *dispatcher.Dispatcher[Tale], id string) error {
		return other.Answer(ctx, run, id, true, dispatcher.Author("Ada"))
	}
	for name, c := range map[string]struct {
		what func(context.Context, *dispatcher.Dispatcher[Tale], string) error
		want error
		by   string
	}{
		"the same answer": {yes, nil, "Ada"},
		"another author": {func(ctx context.Context, other *dispatcher.Dispatcher[Tale], id string) error {
			return other.Answer(ctx, run, id, true, dispatcher.Author("Eve"))
		}, dispatcher.ErrNotAwaited, "Eve"},
		"an edit": {func(ctx context.Context, other *dispatcher.Dispatcher[Tale], _ string) error {
			return other.Edit(ctx, run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{})
		}, nil, "Ada"},
		"a cancel": {func(ctx context.Context, other *dispatcher.Dispatcher[Tale], _ string) error {
			return other.Cancel(ctx, run, nil)
		}, nil, "Ada"},
		"the same answer, and the end": {func(ctx context.Context, other *dispatcher.Dispatcher[Tale], id string) error {
			if err := yes(ctx, other, id); err != nil {
				return err
			}
			_, err := other.Run(ctx, run, nil)
			return err
		}, nil, "Ada"},
		"the same answer, the end and a trim": {func(ctx context.Context, other *dispatcher.Dispatcher[Tale], id string) error {
			if err := yes(ctx, other, id); err != nil {
				return err
			}
			if _, err := other.Run(ctx, run, nil); err != nil {
				return err
			}
			return other.Trim(ctx, run, dispatcher.Retention{Last: 1})
		}, dispatcher.ErrNotAwaited, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var inner memory.Store
			d, id := waiting(t, &inner, 3)
			slow := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
				if k.method == "Acquire" && k.n == 1 {
					return c.what(ctx, d, id)
				}
				return nil
			}}
			by := callsDispatcher(t, askChain(t, 3), slow, dispatcher.Options{})
			if err := by.Answer(t.Context(), run, id, true, dispatcher.Author("Ada")); !errors.Is(err, c.want) {
				t.Errorf("Answer = %v, want %v", err, c.want)
			}
			if posts, err := inner.Posts(t.Context(), run); err != nil || len(posts) > 0 {
				t.Errorf("the messages %v wait, %v", posts, err)
			}
			r, err := d.Run(t.Context(), run, nil)
			completes(t, r, err)
			if c.by == "" { // it was trimmed
				return
			}
			if all := askAnswers(t, &inner, run); len(all) != 1 || all[id].By != c.by {
				t.Errorf("the log has the answers %+v, want one by %s", all, c.by)
			}
		})
	}
}

// Somebody posts an answer, and is told that it counts, when who has the lease is about to append
// his own: that is refused, by Answer as by Answering.
func TestAnswerThatWasPostedComesBeforeOneUnderTheLease(t *testing.T) {
	for name, calls := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale], string) error{
		"Answer": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Answer(ctx, run, id, true, dispatcher.Author("Eve"))
		},
		"Answering": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			_, err := d.Continue(ctx, run, dispatcher.Answering(id, true), dispatcher.Author("Eve"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var inner memory.Store
			d, id := waiting(t, &inner, 3)
			slow := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
				if k.method == "Append" && k.n == 1 { // under the lease, which Ada can't have
					return d.Answer(ctx, run, id, true, dispatcher.Author("Ada"))
				}
				return nil
			}}
			by := callsDispatcher(t, askChain(t, 3), slow, dispatcher.Options{})
			refused(t, calls(t.Context(), by, id), dispatcher.ErrNotAwaited)
			r, err := d.Run(t.Context(), run, nil)
			completes(t, r, err)
			if all := askAnswers(t, &inner, run); len(all) != 1 || all[id].By != "Ada" {
				t.Errorf("the log has the answers %+v, want Ada's, who was told that it counts", all)
			}
		})
	}
}

// One call answers and goes on: it takes the run once, and the log says what an Answer and the call
// behind it would have said.
func TestAnsweringGoesOn(t *testing.T) {
	for name, calls := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale], dispatcher.RunOption, ...dispatcher.RunOption) error{
		"Run": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o dispatcher.RunOption, more ...dispatcher.RunOption) error {
			_, err := d.Run(ctx, run, nil, append(more, o)...)
			return err
		},
		"Resume": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o dispatcher.RunOption, more ...dispatcher.RunOption) error {
			_, err := d.Resume(ctx, run, append(more, o)...)
			return err
		},
		"Continue": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o dispatcher.RunOption, more ...dispatcher.RunOption) error {
			_, err := d.Continue(ctx, run, append(more, o)...)
			return err
		},
		"Stream": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o dispatcher.RunOption, more ...dispatcher.RunOption) error {
			for _, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}, append(more, o)...) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for _, fresh := range []bool{false, true} { // a dispatcher that has never seen the run
			for _, nameless := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					var inner memory.Store
					made := map[string]int{}
					store := &tampered{Store: &inner, before: countsCalls(made)}
					d, id := waiting(t, store, 3)
					if fresh {
						d = callsDispatcher(t, askChain(t, 3), store, dispatcher.Options{})
					}
					if nameless {
						id = ""
					}
					clear(made)
					if err := calls(t.Context(), d, dispatcher.Answering(id, true), dispatcher.Author("Ada"), dispatcher.Because("so it is")); err != nil {
						t.Fatal(err)
					}
					if made["Acquire"] != 1 || made["Post"] != 0 {
						t.Errorf("the call made %v, want one Acquire and no Post", made)
					}
					for _, a := range askAnswers(t, &inner, run) {
						if a.By != "Ada" || a.Reason != "so it is" || string(a.Value) != "true" {
							t.Errorf("the log has the answer %+v", a)
						}
					}
					r, err := d.State(t.Context(), run)
					completes(t, r, err)
				})
			}
		}
	}
}

// Answers that are refused, options that don't fit and a run that somebody has: nothing has
// changed, and nothing runs.
func TestAnsweringRefused(t *testing.T) {
	var inner memory.Store
	d, id := waiting(t, &inner, 3)
	res, err := d.State(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	stale := res.Cursor
	stale.Seq--
	option := errors.New("an OptionError")
	for _, c := range []struct {
		what string
		call func(...dispatcher.RunOption) error
		give []dispatcher.RunOption
		want error
	}{
		{"an answer of another type", nil, []dispatcher.RunOption{dispatcher.Answering(id, "perhaps")}, dispatcher.ErrAnswerType},
		{"an unknown interrupt", nil, []dispatcher.RunOption{dispatcher.Answering("nobody", true)}, dispatcher.ErrNotAwaited},
		{"one of two", nil, []dispatcher.RunOption{dispatcher.Answering(id, true), dispatcher.Answering("nobody", true)}, dispatcher.ErrNotAwaited},
		{"a stale cursor", nil, []dispatcher.RunOption{dispatcher.Answering(id, true), dispatcher.From(stale)}, dispatcher.ErrStaleCursor},
		{"the same interrupt twice", nil, []dispatcher.RunOption{dispatcher.Answering(id, true), dispatcher.Answering(id, true)}, option},
		{"no name beside one", nil, []dispatcher.RunOption{dispatcher.Answering("", true), dispatcher.Answering(id, true)}, option},
		{"one beside no name", nil, []dispatcher.RunOption{dispatcher.Answering(id, true), dispatcher.Answering("", true)}, option},
		{"an author of nothing", nil, []dispatcher.RunOption{dispatcher.Author("Ada")}, option},
		{"a Start", func(o ...dispatcher.RunOption) error { _, err := d.Start(t.Context(), run, nil, o...); return err },
			[]dispatcher.RunOption{dispatcher.Answering(id, true)}, option},
		{"a Turn", func(o ...dispatcher.RunOption) error { _, err := d.Turn(t.Context(), run, nil, o...); return err },
			[]dispatcher.RunOption{dispatcher.Answering(id, true)}, option},
		{"an Answer", func(o ...dispatcher.RunOption) error { return d.Answer(t.Context(), run, id, true, o...) },
			[]dispatcher.RunOption{dispatcher.Answering(id, true)}, option},
		{"a Run of none", func(o ...dispatcher.RunOption) error { _, err := d.Run(t.Context(), "none", nil, o...); return err },
			[]dispatcher.RunOption{dispatcher.Answering(id, true)}, dispatcher.ErrNotFound},
		{"what JSON can't say", nil, []dispatcher.RunOption{dispatcher.Answering(id, func() {})}, dispatcher.ErrAnswerType},
		{"what JSON can't say, to a Run of none", func(o ...dispatcher.RunOption) error { _, err := d.Run(t.Context(), "none", nil, o...); return err },
			[]dispatcher.RunOption{dispatcher.Answering(id, func() {})}, dispatcher.ErrNotFound},
	} {
		call := c.call
		if call == nil {
			call = func(o ...dispatcher.RunOption) error {
				r, err := d.Continue(t.Context(), run, o...)
				if r == nil {
					t.Errorf("%s: no result", c.what)
				}
				return err
			}
		}
		var bad *dispatcher.OptionError
		if err := call(c.give...); errors.As(err, &bad) != (c.want == option) || c.want != option && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if info, err := inner.Stat(t.Context(), run); err != nil || info.Head.Seq != res.Cursor.Seq {
			t.Fatalf("%s: the head is %d, %v, want %d as before", c.what, info.Head.Seq, err, res.Cursor.Seq)
		}
	}
	if _, err := inner.Stat(t.Context(), "none"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("a Run with an answer has begun the run: %v", err)
	}
	lease, err := inner.Acquire(t.Context(), run, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Continue(t.Context(), run, dispatcher.Answering(id, true)); !errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("a call beside another one: %v, want ErrBusy", err)
	}
	if posts, err := inner.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("a call that is busy has posted %v, %v", posts, err)
	}
	if err := inner.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	r, err := d.Continue(t.Context(), run, dispatcher.Answering(id, true), dispatcher.From(res.Cursor), dispatcher.Message("once"))
	if err != nil || r.Status != checkpoint.StatusCompleted {
		t.Errorf("the run is %s, %v", r.Status, err)
	}
	// The same message again changes nothing, and another answer is refused, though the run is
	// completed.
	if _, err = d.Run(t.Context(), run, nil, dispatcher.Answering(id, true), dispatcher.Message("once")); err != nil {
		t.Errorf("the same message again: %v", err)
	}
	if _, err = d.Continue(t.Context(), run, dispatcher.Answering(id, true), dispatcher.From(res.Cursor), dispatcher.Message("once")); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("the same message again, from before it: %v, want ErrStaleCursor", err)
	}
	_, err = d.Run(t.Context(), run, nil, dispatcher.Answering(id, true))
	refused(t, err, dispatcher.ErrNotAwaited)
}

// Whenever somebody else answers while Answering or Answer is at work, one answer counts, and
// whoever was told nil gave it.
func TestAnsweringBesideAnAnswerAtEveryCall(t *testing.T) {
	for name, calls := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale], string) error{
		"Answer": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Answer(ctx, run, id, true, dispatcher.Author("Eve"))
		},
		"Answering": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			_, err := d.Continue(ctx, run, dispatcher.Answering(id, true), dispatcher.Author("Eve"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			won := map[string]int{}
			for n, hit := 1, true; hit; n++ {
				hit = false
				s := new(memory.Faulty)
				d, id := waiting(t, s, 3)
				var other error
				happensAt(s, n, func(s *memory.Store) {
					hit = true
					other = callsDispatcher(t, askChain(t, 3), s, dispatcher.Options{}).
						Answer(t.Context(), run, id, true, dispatcher.Author("Ada"))
				})
				mine := calls(t.Context(), d, id)
				s.Fail, s.FailRead = nil, nil
				r, err := d.Run(t.Context(), run, nil)
				completes(t, r, err)
				all := askAnswers(t, s, run)
				if len(all) != 1 {
					t.Fatalf("call %d: the log has the answers %+v", n, all)
				}
				by := all[id].By
				won[by]++
				if mine == nil != (by == "Eve") || hit && other == nil != (by == "Ada") {
					t.Errorf("call %d: the answer of %s counts; Eve was told %v, Ada %v", n, by, mine, other)
				}
			}
			if won["Ada"] == 0 || won["Eve"] == 0 {
				t.Errorf("who won: %v, want each of both now and then", won)
			}
		})
	}
}

// Whichever write of the call fails, with what outcome, the answer counts once or not at all, and
// the run can be brought to its end.
func TestAnsweringSurvivesFailures(t *testing.T) {
	for _, fault := range []memory.Fault{memory.Full, memory.Vanished, memory.Applied} {
		for n, hit := 1, true; hit; n++ {
			hit = false
			s := new(memory.Faulty)
			d, id := waiting(t, s, 3)
			left := n
			s.Fail = func(context.Context, memory.Write) memory.Fault {
				if left--; left == 0 {
					hit = true
					return fault
				}
				return memory.None
			}
			_, err := d.Continue(t.Context(), run, dispatcher.Answering(id, true), dispatcher.Author("Eve"))
			s.Fail = nil
			if hit && err == nil {
				t.Errorf("fault %v at write %d: the call returned nil", fault, n)
			}
			fresh := callsDispatcher(t, askChain(t, 3), s, dispatcher.Options{})
			now, err := fresh.State(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if len(now.Interrupts) > 0 {
				if err := fresh.Answer(t.Context(), run, id, true, dispatcher.Author("Eve")); err != nil {
					t.Errorf("fault %v at write %d: the answer behind it: %v", fault, n, err)
				}
			}
			r, err := fresh.Run(t.Context(), run, nil)
			completes(t, r, err)
			if all := askAnswers(t, s, run); len(all) != 1 {
				t.Errorf("fault %v at write %d: the log has the answers %+v", fault, n, all)
			}
		}
	}
}
