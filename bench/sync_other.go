//go:build !linux

package main

import "os"

// syncData syncs f.
func syncData(f *os.File) error { return f.Sync() }
