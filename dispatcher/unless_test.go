package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// isLeftAlone checks that err is the Rest of a run that by has cancelled for this reason.
func isLeftAlone(t *testing.T, err error, by, cause string) {
	t.Helper()
	var rest *dispatcher.Rest
	if !errors.As(err, &rest) || rest.Status != checkpoint.StatusCancelled || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the Rest of a cancelled run", err)
	}
	text := ""
	if rest.Cause != nil {
		text = rest.Cause.Error()
	}
	if rest.By != by || text != cause {
		t.Errorf("the Rest says %q by %q, want %q by %q", text, rest.By, cause, by)
	}
}

// With UnlessCancelled every call that goes on leaves a cancelled run as it is, says who cancelled
// it, and answers nothing. Without it the run goes on, with what was answered meanwhile.
func TestUnlessCancelledLeavesARunAlone(t *testing.T) {
	type ran func(context.Context, *dispatcher.Dispatcher[Tale], ...dispatcher.RunOption) error
	for name, calls := range map[string]ran{
		"Run": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o ...dispatcher.RunOption) error {
			_, err := d.Run(ctx, run, nil, o...)
			return err
		},
		"Resume": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o ...dispatcher.RunOption) error {
			_, err := d.Resume(ctx, run, o...)
			return err
		},
		"Continue": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o ...dispatcher.RunOption) error {
			_, err := d.Continue(ctx, run, o...)
			return err
		},
		"Stream": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], o ...dispatcher.RunOption) (last error) {
			for _, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}, o...) {
				last = err
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			started := 0
			d, id := waiting(t, &store, 3)
			by := callsDispatcher(t, askChain(t, 3), &store, dispatcher.Options{Hooks: dispatcher.Hooks{
				OnStart: func(context.Context, dispatcher.Start) error { started++; return nil },
			}})
			if err := d.Cancel(t.Context(), run, errors.New("the customer"), dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			was, err := store.Stat(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			isLeftAlone(t, calls(t.Context(), by, dispatcher.UnlessCancelled()), "Ada", "the customer")
			isLeftAlone(t, calls(t.Context(), by, dispatcher.UnlessCancelled(), dispatcher.Answering(id, true)), "Ada", "the customer")
			is, err := store.Stat(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if is.Epoch = was.Epoch; !reflect.DeepEqual(is, was) || started > 0 {
				t.Errorf("the run is %+v, was %+v, and OnStart was called %d times", is, was, started)
			}
			if err := calls(t.Context(), by, dispatcher.Answering(id, true)); err != nil {
				t.Errorf("without the option the run goes on: %v", err)
			}
		})
	}
}

// A cancel that nobody has heard counts too, as one that was posted to a run whose process died.
func TestUnlessCancelledHearsWhatWasPosted(t *testing.T) {
	var store memory.Store
	d, id := waiting(t, &store, 3)
	post := checkpoint.Post{ID: "cancel:1", Kind: checkpoint.PostCancel, Data: json.RawMessage(`{"cause":"late","by":"Eve"}`)}
	if err := store.Post(t.Context(), run, post); err != nil {
		t.Fatal(err)
	}
	_, err := d.Continue(t.Context(), run, dispatcher.UnlessCancelled(), dispatcher.Answering(id, true))
	isLeftAlone(t, err, "Eve", "late")
	if o, err := d.Open(t.Context(), run); err != nil || len(o.Interrupts) != 1 {
		t.Errorf("the question has ended: %+v, %v", o, err)
	}
}

// So does one that was posted to a run at work whose process ended before it heard of that: the run
// is left as running, and an answer given behind the cancel would count when it is brought back.
func TestUnlessCancelledHearsWhatWasPostedToARunLeftRunning(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("asking")
	dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "Shall I go on?")
		return err
	})
	dag.Step(b, "work", func(ctx context.Context, _ *Tale) error { <-ctx.Done(); return ctx.Err() })
	ctx, leave := context.WithCancelCause(t.Context())
	started := 0
	d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{
		Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { started++; return nil }},
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitInterrupted {
				leave(dispatcher.ErrDrain)
			}
		},
	})
	if res, _ := d.Start(ctx, run, nil); res.Status != checkpoint.StatusRunning {
		t.Fatalf("the run is %s", res.Status)
	}
	post := checkpoint.Post{ID: "cancel:1", Kind: checkpoint.PostCancel, Data: json.RawMessage(`{"cause":"late","by":"Eve"}`)}
	if err := store.Post(t.Context(), run, post); err != nil {
		t.Fatal(err)
	}
	_, err := d.Continue(t.Context(), run, dispatcher.UnlessCancelled(), dispatcher.Answering("", true))
	isLeftAlone(t, err, "Eve", "late")
	if o, err := d.Open(t.Context(), run); err != nil || len(o.Interrupts) != 1 || started != 1 {
		t.Errorf("OnStart was called %d times, or the question has ended: %+v, %v", started, o, err)
	}
}

// A run that was cancelled, gone on with and cancelled again is told by its last cancel; one that
// was cancelled without a cause by none; and one whose context was cancelled is left alone too.
func TestUnlessCancelledTellsTheLastCancel(t *testing.T) {
	var store memory.Store
	d, _ := waiting(t, &store, 3)
	again := func(cause error, o ...dispatcher.RunOption) error {
		if err := d.Cancel(t.Context(), run, cause, o...); err != nil {
			t.Fatal(err)
		}
		_, err := d.Resume(t.Context(), run, dispatcher.UnlessCancelled())
		if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("the run doesn't go on: %v", err)
		}
		return err
	}
	isLeftAlone(t, again(errors.New("first"), dispatcher.Author("Ada")), "Ada", "first")
	isLeftAlone(t, again(errors.New("second"), dispatcher.Author("Eve")), "Eve", "second")
	isLeftAlone(t, again(nil), "", "")
	if _, err := d.Resume(t.Context(), run, dispatcher.UnlessCancelled()); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Errorf("a run that is not cancelled any more is left alone: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, "other", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, err := d.Run(t.Context(), "other", nil, dispatcher.UnlessCancelled())
	isLeftAlone(t, err, "", context.Canceled.Error())
}

// The result that is left alone holds the state of the run, also of one of an earlier graph, as a
// Migration makes it.
func TestUnlessCancelledTellsTheStateOfAnEarlierGraph(t *testing.T) {
	type earlier struct{ N state.Value[int] }
	type later struct{ N state.Value[string] }
	var store memory.Store
	b := dag.New[earlier]("counts")
	dag.Step(b, "ask", func(ctx context.Context, _ *earlier) error {
		_, err := dag.Ask[bool](ctx, "sure", "Shall I go on?")
		return err
	})
	first := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{})
	if _, err := first.Start(t.Context(), run, func(s *earlier) { s.N.Set(7) }); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := first.Cancel(t.Context(), run, errors.New("late"), dispatcher.Author("Eve")); err != nil {
		t.Fatal(err)
	}
	to := dag.New[later]("counts")
	dag.Step(to, "ask", func(context.Context, *later) error { return nil })
	g := frozen(t, to)
	for _, x := range []struct {
		want string
		all  []dispatcher.Migration
	}{{"", nil}, {"7", []dispatcher.Migration{{
		Name: "words", State: func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"N":"7"}`), nil },
	}}}} {
		res, err := callsDispatcher(t, g, &store, migrating(x.all...)).Run(t.Context(), run, nil, dispatcher.UnlessCancelled())
		isLeftAlone(t, err, "Eve", "late")
		if got := res.State.N.Get(); got != x.want || res.Status != checkpoint.StatusCancelled {
			t.Errorf("the run is %s and has %q, want %q", res.Status, got, x.want)
		}
	}
}

// Calls that can't meet a cancelled run refuse the option.
func TestUnlessCancelledIsRefused(t *testing.T) {
	var store memory.Store
	d, id := waiting(t, &store, 3)
	_, err := d.Start(t.Context(), "new", nil, dispatcher.UnlessCancelled())
	var o *dispatcher.OptionError
	if !errors.As(err, &o) || o.Option != "UnlessCancelled" {
		t.Errorf("got %v, want an OptionError of it", err)
	}
	for name, err := range map[string]error{
		"Answer":  d.Answer(t.Context(), run, id, true, dispatcher.UnlessCancelled()),
		"Enqueue": d.Enqueue(t.Context(), run, func(*Tale) {}, dispatcher.UnlessCancelled()),
		"Create":  d.Create(t.Context(), "new", nil, dispatcher.UnlessCancelled()),
	} {
		if !errors.As(err, &o) {
			t.Errorf("%s: got %v, want an OptionError", name, err)
		}
	}
}

// Without a store there is no run that was cancelled: that is what a Stream with UnlessCancelled
// says, and not that the option is for Stream. A Start refuses the option.
func TestUnlessCancelledWithoutAStore(t *testing.T) {
	d, err := dispatcher.New(callsGraph(t, nothing[Tale]), nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}, dispatcher.UnlessCancelled()) {
		err = failed
	}
	if !errors.Is(err, dispatcher.ErrNoStore) || !strings.Contains(err.Error(), "UnlessCancelled needs a store") {
		t.Errorf("Stream: %v, want ErrNoStore of UnlessCancelled", err)
	}
	var refused *dispatcher.OptionError
	if _, err := d.Start(t.Context(), run, nil, dispatcher.UnlessCancelled()); !errors.As(err, &refused) {
		t.Errorf("Start: %v, want an OptionError", err)
	}
	for want, beside := range map[string]dispatcher.RunOption{"UnlessCancelled": dispatcher.UnlessCancelled(), "OrStart": dispatcher.OrStart()} {
		for _, failed := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}, dispatcher.UnlessCancelled(), beside) {
			err = failed
		}
		if !errors.As(err, &refused) || refused.Option != want || strings.HasSuffix(refused.Reason, "and Stream") {
			t.Errorf("Stream with what a Stream refuses beside it: %v, want an OptionError of %s", err, want)
		}
	}
}
