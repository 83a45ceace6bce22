package badgerstore

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/pawlgo/pawl/checkpoint"
)

const (
	// MaxAppend is the largest append, in bytes of its envelope.
	MaxAppend = 64 << 20
	// MaxSnapshot is the largest snapshot, in bytes.
	MaxSnapshot = 1 << 30
)

// Options say how a store works. The zero Options are those of a service that does other things
// beside; [Large] is for a program whose work the store is.
type Options struct {
	// Observe is called by the store's own goroutine after every write, also one that failed or
	// that was refused for want of room; while it runs nothing else is written. In a store that is
	// not synced a run alone commits its appends itself, and sooner, if nobody observes. Zero means
	// nobody observes.
	Observe func(checkpoint.Group)

	// MemTableSize is how many bytes are collected in memory before they become a table. Zero means
	// 16 MiB; less than 4 MiB means 4 MiB; more than 1 GiB is refused. A store whose process has
	// died with more than that in memory is opened with as much as that takes.
	//
	// It decides what a store takes. Live heap of a process in MiB, with one store: when it has
	// just been opened; right after a hundred runs have written 600 MB to it at full speed, in
	// appends of 1 KB, which depends on the tables that are being made then; and 15 seconds later
	// (Badger 4.9.6, two cores). The process takes up to twice that, as GOGC says; GOMEMLIMIT
	// bounds it:
	//
	//	MemTableSize   open   written   idle
	//	4 MiB             5       130     20
	//	16 MiB           21       360     21
	//	64 MiB           83       200     84
	//	256 MiB         333      1200    333
	//
	// Beside that the tables are mapped into memory, which the system takes back when it needs it.
	// A transaction, which all runs share, has about a tenth of it at most, and one that is a
	// single large request up to a seventh.
	MemTableSize int64

	// FreeSpace is how many bytes have to be free on the device before a write, beside those that
	// compactions need: as many as the newest tables have, and as the others have up to 208 MiB,
	// with [Large] up to 448. (For other sizes of MemTableSize that is five of them and 128 MiB, or
	// thirteen of them if that is less, and at least 128 MiB; in a store of format 1 always 128.
	// While a store is written to more quickly than Badger merges, the level that new tables are
	// merged into has more, and so much has to be free.) Zero means four times MemTableSize, which
	// is what becomes of memory when it is written to tables. With less a write is refused also
	// where there would be too little room for what is in memory at that moment to become tables,
	// which Badger does not survive.
	FreeSpace int64

	// Waiting is how many bytes of appends may wait for the disk before further ones wait
	// for room: half of it is for pieces of large values, half for all else. Zero means 32 MiB.
	Waiting int64

	// CloseWithin is how long Close may take. Zero means 30 seconds.
	CloseWithin time.Duration

	// Cipher seals all that runs say. It is chosen when the store is made: one that is not
	// encrypted is not opened with a Cipher, nor one that is without. See the package's part
	// on secrets. Zero means that nothing is sealed.
	Cipher checkpoint.Cipher

	// Witness is the path of the file that says how far the store had come. Kept apart from the
	// directory it reveals that the directory was replaced by an older copy of itself, or is gone.
	// Zero means a file in the directory. An empty file makes the next Open accept the store as it
	// is. What is there and no regular file, as a device or a pipe, is refused.
	//
	// The file is locked while the store is open, where the system has locks: on Linux, macOS and
	// FreeBSD. An Open with that of another open store, as of a copy of the same, is ErrLocked. It
	// is written in place, and whoever replaces it meanwhile has one that says nothing new. Where
	// its file system has no locks the store does not open.
	Witness string
}

// Large are Options for many runs that write much at once, on a machine that has 2 GiB to spare:
// groups of up to 7 MiB, and a quarter of a gigabyte that may wait for the disk.
func Large() Options { return Options{MemTableSize: 64 << 20, Waiting: 256 << 20} }

const (
	leastMemTable = 4 << 20
	mostMemTable  = 1 << 30
)

// check says which option can't be.
func (o Options) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"MemTableSize", o.MemTableSize}, {"FreeSpace", o.FreeSpace}, {"Waiting", o.Waiting}, {"CloseWithin", int64(o.CloseWithin)}} {
		if n.value < 0 {
			return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "option " + n.name,
				Reason: fmt.Sprintf("is negative: %d: zero means the default", n.value)}
		}
	}
	if o.MemTableSize > mostMemTable {
		return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "option MemTableSize",
			Reason: fmt.Sprintf("is %d bytes: give at most %d, and what the memory of the machine allows", o.MemTableSize, mostMemTable)}
	}
	if k, ok := o.Cipher.(*checkpoint.Keyring); ok && (k == nil || k.Key() == "") {
		return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "option Cipher",
			Reason: "is a *Keyring without a key: make one with checkpoint.NewKeyring"}
	}
	return nil
}

func (o Options) withDefaults(dir string) Options {
	o.MemTableSize = cmp.Or(o.MemTableSize, 16<<20)
	o.MemTableSize = max(o.MemTableSize, leastMemTable)
	o.FreeSpace = cmp.Or(o.FreeSpace, o.inMemory())
	o.Waiting = cmp.Or(o.Waiting, 32<<20)
	o.CloseWithin = cmp.Or(o.CloseWithin, 30*time.Second)
	o.Witness = cmp.Or(o.Witness, filepath.Join(dir, witnessFile))
	return o
}

// forBadger returns the options of the database. Those that matter:
//
//   - One sync per transaction, and one transaction per group: see commit.go, and memlog.go for
//     where it is not Badger that syncs.
//   - No value ever reaches the value log, where damage reads as emptiness.
//   - No compression, so that a flipped bit is a wrong value, which our frames detect, and
//     not a vanished block. Tables are checked by us before they are opened (guard.go).
//   - No checksums of blocks when they are read: an iterator takes a block that does not verify for
//     the end of its table, and says nothing. So of what changes under an open store keys are not
//     checked, nor the headers of blocks.
//   - No caches: the tables are mapped, and envelopes are read in order.
//   - Up to five new tables wait to be merged, up to fifteen hold nobody up, and what they become
//     has 8 MiB, or half of MemTableSize if that is less: a byte is written again less often, and
//     fewer files are made. See ADR 0049.
//   - The level that they are merged into goes by the format of the store: see merges.
func (o Options) forBadger(dir string, sync bool, format int) badger.Options {
	level, _ := o.merges(format)
	return badger.DefaultOptions(dir).
		WithSyncWrites(sync).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithValueThreshold(min(1<<20, o.MemTableSize*15/100)).
		WithMemTableSize(o.MemTableSize).
		WithNumMemtables(memTables).
		WithNumLevelZeroTables(mergedAtOnce).
		WithNumLevelZeroTablesStall(15).
		WithBaseTableSize(min(8<<20, o.MemTableSize/2)).
		WithBaseLevelSize(level).
		WithNumCompactors(2).
		WithValueLogFileSize(16 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.NoVerification).
		WithNumGoroutines(2).
		WithLogger(nil)
}

// memTables is how many tables' worth of what is in memory waits to be written before a commit has
// to wait for that.
const memTables = 3

// mergedAtOnce is how many new tables wait to be merged.
const mergedAtOnce = 5

// merges returns how much is to be in the level that new tables are merged into, and how much is
// kept free for what a compaction writes of what lies below them, while no level has more (see
// merging): that level, and what it has of the last merge. Badger's level of 10 MiB, which is less
// than five tables, has what is stored go through a level or two more; that is for stores of format
// 1, where tables reach over so much that a compaction may write a level of a hundred, and
// sometimes of several. See ADR 0061.
func (o Options) merges(format int) (level, below int64) {
	if format == 1 {
		return 10 << 20, 128 << 20
	}
	level = min(128<<20, 8*o.MemTableSize)
	return level, max(128<<20, level+mergedAtOnce*o.MemTableSize)
}

// inMemory is how much there is in memory at most that is to become tables.
func (o *Options) inMemory() int64 { return 4 * o.MemTableSize }

// halfWaiting is the room of large values, and that of all else.
func (o *Options) halfWaiting() int64 { return max(1, o.Waiting/2) }
