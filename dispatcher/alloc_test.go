package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What a run allocates is a promise of docs/performance.md: a further node of a chain its draft and
// its visit, of pieces that several share, and with a store what the log keeps of it. The limits
// are a quarter above what was measured; what a node of its own allocates is not in it, for it
// allocates nothing.
func TestWhatARunAllocates(t *testing.T) { // not parallel: what the process allocates is counted
	if raced {
		t.Skip("the race detector allocates as well")
	}
	for _, want := range []struct {
		name         string
		stored       bool
		bytes, count float64 // of a further node
		runBytes     float64 // of a run of 10 nodes
		runCount     float64
	}{
		{"no store", false, 240, 0.2, 3_500, 9},
		{"memory", true, 560, 0.2, 14_500, 52},
	} {
		t.Run(want.name, func(t *testing.T) {
			tenBytes, ten := allocates(t, 10, want.stored)
			manyBytes, many := allocates(t, 1_000, want.stored)
			bytes, count := (manyBytes-tenBytes)/990, (many-ten)/990
			t.Logf("a further node: %.0f bytes in %.2f pieces; a run of 10 nodes: %.0f bytes in %.0f pieces", bytes, count, tenBytes, ten)
			if bytes > want.bytes || count > want.count {
				t.Errorf("a further node allocates %.0f bytes in %.2f pieces, want at most %.0f in %.2f", bytes, count, want.bytes, want.count)
			}
			if tenBytes > want.runBytes || ten > want.runCount {
				t.Errorf("a run of 10 nodes allocates %.0f bytes in %.0f pieces, want at most %.0f in %.0f",
					tenBytes, ten, want.runBytes, want.runCount)
			}
		})
	}
}

// To ask, to answer and to go on allocates as much in a long chain as in a short one, and little.
// The long one has 1 400 entries: its snapshot is behind it, which is due every 64 KiB or some 970
// entries, and the next one is far. At 2 000 entries that falls into the start or behind the
// answer, as the one before it was written by then or not.
func TestWhatAnAnswerAllocates(t *testing.T) { // not parallel: what the process allocates is counted
	if raced {
		t.Skip("the race detector allocates as well")
	}
	shortBytes, short := allocatesAnswered(t, 10)
	longBytes, long := allocatesAnswered(t, 700)
	t.Logf("answered in a chain of 10: %.0f bytes in %.0f pieces; of 700: %.0f in %.0f", shortBytes, short, longBytes, long)
	if shortBytes > 8_700 || short > 76 {
		t.Errorf("an answer and what follows allocate %.0f bytes in %.0f pieces, want at most 8700 in 76", shortBytes, short)
	}
	if longBytes > 1.25*shortBytes || long > short+4 {
		t.Errorf("in a chain of 700 they allocate %.0f bytes in %.0f pieces, in one of 10 %.0f in %.0f", longBytes, long, shortBytes, short)
	}
}

// allocatesAnswered returns the least that answering the question of the last node but one of a
// chain, and going on to its end, has allocated.
func allocatesAnswered(t *testing.T, nodes int) (bytes, pieces float64) {
	var store memory.Store
	d := callsDispatcher(t, askChain(t, nodes), &store, dispatcher.Options{})
	bytes, pieces = 1e12, 1e12
	ctx := context.Background()
	for range 20 {
		r, err := d.Start(ctx, run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := d.Answer(ctx, run, r.Interrupts[0].ID, true); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(ctx, run, nil); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc))
		pieces = min(pieces, float64(after.Mallocs-before.Mallocs))
		if err := store.Delete(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	return bytes, pieces
}

// askChain is a chain of so many nodes, of which the last but one asks.
func askChain(t *testing.T, nodes int) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("asking")
	var last []dag.Edge[Tale]
	for i := 1; i <= nodes; i++ {
		n := dag.Step(b, "node-"+strconv.Itoa(i), func(ctx context.Context, _ *Tale) error {
			if i != nodes-1 {
				return nil
			}
			_, err := dag.Ask[bool](ctx, "sure", "Shall I go on?")
			return err
		}, last...)
		last = []dag.Edge[Tale]{n}
	}
	return frozen(t, b)
}

// allocates returns the least that one of several runs of a chain has allocated: what else the
// process does meanwhile only adds to it.
func allocates(t *testing.T, nodes int, stored bool) (bytes, pieces float64) {
	var memories memory.Store
	var store checkpoint.Store
	if stored {
		store = &memories
	}
	d := callsDispatcher(t, benchChain(t, nodes), store, dispatcher.Options{})
	bytes, pieces = 1e12, 1e12
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := d.Start(context.Background(), run, nil); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc))
		pieces = min(pieces, float64(after.Mallocs-before.Mallocs))
		if stored {
			if err := memories.Delete(context.Background(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bytes, pieces
}
