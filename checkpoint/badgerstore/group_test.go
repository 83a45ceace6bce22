package badgerstore

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Who sends bulk while the queue is full can't poke the committer, which looks for bulk anyway:
// also if nobody waits any more for what was in the queue.
func TestBulkIsFoundBehindDroppedRequests(t *testing.T) {
	t.Parallel()
	s := &Store{queue: make(chan *request), bulk: make(chan *request, 1)}
	found := make(chan bool)
	var g group
	go func() { found <- s.first(&g) }() // received below
	gone := func() *request {
		q := newRequest()
		q.state.Store(dropped)
		return q
	}
	s.queue <- gone() // it has looked for bulk, and found none
	piece := newRequest()
	piece.bulk = true
	s.bulk <- piece
	var ok bool
	select {
	case s.queue <- gone():
		ok = <-found
	case ok = <-found: // it looked once more when the piece was there
	}
	close(s.queue)
	if !ok || len(g.requests) != 1 || g.requests[0] != piece {
		t.Errorf("a group of %d, want the piece that waits", len(g.requests))
	}
}

// gathering returns a store of which only the queues are there, with so many appends of that size.
func gathering(appends, bytes int) *Store {
	s := &Store{queue: make(chan *request, max(appends, 1)), bulk: make(chan *request, 1), maxBytes: 1_000, maxKeys: 1_000}
	for range appends {
		s.queue <- sized(bytes)
	}
	return s
}

func sized(bytes int) *request {
	q := newRequest()
	q.rule, q.bytes = atHead, bytes
	return q
}

// gathered is the next group, of which the committer forgets all but what did not fit.
func gathered(s *Store, g *group) []*request {
	g.reset()
	s.gather(g)
	s.committing.Unlock()
	return append([]*request(nil), g.requests...)
}

// Every append is in one group, in the order in which they came, also one that did not fit into a
// group; and bulk is written although there are more appends than fit into each.
func TestBulkGetsOnWhileEveryGroupIsFull(t *testing.T) {
	t.Parallel()
	const appends = 6
	s := gathering(appends, 500) // 800 bytes are in a group
	piece := newRequest()
	piece.bulk, piece.bytes = true, 100
	var g group
	var all []*request
	for n := 1; len(all) < appends+1; n++ {
		if n == 2 {
			s.bulk <- piece
		}
		group := gathered(s, &g)
		if all = append(all, group...); n == 2 && (len(group) != 2 || group[1] != piece) {
			t.Errorf("the piece is not in the first group that was gathered since it was there")
		}
		if n > appends {
			t.Fatalf("%d groups have %d requests, want %d", n, len(all), appends+1)
		}
	}
	if g.left != nil || len(s.queue) > 0 {
		t.Errorf("a request is left")
	}
}

// A group has so many requests at most, however many wait.
func TestAGroupHasItsMost(t *testing.T) {
	t.Parallel()
	s := gathering(groupMost+1, 1)
	var g group
	if n := len(gathered(s, &g)); n != groupMost {
		t.Errorf("%d requests are in a group, want %d", n, groupMost)
	}
	if n := len(gathered(s, &g)); n != 1 {
		t.Errorf("%d are in the next one, want 1", n)
	}
}

// Behind a group of two appends two are waited for.
func TestAppendsThatAreExpectedAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := gathering(1, 1)
	s.lastAppends, s.lastEnd = 2, time.Now().Add(time.Hour) // however late the second one comes
	var g group
	done := make(chan int)
	go func() { done <- len(gathered(s, &g)) }() // received below
	for len(s.queue) > 0 {
		runtime.Gosched()
	}
	s.queue <- sized(1)
	if n := <-done; n != 2 {
		t.Errorf("%d appends are in the group, want 2", n)
	}
}

// beside returns how many chunks were written in so many groups, each of which has so many appends
// of that size and takes that long, while somebody always has a large value to write.
func beside(groups, appends, size int, took time.Duration) (chunks int) {
	s := gathering(0, 0)
	s.maxBytes, s.maxKeys = 16<<20, 1_000
	s.queue = make(chan *request, appends+1)
	s.pieceChunks.Store(chunksAtOnce)
	s.quiet = quietMost
	s.lastEnd = time.Now().Add(-time.Hour)
	var g group
	for range groups {
		if len(s.bulk) == 0 {
			piece := newRequest()
			piece.bulk = true
			for i := range int(s.pieceChunks.Load()) {
				piece.set(chunkOf(seqKey(snapshotKey, 1, 1), attempt{}, i), make([]byte, chunkSize))
			}
			s.bulk <- piece
		}
		for range appends {
			s.queue <- sized(size)
		}
		s.gatherNow(&g)
		s.settleDebt(&g)
		s.lastAppends, s.lastEnd = g.appends, s.lastEnd.Add(took)
		if g.bulk > 0 {
			chunks += g.bulk / chunkSize
			s.bulkAt = s.lastEnd
		}
	}
	return chunks
}

// gatherNow is the committer's next group.
func (s *Store) gatherNow(g *group) {
	g.reset()
	s.gather(g)
	s.committing.Unlock()
}

// Beside other requests bulk goes on, by as much as they are worth: a chunk for sixteen appends,
// and as much as it had before where a crowd appends. Large appends are worth about what they have
// themselves; where each group takes long there is a piece every 20 ms; where nobody appends every
// group has a large one.
func TestBulkBesideAppends(t *testing.T) {
	t.Parallel()
	const groups = 160
	for name, c := range map[string]struct {
		appends, size int
		took          time.Duration
		least, most   int // chunks
	}{
		"nobody":        {0, 0, time.Millisecond, 640, 640},
		"one":           {1, 1_000, 100 * time.Microsecond, 9, 13}, // the first piece is a large one
		"two":           {2, 1_000, 100 * time.Microsecond, 19, 23},
		"eight":         {8, 1_000, 100 * time.Microsecond, 79, 83},
		"sixteen":       {16, 1_000, 100 * time.Microsecond, 157, 163},
		"a crowd":       {80, 1_000, 100 * time.Microsecond, 637, 640},
		"a large one":   {1, 100 << 10, 100 * time.Microsecond, 160, 250},
		"a slow device": {1, 1_000, 5 * time.Millisecond, 32, 40},
	} {
		if chunks := beside(groups, c.appends, c.size, c.took); chunks < c.least || chunks > c.most {
			t.Errorf("beside %s %d groups have %d chunks, want %d to %d", name, groups, chunks, c.least, c.most)
		}
	}
}

// A group that is not as it was gathered, since the rules of some of its requests don't hold,
// counts as what is left of it.
func TestRefusedRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := gathering(0, 0)
	append1, piece := sized(1_000), newRequest()
	piece.bulk, piece.bytes = true, chunkSize
	var g group
	for _, q := range []*request{append1, piece} {
		q.rule, q.run = alive, new(run) // which does not exist
		g.add(q)
	}
	if s.admit(&g); len(g.refused) != 2 || g.bulk != 0 || g.worth != 0 {
		t.Errorf("%d requests are refused, and the group has %d bytes of bulk and is worth %d", len(g.refused), g.bulk, g.worth)
	}
}

// Bulk that has to let others go first waits for an append that is expected.
func TestBulkWaitsForAppends(t *testing.T) {
	t.Parallel()
	s := gathering(0, 0)
	s.debt, s.lastAppends, s.lastEnd = 1<<20, 1, time.Now().Add(time.Hour) // however late it comes
	s.bulkAt = s.lastEnd
	piece := newRequest()
	piece.bulk = true
	s.bulk <- piece
	var g group
	done := make(chan []*request)
	go func() { done <- gathered(s, &g) }() // received below

	for s.committing.TryLock() { // which is held while the append is waited for
		s.committing.Unlock()
		runtime.Gosched()
	}
	appended := sized(1)
	s.queue <- appended
	if got := <-done; len(got) != 1 || got[0] != appended || len(s.bulk) != 1 {
		t.Errorf("a group of %d, and %d pieces wait; want the append, and the piece behind it", len(got), len(s.bulk))
	}
}

// A request that did not fit into the last group goes before bulk that has to wait.
func TestBulkWaitsForWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := gathering(0, 0)
	s.debt = 1 << 20
	piece := newRequest()
	piece.bulk = true
	s.bulk <- piece
	g := group{left: sized(1)}
	if got := gathered(s, &g); len(got) != 1 || len(s.bulk) != 1 {
		t.Errorf("a group of %d, and %d pieces wait; want the append alone", len(got), len(s.bulk))
	}
}

// Bulk that has to let appends go first does not wait for those that don't come, nor for what is no
// append.
func TestBulkDoesNotWaitForNobody(t *testing.T) {
	t.Parallel()
	for name, queued := range map[string]*request{"nothing": newRequest(), "a poke": nil, "a request that was dropped": newRequest()} {
		s := gathering(0, 0)
		s.debt, s.lastAppends, s.lastEnd = 1<<20, 1, time.Now().Add(-time.Hour)
		s.bulkAt = s.lastEnd
		piece := newRequest()
		piece.bulk = true
		s.bulk <- piece
		if queued != nil {
			queued.state.Store(dropped)
		}
		if name != "nothing" {
			s.queue <- queued
		}
		var g group
		got := gathered(s, &g)
		if s.settleDebt(&g); len(got) != 1 || got[0] != piece || s.owes() {
			t.Errorf("behind %s a group of %d, and owes %d; want the piece", name, len(got), s.debt)
		}
	}
}

// A committer is a context at whose Done a request is committed that waits.
type committer struct {
	context.Context
	s       *Store
	commits int
}

func (c *committer) Done() <-chan struct{} {
	select {
	case q := <-c.s.queue:
		c.commits++
		q.state.Store(settled)
		q.done <- nil
	default:
	}
	return c.Context.Done()
}

// What is sent when its context has ended, as the last request of a call that has written pieces,
// changes nothing, however quick the committer is.
func TestRequestOfAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := gathering(0, 0)
	c := &committer{Context: ctx, s: s}
	if err := s.submit(c, sized(10)); !errors.Is(err, context.Canceled) || c.commits+len(s.queue) > 0 {
		t.Errorf("%v, with %d commits and %d requests that wait", err, c.commits, len(s.queue))
	}
}

// A store that has stopped may be stopped again, by what fails behind that, while calls are told.
func TestStoppedAgainWhileCallsAreTold(t *testing.T) {
	t.Parallel()
	s, r := new(Store), new(run)
	s.poison(errBaseMoved)
	stopped := make(chan struct{})
	go func() { // waited for below
		defer close(stopped)
		for range 100 {
			s.poison(errBaseMoved)
		}
	}()
	for range 100 {
		if err := s.onceSettled(t.Context(), r, nil); !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("onceSettled = %v, want ErrClosed", err)
		}
	}
	<-stopped
}
