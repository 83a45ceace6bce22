//go:build !linux

package badgerstore

import "os"

// syncsMapped: whether syncing a file takes in what was written through a memory map depends on the
// system, so it is left to Badger.
const syncsMapped = false

func syncData(f *os.File) error { return f.Sync() }
