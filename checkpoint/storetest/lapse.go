package storetest

import (
	"errors"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// mostLease is how long a lease may last whose end is waited for.
const mostLease = standstill / 2

// ending makes a run of two entries, and returns its lease, which is held and has an end, and its
// head. The test is skipped if leases of the store have none, or one that is far away.
func ending(t *trial, s checkpoint.Store, run string) (checkpoint.Lease, checkpoint.Head) {
	t.Helper()
	l, head := begun(t, s, run)
	soonOver(t, l)
	return l, add(t, s, l, head, done(1))
}

// soonOver skips the test if the lease has no end, or one that is far away.
func soonOver(t *trial, l checkpoint.Lease) {
	t.Helper()
	if l.Until.IsZero() {
		t.Skip("leases of this store have no end")
	}
	if lasts := time.Until(l.Until); lasts > mostLease {
		t.Skipf("leases of this store last for %v: have Factory.Open give it such as last for %v at most", lasts.Round(time.Second), mostLease)
	}
}

// wait waits for an instant.
func (t *trial) wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.FailNow()
	}
}

// outlive waits until the lease of a run has ended. A store of which another clock counts may take
// a moment more.
func outlive(t *trial, s checkpoint.Store, l checkpoint.Lease) {
	t.Helper()
	for at := l.Until; ; at = time.Now().Add(10 * time.Millisecond) {
		t.wait(at)
		info := stat(t, s, l.Run)
		if info.Owner == "" && info.Epoch == l.Epoch {
			return
		}
		if time.Since(l.Until) > time.Second {
			t.Fatalf("a second behind the end of the lease Stat tells epoch %d of %q, want %d of nobody", info.Epoch, info.Owner, l.Epoch)
		}
	}
}

// late does under a lease that has ended all that needs one, which is ErrFenced and changes
// nothing; and gives it back, which is no error and changes nothing either.
func late(t *trial, s checkpoint.Store, l checkpoint.Lease, head checkpoint.Head) {
	t.Helper()
	before := stat(t, s, l.Run)
	_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{done(2)})
	wantErr(t, err, checkpoint.ErrFenced, "Append under a lease that has ended")
	err = s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: head, Data: []byte("late")})
	wantErr(t, err, checkpoint.ErrFenced, "PutSnapshot under a lease that has ended")
	if _, err = s.Trim(t.Context(), l, head, trimming(2, small(1)), small(1)); !errors.Is(err, checkpoint.ErrUnsupported) {
		wantErr(t, err, checkpoint.ErrFenced, "Trim under a lease that has ended")
	}
	_, err = s.Renew(t.Context(), l)
	wantErr(t, err, checkpoint.ErrFenced, "Renew of a lease that has ended")
	release(t, s, l)
	if info := stat(t, s, l.Run); info.Head != before.Head || info.First != before.First || info.Epoch != before.Epoch || info.Owner != before.Owner {
		t.Errorf("behind all that Stat = %+v, want %+v", info, before)
	}
	_, err = s.Snapshot(t.Context(), l.Run, 0)
	wantErr(t, err, checkpoint.ErrNotFound, "Snapshot")
}

// A lease that has ended is nobody's before somebody takes it, as it is behind a Release: Stat and
// List tell of no owner, and the run can be taken, under a higher epoch, or deleted.
func lapsedLeaseIsNobodys(t *trial, s checkpoint.Store) {
	first, _ := ending(t, s, "deleted")
	l, head := ending(t, s, "run")
	outlive(t, s, first)
	outlive(t, s, l)
	page, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil || len(page) != 2 {
		t.Fatalf("List = %d runs, %v, want 2", len(page), err)
	}
	for _, info := range page {
		if info.Owner != "" {
			t.Errorf("List tells that %q has the run %q, want nobody", info.Owner, info.Run)
		}
	}
	if err := s.Delete(t.Context(), "deleted"); err != nil {
		t.Errorf("Delete of a run whose lease has ended = %v", err)
	}
	next, err := s.Acquire(t.Context(), "run", "next")
	if err != nil {
		t.Fatalf("Acquire of a run whose lease has ended = %v", err)
	}
	if next.Epoch <= l.Epoch {
		t.Errorf("epoch %d after epoch %d", next.Epoch, l.Epoch)
	}
	add(t, s, next, head, done(2))
}

// Under a lease that has ended an Append, a PutSnapshot and a Trim are ErrFenced, and so is a Renew
// of it, though nobody has taken the run since. They change nothing, nor does a Release.
func lapsedLeaseChangesNothing(t *trial, s checkpoint.Store) {
	l, head := ending(t, s, "run")
	outlive(t, s, l)
	late(t, s, l, head)
	add(t, s, owned(t, s, "run"), head, done(2))
}

// The lease of a run that is not there yet ends as any other: then no append makes the run under
// it, nor a Restore; and the id is there for a Fork, and for the next who acquires it, under a
// higher epoch, also if it is the same owner.
func lapsedLeaseOfNoRun(t *trial, s checkpoint.Store) {
	begin := []checkpoint.Entry{opened("graph", nil)}
	leases := make(map[string]checkpoint.Lease)
	for _, run := range []string{"run", "forked", "restored", "last"} {
		leases[run] = owned(t, s, run)
		soonOver(t, leases[run])
	}
	for at := leases["last"].Until; ; at = time.Now().Add(10 * time.Millisecond) {
		t.wait(at)
		if _, err := s.Acquire(t.Context(), "last", "next"); err == nil {
			break
		} else if time.Since(leases["last"].Until) > time.Second {
			t.Fatalf("a second behind the end of the lease Acquire of a run that is not there = %v", err)
		}
	}
	_, err := s.Append(t.Context(), leases["run"], checkpoint.Head{}, begin)
	wantErr(t, err, checkpoint.ErrFenced, "the first Append under a lease that has ended")
	if a, ok := s.(checkpoint.Archiver); ok {
		envelopes, _ := archived(t)
		_, err := a.Restore(t.Context(), leases["restored"], archive(lent(envelopes)))
		wantErr(t, err, checkpoint.ErrFenced, "Restore under a lease that has ended")
	}
	for _, run := range []string{"run", "restored"} {
		_, err := s.Stat(t.Context(), run)
		wantErr(t, err, checkpoint.ErrNotFound, "Stat(%q)", run)
	}
	if err := s.Fork(t.Context(), forkOf(small(1), "forked")); err != nil && !errors.Is(err, checkpoint.ErrUnsupported) {
		t.Errorf("Fork into the id of a lease that has ended = %v", err)
	}
	next := owned(t, s, "run")
	if next.Epoch <= leases["run"].Epoch {
		t.Errorf("epoch %d after epoch %d, of the same owner", next.Epoch, leases["run"].Epoch)
	}
	_, err = s.Append(t.Context(), leases["run"], checkpoint.Head{}, begin)
	wantErr(t, err, checkpoint.ErrFenced, "Append under a lease that has ended, beside the next of the same owner")
	add(t, s, next, checkpoint.Head{}, begin...)
}

// Who comes late to a run that somebody else has taken since changes nothing of it: not under the
// lease that has ended, not by giving that back, and not by deleting the run.
func lateOwnerLeavesTheNextAlone(t *trial, s checkpoint.Store) {
	l, head := ending(t, s, "run")
	outlive(t, s, l)
	next, err := s.Acquire(t.Context(), "run", "next")
	if err != nil {
		t.Fatal(err)
	}
	late(t, s, l, head)
	wantErr(t, s.Delete(t.Context(), "run"), checkpoint.ErrBusy, "Delete beside the next owner")
	if info := stat(t, s, "run"); info.Owner != "next" || info.Epoch != next.Epoch {
		t.Errorf("Stat tells epoch %d of %q, want %d of the next owner", info.Epoch, info.Owner, next.Epoch)
	}
	add(t, s, next, head, done(2))
}

// A lease that is renewed lasts as long again from then on, under the value that it had before,
// too; and ends then.
func renewalProlongs(t *trial, s checkpoint.Store) {
	l, head := ending(t, s, "run")
	t.wait(l.Until.Add(-time.Until(l.Until) / 2))
	renewed, err := s.Renew(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Run != l.Run || renewed.Epoch != l.Epoch || renewed.Owner != l.Owner || !renewed.Until.After(l.Until) {
		t.Fatalf("Renew of %+v = %+v, want the same lease with a later end", l, renewed)
	}
	t.wait(l.Until.Add(renewed.Until.Sub(l.Until) / 4))
	_, err = s.Acquire(t.Context(), "run", "another")
	owner := stat(t, s, "run").Owner
	after, aerr := s.Append(t.Context(), l, head, []checkpoint.Entry{done(2)})
	if !time.Now().Before(renewed.Until) {
		t.Skip("the machine was too slow to look while the lease was there")
	}
	wantErr(t, err, checkpoint.ErrBusy, "Acquire behind what would have been the end of the lease")
	if owner != l.Owner {
		t.Errorf("Stat tells of the owner %q, want %q", owner, l.Owner)
	}
	if aerr != nil {
		t.Fatalf("Append under the lease as it was before = %v", aerr)
	}
	outlive(t, s, renewed)
	late(t, s, renewed, after)
}
