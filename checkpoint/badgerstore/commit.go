package badgerstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// commitLoop is the committer, the one goroutine that a store has of its own. Close waits for it
// and ends it by closing the queue.
//
// A sync is per transaction, whoever commits it: so the committer makes one
// transaction of all requests that wait. It does not encode, seal or hash: each caller has
// done that. It compares heads and leases in memory, under the store's mutex, which nobody
// holds during a write. A lone append may be committed by its caller: see commitLone.
func (s *Store) commitLoop(g *group) {
	closed := false
	defer func() {
		if closed {
			close(s.quitted)
			return
		}
		// An observer has ended this goroutine, as runtime.Goexit does: another one goes on behind
		// the group that it was told of.
		g.reset()
		go s.commitLoop(g) // Close waits for it, and ends it
	}()
	for s.gather(g) {
		s.commit(g, time.Now())
		s.committing.Unlock() // before those that are told come back
		s.answer(g)
		if g.written {
			s.observe(checkpoint.Group{Appends: g.appends, Bytes: g.bytes - perKey*g.keys, Duration: g.took, Err: g.err})
		}
		g.reset()
	}
	closed = true
}

// commit makes the requests of g durable, or refuses them, and leaves in g what their callers are
// to be told. Whoever calls it holds committing.
func (s *Store) commit(g *group, now time.Time) {
	s.admit(g)
	s.settleDebt(g)
	if len(g.requests) == 0 {
		return
	}
	if g.err = s.space.check(now, g.bytes); g.err != nil {
		if moved := (*movedError)(nil); errors.As(g.err, &moved) {
			s.poison(g.err)
		}
		g.written = true
		s.settle(g, false)
		return
	}
	unknown, err := s.write(g)
	if g != &s.lone { // which nobody is told of or waits behind
		g.took = time.Since(now)
	}
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
	g.err, g.written = err, true
	s.settle(g, err == nil)
	s.tell(g)
	s.lastAppends, s.lastWaiting = g.appends, len(s.queue) // before those that are answered come back
	if s.lastEnd, s.lastTook = now.Add(g.took), g.took; g.bulk > 0 {
		s.bulkAt = s.lastEnd
	}
}

// answer tells the callers of g what became of their requests.
func (s *Store) answer(g *group) {
	for _, q := range g.requests {
		q.done <- g.err
	}
	s.refuse(g)
}

// A refusal is a request whose rule does not hold, and why.
type refusal struct {
	request *request
	err     error
}

// refuse tells those whose requests were not admitted to g, once g is settled: until then nobody
// can see what they lost against, and if g was not written they did not lose.
func (s *Store) refuse(g *group) {
	if len(g.refused) == 0 {
		return
	}
	s.mu.Lock()
	for _, r := range g.refused {
		r.request.settle()
		r.request.unlease()
		s.letGo(r.request)
	}
	s.wake()
	s.mu.Unlock()
	for _, r := range g.refused {
		if g.err != nil && errors.Is(r.err, checkpoint.ErrConflict) {
			r.err = g.err
		}
		r.request.done <- r.err
	}
}

// admit leaves in g the requests whose rule holds, and keeps the others to be refused.
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
			g.weigh(q, -1)
			g.refused = append(g.refused, refusal{q, err})
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
	case q.rule == alive && (!q.run.exists() || q.run.num != q.num):
		return checkpoint.NotFound(q.run.id)
	case q.rule >= held && !q.run.heldBy(q.lease):
		return fenced(q.lease)
	case q.rule == atHead && q.run.tail != q.after:
		return conflict(q.lease.Run, q.run.tail, q.after)
	}
	for _, f := range q.forks {
		if f.run.exists() || !f.run.heldBy(f.lease) {
			return fenced(f.lease)
		}
	}
	if err := q.counts(); err != nil {
		return err
	}
	if q.rule == atHead {
		q.run.tail = q.info.Head
	}
	if q.run != nil {
		q.run.inFlight++
	}
	for _, f := range q.forks {
		f.run.inFlight++
	}
	if q.numbers {
		q.set(nextKey, frameNumber(nextKey, s.lastRun+1))
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
	if e := g.single(); e != nil {
		_ = s.stamp.SetEntryAt(e, ts)
	}
	return true, s.commitAt(txn, ts)
}

// single returns what g writes if that is one value, which no mark has to hold together with
// others.
func (g *group) single() *badger.Entry {
	if len(g.requests) != 1 || g.requests[0].keys() != 1 {
		return nil
	}
	switch q := g.requests[0]; {
	case q.record.Key != nil:
		return &q.record
	case len(q.sets) > 0:
		return q.sets[0]
	}
	return nil
}

// newStamp returns what gives a value the number of its transaction before Badger does. A
// transaction of which all values have one is written without marks, and without the record behind
// it that says that it is whole, which takes a tenth of an append that no disk is waited for. The
// checksum of a single value says as much.
//
// It is a batch that has ended: it takes nothing, but has set the number by then. If it didn't,
// there would be marks; TestALoneAppendIsOneRecord finds that.
func newStamp(db *badger.DB) *badger.WriteBatch {
	b := db.NewManagedWriteBatch()
	b.Cancel()
	return b
}

// commitSynced commits txn as the transaction ts, and makes it durable if the store is synced and
// Badger does not.
func (s *Store) commitSynced(txn *badger.Txn, ts uint64) error {
	if err := txn.CommitAt(ts, nil); err != nil || s.log == nil {
		return err
	}
	return s.log.sync()
}

// settle makes known what g has made durable, or that it has not, and wakes those who wait
// to know. Every trimEvery groups it lets the database forget what no reader can see.
func (s *Store) settle(g *group, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range g.requests {
		q.settle()
		for i := range q.forks {
			q.forks[i].run.inFlight--
			if durable {
				q.forks[i].made()
			}
		}
		if !durable {
			q.unlease()
		}
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
	for _, q := range slices.Backward(g.requests) {
		q.counted(durable)
		s.letGo(q)
	}
	if durable {
		s.durable = s.ts
	}
	s.wake()
	if s.groups++; s.groups%trimEvery == 0 {
		s.db.SetDiscardTs(s.oldestReader())
	}
}

// letGo has what q is about forgotten if q, whose outcome is known, was the last that needed it.
// The store's mutex is held.
func (s *Store) letGo(q *request) {
	if q.run != nil {
		s.rest(q.run)
	}
	for _, f := range q.forks {
		s.rest(f.run)
	}
	for _, r := range q.refs {
		s.forget(r.base)
	}
}

// wake wakes those who wait for a request to be settled. The store's mutex is held.
func (s *Store) wake() {
	if s.woken != nil {
		close(s.woken)
		s.woken = nil
	}
}

// tell wakes those who watch for messages, or follow a log. Telling too much does no harm.
func (s *Store) tell(g *group) {
	for _, q := range g.requests {
		switch {
		case q.rule == alive:
			s.board.Tell(q.run.id)
		case q.rule == atHead, q.gone:
			s.logs.Tell(q.run.id)
		}
		for _, f := range q.forks {
			s.logs.Tell(f.run.id)
		}
	}
}

// observe tells the observer of a group. Its panic is its own affair; see commitLoop for what ends
// more than it.
func (s *Store) observe(g checkpoint.Group) {
	if s.options.Observe == nil {
		return
	}
	defer func() { _ = recover() }()
	s.options.Observe(g)
}
