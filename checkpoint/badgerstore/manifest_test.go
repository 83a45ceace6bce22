package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A table that could not be made durable is one that the manifest may name, and that is not there.
// Where the live database knows that of itself its record is made void, and what the table was to
// hold is found in the log of what was in memory. Found by Open, a missing table is damage.
func TestManifestNamesATableThatWasNeverWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	for n := range 50 {
		e := checkpoint.Entry{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", strings.Repeat("x", n*100))}
		if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	image := filepath.Join(t.TempDir(), "image") // as a crash would leave it
	if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // writes the table, and says so in the manifest
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "db", "MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "db", "MANIFEST"), manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), image, small); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("Open = %v, want ErrCorrupt", err)
	}
	if err := badgerstore.VoidGhosts(image); err != nil {
		t.Fatal(err)
	}
	s, err = badgerstore.Open(t.Context(), image, small)
	opened(t, s, err)
	if info, err := s.Stat(t.Context(), l.Run); err != nil || info.Head != head {
		t.Errorf("Stat = %+v, %v, want the head %+v", info, err, head)
	}
	for _, err := range s.Read(t.Context(), l.Run, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
}
