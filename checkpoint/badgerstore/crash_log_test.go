package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Wherever in its log a process was killed, each transaction that it had begun is there whole or
// not at all: those of single values, which have no marks, and those of several, of one call or of
// a group.
func TestAKilledProcessLeavesWholeTransactions(t *testing.T) {
	t.Parallel()
	const runs = 3
	live := t.TempDir()
	s := openUnsynced(t, live)
	leases, heads := acquire(t, s, runs), make([]checkpoint.Head, runs)
	var hold, began, let chan struct{} // the next commit is held up, and says so
	s.CommitWith(func(next func() error) error {
		if c := hold; c != nil {
			hold = nil
			close(began)
			<-let
		}
		return next()
	})
	grow := func(i int) {
		head, err := s.Append(t.Context(), leases[i], heads[i], oneEntry)
		if err != nil {
			t.Error(err)
		}
		heads[i] = head
	}
	var want [][]checkpoint.Head // behind each transaction that appends
	grown := func() { want = append(want, slices.Clone(heads)) }
	for i := range runs {
		grow(i) // says as well what the run is
		grown()
	}
	for range 2 {
		grow(0)
		grown()
	}
	var all sync.WaitGroup
	hold, began, let = make(chan struct{}), make(chan struct{}), make(chan struct{})
	all.Go(func() { grow(0) })
	<-began
	others := slices.Clone(heads)
	for i := 1; i < runs; i++ {
		all.Go(func() { grow(i) })
	}
	for s.Queued() < runs-1 {
		runtime.Gosched()
	}
	close(let)
	all.Wait()
	others[0] = heads[0]
	want = append(want, others)
	grown() // the group
	grow(1)
	grown()

	log := filepath.Join("db", "00001.mem")
	ends := badgerstore.EndsOf(t, filepath.Join(live, log))
	before := len(ends) - len(want) // of making the store
	if before < 1 {
		t.Fatalf("%d transactions, of which %d have appended", len(ends), len(want))
	}
	image := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(image, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	for _, end := range badgerstore.RecordsOf(t, filepath.Join(live, log)) {
		if end < ends[before-1] {
			continue
		}
		for _, at := range []int64{end - 4, end} { // without its checksum, of which a single byte may be 0 as it is
			whole := 0
			for whole < len(ends) && ends[whole] <= at {
				whole++
			}
			if whole < before {
				continue
			}
			dir := copyDir(t, image)
			if err := clearFrom(filepath.Join(dir, log), at); err != nil {
				t.Fatal(err)
			}
			if err := stands(t, dir, leases, append([][]checkpoint.Head{make([]checkpoint.Head, runs)}, want...)[whole-before]); err != nil {
				t.Errorf("killed at byte %d, with %d of %d transactions: %v", at, whole, len(ends), err)
			}
		}
	}
}

// stands returns an error if the runs of a store are not at these heads.
func stands(t *testing.T, dir string, leases []checkpoint.Lease, heads []checkpoint.Head) error {
	t.Helper()
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, small)
	if err != nil {
		return err
	}
	defer s.Close()
	for i, l := range leases {
		info, err := s.Stat(t.Context(), l.Run)
		if errors.Is(err, checkpoint.ErrNotFound) {
			err = nil
		}
		if err != nil || info.Head != heads[i] {
			return fmt.Errorf("%s is at entry %d, %w, want %d", l.Run, info.Head.Seq, err, heads[i].Seq)
		}
	}
	for f, err := range s.Verify(t.Context(), nil) {
		return fmt.Errorf("Verify finds %v, %w", f, err)
	}
	return nil
}

// clearFrom makes what is in a file from that byte on 0, as in a log that nothing was written to
// behind it.
func clearFrom(path string, at int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Truncate(path, at), os.Truncate(path, info.Size()))
}

// Where a log can't be read from on is said also behind transactions of single values.
func TestALogThatEndsBehindLoneAppends(t *testing.T) {
	t.Parallel()
	live := t.TempDir()
	s := open(t, live)
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	var err error
	for range 5 {
		if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
			t.Fatal(err)
		}
	}
	dir := copyDir(t, live)
	log := filepath.Join(dir, "db", "00001.mem")
	ends := badgerstore.EndsOf(t, log)
	from := ends[len(ends)-2]
	if err := flip(log, 8*(from+12)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	more := len(bytes.TrimRight(text[from:], "\x00")) // the last checksum may end in a 0, as what is behind it is
	says := fmt.Sprintf("00001.mem can't be read from byte %d on, and has %d more", from, more)
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), says) {
		t.Errorf("Open = %v, want ErrCorrupt: %q", err, says)
	}
}
