package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// deleteOwner holds the lease of a run while it is deleted.
const deleteOwner = "a deletion"

// deleteMost is how many keys one transaction removes.
const deleteMost = 1000

// Delete implements [checkpoint.Store]. The run is gone in one transaction. Its keys are removed
// after that; what Delete can't finish, the next Open does. Their room is for later writes; the
// device gets it back when Badger merges the tables that they are in.
//
// Of the run it reads what [Store.Stat] does: the row, the newest append, and the one that the row
// was written with, which is the last that changed its status, turn or graph or trimmed it; and the
// bases that it refers to, which it doesn't open. If one of these is damaged, or its key is not
// given, the run stays, and Delete returns ErrCorrupt or ErrKey. The rest of the log it doesn't
// look at: who can read how a run stands may delete it.
func (s *Store) Delete(ctx context.Context, id string) error {
	r, err := s.pin(ctx, id)
	if err != nil {
		return err
	}
	defer s.leave(r)
	l, num, bases, err := s.leaseToDelete(ctx, r)
	if err != nil {
		return err
	}
	q := numbering()
	q.rule, q.run, q.lease, q.gone = held, r, l, true
	q.delete(nameKey(s.kinds.id, id))
	q.delete(runKey(rowKey, num))
	mark := runKey(s.kinds.deleted, num)
	q.set(mark, frame(mark, []byte(id)))
	if err := s.submitDelete(ctx, q, bases); err != nil {
		return err
	}
	// It is deleted, whatever comes now.
	_ = s.sweep(ctx, num, s.remover(ctx))
	return nil
}

// submitDelete submits q, which deletes a run that refers to the bases, and ends its lease.
func (s *Store) submitDelete(ctx context.Context, q *request, bases []string) (err error) {
	h, r, l := hold{s: s}, q.run, q.lease
	err = errPanics // unless it returns
	defer func() {  // also if the database panics
		s.endLease(r, l, err)
		h.end(ctx, err)
	}()
	if err := h.drop(ctx, q, bases); err != nil {
		return err
	}
	return s.submit(ctx, q)
}

// leaseToDelete takes the lease of a run that exists and nobody holds. It also returns the
// run's number, and the bases that it refers to.
func (s *Store) leaseToDelete(
	ctx context.Context, r *run,
) (l checkpoint.Lease, num uint64, bases []string, err error) {
	err = s.onceSettled(ctx, r, func() (err error) {
		if !r.exists() {
			return checkpoint.NotFound(r.id)
		}
		if l, err = s.acquireLocked(r, deleteOwner); err == nil {
			num, bases = r.num, r.info.Bases()
		}
		return err
	})
	return l, num, bases, err
}

// endLease gives back a lease that was taken for one request, unless the outcome of that is not
// known: then the committer does, or the store has stopped.
func (s *Store) endLease(r *run, l checkpoint.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(err, checkpoint.ErrCommitUnknown) {
		r.giveBack(l)
	}
}

// sweep removes the keys of a deleted run with remove, which is given some at a time, and
// last the mark that they are to be removed.
func (s *Store) sweep(
	ctx context.Context, num uint64, remove func(keys [][]byte) error,
) error {
	for _, prefix := range [][]byte{
		runKey(logKey, num), runKey(postKey, num), runKey(snapshotKey, num),
		append([]byte{chunkKey}, runKey(logKey, num)...),
		append([]byte{chunkKey}, runKey(postKey, num)...),
		append([]byte{chunkKey}, runKey(snapshotKey, num)...),
	} {
		if err := s.sweepPrefix(ctx, prefix, nil, nil, remove); err != nil {
			return err
		}
	}
	return remove([][]byte{runKey(trimmedKey, num), runKey(s.kinds.deleted, num)})
}

// sweepPrefix removes the keys with that prefix, from begin on and up to end if these are not nil.
func (s *Store) sweepPrefix(
	ctx context.Context, prefix, begin, end []byte, remove func(keys [][]byte) error,
) error {
	for {
		keys, err := s.firstKeys(ctx, prefix, begin, end)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := remove(keys); err != nil {
			return err
		}
		begin = append(keys[len(keys)-1], 0) // an iterator steps over keys that were removed one by one
	}
}

// firstKeys returns at most deleteMost keys with that prefix, from begin on and before end if these
// are not nil.
func (s *Store) firstKeys(ctx context.Context, prefix, begin, end []byte) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := s.viewWithin()
	defer v.close()
	it, err := v.iterator(prefix, false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var keys [][]byte
	for it.Seek(begin); it.Valid() && len(keys) < deleteMost; it.Next() {
		if end != nil && bytes.Compare(it.Item().Key(), end) >= 0 {
			break
		}
		keys = append(keys, it.Item().KeyCopy(nil))
	}
	return keys, nil
}

// sweepAll ends what an earlier process left unfinished: the removal of deleted runs, of the past
// of trimmed ones, and of pieces of bases. It runs before the committer does, and commits by
// itself. What there is no room for stays, as behind a Delete that could not finish.
func (s *Store) sweepAll(ctx context.Context) error {
	next := frameNumber(nextKey, s.lastRun+1)
	remove := func(keys [][]byte) error {
		size := perKey * (len(keys) + 1)
		for _, key := range keys {
			size += len(key)
		}
		if err := s.space.check(time.Now(), size); err != nil {
			return err
		}
		return s.commitAlone(func(txn *badger.Txn) error {
			for _, key := range keys {
				if err := txn.Delete(key); err != nil {
					return err
				}
			}
			return txn.Set(nextKey, next)
		})
	}
	for kind, finish := range map[byte]func(mark []byte) error{
		s.kinds.deleted: func(mark []byte) error { return s.sweep(ctx, runOf(mark), remove) },
		trimmedKey: func(mark []byte) error {
			v := s.viewWithin()
			value, err := v.get(mark)
			v.close()
			if err != nil || value == nil { // it went with a deleted run
				return err
			}
			return s.sweepTrimmed(ctx, mark, value, 0, remove)
		},
		piecesKey: func(mark []byte) error { return s.sweepPieces(ctx, mark, remove) },
	} {
		err := s.sweepPrefix(ctx, []byte{kind}, nil, nil, func(marks [][]byte) error {
			for _, mark := range marks {
				if err := finish(mark); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, checkpoint.ErrFull) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
