package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Read implements [checkpoint.Store]. It reads the log as it stands when the loop begins.
func (s *Store) Read(
	ctx context.Context, id string, from, to uint64,
) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		span, appends, err := s.span(ctx, id, from, to)
		if err != nil {
			yield(checkpoint.Entry{}, err)
			return
		}
		span.Entries(ctx, func(seq uint64) iter.Seq2[[]byte, error] {
			return lend(ctx, appends[holding(appends, seq):])
		})(yield)
	}
}

// span returns what a Read of the run has to read, and the appends from the one that holds
// the entry from.
func (s *Store) span(
	ctx context.Context, id string, from, to uint64,
) (checkpoint.Span, []envelope, error) {
	if err := s.begin(ctx, id); err != nil {
		return checkpoint.Span{}, nil, err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return checkpoint.Span{}, nil, err
	}
	span := checkpoint.Span{Run: id, Head: r.info.Head, First: r.info.First}.Between(from, to)
	return span, r.appends[holding(r.appends, span.From):], nil
}

// holding returns the index of that one of appends that holds entry seq, or the last one; 0 if
// there is none.
func holding(appends []envelope, seq uint64) int {
	i, found := slices.BinarySearchFunc(appends, seq, func(e envelope, seq uint64) int {
		return cmp.Compare(e.first, seq)
	})
	if !found {
		i--
	}
	return max(i, 0)
}

// lend yields the data of each append in one buffer, which the next one overwrites, so
// that a caller who keeps or changes what was lent harms nobody but himself.
func lend(ctx context.Context, appends []envelope) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var lent []byte
		for _, e := range appends {
			lent = append(lent[:0], e.data...)
			if !yield(lent, ctx.Err()) {
				return
			}
		}
	}
}

// Post implements [checkpoint.Store].
func (s *Store) Post(ctx context.Context, id string, p checkpoint.Post) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := s.begin(ctx, id); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return err
	}
	if old, ok := r.posts[p.ID]; ok {
		if !old.Says(p) {
			return fmt.Errorf("%w: run %q: post %q says something else",
				checkpoint.ErrConflict, id, p.ID)
		}
		return nil
	}
	p.At, p.Data = s.board.Now(), slices.Clone(p.Data)
	if !p.At.After(r.posted) { // as by a host whose clock was ahead
		p.At = r.posted.Add(1)
	}
	r.post(p)
	s.board.Tell(id)
	return nil
}

// post keeps a post.
func (r *run) post(p checkpoint.Post) {
	if r.posts == nil {
		r.posts = make(map[string]*checkpoint.Post)
	}
	r.posts[p.ID] = &p
	if p.At.After(r.posted) {
		r.posted = p.At
	}
}

// drained lets go of a post. The next one need not be behind it, which tells if its clock was
// ahead.
func (r *run) drained(id string) {
	p := r.posts[id]
	if p == nil {
		return
	}
	delete(r.posts, id)
	if p.At.Before(r.posted) {
		return
	}
	r.posted = time.Time{}
	for _, p := range r.posts {
		if p.At.After(r.posted) {
			r.posted = p.At
		}
	}
}

// Posts implements [checkpoint.Store].
func (s *Store) Posts(ctx context.Context, id string) ([]checkpoint.Post, error) {
	if err := s.begin(ctx, id); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return nil, err
	}
	if len(r.posts) == 0 { // as most of the time
		return nil, nil
	}
	posts := make([]checkpoint.Post, 0, len(r.posts))
	for _, p := range r.posts {
		lent := *p
		lent.Data = slices.Clone(p.Data)
		posts = append(posts, lent)
	}
	slices.SortFunc(posts, func(a, b checkpoint.Post) int { return cmp.Compare(a.ID, b.ID) })
	return posts, nil
}

// Watch implements [checkpoint.Watcher].
func (s *Store) Watch(id string) (posted <-chan struct{}, stop func()) {
	return s.board.Watch(id)
}

// Follow implements [checkpoint.Follower].
func (s *Store) Follow(id string) (grown <-chan struct{}, stop func()) {
	return s.logs.Watch(id)
}

// PutSnapshot implements [checkpoint.Store]. It keeps the newest two.
func (s *Store) PutSnapshot(
	ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot,
) error {
	if err := s.begin(ctx, l.Run); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.held(l)
	if err != nil {
		return err
	}
	if !r.exists() {
		return checkpoint.NotFound(l.Run)
	}
	if !r.passed(snap.Head) {
		return fmt.Errorf("%w: run %q never ended an append at entry %d with that digest",
			checkpoint.ErrConflict, l.Run, snap.Head.Seq)
	}
	snap.Data = slices.Clone(snap.Data)
	r.snapshots = slices.DeleteFunc(r.snapshots, func(old checkpoint.Snapshot) bool {
		return old.Head.Seq == snap.Head.Seq
	})
	r.snapshots = append(r.snapshots, snap)
	slices.SortFunc(r.snapshots, func(a, b checkpoint.Snapshot) int {
		return cmp.Compare(a.Head.Seq, b.Head.Seq)
	})
	r.snapshots = r.snapshots[max(0, len(r.snapshots)-2):]
	return nil
}

// passed reports whether at was ever the head of the run.
func (r *run) passed(at checkpoint.Head) bool {
	if at.Seq < max(r.info.First, 1) || at.Seq > r.info.Head.Seq {
		return false
	}
	kept := r.appends[holding(r.appends, at.Seq):]
	if len(kept) == 0 {
		return false
	}
	e, err := checkpoint.Unseal(kept[0].data)
	return err == nil && e.Head() == at
}

// Snapshot implements [checkpoint.Store].
func (s *Store) Snapshot(
	ctx context.Context, id string, upTo uint64,
) (checkpoint.Snapshot, error) {
	if err := s.begin(ctx, id); err != nil {
		return checkpoint.Snapshot{}, err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	for _, snap := range slices.Backward(r.snapshots) {
		if upTo == 0 || snap.Head.Seq <= upTo {
			snap.Data = slices.Clone(snap.Data)
			return snap, nil
		}
	}
	return checkpoint.Snapshot{}, noSnapshot(id)
}

// A noSnapshot names the run that has none, as most short runs. Whoever reads one of those asks for
// it, so its text is made when somebody reads that.
type noSnapshot string

func (n noSnapshot) Error() string {
	return fmt.Sprintf("%v: snapshot of run %q", checkpoint.ErrNotFound, string(n))
}

func (n noSnapshot) Unwrap() error { return checkpoint.ErrNotFound }

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.begin(ctx, id); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return err
	}
	if r.info.Owner != "" {
		return &checkpoint.BusyError{Run: id, Owner: r.info.Owner}
	}
	s.refer(r.info.Bases(), nil)
	s.forget(r)
	s.logs.Tell(id)
	return nil
}

// PutGraph implements [checkpoint.Store].
func (s *Store) PutGraph(ctx context.Context, digest string, graph []byte) error {
	if err := checkpoint.CheckDigest(digest); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if old, ok := s.graphs[digest]; ok {
		if string(old) != string(graph) {
			return fmt.Errorf("%w: another graph is kept under digest %q", checkpoint.ErrConflict, digest)
		}
		return nil
	}
	if s.graphs == nil {
		s.graphs = make(map[string][]byte)
	}
	s.graphs[digest] = slices.Clone(graph)
	return nil
}

// Graph implements [checkpoint.Store].
func (s *Store) Graph(ctx context.Context, digest string) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	graph, ok := s.graphs[digest]
	if !ok {
		return nil, fmt.Errorf("%w: graph %q", checkpoint.ErrNotFound, digest)
	}
	return slices.Clone(graph), nil
}
