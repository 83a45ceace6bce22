package storetest

import (
	"errors"

	"github.com/pawlgo/pawl/checkpoint"
)

// A lease that is held is given to nobody else, and the error names who holds it, also if it is the
// one who asks, or who has it for a moment, as an Amender; an owner without a name is an
// ArgumentError. Of many who ask at once one gets it.
func leaseIsExclusive(t *trial, s checkpoint.Store) {
	var argument *checkpoint.ArgumentError
	if _, err := s.Acquire(t.Context(), "run", ""); !errors.As(err, &argument) {
		t.Errorf("Acquire by nobody = %v, want an ArgumentError", err)
	}
	l, err := s.Acquire(t.Context(), "run", "first")
	if err != nil {
		t.Fatal(err)
	}
	if l.Run != "run" || l.Owner != "first" || l.Epoch == 0 {
		t.Errorf("Acquire = %+v", l)
	}
	for _, owner := range []string{"second", "first"} {
		_, err := s.Acquire(t.Context(), "run", owner)
		wantErr(t, err, checkpoint.ErrBusy, "Acquire by %s", owner)
		var busy *checkpoint.BusyError
		if !errors.As(err, &busy) || busy.Run != "run" || busy.Owner != "first" {
			t.Errorf("Acquire by %s = %v, want a BusyError that names run and first", owner, err)
		}
	}
	release(t, s, l)
	release(t, s, l) // again does nothing
	heldToAmend(t, s)

	const many = 16
	errs := make([]error, many)
	t.together(many, func(i int) { _, errs[i] = s.Acquire(t.Context(), "run", "one of many") })
	winner(t, errs, checkpoint.ErrBusy, "Acquire")
}

// heldToAmend checks that the lease of an Amender is one like others: nobody else gets it, and the
// run is not deleted.
func heldToAmend(t *trial, s checkpoint.Store) {
	t.Helper()
	rested(t, s, "amended")
	amender := checkpoint.Amender("somebody")
	l, err := s.Acquire(t.Context(), "amended", amender)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), "amended", "another")
	var busy *checkpoint.BusyError
	if !errors.As(err, &busy) || busy.Owner != amender {
		t.Errorf("Acquire while an Amender has the lease = %v, want a BusyError that names him", err)
	}
	wantErr(t, s.Delete(t.Context(), "amended"), checkpoint.ErrBusy, "Delete while an Amender has the lease")
	add(t, s, l, stat(t, s, "amended").Head, done(1))
	release(t, s, l)
}

// Each lease of a run has a higher epoch than all before, whether anything was appended
// under them or not, and also when the run was deleted meanwhile. Stat tells it.
func leaseEpochsRise(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	last := l.Epoch
	if last != 1 {
		t.Errorf("the first epoch is %d, want 1", last)
	}
	release(t, s, l)
	for i := range 4 {
		l = owned(t, s, "run")
		if l.Epoch <= last {
			t.Fatalf("epoch %d after epoch %d", l.Epoch, last)
		}
		last = l.Epoch
		if i%2 == 0 {
			head = add(t, s, l, head, done(i))
		}
		if info := stat(t, s, "run"); info.Epoch != last || info.Owner != l.Owner {
			t.Errorf("Stat tells epoch %d of %q, want %d of %q", info.Epoch, info.Owner, last, l.Owner)
		}
		release(t, s, l)
		if info := stat(t, s, "run"); info.Epoch != last || info.Owner != "" {
			t.Errorf("Stat tells epoch %d of %q, want %d of nobody", info.Epoch, info.Owner, last)
		}
	}
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if l := owned(t, s, "run"); l.Epoch <= last {
		t.Errorf("epoch %d after the run was deleted at epoch %d", l.Epoch, last)
	}
}

// A run that is not there can be acquired, but is not there until something is appended.
func leaseOfARunThatIsNotThere(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	_, err := s.Stat(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrNotFound, "Stat")
	_, err = s.Posts(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrNotFound, "Posts")
	wantErr(t, s.Delete(t.Context(), "run"), checkpoint.ErrNotFound, "Delete")
	for _, at := range []checkpoint.Head{{}, {Seq: 1}} {
		wantErr(t, s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: at}), checkpoint.ErrNotFound, "PutSnapshot at entry %d", at.Seq)
	}
	if page, err := s.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) != 0 {
		t.Errorf("List = %v, %v, want nothing", page, err)
	}
	release(t, s, l)
	rested(t, s, "run")
	stat(t, s, "run")
}
