package dispatcher_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Promise P7, scenarios 3.64: 10,000 runs that were started and cancelled leave no goroutine and no
// descriptor behind, and no heap that grows with them.
//
// The heap can't be held to 1 %: what badgerstore has written and not yet put into tables it keeps
// in memory, which is one table's worth, allocated when the store is opened, and a dispatcher keeps
// the machines of a bounded number of runs. Both are there once the first thousand runs were made,
// so the others may add 100 bytes each: less than a cursor, a listener, a context or a lease takes.
func TestManyCancelledRunsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 11,000 runs")
	}
	store, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var cancel context.CancelFunc
	b := dag.New[Tale]("cancelled")
	first := dag.Step(b, "first", func(ctx context.Context, s *Tale) error { cancel(); <-ctx.Done(); return ctx.Err() })
	dag.Step(b, "second", nothing[Tale], first)
	d, err := dispatcher.New(frozen(t, b), store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	start := func(n int) {
		for range n {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			res, err := d.Start(ctx, fmt.Sprint("run-", started), nil)
			if started++; res == nil || res.Status != checkpoint.StatusCancelled {
				t.Fatalf("run %d: %v", started, err)
			}
		}
	}
	start(1000)
	goroutines, files, heap := remains(t)
	const runs, each = 10_000, 100
	start(runs)
	_, nowFiles, nowHeap := remains(t)
	if nowGoroutines := dwindle(goroutines); nowGoroutines > goroutines || nowFiles > files {
		t.Errorf("%d goroutines of %d are left, and %d descriptors of %d", nowGoroutines, goroutines, nowFiles, files)
	}
	if grown := int64(nowHeap) - int64(heap); grown > runs*each {
		t.Errorf("the heap has grown from %d by %d bytes: %d a run, want at most %d", heap, grown, grown/runs, each)
	} else {
		t.Logf("the heap has grown from %d by %d bytes", heap, grown)
	}
}

// remains is what there is of goroutines, descriptors and heap.
func remains(t *testing.T) (goroutines, files int, heap uint64) {
	t.Helper()
	for range 3 { // what finalizers and pools have held goes with the second
		runtime.GC()
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), len(open), m.HeapAlloc
}
