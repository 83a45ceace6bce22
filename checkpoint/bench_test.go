package checkpoint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// sealing is an append of so many entries, each with a delta of so many bytes of text.
func sealing(entries, payload int) []checkpoint.Entry {
	all := make([]checkpoint.Entry, entries)
	for i := range all {
		all[i] = checkpoint.Entry{
			Kind: checkpoint.Done, Path: "node", Step: 3,
			Delta: []byte(`{"text":{"set":"` + strings.Repeat("x", payload) + `"}}`),
		}
	}
	return all
}

// sizes calls f for an append of every size that is measured.
func sizes(b *testing.B, f func(b *testing.B, entries []checkpoint.Entry)) {
	for _, entries := range []int{1, 10} {
		for _, payload := range []int{20, 1 << 10} {
			b.Run(fmt.Sprintf("entries=%d/payload=%d", entries, payload), func(b *testing.B) {
				b.SetBytes(int64(entries * payload))
				b.ReportAllocs()
				f(b, sealing(entries, payload))
			})
		}
	}
}

// BenchmarkSeal is what an append costs before a store has it: its entries as JSON, a checksum and
// a digest. The memory is there already.
func BenchmarkSeal(b *testing.B) {
	sizes(b, func(b *testing.B, entries []checkpoint.Entry) {
		at := time.Now()
		var dst []byte
		var head checkpoint.Head
		for b.Loop() {
			var err error
			if dst, head, err = checkpoint.Seal(dst[:0], checkpoint.Head{Seq: 6, Digest: head.Digest}, at, 1, entries); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkUnseal is what reading an append costs: the checksum, the digest, and every entry.
func BenchmarkUnseal(b *testing.B) {
	sizes(b, func(b *testing.B, entries []checkpoint.Entry) {
		data, _, err := checkpoint.Seal(nil, checkpoint.Head{Seq: 6}, time.Now(), 1, entries)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			e, err := checkpoint.Unseal(data)
			if err != nil {
				b.Fatal(err)
			}
			_ = e.Head()
			for _, err := range e.Entries() {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
