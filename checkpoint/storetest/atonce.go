package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// atOnce makes calls beside one another, and returns when all have. Who begins is another one each
// round.
func (t *trial) atOnce(round int, calls ...func()) {
	t.together(len(calls), func(i int) { calls[(i+round)%len(calls)]() })
}

// together has f run so many times beside one another, and returns when all have.
func (t *trial) together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		t.beside(&all, func() { f(i) })
	}
	all.Wait()
}

// Who reads beside appends of several entries sees all of each or none of it; and a message that
// one of them drains waits, or is in the log.
func readersSeeWholeAppends(t *trial, s checkpoint.Store) {
	const appends, entries = 20, 7
	l, head := begun(t, s, "run")
	for i := range appends {
		post(t, s, "run", checkpoint.Post{ID: fmt.Sprint(i), Kind: checkpoint.PostTurn})
	}
	var failed error
	written := make(chan struct{})
	var writer sync.WaitGroup
	t.beside(&writer, func() {
		defer close(written)
		for i := 0; i < appends && failed == nil; i++ {
			all := []checkpoint.Entry{drains(fmt.Sprint(i))}
			for len(all) < entries {
				all = append(all, done(len(all)))
			}
			head, failed = s.Append(t.Context(), l, head, all)
		}
	})
	defer writer.Wait()
	for over := false; !over; {
		select {
		case <-written:
			over = true
		default:
		}
		waiting := len(posts(t, s, "run"))
		got := len(read(t, s, "run", 1, 0))
		if (got-1)%entries != 0 {
			t.Fatalf("beside appends of %d entries behind the first Read yields %d: a part of one", entries, got)
		}
		if drained := (got - 1) / entries; waiting+drained < appends {
			t.Fatalf("of %d messages %d wait, and no more than %d are in the log that was read behind that", appends, waiting, drained)
		}
	}
	if failed != nil {
		t.Errorf("Append beside readers = %v", failed)
	}
}

// winner returns which of calls that were made at once has succeeded, as exactly one has to: the
// others have lost.
func winner(t *trial, errs []error, lost error, what string) int {
	t.Helper()
	won := -1
	for i, err := range errs {
		switch {
		case err != nil:
			wantErr(t, err, lost, "%s, number %d of those at once,", what, i)
		case won >= 0:
			t.Fatalf("%s: numbers %d and %d of those at once both succeeded", what, won, i)
		default:
			won = i
		}
	}
	if won < 0 {
		t.Fatalf("%s: none of %d at once has succeeded", what, len(errs))
	}
	return won
}

// A message that is posted beside a Delete goes with the run, or is refused since there is none: a
// run that is made later under the id does not have it.
func postBesideADelete(t *trial, s checkpoint.Store) {
	for round := range 30 {
		rested(t, s, "run")
		var posted, deleted error
		t.atOnce(round,
			func() { posted = s.Post(t.Context(), "run", checkpoint.Post{ID: "post", Kind: "cancel"}) },
			func() { deleted = s.Delete(t.Context(), "run") },
		)
		if deleted != nil {
			t.Fatalf("Delete beside a Post = %v", deleted)
		}
		if posted != nil {
			wantErr(t, posted, checkpoint.ErrNotFound, "Post beside a Delete")
		}
		rested(t, s, "run")
		if got := posts(t, s, "run"); len(got) != 0 {
			t.Fatalf("Post beside a Delete = %v, and the next run of the id has the messages %v", posted, got)
		}
		erase(t, s, "run")
	}
}

// A Fork that shares a base has it, also if the last run that had it before is deleted at that
// time.
func baseBesideADelete(t *trial, s checkpoint.Store) {
	for round := range 30 {
		base := small(round)
		fork(t, s, base, "last")
		var forked, deleted error
		t.atOnce(round,
			func() { forked = s.Fork(t.Context(), forkOf(base, "next")) },
			func() { deleted = s.Delete(t.Context(), "last") },
		)
		if forked != nil || deleted != nil {
			t.Fatalf("Fork = %v, beside a Delete of the run that has its base: %v", forked, deleted)
		}
		wantBase(t, s, "next", base)
		erase(t, s, "next")
	}
}

// What Stat and List tell of a run is of one moment: beside appends that change its status nobody
// is told a head with the status of another one.
func infoIsOfOneMoment(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run") // at entry 1
	var failed error
	written := make(chan struct{})
	var writer sync.WaitGroup
	t.beside(&writer, func() {
		defer close(written)
		for i := 0; i < 40 && failed == nil; i++ {
			kind := []checkpoint.Kind{checkpoint.Waiting, checkpoint.Resumed}[i%2]
			head, failed = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: kind}})
		}
	})
	defer writer.Wait()
	for over := false; !over; {
		select {
		case <-written:
			over = true
		default:
		}
		page, err := s.List(t.Context(), checkpoint.Filter{})
		if err != nil || len(page) != 1 {
			t.Fatalf("List = %d runs, %v, want one", len(page), err)
		}
		for name, info := range map[string]checkpoint.Info{"Stat": stat(t, s, "run"), "List": page[0]} {
			want := []checkpoint.Status{checkpoint.StatusInterrupted, checkpoint.StatusRunning}[info.Head.Seq%2]
			if info.Head.Seq > 1 && info.Status != want {
				t.Fatalf("%s tells that the run stands at entry %d and is %s, want %s", name, info.Head.Seq, info.Status, want)
			}
		}
	}
	if failed != nil {
		t.Errorf("Append beside readers = %v", failed)
	}
}

// Delete removes no run that somebody holds: who has acquired it and sees it, though he came when
// the Delete had begun, keeps it. A store may hold the run for the Delete, which is ErrBusy for
// others.
func acquireBesideADelete(t *trial, s checkpoint.Store) {
	for round := range 30 {
		rested(t, s, "run")
		var l checkpoint.Lease
		var before checkpoint.Info
		var acquired, seen, appended, deleted error
		t.atOnce(round,
			func() {
				if l, acquired = s.Acquire(t.Context(), "run", "owner"); acquired != nil {
					return
				}
				if before, seen = s.Stat(t.Context(), "run"); seen == nil {
					_, appended = s.Append(t.Context(), l, before.Head, []checkpoint.Entry{done(1)})
				}
			},
			func() { deleted = s.Delete(t.Context(), "run") },
		)
		switch {
		case acquired != nil:
			if wantErr(t, acquired, checkpoint.ErrBusy, "Acquire beside a Delete"); deleted != nil {
				t.Fatalf("Acquire beside a Delete = %v, and the Delete = %v", acquired, deleted)
			}
			continue
		case seen != nil:
			wantErr(t, seen, checkpoint.ErrNotFound, "Stat beside a Delete")
			if deleted != nil {
				t.Fatalf("there is no run, and Delete = %v", deleted)
			}
		case !errors.Is(deleted, checkpoint.ErrBusy):
			t.Fatalf("Delete of a run beside one who has acquired it and has seen it at entry %d = %v, want ErrBusy", before.Head.Seq, deleted)
		case appended != nil:
			t.Fatalf("Append by who has acquired the run, and to whom it was shown, = %v", appended)
		default:
			whole(t, s, "run", 2)
		}
		release(t, s, l)
		if seen == nil {
			erase(t, s, "run")
		}
	}
}

// Of many Forks at once that make a run of one id one makes it, and the others are ErrExists and
// make none of theirs; or ErrBusy, if the store holds the runs for the one.
func oneOfManyForksWins(t *trial, s checkpoint.Store) {
	fork(t, s, small(0), "first")
	for round := range 6 {
		const many = 6
		errs := make([]error, many)
		shared, own := fmt.Sprintf("shared %d", round), func(i int) string { return fmt.Sprintf("run %d of %d", round, i) }
		t.together(many, func(i int) {
			runs := []string{shared, own(i)}
			if i%2 == 1 {
				slices.Reverse(runs)
			}
			errs[i] = s.Fork(t.Context(), forkOf(small(i), runs...))
		})
		won := slices.Index(errs, nil)
		if won < 0 {
			t.Fatalf("of %d Forks that make %q none did: %v", many, shared, errs)
		}
		wantBase(t, s, shared, small(won))
		for i, err := range errs {
			_, there := s.Stat(t.Context(), own(i))
			switch {
			case i == won && there != nil:
				t.Errorf("Stat of %q, which was made with %q, = %v", own(i), shared, there)
			case i == won:
			case err == nil:
				t.Errorf("Forks %d and %d both made %q", won, i, shared)
			default:
				if !errors.Is(err, checkpoint.ErrBusy) {
					wantErr(t, err, checkpoint.ErrExists, "Fork %d, when another has made %q", i, shared)
				}
				wantErr(t, there, checkpoint.ErrNotFound, "Stat of %q, which a Fork that was refused would have made", own(i))
			}
		}
	}
	wantVerified(t, s)
}

// Of many graphs of one digest that are put at once one is kept, whoever puts that one is told so,
// and for the others it is ErrConflict.
func oneOfManyGraphsIsKept(t *trial, s checkpoint.Store) {
	for round := range 6 {
		const many = 6
		errs := make([]error, many)
		digest, graph := fmt.Sprint("digest ", round), func(i int) []byte { return small(i / 2) } // every two put the same
		t.together(many, func(i int) { errs[i] = s.PutGraph(t.Context(), digest, graph(i)) })
		kept, err := s.Graph(t.Context(), digest)
		if err != nil {
			t.Fatalf("Graph(%q) = %v", digest, err)
		}
		for i, err := range errs {
			switch is := string(kept) == string(graph(i)); {
			case is && err != nil:
				t.Errorf("PutGraph of %s = %v, which is the graph that is kept", graph(i), err)
			case !is && !errors.Is(err, checkpoint.ErrConflict):
				t.Errorf("PutGraph of %s = %v, and %s is kept: want ErrConflict", graph(i), err, kept)
			}
		}
	}
}
