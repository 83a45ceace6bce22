package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// long makes a run of 20 entries in appends of one, two and three, which nobody holds.
func long(t *trial, s checkpoint.Store, run string) checkpoint.Head {
	t.Helper()
	l := owned(t, s, run)
	head := add(t, s, l, checkpoint.Head{}, opened("graph", map[string]string{"label": "value"}))
	for n := 1; n < 20; {
		entries := []checkpoint.Entry{done(n), done(n + 1), done(n + 2)}[:min(1+n%3, 20-n)]
		head = add(t, s, l, head, entries...)
		n += len(entries)
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: fmt.Appendf(nil, "state %d", head.Seq)})
	}
	release(t, s, l)
	return head
}

func trimming(first uint64, base []byte, pins ...checkpoint.Pin) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Trimmed, Data: encode(checkpoint.Trimming{
		First: first, Base: checkpoint.BaseDigest(base), Pins: pins,
	})}
}

// trim trims a run that nobody holds, or skips the test if the store can't. The machine of the
// checkpoint at entry n that is pinned is small(n).
func trim(t *trial, s checkpoint.Store, run string, first uint64, base []byte, pinned ...int) checkpoint.Head {
	t.Helper()
	l := owned(t, s, run)
	defer release(t, s, l)
	after := stat(t, s, run).Head
	bases, pins := [][]byte{base}, []checkpoint.Pin(nil)
	for _, n := range pinned {
		bases = append(bases, small(n))
		pins = append(pins, checkpoint.Pin{Seq: uint64(n), Base: checkpoint.BaseDigest(small(n))})
	}
	head, err := s.Trim(t.Context(), l, after, trimming(first, base, pins...), bases...)
	if t.unless(err, "trim"); err != nil || head.Seq != after.Seq+1 {
		t.Fatalf("Trim(%q, %d) = head at %d, %v", run, first, head.Seq, err)
	}
	return head
}

// A run that is trimmed, wherever that is, begins at the entry it was trimmed to: what lies before
// is ErrTrimmed, what lies behind is as it was, and all that was known of the run still is.
func trimDropsThePast(t *trial, s checkpoint.Store) {
	long(t, s, "whole")
	for first := uint64(2); first <= 21; first++ {
		run := fmt.Sprintf("run %d", first)
		long(t, s, run)
		before, want := stat(t, s, run), whole(t, s, run, 20)
		head := trim(t, s, run, first, small(int(first)))
		info := stat(t, s, run)
		if info.Head != head || info.First != first || info.Base != checkpoint.BaseDigest(small(int(first))) ||
			info.Graph != before.Graph || info.Digest != before.Digest || info.Labels["label"] != "value" ||
			info.Correlation != before.Correlation || info.Status != before.Status || info.Turn != before.Turn ||
			!info.Created.Equal(before.Created) || !info.Updated.Equal(before.Updated) {
			t.Errorf("Stat = %+v, before it was %+v", info, before)
		}
		wantBase(t, s, run, small(int(first)))
		for from := range first + 2 {
			got, err := collect(s.Read(t.Context(), run, from, 0))
			if from > 0 && from < first {
				var trimmed *checkpoint.TrimmedError
				if !errors.As(err, &trimmed) || trimmed.First != first || trimmed.Run != run || len(got) > 0 {
					t.Errorf("Read from %d of %q = %d entries, %v", from, run, len(got), err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("Read from %d of %q = %v", from, run, err)
			}
			for _, e := range got {
				if 0 < e.Seq && e.Seq <= 20 {
					same(t, e, want[e.Seq-1])
				}
			}
			if n := int(head.Seq - max(from, first) + 1); len(got) != max(n, 0) {
				t.Errorf("Read from %d of %q = %d entries, want %d", from, run, len(got), n)
			}
		}
		snap, err := s.Snapshot(t.Context(), run, 0) // there is one of the last entry
		if first <= 20 && (err != nil || snap.Head != before.Head) || first > 20 && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("the newest snapshot of %q is of entry %d, %v", run, snap.Head.Seq, err)
		}
		if snap, err := s.Snapshot(t.Context(), run, first-1); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%q has a snapshot of entry %d, %v", run, snap.Head.Seq, err)
		}
		l := owned(t, s, run)
		head = add(t, s, l, head, done(1))
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte("state")})
		release(t, s, l)
	}
	if got := read(t, s, "whole", 1, 0); len(got) != 20 {
		t.Errorf("another run has %d entries", len(got))
	}
	wantVerified(t, s)
}

// A Trim that is refused changes nothing.
func trimIsAllOrNothing(t *trial, s checkpoint.Store) {
	head := long(t, s, "run")
	l := owned(t, s, "run")
	base := small(1)
	pin := func(seq uint64, base []byte) checkpoint.Pin {
		return checkpoint.Pin{Seq: seq, Base: checkpoint.BaseDigest(base)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var bad *checkpoint.ArgumentError
	for name, c := range map[string]struct {
		ctx   context.Context
		lease checkpoint.Lease
		after checkpoint.Head
		entry checkpoint.Entry
		bases [][]byte
		want  error
	}{
		"another lease":                {lease: checkpoint.Lease{Run: "run", Epoch: l.Epoch, Owner: "other"}, want: checkpoint.ErrFenced},
		"another epoch":                {lease: checkpoint.Lease{Run: "run", Epoch: l.Epoch + 1, Owner: l.Owner}, want: checkpoint.ErrFenced},
		"another head":                 {after: checkpoint.Head{Seq: head.Seq, Digest: checkpoint.Digest{1}}, want: checkpoint.ErrConflict},
		"a context that has ended":     {ctx: ctx, want: context.Canceled},
		"an entry of another kind":     {entry: done(1)},
		"an entry without data":        {entry: checkpoint.Entry{Kind: checkpoint.Trimmed}},
		"entry 1":                      {entry: trimming(1, base)},
		"entry 0":                      {entry: trimming(0, base)},
		"an entry beyond the next":     {entry: trimming(head.Seq+2, base)},
		"no base":                      {bases: [][]byte{}},
		"another base":                 {bases: [][]byte{small(2)}},
		"a base too many":              {bases: [][]byte{base, small(2)}},
		"an empty base":                {entry: trimming(8, nil), bases: [][]byte{{}}},
		"a nil base":                   {entry: trimming(8, nil), bases: [][]byte{nil}},
		"an empty base of a pin":       {entry: trimming(8, base, pin(3, nil)), bases: [][]byte{base, {}}},
		"a pin without a base":         {entry: trimming(8, base, pin(3, small(3)))},
		"a pin of entry 0":             {entry: trimming(8, base, pin(0, base))},
		"a pin of an entry that stays": {entry: trimming(8, base, pin(8, base))},
	} {
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		if c.lease.Run == "" {
			c.lease = l
		}
		if c.after.Seq == 0 {
			c.after = head
		}
		if c.entry.Kind == 0 {
			c.entry = trimming(8, base)
		}
		if c.bases == nil {
			c.bases = [][]byte{base}
		}
		_, err := s.Trim(c.ctx, c.lease, c.after, c.entry, c.bases...)
		t.unless(err, "trim")
		switch {
		case c.want != nil:
			wantErr(t, err, c.want, "Trim with %s", name)
		case !errors.As(err, &bad):
			t.Errorf("Trim with %s = %v", name, err)
		}
		if info := stat(t, s, "run"); info.Head != head || info.First != 1 || info.Base != "" || len(read(t, s, "run", 1, 0)) != 20 {
			t.Fatalf("after a Trim with %s the run is %+v", name, info)
		}
	}
	_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{trimming(8, base)})
	if !errors.As(err, &bad) {
		t.Errorf("Append of a trimming = %v", err)
	}
	wantVerified(t, s)
}

// Trimming again replaces the base, and keeps those that are still pinned. A fork that is trimmed
// does not need its origin's machine any more, and is a fork still; a parent that is trimmed or
// deleted takes nothing from its forks.
func trimAgainAndAgain(t *trial, s checkpoint.Store) {
	base := t.large(1)
	fork(t, s, base, "fork", "other")
	l := owned(t, s, "fork")
	head := stat(t, s, "fork").Head
	post(t, s, "fork", checkpoint.Post{ID: "m", Kind: "cancel"})
	for range 8 {
		head = add(t, s, l, head, done(1), done(2))
	}
	step := func(first uint64, given [][]byte, entry checkpoint.Entry) {
		t.Helper()
		var err error
		head, err = s.Trim(t.Context(), l, head, entry, given...)
		if t.unless(err, "trim"); err != nil {
			t.Fatal(err)
		}
		info := stat(t, s, "fork")
		if info.First != first || info.Head != head || info.Origin == nil || info.Origin.Base != checkpoint.BaseDigest(base) {
			t.Errorf("Stat = %+v", info)
		}
		wantVerified(t, s)
	}
	pin := checkpoint.Pin{Seq: 4, Base: checkpoint.BaseDigest(small(4))}
	first := trimming(5, t.large(5), pin)
	first.Post = "m"
	step(5, [][]byte{t.large(5), small(4)}, first)
	wantBase(t, s, "fork", t.large(5))
	wantBase(t, s, "fork", small(4))
	noBase(t, s, "fork", base)
	wantBase(t, s, "other", base)
	if got := posts(t, s, "fork"); len(got) != 0 {
		t.Errorf("Posts = %v, want none: the entry has drained them", got)
	}
	step(10, [][]byte{small(10)}, trimming(10, small(10), pin))
	wantBase(t, s, "fork", small(4))
	noBase(t, s, "fork", t.large(5))
	if got := stat(t, s, "fork").Pins; len(got) != 1 || got[0] != pin {
		t.Errorf("the pins are %v", got)
	}
	step(12, nil, trimming(12, small(4))) // what the run has is not given again
	wantBase(t, s, "fork", small(4))
	noBase(t, s, "fork", small(10))
	release(t, s, l)
	erase(t, s, "fork")
	wantBase(t, s, "other", base)
	wantVerified(t, s)
}

// A Trim leaves the messages that it does not drain, and keeps all checkpoints that it pins, each
// with its machine.
func trimKeepsPinsAndMessages(t *trial, s checkpoint.Store) {
	head := long(t, s, "run")
	post(t, s, "run", checkpoint.Post{ID: "post", Kind: "turn"})
	var pins []checkpoint.Pin
	bases := [][]byte{small(0)}
	for seq := uint64(2); seq < 15; seq++ {
		bases = append(bases, small(int(seq)))
		pins = append(pins, checkpoint.Pin{Seq: seq, Base: checkpoint.BaseDigest(small(int(seq)))})
	}
	l := owned(t, s, "run")
	_, err := s.Trim(t.Context(), l, head, trimming(15, small(0), pins...), bases...)
	if t.unless(err, "trim"); err != nil {
		t.Fatalf("Trim = %v", err)
	}
	if got := stat(t, s, "run").Pins; !slices.Equal(got, pins) {
		t.Errorf("the pins are %v, want %v", got, pins)
	}
	for _, base := range bases {
		wantBase(t, s, "run", base)
	}
	if got := posts(t, s, "run"); len(got) != 1 || got[0].ID != "post" {
		t.Errorf("Posts = %v, want the one that nobody has drained", got)
	}
	wantVerified(t, s)
}

// Of many who trim a run at one head under one lease one succeeds, and the others get ErrConflict
// and change nothing, wherever each would have the log begin.
func oneOfManyTrimsWins(t *trial, s checkpoint.Store) {
	firsts := []uint64{3, 9, 15, 20}
	for round := range 10 {
		run := fmt.Sprintf("run %d", round)
		head := long(t, s, run)
		l := owned(t, s, run)
		errs := make([]error, len(firsts))
		t.together(len(firsts), func(i int) {
			_, errs[i] = s.Trim(t.Context(), l, head, trimming(firsts[i], small(i)), small(i))
		})
		t.unless(errs[0], "trim")
		won := winner(t, errs, checkpoint.ErrConflict, "Trim")
		if info := stat(t, s, run); info.First != firsts[won] || info.Head.Seq != head.Seq+1 || info.Base != checkpoint.BaseDigest(small(won)) {
			t.Errorf("Stat of %q, trimmed to entry %d, = %+v", run, firsts[won], info)
		}
	}
	wantVerified(t, s)
}

// A loop over Read that has begun reads on while the run is trimmed, also where it has thousands of
// entries to go.
func readGoesOnWhileTrimmed(t *trial, s checkpoint.Store) {
	const appends, each = 150, 20
	l, head := begun(t, s, "run")
	for i := range appends {
		entries := make([]checkpoint.Entry, each)
		for k := range entries {
			entries[k] = done(each*i + k)
		}
		head = add(t, s, l, head, entries...)
	}
	release(t, s, l)
	n := uint64(0)
	for e, err := range s.Read(t.Context(), "run", 1, 0) {
		if err != nil {
			t.Fatalf("entry %d of %d, of a run that was trimmed behind entry 3: %v", n+1, head.Seq, err)
		}
		switch n++; {
		case e.Seq == 3:
			trim(t, s, "run", head.Seq-2, small(1))
		case e.Seq > 3:
			same(t, e, done(int(e.Seq)-2))
		}
	}
	if n != head.Seq {
		t.Errorf("read %d entries, want %d", n, head.Seq)
	}
}

// What an Archiver hands out of forks and of what was trimmed is restored, with the bases and the
// same digests; without the bases, or without the beginning, it is refused.
func restoreOfForksAndTrimmed(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	base := t.large(1)
	fork(t, s, base, "fork")
	long(t, s, "trimmed")
	trim(t, s, "trimmed", 6, small(6))
	trim(t, s, "trimmed", 9, small(9))
	for run, base := range map[string][]byte{"fork": base, "trimmed": small(9)} {
		envelopes := envelopesOf(t, a, run)
		want, entries := stat(t, s, run), read(t, s, run, 0, 0)
		erase(t, s, run)
		l := owned(t, s, run)
		for name, from := range map[string]checkpoint.Archive{
			"no base":      {Envelopes: lent(envelopes)},
			"another base": {Envelopes: lent(envelopes), Bases: [][]byte{small(7)}},
			"two bases":    {Envelopes: lent(envelopes), Bases: [][]byte{base, small(7)}},
			"no beginning": {Envelopes: lent(envelopes[1:]), Bases: [][]byte{base}},
		} {
			_, err := a.Restore(t.Context(), l, from)
			wantErr(t, err, checkpoint.ErrCorrupt, "Restore of %q with %s", run, name)
			_, err = s.Stat(t.Context(), run)
			wantErr(t, err, checkpoint.ErrNotFound, "Stat of %q after a Restore with %s", run, name)
		}
		info, err := a.Restore(t.Context(), l, checkpoint.Archive{Envelopes: lent(envelopes), Bases: [][]byte{base}})
		if err != nil {
			t.Fatal(err)
		}
		if got := stat(t, s, run); got.Head != want.Head || got.First != want.First || got.Base != want.Base ||
			info.Head != want.Head || got.Status != want.Status || !got.Created.Equal(want.Created) || got.Graph != want.Graph {
			t.Errorf("Stat(%q) = %+v, want %+v", run, got, want)
		}
		for i, e := range whole(t, s, run, len(entries)) {
			same(t, e, entries[i])
		}
		wantBase(t, s, run, base)
	}
	wantVerified(t, s)
}
