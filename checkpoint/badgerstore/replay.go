package badgerstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/dgraph-io/badger/v4/y"

	"github.com/pawlgo/pawl/checkpoint"
)

// A log of what is in memory, see memLog, is 20 bytes that say how it is encrypted, which it is
// not, and records. A record is a header, the key, the value, and 4 bytes with the CRC-32C of
// these. The header is a byte of flags, one of the user, and three varints: the length of the key,
// that of the value, and when it expires. The entries of a transaction have one flag, and its last
// record has another one: its value is the number of the transaction in decimal. A transaction of a
// single value can be a record without any: see newStamp.
const (
	memLogHeader  = 20
	ofTransaction = 1 << 6
	endsOne       = 1 << 7
	longestKey    = 1 << 16
)

// A memReader reads the records of a log of what is in memory.
type memReader struct {
	r     *bufio.Reader
	left  int64 // bytes that are not read yet
	err   error // of reading a byte of a header
	head  []byte
	body  []byte // key and value of the last record
	takes int64  // what Badger keeps in memory of the records that were read, at most
	keyed int    // length of the key
}

// errRecord: there is no record, or none that is whole.
var errRecord = errors.New("no record")

// An end is where the transactions end that a log has.
type end struct {
	path string
	at   int64
}

// readLog adds the transactions that Badger will find in the log at path. It goes as far as Badger
// does, to the first record that is damaged, or of which a crash has written a part. There Badger
// cuts the file, and what is behind is lost: whether there must be more has to be known before.
// What Badger fails at is refused.
func (g *guarded) readLog(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint: reading a log of the database: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("checkpoint: reading a log of the database: %w", err)
	}
	r := &memReader{r: bufio.NewReaderSize(f, 1<<16), left: info.Size()}
	at, err := g.transactions(ctx, r)
	g.memory = max(g.memory, r.takes)
	if err == errRecord || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		g.ends, err = append(g.ends, end{path, at}), nil
	}
	var damage *recordError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damage):
		return fmt.Errorf("%w: %s can't be read from byte %d on: %w", checkpoint.ErrCorrupt, path, at, err)
	}
	return fmt.Errorf("checkpoint: reading a log of the database: %w", err)
}

// behind returns how many bytes there are behind the end up to the last one that is not 0. A log is
// made larger than what is written to it.
func (e end) behind() (used int64, err error) {
	f, err := os.Open(e.path)
	if err != nil {
		return 0, fmt.Errorf("checkpoint: reading a log of the database: %w", err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 1<<16)
	for at := e.at; ; {
		n, err := f.ReadAt(b, at)
		if last := len(bytes.TrimRight(b[:n], "\x00")); last > 0 {
			used = at + int64(last) - e.at
		}
		if at += int64(n); errors.Is(err, io.EOF) {
			return used, nil
		}
		if err != nil {
			return used, fmt.Errorf("checkpoint: reading a log of the database: %w", err)
		}
	}
}

// A recordError says what Badger can't read, and fails at.
type recordError struct{ reason string }

func (e *recordError) Error() string { return e.reason }

// transactions adds the numbers of those that are whole, and returns where the last one ends. The
// error says why there are no more.
func (g *guarded) transactions(ctx context.Context, r *memReader) (end int64, err error) {
	size := r.left
	key := make([]byte, memLogHeader)
	if err := r.fill(key); err != nil {
		return size - r.left, err
	}
	end = size - r.left
	if binary.BigEndian.Uint64(key) != 0 {
		return 0, &recordError{"it is said to be encrypted, which no log of a store is"}
	}
	for current := uint64(0); ; {
		flags, err := r.next()
		if err != nil {
			return end, err
		}
		switch key, value := r.body[:r.keyed], r.body[r.keyed:]; {
		case flags&ofTransaction != 0:
			ts := y.ParseTs(key)
			if current != 0 && ts != current {
				return end, errRecord
			}
			current = ts
		case flags&endsOne != 0:
			ts, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil || ts != current {
				return end, errRecord
			}
			g.logged, current, end = append(g.logged, ts), 0, size-r.left
			if err := ctx.Err(); err != nil {
				return end, err
			}
		case current != 0:
			return end, errRecord
		default:
			g.logged, end = append(g.logged, y.ParseTs(key)), size-r.left
			if err := ctx.Err(); err != nil {
				return end, err
			}
		}
	}
}

// fill reads as many bytes as b has.
func (r *memReader) fill(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.left -= int64(n)
	return err
}

// ReadByte reads a byte of a header.
func (r *memReader) ReadByte() (byte, error) {
	var b byte
	if b, r.err = r.r.ReadByte(); r.err == nil {
		r.left--
		r.head = append(r.head, b)
	}
	return b, r.err
}

// next reads a record and returns its flags.
func (r *memReader) next() (flags byte, err error) {
	r.head = r.head[:0]
	if flags, err = r.ReadByte(); err != nil {
		return 0, err
	}
	if _, err := r.ReadByte(); err != nil {
		return 0, err
	}
	var numbers [3]uint64
	for i := range numbers {
		switch numbers[i], err = binary.ReadUvarint(r); {
		case err != nil && r.err == nil:
			return 0, &recordError{"a length in it is no number"}
		case err != nil:
			return 0, err
		}
	}
	key, value := uint32(numbers[0]), uint32(numbers[1]) // as Badger takes them
	switch {
	case key == 0 || key > longestKey:
		return 0, errRecord
	case key+value < key:
		return 0, &recordError{"the lengths of a key and a value in it are none"}
	case int64(key)+int64(value) > r.left:
		return 0, errRecord
	}
	size := int(key) + int(value)
	r.body, r.keyed = slices.Grow(r.body[:0], size)[:size], int(key)
	if err := r.fill(r.body); err != nil {
		return 0, err
	}
	var sum [4]byte
	if err := r.fill(sum[:]); err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(sum[:]) != crc32.Update(crc32.Checksum(r.head, castagnoli), castagnoli, r.body) {
		return 0, errRecord
	}
	r.takes += int64(size) + besideEntry
	return flags, nil
}

// What Badger has in memory beside a key and a value: 32 bytes on average, of which 4 for each
// level of a list that has one and a half; and beside all of them.
const (
	besideEntry   = 44
	besideEntries = 64 << 10
)

// memTable is the least MemTableSize with which Badger has room for each log: it allocates 1.3
// times that, and ends the process if a log does not fit, as that of a store which was opened with
// a larger one, and whose process died.
func (g *guarded) memTable() int64 {
	if g.memory == 0 {
		return 0
	}
	return (g.memory+besideEntries)*10/13 + 1
}

// mostToMake is more than the first transaction of a store has in a log: a name, and a sealed word.
const mostToMake = 4 << 10

// isWhole checks that no transaction is missing that is known of, before Badger cuts the logs where
// it ends to understand them. So a store in which something is missing is left as it is.
func (g *guarded) isWhole(witness, id string) error {
	newest, err := g.newestWhole()
	known := newest > 1
	if err == nil && !known { // what is written behind the ends tells whether the store is new
		for _, e := range g.ends {
			behind, err := e.behind()
			switch {
			case err != nil:
				return err
			case newest == 0 && behind > mostToMake: // not what a crash has left of making the store
				return g.explain(fmt.Errorf("%w: the first transaction is missing", checkpoint.ErrCorrupt))
			}
			known = known || newest == 1 && behind > 0
		}
	}
	if err == nil {
		_, err = readWitness(witness, id, newest, known)
	}
	return g.explain(err)
}

// explain adds to the error of something that is missing where a log can't be read any more.
func (g *guarded) explain(missing error) error {
	if !errors.Is(missing, checkpoint.ErrCorrupt) {
		return missing
	}
	for _, e := range g.ends {
		if behind, err := e.behind(); err == nil && behind > 0 {
			return fmt.Errorf("%w (%s can't be read from byte %d on, and has %d more)", missing, e.path, e.at, behind)
		}
	}
	return missing
}

// newestWhole returns the number of the newest transaction in tables and logs. All that are newer
// than those in tables must be in logs.
func (g *guarded) newestWhole() (newest uint64, err error) {
	slices.Sort(g.logged)
	newest = g.newest
	for _, ts := range g.logged {
		if ts > newest+1 {
			return 0, missing(newest+1, g.logged[len(g.logged)-1])
		}
		newest = max(newest, ts)
	}
	return newest, nil
}

// missing says that a transaction is not there, and what the newest one is.
func missing(ts, newest uint64) error {
	return fmt.Errorf("%w: transaction %d is missing; the newest is %d", checkpoint.ErrCorrupt, ts, newest)
}
