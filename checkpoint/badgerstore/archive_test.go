package badgerstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// keysOf returns all keys of an open store but its own two and its graphs.
func keysOf(s *badgerstore.Store) (keys []string) {
	txn := s.Badger().NewTransactionAt(^uint64(0), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if key := string(it.Item().Key()); !strings.HasPrefix(key, "m") && !strings.HasPrefix(key, "v") {
			keys = append(keys, key)
		}
	}
	return keys
}

// Wherever the process dies in an import, at a write that is lost or at one that is durable
// and never reported, the next one finds all of the run or nothing of it, no key included.
func TestImportCrashesAnywhere(t *testing.T) {
	t.Parallel()
	from := openUnsynced(t, t.TempDir())
	l := acquire(t, from, 1)[0]
	var head checkpoint.Head
	big, err := json.Marshal(noise(750 << 10))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		e := []checkpoint.Entry{{Kind: checkpoint.Done, Path: "node", Delta: big[:len(big)*(n%3)/2]}}
		if n%3 == 1 {
			e[0].Delta = json.RawMessage(`"` + noise(110<<10) + `"`)
		}
		if head, err = from.Append(t.Context(), l, head, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := from.Post(t.Context(), l.Run, checkpoint.Post{ID: "m", Kind: "answer"}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), from, l.Run, &file); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the process is dying")
	for crash := 1; ; crash++ {
		for _, lost := range []bool{true, false} {
			dir := t.TempDir()
			s := openUnsynced(t, dir)
			commits := 0
			s.CommitWith(func(next func() error) error {
				if commits++; commits < crash {
					return next()
				}
				if commits == crash && !lost {
					_ = next()
				}
				return broken
			})
			info, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file.Bytes()), checkpoint.ImportOptions{})
			_ = s.Close()
			if err == nil {
				if info.Head != head || crash < 8 {
					t.Fatalf("Import = %+v after %d commits, want the head %v", info, commits, head)
				}
				return
			}
			if !errors.Is(err, broken) && !errors.Is(err, checkpoint.ErrClosed) {
				t.Fatalf("crash %d: Import = %v", crash, err)
			}
			s = openUnsynced(t, dir)
			info, err = s.Stat(t.Context(), l.Run)
			switch {
			case errors.Is(err, checkpoint.ErrNotFound):
				if keys := keysOf(s); len(keys) > 0 {
					t.Fatalf("crash %d: %d keys are left, %q the first", crash, len(keys), keys[0])
				}
			case err != nil || info.Head != head || lost:
				t.Fatalf("crash %d, lost: %v: Stat = %+v, %v", crash, lost, info, err)
			default:
				var again bytes.Buffer
				if err := checkpoint.Export(t.Context(), s, l.Run, &again); err != nil || !bytes.Equal(again.Bytes(), file.Bytes()) {
					t.Fatalf("crash %d: the run is another one: %v", crash, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An import that is refused half way takes away what it has written at once.
func TestImportThatFailsLeavesNoKeys(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	envelope, _, err := checkpoint.Seal(nil, checkpoint.Head{}, l.Until, 1, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Restore(t.Context(), l, checkpoint.Archive{Envelopes: func(yield func([]byte, error) bool) {
		if yield(envelope, nil) {
			yield(envelope, nil)
		}
	}})
	if !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("Restore = %v", err)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("keys %q are left", keys)
	}
}

// A run is not restored with an append that is larger than those that the store takes, which no
// later call could read: it is refused, however well it can be compressed, and leaves nothing.
func TestRestoreOfAnAppendThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", strings.Repeat("x", badgerstore.MaxAppend))}}
	envelope, _, err := checkpoint.Seal(nil, checkpoint.Head{}, l.Until, 1, entries)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Restore(t.Context(), l, checkpoint.Archive{Envelopes: func(yield func([]byte, error) bool) { yield(envelope, nil) }})
	if !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("Restore = %v, want ErrTooLarge", err)
	}
	if _, err := s.Stat(t.Context(), l.Run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("keys %q are left", keys)
	}
}

// A run that came to be while it was restored exists, and stays as it is, on the disk as in memory.
func TestRestoreOfARunThatCameToBeMeanwhile(t *testing.T) {
	t.Parallel()
	disk := openUnsynced(t, t.TempDir())
	for name, s := range map[string]archiving{"memory": new(memory.Store), "disk": disk} {
		l, err := s.Acquire(t.Context(), "run-0", "owner")
		if err != nil {
			t.Fatal(err)
		}
		envelope, _, err := checkpoint.Seal(nil, checkpoint.Head{}, l.Until, 1, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		_, err = s.Restore(t.Context(), l, checkpoint.Archive{Envelopes: func(yield func([]byte, error) bool) {
			var err error
			if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
				t.Fatal(err)
			}
			yield(envelope, nil)
		}})
		if !errors.Is(err, checkpoint.ErrExists) || errors.Is(err, checkpoint.ErrConflict) {
			t.Errorf("%s: Restore = %v", name, err)
		}
		wantHead(t, s, head)
		if err := errors.Join(s.Release(t.Context(), l), s.Delete(t.Context(), l.Run)); err != nil {
			t.Fatal(err)
		}
	}
	if keys := keysOf(disk); len(keys) > 0 {
		t.Errorf("keys %q are left", keys)
	}
}

// What an import writes comes in pieces, each in a transaction: of 128 KiB at most, or one append,
// and of 256 keys at most. So it keeps nobody waiting for long who appends meanwhile.
func TestImportIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	from, s := openUnsynced(t, t.TempDir()), openUnsynced(t, t.TempDir())
	l := acquire(t, from, 1)[0]
	var head checkpoint.Head
	var err error
	for n := range 700 {
		e := checkpoint.Entry{Kind: checkpoint.Done, Path: "node"}
		if n >= 680 {
			e.Delta = fmt.Appendf(nil, "%q", noise(30<<10+n))
		}
		if head, err = from.Append(t.Context(), l, head, []checkpoint.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), from, l.Run, &file); err != nil {
		t.Fatal(err)
	}
	if info, err := checkpoint.Import(t.Context(), s, &file, checkpoint.ImportOptions{}); err != nil || info.Head != head {
		t.Fatalf("Import = %+v, %v, want the head %v", info, err, head)
	}
	type written struct{ keys, bytes int }
	transactions := make(map[uint64]written)
	txn := s.Badger().NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		w := transactions[it.Item().Version()]
		transactions[it.Item().Version()] = written{w.keys + 1, w.bytes + int(it.Item().ValueSize())}
	}
	for ts, w := range transactions {
		if w.keys > 256 || w.bytes > 128<<10 {
			t.Errorf("transaction %d has %d keys of %d bytes", ts, w.keys, w.bytes)
		}
	}
	if n := len(transactions); n < 700/256+20*20/128 || n > 20 {
		t.Errorf("there are %d transactions", n)
	}
}
