package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who answers has looked where the run stands before the answer is posted. Somebody else may take
// the post, and go on with the run, before it is drained: the answer counts, and once.
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

// If what has become of an answer is gone already when who gave it looks, for the run has gone on
// and was trimmed, that is not known: nobody is told that the answer did not count.
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

// Somebody may change the run between the look and the answer: the answer is drained all the same,
// and nobody is told any more that the question waits.
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

// A postingStore calls posted once, behind the next post. Until then somebody else has the run for
// a moment, so that who answers posts.
type postingStore struct {
	checkpoint.Store
	posted func()
}

func (s *postingStore) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if s.posted != nil {
		return checkpoint.Lease{}, &checkpoint.BusyError{Run: run, Owner: "somebody else"}
	}
	return s.Store.Acquire(ctx, run, owner)
}

func (s *postingStore) Post(ctx context.Context, run string, p checkpoint.Post) error {
	err := s.Store.Post(ctx, run, p)
	if posted := s.posted; posted != nil && err == nil {
		s.posted = nil
		posted()
	}
	return err
}

// Two answer at once, and one of them is late: it posts under a number that was drained by then.
// Whoever is refused has changed nothing: the cursor of the other one is good, and what was posted
// late never counts.
func TestAnswerThatIsLateMovesNoCursor(t *testing.T) {
	for said, want := range map[string]error{"that": dispatcher.ErrNotAwaited, "this": nil} { // what is said twice is one answer
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		close(free)
		g := asking(t, &w, free)
		first := process(t, g, &inner, dispatcher.Options{})
		res, err := first.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		id := res.Interrupts[0].ID

		var cursor checkpoint.Cursor
		slow := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
			if c.method == "Acquire" && c.n == 1 {
				return &checkpoint.BusyError{Run: run, Owner: "somebody else"}
			}
			if c.method != "Post" || c.n > 1 {
				return nil
			}
			if err := first.Answer(ctx, run, id, "this"); err != nil {
				t.Error(err)
			}
			res, err := first.State(ctx, run)
			cursor = res.Cursor
			return err
		}}
		if err := process(t, g, slow, dispatcher.Options{}).Answer(t.Context(), run, id, said); !errors.Is(err, want) {
			t.Errorf("%q behind %q: Answer = %v, want %v", said, "this", err, want)
		}
		if info, err := inner.Stat(t.Context(), run); err != nil || info.Head.Seq != cursor.Seq {
			t.Errorf("%q: the head is %d, %v, want %d as before", said, info.Head.Seq, err, cursor.Seq)
		}
		if err := first.Answer(t.Context(), run, id, "then"); !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("%q: another answer = %v, want ErrNotAwaited", said, err)
		}
		res, err = first.Resume(t.Context(), run, dispatcher.From(cursor))
		completes(t, res, err)
		if got := res.State.Word.Get(); got != "this" {
			t.Errorf("the node got %q, want this", got)
		}
		if posts, err := inner.Posts(t.Context(), run); err != nil || len(posts) > 0 {
			t.Errorf("%q: behind the end of the run %v wait, %v", said, posts, err)
		}
	}
}

// A resume ends what waits before a visit. Who answers that at the same moment, and posts the
// answer behind what the resume has looked at, is told that it comes too late, also while whoever
// has the run has not drained it yet.
func TestAnswerBesideAResumeThatEndsThePause(t *testing.T) {
	var w witness
	inner := new(memory.Store)
	store := &postingStore{Store: inner} // it tells nobody what was posted
	begun, free := make(chan struct{}), make(chan struct{})
	g := line(t, &w, func(ctx context.Context, s *Tale) error {
		if visitPath(ctx) == "b" {
			close(begun)
			<-free
		}
		return nil
	})
	o := dispatcher.Options{InterruptBefore: []string{"b"}}
	d := process(t, g, store, o)
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	ended := make(chan error, 1)
	store.posted = func() {
		go func() {
			res, err := process(t, g, &lateStore{Store: inner}, o).Resume(t.Context(), run)
			if err == nil && res.Status != checkpoint.StatusCompleted {
				err = errors.New("the run is " + string(res.Status))
			}
			ended <- err
		}()
		<-begun
	}
	refused(t, d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject), dispatcher.ErrNotAwaited)
	close(free)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A lateStore tells nothing at the first look of what was posted: that was a moment before. It is
// no Watcher.
type lateStore struct {
	checkpoint.Store
	looked bool
}

func (s *lateStore) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	if !s.looked {
		s.looked = true
		return nil, nil
	}
	return s.Store.Posts(ctx, run)
}
