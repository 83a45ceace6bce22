package storetest

import (
	"io"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// follow follows a run until the test ends.
func follow(t *trial, s checkpoint.Store, run string) <-chan struct{} {
	t.Helper()
	f, ok := s.(checkpoint.Follower)
	if !ok {
		t.Skip("the store is no Follower")
	}
	grown, stop := f.Follow(run)
	t.Cleanup(func() {
		stop()
		stop()
	})
	return grown
}

// wakes waits until a follower, or a watcher, is woken, or the case is abandoned.
func wakes(t *trial, grown <-chan struct{}, by string) {
	t.Helper()
	select {
	case <-grown:
	case <-t.ctx.Done():
		t.Fatalf("who waits was not woken by %s", by)
	}
}

// sleeps checks that a follower, or a watcher, was not woken by what is over.
func sleeps(t *trial, grown <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-grown:
		t.Errorf("who waits was woken %s", what)
	default:
	}
}

// forget takes all that a follower, or a watcher, may have been told.
func forget(grown <-chan struct{}) {
	for open := true; open; {
		select {
		case _, open = <-grown:
		default:
			return
		}
	}
}

// Who follows a run is woken by an append to it, and only to it, and sees the append then. A
// run can be followed before it is there.
func appendWakesFollowers(t *trial, s checkpoint.Store) {
	first, second, other := follow(t, s, "run"), follow(t, s, "run"), follow(t, s, "other")
	l, head := begun(t, s, "run")
	for i := range 3 {
		wakes(t, first, "an append")
		if got := stat(t, s, "run").Head; got != head {
			t.Errorf("the follower was woken and sees the head at %d, not %d", got.Seq, head.Seq)
		}
		head = add(t, s, l, head, done(i))
	}
	wakes(t, second, "four appends") // it may be told of several as one
	sleeps(t, other, "by an append to another run")
}

// Who follows a run is woken by whatever makes its log grow: also a Fork that makes it, a Trim, and
// a Restore.
func growthWakesFollowers(t *trial, s checkpoint.Store) {
	grown := follow(t, s, "run")
	fork(t, s, small(1), "run")
	wakes(t, grown, "a Fork")
	trim(t, s, "run", 2, small(2))
	wakes(t, grown, "a Trim")
	erase(t, s, "run")
	wakes(t, grown, "a deletion")
	a := archiver(t, s)
	envelopes, _ := archived(t)
	if _, err := a.Restore(t.Context(), owned(t, s, "run"), archive(lent(envelopes))); err != nil {
		t.Fatal(err)
	}
	wakes(t, grown, "a Restore")
}

// A follower that looks whenever it is woken sees every append, while they go on.
func followersMissNoAppend(t *trial, s checkpoint.Store) {
	const appends = 200
	grown := follow(t, s, "run")
	l, head := begun(t, s, "run")
	var failed error
	var writer sync.WaitGroup
	t.beside(&writer, func() {
		for i := 0; i < appends && failed == nil; i++ {
			head, failed = s.Append(t.Context(), l, head, []checkpoint.Entry{done(i)})
		}
	})
	defer writer.Wait()
	for stat(t, s, "run").Head.Seq < appends+1 {
		wakes(t, grown, "an append while others go on")
	}
	if writer.Wait(); failed != nil {
		t.Errorf("Append = %v", failed)
	}
}

// Who follows a run learns that it was deleted, and that the store was closed.
func endOfALogWakesFollowers(t *trial, s checkpoint.Store) {
	rested(t, s, "run")
	gone, closing := follow(t, s, "run"), follow(t, s, "never")
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatalf("Delete = %v", err)
	}
	wakes(t, gone, "the deletion")
	_, err := s.Stat(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrNotFound, "Stat of a deleted run")
	if _, ok := s.(io.Closer); !ok {
		return
	}
	closed(t, s)
	wakes(t, closing, "closing the store")
	_, err = s.Stat(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrClosed, "Stat of a closed store")
}
