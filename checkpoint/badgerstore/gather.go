package badgerstore

import (
	"runtime"
	"time"
)

// A group is gathered by looking at the queue, never by a timer. Runs that were just told that they
// are durable come back within microseconds, so after a commit that acknowledged n appends the
// committer expects n more, and those that came meanwhile. It waits for them as long as a quarter
// of the last write took, up to waitWithin, and longer while they are coming, but not at all for a
// run alone. Beyond waitMost it writes what there is: then the processor is what limits, and one
// half of the runs works while the other half is being written.
const (
	groupMost = 400 // requests in a group: beyond, the next are better sealed meanwhile
	waitMost  = 256 // appends that are worth waiting for
	idleMost  = 3   // turns of the others in which none of them appends, before they are taken not to be coming
	trimEvery = 64  // groups between two SetDiscardTs

	// bulkMost is how many bytes of bulk a group has before no more are added: several small
	// snapshots, or one piece of a large value.
	bulkMost = 64 << 10

	// besideRequest is how many bytes of bulk a request that is none is worth at least: see
	// [Store.owes]. With 4 KiB the slowest hundredth of appends by a run takes two to three times
	// as long beside another one that writes 8 MiB without a pause, with 5 KiB three to four times,
	// with all that there is thirty times.
	besideRequest = 4 << 10

	// bulkWithin is how long bulk waits for requests at most, so that it goes on where each takes
	// long.
	bulkWithin = 20 * time.Millisecond

	// waitWithin is how long the committer waits at most for appends that are not coming: a quarter
	// of what a sync of a slow disk takes. What took longer has been held up, and the next write
	// need not be.
	waitWithin = 5 * time.Millisecond

	// quietMost groups without debt are the sign that nobody is beside bulk.
	quietMost = 4
)

// A group is what the committer writes in one transaction.
type group struct {
	requests []*request
	refused  []refusal // not admitted
	appends  int
	bytes    int
	keys     int
	left     *request // taken but too large for this group
	bulk     int      // bytes of bulk
	worth    int      // bytes of bulk that the other requests are worth

	written bool          // or found to be impossible to write
	took    time.Duration // to be written; of a lone append it is not known
	err     error         // why the requests were not made durable
}

func (g *group) reset() {
	clear(g.requests)
	clear(g.refused)
	*g = group{requests: g.requests[:0], refused: g.refused[:0], left: g.left}
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
	g.weigh(q, 1)
}

// weigh counts q as bulk, or what it is worth, or with a sign of -1 no more.
func (g *group) weigh(q *request, sign int) {
	if q.bulk {
		g.bulk += sign * q.bytes
		return
	}
	g.worth += sign * max(besideRequest, q.bytes)
}

// gather fills g with requests, and returns with committing held. It returns false, and without,
// when the store closes; nobody waits for a request then.
func (s *Store) gather(g *group) bool {
	if g.left != nil {
		s.claim()
		g.add(g.left)
		g.left = nil
		if !s.owes() {
			s.drainBulk(g) // also while every group is as large as can be
		}
	} else if !s.first(g) {
		return false
	}
	if expected := min(s.lastAppends+s.lastWaiting, waitMost); expected > 1 && expected > g.appends {
		s.wait(g.appends, expected) // also with bulk alone: in a crowd it is not worth a sync of its own
	}
	s.drain(g)
	return true
}

// owes reports whether bulk has to let other requests go first. Bulk fills Badger's memory, and
// when tables are written and merged an append waits for the device: whoever appends beside a large
// value waits for it in as many of his appends as there are such moments. So a request is worth
// besideRequest bytes of bulk that shares its groups, or as many as it has itself, and what bulk
// there is beyond waits as long as others come, and no longer than bulkWithin.
func (s *Store) owes() bool {
	return s.debt >= besideRequest && s.lastEnd.Sub(s.bulkAt) < bulkWithin
}

// settleDebt counts what of g is bulk, and says how much of a large value may be in one piece: as
// much as what is beside it is worth, and all that may be if for a while nothing was. Where nobody
// is beside bulk it owes nothing.
func (s *Store) settleDebt(g *group) {
	s.debt = max(0, s.debt+g.bulk-g.worth)
	if g.worth == 0 {
		s.debt = 0
	}
	if s.quiet++; s.debt > 0 {
		s.quiet = 0
	}
	chunks := chunksAtOnce
	if s.quiet < quietMost {
		chunks = max(1, min(g.worth/chunkSize, chunksAtOnce))
	}
	s.pieceChunks.Store(int32(chunks))
}

// wait waits for the appends that are expected to be there, of which some are taken, and
// then until no more are coming.
func (s *Store) wait(taken, expected int) {
	until := s.lastEnd.Add(min(s.lastTook/4, waitWithin))
	for idle := 0; taken+len(s.queue) < expected && (idle <= idleMost || time.Now().Before(until)); {
		n := len(s.queue)
		runtime.Gosched()
		if idle++; len(s.queue) != n {
			idle = 0
		} else if idle > 1 {
			yieldThread()
		}
	}
	for n := -1; n != len(s.queue) && taken+len(s.queue) < waitMost; {
		n = len(s.queue)
		runtime.Gosched()
	}
}

// first blocks until there is a request for g. It receives from one channel only, which is
// a good part of what an append costs: who sends to another one pokes it with a nil.
func (s *Store) first(g *group) bool {
	for {
		if len(s.bulk) > 0 { // a poke may have found the queue full
			s.claim()
			if s.beginWithBulk(g); len(g.requests) > 0 {
				return true
			}
			s.committing.Unlock()
		}
		q, ok := <-s.queue
		if !ok {
			return false
		}
		if q == nil {
			continue
		}
		s.claim()
		if s.take(g, q) {
			return true
		}
		s.committing.Unlock() // who sent bulk may have found the queue full of requests that are dropped
	}
}

// claim takes committing for the committer, before whoever has no need of it.
func (s *Store) claim() {
	s.claimed.Store(true)
	s.committing.Lock()
	s.claimed.Store(false)
}

// beginWithBulk begins g with bulk, unless that has to let appends go first, and some come.
func (s *Store) beginWithBulk(g *group) {
	if s.owes() {
		if len(s.bulk) > 0 {
			s.wait(0, max(1, min(s.lastAppends+s.lastWaiting, waitMost)))
		}
		if len(s.queue) > 0 {
			return
		}
	}
	s.drainBulk(g)
}

// drain adds what waits, and of bulk at most so much that no append waits long for it.
func (s *Store) drain(g *group) {
	for g.left == nil && len(g.requests) < groupMost {
		select {
		case q, ok := <-s.queue:
			if q != nil {
				s.take(g, q)
			}
			if ok {
				continue
			}
		default:
		}
		break
	}
	if !s.owes() || g.worth == 0 {
		s.drainBulk(g)
	}
}

// drainBulk adds pieces of large values and what else is bulk, as much as may be in a group.
func (s *Store) drainBulk(g *group) {
	for g.bulk < bulkMost && g.left == nil {
		select {
		case q := <-s.bulk:
			s.take(g, q)
		default:
			return
		}
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
