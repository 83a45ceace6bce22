package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sync/semaphore"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/internal/watch"
)

var (
	_ checkpoint.Store    = (*Store)(nil)
	_ checkpoint.Watcher  = (*Store)(nil)
	_ checkpoint.Follower = (*Store)(nil)
)

// A Store keeps runs in a directory. [Open] and [OpenUnsynced] make one.
type Store struct {
	options  Options
	cipher   *careful // nil if the store is not encrypted
	name     name     // never changes
	kinds    kinds    // of name
	db       *badger.DB
	alarm    *alarm
	lock     *os.File
	home     *home
	tables   inventory // when it was opened
	synced   bool
	witness  *witness
	board    watch.Board // of posts
	logs     watch.Board
	maxBytes int // of a transaction
	maxKeys  int
	idleMost int // runs kept in memory that nobody uses

	waiting  *semaphore.Weighted // bytes of requests in queue
	queue    chan *request       // appends, posts and all that is small; nil means bulk
	bulk     chan *request       // pieces of large values, and removals
	bulky    *semaphore.Weighted // bytes of requests in bulk, which may wait for others: these don't wait for them
	quitted  chan struct{}       // closed when it has ended
	vacant   chan struct{}       // closed when the last call of a closing store has ended
	alarmed  chan struct{}       // closed when the alarm has stopped the store: a commit under way may never end
	closeOne sync.Once
	closeErr error
	awaited  atomic.Value  // string: what Close waits for, when the last call has ended
	loops    atomic.Int32  // over Read
	opened   uint64        // the newest transaction when the store was opened
	attempts atomic.Uint32 // at writing large values
	// pieceChunks is how many chunks of a large value go into a piece of it.
	pieceChunks atomic.Int32

	committing sync.Mutex  // held by who commits: the committer, or the caller of a lone append
	claimed    atomic.Bool // the committer has something to commit
	apart      bool        // nobody but the committer commits

	// Guarded by committing.
	lone        group  // of one append, used again
	ts          uint64 // of the last transaction; transactions are numbered without gaps
	space       space
	commitAt    func(*badger.Txn, uint64) error
	stamp       *badger.WriteBatch // see newStamp
	log         *memLog            // nil if Badger syncs, or nobody
	groups      int
	lastAppends int // in the last group
	lastWaiting int // in the queue when it was durable
	lastEnd     time.Time
	lastTook    time.Duration
	debt        int       // bytes of bulk that were written beside requests that are worth less
	quiet       int       // the last groups without debt
	bulkAt      time.Time // when the last group ended that had bulk

	mu         sync.Mutex
	failed     error          // why the store stopped
	closing    bool           //
	calls      int            // under way
	durable    uint64         // number of the last transaction that is durable: what readers see
	readers    map[uint64]int // transactions that readers look at, and how many do
	runs       map[string]*run
	bases      map[string]*base // that calls change something about
	graphing   turn             // of PutGraph
	idle       []*run           // oldest first; some may be in use again
	leastEpoch uint64           // every new lease is above
	lastRun    uint64           // the highest number of a run
	woken      chan struct{}    // closed when a request is settled, nil if nobody waits
}

// newStore returns the store over an open database whose newest transaction is ts.
func newStore(o Options, db *badger.DB, ts uint64) *Store {
	s := &Store{
		options:  o,
		cipher:   carefully(o.Cipher),
		db:       db,
		maxBytes: int(db.MaxBatchSize() * 9 / 10),
		maxKeys:  int(db.MaxBatchCount() * 9 / 10),
		idleMost: 1024,
		waiting:  semaphore.NewWeighted(o.halfWaiting()),
		bulky:    semaphore.NewWeighted(o.halfWaiting()),
		queue:    make(chan *request, 4096),
		bulk:     make(chan *request, 64),
		quitted:  make(chan struct{}),
		vacant:   make(chan struct{}),
		alarmed:  make(chan struct{}),
		opened:   ts,
		ts:       ts,
		quiet:    quietMost,
		durable:  ts,
		readers:  make(map[uint64]int),
		runs:     make(map[string]*run),
		bases:    make(map[string]*base),
	}
	s.commitAt = s.commitSynced
	s.stamp = newStamp(db)
	s.pieceChunks.Store(chunksAtOnce)
	return s
}

// Close ends the store: calls that come later return ErrClosed, those under way are waited for,
// loops over [Store.Read] included. Closing again returns what the first did. Close must not be
// called by an observer, or in the body of such a loop.
//
// If that takes longer than Options.CloseWithin, for a disk that does not answer or a call that
// does not end, Close returns an error that says what it waits for and is context.DeadlineExceeded.
// The store then closes in the background, and its directory is locked until it has. So it does
// after ErrFull, which says that the device has too little room for what is in memory to become
// tables. Where a commit waits for a table that can't be written the store never closes, and the
// directory is locked until the process ends. If the directory is no longer where it was opened
// Close leaves it, and what is there now, as they are, and returns ErrClosed with that as its
// cause: what the database has in memory and open stays so until the process ends. What was
// acknowledged is durable whatever Close returns, and a process that then ends harms nothing.
func (s *Store) Close() error {
	if s == nil {
		return s.called(context.Background())
	}
	s.closeOne.Do(func() {
		s.mu.Lock()
		s.closing = true
		open := s.runs != nil
		if open && s.calls == 0 {
			s.awaited.Store("a write to the disk") // there is no call to wait for
			close(s.vacant)
		}
		s.mu.Unlock()
		if open {
			s.closeErr = typed(s.closeWithin(s.options.CloseWithin))
		}
	})
	return s.closeErr
}

func (s *Store) closeWithin(limit time.Duration) error {
	closed := make(chan error, 2)
	go func() { // waited for, up to the limit, or until it is found that there is no room
		_ = sayState(s.lock, closing) // it is for others to read, no part of closing
		s.endCalls()
		s.awaitRoom(closed)
		closed <- s.close()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return fmt.Errorf("checkpoint: closing the store: %s did not end within %v; what was acknowledged is durable: %w",
			s.awaitedNow(), limit, context.DeadlineExceeded)
	}
}

// awaitedNow says what Close waits for.
func (s *Store) awaitedNow() string {
	what, _ := s.awaited.Load().(string)
	switch {
	case what != "":
		return what
	case s.loops.Load() > 0:
		return "a loop over Read"
	}
	return "a call of the store"
}

// endCalls waits until nobody uses the store.
func (s *Store) endCalls() {
	s.logs.TellAll()
	<-s.vacant
	close(s.queue) // nobody is left to send
	s.awaited.Store("a write to the disk")
	<-s.quitted
	s.awaited.Store("the database")
}

// awaitRoom waits until the device has room enough for the database to be closed, and tells if it
// has not: Badger writes through memory maps, which on a full device kills the process.
func (s *Store) awaitRoom(full chan<- error) {
	for told := false; ; told = true {
		err := s.space.checkClose()
		if err == nil || s.home.check() != nil { // close says what that is
			return
		}
		if !told {
			full <- err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// close closes what nobody uses.
func (s *Store) close() error {
	if err := s.home.check(); err != nil {
		return s.abandon(err)
	}
	err := errors.Join(s.db.Close(), s.alarm.err(), s.closeLog())
	if err == nil && s.failed == nil {
		err = s.witness.set(s.ts)
		s.takeStock()
	}
	if err = errors.Join(err, s.witness.close(), unlockFile(s.lock)); err != nil {
		return fmt.Errorf("checkpoint: closing the store: %w", err)
	}
	return nil
}

// Watch implements [checkpoint.Watcher].
func (s *Store) Watch(run string) (posted <-chan struct{}, stop func()) {
	return s.board.Watch(run)
}

// Follow implements [checkpoint.Follower].
func (s *Store) Follow(run string) (grown <-chan struct{}, stop func()) {
	return s.logs.Watch(run)
}
