//go:build !(linux || darwin || freebsd)

package badgerstore

import "os"

// syncsDirs: whether a directory can be synced depends on the system.
const syncsDirs = false

// freeSpace is nil where the system can't be asked: there a full device is found out by
// writing.
var freeSpace func(dir string) (int64, error)

func allocated(info os.FileInfo) int64 { return info.Size() }

// tryLock leaves it to the database to lock its directory.
func tryLock(*os.File) (bool, error) { return true, nil }

func unlock(*os.File) error { return nil }
