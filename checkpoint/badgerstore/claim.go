package badgerstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
)

// The files of a store beside its database.
const (
	lockFile = "LOCK"      // locked by the process that has the store open; see sayState
	nameFile = "pawl.json" // a name, by which a directory is known to be a store
)

// A name is what nameFile holds.
type name struct {
	Format int    `json:"format"` // oldestFormat to newestFormat
	Store  string `json:"store"`
}

// The formats that a store can have: how its keys are made, see keys.go. It keeps the one that it
// was made with.
const (
	oldestFormat = 1
	newestFormat = 3
)

// inDatabase is how the database says whose it is: the store's id, and a byte for a format above 1.
func (n name) inDatabase() []byte {
	if n.Format == 1 {
		return []byte(n.Store)
	}
	return append([]byte(n.Store), byte(n.Format))
}

// claim locks dir for this process, after making it a store if it is empty or does not exist, and
// returns the lock and the store's name. It writes nothing into a directory that is neither empty
// nor a store, or is a store of an unknown format, and makes nothing where fewer bytes than the
// reserve are free.
func claim(dir string, reserve int64) (_ *os.File, n name, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, n, refuseDir(dir + " is a file: name a directory")
	} else if link, e := os.Lstat(dir); errors.Is(err, os.ErrNotExist) && e == nil && link.Mode()&os.ModeSymlink != 0 {
		return nil, n, refuseDir(dir + " is a link to what is not there: name a directory, or make that one")
	} else if file := fileAbove(dir); file != "" {
		return nil, n, refuseDir(dir + " can't be made, for " + file + " is a file: name another directory")
	}
	was, err := readName(dir)
	if err != nil {
		return nil, n, err
	}
	if was.Store == "" {
		if err := roomToMake(dir, reserve); err != nil {
			return nil, n, err
		}
	}
	if err := makeDir(dir); err != nil {
		return nil, n, fmt.Errorf("checkpoint: making the store's directory: %w", err)
	}
	lock, err := lockDir(dir)
	if errors.Is(err, syscall.EROFS) && was.Store != "" {
		err = fmt.Errorf("%w: a store is opened for writing, also to read it: copy it to where that can be done, and open the copy", err)
	}
	if err != nil {
		return nil, n, err
	}
	defer func() {
		if err != nil {
			_ = unlockFile(lock)
		}
	}()
	// Again: another process may have made the store before we had the lock.
	if n, err = readName(dir); err != nil || n.Store != "" {
		return lock, n, err
	}
	// Whoever made dir may have been killed before its name was durable. If somebody else made it,
	// as the place where a device is mounted, it may be that nothing above it can be synced.
	_ = syncDir(filepath.Dir(filepath.Clean(dir)))
	n = name{Format: newestFormat, Store: newID()}
	return lock, n, writeName(dir, n)
}

// fileAbove returns the path above dir that is no directory, "" if there is none.
func fileAbove(dir string) string {
	for d := filepath.Dir(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.IsDir() {
			return ""
		} else if err == nil {
			return d
		}
	}
	return ""
}

// roomToMake returns ErrFull if a store in dir, which may not exist yet, would have too little
// room. It is asked before anything is made: to remove that again could hit what another process
// has begun there.
func roomToMake(dir string, reserve int64) error {
	room := space{dir: dir, reserve: reserve, free: freeSpace}
	if room.free == nil {
		return nil
	}
	room.free = func(at string) (int64, error) { // of the directory in which it is to be made
		for at = filepath.Clean(at); at != filepath.Dir(at); at = filepath.Dir(at) {
			if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
				break
			}
		}
		return freeSpace(at)
	}
	return room.check(time.Now(), 0)
}

// makeDir makes dir and the directories above it where they are missing, and their names durable: a
// store that is synced is of no use in a directory that a power cut takes away.
func makeDir(dir string) error {
	var above []string
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		above = append(above, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range above {
		if err := syncDir(d); err != nil && !errors.Is(err, os.ErrPermission) { // one may make what one may not read
			return err
		}
	}
	return nil
}

// mostName is how large nameFile may be. It has some 70 bytes; a later version may have it say
// more, and its format is to be read all the same.
const mostName = 64 << 10

// readName returns the name of the store in dir, the zero one if dir is empty or does not exist.
func readName(dir string) (n name, err error) {
	path := filepath.Join(dir, nameFile)
	text, err := readSmall(path, mostName)
	if errors.Is(err, os.ErrNotExist) {
		refused := empty(dir)
		if refused == nil {
			return n, nil
		}
		if text, err = readSmall(path, mostName); errors.Is(err, os.ErrNotExist) { // else somebody has made the store meanwhile
			return n, refused
		}
	}
	var odd *oddFileError
	if errors.As(err, &odd) {
		return n, fmt.Errorf("%w: %s can't be read: %w", checkpoint.ErrCorrupt, path, err)
	}
	if err != nil {
		return n, fmt.Errorf("checkpoint: reading the store's name: %w", err)
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return n, fmt.Errorf("%w: %s can't be read: %w", checkpoint.ErrCorrupt, path, err)
	}
	if n.Format < oldestFormat || n.Format > newestFormat {
		return n, fmt.Errorf("%w: %s is a store of format %d, and this program has formats %d to %d: use the program that made it",
			checkpoint.ErrVersion, dir, n.Format, oldestFormat, newestFormat)
	}
	if len(n.Store) != idSize {
		return n, fmt.Errorf("%w: %s names no store", checkpoint.ErrCorrupt, path)
	}
	return n, nil
}

// empty returns an error if dir holds anything but what an interrupted claim leaves, and
// what a new file system does.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checkpoint: reading the store's directory: %w", err)
	}
	if exists(filepath.Join(dir, databaseDir, badger.ManifestFilename)) {
		for _, ours := range []string{lockFile, witnessFile, inventoryFile} {
			if exists(filepath.Join(dir, ours)) {
				return fmt.Errorf("%w: %s holds the database of a store, and %s is missing", checkpoint.ErrCorrupt, dir, nameFile)
			}
		}
		return refuseDir(fmt.Sprintf("%s holds a database in %q, and nothing beside it by which a store is known: name another one, or if this was a store restore it from a backup",
			dir, databaseDir))
	}
	for _, e := range entries {
		switch e.Name() {
		case lockFile, nameFile + newExt, "lost+found":
		default:
			return refuseDir(fmt.Sprintf("%s is neither empty nor a store: it holds %q and no %s: name another",
				dir, e.Name(), nameFile))
		}
	}
	return nil
}

// missesDatabase returns an error if there is no database though a witness says that there was one,
// or something else in its place.
func missesDatabase(dir, witness string) error {
	db := filepath.Join(dir, databaseDir)
	if exists(db) {
		info, err := os.Stat(db)
		if err == nil && !info.IsDir() || errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %s is no directory", checkpoint.ErrCorrupt, db)
		}
		return nil
	}
	if info, err := os.Stat(witness); err != nil || info.Size() == 0 {
		return nil // it was not made yet, or is to be taken as it is
	}
	return fmt.Errorf("%w: %s is missing, and the witness says that there was one", checkpoint.ErrCorrupt, db)
}

// refuseDir is the error of a directory that can't be that of a store. Nothing in it has changed.
func refuseDir(reason string) error {
	return &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "directory", Reason: reason}
}

// writeName makes dir a store, in one step.
func writeName(dir string, n name) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, nameFile), append(text, '\n')); err != nil {
		return fmt.Errorf("checkpoint: naming the store: %w", err)
	}
	return nil
}

// newExt is what the name of a file ends in that is to take the place of one.
const newExt = ".new"

// replaceFile makes text what the file at path has, durably and in one step.
func replaceFile(path string, text []byte) error {
	if err := writeSynced(path+newExt, text); err != nil {
		return err
	}
	if err := os.Rename(path+newExt, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, text []byte) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &damageError{path + " is a directory", "remove it: the store makes a file of that name"}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the names in dir durable, where the system can do that.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("checkpoint: syncing %s: %w", dir, err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil && syncsDirs {
		return fmt.Errorf("checkpoint: syncing %s: %w", dir, err)
	}
	return nil
}

// lockDir locks dir for this process, as long as the file it returns is open.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	if info, err := os.Stat(path); err == nil {
		if kind := oddKind(info.Mode()); kind != "" { // which need not lock anything, or nothing else
			return nil, &damageError{path + " is " + kind, "remove it: the store makes a file of that name"}
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: locking the store: %w", err)
	}
	ok, err := tryLock(f)
	if err == nil && !ok {
		err = locked(dir, f)
	}
	if err == nil {
		_ = f.Truncate(0)
		err = sayState(f, opening)
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, checkpoint.ErrLocked) {
			return nil, err
		}
		return nil, fmt.Errorf("checkpoint: locking the store: %w", err)
	}
	return f, nil
}

// A lockState says what the process that has a lock is doing. All are of one length, so that one is
// written over another at once.
type lockState string

const (
	opening lockState = "opening"
	isOpen  lockState = "is open"
	closing lockState = "closing"
	isLost  lockState = "is lost"
)

// sayState writes into a lock file which process has it, what that is doing, and the process's id.
func sayState(lock *os.File, state lockState) error {
	_, err := lock.WriteAt([]byte(thisProcess()+"\n"+string(state)+"\n"+processID()+"\n"), 0)
	return err
}

// processID tells this process from others of its number and host name, as those in containers may
// be.
var processID = sync.OnceValue(newID)

// unlockFile gives the lock of a file back and closes it, also where a process that was forked has
// inherited it.
func unlockFile(f *os.File) error { return errors.Join(unlock(f), f.Close()) }

// thisProcess is how this process is named to others: by its number, and its host if that has a
// name.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		return strconv.Itoa(os.Getpid())
	}
	return fmt.Sprintf("%d on %s", os.Getpid(), host)
}

// locked is the error of a directory that another Store has locked: of the process that the lock
// file names, if it names one. An earlier version writes no id there, so it is another process.
func locked(dir string, lock *os.File) error {
	var said [400]byte
	n, _ := lock.ReadAt(said[:], 0)
	lines := append(strings.Split(string(said[:n]), "\n"), "", "")
	process, state, here := lines[0], lockState(lines[1]), lines[2] == processID()
	who, way := "another process", "end that one, or use another directory"
	if here {
		who, way = "this process", "wait until that is over, or use another directory"
	}
	if process != "" {
		who += " (" + process + ")"
	}
	what := dir + " is open"
	switch {
	case state == opening:
		what = "an Open of " + dir + " has not ended, perhaps one that was given up since the disk does not answer"
	case state == closing:
		what = "a Store in " + dir + " is closing, perhaps on a disk that does not answer or has no room"
	case state == isLost:
		what, way = dir+" was moved or replaced while it was open", "end that process, or use another directory"
	case here:
		what, way = what+" in another Store", "share that one, or close it"
	}
	return fmt.Errorf("%w by %s: %s: %s", checkpoint.ErrLocked, who, what, way)
}

// newID returns the id of a new store.
func newID() string { return uuid.NewString() }
