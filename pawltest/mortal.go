package pawltest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// ErrDead is what a [Mortal] returns when the process that has it is dead.
var ErrDead = errors.New("pawltest: the process has died")

var errNoStore = errors.New("pawltest: a Mortal without a store: set Store, new(memory.Store) for example")

// A Mortal is the store of one process after another, each of which may die at one of its writes.
// What was durable by then is there for the next process, and nothing else is. It is for tests of
// what [Crash] can't try: a program that forks, trims and goes on with runs, several runs at once,
// or a process that dies again while it recovers. A Mortal is safe for concurrent use.
//
// Writes are Append, Post, Fork, Trim and Delete; they are made one after the other. Snapshots and
// graphs are not counted, since it is chance when they are written. If the process is dead every
// write and every lease is refused with [ErrDead]. Reads are not, so that a test can look at what
// was durable.
type Mortal struct {
	// Store is what is written to. It must be set before the Mortal is used.
	checkpoint.Store

	mu     sync.Mutex // not held while the store is called
	life   int        // writes until death, that one included; 0: it does not die
	after  bool       // the write at which it dies becomes durable, and nobody is told
	dead   bool
	leases []checkpoint.Lease // that nobody has given back
	calls  int                // that have not returned
	writes bool               // one of them is a write that has its turn
	moved  chan struct{}      // closed when the process dies or a call returns; nil if nobody waits for that
}

var (
	_ checkpoint.Watcher  = (*Mortal)(nil)
	_ checkpoint.Follower = (*Mortal)(nil)
)

// DieBefore has the process die at its n-th write from now on, just before that write becomes
// durable. The next write is the first. An n below 1 means that the process does not die.
func (m *Mortal) DieBefore(n int) { m.dieAt(n, false) }

// DieAfter has the process die at its n-th write from now on, just after that write has become
// durable. The process is told ErrDead and checkpoint.ErrCommitUnknown. An n below 1 means that it
// does not die.
func (m *Mortal) DieAfter(n int) { m.dieAt(n, true) }

func (m *Mortal) dieAt(n int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life, m.after = max(n, 0), after
}

// Kill has the process die now. A write that is under way may still become durable until Revive has
// returned; it is told ErrDead and, unless the store refuses it, checkpoint.ErrCommitUnknown.
func (m *Mortal) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead, m.life = true, 0
	m.wake()
}

// Died reports whether the process is dead.
func (m *Mortal) Died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// Left tells how many writes are left until the process dies. Zero means that it is dead, or
// does not die.
func (m *Mortal) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life
}

// Revive begins the life of the next process, which does not die. The last process is dead, and the
// leases that it held are free. Revive waits until the calls of the last process have returned; if
// ctx ends first it returns the cause of ctx. Make a new Dispatcher for the next process, or what
// the last one has in memory lives on.
func (m *Mortal) Revive(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	m.wake()
	if err := m.await(ctx, func() bool { return m.calls == 0 }); err != nil {
		return fmt.Errorf("pawltest: calls of a dead process have not returned: %w", err)
	}
	m.calls++
	defer m.returned()
	for ; len(m.leases) > 0; m.leases = m.leases[1:] {
		l := m.leases[0]
		if err := m.unlocked(func() error { return m.Store.Release(ctx, l) }); err != nil {
			return fmt.Errorf("pawltest: the lease of run %q that a dead process held: %w", l.Run, err)
		}
	}
	m.life, m.dead = 0, false
	return nil
}

// write makes a write when the one before it has returned, unless the process is dead, or dies at
// it.
func (m *Mortal) write(ctx context.Context, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	defer m.returned()
	if err := m.await(ctx, func() bool { return m.dead || !m.writes }); err != nil {
		return err
	}
	if err := m.refuses(); err != nil {
		return err
	}
	dies := m.life == 1
	m.life = max(m.life-1, 0)
	if dies && !m.after {
		m.dead = true
		return ErrDead
	}
	m.writes = true
	defer func() { m.writes = false }()
	err := m.unlocked(do)
	if m.dead = m.dead || dies; !m.dead {
		return err
	}
	if err == nil {
		err = checkpoint.ErrCommitUnknown
	}
	return fmt.Errorf("%w: %w", ErrDead, err)
}

// alive does what is no write, unless the process is dead, or dies meanwhile.
func (m *Mortal) alive(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuses(); err != nil {
		return err
	}
	m.calls++
	defer m.returned()
	err := m.unlocked(do)
	if m.dead {
		return ErrDead
	}
	return err
}

// unlocked does what may take its time, as every call of the store may. mu is held before and
// behind it.
func (m *Mortal) unlocked(do func() error) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	return do()
}

// await waits until something holds, or ctx ends. mu is held, though not while it waits.
func (m *Mortal) await(ctx context.Context, holds func() bool) error {
	for !holds() {
		if m.moved == nil {
			m.moved = make(chan struct{})
		}
		moved := m.moved
		err := m.unlocked(func() error {
			select {
			case <-moved:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// returned ends a call. mu is held.
func (m *Mortal) returned() {
	m.calls--
	m.wake()
}

// wake has those that await something look again. mu is held.
func (m *Mortal) wake() {
	if m.moved != nil {
		close(m.moved)
		m.moved = nil
	}
}

// refuses is why nothing can be done. mu is held.
func (m *Mortal) refuses() error {
	switch {
	case m.Store == nil:
		return errNoStore
	case m.dead:
		return ErrDead
	}
	return nil
}
