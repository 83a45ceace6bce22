//go:build linux || darwin || freebsd

package badgerstore

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// syncsDirs: a directory can be synced like a file.
const syncsDirs = true

// freeSpace returns how many bytes an ordinary user may still write beside dir.
func freeSpace(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return freeIn(&stat), nil
}

// freeIn returns how many bytes are free, or more than anything needs of a file system that does
// not tell, such as one in memory without a limit: there a full device is found out by writing.
func freeIn(stat *syscall.Statfs_t) int64 {
	if stat.Blocks == 0 {
		return math.MaxInt64
	}
	blocks, size := freeBlocks(stat)
	if size > 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64
	}
	return blocks * size
}

// allocated returns how much of the device a file has, which is less than its size if it has holes.
func allocated(info os.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512
	}
	return info.Size()
}

// tryLock locks the file for this process, and reports false if another has it locked.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives the lock back, whoever else has the file open: a process that is being forked has it
// for a moment, and with it a lock that is only closed.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
