package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// A memLog is the log that Badger keeps of what is in memory: files 00001.mem, 00002.mem and so on,
// of which it begins another one in a commit that finds the last one full.
//
// A store syncs it itself where it can: told to sync, Badger syncs with every transaction its value
// log too, in which there is nothing, and a commit waits twice as long. See ADR 0048.
type memLog struct {
	db     *badger.DB
	dir    *os.Root // of the database, whatever its path names by now
	number int      // of the newest file
	file   *os.File // nil if it could not be opened yet
}

const memLogExt = ".mem"

// openMemLog opens the log of the open database in dir.
func openMemLog(db *badger.DB, dir string) (l *memLog, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the database: %w", err)
	}
	defer func() {
		if err != nil {
			_ = root.Close()
			err = fmt.Errorf("checkpoint: opening the database: %w", err)
		}
	}()
	names, err := fs.Glob(root.FS(), "*"+memLogExt)
	if err != nil {
		return nil, err
	}
	newest := 0
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimSuffix(name, memLogExt))
		if err != nil {
			return nil, fmt.Errorf("%s is no log of Badger's", name)
		}
		newest = max(newest, n)
	}
	l = &memLog{db: db, dir: root, number: newest}
	return l, l.open()
}

func (l *memLog) name(number int) string { return fmt.Sprintf("%05d%s", number, memLogExt) }

// open opens the newest file.
func (l *memLog) open() (err error) {
	l.file, err = l.dir.Open(l.name(l.number))
	return err
}

// sync makes durable what was committed since it was called last, which is one transaction: so all
// of it is in the newest file, and those before it are durable already. Asking for another file
// takes no descriptor, which there may be none of; to a file that can't be opened for such a reason
// Badger has one, and syncs it with its value log.
func (l *memLog) sync() error {
	for {
		_, err := l.dir.Lstat(l.name(l.number + 1))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		l.closeFile()
		l.number++
	}
	if l.file == nil {
		if err := l.open(); errors.Is(err, fs.ErrNotExist) {
			return err
		} else if err != nil {
			return l.db.Sync()
		}
	}
	return syncData(l.file)
}

// closeFile closes the file, if it is open, which was only synced.
func (l *memLog) closeFile() {
	_ = l.file.Close()
	l.file = nil
}

func (l *memLog) close() error {
	l.closeFile()
	return l.dir.Close()
}

func (s *Store) closeLog() error {
	if s.log == nil {
		return nil
	}
	return s.log.close()
}
