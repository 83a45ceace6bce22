package storetest

import (
	"errors"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// shelved is a Fork of a base into runs that refer to a shelf too.
func shelved(base, shelf []byte, runs ...string) checkpoint.Fork {
	f := forkOf(base, runs...)
	f.Shelf = shelf
	for i := range f.Runs {
		f.Runs[i].Entries[0] = shelvedOpening(base, shelf)
	}
	return f
}

func shelvedOpening(base, shelf []byte) checkpoint.Entry {
	origin := originOf(base)
	origin.Shelf, origin.Effects = checkpoint.BaseDigest(shelf), "reuse_or_live"
	return checkpoint.Entry{Kind: checkpoint.Opened, Data: encode(checkpoint.Opening{
		Graph: "graph", Digest: "digest of graph", Origin: origin,
		Lineage: []checkpoint.Ancestor{{Run: "grandparent", Seq: 7}},
	})}
}

// forkShelved makes a fork, or skips the test if the store can't.
func forkShelved(t *trial, s checkpoint.Store, base, shelf []byte, run string) {
	t.Helper()
	made(t, s, shelved(base, shelf, run))
}

// A fork refers to its base and to its shelf, each of which is there as long as one run refers to
// it, in whatever order the runs are deleted: runs that share the one or the other, of which the
// shelf of one is the base of another, or to which both are the same bytes.
func shelfLivesWithItsRuns(t *trial, s checkpoint.Store) {
	for n, order := range orders("a", "b", "c", "d") {
		sized := small
		if n%8 == 0 {
			sized = t.large
		}
		base, first, second := sized(1), sized(2), sized(3)
		of := map[string][2][]byte{"a": {base, first}, "b": {base, second}, "c": {second, first}, "d": {first, first}}
		for _, run := range []string{"a", "b", "c", "d"} {
			forkShelved(t, s, of[run][0], of[run][1], run)
		}
		for i, run := range order {
			erase(t, s, run)
			for _, blob := range of[run] {
				noBase(t, s, run, blob)
			}
			for _, left := range order[i+1:] {
				wantBase(t, s, left, of[left][0])
				wantBase(t, s, left, of[left][1])
			}
			wantVerified(t, s)
		}
	}
}

// A fork that is trimmed goes on from another machine, and needs its shelf no more; others that
// have the shelf keep it. A machine that the trimming names may be what the shelf was.
func shelfIsTrimmed(t *trial, s checkpoint.Store) {
	base, shelf := t.large(1), t.large(2)
	for _, run := range []string{"trimmed", "to its shelf", "other"} {
		forkShelved(t, s, base, shelf, run)
	}
	trim(t, s, "trimmed", 2, small(3))
	noBase(t, s, "trimmed", shelf)
	noBase(t, s, "trimmed", base)
	wantBase(t, s, "trimmed", small(3))
	wantVerified(t, s)
	l := owned(t, s, "to its shelf")
	if _, err := s.Trim(t.Context(), l, stat(t, s, "to its shelf").Head, trimming(2, shelf)); err != nil {
		t.Fatal(err) // what the run has is not given again
	}
	release(t, s, l)
	erase(t, s, "other")
	wantBase(t, s, "to its shelf", shelf)
	noBase(t, s, "to its shelf", base)
	if o := stat(t, s, "trimmed").Origin; o == nil || o.Shelf != checkpoint.BaseDigest(shelf) || o.Effects != "reuse_or_live" {
		t.Errorf("the origin of what was trimmed is %+v", o)
	}
	wantVerified(t, s)
}

// The runs of a Fork name the shelf that is given, and no other.
func shelfHasToBeNamed(t *trial, s checkpoint.Store) {
	base, shelf := small(1), small(2)
	forkShelved(t, s, base, shelf, "there")
	unnamed := shelved(base, shelf, "new")
	unnamed.Runs[0].Entries[0] = forkOpened(base)
	another := shelved(base, shelf, "new")
	another.Runs[0].Entries[0] = shelvedOpening(base, small(3))
	missing := shelved(base, shelf, "new") // though a run has it
	missing.Shelf = nil
	for name, f := range map[string]checkpoint.Fork{"no name": unnamed, "another name": another, "none": missing} {
		var bad *checkpoint.ArgumentError
		if err := s.Fork(t.Context(), f); !errors.As(err, &bad) {
			t.Errorf("Fork with %s of a shelf = %v", name, err)
		}
	}
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, []string{"there"}) {
		t.Errorf("List = %v", got)
	}
	wantVerified(t, s)
}

// What an Archiver hands out of a fork with a shelf is restored with its base and its shelf;
// without the one or the other it is refused.
func restoreOfShelved(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	base, shelf := t.large(1), small(2)
	forkShelved(t, s, base, shelf, "fork")
	envelopes := envelopesOf(t, a, "fork")
	want := stat(t, s, "fork")
	erase(t, s, "fork")
	l := owned(t, s, "fork")
	for _, bases := range [][][]byte{{base}, {shelf}, {base, shelf, small(3)}} {
		_, err := a.Restore(t.Context(), l, checkpoint.Archive{Envelopes: lent(envelopes), Bases: bases})
		wantErr(t, err, checkpoint.ErrCorrupt, "Restore with %d bases", len(bases))
	}
	info, err := a.Restore(t.Context(), l, checkpoint.Archive{Envelopes: lent(envelopes), Bases: [][]byte{shelf, base}})
	if err != nil || info.Head != want.Head || !slices.Equal(info.Bases(), want.Bases()) {
		t.Fatalf("Restore = %+v, %v", info, err)
	}
	wantBase(t, s, "fork", base)
	wantBase(t, s, "fork", shelf)
	wantVerified(t, s)
}

// Bases and shelves are there when the store is opened again, as long as they are referred to.
func shelvesAreThereAgain(t *trial, s checkpoint.Store) {
	base, shelf := small(1), t.large(2)
	forkShelved(t, s, base, shelf, "first")
	forkShelved(t, s, shelf, base, "second")
	for _, run := range []string{"first", "second"} {
		s = t.reopen(s)
		wantBase(t, s, run, base)
		wantBase(t, s, run, shelf)
		wantVerified(t, s)
		erase(t, s, run)
	}
	s = t.reopen(s)
	if got := ids(t, s, checkpoint.Filter{}); len(got) > 0 {
		t.Errorf("List = %v", got)
	}
	forkShelved(t, s, base, shelf, "again")
	wantVerified(t, s)
}
