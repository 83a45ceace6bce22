package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Runs that nobody uses are forgotten, but no lease of theirs fits again.
func TestIdleRunsAreForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	s.ForgetIdle()
	stock(t, s, 1<<12)
	if n := s.Remembered(); n != 0 {
		t.Errorf("%d runs are in memory, want none", n)
	}
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	for range 5 {
		l, err := s.Acquire(t.Context(), "run 1", "owner")
		if err != nil || l.Epoch <= last {
			t.Fatalf("Acquire = %+v, %v, after epoch %d", l, err, last)
		}
		last = l.Epoch
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
	if n := s.Remembered(); n != 0 {
		t.Errorf("%d runs are in memory, want none", n)
	}
}

// Runs and bases of calls that were given up are forgotten once it is known what became of these,
// if nobody has used them since.
func TestWhatWasGivenUpIsForgotten(t *testing.T) {
	t.Parallel()
	type call func(context.Context, *badgerstore.Store) error
	fork := func(base string) call {
		return func(ctx context.Context, s *badgerstore.Store) error {
			return s.Fork(ctx, forkstoreFork([]byte(base), 10, "fork"))
		}
	}
	remove := func(ctx context.Context, s *badgerstore.Store) error { return s.Delete(ctx, "last") }
	for name, calls := range map[string][]call{ // of one transaction
		"a Post": {func(ctx context.Context, s *badgerstore.Store) error {
			return s.Post(ctx, "last", checkpoint.Post{ID: "post", Kind: "answer"})
		}},
		"a Fork":   {fork("[]")},
		"a Delete": {remove},
		"a Fork that is refused, since its base goes": {remove, fork("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openUnsynced(t, t.TempDir())
			s.ForgetIdle()
			gate := forkstoreGated(s)
			if err := s.Fork(t.Context(), forkstoreFork([]byte("{}"), 10, "last")); err != nil {
				t.Fatal(err)
			}
			stopped, release := gate.stop(func() error { return forkstoreGrow(t.Context(), s, "bystander", 1) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			given := make(chan error, len(calls))
			for i, call := range calls {
				go func() { given <- call(ctx, s) }() // received below
				forkstoreQueued(s, i+1)
			}
			gate.armed.Store(true)
			release()
			<-gate.began
			cancel()
			for range calls {
				if err := <-given; !errors.Is(err, checkpoint.ErrCommitUnknown) {
					t.Errorf("given up it = %v, want ErrCommitUnknown", err)
				}
			}
			gate.goOn <- struct{}{}
			if err := errors.Join(<-stopped, forkstoreGrow(t.Context(), s, "behind it", 1)); err != nil {
				t.Fatal(err)
			}
			if runs, bases := s.Remembered(), s.Bases(); runs > 0 || bases > 0 {
				t.Errorf("%d runs and %d bases are in memory, want none", runs, bases)
			}
		})
	}
}

// A loop over a log keeps the store open, and what it reads, until it ends.
func TestReadDuringDeleteAndClose(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	stock(t, s, 3<<20)
	next, stop := iter.Pull2(s.Read(t.Context(), "run 0", 1, 0))
	defer stop()
	if _, err, ok := next(); err != nil || !ok {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "run 0"); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	for range 200 { // the database is allowed to forget meanwhile
		var err error
		if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for !errors.Is(second(s.Stat(t.Context(), "run 1")), checkpoint.ErrClosed) {
		runtime.Gosched()
	}
	n := 1
	for {
		_, err, ok := next()
		if !ok {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 18 {
		t.Errorf("read %d entries, want 18", n)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// After Close no goroutine of the store is left, nor one of the database but those that its
// cache of allocators and its metrics keep for the process.
func TestNoGoroutineIsLeft(t *testing.T) {
	others := map[string]bool{} // of tests before this one
	for _, stack := range goroutines() {
		others[goroutineOf(stack)] = true
	}
	s, err := badgerstore.Open(t.Context(), t.TempDir(), small)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	noGoroutineIsLeft(t, others)
}

// noGoroutineIsLeft waits until none is left of a store, nor of its database, but the others.
func noGoroutineIsLeft(t *testing.T, others map[string]bool) {
	t.Helper()
	known := []string{"ristretto", "glog", "opencensus", "go.opentelemetry.io"}
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		left := slices.DeleteFunc(goroutines(), func(stack string) bool {
			return !strings.Contains(stack, "badger") || others[goroutineOf(stack)] || strings.Contains(stack, "testing.tRunner") ||
				slices.ContainsFunc(known, func(name string) bool { return strings.Contains(stack, name) })
		})
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

func goroutines() []string {
	buf := make([]byte, 1<<20)
	return strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
}

// goroutineOf is the number of the goroutine whose stack it is.
func goroutineOf(stack string) string { return strings.Fields(stack)[1] }

// A disk that does not answer holds Close up for no longer than it may take. The directory stays
// locked until the store has closed after all; what was acknowledged is there then.
func TestCloseBesideADiskThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := small
	o.CloseWithin = 50 * time.Millisecond
	s, err := badgerstore.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	free, hangs := make(chan struct{}), make(chan struct{})
	s.CommitWith(func(next func() error) error {
		close(hangs)
		<-free
		return next()
	})
	ctx, cancel := context.WithCancel(t.Context())
	appended := make(chan error)
	go func() { appended <- second(s.Append(ctx, l, head, oneEntry)) }()
	<-hangs
	cancel()
	if err := <-appended; !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("Append = %v, want ErrCommitUnknown", err)
	}
	if err := s.Close(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a write to the disk") {
		t.Errorf("Close = %v, want what it waits for", err)
	}
	for said := false; !said; runtime.Gosched() { // by Close, in the background
		_, err := badgerstore.Open(t.Context(), dir, o)
		if !errors.Is(err, checkpoint.ErrLocked) {
			t.Fatalf("Open meanwhile = %v, want ErrLocked, by a store that is closing", err)
		}
		said = strings.Contains(err.Error(), "is closing")
	}
	close(free)
	for {
		again, err := badgerstore.Open(t.Context(), dir, small) // which may take its time to close
		if errors.Is(err, checkpoint.ErrLocked) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if info, err := again.Stat(t.Context(), l.Run); err != nil || info.Head.Seq < head.Seq {
			t.Errorf("Stat = %+v, %v, want at least entry %d", info, err, head.Seq)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		return
	}
}

// A commit that waits for room in memory when the database finds that it can't write a table waits
// for ever. The append in it is ErrCommitUnknown, what waits behind it ErrClosed, and so is a call
// that waits to know what became of one that was given up.
func TestCommitThatWaitsForATableThatCantBeWritten(t *testing.T) { // alone: it looks at all goroutines
	for name, c := range map[string]struct {
		open  func(context.Context, string, badgerstore.Options) (*badgerstore.Store, error)
		bytes int // in an append
		given bool
	}{
		"its caller waits":        {badgerstore.Open, 60_000, false},
		"its caller has given up": {badgerstore.Open, 60_000, true},
		"its caller is alone":     {badgerstore.OpenUnsynced, 3000, false},
	} {
		given := c.given
		dir := t.TempDir()
		o := small
		o.CloseWithin = time.Millisecond
		s, err := c.open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		taken := filepath.Join(dir, "db", "000001.sst")
		if err := os.WriteFile(taken, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		leases := acquire(t, s, 2)
		ctx, cancel := context.WithCancel(t.Context())
		if c.bytes < 4<<10 { // which he commits himself, if he need not return
			ctx = patient(t)
		}
		appended, queued, asked := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		waits, early := make(chan struct{}), make(chan struct{}) // a commit does; the append ended before one did
		before := waitForRoom()                                  // those of this test that have done so, and do until the process ends
		s.BeforeAlarm(func() {
			for waitForRoom() == before {
				select {
				case <-early:
					return
				default:
					runtime.Gosched()
				}
			}
			close(waits)
			if given {
				cancel()
				if err := <-appended; !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: Append = %v, want ErrCommitUnknown and its context", name, err)
				}
			}
			go func() { // waited for below
				_, err := s.Append(context.Background(), leases[1], checkpoint.Head{}, oneEntry)
				queued <- err
			}()
			go func() { // waited for below
				_, err := s.Stat(context.Background(), leases[0].Run)
				asked <- err
			}()
			for s.Queued() == 0 && !s.Claimed() || given && !s.Awaited() {
				runtime.Gosched()
			}
		})
		var head checkpoint.Head
		go func() { // waited for below
			entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(c.bytes))}}
			var err error
			for size := 0; err == nil && size < 64<<20; size += c.bytes { // that is more than may wait to become tables
				var next checkpoint.Head
				if next, err = s.Append(ctx, leases[0], head, entries); err == nil {
					head = next
				}
			}
			appended <- err
			select {
			case <-waits:
			default:
				close(early)
			}
		}()
		if !given {
			if err := <-appended; !errors.Is(err, checkpoint.ErrCommitUnknown) || errors.Is(err, checkpoint.ErrClosed) {
				t.Errorf("%s: Append = %v, want ErrCommitUnknown alone", name, err)
			}
		}
		select {
		case err := <-queued:
			if !errors.Is(err, checkpoint.ErrClosed) {
				t.Errorf("%s: Append behind it = %v, want ErrClosed", name, err)
			}
		case <-early: // as where the device is full
			cancel()
			if given {
				t.Errorf("%s: Append = %v, want ErrCommitUnknown and its context", name, <-appended)
			}
			t.Fatalf("%s: no commit has waited for room; Close = %v", name, s.Close())
		}
		if err := <-asked; given && !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: Stat = %v, want ErrClosed", name, err)
		}
		cancel()
		if err := s.Close(); !errors.Is(err, context.DeadlineExceeded) { // the database can't be closed
			t.Errorf("%s: Close = %v, want DeadlineExceeded", name, err)
		}
		if err := os.Remove(taken); err != nil {
			t.Fatal(err)
		}
		again := open(t, copyDir(t, dir)) // as behind the end of the process
		if info, err := again.Stat(t.Context(), leases[0].Run); err != nil || info.Head.Seq < head.Seq {
			t.Errorf("%s: there are %d entries, %v, want %d", name, info.Head.Seq, err, head.Seq)
		}
	}
}

// A base that runs refer to is forgotten when no call changes who does, as they are, and counted
// anew by the next.
func TestBasesAreForgotten(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	large := fmt.Appendf(nil, "%q", noise(200<<10))
	leases := acquire(t, s, 8)
	heads := make([]checkpoint.Head, len(leases))
	for round := range 3 {
		for i, l := range leases {
			base := large // of the last two, and of all in the end
			if i < 6 && round < 2 {
				base = fmt.Appendf(nil, "[%d,%d]", i, round)
			}
			head, err := s.Append(t.Context(), l, heads[i], oneEntry)
			if err == nil {
				data := fmt.Appendf(nil, `{"first":%d,"base":%q}`, head.Seq+1, checkpoint.BaseDigest(base))
				head, err = s.Trim(t.Context(), l, head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, base)
			}
			if err != nil {
				t.Fatal(err)
			}
			heads[i] = head
		}
		if n := s.Bases(); n != 0 {
			t.Errorf("behind round %d %d bases are in memory, want none", round, n)
		}
	}
	for finding, err := range s.Verify(t.Context(), nil) {
		t.Errorf("%v, %v", finding, err)
	}
	full := forkstoreStored(s)
	for _, l := range leases {
		if err := errors.Join(s.Release(t.Context(), l), s.Delete(t.Context(), l.Run)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Bases(); n != 0 {
		t.Errorf("%d bases of no run are in memory", n)
	}
	if left := forkstoreStored(s); left > full/10 {
		t.Errorf("of %d bytes %d are left behind the last run", full, left)
	}
}

// waitForRoom returns how many databases wait for one of their tables to be written.
func waitForRoom() (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("sync.(*Cond).Wait")) && bytes.Contains(stack, []byte("ensureRoomForWrite")) {
			n++
		}
	}
	return n
}
