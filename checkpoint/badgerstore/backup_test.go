package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A copy of the whole directory of a store that is closed is opened elsewhere, holds the same, and
// goes on; so does the store.
func TestACopyOfAClosedStoreGoesOn(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	s := open(t, dir)
	stock(t, s, 7<<20)
	want, err := contents(t, s)
	if err := errors.Join(err, s.Close(), os.CopyFS(to, os.DirFS(dir))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{to, dir} { // both at once
		s := open(t, dir)
		got, err := contents(t, s)
		if err != nil {
			t.Fatal(err)
		}
		sameLibrary(t, got, want)
		l, err := s.Acquire(t.Context(), "run 0", "owner")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), l, want.Runs[3].Head, oneEntry); err != nil {
			t.Error(err)
		}
	}
}

// A copy that is made file by file while the store is written to is refused as damaged, or has all
// that was acknowledged before it was begun, and what it has of a run is sound.
func TestACopyOfALiveStoreIsRefusedOrSound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	leases := acquire(t, s, 4)
	acked := make([]atomic.Uint64, len(leases))
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for i, l := range leases {
		writers.Go(func() {
			for head := (checkpoint.Head{}); ctx.Err() == nil && head.Seq < 1_500; acked[i].Store(head.Seq) {
				var err error
				entry := checkpoint.Entry{Kind: checkpoint.Done, Path: "node", Delta: fmt.Appendf(nil, "{\"text\":%q}", noise(40<<10))}
				if head, err = s.Append(ctx, l, head, []checkpoint.Entry{entry}); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	refused, sound := 0, 0
	for tried := 0; tried < 6 || refused+sound == 0; tried++ { // so at least one is opened
		if tried == 20 { // then nothing changes any more
			stop()
			writers.Wait()
		}
		before := make([]uint64, len(acked))
		for i := range acked {
			before[i] = acked[i].Load()
		}
		to := filepath.Join(memoryDir(t), "copy")
		switch err := os.CopyFS(to, os.DirFS(dir)); {
		case errors.Is(err, fs.ErrNotExist): // a file was removed meanwhile, and who copies is told
		case err != nil:
			t.Fatal(err)
		case opensSound(t, to, before):
			sound++
		default:
			refused++
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d were refused, %d sound, and the runs had %d entries and more", refused, sound, acked[0].Load())
}

// opensSound reports whether a copy was taken, and checks that it was not wrongly.
func opensSound(t *testing.T, dir string, least []uint64) bool {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		if !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("Open = %v, want ErrCorrupt or nothing", err)
		}
		return false
	}
	defer s.Close()
	for i, seq := range least {
		if seq == 0 {
			continue
		}
		run := fmt.Sprintf("run-%d", i)
		info, err := s.Stat(t.Context(), run)
		if err != nil || info.Head.Seq < seq {
			t.Errorf("%s: %v, %v; want %d entries at least", run, info.Head.Seq, err, seq)
			continue
		}
		if err := checkpoint.Export(t.Context(), s, run, io.Discard); err != nil { // which computes digests
			t.Errorf("%s: %v", run, err)
		}
	}
	return true
}
