package badgerstore

import "testing"

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
