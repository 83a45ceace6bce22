package badgerstore_test

import (
	"bytes"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Also a base whose own value was found damaged or missing when the store was opened is written
// anew by who comes to share it, however it was kept and is kept then, and nothing of the old one
// is left. Until then the runs on it stay.
func TestDamagedBaseIsHealedBehindAnOpen(t *testing.T) {
	t.Parallel()
	flipped := func(t *testing.T, s *badgerstore.Store, key []byte) {
		value := []byte(valuesOf(t, s)[string(key)])
		value[len(value)-1] ^= 1
		put(t, s, key, value)
	}
	lost := func(t *testing.T, s *badgerstore.Store, key []byte) { put(t, s, key, nil) }
	for name, do := range map[string]struct {
		base   []byte
		damage func(t *testing.T, s *badgerstore.Store, key []byte)
	}{
		"a small one has another bit": {[]byte(`{"small":true}`), flipped},
		"a small one is lost":         {[]byte(`{"small":true}`), lost},
		"a large one has another bit": {forkstoreBase(1), flipped},
		"a large one is lost":         {forkstoreBase(1), lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openUnsynced(t, dir)
			if err := s.Fork(t.Context(), forkstoreFork(do.base, 10, "first", "exported")); err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := checkpoint.Export(t.Context(), s, "exported", &file); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), "exported"); err != nil {
				t.Fatal(err)
			}
			if err := forkstoreGrow(t.Context(), s, "trimmed", 4); err != nil {
				t.Fatal(err)
			}
			runs := []string{"first"}
			for _, share := range []struct {
				run  string
				call func() error
			}{
				{"fork", func() error { return s.Fork(t.Context(), forkstoreFork(do.base, 10, "fork")) }},
				{"trimmed", func() error { return forkstoreTrim(t.Context(), s, "trimmed", 4, do.base) }},
				{"exported", func() error {
					_, err := checkpoint.Import(t.Context(), s, &file, checkpoint.ImportOptions{})
					return err
				}},
			} {
				do.damage(t, s, badgerstore.BaseKey(s, checkpoint.BaseDigest(do.base)))
				closes(t, s)
				s = openUnsynced(t, dir)
				if err := s.Delete(t.Context(), "first"); !damaged(err) {
					t.Fatalf("before %s: Delete of a run whose base is damaged = %v, want ErrCorrupt", share.run, err)
				}
				if err := share.call(); err != nil {
					t.Fatalf("%s: %v", share.run, err)
				}
				runs = append(runs, share.run)
				for range 2 {
					for _, run := range runs {
						wantBases(t, s, run, [][]byte{do.base})
					}
					forkstoreAudit(t, s)
					if err := verifyAll(t, s); err != nil {
						t.Error(err)
					}
					closes(t, s)
					s = openUnsynced(t, dir)
				}
			}
			for _, run := range runs {
				if err := s.Delete(t.Context(), run); err != nil {
					t.Fatal(err)
				}
			}
			if keys := keysOf(s); len(keys) > 0 {
				t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
			}
		})
	}
}
