package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Acquire implements [checkpoint.Store]. The lease has no end. The raised epoch is durable
// with the first append under it.
func (s *Store) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	if owner == "" {
		return checkpoint.Lease{}, &checkpoint.ArgumentError{Call: "Acquire", Argument: "owner",
			Reason: fmt.Sprintf("of run %q is empty: name who is to work on it", id)}
	}
	r, err := s.pin(ctx, id)
	if err != nil {
		return checkpoint.Lease{}, err
	}
	defer s.leave(r)
	// An append under the last lease may still be on its way; a new lease begins behind it.
	var l checkpoint.Lease
	err = s.onceSettled(ctx, r, func() (err error) {
		l, err = s.acquireLocked(r, owner)
		return err
	})
	return l, err
}

func (s *Store) acquireLocked(r *run, owner string) (checkpoint.Lease, error) {
	if r.info.Owner != "" {
		return checkpoint.Lease{}, &checkpoint.BusyError{Run: r.id, Owner: r.info.Owner}
	}
	r.info.Owner = owner
	r.info.Epoch = max(r.info.Epoch, s.leastEpoch) + 1
	return checkpoint.Lease{Run: r.id, Epoch: r.info.Epoch, Owner: owner}, nil
}

// Renew implements [checkpoint.Store].
func (s *Store) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	r, err := s.enterHeld(ctx, l)
	if err != nil {
		return checkpoint.Lease{}, err
	}
	s.leave(r)
	return l, nil
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, l checkpoint.Lease) error {
	r, err := s.pin(ctx, l.Run)
	if err != nil {
		return err
	}
	defer s.leave(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.giveBack(l)
	return nil
}

// enterHeld begins a call under a lease that must be held. The call ends with leave.
func (s *Store) enterHeld(ctx context.Context, l checkpoint.Lease) (*run, error) {
	if err := s.called(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.held(l)
	if err != nil {
		return nil, err
	}
	s.calls++
	r.users++
	return r, nil
}

// held returns the run of a lease that must be held. The store's mutex is.
func (s *Store) held(l checkpoint.Lease) (*run, error) {
	if s.closing || s.failed != nil {
		return nil, s.closedError()
	}
	r := s.runs[l.Run] // a run that is held is in memory
	if r == nil || !r.heldBy(l) {
		if err := checkpoint.CheckRunID(l.Run); err != nil {
			return nil, err
		}
		return nil, fenced(l)
	}
	return r, nil
}

// Append implements [checkpoint.Store]. If ctx ends while the append is being written the error is
// ErrCommitUnknown, unless it is the pieces of a large one that are: nothing has happened then.
func (s *Store) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (_ checkpoint.Head, err error) {
	q := newRequest()
	r, num, err := s.enterAppend(ctx, l, after, &q.info)
	if err != nil {
		return checkpoint.Head{}, err
	}
	defer s.leave(r)
	now, was := time.Now(), q.info.Status
	data, head, err := checkpoint.Seal(q.value[:0], after, now, l.Epoch, entries)
	q.value = data
	if err != nil {
		return checkpoint.Head{}, err
	}
	if err := q.info.Append(now, head, entries); err != nil {
		return checkpoint.Head{}, err
	}
	q.rule, q.run, q.lease, q.after, q.num = atHead, r, l, after, num
	key := appendSeqKey(q.key[:0], logKey, num, after.Seq+1)
	if len(data) > MaxAppend {
		return checkpoint.Head{}, fmt.Errorf("%w: run %q: %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, l.Run, len(data), MaxAppend)
	}
	if claimed(entries) && after.Seq > 0 { // before, nobody could post
		// Nobody posts meanwhile: who comes behind it reads of the entry in the log.
		if err := s.beginTurn(ctx, &r.posting); err != nil {
			return checkpoint.Head{}, err
		}
		defer s.endTurn(&r.posting)
		if err := s.unposted(ctx, r.id, entries); err != nil {
			return checkpoint.Head{}, err
		}
	}
	x, err := s.pack(place{run: l.Run, key: key}, data)
	if err != nil {
		return checkpoint.Head{}, err
	}
	if err := s.describe(q, was, num, entries); err != nil {
		return checkpoint.Head{}, err
	}
	if len(x.data) <= inlineMost && q.bytes+len(x.data)+besideData <= s.maxBytes {
		q.setRecord(key, x.value())
	} else { // beside the many messages that it drains
		if after.Seq == 0 {
			q.mark = runKey(s.kinds.deleted, num)
			q.delete(q.mark)
			defer func() { s.unmark(ctx, num, err) }()
		}
		if err := s.putChunked(ctx, q, x); err != nil {
			return checkpoint.Head{}, err
		}
	}
	done, err := s.commitLone(ctx, q, now)
	if !done {
		err = s.submit(ctx, q)
	}
	if err != nil {
		return checkpoint.Head{}, err
	}
	return head, nil
}

// besideData is more than what the record of an append counts beside its data.
const besideData = 1 << 10

// enterAppend begins a call that appends to a run whose head must be after. It returns the run with
// its number, and leaves in before what is known of it.
func (s *Store) enterAppend(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, before *checkpoint.Info,
) (*run, uint64, error) {
	if err := s.called(ctx); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.heldAt(l, after)
	if err != nil {
		return nil, 0, err
	}
	s.calls++
	r.users++
	num := r.num
	if num == 0 {
		// The run has it once this append is durable. If it fails the next one has another number,
		// for they tell the order in which runs came to be.
		s.lastRun++
		num = s.lastRun
	}
	*before = r.info
	return r, num, nil
}

// unmark removes what was written, under a number that is marked as that of a deleted run, for a
// run that has not come to be.
func (s *Store) unmark(ctx context.Context, num uint64, err error) {
	if err != nil && !errors.Is(err, checkpoint.ErrCommitUnknown) {
		_ = s.sweep(ctx, num, s.remover(ctx)) // what it can't finish, the next Open does
	}
}

// heldAt is held, of a run whose head is still after. The store's mutex is held.
func (s *Store) heldAt(l checkpoint.Lease, after checkpoint.Head) (*run, error) {
	r, err := s.held(l)
	if err == nil && r.info.Head != after {
		err = conflict(r.id, r.info.Head, after)
	}
	return r, err
}

// stillAt returns the error of a call under the lease that begins now, and goes on from that head.
func (s *Store) stillAt(l checkpoint.Lease, after checkpoint.Head) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.heldAt(l, after)
	return err
}

// describe adds to an append what changes beside the log: the row of the run, whose status was
// that, its number under its id, and the messages that entries drain.
func (s *Store) describe(q *request, was checkpoint.Status, num uint64, entries []checkpoint.Entry) error {
	first := q.after.Seq == 0
	named := false
	for i := range entries {
		named = named || renames(entries[i].Kind)
	}
	if first || named || q.info.Status != was {
		if err := q.setRow(num, row{info: q.info, first: q.after.Seq + 1}); err != nil {
			return err
		}
	}
	if first {
		s.setNumber(q, q.info.Run, num)
	}
	for i := range entries {
		id := entries[i].Post
		if id == "" || i > 0 && id == entries[i-1].Post { // one message may be many answers
			continue
		}
		if checkpoint.CheckPostID(id) == nil { // or there is none of that id, and Badger may have no room for such a key
			q.delete(append(runKey(postKey, num), id...))
		}
	}
	return nil
}
