package pawltest

import (
	"context"
	"fmt"
	"iter"

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

func (s *audit) Post(context.Context, string, checkpoint.Post) error { return nil }

func (s *audit) Posts(context.Context, string) ([]checkpoint.Post, error) { return nil, nil }

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

func (s *audit) Fork(context.Context, string, uint64, string) error { return checkpoint.ErrUnsupported }

func (s *audit) Trim(context.Context, checkpoint.Lease, uint64) error {
	return checkpoint.ErrUnsupported
}

var _ checkpoint.Store = (*audit)(nil)
