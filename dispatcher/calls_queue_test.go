package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// heardIn lists what was heard in each turn, in order.
func heardIn(s *Talk) []string {
	var heard []string
	for _, l := range s.Lines.Slice() {
		if key, word, _ := strings.Cut(l, " "); strings.HasSuffix(key, "/hear") {
			heard = append(heard, word)
		}
	}
	return heard
}

// enqueue posts inputs, one after the other.
func enqueue(t testing.TB, d *dispatcher.Dispatcher[Talk], words ...string) {
	t.Helper()
	for _, word := range words {
		if err := d.Enqueue(t.Context(), run, hear(word)); err != nil {
			t.Fatal(err)
		}
	}
}

// A live run takes what is posted to it when it is completed, turn by turn, in the order of
// posting; the call returns when nothing waits any more.
func TestCallsEnqueueToALiveRun(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var d *dispatcher.Dispatcher[Talk]
		g := callsTalk(t, func(ctx context.Context, s *Talk) error {
			switch s.Heard.Get() {
			case "one":
				enqueue(t, d, "two", "three")
			case "three":
				enqueue(t, d, "four")
			}
			return nil
		})
		d = callsDispatcher(t, g, store, o)
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three", "four"}) || res.Turn != 4 || res.State.Turns.Get() != 4 {
			t.Errorf("turn %d, heard %q", res.Turn, got)
		}
		if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
			t.Errorf("%d posts are left, %v", len(posts), err)
		}
	})
}

// Input that comes when the call has looked once more, and is about to return, waits for the next
// call.
func TestCallsEnqueueToACallThatReturns(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var d *dispatcher.Dispatcher[Talk]
		ends := 0
		o.Hooks.OnEnd = func(context.Context, dispatcher.End) error {
			if ends++; ends == 1 {
				enqueue(t, d, "two")
			}
			return nil
		}
		d = callsDispatcher(t, callsTalk(t, func(context.Context, *Talk) error { return nil }), store, o)
		for turn, call := range []func() (*dispatcher.Result[Talk], error){
			func() (*dispatcher.Result[Talk], error) { return d.Run(t.Context(), run, hear("one")) },
			func() (*dispatcher.Result[Talk], error) { return d.Run(t.Context(), run, nil) },
		} {
			res, err := call()
			if completes(t, res, err); res.Turn != turn+1 || ends != turn+1 {
				t.Errorf("call %d ends in turn %d, with %d calls of OnEnd", turn+1, res.Turn, ends)
			}
		}
	})
}

// What is posted to a run at rest, or to a completed one, waits for whoever goes on with it:
// Run, Resume or Turn, whose own input comes last.
func TestCallsEnqueueToARunAtRest(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		o.InterruptBefore = []string{"hear"}
		stops := callsDispatcher(t, callsTalk(t, nil), store, o)
		o.InterruptBefore = nil
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		if err := d.Enqueue(ctx, run, hear("none")); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("input for no run: %v", err)
		}
		res, err := stops.Run(ctx, run, hear("one"))
		rests(t, res, err, checkpoint.StatusInterrupted, "hear")
		enqueue(t, d, "two")
		if now, err := d.State(ctx, run); err != nil || now.State.Heard.Get() != "one" || now.Turn != 1 {
			t.Errorf("posted input has begun turn %d: %v", now.Turn, err)
		}
		res, err = d.Resume(ctx, run)
		completes(t, res, err)
		enqueue(t, d, "three")
		res, err = d.Run(ctx, run, hear("never"))
		completes(t, res, err)
		enqueue(t, d, "four")
		res, err = d.Resume(ctx, run)
		completes(t, res, err)
		enqueue(t, d, "five")
		res, err = d.Turn(ctx, run, hear("six"))
		completes(t, res, err)
		if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three", "four", "five", "six"}) {
			t.Errorf("heard %q", got)
		}
		if _, err := d.Resume(ctx, run); !errors.Is(err, dispatcher.ErrCompleted) {
			t.Errorf("Resume with nothing left: %v", err)
		}
	})
}

// Input that can't be applied is drained by an entry that says so, and told as a warning;
// what waits behind it is heard all the same.
func TestCallsEnqueuedInputIsRefused(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		enqueue(t, d, "bad", "two", "worse", "worst", "three", "bad")
		res, err = d.Run(ctx, run, nil)
		completes(t, res, err)
		if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three"}) || res.Turn != 3 {
			t.Errorf("turn %d, heard %q", res.Turn, got)
		}
		if len(res.Warnings) != 4 || !strings.Contains(res.Warnings[0], "that is not heard") || !strings.Contains(res.Warnings[1], "not even checked") {
			t.Errorf("warnings %q", res.Warnings)
		}
		refused := 0
		for _, e := range readLog(t, store) {
			if e.Kind == checkpoint.Noted && strings.Contains(string(e.Data), `"refused"`) && strings.Contains(string(e.Data), `"input":{`) {
				refused++
			}
		}
		if refused != 4 {
			t.Errorf("%d entries tell of refused input, want 4", refused)
		}
		enqueue(t, d, "bad")
		res, err = d.Turn(ctx, run, hear("four"))
		completes(t, res, err)
		if res.Turn != 4 || len(res.Warnings) != 1 {
			t.Errorf("turn %d, warnings %q", res.Turn, res.Warnings)
		}
		enqueue(t, d, "bad")
		res, err = d.Turn(ctx, run, hear("bad"))
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || res.Turn != 4 || len(res.Warnings) != 1 {
			t.Errorf("turn %d, warnings %q, %v", res.Turn, res.Warnings, err)
		}
	})
}

// What Enqueue can see to be wrong it refuses itself.
func TestCallsEnqueueRefuses(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsTalk(t, nil), store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 100}})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err)
	var fault *dispatcher.FaultError
	var limit *dispatcher.LimitError
	if err := d.Enqueue(ctx, run, func(*Talk) { panic("no") }); !errors.As(err, &fault) || fault.Kind != "input" {
		t.Errorf("input that panics: %v", err)
	}
	if err := d.Enqueue(ctx, run, hear(strings.Repeat("x", 101))); !errors.As(err, &limit) {
		t.Errorf("large input: %v", err)
	}
	if err := d.Enqueue(ctx, run, hear("\xff")); !errors.As(err, &fault) {
		t.Errorf("input that is not UTF-8: %v", err)
	}
	for name, input := range map[string]func(*Talk){
		"SetAt":    func(s *Talk) { s.Lines.Append("x"); s.Lines.SetAt(0, "y") },
		"Truncate": func(s *Talk) { s.Lines.Append("x", "y"); s.Lines.Truncate(1) },
		"Append":   func(s *Talk) { s.Lines.Truncate(0); s.Lines.Append("x") },
	} {
		if err := d.Enqueue(ctx, run, input); !errors.As(err, &fault) || !strings.Contains(err.Error(), `"Lines"`) || !strings.Contains(err.Error(), "Replace") {
			t.Errorf("input of which %s would take what the run has: %v", name, err)
		}
	}
	var option *dispatcher.OptionError
	for name, o := range map[string]dispatcher.RunOption{
		"From": dispatcher.From(res.Cursor), "Settings": dispatcher.Settings(1, "me"), "Message": dispatcher.Message(""),
		"Labels": dispatcher.Labels(nil), "Correlation": dispatcher.Correlation("c"),
	} {
		if err := d.Enqueue(ctx, run, hear("two"), o); !errors.As(err, &option) || option.Option != name {
			t.Errorf("Enqueue with %s: %v", name, err)
		}
	}
	if _, err := d.Turn(ctx, run, hear("two"), dispatcher.Message("m")); !errors.As(err, &option) || option.Option != "Message" {
		t.Errorf("Turn with a Message: %v", err)
	}
	if posts, err := store.Posts(ctx, run); err != nil || len(posts) > 0 {
		t.Errorf("%d posts are left, %v", len(posts), err)
	}
	res, err = d.Run(ctx, run, nil)
	if completes(t, res, err); res.Turn != 1 {
		t.Errorf("turn %d has begun", res.Turn)
	}
}

// What an input makes of a list is done to the one that the run has, if that can be told from the
// input alone.
func TestCallsEnqueueWritesLists(t *testing.T) {
	d := process(t, callsTalk(t, nil), new(memory.Store), dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err)
	for _, test := range []struct {
		input func(*Talk)
		begin []string
	}{
		{func(s *Talk) { s.Lines.Append("x", "y") }, append(res.State.Lines.Slice(), "x", "y")},
		{func(s *Talk) { s.Lines.Append("x"); s.Lines.Replace([]string{"z"}) }, []string{"z"}},
		{func(s *Talk) { s.Lines.Truncate(0) }, nil},
	} {
		if err := d.Enqueue(ctx, run, test.input); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(ctx, run, nil)
		completes(t, res, err)
		got := res.State.Lines.Slice()
		if len(got) < len(test.begin) || !slices.Equal(got[:len(test.begin)], test.begin) || test.begin == nil && slices.Contains(got, "z") {
			t.Errorf("the lines are %q, want %q first", got, test.begin)
		}
	}
}

// What has a name waits its turn as all input does: names have no part in the order.
func TestCallsEnqueueInTheOrderOfPosting(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		for _, word := range []string{"two", "three", "four", "five", "six"} {
			if err := d.Enqueue(t.Context(), run, hear(word), dispatcher.Message(word)); err != nil {
				t.Fatal(err)
			}
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three", "four", "five", "six"}) {
			t.Errorf("heard %q", got)
		}
	})
}

// Of several inputs with one name the run gets one, however late they are posted; other
// input under that name is refused while the first waits.
func TestCallsEnqueueWithAName(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		for range 3 {
			if err := d.Enqueue(ctx, run, hear("two"), dispatcher.Message("m")); err != nil {
				t.Fatal(err)
			}
		}
		var option *dispatcher.OptionError
		if err := d.Enqueue(ctx, run, hear("other"), dispatcher.Message("m")); !errors.As(err, &option) {
			t.Errorf("other input under the name: %v", err)
		}
		for range 2 {
			res, err = d.Run(ctx, run, nil)
			completes(t, res, err)
			if err := d.Enqueue(ctx, run, hear("two"), dispatcher.Message("m")); err != nil {
				t.Fatal(err)
			}
		}
		res, err = d.Turn(ctx, run, hear("three"))
		completes(t, res, err)
		if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("heard %q", got)
		}
		if posts, err := store.Posts(ctx, run); err != nil || len(posts) > 0 {
			t.Errorf("%d posts are left, %v", len(posts), err)
		}
	})
}

// A turn that begins with input that was enqueued says which, and so does what is said of input
// that is refused, or sent again: to observers and readers alike.
func TestCallsEnqueuedInputIsNamedByItsTurn(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var observed []string
		tells := func(e dispatcher.Event) (string, bool) {
			switch e.Kind {
			case dispatcher.TurnBegun, dispatcher.Noted:
				return fmt.Sprintf("%s of turn %d: %q", e.Kind, e.Turn, e.ID), true
			}
			return "", false
		}
		o.Limits.StateBytes = 4 << 10
		o.Observe = func(e dispatcher.Event) {
			if line, ok := tells(e); ok {
				observed = append(observed, line)
			}
		}
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		ctx := t.Context()
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		for _, message := range []string{"m1", "m2", "m3"} {
			said := "more"
			if message == "m2" {
				said = strings.Repeat("more", 1<<10)
			}
			if err := d.Enqueue(ctx, run, hear(said), dispatcher.Message(message)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Note(ctx, run, "tests.note", 1, dispatcher.Message("n")); err != nil {
			t.Fatal(err)
		}
		res, err = d.Turn(ctx, run, hear("two"))
		completes(t, res, err)
		if err := d.Enqueue(ctx, run, hear("more"), dispatcher.Message("m1")); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(ctx, run, nil)
		completes(t, res, err)
		var read []string
		for e, err := range d.Events(ctx, run, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			if line, ok := tells(e); ok {
				read = append(read, line)
			}
		}
		want := []string{
			`noted of turn 1: "n"`, `turn begun of turn 2: "m1"`, `noted of turn 2: "m2"`, `turn begun of turn 3: "m3"`,
			`turn begun of turn 4: ""`, `noted of turn 4: "m1"`,
		}
		if !slices.Equal(read, want) || !slices.Equal(observed, want) {
			t.Errorf("read\n%q, observed\n%q, want\n%q", read, observed, want)
		}
	})
}

// Input that is repeated when it was taken is nothing to be at work for: it is drained, and that is
// all, also if the graph has changed. What is refused leaves it.
func TestCallsRepeatedInputIsNoWork(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var l hookLog
		o.Hooks = l.ends()
		ctx := t.Context()
		d := callsDispatcher(t, callsTalk(t, func(ctx context.Context, s *Talk) error {
			if s.Heard.Get() != "ask" {
				return nil
			}
			_, err := dag.Ask[bool](ctx, "ok", "?")
			return err
		}), store, o)
		b := dag.New[Talk]("talk")
		dag.Step(b, "only", nothing[Talk])
		grown := callsDispatcher(t, frozen(t, b), store, o)
		post := func(word string) {
			t.Helper()
			if err := d.Enqueue(ctx, run, hear(word), dispatcher.Message(word)); err != nil {
				t.Fatal(err)
			}
		}
		drains := func(call func() (*dispatcher.Result[Talk], error), word, rest string) {
			t.Helper()
			post(word)
			before := readLog(t, store)
			res, err := call()
			log := readLog(t, store)
			if got := fmt.Sprint(err); res != nil && res.Cursor.Seq != uint64(len(log)) || !strings.Contains(got, rest) {
				t.Errorf("the call returned %v, %s, want %q", res, got, rest)
			}
			if len(log) != len(before)+1 || log[len(log)-1].Kind != checkpoint.Noted {
				t.Errorf("the log has %d entries and had %d, want one more, that says so", len(log), len(before))
			}
			if posts, err := store.Posts(ctx, run); err != nil || len(posts) > 0 {
				t.Errorf("%d posts are left, %v", len(posts), err)
			}
			l.expect(t)
		}
		leaves := func(word string, call func()) {
			t.Helper()
			post(word)
			unchanged(t, store, run, call)
			l.expect(t)
			drains(func() (*dispatcher.Result[Talk], error) { return d.Run(ctx, run, nil) }, word, "")
		}
		res, err := d.Run(ctx, run, hear("one"))
		completes(t, res, err)
		post("two")
		res, err = d.Run(ctx, run, nil)
		completes(t, res, err)
		l.took()
		for _, d := range []*dispatcher.Dispatcher[Talk]{d, grown} {
			drains(func() (*dispatcher.Result[Talk], error) { return d.Run(ctx, run, nil) }, "two", "<nil>")
			drains(func() (*dispatcher.Result[Talk], error) { _, err := d.Continue(ctx, run); return nil, err }, "two", "<nil>")
		}
		leaves("two", func() {
			if _, err := d.Resume(ctx, run); !errors.Is(err, dispatcher.ErrCompleted) {
				t.Errorf("Resume returned %v", err)
			}
		})
		post("ask")
		res, err = d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "say")
		stale := res.Cursor
		l.took()
		drains(func() (*dispatcher.Result[Talk], error) { return d.Run(ctx, run, nil) }, "ask", "is interrupted at say")
		drains(func() (*dispatcher.Result[Talk], error) { return d.Resume(ctx, run) }, "two", "is interrupted at say")
		leaves("ask", func() {
			if _, err := d.Turn(ctx, run, hear("three")); !errors.Is(err, dispatcher.ErrNotCompleted) {
				t.Errorf("Turn returned %v", err)
			}
			if _, err := d.Resume(ctx, run, dispatcher.From(stale)); !errors.Is(err, dispatcher.ErrStaleCursor) {
				t.Errorf("Resume returned %v", err)
			}
		})
		now, err := d.State(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		drains(func() (*dispatcher.Result[Talk], error) { return d.Resume(ctx, run, dispatcher.From(now.Cursor)) }, "ask", "is interrupted at say")
	})
}

// If a turn that was to come first rests, Turn says that its own input was not taken, and
// how the run rests.
func TestCallsTurnBehindOneThatRests(t *testing.T) {
	store := new(memory.Store)
	g := callsTalk(t, func(ctx context.Context, s *Talk) error {
		if s.Heard.Get() == "ask" {
			_, err := dag.Ask[bool](ctx, "ok", "?")
			return err
		}
		return nil
	})
	d := process(t, g, store, dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err)
	enqueue(t, d, "ask", "later")
	res, err = d.Turn(ctx, run, func(*Talk) { t.Error("the input is called") })
	rests(t, res, err, checkpoint.StatusInterrupted, "say")
	if !errors.Is(err, dispatcher.ErrNotCompleted) || !strings.Contains(err.Error(), "is interrupted at say") {
		t.Errorf("Turn returned %v", err)
	}
	if err := d.Answer(ctx, run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(ctx, run, nil)
	completes(t, res, err)
	if got := heardIn(res.State); !slices.Equal(got, []string{"one", "ask", "later"}) {
		t.Errorf("heard %q", got)
	}
}

// It says so too if the store does not give the lease back in time.
func TestCallsTurnBehindOneThatRestsInAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tampered{Store: new(memory.Store)}
		g := callsTalk(t, func(ctx context.Context, s *Talk) error {
			if s.Heard.Get() == "ask" {
				_, err := dag.Ask[bool](ctx, "ok", "?")
				return err
			}
			return nil
		})
		d := process(t, g, store, dispatcher.Options{Grace: time.Second})
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		enqueue(t, d, "ask")
		store.before = func(_ context.Context, c call) error {
			if c.method == "Release" {
				lasts(time.Hour)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err = d.Turn(ctx, run, hear("mine"))
		rests(t, res, err, checkpoint.StatusInterrupted, "say")
		if !errors.Is(err, dispatcher.ErrNotCompleted) || len(res.Abandoned) != 1 {
			t.Errorf("Turn returned %v, and abandoned %q", err, res.Abandoned)
		}
		lasts(2 * time.Hour)
	})
}

// So does a Turn whose own input is refused.
func TestCallsTurnWhoseInputIsRefusedInAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tampered{Store: new(memory.Store)}
		d := process(t, callsTalk(t, nil), store, dispatcher.Options{Grace: time.Second})
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		store.before = func(_ context.Context, c call) error {
			if c.method == "Release" {
				lasts(time.Hour)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err = d.Turn(ctx, run, hear("bad"))
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || res.Status != checkpoint.StatusCompleted || len(res.Abandoned) != 1 {
			t.Errorf("the run is %s, Turn returned %v, and abandoned %q", res.Status, err, res.Abandoned)
		}
		lasts(2 * time.Hour)
	})
}

// If the context is done before a turn that was to come first has begun, Turn says that its own
// input was not taken: it is that of a turn that has begun which is taken and rests.
func TestCallsTurnUnderADoneContext(t *testing.T) {
	for _, queued := range []bool{false, true} {
		d := process(t, callsTalk(t, nil), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		if queued {
			enqueue(t, d, "queued")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		res, err = d.Turn(ctx, run, hear("mine"))
		taken := slices.Contains(heardIn(res.State), "mine") || res.Turn == 2
		if refused := errors.Is(err, dispatcher.ErrNotCompleted); refused != queued || taken == queued || !errors.Is(err, context.Canceled) {
			t.Errorf("behind others %t: the run is %s in turn %d, and Turn returned %v", queued, res.Status, res.Turn, err)
		}
	}
}

// A run that is told to stop begins no further turn: what waits goes on waiting.
func TestCallsNoTurnAfterACancel(t *testing.T) {
	store := new(memory.Store)
	var d *dispatcher.Dispatcher[Talk]
	ctx, cancel := context.WithCancel(t.Context())
	g := callsTalk(t, func(_ context.Context, s *Talk) error {
		switch s.Heard.Get() {
		case "one":
			enqueue(t, d, "two")
			cancel()
		case "two":
			enqueue(t, d, "three")
			return d.Cancel(t.Context(), run, errors.New("enough"))
		}
		return nil
	})
	d = process(t, g, store, dispatcher.Options{})
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err) // its last node had finished
	if res.Turn != 1 {
		t.Errorf("turn %d has begun under a context that is done", res.Turn)
	}
	res, err = d.Run(t.Context(), run, nil)
	if err != nil && res.Status != checkpoint.StatusCancelled {
		t.Fatal(err)
	}
	if res.Turn != 2 {
		t.Errorf("turn %d, want 2: the cancel came with it", res.Turn)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("heard %q", got)
	}
}

// Whoever posts and whoever runs may meet at any moment: every input is heard once.
func TestCallsEnqueueRace(t *testing.T) {
	store := new(memory.Store)
	b := dag.New[Talk]("quick")
	dag.Step(b, "hear", func(ctx context.Context, s *Talk) error {
		s.Lines.Append(dag.Key(ctx) + " " + s.Heard.Get())
		return nil
	})
	g := frozen(t, b)
	ctx := t.Context()
	if res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, hear("0")); err != nil {
		t.Fatal(res, err)
	}
	const posters, each = 4, 25
	var posting, running sync.WaitGroup
	ended := make(chan struct{})
	for range 2 {
		d := callsDispatcher(t, g, store, dispatcher.Options{})
		running.Go(func() {
			for last := false; !last; {
				select {
				case <-ended:
					last = true
				default:
				}
				if _, err := d.Run(ctx, run, nil); err != nil && !errors.Is(err, dispatcher.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	for p := range posters {
		d := callsDispatcher(t, g, store, dispatcher.Options{})
		posting.Go(func() {
			for i := range each {
				if err := d.Enqueue(ctx, run, hear(fmt.Sprintf("%d.%d", p, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	posting.Wait()
	close(ended)
	running.Wait()
	res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
	completes(t, res, err)
	heard := heardIn(res.State)
	if len(heard) != posters*each+1 || res.Turn != len(heard) || res.State.Turns.Get() != len(heard) {
		t.Fatalf("heard %d inputs in %d turns, want %d", len(heard), res.Turn, posters*each+1)
	}
	next := map[string]int{}
	for _, word := range heard[1:] {
		p, i, _ := strings.Cut(word, ".")
		if fmt.Sprint(next[p]) != i {
			t.Errorf("of %s input %s is heard, want %d", p, i, next[p])
		}
		next[p]++
	}
}

// Input that can't be read begins no turn: it is drained by an entry that says so, and the run is
// as it was.
func TestCallsQueueWhatCantBeRead(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	post := checkpoint.Post{ID: "turn:odd", Kind: "turn", Data: json.RawMessage("17")}
	if err := store.Post(t.Context(), run, post); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "b", "c") // of the first turn
	if res.Turn != 1 || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "turn:odd") {
		t.Errorf("the run is in turn %d, and warns of %q", res.Turn, res.Warnings)
	}
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("waiting are %v, %v", posts, err)
	}
}

// A store that can't say what was posted to a run that is just completed keeps input from its turn:
// the call says so, beside what the run has come to, and the next one begins the turn.
func TestCallsQueueThatCantBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("the queue is broken")
	var fails atomic.Bool // read where the run listens for messages, too
	var store memory.Faulty
	store.FailRead = func(_ context.Context, method, _ string) error {
		if fails.Load() && method == "Posts" {
			return broken
		}
		return nil
	}
	var w witness
	var d *dispatcher.Dispatcher[Tale]
	o := dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitDone && e.Path == "c" && e.Turn == 1 {
			if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set("more") }); err != nil {
				t.Error(err)
			}
			fails.Store(true)
		}
	}}
	d = process(t, line(t, &w, nil), &store, o)
	res, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, broken) || res.Status != checkpoint.StatusCompleted || res.Turn != 1 {
		t.Errorf("the run is %s in turn %d, and the error %v", res.Status, res.Turn, err)
	}
	says(t, res.State, "a", "b", "c")
	w.expect(t, "a", "b", "c")
	fails.Store(false)
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if res.Turn != 2 || res.State.Word.Get() != "more" {
		t.Errorf("the run is in turn %d, with %q", res.Turn, res.State.Word.Get())
	}
}
