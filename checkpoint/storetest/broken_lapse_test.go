package storetest

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/internal/lapse"
)

// A lapses store keeps all rules, and its leases have an end. What wraps it breaks one.
type lapses struct{ *lapse.Store }

func (s lapses) inner() *memory.Faulty { return s.Faulty }
func (s lapses) leases() *lapse.Store  { return s.Store }

// lapsing is over for stores whose leases have an end, which outlive the store.
func lapsing(wrap func(*lapse.Store) checkpoint.Store) Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	again := func(next func(testing.TB, string, checkpoint.Store) checkpoint.Store) func(testing.TB, string, checkpoint.Store) checkpoint.Store {
		return func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store {
			of, faulty := s.(interface{ leases() *lapse.Store }).leases(), next(t, dir, s).(sound).Faulty
			return wrap(of.Over(faulty))
		}
	}
	f.Open = func(testing.TB, string) checkpoint.Store { return wrap(lapse.New(new(memory.Faulty))) }
	f.Reopen, f.Crash = again(f.Reopen), again(f.Crash)
	return f
}

// Stores whose leases have an end pass the whole suite as well, and nothing of it is skipped that
// is about that.
func TestLapsingStorePasses(t *testing.T) {
	intact := lapsing(func(s *lapse.Store) checkpoint.Store { return lapses{s} })
	for _, g := range groups {
		for _, r := range g.cases {
			if rec := record(t, r, intact); rec.Failed() || rec.Skipped() && g.name == "leases" {
				t.Errorf("%s/%s: %s", g.name, r.name, rec.text())
			}
		}
	}
}

// lateAppend appends under a lease that has ended, as long as nobody has taken the run.
type lateAppend struct{ lapses }

func (s lateAppend) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	return s.Faulty.Append(ctx, l, after, entries)
}

// lateSnapshot keeps snapshots so.
type lateSnapshot struct{ lapses }

func (s lateSnapshot) PutSnapshot(ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot) error {
	return s.Faulty.PutSnapshot(ctx, l, snap)
}

// lateTrim trims so.
type lateTrim struct{ lapses }

func (s lateTrim) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	return s.Faulty.Trim(ctx, l, after, entry, bases...)
}

// lateRenew renews so.
type lateRenew struct{ lapses }

func (s lateRenew) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if s.Lapsed(l) != nil {
		return l, nil
	}
	return s.lapses.Renew(ctx, l)
}

// neverFree gives no run to the next owner whose lease was not given back.
type neverFree struct{ lapses }

func (s neverFree) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if info, err := s.Faulty.Stat(ctx, run); err == nil && info.Owner != "" {
		return checkpoint.Lease{}, &checkpoint.BusyError{Run: run, Owner: info.Owner}
	}
	return s.lapses.Acquire(ctx, run, owner)
}

// neverDeleted deletes no run whose lease was not given back.
type neverDeleted struct{ lapses }

func (s neverDeleted) Delete(ctx context.Context, run string) error { return s.Faulty.Delete(ctx, run) }

// tellsTheDead tells who had a lease that has ended.
type tellsTheDead struct{ lapses }

func (s tellsTheDead) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	return s.Faulty.Stat(ctx, run)
}

// listsTheDead lists who had one.
type listsTheDead struct{ lapses }

func (s listsTheDead) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	return s.Faulty.List(ctx, f)
}

// promises a later end, and ends the lease when it would have ended.
type promises struct{ lapses }

func (s promises) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if err := s.Lapsed(l); err != nil {
		return checkpoint.Lease{}, err
	}
	renewed, err := s.Faulty.Renew(ctx, l)
	renewed.Until = l.Until.Add(lapse.Term)
	return renewed, err
}

// noRenewal returns every lease as it is.
type noRenewal struct{ lapses }

func (s noRenewal) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if err := s.Lapsed(l); err != nil {
		return checkpoint.Lease{}, err
	}
	return s.Faulty.Renew(ctx, l)
}

// anyRelease gives back the lease of a run, whoever has it.
type anyRelease struct{ lapses }

func (s anyRelease) Release(ctx context.Context, l checkpoint.Lease) error {
	if info, err := s.Faulty.Stat(ctx, l.Run); err == nil {
		l.Epoch, l.Owner = info.Epoch, info.Owner
	}
	return s.lapses.Release(ctx, l)
}

// deletesHeld deletes a run though somebody has it.
type deletesHeld struct{ lapses }

func (s deletesHeld) Delete(ctx context.Context, run string) error {
	if info, err := s.Faulty.Stat(ctx, run); err == nil && info.Owner != "" {
		_ = s.Faulty.Release(ctx, checkpoint.Lease{Run: run, Epoch: info.Epoch, Owner: info.Owner})
	}
	return s.Faulty.Delete(ctx, run)
}

// lateFirst begins a run under a lease that has ended: there is no row that says so.
type lateFirst struct{ lapses }

func (s lateFirst) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	if after.Seq == 0 {
		return s.Faulty.Append(ctx, l, after, entries)
	}
	return s.lapses.Append(ctx, l, after, entries)
}

// heldForks takes the id of a fork for held for as long as nobody else has acquired it.
type heldForks struct{ lapses }

func (s heldForks) Fork(ctx context.Context, f checkpoint.Fork) error { return s.Faulty.Fork(ctx, f) }

// sameLease gives an owner whose lease has ended the same one again.
type sameLease struct {
	lapses
	had *set // epochs, by run and owner
}

func (s sameLease) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if epoch, had := s.had.get(run + "/" + owner); had {
		was := checkpoint.Lease{Run: run, Epoch: binary.BigEndian.Uint64(epoch), Owner: owner}
		if s.Lapsed(was) != nil {
			was.Until = time.Now().Add(lapse.Term)
			return was, nil
		}
	}
	l, err := s.lapses.Acquire(ctx, run, owner)
	s.had.add(run+"/"+owner, binary.BigEndian.AppendUint64(nil, l.Epoch))
	return l, err
}
