package badgerstore_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// forkstoreAudit checks what no call tells of a store at rest: every base is there as long as runs
// refer to it and is counted right, and there is no key that belongs to nothing.
func forkstoreAudit(t *testing.T, s *badgerstore.Store) {
	t.Helper()
	refs, firsts := forkstoreRefs(t, s)
	txn := s.Badger().NewTransactionAt(^uint64(0), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	counts, attempts := map[string]int{}, map[string]string{}
	logs := map[uint64]int{} // appends that begin before the oldest entry
	for it.Rewind(); it.Valid(); it.Next() {
		key := string(it.Item().KeyCopy(nil))
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			t.Fatal(err)
		}
		switch key[0] {
		case 'n':
			counts[key[1:]] = int(binary.BigEndian.Uint64(value[len(value)-8:]))
		case 'z': // before its pieces and its count in no order: see below
			attempts[key[1:]] = string(value[len(value)-12:])
		case 'u', 't', 'y':
			t.Errorf("the mark %q is left", key)
		case 'l':
			run, seq := binary.BigEndian.Uint64([]byte(key[1:9])), binary.BigEndian.Uint64([]byte(key[9:17]))
			if first, ok := firsts[run]; !ok {
				t.Errorf("the append %q belongs to no run", key)
			} else if seq <= first {
				logs[run]++
			}
		}
	}
	for run, first := range firsts {
		if logs[run] != 1 {
			t.Errorf("run number %d, which begins at entry %d, has %d appends up to it", run, first, logs[run])
		}
	}
	for digest, n := range refs {
		if counts[digest] != n || attempts[digest] == "" {
			t.Errorf("base %.8s is counted %d times, want %d", digest, counts[digest], n)
		}
	}
	if len(counts) != len(refs) || len(attempts) != len(refs) {
		t.Errorf("%d counts and %d bases, want %d", len(counts), len(attempts), len(refs))
	}
	for it.Seek([]byte("cz")); it.ValidForPrefix([]byte("cz")); it.Next() {
		key := string(it.Item().Key()) // cz, digest, attempt, piece
		if digest, in := key[2:66], key[66:78]; attempts[digest] != in {
			t.Errorf("the piece %q belongs to no base", key)
		}
	}
}

// forkstoreRefs returns how many runs refer to each base, and the oldest entry of each run by its
// number. It verifies every run.
func forkstoreRefs(t *testing.T, s *badgerstore.Store) (refs map[string]int, firsts map[uint64]uint64) {
	t.Helper()
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	refs, firsts = map[string]int{}, map[uint64]uint64{}
	for _, info := range page {
		for _, digest := range info.Bases() {
			refs[digest]++
		}
		firsts[badgerstore.NumberOf(t, s, info.Run)] = info.First
		if refs[info.Base] > 3 { // verified often enough
			continue
		}
		for f, err := range checkpoint.Verify(t.Context(), s, info.Run) {
			t.Errorf("Verify(%q) finds %v, %v", info.Run, f, err)
		}
	}
	return refs, firsts
}

// forkstoreSummary says what runs there are and where they begin and end.
func forkstoreSummary(t *testing.T, s *badgerstore.Store) (text string) {
	t.Helper()
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page {
		text += fmt.Sprintf("%s %d-%d %.8s\n", info.Run, info.First, info.Head.Seq, info.Base)
	}
	return text
}
