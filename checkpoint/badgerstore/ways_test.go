package badgerstore_test

import (
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
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// Close that waits for a loop over Read says so, and the store closes when the loop ends.
func TestCloseSaysThatItWaitsForALoop(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	o.CloseWithin = 10 * time.Millisecond
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	next, stop := iter.Pull2(s.Read(t.Context(), "run 0", 1, 0))
	if _, err, ok := next(); err != nil || !ok {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), ": a loop over Read did not end within 10ms") {
		t.Errorf("Close = %v, want that it waits for a loop over Read", err)
	}
	stop()
	for s, err = badgerstore.Open(t.Context(), dir, small); errors.Is(err, checkpoint.ErrLocked); {
		s, err = badgerstore.Open(t.Context(), dir, small)
	}
	opened(t, s, err)
}

// An option that can't be is an error before anything is made.
func TestOptionsThatCantBe(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "witness")
	o := small
	o.Witness = other
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	for name, c := range map[string]struct {
		o    badgerstore.Options
		want string
	}{
		"much memory":         {badgerstore.Options{MemTableSize: 1<<30 + 1}, "option MemTableSize"},
		"impossible memory":   {badgerstore.Options{MemTableSize: 1 << 61}, "option MemTableSize"},
		"a witness nowhere":   {badgerstore.Options{Witness: filepath.Join(t.TempDir(), "a", "witness")}, "option Witness"},
		"a directory":         {badgerstore.Options{Witness: t.TempDir()}, "option Witness"},
		"another's witness":   {badgerstore.Options{Witness: other}, "option Witness"},
		"a witness in a file": {badgerstore.Options{Witness: filepath.Join(other, "witness")}, "option Witness"},
		"a witness below one": {badgerstore.Options{Witness: filepath.Join(other, "a", "witness")}, "option Witness"},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		_, err := badgerstore.Open(t.Context(), dir, c.o)
		var e *checkpoint.ArgumentError
		if !errors.As(err, &e) || e.Argument != c.want {
			t.Errorf("Open with %s = %v, want an ArgumentError of the %s", name, err, c.want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open with %s has made its directory: %v", name, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("k", 65), "k\xff", "k\n"} {
		dir := filepath.Join(t.TempDir(), "store")
		_, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{Cipher: &keyCipher{id: id}})
		var e *checkpoint.CipherError
		if !errors.As(err, &e) || e.Call != "Key" {
			t.Errorf("Open with a key %q = %v, want a CipherError", id, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open with a key %q has made its directory: %v", id, err)
		}
	}
}

// A keyCipher has a key of some id, and does not open what it can't.
type keyCipher struct {
	checkpoint.Cipher
	id    string
	fails error
}

func (c *keyCipher) Key() string { return c.id }

func (c *keyCipher) Open(dst, sealed, place []byte) ([]byte, error) {
	if c.fails != nil {
		return nil, c.fails
	}
	return c.Cipher.Open(dst, sealed, place)
}

// What a cipher fails to open is named: the run and the entry.
func TestCipherThatFailsToOpen(t *testing.T) {
	t.Parallel()
	c := &keyCipher{sealedBy(t, keyOf(t, "k1", 1)).Cipher, "k1", nil}
	s, err := badgerstore.Open(t.Context(), t.TempDir(), badgerstore.Options{MemTableSize: 4 << 20, Cipher: c})
	opened(t, s, err)
	l := acquire(t, s, 1)[0]
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
		t.Fatal(err)
	}
	down := errors.New("the key service is down")
	c.fails = down
	for _, err := range s.Read(t.Context(), l.Run, 1, 0) {
		if !errors.Is(err, down) || !strings.Contains(err.Error(), `run "run-0", entry 1`) {
			t.Errorf("Read = %v, want the cipher's error, and the run and entry", err)
		}
	}
}

// Of a store that lacks something or has something foreign Open says what to do, and changes
// nothing.
func TestDamageSaysWhatToDo(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole)
	stock(t, s, 1<<12)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup := "restore the store from a backup"
	for name, c := range map[string]struct {
		harm func(dir string) error
		way  string
	}{
		"no name":          {func(dir string) error { return os.Remove(filepath.Join(dir, "pawl.json")) }, backup},
		"a bad name":       {func(dir string) error { return os.WriteFile(filepath.Join(dir, "pawl.json"), []byte("{"), 0o600) }, backup},
		"no database":      {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "db")) }, backup},
		"no manifest":      {func(dir string) error { return os.Remove(filepath.Join(dir, "db", "MANIFEST")) }, backup},
		"no witness":       {func(dir string) error { return os.Remove(filepath.Join(dir, "witness")) }, "an empty file in its place"},
		"a bad witness":    {func(dir string) error { return os.WriteFile(filepath.Join(dir, "witness"), []byte("pawi"), 0o600) }, "an empty file in its place"},
		"a broken witness": {breakWitness, "an empty file in its place"},
	} {
		dir := copyDir(t, whole)
		if err := c.harm(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		before := filesOf(t, dir)
		_, err := badgerstore.Open(t.Context(), dir, small)
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), c.way) {
			t.Errorf("Open with %s = %v, want ErrCorrupt with %q", name, err, c.way)
		}
		if after := filesOf(t, dir); name == "no name" && strings.Join(after, " ") != strings.Join(before, " ") {
			t.Errorf("Open with %s has left %q of %q", name, after, before)
		}
		if _, err := os.Stat(filepath.Join(dir, "db")); name == "no database" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open without a database has made one: %v", err)
		}
	}
	o := small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	first, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	closes(t, opened(t, first, err))
	if _, err := badgerstore.Open(t.Context(), whole, o); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "give each store a file of its own") {
		t.Errorf("Open with another store's witness = %v, want ErrCorrupt and what to do", err)
	}
}

// A database of which a store has something beside it is that of a store, and what is missing is
// damage. If all is missing nobody can tell: Open says both, and so it does of a witness that is
// kept elsewhere, whose store is not there.
func TestWhatIsLeftOfAStore(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"LOCK", "witness", "tables", ""} {
		dir := copyDir(t, whole)
		for _, name := range []string{"pawl.json", "LOCK", "witness", "tables"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && name != left && name != "LOCK" {
				t.Fatal(err)
			}
		}
		if left != "" {
			if err := os.WriteFile(filepath.Join(dir, left), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := filesOf(t, dir)
		_, err := badgerstore.Open(t.Context(), dir, small)
		var argument *checkpoint.ArgumentError
		if errors.Is(err, checkpoint.ErrCorrupt) == (left == "") || errors.As(err, &argument) != (left == "") || !strings.Contains(err.Error(), "from a backup") {
			t.Errorf("Open with the database and %q = %v, want ErrCorrupt unless nothing tells that it is a store", left, err)
		}
		if after := filesOf(t, dir); !slices.Equal(before, after) {
			t.Errorf("Open with the database and %q has left %q of %q", left, after, before)
		}
	}
	o := small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, o)
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = badgerstore.Open(t.Context(), dir, o)
	if err == nil || !strings.Contains(err.Error(), dir+" holds no store: if it did, bring it back") {
		t.Errorf("Open of a directory that was removed, with its witness = %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open has made the directory: %v", err)
	}
}

func breakWitness(dir string) error {
	path := filepath.Join(dir, "witness")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[20] ^= 1
	return os.WriteFile(path, b, 0o600)
}

// A full device says whether a lower Options.FreeSpace would help.
func TestFullSaysWhatHelps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free, left int64
		lower      bool
	}{"the reserve": {1 << 20, 1<<20 - 1, true}, "the device": {1, 0, false}} {
		o := small
		o.FreeSpace = c.free
		s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
		opened(t, s, err)
		l := acquire(t, s, 1)[0]
		s.FreeWith(func() (int64, error) { return c.left, nil })
		_, err = s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
		if !errors.Is(err, checkpoint.ErrFull) || strings.Contains(err.Error(), "lower Options.FreeSpace") != c.lower {
			t.Errorf("Append without %s = %v", name, err)
		}
		s.FreeWith(func() (int64, error) { return 1 << 40, nil })
	}
}

// A nil context is an *ArgumentError of every call of a store, and changes nothing.
func TestNilContextOfACall(t *testing.T) {
	t.Parallel()
	var none context.Context
	for name, s := range map[string]checkpoint.Store{"badgerstore": openUnsynced(t, t.TempDir()), "memory": new(memory.Store)} {
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		for call, do := range map[string]func() error{
			"Acquire": func() error { return second(s.Acquire(none, "other", "owner")) },
			"Renew":   func() error { return second(s.Renew(none, l)) },
			"Release": func() error { return s.Release(none, l) },
			"Append":  func() error { return second(s.Append(none, l, head, oneEntry)) },
			"Read": func() error {
				for _, err := range s.Read(none, "run", 1, 0) {
					return err
				}
				return nil
			},
			"Stat":        func() error { return second(s.Stat(none, "run")) },
			"List":        func() error { return second(s.List(none, checkpoint.Filter{})) },
			"Post":        func() error { return s.Post(none, "run", checkpoint.Post{ID: "post", Kind: "answer"}) },
			"Posts":       func() error { return second(s.Posts(none, "run")) },
			"PutSnapshot": func() error { return s.PutSnapshot(none, l, checkpoint.Snapshot{Head: head, Data: []byte("{}")}) },
			"Snapshot":    func() error { return second(s.Snapshot(none, "run", 0)) },
			"PutGraph":    func() error { return s.PutGraph(none, strings.Repeat("0", 64), []byte("{}")) },
			"Graph":       func() error { return second(s.Graph(none, strings.Repeat("0", 64))) },
			"Delete":      func() error { return s.Delete(none, "run") },
			"Base":        func() error { return second(s.Base(none, "run", checkpoint.BaseDigest(nil))) },
		} {
			var e *checkpoint.ArgumentError
			if err := do(); !errors.As(err, &e) || e.Argument != "context" {
				t.Errorf("%s: %s without a context = %v, want an ArgumentError", name, call, err)
			}
		}
		if info, err := s.Stat(t.Context(), "run"); err != nil || info.Head != head || info.Owner != "owner" {
			t.Errorf("%s: Stat = %+v, %v", name, info, err)
		}
	}
}

// Another graph under one digest, and one that is too large, are named as that.
func TestGraphThatCantBeKept(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0", 64)
	for name, s := range map[string]checkpoint.Store{"badgerstore": openUnsynced(t, t.TempDir()), "memory": new(memory.Store)} {
		if err := s.PutGraph(t.Context(), digest, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		err := s.PutGraph(t.Context(), digest, []byte("{} "))
		if !errors.Is(err, checkpoint.ErrConflict) || err.Error() != fmt.Sprintf("checkpoint: conflict: another graph is kept under digest %q", digest) {
			t.Errorf("%s: PutGraph of another = %v", name, err)
		}
	}
}

// Of two graphs that are given under one digest at once one is kept, and the other is told so. The
// same one is kept for both.
func TestTwoGraphsAtOnce(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]error{`{"nodes":["b"]}`: checkpoint.ErrConflict, `{"nodes":["a"]}`: nil} {
		s, digest := openUnsynced(t, t.TempDir()), strings.Repeat("0", 64)
		gate := forkstoreGated(s)
		first, release := gate.stop(func() error { return s.PutGraph(t.Context(), digest, []byte(`{"nodes":["a"]}`)) })
		second := make(chan error, 1)
		go func() { second <- s.PutGraph(t.Context(), digest, []byte(other)) }() // waited for below
		for s.Entered() < 2 {                                                    // it has looked, or sees what there is now
			runtime.Gosched()
		}
		release()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := <-second; !errors.Is(err, want) {
			t.Errorf("PutGraph of %s beside another = %v, want %v", other, err, want)
		}
		if got, err := s.Graph(t.Context(), digest); err != nil || string(got) != `{"nodes":["a"]}` {
			t.Errorf("Graph = %s, %v", got, err)
		}
	}
}

// Who has a graph heals one that is damaged: without it no run of that graph could begin.
func TestDamagedGraphIsWrittenAnew(t *testing.T) {
	t.Parallel()
	s, digest := openUnsynced(t, t.TempDir()), strings.Repeat("0", 64)
	graphs := []byte(`{"nodes":[]}`)
	if err := s.PutGraph(t.Context(), digest, graphs); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []byte("v"+digest), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Graph(t.Context(), digest); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("Graph = %v, want ErrCorrupt", err)
	}
	if err := s.PutGraph(t.Context(), digest, graphs); err != nil {
		t.Error(err)
	}
	if got, err := s.Graph(t.Context(), digest); err != nil || string(got) != string(graphs) {
		t.Errorf("Graph = %s, %v", got, err)
	}
}
