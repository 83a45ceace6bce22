package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eventsStreamed reads a stream to its end: what became true, and the result.
func eventsStreamed(t *testing.T, items iter.Seq2[dispatcher.Item[Tale], error]) (events []dispatcher.Event, res *dispatcher.Result[Tale], last error) {
	t.Helper()
	for item, err := range items {
		switch {
		case res != nil:
			t.Errorf("%s was told behind the result", item.Event)
		case item.Result != nil:
			res, last = item.Result, err
		case err != nil:
			t.Errorf("%s came with %v", item.Event, err)
		default:
			events = append(events, item.Event)
		}
	}
	if res == nil || res.State == nil {
		t.Fatal("the stream had no result at its end")
	}
	return events, res, last
}

// A stream starts or resumes as Run does, tells the log behind the number that it is given,
// and ends with what Run returns.
func TestStreamIsARun(t *testing.T) {
	var drain atomic.Pointer[context.CancelCauseFunc]
	store := new(memory.Store)
	g := eventsJourney(t, &drain)
	var all []dispatcher.Event
	since := func() (seq uint64) {
		for _, e := range all {
			seq = max(seq, e.Seq)
		}
		return seq
	}
	stream := func() (*dispatcher.Result[Tale], error) {
		events, res, err := eventsStreamed(t, process(t, g, store, dispatcher.Options{}).Stream(t.Context(), run, nil, dispatcher.Listen{Since: since()}))
		all = append(all, events...)
		return res, err
	}
	res, err := stream()
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	res, err = stream()
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	if err := eventsAnswer("Ada")(t.Context(), process(t, g, store, dispatcher.Options{})); err != nil {
		t.Fatal(err)
	}
	res, err = stream()
	completes(t, res, err)
	follows(t, all, readLog(t, store), "streams")
	if before := len(all); before == 0 || res.State.Word.Get() != "Ada" {
		t.Errorf("%d events, the state is %s", before, asJSON(t, res.State))
	}
	res, err = stream() // there is nothing to do
	completes(t, res, err)
	follows(t, all, readLog(t, store), "a stream of a completed run")
}

// A turn can be streamed: its entries follow those of the turn before it. What Turn refuses
// is refused.
func TestStreamTurn(t *testing.T) {
	store := new(memory.Store)
	var w witness
	d := process(t, solitary(t, w.sees(func(ctx context.Context, _ *Tale) error { return dag.Emit(ctx, "word", "yes") })), store, dispatcher.Options{})
	if _, _, err := eventsStreamed(t, d.StreamTurn(t.Context(), run, nil, dispatcher.Listen{})); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("a turn of no run: %v", err)
	}
	all, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{}))
	completes(t, res, err)
	input := func(s *Tale) { s.Said.Append("more") }
	events, res, err := eventsStreamed(t, d.StreamTurn(t.Context(), run, input, dispatcher.Listen{Since: dispatcher.Now}))
	completes(t, res, err)
	if len(res.State.Said.Slice()) != 3 || len(events) == 0 {
		t.Errorf("%d events, the state says %q", len(events), res.State.Said.Slice())
	}
	follows(t, append(all, events...), readLog(t, store), "a stream of a turn")
	emitted := 0
	for _, e := range events {
		if e.Turn != 2 {
			t.Errorf("%s is of turn %d", e, e.Turn)
		}
		if e.Kind == dispatcher.Emitted {
			emitted++
		}
	}
	if emitted != 1 {
		t.Errorf("%d values were emitted", emitted)
	}
}

// The states of a stream are those of the run's own supersteps, and belong to the reader.
func TestStreamStates(t *testing.T) {
	for name, store := range map[string]checkpoint.Store{"memory": new(memory.Store), "none": nil} {
		t.Run(name, func(t *testing.T) {
			var w witness
			b := dag.New[Tale]("states")
			body := dag.New[Tale]("body")
			dag.Step(body, "turn", w.sees(nil))
			one := dag.Step(b, "one", w.sees(nil))
			loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2, one)
			dag.Step(b, "last", w.sees(nil), loop)
			d := process(t, frozen(t, b), store, dispatcher.Options{})
			var got []string
			var deltas []string
			for item, err := range d.Stream(t.Context(), run, nil, dispatcher.Listen{States: true, Deltas: true}) {
				if item.State != nil {
					got = append(got, item.Event.Kind.String()+": "+strings.Join(item.State.Said.Slice(), " "))
					item.State.Said.Append("by the reader")
				}
				if item.Event.Kind == dispatcher.VisitDone {
					deltas = append(deltas, item.Event.Path+string(item.Event.Delta))
				}
				if item.Result != nil {
					completes(t, item.Result, err)
					says(t, item.Result.State, "one", "loop/1/turn", "loop/2/turn", "last")
				}
			}
			if want := []string{
				"superstep ended: one", "superstep ended: one loop/1/turn loop/2/turn",
				"superstep ended: one loop/1/turn loop/2/turn last",
			}; !slices.Equal(got, want) {
				t.Errorf("states %q, want %q", got, want)
			}
			if want := 5; len(deltas) != want || !strings.HasPrefix(deltas[0], "one{") || !strings.Contains(deltas[0], `"one"`) {
				t.Errorf("deltas %q, want %d", deltas, want)
			}
		})
	}
}

// Without a store a stream is a Start: all its events are live notices, in order.
func TestStreamWithoutAStore(t *testing.T) {
	d := process(t, eventsLine(func(ctx context.Context, _ *Tale) error { return dag.Emit(ctx, "at", 1) }, nothing[Tale])(t), nil, dispatcher.Options{})
	var both sync.WaitGroup
	for range 2 { // two of one name don't hear each other
		both.Go(func() {
			events, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{}))
			completes(t, res, err)
			want := []string{
				"tale: run started", "tale: frame entered", "tale: visit started a", "tale: emitted a at 1", "tale: visit done a",
				"tale: superstep ended @1", "tale: visit started b", "tale: visit done b", "tale: superstep ended @2",
				"tale: run rested completed",
			}
			if got := eventsTold(events); !slices.Equal(got, want) {
				t.Errorf("the stream told %q, want %q", got, want)
			}
		})
	}
	both.Wait()
	_, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{Since: 1}))
	if !errors.Is(err, checkpoint.ErrCursor) || res.Status != "" {
		t.Errorf("since 1 without a log: %s, %v", res.Status, err)
	}
}

// Who leaves a stream cancels its run and waits until it rests, within the grace period,
// also by a panic.
func TestLeavingAStream(t *testing.T) {
	for name, c := range map[string]struct {
		ignores bool // the node does its context
		panics  bool
		stored  bool
		status  checkpoint.Status
		took    time.Duration
	}{
		"heeding":          {false, false, true, checkpoint.StatusCancelled, 0},
		"panicking":        {false, true, true, checkpoint.StatusCancelled, 0},
		"stubborn":         {true, false, true, checkpoint.StatusCancelled, 5 * time.Second},
		"without a store":  {false, false, false, "", 0},
		"stubborn without": {true, false, false, "", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store checkpoint.Store
				if c.stored {
					store = new(memory.Store)
				}
				var began, ended atomic.Bool
				d := process(t, eventsLine(nothing[Tale], func(ctx context.Context, _ *Tale) error {
					began.Store(true)
					if c.ignores {
						lasts(time.Hour)
						return nil
					}
					defer ended.Store(true)
					return heeds(ctx, time.Hour)
				}, nothing[Tale])(t), store, dispatcher.Options{})
				start := time.Now()
				func() {
					defer func() {
						if p := recover(); (p != nil) != c.panics {
							t.Errorf("the body of the loop panicked with %v", p)
						}
					}()
					for item := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}) {
						if item.Event.Kind == dispatcher.VisitStarted && item.Event.Path == "b" {
							if c.panics {
								panic("enough")
							}
							break
						}
					}
				}()
				if took := time.Since(start); took > c.took || began.Load() && ended.Load() == c.ignores {
					t.Errorf("left after %v, the node had begun: %t, and ended: %t, want at most %v", took, began.Load(), ended.Load(), c.took)
				}
				if c.stored {
					res, err := d.State(t.Context(), run)
					if err != nil || res.Status != c.status {
						t.Errorf("the run is %s, %v, want %s", res.Status, err, c.status)
					}
					log := readLog(t, store)
					if last := string(log[len(log)-1].Data); !strings.Contains(last, "the reader of the stream has left") {
						t.Errorf("the run rests with %s", last)
					}
				}
				lasts(2 * time.Hour)
			})
		})
	}
}

// A body that does not come back holds up neither the run nor its cancel.
func TestSlowReaderOfAStream(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled=%t", cancelled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const steps = 300
				b := dag.New[Tale]("long")
				var after []dag.Edge[Tale]
				for i := range steps {
					after = []dag.Edge[Tale]{dag.Step(b, fmt.Sprint("n", i), func(ctx context.Context, _ *Tale) error {
						return heeds(ctx, time.Millisecond)
					}, after...)}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if cancelled {
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				store := new(memory.Store)
				d := process(t, frozen(t, b), store, dispatcher.Options{})
				want := checkpoint.StatusCompleted
				if cancelled {
					want = checkpoint.StatusCancelled
				}
				meanwhile(t, time.Second, func() { // the body is still away
					if res, err := d.State(context.Background(), run); err != nil || res.Status != want {
						t.Errorf("the run is %s, %v, want %s", res.Status, err, want)
					}
				})
				var events []dispatcher.Event
				for item, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
					if item.Result != nil {
						if item.Result.Status != want || cancelled != errors.Is(err, context.Canceled) {
							t.Errorf("the stream ends as %s, %v, want %s", item.Result.Status, err, want)
						}
						continue
					}
					if events = append(events, item.Event); len(events) == 1 {
						lasts(time.Hour)
					}
				}
				follows(t, events, readLog(t, store), "the slow reader")
				if lagged := slices.ContainsFunc(events, func(e dispatcher.Event) bool { return e.Kind == dispatcher.Lagged }); lagged == cancelled {
					t.Errorf("lagged: %t", lagged)
				}
			})
		})
	}
}

// A stream whose context is done tells all that became true, and how the run rests; one
// whose context was done before it began too.
func TestStreamOfADoneContext(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before=%t", before), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			if before {
				cancel(errWeather)
			}
			store := new(memory.Store)
			d := process(t, eventsLine(func(context.Context, *Tale) error { cancel(errWeather); return nil }, nothing[Tale])(t), store, dispatcher.Options{})
			events, res, err := eventsStreamed(t, d.Stream(ctx, run, nil, dispatcher.Listen{States: true}))
			rests(t, res, err, checkpoint.StatusCancelled, map[bool]string{true: "a", false: "b"}[before])
			if !errors.Is(err, errWeather) {
				t.Errorf("the cause is lost: %v", err)
			}
			follows(t, events, readLog(t, store), "a stream of a done context")
		})
	}
}

// What Run refuses a stream refuses, in its last item; what can't be read nothing is begun
// for.
func TestStreamRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		d := process(t, solitary(t, idles), store, dispatcher.Options{})
		_, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{Since: 1}))
		if _, staterr := d.State(t.Context(), run); !errors.Is(err, checkpoint.ErrCursor) || !errors.Is(staterr, dispatcher.ErrNotFound) {
			t.Errorf("since 1 of a run that is not there: %+v, %v; then State: %v", res, err, staterr)
		}
		if _, _, err := eventsStreamed(t, d.Stream(t.Context(), "", nil, dispatcher.Listen{})); !errors.Is(err, dispatcher.ErrRunID) {
			t.Errorf("without an id: %v", err)
		}
		if _, _, err := eventsStreamed(t, d.Stream(t.Context(), run, func(*Tale) { panic("input") }, dispatcher.Listen{})); err == nil || !strings.Contains(err.Error(), "input") {
			t.Errorf("an input that panics: %v", err)
		}
		var option *dispatcher.OptionError
		if _, _, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{}, dispatcher.Correlation(""))); !errors.As(err, &option) {
			t.Errorf("a bad option for a run that is not there: %v", err)
		}
		empty := dispatcher.Labels(map[string]string{"": "x"})
		if _, _, err := eventsStreamed(t, d.StreamTurn(t.Context(), run, nil, dispatcher.Listen{}, dispatcher.OrStart(), empty)); !errors.As(err, &option) {
			t.Errorf("a turn with a bad option of a run that is not there: %v", err)
		}
		ended := beginRun(t, d)
		synctest.Wait()
		if _, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{})); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("a stream of a live run: %s, %v", res.Status, err)
		}
		if err := d.Cancel(t.Context(), run, nil); err != nil {
			t.Error(err)
		}
		<-ended
	})
}

// What Options.Retention drops the stream of the call has told before, however slow its reader is.
func TestStreamIsToldBeforeItIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		free := make(chan struct{})
		g := line(t, &w, func(context.Context, *Tale) error { <-free; return nil })
		d := process(t, g, &store, dispatcher.Options{Retention: dispatcher.Retention{Last: 1}})
		next, waits := uint64(1), true
		for item, err := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}) {
			switch e := item.Event; {
			case item.Result != nil:
				completes(t, item.Result, err)
				info, err := store.Stat(t.Context(), run)
				if err != nil || info.First < 2 || item.Result.Cursor.Seq != info.Head.Seq || next != info.Head.Seq {
					t.Errorf("%d entries were told, the cursor is %s, and the log has entries %d to %d, %v",
						next-1, item.Result.Cursor, info.First, info.Head.Seq, err)
				}
			case e.Live:
			case e.Seq != next:
				t.Fatalf("%s was told in the place of entry %d", e, next)
			default:
				next++
			}
			if waits {
				waits = false
				close(free)
				synctest.Wait() // the run has come to rest
			}
		}
		trimVerified(t, &store, run)
	})
}

// A stream that is to begin in what was trimmed is refused, and nothing is begun: it can be told
// that it is to begin behind that.
func TestStreamOfWhatWasTrimmed(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, rewindLine(t, &w, "a", "b", "c"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	w.took()
	input := func(*Tale) { t.Error("the input is called") }
	trimmed := (*checkpoint.TrimmedError)(nil)
	for name, stream := range map[string]func(dispatcher.Listen) iter.Seq2[dispatcher.Item[Tale], error]{
		"Stream": func(l dispatcher.Listen) iter.Seq2[dispatcher.Item[Tale], error] {
			return d.Stream(t.Context(), run, input, l)
		},
		"StreamTurn": func(l dispatcher.Listen) iter.Seq2[dispatcher.Item[Tale], error] {
			return d.StreamTurn(t.Context(), run, input, l)
		},
	} {
		unchanged(t, trimReads{&store}, run, func() {
			events, _, err := eventsStreamed(t, stream(dispatcher.Listen{Since: 1}))
			if trimmed = nil; len(events) > 0 || !errors.As(err, &trimmed) || trimmed.Run != run {
				t.Errorf("%s tells %d events, and ends with %v", name, len(events), err)
			}
		})
	}
	if trimmed == nil {
		t.FailNow()
	}
	w.expect(t)
	input = func(s *Tale) { s.Word.Set("more") }
	events, res, err := eventsStreamed(t, d.StreamTurn(t.Context(), run, input, dispatcher.Listen{Since: trimmed.First - 1}))
	completes(t, res, err)
	w.expect(t, "2/a", "2/b", "2/c")
	if res.Turn != 2 || len(events) == 0 || events[0].Seq != trimmed.First {
		t.Errorf("turn %d, and %d events from entry %d on", res.Turn, len(events), trimmed.First)
	}
}

// If the log can't be read the run goes on, and the error is joined to its own.
func TestStreamThatCannotBeRead(t *testing.T) {
	broken := errors.New("the reader's disk is broken")
	for n := 1; n <= 3; n++ {
		store := &tampered{Store: new(memory.Store), before: fails("Read", n, broken)}
		d := process(t, eventsLine(nothing[Tale], nothing[Tale])(t), store, dispatcher.Options{})
		_, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{}))
		if res.Status != checkpoint.StatusCompleted || !errors.Is(err, broken) && n == 1 || err != nil && !errors.Is(err, broken) {
			t.Errorf("Read %d fails: %s, %v", n, res.Status, err)
		}
	}
}

// A store that hangs in an append holds up neither the end of a stream whose context is done
// nor who leaves it beyond the grace period.
func TestStreamOverAStoreThatHangs(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaves=%t", leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				inner := new(memory.Store)
				store := &tampered{Store: inner, before: hangs("Append", 2, free)}
				d := process(t, eventsLine(nothing[Tale], nothing[Tale])(t), store, dispatcher.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				end := time.Now().Add(time.Minute)
				var events []dispatcher.Event
				for item, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
					if item.Result != nil {
						if !errors.Is(err, dispatcher.ErrStuck) {
							t.Errorf("the stream ends with %v", err)
						}
						break
					}
					events = append(events, item.Event)
					if leaves && item.Event.Kind == dispatcher.VisitStarted {
						end = time.Now()
						break
					}
				}
				if took := time.Since(end); took < 0 || took > 5*time.Second {
					t.Errorf("the stream ended %v after its context", took)
				}
				if !leaves {
					follows(t, events, readLog(t, inner), "the stream")
				}
				close(free)
			})
		})
	}
}

// An observer and any number of readers are told the same notices.
func TestObserverBesideReaders(t *testing.T) {
	var seen eventsSeen
	store := new(memory.Store)
	d := process(t, eventsLine(func(ctx context.Context, _ *Tale) error { return dag.Emit(ctx, "at", 1) }, nothing[Tale])(t), store, dispatcher.Options{Observe: seen.observe})
	events, res, err := eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{}))
	completes(t, res, err)
	told, observed := eventsTold(events), eventsTold(seen.of())
	slices.Sort(told)
	slices.Sort(observed)
	if !slices.Equal(told, observed) {
		t.Errorf("the reader was told %q, the observer %q", told, observed)
	}
}

// Who reads a stream is told once how the run rests, and never that a run at rest is running.
func TestStreamTellsOnceHowARunRests(t *testing.T) {
	quiet(t)
	for as, body := range map[checkpoint.Status]func(cancel context.CancelFunc) part{
		checkpoint.StatusInterrupted: func(context.CancelFunc) part {
			return func(ctx context.Context, _ *Tale) error { _, err := dag.Ask[int](ctx, "q", "?"); return err }
		},
		checkpoint.StatusFailed: func(context.CancelFunc) part {
			return func(context.Context, *Tale) error { return errWeather }
		},
		checkpoint.StatusCancelled: func(cancel context.CancelFunc) part {
			return func(ctx context.Context, _ *Tale) error { cancel(); return ctx.Err() }
		},
	} {
		for _, store := range []checkpoint.Store{nil, new(memory.Store)} {
			if store == nil && as == checkpoint.StatusInterrupted {
				continue // who asks needs a log
			}
			ctx, cancel := context.WithCancel(t.Context())
			b := dag.New[Tale]("tale")
			dag.Step(b, "a", body(cancel))
			observed := 0
			o := dispatcher.Options{Observe: func(e dispatcher.Event) {
				if e.Kind == dispatcher.RunRested {
					observed++
				}
			}}
			events, _, _ := eventsStreamed(t, process(t, frozen(t, b), store, o).Stream(ctx, run, nil, dispatcher.Listen{}))
			cancel()
			var told []checkpoint.Status
			for _, e := range events {
				if e.Kind == dispatcher.RunRested {
					told = append(told, e.Status)
				}
			}
			if !slices.Equal(told, []checkpoint.Status{as}) || observed != 1 {
				t.Errorf("of a run that is %s a reader is told %v, and the observer of %d rests", as, told, observed)
			}
		}
	}
}

// A value that alone is more than is kept for a reader is told to one for whom no other value is
// kept.
func TestStreamTellsOfALargeValue(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 5<<20)
	d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error { return dag.Emit(ctx, "large", large) }),
		new(memory.Store), dispatcher.Options{})
	var sizes []int
	for item := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}) {
		if e := item.Event; e.Kind == dispatcher.Emitted {
			sizes = append(sizes, len(e.Value))
		}
	}
	if !slices.Equal(sizes, []int{len(large) + 2}) {
		t.Errorf("the reader was told of values of %d bytes", sizes)
	}
}

// A stream that begins in the midst of a log ends with its context and the grace period, also if
// the store never answers.
func TestStreamInTheMidstOverAStoreThatHangs(t *testing.T) {
	for _, states := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hangs := false
			store := &memory.Faulty{FailRead: func(ctx context.Context, method, _ string) error {
				if method != "Read" || !hangs {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			d := process(t, eventsLine(nothing[Tale], nothing[Tale])(t), store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			hangs = true
			d = process(t, eventsLine(nothing[Tale], nothing[Tale])(t), store, dispatcher.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, _, err = eventsStreamed(t, d.Stream(ctx, run, nil, dispatcher.Listen{Since: 2, States: states}))
			if took := time.Since(began); err == nil || took > 7*time.Second {
				t.Errorf("states: %t: it ends after %v with %v", states, took, err)
			}
		})
	}
}
