package badgerstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A log without one of its middle appends is damaged, and whoever reads it is told which
// entry is missing, before any that stands behind it.
func TestLife06MissingInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, t.TempDir())
	l, err := s.Acquire(ctx, "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	for i := range 6 {
		if head, err = s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Noted, ID: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	values := valuesOf(t, s)
	for seq := uint64(2); seq < 6; seq++ {
		key := badgerstore.LogKey(runNumber(t, values), seq)
		if values[string(key)] == nil {
			t.Fatalf("there is no append at entry %d", seq)
		}
		if err := s.Put(ctx, key, nil); err != nil {
			t.Fatal(err)
		}
		var damage *checkpoint.CorruptError
		last := uint64(0)
		for e, err := range s.Read(ctx, "run", 1, 0) {
			if err == nil {
				last = e.Seq
			} else if !errors.As(err, &damage) {
				t.Fatalf("entry %d removed: %v", seq, err)
			}
		}
		if damage == nil || damage.Run != "run" || damage.Seq != seq || last >= seq {
			t.Errorf("entry %d removed: read to %d, and found %v", seq, last, damage)
		}
		if err := s.Put(ctx, key, values[string(key)]); err != nil {
			t.Fatal(err)
		}
	}
}

// runNumber is that of the only run of a store.
func runNumber(t *testing.T, values map[string][]byte) uint64 {
	t.Helper()
	for n := uint64(0); n < 10; n++ {
		if values[string(badgerstore.LogKey(n, 1))] != nil {
			return n
		}
	}
	t.Fatal("the store holds no run")
	return 0
}
