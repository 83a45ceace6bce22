package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A mortal is the store of one process after another, of which the one that lives now may die
// at an append, and loses sight of the store, which goes on without it. It remembers what a
// durable log forbids. The zero mortal is empty, and its process does not die.
type mortal struct {
	memory.Store // what is left when a process has died

	made  sync.Once
	lives pawltest.Mortal

	mu     sync.Mutex
	done   map[string]bool // visits whose entry is durable and not voided
	pauses map[string]int  // durable interrupts, by kind and path
	failed map[string]int  // attempts that failed, by path
	wrong  []string        // entries that should not be

	snapshots map[uint64][]byte // all that live runs have written, by entry; nil: they are not kept
}

var errDead = pawltest.ErrDead

// process is the store as the process sees it that lives now.
func (m *mortal) process() *pawltest.Mortal {
	m.made.Do(func() { m.lives.Store = &m.Store })
	return &m.lives
}

// revive begins the life of another process, which ends at append number life.
func (m *mortal) revive(ctx context.Context, life int, written bool) error {
	err := m.process().Revive(ctx)
	m.dieAt(life, written)
	return err
}

// dieAt has the process die at append number life from now on; 0: it doesn't die.
func (m *mortal) dieAt(life int, written bool) {
	if written {
		m.process().DieAfter(life)
	} else {
		m.process().DieBefore(life)
	}
}

// died reports whether the process has died.
func (m *mortal) died() bool { return m.process().Died() }

// isDone reports whether the entry of a visit is durable.
func (m *mortal) isDone(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[path]
}

func (m *mortal) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	return m.process().Acquire(ctx, run, owner)
}

// Release of a process that has died is not tried again: it would wait for nothing.
func (m *mortal) Release(ctx context.Context, l checkpoint.Lease) error {
	err := m.process().Release(ctx, l)
	if errors.Is(err, errDead) {
		return fmt.Errorf("%w: %w", checkpoint.ErrClosed, err)
	}
	return err
}

func (m *mortal) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshots != nil && !m.died() {
		m.snapshots[s.Head.Seq] = slices.Clone(s.Data)
	}
	return m.process().PutSnapshot(ctx, l, s)
}

// sameSnapshots checks that every snapshot that a live run has written is what a replay of the log
// comes to there, as far as the log was not trimmed.
func sameSnapshots[S any](t *testing.T, d *dispatcher.Dispatcher[S], id string, store *mortal) (compared int) {
	t.Helper()
	store.mu.Lock()
	defer store.mu.Unlock()
	err := dispatcher.EachReplayed(t.Context(), d, id, func(seq uint64, machine func() []byte) {
		live, ok := store.snapshots[seq]
		if !ok || t.Failed() {
			return
		}
		compared++
		if replayed := machine(); !bytes.Equal(live, replayed) {
			t.Errorf("the snapshot at entry %d is\n%s\nand a replay comes to\n%s", seq, live, replayed)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return compared
}

func (m *mortal) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head, err := m.process().Append(ctx, l, after, entries)
	if err == nil || errors.Is(err, checkpoint.ErrCommitUnknown) { // the process dies, and nobody is told
		for i := range entries {
			m.note(&entries[i])
		}
	}
	return head, err
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
