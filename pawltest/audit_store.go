package pawltest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// What an audit reads is the log as far as it has grown; what is written to it is dropped.

func (s *audit) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	return s.base.Acquire(ctx, run, owner)
}

func (s *audit) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	return s.base.Renew(ctx, l)
}

func (s *audit) Release(ctx context.Context, l checkpoint.Lease) error { return s.base.Release(ctx, l) }

func (s *audit) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return s.base.Read(ctx, run, from, to)
}

func (s *audit) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	return s.base.Stat(ctx, run)
}

func (s *audit) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	return s.base.List(ctx, f)
}

func (s *audit) Post(_ context.Context, _ string, p checkpoint.Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posts == nil {
		s.posts = map[string]checkpoint.Post{}
	}
	p.At = time.Now().UTC()
	s.posts[p.ID] = p
	return nil
}

func (s *audit) Posts(context.Context, string) ([]checkpoint.Post, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []checkpoint.Post
	for _, id := range slices.Sorted(maps.Keys(s.posts)) {
		all = append(all, s.posts[id])
	}
	return all, nil
}

func (s *audit) PutSnapshot(context.Context, checkpoint.Lease, checkpoint.Snapshot) error { return nil }

func (s *audit) Snapshot(_ context.Context, run string, _ uint64) (checkpoint.Snapshot, error) {
	return checkpoint.Snapshot{}, fmt.Errorf("%w: snapshots of run %q", checkpoint.ErrNotFound, run)
}

func (s *audit) PutGraph(ctx context.Context, digest string, graph []byte) error {
	return s.base.PutGraph(ctx, digest, graph)
}

func (s *audit) Graph(ctx context.Context, digest string) ([]byte, error) {
	return s.base.Graph(ctx, digest)
}

func (s *audit) Delete(context.Context, string) error { return checkpoint.ErrUnsupported }

func (s *audit) Fork(context.Context, checkpoint.Fork) error { return checkpoint.ErrUnsupported }

func (s *audit) Base(ctx context.Context, run, digest string) ([]byte, error) {
	return s.base.Base(ctx, run, digest)
}

func (s *audit) Trim(
	context.Context, checkpoint.Lease, checkpoint.Head, checkpoint.Entry, ...[]byte,
) (checkpoint.Head, error) {
	return checkpoint.Head{}, checkpoint.ErrUnsupported
}

var _ checkpoint.Store = (*audit)(nil)
