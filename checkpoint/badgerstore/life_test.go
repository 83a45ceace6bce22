package badgerstore_test

import (
	"context"
	"errors"
	"iter"
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
	s, err := badgerstore.Open(t.Context(), t.TempDir(), small)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	known := []string{"ristretto", "glog", "opencensus", "go.opentelemetry.io"}
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		left := slices.DeleteFunc(goroutines(), func(stack string) bool {
			return !strings.Contains(stack, "badger") || strings.Contains(stack, "testing.tRunner") ||
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
