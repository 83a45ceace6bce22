//go:build !linux

package badgerstore

// yieldThread does nothing where nothing is known to be gained.
func yieldThread() {}
