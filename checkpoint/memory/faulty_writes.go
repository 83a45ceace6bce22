package memory

import (
	"bytes"
	"context"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// Append implements [checkpoint.Store].
func (f *Faulty) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (head checkpoint.Head, err error) {
	err = f.write(ctx, "Append", l.Run, func() (err error) {
		head, err = f.Store.Append(ctx, l, after, entries)
		return err
	})
	return unless(err, head), err
}

// Post implements [checkpoint.Store].
func (f *Faulty) Post(ctx context.Context, run string, p checkpoint.Post) error {
	return f.write(ctx, "Post", run, func() error { return f.Store.Post(ctx, run, p) })
}

// PutSnapshot implements [checkpoint.Store].
func (f *Faulty) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	return f.write(ctx, "PutSnapshot", l.Run, func() error { return f.Store.PutSnapshot(ctx, l, s) })
}

// PutGraph implements [checkpoint.Store].
func (f *Faulty) PutGraph(ctx context.Context, digest string, graph []byte) error {
	return f.write(ctx, "PutGraph", "", func() error { return f.Store.PutGraph(ctx, digest, graph) })
}

// Delete implements [checkpoint.Store].
func (f *Faulty) Delete(ctx context.Context, run string) error {
	return f.write(ctx, "Delete", run, func() error { return f.Store.Delete(ctx, run) })
}

// Fork implements [checkpoint.Store].
func (f *Faulty) Fork(ctx context.Context, fork checkpoint.Fork) error {
	run := ""
	if len(fork.Runs) == 1 {
		run = fork.Runs[0].Run
	}
	return f.write(ctx, "Fork", run, func() error { return f.Store.Fork(ctx, fork) })
}

// Trim implements [checkpoint.Store].
func (f *Faulty) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry,
	bases ...[]byte,
) (head checkpoint.Head, err error) {
	err = f.write(ctx, "Trim", l.Run, func() (err error) {
		head, err = f.Store.Trim(ctx, l, after, entry, bases...)
		return err
	})
	return unless(err, head), err
}

// Restore implements [checkpoint.Archiver].
func (f *Faulty) Restore(
	ctx context.Context, l checkpoint.Lease, a checkpoint.Archive,
) (info checkpoint.Info, err error) {
	if _, err := f.Store.vacant(ctx, l); err == nil { // else Restore says why, before any of the archive is read
		f.Store.mu.Unlock()
		a.Envelopes = taken(ctx, a.Envelopes) // whoever yields them may write: Import keeps graphs meanwhile
	}
	err = f.write(ctx, "Restore", l.Run, func() (err error) {
		info, err = f.Store.Restore(ctx, l, a)
		return err
	})
	return unless(err, info), err
}

// taken is what envelopes yield, read already.
func taken(ctx context.Context, envelopes iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	if envelopes == nil {
		return nil
	}
	var all [][]byte
	var failed error
	for data, err := range envelopes {
		if err == nil {
			err = ctx.Err()
		}
		if failed = err; failed != nil {
			break
		}
		all = append(all, bytes.Clone(data))
	}
	return func(yield func([]byte, error) bool) {
		for _, data := range all {
			if !yield(data, nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

// unless returns v, or nothing if there is an error: who does not know whether he has written does
// not know the head either.
func unless[T any](err error, v T) T {
	if err != nil {
		var nothing T
		return nothing
	}
	return v
}
