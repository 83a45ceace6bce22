package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(testing.TB, string) checkpoint.Store { return new(memory.Store) },
	})
}

// The last Delete or Trim that drops a reference to a base deletes it, which nobody sees but in
// memory.
func TestBasesGoWithTheirRuns(t *testing.T) {
	s := new(memory.Store)
	base := []byte("{}")
	fork := func(run string) {
		t.Helper()
		opening := fmt.Appendf(nil, `{"origin":{"run":"parent","seq":1,"base":%q}}`, checkpoint.BaseDigest(base))
		err := s.Fork(t.Context(), checkpoint.Fork{Base: base, Runs: []checkpoint.ForkedRun{
			{Run: run, Entries: []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	fork("deleted")
	fork("trimmed")
	if err := s.Delete(t.Context(), "deleted"); err != nil || s.Bases() != 1 {
		t.Fatalf("Delete = %v, and %d bases are kept, want 1", err, s.Bases())
	}
	l, err := s.Acquire(t.Context(), "trimmed", "owner")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), "trimmed")
	if err != nil {
		t.Fatal(err)
	}
	other := []byte("[]")
	entry := checkpoint.Entry{Kind: checkpoint.Trimmed, Data: fmt.Appendf(nil, `{"first":2,"base":%q}`, checkpoint.BaseDigest(other))}
	if _, err := s.Trim(t.Context(), l, info.Head, entry, other); err != nil || s.Bases() != 1 {
		t.Fatalf("Trim = %v, and %d bases are kept, want the new one", err, s.Bases())
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "trimmed"); err != nil || s.Bases() != 0 {
		t.Errorf("Delete = %v, and %d bases are kept, want none", err, s.Bases())
	}
}

// The newest two snapshots of a run are kept, in whatever order they were put.
func TestTwoSnapshotsAreKept(t *testing.T) {
	s := new(memory.Store)
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	heads := make([]checkpoint.Head, 4)
	for i := 1; i < len(heads); i++ {
		if heads[i], err = s.Append(t.Context(), l, heads[i-1], []checkpoint.Entry{{Kind: checkpoint.Done}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{2, 3, 1} {
		if err := s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: heads[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for upTo, want := range map[uint64]uint64{0: 3, 3: 3, 2: 2, 1: 0} {
		snap, err := s.Snapshot(t.Context(), "run", upTo)
		if snap.Head.Seq != want || (want == 0) != errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Snapshot up to %d is of entry %d, %v, want %d", upTo, snap.Head.Seq, err, want)
		}
	}
}

// A Faulty that does not fail is a store that is durable, and finds damage.
func TestFaultyStore(t *testing.T) {
	storetest.Run(t, faultyFactory)
}

var faultyFactory = storetest.Factory{
	Open: func(testing.TB, string) checkpoint.Store { return new(memory.Faulty) },
	Reopen: func(t testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		f := s.(*memory.Faulty)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return f.Crash(0)
	},
	Crash: func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		f := s.(*memory.Faulty)
		return f.Crash(f.Unsafe())
	},
	Corrupt: func(t testing.TB, _ string, s checkpoint.Store, d storetest.Damage) (checkpoint.Store, error) {
		f := s.(*memory.Faulty)
		if d.At.Part != checkpoint.PartLog {
			f.Spoil(d.At.Run, d.At.Part)
			return f, nil
		}
		var instead []byte
		switch d.Kind {
		case storetest.Flipped:
			instead = sealed(t, f, d.At.Run, d.At.Seq)
			instead[len(instead)/2] ^= 1
		case storetest.Foreign, storetest.Older:
			instead = sealed(t, f, d.From.Run, d.From.Seq)
		case storetest.Forged:
			instead = storetest.Forge(sealed(t, f, d.At.Run, d.At.Seq))
		}
		if err := f.Damage(d.At.Run, d.At.Seq, instead); err != nil {
			t.Fatal(err)
		}
		return f, nil
	},
	Fill: func(_ testing.TB, _ string, s checkpoint.Store) (free func()) {
		f := s.(*memory.Faulty)
		f.Fail = func(context.Context, memory.Write) memory.Fault { return memory.Full }
		return func() { f.Fail = nil }
	},
	Limits: storetest.Limits{Large: 1 << 20},
}

func sealed(t testing.TB, f *memory.Faulty, run string, seq uint64) []byte {
	t.Helper()
	data, err := f.Sealed(run, seq)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
