package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

var errDead = errors.New("the process has died")

// A mortal is the store of a process that dies at one of its appends: from then on the process does
// not reach it any more. What was durable is there for the next process.
type mortal struct {
	memory.Store

	mu      sync.Mutex
	life    int  // appends until death, that one included; 0: it does not die
	written bool // the append at which it dies becomes durable, and nobody is told
	dead    bool
	leases  []checkpoint.Lease
}

// revive begins the life of another process.
func (m *mortal) revive(t *testing.T, life int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead, m.life = false, life
	for _, l := range m.leases {
		if err := m.Store.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	m.leases = nil
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

func (m *mortal) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return checkpoint.Head{}, errDead
	}
	if m.life > 0 {
		m.life--
		m.dead = m.life == 0
	}
	if m.dead && !m.written {
		return checkpoint.Head{}, errDead
	}
	head, err := m.Store.Append(ctx, l, after, entries)
	if m.dead {
		return checkpoint.Head{}, errors.Join(errDead, checkpoint.ErrCommitUnknown)
	}
	return head, err
}
