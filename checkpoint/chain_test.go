package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
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

func lent(log [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, data := range log {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// steps returns the steps of the entries that a span yields.
func steps(
	s checkpoint.Span, appends iter.Seq2[[]byte, error],
) (got []int, err error) {
	for e, err := range s.Entries(appends) {
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
			got, err := steps(s, lent(log[(from-1)/2:]))
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

// Damage anywhere in a log, and whatever stands where it does not belong, ends the loop with
// the run and the entry, and nothing of it or behind it is yielded.
func TestSpanFindsDamage(t *testing.T) {
	log, heads := logOf(t, "a", 6)
	other, _ := logOf(t, "b", 6)
	flip := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)-3] ^= 1
		return data
	}
	shorter := heads[5]
	shorter.Seq = 14
	for name, c := range map[string]struct {
		log  [][]byte
		head checkpoint.Head
		seq  uint64
	}{
		"a flipped bit":            {replace(log, 2, flip(log[2])), heads[5], 5},
		"a copy of the one before": {replace(log, 2, log[1]), heads[5], 5},
		"the same of another run":  {replace(log, 2, other[2]), heads[5], 5},
		"the first of another run": {replace(log, 0, other[0]), heads[5], 3},
		"the last of another run":  {replace(log, 5, other[5]), heads[5], 11},
		"a forged last":            {log, checkpoint.Head{Seq: 12, Digest: heads[4].Digest}, 11},
		"a gap":                    {slices.Delete(slices.Clone(log), 2, 3), heads[5], 5},
		"two swapped":              {replace(replace(log, 1, log[2]), 2, log[1]), heads[5], 3},
		"a missing end":            {log[:4], heads[5], 9},
		"a missing beginning":      {log[1:], heads[5], 1},
		"an empty log":             {nil, heads[5], 1},
		"a cut-off value":          {replace(log, 3, log[3][:90]), heads[5], 7},
		"an empty value":           {replace(log, 3, nil), heads[5], 7},
		"a log shorter than known": {log, shorter, 13},
	} {
		s := checkpoint.Span{Run: "run", From: 1, To: c.head.Seq, Head: c.head}
		got, err := steps(s, lent(c.log))
		var damage *checkpoint.CorruptError
		if !errors.As(err, &damage) || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: %v, want a CorruptError", name, err)
			continue
		}
		if damage.Run != "run" || damage.Seq != c.seq || len(got) != int(c.seq-1) {
			t.Errorf("%s: %v after %d entries, want entry %d", name, err, len(got), c.seq)
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
	_, err := steps(s, func(yield func([]byte, error) bool) {
		_ = yield(log[0], nil) && yield(nil, broken)
	})
	if err != broken {
		t.Errorf("err = %v, want broken", err)
	}
	log[1] = bytes.Clone(log[1])
	log[1][4] = 9
	_, err = steps(s, lent(log))
	if !errors.Is(err, checkpoint.ErrVersion) || errors.Is(err, checkpoint.ErrCorrupt) ||
		!strings.Contains(err.Error(), `"run"`) {
		t.Errorf("err = %v, want ErrVersion and the run", err)
	}
	for range s.Entries(lent(log)) {
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
