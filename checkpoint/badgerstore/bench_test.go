package badgerstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// One append of one entry per run and operation, by that many runs at once; bare is one
// transaction of the same bytes for all of them, without a store around it. The payload is
// the delta's. Compare within one setting only: the disk decides.
func BenchmarkAppend(b *testing.B) {
	for _, synced := range []bool{false, true} {
		for _, runs := range []int{1, 10, 100, 1000} {
			for _, payload := range []int{50, 300, 1000, 10_000} {
				name := fmt.Sprintf("synced=%v/runs=%d/payload=%d", synced, runs, payload)
				entry := checkpoint.Entry{
					Kind: checkpoint.Done, Path: "node", Step: 3,
					Delta: []byte(`{"text":{"set":"` + strings.Repeat("x", payload) + `"}}`),
				}
				b.Run(name+"/store", func(b *testing.B) { benchStore(b, synced, runs, entry) })
				b.Run(name+"/bare", func(b *testing.B) { benchBare(b, synced, runs, entry) })
			}
		}
	}
}

// BenchmarkPack is what an append costs its caller before the committer has it: compression of what
// is longer than 1 KiB, and a cipher's work.
func BenchmarkPack(b *testing.B) {
	for _, payload := range []int{300, 1000, 10_000} {
		for _, secret := range []bool{false, true} {
			var o badgerstore.Options
			if secret {
				o = sealedBy(b, keyOf(b, "k", 1))
			}
			pack := badgerstore.Packing(o)
			text := []byte(noise(payload))
			b.Run(fmt.Sprintf("payload=%d/secret=%v", payload, secret), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := pack(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func benchStore(b *testing.B, synced bool, runs int, entry checkpoint.Entry) {
	open := badgerstore.OpenUnsynced
	if synced {
		open = badgerstore.Open
	}
	groups, appends := 0, 0
	s, err := open(b.Context(), b.TempDir(), badgerstore.Options{Observe: func(g checkpoint.Group) {
		groups++
		appends += g.Appends
	}})
	if err != nil {
		b.Fatal(err)
	}
	leases := make([]checkpoint.Lease, runs)
	for i := range leases {
		if leases[i], err = s.Acquire(b.Context(), fmt.Sprintf("run-%d", i), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			var head checkpoint.Head
			entries := []checkpoint.Entry{entry}
			for range (b.N + runs - 1) / runs {
				var err error
				if head, err = s.Append(b.Context(), leases[i], head, entries); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(appends)/float64(groups), "appends/group")
}

func benchBare(b *testing.B, synced bool, runs int, entry checkpoint.Entry) {
	db, err := badger.OpenManaged(badgerstore.BadgerOptions(b.TempDir(), synced))
	if err != nil {
		b.Fatal(err)
	}
	value, _, err := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), 1, []checkpoint.Entry{entry})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for ts := uint64(1); int(ts-1)*runs < b.N; ts++ {
		txn := db.NewTransactionAt(ts, true)
		for r := range runs {
			if err := txn.Set(badgerstore.LogKey(uint64(r), ts), value); err != nil {
				b.Fatal(err)
			}
		}
		if err := txn.CommitAt(ts, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
