package badgerstore_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

// small keeps the tests of many stores at once small.
var small = badgerstore.Options{MemTableSize: 4 << 20}

type opener = func(t *testing.T, dir string) *badgerstore.Store

func open(t *testing.T, dir string) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), dir, small)
	return opened(t, s, err)
}

func openUnsynced(t *testing.T, dir string) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, small)
	return opened(t, s, err)
}

func opened(t *testing.T, s *badgerstore.Store, err error) *badgerstore.Store {
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

func TestStore(t *testing.T) {
	for name, open := range map[string]opener{"synced": open, "unsynced": openUnsynced} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) checkpoint.Store { return open(t, t.TempDir()) })
			storetest.RunDurable(t, func(t *testing.T) (checkpoint.Store, func() checkpoint.Store) {
				dir := t.TempDir()
				s := open(t, dir)
				return s, func() checkpoint.Store {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, dir)
					return s
				}
			})
		})
	}
}
