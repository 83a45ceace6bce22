package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run is rewound to a checkpoint of an earlier turn: it is in that turn again. What is done again
// has a key of its own, so has the next turn, which is another second one; and answers of the turn
// that was abandoned are none of it.
func TestRewoundTurnHasOtherKeysAndAnswers(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		quiet(t)
		var keys []string
		b := dag.New[Tale]("turns")
		ask := dag.Step(b, "ask", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "word", "which?")
			s.Word.Set(word)
			return err
		})
		dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
			said, err := dag.Effect(ctx, "charge", s.Word.Get(), func(ctx context.Context, word string) (string, error) {
				keys = append(keys, dag.Key(ctx))
				return "paid " + word, nil
			})
			s.Said.Append(said)
			return err
		}, ask)
		d := callsDispatcher(t, frozen(t, b), store, o)
		ends := func(turn int, word string, res *dispatcher.Result[Tale], err error) {
			t.Helper()
			rests(t, res, err, checkpoint.StatusInterrupted, "ask")
			if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, word); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			if completes(t, res, err); res.Turn != turn {
				t.Errorf("the run is in turn %d, want %d", res.Turn, turn)
			}
		}
		res, err := d.Run(t.Context(), run, nil)
		ends(1, "one", res, err)
		res, err = d.Turn(t.Context(), run, nil)
		ends(2, "two", res, err)
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		sameMachine(t, d, run)
		res, err = d.Run(t.Context(), run, nil) // its question was answered before the checkpoint
		if completes(t, res, err); res.Turn != 1 {
			t.Errorf("the rewound run is in turn %d", res.Turn)
		}
		says(t, res.State, "paid one")
		res, err = d.Turn(t.Context(), run, nil)
		ends(2, "another", res, err)
		res, err = d.State(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		says(t, res.State, "paid one", "paid another")
		want := []string{"tale/pay#charge", "tale/2/pay#charge", "tale~1/pay#charge", "tale~1/2/pay#charge"}
		if !slices.Equal(keys, want) {
			t.Errorf("paid under %q, want %q", keys, want)
		}
		sameMachine(t, d, run)
	})
}

// A replayable effect that was approved is in flight at the checkpoint. Behind a rewind it goes on
// under its key and the approval that it has begun with: nobody is asked again, and once it has
// ended the approval is spent.
func TestRewoundGatedEffectInFlight(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		quiet(t)
		var keys []string
		begun, looped := make(chan struct{}), make(chan struct{})
		body := dag.New[Tale]("body")
		dag.Step(body, "in", func(_ context.Context, s *Tale) error {
			<-begun
			s.Count.Add(1)
			return nil
		})
		b := dag.New[Tale]("beside")
		dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 2 }, 3)
		dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", 1, func(ctx context.Context, _ int) (int, error) {
				if keys = append(keys, dag.Key(ctx)); len(keys) == 1 {
					close(begun)
					<-looped
					return 0, errDoubtReset
				}
				return 1, nil
			}, dag.Replayable)
			return err
		})
		g := frozen(t, b)
		o.Gates, o.InterruptBefore = gatesCharge.Gates, []string{"loop/1/in"}
		res, err := callsDispatcher(t, g, store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/in", "pay")
		first := o
		first.Observe = func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitDone && e.Path == "loop" {
				close(looped)
			}
		}
		d := callsDispatcher(t, g, store, first)
		if err := d.Answer(t.Context(), run, gatesWaits(t, "the first call", res).ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		d = callsDispatcher(t, g, store, o)
		if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if want := []string{"tale/pay#charge", "tale/pay#charge"}; !slices.Equal(keys, want) {
			t.Errorf("done under %q, want %q", keys, want)
		}
		asked := slices.Sorted(slices.Values(kinds(readLog(t, store), checkpoint.Interrupted)))
		gatesSame(t, "the visits that waited", asked, []string{"interrupted loop/1/in", "interrupted pay"})
		sameMachine(t, d, run)
	})
}

// An id of a message that was drained stays used, whatever the message says (while it waits another
// one is refused): behind a rewind to before what it brought too, which a message with another id
// brings again.
func TestRewoundMessageIsNotTakenAgain(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		b := dag.New[Tale]("chat")
		dag.Step(b, "hear", nothing[Tale])
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		enqueue := func(id, word string) error {
			return d.Enqueue(t.Context(), run, func(s *Tale) { s.Said.Append(word) }, dispatcher.Message(id))
		}
		says := func(id, word string, turn int, said ...string) {
			t.Helper()
			if err := enqueue(id, word); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			res, err := d.Run(t.Context(), run, nil)
			if completes(t, res, err); res.Turn != turn || !slices.Equal(res.State.Said.Slice(), said) {
				t.Errorf("behind %s the run is in turn %d, and says %q", id, res.Turn, res.State.Said.Slice())
			}
		}
		var option *dispatcher.OptionError
		if err := enqueue("m1", "one"); err != nil {
			t.Fatal(err)
		}
		if err := enqueue("m1", "something else"); !errors.As(err, &option) || option.Option != "Message" {
			t.Errorf("another input beside one of its name that waits: %v", err)
		}
		says("m1", "one", 2, "one")
		says("m1", "something else", 2, "one")
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		says("m1", "one", 1)
		says("m2", "one", 2, "one")
	})
}

// An effect that is in doubt in one turn is none of another one, though it has the same visit and
// key: a rewind to a checkpoint where that of the earlier turn is in doubt would forget to ask what
// came of the later one.
func TestRewindForgetsNoDoubtOfALaterTurn(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		side := &doubtSide{fails: 2, mute: true}
		b := dag.New[Tale]("turns")
		dag.Step(b, "pay", side.pay())
		dag.Step(b, "wait", func(context.Context, *Tale) error { return nil })
		o.InterruptBefore = []string{"wait"}
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "wait")
		if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
			t.Fatal(err)
		}
		edited, err := d.State(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		at := dispatcher.Checkpoint{Run: run, Seq: edited.Cursor.Seq}.Address()
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		res, err = d.Turn(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "wait")
		unchanged(t, store, run, func() {
			if err := d.Rewind(t.Context(), run, at, dispatcher.RewindOptions{}); !errors.Is(err, dag.ErrInDoubt) {
				t.Errorf("a rewind that would forget a doubt returns %v", err)
			}
		})
		if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("by hand")); err != nil {
			t.Fatal(err)
		}
		if err := d.Rewind(t.Context(), run, at, dispatcher.RewindOptions{}); err != nil {
			t.Error(err)
		}
		if e := doubtOpened(t, d).Effects[0]; !e.InDoubt { // what came of the later one is nothing about it
			t.Errorf("once the run has gone back it is %s", e)
		}
	})
}
