package main

import (
	"os"
	"syscall"
)

// syncData syncs what is in f.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
