package storetest

import (
	"errors"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// A bit of an append that is another one is ErrCorrupt when it is read, wherever in the log the
// append stands.
func flippedBitIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "last", "bystander")
	for _, d := range []Damage{{Run: "first", Seq: 1}, {Run: "middle", Seq: 4}, {Run: "last", Seq: 10}} {
		d.Kind = Flipped
		if s = found(t, s, d); s == nil {
			return
		}
	}
}

// An append that is gone from the log is ErrCorrupt when it is read: what stands before it is no
// log of its own.
func lostAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "bystander")
	for _, d := range []Damage{{Run: "first", Seq: 1}, {Run: "middle", Seq: 6}} {
		d.Kind = Lost
		if s = found(t, s, d); s == nil {
			return
		}
	}
}

// An append of another run, though whole, is ErrCorrupt in a log that it does not belong to.
func foreignAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "last", "bystander")
	for _, d := range []Damage{{Run: "first", Seq: 1}, {Run: "middle", Seq: 4}, {Run: "last", Seq: 10}} {
		d.Kind, d.From, d.FromSeq = Foreign, "bystander", d.Seq
		if s = found(t, s, d); s == nil {
			return
		}
	}
}

// An append that stands twice in its log, in the place of a later one, is ErrCorrupt.
func olderAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "middle", "last", "bystander")
	for _, d := range []Damage{{Run: "middle", Seq: 4, FromSeq: 3}, {Run: "last", Seq: 10, FromSeq: 8}} {
		d.Kind, d.From = Older, d.Run
		if s = found(t, s, d); s == nil {
			return
		}
	}
}

// shelves makes runs of ten appends of one entry each, which differ.
func shelves(t *trial, s checkpoint.Store, runs ...string) {
	t.Helper()
	for i, run := range runs {
		l := owned(t, s, run)
		head := add(t, s, l, checkpoint.Head{}, opened(run, nil))
		for n := range 9 {
			e := done(n)
			e.Delta = encode(strings.Repeat(run, 50+i))
			head = add(t, s, l, head, e)
		}
		release(t, s, l)
	}
}

// found does damage and checks that who reads the run learns of it, and that the others are
// whole. It returns the store to go on with, nil if opening it was refused.
func found(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
	t.Helper()
	before, want := stat(t, s, d.Run), read(t, s, d.Run, 1, 0)
	s, err := t.f.Corrupt(t.TB, t.dir, s, d)
	if err != nil {
		if !damaged(err) {
			t.Errorf("opening a store of which entry %d of %q is %v = %v, want ErrCorrupt or ErrVersion", d.Seq, d.Run, d.Kind, err)
		}
		return nil
	}
	got, err := collect(s.Read(t.Context(), d.Run, 1, 0))
	var where *checkpoint.CorruptError
	switch {
	case err == nil:
		t.Errorf("entry %d of %q is %v, and Read yields %d entries and no error", d.Seq, d.Run, d.Kind, len(got))
	case !damaged(err):
		t.Errorf("entry %d of %q is %v, and Read = %v, want ErrCorrupt or ErrVersion", d.Seq, d.Run, d.Kind, err)
	case errors.As(err, &where) && where.Run != d.Run:
		t.Errorf("entry %d of %q is %v, and Read finds damage in %q", d.Seq, d.Run, d.Kind, where.Run)
	}
	late := int(d.Seq)
	if d.Kind == Foreign && d.Seq == 1 {
		late++ // what a log begins with follows nothing: the next append tells
	}
	if len(got) >= late {
		t.Errorf("entry %d of %q is %v, and Read yields %d entries before it says so", d.Seq, d.Run, d.Kind, len(got))
	}
	for i, e := range got[:min(len(got), int(d.Seq)-1)] {
		same(t, e, want[i])
	}
	if info, err := s.Stat(t.Context(), d.Run); err == nil && info.Head != before.Head || err != nil && !damaged(err) {
		t.Errorf("entry %d of %q is %v, and Stat = %+v, %v: want what it was, or ErrCorrupt", d.Seq, d.Run, d.Kind, info, err)
	}
	if got := read(t, s, "bystander", 1, 0); len(got) != 10 {
		t.Errorf("entry %d of %q is %v, and another run has %d entries, want 10", d.Seq, d.Run, d.Kind, len(got))
	}
	return s
}

func damaged(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrVersion)
}
