package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Every field of an entry is read back as it was appended, whatever is in it; Seq and At are
// the store's, and what Append is given in them is ignored.
func appendIsReadBack(t *trial, s checkpoint.Store) {
	text := "quotes \" \\ slashes / \u2028 newline \n tab \t nul \x00 umlaut ü emoji 🪓 < & >"
	long := strings.Repeat(text, t.size(70_000)/len(text))
	entries := []checkpoint.Entry{
		{Kind: checkpoint.Done, Seq: 99, At: time.Unix(1, 0)},
		{
			Kind: checkpoint.Interrupted, Path: text, Step: 7, Attempt: 3, Outcome: text, ID: text,
			Post: text, Delta: encode([]string{text}), Outer: encode(map[string]string{text: text}),
			Data: encode(text),
		},
		{
			Kind: checkpoint.Done, Path: long, Step: math.MaxInt32, Attempt: math.MaxInt32, Outcome: long, ID: long,
			Data: encode(json.Number("123456789012345678901234567890.5")),
		},
		{
			Kind: checkpoint.Noted, Delta: json.RawMessage("{\n \"a\": [1, {\"b\": \"}\"}]\n}"),
			Outer: json.RawMessage("null"), Data: json.RawMessage("-1.5e3"),
		},
	}
	before := time.Now().Truncate(time.Millisecond)
	l := owned(t, s, "run")
	add(t, s, l, checkpoint.Head{}, entries...)
	got := read(t, s, "run", 1, 0)
	if len(got) != len(entries) {
		t.Fatalf("read %d entries, want %d", len(got), len(entries))
	}
	for i, e := range got {
		same(t, e, entries[i])
		if e.Seq != uint64(i+1) {
			t.Errorf("entry %d has the number %d", i+1, e.Seq)
		}
		if e.At.Before(before) || e.At.After(time.Now()) {
			t.Errorf("entry %d is of %v, want now, not before %v", e.Seq, e.At, before)
		}
	}
	for kind := checkpoint.Opened; kind <= checkpoint.Rewound; kind++ {
		if kind == checkpoint.Trimmed {
			continue // only Trim writes it
		}
		run := "one of " + kind.String()
		add(t, s, owned(t, s, run), checkpoint.Head{}, checkpoint.Entry{Kind: kind})
		if got := entry(t, s, run, 1); got.Kind != kind {
			t.Errorf("read %v, want %v", got.Kind, kind)
		}
	}
}

// Entries are counted from 1 without gaps, over appends of any number of entries. The head
// that Append returns is the one that Stat knows.
func appendCountsWithoutGaps(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	var head checkpoint.Head
	n := 0
	for size := range 20 {
		var entries []checkpoint.Entry
		for range size + 1 {
			entries = append(entries, done(n))
			n++
		}
		before := head
		head = add(t, s, l, head, entries...)
		if head.Digest == before.Digest {
			t.Errorf("head %d has the digest of head %d", head.Seq, before.Seq)
		}
		if got := stat(t, s, "run").Head; got != head {
			t.Errorf("Stat knows head %d, Append returned %d", got.Seq, head.Seq)
		}
	}
	got := read(t, s, "run", 1, 0)
	if len(got) != n {
		t.Fatalf("read %d entries, want %d", len(got), n)
	}
	for i, e := range got {
		if e.Seq != uint64(i+1) {
			t.Fatalf("entry %d has the number %d", i+1, e.Seq)
		}
		same(t, e, done(i))
	}
}

// An append whose expected head is not the run's is ErrConflict and changes nothing: an
// older head, a newer one, or one of the right number with another digest.
func appendNeedsTheHead(t *trial, s checkpoint.Store) {
	l, first := begun(t, s, "run")
	head := add(t, s, l, first, done(1))
	forged := head
	forged.Digest[0] ^= 1
	for name, after := range map[string]checkpoint.Head{
		"the beginning":     {},
		"an older head":     first,
		"a head to come":    {Seq: head.Seq + 1, Digest: head.Digest},
		"a forged digest":   forged,
		"a forged old head": {Seq: first.Seq, Digest: head.Digest},
	} {
		_, err := s.Append(t.Context(), l, after, []checkpoint.Entry{done(2)})
		wantErr(t, err, checkpoint.ErrConflict, "Append after %s", name)
	}
	if got := stat(t, s, "run").Head; got != head {
		t.Errorf("the head is %d, want %d", got.Seq, head.Seq)
	}
	add(t, s, l, head, done(2))
}

// An append without the run's lease is ErrFenced and changes nothing: a lease that was given
// back, one of a lower or a higher epoch, of another owner, or of a run never acquired. So it is
// whatever else is wrong with it, and behind another head ErrConflict whatever the entries are.
func appendNeedsTheLease(t *trial, s checkpoint.Store) {
	old, head := begun(t, s, "run")
	release(t, s, old)
	_, err := s.Append(t.Context(), old, head, []checkpoint.Entry{done(1)})
	wantErr(t, err, checkpoint.ErrFenced, "Append under a lease that was given back")
	l := owned(t, s, "run")
	other, higher, elsewhere := l, l, l
	other.Owner = "another"
	higher.Epoch++
	elsewhere.Run = "never acquired"
	for name, lease := range map[string]checkpoint.Lease{
		"that was given back": old, "of another owner": other,
		"of a higher epoch": higher, "of another run": elsewhere, "of nobody": {Run: "run"},
	} {
		_, err := s.Append(t.Context(), lease, head, []checkpoint.Entry{done(1)})
		wantErr(t, err, checkpoint.ErrFenced, "Append under a lease %s", name)
		_, err = s.Renew(t.Context(), lease)
		wantErr(t, err, checkpoint.ErrFenced, "Renew of a lease %s", name)
		release(t, s, lease) // does nothing
	}
	bad := []checkpoint.Entry{{Kind: 250}}
	_, err = s.Append(t.Context(), old, head, bad)
	wantErr(t, err, checkpoint.ErrFenced, "Append of what can't be kept, under a lease that was given back")
	_, err = s.Append(t.Context(), old, checkpoint.Head{}, bad)
	wantErr(t, err, checkpoint.ErrFenced, "Append of what can't be kept behind another head, under a lease that was given back")
	_, err = s.Append(t.Context(), l, checkpoint.Head{}, bad)
	wantErr(t, err, checkpoint.ErrConflict, "Append of what can't be kept behind another head")
	if got := stat(t, s, "run").Head; got != head {
		t.Errorf("the head is %d, want %d", got.Seq, head.Seq)
	}
	renewed, err := s.Renew(t.Context(), l)
	if err != nil || renewed.Run != l.Run || renewed.Epoch != l.Epoch || renewed.Owner != l.Owner || renewed.Until.Before(l.Until) {
		t.Fatalf("Renew of the lease = %+v, %v, want %+v, that ends no sooner", renewed, err, l)
	}
	add(t, s, renewed, head, done(1))
}

// All entries of an append are kept or none. One that can't be kept is refused with all that
// came with it: an unknown kind, a string that is not UTF-8, Data that is not JSON of UTF-8,
// an opening that is none. An append of nothing is refused too. All of it is an ArgumentError.
func appendIsAllOrNothing(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	var argument *checkpoint.ArgumentError
	for name, bad := range map[string]checkpoint.Entry{
		"no kind":         {},
		"an unknown kind": {Kind: 200},
		"a bad path":      {Kind: checkpoint.Done, Path: "\xff"},
		"bad data":        {Kind: checkpoint.Noted, Data: json.RawMessage(`{"a":`)},
		"two values":      {Kind: checkpoint.Noted, Data: json.RawMessage(`1 2`)},
		"bad text":        {Kind: checkpoint.Noted, Data: json.RawMessage("{\"a\":\"\xff\"}")},
		"a bad opening":   {Kind: checkpoint.Opened, Data: json.RawMessage(`[]`)},
	} {
		_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{done(1), bad, done(2)})
		if !errors.As(err, &argument) {
			t.Fatalf("Append with %s = %v, want an ArgumentError", name, err)
		}
	}
	if _, err := s.Append(t.Context(), l, head, nil); !errors.As(err, &argument) {
		t.Errorf("Append of nothing = %v, want an ArgumentError", err)
	}
	if got := stat(t, s, "run").Head; got != head {
		t.Fatalf("the head is %d, want %d", got.Seq, head.Seq)
	}
	if got := read(t, s, "run", 1, 0); len(got) != 1 {
		t.Errorf("read %d entries, want 1", len(got))
	}
	add(t, s, l, head, done(1))
}

// A log is opened once, by its first entry: an append with an opening that would be another one is
// an ArgumentError, and changes nothing.
func logIsOpenedOnce(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	refused := func(after checkpoint.Head, entries ...checkpoint.Entry) {
		t.Helper()
		var bad *checkpoint.ArgumentError
		if _, err := s.Append(t.Context(), l, after, entries); !errors.As(err, &bad) {
			t.Errorf("Append of an opening that would be entry %d = %v, want an ArgumentError", int(after.Seq)+len(entries), err)
		}
	}
	refused(checkpoint.Head{}, opened("graph", nil), opened("another graph", nil))
	_, err := s.Stat(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrNotFound, "Stat of a run whose first append was refused")
	head := add(t, s, l, checkpoint.Head{}, opened("graph", nil))
	refused(head, opened("another graph", nil))
	refused(head, opened("graph", nil)) // the same one again
	refused(head, done(1), checkpoint.Entry{Kind: checkpoint.Opened})
	if info := stat(t, s, "run"); info.Head != head || info.Graph != "graph" {
		t.Errorf("the run is %+v", info)
	}
	add(t, s, l, head, done(1))
}

// An append of 10 MiB is like any other.
func appendOfManyMegabytes(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	big := done(1)
	big.Delta = t.quoted(10 * mebibyte)
	head = add(t, s, l, head, big, done(2))
	add(t, s, l, head, done(3))
	got := read(t, s, "run", 1, 0)
	if len(got) != 4 {
		t.Fatalf("read %d entries, want 4", len(got))
	}
	same(t, got[1], big)
	same(t, got[3], done(3))
	same(t, entry(t, s, "run", 3), done(2))
}

// Of many appends after one head exactly one is made, the others are ErrConflict.
func oneOfManyWritersWins(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for round := range 10 {
		const writers = 16
		heads := make([]checkpoint.Head, writers)
		errs := make([]error, writers)
		t.together(writers, func(w int) {
			heads[w], errs[w] = s.Append(t.Context(), l, head, []checkpoint.Entry{done(w)})
		})
		won := winner(t, errs, checkpoint.ErrConflict, "Append")
		head = heads[won]
		got := read(t, s, "run", 1, 0)
		if len(got) != round+2 {
			t.Fatalf("round %d: read %d entries, want %d", round, len(got), round+2)
		}
		same(t, got[len(got)-1], done(won))
	}
}

// That holds also for appends that are too large to be written in one piece.
func oneOfManyLargeWritersWins(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for range 3 {
		const writers = 4
		var entries [writers]checkpoint.Entry
		heads := make([]checkpoint.Head, writers)
		errs := make([]error, writers)
		for w := range writers {
			entries[w] = done(w)
			entries[w].Delta = encode(fmt.Sprint(w, t.noise(mebibyte)))
		}
		t.together(writers, func(w int) {
			heads[w], errs[w] = s.Append(t.Context(), l, head, entries[w:w+1])
		})
		for w, err := range errs {
			if err != nil {
				wantErr(t, err, checkpoint.ErrConflict, "Append")
				continue
			}
			head = heads[w]
			same(t, entry(t, s, "run", head.Seq), entries[w])
		}
	}
	if head.Seq != 4 {
		t.Errorf("the head is %d, want 4", head.Seq)
	}
}

// Writers of different runs do not see one another.
func writersOfManyRunsAreIndependent(t *trial, s checkpoint.Store) {
	const runs, appends = 20, 20
	t.together(runs, func(r int) {
		run := fmt.Sprintf("run-%d", r)
		l, err := s.Acquire(t.Context(), run, "owner")
		var head checkpoint.Head
		for i := 0; i < appends && err == nil; i++ {
			head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{done(r), done(i)})
		}
		if err != nil {
			t.Errorf("%s: %v", run, err)
		}
	})
	for r := range runs {
		got := read(t, s, fmt.Sprintf("run-%d", r), 1, 0)
		if len(got) != 2*appends {
			t.Fatalf("run-%d has %d entries, want %d", r, len(got), 2*appends)
		}
		for i := range appends {
			same(t, got[2*i], done(r))
			same(t, got[2*i+1], done(i))
		}
	}
}

// A range may begin and end anywhere, and is what is there of it: nothing behind the head.
func readBeginsAndEndsInsideAppends(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	var head checkpoint.Head
	n := 0
	for _, size := range []int{1, 3, 1, 4} {
		var entries []checkpoint.Entry
		for range size {
			entries = append(entries, done(n))
			n++
		}
		head = add(t, s, l, head, entries...)
	}
	for from := range uint64(n + 3) {
		for to := range uint64(n + 3) {
			got := read(t, s, "run", from, to)
			first, last := max(from, 1), min(to, head.Seq)
			if to == 0 {
				last = head.Seq
			}
			want := 0
			if first <= last {
				want = int(last - first + 1)
			}
			if len(got) != want {
				t.Fatalf("Read(%d, %d) yields %d entries, want %d", from, to, len(got), want)
			}
			for i, e := range got {
				if e.Seq != first+uint64(i) {
					t.Fatalf("Read(%d, %d) yields entry %d in place %d", from, to, e.Seq, i)
				}
				same(t, e, done(int(e.Seq)-1))
			}
		}
	}
}

// A range without an end ends where the log ended when the loop began, and the loop's body
// may append.
func readSeesTheLogAsItWas(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	head = add(t, s, l, head, done(1))
	entries := s.Read(t.Context(), "run", 1, 0)
	for range 2 {
		want, n := head.Seq, uint64(0)
		for e, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			n++
			head = add(t, s, l, head, done(int(e.Seq)))
		}
		if n != want {
			t.Errorf("read %d entries, want %d", n, want)
		}
	}
}

// A loop may be left, and a context ends it with its error: over a short log, and over a long one,
// which a store may read ahead.
func readCanBeLeft(t *trial, s checkpoint.Store) {
	for run, appends := range map[string]int{"short": 10, "long": 1_200} {
		l, head := begun(t, s, run)
		for i := range appends {
			head = add(t, s, l, head, done(i))
		}
		for range s.Read(t.Context(), run, 1, 0) {
			break
		}
		for _, at := range []uint64{1, head.Seq / 2, head.Seq - 1} {
			leftByContext(t, s, run, at)
		}
	}
}

func leftByContext(t *trial, s checkpoint.Store, run string, at uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for e, err := range s.Read(ctx, run, 1, 0) {
		if last = err; e.Seq == at {
			cancel()
		}
		if e.Seq > at {
			t.Fatalf("entry %d was read behind entry %d, at which the context ended", e.Seq, at)
		}
	}
	wantErr(t, last, context.Canceled, "Read with a context that ends at entry %d", at)
}

// A log of thousands of entries is read back as it was appended, over appends of one entry and of
// many, and of any size.
func longLogIsReadBack(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	large := encode(strings.Repeat("0123456789", t.size(20_000)))
	n := 0
	for head.Seq < 3_000 {
		var entries []checkpoint.Entry
		for range 1 + n%7*8 {
			e := done(n)
			if n++; n%400 == 0 {
				e.Delta = large
			}
			entries = append(entries, e)
		}
		head = add(t, s, l, head, entries...)
	}
	for _, from := range []uint64{1, 2, 77, 1_500} {
		next := from
		for e, err := range s.Read(t.Context(), "run", from, 0) {
			if err != nil {
				t.Fatalf("entry %d: %v", next, err)
			}
			if e.Seq != next {
				t.Fatalf("entry %d was read, want %d", e.Seq, next)
			}
			if next++; e.Seq == 1 {
				continue // begun has appended it
			}
			want := done(int(e.Seq) - 2)
			if (e.Seq-1)%400 == 0 {
				want.Delta = large
			}
			same(t, e, want)
		}
		if next != head.Seq+1 {
			t.Errorf("read up to entry %d from %d, want up to %d", next-1, from, head.Seq)
		}
	}
}
