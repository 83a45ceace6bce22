package badgerstore

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/pawlgo/pawl/checkpoint"
)

// A systemError is an error whose reason errors.Is finds, though it was kept as a text only.
type systemError struct {
	error
	reason syscall.Errno
}

func (e *systemError) Unwrap() []error { return []error{e.error, e.reason} }

// ofSystem returns what the system's part in an error is, or 0 if it is about what the files hold.
// Badger keeps but the text of such errors.
func ofSystem(err error) syscall.Errno {
	for _, errno := range []syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS,
	} {
		if errors.Is(err, errno) || strings.Contains(err.Error(), errno.Error()) {
			return errno
		}
	}
	return 0
}

// typed returns the error of an Open or a Close as one that tells its reason: ErrFull if the device
// had no room, and else the system's.
func typed(err error) error {
	if err == nil || errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrFull) {
		return err
	}
	switch errno := ofSystem(err); {
	case errno == syscall.ENOSPC, errno == syscall.EDQUOT:
		return fmt.Errorf("%w: make room: %w", checkpoint.ErrFull, err)
	case errno != 0 && !errors.Is(err, errno):
		return &systemError{err, errno}
	}
	return err
}
