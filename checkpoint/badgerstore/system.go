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

// systems are the errors of a system that does not do what it is asked, whatever the files hold:
// what is not permitted, what there is too little of, a device or its server that fails, a file
// system that can't do it. EINVAL and ENOENT are missing: a file that was cut or removed gives
// these. Where one text begins another, as that of ENODEV does that of ENXIO, the longer one is
// first.
var systems = []syscall.Errno{
	syscall.EACCES, syscall.EPERM, syscall.EROFS,
	syscall.ENFILE, syscall.EMFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG,
	syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENOTCONN,
	syscall.EBUSY, syscall.ETXTBSY, syscall.ENOLCK, syscall.EINTR, syscall.ENOSYS, syscall.EOPNOTSUPP,
}

// ofSystem returns what the system's part in an error is, or 0 if it is about what the files hold.
// Badger keeps but the text of such errors.
func ofSystem(err error) syscall.Errno {
	for _, errno := range systems {
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
