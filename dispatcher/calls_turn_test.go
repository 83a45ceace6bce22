package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Talk is the state of the tests of turns.
type Talk struct {
	Heard state.Value[string]
	Lines state.List[string] // key of the visit, and what was heard
	Turns state.Sum[int]
	Best  state.Fold[callsBest]
}

// A callsBest keeps the greater of two. Its merge breaks or hangs if it is told to.
type callsBest struct {
	N    int
	Hang time.Duration
}

func (b callsBest) Merge(c callsBest) callsBest {
	if b.N+c.N < 0 {
		panic("a merge that breaks")
	}
	lasts(c.Hang)
	return callsBest{N: max(b.N, c.N)}
}

// Check refuses what must not be heard.
func (t *Talk) Check() error {
	switch t.Heard.Get() {
	case "bad":
		return errors.New("that is not heard")
	case "worse":
		panic("that is not even checked")
	case "worst":
		runtime.Goexit()
	}
	return nil
}

// hear is an input.
func hear(word string) func(*Talk) {
	return func(t *Talk) {
		t.Heard.Set(word)
		t.Turns.Add(1)
	}
}

// callsTalk is a graph that has something of everything: a visit that is tried twice, a
// loop of two iterations, an embedded graph, and what follows them. f, which may be nil, is
// called by its last node.
func callsTalk(t testing.TB, f func(context.Context, *Talk) error) *dag.Graph[Talk] {
	t.Helper()
	says := func(ctx context.Context, s *Talk) error {
		s.Lines.Append(dag.Key(ctx) + " " + s.Heard.Get())
		return nil
	}
	body := dag.New[Talk]("thinking")
	dag.Step(body, "think", says)
	inner := dag.New[Talk]("looking")
	dag.Step(inner, "look", says)
	b := dag.New[Talk]("talk")
	hears := dag.Step(b, "hear", func(ctx context.Context, s *Talk) error {
		if dag.Attempt(ctx) == 1 {
			return errors.New("what?")
		}
		return says(ctx, s)
	}).With(dag.Policy{Attempts: 2})
	thinks := dag.Loop(b, "loop", frozen(t, body), func(s *Talk) bool { return s.Lines.Len()%2 == 0 }, 3, hears)
	looks := dag.Embed(b, "embed", frozen(t, inner),
		func(from, to *Talk) { to.Heard.Set(from.Heard.Get()) },
		func(from, to *Talk) { to.Lines.Append(from.Lines.Slice()...) }, hears)
	dag.Step(b, "say", func(ctx context.Context, s *Talk) error {
		s.Best.Merge(callsBest{N: s.Lines.Len()})
		if f != nil {
			return f(ctx, s)
		}
		return says(ctx, s)
	}, dag.All[Talk](thinks, looks))
	return frozen(t, b)
}

// A completed run is given new input: its graph runs again over the state as it is, in the
// same log, under keys, attempts and addresses of its own.
func TestCallsTurns(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var events []dispatcher.Event
		o.Observe = func(e dispatcher.Event) { events = append(events, e) }
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		if res.Turn != 1 || res.Superstep != 3 {
			t.Errorf("turn %d, superstep %d, want 1 and 3", res.Turn, res.Superstep)
		}
		first := res.State.Lines.Slice()
		res, err = d.Turn(ctx, run, func(s *Talk) {
			if s.Heard.Get() != "one" {
				t.Errorf("the input sees %q, want what was heard before", s.Heard.Get())
			}
			hear("two")(s)
		})
		completes(t, res, err)
		if res.Turn != 2 || res.Superstep != 6 || res.State.Turns.Get() != 2 {
			t.Errorf("turn %d, superstep %d, %d turns, want 2, 6 and 2", res.Turn, res.Superstep, res.State.Turns.Get())
		}
		res, err = d.Turn(ctx, run, hear("three"))
		completes(t, res, err)
		lines := res.State.Lines.Slice()
		if !slices.Equal(lines[:len(first)], first) || first[0] != "tale/hear one" {
			t.Errorf("the first turn said %q, later %q", first, lines)
		}
		for _, want := range []string{"tale/2/hear two", "tale/2/embed/look two", "tale/3/loop/1/think three", "tale/3/say three"} {
			if !slices.Contains(lines, want) {
				t.Errorf("nobody said %q: %q", want, lines)
			}
		}
		seen := map[string]bool{}
		for _, l := range lines {
			if key, _, _ := strings.Cut(l, " "); seen[key] {
				t.Errorf("two visits have the key %s", key)
			} else {
				seen[key] = true
			}
		}
		turn := 0
		for _, e := range events {
			if e.Kind == dispatcher.RunStarted || e.Kind == dispatcher.TurnBegun {
				turn++
			}
			if e.Kind != dispatcher.Appended && e.Turn != turn {
				t.Errorf("%s is of turn %d, want %d", e, e.Turn, turn)
			}
		}
		info, err := store.Stat(ctx, run)
		if err != nil || info.Turn != 3 || info.Status != checkpoint.StatusCompleted {
			t.Errorf("the store tells of turn %d, %s, %v", info.Turn, info.Status, err)
		}
		if again, err := d.Run(ctx, run, hear("never")); err != nil || again.Turn != 3 || asJSON(t, again.State) != asJSON(t, res.State) {
			t.Errorf("Run returned turn %d, %v", again.Turn, err)
		}
	})
}

// What can't begin a turn changes nothing, and says why.
func TestCallsTurnRefused(t *testing.T) {
	store := new(memory.Store)
	g := callsTalk(t, nil)
	d := process(t, g, store, dispatcher.Options{InterruptBefore: []string{"say"}})
	ctx := t.Context()
	if _, err := d.Turn(ctx, run, hear("one")); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("a turn of no run: %v", err)
	}
	if _, err := d.Turn(ctx, "", hear("one")); !errors.Is(err, dispatcher.ErrRunID) {
		t.Errorf("a turn of a run without an id: %v", err)
	}
	res, err := d.Run(ctx, run, hear("one"))
	rests(t, res, err, checkpoint.StatusInterrupted, "say")
	before := len(readLog(t, store))
	res, err = d.Turn(ctx, run, func(*Talk) { t.Error("the input is called") })
	if !errors.Is(err, dispatcher.ErrNotCompleted) || res.Status != checkpoint.StatusInterrupted || len(readLog(t, store)) != before {
		t.Errorf("a turn of a run at rest: %v, %s", err, res.Status)
	}
	lease, err := store.Acquire(ctx, run, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Turn(ctx, run, hear("two")); !errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("a turn of a live run: %v", err)
	}
	if err := store.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if _, err := process(t, g, nil, dispatcher.Options{}).Turn(ctx, run, nil); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("a turn without a store: %v", err)
	}
	drained, cancel := context.WithCancelCause(ctx)
	cancel(dispatcher.ErrDrain)
	if _, err := d.Run(drained, "pending", hear("one")); err == nil {
		t.Error("a drained run is completed")
	}
	if _, err := d.Turn(ctx, "pending", hear("two")); !errors.Is(err, dispatcher.ErrNotCompleted) {
		t.Errorf("a turn of a run that has not begun: %v", err)
	}
}

// Input that the state's Check, a merge or a limit refuses leaves the run as it was.
func TestCallsTurnInputRefused(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsTalk(t, nil), store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 1000, StateBytes: 3000}})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err)
	before, was := len(readLog(t, store)), asJSON(t, res.State)
	var limit *dispatcher.LimitError
	for name, input := range map[string]func(*Talk){
		"check":          hear("bad"),
		"panic in check": hear("worse"),
		"exit in check":  hear("worst"),
		"panic":          func(*Talk) { panic("no") },
		"exit":           func(*Talk) { runtime.Goexit() },
		"merge":          func(s *Talk) { s.Best.Merge(callsBest{N: -100}) },
		"value bytes":    hear(strings.Repeat("x", 1001)),
		"state bytes": func(s *Talk) {
			for range 5 {
				s.Lines.Append(strings.Repeat("x", 900))
			}
		},
		"no JSON": hear("\xff"),
	} {
		res, err := d.Turn(ctx, run, input)
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || fault.Kind != "input" {
			t.Errorf("%s: %v, want a FaultError of the input", name, err)
		}
		if strings.HasSuffix(name, "bytes") && (!errors.As(err, &limit) || limit.Limit != name) {
			t.Errorf("%s: %v, want a LimitError", name, err)
		}
		if n := len(readLog(t, store)); n != before || res.Status != checkpoint.StatusCompleted || res.Turn != 1 || asJSON(t, res.State) != was {
			t.Errorf("%s: %d new entries, %s, turn %d", name, n-before, res.Status, res.Turn)
		}
	}
	res, err = d.Turn(ctx, run, nil)
	completes(t, res, err)
	if res.Turn != 2 {
		t.Errorf("without input turn %d, want 2", res.Turn)
	}
}

// A turn rests and goes on as any run: interrupted, failed, cancelled. Budgets and the limit
// of supersteps begin anew with it.
func TestCallsTurnRests(t *testing.T) {
	store := new(memory.Store)
	mended := false
	g := callsTalk(t, func(ctx context.Context, s *Talk) error {
		if s.Heard.Get() == "fail" && !mended {
			return errors.New("broken")
		}
		if s.Heard.Get() == "ask" {
			_, err := dag.Ask[bool](ctx, "ok", "?")
			return err
		}
		return nil
	})
	d := process(t, g, store, dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 7}})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("fine"))
	completes(t, res, err)

	res, err = d.Turn(ctx, run, hear("fail"))
	rests(t, res, err, checkpoint.StatusFailed, "say")
	var node *dispatcher.NodeError
	if !errors.As(err, &node) || node.Path != "say" || node.Attempt != 1 {
		t.Errorf("%v, want a first attempt of say", err)
	}
	if _, err := d.Turn(ctx, run, hear("next")); !errors.Is(err, dispatcher.ErrNotCompleted) {
		t.Errorf("a turn after one that failed: %v", err)
	}
	mended = true
	res, err = d.Run(ctx, run, nil)
	completes(t, res, err)

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	res, err = d.Turn(cancelled, run, hear("ask"))
	rests(t, res, err, checkpoint.StatusCancelled, "hear")
	if res.Turn != 3 || res.Superstep != 6 {
		t.Errorf("turn %d, superstep %d, want 3 and 6", res.Turn, res.Superstep)
	}
	if fresh, err := d.State(ctx, run); err != nil || fresh.State.Heard.Get() != "ask" || !slices.Equal(fresh.Cursor.Visits, []string{"hear"}) {
		t.Errorf("State tells %q, %v, %v", fresh.State.Heard.Get(), fresh.Cursor, err)
	}
	res, err = d.Resume(ctx, run)
	rests(t, res, err, checkpoint.StatusInterrupted, "say")
	if err := d.Answer(ctx, run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(ctx, run, nil)
	completes(t, res, err)
	res, err = d.Turn(ctx, run, hear("ask")) // asked anew, under another id
	rests(t, res, err, checkpoint.StatusInterrupted, "say")
}

// A cancel that came too late for a turn is no wish for the next one.
func TestCallsTurnAfterALateCancel(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsTalk(t, nil), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, hear("one"))
	completes(t, res, err)
	if err := store.Post(t.Context(), run, checkpoint.Post{ID: "cancel:1", Kind: "cancel", Data: []byte(`"late"`)}); err != nil {
		t.Fatal(err)
	}
	res, err = d.Turn(t.Context(), run, hear("two"))
	completes(t, res, err)
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("%d posts are left, %v", len(posts), err)
	}
}

// Events and hooks of a call tell the turn that the run is in, also when the call goes on
// with a later one, and when a call comes to several.
func TestCallsTurnIsTold(t *testing.T) {
	store := new(memory.Store)
	var told []string
	o := dispatcher.Options{
		InterruptBefore: []string{"say"},
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.RunRested || e.Kind == dispatcher.RunResumed || e.Kind == dispatcher.TurnBegun {
				told = append(told, fmt.Sprint(e.Kind, " ", e.Turn))
			}
		},
		Hooks: dispatcher.Hooks{
			OnStart: func(_ context.Context, s dispatcher.Start) error {
				told = append(told, fmt.Sprint("start ", s.Turn, " ", s.Resumed))
				return nil
			},
			OnEnd: func(_ context.Context, e dispatcher.End) error {
				told = append(told, fmt.Sprint("end ", e.Turn))
				return nil
			},
		},
	}
	d := process(t, callsTalk(t, nil), store, o)
	o.InterruptBefore = nil
	free := process(t, callsTalk(t, nil), store, o)
	ctx := t.Context()
	res, err := free.Run(ctx, run, hear("one"))
	completes(t, res, err)
	res, err = d.Turn(ctx, run, hear("two"))
	rests(t, res, err, checkpoint.StatusInterrupted, "say")
	res, err = d.Resume(ctx, run)
	completes(t, res, err)
	enqueue(t, d, "three", "four")
	res, err = free.Run(ctx, run, nil)
	completes(t, res, err)
	want := []string{
		"start 1 false", "run rested 1", "end 1",
		"start 2 true", "turn begun 2", "run rested 2", "end 2",
		"start 2 true", "run resumed 2", "run rested 2", "end 2",
		"start 3 true", "turn begun 3", "run rested 3", "turn begun 4", "run rested 4", "end 4",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	told = nil
	refuses := o
	refuses.Hooks.OnStart = func(context.Context, dispatcher.Start) error { return errors.New("no") }
	before := len(readLog(t, store))
	res, err = process(t, callsTalk(t, nil), store, refuses).Turn(ctx, run, func(*Talk) { t.Error("the input is called") })
	var fault *dispatcher.FaultError
	if !errors.As(err, &fault) || fault.Kind != "hook" || res.Turn != 4 || len(readLog(t, store)) != before || len(told) > 0 {
		t.Errorf("a turn that a hook refuses: %v, turn %d, told %q", err, res.Turn, told)
	}
	for e, err := range free.Events(ctx, run, dispatcher.Listen{Since: uint64(before) - 3}) {
		if err != nil || e.Turn != 4 {
			t.Errorf("read later, %s is of turn %d, %v", e, e.Turn, err)
		}
	}
}

// A turn may be told other settings; a graph that has changed downstream, upstream and
// everywhere runs it, if the cells fit.
func TestCallsTurnOfAChangedGraph(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsTalk(t, nil), store, dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"), dispatcher.Settings(1, ""))
	completes(t, res, err)
	b := dag.New[Talk]("talk")
	dag.Step(b, "only", func(ctx context.Context, s *Talk) error {
		n, err := dag.Settings[int](ctx)
		s.Lines.Append(fmt.Sprint(dag.Key(ctx), " ", n))
		return err
	})
	d = process(t, frozen(t, b), store, dispatcher.Options{})
	res, err = d.Turn(ctx, run, hear("two"), dispatcher.Settings(2, "ann"))
	completes(t, res, err)
	lines := res.State.Lines.Slice()
	if last := lines[len(lines)-1]; last != "tale/2/only 2" || lines[0] != "tale/hear one" || res.Superstep != 4 {
		t.Errorf("superstep %d, lines %q", res.Superstep, lines)
	}
}

// Checkpoints of several turns are told apart, and each can be read.
func TestCallsTurnHistory(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		for _, word := range []string{"two", "three"} {
			res, err = d.Turn(ctx, run, hear(word))
			completes(t, res, err)
		}
		seen := map[string]bool{}
		words := map[int]string{1: "one", 2: "two", 3: "three"}
		for p, err := range d.History(ctx, run) {
			if err != nil {
				t.Fatal(err)
			}
			if seen[p.String()] {
				t.Errorf("two checkpoints are shown as %s", p)
			}
			seen[p.String()] = true
			for _, address := range []string{p.Address(), p.String()} {
				then, err := d.At(ctx, run, address)
				if err != nil || then.Turn != p.Turn || then.State.Heard.Get() != words[p.Turn] || then.Superstep != p.Superstep {
					t.Errorf("At %s: turn %d, superstep %d, %q, %v, want turn %d", address, then.Turn, then.Superstep, then.State.Heard.Get(), err, p.Turn)
				}
			}
		}
		for _, want := range []string{"loop/1@1", "2/loop/1@1", "3/embed@1", "@1", "@9"} {
			if !seen[want] {
				t.Errorf("no checkpoint is shown as %s: %v", want, seen)
			}
		}
	})
}
