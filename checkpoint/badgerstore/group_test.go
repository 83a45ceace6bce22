package badgerstore

import (
	"runtime"
	"testing"
	"time"
)

// Who sends bulk while the queue is full can't poke the committer, which looks for bulk anyway: also if
// nobody waits any more for what was in the queue.
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
	s.queue <- gone()
	close(s.queue)
	if !<-found || len(g.requests) != 1 || g.requests[0] != piece {
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
	return append([]*request(nil), g.requests...)
}

// Every append is in one group, in the order in which they came, also one that did not fit into a group; and bulk
// is written although there are more appends than fit into each.
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
	s.lastAppends, s.lastEnd, s.lastTook = 2, time.Now(), time.Hour
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

// beside returns how many of the first groups, each of which has so many appends, had a piece of bulk, of which there
// always is one.
func beside(groups, appends int) (pieces int) {
	s := gathering(0, 0)
	s.maxBytes, s.maxKeys = 1<<20, 1_000
	s.queue = make(chan *request, appends+1)
	var g group
	for range groups {
		if len(s.bulk) == 0 {
			piece := newRequest()
			piece.bulk, piece.bytes = true, chunkSize
			s.bulk <- piece
		}
		for range appends {
			s.queue <- sized(1)
		}
		gathered(s, &g)
		s.lastAppends = g.appends
		if g.bulk > 0 {
			pieces++
		}
	}
	return pieces
}

// Beside appends bulk goes on, by as much as they are worth: one piece for sixteen appends, in one group in sixteen if each
// has one append, and in every group if it has as many. Where nobody appends every group has a piece.
func TestBulkBesideAppends(t *testing.T) {
	t.Parallel()
	for appends, want := range map[int]int{0: 160, 1: 10, 2: 20, 8: 80, 16: 160, 40: 160} {
		if got := beside(160, appends); got != want {
			t.Errorf("beside %d appends %d of 160 groups have a piece of bulk, want %d", appends, got, want)
		}
	}
}

// Bulk that has to let appends go first does not wait for those that don't come, nor for what is no append.
func TestBulkDoesNotWaitForNobody(t *testing.T) {
	t.Parallel()
	for name, queued := range map[string]*request{"nothing": newRequest(), "a poke": nil, "a request that was dropped": newRequest()} {
		s := gathering(0, 0)
		s.debt, s.lastAppends = 1<<20, 1
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
		if got := gathered(s, &g); len(got) != 1 || got[0] != piece || s.owes() {
			t.Errorf("behind %s a group of %d, and owes %d; want the piece", name, len(got), s.debt)
		}
	}
}
