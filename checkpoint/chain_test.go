package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// logOf returns the envelopes of a log with that many appends of two entries each, and the
// head behind each.
func logOf(t *testing.T, name string, appends int) (log [][]byte, heads []checkpoint.Head) {
	t.Helper()
	var head checkpoint.Head
	for i := range appends {
		var data []byte
		data, head = sealed(t, head,
			checkpoint.Entry{Kind: checkpoint.Done, Path: name, Step: 2 * i},
			checkpoint.Entry{Kind: checkpoint.Done, Path: name, Step: 2*i + 1})
		log, heads = append(log, data), append(heads, head)
	}
	return log, heads
}

// lent is a log of appends of two entries each.
func lent(log [][]byte) func(seq uint64) iter.Seq2[[]byte, error] {
	return func(seq uint64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := (seq - 1) / 2; i < uint64(len(log)); i++ {
				if !yield(log[i], nil) {
					return
				}
			}
		}
	}
}

// steps returns the steps of the entries that a span yields.
func steps(
	t *testing.T, s checkpoint.Span, appends func(uint64) iter.Seq2[[]byte, error],
) (got []int, err error) {
	for e, err := range s.Entries(t.Context(), appends) {
		if err != nil {
			return got, err
		}
		got = append(got, e.Step)
	}
	return got, nil
}

func TestSpanYieldsItsEntries(t *testing.T) {
	log, heads := logOf(t, "a", 5)
	for from := uint64(1); from <= 10; from++ {
		for to := from; to <= 10; to++ {
			s := checkpoint.Span{Run: "run", From: from, To: to, Head: heads[4]}
			got, err := steps(t, s, lent(log))
			var want []int
			for n := from; n <= to; n++ {
				want = append(want, int(n-1))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d to %d: %v, %v, want %v", from, to, got, err, want)
			}
		}
	}
}

// Damage anywhere in a log, and whatever stands where it does not belong, ends the loop with the
// run and the entry, and nothing of it or behind it is yielded: of short logs, and of long ones,
// which are read ahead.
func TestSpanFindsDamage(t *testing.T) {
	for _, appends := range []int{6, 700} {
		findsDamage(t, appends)
	}
}

// An entry that can't be read, in an append whose sums are right, ends the loop behind those before
// it, wherever it stands among them: also if most of its append was read ahead, or is read by who
// takes it.
func TestSpanEndsAtAnEntryThatCantBeRead(t *testing.T) {
	for _, appends := range []int{1, 700} {
		log, heads := logOf(t, "a", appends)
		before := heads[appends-1]
		for _, good := range []int{0, 1, 31, 32, 33, 100} {
			payload := strings.Repeat(`{"kind":"done","path":"a"}`+"\n", good) + `{"kind":"done","path":}` + "\n"
			bad, head := checkpoint.ForgeBehind(before, []byte(payload), good+1)
			s := checkpoint.Span{Run: "run", From: 1, To: head.Seq, Head: head}
			got, err := steps(t, s, lent(append(slices.Clip(log), bad)))
			var damage *checkpoint.CorruptError
			if want := int(before.Seq) + good; len(got) != want || !errors.As(err, &damage) || damage.Seq != uint64(want+1) {
				t.Errorf("%d appends and %d entries before it: %d, %v, want entry %d", appends, good, len(got), err, want+1)
			}
		}
	}
}

// A loop over appends that begins before the one that holds the first entry is none of this span.
func TestSpanWhoseAppendsBeginTooEarly(t *testing.T) {
	log, heads := logOf(t, "a", 3)
	s := checkpoint.Span{Run: "run", From: 3, To: 6, Head: heads[2]}
	got, err := steps(t, s, func(uint64) iter.Seq2[[]byte, error] { return lent(log)(1) })
	var damage *checkpoint.CorruptError
	if len(got) > 0 || !errors.As(err, &damage) || damage.Seq != 3 {
		t.Errorf("%v, %v; want that entry 1 stands in the place of entry 3", got, err)
	}
}

// Who takes one entry of an append of many does not pay for the others.
func TestOneEntryOfALargeAppend(t *testing.T) {
	const count = 100_000
	data, head := checkpoint.ForgeBehind(checkpoint.Head{}, []byte(strings.Repeat(`{"kind":"done"}`+"\n", count)), count)
	s := checkpoint.Span{Run: "run", From: 1, To: 1, Head: head}
	took := testing.AllocsPerRun(3, func() {
		if got, err := steps(t, s, lent([][]byte{data})); len(got) != 1 || err != nil {
			t.Errorf("%d entries, %v", len(got), err)
		}
	})
	if took > 50 {
		t.Errorf("an entry is read in %g pieces of memory", took)
	}
}

func findsDamage(t *testing.T, appends int) {
	log, heads := logOf(t, "a", appends)
	other, _ := logOf(t, "b", appends)
	flip := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)-3] ^= 1
		return data
	}
	last, mid := appends-1, appends/2-1
	head := heads[last]
	longer := checkpoint.Head{Seq: head.Seq + 2, Digest: head.Digest}
	behind, _ := checkpoint.ForgeBehind(checkpoint.Head{Digest: heads[0].Digest}, []byte(strings.Repeat(`{"kind":"done"}`+"\n", 2)), 2)
	first := func(i int) uint64 { return uint64(2*i + 1) }
	for name, c := range map[string]struct {
		log  [][]byte
		head checkpoint.Head
		seq  uint64
	}{
		"a flipped bit":            {replace(log, mid, flip(log[mid])), head, first(mid)},
		"a copy of the one before": {replace(log, mid, log[mid-1]), head, first(mid)},
		"the same of another run":  {replace(log, mid, other[mid]), head, first(mid)},
		"the first of another run": {replace(log, 0, other[0]), head, 3},
		"a first behind something": {replace(log, 0, behind), head, 1},
		"the last of another run":  {replace(log, last, other[last]), head, first(last)},
		"a forged last":            {log, checkpoint.Head{Seq: head.Seq, Digest: heads[last-1].Digest}, first(last)},
		"a gap":                    {slices.Delete(slices.Clone(log), mid, mid+1), head, first(mid)},
		"two swapped":              {replace(replace(log, mid-1, log[mid]), mid, log[mid-1]), head, first(mid - 1)},
		"a missing end":            {log[:last-1], head, first(last - 1)},
		"a missing beginning":      {log[1:], head, 1},
		"an empty log":             {nil, head, 1},
		"a cut-off value":          {replace(log, mid, log[mid][:90]), head, first(mid)},
		"an empty value":           {replace(log, mid, nil), head, first(mid)},
		"a log shorter than known": {log, longer, first(last + 1)},
	} {
		s := checkpoint.Span{Run: "run", From: 1, To: c.head.Seq, Head: c.head}
		got, err := steps(t, s, lent(c.log))
		var damage *checkpoint.CorruptError
		if !errors.As(err, &damage) || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%d appends, %s: %v, want a CorruptError", appends, name, err)
			continue
		}
		if damage.Run != "run" || damage.Seq != c.seq || len(got) != int(c.seq-1) {
			t.Errorf("%d appends, %s: %v after %d entries, want entry %d", appends, name, err, len(got), c.seq)
		}
	}
}

// A long log is read ahead, from and to entries in the middle of appends, each append once.
func TestLongSpanYieldsItsEntries(t *testing.T) {
	log, heads := logOf(t, "a", 1_000)
	for _, c := range [][2]uint64{{1, 2_000}, {2, 1_999}, {400, 1_500}, {1, 1_001}, {999, 2_000}} {
		from, to := c[0], c[1]
		read := 0
		appends := func(seq uint64) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				for data := range lent(log)(seq) {
					if read++; !yield(data, nil) {
						return
					}
				}
			}
		}
		s := checkpoint.Span{Run: "run", From: from, To: to, Head: heads[999]}
		next := int(from - 1)
		for e, err := range s.Entries(t.Context(), appends) {
			if err != nil || e.Step != next {
				t.Fatalf("%d to %d: entry %d, %v, want %d", from, to, e.Step, err, next)
			}
			next++
		}
		if next != int(to) {
			t.Errorf("%d to %d: the last one was %d", from, to, next)
		}
		if want := int((to+1)/2 - (from-1)/2); read != want {
			t.Errorf("%d to %d: %d appends were read, want %d", from, to, read, want)
		}
	}
}

// Who takes a page of a long log, or looks at its beginning, has no more of it read than that; who
// takes more has it read ahead, by somebody else, up to twelve batches of 32 appends.
func TestWhatIsReadOfALongSpan(t *testing.T) {
	log, heads := logOf(t, "a", 1_000)
	s := checkpoint.Span{Run: "run", From: 1, To: 2_000, Head: heads[999]}
	for _, c := range []struct {
		taken, least, most uint64 // entries, appends of two
	}{
		{1, 1, 1}, {257, 129, 129}, {300, 150, 150}, {400, 201, 200 + 12*32}, {2_000, 1_000, 1_000},
	} {
		var read atomic.Uint64 // appends
		appends := func(seq uint64) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				for data := range lent(log)(seq) {
					if read.Add(1); !yield(data, nil) {
						return
					}
				}
			}
		}
		for e, err := range s.Entries(t.Context(), appends) {
			if err != nil {
				t.Fatal(err)
			}
			for e.Seq == 400 && read.Load() <= 200 {
				runtime.Gosched() // somebody reads on
			}
			if e.Seq == c.taken {
				break
			}
		}
		if n := read.Load(); n < c.least || n > c.most {
			t.Errorf("for %d entries %d appends were read, want %d to %d", c.taken, n, c.least, c.most)
		}
	}
}

// A context ends the loop before the next entry, but not behind the last one, wherever that is in
// its append.
func TestContextEndsASpan(t *testing.T) {
	log, heads := logOf(t, "a", 700)
	for _, to := range []uint64{5, 6, 1_399, 1_400} {
		for _, at := range []uint64{1, 4, 350, 1_398, to} {
			if at > to {
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			s := checkpoint.Span{Run: "run", From: 1, To: to, Head: heads[699]}
			var last uint64
			var ended error
			for e, err := range s.Entries(ctx, lent(log)) {
				if ended = err; err == nil {
					last = e.Seq
				}
				if e.Seq == at {
					cancel()
				}
			}
			cancel()
			if last != at || (at < to) != errors.Is(ended, context.Canceled) || at == to && ended != nil {
				t.Errorf("to %d, ended at %d: the last entry was %d, and the error %v", to, at, last, ended)
			}
		}
	}
}

func replace(log [][]byte, i int, data []byte) [][]byte {
	log = slices.Clone(log)
	log[i] = data
	return log
}

func TestSpanPassesErrorsOn(t *testing.T) {
	log, heads := logOf(t, "a", 3)
	s := checkpoint.Span{Run: "run", From: 1, To: 6, Head: heads[2]}
	broken := errors.New("broken")
	_, err := steps(t, s, func(uint64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { _ = yield(log[0], nil) && yield(nil, broken) }
	})
	if err != broken {
		t.Errorf("err = %v, want broken", err)
	}
	log[1] = bytes.Clone(log[1])
	log[1][4] = 9
	_, err = steps(t, s, lent(log))
	if !errors.Is(err, checkpoint.ErrVersion) || errors.Is(err, checkpoint.ErrCorrupt) ||
		!strings.Contains(err.Error(), `"run"`) {
		t.Errorf("err = %v, want ErrVersion and the run", err)
	}
	for range s.Entries(t.Context(), lent(log)) {
		break
	}
}

func TestCorrupt(t *testing.T) {
	other := errors.New("other")
	if got := checkpoint.Corrupt("run", 3, other); got != other {
		t.Errorf("Corrupt of another error = %v", got)
	}
	if got := checkpoint.Corrupt("run", 3, nil); got != nil {
		t.Errorf("Corrupt of nil = %v", got)
	}
	first := checkpoint.Corrupt("run", 3, checkpoint.Damage("torn"))
	if got := checkpoint.Corrupt("other", 4, fmt.Errorf("wrapped: %w", first)); !strings.Contains(
		got.Error(), `run "run" is damaged at entry 3: torn`) {
		t.Errorf("the first to say where is %v", got)
	}
	if got := checkpoint.Corrupt("run", 0, checkpoint.Damage("torn")).Error(); strings.Contains(got, "entry") {
		t.Errorf("damage outside the log is %q", got)
	}
}
