package badgerstore_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Who comes to share a base that can't be read any more, by a Fork, a Trim or an Import, has it all
// the same: it is written anew, and those that stood on it before are healed with that. Nothing of
// the old one is left.
func TestSharedBaseThatIsDamagedIsHealed(t *testing.T) {
	t.Parallel()
	large, small := forkstoreBase(1), []byte(`{"small":true}`)
	for name, do := range map[string]struct {
		base   []byte
		damage func(t *testing.T, s *badgerstore.Store, base []byte)
	}{
		"a piece has another bit": {large, func(t *testing.T, s *badgerstore.Store, base []byte) {
			key, value := pieceOf(t, s, base)
			value[len(value)/2] ^= 1
			put(t, s, key, value)
		}},
		"a piece is lost": {large, func(t *testing.T, s *badgerstore.Store, base []byte) {
			key, _ := pieceOf(t, s, base)
			put(t, s, key, nil)
		}},
		"it has another bit": {small, func(t *testing.T, s *badgerstore.Store, base []byte) {
			key := badgerstore.BaseKey(s, checkpoint.BaseDigest(base))
			value := []byte(valuesOf(t, s)[string(key)])
			value[len(value)-1] ^= 1
			put(t, s, key, value)
		}},
		"it is lost": {small, func(t *testing.T, s *badgerstore.Store, base []byte) {
			put(t, s, badgerstore.BaseKey(s, checkpoint.BaseDigest(base)), nil)
		}},
		"it is another one": {small, func(t *testing.T, s *badgerstore.Store, base []byte) {
			key := badgerstore.BaseKey(s, checkpoint.BaseDigest(base))
			value := []byte(valuesOf(t, s)[string(key)])
			put(t, s, key, badgerstore.Reframe(t, key, key, value, func(payload []byte) { payload[len(payload)-1] ^= 1 }))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openUnsynced(t, t.TempDir())
			s.ForgetIdle()
			if err := s.Fork(t.Context(), forkstoreFork(do.base, 10, "first", "second", "exported")); err != nil {
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
			runs := []string{"first", "second"}
			for run, share := range map[string]func() error{
				"fork":    func() error { return s.Fork(t.Context(), forkstoreFork(do.base, 10, "fork")) },
				"trimmed": func() error { return forkstoreTrim(t.Context(), s, "trimmed", 4, do.base) },
				"exported": func() error {
					_, err := checkpoint.Import(t.Context(), s, &file, checkpoint.ImportOptions{})
					return err
				},
			} {
				do.damage(t, s, do.base)
				if _, err := s.Base(t.Context(), "first", checkpoint.BaseDigest(do.base)); !damaged(err) {
					t.Fatalf("before %s: Base = %v, want ErrCorrupt", run, err)
				}
				if err := share(); err != nil {
					t.Errorf("%s: %v", run, err)
					continue
				}
				runs = append(runs, run)
				for _, run := range runs {
					if got, err := s.Base(t.Context(), run, checkpoint.BaseDigest(do.base)); err != nil || !bytes.Equal(got, do.base) {
						t.Errorf("Base of %q = %d bytes, %v", run, len(got), err)
					}
				}
				forkstoreAudit(t, s)
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

// pieceOf is a piece of a large base.
func pieceOf(t *testing.T, s *badgerstore.Store, base []byte) (key, value []byte) {
	t.Helper()
	for key, value := range valuesOf(t, s) {
		if strings.HasPrefix(key, "cz"+checkpoint.BaseDigest(base)) {
			return []byte(key), []byte(value)
		}
	}
	t.Fatal("the base is in no pieces")
	return nil, nil
}

func put(t *testing.T, s *badgerstore.Store, key, value []byte) {
	t.Helper()
	if err := s.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// A base that can't be read stays as it was if there is no room for what heals it, and is healed
// once there is.
func TestBaseIsHealedOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	room := func(n int64) { s.FreeWith(func() (int64, error) { return n, nil }) }
	commits := -100
	s.CommitWith(func(next func() error) error {
		if commits++; commits == 2 {
			room(0) // behind both pieces
		}
		return next()
	})
	base := forkstoreBase(1)
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "first")); err != nil {
		t.Fatal(err)
	}
	key, value := pieceOf(t, s, base)
	value[0] ^= 1
	put(t, s, key, value)
	commits = 0
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "second")); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Fork = %v, want ErrFull", err)
	}
	room(1 << 40)
	if _, err := s.Base(t.Context(), "first", checkpoint.BaseDigest(base)); !damaged(err) {
		t.Errorf("Base = %v, want ErrCorrupt", err)
	}
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "second")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openUnsynced(t, dir) // removes what the full device kept from being removed
	forkstoreAudit(t, s)
	for _, run := range []string{"first", "second"} {
		if got, err := s.Base(t.Context(), run, checkpoint.BaseDigest(base)); err != nil || !bytes.Equal(got, base) {
			t.Errorf("Base of %q = %d bytes, %v", run, len(got), err)
		}
	}
}

// What Import has acknowledged can be read, also if the base that it shares is sealed with a key
// that is lost.
func TestImportOverABaseOfALostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lost, kept := keyOf(t, "lost", 1), keyOf(t, "kept", 2)
	s := openWith(t, dir, sealedBy(t, lost))
	base := forkstoreBase(1)
	if err := s.Fork(t.Context(), forkstoreFork(base, 10, "old", "exported")); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, "exported", &file); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "exported"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	openWith(t, dir, sealedBy(t, kept, lost)).Close()
	s = openWith(t, dir, sealedBy(t, kept))
	if _, err := checkpoint.Import(t.Context(), s, &file, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Base(t.Context(), "exported", checkpoint.BaseDigest(base)); err != nil || !bytes.Equal(got, base) {
		t.Errorf("Base = %d bytes, %v", len(got), err)
	}
	s.Close()
	s = openWith(t, dir, sealedBy(t, kept, lost))
	if err := verifyAll(t, s); err != nil {
		t.Errorf("Verify with the old key = %v", err)
	}
	forkstoreAudit(t, s)
}
