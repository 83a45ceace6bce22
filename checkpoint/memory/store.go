package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/internal/watch"
)

var (
	_ checkpoint.Store    = (*Store)(nil)
	_ checkpoint.Watcher  = (*Store)(nil)
	_ checkpoint.Follower = (*Store)(nil)
)

// A Store keeps runs in memory. The zero Store is empty and ready for use.
type Store struct {
	board watch.Board // of posts
	logs  watch.Board

	mu     sync.Mutex
	closed bool
	runs   map[string]*run
	made   uint64 // runs ever made; a run's number is its place in that order
	spent  uint64 // the highest epoch of runs that are forgotten: no old lease fits a run that is made anew
	graphs map[string][]byte
	bases  map[string]*base // by digest
}

// A run is one log and what belongs to it. One that was only acquired has no entries: it does not
// exist, and is forgotten with its lease.
type run struct {
	number    uint64
	info      checkpoint.Info // Owner is "" if nobody holds the lease
	appends   []envelope
	block     []byte                      // memory for what is sealed next: the end of it that is not used yet
	posts     map[string]*checkpoint.Post // by id; none ever changes
	posted    time.Time                   // when the newest of them was; see drained
	snapshots []checkpoint.Snapshot       // oldest first
}

// An envelope is a sealed append. Its data never changes.
type envelope struct {
	first uint64
	data  []byte
}

// exists goes by what is known of the run: its appends may have been removed. See [Faulty.Damage].
func (r *run) exists() bool { return r != nil && r.info.Head.Seq > 0 }

// Close ends the store: every method returns ErrClosed from then on, and what the store
// held is gone.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.runs, s.graphs, s.bases = true, nil, nil, nil
	s.logs.TellAll()
	return nil
}

// begin is the beginning of every method that names a run: it checks what they all check,
// and locks the store if that is well.
func (s *Store) begin(ctx context.Context, id string) error {
	if err := checkpoint.CheckRunID(id); err != nil {
		return err
	}
	return s.lock(ctx)
}

func (s *Store) lock(ctx context.Context) error {
	if err := checkpoint.CheckContext(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("%w: what it held is gone: begin with another", checkpoint.ErrClosed)
	}
	return nil
}

// run returns the run of that id, which must exist.
func (s *Store) run(id string) (*run, error) {
	r := s.runs[id]
	if !r.exists() {
		return nil, checkpoint.NotFound(id)
	}
	return r, nil
}

// held returns the run of the lease, which must be the one that is held.
func (s *Store) held(l checkpoint.Lease) (*run, error) {
	r := s.runs[l.Run]
	if r == nil || r.info.Owner == "" || r.info.Owner != l.Owner || r.info.Epoch != l.Epoch {
		return nil, fmt.Errorf("%w: run %q, epoch %d", checkpoint.ErrFenced, l.Run, l.Epoch)
	}
	return r, nil
}

// heldAt is held, of a run whose head is still after: what every append begins with.
func (s *Store) heldAt(l checkpoint.Lease, after checkpoint.Head) (*run, error) {
	r, err := s.held(l)
	if err == nil && r.info.Head != after {
		return nil, fmt.Errorf("%w: run %q is at entry %d, not %d",
			checkpoint.ErrConflict, l.Run, r.info.Head.Seq, after.Seq)
	}
	return r, err
}

// Acquire implements [checkpoint.Store]. The lease has no end.
func (s *Store) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	if owner == "" {
		return checkpoint.Lease{}, &checkpoint.ArgumentError{Call: "Acquire", Argument: "owner",
			Reason: fmt.Sprintf("of run %q is empty: name who is to work on it", id)}
	}
	if err := s.begin(ctx, id); err != nil {
		return checkpoint.Lease{}, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		r = &run{info: checkpoint.Info{Run: id, Epoch: s.spent}}
		if s.runs == nil {
			s.runs = make(map[string]*run)
		}
		s.runs[id] = r
	}
	if r.info.Owner != "" {
		return checkpoint.Lease{}, &checkpoint.BusyError{Run: id, Owner: r.info.Owner}
	}
	r.info.Owner = owner
	r.info.Epoch++
	return checkpoint.Lease{Run: id, Epoch: r.info.Epoch, Owner: owner}, nil
}

// Renew implements [checkpoint.Store].
func (s *Store) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if err := s.begin(ctx, l.Run); err != nil {
		return checkpoint.Lease{}, err
	}
	defer s.mu.Unlock()
	_, err := s.held(l)
	return l, err
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, l checkpoint.Lease) error {
	if err := s.begin(ctx, l.Run); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if r, err := s.held(l); err == nil {
		if r.info.Owner = ""; !r.exists() {
			s.forget(r)
		}
	}
	return nil
}

// forget drops a run that does not exist, or not any more.
func (s *Store) forget(r *run) {
	s.spent = max(s.spent, r.info.Epoch)
	delete(s.runs, r.info.Run)
}

// Append implements [checkpoint.Store].
func (s *Store) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	// Sealing takes most of the time and needs nothing of the store.
	now := time.Now()
	desk := desks.Get().(*desk)
	defer desk.clear()
	data, head, unsealed := checkpoint.Seal(desk.data, after, now, l.Epoch, entries)
	desk.data = data
	if err := s.begin(ctx, l.Run); err != nil {
		return checkpoint.Head{}, err
	}
	defer s.mu.Unlock()
	r, err := s.heldAt(l, after)
	if err == nil {
		err = unsealed
	}
	if err == nil {
		err = r.claimed(entries)
	}
	if err != nil {
		return checkpoint.Head{}, err
	}
	if err := r.info.Append(now, head, entries); err != nil {
		return checkpoint.Head{}, err
	}
	s.grow(r, envelope{first: after.Seq + 1, data: r.own(data)}, entries)
	return head, nil
}

// claimed returns ErrConflict if a message waits under an id that an entry claims.
func (r *run) claimed(entries []checkpoint.Entry) error {
	for i := range entries {
		if id := entries[i].Post; entries[i].Claims && r.posts[id] != nil {
			return checkpoint.Claimed(r.info.Run, id)
		}
	}
	return nil
}

// firstAppends is for how many appends a run has memory at first.
const firstAppends = 4

// grow adds an append to the log of a run.
func (s *Store) grow(r *run, e envelope, entries []checkpoint.Entry) {
	if r.number == 0 { // all that it had may have been trimmed
		s.made++
		r.number = s.made
		r.appends = make([]envelope, 0, firstAppends)
	}
	r.appends = append(r.appends, e)
	for i := range entries {
		if entries[i].Post != "" {
			r.drained(entries[i].Post)
		}
	}
	s.logs.Tell(r.info.Run)
}

// Stat implements [checkpoint.Store].
func (s *Store) Stat(ctx context.Context, id string) (checkpoint.Info, error) {
	if err := s.begin(ctx, id); err != nil {
		return checkpoint.Info{}, err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return checkpoint.Info{}, err
	}
	return r.info.Own(), nil
}

// List implements [checkpoint.Store].
func (s *Store) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var selected []*run
	for _, r := range s.runs {
		if r.exists() && f.Matches(r.info) {
			selected = append(selected, r)
		}
	}
	slices.SortFunc(selected, func(a, b *run) int { return cmp.Compare(b.number, a.number) })
	if f.After != "" {
		last, err := s.run(f.After)
		if err != nil {
			return nil, err
		}
		selected = slices.DeleteFunc(selected, func(r *run) bool { return r.number >= last.number })
	}
	page := make([]checkpoint.Info, 0, min(len(selected), f.Page()))
	for _, r := range selected[:cap(page)] {
		page = append(page, r.info.Own())
	}
	return page, nil
}
