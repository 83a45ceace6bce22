package badgerstore

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A frame of another version is ErrVersion if it is whole, and damage if it is not: a flipped bit
// is never taken for a format to come.
func TestFrameOfAnotherVersion(t *testing.T) {
	key := []byte("key")
	b := frame(key, []byte("payload"))
	b[4]++
	if _, err := unframe(key, b); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("with a byte that was changed: %v, want ErrCorrupt", err)
	}
	binary.BigEndian.PutUint32(b[10:], frameSum(key, b))
	if _, err := unframe(key, b); !errors.Is(err, checkpoint.ErrVersion) {
		t.Errorf("as a later version writes it: %v, want ErrVersion", err)
	}
}
