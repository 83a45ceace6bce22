package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// look begins a call that writes nothing: it returns what goes wrong with it. part is what of the
// run is to be read beside what is known of it, PartInfo if nothing.
func (f *Faulty) look(ctx context.Context, method, run string, part checkpoint.Part) error {
	f.mu.Lock()
	dead := f.last != nil
	f.mu.Unlock()
	if dead {
		return nil // the call is ErrClosed
	}
	if f.FailRead != nil {
		if err := f.FailRead(ctx, method, run); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readable(run, part)
}

// readable returns an error if that part of the run was spoiled, or what is known of it. mu is
// held.
func (f *Faulty) readable(run string, part checkpoint.Part) error {
	for _, p := range []checkpoint.Part{checkpoint.PartInfo, part} {
		if f.spoiled[spot{run, p}] {
			return &checkpoint.CorruptError{Run: run, Reason: fmt.Sprintf("its %s can't be read", p)}
		}
	}
	return nil
}

// Acquire implements [checkpoint.Store].
func (f *Faulty) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if err := f.look(ctx, "Acquire", run, checkpoint.PartInfo); err != nil {
		return checkpoint.Lease{}, err
	}
	return f.Store.Acquire(ctx, run, owner)
}

// Renew implements [checkpoint.Store].
func (f *Faulty) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if err := f.look(ctx, "Renew", l.Run, checkpoint.PartInfo); err != nil {
		return checkpoint.Lease{}, err
	}
	return f.Store.Renew(ctx, l)
}

// Release implements [checkpoint.Store].
func (f *Faulty) Release(ctx context.Context, l checkpoint.Lease) error {
	if err := f.look(ctx, "Release", l.Run, checkpoint.PartInfo); err != nil {
		return err
	}
	return f.Store.Release(ctx, l)
}

// Read implements [checkpoint.Store].
func (f *Faulty) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		if err := f.look(ctx, "Read", run, checkpoint.PartLog); err != nil {
			yield(checkpoint.Entry{}, err)
			return
		}
		f.Store.Read(ctx, run, from, to)(yield)
	}
}

// Envelopes implements [checkpoint.Archiver].
func (f *Faulty) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := f.look(ctx, "Envelopes", run, checkpoint.PartLog); err != nil {
			yield(nil, err)
			return
		}
		f.Store.Envelopes(ctx, run)(yield)
	}
}

// Stat implements [checkpoint.Store].
func (f *Faulty) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	if err := f.look(ctx, "Stat", run, checkpoint.PartInfo); err != nil {
		return checkpoint.Info{}, err
	}
	return f.Store.Stat(ctx, run)
}

// List implements [checkpoint.Store].
func (f *Faulty) List(ctx context.Context, filter checkpoint.Filter) ([]checkpoint.Info, error) {
	if err := f.look(ctx, "List", "", checkpoint.PartInfo); err != nil {
		return nil, err
	}
	page, err := f.Store.List(ctx, filter)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range page {
		if err := f.readable(page[i].Run, checkpoint.PartInfo); err != nil {
			return page[:i], err
		}
	}
	return page, err
}

// Posts implements [checkpoint.Store].
func (f *Faulty) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	if err := f.look(ctx, "Posts", run, checkpoint.PartPosts); err != nil {
		return nil, err
	}
	return f.Store.Posts(ctx, run)
}

// Snapshot implements [checkpoint.Store].
func (f *Faulty) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	if err := f.look(ctx, "Snapshot", run, checkpoint.PartSnapshot); err != nil {
		return checkpoint.Snapshot{}, err
	}
	return f.Store.Snapshot(ctx, run, upTo)
}

// Base implements [checkpoint.Store].
func (f *Faulty) Base(ctx context.Context, run, digest string) ([]byte, error) {
	if err := f.look(ctx, "Base", run, checkpoint.PartBase); err != nil {
		return nil, err
	}
	return f.Store.Base(ctx, run, digest)
}

// Graph implements [checkpoint.Store].
func (f *Faulty) Graph(ctx context.Context, digest string) ([]byte, error) {
	if err := f.look(ctx, "Graph", "", checkpoint.PartGraph); err != nil {
		return nil, err
	}
	return f.Store.Graph(ctx, digest)
}
