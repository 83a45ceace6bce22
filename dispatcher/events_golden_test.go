package dispatcher_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An eventsTale is a run, or several calls of one, that is told in events.
type eventsTale struct {
	name    string
	graph   func(t *testing.T) *dag.Graph[Tale]
	entries bool // when notices come is timing
	options dispatcher.Options
	calls   func(t *testing.T, d *dispatcher.Dispatcher[Tale]) // nil means one Run
}

// eventsCalls makes the calls whose results a tale does not look at.
func eventsCalls(calls ...func(context.Context, *dispatcher.Dispatcher[Tale]) error) func(*testing.T, *dispatcher.Dispatcher[Tale]) {
	return func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
		for _, call := range calls {
			t.Log(call(t.Context(), d))
		}
	}
}

func eventsRun(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
	_, err := d.Run(ctx, run, nil)
	return err
}

func eventsResume(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
	_, err := d.Resume(ctx, run)
	return err
}

// eventsAnswer answers what waits.
func eventsAnswer(value any) func(context.Context, *dispatcher.Dispatcher[Tale]) error {
	return func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		res, err := d.State(ctx, run)
		if err != nil {
			return err
		}
		return d.Answer(ctx, run, res.Interrupts[0].ID, value)
	}
}

func eventsLine(parts ...part) func(t *testing.T) *dag.Graph[Tale] {
	return func(t *testing.T) *dag.Graph[Tale] {
		b := dag.New[Tale]("line")
		var after []dag.Edge[Tale]
		for i, f := range parts {
			after = []dag.Edge[Tale]{dag.Step(b, string(rune('a'+i)), f, after...)}
		}
		return frozen(t, b)
	}
}

var eventsTales = []eventsTale{
	{name: "line", graph: eventsLine(nothing[Tale], nothing[Tale])},
	{name: "nested", graph: func(t *testing.T) *dag.Graph[Tale] {
		body, inner, b := dag.New[Tale]("body"), dag.New[Tale]("inner"), dag.New[Tale]("nested")
		dag.Step(body, "turn", nothing[Tale])
		dag.Step(inner, "fetch", nothing[Tale])
		way := dag.Route(b, "way", func(context.Context, *Tale) (way, error) { return left, nil }, []way{left, right})
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2, way.On(left))
		dag.Embed(b, "embed", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) {}, loop)
		dag.Step(b, "never", nothing[Tale], way.On(right))
		return frozen(t, b)
	}},
	{name: "attempts", graph: func(t *testing.T) *dag.Graph[Tale] {
		b := dag.New[Tale]("attempts")
		fails := dag.Step(b, "fails", func(ctx context.Context, _ *Tale) error {
			if dag.Attempt(ctx) == 2 {
				panic("thunder")
			}
			return errWeather
		}).With(dag.Policy{Attempts: 3})
		slow := dag.Step(b, "slow", func(ctx context.Context, _ *Tale) error {
			<-ctx.Done()
			return ctx.Err()
		}, fails.Failed()).With(dag.Policy{Timeout: time.Millisecond})
		dag.Step(b, "fetch", nothing[Tale], slow)
		return frozen(t, b)
	}},
	{name: "failed in a loop", graph: func(t *testing.T) *dag.Graph[Tale] {
		body, b := dag.New[Tale]("body"), dag.New[Tale]("outer")
		dag.Step(body, "turn", func(context.Context, *Tale) error { return errWeather })
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2)
		dag.Fail(b, "over", loop.Failed())
		return frozen(t, b)
	}},
	{name: "items", entries: true, graph: func(t *testing.T) *dag.Graph[Tale] {
		inner, b := dag.New[Tale]("inner"), dag.New[Tale]("items")
		dag.Step(inner, "fetch", nothing[Tale])
		review := dag.Each(b, "review", func(*Tale) []int { return []int{1, 2} }, func(_ context.Context, _ *Tale, i int) error {
			if i == 1 {
				return errWeather
			}
			return nil
		}).With(dag.Policy{Parallel: 1, Errors: dag.Collect})
		none := dag.Each(b, "none", func(*Tale) []int { return nil }, func(context.Context, *Tale, int) error { return nil }, review)
		dag.EachGraph(b, "graphs", func(*Tale) []string { return []string{"a"} }, frozen(t, inner),
			func(*Tale, string, *Tale) {}, func(*Tale, string, *Tale) {}, none)
		return frozen(t, b)
	}},
	{name: "choice", graph: func(t *testing.T) *dag.Graph[Tale] {
		b := dag.New[Tale]("choice")
		choose := dag.Choose(b, "choose", func(context.Context, *Tale) ([]way, error) { return []way{right, left}, nil }, []way{left, right})
		one := dag.Step(b, "one", nothing[Tale], choose.On(left))
		dag.Step(b, "two", nothing[Tale], dag.All(one, choose.On(right)))
		return frozen(t, b)
	}},
	{name: "effects", graph: eventsLine(func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "pay", map[string]int{"cents": 300}, func(context.Context, map[string]int) (string, error) { return "paid", nil })
		if err != nil {
			return err
		}
		_, err = dag.Effect(ctx, "ship", "a book", func(context.Context, string) (int, error) {
			return 0, fmt.Errorf("%w: %w", dag.NotDone, errWeather)
		})
		return err
	})},
	{name: "settings", graph: eventsLine(nothing[Tale]), options: dispatcher.Options{InterruptBefore: []string{"a"}},
		calls: eventsCalls(eventsRun, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Resume(ctx, run, dispatcher.Settings(map[string]string{"model": "small"}, "Ada"))
			return err
		})},
	{name: "turns", graph: eventsLine(nothing[Tale]), calls: eventsCalls(eventsRun, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		_, err := d.Turn(ctx, run, func(s *Tale) { s.Word.Set("again") })
		return err
	}, func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		return d.Enqueue(ctx, run, func(s *Tale) { s.Word.Set("once more") })
	}, eventsRun)},
	{name: "interrupts", graph: eventsLine(nothing[Tale], nothing[Tale], func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[string](ctx, "name", map[string]string{"text": "Who?"})
		return err
	}), options: dispatcher.Options{InterruptBefore: []string{"a"}, InterruptAfter: []string{"b"}},
		calls: eventsCalls(eventsRun, eventsResume, eventsAnswer(dispatcher.Approve), eventsRun, eventsAnswer("Ada"), eventsRun)},
	{name: "hooks", graph: eventsLine(nothing[Tale], nothing[Tale], nothing[Tale]), options: hooksTale,
		calls: eventsCalls(eventsRun, eventsAnswer(dispatcher.Approve), eventsRun)},
	{name: "conflict", graph: func(t *testing.T) *dag.Graph[Tale] {
		b := dag.New[Tale]("conflict")
		first := dag.Step(b, "first", nothing[Tale])
		sets := func(_ context.Context, s *Tale) error { s.Word.Set("x"); return nil }
		dag.Step(b, "one", sets, first)
		dag.Step(b, "two", sets, first)
		return frozen(t, b)
	}, options: dispatcher.Options{Parallel: 1}},
	{name: "emitted", graph: eventsLine(func(ctx context.Context, _ *Tale) error {
		return dag.Emit(ctx, "progress", map[string]int{"page": 7})
	})},
	{name: "lagged", graph: eventsLine(func(ctx context.Context, _ *Tale) error {
		for range 3 {
			if err := dag.Emit(ctx, "value", strings.Repeat("x", 3<<20)); err != nil {
				return err
			}
		}
		return nil
	})},
	{name: "cancelled", graph: eventsLine(nothing[Tale]), calls: func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errWeather)
		t.Log(eventsRun(ctx, d))
		t.Log(eventsRun(t.Context(), d))
	}},
	{name: "timed out", graph: eventsLine(nothing[Tale]), calls: func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		t.Log(eventsRun(ctx, d))
	}},
	{name: "drained", graph: eventsLine(nothing[Tale]), calls: func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(dispatcher.ErrDrain)
		t.Log(eventsRun(ctx, d))
		t.Log(eventsRun(t.Context(), d))
	}},
}

// told runs the tale on store and returns what an observer is told.
func (tale *eventsTale) told(t *testing.T, store checkpoint.Store) []dispatcher.Event {
	var seen eventsSeen
	o := tale.options
	o.Observe = seen.observe
	d := process(t, tale.graph(t), store, o)
	if tale.calls == nil {
		t.Log(eventsRun(t.Context(), d))
	} else {
		tale.calls(t, d)
	}
	return seen.of()
}

// The text of every event is what its file says.
func TestEventTexts(t *testing.T) {
	for _, tale := range eventsTales {
		t.Run(tale.name, func(t *testing.T) {
			name := strings.ReplaceAll(tale.name, " ", "-") + ".golden"
			told := tale.told(t, new(memory.Store))
			if tale.entries {
				told = slices.DeleteFunc(told, func(e dispatcher.Event) bool { return e.Live })
			}
			golden(t, filepath.Join("events", name), eventsTold(told))
		})
	}
}

// An event of an entry is the same for an observer and for who reads it from the log, but for what
// its documentation says. Of a cancel of a run at rest, a trim and the opening of a fork no
// observer is told.
func TestEventsReadAreEventsObserved(t *testing.T) {
	for _, tale := range eventsTales {
		t.Run(tale.name, func(t *testing.T) {
			store := new(memory.Store)
			observed := slices.DeleteFunc(tale.told(t, store), func(e dispatcher.Event) bool { return e.Live })
			d := process(t, tale.graph(t), store, dispatcher.Options{})
			toldAlike(t, observed, d.Events(t.Context(), run, dispatcher.Listen{}), readLog(t, store))
		})
	}
}

// A rewind and a fork are told by the logs of the run and of the fork: with who did it, and behind
// it what runs again, in the run under other numbers, and what does not.
func TestEventTextsOfTheRewoundAndTheForked(t *testing.T) {
	store, ctx := new(memory.Store), t.Context()
	d := process(t, eventsLine(nothing[Tale], func(ctx context.Context, s *Tale) error {
		_, err := dag.Effect(ctx, "pay", 300, func(context.Context, int) (string, error) { return "paid", nil })
		return err
	}, nothing[Tale])(t), store, dispatcher.Options{})
	ann := dispatcher.Author("ann")
	for _, err := range []error{
		eventsRun(ctx, d),
		d.Tag(ctx, run, "1", "drafted", ann),
		d.Rewind(ctx, run, "tag:drafted", dispatcher.RewindOptions{Reason: "a wrong turn"}, ann),
		eventsRun(ctx, d),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.Fork(ctx, run, "1", dispatcher.ForkOptions[Tale]{
		Into: []string{"fork"}, Edit: func(s *Tale) { s.Word.Set("other") }, Reason: "what if",
	}, ann)
	if err == nil {
		_, err = d.Run(ctx, "fork", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{run: "rewound", "fork": "forked"} {
		var events []dispatcher.Event
		for e, err := range d.Events(ctx, id, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		golden(t, "events/"+name+".golden", eventsTold(events))
	}
}

// toldAlike checks that events are read as they were observed.
func toldAlike(t *testing.T, observed []dispatcher.Event, events iter.Seq2[dispatcher.Event, error], log []checkpoint.Entry) {
	t.Helper()
	var read []dispatcher.Event
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(read); e.Seq != uint64(n+1) || e.Live || n >= len(log) || !e.At.Equal(log[n].At) {
			t.Fatalf("event %d of %d is %s of %s", n+1, len(log), e, e.At)
		}
		read = append(read, e)
	}
	if len(read) != len(log) {
		t.Errorf("%d events of %d entries", len(read), len(log))
	}
	for _, o := range observed {
		r := read[o.Seq-1]
		if (o.Err == nil) != (r.Err == nil) || o.Err != nil && o.Kind == dispatcher.AttemptFailed && o.Err.Error() != r.Err.Error() {
			t.Errorf("%s: the observer's error is %v, the reader's %v", o, o.Err, r.Err)
		}
		o.Err, o.At = nil, r.At
		if o.Kind != dispatcher.EffectEnded { // whose duration the entry tells
			o.Duration = 0
		}
		r.Err = nil
		if !reflect.DeepEqual(o, r) {
			t.Errorf("the observer was told\n%#v\nthe reader\n%#v", o, r)
		}
	}
}

// The same holds of random graphs.
func TestEventsReadAreEventsObservedOfRandomGraphs(t *testing.T) {
	cases, _ := randomCases()
	for _, c := range cases[:min(len(cases), 150)] {
		t.Run(fmt.Sprintf("seed=%d", c.seed), func(t *testing.T) {
			store, seen := new(memory.Store), eventsSeen{}
			d := process(t, c.graph, store, dispatcher.Options{Observe: seen.observe})
			b := &bench{run: run}
			if _, err := d.Run(b.context(t.Context()), run, inputs); err != nil {
				t.Log(err)
			}
			observed := slices.DeleteFunc(seen.of(), func(e dispatcher.Event) bool { return e.Live })
			log := readLog(t, store)
			if len(observed) != len(log) {
				t.Errorf("%d events observed of %d entries", len(observed), len(log))
			}
			toldAlike(t, observed, d.Events(t.Context(), run, dispatcher.Listen{}), log)
		})
	}
}

// eventsSamples has an entry of every kind that a log may hold.
var eventsSamples = []checkpoint.Entry{
	{Kind: checkpoint.Opened, Data: []byte(`{"graph":"line","digest":"d","labels":{"k":"v"}}`)},
	{Kind: checkpoint.Entered, Path: "loop/2"},
	{Kind: checkpoint.Done, Path: "loop/2/turn", Step: 1, Attempt: 2, Outcome: "left"},
	{Kind: checkpoint.AttemptFailed, Path: "a", Step: 1, Attempt: 2, Data: []byte(`{"kind":"panic","message":"thunder","final":true}`)},
	{Kind: checkpoint.EffectBegun, Path: "a", Step: 1, Attempt: 1, ID: "charge", Data: []byte(`{"input":3,"digest":"d"}`)},
	{Kind: checkpoint.EffectEnded, Path: "a", Step: 1, Attempt: 1, ID: "charge", Data: []byte(`{"lost":"too large"}`)},
	{Kind: checkpoint.Interrupted, Path: "a", Step: 1, ID: "i", Data: []byte(`{"kind":"asked","key":"name","question":"Who?"}`)},
	{Kind: checkpoint.Answered, ID: "i", Data: []byte(`{"value":"Ada","how":"answered","at":"2026-03-01T12:00:00Z"}`)},
	{Kind: checkpoint.Edited, Data: []byte(`{"author":"ann","reason":"a typo","voids":["loop/2/validate"]}`)},
	{Kind: checkpoint.Voided, Data: []byte(`["a","b"]`)},
	{Kind: checkpoint.Superstep, Path: "loop/2", Step: 3},
	{Kind: checkpoint.Superstep, Step: 2, Outcome: "failed"},
	{Kind: checkpoint.Resumed, Data: []byte(`{"owner":"o"}`)},
	{Kind: checkpoint.Cancelled, Data: []byte(`{"cause":"by Ada"}`)},
	{Kind: checkpoint.TimedOut, Data: []byte(`{"cause":"context deadline exceeded"}`)},
	{Kind: checkpoint.Failed, Data: []byte(`{"kind":"conflict","cause":"two writers"}`)},
	{Kind: checkpoint.Waiting, Data: []byte(`{}`)},
	{Kind: checkpoint.Completed},
	{Kind: checkpoint.TurnBegun},
	{Kind: checkpoint.SettingsChanged, Data: []byte(`{"model":"small"}`)},
	{Kind: checkpoint.Noted, Post: "p", Data: []byte(`"a post changed nothing"`)},
	{Kind: checkpoint.Migrated, Data: []byte(`{}`)},
	{Kind: checkpoint.Trimmed},
	{Kind: checkpoint.Tagged, Data: []byte(`{"name":"published","seq":7,"author":"ann"}`)},
	{Kind: checkpoint.Rewound, Data: []byte(`{"to":7,"author":"ann","reason":"a wrong turn","machine":{}}`)},
	{Kind: checkpoint.Answered, ID: "j", Data: []byte(`{"value":3,"how":"default","at":"2026-03-01T12:00:00Z"}`)},
	{Kind: checkpoint.Interrupted, Path: "a", Step: 1, ID: "g", Data: []byte(`{"kind":"before","question":{"run":"r","path":"a","node":"a","access":"writes"},"by":"gate","reason":"it is named: a"}`)},
	{Kind: checkpoint.Interrupted, Path: "a", Step: 1, ID: "h", Data: []byte(`{"kind":"effect","key":"charge","question":{"run":"r","path":"a","node":"a","effect":"charge","access":"writes","input":3},"by":"gate","reason":"it is named: a#*"}`)},
	{Kind: checkpoint.Answered, ID: "h", Data: []byte(`{"value":"approve","how":"answered","by":"Ann","at":"2026-03-01T12:00:00Z"}`)},
	{Kind: checkpoint.EffectBegun, Path: "a", Step: 1, Attempt: 1, ID: "charge", Data: []byte(`{"input":3,"digest":"d","approval":"h"}`)},
	{Kind: checkpoint.EffectBegun, Path: "a", Step: 1, Attempt: 1, ID: "charge", Data: []byte(
		`{"input":3,"digest":"d","operation":"stripe.charge","touches":["card 7","ledger"],"access":"writes","reversible":true,"doubt":"asks"}`)},
	{Kind: checkpoint.Interrupted, Path: "a", Step: 1, ID: "d", Data: []byte(`{"kind":"doubt","key":"charge","question":{"id":"tale/a#charge","input":3}}`)},
	{Kind: checkpoint.EffectEnded, Path: "a", Step: 1, ID: "charge", Data: []byte(`{"not_done":"no such charge","resolved":true,"by":"Eve","interrupt":"d"}`)},
	{Kind: checkpoint.Answered, ID: "k", Data: []byte(`{"how":"skipped","by":"Eve","at":"2026-03-01T12:00:00Z"}`)},
}

// An eventsStore holds the samples, also of entries that Append refuses because Fork and Trim
// alone write them.
type eventsStore struct{ memory.Store }

func (s *eventsStore) fill(ctx context.Context) error {
	l, err := s.Acquire(ctx, run, "test")
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, l, checkpoint.Head{}, slices.Repeat([]checkpoint.Entry{{Kind: checkpoint.Noted}}, len(eventsSamples)))
	return err
}

func (s *eventsStore) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, run, from, to) {
			if err == nil {
				sample := eventsSamples[e.Seq-1]
				sample.Seq, sample.At = e.Seq, e.At
				e = sample
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Every kind of entry is one event, every event has a channel, and every kind of event is
// in a golden file.
func TestEventKinds(t *testing.T) {
	ctx, store := t.Context(), new(eventsStore)
	if err := store.fill(ctx); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for e, err := range process(t, eventsLine(nothing[Tale])(t), store, dispatcher.Options{}).Events(ctx, run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		entry := eventsSamples[e.Seq-1]
		lines = append(lines, fmt.Sprintf("%-16s %-8s turn %d %s", entry.Kind, e.Kind.Channel(), e.Turn, e))
	}
	if !*update && len(lines) != len(eventsSamples) {
		t.Errorf("%d events of %d entries", len(lines), len(eventsSamples))
	}
	golden(t, "events/kinds.golden", lines)

	for k := checkpoint.Kind(1); ; k++ {
		if _, err := k.MarshalText(); err != nil {
			break
		}
		if !slices.ContainsFunc(eventsSamples, func(e checkpoint.Entry) bool { return e.Kind == k }) {
			t.Errorf("there is no sample of an entry of kind %s", k)
		}
	}
	files, err := filepath.Glob("testdata/events/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	for k := dispatcher.EventKind(1); !strings.HasPrefix(k.String(), "event "); k++ {
		if !strings.Contains(all, ": "+k.String()) {
			t.Errorf("no golden file has an event of kind %q", k)
		}
		if c := k.Channel(); c != dispatcher.Control && c != dispatcher.Progress && c != dispatcher.Monitor {
			t.Errorf("%q is in channel %q", k, c)
		}
	}
}
