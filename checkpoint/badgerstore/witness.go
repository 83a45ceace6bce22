package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawlgo/pawl/checkpoint"
)

// A witness is a file that says which transaction was the newest when it was last written,
// which is after every synced commit. The database reads many kinds of damage as "there was
// never more": a store that is older than its witness is damaged.
//
// The file is locked while the store is open: a copy of the store that had the same witness would
// write its own number over a newer one. It is written in place, so that the lock stays with it.
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
	path string
	file *os.File // locked; nil if there is none yet
	b    [witnessSize]byte
}

const (
	witnessFile  = "witness"
	witnessMagic = "pawi"
	witnessSize  = 54
	idSize       = 36
)

// checkWitness refuses what can't be the path of the witness of the store in dir, before anything
// is made.
func checkWitness(path, dir string) error {
	refuse := func(reason string) error {
		return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "option Witness", Reason: path + " " + reason}
	}
	if strings.ContainsRune(path, 0) { // which the system would refuse without a word of the option
		path = strconv.Quote(path)
		return refuse("holds a NUL, as no path does: name a file")
	}
	found, missed := os.Stat(path)
	if missed == nil {
		if kind := oddKind(found.Mode()); kind != "" { // reading it need not end
			return refuse("is " + kind + ": name a file")
		}
	}
	switch clean := filepath.Clean(dir); { // which may not exist yet
	case filepath.Clean(path) == clean:
		return refuse("is the directory of the store: name a file")
	case filepath.Dir(path) == clean:
		if name := strings.TrimSuffix(filepath.Base(path), newExt); slices.Contains([]string{lockFile, nameFile, inventoryFile, databaseDir}, name) {
			return refuse("is what a store has there itself: name another file")
		}
		return nil
	}
	if info, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		return refuse("is in no directory: make that, or name another path")
	} else if err != nil {
		return fmt.Errorf("checkpoint: option Witness: %w", err)
	}
	if missed == nil && found.Size() > 0 && !exists(filepath.Join(dir, nameFile)) && !exists(filepath.Join(dir, databaseDir)) {
		return refuse("is the witness of a store, or no witness, and " + dir + " holds no store: if it did, bring it back, or name the directory where it is; else give each store a file of its own")
	}
	return nil
}

// readWitness reads the witness of a store whose newest transaction is ts, and checks it. There
// must be one if known is true. Nothing in it, or none, says nothing.
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

// lockWitness locks the witness at that path, if there is one. ErrLocked if another open store has
// it.
func lockWitness(path string) (*witness, error) {
	w := &witness{path: path}
	if err := w.lock(0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return w, nil
}

// lock opens and locks the file. With the flag os.O_CREATE it is made if it is missing.
func (w *witness) lock(flag int) error {
	for range 10 {
		file, err := os.OpenFile(w.path, os.O_RDWR|flag, 0o600)
		if err != nil {
			return fmt.Errorf("checkpoint: opening the witness: %w", err)
		}
		ok, err := tryLock(file)
		switch {
		case err != nil:
			err = fmt.Errorf("checkpoint: locking the witness: %w", err)
		case !ok:
			err = fmt.Errorf("%w: another open store, perhaps a copy of this one, has %s as its witness: close that one, or give each store a file of its own",
				checkpoint.ErrLocked, w.path)
		}
		if err != nil {
			_ = file.Close()
			return err
		}
		if isAt(file, w.path) {
			w.file = file
			return nil
		}
		_ = unlockFile(file) // it was replaced before it was locked
	}
	return fmt.Errorf("checkpoint: locking the witness: %s is replaced again and again", w.path)
}

// isAt reports whether that is the file at the path.
func isAt(file *os.File, path string) bool {
	is, err := file.Stat()
	if err != nil {
		return true // what it is used for fails as well, and says so
	}
	at, err := os.Stat(path)
	return err == nil && os.SameFile(is, at)
}

// open checks the witness of a store whose newest transaction is ts as readWitness does, after
// making it if it may be missing, and makes it say so if the store is synced.
func (w *witness) open(id string, ts uint64, known, synced bool) error {
	if w.file != nil && !isAt(w.file, w.path) { // it was replaced since it was locked
		_ = w.release()
		w.file = nil
		if err := w.lock(0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	b, err := readWitness(w.path, id, ts, known)
	if err == nil && w.file == nil {
		if err = w.lock(os.O_CREATE); err == nil {
			b, err = readWitness(w.path, id, ts, known) // another store may have made it
		}
	}
	if err != nil {
		return err
	}
	if len(b) > 0 && !synced {
		copy(w.b[:], b)
		return nil
	}
	copy(w.b[:], witnessMagic)
	w.b[4] = formatV1
	w.b[5] = idSize
	copy(w.b[6:], id)
	if err := w.set(ts); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("checkpoint: syncing the witness: %w", err)
	}
	return syncDir(filepath.Dir(w.path))
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

func (w *witness) close() error { return errors.Join(w.file.Sync(), w.release()) }

// release gives the lock back, if there is one.
func (w *witness) release() error {
	if w.file == nil {
		return nil
	}
	return unlockFile(w.file)
}
