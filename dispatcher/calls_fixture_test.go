package dispatcher_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// callsGraph is one step.
func callsGraph(t *testing.T, f part) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("calls")
	dag.Step(b, "only", f)
	return frozen(t, b)
}

// eachCallsStore runs a test over a store in memory and over one on a disk, both with
// deltas that are folded from memory and from their bytes.
func eachCallsStore(t *testing.T, f func(t *testing.T, store checkpoint.Store, o dispatcher.Options)) {
	t.Helper()
	for _, paranoid := range []bool{false, true} {
		o := dispatcher.Options{Paranoid: paranoid}
		name := "typed"
		if paranoid {
			name = "paranoid"
		}
		t.Run("memory/"+name, func(t *testing.T) { f(t, new(memory.Store), o) })
		t.Run("badger/"+name, func(t *testing.T) {
			store, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, store, o)
		})
	}
}

// callsDispatcher returns a dispatcher with these very options.
func callsDispatcher[S any](t testing.TB, g *dag.Graph[S], store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[S] {
	t.Helper()
	d, err := dispatcher.New(g, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
