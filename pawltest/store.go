package pawltest

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

var errDead = errors.New("pawltest: the process has crashed")

// A mortal is the store of a process that dies at one of its appends: from then on the
// process does not reach the store any more. revive begins the next process.
type mortal struct {
	memory.Store
	watch *watch

	mu      sync.Mutex
	life    int  // appends until death, that one included; 0: it does not die
	written bool // the append at which it dies becomes durable, and nobody is told
	dead    bool
	leases  []checkpoint.Lease
	crash   crash
	open    map[string]bool // effects that have begun and not ended, and must not be done again
}

// A crash is where a process died.
type crash struct {
	seq     uint64 // of the first entry of the append
	entry   checkpoint.Entry
	written bool
	doubt   bool // an effect was under way
}

// revive begins the life of another process.
func (m *mortal) revive(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = false
	for _, l := range m.leases {
		if err := m.Store.Release(ctx, l); err != nil {
			return err
		}
	}
	m.leases = nil
	return nil
}

func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return checkpoint.Lease{}, errDead
	}
	l, err := m.Store.Acquire(ctx, run, owner)
	if err == nil {
		m.leases = append(m.leases, l)
	}
	return l, err
}

func (m *mortal) Release(ctx context.Context, l checkpoint.Lease) error {
	if m.died() {
		return errDead
	}
	return m.Store.Release(ctx, l)
}

func (m *mortal) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	if m.died() {
		return errDead
	}
	return m.Store.PutSnapshot(ctx, l, s)
}

func (m *mortal) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return checkpoint.Head{}, errDead
	}
	m.watch.arrive(entries)
	dies := m.life == 1
	if m.life > 0 {
		m.life--
	}
	if dies {
		m.dead = true
		m.crash = crash{seq: after.Seq + 1, entry: told(entries), written: m.written}
		if !m.written {
			m.crash.doubt = len(m.open) > 0
			return checkpoint.Head{}, errDead
		}
	}
	head, err := m.Store.Append(ctx, l, after, entries)
	if err != nil {
		return head, err
	}
	m.note(entries)
	m.watch.leave(entries)
	if dies {
		m.crash.doubt = len(m.open) > 0
		return checkpoint.Head{}, errors.Join(errDead, checkpoint.ErrCommitUnknown)
	}
	return head, nil
}

// note keeps account of the effects that would be in doubt.
func (m *mortal) note(entries []checkpoint.Entry) {
	for i := range entries {
		e := &entries[i]
		key := e.Path + "#" + e.ID
		switch e.Kind {
		case checkpoint.EffectBegun:
			var b checkpoint.BegunEffect
			if decode(e.Data, &b); !b.Replayable {
				if m.open == nil {
					m.open = map[string]bool{}
				}
				m.open[key] = true
			}
		case checkpoint.EffectEnded:
			delete(m.open, key)
		}
	}
}

// told is the entry of an append that says most about it.
func told(entries []checkpoint.Entry) checkpoint.Entry {
	for _, e := range entries {
		switch e.Kind {
		case checkpoint.Done, checkpoint.AttemptFailed, checkpoint.EffectBegun, checkpoint.EffectEnded:
			return checkpoint.Entry{Kind: e.Kind, Path: e.Path, ID: e.ID}
		}
	}
	e := entries[0]
	return checkpoint.Entry{Kind: e.Kind, Path: e.Path}
}
