package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// One run, one entry per append; the payload is the delta's.
func BenchmarkAppend(b *testing.B) {
	for _, payload := range []int{20, 1 << 10} {
		b.Run(fmt.Sprintf("payload=%d", payload), func(b *testing.B) {
			var s memory.Store
			lease, err := s.Acquire(b.Context(), "run", "bench")
			if err != nil {
				b.Fatal(err)
			}
			delta := []byte(`{"text":{"set":"` + strings.Repeat("x", payload) + `"}}`)
			entries := []checkpoint.Entry{{Kind: checkpoint.Done, Path: "node", Step: 3, Delta: delta}}
			var head checkpoint.Head
			b.ReportAllocs()
			for b.Loop() {
				if head, err = s.Append(b.Context(), lease, head, entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A cold read of one run of 200 appends with 1 KiB each, per run.
func BenchmarkRead(b *testing.B) {
	var s memory.Store
	lease, err := s.Acquire(b.Context(), "run", "bench")
	if err != nil {
		b.Fatal(err)
	}
	delta := []byte(`{"text":{"set":"` + strings.Repeat("x", 1<<10) + `"}}`)
	entries := []checkpoint.Entry{{Kind: checkpoint.Done, Path: "node", Step: 3, Delta: delta}}
	var head checkpoint.Head
	for range 200 {
		if head, err = s.Append(b.Context(), lease, head, entries); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.Read(b.Context(), "run", 1, 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
