package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// halves are answers to what asks0 of askSeveral waits for, as options of a call, and to what asks1
// does.
func halves(res *dispatcher.Result[Tale]) (first []dispatcher.RunOption, second map[string]any) {
	second = map[string]any{}
	for _, i := range res.Interrupts {
		var value any = 7
		if i.Key == "word" {
			value = "this"
		}
		if i.Path == "asks1" {
			second[i.ID] = value
			continue
		}
		first = append(first, dispatcher.Answering(i.ID, value))
	}
	return first, second
}

// askedTwo is a run in which two visits ask, with what halves makes of it.
func askedTwo(t *testing.T, store checkpoint.Store) (*dag.Graph[Tale], *dispatcher.Dispatcher[Tale], []dispatcher.RunOption, map[string]any) {
	t.Helper()
	var w witness
	g := askSeveral(t, &w, 2, closedChan())
	d := callsDispatcher(t, g, store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	first, second := halves(res)
	return g, d, first, second
}

// Who watches a call that has to begin again, since somebody has posted under its number, sees one
// call.
func TestAnsweringAgainIsOneCall(t *testing.T) {
	var inner memory.Store
	var w witness
	g := askSeveral(t, &w, 2, closedChan())
	d := callsDispatcher(t, g, &inner, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	head := res.Cursor.Seq
	first, second := halves(res)
	refusals := 0
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if k.method == "Append" && k.n == 1 {
			return d.Answers(ctx, run, second)
		}
		return nil
	}, after: func(k call, err error) error {
		if k.method == "Append" && err != nil {
			refusals++
		}
		return err
	}}
	var observed []dispatcher.Event
	ends := 0
	by := callsDispatcher(t, g, store, dispatcher.Options{
		Observe: func(e dispatcher.Event) { observed = append(observed, e) },
		Hooks:   dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error { ends++; return nil }},
	})
	var streamed []dispatcher.Event
	for e, err := range by.Stream(t.Context(), run, nil, dispatcher.Listen{Since: head}, first...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Result == nil {
			streamed = append(streamed, e.Event)
		}
	}
	if refusals != 1 || ends != 1 {
		t.Errorf("the store has refused %d appends, want one, and OnEnd was called %d times", refusals, ends)
	}
	for who, events := range map[string][]dispatcher.Event{"the observer": observed, "the stream": streamed} {
		next := head + 1
		for _, e := range events {
			switch {
			case e.Live && e.Kind == dispatcher.RunRested:
				t.Errorf("%s was told that the run is left: %s", who, e)
			case !e.Live && e.Seq != next:
				t.Fatalf("%s was told of entry %d, want %d", who, e.Seq, next)
			case !e.Live:
				next++
			}
		}
		if info, err := inner.Stat(t.Context(), run); err != nil || info.Head.Seq != next-1 {
			t.Errorf("%s was told of entries up to %d of %d, %v", who, next-1, info.Head.Seq, err)
		}
	}
	w.expect(t, "works", "asks0", "asks1", "asks0", "asks1", "last")
}

// A call that has to begin again goes on from where it was told to, or not at all: what another one
// has made of the run meanwhile is not what it answers.
func TestAnsweringAgainKeepsFrom(t *testing.T) {
	var inner memory.Store
	b := dag.New[Tale]("asks")
	dag.Step(b, "node", func(ctx context.Context, s *Tale) error {
		for _, key := range []string{"one", "two"} {
			word, err := dag.Ask[string](ctx, key, "which?")
			if err != nil {
				return err
			}
			s.Word.Set(word)
		}
		return nil
	})
	g := frozen(t, b)
	d := callsDispatcher(t, g, &inner, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "node")
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		switch {
		case k.method == "Append" && k.n == 1:
			return d.Answer(ctx, run, "", "theirs")
		case k.method == "Acquire" && k.n == 2:
			if _, err := d.Resume(ctx, run); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Errorf("the other call: %v, want that it waits for the second question", err)
			}
		}
		return nil
	}}
	by := callsDispatcher(t, g, store, dispatcher.Options{})
	if _, err := by.Resume(t.Context(), run, dispatcher.From(res.Cursor), dispatcher.Answering("", "mine")); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("the call returned %v, want ErrStaleCursor", err)
	}
	if all := askAnswers(t, &inner, run); len(all) != 1 {
		t.Errorf("the log has the answers %+v, want theirs", all)
	}
}

// Who cancels a run whose call has to begin again has cancelled that call. Its answers count. So it
// is with a store that can't tell of posts.
func TestAnsweringAgainHearsACancel(t *testing.T) {
	for name, store := range map[string]checkpoint.Store{"a Watcher": new(memory.Store), "none": struct{ checkpoint.Store }{new(memory.Store)}} {
		t.Run(name, func(t *testing.T) { answersAgainCancelled(t, store, dispatcher.Hooks{}, false) })
	}
}

// It is heard too where the answers have an append of their own from the beginning, and of a run
// that was cancelled before.
func TestAnsweringHearsACancelBesideAnAnswer(t *testing.T) {
	for name, h := range map[string]dispatcher.Hooks{
		"apart":              {OnStart: func(context.Context, dispatcher.Start) error { return nil }},
		"shared":             {},
		"shared, with OnEnd": {OnEnd: func(context.Context, dispatcher.End) error { return nil }},
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cancelled before: %t", name, before), func(t *testing.T) {
				answersAgainCancelled(t, new(memory.Store), h, before)
			})
		}
	}
}

// That somebody else's context ends, who went on with the run meanwhile, cancels no call that
// begins again.
func TestAnsweringAgainBesideAnotherCallThatIsCancelled(t *testing.T) {
	res, err := answersAgainBeside(t, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) {
		c, stop := context.WithCancel(ctx)
		stop()
		if res, _ := d.Run(c, run, nil); res.Status != checkpoint.StatusCancelled {
			t.Errorf("the other call leaves the run %s", res.Status)
		}
	})
	completes(t, res, err)
}

// Who cancels the run by its id where the call has let go of it, to begin again, has cancelled that
// call.
func TestAnsweringAgainBehindACancel(t *testing.T) {
	res, err := answersAgainBeside(t, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) {
		if err := d.Cancel(ctx, run, errWeather, dispatcher.Author("Ada")); err != nil {
			t.Error(err)
		}
	})
	rests(t, res, err, checkpoint.StatusCancelled, "asks0", "asks1")
	var rest *dispatcher.Rest
	if errors.As(err, &rest); rest.By != "Ada" {
		t.Errorf("the call returned %v, by %q", err, rest.By)
	}
}

// So has who cancels the run by its id while somebody else is at work on it, who has taken it
// meanwhile.
func TestAnsweringAgainBehindACancelOfAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		res, err := answersAgainOver(t, &inner, nil, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) {
			var w witness
			other := callsDispatcher(t, askSeveral(t, &w, 2, closedChan()), &inner, dispatcher.Options{Observe: func(e dispatcher.Event) {
				if e.Kind == dispatcher.VisitStarted {
					if err := d.Cancel(ctx, run, errWeather, dispatcher.Author("Ada")); err != nil {
						t.Error(err)
					}
					synctest.Wait() // until the other call has heard it: a visit that has begun would end
				}
			}})
			if res, err := other.Run(ctx, run, nil); res == nil || res.Status != checkpoint.StatusCancelled {
				t.Errorf("the other call returned %v", err)
			}
		})
		rests(t, res, err, checkpoint.StatusCancelled, "asks0", "asks1")
		var rest *dispatcher.Rest
		if errors.As(err, &rest); rest.By != "Ada" || !strings.Contains(err.Error(), errWeather.Error()) {
			t.Errorf("the call returned %v, by %q", err, rest.By)
		}
	})
}

// What was trimmed behind the place where the call has let go of the run cancels nothing: it finds
// that its answers come too late.
func TestAnsweringAgainBehindATrim(t *testing.T) {
	_, err := answersAgainBeside(t, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) {
		res, err := d.State(ctx, run)
		if err != nil {
			t.Error(err)
		}
		first, _ := halves(res)
		if res, err := d.Resume(ctx, run, first...); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("the other call leaves the run %s, %v", res.Status, err)
		}
		if err := d.Trim(ctx, run, dispatcher.Retention{Last: 1}); err != nil {
			t.Error(err)
		}
	})
	if errors.Is(err, checkpoint.ErrTrimmed) || !errors.Is(err, dispatcher.ErrNotAwaited) {
		t.Errorf("the call returned %v, want ErrNotAwaited", err)
	}
}

// A cancel that waited when the call began, of a run that was cancelled by then, was of an earlier
// call.
func TestAnsweringAgainBehindACancelOfAnEarlierCall(t *testing.T) {
	var inner memory.Store
	res, err := answersAgainOver(t, &inner, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) {
		if err := d.Cancel(ctx, run, nil); err != nil {
			t.Error(err)
		}
		if err := inner.Post(ctx, run, checkpoint.Post{ID: "cancel:late", Kind: "cancel", Data: []byte(`{}`)}); err != nil {
			t.Error(err)
		}
	}, nil)
	completes(t, res, err)
	nothingIsPosted(t, &inner)
}

// answersAgainBeside has a call answer that begins again, and does something when it is about to
// take the run once more.
func answersAgainBeside(t *testing.T, do func(context.Context, *dispatcher.Dispatcher[Tale])) (*dispatcher.Result[Tale], error) {
	t.Helper()
	return answersAgainOver(t, new(memory.Store), nil, do)
}

// answersAgainOver is answersAgainBeside over a store, with what is done before the call. Either
// may be nil.
func answersAgainOver(t *testing.T, inner checkpoint.Store, before, do func(context.Context, *dispatcher.Dispatcher[Tale])) (*dispatcher.Result[Tale], error) {
	t.Helper()
	g, d, first, second := askedTwo(t, inner)
	if before != nil {
		before(t.Context(), d)
	}
	store := &tampered{Store: inner, before: func(ctx context.Context, k call) error {
		switch {
		case k.method == "Append" && k.n == 1:
			return d.Answers(ctx, run, second)
		case k.method == "Acquire" && k.n == 2 && do != nil:
			do(ctx, d)
		}
		return nil
	}}
	return callsDispatcher(t, g, store, dispatcher.Options{}).Resume(t.Context(), run, first...)
}

// tellsAs is a store that tells of posts if another one does.
func tellsAs(s *tampered, as checkpoint.Store) checkpoint.Store {
	if _, ok := as.(checkpoint.Watcher); ok {
		return s
	}
	return struct{ checkpoint.Store }{s}
}

func answersAgainCancelled(t *testing.T, inner checkpoint.Store, h dispatcher.Hooks, before bool) {
	t.Helper()
	g, d, first, second := askedTwo(t, inner)
	if before {
		if err := d.Cancel(t.Context(), run, nil, dispatcher.Author("Bob")); err != nil {
			t.Fatal(err)
		}
	}
	slow := &tampered{Store: inner, before: func(ctx context.Context, k call) error {
		if k.method == "Append" && k.n == 1 {
			return errors.Join(d.Cancel(ctx, run, errWeather, dispatcher.Author("Ada")), d.Answers(ctx, run, second))
		}
		return nil
	}}
	res, err := callsDispatcher(t, g, tellsAs(slow, inner), dispatcher.Options{Hooks: h}).Resume(t.Context(), run, first...)
	rests(t, res, err, checkpoint.StatusCancelled, "asks0", "asks1")
	var rest *dispatcher.Rest
	if errors.As(err, &rest); rest.By != "Ada" || !strings.Contains(err.Error(), errWeather.Error()) {
		t.Errorf("the call returned %v, by %q", err, rest.By)
	}
	if all := askAnswers(t, inner, run); len(all) != 4 {
		t.Errorf("the log has the answers %+v, want four", all)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// A question that expires while the answers of a call are on their way to the log takes no number
// before them: whoever answers meanwhile, and is told that it counts, is told the truth.
func TestAnsweringBesideAQuestionThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		b := dag.New[Tale]("asks")
		dag.Step(b, "y", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "y", "which?")
			s.Word.Set(word)
			return err
		})
		dag.Step(b, "x", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[string](ctx, "x", "which?", dag.Within(time.Second), dag.OrDefault("none"))
			return err
		})
		g := frozen(t, b)
		d := callsDispatcher(t, g, &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "y", "x")
		id := askedBy(t, d, run, "y", "y")
		lasts(2 * time.Second)
		var theirs error
		slow := &tampered{Store: &store, before: func(ctx context.Context, k call) error {
			if k.method == "Append" && k.n == 1 {
				theirs = d.Answer(ctx, run, id, "theirs", dispatcher.Author("Ada"))
			}
			return nil
		}}
		by := callsDispatcher(t, g, slow, dispatcher.Options{})
		_, mine := by.Resume(t.Context(), run, dispatcher.Answering(id, "mine"), dispatcher.Author("Eve"))
		if _, err := d.Run(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		counts := askAnswers(t, &store, run)[id].By
		if theirs == nil != (counts == "Ada") || mine == nil != (counts == "Eve") {
			t.Errorf("the answer of %s counts; Ada was told %v, Eve %v", counts, theirs, mine)
		}
	})
}

// A call that begins again and is not cancelled has all the time in the world, and a whole grace
// period when it is cancelled later.
func TestAnsweringAgainHasItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		b := dag.New[Tale]("asks")
		for _, name := range []string{"one", "two"} {
			dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
				if _, err := dag.Ask[string](ctx, "word", "which?"); err != nil {
					return err
				}
				<-ctx.Done()
				lasts(time.Second) // to put things away
				return ctx.Err()
			})
		}
		g := frozen(t, b)
		d := callsDispatcher(t, g, &inner, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "one", "two")
		mine, theirs := askedBy(t, d, run, "one", "word"), askedBy(t, d, run, "two", "word")
		store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
			switch {
			case k.method == "Append" && k.n == 1:
				return d.Answer(ctx, run, theirs, "this")
			case k.method == "Release" && k.n == 1:
				synctest.Wait() // until the caller has seen that the first attempt has ended its context
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		by := callsDispatcher(t, g, store, dispatcher.Options{Grace: 5 * time.Second})
		res, err = by.Resume(ctx, run, dispatcher.Answering(mine, "that"))
		rests(t, res, err, checkpoint.StatusCancelled, "one", "two")
		if len(res.Abandoned) > 0 {
			t.Errorf("abandoned: %q", res.Abandoned)
		}
	})
}

// The grace period of a call that has to begin again is one, however much of it is left then.
func TestAnsweringAgainEndsWithinItsGrace(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 3 * time.Second, 4600 * time.Millisecond, 4900 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) { answersAgainWithinGrace(t, late) })
	}
}

func answersAgainWithinGrace(t *testing.T, late time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		var w witness
		g := askSeveral(t, &w, 2, closedChan())
		d := callsDispatcher(t, g, &inner, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
		first, second := halves(res)
		hung := make(chan struct{})
		store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
			switch {
			case k.method == "Append" && k.n == 1:
				lasts(late)
				return d.Answers(ctx, run, second)
			case k.method == "Append":
				<-hung
			}
			return nil
		}}
		by := callsDispatcher(t, g, store, dispatcher.Options{Grace: 5 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if _, err := by.Resume(ctx, run, first...); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("the call returned %v, want ErrStuck", err)
		}
		if took := time.Since(began); took > 5*time.Second+5*time.Millisecond { // a moment is always left to tell how the run rests
			t.Errorf("the call returned after %v, its grace period is 5s", took)
		}
		close(hung)
		synctest.Wait()
		res, err = d.Run(t.Context(), run, nil)
		if err != nil { // what hung has heeded its context, or not
			res, err = d.Run(t.Context(), run, nil, first...)
		}
		completes(t, res, err)
	})
}

// Whatever somebody else does at whichever call of the store, answers that a call was told to have
// given count once, those that were refused not at all, and the run can be brought to its end.
func TestAnsweringBesideAnythingAtEveryCall(t *testing.T) {
	t.Parallel()
	others := map[string]func(context.Context, *dispatcher.Dispatcher[Tale], map[string]any) error{
		"answers": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], second map[string]any) error {
			return d.Answers(ctx, run, second)
		},
		"a cancel": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], _ map[string]any) error {
			return d.Cancel(ctx, run, errWeather)
		},
		"a cancel and answers": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], second map[string]any) error {
			return errors.Join(d.Cancel(ctx, run, errWeather), d.Answers(ctx, run, second))
		},
		"a tag": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], _ map[string]any) error {
			return d.Tag(ctx, run, "", "here")
		},
		"answers and a run": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], second map[string]any) error {
			err := d.Answers(ctx, run, second)
			_, _ = d.Resume(ctx, run)
			return err
		},
	}
	for name, other := range others {
		t.Run(name, func(t *testing.T) {
			for n, hit := 1, true; hit; n++ {
				hit = false
				s := new(memory.Faulty)
				var w witness
				g := askSeveral(t, &w, 2, closedChan())
				d := callsDispatcher(t, g, s, dispatcher.Options{})
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
				first, second := halves(res)
				happensAt(s, n, func(s *memory.Store) {
					hit = true
					_ = other(t.Context(), callsDispatcher(t, g, s, dispatcher.Options{}), second)
				})
				_, mine := d.Resume(t.Context(), run, first...)
				s.Fail, s.FailRead = nil, nil
				rested := mine == nil || errors.As(mine, new(*dispatcher.Rest))
				if !rested && !errors.Is(mine, dispatcher.ErrBusy) && !errors.As(mine, new(*dispatcher.AnswerError)) {
					t.Errorf("call %d: %v", n, mine)
				}
				now, err := d.State(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				if rested && len(now.Interrupts) > len(second) {
					t.Errorf("call %d: the run waits for %d answers, and the call had given its own: %v", n, len(now.Interrupts), mine)
				}
				if len(now.Interrupts) > 0 {
					rest, more := halves(now)
					if err := d.Answers(t.Context(), run, more); len(more) > 0 && err != nil {
						t.Errorf("call %d: %v", n, err)
					}
					_, _ = d.Resume(t.Context(), run, rest...)
				}
				r, err := d.Run(t.Context(), run, nil)
				completes(t, r, err)
				if all := askAnswers(t, s, run); len(all) != 4 {
					t.Errorf("call %d: the log has the answers %+v, want four", n, all)
				}
			}
		})
	}
}
