package badgerstore

import (
	"runtime"
	"time"
)

// A group is gathered by looking at the queue, never by a timer. Runs that were just told
// that they are durable come back within microseconds, so after a commit that acknowledged
// n appends the committer expects n more, and those that came meanwhile. It waits for them
// as long as a quarter of the last write took, not with most of the group there, and not
// at all for a run alone.
const (
	groupMost = 700 // requests in a group: beyond, the next are better sealed meanwhile
	waitMost  = 256 // requests that are worth waiting for
	trimEvery = 64  // groups between two SetDiscardTs
)

// A group is what the committer writes in one transaction.
type group struct {
	requests []*request
	refused  []refusal // not admitted
	appends  int
	bytes    int
	keys     int
	left     *request // taken from the queue but too large for this group
	bulk     bool     // a piece of a large value is in it
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

// first blocks until there is a request for g. It receives from one channel only, which is
// a good part of what an append costs: who sends to another one pokes it with a nil.
func (s *Store) first(g *group) bool {
	s.drainBulk(g) // a poke may have found the queue full
	for len(g.requests) == 0 {
		q, ok := <-s.queue
		if !ok {
			return false
		}
		if q == nil {
			s.drainBulk(g)
			continue
		}
		s.take(g, q)
	}
	return true
}

// drain adds what waits, and of the pieces of large values at most one: so they go on, and
// no append waits long for them.
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
	if !g.bulk && g.left == nil {
		s.drainBulk(g)
	}
}

// drainBulk adds one piece of a large value, if there is one.
func (s *Store) drainBulk(g *group) {
	for !g.bulk && g.left == nil {
		select {
		case q := <-s.bulk:
			g.bulk = s.take(g, q)
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
