package memory

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Of runs that were deleted, and of leases on runs that never were, a store keeps nothing; and still no lease
// that was given before fits a run that is made anew.
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
