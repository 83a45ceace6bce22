package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A restsLate is a store in which something happens once, just before an entry of a kind is
// appended.
type restsLate struct {
	*memory.Store
	before checkpoint.Kind
	do     func()
}

func (s *restsLate) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, all []checkpoint.Entry) (checkpoint.Head, error) {
	if do := s.do; do != nil && slices.ContainsFunc(all, func(e checkpoint.Entry) bool { return e.Kind == s.before }) {
		s.do = nil
		do()
	}
	return s.Store.Append(ctx, l, after, all)
}

// asksTwo has two visits that ask, side by side.
func asksTwo(t *testing.T) *dag.Graph[Tale] {
	b := dag.New[Tale]("two")
	ask := func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[string](ctx, "q", "?")
		return err
	}
	dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, dag.Step(b, "x", ask), dag.Step(b, "y", ask))
	return frozen(t, b)
}

// An answer that is accepted while the run comes to rest is heard by the call that is at work on
// it: who has answered and then wants to go on is told that somebody is.
func TestAnAnswerWhileTheRunComesToRest(t *testing.T) {
	t.Parallel()
	for _, watches := range []bool{true, false} {
		all := &restsLate{Store: new(memory.Store), before: checkpoint.Waiting}
		var store checkpoint.Store = all
		if !watches {
			store = struct{ checkpoint.Store }{all}
		}
		d := process(t, asksTwo(t), store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "1"); err != nil {
			t.Fatal(err)
		}
		all.do = func() {
			if err := d.Answer(t.Context(), run, res.Interrupts[1].ID, "2"); err != nil {
				t.Error(err)
			}
			if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
				t.Errorf("who has answered goes on, and is told %v, want ErrBusy", err)
			}
		}
		again, err := d.Run(t.Context(), run, nil)
		completes(t, again, err)
		sameMachine(t, d, run)
	}
}

// A cancel that comes when nothing is left of a run came too late, and cancels nothing when the run
// is rewound: neither one that its call could still hear of, nor one that it has left.
func TestACancelThatCameTooLateIsNoneOfTheRewoundRun(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
	g := frozen(t, b)
	for _, left := range []bool{false, true} {
		store := &restsLate{Store: new(memory.Store), before: checkpoint.Completed}
		d := process(t, g, store, dispatcher.Options{})
		store.do = func() {
			if err := d.Cancel(t.Context(), run, errors.New("too late")); err != nil {
				t.Error(err)
			}
		}
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
			t.Errorf("behind the run the store holds %d messages, %v", len(posts), err)
		}
		if left {
			if err := store.Post(t.Context(), run, checkpoint.Post{ID: "cancel:left", Kind: "cancel", Data: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if is, err := d.State(t.Context(), run); err != nil || is.Status != checkpoint.StatusPending {
			t.Errorf("left %t: the rewound run is %s, %v", left, is.Status, err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
	}
}

// Who has given a run input that its call does not take any more gets the run when that call has
// given it back.
func TestInputWhileACompletedRunIsLetGoOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // whoever waits for the run does so for a moment, in which the other one may not have been let on
		b := dag.New[Tale]("line")
		dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
		store := &refusals{Store: new(memory.Store), refused: make(chan struct{}, 100)}
		var d *dispatcher.Dispatcher[Tale]
		ran := make(chan error, 1)
		first := true
		d = process(t, frozen(t, b), store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: func(ctx context.Context, _ dispatcher.End) error {
			if !first {
				return nil
			}
			first = false
			err := d.Enqueue(ctx, run, func(s *Tale) { s.Word.Set("more") })
			go func() {
				_, err := d.Run(t.Context(), run, nil)
				ran <- err
			}()
			<-store.refused
			return err
		}}})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if err := <-ran; err != nil {
			t.Errorf("the run with the input returns %v", err)
		}
		if is, err := d.State(t.Context(), run); err != nil || is.State.Word.Get() != "more" {
			t.Errorf("the run has %q, %v, want the input", is.State.Word.Get(), err)
		}
	})
}

// A refusals is a store that tells when somebody could not have a lease.
type refusals struct {
	*memory.Store
	refused chan struct{}
}

func (s *refusals) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, owner)
	if err != nil {
		s.refused <- struct{}{}
	}
	return l, err
}

// A note and a tag that are accepted while a run is let go of are in its log behind the call.
func TestANoteWhileARunIsLetGoOf(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
	store := new(memory.Store)
	var d *dispatcher.Dispatcher[Tale]
	var observed []dispatcher.EventKind
	d = process(t, frozen(t, b), store, dispatcher.Options{
		Observe: func(e dispatcher.Event) { observed = append(observed, e.Kind) },
		Hooks: dispatcher.Hooks{OnEnd: func(ctx context.Context, e dispatcher.End) error {
			return errors.Join(d.Note(ctx, run, "billing.ended", string(e.Status)), d.Tag(ctx, run, "", "end"))
		}},
	})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if n := len(observed); n < 2 || !slices.Equal(observed[n-2:], []dispatcher.EventKind{dispatcher.Noted, dispatcher.CheckpointTagged}) {
		t.Errorf("the observer was told of %v, want the note and the tag last", observed)
	}
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 || len(res.Warnings) > 0 {
		t.Errorf("behind the run the store holds %d messages, %v; warnings %q", len(posts), err, res.Warnings)
	}
	var kinds []checkpoint.Kind
	for _, e := range readLog(t, store) {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, checkpoint.Tagged) || !slices.Contains(kinds, checkpoint.Noted) {
		t.Errorf("the log tells of %q, want the note and the tag", kinds)
	}
}

// Of a run that rests they are taken by the next call: the cursor that this one returns is where
// the run stands.
func TestANoteWhileARunThatWaitsIsLetGoOf(t *testing.T) {
	t.Parallel()
	var d *dispatcher.Dispatcher[Tale]
	d = process(t, asksTwo(t), new(memory.Store), dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: func(ctx context.Context, e dispatcher.End) error {
		return d.Note(ctx, run, "ended", string(e.Status))
	}}})
	res, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run, dispatcher.From(res.Cursor),
		dispatcher.Answering(res.Interrupts[0].ID, "1"), dispatcher.Answering(res.Interrupts[1].ID, "2"))
	completes(t, res, err)
}

// A leaving is an answer that ends the goroutine of whoever encodes it.
type leaving struct{}

func (leaving) MarshalJSON() ([]byte, error) {
	runtime.Goexit()
	return nil, nil
}

// An answer that ends the goroutine of a Stream that is to give it is no end of the run.
func TestStreamOfAnAnswerThatExits(t *testing.T) {
	t.Parallel()
	d := process(t, asksTwo(t), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	items := d.Stream(t.Context(), run, nil, dispatcher.Listen{Since: dispatcher.Now}, dispatcher.Answering(res.Interrupts[0].ID, leaving{}))
	for item, err := range items {
		var fault *dispatcher.FaultError
		if item.Result != nil && !errors.As(err, &fault) {
			t.Errorf("the stream ends with %v and the status %q, want a FaultError", err, item.Result.Status)
		}
	}
}
