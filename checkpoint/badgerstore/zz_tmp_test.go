package badgerstore

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/pawlgo/pawl/checkpoint"
)

func TestTmpRatio(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("RUNS"))
	if runs == 0 {
		t.Skip()
	}
	synced := os.Getenv("UNSYNCED") == ""
	ops, _ := strconv.Atoi(os.Getenv("OPS"))
	rounds := 15
	payload, _ := strconv.Atoi(os.Getenv("PAY"))
	entry := checkpoint.Entry{Kind: checkpoint.Done, Path: "node", Step: 3, Delta: []byte(`{"text":{"set":"` + strings.Repeat("x", payload) + `"}}`)}
	open := func() func() time.Duration {
		s, err := open(t.Context(), t.TempDir(), Options{}, synced)
		if err != nil {
			t.Fatal(err)
		}
		leases := make([]checkpoint.Lease, runs)
		heads := make([]checkpoint.Head, runs)
		for i := range leases {
			leases[i], _ = s.Acquire(t.Context(), fmt.Sprintf("run-%d", i), "bench")
		}
		return func() time.Duration {
			start := time.Now()
			var all sync.WaitGroup
			for i := range runs {
				all.Go(func() {
					entries := []checkpoint.Entry{entry}
					for range ops {
						var err error
						if heads[i], err = s.Append(t.Context(), leases[i], heads[i], entries); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			return time.Since(start)
		}
	}
	bare := func() func() time.Duration {
		db, err := badger.OpenManaged(Options{}.withDefaults("x").forBadger(t.TempDir(), synced))
		if err != nil {
			t.Fatal(err)
		}
		value, _, _ := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), 1, []checkpoint.Entry{entry})
		ts := uint64(0)
		return func() time.Duration {
			start := time.Now()
			for range ops {
				ts++
				txn := db.NewTransactionAt(ts, true)
				for r := range runs {
					txn.Set(LogKey(uint64(r), ts), value)
				}
				if err := txn.CommitAt(ts, nil); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(start)
		}
	}
	fs := []func() time.Duration{open(), bare()}
	var res [2][]float64
	for round := range rounds + 1 {
		for k := range fs {
			k := (k + round) % 2
			d := fs[k]()
			if round > 0 {
				res[k] = append(res[k], float64(d.Nanoseconds())/float64(runs*ops)/1000)
			}
		}
	}
	var r1 []float64
	for i := range res[0] {
		r1 = append(r1, res[1][i]/res[0][i])
	}
	med := func(x []float64) float64 { x = slices.Clone(x); slices.Sort(x); return x[len(x)/2] }
	slices.Sort(r1)
	fmt.Printf("runs %d payload %d synced %v: us/append ours %.2f bare %.2f; ratio bare/ours %.3f [%.2f-%.2f]\n", runs, payload, synced, med(res[0]), med(res[1]), med(r1), r1[3], r1[11])
}
