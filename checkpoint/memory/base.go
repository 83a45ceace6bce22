package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A base is a machine at which runs begin. It is kept as long as a run refers to it.
type base struct {
	data []byte
	runs int // that refer to it
}

// refer makes a run refer to the bases of after instead of those of before. Those that are not
// kept yet are among given.
func (s *Store) refer(before, after []string, given ...[]byte) {
	for _, data := range given {
		if digest := checkpoint.BaseDigest(data); s.bases[digest] == nil {
			if s.bases == nil {
				s.bases = make(map[string]*base)
			}
			s.bases[digest] = &base{data: slices.Clone(data)}
		}
	}
	for _, digest := range after {
		s.bases[digest].runs++
	}
	for _, digest := range before {
		if s.bases[digest].runs--; s.bases[digest].runs == 0 {
			delete(s.bases, digest)
		}
	}
}

// Base implements [checkpoint.Store].
func (s *Store) Base(ctx context.Context, id, digest string) ([]byte, error) {
	if err := s.begin(ctx, id); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.info.Bases(), digest) {
		return nil, fmt.Errorf("%w: base %.80q of run %q", checkpoint.ErrNotFound, digest, id)
	}
	return slices.Clone(s.bases[digest].data), nil
}

// Fork implements [checkpoint.Store].
func (s *Store) Fork(ctx context.Context, f checkpoint.Fork) error {
	digests, err := f.Check()
	if err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range f.Runs {
		if err := s.free(f.Runs[i].Run); err != nil {
			return err
		}
	}
	now := time.Now()
	made := make([]*run, len(f.Runs))
	for i := range f.Runs {
		if made[i], err = s.forked(&f.Runs[i], now); err != nil {
			return err
		}
	}
	for i, r := range made {
		s.made++
		r.number = s.made
		if s.runs == nil {
			s.runs = make(map[string]*run)
		}
		s.runs[r.info.Run] = r
		s.refer(nil, digests, f.Bases()...)
		s.logs.Tell(f.Runs[i].Run)
	}
	return nil
}

// free returns an error unless there is no run of that id, and nobody holds its lease.
func (s *Store) free(id string) error {
	if old := s.runs[id]; old.exists() {
		return fmt.Errorf("%w: run %q", checkpoint.ErrExists, id)
	} else if old != nil {
		return &checkpoint.BusyError{Run: id, Owner: old.info.Owner}
	}
	return nil
}

// forked makes a run that does not belong to the store yet.
func (s *Store) forked(f *checkpoint.ForkedRun, now time.Time) (*run, error) {
	epoch := s.spent + 1
	data, head, err := checkpoint.Seal(nil, checkpoint.Head{}, now, epoch, f.Entries)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: run %q: %w", f.Run, err)
	}
	info, err := checkpoint.Info{Run: f.Run, Epoch: epoch}.Appended(now, head, f.Entries)
	if err != nil {
		return nil, err
	}
	return &run{info: info, appends: []envelope{{first: 1, data: data}}}, nil
}

// Trim implements [checkpoint.Store].
func (s *Store) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry,
	bases ...[]byte,
) (checkpoint.Head, error) {
	if err := s.begin(ctx, l.Run); err != nil {
		return checkpoint.Head{}, err
	}
	defer s.mu.Unlock()
	r, err := s.heldAt(l, after)
	if err != nil {
		return checkpoint.Head{}, err
	}
	t, err := r.info.Trimming(entry, bases)
	if err != nil {
		return checkpoint.Head{}, err
	}
	kept, previous, err := r.from(t.First)
	if err != nil {
		return checkpoint.Head{}, checkpoint.Corrupt(l.Run, t.First, err)
	}
	now := time.Now()
	entries := []checkpoint.Entry{t.Entry(r.info, entry, previous)}
	data, head, err := checkpoint.Seal(nil, after, now, l.Epoch, entries)
	if err != nil {
		return checkpoint.Head{}, err
	}
	before := r.info
	info, err := before.Appended(now, head, entries)
	if err != nil {
		return checkpoint.Head{}, err
	}
	r.appends = slices.Clone(kept) // a loop that reads goes on to its end
	r.snapshots = slices.DeleteFunc(r.snapshots, func(snap checkpoint.Snapshot) bool {
		return snap.Head.Seq < t.First
	})
	r.info = info
	s.grow(r, envelope{first: after.Seq + 1, data: data}, entries)
	s.refer(before.Bases(), info.Bases(), bases...)
	return head, nil
}

// from returns the appends from the one that holds the entry first, and the digest of the one
// before them.
func (r *run) from(first uint64) ([]envelope, checkpoint.Digest, error) {
	if first > r.info.Head.Seq {
		return nil, r.info.Head.Digest, nil
	}
	kept := r.appends[holding(r.appends, first):]
	if len(kept) == 0 {
		return nil, checkpoint.Digest{}, checkpoint.Damage("the entry is missing")
	}
	e, err := checkpoint.Unseal(kept[0].data)
	return kept, e.Previous, err
}
