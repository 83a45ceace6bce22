package dispatcher_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A lender is a store that hands out each delta in a buffer of its own, which it writes to behind
// the caller.
type lender struct{ memory.Store }

func (s *lender) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		var buffer []byte
		for e, err := range s.Store.Read(ctx, run, from, to) {
			buffer = append(buffer[:0], e.Delta...)
			e.Delta = buffer
			more := yield(e, err)
			for i := range buffer {
				buffer[i] = '!'
			}
			if !more {
				return
			}
		}
	}
}

// A replay of a long log shares the memory of large deltas where the log's reader leaves it to the
// replay, and only there.
func TestReplayKeepsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	line := func(i int) string { return fmt.Sprint(i, strings.Repeat("l", 900)) }
	const days = 1_200
	g := diaryOf(t, days, func(i int, d *diary) { d.Lines.Append(line(i)) })
	for name, store := range map[string]checkpoint.Store{"its own": new(memory.Store), "lent": new(lender)} {
		res, err := process(t, g, store, dispatcher.Options{}).Start(t.Context(), "run", nil)
		completes(t, res, err)
		cold := process(t, g, store, dispatcher.Options{})
		read, err := cold.State(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cold.State(t.Context(), "run"); err != nil { // uses again what can be
			t.Fatal(err)
		}
		n := 0
		for i, got := range read.State.Lines.All() {
			if n++; got != line(i) {
				t.Fatalf("%s: line %d is %.20q, want %.20q", name, i, got, line(i))
			}
		}
		if n != days {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}
