package badgerstore_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Who comes to share a base while another one heals it is not told that he has it if there was no room for that: he heals
// it himself.
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
			forkstoreAudit(t, s.Store)
		})
	}
}
