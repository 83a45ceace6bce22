package badgerstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// forkstoreBase is a machine that is kept in two pieces.
func forkstoreBase(n int) []byte {
	return fmt.Appendf(nil, "{\"n\":%d,\"text\":%q}", n, noise(300<<10+n))
}

// forkstoreFork is a Fork of the base into runs whose first append has about that many bytes.
func forkstoreFork(base []byte, size int, runs ...string) checkpoint.Fork {
	return forkstoreShelved(base, nil, size, runs...)
}

// forkstoreShelved is forkstoreFork with a shelf, nil for none.
func forkstoreShelved(base, shelf []byte, size int, runs ...string) checkpoint.Fork {
	f := checkpoint.Fork{Base: base, Shelf: shelf}
	origin := &checkpoint.Origin{Run: "parent", Seq: 2, Base: checkpoint.BaseDigest(base)}
	if shelf != nil {
		origin.Shelf = checkpoint.BaseDigest(shelf)
	}
	opening, err := json.Marshal(checkpoint.Opening{Graph: "graph", Digest: "digest", Origin: origin})
	if err != nil {
		panic(err)
	}
	delta := fmt.Appendf(nil, "%q", noise(size))
	for _, run := range runs {
		f.Runs = append(f.Runs, checkpoint.ForkedRun{Run: run, Entries: []checkpoint.Entry{
			{Kind: checkpoint.Opened, Data: opening}, {Kind: checkpoint.Edited, Delta: delta},
		}})
	}
	return f
}

// forkstoreTrim trims a run that nobody holds behind a base.
func forkstoreTrim(ctx context.Context, s *badgerstore.Store, run string, first uint64, base []byte) error {
	l, err := s.Acquire(ctx, run, "owner")
	if err != nil {
		return err
	}
	defer func() { _ = s.Release(context.WithoutCancel(ctx), l) }()
	info, err := s.Stat(ctx, run)
	if err != nil {
		return err
	}
	data, err := json.Marshal(checkpoint.Trimming{First: first, Base: checkpoint.BaseDigest(base)})
	if err != nil {
		return err
	}
	_, err = s.Trim(ctx, l, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, base)
	return err
}

// forkstoreGrow appends to a run, with a snapshot after each append.
func forkstoreGrow(ctx context.Context, s *badgerstore.Store, run string, appends int) error {
	l, err := s.Acquire(ctx, run, "owner")
	if err != nil {
		return err
	}
	defer func() { _ = s.Release(ctx, l) }()
	var head checkpoint.Head
	if info, err := s.Stat(ctx, run); err == nil {
		head = info.Head
	}
	for range appends {
		if head, err = s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Done}, {Kind: checkpoint.Done}}); err != nil {
			return err
		}
	}
	return s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head, Data: []byte("state")})
}

// forkstoreSteps are what a process does one after the other, until it dies.
var forkstoreSteps = []func(ctx context.Context, s *badgerstore.Store) error{
	func(ctx context.Context, s *badgerstore.Store) error {
		return s.Fork(ctx, forkstoreShelved(forkstoreBase(1), forkstoreBase(3), 200<<10, "a", "b"))
	},
	func(ctx context.Context, s *badgerstore.Store) error { // of the same base, with another shelf
		return s.Fork(ctx, forkstoreShelved(forkstoreBase(1), []byte("{}"), 10, "c"))
	},
	func(ctx context.Context, s *badgerstore.Store) error {
		return forkstoreTrim(ctx, s, "parent", 4, forkstoreBase(2))
	},
	func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "a") },
	func(ctx context.Context, s *badgerstore.Store) error {
		return forkstoreTrim(ctx, s, "parent", 6, forkstoreBase(1)) // a base that forks have
	},
	func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "c") },
	func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "b") },
	func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "parent") },
}

// Wherever a process dies while it forks, trims and deletes, at a write that is lost or at one
// that is durable and never reported, the next one finds each of these done or not begun, every
// base counted right, and no key that belongs to nothing.
func TestForkstoreCrashesAnywhere(t *testing.T) {
	t.Parallel()
	after := forkstoreAfter(t)
	for _, lost := range []bool{true, false} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			t.Parallel()
			crash := 1
			for forkstoreCrash(t, crash, lost, after) {
				crash++
			}
			if crash < 30 {
				t.Errorf("there were but %d commits", crash)
			}
		})
	}
}

// forkstoreParent opens a store in which there is a run to trim.
func forkstoreParent(t *testing.T, dir string) *badgerstore.Store {
	t.Helper()
	s := openUnsynced(t, dir)
	if err := forkstoreGrow(t.Context(), s, "parent", 4); err != nil {
		t.Fatal(err)
	}
	return s
}

// forkstoreAfter is the summary behind each step where nothing dies.
func forkstoreAfter(t *testing.T) (after []string) {
	t.Helper()
	s := forkstoreParent(t, t.TempDir())
	for i, step := range forkstoreSteps {
		if err := step(t.Context(), s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		after = append(after, forkstoreSummary(t, s))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return after
}

// forkstoreCrash has a process die at that write. It returns false if there were fewer. After are
// the summaries of forkstoreAfter.
func forkstoreCrash(t *testing.T, crash int, lost bool, after []string) bool {
	t.Helper()
	broken := errors.New("the process is dying")
	dir := t.TempDir()
	s := forkstoreParent(t, dir)
	commits, dead := 0, false
	s.CommitWith(func(next func() error) error {
		if commits++; commits < crash {
			return next()
		}
		dead = true
		if commits == crash && !lost {
			_ = next()
		}
		return broken
	})
	before, at := "", -1
	for i, step := range forkstoreSteps {
		before, at = forkstoreSummary(t, s), i
		if err := step(t.Context(), s); err != nil && !errors.Is(err, broken) && !errors.Is(err, checkpoint.ErrClosed) {
			t.Fatalf("step %d: %v", i, err)
		}
		if dead {
			break
		}
	}
	forkstoreAfterCrash(t, s, dir, before, after[at], at, fmt.Sprintf("crash %d, lost: %v", crash, lost))
	return dead
}

// forkstoreAfterCrash opens the store again: what it holds is what it was before the step or what
// it is after it; the step can be done, and everything be deleted.
func forkstoreAfterCrash(t *testing.T, s *badgerstore.Store, dir, before, after string, at int, name string) {
	t.Helper()
	_ = s.Close()
	s = openUnsynced(t, dir)
	forkstoreAudit(t, s)
	is := forkstoreSummary(t, s)
	if is == before {
		if err := forkstoreSteps[at](t.Context(), s); err != nil {
			t.Fatalf("%s: step %d done again: %v", name, at, err)
		}
		is = forkstoreSummary(t, s)
	}
	if is != after {
		t.Errorf("%s: the runs are\n%s\nwant\n%s", name, is, after)
	}
	forkstoreAudit(t, s)
	for _, run := range []string{"parent", "a", "b", "c"} {
		if err := s.Delete(t.Context(), run); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Fatalf("%s: %d keys are left, %q the first", name, len(keys), keys[0])
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.Fatalf("%s, in step %d", name, at)
	}
}

// forkstoreChild forks, trims and deletes until it is killed. It says what it was told to be
// durable, and what it is about to delete.
func forkstoreChild(ctx context.Context, s *badgerstore.Store, w int, say *sync.Mutex) error {
	for i := 0; ; i++ {
		var runs []string
		for k := range 3 {
			runs = append(runs, fmt.Sprintf("run-%d-%d-%d", w, i, k))
		}
		tell := func(what string) {
			say.Lock()
			defer say.Unlock()
			fmt.Printf("%s-%d-%d 1\n", what, w, i)
		}
		if err := s.Fork(ctx, forkstoreFork(forkstoreBase(i%2), (i%3)*100<<10, runs...)); err != nil {
			return err
		}
		tell("forked")
		if err := forkstoreGrow(ctx, s, runs[1], 3); err != nil {
			return err
		}
		if err := forkstoreTrim(ctx, s, runs[1], 5, forkstoreBase(2+i%2)); err != nil {
			return err
		}
		tell("trimmed")
		if i%4 == 3 {
			continue
		}
		tell("going")
		for _, run := range runs {
			if err := s.Delete(ctx, run); err != nil {
				return err
			}
		}
	}
}

// A process that forks, trims and deletes is killed at some moment, again and again: what it was
// told is there, each Fork wholly or not at all, every base is counted right, and Verify finds
// nothing.
func TestForkstoreKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("PAWL_KILLS") != "" {
		rounds = 40
	}
	dir := t.TempDir()
	acked := make(map[string]uint64)
	for round := range rounds {
		runAndKill(t, dir, fmt.Sprintf("forks %d", round), 5+round*13%40, acked)
		s := open(t, dir)
		forkstoreAudit(t, s)
		forkstoreAcked(t, s, acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if len(acked) == 0 {
		t.Error("nothing was ever durable")
	}
}

func forkstoreAcked(t *testing.T, s *badgerstore.Store, acked map[string]uint64) {
	t.Helper()
	there := make(map[string]int)
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page {
		fork := strings.TrimPrefix(info.Run[:strings.LastIndex(info.Run, "-")], "run-")
		there[fork]++
		if acked["trimmed-"+fork] > 0 && strings.HasSuffix(info.Run, "-1") && info.First != 5 {
			t.Errorf("%s begins at %d, and was trimmed to 5", info.Run, info.First)
		}
	}
	for what := range acked {
		fork, ok := strings.CutPrefix(what, "forked-")
		if ok && acked["going-"+fork] == 0 && there[fork] != 3 {
			t.Errorf("of the fork %s there are %d runs, want 3", fork, there[fork])
		}
	}
	for fork, n := range there {
		if n != 3 && acked["going-"+fork] == 0 {
			t.Errorf("of the fork %s, which nobody deletes, there are %d runs, want 3", fork, n)
		}
	}
}
