package badgerstore_test

import (
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// The database of an open store merges its tables as ADR 0049 says, whatever is collected in
// memory: as late as Badger itself would, and into tables of 8 MiB that are no larger than half of
// what is collected.
func TestTablesAreMergedLateAndStaySmall(t *testing.T) {
	t.Parallel()
	own := badger.DefaultOptions("")
	for name, c := range map[string]struct {
		o                           badgerstore.Options
		memory, table, level, below int64
	}{
		"default":  {badgerstore.Options{}, 16 << 20, 8 << 20, 128 << 20, 208 << 20},
		"smallest": {badgerstore.Options{MemTableSize: 1}, 4 << 20, 2 << 20, 32 << 20, 128 << 20},
		"between":  {badgerstore.Options{MemTableSize: 10 << 20}, 10 << 20, 5 << 20, 80 << 20, 130 << 20},
		"Large":    {badgerstore.Large(), 64 << 20, 8 << 20, 128 << 20, 448 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := badgerstore.Open(t.Context(), t.TempDir(), c.o)
			is := opened(t, s, err).Badger().Opts()
			if is.MemTableSize != c.memory {
				t.Errorf("%d bytes are collected in memory, want %d", is.MemTableSize, c.memory)
			}
			if is.BaseTableSize != c.table || is.BaseTableSize > is.MemTableSize/2 {
				t.Errorf("tables of %d bytes are made, want %d, and no more than half of %d", is.BaseTableSize, c.table, is.MemTableSize)
			}
			if is.NumLevelZeroTables != 5 || is.NumLevelZeroTablesStall != 15 {
				t.Errorf("%d new tables are merged and %d hold writes up, want 5 and 15", is.NumLevelZeroTables, is.NumLevelZeroTablesStall)
			}
			if is.NumLevelZeroTables != own.NumLevelZeroTables || is.NumLevelZeroTablesStall != own.NumLevelZeroTablesStall {
				t.Errorf("Badger itself merges %d new tables and holds writes up at %d now: ADR 0049 says that the store does so too",
					own.NumLevelZeroTables, own.NumLevelZeroTablesStall)
			}
			if below := s.Below(); is.BaseLevelSize != c.level || below != c.below {
				t.Errorf("they are merged into a level of %d bytes, with room for %d, want %d and %d", is.BaseLevelSize, below, c.level, c.below)
			}
			if is.NumCompactors != 2 {
				t.Errorf("%d compactors, want 2", is.NumCompactors)
			}
		})
	}
}

// A store of format 1 is not merged in another way than it was, and as much is kept free for that,
// while Badger merges as quickly as is written.
func TestFormat1IsMergedAsItWas(t *testing.T) {
	t.Parallel()
	s := openFormat(1)(t, t.TempDir())
	if level, below := s.Badger().Opts().BaseLevelSize, s.Below(); level != 10<<20 || below != 128<<20 {
		t.Errorf("they are merged into a level of %d bytes, with room for %d", level, below)
	}
}
