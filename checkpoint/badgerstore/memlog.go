package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// A memLog is the log that Badger keeps of what is in memory: files 00001.mem, 00002.mem and so on, of which
// it begins another one in a commit that finds the last one full.
//
// A store syncs it itself where it can: told to sync, Badger syncs with every transaction its value log too,
// in which there is nothing, and a commit waits twice as long. See ADR 0048.
type memLog struct {
	dir    *os.Root // of the database, whatever its path names by now
	number int      // of the newest file
	file   *os.File
}

const memLogExt = ".mem"

// openMemLog opens the log of the open database in dir.
func openMemLog(dir string) (l *memLog, err error) {
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
	l = &memLog{dir: root}
	return l, l.open(newest)
}

// open goes on to the file of that number, if there is one.
func (l *memLog) open(number int) error {
	file, err := l.dir.Open(fmt.Sprintf("%05d%s", number, memLogExt))
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close() // it was only synced
	}
	l.number, l.file = number, file
	return nil
}

// sync makes durable what was committed since it was called last, which is one transaction: so all of it is
// in the newest file, and those before it are durable already.
func (l *memLog) sync() error {
	for {
		switch err := l.open(l.number + 1); {
		case errors.Is(err, fs.ErrNotExist):
			return syncData(l.file)
		case err != nil:
			return err
		}
	}
}

func (l *memLog) close() error { return errors.Join(l.file.Close(), l.dir.Close()) }

func (s *Store) closeLog() error {
	if s.log == nil {
		return nil
	}
	return s.log.close()
}
