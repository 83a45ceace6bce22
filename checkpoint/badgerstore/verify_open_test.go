package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A key that changes in a table while the store is open may lead whoever walks the keys back to
// where he was: Verify says so, and goes round in no circle.
func TestVerifyGoesRoundInNoCircle(t *testing.T) {
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	stock(t, s, 250)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openUnsynced(t, dir)
	f, raw := onlyTable(t, dir)
	for _, run := range []uint64{1, 3} {
		at := int64(bytes.Index(raw, of("p", run, "post")))
		put := func(kind byte) {
			if _, err := f.WriteAt([]byte{kind}, at); err != nil {
				t.Fatal(err)
			}
		}
		put('q')
		if all := verified(t, s); len(all) == 0 || len(all) > 100 {
			t.Errorf("run number %d: found %d things", run, len(all))
		}
		put('p')
	}
}

// onlyTable returns the file of the one table of an open store, and what it holds.
func onlyTable(t *testing.T, dir string) (f *os.File, raw []byte) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %q, %v", tables, err)
	}
	if raw, err = os.ReadFile(tables[0]); err != nil {
		t.Fatal(err)
	}
	if f, err = os.OpenFile(tables[0], os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, raw
}

// panicking returns a store of the runs "run" and "last", the second forked from the base "{}",
// whose database panics when it reads one of their keys, until mend is called. In memory are
// "last", and that there is no "fork".
func panicking(t *testing.T) (s *badgerstore.Store, mend func()) {
	t.Helper()
	dir := t.TempDir()
	s = openUnsynced(t, dir)
	if err := errors.Join(
		forkstoreGrow(t.Context(), s, "run", 1),
		s.Fork(t.Context(), forkstoreFork([]byte("{}"), 10, "last")),
	); err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	s = openUnsynced(t, dir)
	for _, run := range []string{"last", "fork"} {
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil || s.Release(t.Context(), l) != nil {
			t.Fatal(err)
		}
	}
	f, raw := onlyTable(t, dir)
	put := func(b []byte) {
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte{0xff, 0xff, 0xff, 0xff}) // how long the first key is
	return s, func() { put(raw[:4]) }
}

// panicOf returns what a call panics with.
func panicOf(call func() error) (p any, err error) {
	defer func() { p = recover() }()
	return nil, call()
}

// Behind a call that the database panics in, and whose caller recovers, nobody waits: neither the
// next one that is about the same run or base nor Close. It leaves no lease.
func TestNobodyWaitsForACallThatPanicked(t *testing.T) {
	t.Parallel()
	s, mend := panicking(t)
	ctx := t.Context()
	calls := []struct {
		name string
		call func() error
	}{
		{"Acquire", func() error {
			l, err := s.Acquire(ctx, "run", "owner")
			return errors.Join(err, s.Release(ctx, l))
		}},
		{"Stat", func() error { return second(s.Stat(ctx, "run")) }},
		{"List", func() error { return second(s.List(ctx, checkpoint.Filter{})) }},
		{"List behind a run", func() error { return second(s.List(ctx, checkpoint.Filter{After: "run"})) }},
		{"Posts", func() error { return second(s.Posts(ctx, "run")) }},
		{"Base", func() error { return second(s.Base(ctx, "last", checkpoint.BaseDigest([]byte("{}")))) }},
		{"Fork beside a run that exists", func() error {
			if err := s.Fork(ctx, forkstoreFork([]byte("{}"), 10, "fork", "run")); !errors.Is(err, checkpoint.ErrExists) {
				return fmt.Errorf("%w, want ErrExists", err)
			}
			return nil
		}},
		{"Fork", func() error { return s.Fork(ctx, forkstoreFork([]byte("{}"), 10, "fork")) }},
		{"Delete", func() error { return s.Delete(ctx, "last") }},
	}
	for _, c := range calls {
		if p, err := panicOf(c.call); p == nil {
			t.Fatalf("%s = %v, want a panic of the database", c.name, err)
		}
		if n := s.Entered(); n > 0 {
			t.Errorf("behind the panic of %s %d calls are under way", c.name, n)
		}
	}
	mend()
	for _, c := range calls { // one that waited for what panicked would not end
		if err := c.call(); err != nil {
			t.Errorf("behind its panic %s = %v", c.name, err)
		}
	}
	if n := s.Bases(); n > 0 {
		t.Errorf("%d bases are in memory", n)
	}
	closes(t, s)
}

// Who waits for a run that another call reads is told when the database panics in that.
func TestWhoWaitsForACallThatPanics(t *testing.T) {
	t.Parallel()
	s, mend := panicking(t)
	l := acquire(t, s, 1)[0]
	gate := forkstoreGated(s)
	stopped, release := gate.stop(func() error { return second(s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)) })
	before := s.Entered()
	panicked, waited := make(chan any, 1), make(chan error, 1)
	acquires := func() error { return second(s.Acquire(t.Context(), "run", "owner")) }
	go func() { // received below; it waits for the commit under way before it panics
		p, _ := panicOf(acquires)
		panicked <- p
	}()
	for s.Entered() < before+2 { // it reads
		runtime.Gosched()
	}
	go func() { waited <- acquires() }() // received below
	for s.Entered() < before+3 {
		runtime.Gosched()
	}
	release()
	if p := <-panicked; p == nil {
		t.Error("the database does not panic")
	}
	if err := <-waited; err == nil {
		t.Errorf("Acquire beside the one that panicked = %v, want what it waited for", err)
	}
	mend()
	if err := errors.Join(<-stopped, acquires()); err != nil {
		t.Error(err)
	}
}
