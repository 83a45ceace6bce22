package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// forkOwner holds the leases of runs while they are forked.
const forkOwner = "a fork"

// forkTogether is how many bytes of logs a Fork writes in the transaction that makes the runs.
const forkTogether = 256 << 10

// baseBeside is more bytes than there are in the four keys about a base: its own, without the
// machine but with what sealing adds, its count's, its mark's and that of one that it heals.
const baseBeside = 768

// A forked is a run that comes to be with a request.
type forked struct {
	run   *run
	lease checkpoint.Lease
	info  checkpoint.Info
	num   uint64
	log   parcel // its first append
}

// Fork implements [checkpoint.Store]. Bases that the store does not have, and large logs, are
// written in pieces that share the transactions of others; the last one makes all runs and counts
// them. It holds some hundred bytes for each of them, and the labels: a Fork of more runs than that
// transaction can hold is ErrTooLarge before anything is written. With few labels that is some four
// thousand with the zero Options, and above ten thousand with [Large].
func (s *Store) Fork(ctx context.Context, f checkpoint.Fork) error {
	digests, err := f.Check()
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.exit()
	for {
		if err := s.tryFork(ctx, f, digests); !errors.Is(err, errBaseMoved) {
			return err
		}
	}
}

func (s *Store) tryFork(ctx context.Context, f checkpoint.Fork, digests []string) (err error) {
	var runs []forked
	defer func() { s.endForks(runs, err) }()
	if err := s.leaseForks(ctx, f.Runs, &runs); err != nil {
		return err
	}
	size := 0
	for i := range runs {
		if err := s.sealFork(&runs[i], f.Runs[i].Entries); err != nil {
			return err
		}
		size += len(runs[i].log.data)
	}
	q := newRequest()
	for i := range runs {
		if err := runs[i].describe(s, q, size <= forkTogether); err != nil {
			return err
		}
	}
	if err := s.holdsForks(q, f); err != nil {
		return err
	}
	h := hold{s: s}
	err = errPanics // unless it returns
	defer func() { h.end(ctx, err) }()
	if err := h.replace(ctx, q, nil, digests, f.Bases(), len(runs)); err != nil {
		return err
	}
	if size > forkTogether {
		defer func() {
			for i := range runs {
				s.unmark(ctx, runs[i].num, err)
			}
		}()
		if err := s.putLogs(ctx, runs); err != nil {
			return err
		}
	}
	q.forks = runs
	return s.submit(ctx, q)
}

// holdsForks returns ErrTooLarge unless q, which describes all runs of f, can be one transaction
// with what f's bases may add to it.
func (s *Store) holdsForks(q *request, f checkpoint.Fork) error {
	bytes, keys := q.bytes, q.keys()
	for _, base := range f.Bases() {
		bytes += baseBeside + min(len(base), baseInline) // packed it is in one piece, or smaller
		keys += 4
	}
	if bytes <= s.maxBytes && keys <= s.maxKeys {
		return nil
	}
	n := len(f.Runs)
	most := min(n*(s.maxBytes-bytes+q.bytes)/q.bytes, n*(s.maxKeys-keys+q.keys())/q.keys())
	most -= most / 50 // they differ
	return fmt.Errorf("%w: %d forks at once: one transaction holds about %d like these, make no more with each call",
		checkpoint.ErrTooLarge, n, max(most, 1))
}

// leaseForks takes the leases of runs that do not exist, and gives the runs numbers. What it
// leaves in runs has to be ended by endForks, whatever the error.
func (s *Store) leaseForks(ctx context.Context, forks []checkpoint.ForkedRun, runs *[]forked) error {
	for i, f := range forks {
		r, err := s.pin(ctx, f.Run)
		if err != nil {
			return err
		}
		*runs = append(*runs, forked{run: r})
		if err := s.onceSettled(ctx, r, func() error { return s.leaseFork(&(*runs)[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// leaseFork takes the lease of one. The store's mutex is held.
func (s *Store) leaseFork(f *forked) (err error) {
	if f.run.exists() {
		return alreadyThere(f.run.id)
	}
	if f.lease, err = s.acquireLocked(f.run, forkOwner); err != nil {
		return err
	}
	s.lastRun++
	f.num = s.lastRun
	return nil
}

// endForks gives back the leases of runs that did not come to be.
func (s *Store) endForks(runs []forked, err error) {
	for _, f := range runs {
		s.endLease(f.run, f.lease, err)
		s.leave(f.run)
	}
}

// sealFork makes the first append of a run.
func (s *Store) sealFork(f *forked, entries []checkpoint.Entry) error {
	now := time.Now()
	data, head, err := checkpoint.Seal(nil, checkpoint.Head{}, now, f.lease.Epoch, entries)
	if err != nil {
		return fmt.Errorf("checkpoint: run %q: %w", f.run.id, err)
	}
	if len(data) > MaxAppend {
		return fmt.Errorf("%w: run %q: %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, f.run.id, len(data), MaxAppend)
	}
	if f.log, err = s.pack(place{run: f.run.id, key: seqKey(logKey, f.num, 1)}, data); err != nil {
		return err
	}
	f.info, err = checkpoint.Info{Run: f.run.id, Epoch: f.lease.Epoch}.Appended(now, head, entries)
	return err
}

// describe adds to q what makes the run exist, and its log, or, if that is written, that its
// number is not that of a deleted run any more.
func (f *forked) describe(s *Store, q *request, log bool) error {
	if err := q.setRow(f.num, row{info: f.info, first: 1}); err != nil {
		return err
	}
	s.setNumber(q, f.run.id, f.num)
	if log {
		q.set(f.log.key, f.log.value())
	} else {
		q.delete(runKey(s.kinds.deleted, f.num))
	}
	return nil
}

// putLogs writes the logs of the runs, under numbers that are marked as those of deleted runs.
func (s *Store) putLogs(ctx context.Context, runs []forked) error {
	p := packer{s: s, fresh: numbering}
	for i := range runs {
		mark := runKey(s.kinds.deleted, runs[i].num)
		if err := p.set(ctx, mark, frame(mark, []byte(runs[i].run.id))); err != nil {
			return err
		}
	}
	if err := p.write(ctx); err != nil { // no log is there before its mark
		return err
	}
	for i := range runs {
		if err := p.add(ctx, runs[i].log); err != nil {
			return err
		}
	}
	return p.write(ctx)
}

// made makes known that the run exists. The store's mutex is held.
func (f *forked) made() {
	r := f.run
	r.info, r.num, r.tail, r.durableEpoch = f.info, f.num, f.info.Head, f.lease.Epoch
}
