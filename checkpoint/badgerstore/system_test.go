package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// errors.Is finds the system's part in an error of which Badger kept but the text. A full device is
// ErrFull, and damage stays damage.
func TestErrorsTellTheirReason(t *testing.T) {
	for _, errno := range systems {
		text := errors.New("while syncing a file: " + errno.Error() + ", retrying")
		full := errno == syscall.ENOSPC || errno == syscall.EDQUOT
		for _, err := range []error{text, fmt.Errorf("opening: %w", errno)} {
			got := typed(err)
			if errors.Is(got, checkpoint.ErrFull) != full || !full && (!errors.Is(got, errno) || ofSystem(err) != errno) {
				t.Errorf("typed(%v) = %v", err, got)
			}
		}
	}
	if err := typed(errors.New("a file: " + syscall.EACCES.Error())); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is not fs.ErrPermission", err)
	}
	for _, err := range []error{nil, errors.New("something else"), checkpoint.Damage("it holds: " + syscall.EIO.Error())} {
		if got := typed(err); got != err {
			t.Errorf("typed(%v) = %v", err, got)
		}
	}
}
