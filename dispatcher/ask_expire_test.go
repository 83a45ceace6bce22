package dispatcher_test

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
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// askTimed is asking, of a node whose question may end without an answer. It says in the state
// how it did.
func askTimed(t testing.TB, w *witness, free <-chan struct{}, options ...dag.AskOption) *dag.Graph[Tale] {
	b := dag.New[Tale]("timed")
	asks := dag.Step(b, "asks", w.sees(func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?", options...)
		if info, ok := dag.Reply(ctx, "word"); ok {
			s.Notes.Put("how", string(info.How))
			s.Notes.Put("by", info.By)
			s.Notes.Put("at", info.At.UTC().Format(time.RFC3339))
		}
		s.Word.Set(word)
		return err
	})).With(dag.Policy{Attempts: 3})
	works := dag.Step(b, "works", w.sees(func(ctx context.Context, _ *Tale) error {
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	dag.Step(b, "last", w.sees(nil), dag.All(asks, works))
	dag.Step(b, "sorry", w.sees(func(ctx context.Context, s *Tale) error {
		s.Notes.Put("failure", string(dag.Failures(ctx)[0].Kind))
		return nil
	}), asks.Failed())
	return frozen(t, b)
}

// askedTimed checks how the question of askTimed ended.
func askedTimed(t *testing.T, res *dispatcher.Result[Tale], how dag.How, word string, at time.Time) {
	t.Helper()
	got, _ := res.State.Notes.Get("how")
	when, _ := res.State.Notes.Get("at")
	if got != string(how) || res.State.Word.Get() != word || when != at.UTC().Format(time.RFC3339) {
		t.Errorf("the question ended as %s at %s with %q, want %s at %s with %q",
			got, when, res.State.Word.Get(), how, at.UTC().Format(time.RFC3339), word)
	}
}

// A question that is over while the run is live ends at that moment, and not before: a sibling
// that works on does not hold it up.
func TestAskExpiresWhileTheRunIsLive(t *testing.T) {
	for _, until := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			free := make(chan struct{})
			begin := time.Now()
			limit := dag.Within(time.Hour)
			if until {
				limit = dag.Until(begin.Add(time.Hour))
			}
			g := askTimed(t, &w, free, limit, dag.OrDefault("nothing"))
			d := process(t, g, &store, dispatcher.Options{})
			over := beginRun(t, d)
			synctest.Wait()
			w.expect(t, "asks", "works")
			res, err := d.State(t.Context(), run)
			if i := res.Interrupts[0]; err != nil || !i.Until.Equal(begin.Add(time.Hour)) || string(i.Default) != `"nothing"` {
				t.Errorf("the question is told as %+v, %v", i, err)
			}
			lasts(time.Hour - 1)
			w.expect(t)
			lasts(1)
			synctest.Wait()
			w.expect(t, "asks")
			lasts(time.Hour)
			close(free)
			e := <-over
			completes(t, e.res, e.err)
			askedTimed(t, e.res, dag.AnswerDefault, "nothing", begin.Add(time.Hour))
			if took := time.Since(begin); took != 2*time.Hour {
				t.Errorf("the run took %v", took)
			}
		})
	}
}

// A run that rests until a question is over goes on with the next call, whichever it is, and
// before that moment no call ends it.
func TestAskExpiresWhileTheRunRests(t *testing.T) {
	for name, goOn := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale]) error{
		"Run": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Run(ctx, run, nil)
			return err
		},
		"Resume": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Resume(ctx, run)
			return err
		},
		"Continue": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Continue(ctx, run)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				g := askTimed(t, &w, closedChan(), dag.Within(time.Hour), dag.OrDefault("nothing"))
				res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "asks")
				w.expect(t, "asks", "works")
				lasts(time.Hour - 1)
				d := process(t, g, &store, dispatcher.Options{})
				unchanged(t, &store, run, func() {
					if err := goOn(t.Context(), d); !errors.Is(err, dispatcher.ErrInterrupted) {
						t.Errorf("a moment too early the call returned %v", err)
					}
				})
				w.expect(t)
				lasts(time.Minute + 1)
				now := time.Now()
				if err := goOn(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				w.expect(t, "asks", "last")
				res, err = d.State(t.Context(), run)
				completes(t, res, err)
				askedTimed(t, res, dag.AnswerDefault, "nothing", now)
			})
		})
	}
}

// Scenarios 3.62: an answer, and a skip, at the instant at which a question is over, or later,
// is refused as expired and changes nothing; a moment before it counts.
func TestAskAnswerComesTooLate(t *testing.T) {
	for _, live := range []bool{false, true} {
		for _, early := range []time.Duration{1, 0, -time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				free := make(chan struct{})
				g := askTimed(t, &w, free, dag.Within(time.Hour))
				// The clock of who answers is ahead, so that the run itself has not noticed.
				var jump atomic.Int64
				jump.Store(int64(time.Hour - early))
				over := beginRun(t, process(t, g, &store, dispatcher.Options{}))
				if !live {
					close(free)
					<-over
				}
				d := process(t, g, &store, dispatcher.WithNow(dispatcher.Options{}, wall(&jump)))
				id := asked(t, d)
				if early > 0 {
					if err := d.Answer(t.Context(), run, id, "this"); err != nil {
						t.Error(err)
					}
				} else {
					unchanged(t, &store, run, func() {
						refused(t, d.Answer(t.Context(), run, id, "this"), dag.ErrExpired)
						refused(t, d.Answer(t.Context(), run, "", "this"), dag.ErrExpired)
						refused(t, d.Skip(t.Context(), run, id), dag.ErrExpired)
						refused(t, d.Answers(t.Context(), run, map[string]any{id: "this"}), dag.ErrExpired)
					})
				}
				if live {
					close(free)
					<-over
				}
			})
		}
	}
}

// Whoever is first counts, and nobody is told otherwise: an answer that was accepted while a
// question was about to expire is the one that the node gets, and one that comes when it has
// expired is refused, whether the run knows of it already or not.
func TestAskAnswerBesideExpiry(t *testing.T) {
	for _, method := range []string{"Posts", "Post", "Append"} {
		for _, answered := range []bool{true, false} { // before the call hangs, or after it was let go
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var inner memory.Store
				var ready atomic.Bool
				hangs, goOn := make(chan struct{}), make(chan struct{})
				store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
					if c.method == method && ready.CompareAndSwap(true, false) {
						close(hangs)
						<-goOn
					}
					return nil
				}}
				var back atomic.Int64
				back.Store(-int64(time.Minute)) // who answers is late, and does not know
				free := make(chan struct{})
				g := askTimed(t, &w, free, dag.Within(time.Hour))
				over := beginRun(t, process(t, g, store, dispatcher.Options{}))
				synctest.Wait()
				by := process(t, g, &inner, dispatcher.WithNow(dispatcher.Options{}, wall(&back)))
				id := asked(t, by)
				ready.Store(true)
				lasts(time.Hour)
				<-hangs
				var err error
				if answered {
					err = by.Answer(t.Context(), run, id, "this")
				}
				close(goOn)
				synctest.Wait()
				if !answered {
					err = by.Answer(t.Context(), run, id, "this")
				}
				close(free)
				e := <-over
				completes(t, e.res, e.err)
				how, word := dag.AnswerGiven, "this"
				if err != nil {
					refused(t, err, dag.ErrExpired)
					how, word = dag.AnswerExpired, ""
				}
				if got := askAnswers(t, &inner, run)[id]; got.How != string(how) || e.res.State.Word.Get() != word {
					t.Errorf("%s hung, answered before: %t: Answer returned %v, and the log says %+v", method, answered, err, got)
				}
			})
		}
	}
}

// Whenever somebody ends the question with Expire while another process answers it, or the other
// way round, one of the two counts, and who answers is told which.
func TestAskAnswerBesideExpireAtEveryCall(t *testing.T) {
	for _, expireFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ended := map[string]int{}
			for n, hit := 1, true; hit; n++ {
				var w witness
				s := new(memory.Faulty)
				g := askTimed(t, &w, closedChan(), dag.Within(time.Hour), dag.OrDefault("nothing"))
				d := callsDispatcher(t, g, s, dispatcher.Options{})
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "asks")
				id, told := res.Interrupts[0].ID, errors.New("nobody has answered")
				answers := func(d *dispatcher.Dispatcher[Tale]) { told = d.Answer(t.Context(), run, id, "this") }
				expires := func(d *dispatcher.Dispatcher[Tale]) { _, _ = d.Continue(t.Context(), run, dispatcher.Expire(id)) }
				first, second := answers, expires
				if expireFirst {
					first, second = expires, answers
				}
				hit = false
				happensAt(s, n, func(s *memory.Store) {
					hit = true
					second(callsDispatcher(t, g, s, dispatcher.Options{}))
				})
				first(d)
				s.Fail, s.FailRead = nil, nil
				res, err = d.Run(t.Context(), run, nil)
				completes(t, res, err)
				how := askAnswers(t, s, run)[id].How
				if ended[how]++; (told == nil) != (how == checkpoint.AnswerGiven) || how == "" {
					t.Errorf("Expire first: %t, call %d: the question ended as %q, and who answered was told %v", expireFirst, n, how, told)
				}
			}
			if ended[checkpoint.AnswerGiven] == 0 || ended[checkpoint.AnswerDefault] == 0 {
				t.Errorf("Expire first: %t: the question ended as %v, want each now and then", expireFirst, ended)
			}
		})
	}
}

// A question that has expired, or was skipped, without a default is an error that the node can
// handle. If it does not the visit fails at once, whatever its policy, of a kind that says
// so, and the failure can be followed.
func TestAskWithoutAnAnswerFailsTheVisit(t *testing.T) {
	for _, kind := range []dag.FailureKind{dag.FailedExpired, dag.FailedSkipped} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			g := askTimed(t, &w, closedChan(), dag.Within(time.Hour))
			d := process(t, g, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "asks")
			if kind == dag.FailedSkipped {
				if err := d.Skip(t.Context(), run, "", dispatcher.Author("Eve")); err != nil {
					t.Fatal(err)
				}
				refused(t, d.Answer(t.Context(), run, res.Interrupts[0].ID, "this"), dispatcher.ErrNotAwaited)
			} else {
				lasts(time.Hour)
			}
			w.took()
			id := res.Interrupts[0].ID
			res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "asks", "sorry")
			if got, _ := res.State.Notes.Get("failure"); got != string(kind) {
				t.Errorf("the failure is of kind %q, want %q", got, kind)
			}
			if n := len(kinds(readLog(t, &store), checkpoint.AttemptFailed)); n != 1 {
				t.Errorf("%d attempts have failed, want one", n)
			}
			a := askAnswers(t, &store, run)[id]
			if a.How != string(kind) || a.Value != nil || (a.By == "Eve") != (kind == dag.FailedSkipped) {
				t.Errorf("the log says %+v", a)
			}
		})
	}
}

// A resume of a run that failed for want of an answer asks again, and keeps the other answers.
func TestAskResumeAsksAgain(t *testing.T) {
	for _, failed := range []error{dag.ErrExpired, dag.ErrSkipped} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			g := line(t, &w, func(ctx context.Context, s *Tale) error {
				first, err := dag.Ask[string](ctx, "first", "which?")
				if err != nil {
					return err
				}
				second, err := dag.Ask[string](ctx, "second", "and then?", dag.Within(time.Hour))
				s.Word.Set(first + second)
				return err
			})
			d := process(t, g, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			if err := d.Answer(t.Context(), run, "", "this"); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			first := res.Interrupts[0].ID
			if failed == dag.ErrSkipped {
				if err := d.Skip(t.Context(), run, first); err != nil {
					t.Fatal(err)
				}
			} else {
				lasts(time.Hour)
			}
			res, err = d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "b")
			if !errors.Is(err, failed) {
				t.Errorf("the run failed with %v, want %v", err, failed)
			}
			d = process(t, g, &store, dispatcher.Options{})
			res, err = d.State(t.Context(), run)
			if kind := res.Failures[0].Kind; err != nil || !errors.Is(failed, map[dag.FailureKind]error{
				dag.FailedExpired: dag.ErrExpired, dag.FailedSkipped: dag.ErrSkipped,
			}[kind]) {
				t.Errorf("after a restart the failure is %q, %v", kind, err)
			}
			res, err = d.Resume(t.Context(), run)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			if i := res.Interrupts[0]; i.ID == first || i.Key != "second" || len(res.Interrupts) != 1 {
				t.Errorf("the resume asks %+v", res.Interrupts)
			}
			refused(t, d.Answer(t.Context(), run, first, "that"), map[bool]error{true: dag.ErrExpired, false: dispatcher.ErrNotAwaited}[failed == dag.ErrExpired])
			if err := d.Answer(t.Context(), run, "", "that"); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if got := res.State.Word.Get(); got != "thisthat" {
				t.Errorf("the node got %q", got)
			}
		})
	}
}

// Promise P14: when a question is over is an instant that survives the process. A clock that
// jumps never makes the wait longer than it was, and never ends a question twice.
func TestAskExpiryOverARestart(t *testing.T) {
	const rest = 20 * time.Minute // when the first process ends
	for _, c := range []struct {
		jump time.Duration // of the wall clock, while nobody runs
		off  time.Duration // how long nobody runs
		wait time.Duration // from the restart to the end of the question
	}{
		{0, 0, time.Hour - rest},
		{0, 10 * time.Minute, 30 * time.Minute},
		{0, 2 * time.Hour, 0},
		{15 * time.Minute, 0, 25 * time.Minute},
		{24 * time.Hour, 0, 0},
		{-10 * time.Minute, 0, 50 * time.Minute},
		{-24 * time.Hour, 0, time.Hour},
		{-30 * 365 * 24 * time.Hour, 0, time.Hour},
	} {
		t.Run(fmt.Sprint(c.jump, " ", c.off), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				var jump atomic.Int64
				free := make(chan struct{})
				g := askTimed(t, &w, free, dag.Within(time.Hour), dag.OrDefault("nothing"))
				o := dispatcher.WithNow(dispatcher.Options{}, wall(&jump))
				ctx, cancel := context.WithTimeout(t.Context(), rest)
				defer cancel()
				res, err := process(t, g, &store, o).Run(ctx, run, nil)
				rests(t, res, err, checkpoint.StatusTimedOut, "asks", "works")
				w.took()
				lasts(c.off)
				jump.Store(int64(c.jump))
				again := time.Now()
				over := make(chan error, 1)
				go func() { _, err := process(t, g, &store, o).Resume(t.Context(), run); over <- err }()
				if c.wait > 0 {
					lasts(c.wait - 1)
					synctest.Wait()
					w.expect(t, "works")
					lasts(1)
				}
				synctest.Wait()
				if c.wait > 0 {
					w.expect(t, "asks")
				} else {
					w.expect(t, "works", "asks")
				}
				jump.Store(-int64(1000 * time.Hour)) // and once more
				lasts(2 * time.Hour)
				close(free)
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				w.expect(t, "last")
				if n := len(askAnswers(t, &store, run)); n != 1 || time.Since(again) != c.wait+2*time.Hour {
					t.Errorf("the question ended %d times", n)
				}
			})
		})
	}
}

// When a question ended that nobody has answered says the clock that Options.Now gives, as it says
// until when it waits: also when that clock has jumped over its end.
func TestAskExpiryIsByTheGivenClock(t *testing.T) {
	var jump atomic.Int64
	jump.Store(int64(-10 * 365 * 24 * time.Hour))
	now := wall(&jump)
	var w witness
	var store memory.Store
	g := askTimed(t, &w, closedChan(), dag.Within(time.Hour), dag.OrDefault("nothing"))
	d := process(t, g, &store, dispatcher.WithNow(dispatcher.Options{}, now))
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	jump.Add(int64(5 * time.Hour))
	before := now()
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	at, err := time.Parse(time.RFC3339, value(res.State.Notes.Get("at")))
	if err != nil || at.Before(before.Truncate(time.Second)) || at.After(now()) {
		t.Errorf("it ended at %v, %v; want %v, five hours behind the beginning", at, err, before)
	}
}

// value is that of a lookup.
func value[V any](v V, _ bool) V { return v }

// Expire ends a question that waits for a time, before that is over by the clock; once, and by a
// Resume or Continue alone. What it can't end changes nothing.
func TestAskExpireEndsBeforeItsInstant(t *testing.T) {
	var w witness
	var store memory.Store
	g := askTimed(t, &w, closedChan(), dag.Within(time.Hour), dag.OrDefault("nothing"))
	d := process(t, g, &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	if i := res.Interrupts[0]; i.Wait != time.Hour {
		t.Errorf("the question is told to wait %v, want an hour", i.Wait)
	}
	id := res.Interrupts[0].ID
	unchanged(t, &store, run, func() {
		if _, err := d.Continue(t.Context(), run, dispatcher.Expire(id, "nobody")); !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("Expire of what does not wait: %v", err)
		}
		var option *dispatcher.OptionError
		if _, err := d.Run(t.Context(), run, nil, dispatcher.Expire(id)); !errors.As(err, &option) {
			t.Errorf("Run with Expire: %v", err)
		}
	})
	w.expect(t, "asks", "works")
	res, err = d.Resume(t.Context(), run, dispatcher.Expire(id))
	completes(t, res, err)
	if how, _ := res.State.Notes.Get("how"); how != string(dag.AnswerDefault) || res.State.Word.Get() != "nothing" {
		t.Errorf("the question ended as %s with %q", how, res.State.Word.Get())
	}
}

// A question that never expires can't be made to, and one that has its answer keeps it.
func TestAskExpireLeavesAnswersAlone(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, asking(t, &w, closedChan()), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	unchanged(t, &store, run, func() {
		if _, err := d.Continue(t.Context(), run, dispatcher.Expire(res.Interrupts[0].ID)); !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("Expire of a question without a time: %v", err)
		}
	})

	g := askTimed(t, &w, closedChan(), dag.Within(time.Hour))
	d = process(t, g, &store, dispatcher.Options{})
	res, err = d.Run(t.Context(), "answered", nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	id := res.Interrupts[0].ID
	post := checkpoint.Post{ID: "answer:000000000001", Kind: "answer", Data: []byte(`{"replies":[{"interrupt":"` + id + `","how":"answered","value":"yes"}]}`)}
	if err := store.Post(t.Context(), "answered", post); err != nil { // as who dies behind it
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), "answered", dispatcher.Expire(id))
	completes(t, res, err)
	if how, _ := res.State.Notes.Get("how"); how != string(dag.AnswerGiven) || res.State.Word.Get() != "yes" {
		t.Errorf("the question ended as %s with %q", how, res.State.Word.Get())
	}
}
