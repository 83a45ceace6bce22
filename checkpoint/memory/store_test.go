package memory_test

import (
	"context"
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

// A Faulty that does not fail is a store that is durable, and finds damage.
func TestFaultyStore(t *testing.T) {
	storetest.Run(t, faultyFactory)
}

var faultyFactory = storetest.Factory{
	Open: func(testing.TB, string) checkpoint.Store { return new(memory.Faulty) },
	Reopen: func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		f := s.(*memory.Faulty)
		f.Sync()
		return f.Crash(0)
	},
	Crash: func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		f := s.(*memory.Faulty)
		return f.Crash(f.Unsafe())
	},
	Corrupt: func(t testing.TB, _ string, s checkpoint.Store, d storetest.Damage) (checkpoint.Store, error) {
		f := s.(*memory.Faulty)
		var instead []byte
		switch d.Kind {
		case storetest.Flipped:
			instead = sealed(t, f, d.Run, d.Seq)
			instead[len(instead)/2] ^= 1
		case storetest.Foreign, storetest.Older:
			instead = sealed(t, f, d.From, d.FromSeq)
		}
		if err := f.Damage(d.Run, d.Seq, instead); err != nil {
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
