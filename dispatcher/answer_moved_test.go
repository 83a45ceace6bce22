package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who answers has looked where the run stands before the answer is posted. Somebody else may take the
// post, and go on with the run, before it is drained: the answer counts, and once.
func TestAnswerIsTakenBySomebodyElse(t *testing.T) {
	inner := new(memory.Store)
	store := &postingStore{Store: inner}
	g := askChain(t, 3)
	d := callsDispatcher(t, g, store, dispatcher.Options{})
	r, err := d.Start(t.Context(), run, nil)
	rests(t, r, err, checkpoint.StatusInterrupted, "node-2")
	var last uint64
	store.posted = func() {
		r, err := callsDispatcher(t, g, inner, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, r, err)
		last = r.Cursor.Seq
	}
	if err := d.Answer(t.Context(), run, r.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if r, err = d.Run(t.Context(), run, nil); last == 0 || r.Cursor.Seq != last {
		t.Errorf("the run ends at entry %d, and ended at %d", r.Cursor.Seq, last)
	}
	completes(t, r, err)
}

// If what has become of an answer is gone already when who gave it looks, for the run has gone on and was trimmed, that is
// not known: nobody is told that the answer did not count.
func TestAnswerIsTakenAndTrimmedBySomebodyElse(t *testing.T) {
	inner := new(memory.Store)
	store := &postingStore{Store: inner}
	g := askChain(t, 9)
	d := callsDispatcher(t, g, store, dispatcher.Options{})
	r, err := d.Start(t.Context(), run, nil)
	rests(t, r, err, checkpoint.StatusInterrupted, "node-8")
	store.posted = func() {
		other := callsDispatcher(t, g, inner, dispatcher.Options{})
		r, err := other.Run(t.Context(), run, nil)
		completes(t, r, err)
		if err := other.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Answer(t.Context(), run, "", true); !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, checkpoint.ErrTrimmed) {
		t.Errorf("Answer = %v, want ErrCommitUnknown, since what became of it was trimmed", err)
	}
}

// Somebody may change the run between the look and the answer: the answer is drained all the same, and nobody is told
// any more that the question waits.
func TestAnswerBesideAnEditIsDrained(t *testing.T) {
	inner := new(memory.Store)
	store := &postingStore{Store: inner}
	g := askChain(t, 3)
	d := callsDispatcher(t, g, store, dispatcher.Options{})
	r, err := d.Start(t.Context(), run, nil)
	rests(t, r, err, checkpoint.StatusInterrupted, "node-2")
	store.posted = func() {
		other := callsDispatcher(t, g, inner, dispatcher.Options{})
		if err := other.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Answer(t.Context(), run, "", true); err != nil {
		t.Fatal(err)
	}
	if posts, err := inner.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("%d messages wait, %v, behind an answer to a run at rest", len(posts), err)
	}
	if r, err = d.State(t.Context(), run); err != nil || len(r.Interrupts) > 0 || r.State.Count.Get() != 1 {
		t.Errorf("%d questions wait in %+v, %v", len(r.Interrupts), r.State, err)
	}
	r, err = d.Run(t.Context(), run, nil)
	completes(t, r, err)
}

// A postingStore calls posted once, behind the next post.
type postingStore struct {
	checkpoint.Store
	posted func()
}

func (s *postingStore) Post(ctx context.Context, run string, p checkpoint.Post) error {
	err := s.Store.Post(ctx, run, p)
	if posted := s.posted; posted != nil && err == nil {
		s.posted = nil
		posted()
	}
	return err
}
