package badgerstore_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// small keeps the tests of many stores at once small.
var small = badgerstore.Options{MemTableSize: 4 << 20}

type opener = func(t testing.TB, dir string) *badgerstore.Store

func open(t testing.TB, dir string) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), dir, small)
	return opened(t, s, err)
}

func openUnsynced(t testing.TB, dir string) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, small)
	return opened(t, s, err)
}

func opened(t testing.TB, s *badgerstore.Store, err error) *badgerstore.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

func closes(t *testing.T, s *badgerstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
