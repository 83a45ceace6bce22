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

// checkWitness refuses what can't be the path of the witness of the store in dir, before anything is made.
func checkWitness(path, dir string) error {
	refuse := func(reason string) error {
		return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "option Witness", Reason: path + " " + reason}
	}
	found, missed := os.Stat(path)
	if missed == nil {
		if kind := oddKind(found.Mode()); kind != "" { // reading it need not end
			return refuse("is " + kind + ": name a file")
		}
	}
	if filepath.Dir(path) == filepath.Clean(dir) {
		return nil // which may not exist yet
	}
	if info, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return refuse("is in no directory: make that, or name another path")
	} else if err != nil {
		return fmt.Errorf("checkpoint: option Witness: %w", err)
	}
	if missed == nil && found.Size() > 0 && !exists(filepath.Join(dir, nameFile)) && !exists(filepath.Join(dir, databaseDir)) {
		return refuse("is the witness of a store, or no witness, and " + dir + " holds no store: if it did, bring it back, or name the directory where it is; else give each store a file of its own")
	}
	return nil
}

// readWitness reads the witness of a store whose newest transaction is ts, and checks it. There must be one if
// known is true. Nothing in it, or none, says nothing.
func readWitness(path, id string, ts uint64, known bool) ([]byte, error) {
	b, err := readSmall(path, witnessSize)
	var odd *oddFileError
	switch {
	case errors.As(err, &odd):
		return nil, &damageError{"the witness " + path + " can't be read: " + odd.Error(), asItIs}
	case errors.Is(err, os.ErrNotExist) && known:
		return nil, &damageError{"the witness " + path + " is missing", asItIs}
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("checkpoint: reading the witness: %w", err)
	case len(b) == 0:
		return nil, nil
	}
	return b, testify(b, path, id, ts)
}

// openWitness opens the witness of a store whose newest transaction is ts, checks it as readWitness does, and makes it
// say so if the store is synced.
func openWitness(path, id string, ts uint64, known, synced bool) (_ *witness, err error) {
	b, err := readWitness(path, id, ts, known)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the witness: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
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

// What to do about a witness.
const (
	asItIs  = "put the witness back, or: an empty file in its place makes the store be taken as it is"
	newest  = "bring back what is missing, or the newest copy of the store; who makes the witness an empty file gives up transactions %d to %d"
	ownFile = "put the right " + nameFile + " or witness back; where Options.Witness says where it is, give each store a file of its own"
)

// testify checks that a store is not older than the witness b at that path says.
func testify(b []byte, path, id string, ts uint64) error {
	if len(b) != witnessSize || string(b[:4]) != witnessMagic {
		return &damageError{"the witness " + path + " can't be read", asItIs}
	}
	if b[4] != formatV1 {
		return fmt.Errorf("%w: witness %s of version %d: use the program that made it", checkpoint.ErrVersion, path, b[4])
	}
	if binary.BigEndian.Uint32(b[50:]) != crc32.Checksum(b[:50], castagnoli) {
		return &damageError{"the checksum of the witness " + path + " differs", asItIs}
	}
	if string(b[6:42]) != id {
		return &damageError{fmt.Sprintf("the witness %s is of store %.36q, and the directory says that it is store %q", path, b[6:42], id), ownFile}
	}
	if seen := binary.BigEndian.Uint64(b[42:]); seen > ts {
		return &damageError{
			fmt.Sprintf("the store ends at transaction %d, but has been at %d, says the witness %s", ts, seen, path),
			fmt.Sprintf(newest, ts+1, seen),
		}
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
