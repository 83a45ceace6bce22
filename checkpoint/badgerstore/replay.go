package badgerstore

import (
	"bufio"
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

// A log of what is in memory, see memLog, is 20 bytes that say how it is encrypted, which it is not, and records. A
// record is a header, the key, the value, and 4 bytes with the CRC-32C of these. The header is a byte of flags, one of the
// user, and three varints: the length of the key, that of the value, and when it expires. The entries of a transaction
// have one flag, and its last record has another one: its value is the number of the transaction in decimal.
const (
	memLogHeader  = 20
	ofTransaction = 1 << 6
	endsOne       = 1 << 7
	longestKey    = 1 << 16
)

// A memReader reads the records of a log of what is in memory.
type memReader struct {
	r     *bufio.Reader
	size  int64 // of the file
	head  []byte
	body  []byte // key and value of the last record
	keyed int    // length of the key
}

// errRecord: there is no record, or none that is whole.
var errRecord = errors.New("no record")

// readLog adds the transactions that Badger will find in the log at path. It goes as far as Badger does, to the first
// record that is damaged, or of which a crash has written a part. There Badger cuts the file, and what is behind is lost:
// whether there must be more has to be known before.
func (g *guarded) readLog(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint: reading a log of the database: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil {
		r := &memReader{r: bufio.NewReaderSize(f, 1<<16), size: info.Size()}
		g.logged, err = r.transactions(g.logged)
	}
	if err != nil && ofSystem(err) != 0 {
		return fmt.Errorf("checkpoint: reading a log of the database: %w", err)
	}
	return nil
}

// transactions appends the numbers of those that are whole. The error says why there are no more.
func (r *memReader) transactions(to []uint64) ([]uint64, error) {
	if _, err := r.r.Discard(memLogHeader); err != nil {
		return to, err
	}
	for current := uint64(0); ; {
		flags, err := r.next()
		if err != nil {
			return to, err
		}
		switch key, value := r.body[:r.keyed], r.body[r.keyed:]; {
		case flags&ofTransaction != 0:
			ts := y.ParseTs(key)
			if current != 0 && ts != current {
				return to, errRecord
			}
			current = ts
		case flags&endsOne != 0:
			ts, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil || ts != current {
				return to, errRecord
			}
			to, current = append(to, ts), 0
		case current != 0:
			return to, errRecord
		}
	}
}

// ReadByte reads a byte of a header.
func (r *memReader) ReadByte() (byte, error) {
	b, err := r.r.ReadByte()
	r.head = append(r.head, b)
	return b, err
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
		if numbers[i], err = binary.ReadUvarint(r); err != nil {
			return 0, err
		}
	}
	key, value := numbers[0], numbers[1]
	if key > longestKey || value > uint64(r.size) {
		return 0, errRecord
	}
	size := int(key + value)
	r.body, r.keyed = slices.Grow(r.body[:0], size)[:size], int(key)
	if _, err := io.ReadFull(r.r, r.body); err != nil {
		return 0, err
	}
	var sum [4]byte
	if _, err := io.ReadFull(r.r, sum[:]); err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(sum[:]) != crc32.Update(crc32.Checksum(r.head, castagnoli), castagnoli, r.body) {
		return 0, errRecord
	}
	return flags, nil
}

// isWhole checks that no transaction is missing that is known of, before Badger cuts the logs where it ends to understand
// them: a store that can't be opened is left as it is.
func (g *guarded) isWhole(witness, id string) error {
	newest, err := g.ends()
	if err != nil {
		return err
	}
	_, err = readWitness(witness, id, newest, newest > 1)
	return err
}

// ends returns the number of the newest transaction in tables and logs. All that are newer than those in tables must
// be in logs.
func (g *guarded) ends() (newest uint64, err error) {
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
