package pawltest

import (
	"context"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// Acquire implements [checkpoint.Store].
func (m *Mortal) Acquire(ctx context.Context, run, owner string) (l checkpoint.Lease, err error) {
	err = m.alive(func() (err error) {
		if l, err = m.Store.Acquire(ctx, run, owner); err == nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.leases = append(m.leases, l)
		}
		return err
	})
	return l, err
}

// Renew implements [checkpoint.Store].
func (m *Mortal) Renew(ctx context.Context, l checkpoint.Lease) (renewed checkpoint.Lease, err error) {
	err = m.alive(func() (err error) {
		renewed, err = m.Store.Renew(ctx, l)
		return err
	})
	return renewed, err
}

// Release implements [checkpoint.Store].
func (m *Mortal) Release(ctx context.Context, l checkpoint.Lease) error {
	return m.alive(func() error {
		if err := m.Store.Release(ctx, l); err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.leases = slices.DeleteFunc(m.leases, func(held checkpoint.Lease) bool {
			return held.Run == l.Run && held.Epoch == l.Epoch
		})
		return nil
	})
}

// Append implements [checkpoint.Store].
func (m *Mortal) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	return m.writeLog(ctx, func() (checkpoint.Head, error) { return m.Store.Append(ctx, l, after, entries) })
}

// Trim implements [checkpoint.Store].
func (m *Mortal) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	return m.writeLog(ctx, func() (checkpoint.Head, error) { return m.Store.Trim(ctx, l, after, entry, bases...) })
}

// writeLog makes a write that moves a head, which a process that dies at it does not learn.
func (m *Mortal) writeLog(ctx context.Context, do func() (checkpoint.Head, error)) (head checkpoint.Head, err error) {
	err = m.write(ctx, func() (err error) {
		head, err = do()
		return err
	})
	if err != nil {
		return checkpoint.Head{}, err
	}
	return head, nil
}

// Post implements [checkpoint.Store].
func (m *Mortal) Post(ctx context.Context, run string, p checkpoint.Post) error {
	return m.write(ctx, func() error { return m.Store.Post(ctx, run, p) })
}

// Fork implements [checkpoint.Store].
func (m *Mortal) Fork(ctx context.Context, f checkpoint.Fork) error {
	return m.write(ctx, func() error { return m.Store.Fork(ctx, f) })
}

// Delete implements [checkpoint.Store].
func (m *Mortal) Delete(ctx context.Context, run string) error {
	return m.write(ctx, func() error { return m.Store.Delete(ctx, run) })
}

// PutSnapshot implements [checkpoint.Store].
func (m *Mortal) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	return m.alive(func() error { return m.Store.PutSnapshot(ctx, l, s) })
}

// PutGraph implements [checkpoint.Store].
func (m *Mortal) PutGraph(ctx context.Context, digest string, graph []byte) error {
	return m.alive(func() error { return m.Store.PutGraph(ctx, digest, graph) })
}

// Watch implements [checkpoint.Watcher]. The channel is nil, and so never receives, if the
// store under m is no Watcher.
func (m *Mortal) Watch(run string) (posted <-chan struct{}, stop func()) {
	if w, ok := m.Store.(checkpoint.Watcher); ok {
		return w.Watch(run)
	}
	return nil, func() {}
}

// Follow implements [checkpoint.Follower]. The channel is nil if the store under m is no Follower;
// a reader then looks again and again.
func (m *Mortal) Follow(run string) (grown <-chan struct{}, stop func()) {
	if f, ok := m.Store.(checkpoint.Follower); ok {
		return f.Follow(run)
	}
	return nil, func() {}
}
