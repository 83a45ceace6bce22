package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A completed run leaves memory to the next one of its dispatcher, and nothing else: each is what
// the reference says, as if it was the first.
func TestRunsAfterAnother(t *testing.T) {
	eachCase(t, func(t *testing.T, c *randomCase) {
		var store memory.Store
		d := c.newDispatcher(t, &store, dispatcher.Options{})
		for i := range 4 {
			b := &bench{run: runID, spec: c.spec}
			res, err := d.Run(b.context(t.Context()), runID, inputs)
			sameRest(t, fmt.Sprintf("run %d", i), res, err, c.want.rest())
			if err := store.Delete(t.Context(), runID); err != nil {
				t.Fatal(err)
			}
		}
		d = c.newDispatcher(t, nil, dispatcher.Options{})
		for i := range 4 {
			b := &bench{run: runID, spec: c.spec}
			res, err := d.Start(b.context(t.Context()), runID, inputs)
			sameRest(t, fmt.Sprintf("run %d without a log", i), res, err, c.want.rest())
		}
	})
}

// So does one that was read from a log, and it begins in what another one has left: behind a cancel
// at any body, with snapshots and without.
func TestRunsReadAfterAnother(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		var store memory.Store
		d := c.newDispatcher(t, &store, dispatcher.Options{})
		for at, more := 1, true; more; at++ {
			ctx, cancel := context.WithCancel(t.Context())
			var bodies atomic.Int32
			b := &bench{run: runID, body: func(context.Context, string) error {
				if int(bodies.Add(1)) == at {
					cancel()
				}
				return nil
			}}
			o := dispatcher.Options{}
			if at%2 == 0 {
				o = dispatcher.Eager(o)
			}
			res, err := c.newDispatcher(t, &store, o).Run(b.context(ctx), runID, inputs)
			cancel()
			if more = res.Status == checkpoint.StatusCancelled && at < cancelStride*8; more {
				res, err = d.Run(b.context(t.Context()), runID, inputs)
			}
			if res.Status != checkpoint.StatusCancelled {
				sameRest(t, fmt.Sprintf("cancelled in body %d", at), res, err, c.want.rest())
			}
			if err := store.Delete(t.Context(), runID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What a run has left is for runs of its graph alone: those of an older one are read as by a
// dispatcher that has run none.
func TestRunsOfAnOlderGraphInheritNothing(t *testing.T) {
	t.Parallel()
	var store memory.Store
	older := callsDispatcher(t, askChain(t, 3), &store, dispatcher.Options{})
	if _, err := older.Start(t.Context(), "older", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	g := chainOf(t, 5, func(context.Context, int, *Tale) error { return nil })
	ran := callsDispatcher(t, g, &store, dispatcher.Options{})
	want, wantErr := callsDispatcher(t, g, &store, dispatcher.Options{}).Open(t.Context(), "older")
	for i := range 3 {
		res, err := ran.Start(t.Context(), fmt.Sprint("newer ", i), nil)
		completes(t, res, err)
		got, err := ran.Open(t.Context(), "older")
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || asJSON(t, got) != asJSON(t, want) {
			t.Errorf("Open = %s, %v, want %s, %v", asJSON(t, got), err, asJSON(t, want), wantErr)
		}
	}
}

// A run without a log begins as the first one did, whatever the one before it came to: its nodes
// have its own context, and are called.
func TestChainsAfterAnother(t *testing.T) {
	type key struct{}
	b := dag.New[Tale]("chain")
	fails := false
	body := func(ctx context.Context, s *Tale) error {
		if err := ctx.Err(); err != nil {
			t.Errorf("the context of a node that begins: %v", err)
		}
		s.Count.Add(ctx.Value(key{}).(int))
		if fails {
			return errWeather
		}
		return nil
	}
	dag.Step(b, "last", body, dag.Step(b, "first", body))
	d := callsDispatcher(t, frozen(t, b), nil, dispatcher.Options{})
	for i := range 12 {
		fails = i%4 == 3
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, i))
		if i%4 == 2 { // it rests before its first node
			cancel()
		}
		res, err := d.Start(ctx, fmt.Sprintf("run-%d", i), nil)
		switch {
		case i%4 == 3 && !errors.Is(err, errWeather), i%4 == 2 && !errors.Is(err, context.Canceled), i%4 < 2 && err != nil:
			t.Errorf("run %d: %v", i, err)
		case i%4 < 2 && (res.State.Count.Get() != 2*i || res.Run != fmt.Sprintf("run-%d", i)):
			t.Errorf("run %d is %+v", i, res)
		}
		cancel()
	}
}

// A run that has waited leaves what one leaves that has not: those behind it begin, wait and end as
// the first one did, and have its log.
func TestRunsAfterOneThatWaited(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("waited")
	note := func(_ context.Context, s *Tale) error {
		s.Said.Append("noted")
		return nil
	}
	first := dag.Step(b, "first", note)
	asks := dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		if _, err := dag.Ask[bool](ctx, "sure", "Shall I?"); err != nil {
			return err
		}
		return note(ctx, s)
	}, first)
	dag.Step(b, "last", note, asks, dag.Step(b, "beside", note, first))
	d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{Paranoid: true})
	var want []string
	for i := range 4 {
		res, err := d.Start(t.Context(), runID, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 || len(res.Cursor.Visits) != 1 || res.Superstep != 1 {
			t.Fatalf("run %d is at %+v, %v", i, res, err)
		}
		if err := d.Answer(t.Context(), runID, "", true); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), runID, nil)
		if err != nil || len(res.State.Said.Slice()) != 4 || len(res.Interrupts)+len(res.Cursor.Visits) > 0 {
			t.Fatalf("run %d has ended at %+v, %v", i, res, err)
		}
		var log []string
		for e, err := range store.Read(t.Context(), runID, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, fmt.Sprint(e.Kind, " ", e.Path, " ", e.Step, e.Attempt, " ", string(e.Delta)))
		}
		slices.Sort(log[4:6]) // first's followers, of which either may be the first in it
		if i == 0 {
			want = log
		}
		if !slices.Equal(log, want) {
			t.Errorf("run %d has the log %q, want %q", i, log, want)
		}
		if err := store.Delete(t.Context(), runID); err != nil {
			t.Fatal(err)
		}
	}
}

// What a node leaves behind knows of what visit it was, while later runs use what its run has left;
// also if that has waited.
func TestLeftBehindInEarlierRuns(t *testing.T) {
	for _, c := range []struct{ stored, asks, chain bool }{{}, {chain: true}, {stored: true}, {stored: true, asks: true}} {
		stored := c.stored
		t.Run(fmt.Sprintf("stored=%t/asks=%t/chain=%t", stored, c.asks, c.chain), func(t *testing.T) {
			var behind sync.WaitGroup
			over := make(chan struct{})
			b := dag.New[Tale]("left-behind")
			body := func(ctx context.Context, _ *Tale) error {
				v := ctx.Value(dag.VisitKey{}).(dag.Visit)
				key := v.Key()
				behind.Go(func() { // ends when the runs have
					for {
						if got := v.Key(); got != key {
							t.Errorf("the visit of key %s says %s", key, got)
						}
						// It is done as long as the body has not returned, and refused behind that.
						_, _ = dag.Effect(ctx, "late", 1, func(context.Context, int) (int, error) { return 0, nil })
						_ = v.Emit("late", []byte("1"))
						_ = dag.Note(ctx, "left.late", 1)
						if err := ctx.Err(); err != nil && err != context.Canceled {
							t.Errorf("the context of a run that has ended: %v", err)
						}
						select {
						case <-over:
							return
						default:
						}
					}
				})
				return nil
			}
			first := dag.Step(b, "first", body)
			middle := []dag.Edge[Tale]{dag.Step(b, "a", body, first)}
			if !c.chain {
				middle = append(middle, dag.Step(b, "b", body, first))
			}
			dag.Step(b, "last", func(ctx context.Context, s *Tale) error {
				if c.asks {
					if _, err := dag.Ask[bool](ctx, "sure", "Shall I?"); err != nil {
						return err
					}
				}
				return body(ctx, s)
			}, middle...)
			d := behindDispatcher(t, b, stored)
			for i := range 5 {
				run := fmt.Sprintf("run-%d", i)
				_, err := d.Start(t.Context(), run, nil)
				if c.asks && errors.Is(err, dispatcher.ErrInterrupted) {
					if err = d.Answer(t.Context(), run, "", true); err == nil {
						_, err = d.Run(t.Context(), run, nil)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
			close(over)
			behind.Wait()
		})
	}
}

func behindDispatcher(t *testing.T, b *dag.Builder[Tale], stored bool) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	if stored {
		// A gate is asked by whoever begins an effect, and is told what kind of node that is of.
		return callsDispatcher(t, frozen(t, b), new(memory.Store), dispatcher.Options{Gates: dispatcher.Gates{
			If: func(dispatcher.Action) (bool, error) { return false, nil },
		}})
	}
	return callsDispatcher(t, frozen(t, b), nil, dispatcher.Options{})
}

// A run that begins in what an earlier one has left is asked about as that was, and counts its
// attempts from 1, also if that was let begin by interceptors, and has failed first.
func TestRunsAfterOneThatWasAskedAbout(t *testing.T) {
	for _, stored := range []bool{false, true} {
		var asked, attempts []string
		b := dag.New[Tale]("asked-about")
		dag.Step(b, "once", func(ctx context.Context, _ *Tale) error {
			if attempts = append(attempts, fmt.Sprint(dag.Attempt(ctx))); dag.Attempt(ctx) == 1 {
				return errWeather
			}
			return nil
		}).With(dag.Policy{Attempts: 2})
		var store checkpoint.Store
		if stored {
			store = new(memory.Store)
		}
		d := callsDispatcher(t, frozen(t, b), store, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
			Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
				asked = append(asked, c.Run)
				return dispatcher.Continue()
			},
		}}}})
		for i := range 3 {
			asked, attempts = nil, nil
			id := fmt.Sprint("run-", i)
			res, err := d.Start(t.Context(), id, nil)
			completes(t, res, err)
			if !slices.Equal(asked, []string{id}) || !slices.Equal(attempts, []string{"1", "2"}) {
				t.Errorf("stored=%t: of %s was asked %q, and the attempts were %q", stored, id, asked, attempts)
			}
		}
	}
}

// Nor has a run the outcomes of the one before it: what it keeps of itself before they are chosen
// is what its log says.
func TestRunsAfterOneThatHasChosen(t *testing.T) {
	var store memory.Store
	stop := false
	b := dag.New[Tale]("chosen")
	pick := dag.Route(b, "pick", func(context.Context, *Tale) (string, error) { return "one", nil }, []string{"one", "other"},
		dag.Step(b, "first", nothing[Tale]))
	dag.Step(b, "last", nothing[Tale], pick)
	d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Eager(dispatcher.Options{
		InterruptIf: func(at dispatcher.Boundary) bool { return stop && at.Path == "pick" && !at.After },
	}))
	res, err := d.Start(t.Context(), "before", nil)
	completes(t, res, err)
	stop = true
	res, err = d.Start(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pick")
	sameMachine(t, d, run)
}
