package badgerstore_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Who comes to share a base while another one heals it is not told that he has it if there was no
// room for that: he heals it himself.
func TestShareOfABaseWhoseHealIsRefused(t *testing.T) {
	t.Parallel()
	base := []byte(`{"small":true}`)
	for name, share := range map[string]func(t *testing.T, s *badgerstore.Store) error{
		"Fork": func(t *testing.T, s *badgerstore.Store) error {
			return s.Fork(t.Context(), forkstoreFork(base, 10, "heir"))
		},
		"Trim": func(t *testing.T, s *badgerstore.Store) error {
			return forkstoreTrim(t.Context(), s, "heir", 4, base)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shortStore(t)
			if err := s.Fork(t.Context(), forkstoreFork(base, 10, "first")); err != nil {
				t.Fatal(err)
			}
			if name == "Trim" {
				if err := forkstoreGrow(t.Context(), s.Store, "heir", 4); err != nil {
					t.Fatal(err)
				}
			}
			put(t, s.Store, badgerstore.BaseKey(s.Store, checkpoint.BaseDigest(base)), []byte("damaged"))
			s.armed.Store(true)
			healed, shared := make(chan error, 1), make(chan error, 1)
			go func() { healed <- s.Fork(t.Context(), forkstoreFork(base, 10, "healer")) }() // received below
			<-s.began
			go func() { shared <- share(t, s.Store) }() // received below
			forkstoreQueued(s.Store, 1)
			close(s.goOn)
			if err := <-healed; !errors.Is(err, checkpoint.ErrFull) {
				t.Errorf("the Fork that was to heal it = %v, want ErrFull", err)
			}
			if err := <-shared; err != nil {
				t.Errorf("%s with room = %v", name, err)
			}
			for _, run := range []string{"first", "heir"} {
				wantBases(t, s.Store, run, [][]byte{base})
			}
			if err := s.Fork(t.Context(), forkstoreFork(base, 10, "another")); err != nil {
				t.Errorf("Fork of a base that was healed = %v", err)
			}
			forkstoreAudit(t, s.Store)
		})
	}
}

// A heal behind an Open that finds no room changes nothing of what is known of the base: the run on
// it stays, and once there is room it is healed, and nothing of the old one is left.
func TestHealBehindAnOpenThatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	base := forkstoreBase(1)
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "first")); err != nil {
		t.Fatal(err)
	}
	put(t, s, badgerstore.BaseKey(s, checkpoint.BaseDigest(base)), []byte("damaged"))
	closes(t, s)
	s = openUnsynced(t, dir)
	room := func(n int64) { s.FreeWith(func() (int64, error) { return n, nil }) }
	commits := 0
	s.CommitWith(func(next func() error) error {
		if commits++; commits == 2 {
			room(0) // behind both pieces
		}
		return next()
	})
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "second")); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Fork = %v, want ErrFull", err)
	}
	room(1 << 40)
	if err := s.Delete(t.Context(), "first"); !damaged(err) {
		t.Errorf("Delete of the run on it = %v, want ErrCorrupt", err)
	}
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "second")); err != nil {
		t.Fatal(err)
	}
	wantBases(t, s, "first", [][]byte{base})
	forkstoreAudit(t, s)
	for _, run := range []string{"first", "second"} {
		if err := s.Delete(t.Context(), run); err != nil {
			t.Errorf("Delete(%q) of a base that was healed = %v", run, err)
		}
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}
