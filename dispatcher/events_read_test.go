package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eventsJourney is a graph with all that makes entries: a loop, items, attempts, an effect, an
// embedded graph and a question. The first call of a run of it waits for the answer, the second is
// drained in the middle, the third completes it.
func eventsJourney(t testing.TB, drain *atomic.Pointer[context.CancelCauseFunc]) *dag.Graph[Tale] {
	body, inner, b := dag.New[Tale]("body"), dag.New[Tale]("inner"), dag.New[Tale]("journey")
	turn := dag.Step(body, "turn", nothing[Tale])
	dag.Step(body, "beside", nothing[Tale])
	dag.Step(body, "check", nothing[Tale], turn)
	fetch := dag.Step(inner, "fetch", nothing[Tale])
	dag.Step(inner, "retried", func(ctx context.Context, _ *Tale) error {
		if dag.Attempt(ctx) == 1 {
			return errWeather
		}
		return nil
	}, fetch).With(dag.Policy{Attempts: 2})
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2)
	ask := dag.Step(b, "ask", func(ctx context.Context, s *Tale) error {
		name, err := dag.Ask[string](ctx, "name", "Who?")
		s.Word.Set(name)
		return err
	}, loop)
	items := func(*Tale) []int { return []int{1, 2, 3} }
	each := dag.Each(b, "each", items, func(context.Context, *Tale, int) error { return nil }, ask).With(dag.Policy{Parallel: 2})
	stop := dag.Step(b, "stop", func(ctx context.Context, _ *Tale) error {
		if cancel := drain.Swap(nil); cancel != nil {
			(*cancel)(dispatcher.ErrDrain)
		}
		_, err := dag.Effect(ctx, "pay", 3, func(context.Context, int) (string, error) { return "paid", nil })
		return errors.Join(err, dag.Emit(ctx, "stopped", true))
	}, each)
	dag.Embed(b, "embed", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) {}, stop)
	return frozen(t, b)
}

// eventsStage makes the call number stage of the journey.
func eventsStage(t *testing.T, d *dispatcher.Dispatcher[Tale], drain *atomic.Pointer[context.CancelCauseFunc], stage int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if stage == 1 {
		drain.Store(&cancel)
		if err := eventsAnswer("Ada")(ctx, d); err != nil {
			t.Errorf("Answer = %v", err)
		}
	}
	res, err := d.Run(ctx, run, nil)
	want := []checkpoint.Status{checkpoint.StatusInterrupted, checkpoint.StatusRunning, checkpoint.StatusCompleted}[stage]
	if res.Status != want {
		t.Errorf("call %d: %s, %v, want %s", stage, res.Status, err, want)
	}
}

// An eventsTail reads along with the journey, and goes away whenever it has read a number
// of entries, to come back with the number of the last one.
type eventsTail struct {
	each    int
	process atomic.Pointer[dispatcher.Dispatcher[Tale]] // the one that it reads with next
	next    chan struct{}                               // a new process is there
	events  []dispatcher.Event
	last    uint64 // entry that it has seen
}

// catchUp reads to the end of the log as it is at the moment.
func (e *eventsTail) catchUp(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
	for event, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: e.last}) {
		if err != nil {
			t.Error(err)
			return
		}
		e.events, e.last = append(e.events, event), event.Seq
	}
}

// read returns when it has seen the run completed.
func (e *eventsTail) read(t *testing.T) {
	if n := len(e.events); n > 0 && e.events[n-1].Status == checkpoint.StatusCompleted {
		return
	}
	for {
		n := 0
		for event, err := range e.process.Load().Events(t.Context(), run, dispatcher.Listen{Since: e.last, Tail: true, Deltas: true}) {
			if errors.Is(err, checkpoint.ErrClosed) {
				<-e.next
				break
			}
			if err != nil {
				t.Errorf("reading on from %d: %v", e.last, err)
				return
			}
			e.events = append(e.events, event)
			if event.Live {
				continue
			}
			if e.last = event.Seq; event.Status == checkpoint.StatusCompleted {
				return
			}
			if n++; n == e.each {
				break
			}
		}
	}
}

// follows checks that a reader has seen every entry of the log once and in order, and
// notices where they belong: behind the entry that they name, and those of an attempt
// before its end.
func follows(t *testing.T, events []dispatcher.Event, log []checkpoint.Entry, what string) {
	t.Helper()
	next := uint64(1)
	ended := map[string]bool{}
	for _, e := range events {
		attempt := fmt.Sprint(e.Turn, "/", e.Path, "#", e.Attempt)
		if e.Kind == dispatcher.VisitDone || e.Kind == dispatcher.AttemptFailed {
			ended[attempt] = true
		}
		switch {
		case e.Live && e.Path != "" && ended[attempt]:
			t.Fatalf("%s: %s was told behind the end of the attempt", what, e)
		case e.Live && e.Seq >= next:
			t.Fatalf("%s: %s says it comes behind entry %d, and was told before it", what, e, e.Seq)
		case e.Live:
		case e.Seq != next || int(e.Seq) > len(log) || e.Path != log[next-1].Path || e.Run != run:
			t.Fatalf("%s: %s was told in the place of entry %d", what, e, next)
		default:
			next++
		}
	}
	if int(next-1) != len(log) {
		t.Fatalf("%s: %d of %d entries were told", what, next-1, len(log))
	}
}

// A reader that begins at any moment, and goes away and comes back with its number as often
// as you like, sees 1…n once, while the run is at work and over restarts of it.
func TestLife50ReaderSeesEachEntryOnce(t *testing.T) {
	stores := map[string]struct {
		open  func(t *testing.T) func() checkpoint.Store // which opens it again
		every int                                        // moment
		each  []int                                      // entries until it goes away
	}{
		"memory": {func(*testing.T) func() checkpoint.Store {
			s := new(memory.Store)
			return func() checkpoint.Store { return s }
		}, 1, []int{1, 2, 3, 1000}},
		"unwatched": {func(*testing.T) func() checkpoint.Store {
			s := new(memory.Store)
			return func() checkpoint.Store { return unwatched{s} }
		}, 7, []int{1, 1000}},
		"badger": {eventsBadger, 31, []int{1, 1000}},
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			moments := 1000
			for _, each := range store.each {
				for at := 1; at <= moments; at += store.every {
					moments = eventsAttach(t, store.open(t), at, each)
				}
			}
			if moments < 60 {
				t.Errorf("the journey has only %d moments", moments)
			}
		})
	}
}

func eventsBadger(t *testing.T) func() checkpoint.Store {
	dir := filepath.Join(t.TempDir(), "runs")
	var open *badgerstore.Store
	t.Cleanup(func() { _ = open.Close() })
	return func() checkpoint.Store {
		if open != nil {
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := badgerstore.OpenUnsynced(t.Context(), dir, badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		open = s
		return s
	}
}

// eventsAttach makes the journey, with a reader that begins at a moment, which is the number
// of an event. It returns how many there were.
func eventsAttach(t *testing.T, open func() checkpoint.Store, at, each int) (moments int) {
	var drain atomic.Pointer[context.CancelCauseFunc]
	var store checkpoint.Store
	var reader sync.WaitGroup
	tail := eventsTail{each: each, next: make(chan struct{}, 3)}
	seen := 0
	begin := func(d *dispatcher.Dispatcher[Tale]) { // while the run waits for its observer
		tail.catchUp(t, d)
		reader.Go(func() { tail.read(t) })
	}
	g := eventsJourney(t, &drain)
	for stage := range 3 {
		store = open()
		var d *dispatcher.Dispatcher[Tale]
		d = process(t, g, store, dispatcher.Options{Observe: func(dispatcher.Event) {
			if seen++; seen == at {
				begin(d)
			}
		}})
		if tail.process.Store(d); stage > 0 {
			tail.next <- struct{}{}
		}
		eventsStage(t, d, &drain, stage)
	}
	if seen < at {
		begin(tail.process.Load())
	}
	reader.Wait()
	what := fmt.Sprintf("a reader from event %d on that goes after %d entries", at, each)
	follows(t, tail.events, readLog(t, store), what)
	return seen
}

// A reader that begins behind an entry gets those behind it and no others; one that is
// interested in a channel gets that, and Lagged.
func TestListen(t *testing.T) {
	var drain atomic.Pointer[context.CancelCauseFunc]
	store := new(memory.Store)
	d := process(t, eventsJourney(t, &drain), store, dispatcher.Options{})
	for stage := range 3 {
		eventsStage(t, d, &drain, stage)
	}
	read := func(l dispatcher.Listen) (events []dispatcher.Event) {
		for e, err := range d.Events(t.Context(), run, l) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		return events
	}
	all := read(dispatcher.Listen{})
	n := uint64(len(all))
	follows(t, all, readLog(t, store), "all")
	for since := range n + 1 {
		some := read(dispatcher.Listen{Since: since})
		if want := eventsTold(all[since:]); !slices.Equal(eventsTold(some), want) {
			t.Errorf("since %d: %q, want %q", since, eventsTold(some), want)
		}
	}
	if some := read(dispatcher.Listen{Since: dispatcher.Now}); some != nil {
		t.Errorf("from now on there is nothing, and the reader got %q", eventsTold(some))
	}
	total := 0
	for _, only := range []dispatcher.Channel{dispatcher.Control, dispatcher.Progress, dispatcher.Monitor} {
		some := read(dispatcher.Listen{Only: only})
		for _, e := range some {
			if e.Kind.Channel() != only {
				t.Errorf("%s was told who listens to %s", e, only)
			}
		}
		total += len(some)
	}
	both := read(dispatcher.Listen{Only: dispatcher.Control | dispatcher.Monitor})
	if total != len(all) || len(both)+len(read(dispatcher.Listen{Only: dispatcher.Progress})) != len(all) {
		t.Errorf("the channels have %d of %d events", total, len(all))
	}
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Only: dispatcher.Control | 1<<5}) {
		if o := (*dispatcher.OptionError)(nil); !errors.As(err, &o) || o.Option != "Listen.Only" {
			t.Errorf("who listens to what is no channel is told %s, %v", e, err)
		}
	}
	for i, e := range read(dispatcher.Listen{Deltas: true}) {
		if want := readLog(t, store)[i].Delta; e.Kind == dispatcher.VisitDone && string(e.Delta) != string(want) {
			t.Errorf("%s with delta %s, want %s", e, e.Delta, want)
		}
		if all[i].Delta != nil {
			t.Errorf("%s has a delta that nobody asked for", all[i])
		}
	}
}

// With States each superstep of the run's own frame comes with the state as At reads it,
// wherever the reader begins.
func TestListenStates(t *testing.T) {
	var w witness
	b := dag.New[Tale]("states")
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "within", w.sees(nil))
	one := dag.Step(b, "one", w.sees(nil))
	two := dag.Step(b, "two", w.sees(nil))
	embed := dag.Embed(b, "embed", frozen(t, inner), func(_, _ *Tale) {}, func(from, to *Tale) { to.Count.Add(from.Said.Len()) }, one, two)
	dag.Step(b, "last", w.sees(nil), embed)
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("input") })
	completes(t, res, err)
	n := uint64(len(readLog(t, store)))
	states := 0
	for since := range n {
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: since, States: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if own := e.Kind == dispatcher.SuperstepEnded && e.Path == ""; own != (e.State != nil) {
				t.Fatalf("%s has the state %s", e, e.State)
			} else if !own {
				continue
			}
			states++
			at, err := d.At(t.Context(), run, fmt.Sprintf("%s@%d", run, e.Seq))
			if err != nil || string(e.State) != asJSON(t, at.State) {
				t.Errorf("since %d: %s with %s, want %s, %v", since, e, e.State, asJSON(t, at.State), err)
			}
		}
	}
	if states < 20 {
		t.Errorf("only %d states were told", states)
	}
}

// An event tells the graph that the run had then, wherever the reader begins: before a migration to
// a graph of another name, and before the run went back to where it had the first one.
func TestEventsTellTheGraphOfTheirTime(t *testing.T) {
	graph := func(name string) *dag.Graph[Tale] {
		b := dag.New[Tale](name)
		a := dag.Step(b, "a", nothing[Tale])
		dag.Step(b, "b", nothing[Tale], a)
		return frozen(t, b)
	}
	store, old := new(memory.Store), graph("old")
	changeHeld(t, old, store, "b")
	o := migrating(dispatcher.Migration{Name: "name", From: old.Digest()})
	o.InterruptAfter = []string{"b"}
	d := process(t, graph("new"), store, o)
	res, err := d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	graphs := func(since uint64) (all []string) {
		t.Helper()
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: since}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(e.Seq, " ", e.Graph, " ", e.Turn))
		}
		return all
	}
	same := func(when string) {
		t.Helper()
		all := graphs(0)
		for since := range all {
			if got := graphs(uint64(since)); !slices.Equal(got, all[since:]) {
				t.Fatalf("%s: since %d the graphs are\n%q, want\n%q", when, since, got, all[since:])
			}
		}
	}
	same("migrated")
	if all := graphs(0); !strings.HasSuffix(all[1], " old 1") || !strings.HasSuffix(all[len(all)-1], " new 1") {
		t.Errorf("the graphs are %q", all)
	}
	for _, to := range []string{"0", "1"} {
		if err := d.Rewind(t.Context(), run, to, dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		same("rewound to " + to)
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		same("rewound to " + to + ", and gone on")
	}
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	info, err := store.Stat(t.Context(), run)
	if err != nil || info.First <= 1 {
		t.Fatalf("the log begins at %d, %v", info.First, err)
	}
	all := graphs(info.First - 1)
	for i := range all {
		if got := graphs(info.First - 1 + uint64(i)); !slices.Equal(got, all[i:]) {
			t.Fatalf("trimmed: since %d the graphs are\n%q, want\n%q", info.First-1+uint64(i), got, all[i:])
		}
	}
}

// What can't be read is refused by name.
func TestEventsRefused(t *testing.T) {
	ctx, store := t.Context(), new(memory.Store)
	d := process(t, eventsLine(nothing[Tale])(t), store, dispatcher.Options{})
	only := func(d *dispatcher.Dispatcher[Tale], ctx context.Context, l dispatcher.Listen) (last error) {
		n := 0
		for e, err := range d.Events(ctx, run, l) {
			if n++; err == nil {
				t.Errorf("%+v told %s", l, e)
			}
			last = err
		}
		if n != 1 {
			t.Errorf("%+v: %d times, want one error", l, n)
		}
		return last
	}
	for _, tail := range []bool{false, true} {
		if err := only(d, ctx, dispatcher.Listen{Tail: tail}); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("a run that is not there: %v", err)
		}
	}
	res, err := d.Run(ctx, run, nil)
	completes(t, res, err)
	err = only(d, ctx, dispatcher.Listen{Since: 6})
	if !errors.Is(err, checkpoint.ErrCursor) || !strings.Contains(err.Error(), "there is no entry 6: the log ends at 5") {
		t.Errorf("an entry that is not there: %v", err)
	}
	done, cancel := context.WithCancelCause(ctx)
	cancel(errWeather)
	for _, tail := range []bool{false, true} {
		if err := only(d, done, dispatcher.Listen{Tail: tail}); !errors.Is(err, context.Canceled) || !errors.Is(err, errWeather) {
			t.Errorf("a context that is done: %v", err)
		}
	}
	none := process(t, eventsLine(nothing[Tale])(t), nil, dispatcher.Options{})
	if err := only(none, ctx, dispatcher.Listen{}); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("without a store: %v", err)
	}
}

// A reader that waits learns that its context is done, that the run was deleted, also if
// another has its name now, and that the store was closed.
func TestTailEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, s *memory.Store, cancel context.CancelCauseFunc)
		want error
	}{
		"context": {func(_ *testing.T, _ *memory.Store, cancel context.CancelCauseFunc) { cancel(errWeather) }, errWeather},
		"deleted": {func(t *testing.T, s *memory.Store, _ context.CancelCauseFunc) {
			if err := s.Delete(t.Context(), run); err != nil {
				t.Error(err)
			}
		}, dispatcher.ErrNotFound},
		"replaced": {func(t *testing.T, s *memory.Store, _ context.CancelCauseFunc) {
			if err := s.Delete(t.Context(), run); err != nil {
				t.Error(err)
			}
			_ = eventsRun(t.Context(), process(t, eventsLine(nothing[Tale], nothing[Tale])(t), s, dispatcher.Options{}))
		}, dispatcher.ErrNotFound},
		"closed": {func(t *testing.T, s *memory.Store, _ context.CancelCauseFunc) { _ = s.Close() }, checkpoint.ErrClosed},
	} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watched=%t", name, watched), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := new(memory.Store)
					var s checkpoint.Store = store
					if !watched {
						s = unwatched{store}
					}
					d := process(t, eventsLine(nothing[Tale])(t), s, dispatcher.Options{})
					res, err := d.Run(t.Context(), run, nil)
					completes(t, res, err)
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(time.Minute, func() { c.end(t, store, cancel) })
					n, began := 0, time.Now()
					for _, last := range d.Events(ctx, run, dispatcher.Listen{Tail: true}) {
						n, err = n+1, last
					}
					if took := time.Since(began); n != 6 || !errors.Is(err, c.want) || took > time.Minute+3*time.Second {
						t.Errorf("%d times, at last %v after %v, want 5 events and %v", n, err, took, c.want)
					}
					if ctx.Err() != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("the reader ends with %v, want that its context has ended, too", err)
					}
				})
			})
		}
	}
}

// So it does of a run that was made as long as the one that was deleted, within the millisecond in
// which that was made.
func TestTailEndsWithARunThatIsReplacedAtOnce(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memory.Store)
			var s checkpoint.Store = store
			if !watched {
				s = unwatched{store}
			}
			d := process(t, eventsLine(nothing[Tale])(t), s, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for _, last := range d.Events(ctx, run, dispatcher.Listen{Tail: true}) {
				if n, err = n+1, last; n != 5 {
					continue
				}
				if err := store.Delete(t.Context(), run); err != nil {
					t.Error(err)
				}
				res, err := process(t, eventsLine(nothing[Tale])(t), store, dispatcher.Options{}).Run(t.Context(), run, nil)
				completes(t, res, err)
			}
			if n != 6 || !errors.Is(err, dispatcher.ErrNotFound) {
				t.Errorf("watched=%t: %d times, at last %v, want 5 events and ErrNotFound", watched, n, err)
			}
		})
	}
}

// Who reads along with a run is told at once of what this dispatcher says of it while it rests,
// also over a store that can't tell of its appends.
func TestTailHearsOfAnEditAtOnce(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var s checkpoint.Store = new(memory.Store)
			if !watched {
				s = unwatched{s}
			}
			d := callsDispatcher(t, askChain(t, 3), s, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "node-2")
			ctx, cancel := context.WithCancel(t.Context())
			var told []dispatcher.EventKind
			ended := make(chan struct{})
			go func() { // waited for below
				defer close(ended)
				for e, err := range d.Events(ctx, run, dispatcher.Listen{Tail: true}) {
					if err == nil {
						told = append(told, e.Kind)
					}
				}
			}()
			<-time.After(time.Minute + time.Millisecond) // it looks about once a second now
			synctest.Wait()
			if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if n := len(told); n == 0 || told[n-1] != dispatcher.StateEdited {
				t.Errorf("watched=%t: behind an edit the last that was told is %v", watched, told)
			}
			cancel()
			<-ended
		})
	}
}

// A run that takes the name of a deleted one is another run, even if it was begun at the
// same moment.
func TestTailOfARunReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		d := process(t, eventsLine(nothing[Tale])(t), store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		n := 0
		for e, last := range d.Events(t.Context(), run, dispatcher.Listen{Tail: true}) {
			if err = last; e.Live { // of the other run
				continue
			}
			if n++; n == 5 {
				if err := store.Delete(t.Context(), run); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_ = eventsRun(ctx, d)
			}
		}
		if n != 6 || !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("%d times, at last %v, want 5 events and ErrNotFound", n, err)
		}
	})
}

// A reader in another process, or of a store that can't tell, sees what is appended there.
func TestTailOfAnotherDispatcher(t *testing.T) {
	for name, wrap := range map[string]func(*memory.Store) checkpoint.Store{
		"follower": func(s *memory.Store) checkpoint.Store { return s },
		"polled":   func(s *memory.Store) checkpoint.Store { return unwatched{s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var drain atomic.Pointer[context.CancelCauseFunc]
				store, g := wrap(new(memory.Store)), eventsJourney(t, &drain)
				eventsStage(t, process(t, g, store, dispatcher.Options{}), &drain, 0)
				tail := eventsTail{each: 1000}
				tail.process.Store(process(t, g, store, dispatcher.Options{}))
				var reader sync.WaitGroup
				reader.Go(func() { tail.read(t) })
				lasts(time.Hour)
				for stage := 1; stage < 3; stage++ {
					eventsStage(t, process(t, g, store, dispatcher.Options{}), &drain, stage)
					lasts(time.Minute)
				}
				reader.Wait()
				follows(t, tail.events, readLog(t, store), "a reader elsewhere")
			})
		})
	}
}

// Readers may come and go while the run goes on; none misses anything or is told twice.
func TestReadersBesideARun(t *testing.T) {
	const steps, readers = 150, 16
	b := dag.New[Tale]("long")
	var after []dag.Edge[Tale]
	began := make(chan struct{})
	var once sync.Once
	for i := range steps {
		after = []dag.Edge[Tale]{dag.Step(b, fmt.Sprint("n", i), func(ctx context.Context, _ *Tale) error {
			once.Do(func() { close(began) })
			return dag.Emit(ctx, "at", i)
		}, after...)}
	}
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	var all sync.WaitGroup
	told := make([][]dispatcher.Event, readers)
	for i := range readers {
		all.Go(func() {
			<-began
			tail := eventsTail{each: 5 + i*3}
			tail.process.Store(d)
			tail.read(t)
			told[i] = tail.events
		})
	}
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	all.Wait()
	log := readLog(t, store)
	for i, events := range told {
		follows(t, events, log, fmt.Sprint("reader ", i))
	}
}

// A reader that does not come back from its body for an hour holds up nothing: it misses
// notices, is told how many, and misses no entry.
func TestSlowReaderHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps, emitted = 40, 20
		b := dag.New[Tale]("long")
		var after []dag.Edge[Tale]
		for i := range steps {
			after = []dag.Edge[Tale]{dag.Step(b, fmt.Sprint("n", i), func(ctx context.Context, _ *Tale) error {
				for k := range emitted {
					if err := dag.Emit(ctx, "at", k); err != nil {
						return err
					}
				}
				return heeds(ctx, time.Millisecond)
			}, after...)}
		}
		store := new(memory.Store)
		d := process(t, frozen(t, b), store, dispatcher.Options{})
		var events []dispatcher.Event
		ended := beginRun(t, d)
		synctest.Wait() // the first node runs
		var reader sync.WaitGroup
		reader.Go(func() {
			for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Tail: true}) {
				if err != nil {
					t.Error(err)
					return
				}
				if events = append(events, e); len(events) == 1 {
					lasts(time.Hour)
				}
				if e.Kind == dispatcher.RunRested {
					return
				}
			}
		})
		began := time.Now()
		e := <-ended
		completes(t, e.res, e.err)
		if took := time.Since(began); took > steps*time.Millisecond {
			t.Errorf("the run took %v beside a slow reader, want %v", took, steps*time.Millisecond)
		}
		reader.Wait()
		follows(t, events, readLog(t, store), "the slow reader")
		got, dropped := 0, 0
		for _, e := range events {
			switch {
			case e.Kind == dispatcher.Lagged:
				dropped += e.Dropped
			case e.Live:
				got++
			}
		}
		// Each later node is two notices, appended and started, beside what it emits; the
		// last one is not started behind another append.
		if want := (steps-1)*(emitted+2) + 1; dropped == 0 || got+dropped != want {
			t.Errorf("%d notices were told and %d dropped, want %d together", got, dropped, want)
		}
	})
}

// What an attempt emits is told before its end, also if both come about while the reader
// asks the store how long the log is.
func TestEmittedIsToldBeforeTheEnd(t *testing.T) {
	type reading struct{}
	free, ended := make(chan struct{}), make(chan struct{})
	looks := 0
	store := &tampered{Store: new(memory.Store), before: func(ctx context.Context, c call) error {
		if ctx.Value(reading{}) == nil || c.method != "Stat" {
			return nil
		}
		if looks++; looks == 3 { // there is the run, where does the log begin, where does it end
			close(free)
			<-ended
		}
		return nil
	}}
	began := make(chan struct{})
	d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
		close(began)
		<-free
		return dag.Emit(ctx, "at", 1)
	}), store, dispatcher.Options{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ended)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
	<-began
	var events []dispatcher.Event
	for e, err := range d.Events(context.WithValue(t.Context(), reading{}, true), run, dispatcher.Listen{Tail: true, Only: dispatcher.Progress | dispatcher.Control}) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); e.Kind == dispatcher.RunRested {
			break
		}
	}
	all.Wait()
	want := []string{
		"tale@1: run started", "tale@2: frame entered", "tale: emitted q at 1", "tale@3: visit done q",
		"tale@4: superstep ended @1", "tale@5: run rested completed",
	}
	if got := eventsTold(events); !slices.Equal(got, want) {
		t.Errorf("the reader was told %q, want %q", got, want)
	}
}

// Promise P1: nobody is told of an entry before it is durable, and everybody is as soon as
// it is: an observer, a reader and a stream.
func TestNobodyIsToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed, read, streamed atomic.Uint64
		count := func(n *atomic.Uint64, e dispatcher.Event) {
			if !e.Live && e.Seq != n.Add(1) {
				t.Errorf("%s was told as number %d", e, n.Load())
			}
		}
		inner := new(memory.Store)
		appends := 0
		store := &tampered{Store: inner, before: func(ctx context.Context, c call) error {
			if c.method != "Append" {
				return nil
			}
			appends++
			synctest.Wait() // everybody has been told of all there is
			durable := uint64(0)
			if info, err := inner.Stat(ctx, run); err == nil {
				durable = info.Head.Seq
			}
			for name, n := range map[string]*atomic.Uint64{"observer": &observed, "reader": &read, "stream": &streamed} {
				if n.Load() != durable && (name != "reader" || durable > 0) {
					t.Errorf("append %d: the %s was told of %d entries, %d are durable", appends, name, n.Load(), durable)
				}
			}
			return nil
		}}
		var drain atomic.Pointer[context.CancelCauseFunc]
		follower := struct {
			*tampered
			checkpoint.Follower
		}{store, inner}
		var all sync.WaitGroup
		d := process(t, eventsJourney(t, &drain), follower, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if count(&observed, e); e.Kind != dispatcher.RunStarted {
				return
			}
			all.Go(func() {
				for e, err := range process(t, eventsJourney(t, &drain), follower, dispatcher.Options{}).Events(t.Context(), run, dispatcher.Listen{Tail: true}) {
					if err != nil {
						t.Error(err)
						return
					}
					if count(&read, e); e.Status == checkpoint.StatusInterrupted {
						return
					}
				}
			})
		}})
		for item := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}) {
			if item.Result == nil {
				count(&streamed, item.Event)
			}
		}
		all.Wait()
		if n := uint64(len(readLog(t, inner))); appends < 5 || observed.Load() != n || read.Load() != n || streamed.Load() != n {
			t.Errorf("%d appends, %d entries, told: %d, %d, %d", appends, n, observed.Load(), read.Load(), streamed.Load())
		}
	})
}
