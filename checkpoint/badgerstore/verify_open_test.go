package badgerstore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A key that changes in a table while the store is open may lead whoever walks the keys back to where he was: Verify says
// so, and goes round in no circle.
func TestVerifyGoesRoundInNoCircle(t *testing.T) {
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	stock(t, s, 250)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openUnsynced(t, dir)
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %q, %v", tables, err)
	}
	f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []uint64{1, 3} {
		at := int64(bytes.Index(raw, of("p", run, "post")))
		put := func(kind byte) {
			if _, err := f.WriteAt([]byte{kind}, at); err != nil {
				t.Fatal(err)
			}
		}
		put('q')
		if all := verified(t, s); len(all) == 0 || len(all) > 100 {
			t.Errorf("run number %d: found %d things", run, len(all))
		}
		put('p')
	}
}
