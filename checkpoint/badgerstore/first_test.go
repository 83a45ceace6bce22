package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// nothingIsLeft deletes runs of a store, and checks that the next Open finds no key of a run.
func nothingIsLeft(t *testing.T, dir string, s interface {
	checkpoint.Store
	Close() error
}, runs ...string) {
	t.Helper()
	for _, run := range runs {
		if err := s.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if keys := keysOf(openUnsynced(t, dir)); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}

// What a first append has written in pieces goes, though it was given up and nobody makes that run
// any more.
func TestFirstAppendGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	gate := forkstoreGated(s)
	large := fmt.Appendf(nil, "%q", noise(2<<20))
	ctx, cancel := context.WithCancel(t.Context())
	given, release := gate.stop(func() error { return growLarge(ctx, s, "new", large) })
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("given up while a piece is written it = %v", err)
	}
	release()
	if err := forkstoreGrow(t.Context(), s, "other", 2); err != nil {
		t.Fatal(err)
	}
	nothingIsLeft(t, dir, s, "other")
}

// Of two first appends under one lease one is made, and what the other one has written in pieces
// goes at once.
func TestTwoFirstAppendsOneInPieces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	gate := forkstoreGated(s)
	l := acquire(t, s, 1)[0]
	begins := func(delta []byte) func() error {
		return func() error {
			return second(s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Done, Delta: delta}}))
		}
	}
	small, release := gate.stop(begins([]byte("1")))
	large := make(chan error, 1)
	go func() { large <- begins(fmt.Appendf(nil, "%q", noise(2<<20)))() }() // received below
	forkstoreQueued(s, 1)
	release()
	if err := <-small; err != nil {
		t.Error(err)
	}
	if err := <-large; !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("the second one = %v, want ErrConflict", err)
	}
	for _, key := range keysOf(s) {
		if key[0] == 'c' {
			t.Errorf("piece %q is left", key)
		}
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	nothingIsLeft(t, dir, s, l.Run)
}
