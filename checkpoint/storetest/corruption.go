package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// A bit of an append that is another one is ErrCorrupt when it is read, wherever in the log the
// append stands.
func flippedBitIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "last", "bystander")
	for _, at := range []Place{appendAt("first", 1), appendAt("middle", 4), appendAt("last", 10)} {
		if s = found(t, s, Damage{Kind: Flipped, At: at}); s == nil {
			return
		}
	}
}

// An append that is gone from the log is ErrCorrupt when it is read: what stands before it is no
// log of its own.
func lostAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "last", "bystander")
	for _, at := range []Place{appendAt("first", 1), appendAt("middle", 6), appendAt("last", 10)} {
		if s = found(t, s, Damage{Kind: Lost, At: at}); s == nil {
			return
		}
	}
}

// An append of another run, though whole, is ErrCorrupt in a log that it does not belong to.
func foreignAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "first", "middle", "last", "bystander")
	for _, at := range []Place{appendAt("first", 1), appendAt("middle", 4), appendAt("last", 10)} {
		if s = found(t, s, Damage{Foreign, at, appendAt("bystander", at.Seq)}); s == nil {
			return
		}
	}
}

// An append that stands twice in its log, in the place of a later one, is ErrCorrupt.
func olderAppendIsFound(t *trial, s checkpoint.Store) {
	shelves(t, s, "middle", "last", "bystander")
	for _, d := range []Damage{
		{Older, appendAt("middle", 4), appendAt("middle", 3)}, {Older, appendAt("last", 10), appendAt("last", 8)},
	} {
		if s = found(t, s, d); s == nil {
			return
		}
	}
}

func appendAt(run string, seq uint64) Place {
	return Place{Part: checkpoint.PartLog, Run: run, Seq: seq}
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

// found does damage to a log and checks that who reads the run learns of it, and that the others
// are whole. It returns the store to go on with, nil if opening it was refused.
func found(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
	t.Helper()
	run, seq := d.At.Run, d.At.Seq
	before, want := stat(t, s, run), whole(t, s, run, 10)
	if s = t.corrupt(s, d); s == nil {
		return nil
	}
	got, err := collect(s.Read(t.Context(), run, 1, 0))
	var where *checkpoint.CorruptError
	switch {
	case err == nil:
		t.Errorf("%v: Read yields %d entries and no error", d, len(got))
	case !damaged(err):
		t.Errorf("%v: Read = %v, want ErrCorrupt or ErrVersion", d, err)
	case errors.As(err, &where) && (where.Run != run || where.Seq > seq+1):
		t.Errorf("%v: Read finds damage at entry %d of %q", d, where.Seq, where.Run)
	}
	late := int(seq)
	if d.Kind == Foreign && seq == 1 {
		late++ // what a log begins with follows nothing: the next append tells
	}
	if len(got) >= late {
		t.Errorf("%v: Read yields %d entries before it says so", d, len(got))
	}
	for i, e := range got[:min(len(got), int(seq)-1)] {
		same(t, e, want[i])
	}
	if info, err := s.Stat(t.Context(), run); err == nil && info.Head != before.Head || err != nil && !damaged(err) {
		t.Errorf("%v: Stat = %+v, %v: want what it was, or ErrCorrupt", d, info, err)
	}
	listedBeside(t, s, d)
	if got := read(t, s, "bystander", 1, 0); len(got) != 10 {
		t.Errorf("%v: another run has %d entries, want 10", d, len(got))
	}
	return s
}

// corrupt does damage, and returns the store to go on with, nil if opening it was refused.
func (t *trial) corrupt(s checkpoint.Store, d Damage) checkpoint.Store {
	t.Helper()
	s, err := t.f.Corrupt(t.TB, t.dir, s, d)
	if err == nil {
		return t.given("Corrupt", s)
	}
	if !damaged(err) {
		t.Errorf("%v: opening the store = %v, want ErrCorrupt or ErrVersion", d, err)
	}
	return nil
}

func (d Damage) String() string {
	if d.From == (Place{}) {
		return fmt.Sprintf("%v: %v", d.At, d.Kind)
	}
	return fmt.Sprintf("%v: %v, from %v", d.At, d.Kind, d.From)
}

func (p Place) String() string {
	switch {
	case p.Seq > 0:
		return fmt.Sprintf("%s of run %q, entry %d", p.Part, p.Run, p.Seq)
	case p.ID != "":
		return fmt.Sprintf("%s of run %q, %.16s", p.Part, p.Run, p.ID)
	}
	return fmt.Sprintf("%s of run %q", p.Part, p.Run)
}

func damaged(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrVersion)
}
