package badgerstore_test

import (
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// The name of a directory is no pattern.
func TestOpenInADirectoryOfAnyName(t *testing.T) {
	for _, name := range []string{"[x", "[x]", "*", "?", `a\b`} {
		dir := filepath.Join(t.TempDir(), name)
		for range 2 {
			s, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
			if err != nil {
				t.Fatalf("in %q: %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
