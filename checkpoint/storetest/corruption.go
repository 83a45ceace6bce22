package storetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode"

	"github.com/pawlgo/pawl/checkpoint"
)

// A bit of an append that is another one is ErrCorrupt when it is read, wherever in the log the
// append stands.
func flippedBitIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, shelves("first", "middle", "last", "bystander"), found,
		Damage{Kind: Flipped, At: appendAt("first", 1)},
		Damage{Kind: Flipped, At: appendAt("middle", 4)},
		Damage{Kind: Flipped, At: appendAt("last", 10)})
}

// An append that is gone from the log is ErrCorrupt when it is read: what stands before it is no
// log of its own.
func lostAppendIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, shelves("first", "middle", "last", "bystander"), found,
		Damage{Kind: Lost, At: appendAt("first", 1)},
		Damage{Kind: Lost, At: appendAt("middle", 6)},
		Damage{Kind: Lost, At: appendAt("last", 10)})
}

// An append of another run, though whole, is ErrCorrupt in a log that it does not belong to.
func foreignAppendIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, shelves("first", "middle", "last", "bystander"), found,
		Damage{Foreign, appendAt("first", 1), appendAt("bystander", 1)},
		Damage{Foreign, appendAt("middle", 4), appendAt("bystander", 4)},
		Damage{Foreign, appendAt("last", 10), appendAt("bystander", 10)})
}

// An append that stands twice in its log, in the place of a later one, is ErrCorrupt.
func olderAppendIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, shelves("middle", "last", "bystander"), found,
		Damage{Older, appendAt("middle", 4), appendAt("middle", 3)},
		Damage{Older, appendAt("last", 10), appendAt("last", 8)})
}

// An append that says something else, and has the checksum of that, is ErrCorrupt for who reads
// under WithDigests, wherever in the log it stands: so Verify finds it also in a store that is no
// Archiver.
func forgedAppendIsFound(t *trial, s checkpoint.Store) {
	t.damages(s, shelves("first", "middle", "last", "bystander"), foundByDigest,
		Damage{Kind: Forged, At: appendAt("first", 1)},
		Damage{Kind: Forged, At: appendAt("middle", 4)},
		Damage{Kind: Forged, At: appendAt("last", 10)})
}

// Forge returns a copy of a sealed append of the suite that says something else: its last letter
// differs, and its checksum is that of the copy. Its digest is the old one, which the next append
// repeats.
func Forge(sealed []byte) []byte {
	forged := bytes.Clone(sealed)
	said := bytes.LastIndexFunc(forged[:len(forged)-sealLen], unicode.IsLower)
	forged[said] ^= 1 // of whatever letter, it can stand in a string
	end := len(forged) - crc32.Size
	binary.BigEndian.PutUint32(forged[end:], crc32.Checksum(forged[:end], crc32.MakeTable(crc32.Castagnoli)))
	return forged
}

// sealLen is how much stands behind the entries of a sealed append: its digest, and its checksum.
const sealLen = len(checkpoint.Digest{}) + crc32.Size

// foundByDigest does damage to a log and checks that who computes its digests learns of it before
// it is read, and the store is that of the bystander still.
func foundByDigest(t *trial, s checkpoint.Store, d Damage) checkpoint.Store {
	t.Helper()
	want := whole(t, s, d.At.Run, 10)
	if s = t.corrupt(s, d); s == nil {
		return nil
	}
	got, err := collect(s.Read(checkpoint.WithDigests(t.Context()), d.At.Run, 1, 0))
	if !damaged(err) {
		t.Errorf("%v: Read under WithDigests yields %d entries and ends with %v, want ErrCorrupt: hand the context on to Span.Entries",
			d, len(got), err)
	}
	if len(got) >= int(d.At.Seq) {
		t.Errorf("%v: Read yields %d entries before it says so", d, len(got))
	}
	for i, e := range got[:min(len(got), int(d.At.Seq)-1)] {
		same(t, e, want[i])
	}
	findings := 0
	for range checkpoint.Verify(t.Context(), struct{ checkpoint.Store }{s}, d.At.Run) {
		findings++
	}
	if findings == 0 {
		t.Errorf("%v: Verify finds nothing in the store as one that is no Archiver", d)
	}
	if got, err := collect(s.Read(checkpoint.WithDigests(t.Context()), "bystander", 1, 0)); err != nil || len(got) != 10 {
		t.Errorf("%v: of another run Read yields %d entries and ends with %v, want 10", d, len(got), err)
	}
	return s
}

func appendAt(run string, seq uint64) Place {
	return Place{Part: checkpoint.PartLog, Run: run, Seq: seq}
}

// shelves makes runs of ten appends of one entry each, which differ.
func shelves(runs ...string) func(*trial, checkpoint.Store) {
	return func(t *trial, s checkpoint.Store) {
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
}

// damages does one damage after the other to what fill has stored, each of which try checks. Behind
// one at which opening the store was refused it goes on with a new store: what opening finds says
// nothing of what it does not look at.
func (t *trial) damages(
	s checkpoint.Store, fill func(*trial, checkpoint.Store), try func(*trial, checkpoint.Store, Damage) checkpoint.Store,
	all ...Damage,
) {
	t.Helper()
	fill(t, s)
	for _, d := range all {
		if s == nil {
			t.dir = t.TempDir()
			s = t.given("Open", t.f.Open(t.TB, t.dir))
			fill(t, s)
		}
		s = try(t, s, d)
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
