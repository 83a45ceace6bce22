package badgerstore

import (
	"errors"
	"time"
)

// commitLone commits the append q, which began at now, on the goroutine of its caller, if nobody else's is beside it and none was
// lately: to hand it to the committer and to be told of it costs a tenth of an append that no disk is waited for. It reports whether
// it did. Then the caller does not look at its context meanwhile, which it could only do in vain: but for the time in
// which the database writes tables, for want of memory, that is some microseconds.
//
// Where a disk is waited for, or an observer is told of it, the committer does it.
func (s *Store) commitLone(q *request, now time.Time) (done bool, err error) {
	if s.synced || s.apart || s.options.Observe != nil || q.bytes > uncounted {
		return false, nil
	}
	if s.claimed.Load() || len(s.queue)+len(s.bulk) > 0 || !s.committing.TryLock() {
		return false, nil
	}
	ended := false
	defer func() {
		if !ended { // the database has panicked, and nobody knows what it has done
			s.poison(errors.New("a commit has not ended"))
		}
		s.committing.Unlock()
	}()
	if s.lastAppends+s.lastWaiting <= 1 && s.debt == 0 { // else a group is better
		g := &s.lone
		q.state.Store(taken)
		g.add(q)
		s.commit(g, now)
		if err = g.err; len(g.refused) > 0 {
			s.refuse(g)
			err = <-q.done
		}
		done = true
		g.reset()
		q.recycle()
	}
	ended = true
	return done, err
}
