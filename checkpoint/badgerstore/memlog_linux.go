package badgerstore

import (
	"errors"
	"os"
	"syscall"
)

// syncsMapped: what a process has written to a file through a memory map is synced with the file.
// It is what msync does here.
const syncsMapped = true

// syncData makes durable what is in a file, and its size.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
