package badgerstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Of a run's snapshots no more than two are there, in whatever order they are written, whole or in
// pieces, and whatever becomes of some of them: the newest one is read, and nothing is left of
// others.
func TestSnapshotsLeaveNothing(t *testing.T) {
	t.Parallel()
	s, err := badgerstore.Open(t.Context(), t.TempDir(), small)
	opened(t, s, err)
	seed := mathrand.Uint64()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	large := make([]byte, 600<<10) // in pieces
	mathrand.NewChaCha8([32]byte{}).Read(large)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 { // of one id, each with a number of its own
		l := acquire(t, s, 1)[0]
		var heads []checkpoint.Head
		var at checkpoint.Head
		var kept []uint64
		for i := range 60 {
			if i < 3 || random.IntN(3) > 0 {
				if at, err = s.Append(t.Context(), l, at, oneEntry); err != nil {
					t.Fatal(err)
				}
				heads = append(heads, at)
			}
			head, ctx, data := at, t.Context(), []byte{byte(i)}
			switch random.IntN(8) {
			case 0:
				head = heads[random.IntN(len(heads))]
			case 1, 2:
				data = append(data, large...)
			case 3:
				ctx = ended
			case 4:
				head.Digest[0]++
			}
			switch err := s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head, Data: data}); {
			case ctx == ended && errors.Is(err, context.Canceled):
				continue
			case head.Seq == at.Seq && head != at && errors.Is(err, checkpoint.ErrConflict):
				continue
			case err != nil || head.Seq == at.Seq && head != at:
				t.Fatalf("seed %d: PutSnapshot at entry %d: %v", seed, head.Seq, err)
			}
			if !slices.Contains(kept, head.Seq) {
				kept = append(kept, head.Seq)
				slices.Sort(kept)
				kept = kept[max(0, len(kept)-2):]
			}
			if got := snapshotsOf(t, s, l.Run); !slices.Equal(got, kept) {
				t.Fatalf("seed %d: snapshots %d are there, want %d", seed, got, kept)
			}
			if got, err := s.Snapshot(t.Context(), l.Run, at.Seq); err != nil || got.Head.Seq != kept[len(kept)-1] {
				t.Fatalf("seed %d: the newest snapshot is at %d, %v, want %d", seed, got.Head.Seq, err, kept[len(kept)-1])
			} else if got.Head == head && !slices.Equal(got.Data, data) {
				t.Fatalf("seed %d: the snapshot at %d is another one's", seed, head.Seq)
			}
		}
		if err := errors.Join(s.Release(t.Context(), l), s.Delete(t.Context(), l.Run)); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshotsOf returns where there are snapshots of a run. Pieces of one that is not there are an
// error.
func snapshotsOf(t *testing.T, s *badgerstore.Store, run string) (at []uint64) {
	t.Helper()
	prefix := string(binary.BigEndian.AppendUint64([]byte("s"), badgerstore.NumberOf(t, s, run)))
	pieces := map[uint64]int{}
	for key := range valuesOf(t, s) {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			at = append(at, binary.BigEndian.Uint64([]byte(rest)))
		} else if rest, ok := strings.CutPrefix(key, "c"+prefix); ok {
			pieces[binary.BigEndian.Uint64([]byte(rest))]++
		}
	}
	for seq, n := range pieces {
		if !slices.Contains(at, seq) || n > 10 {
			t.Errorf("there are %d pieces of a snapshot at entry %d, and snapshots at %d", n, seq, at)
		}
	}
	slices.Sort(at)
	return at
}

// A snapshot behind those that are there is written with the removal of one of them, and of no
// more, however many there were.
func TestASnapshotRemovesOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	l, log := acquire(t, s, 1)[0], filepath.Join(dir, "db", "00001.mem")
	var at checkpoint.Head
	var err error
	for i := range 8 {
		if at, err = s.Append(t.Context(), l, at, oneEntry); err != nil {
			t.Fatal(err)
		}
		before := len(badgerstore.FlagsOf(t, log))
		if err := s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: at, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		want := 1 // without marks
		if i >= 2 {
			want = 3 // the snapshot, the removal, and that these are whole
		}
		if got := badgerstore.FlagsOf(t, log)[before:]; len(got) != want {
			t.Errorf("snapshot %d is %d records of the log, want %d", i+1, len(got), want)
		}
	}
}

// Of a snapshot that had more pieces than a transaction may remove keys nothing is left either, and
// the one that takes its place is written.
func TestASnapshotOfVeryManyPiecesIsRemoved(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.LimitKeys(1100)
	large := make([]byte, 75<<20) // 1200 pieces
	mathrand.NewChaCha8([32]byte{}).Read(large)
	l := acquire(t, s, 1)[0]
	var at checkpoint.Head
	for _, data := range [][]byte{large, {1}, {2}, large[:50<<20], {3}, large[:500<<10]} { // the last one nearly fills a transaction
		var err error
		if at, err = s.Append(t.Context(), l, at, oneEntry); err != nil {
			t.Fatal(err)
		}
		if err := s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: at, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(slices.DeleteFunc(keysOf(s), func(key string) bool { return !strings.HasPrefix(key, "c") })); n > 0 {
		t.Errorf("%d pieces are left", n)
	}
}
