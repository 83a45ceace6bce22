package badgerstore

import (
	"fmt"
	"runtime"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Badger syncs once per transaction, whoever commits it: so one goroutine, the committer,
// makes one transaction of all requests that wait. It does not sign, encode or copy: each
// caller has done that. It compares heads and leases in memory, under the store's mutex,
// which nobody holds during a write.
//
// A group is gathered by looking at the queue, never by a timer. Runs that were just told
// that they are durable come back within microseconds, so after a commit that acknowledged
// n appends the committer expects n more, and those that came meanwhile. It waits for them
// as long as a quarter of the last write took, not with most of the group there, and not
// at all for a run alone.
const (
	groupMost = 700 // requests in a group: beyond, signing the next is better done meanwhile
	waitMost  = 256 // requests that are worth waiting for
	trimEvery = 64  // groups between two SetDiscardTs
)

// A group is what the committer writes in one transaction.
type group struct {
	requests []*request
	appends  int
	bytes    int
	keys     int
	left     *request // taken from the queue but too large for this group
	bulk     bool     // a piece of a large value is in it
}

func (g *group) reset() {
	clear(g.requests)
	*g = group{requests: g.requests[:0], left: g.left}
}

// fits reports whether q may join. The first request always does.
func (g *group) fits(s *Store, q *request) bool {
	return len(g.requests) == 0 ||
		g.bytes+q.bytes <= s.maxBytes*8/10 && g.keys+q.keys() <= s.maxKeys*8/10
}

func (g *group) add(q *request) {
	g.requests = append(g.requests, q)
	g.bytes += q.bytes
	g.keys += q.keys()
	if q.rule == atHead {
		g.appends++
	}
}

// commitLoop is the committer. Close waits for it and ends it by closing quit.
func (s *Store) commitLoop() {
	defer close(s.quitted)
	var g group
	for s.gather(&g) {
		s.commit(&g)
		g.reset()
	}
}

// gather fills g with requests. It returns false when the store closes; nobody waits for a
// request then.
func (s *Store) gather(g *group) bool {
	if g.left != nil {
		g.add(g.left)
		g.left = nil
	} else if !s.first(g) {
		return false
	}
	expected := min(s.lastAppends+s.lastWaiting, waitMost)
	if expected > 1 && g.appends > 0 {
		s.wait(len(g.requests), expected)
	}
	s.drain(g)
	return true
}

// wait waits for the requests that are expected to be there, of which some are taken, and
// then until no more are coming.
func (s *Store) wait(taken, expected int) {
	until := s.lastEnd.Add(s.lastTook / 4)
	for taken+len(s.queue) < expected && time.Now().Before(until) {
		runtime.Gosched()
	}
	for {
		n := len(s.queue)
		runtime.Gosched()
		if len(s.queue) == n {
			return
		}
	}
}

// first blocks until there is a request for g.
func (s *Store) first(g *group) bool {
	for len(g.requests) == 0 {
		select {
		case q := <-s.queue:
			s.take(g, q)
		case q := <-s.bulk:
			g.bulk = s.take(g, q)
		case <-s.quit:
			return false
		}
	}
	return true
}

// drain adds what waits, and of the pieces of large values at most one: so they go on, and
// no append waits long for them.
func (s *Store) drain(g *group) {
	for g.left == nil && len(g.requests) < groupMost {
		select {
		case q := <-s.queue:
			s.take(g, q)
			continue
		default:
		}
		break
	}
	if g.bulk || g.left != nil {
		return
	}
	select {
	case q := <-s.bulk:
		g.bulk = s.take(g, q)
	default:
	}
}

// take adds q to g, or keeps it for the next group, unless its caller has dropped it.
func (s *Store) take(g *group, q *request) bool {
	if !q.state.CompareAndSwap(queued, taken) {
		return false
	}
	if !g.fits(s, q) {
		g.left = q
		return false
	}
	g.add(q)
	return true
}

// commit makes the requests of g durable, or refuses them, and tells their callers.
func (s *Store) commit(g *group) {
	s.admit(g)
	if len(g.requests) == 0 {
		return
	}
	start := time.Now()
	if err := s.space.check(start, g.bytes); err != nil {
		s.settle(g, false)
		g.answer(err)
		return
	}
	unknown, err := s.write(g)
	took := time.Since(start)
	if err == nil && s.synced {
		// Before anybody is told: the witness is never older than what was acknowledged.
		unknown, err = true, s.witness.set(s.ts)
	}
	switch {
	case err == nil:
	case unknown:
		s.poison(err)
		err = fmt.Errorf("%w: %w", checkpoint.ErrCommitUnknown, err)
	default:
		err = fmt.Errorf("checkpoint: the store refused an append: %w", err)
	}
	s.settle(g, err == nil)
	s.tell(g)
	g.answer(err)
	s.lastAppends, s.lastWaiting = g.appends, len(s.queue)
	s.lastEnd, s.lastTook = start.Add(took), took
	s.observe(checkpoint.Group{
		Appends: g.appends, Bytes: g.bytes - perKey*g.keys, Duration: took, Err: err,
	})
}

// admit leaves in g the requests whose rule holds, and refuses the others.
func (s *Store) admit(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := g.requests[:0]
	for _, q := range g.requests {
		if err := s.admits(q); err != nil {
			g.bytes -= q.bytes
			g.keys -= q.keys()
			if q.rule == atHead {
				g.appends--
			}
			q.settle()
			q.done <- err
			continue
		}
		kept = append(kept, q)
	}
	clear(g.requests[len(kept):])
	g.requests = kept
	s.wake()
}

// admits checks the rule of q, and if it is an append moves the tail of its run.
func (s *Store) admits(q *request) error {
	if s.failed != nil {
		return s.closedError()
	}
	switch {
	case q.rule == alive && !q.run.exists():
		return notFound(q.run.id)
	case q.rule >= held && !q.run.heldBy(q.lease):
		return fenced(q.lease)
	case q.rule == atHead && q.run.tail != q.after:
		return conflict(q.lease.Run, q.run.tail, q.after)
	}
	if q.rule == atHead {
		q.run.tail = q.info.Head
	}
	if q.run != nil {
		q.run.inFlight++
	}
	return nil
}

// write commits g as one transaction. If it fails unknown says whether the transaction may
// have happened.
func (s *Store) write(g *group) (unknown bool, err error) {
	ts := s.ts + 1
	txn := s.db.NewTransactionAt(ts, true)
	defer txn.Discard()
	for _, q := range g.requests {
		if q.record.Key != nil {
			if err := txn.SetEntry(&q.record); err != nil {
				return false, err
			}
		}
		for _, e := range q.sets {
			if err := txn.SetEntry(e); err != nil {
				return false, err
			}
		}
		for _, key := range q.deletes {
			if err := txn.Delete(key); err != nil {
				return false, err
			}
		}
	}
	s.ts = ts // no number is left out: opening looks for gaps
	return true, s.commitAt(txn, ts)
}

// settle makes known what g has made durable, or that it has not, and wakes those who wait
// to know. Every trimEvery groups it lets the database forget what no reader can see.
func (s *Store) settle(g *group, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range g.requests {
		q.settle()
		if q.run == nil {
			continue
		}
		q.run.inFlight--
		switch {
		case durable:
			q.run.advance(q)
		case q.rule == atHead:
			q.run.tail = q.run.info.Head
		}
	}
	if durable {
		s.durable = s.ts
	}
	s.wake()
	if s.groups++; s.groups%trimEvery == 0 {
		s.db.SetDiscardTs(s.oldestReader())
	}
}

// wake wakes those who wait for a request to be settled. The store's mutex is held.
func (s *Store) wake() {
	if s.woken != nil {
		close(s.woken)
		s.woken = nil
	}
}

func (g *group) answer(err error) {
	for _, q := range g.requests {
		q.done <- err
	}
}

// tell wakes those who watch for messages. Telling too much does no harm.
func (s *Store) tell(g *group) {
	for _, q := range g.requests {
		if q.rule == alive {
			s.board.Tell(q.run.id)
		}
	}
}

// observe tells the observer of a group. Its panic is its own affair.
func (s *Store) observe(g checkpoint.Group) {
	if s.options.Observe == nil {
		return
	}
	defer func() { _ = recover() }()
	s.options.Observe(g)
}
