package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Faulty is a Store whose disk fails and whose machine dies, for tests. The zero Faulty is empty
// and never fails; what it acknowledges survives [Faulty.Crash].
//
// Writes are Append, Post, PutSnapshot, PutGraph, Delete, Fork, Trim and Restore. They are made one
// after the other. A write that is not durable at once costs a look at every run. Snapshots are
// never durable at once; they become so with the next write that is.
type Faulty struct {
	// Store is what is stored. Its own methods, called as f.Store.Append, never fail: a test
	// prepares with them what it needs, though a crash may take it away.
	Store

	// Unsynced says that writes are acknowledged before they are durable, as by a store that
	// survives the death of its process but not that of the machine. See [Faulty.Sync].
	Unsynced bool

	// Fail is asked before each write what goes wrong with it. It may take its time, which makes a
	// slow disk, and is called from many goroutines at once. Zero means that nothing goes wrong. A
	// value that is no Fault makes the write panic.
	Fail func(context.Context, Write) Fault

	// FailRead is asked before each call that writes nothing: Acquire, Renew, Release, Read, Stat,
	// List, Posts, Snapshot, Base, Graph and Envelopes. method is the name of the call, and run is
	// "" if the call names none. If FailRead returns an error the call ends with it, and nothing
	// has changed.
	//
	// FailRead may take its time, which makes a slow disk, or wait until ctx ends, which makes a
	// disk that hangs. It is called from many goroutines at once. Zero means that nothing goes
	// wrong.
	FailRead func(ctx context.Context, method, run string) error

	mu      sync.Mutex // held during a write, not during Fail, FailRead and Hang
	writes  int
	past    []*image // what stood before each write that is not durable, oldest first
	last    *image   // what stood when the machine died; nil if it lives
	died    chan struct{}
	spoiled map[spot]bool
}

// A spot is a part of a run.
type spot struct {
	run  string
	part checkpoint.Part
}

var (
	_ checkpoint.Store    = (*Faulty)(nil)
	_ checkpoint.Archiver = (*Faulty)(nil)
)

// A Write is what is about to be written.
type Write struct {
	N      int    // counted from 1, over crashes
	Method string // of Store or Archiver: "Append", …
	Run    string // "" if there is none, or several
}

// A Fault is what goes wrong with a write.
type Fault int

const (
	// None: nothing goes wrong.
	None Fault = iota
	// Full: there is no room. Nothing has changed, and the error is ErrFull.
	Full
	// Vanished: the write is not made, and nobody knows. The error is ErrCommitUnknown.
	Vanished
	// Applied: the write is made, and nobody knows. The error is ErrCommitUnknown. The write
	// becomes durable with the next write that is acknowledged.
	Applied
	// Torn: the machine dies in the middle of an Append. Half of it is stored, and a read finds
	// damage there. Of any other write nothing is stored. The error is ErrCommitUnknown.
	Torn
	// Hang: the write does not end before its context does or the machine dies. It is not made, and
	// nobody knows. The error is ErrCommitUnknown.
	Hang
)

// write makes a write, or what goes wrong with it.
func (f *Faulty) write(ctx context.Context, method, run string, do func() error) error {
	w, died, dead := f.begins(method, run)
	if dead {
		return do() // it is ErrClosed
	}
	fault := None
	if f.Fail != nil {
		fault = f.Fail(ctx, w)
	}
	if fault < None || fault > Hang {
		panic(fmt.Sprintf("memory: Faulty.Fail has returned %d for write %d: return a Fault, from None (%d) to Hang (%d)",
			fault, w.N, None, Hang))
	}
	if fault == Hang {
		select {
		case <-ctx.Done():
		case <-died:
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	unknown := fmt.Errorf("%w: write %d, %s of run %q", checkpoint.ErrCommitUnknown, w.N, method, run)
	switch fault {
	case Full:
		return fmt.Errorf("%w: write %d, %s of run %q", checkpoint.ErrFull, w.N, method, run)
	case Vanished, Hang:
		return unknown
	case Torn:
		f.tear(method, run, do)
		return unknown
	}
	if err := f.readable(run, checkpoint.PartInfo); err != nil {
		return err
	}
	durable := !f.Unsynced && fault == None && method != "PutSnapshot"
	var before *image
	if !durable {
		before = f.image()
	}
	if err := do(); err != nil {
		return err
	}
	if durable {
		f.past = nil
		return nil
	}
	f.past = append(f.past, before)
	if fault == Applied {
		return unknown
	}
	return nil
}

// begins counts a write, and reports whether the machine has died before it.
func (f *Faulty) begins(method, run string) (w Write, died <-chan struct{}, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.died == nil {
		f.died = make(chan struct{})
	}
	return Write{N: f.writes, Method: method, Run: run}, f.died, f.last != nil
}

// tear has the machine die when half of an append is stored. What was not durable before it is
// not lost: the disk has come as far as this.
func (f *Faulty) tear(method, run string, do func() error) {
	if f.last != nil {
		return
	}
	if method == "Append" && do() == nil {
		f.halve(run)
	}
	f.past = nil
	f.die()
}

// die ends the store that processes have. mu is held.
func (f *Faulty) die() {
	if f.last != nil {
		return
	}
	f.last = f.image()
	_ = f.Store.Close() // never fails
	if f.died == nil {
		f.died = make(chan struct{})
	}
	close(f.died)
}

// Sync makes durable what was written, unless the machine has died.
func (f *Faulty) Sync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sync()
}

// sync is Sync. mu is held.
func (f *Faulty) sync() {
	if f.last == nil {
		f.past = nil
	}
}

// Close ends the store in good order: what was written is durable, and Crash then finds it.
func (f *Faulty) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sync()
	f.die()
	return nil
}

// Unsafe tells how many writes a crash can lose.
func (f *Faulty) Unsafe() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.past)
}

// Crash has the machine die and returns the store that is found when it is up again. Of the writes
// that are not durable the last ones are lost: lose of them, or all if there are fewer. Zero is the
// death of the process alone.
//
// Every method of f returns ErrClosed from then on, and what hangs ends. In the new store nobody
// has a lease; epochs under which nothing was appended, and those of deleted runs, are forgotten. A
// Faulty can crash again and lose something else then, since it stays as it was when it died.
func (f *Faulty) Crash(lose int) *Faulty {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.die()
	left := f.last
	if lose = min(lose, len(f.past)); lose > 0 {
		left = f.past[len(f.past)-lose]
	}
	next := &Faulty{
		Unsynced: f.Unsynced, Fail: f.Fail, FailRead: f.FailRead,
		writes: f.writes, spoiled: maps.Clone(f.spoiled),
	}
	next.boot(left)
	return next
}

// Sealed returns the append of run that holds entry seq, as it is stored. ErrNotFound if there is
// none.
func (f *Faulty) Sealed(run string, seq uint64) ([]byte, error) { return f.sealed(run, seq) }

// Damage stores something else instead of the append of run that holds entry seq. With nil the
// append is gone, and leaves a hole. What a crash goes back to is not damaged. ErrNotFound if there
// is no such append.
func (f *Faulty) Damage(run string, seq uint64, sealed []byte) error {
	return f.damage(run, seq, bytes.Clone(sealed))
}

// Spoil makes a part of run unreadable, for good and over crashes: its posts, its snapshots, its
// bases (for this run alone), or its info, without which nothing of the run can be read. A call
// that needs the part is ErrCorrupt from then on. To spoil an append use [Faulty.Damage].
func (f *Faulty) Spoil(run string, part checkpoint.Part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spoiled == nil {
		f.spoiled = make(map[spot]bool)
	}
	f.spoiled[spot{run, part}] = true
}
