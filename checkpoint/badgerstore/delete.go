package badgerstore

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// deleteOwner holds the lease of a run while it is deleted.
const deleteOwner = "a deletion"

// deleteMost is how many keys one transaction removes.
const deleteMost = 1000

// Delete implements [checkpoint.Store]. The run is gone in one transaction. Its keys are
// removed after that; what Delete can't finish, the next Open does.
func (s *Store) Delete(ctx context.Context, id string) error {
	r, err := s.pin(ctx, id)
	if err != nil {
		return err
	}
	defer s.leave(r)
	if err := s.settled(ctx, r); err != nil {
		return err
	}
	l, num, next, err := s.leaseToDelete(r)
	if err != nil {
		return err
	}
	q := newRequest()
	q.rule, q.run, q.lease, q.gone = held, r, l, true
	q.delete(nameKey(idKey, id))
	q.delete(runKey(rowKey, num))
	mark := runKey(deletedKey, num)
	q.set(mark, frame(mark, []byte(id)))
	q.set(nextKey, frame(nextKey, next))
	err = s.submit(ctx, q)
	s.endDelete(r, l, err)
	if err != nil {
		return err
	}
	// It is deleted, whatever comes now.
	_ = s.sweep(ctx, num, func(remove [][]byte) error {
		q := newRequest()
		for _, key := range remove {
			q.delete(key)
		}
		q.set(nextKey, frame(nextKey, next))
		return s.submitBulk(ctx, q)
	})
	return nil
}

// leaseToDelete takes the lease of a run that exists and nobody holds. It also returns the
// run's number, and the one that no run has had yet, encoded.
func (s *Store) leaseToDelete(r *run) (l checkpoint.Lease, num uint64, next []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.exists() {
		return l, 0, nil, notFound(r.id)
	}
	if l, err = s.acquireLocked(r, deleteOwner); err != nil {
		return l, 0, nil, err
	}
	return l, r.num, binary.BigEndian.AppendUint64(nil, s.lastRun+1), nil
}

// endDelete gives back the lease of a deletion, unless its outcome is not known: then the
// committer does, or the store has stopped.
func (s *Store) endDelete(r *run, l checkpoint.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.heldBy(l) && !errors.Is(err, checkpoint.ErrCommitUnknown) {
		r.info.Owner = ""
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
		for {
			keys, err := s.firstKeys(ctx, prefix)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			if err := remove(keys); err != nil {
				return err
			}
		}
	}
	return remove([][]byte{runKey(deletedKey, num)})
}

// firstKeys returns at most deleteMost keys with that prefix.
func (s *Store) firstKeys(ctx context.Context, prefix []byte) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.calls++
	v := s.viewLocked()
	s.mu.Unlock()
	defer v.close()
	it := v.iterator(prefix, false)
	defer it.Close()
	var keys [][]byte
	for it.Rewind(); it.Valid() && len(keys) < deleteMost; it.Next() {
		keys = append(keys, it.Item().KeyCopy(nil))
	}
	return keys, nil
}

// sweepAll ends the deletions that an earlier process left unfinished. It runs before the
// committer does, and commits by itself.
func (s *Store) sweepAll(ctx context.Context) error {
	for {
		keys, err := s.firstKeys(ctx, []byte{deletedKey})
		if err != nil || len(keys) == 0 {
			return err
		}
		next := frame(nextKey, binary.BigEndian.AppendUint64(nil, s.lastRun+1))
		for _, key := range keys {
			err := s.sweep(ctx, runOf(key), func(remove [][]byte) error {
				return s.commitAlone(func(txn *badger.Txn) error {
					for _, key := range remove {
						if err := txn.Delete(key); err != nil {
							return err
						}
					}
					return txn.Set(nextKey, next)
				})
			})
			if err != nil {
				return err
			}
		}
	}
}
