package badgerstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A run is what is kept in memory of a run that somebody works on. All of it is guarded by
// the store's mutex.
type run struct {
	id   string          // never changes
	info checkpoint.Info // as it is durable; Owner is "" if nobody holds the lease
	num  uint64          // in its keys; 0 until its first append is made
	// tail is the head that the run has once the write under way is done. Only who
	// commits sets it.
	tail checkpoint.Head
	// durableEpoch is the epoch that will be found when the run is loaded again.
	durableEpoch uint64

	loaded    chan struct{} // closed once info is known, or loadErr
	loadErr   error
	posting   turn      // of Post
	posted    time.Time // of the last message that was posted; zero if it is not known
	inbox     *inbox
	snapping  turn   // of PutSnapshot
	snapshots series // that the last one has left, if no more; whose turn it is has it
	trimming  turn
	swept     uint64 // before this entry no key is left that a Trim has dropped, as far as is known
	users     int    // calls that need the run to stay
	inFlight  int    // requests that are being written
	doubts    int    // requests of which a caller does not know the outcome
	idle      bool   // it stands in the store's queue of idle runs
}

func (r *run) exists() bool { return r.info.Head.Seq > 0 }

func (r *run) heldBy(l checkpoint.Lease) bool {
	return r.info.Owner != "" && r.info.Owner == l.Owner && r.info.Epoch == l.Epoch
}

// giveBack ends that lease, if the run has it still. The store's mutex is held.
func (r *run) giveBack(l checkpoint.Lease) {
	if r.heldBy(l) {
		r.info.Owner = ""
	}
}

// advance makes known that q is durable.
func (r *run) advance(q *request) {
	if len(q.post) > 0 || len(q.deletes) > 0 || q.gone || q.restored > 0 {
		r.inbox = r.inbox.behind(q)
	}
	switch {
	case q.gone:
		r.info = checkpoint.Info{Run: r.id, Epoch: r.info.Epoch}
		r.num, r.tail, r.durableEpoch, r.posted, r.swept = 0, checkpoint.Head{}, 0, time.Time{}, 0
	case q.restored > 0:
		epoch := max(r.info.Epoch, q.info.Epoch)
		r.durableEpoch = q.info.Epoch
		r.info, r.num, r.posted = q.info, q.restored, time.Time{}
		r.info.Owner, r.info.Epoch = "", epoch
	case q.rule == atHead:
		owner, epoch := r.info.Owner, r.info.Epoch
		r.info = q.info
		r.info.Owner, r.info.Epoch = owner, epoch
		r.durableEpoch = q.lease.Epoch
		if r.num == 0 { // it has just begun: nobody could post to it
			r.inbox = &inbox{kept: true}
		}
		if q.num > 0 {
			r.num = q.num
		}
		if len(q.deletes) > 0 && r.posted.After(time.Now()) { // by a message from ahead, which may be drained now
			r.posted = time.Time{}
		}
	}
}

// called refuses what no call can do without.
func (s *Store) called(ctx context.Context) error {
	if s == nil {
		return fmt.Errorf("%w: it is nil: make it with Open", checkpoint.ErrClosed)
	}
	return checkpoint.CheckContext(ctx)
}

// enter begins a call: until it is ended by leave, or exit, the store stays open.
func (s *Store) enter(ctx context.Context) error {
	if err := s.called(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enterLocked()
}

func (s *Store) enterLocked() error {
	if s.closing || s.failed != nil || s.runs == nil { // the zero Store was never open
		return s.closedError()
	}
	s.calls++
	return nil
}

func (s *Store) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exitLocked()
}

func (s *Store) exitLocked() {
	if s.calls--; s.calls == 0 && s.closing {
		close(s.vacant)
	}
}

// pin begins a call that needs the run of that id in memory, whether it exists or not, and
// loads it if need be. The call ends with leave.
func (s *Store) pin(ctx context.Context, id string) (*run, error) {
	if err := checkpoint.CheckRunID(id); err != nil {
		return nil, err
	}
	if err := s.called(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if err := s.enterLocked(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	r := s.runs[id]
	first := r == nil
	if first {
		// Whoever comes while it is loaded waits for this one: two loads of a run could
		// otherwise find two states of it.
		r = &run{id: id, info: checkpoint.Info{Run: id}, loaded: make(chan struct{})}
		s.runs[id] = r
	}
	r.users++
	s.mu.Unlock()
	pinned := false
	defer func() {
		if !pinned { // also if the database panics
			s.leave(r)
		}
	}()
	if first {
		s.load(r)
	}
	select {
	case <-r.loaded:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.loadErr != nil {
		return nil, r.loadErr
	}
	pinned = true
	return r, nil
}

// leave ends a call that has pinned r.
func (s *Store) leave(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exitLocked()
	r.users--
	s.rest(r)
}

// rest has r forgotten some time later if nobody uses or holds it: whoever makes that so calls it.
// The store's mutex is held.
func (s *Store) rest(r *run) {
	if r.idle || !r.forgettable() {
		return
	}
	r.idle = true
	s.idle = append(s.idle, r)
	if len(s.idle) <= s.idleMost {
		return
	}
	old := s.idle[0]
	s.idle = s.idle[1:]
	old.idle = false
	if !old.forgettable() || s.runs[old.id] != old {
		return
	}
	if old.info.Epoch != old.durableEpoch {
		// A lease of this epoch was given but left no trace on the disk. No run is given it
		// again.
		s.leastEpoch = max(s.leastEpoch, old.info.Epoch)
	}
	delete(s.runs, old.id)
}

func (r *run) forgettable() bool {
	return r.users == 0 && r.inFlight == 0 && r.doubts == 0 && r.info.Owner == ""
}

// errPanicked is told to those who wait for what another call reads when the database panics in
// that.
var errPanicked = errors.New("checkpoint: reading the store: the database panicked in another call")

// load finds what the disk knows of r, which nobody else uses yet.
func (s *Store) load(r *run) {
	f, err := found{}, errPanicked
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(r.loaded)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			r.loadErr = err
			delete(s.runs, r.id)
			return
		}
		if err == nil {
			r.info, r.num = f.info, f.num
			r.tail, r.durableEpoch = r.info.Head, r.info.Epoch
		}
	}()
	f, err = s.find(r.id)
}

// onceSettled waits until no write of r is under way, and then calls then, with the store's mutex
// held: so nothing can be under way again before it.
func (s *Store) onceSettled(ctx context.Context, r *run, then func() error) error {
	for {
		s.mu.Lock()
		if s.failed != nil {
			defer s.mu.Unlock()
			return s.closedError()
		}
		if r.inFlight == 0 && r.doubts == 0 {
			defer s.mu.Unlock()
			return then()
		}
		if s.woken == nil {
			s.woken = make(chan struct{})
		}
		woken := s.woken
		s.mu.Unlock()
		select {
		case <-woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A turn is taken by one call at a time: it is nil, or closed when the call that has it ends.
type turn chan struct{}

// beginTurn waits until nobody has the turn t of a run, and takes it.
func (s *Store) beginTurn(ctx context.Context, t *turn) error {
	for {
		s.mu.Lock()
		other := *t
		if other == nil {
			*t = make(turn)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) endTurn(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(*t)
	*t = nil
}

// stoppedError returns the error of calls that a store has stopped under, nil if it has not
// stopped.
func (s *Store) stoppedError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return nil
	}
	return s.closedError()
}

// failure returns why the store has stopped, nil if it has not.
func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// closedError says why the store takes no calls. The store's mutex is held.
func (s *Store) closedError() error {
	if errors.Is(s.failed, checkpoint.ErrClosed) {
		return s.failed // and what to do
	}
	if s.failed != nil {
		return fmt.Errorf("%w: %w: close it and open it again", checkpoint.ErrClosed, s.failed)
	}
	return fmt.Errorf("%w: open it again", checkpoint.ErrClosed)
}

// poison stops the store after a write whose outcome is not known. What fails behind the first one
// does so because of it.
func (s *Store) poison(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = cmp.Or(s.failed, err)
	s.logs.TellAll()
	s.wake()
}

func fenced(l checkpoint.Lease) error {
	return fmt.Errorf("%w: run %q, epoch %d", checkpoint.ErrFenced, l.Run, l.Epoch)
}

func conflict(id string, head, after checkpoint.Head) error {
	return fmt.Errorf("%w: run %q is at entry %d, not %d",
		checkpoint.ErrConflict, id, head.Seq, after.Seq)
}

func alreadyThere(id string) error { return fmt.Errorf("%w: run %q", checkpoint.ErrExists, id) }
