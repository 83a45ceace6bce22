package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Who gives up a call while a piece of something large is written knows that nothing has happened:
// the run is where it was, nobody holds it, and the same can be done again. What the piece leaves
// goes when the store is opened.
func TestGivenUpWhileAPieceIsWritten(t *testing.T) {
	t.Parallel()
	large := fmt.Appendf(nil, "%q", noise(700<<10))
	file := exportOf(t, large)
	for name, c := range map[string]struct {
		run  string
		call func(context.Context, *badgerstore.Store) error
	}{
		"Fork of a large base": {"fork", func(ctx context.Context, s *badgerstore.Store) error {
			return s.Fork(ctx, forkstoreFork(forkstoreBase(1), 10, "fork", "other"))
		}},
		"Fork with large logs": {"fork", func(ctx context.Context, s *badgerstore.Store) error {
			return s.Fork(ctx, forkstoreFork([]byte("{}"), 200<<10, "fork", "other"))
		}},
		"Trim": {"parent", func(ctx context.Context, s *badgerstore.Store) error {
			return forkstoreTrim(ctx, s, "parent", 4, forkstoreBase(1))
		}},
		"Import": {"imported", func(ctx context.Context, s *badgerstore.Store) error {
			return second(checkpoint.Import(ctx, s, bytes.NewReader(file), checkpoint.ImportOptions{}))
		}},
		"Append": {"parent", func(ctx context.Context, s *badgerstore.Store) error { return growLarge(ctx, s, "parent", large) }},
		"Post": {"parent", func(ctx context.Context, s *badgerstore.Store) error {
			return s.Post(ctx, "parent", checkpoint.Post{ID: "post", Kind: "answer", Data: large})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openUnsynced(t, dir)
			gate := forkstoreGated(s)
			if err := forkstoreGrow(t.Context(), s, "parent", 4); err != nil {
				t.Fatal(err)
			}
			before := forkstoreSummary(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			given, release := gate.stop(func() error { return c.call(ctx, s) })
			cancel()
			if err := <-given; !errors.Is(err, context.Canceled) || errors.Is(err, checkpoint.ErrCommitUnknown) {
				t.Errorf("given up while a piece was written it = %v, want Canceled alone", err)
			}
			release()
			if l, err := s.Acquire(t.Context(), c.run, "owner"); err != nil {
				t.Errorf("Acquire of a run that nobody holds = %v", err)
			} else if err := s.Release(t.Context(), l); err != nil {
				t.Error(err)
			}
			if after := forkstoreSummary(t, s); after != before {
				t.Errorf("there is\n%s\nand there was\n%s", after, before)
			}
			if err := c.call(t.Context(), s); err != nil {
				t.Errorf("done again it = %v", err)
			}
			page, err := s.List(t.Context(), checkpoint.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range page {
				if err := s.Delete(t.Context(), info.Run); err != nil {
					t.Errorf("Delete(%q) = %v", info.Run, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if keys := keysOf(openUnsynced(t, dir)); len(keys) > 0 {
				t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
			}
		})
	}
}

// What is written behind the back of who has given it up is what it was given, and not what has
// come into its memory since.
func TestGivenUpPiecesHaveTheirOwnMemory(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *badgerstore.Store, []byte) error{
		"PutSnapshot": func(ctx context.Context, s *badgerstore.Store, data []byte) error {
			l, err := s.Acquire(ctx, "parent", "owner")
			if err != nil {
				return err
			}
			defer func() { _ = s.Release(context.WithoutCancel(ctx), l) }()
			info, err := s.Stat(ctx, "parent")
			if err != nil {
				return err
			}
			return s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: info.Head, Data: data})
		},
		"PutGraph": func(ctx context.Context, s *badgerstore.Store, data []byte) error {
			return s.PutGraph(ctx, "sha256:"+strings.Repeat("0", 64), data)
		},
		"Fork": func(ctx context.Context, s *badgerstore.Store, data []byte) error {
			return s.Fork(ctx, forkstoreFork(data, 10, "fork"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openUnsynced(t, t.TempDir())
			gate := forkstoreGated(s)
			if err := forkstoreGrow(t.Context(), s, "parent", 4); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			data := fmt.Appendf(nil, "%q", noise(700<<10))
			given, release := gate.stop(func() error { return call(ctx, s, data) })
			cancel()
			if err := <-given; !errors.Is(err, context.Canceled) {
				t.Fatalf("given up it = %v", err)
			}
			others := []byte("#of another use#")
			for i := range data {
				data[i] = others[i%len(others)]
			}
			release()
			if err := forkstoreGrow(t.Context(), s, "behind", 1); err != nil { // it is written by now
				t.Fatal(err)
			}
			txn := s.Badger().NewTransactionAt(^uint64(0), false)
			defer txn.Discard()
			it := txn.NewIterator(badger.DefaultIteratorOptions)
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				if err := it.Item().Value(func(v []byte) error {
					if bytes.Contains(v, others) {
						t.Errorf("key %q has what its caller has written to its memory since", it.Item().Key())
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A run that is trimmed now and then does not grow by large messages that were drained, or given
// up; one that waits stays.
func TestTrimRemovesPiecesOfDrainedMessages(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	gate := forkstoreGated(s)
	if err := forkstoreGrow(t.Context(), s, "parent", 4); err != nil {
		t.Fatal(err)
	}
	large := fmt.Appendf(nil, "%q", noise(700<<10))
	post := func(ctx context.Context, id string) error {
		return s.Post(ctx, "parent", checkpoint.Post{ID: id, Kind: "answer", Data: large})
	}
	ctx, cancel := context.WithCancel(t.Context())
	given, release := gate.stop(func() error { return post(ctx, "a") })
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	release()
	for _, id := range []string{"drained", "drains", "waits"} {
		if err := post(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Acquire(t.Context(), "parent", "owner")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), "parent")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), l, info.Head, []checkpoint.Entry{{Kind: checkpoint.Noted, Post: "drained"}, {Kind: checkpoint.Noted, Post: "drains"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	odd := of("cp", badgerstore.NumberOf(t, s, "parent"), "short") // no piece's: a Trim leaves it to Verify
	if err := s.Put(t.Context(), odd, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := forkstoreTrim(t.Context(), s, "parent", 4, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, key := range keysOf(s) {
		if strings.HasPrefix(key, "cp") && key != string(odd) && !strings.Contains(key, "waits") {
			t.Errorf("piece %q is left", key)
		}
	}
	posts, err := s.Posts(t.Context(), "parent")
	if err != nil || len(posts) != 1 || posts[0].ID != "waits" || !bytes.Equal(posts[0].Data, large) {
		t.Errorf("%d messages wait, %v, want the one that nobody has drained", len(posts), err)
	}
}

// exportOf is an export of a run that is called imported, with something large in it.
func exportOf(t *testing.T, large []byte) []byte {
	t.Helper()
	s := openUnsynced(t, t.TempDir())
	if err := growLarge(t.Context(), s, "imported", large); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, "imported", &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// growLarge appends something large to a run that nobody holds.
func growLarge(ctx context.Context, s *badgerstore.Store, run string, large []byte) error {
	l, err := s.Acquire(ctx, run, "owner")
	if err != nil {
		return err
	}
	defer func() { _ = s.Release(context.WithoutCancel(ctx), l) }()
	var head checkpoint.Head
	if info, err := s.Stat(ctx, run); err == nil {
		head = info.Head
	}
	return second(s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Done, Delta: large}}))
}

// A Trim looks for what it is to remove where the one before it has ended, and not at the run's
// first entry. What that one could not remove goes with the next one, and so does what there is of
// a run that was not in memory.
func TestTrimBeginsWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	commits := -100
	room := func(n int64) { s.FreeWith(func() (int64, error) { return n, nil }) }
	s.CommitWith(func(next func() error) error {
		if commits++; commits == 1 {
			room(0)
		}
		return next()
	})
	if err := forkstoreGrow(t.Context(), s, "run", 20); err != nil {
		t.Fatal(err)
	}
	num := badgerstore.NumberOf(t, s, "run")
	log, snapshot := badgerstore.LogKey(num, 3), badgerstore.SnapshotKey(num, 4)
	trim := func(first uint64, want ...[]byte) {
		t.Helper()
		if err := forkstoreTrim(t.Context(), s, "run", first, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		var left [][]byte // of what was dropped; the oldest append that stays may begin with the entry before
		for _, key := range keysOf(s) {
			for _, kind := range []func(run, seq uint64) []byte{badgerstore.LogKey, badgerstore.SnapshotKey} {
				if key >= string(kind(num, 0)) && key < string(kind(num, first-1)) {
					left = append(left, []byte(key))
				}
			}
		}
		if !slices.EqualFunc(left, want, bytes.Equal) {
			t.Errorf("behind a Trim to entry %d of what was dropped %q is left, want %q", first, left, want)
		}
	}
	trim(10)
	put(t, s, log, []byte("left behind"))
	put(t, s, snapshot, []byte("left behind"))
	trim(12, log, snapshot)
	s.ForgetIdle()
	if err := forkstoreGrow(t.Context(), s, "other", 1); err != nil { // behind it the run is forgotten
		t.Fatal(err)
	}
	trim(14)
	commits = 0
	trim(16, badgerstore.LogKey(num, 13))
	room(1 << 40)
	trim(18)
	forkstoreAudit(t, s)
}
