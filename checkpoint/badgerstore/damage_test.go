package badgerstore_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A library is what a store holds, all of it.
type library struct {
	Runs      []checkpoint.Info
	Logs      map[string][]checkpoint.Entry
	Posts     map[string][]checkpoint.Post
	Snapshots map[string]checkpoint.Snapshot
	Graph     string
}

// contents reads all that a store holds. The error is the first one.
func contents(t *testing.T, s *badgerstore.Store) (*library, error) {
	ctx := t.Context()
	l := &library{
		Logs:      make(map[string][]checkpoint.Entry),
		Posts:     make(map[string][]checkpoint.Post),
		Snapshots: make(map[string]checkpoint.Snapshot),
	}
	var err error
	if l.Runs, err = s.List(ctx, checkpoint.Filter{}); err != nil {
		return nil, err
	}
	for r := range 4 {
		info, err := s.Stat(ctx, fmt.Sprintf("run %d", r))
		if err != nil {
			return nil, err
		}
		if again := l.Runs[len(l.Runs)-1-r]; !reflect.DeepEqual(again, info) {
			t.Errorf("Stat and List differ: %+v, %+v", info, again)
		}
		for e, err := range s.Read(ctx, info.Run, 1, 0) {
			if err != nil {
				return nil, err
			}
			e.Delta, e.Data = bytes.Clone(e.Delta), bytes.Clone(e.Data)
			l.Logs[info.Run] = append(l.Logs[info.Run], e)
		}
		if l.Posts[info.Run], err = s.Posts(ctx, info.Run); err != nil {
			return nil, err
		}
		snap, err := s.Snapshot(ctx, info.Run, 0)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return nil, err
		}
		l.Snapshots[info.Run] = snap
	}
	graph, err := s.Graph(ctx, "digest")
	l.Graph = string(graph)
	return l, err
}

// stock fills a store with runs of all sorts, in that many bytes about.
func stock(t *testing.T, s *badgerstore.Store, size int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.PutGraph(ctx, "digest", []byte(`{"nodes":["a","b"]}`)))
	for r := range 4 {
		run := fmt.Sprintf("run %d", r)
		lease, err := s.Acquire(ctx, run, "owner")
		check(err)
		head, err := s.Append(ctx, lease, checkpoint.Head{}, []checkpoint.Entry{{
			Kind: checkpoint.Opened, Data: fmt.Appendf(nil, `{"graph":"g","digest":"digest","labels":{"a":"b","run":"%d"}}`, r),
		}})
		check(err)
		for i := range 8 {
			delta := make([]byte, size/32)
			if size >= 1<<20 && r == 0 && i%4 == 0 {
				delta = make([]byte, 700<<10) // in chunks
			}
			rand.Read(delta)
			entry := checkpoint.Entry{Kind: checkpoint.Done, Step: i + 1, Path: "a/b"}
			entry.Delta = fmt.Appendf(nil, "{\"text\":\"%x\"}", delta[:len(delta)/2])
			head, err = s.Append(ctx, lease, head, []checkpoint.Entry{entry, entry})
			check(err)
			if i == 4 {
				check(s.PutSnapshot(ctx, lease, checkpoint.Snapshot{Head: head, Data: delta}))
			}
		}
		if r%2 == 0 {
			_, err = s.Append(ctx, lease, head, []checkpoint.Entry{{Kind: checkpoint.Waiting}})
			check(err)
		}
		check(s.Post(ctx, run, checkpoint.Post{ID: "post", Kind: "answer", Data: []byte(`{"ok":1}`)}))
		check(s.Release(ctx, lease))
	}
}

func sameLibrary(t *testing.T, got, want *library) bool {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return true
	}
	for i := range max(len(got.Runs), len(want.Runs)) {
		if i >= len(got.Runs) || i >= len(want.Runs) || !reflect.DeepEqual(got.Runs[i], want.Runs[i]) {
			t.Errorf("runs: %+v, want %+v", got.Runs, want.Runs)
			break
		}
	}
	t.Error("the store holds something else")
	return false
}

// noise is text of n bytes that compression gains little on, the same for the same n.
func noise(n int) string {
	random := mathrand.New(mathrand.NewPCG(uint64(n), 0))
	text := make([]byte, n)
	for i := range text {
		if text[i] = byte('#' + random.IntN('~'-'#')); text[i] == '\\' {
			text[i] = ' '
		}
	}
	return string(text)
}

// damaged reports whether err is one that damage may give.
func damaged(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrVersion)
}

// A flipped bit in any value, and the loss of a key of a log, is found by whoever reads it.
// (Appends behind the last change of status can
// be removed at the end of a log by who writes Badger transactions of his own; damage to
// files is found otherwise.)
func TestEveryValueIsChecked(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	s.ForgetIdle()
	stock(t, s, 4<<20)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOf(t, s)
	one := make(map[string]string) // a key of each kind
	for key := range values {
		if run4 := string(badgerstore.LogKey(4, 0)[1:9]); key[0] != 'l' || key[1:9] != run4 {
			one[key[:1]] = max(one[key[:1]], key)
		}
	}
	for kind, key := range one {
		if kind == "m" {
			continue // see TestNameIsChecked
		}
		value := values[key]
		for _, at := range []int{0, 4, 5, len(value) / 2, len(value) - 1} {
			flipped := bytes.Clone(value)
			flipped[at] ^= 0x40
			err := withValue(t, s, key, flipped, value, want)
			if !damaged(err) {
				t.Errorf("byte %d of %q flipped: %v", at, key, err)
			}
			if isFrame := bytes.HasPrefix(value, []byte("pawr")); isFrame && !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("byte %d of %q flipped: %v, want ErrCorrupt", at, key, err)
			}
		}
	}
	lost := []string{one["r"], one["c"]}
	for seq := uint64(2); seq < 16; seq += 2 {
		lost = append(lost, string(badgerstore.LogKey(2, seq)))
	}
	for _, key := range append(lost, string(badgerstore.LogKey(3, 1)), one["l"]) {
		if values[key] == nil {
			t.Fatalf("there is no key %q", key)
		}
		if err := withValue(t, s, key, nil, values[key], want); !damaged(err) {
			t.Errorf("%q removed: %v", key, err)
		}
	}
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
}

func valuesOf(t *testing.T, s *badgerstore.Store) map[string][]byte {
	t.Helper()
	values := make(map[string][]byte)
	txn := s.Badger().NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.DefaultIteratorOptions)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			t.Fatal(err)
		}
		values[string(it.Item().Key())] = value
	}
	return values
}

// withValue gives a key another value, or none, reads everything, and puts it right again.
func withValue(
	t *testing.T, s *badgerstore.Store, key string, value, right []byte, want *library,
) error {
	t.Helper()
	if err := s.Put(t.Context(), []byte(key), value); err != nil {
		t.Fatal(err)
	}
	got, err := contents(t, s)
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%q changed: the store holds something else", key)
	}
	if err := s.Put(t.Context(), []byte(key), right); err != nil {
		t.Fatal(err)
	}
	return err
}

// What a store says about itself is checked when it is opened.
func TestNameIsChecked(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"name": "mstore", "next run": "mnext"} {
		for _, at := range []int{0, 4, 5, 12, 16} {
			dir := t.TempDir()
			s := open(t, dir)
			stock(t, s, 1<<10)
			if err := s.Delete(t.Context(), "run 3"); err != nil { // writes the number of the next run
				t.Fatal(err)
			}
			value := valuesOf(t, s)[key]
			value[at] ^= 0x40
			if err := s.Put(t.Context(), []byte(key), value); err != nil {
				t.Fatal(err)
			}
			s.Close()
			_, err := badgerstore.Open(t.Context(), dir, small)
			if !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("byte %d of the %s flipped: %v", at, name, err)
			}
		}
	}
}

// So is its format, by which its keys are found. What to do about it is to put the number back, and
// nothing else.
func TestFormatIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int{{1, 2}, {1, 3}, {2, 1}, {2, 3}, {3, 1}, {3, 2}} {
		from, to := fmt.Sprintf(`"format":%d`, c[0]), fmt.Sprintf(`"format":%d`, c[1])
		dir := t.TempDir()
		s := openFormat(c[0])(t, dir)
		stock(t, s, 1<<10)
		s.Close()
		path := filepath.Join(dir, "pawl.json")
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(from)) {
			t.Fatalf("the name is %s, %v", text, err)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = badgerstore.Open(t.Context(), dir, small)
		if !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s instead of %s: Open = %v, want ErrCorrupt", to, from, err)
		} else if way := `set "format" in ` + path + " back to " + from[len(from)-1:]; !strings.HasSuffix(err.Error(), way) || strings.Contains(err.Error(), "backup") {
			t.Errorf("%s instead of %s: Open = %v, want to be told to %s, and of no backup", to, from, err, way)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openUnsynced(t, dir).Close(); err != nil {
			t.Error(err)
		}
	}
}

// Logs that are whole but are another's, or older, are found.
func TestForeignLogsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 1<<16)
	s.Close()
	copied := func(from, to []byte) func(txn *badger.Txn) error {
		return func(txn *badger.Txn) error {
			item, err := txn.Get(from)
			if err != nil {
				return err
			}
			value, err := item.ValueCopy(nil)
			if err != nil {
				return err
			}
			return txn.Set(to, value)
		}
	}
	for name, edit := range map[string]func(txn *badger.Txn) error{
		"the first of another run": copied(badgerstore.LogKey(1, 1), badgerstore.LogKey(2, 1)),
		"one of another run":       copied(badgerstore.LogKey(1, 4), badgerstore.LogKey(2, 4)),
		"the last of another run":  copied(badgerstore.LogKey(1, 16), badgerstore.LogKey(2, 16)),
		"one before":               copied(badgerstore.LogKey(2, 4), badgerstore.LogKey(2, 6)),
		"one too many":             copied(badgerstore.LogKey(2, 16), badgerstore.LogKey(2, 99)),
		"the row of another run":   copied(badgerstore.RowKey(1), badgerstore.RowKey(2)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, dir)
			badgerstore.Raw(t, dir, small, edit)
			s := open(t, dir)
			_, err := contents(t, s)
			var damage *checkpoint.CorruptError
			if !errors.As(err, &damage) {
				t.Fatalf("err = %v, want a CorruptError", err)
			}
			if strings.HasPrefix(damage.Run, "run ") && damage.Run != "run 1" {
				t.Errorf("err = %v, want one of run 1", err)
			}
		})
	}
}
