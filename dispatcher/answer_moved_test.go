package dispatcher_test

import (
	"context"
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
