//go:build darwin || freebsd

package badgerstore

import "syscall"

// freeBlocks returns how many blocks are free, which is less than none where only root may still
// write, and how large one is.
func freeBlocks(stat *syscall.Statfs_t) (blocks, size int64) {
	return int64(stat.Bavail), int64(stat.Bsize)
}
