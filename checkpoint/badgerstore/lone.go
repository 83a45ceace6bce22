package badgerstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// commitLone commits the append q, which began at now, on the goroutine of its caller, if nobody
// else's is beside it and none was lately: to hand it to the committer and to be told of it costs a
// tenth of an append that no disk is waited for. It reports whether it did.
//
// Its caller does not look at ctx meanwhile: so it does it for those who need not, see
// [checkpoint.Attended]. Where a disk is waited for, or an observer is told of it, the committer
// does it, and where pieces were written before: ctx may have ended since.
func (s *Store) commitLone(ctx context.Context, q *request, now time.Time) (done bool, err error) {
	if s.synced || s.apart || s.options.Observe != nil || q.record.Key == nil || q.bytes > uncounted || !unhurried(ctx) {
		return false, nil
	}
	if s.claimed.Load() || len(s.queue)+len(s.bulk) > 0 || !s.committing.TryLock() {
		return false, nil
	}
	defer s.committing.Unlock()
	if s.lastAppends+s.lastWaiting > 1 || s.debt > 0 { // a group is better
		return false, nil
	}
	if s.alarm.crowded.Load() { // who waits for the committer is told when the commit is one that never ends
		return false, nil
	}
	done = true
	defer func() {
		if p := recover(); p != nil { // nobody knows what the database has done
			err = fmt.Errorf("%w: a commit panicked: %v\n%s", checkpoint.ErrCommitUnknown, p, debug.Stack())
			s.poison(err)
		}
	}()
	g := &s.lone
	q.state.Store(taken)
	g.add(q)
	s.commit(g, now)
	if err = g.err; len(g.refused) > 0 {
		s.refuse(g)
		err = <-q.done
	}
	g.reset()
	q.recycle()
	return done, err
}

// unhurried reports whether a call may go on when ctx has ended.
func unhurried(ctx context.Context) bool {
	_, ok := ctx.(checkpoint.Attended)
	return ok || ctx.Done() == nil
}
