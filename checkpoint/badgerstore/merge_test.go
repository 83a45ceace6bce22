package badgerstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A store that is opened again and again, each time for a moment, has few tables all the same: each
// is a file that an open store has open.
func TestShortLivesLeaveFewTables(t *testing.T) {
	t.Parallel()
	const lives, most = 60, 40 // a few more than an Open leaves
	dir := memoryDir(t)
	for i := range lives {
		s := openUnsynced(t, dir)
		if n := tablesIn(t, dir); n > most {
			t.Fatalf("there are %d tables after %d lives", n, i)
		}
		l, err := s.Acquire(t.Context(), fmt.Sprint("run ", i), "owner")
		if err == nil {
			_, err = s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Noted}})
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := openUnsynced(t, dir).List(t.Context(), checkpoint.Filter{Limit: 2 * lives})
	if err != nil || len(page) != lives {
		t.Errorf("List = %d runs, %v, want %d", len(page), err, lives)
	}
}

// tablesIn returns how many tables there are in the directory of a store.
func tablesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".sst" {
			n++
		}
	}
	return n
}
