package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A byte that is changed in what the store keeps of forks, bases and trimmed runs, and the loss of
// a key, is found by Verify or by the call that needs it.
func TestForkstoreEveryValueIsChecked(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	small := []byte(`{"small":true}`)
	for run, base := range map[string][]byte{"large fork": forkstoreBase(1), "small fork": small} {
		if err := s.Fork(t.Context(), forkstoreFork(base, 10, run)); err != nil {
			t.Fatal(err)
		}
	}
	if err := forkstoreGrow(t.Context(), s, "trimmed", 4); err != nil {
		t.Fatal(err)
	}
	if err := forkstoreTrim(t.Context(), s, "trimmed", 4, forkstoreBase(2)); err != nil {
		t.Fatal(err)
	}
	runs := []string{"large fork", "small fork", "trimmed"}
	values := valuesOf(t, s)
	checked := make(map[string]int)
	for key, value := range values {
		kind := key[:1]
		if kind == "m" || kind == "n" {
			continue // of the store; of counts see TestForkstoreCountsAreChecked
		}
		for _, at := range []int{-1, 0, 5, len(value) / 2, len(value) - 1} {
			var changed []byte // none: the key is lost
			if at >= 0 {
				changed = bytes.Clone(value)
				changed[at] ^= 0x40
			} else if kind == "x" || kind == "s" {
				continue // a run that nobody can name, and no snapshot: not found, and nothing else
			}
			if err := s.Put(t.Context(), []byte(key), changed); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(runs, func(run string) bool { return forkstoreFinds(t, s, run) }) {
				t.Errorf("byte %d of %q changed, and nobody finds it", at, key)
			}
			if err := s.Put(t.Context(), []byte(key), value); err != nil {
				t.Fatal(err)
			}
			checked[kind]++
		}
	}
	for _, kind := range []string{"z", "c", "l", "r"} {
		if checked[kind] == 0 {
			t.Errorf("there is no key of kind %s", kind)
		}
	}
	forkstoreAudit(t, s)
}

// forkstoreFinds reports whether Verify finds damage in the run.
func forkstoreFinds(t *testing.T, s *badgerstore.Store, run string) bool {
	t.Helper()
	for _, err := range checkpoint.Verify(t.Context(), s, run) {
		if err != nil && !damaged(err) {
			t.Errorf("Verify(%q) = %v", run, err)
		}
		return true
	}
	return false
}

// With a count that is damaged a base is neither taken nor given up, and nothing changes; what is
// there can be read.
func TestForkstoreCountsAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	base := forkstoreBase(1)
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "fork")); err != nil {
		t.Fatal(err)
	}
	key := []byte("n" + checkpoint.BaseDigest(base))
	value := []byte(valuesOf(t, s)[string(key)])
	for at := range value {
		changed := bytes.Clone(value)
		changed[at] ^= 0x40
		if err := s.Put(t.Context(), key, changed); err != nil {
			t.Fatal(err)
		}
		if at == 0 { // a count is read when it is first needed
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openUnsynced(t, dir)
		}
		before := fmt.Sprint(valuesOf(t, s))
		for call, err := range map[string]error{
			"Delete": s.Delete(t.Context(), "fork"), "Fork": s.Fork(t.Context(), forkstoreFork(base, 10, "another")),
		} {
			if !damaged(err) {
				t.Errorf("byte %d: %s = %v", at, call, err)
			}
		}
		if fmt.Sprint(valuesOf(t, s)) != before {
			t.Errorf("byte %d: the store has changed", at)
		}
		if got, err := s.Base(t.Context(), "fork", checkpoint.BaseDigest(base)); err != nil || !bytes.Equal(got, base) {
			t.Errorf("Base = %d bytes, %v", len(got), err)
		}
	}
	if err := s.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "fork"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "fork"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat = %v", err)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}
