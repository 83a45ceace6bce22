package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
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
	// what memory holds at most: a reserve that is not less has room for the tables of that
	memory int64

	left    int64 // bytes that were free when it was last asked, less those written since
	merge   int64 // bytes that compactions need, as of then
	flush   int64 // bytes of the tables that what is in memory becomes; 0 if the reserve is enough for that in any case
	written int
	asked   time.Time
}

const (
	askEvery = 8 << 20
	askAgain = 10 * time.Millisecond
)

// check returns ErrFull if after a write of that many bytes too little would be free, and a
// *movedError if it would be written elsewhere.
func (p *space) check(now time.Time, bytes int) error {
	if p.free == nil { // there the directory of open files can't be moved
		return nil
	}
	if !p.holds(bytes) || p.written >= askEvery || now.Sub(p.asked) >= askAgain {
		if p.home != nil {
			if err := p.home.check(); err != nil {
				return err
			}
		}
		free, err := p.ask()
		if err != nil {
			return fmt.Errorf("checkpoint: free space of %s: %w", p.dir, err)
		}
		p.left, p.written, p.asked = free, 0, now
		p.merge, p.flush = p.compactions(), p.flushes()
	}
	if !p.holds(bytes) {
		return p.full(bytes)
	}
	p.left -= int64(bytes)
	p.written += bytes
	p.flush = p.flushBehind(bytes)
	return nil
}

// ask asks how much is free where the database is, or will be: that may be a link, or a device of
// its own.
func (p *space) ask() (int64, error) {
	free, err := p.free(filepath.Join(p.dir, databaseDir))
	if errors.Is(err, fs.ErrNotExist) {
		return p.free(p.dir)
	}
	return free, err
}

// holds reports whether enough is free behind a write of that many bytes.
func (p *space) holds(bytes int) bool {
	return p.left-int64(bytes) >= together(max(p.reserve, p.flushBehind(bytes)), p.merge)
}

// flushBehind is flush when so many bytes more are in memory.
func (p *space) flushBehind(bytes int) int64 {
	if p.flush == 0 {
		return 0
	}
	return p.flush + tableOf(int64(bytes))
}

// tableOf returns about how large a table is, with its index, of what has so many bytes in memory.
func tableOf(bytes int64) int64 { return bytes * 5 / 4 }

// full says how much is missing, and whether a lower Options.FreeSpace would help. It is a write of
// none that needs the room before a store is open.
func (p *space) full(bytes int) error {
	flush, what, way := p.flushBehind(bytes), "to make tables of what is in memory", "make room"
	if flush < p.reserve {
		what = "of Options.FreeSpace"
		if p.left-int64(bytes) >= p.merge+flush {
			way += ", or lower Options.FreeSpace"
		}
	}
	needs := fmt.Sprintf("to open the store takes %d", max(p.reserve, flush))
	if bytes > 0 {
		needs = fmt.Sprintf("a write of %d needs %d more", bytes, max(p.reserve, flush))
	}
	return fmt.Errorf("%w: %s has %d bytes left; %s, %s, and %d for compactions: %s",
		checkpoint.ErrFull, p.dir, p.left, needs, what, p.merge, way)
}

// checkClose returns ErrFull if there is too little room for what Badger writes when it is closed:
// what is in memory becomes tables, of about the size that the logs of it have, and an index each.
func (p *space) checkClose() error {
	if p.free == nil {
		return nil
	}
	free, err := p.ask()
	if err != nil {
		return nil // the directory was removed: Badger says so
	}
	const indexes = 1 << 20
	need := indexes + tableOf(logBytes(p.dir))
	if free >= need {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes left, and to close the store takes %d: it is closed once there is room; what was acknowledged is durable",
		checkpoint.ErrFull, p.dir, free, need)
}

// logBytes returns how much of the device the logs have of what is in memory.
func logBytes(dir string) int64 { return sizeOf(dir, memLogExt, allocated) }

// tableBytes returns about how large the tables of a database are that is not open.
func tableBytes(dir string) int64 { return sizeOf(dir, ".sst", os.FileInfo.Size) }

// sizeOf adds up the sizes of the files in the database whose names end so. It looks at the names
// and matches no pattern: dir would be a part of that, whatever signs it has.
func sizeOf(dir, ext string, size func(os.FileInfo) int64) (sum int64) {
	db := filepath.Join(dir, databaseDir)
	files, _ := os.ReadDir(db) // what can't be read, Badger tells
	for _, f := range files {
		if filepath.Ext(f.Name()) != ext {
			continue
		}
		if info, err := os.Stat(filepath.Join(db, f.Name())); err == nil {
			sum += size(info)
		}
	}
	return sum
}

// compactions returns what they write before they remove what they have read.
func (p *space) compactions() int64 {
	if p.db == nil {
		return min(tableBytes(p.dir), p.below)
	}
	return merging(p.db.Levels(), p.below)
}

// flushes returns how much the tables have that what is in memory becomes, or is read into it when
// the database is opened. It is 0 where the reserve is as much in any case, as by default: then
// nobody has to look.
func (p *space) flushes() int64 {
	if p.reserve >= p.memory {
		return 0
	}
	const others = 256 << 10 // the manifest, the next log, and blocks that are not full
	return others + tableOf(logBytes(p.dir))
}

// merging returns how much compactions may write at once: all newest tables, of which there may be
// three times as many as are waited for, and of older ones below, or more if there is more in the
// level that the newest are merged into. While a store is written to more quickly than Badger
// merges, that one grows to three times what it should have. Of a level below it one table is
// merged at a time, however large it is.
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

// together adds the reserve, which may be as large as a number can be.
func together(reserve, compactions int64) int64 {
	return min(reserve, math.MaxInt64-compactions) + compactions
}
