package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// inherited returns the lease of a run whose owner has died: at once, or when the lease of the
// dead has ended, if it has an end.
func inherited(t *trial, s checkpoint.Store, old checkpoint.Lease) checkpoint.Lease {
	t.Helper()
	for {
		l, err := s.Acquire(t.Context(), old.Run, "heir of "+old.Run)
		if errors.Is(err, checkpoint.ErrBusy) && time.Now().Before(old.Until.Add(time.Second)) {
			time.Sleep(time.Until(old.Until.Add(time.Millisecond))) // nothing else tells that it has ended
			continue
		}
		if err != nil {
			t.Fatalf("Acquire(%q) after a crash = %v, want the lease: its owner is dead", old.Run, err)
		}
		if l.Epoch <= old.Epoch {
			t.Fatalf("epoch %d after a crash, and %d before: the dead could write on", l.Epoch, old.Epoch)
		}
		return l
	}
}

// What was acknowledged is there after a crash, and the run goes on: entries of any size, messages,
// graphs and forks, crash after crash.
func acknowledgedSurvivesACrash(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	big := done(0)
	big.Delta = t.quoted(mebibyte)
	forks := 0
	for round := 1; round <= 4; round++ {
		for i := range 4 {
			head = add(t, s, l, head, done(i), done(i))
		}
		head = add(t, s, l, head, big)
		post(t, s, "run", checkpoint.Post{ID: fmt.Sprint(round), Kind: "answer"})
		if err := s.PutGraph(t.Context(), fmt.Sprint(round), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := s.Fork(t.Context(), forkOf(small(1), fmt.Sprintf("fork %d", round))); err == nil {
			forks++
		} else if !errors.Is(err, checkpoint.ErrUnsupported) {
			t.Fatal(err)
		}

		s = t.crash(s)
		if got := stat(t, s, "run").Head; got != head {
			t.Fatalf("after crash %d the head is at %d, and %d was acknowledged", round, got.Seq, head.Seq)
		}
		if got := read(t, s, "run", 1, 0); len(got) != int(head.Seq) || string(got[head.Seq-1].Delta) != string(big.Delta) {
			t.Fatalf("after crash %d there are %d entries, want %d, the last of them a large one", round, len(got), head.Seq)
		}
		if got := posts(t, s, "run"); len(got) != round {
			t.Fatalf("after crash %d there are %d messages, and %d were acknowledged", round, len(got), round)
		}
		if _, err := s.Graph(t.Context(), fmt.Sprint(round)); err != nil {
			t.Errorf("after crash %d Graph = %v", round, err)
		}
		if got := ids(t, s, checkpoint.Filter{}); len(got) != forks+1 {
			t.Fatalf("after crash %d there are the runs %q, want %d", round, got, forks+1)
		}
		wantVerified(t, s)
		l = inherited(t, s, l)
	}
}

// What is under way when the store dies is there as a whole or not at all, and nothing that was
// acknowledged is missing: a run has what its writer was told of, and at most one append more.
func underWayIsWholeOrNot(t *trial, s checkpoint.Store) {
	const writers, before, size = 8, 5, 3
	leases, heads := make([]checkpoint.Lease, writers), make([]checkpoint.Head, writers)
	for w := range writers {
		leases[w], heads[w] = begun(t, s, fmt.Sprintf("run-%d", w))
	}
	for range 3 {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var all, warm sync.WaitGroup
		warm.Add(writers)
		for w := range writers {
			t.beside(&all, func() { // ends with the store that is crashed, or with ctx behind it
				warmed := sync.OnceFunc(warm.Done)
				defer warmed()
				for n := 0; ; n++ {
					if n == before {
						warmed()
						warm.Wait() // a writer who always gets in first must not keep others from it
					}
					next, err := s.Append(ctx, leases[w], heads[w], []checkpoint.Entry{done(w), done(n), done(w)})
					if err != nil {
						if n < before {
							t.Errorf("Append to run-%d = %v", w, err)
						}
						return
					}
					heads[w] = next
					runtime.Gosched() // so that the crash gets in
				}
			})
		}
		warm.Wait()
		next := t.crash(s)
		end()
		all.Wait()
		s = next
		for w, told := range heads {
			run := fmt.Sprintf("run-%d", w)
			head := stat(t, s, run).Head
			if head != told && head.Seq != told.Seq+size {
				t.Fatalf("%s was acknowledged up to %d, and is at %d after the crash, want %d or %d",
					run, told.Seq, head.Seq, told.Seq, told.Seq+size)
			}
			if got := read(t, s, run, 1, 0); len(got) != int(head.Seq) {
				t.Fatalf("%s has %d entries and the head %d", run, len(got), head.Seq)
			}
			leases[w] = inherited(t, s, leases[w])
			heads[w] = head
		}
		wantVerified(t, s)
	}
}

// The lease of a process that has died is free, or ends by itself. The next one has a higher epoch
// than all under which something was written, and the old one is fenced.
func leaseOfTheDeadIsFree(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for range 3 {
		s = t.crash(s)
		next := inherited(t, s, l)
		_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{done(1)})
		wantErr(t, err, checkpoint.ErrFenced, "Append under the lease of the dead")
		head = add(t, s, next, head, done(1))
		l = next
	}
}

// A run whose deletion was acknowledged does not come back after a crash, nor does anything of it
// in a new one.
func deletedStaysDeletedOverACrash(t *trial, s checkpoint.Store) { deletedStays(t, s, t.crash) }

// A snapshot may be lost in a crash: what Snapshot then returns is an older one, as it was put, or
// ErrNotFound, and never a part of one. The next one can be put.
func snapshotsSurviveOrNot(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	data := func(seq uint64) []byte { return fmt.Append(nil, seq, t.noise(mebibyte)) }
	for round := range 3 {
		for i := range 3 {
			head = add(t, s, l, head, done(i))
			put(t, s, l, checkpoint.Snapshot{Head: head, Data: data(head.Seq)})
		}
		s = t.crash(s)
		snap, err := s.Snapshot(t.Context(), "run", 0)
		switch {
		case errors.Is(err, checkpoint.ErrNotFound):
		case err != nil:
			t.Fatalf("after crash %d Snapshot = %v", round+1, err)
		case snap.Head.Seq > head.Seq || !bytes.Equal(snap.Data, data(snap.Head.Seq)):
			t.Fatalf("after crash %d Snapshot = %d bytes of entry %d, which are not those put", round+1, len(snap.Data), snap.Head.Seq)
		}
		l = inherited(t, s, l)
	}
}
