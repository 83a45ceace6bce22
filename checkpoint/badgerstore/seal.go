package badgerstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// Whether a store is encrypted is decided when it is made: then it has a seal, a value that only
// its cipher can open: the id of the key that it is sealed with, and a word that is sealed. It is
// sealed anew when the key to write with is another one, so that a cipher that opens the store has
// the newest key at least.
const sealWord = "pawl"

func sealPlace() place { return place{key: sealKey} }

// setSeal adds the seal to the transaction, if the store has a cipher.
func (s *Store) setSeal(txn *badger.Txn) error {
	if s.cipher == nil {
		return nil
	}
	key, err := s.cipher.key()
	if err != nil {
		return err
	}
	sealedWord, err := s.cipher.seal([]byte(sealWord), s.sealedFor(sealPlace(), sealed))
	if err != nil {
		return err
	}
	var w writer
	w.string(key)
	return txn.Set(sealKey, frame(sealKey, w.b, sealedWord))
}

// seal returns the id of the key that the seal is sealed with, and the sealed word; nil if the
// store is not encrypted.
func (v *view) seal() (key string, sealedWord []byte, err error) {
	value, err := v.get(sealKey)
	if err != nil || value == nil {
		return "", nil, err
	}
	payload, err := unframe(sealKey, value)
	if err != nil {
		return "", nil, fmt.Errorf("checkpoint: the store's seal: %w", err)
	}
	r := reader{b: payload}
	key = r.string()
	if r.bad || len(r.b) == 0 {
		return "", nil, fmt.Errorf("checkpoint: the store's seal: %w", checkpoint.Damage("it can't be read"))
	}
	return key, r.b, nil
}

// checkSeal returns an error unless the store is encrypted and has a cipher that can open it, or
// neither.
func (v *view) checkSeal() error {
	key, sealedWord, err := v.seal()
	c := v.s.cipher
	switch {
	case err != nil:
		return err
	case sealedWord == nil && c == nil:
		return nil
	case sealedWord == nil:
		return fmt.Errorf("%w: the store was made without Options.Cipher: open it without,"+
			" or export its runs and import them into a new store that has one", checkpoint.ErrPlaintext)
	case c == nil:
		return fmt.Errorf("%w: the store is encrypted: give Options.Cipher a keyring that has key %q",
			checkpoint.ErrKey, key)
	}
	word, err := c.open(sealedWord, v.s.sealedFor(sealPlace(), sealed))
	if err == nil && string(word) != sealWord {
		err = checkpoint.Damage("it says something else")
	}
	if errors.Is(err, checkpoint.ErrKey) {
		return &sealError{key, err}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: the store's seal: %w", err)
	}
	return nil
}

// A sealError says with which key a store was last written that its cipher can't open, and names
// the package once, as the cipher's error may.
type sealError struct {
	key string
	err error
}

func (e *sealError) Error() string {
	return fmt.Sprintf("checkpoint: the store was last written with key %q: %s", e.key, strings.TrimPrefix(e.err.Error(), "checkpoint: "))
}

func (e *sealError) Unwrap() error { return e.err }

// sealAgain makes the seal of an encrypted store anew, with the key that is written with now, if it
// has another.
func (s *Store) sealAgain() error {
	if s.cipher == nil {
		return nil
	}
	now, err := s.cipher.key()
	if err != nil {
		return err
	}
	v := s.viewWithin()
	key, _, err := v.seal()
	v.close()
	if err != nil || key == now {
		return err
	}
	return s.commitAlone(s.setSeal)
}
