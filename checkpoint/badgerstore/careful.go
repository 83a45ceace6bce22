package badgerstore

import (
	"fmt"
	"runtime/debug"

	"github.com/pawlgo/pawl/checkpoint"
)

// A careful cipher is the caller's, of which a panic is an error: a store uses it in goroutines of
// its own and of others, where nobody would recover.
type careful struct{ cipher checkpoint.Cipher }

// carefully returns nil if there is no cipher.
func carefully(c checkpoint.Cipher) *careful {
	if c == nil {
		return nil
	}
	return &careful{c}
}

func (c *careful) key() (id string, err error) {
	defer recovered("Key", &err)
	id = c.cipher.Key()
	if len(id) > keyIDMost || checkpoint.CheckRunID(id) != nil { // which is of as few bytes, and the same else
		return "", &checkpoint.CipherError{Call: "Key", Reason: fmt.Sprintf(
			"returned %.64q (%d bytes), which can't be an id: 1 to %d bytes of UTF-8 without control characters", id, len(id), keyIDMost)}
	}
	return id, nil
}

const keyIDMost = 64 // as of checkpoint.NewKey

// seal returns what plain is when it is sealed. It is not longer than what is read again, and it is
// something: two calls would return the same nothing, which can't be opened. A cipher that squeezes
// may return less than plain.
func (c *careful) seal(plain, place []byte) (b []byte, err error) {
	defer recovered("Seal", &err)
	if b, err = c.cipher.Seal(nil, plain, place); err != nil {
		return nil, fmt.Errorf("checkpoint: sealing: %w", err)
	}
	if len(b) == 0 {
		return nil, &checkpoint.CipherError{Call: "Seal",
			Reason: fmt.Sprintf("returned nothing for %d bytes, and no error: let it return what they are when they are sealed", len(plain))}
	}
	if more := len(b) - len(plain); more > sealingMost {
		return nil, &checkpoint.CipherError{Call: "Seal",
			Reason: fmt.Sprintf("added %d bytes, the limit is %d", more, sealingMost)}
	}
	return b, nil
}

func (c *careful) open(b, place []byte) (plain []byte, err error) {
	defer recovered("Open", &err)
	return c.cipher.Open(nil, b, place)
}

func recovered(call string, err *error) {
	if p := recover(); p != nil {
		*err = &checkpoint.CipherError{Call: call, Reason: fmt.Sprintf("panicked: %v", p), Stack: debug.Stack()}
	}
}
