package badgerstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A transaction that could not be made has taken no number: what is written behind it is found by
// who opens the store when this process has died.
func TestRefusedTransactionTakesNoNumber(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	// Badger keeps such keys to itself.
	if err := s.Put(t.Context(), []byte("!badger!key"), []byte("value")); err == nil || errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("a key that can't be = %v, want an error that is not ErrCommitUnknown", err)
	}
	if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
		t.Fatal(err)
	}
	wantHead(t, open(t, copyDir(t, dir)), head)
}

// A message is for the run that it was posted to: if that is deleted meanwhile, and another one has
// its id, the message is refused, and nothing is left of it.
func TestPostToARunThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	const word = "for the run that was"
	cipher := &waitingCipher{Cipher: o.Cipher, word: word, began: make(chan struct{}), goOn: make(chan struct{})}
	o.Cipher = cipher
	s := openWith(t, t.TempDir(), o)
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	posted := make(chan error)
	go func() { // received below
		posted <- s.Post(t.Context(), "run", checkpoint.Post{ID: "post", Kind: "answer", Data: []byte(`"` + word + `"`)})
	}()
	<-cipher.began // it has found the run
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	close(cipher.goOn)
	if err := <-posted; !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Post to a run that is gone = %v, want ErrNotFound", err)
	}
	if posts, err := s.Posts(t.Context(), "run"); err != nil || len(posts) > 0 {
		t.Errorf("the run that has its id was given %v, %v", posts, err)
	}
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}

// A waitingCipher waits when it is to seal what contains a word.
type waitingCipher struct {
	checkpoint.Cipher
	word        string
	began, goOn chan struct{}
}

func (c *waitingCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	if strings.Contains(string(plain), c.word) {
		close(c.began)
		<-c.goOn
	}
	return c.Cipher.Seal(dst, plain, place)
}

// A shortOfRoom is a store that finds no room for a group: the first that is checked since armed
// was set waits until goOn is closed, and is refused.
type shortOfRoom struct {
	*badgerstore.Store
	armed       atomic.Bool
	began, goOn chan struct{}
}

func shortStore(t *testing.T) *shortOfRoom {
	s := &shortOfRoom{Store: openUnsynced(t, t.TempDir()), began: make(chan struct{}), goOn: make(chan struct{})}
	free := func() (int64, error) {
		if !s.armed.CompareAndSwap(true, false) {
			return 1 << 40, nil
		}
		close(s.began)
		<-s.goOn
		return 0, nil
	}
	s.FreeWith(free)
	s.CommitWith(func(next func() error) error { // on the goroutine that asks
		s.FreeWith(free) // it is asked for the next group again
		return next()
	})
	return s
}

// Who gives up a call that the committer has, which is then refused for lack of room, leaves nobody
// with a lease: when there is room the same can be done again.
func TestGivenUpBeforeItIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  string
		call func(context.Context, *badgerstore.Store) error
	}{
		"Fork": {"fork", func(ctx context.Context, s *badgerstore.Store) error {
			return s.Fork(ctx, forkstoreFork([]byte("{}"), 10, "fork"))
		}},
		"Delete": {"parent", func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "parent") }},
		"Trim": {"parent", func(ctx context.Context, s *badgerstore.Store) error {
			return forkstoreTrim(ctx, s, "parent", 2, []byte("{}"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shortStore(t)
			if err := forkstoreGrow(t.Context(), s.Store, "parent", 4); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s.armed.Store(true)
			given := make(chan error)
			go func() { given <- c.call(ctx, s.Store) }() // received below
			<-s.began
			cancel()
			if err := <-given; !errors.Is(err, checkpoint.ErrCommitUnknown) {
				t.Errorf("given up while it was on its way it = %v, want ErrCommitUnknown", err)
			}
			close(s.goOn)
			l, err := s.Acquire(t.Context(), c.run, "owner")
			if err != nil {
				t.Fatalf("Acquire of a run about which nothing has changed = %v", err)
			}
			if err := s.Release(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if err := c.call(t.Context(), s.Store); err != nil {
				t.Errorf("with room it = %v", err)
			}
		})
	}
}

// Who gives up a Fork that is then refused, since the base that it refers to goes with the same
// transaction, leaves nobody with the lease of the fork.
func TestForkstoreGivenUpBeforeItsBaseGoes(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	gate := forkstoreGated(s)
	fork := forkstoreFork([]byte("{}"), 10, "last")
	if err := s.Fork(t.Context(), fork); err != nil {
		t.Fatal(err)
	}
	stopped, release := gate.stop(func() error { return forkstoreGrow(t.Context(), s, "bystander", 1) })
	deleted, forked := make(chan error, 1), make(chan error, 1)
	go func() { deleted <- s.Delete(t.Context(), "last") }() // received below
	forkstoreQueued(s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { forked <- s.Fork(ctx, forkstoreFork([]byte("{}"), 10, "fork")) }() // received below
	forkstoreQueued(s, 2)
	gate.armed.Store(true)
	release()
	<-gate.began // the transaction of both, but that the Fork is not in it
	cancel()
	if err := <-forked; !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("Fork that is given up = %v, want ErrCommitUnknown", err)
	}
	gate.goOn <- struct{}{}
	if err := errors.Join(<-deleted, <-stopped); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "fork", "owner"); err != nil {
		t.Errorf("Acquire of what was not forked = %v", err)
	}
	forkstoreAudit(t, s)
}

// Who is refused in a group for which there is no room is told so like the others in it. That it is
// behind an append that is not written is no conflict.
func TestRefusedInAGroupWithoutRoom(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	var full atomic.Bool
	free := func() (int64, error) {
		if full.Swap(false) {
			return 0, nil
		}
		return 1 << 40, nil
	}
	began, goOn := make(chan struct{}), make(chan struct{})
	first := true
	s.FreeWith(free)
	s.CommitWith(func(next func() error) error { // on the goroutine that asks
		s.FreeWith(free)
		if first {
			first = false
			close(began)
			<-goOn
		}
		return next()
	})
	leases := acquire(t, s, 2)
	written := make(chan error, 1)
	go func() { written <- second(s.Append(t.Context(), leases[0], checkpoint.Head{}, oneEntry)) }() // received below
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs [2]chan error
	for i := range errs {
		errs[i] = make(chan error, 1)
		go func() { errs[i] <- second(s.Append(ctx, leases[1], checkpoint.Head{}, oneEntry)) }() // received below
		forkstoreQueued(s, i+1)
	}
	full.Store(true)
	close(goOn)
	if err := errors.Join(<-written, <-errs[0]); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("an append without room = %v, want ErrFull", err)
	}
	// When another one is written the group is over: nobody waits for it any more.
	if _, err := s.Append(t.Context(), leases[1], checkpoint.Head{}, oneEntry); err != nil {
		t.Errorf("an append with room = %v", err)
	}
	cancel()
	if err := <-errs[1]; !errors.Is(err, checkpoint.ErrFull) || errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("the append behind it = %v, want ErrFull", err)
	}
}
