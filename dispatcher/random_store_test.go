package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// A mortal is the store of a process that dies: at its last append the process loses
// sight of the store, which goes on without it. revive is the next process.
type mortal struct {
	memory.Store

	mu      sync.Mutex
	life    int  // appends until death; 0: it doesn't die
	written bool // the append at which it dies is written, and nobody is told
	dead    bool
	leases  []checkpoint.Lease
	done    map[string]bool // visits whose entry is durable and not voided
	pauses  map[string]int  // durable interrupts, by kind and path
	failed  map[string]int  // attempts that failed, by path
	wrong   []string        // entries that should not be
}

var errDead = errors.New("the process is dead")

// revive begins the life of another process, which ends at append number life.
func (m *mortal) revive(ctx context.Context, life int, written bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life, m.written, m.dead = life, written, false
	for _, l := range m.leases {
		if err := m.Store.Release(ctx, l); err != nil {
			return err
		}
	}
	m.leases = nil
	return nil
}

// died reports whether the process has died.
func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// isDone reports whether the entry of a visit is durable.
func (m *mortal) isDone(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[path]
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
	m.life--
	if m.dead = m.life == 0; m.dead && !m.written {
		return checkpoint.Head{}, errDead
	}
	head, err := m.Store.Append(ctx, l, after, entries)
	if err != nil {
		return head, err
	}
	for i := range entries {
		m.note(&entries[i])
	}
	if m.dead {
		return checkpoint.Head{}, fmt.Errorf("%w: %w", checkpoint.ErrCommitUnknown, errDead)
	}
	return head, nil
}

// note remembers what a durable entry means for those who come after.
func (m *mortal) note(e *checkpoint.Entry) {
	if m.done == nil {
		m.done, m.pauses, m.failed = map[string]bool{}, map[string]int{}, map[string]int{}
	}
	switch e.Kind {
	case checkpoint.Done:
		m.done[e.Path] = true
	case checkpoint.AttemptFailed:
		if e.Attempt == 0 { // it is what the visit holds that has failed
			break
		}
		if m.failed[e.Path]++; e.Attempt != m.failed[e.Path] {
			m.wrong = append(m.wrong, fmt.Sprintf("attempt %d of %s fails as number %d", m.failed[e.Path], e.Path, e.Attempt))
			m.failed[e.Path] = e.Attempt
		}
	case checkpoint.Interrupted:
		var i checkpoint.Interrupt
		if err := json.Unmarshal(e.Data, &i); err != nil {
			panic(err)
		}
		m.pauses[i.Kind+" "+e.Path]++
	case checkpoint.Voided:
		var paths []string
		if err := json.Unmarshal(e.Data, &paths); err != nil {
			panic(err)
		}
		for _, path := range paths {
			inside := func(visit string) bool { return strings.HasPrefix(visit, path+"/") }
			maps.DeleteFunc(m.done, func(visit string, _ bool) bool { return visit == path || inside(visit) })
			maps.DeleteFunc(m.failed, func(visit string, _ int) bool { return inside(visit) })
		}
	}
}
