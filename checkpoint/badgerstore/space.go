package badgerstore

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// A space watches over the room on the device. It asks the system every few milliseconds, since
// somebody else may fill the device as well, or when so much was written that the last answer means
// little.
type space struct {
	dir     string
	reserve int64
	free    func(dir string) (int64, error) // nil where the system can't be asked
	db      *badger.DB                      // nil before it is open
	home    *home                           // nil before it is open
	below   int64                           // see Options.merges

	left    int64 // bytes that were free when it was last asked, less those written since
	needed  int64 // bytes that have to stay free, as of then
	written int
	asked   time.Time
}

const (
	askEvery = 8 << 20
	askAgain = 10 * time.Millisecond
)

// check returns ErrFull if after a write of that many bytes too little would be free, and a *movedError
// if it would be written elsewhere.
func (p *space) check(now time.Time, bytes int) error {
	if p.free == nil { // there the directory of open files can't be moved
		return nil
	}
	enough := p.left-int64(bytes) >= p.needed
	if !enough || p.written >= askEvery || now.Sub(p.asked) >= askAgain {
		if p.home != nil {
			if err := p.home.check(); err != nil {
				return err
			}
		}
		free, err := p.free(p.dir)
		if err != nil {
			return fmt.Errorf("checkpoint: free space of %s: %w", p.dir, err)
		}
		p.left, p.needed, p.written, p.asked = free, p.need(), 0, now
	}
	if p.left-int64(bytes) < p.needed {
		return p.full(bytes)
	}
	p.left -= int64(bytes)
	p.written += bytes
	return nil
}

// full says how much is missing, and whether a lower Options.FreeSpace would help.
func (p *space) full(bytes int) error {
	way := "make room"
	compactions := p.needed - p.reserve
	if p.left-int64(bytes) >= compactions {
		way += ", or lower Options.FreeSpace"
	}
	return fmt.Errorf("%w: %s has %d bytes left; a write of %d needs %d more, of Options.FreeSpace, and %d for compactions: %s",
		checkpoint.ErrFull, p.dir, p.left, bytes, p.reserve, compactions, way)
}

// checkClose returns ErrFull if there is too little room for what Badger writes when it is closed: what is in
// memory becomes tables, of about the size that the logs of it have, and an index each.
func (p *space) checkClose() error {
	if p.free == nil {
		return nil
	}
	free, err := p.free(p.dir)
	if err != nil {
		return nil // the directory was removed: Badger says so
	}
	const indexes = 1 << 20
	need := indexes + logBytes(p.dir)*5/4
	if free >= need {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes left, and to close the store takes %d: it is closed once there is room; what was acknowledged is durable",
		checkpoint.ErrFull, p.dir, free, need)
}

// logBytes returns how much of the device the logs have of what is in memory.
func logBytes(dir string) (sum int64) {
	paths, err := filepath.Glob(filepath.Join(dir, databaseDir, "*.mem"))
	if err != nil {
		return 0
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			sum += allocated(info)
		}
	}
	return sum
}

// tableBytes returns about how large the tables of a database are that is not open.
func tableBytes(dir string) (sum int64) {
	paths, err := filepath.Glob(filepath.Join(dir, databaseDir, "*.sst"))
	if err != nil {
		return 0
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// need returns what has to stay free: the reserve, in which memory becomes tables, and what
// a compaction writes before it removes what it has read.
func (p *space) need() int64 {
	if p.db == nil {
		return p.beside(min(tableBytes(p.dir), p.below))
	}
	return p.beside(merging(p.db.Levels(), p.below))
}

// merging returns how much compactions may write at once: all newest tables, of which there may be three times as many as are waited for,
// and of older ones below, or more if there is more in the level that the newest are merged into. While a store is written to more quickly than
// Badger merges, that one grows to three times what it should have. Of a level below it one table is merged at a time, however large it is.
func merging(levels []badger.LevelInfo, below int64) int64 {
	var newest, older, merged int64
	for _, level := range levels {
		if level.Level == 0 {
			newest = level.Size
			continue
		}
		older += level.Size
		if level.IsBaseLevel {
			merged = level.Size
		}
	}
	return newest + min(older, max(below, merged))
}

// beside adds the reserve, which may be as large as a number can be.
func (p *space) beside(compactions int64) int64 {
	return min(p.reserve, math.MaxInt64-compactions) + compactions
}
