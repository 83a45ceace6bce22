package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// workers make steps beside one another, each those of its own, until the store is crashed.
const workers = 3

// A work is what a worker does in a round, at the end of which the store is crashed.
type work struct {
	begin func(s checkpoint.Store, round, w int)                               // what it needs; nil if nothing
	step  func(ctx context.Context, s checkpoint.Store, round, w, n int) error // its n-th step
	// looks at what a crash has left, of so many steps acknowledged
	left func(s checkpoint.Store, round, w, told int)
}

// crashBeside crashes the store while the workers are at work, several times.
func (t *trial) crashBeside(s checkpoint.Store, x work) {
	t.Helper()
	for round := range 3 {
		for w := 0; x.begin != nil && w < workers; w++ {
			x.begin(s, round, w)
		}
		told := [workers]int{}
		s = t.crashOnce(s, func(ctx context.Context, w int) error {
			err := x.step(ctx, s, round, w, told[w])
			if err == nil {
				told[w]++
			}
			return err
		})
		for w := range workers {
			x.left(s, round, w, told[w])
		}
		wantVerified(t, s)
	}
}

// crashOnce crashes the store when each worker has made two steps, and one of them another.
func (t *trial) crashOnce(s checkpoint.Store, step func(ctx context.Context, w int) error) checkpoint.Store {
	t.Helper()
	const before = 2
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var all, warm sync.WaitGroup
	warm.Add(workers)
	further := make(chan struct{}, 1)
	tell := func() {
		select {
		case further <- struct{}{}:
		default:
		}
	}
	for w := range workers {
		t.beside(&all, func() { // ends with the store that is crashed, or with ctx behind it
			warmed := sync.OnceFunc(warm.Done)
			defer warmed()
			defer tell()
			for n := 0; ; n++ {
				if n == before {
					warmed()
					warm.Wait()
				}
				if err := step(ctx, w); err != nil {
					if n < before {
						t.Errorf("step %d of worker %d = %v", n+1, w+1, err)
					}
					return
				}
				if n >= before {
					tell()
				}
				runtime.Gosched() // so that the crash gets in
			}
		})
	}
	warm.Wait()
	<-further
	next := t.crash(s)
	end()
	all.Wait()
	return next
}

// A Fork that is under way when the store dies has made all of its runs or none, and one that was
// acknowledged all.
func forkUnderWayIsWholeOrNot(t *trial, s checkpoint.Store) {
	fork(t, s, small(0), "first")
	runs := func(round, w, n int) (all []string) {
		for i := range w + 2 { // so that not all are as far at the same time
			all = append(all, fmt.Sprintf("%d of fork %d by %d in %d", i, n, w, round))
		}
		return all
	}
	t.crashBeside(s, work{
		step: func(ctx context.Context, s checkpoint.Store, round, w, n int) error {
			return s.Fork(ctx, forkOf(small(w), runs(round, w, n)...))
		},
		left: func(s checkpoint.Store, round, w, told int) {
			for n := range told + 1 {
				made, all := 0, runs(round, w, n)
				for _, run := range all {
					if _, err := s.Stat(t.Context(), run); err == nil {
						made++
						wantBase(t, s, run, small(w))
					}
				}
				if made < len(all) && (n < told || made > 0) {
					t.Fatalf("of a Fork that makes %d runs, acknowledged: %t, %d are there after a crash", len(all), n < told, made)
				}
			}
		},
	})
}

// A Trim that is under way when the store dies is made or not: the log begins where it says, has
// the base, and all behind that; and one that was acknowledged is made.
func trimUnderWayIsWholeOrNot(t *trial, s checkpoint.Store) {
	long(t, s, "first")
	trim(t, s, "first", 9, small(9))
	var leases [workers]checkpoint.Lease
	var trimmed, appended [workers]checkpoint.Head // what was acknowledged
	var first [workers]uint64
	t.crashBeside(s, work{
		begin: func(s checkpoint.Store, round, w int) {
			leases[w], trimmed[w] = begun(t, s, fmt.Sprintf("run of %d in %d", w, round))
			appended[w], first[w] = trimmed[w], 1
		},
		step: func(ctx context.Context, s checkpoint.Store, _, w, n int) error {
			head, err := s.Append(ctx, leases[w], trimmed[w], []checkpoint.Entry{done(n), done(n)})
			if err != nil {
				return err
			}
			appended[w] = head
			if head, err = s.Trim(ctx, leases[w], head, trimming(head.Seq, small(n)), small(n)); err == nil {
				first[w], trimmed[w] = appended[w].Seq, head
				appended[w] = head
			}
			return err
		},
		left: func(s checkpoint.Store, _, w, told int) {
			run := leases[w].Run
			info, before := stat(t, s, run), trimmed[w].Seq
			begins, base := first[w], told-1
			if info.Head.Seq == before+3 {
				begins, base = before+2, told
			}
			if at := info.Head.Seq; at < appended[w].Seq || at != before && at != before+2 && at != before+3 {
				t.Fatalf("%q was acknowledged up to entry %d, and is at %d after a crash", run, appended[w].Seq, at)
			}
			if info.First != begins || info.Base != checkpoint.BaseDigest(small(base)) {
				t.Fatalf("%q is at entry %d after a crash, and begins at %d with the base %q: want entry %d and the base of %s",
					run, info.Head.Seq, info.First, info.Base, begins, small(base))
			}
			wantBase(t, s, run, small(base))
			whole(t, s, run, int(info.Head.Seq-begins)+1)
		},
	})
}

// A Delete that is under way when the store dies has removed all of the run or nothing, and a run
// that is made later under its id has nothing of it.
func deleteUnderWayIsWholeOrNot(t *trial, s checkpoint.Store) {
	name := func(round, w, n int) string { return fmt.Sprintf("run %d of %d in %d", n, w, round) }
	var made [workers]string // the last run that was made, with a message
	t.crashBeside(s, work{
		step: func(ctx context.Context, s checkpoint.Store, round, w, n int) error {
			run := name(round, w, n)
			l, err := s.Acquire(ctx, run, "owner")
			if err == nil {
				_, err = s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{opened("graph", nil), done(n)})
			}
			if err == nil {
				err = s.Post(ctx, run, checkpoint.Post{ID: "post", Kind: "cancel"})
			}
			if err == nil {
				err = s.Release(ctx, l)
			}
			if err == nil {
				made[w] = run
				err = s.Delete(ctx, run)
			}
			return err
		},
		left: func(s checkpoint.Store, round, w, told int) {
			for n := range told + 1 {
				run := name(round, w, n)
				if _, err := s.Stat(t.Context(), run); err == nil {
					if n < told {
						t.Fatalf("%q was deleted, and is there after a crash", run)
					}
					if whole(t, s, run, 2); made[w] == run && len(posts(t, s, run)) != 1 {
						t.Fatalf("%q is there after a crash, and its message is not", run)
					}
					continue
				}
				rested(t, s, run)
				if got := posts(t, s, run); len(got) != 0 {
					t.Fatalf("%q is gone after a crash, and the next run of its id has the messages %v", run, got)
				}
			}
		},
	})
}
