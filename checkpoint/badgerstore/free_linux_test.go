package badgerstore

import (
	"math"
	"syscall"
	"testing"
)

// What is free is counted in the file system's fragments, whatever it likes to be written in, and
// is never too much for a number.
func TestFreeIsCountedInFragments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stat syscall.Statfs_t
		want int64
	}{
		"of one size":         {syscall.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 4096, Frsize: 4096}, 40960},
		"of larger blocks":    {syscall.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 1 << 20, Frsize: 4096}, 40960},
		"of no fragments":     {syscall.Statfs_t{Blocks: 100, Bavail: 10, Bsize: 4096}, 40960},
		"full":                {syscall.Statfs_t{Blocks: 100, Bsize: 4096, Frsize: 4096}, 0},
		"that does not tell":  {syscall.Statfs_t{Bsize: 4096, Frsize: 4096}, math.MaxInt64},
		"as large as can be":  {syscall.Statfs_t{Blocks: math.MaxUint64, Bavail: math.MaxUint64, Bsize: 1, Frsize: 1}, math.MaxInt64},
		"larger than can be":  {syscall.Statfs_t{Blocks: 1 << 62, Bavail: 1 << 62, Bsize: 4096, Frsize: 4096}, math.MaxInt64},
		"of nothing but that": {syscall.Statfs_t{Blocks: 1, Bavail: 1}, 0},
	} {
		if got := freeIn(&c.stat); got != c.want {
			t.Errorf("a device %s: %d bytes are free, want %d", name, got, c.want)
		}
	}
}
