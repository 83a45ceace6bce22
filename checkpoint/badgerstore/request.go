package badgerstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// A rule says what must hold of a request's run when it is committed.
type rule uint8

const (
	free   rule = iota // nothing
	alive              // the run exists
	held               // the lease is the run's
	atHead             // the lease is the run's, and its head is after
)

// A request is one atomic write that waits for the committer, unless its caller is it (see
// commitLone). Who made it waits for done, and may give up; see submit.
type request struct {
	rule  rule
	run   *run // nil if the rule is free
	lease checkpoint.Lease
	after checkpoint.Head
	info  checkpoint.Info // of the run, once a request atHead is durable
	gone  bool            // once it is durable the run does not exist
	num   uint64          // that the run has, if the rule is alive; of an Append, that it has once this is durable
	// restored is the number that the run has once the request is durable, which gives it
	// all of its log and ends its lease. It is 0 if the request does not.
	restored uint64

	post    []byte   // key of the message that it posts
	forks   []forked // runs that exist once the request is durable
	refs    []ref    // of bases
	mark    []byte   // set with its pieces, of a first append: until it is made its number is that of a deleted run
	numbers bool     // the number of the next run is written as well
	bulk    bool     // it is a piece of something large, or work that nobody waits for
	piece   bool     // it changes nothing that can be seen before another request does

	record  badger.Entry    // of an append, if its Key is set
	sets    []*badger.Entry // further ones
	deletes [][]byte
	bytes   int // about what the database counts
	later   int // keys that the committer adds: see [hold.change]; bytes has theirs

	key   [17]byte // memory of record, used again
	value []byte

	state atomic.Uint32
	done  chan error // room for one: the committer never waits
}

// The states of a request. The committer takes it or the caller drops it, never both; then
// the committer settles it or the caller doubts it, under the store's mutex.
const (
	queued uint32 = iota
	dropped
	taken
	settled
	doubted
)

// perKey is what the database counts for a key beside its bytes, and a little more.
const perKey = 32

var requests = sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}

// newRequest returns an empty request. Whoever got its outcome may recycle it.
func newRequest() *request { return requests.Get().(*request) }

func (q *request) recycle() {
	const worthKeeping = 64 << 10
	value := q.value[:0]
	if cap(value) > worthKeeping {
		value = nil
	}
	done, sets, deletes := q.done, q.sets[:0], q.deletes[:0]
	*q = request{}
	q.done, q.value, q.sets, q.deletes = done, value, sets, deletes
	requests.Put(q)
}

func (q *request) setRecord(key, value []byte) {
	q.record = badger.Entry{Key: key, Value: value}
	q.bytes += len(key) + len(value) + perKey
}

func (q *request) set(key, value []byte) {
	q.sets = append(q.sets, &badger.Entry{Key: key, Value: value})
	q.bytes += len(key) + len(value) + perKey
}

func (q *request) delete(key []byte) {
	q.deletes = append(q.deletes, key)
	q.bytes += len(key) + perKey
}

// keys returns how many keys the request writes.
func (q *request) keys() int {
	n := len(q.sets) + len(q.deletes) + q.later
	if q.record.Key != nil {
		n++
	}
	return n
}

// submitPiece is submit for a piece of something large, of which nothing is seen before its last
// request.
func (s *Store) submitPiece(ctx context.Context, q *request) error {
	q.piece = true
	return s.submitBulk(ctx, q)
}

// submitBulk is submit for a piece of something large, or of work that nobody waits for.
func (s *Store) submitBulk(ctx context.Context, q *request) error {
	q.bulk = true
	return s.submit(ctx, q)
}

// submit gives q to the committer and waits for its outcome. If ctx ends before q was taken,
// nothing has changed and ctx's error is returned; if it ends later, the outcome is unknown, but of
// a piece: whatever becomes of that, nothing has changed. q belongs to nobody but submit, which
// recycles it.
func (s *Store) submit(ctx context.Context, q *request) error {
	to, room := s.queue, s.waiting
	if q.bulk {
		to, room = s.bulk, s.bulky
	}
	if err := ctx.Err(); err != nil { // else it is written if that is done before await looks at ctx, however long ago that has ended
		return err
	}
	if q.bytes > s.maxBytes || q.keys() > s.maxKeys {
		return fmt.Errorf("%w: one transaction can't hold %d bytes in %d keys: open the store with a larger MemTableSize",
			checkpoint.ErrTooLarge, q.bytes, q.keys())
	}
	if q.bytes > uncounted {
		weight := min(int64(q.bytes), s.options.halfWaiting())
		if err := room.Acquire(ctx, weight); err != nil {
			return ctx.Err()
		}
		defer room.Release(weight)
	}
	select {
	case to <- q:
	default:
		select {
		case to <- q:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.alarmed:
			return s.stoppedError()
		}
	}
	if q.bulk {
		s.poke()
	}
	return s.await(ctx, q)
}

// uncounted is what a request may have without being counted among those that wait: of
// such small ones the length of the queue is limit enough.
const uncounted = 4 << 10

// poke makes the committer look for bulk. If the queue is full it will look anyway.
func (s *Store) poke() {
	select {
	case s.queue <- nil:
	default:
	}
}

// await waits for the outcome of q, which the committer has or will find in its queue. When the
// alarm has stopped the store q is given up as if ctx had ended.
func (s *Store) await(ctx context.Context, q *request) error {
	var why, cause error
	select {
	case err := <-q.done:
		q.recycle()
		return err
	case <-ctx.Done():
		why, cause = ctx.Err(), ctx.Err()
	case <-s.alarmed:
		why, cause = s.stoppedError(), s.failure()
	}
	if q.state.CompareAndSwap(queued, dropped) {
		return why
	}
	piece := q.piece
	if !s.doubt(q) {
		err := <-q.done // it ended at the same moment
		q.recycle()
		return err
	}
	if piece {
		return why
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrCommitUnknown, cause)
}

// doubt gives up waiting for q, which is taken. Until q is settled nobody reads its run or
// acquires it: so who does finds out. It returns false if q has been settled.
func (s *Store) doubt(q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.state.CompareAndSwap(taken, doubted) {
		return false
	}
	q.doubted(1)
	return true
}

// doubted adds to the doubts about what q is about.
func (q *request) doubted(n int) {
	if q.run != nil {
		q.run.doubts += n
	}
	for _, f := range q.forks {
		f.run.doubts += n
	}
	for _, r := range q.refs {
		r.base.doubts += n
	}
}

// unlease gives back the leases of a Fork or Delete that has failed and that its caller has given
// up. The store's mutex is held.
func (q *request) unlease() {
	if q.state.Load() != doubted {
		return
	}
	if q.gone {
		q.run.giveBack(q.lease)
	}
	for _, f := range q.forks {
		f.run.giveBack(f.lease)
	}
}

// settle ends the doubt about q, if there is any. The store's mutex is held.
func (q *request) settle() {
	if !q.state.CompareAndSwap(taken, settled) {
		q.doubted(-1)
	}
}
