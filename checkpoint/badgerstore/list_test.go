package badgerstore_test

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A page tells of each run what its last append says, however many a run has and whichever runs stand beside it.
func TestPageTellsOfLastAppends(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	s.ForgetIdle()
	heads := map[string]checkpoint.Head{}
	for i := range 40 {
		run := fmt.Sprintf("run %d", i)
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		for n := range 1 + i*7%20 {
			entry := checkpoint.Entry{Kind: checkpoint.Done}
			if n == 0 {
				entry.Kind = checkpoint.Opened
			}
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{entry}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if heads[run] = head; i%6 == 5 {
			delete(heads, run)
			if err := s.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 100})
	if err != nil || len(page) != len(heads) {
		t.Fatalf("a page of %d runs, %v, want %d", len(page), err, len(heads))
	}
	for _, info := range page {
		if info.Head != heads[info.Run] {
			t.Errorf("%s stands at %+v, want %+v", info.Run, info.Head, heads[info.Run])
		}
	}
}
