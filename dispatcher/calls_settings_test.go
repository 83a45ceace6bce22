package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// callsSettings is what the nodes of these tests read of the settings.
type callsSettings struct {
	Model string `json:"model"`
	Limit int    `json:"limit"`
}

// callsSettingsGraph is a chain of three nodes that write down which model they are told.
func callsSettingsGraph(t *testing.T) *dag.Graph[Tale] {
	t.Helper()
	reads := func(ctx context.Context, s *Tale) error {
		settings, err := dag.Settings[callsSettings](ctx)
		s.Said.Append(visitPath(ctx) + ":" + settings.Model)
		return err
	}
	b := dag.New[Tale]("settings")
	first := dag.Step(b, "first", reads)
	second := dag.Step(b, "second", reads, first)
	dag.Step(b, "third", reads, second)
	return frozen(t, b)
}

// Nodes read the settings that held when their attempt began; whoever goes on with the run
// may replace them, by an entry with the author; the same again leave none; earlier
// positions show what held then.
func TestCallsSettingsAreReplaced(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		o.InterruptBefore = []string{"second", "third"}
		d := callsDispatcher(t, callsSettingsGraph(t), store, o)
		ctx := t.Context()

		res, err := d.Run(ctx, run, nil, dispatcher.Settings(callsSettings{"small", 1}, ""))
		rests(t, res, err, checkpoint.StatusInterrupted, "second")
		if want := `{"limit":1,"model":"small"}`; string(res.Settings) != want {
			t.Errorf("settings %s, want %s", res.Settings, want)
		}
		before := len(readLog(t, store))
		res, err = d.Resume(ctx, run, dispatcher.Settings(json.RawMessage(` {"model": "small", "limit": 1} `), ""))
		rests(t, res, err, checkpoint.StatusInterrupted, "third")
		if got := kinds(readLog(t, store)[before:], checkpoint.SettingsChanged); len(got) > 0 {
			t.Errorf("the same settings again left %q", got)
		}
		res, err = d.Resume(ctx, run, dispatcher.Settings(callsSettings{"large", 2}, "ann"))
		completes(t, res, err)
		says(t, res.State, "first:small", "second:small", "third:large")

		log := readLog(t, store)
		found := 0
		for i, e := range log {
			if e.Kind != checkpoint.SettingsChanged {
				continue
			}
			found++
			var s checkpoint.Setting
			if err := json.Unmarshal(e.Data, &s); err != nil || s.Author != "ann" || string(s.Value) != `{"limit":2,"model":"large"}` {
				t.Errorf("the entry tells %s, %v", e.Data, err)
			}
			if log[i-1].Kind != checkpoint.Resumed {
				t.Errorf("%s stands before the change, want the resume that made it", log[i-1].Kind)
			}
		}
		if found != 1 {
			t.Errorf("%d entries tell of changed settings, want 1", found)
		}
		for address, want := range map[string]string{"2": "small", "3": "large"} {
			then, err := d.At(ctx, run, address)
			if err != nil || !strings.Contains(string(then.Settings), want) {
				t.Errorf("at superstep %s the settings are %s, %v, want %s", address, then.Settings, err, want)
			}
		}
		now, err := d.State(ctx, run)
		if err != nil || !strings.Contains(string(now.Settings), "large") {
			t.Errorf("State tells %s, %v", now.Settings, err)
		}
	})
}

// The settings of a Turn are those of its own input: what was enqueued before it has those that
// held, also if it keeps the input of the Turn from being taken.
func TestCallsSettingsOfATurnBehindOthers(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		b := dag.New[Tale]("settings")
		dag.Step(b, "node", func(ctx context.Context, s *Tale) error {
			settings, err := dag.Settings[callsSettings](ctx)
			s.Said.Append(s.Word.Get() + ":" + settings.Model)
			if s.Word.Get() == "sour" {
				return errWeather
			}
			return err
		})
		d := callsDispatcher(t, frozen(t, b), store, o)
		word := func(word string) func(*Tale) { return func(s *Tale) { s.Word.Set(word) } }
		queued := func(word func(*Tale)) {
			t.Helper()
			if err := d.Enqueue(t.Context(), run, word); err != nil {
				t.Fatal(err)
			}
		}
		small, large := dispatcher.Settings(callsSettings{Model: "small"}, "ann"), dispatcher.Settings(callsSettings{Model: "large"}, "ann")
		res, err := d.Run(t.Context(), run, word("one"), small)
		completes(t, res, err)
		queued(word("two"))
		queued(word("sour"))
		res, err = d.Turn(t.Context(), run, word("never"), large)
		if !errors.Is(err, dispatcher.ErrNotCompleted) || !errors.Is(err, errWeather) {
			t.Fatalf("the turn returned %v", err)
		}
		if want := `{"limit":0,"model":"small"}`; string(res.Settings) != want {
			t.Errorf("settings %s behind a turn that was not taken, want %s", res.Settings, want)
		}
		if err := d.Edit(t.Context(), run, word("three"), dispatcher.EditOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		queued(word("four"))
		res, err = d.Turn(t.Context(), run, word("five"), large)
		completes(t, res, err)
		says(t, res.State, "one:small", "two:small", "three:small", "four:small", "five:large")
	})
}

// Under a context that is done a run that only waits stays as it is, also if the call gives the
// settings that hold; other ones count, and the run rests as Cancelled, its pause and all.
func TestCallsSettingsUnderADoneContext(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		o.InterruptBefore = []string{"second"}
		d := callsDispatcher(t, callsSettingsGraph(t), store, o)
		small, large := dispatcher.Settings(callsSettings{Model: "small"}, "ann"), dispatcher.Settings(callsSettings{Model: "large"}, "ann")
		res, err := d.Run(t.Context(), run, nil, small)
		rests(t, res, err, checkpoint.StatusInterrupted, "second")

		done, cancel := context.WithCancel(t.Context())
		cancel()
		before := len(readLog(t, store))
		res, err = d.Run(done, run, nil, small)
		rests(t, res, err, checkpoint.StatusInterrupted, "second")
		if now := len(readLog(t, store)); now != before {
			t.Errorf("the settings that hold left %d entries", now-before)
		}
		res, err = d.Run(done, run, nil, large)
		rests(t, res, err, checkpoint.StatusCancelled, "second")
		if want := `{"limit":0,"model":"large"}`; string(res.Settings) != want || len(res.Interrupts) != 1 {
			t.Errorf("settings %s and interrupts %v, want %s and the pause", res.Settings, res.Interrupts, want)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		says(t, res.State, "first:small", "second:large", "third:large")
	})
}

// Run replaces settings as Resume does, of a run at rest and of one that was left running,
// and one that only waits gets them as well. Nil means that there are none any more.
func TestCallsSettingsByRun(t *testing.T) {
	store := new(memory.Store)
	b := dag.New[Tale]("settings")
	dag.Step(b, "ask", func(ctx context.Context, s *Tale) error {
		settings, err := dag.Settings[callsSettings](ctx)
		if err != nil {
			return err
		}
		if _, err := dag.Ask[bool](ctx, "ok", "?"); err != nil {
			return err
		}
		s.Word.Set(settings.Model)
		return nil
	})
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	if res.Settings != nil {
		t.Errorf("settings %s, want none", res.Settings)
	}
	for _, model := range []string{"a", "b"} {
		res, err = d.Run(ctx, run, nil, dispatcher.Settings(callsSettings{Model: model}, "bob"))
		rests(t, res, err, checkpoint.StatusInterrupted, "ask")
		if !strings.Contains(string(res.Settings), model) {
			t.Errorf("settings %s, want %s", res.Settings, model)
		}
	}
	drained, cancel := context.WithCancelCause(ctx)
	cancel(dispatcher.ErrDrain)
	if err := d.Answer(ctx, run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if res, err = d.Run(drained, run, nil); res.Status != checkpoint.StatusRunning {
		t.Fatalf("drained, the run is %s: %v", res.Status, err)
	}
	res, err = d.Run(ctx, run, nil, dispatcher.Settings(callsSettings{Model: "c"}, "bob"))
	completes(t, res, err)
	if got := res.State.Word.Get(); got != "c" {
		t.Errorf("the node read the model %q, want c", got)
	}
	before := len(readLog(t, store))
	res, err = d.Run(ctx, run, nil, dispatcher.Settings(nil, "bob"))
	completes(t, res, err)
	if !strings.Contains(string(res.Settings), "c") || len(readLog(t, store)) != before {
		t.Errorf("a completed run has got other settings: %s", res.Settings)
	}

	res, err = d.Run(ctx, "other", nil, dispatcher.Settings(callsSettings{Model: "a"}, ""))
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	res, err = d.Resume(ctx, "other", dispatcher.Settings(nil, "bob"))
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	if res.Settings != nil {
		t.Errorf("settings %s, want none any more", res.Settings)
	}
}

// An option may be used later, as by a supervisor: it keeps what its value was when it was made.
func TestCallsSettingsAreThoseOfWhenTheyWereSaid(t *testing.T) {
	var store memory.Store
	d := process(t, callsTalk(t, nil), &store, dispatcher.Options{})
	of := map[string]int{"limit": 1}
	option := dispatcher.Settings(of, "me")
	of["limit"] = 2
	if err := d.Create(t.Context(), run, nil, option); err != nil {
		t.Fatal(err)
	}
	if res, err := d.State(t.Context(), run); err != nil || string(res.Settings) != `{"limit":1}` {
		t.Errorf("the settings are %s, %v", res.Settings, err)
	}
}

// Bad settings refuse the call: nothing is opened, and nothing changes.
func TestCallsSettingsRefused(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsSettingsGraph(t), store, dispatcher.Options{
		InterruptBefore: []string{"second"}, Limits: dispatcher.Limits{ValueBytes: 40},
	})
	ctx := t.Context()
	bad := []struct {
		name   string
		option dispatcher.RunOption
		target any
	}{
		{"a channel", dispatcher.Settings(make(chan int), "me"), new(*dispatcher.OptionError)},
		{"no JSON", dispatcher.Settings(json.RawMessage(`{"a":`), "me"), new(*dispatcher.OptionError)},
		{"two values", dispatcher.Settings(json.RawMessage(`1 2`), "me"), new(*dispatcher.OptionError)},
		{"no UTF-8", dispatcher.Settings(map[string]string{"a": "\xff"}, "me"), new(*dispatcher.OptionError)},
		{"author no UTF-8", dispatcher.Settings(1, "\xff"), new(*dispatcher.OptionError)},
		{"large", dispatcher.Settings(strings.Repeat("x", 40), "me"), new(*dispatcher.LimitError)},
		{"secret", dispatcher.Settings(map[string]string{"apiKey": "x"}, "me"), new(*dispatcher.SecretError)},
	}
	for _, c := range bad {
		if _, err := d.Run(ctx, run, nil, c.option); !errors.As(err, c.target) {
			t.Errorf("%s: Run returned %v, want a %T", c.name, err, c.target)
		}
	}
	if _, err := store.Stat(ctx, run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the refused calls left a run: %v", err)
	}
	res, err := d.Run(ctx, run, nil, dispatcher.Settings(callsSettings{"small", 1}, ""))
	rests(t, res, err, checkpoint.StatusInterrupted, "second")
	before := len(readLog(t, store))
	bad = append(bad, struct {
		name   string
		option dispatcher.RunOption
		target any
	}{"no author", dispatcher.Settings(callsSettings{"large", 1}, ""), new(*dispatcher.OptionError)})
	for _, c := range bad {
		if _, err := d.Resume(ctx, run, c.option); !errors.As(err, c.target) {
			t.Errorf("%s: Resume returned %v, want a %T", c.name, err, c.target)
		}
	}
	if n := len(readLog(t, store)); n != before {
		t.Errorf("the refused calls left %d entries", n-before)
	}
}

// A node whose settings are of another type fails as by any error of its own.
func TestCallsSettingsOfTheWrongType(t *testing.T) {
	d := process(t, callsSettingsGraph(t), new(memory.Store), dispatcher.Options{})
	_, err := d.Run(t.Context(), run, nil, dispatcher.Settings(map[string]any{"model": 7}, "me"))
	var n *dispatcher.NodeError
	if !errors.As(err, &n) || n.Path != "first" || n.Kind != dag.FailedError {
		t.Errorf("%v, want a NodeError of first", err)
	}
}

// Without a log a run has settings, labels and a correlation id all the same.
func TestCallsSettingsWithoutAStore(t *testing.T) {
	d := process(t, callsSettingsGraph(t), nil, dispatcher.Options{})
	res, err := d.Start(t.Context(), run, nil, dispatcher.Settings(callsSettings{Model: "m"}, ""),
		dispatcher.Labels(map[string]string{"k": "v"}), dispatcher.Correlation("c"))
	completes(t, res, err)
	says(t, res.State, "first:m", "second:m", "third:m")
	if res.Labels["k"] != "v" || res.Correlation != "c" || len(res.Settings) == 0 {
		t.Errorf("the result tells %v, %q, %s", res.Labels, res.Correlation, res.Settings)
	}
}

// A run that is read from a snapshot was told the same as one that is replayed.
func TestCallsSettingsInSnapshots(t *testing.T) {
	store := &forgetful{served: new(atomic.Int32)}
	b := dag.New[Tale]("big")
	step := dag.Step(b, "s0", func(_ context.Context, s *Tale) error { return nil })
	for i := range 12 {
		step = dag.Step(b, "s"+string(rune('a'+i)), func(_ context.Context, s *Tale) error {
			s.Word.Set(strings.Repeat("x", 20_000))
			return nil
		}, step)
	}
	d := process(t, frozen(t, b), store, dispatcher.Options{InterruptBefore: []string{"sa"}})
	ctx := t.Context()
	res, err := d.Run(ctx, run, nil, dispatcher.Settings(callsSettings{"small", 1}, ""), dispatcher.Labels(map[string]string{"k": "v"}))
	rests(t, res, err, checkpoint.StatusInterrupted, "sa")
	res, err = d.Resume(ctx, run, dispatcher.Settings(callsSettings{"large", 1}, "ann"))
	completes(t, res, err)
	var told []string
	for _, forgets := range []bool{false, true} {
		store.forgets = forgets
		res, err := d.State(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, res.Correlation+string(res.Settings)+res.Labels["k"])
	}
	if store.served.Load() == 0 || told[0] != told[1] || !strings.Contains(told[0], "large") {
		t.Errorf("from %d snapshots %q, replayed %q", store.served.Load(), told[0], told[1])
	}
}
