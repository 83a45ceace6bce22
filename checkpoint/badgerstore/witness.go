package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/pawlgo/pawl/checkpoint"
)

// A witness is a file that says which transaction was the newest when it was last written,
// which is after every synced commit. The database reads many kinds of damage as "there was
// never more": a store that is older than its witness is damaged.
//
// The file is written without a sync, so after a power cut it may be older than the store,
// never newer:
//
//	0  magic "pawi"
//	4  version of the format, 1
//	5  length of the store's id, 36
//	6  the store's id
//	42 number of the transaction, 8 bytes
//	50 CRC-32C of the above
type witness struct {
	file *os.File
	b    [witnessSize]byte
}

const (
	witnessFile  = "witness"
	witnessMagic = "pawi"
	witnessSize  = 54
	idSize       = 36
)

// openWitness opens the witness of a store whose newest transaction is ts, checks it, and
// makes it say so if the store is synced. There must be one if known is true.
func openWitness(
	path, id string, ts uint64, known, synced bool,
) (_ *witness, err error) {
	flags := os.O_RDWR
	if !known {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: the witness %s is missing; an empty file in its place"+
			" makes the store be taken as it is", checkpoint.ErrCorrupt, path)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the witness: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: reading the witness: %w", err)
	}
	if len(b) > 0 {
		if err := testify(b, id, ts); err != nil {
			return nil, fmt.Errorf("%w (witness %s)", err, path)
		}
	}
	w := &witness{file: file}
	if len(b) > 0 && !synced {
		copy(w.b[:], b)
		return w, nil
	}
	copy(w.b[:], witnessMagic)
	w.b[4] = formatV1
	w.b[5] = idSize
	copy(w.b[6:], id)
	if err := w.set(ts); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, fmt.Errorf("checkpoint: syncing the witness: %w", err)
	}
	return w, syncDir(filepath.Dir(path))
}

// testify checks that a store is not older than the witness b says.
func testify(b []byte, id string, ts uint64) error {
	if len(b) != witnessSize || string(b[:4]) != witnessMagic {
		return fmt.Errorf("%w: the witness can't be read", checkpoint.ErrCorrupt)
	}
	if b[4] != formatV1 {
		return fmt.Errorf("%w: witness of version %d", checkpoint.ErrVersion, b[4])
	}
	if binary.BigEndian.Uint32(b[50:]) != crc32.Checksum(b[:50], castagnoli) {
		return fmt.Errorf("%w: the checksum of the witness differs", checkpoint.ErrCorrupt)
	}
	if string(b[6:42]) != id {
		return fmt.Errorf("%w: the witness is of store %.36q", checkpoint.ErrCorrupt, b[6:42])
	}
	if seen := binary.BigEndian.Uint64(b[42:]); seen > ts {
		return fmt.Errorf("%w: the store ends at transaction %d, but has been at %d",
			checkpoint.ErrCorrupt, ts, seen)
	}
	return nil
}

// set writes the number of the newest transaction.
func (w *witness) set(ts uint64) error {
	binary.BigEndian.PutUint64(w.b[42:], ts)
	binary.BigEndian.PutUint32(w.b[50:], crc32.Checksum(w.b[:50], castagnoli))
	if _, err := w.file.WriteAt(w.b[:], 0); err != nil {
		return fmt.Errorf("checkpoint: writing the witness: %w", err)
	}
	return nil
}

func (w *witness) close() error {
	return errors.Join(w.file.Sync(), w.file.Close())
}
