package badgerstore_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// wantPosts holds that these are the messages of a run.
func wantPosts(t *testing.T, s *badgerstore.Store, run string, ids ...string) {
	t.Helper()
	posts, err := s.Posts(t.Context(), run)
	var got []string
	for _, p := range posts {
		got = append(got, p.ID)
	}
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("the messages of %q are %q, %v, want %q", run, got, err, ids)
	}
}

// inboxRun is a store with a run, whose lease is held.
func inboxRun(t *testing.T) (*badgerstore.Store, checkpoint.Lease, checkpoint.Head) {
	t.Helper()
	s := openUnsynced(t, t.TempDir())
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	return s, l, info.Head
}

// Who has asked for the messages of a run is told the next time without a look at all that were
// ever drained: what somebody else has put beside them is not found until the run is loaded again,
// and one that is gone is missed.
func TestPostsAreNotLookedForAgain(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	wantPosts(t, s, "run", "b")
	num := badgerstore.NumberOf(t, s, "run")
	key, beside := badgerstore.PostKey(num, "b"), badgerstore.PostKey(num, "a")
	value := valuesOf(t, s)[string(key)]
	put(t, s, beside, badgerstore.Reframe(t, key, beside, value, nil))
	wantPosts(t, s, "run", "b")
	put(t, s, key, nil)
	if _, err := s.Posts(t.Context(), "run"); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Posts without the message that waits = %v, want ErrCorrupt", err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := forkstoreGrow(t.Context(), s, "other", 1); err != nil { // behind it the run is forgotten
		t.Fatal(err)
	}
	wantPosts(t, s, "run", "b") // as what stands beside it says
}

// However many messages come and go, and whoever asks when, Posts tells those that wait; those of a
// run that was deleted are not those of the next one of its id.
func TestPostsComeAndGo(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	for round := range 2 {
		if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
			t.Fatal(err)
		}
		wantPosts(t, s, "run")
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Stat(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range 150 { // which is more than are remembered
			ids = append(ids, fmt.Sprintf("%03d", i))
			if err := s.Post(t.Context(), "run", checkpoint.Post{ID: ids[i]}); err != nil {
				t.Fatal(err)
			}
			if i%7 < 3 {
				wantPosts(t, s, "run", ids...)
			}
		}
		for head := info.Head; len(ids) > 3*(1-round); ids = ids[3:] {
			entries := []checkpoint.Entry{
				{Kind: checkpoint.Noted, Post: ids[2]}, {Kind: checkpoint.Noted, Post: ids[0]}, {Kind: checkpoint.Noted, Post: ids[1]},
			}
			if head, err = s.Append(t.Context(), l, head, entries); err != nil {
				t.Fatal(err)
			}
			wantPosts(t, s, "run", ids[3:]...)
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "run"); err != nil {
			t.Fatal(err)
		}
	}
}

// What was found is not kept if a message was posted or drained before it could be.
func TestPostsWhileOneIsPosted(t *testing.T) {
	t.Parallel()
	s, l, head := inboxRun(t)
	for _, id := range []string{"a", "b"} { // for the first nothing is known yet
		s.PostsWhile(t, "run", func() {
			if err := s.Post(t.Context(), "run", checkpoint.Post{ID: id}); err != nil {
				t.Fatal(err)
			}
		})
	}
	wantPosts(t, s, "run", "a", "b")
	s.PostsWhile(t, "run", func() {
		if _, err := s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Noted, Post: "a"}}); err != nil {
			t.Fatal(err)
		}
	})
	wantPosts(t, s, "run", "b")
}

// Who asks for messages beside those who post and drain them is told every one that waits all the
// while, and none that did not wait meanwhile.
func TestPostsBesideThoseWhoPost(t *testing.T) {
	t.Parallel()
	s, l, head := inboxRun(t)
	const messages = 500
	id := func(i int64) string { return fmt.Sprintf("%04d", i) }
	var posting, posted, draining, drained atomic.Int64
	waits := make(chan int64, messages)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(waits)
		for i := range int64(messages) {
			posting.Store(i + 1)
			if err := s.Post(t.Context(), "run", checkpoint.Post{ID: id(i)}); err != nil {
				t.Error(err)
				return
			}
			posted.Store(i + 1)
			waits <- i
		}
	})
	all.Go(func() {
		for i := range waits {
			draining.Store(i + 1)
			var err error
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Noted, Post: id(i)}}); err != nil {
				t.Error(err)
				return
			}
			drained.Store(i + 1)
		}
	})
	for drained.Load() < messages && !t.Failed() {
		first, last := drained.Load(), posted.Load()
		posts, err := s.Posts(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{}
		for _, p := range posts {
			told[p.ID] = true
			if p.ID < id(first) || p.ID >= id(posting.Load()) {
				t.Errorf("message %s is told, though it did not wait", p.ID)
			}
		}
		for i := draining.Load(); i < last; i++ {
			if !told[id(i)] {
				t.Errorf("message %s waits, and is not told", id(i))
			}
		}
	}
	all.Wait()
	wantPosts(t, s, "run")
}

// The messages of a run that has just begun are not looked for: there are none. What somebody else
// has put where they would be is not found.
func TestPostsOfARunThatHasJustBegun(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	if err := forkstoreGrow(t.Context(), s, "other", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), "other", checkpoint.Post{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	key := badgerstore.PostKey(badgerstore.NumberOf(t, s, "other"), "a")
	value := valuesOf(t, s)[string(key)]
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	beside := badgerstore.PostKey(badgerstore.NumberOf(t, s, "run"), "a")
	put(t, s, beside, badgerstore.Reframe(t, key, beside, value, nil))
	wantPosts(t, s, "run")
	if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	wantPosts(t, s, "run", "b")
	wantPosts(t, s, "other", "a")
}
