package memory

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Of runs that were deleted, and of leases on runs that never were, a store keeps nothing; and
// still no lease that was given before fits a run that is made anew.
func TestDeletedRunsAreForgotten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var s Store
	var old checkpoint.Lease
	for range 3 {
		for _, id := range []string{"a", "b", "c"} {
			l, err := s.Acquire(ctx, id, "me")
			if err != nil {
				t.Fatal(err)
			}
			if id == "a" && l.Epoch <= old.Epoch {
				t.Errorf("epoch %d behind epoch %d", l.Epoch, old.Epoch)
			}
			if id == "c" {
				if err := s.Release(ctx, l); err != nil { // without an entry
					t.Fatal(err)
				}
				continue
			}
			entries := []checkpoint.Entry{{Kind: checkpoint.Opened}}
			if id == "a" && old.Run != "" {
				if _, err := s.Append(ctx, old, checkpoint.Head{}, entries); !errors.Is(err, checkpoint.ErrFenced) {
					t.Errorf("an append under an old lease: %v", err)
				}
			}
			if _, err := s.Append(ctx, l, checkpoint.Head{}, entries); err != nil {
				t.Fatal(err)
			}
			if err := s.Release(ctx, l); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(ctx, id); err != nil {
				t.Fatal(err)
			}
			if id == "a" {
				old = l
			}
		}
		if len(s.runs) > 0 {
			t.Fatalf("%d runs are kept of none", len(s.runs))
		}
	}
}

// The highest epoch of what is forgotten counts, not that of what was forgotten last.
func TestEpochsBehindALeaseThatNothingCameOf(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var s Store
	acquire := func(id string) checkpoint.Lease {
		l, err := s.Acquire(ctx, id, "me")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	release := func(l checkpoint.Lease) {
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	held := acquire("held")
	var last checkpoint.Lease
	for range 3 {
		last = acquire("a")
		release(last)
	}
	release(held)
	if l := acquire("a"); l.Epoch <= last.Epoch {
		t.Errorf("epoch %d behind epoch %d", l.Epoch, last.Epoch)
	}
}

// A lease that nothing was appended under is not there when the machine is up again: a fork may
// have its id.
func TestBootForgetsLeases(t *testing.T) {
	t.Parallel()
	var s, up Store
	if _, err := s.Acquire(context.Background(), "a", "me"); err != nil {
		t.Fatal(err)
	}
	if up.boot(s.image()); len(up.runs) > 0 {
		t.Errorf("%d runs are there of none", len(up.runs))
	}
}
