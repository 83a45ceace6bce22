package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A question that has its answer keeps it, though the call that gives it says that its time is
// over.
func TestAnsweringBesideExpire(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("asks")
	dag.Step(b, "node", func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?", dag.Within(time.Hour))
		s.Word.Set(word)
		return err
	})
	d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "node")
	id := res.Interrupts[0].ID
	res, err = d.Resume(t.Context(), run, dispatcher.Answering(id, "this"), dispatcher.Expire(id))
	completes(t, res, err)
	if got := res.State.Word.Get(); got != "this" {
		t.Errorf("the node got %q, want this", got)
	}
}

// Who cancels a run at rest is heard, though somebody answers in the call that goes on, and has to
// look again for what a third one has posted.
func TestAnsweringBesideACancelAndAnAnswer(t *testing.T) {
	var inner memory.Store
	d, id := waiting(t, &inner, 3)
	slow := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if k.method != "Append" || k.n > 1 {
			return nil
		}
		return errors.Join(d.Answer(ctx, run, id, true, dispatcher.Author("Ada")), d.Cancel(ctx, run, nil, dispatcher.Author("Bob")))
	}}
	by := callsDispatcher(t, askChain(t, 3), slow, dispatcher.Options{})
	_, err := by.Continue(t.Context(), run, dispatcher.Answering(id, true), dispatcher.Author("Eve"))
	if err == nil {
		t.Error("the call returned nil, want a refusal")
	}
	var kinds []checkpoint.Kind
	for e, err := range inner.Read(t.Context(), run, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, checkpoint.Cancelled) {
		t.Errorf("the log has %v, want that the run was cancelled", kinds)
	}
	r, err := d.Run(t.Context(), run, nil)
	completes(t, r, err)
	if all := askAnswers(t, &inner, run); len(all) != 1 || all[id].By != "Ada" {
		t.Errorf("the log has the answers %+v, want Ada's", all)
	}
}

// An answer whose append does not return is named, and nobody says that it counts or doesn't.
func TestAnsweringOverAnAppendThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		_, id := waiting(t, &inner, 3)
		hung := make(chan struct{})
		store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
			if k.method == "Append" && k.n == 1 {
				<-hung
			}
			return nil
		}}
		d := callsDispatcher(t, askChain(t, 3), store, dispatcher.Options{Grace: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		res, err := d.Continue(ctx, run, dispatcher.Answering(id, true))
		if !errors.Is(err, dispatcher.ErrStuck) || !errors.Is(err, checkpoint.ErrCommitUnknown) {
			t.Errorf("the call returned %v, want ErrStuck and ErrCommitUnknown", err)
		}
		if len(res.Abandoned) != 1 || !strings.Contains(res.Abandoned[0], "append") {
			t.Errorf("abandoned was %q, want an append", res.Abandoned)
		}
		close(hung)
		synctest.Wait()
		r, err := d.Run(t.Context(), run, nil, dispatcher.Answering(id, true)) // the store has heeded its context
		completes(t, r, err)
	})
}

// An Answer of whose append nobody knows the outcome is given again: it counts, or was in the log
// and is refused; under a Message it is one answer in either case.
func TestAnswerGivenAgainBehindAnUnknownAppend(t *testing.T) {
	for _, fault := range []memory.Fault{memory.Vanished, memory.Applied} {
		for _, named := range []bool{false, true} {
			s := new(memory.Faulty)
			d, id := waiting(t, s, 3)
			var options []dispatcher.RunOption
			if named {
				options = append(options, dispatcher.Message("once"))
			}
			s.Fail = func(context.Context, memory.Write) memory.Fault { return fault }
			if err := d.Answer(t.Context(), run, id, true, options...); !errors.Is(err, checkpoint.ErrCommitUnknown) {
				t.Errorf("the first answer returned %v", err)
			}
			s.Fail = nil
			var want error
			if fault == memory.Applied && !named {
				want = dispatcher.ErrNotAwaited
			}
			if err := d.Answer(t.Context(), run, id, true, options...); !errors.Is(err, want) {
				t.Errorf("fault %v, with a Message: %t: again = %v, want %v", fault, named, err, want)
			}
			r, err := d.Run(t.Context(), run, nil)
			completes(t, r, err)
			if all := askAnswers(t, s, run); len(all) != 1 {
				t.Errorf("the log has the answers %+v", all)
			}
		}
	}
}

// A call whose answer is refused has changed nothing, and the next one reads no log.
func TestAnsweringRefusedKeepsTheMachine(t *testing.T) {
	var inner memory.Store
	reads := 0
	store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
		if k.method == "Read" {
			reads++
		}
		return nil
	}}
	d, id := waiting(t, store, 3)
	if _, err := d.Continue(t.Context(), run, dispatcher.Answering(id, "perhaps")); !errors.Is(err, dispatcher.ErrAnswerType) {
		t.Fatal(err)
	}
	if res, err := d.Continue(t.Context(), run, dispatcher.Answering(id, true)); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("the run is %s, %v", res.Status, err)
	}
	if reads > 0 {
		t.Errorf("the log was read %d times, want never", reads)
	}
}

// An awkward answer has code of its own.
type awkward string

var decoding func(string) error

func (a awkward) MarshalJSON() ([]byte, error) { return []byte(a), nil }

func (a *awkward) UnmarshalJSON(raw []byte) error {
	*a = awkward(raw)
	return decoding(string(raw))
}

// Code that decodes an answer may break or end its goroutine: the call says so, nothing has
// changed, and the process lives.
func TestAnsweringWhatCantBeDecoded(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func()
		is     func(error) bool
	}{
		"panic": {func() { panic("no") }, func(err error) bool { return errors.Is(err, dispatcher.ErrAnswerType) }},
		"exit": {runtime.Goexit, func(err error) bool {
			var fault *dispatcher.FaultError
			return errors.As(err, &fault) && fault.Kind == "answer"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			b := dag.New[Tale]("asks")
			dag.Step(b, "node", func(ctx context.Context, _ *Tale) error {
				_, err := dag.Ask[awkward](ctx, "word", "which?")
				return err
			})
			d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "node")
			decoding = func(string) error { c.breaks(); return nil }
			if _, err := d.Continue(t.Context(), run, dispatcher.Answering("", "x")); !c.is(err) {
				t.Errorf("the call returned %v", err)
			}
			decoding = func(string) error { return nil }
			if info, err := store.Stat(t.Context(), run); err != nil || info.Head.Seq != res.Cursor.Seq || info.Owner != "" {
				t.Errorf("the run is at entry %d, of %q, %v, want %d, of nobody", info.Head.Seq, info.Owner, err, res.Cursor.Seq)
			}
			if res, err := d.Continue(t.Context(), run, dispatcher.Answering("", "x")); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("the run is %s, %v", res.Status, err)
			}
		})
	}
}
