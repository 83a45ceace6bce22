package badgerstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"

	"github.com/pawlgo/pawl/checkpoint"
)

// BadgerOptions returns the options of the database of a new store with the zero Options.
func BadgerOptions(dir string, synced bool) badger.Options {
	return Options{}.withDefaults(dir).forBadger(dir, synced, newestFormat)
}

// Raw opens the database of a closed store in dir, and calls edit in a transaction that is
// the next one.
func Raw(t *testing.T, dir string, o Options, edit func(*badger.Txn) error) {
	t.Helper()
	db, err := badger.OpenManaged(
		o.withDefaults(dir).forBadger(filepath.Join(dir, databaseDir), true, newestFormat))
	if err != nil {
		t.Fatal(err)
	}
	ts := db.MaxVersion() + 1
	txn := db.NewTransactionAt(ts, true)
	if err := edit(txn); err != nil {
		t.Fatal(err)
	}
	if err := txn.CommitAt(ts, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// LockFile is the file that an open store holds locked.
func LockFile(s *Store) *os.File { return s.lock }

// WitnessFile is the witness of an open store.
func WitnessFile(s *Store) *os.File { return s.witness.file }

// VoidGhosts makes void what the manifest of the store in dir says of tables that are not there.
func VoidGhosts(dir string) error { return voidGhosts(filepath.Join(dir, databaseDir)) }

// LogKey returns the key of an append.
func LogKey(run, seq uint64) []byte { return seqKey(logKey, run, seq) }

// IDKey returns the key of a run's id, in a store of the newest format.
func IDKey(id string) []byte { return nameKey(kindsOf[newestFormat].id, id) }

// RowKey returns the key of a run's row.
func RowKey(run uint64) []byte { return runKey(rowKey, run) }

// RowSeq returns the entry at which the head was when a row was written.
func RowSeq(t testing.TB, key, value []byte) uint64 {
	t.Helper()
	w, err := decodeRow(key, value)
	if err != nil {
		t.Fatal(err)
	}
	return w.info.Head.Seq
}

// SnapshotKey returns the key of a snapshot.
func SnapshotKey(run, seq uint64) []byte { return seqKey(snapshotKey, run, seq) }

// PostKey returns the key of a message.
func PostKey(run uint64, id string) []byte { return append(runKey(postKey, run), id...) }

// BaseKey returns the key of a base.
func BaseKey(s *Store, digest string) []byte { return nameKey(s.kinds.base, digest) }

// TrimmedKey returns the key that says what a Trim has dropped of a run.
func TrimmedKey(run uint64) []byte { return runKey(trimmedKey, run) }

// DeletedKey returns the key that says that a run is being removed.
func DeletedKey(s *Store, run uint64) []byte { return runKey(s.kinds.deleted, run) }

// Frame returns a frame of that payload.
func Frame(key, payload []byte) []byte { return frame(key, payload) }

// Reframe returns a value that stood under one key as one whose checksum is right under another,
// having edited what it holds.
func Reframe(t *testing.T, from, to, value []byte, edit func(payload []byte)) []byte {
	t.Helper()
	payload, err := unframe(from, value)
	if err != nil {
		t.Fatal(err)
	}
	payload = append([]byte(nil), payload...)
	if edit != nil {
		edit(payload)
	}
	return frame(to, payload)
}

// Sealed reports whether a value says that it is sealed: of an append, message, snapshot or base.
func Sealed(t *testing.T, key, value []byte) bool {
	t.Helper()
	if key[0] == logKey && string(value[:4]) != frameMagic {
		return false
	}
	payload, err := unframe(key, value)
	if err != nil {
		t.Fatal(err)
	}
	if key[0] == snapshotKey {
		payload = payload[len(checkpoint.Digest{}):]
	}
	return payload[0]&sealed != 0
}

// Packing returns what packs an append as a store with these options does.
func Packing(o Options) func(data []byte) error {
	s := &Store{cipher: carefully(o.Cipher), name: name{Format: newestFormat, Store: newID()}}
	at := place{run: "run", key: LogKey(1, 1)}
	return func(data []byte) error {
		_, err := s.pack(at, data)
		return err
	}
}

// Badger returns the database of an open store.
func (s *Store) Badger() *badger.DB { return s.db }

// Syncs reports whether what is committed is synced, by the store or by Badger.
func (s *Store) Syncs() bool { return s.log != nil || s.db.Opts().SyncWrites }

// CommitWith makes the committer commit by that function, which is given the one it had, and nobody
// else commit. It is called before anything is appended.
func (s *Store) CommitWith(commit func(next func() error) error) {
	s.apart = true
	s.CommitAnywhereWith(commit)
}

// CommitAnywhereWith makes everybody who commits do it by that function, which is given the one
// there was.
func (s *Store) CommitAnywhereWith(commit func(next func() error) error) {
	next := s.commitAt
	s.commitAt = func(txn *badger.Txn, ts uint64) error {
		return commit(func() error { return next(txn, ts) })
	}
}

// LastGroup makes the last group one of that many appends that has just ended and took that long.
func (s *Store) LastGroup(appends int, took time.Duration) {
	s.committing.Lock()
	defer s.committing.Unlock()
	s.lastAppends, s.lastEnd, s.lastTook = appends, time.Now(), took
}

// SyncWith makes a synced store sync its log by that function, which is given what does it. It is
// called before anything is appended.
func (s *Store) SyncWith(sync func(next func() error) error) {
	s.commitAt = func(txn *badger.Txn, ts uint64) error {
		if err := txn.CommitAt(ts, nil); err != nil {
			return err
		}
		return sync(s.log.sync)
	}
}

// BeforeAlarm makes the alarm call that function before it stops the store.
func (s *Store) BeforeAlarm(first func()) {
	stop := *s.alarm.stop.Load()
	later := func(err error) {
		first()
		stop(err)
	}
	s.alarm.stop.Store(&later)
}

// FreeWith makes the store ask that function how much room is left.
func (s *Store) FreeWith(free func() (int64, error)) {
	s.space.free = func(string) (int64, error) { return free() }
	s.space.written = askEvery
}

// SweepAll removes what an earlier process has left to be removed, as Open does, while nobody uses
// the store.
func (s *Store) SweepAll(ctx context.Context) error {
	s.committing.Lock()
	defer s.committing.Unlock()
	return s.sweepAll(ctx)
}

// SweepLog gives remove the keys of the log of a run, some at a time, as a Delete does.
func (s *Store) SweepLog(ctx context.Context, run uint64, remove func(keys [][]byte) error) error {
	return s.sweepPrefix(ctx, runKey(logKey, run), nil, nil, remove)
}

// PostsWhile looks for the messages of a run, as Posts does, and calls meanwhile before it keeps
// what it has found.
func (s *Store) PostsWhile(t *testing.T, run string, meanwhile func()) {
	t.Helper()
	v, f, err := s.look(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	keys, _, err := v.posts(run, f.num)
	v.close()
	if err != nil {
		t.Fatal(err)
	}
	meanwhile()
	s.remember(f, keys)
}

// Below returns how much has to be free for what a compaction writes of older tables.
func (s *Store) Below() int64 { return s.space.below }

// ForgetIdle makes the store forget runs at once that nobody uses.
func (s *Store) ForgetIdle() { s.idleMost = 0 }

// Remembered returns how many runs the store has in memory.
func (s *Store) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// Entered returns how many calls are under way.
func (s *Store) Entered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Alarmed reports whether a table that could not be made has stopped the store.
func (s *Store) Alarmed() bool {
	select {
	case <-s.alarmed:
		return true
	default:
		return false
	}
}

// Awaited reports whether a call waits for a request to be settled.
func (s *Store) Awaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.woken != nil
}

// Bases returns how many bases the store has in memory.
func (s *Store) Bases() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bases)
}

// Queued returns how many requests wait for the committer.
// LimitKeys makes that the most keys that a transaction may have, before the first call.
func (s *Store) LimitKeys(n int) { s.maxKeys = n }

func (s *Store) Queued() int { return len(s.queue) }

// Claimed reports whether the committer waits for another one to have committed.
func (s *Store) Claimed() bool { return s.claimed.Load() }

// ChunksAtOnce are in a piece of a large value that nobody appends beside.
const ChunksAtOnce = chunksAtOnce

// QueuedBulk returns how many pieces of bulk wait for it.
func (s *Store) QueuedBulk() int { return len(s.bulk) }

// Put gives a key another value in the database of an open store, or none if it is nil.
func (s *Store) Put(ctx context.Context, key, value []byte) error {
	q := newRequest()
	if value == nil {
		q.delete(key)
		key, value = nextKey, frame(nextKey, binary.BigEndian.AppendUint64(nil, s.lastRun+1)) // every transaction sets one
	}
	q.set(key, value)
	return s.submit(ctx, q)
}

// NumberOf returns the number of a run that exists.
func NumberOf(t testing.TB, s *Store, run string) uint64 {
	t.Helper()
	v, num, err := s.lookBehind(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	v.close()
	return num
}

// EndsOf returns where in a log of what was in memory its transactions end.
func EndsOf(t *testing.T, path string) (ends []int64) {
	t.Helper()
	for flags, end := range records(t, path) {
		if flags&ofTransaction == 0 {
			ends = append(ends, end)
		}
	}
	return ends
}

// FlagsOf returns the flags of the records of a log of what is in memory.
func FlagsOf(t *testing.T, path string) (all []byte) {
	t.Helper()
	for flags := range records(t, path) {
		all = append(all, flags)
	}
	return all
}

// RecordsOf returns where the records of a log of what is in memory end.
func RecordsOf(t *testing.T, path string) (ends []int64) {
	t.Helper()
	for _, end := range records(t, path) {
		ends = append(ends, end)
	}
	return ends
}

// records yields the flags of the records of a log of what is in memory, and where each ends.
func records(t *testing.T, path string) iter.Seq2[byte, int64] {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &memReader{r: bufio.NewReader(bytes.NewReader(b[memLogHeader:])), left: int64(len(b) - memLogHeader)}
	return func(yield func(flags byte, end int64) bool) {
		for {
			flags, err := r.next()
			if err != nil || !yield(flags, int64(len(b))-r.left) {
				return
			}
		}
	}
}

// SplitLog moves the later half of the transactions of a log of what was in memory to a log of
// their own, as if that had been begun then, and returns how many bytes of the first one are in
// use.
func SplitLog(t *testing.T, path, second string) int64 {
	t.Helper()
	ends := EndsOf(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	half, end := ends[len(ends)/2], ends[len(ends)-1]
	rest := append(b[:memLogHeader:memLogHeader], b[half:end]...)
	if err := errors.Join(os.WriteFile(second, rest, 0o600), os.WriteFile(path, b[:half], 0o600)); err != nil {
		t.Fatal(err)
	}
	return half
}

// ReadBoth returns the transactions that guard finds in a log, and those that Badger does, in order
// and each once. The error is that of one of them that refuses the log.
func ReadBoth(t *testing.T, log []byte) (mine, theirs []uint64, err error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "00001"+memLogExt)
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	var g guarded
	if len(log) > 0 {
		if err := g.readLog(t.Context(), path); err != nil {
			return nil, nil, err
		}
	}
	db, err := tryBadger(Options{MemTableSize: 4 << 20}.withDefaults(dir).forBadger(dir, false, newestFormat))
	if err != nil {
		t.Errorf("Badger: %v, of a log that is not refused", err)
		return nil, nil, err
	}
	defer func() { _ = db.Close() }()
	txn := db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		theirs = append(theirs, it.Item().Version())
	}
	for _, all := range []*[]uint64{&g.logged, &theirs} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	return g.logged, theirs, nil
}

// Record is a record of a transaction in a log of what is in memory, EndRecord the one that ends
// it, PlainRecord one outside of all.
func Record(ts uint64) []byte {
	return record(ofTransaction, y.KeyWithTs([]byte("k"), ts), []byte("value"))
}
func EndRecord(ts uint64) []byte {
	return record(endsOne, y.KeyWithTs([]byte("!badger!txn"), ts), strconv.AppendUint(nil, ts, 10))
}
func PlainRecord(ts uint64) []byte { return record(0, y.KeyWithTs([]byte("p"), ts), nil) }

// KeylessRecord is what Badger takes for the end of a log.
func KeylessRecord() []byte { return record(0, nil, []byte("value")) }

func record(flags byte, key, value []byte) []byte {
	b := []byte{flags, 0}
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(binary.AppendUvarint(b, uint64(len(value))), 0)
	b = append(append(b, key...), value...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// WithTable is an inventory that has one table more.
func WithTable(inventory []byte, number uint64) []byte {
	b := append([]byte(nil), inventory[:len(inventory)-4]...)
	b = append(binary.BigEndian.AppendUint64(b, number), make([]byte, 32)...)
	return ReSum(append(b, 0, 0, 0, 0))
}

// ReSum makes the checksum at the end of b fit.
func ReSum(b []byte) []byte {
	b = append([]byte(nil), b[:len(b)-4]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// TablesIn returns how many tables the inventory of the store in dir has.
func TablesIn(t *testing.T, dir string) int {
	t.Helper()
	n, err := readName(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := readInventory(dir, n.Store)
	if err != nil {
		t.Fatal(err)
	}
	return len(v)
}

// HoldPosts has whoever posts to a run, which is in memory, wait until letGo is called.
func (s *Store) HoldPosts(ctx context.Context, run string) (letGo func(), err error) {
	s.mu.Lock()
	r := s.runs[run]
	s.mu.Unlock()
	if err := s.beginTurn(ctx, &r.posting); err != nil {
		return nil, err
	}
	return func() { s.endTurn(&r.posting) }, nil
}
