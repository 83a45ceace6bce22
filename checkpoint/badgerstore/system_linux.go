package badgerstore

import (
	"math"
	"syscall"
)

// freeBlocks returns how many blocks are free, and how large one is. Their unit is not the size of
// a block in which the file system likes to be written to, which may be larger, as in those of
// FUSE.
func freeBlocks(stat *syscall.Statfs_t) (blocks, size int64) {
	size = int64(stat.Frsize)
	if size == 0 {
		size = int64(stat.Bsize)
	}
	return int64(min(stat.Bavail, math.MaxInt64)), size
}
