package badgerstore_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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
			Kind: checkpoint.Opened, Data: []byte(`{"graph":"g","digest":"digest","labels":{"a":"b"}}`),
		}})
		check(err)
		for i := range 8 {
			delta := make([]byte, size/32)
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

// damaged reports whether err is one that damage may give.
func damaged(err error) bool {
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrVersion)
}

// A flipped bit in any value, and the loss of a key of a log, is found by whoever reads it.
// A version that is not known is ErrVersion. (Appends behind the last change of status can
// be removed at the end of a log by who writes Badger transactions of his own; damage to
// files is found otherwise.)
func TestEveryValueIsChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 4<<20)
	before, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	values := make(map[string][]byte)
	badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			values[string(it.Item().Key())] = value
		}
		return txn.Set([]byte("x"), nil)
	})
	one := make(map[string]string) // a key of each kind
	for key := range values {
		if key < string(badgerstore.LogKey(4, 0)) || key[0] != 'l' && key[0] != 'r' {
			one[key[:1]] = max(one[key[:1]], key)
		}
	}
	for kind, key := range one {
		value := values[key]
		for _, at := range []int{0, 4, 5, len(value) / 2, len(value) - 1} {
			if kind == "x" || kind == "c" && at == 0 {
				continue
			}
			flipped := bytes.Clone(value)
			flipped[at] ^= 0x40
			err := withEdit(t, dir, key, flipped, value, before)
			if !damaged(err) {
				t.Errorf("byte %d of %q flipped: %v", at, key, err)
			}
			if at == 4 && kind != "c" && !errors.Is(err, checkpoint.ErrVersion) {
				t.Errorf("version of %q flipped: %v, want ErrVersion", key, err)
			}
		}
		if strings.Contains("lrcms", kind) {
			err := withEdit(t, dir, key, nil, value, before)
			if kind != "s" && !damaged(err) { // without a snapshot the log is replayed
				t.Errorf("%q removed: %v", key, err)
			}
		}
	}
	// Keys from inside a log.
	for seq := uint64(1); seq <= 16; seq += 2 {
		key := string(badgerstore.LogKey(2, max(seq-1, 1)))
		if values[key] == nil {
			t.Fatalf("there is no key %q", key)
		}
		if err := withEdit(t, dir, key, nil, values[key], before); !damaged(err) {
			t.Errorf("append %d removed: %v", seq, err)
		}
	}
}

// withEdit gives a key another value, or none, reads everything, and puts it right again.
func withEdit(
	t *testing.T, dir, key string, value, right []byte, before *library,
) (err error) {
	t.Helper()
	set := func(value []byte) {
		badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error {
			if value == nil {
				if err := txn.Delete([]byte(key)); err != nil {
					return err
				}
				return txn.Set([]byte("x"), nil)
			}
			return txn.Set([]byte(key), value)
		})
	}
	set(value)
	defer set(right)
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		return err
	}
	defer s.Close()
	got, err := contents(t, s)
	if err == nil && !reflect.DeepEqual(got, before) && key[0] != 's' {
		t.Errorf("%q changed: the store holds something else", key)
	}
	return err
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

// Nothing that happens to a file makes the store hold something else, or ends the process.
// PAWL_FLIPS says how many bits to flip; the ordinary test flips few.
func TestEveryFileIsChecked(t *testing.T) {
	t.Parallel()
	flips, _ := strconv.Atoi(os.Getenv("PAWL_FLIPS"))
	parts := []float64{-1, 0, 0.3, 0.9, 1}
	if flips == 0 {
		flips, parts = 20, []float64{-1, 0.9}
	}
	seed := mathrand.Uint64()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 9<<20) // some in tables, some in the log of transactions
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	killed := copyDir(t, dir) // as if the process had died now
	s.Close()
	for name, dir := range map[string]string{"closed": dir, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, dir)
			found := 0
			for i := range flips {
				file := files[i%len(files)]
				at := flipOne(t, filepath.Join(dir, file), random)
				if at < 0 {
					continue
				}
				if checkFiles(t, dir, want) != nil {
					found++
				}
				if t.Failed() {
					t.Fatalf("seed %d: bit %d of %s was flipped", seed, at, file)
				}
				restore(t, filepath.Join(dir, file), at)
			}
			t.Logf("%d of %d flipped bits were found, in %d files", found, flips, len(files))
			for _, file := range files {
				for _, part := range parts {
					if checkCut(t, dir, file, part, want); t.Failed() {
						t.Fatalf("%s was cut to %v of it", file, part)
					}
				}
			}
		})
	}
}

// checkFiles opens a copy of dir, which either fails as it should or holds what it should.
func checkFiles(t *testing.T, dir string, want *library) error {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), copyDir(t, dir), small)
	if err != nil {
		if !damaged(err) {
			t.Errorf("Open = %v", err)
		}
		return err
	}
	defer s.Close()
	got, err := contents(t, s)
	if err != nil {
		if !damaged(err) {
			t.Errorf("reading = %v", err)
		}
		return err
	}
	sameLibrary(t, got, want)
	return nil
}

// checkCut is checkFiles with a file of which only a part is left, and of 1 but a byte; or
// that is missing, if the part is negative.
func checkCut(t *testing.T, dir, file string, part float64, want *library) {
	t.Helper()
	dir = copyDir(t, dir)
	path := filepath.Join(dir, file)
	if part < 0 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if file == "pawl.json" {
			if _, err := badgerstore.Open(t.Context(), dir, small); err == nil {
				t.Error("a directory without a name was opened")
			}
			return
		}
	} else {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size := max(0, min(int64(part*float64(info.Size())), info.Size()-1))
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if file == "witness" && size == 0 {
			return // that is how to have the store taken as it is
		}
	}
	_ = checkFiles(t, dir, want)
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && d.Name() != "LOCK" {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// flipOne flips a bit of a file, and returns which, or -1 if there is none.
func flipOne(t *testing.T, path string, random *mathrand.Rand) int64 {
	t.Helper()
	b, _, err := head(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(b, "\x00")) // what follows was never written
	if end == 0 {
		return -1
	}
	at := random.Int64N(int64(end) * 8)
	restore(t, path, at)
	return at
}

// restore flips a bit of a file.
func restore(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at/8); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (at % 8)
	if _, err := f.WriteAt(b[:], at/8); err != nil {
		t.Fatal(err)
	}
}

// copyDir copies a directory as it is at one moment, holes in files included.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	for {
		to := t.TempDir()
		before := filesOf(t, dir)
		err := copyFiles(dir, to, before)
		if err == nil && slices.Equal(filesOf(t, dir), before) {
			return to
		}
		if err != nil && !errors.Is(err, errMoved) {
			t.Fatal(err)
		}
	}
}

// errMoved: a file was removed, or cut off to be removed, while it was copied.
var errMoved = errors.New("moved")

func copyFiles(dir, to string, files []string) error {
	for _, file := range files {
		b, size, err := head(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return errMoved
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		end := len(bytes.TrimRight(b, "\x00"))
		if err := os.WriteFile(path, b[:end], 0o600); err != nil {
			return err
		}
		if err := os.Truncate(path, size); err != nil {
			return err
		}
	}
	return nil
}

// head returns the part of a file that is in use, and its size. Of value logs, which no
// value ever reaches, that is little of many megabytes.
func head(path string) (b []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	used := info.Size()
	if filepath.Ext(path) == ".vlog" {
		used = min(used, 1<<12)
	}
	b = make([]byte, used)
	_, err = io.ReadFull(f, b)
	return b, info.Size(), err
}
