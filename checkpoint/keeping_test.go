package checkpoint_test

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// ruined lends appends of two entries each in one buffer, and ruins each behind the caller.
func ruined(log [][]byte) func(seq uint64) iter.Seq2[[]byte, error] {
	return func(seq uint64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			var buffer []byte
			for data := range lent(log)(seq) {
				buffer = append(buffer[:0], data...)
				more := yield(buffer, nil)
				for i := range buffer {
					buffer[i] = '!'
				}
				if !more {
					return
				}
			}
		}
	}
}

// What Keeping.Has says of a delta is true behind the loop, too: it stays as it is. That is so of
// deltas that are most of a large envelope in a long log, and of nothing else.
func TestKeepingKeepsDeltas(t *testing.T) {
	delta := func(i, size int) []byte { return fmt.Appendf(nil, `{"%d":"%s"}`, i, strings.Repeat("d", size)) }
	size := func(i int) int { return []int{10, 200, 700, 5_000, 60_000, 70_000}[i%6] }
	var log [][]byte
	var head checkpoint.Head
	for i := range 1_000 {
		first := checkpoint.Entry{Kind: checkpoint.Done, Path: "a", Delta: delta(2*i, size(i))}
		second := checkpoint.Entry{Kind: checkpoint.Done, Path: "a", Delta: delta(2*i+1, 4)}
		if i%7 == 0 { // the large one is less than half
			second.Data = fmt.Appendf(nil, `"%s"`, strings.Repeat("o", 2*size(i)))
		}
		var data []byte
		data, head = sealed(t, head, first, second)
		log = append(log, data)
	}
	s := checkpoint.Span{Run: "run", From: 1, To: 2_000, Head: head}
	for _, asked := range []bool{true, false} {
		var k checkpoint.Keeping
		ctx := t.Context()
		if asked {
			ctx = k.With(ctx)
		}
		kept := make(map[uint64][]byte)
		var before []byte
		for e, err := range s.Entries(ctx, ruined(log)) {
			if err != nil {
				t.Fatal(err)
			}
			if k.Has(bytes.Clone(e.Delta)) || k.Has(before) || k.Has(nil) || k.Has(e.Data) || k.Has(e.Delta[:3]) {
				t.Fatalf("entry %d: what is not its delta may be kept", e.Seq)
			}
			if k.Has(e.Delta) {
				kept[e.Seq] = e.Delta
			}
			before = e.Delta
		}
		for seq := uint64(1); seq <= 2_000; seq++ {
			i := int(seq-1) / 2
			large := asked && seq > 302 && seq%2 == 1 && size(i) >= 700 && size(i) < 64<<10 && i%7 != 0
			if got, is := kept[seq]; is != large && seq > 302 || is && !bytes.Equal(got, delta(int(seq-1), size(i))) {
				t.Fatalf("asked: %v, entry %d with a delta of %d bytes: kept: %v, and it is now %.20q", asked, seq, size(i), is, got)
			}
		}
	}
	if (*checkpoint.Keeping)(nil).Has([]byte("a")) {
		t.Error("nobody keeps something")
	}
}

// Of an append with more entries than are read ahead the others are told of, too.
func TestKeepingIsToldOfEveryEntry(t *testing.T) {
	var log [][]byte
	var head checkpoint.Head
	for range 200 {
		entries := make([]checkpoint.Entry, 40)
		for i := range entries {
			entries[i] = checkpoint.Entry{Kind: checkpoint.Done, Path: "a", Delta: []byte(`{"a":1}`)}
		}
		entries[31].Delta = fmt.Appendf(nil, `"%s"`, strings.Repeat("d", 20_000)) // the last that is
		var data []byte
		data, head = sealed(t, head, entries...)
		log = append(log, data)
	}
	appends := func(seq uint64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for _, data := range log[(seq-1)/40:] {
				if !yield(data, nil) {
					return
				}
			}
		}
	}
	var k checkpoint.Keeping
	var large []byte
	kept := 0
	s := checkpoint.Span{Run: "run", From: 1, To: head.Seq, Head: head}
	for e, err := range s.Entries(k.With(t.Context()), appends) {
		if err != nil {
			t.Fatal(err)
		}
		if is := len(e.Delta) > 1_000; is {
			large = e.Delta
			if k.Has(large) {
				kept++
			}
		} else if k.Has(large) || k.Has(e.Delta) {
			t.Fatalf("entry %d has another delta", e.Seq)
		}
	}
	if kept < 150 {
		t.Errorf("%d deltas of 200 may be kept", kept)
	}
}
