package badgerstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// What has to be free beside a compaction is what it can write: all new tables, and of older ones
// what the format's levels have, or what they really have if that is more.
func TestRoomForMerging(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	level := func(n int, size int64) badger.LevelInfo {
		return badger.LevelInfo{Level: n, Size: size * mib, IsBaseLevel: n == 4}
	}
	for name, c := range map[string]struct {
		levels []badger.LevelInfo
		want   int64
	}{
		"an empty store":           {[]badger.LevelInfo{level(0, 0), level(4, 0), level(5, 0), level(6, 0)}, 0},
		"few tables":               {[]badger.LevelInfo{level(0, 60), level(4, 20), level(5, 20), level(6, 10)}, 60 + 50},
		"levels as they should be": {[]badger.LevelInfo{level(0, 60), level(4, 128), level(5, 900), level(6, 9_000)}, 60 + 208},
		"a large store":            {[]badger.LevelInfo{level(0, 60), level(4, 100), level(5, 20_000), level(6, 200_000)}, 60 + 208},
		"more than can be merged":  {[]badger.LevelInfo{level(0, 203), level(4, 349), level(5, 900), level(6, 900)}, 203 + 349},
		"all of it in one level":   {[]badger.LevelInfo{level(0, 203), level(4, 349), level(5, 0), level(6, 0)}, 203 + 349},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := merging(c.levels, 208*mib); got != c.want*mib {
				t.Errorf("%d bytes have to be free, want %d MiB", got, c.want)
			}
		})
	}
}

// How much has to be free goes by the format of the store, before it is open and when it is,
// whatever its directory is called.
func TestRoomGoesByTheFormat(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[store")
	if err := os.MkdirAll(filepath.Join(dir, databaseDir), 0o700); err != nil {
		t.Fatal(err)
	}
	table, err := os.Create(tablePath(filepath.Join(dir, databaseDir), 1))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	o := Options{}.withDefaults(dir)
	for _, c := range []struct{ tables, first, later int64 }{{100 << 20, 100 << 20, 100 << 20}, {900 << 20, 128 << 20, 208 << 20}} {
		if err := table.Truncate(c.tables); err != nil {
			t.Fatal(err)
		}
		levels := []badger.LevelInfo{{Level: 6, Size: c.tables}}
		for format, want := range map[int]int64{1: c.first, 2: c.later, 3: c.later} {
			_, below := o.merges(format)
			closed := space{dir: dir, below: below}
			if got := closed.compactions(); got != want {
				t.Errorf("format %d, %d bytes of tables, closed: %d bytes have to be free, want %d", format, c.tables, got, want)
			}
			if got := merging(levels, below); got != want {
				t.Errorf("format %d, %d bytes of tables, open: %d bytes have to be free, want %d", format, c.tables, got, want)
			}
		}
	}
}
