package checkpoint

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Keyring is a [Cipher]: AES-256-GCM with one key to write with and any number to read with.
//
//	key, err := checkpoint.NewKey("2026-11", secret) // 32 bytes of crypto/rand
//	keys, err := checkpoint.NewKeyring(key)
//	store, err := badgerstore.Open(ctx, dir, badgerstore.Options{Cipher: keys})
//
// To rotate, make a new key the one to write with and give the old one to read with. What is
// written from then on is sealed with the new one; an old key has to be kept as long as there is
// anything that was sealed with it.
//
// Each value has a key of its own, derived from the keyring's and from half of a random nonce of
// 192 bits (XAES-256-GCM). So there is no count of values at which a key wears out: by chance
// two share a nonce with a probability of 2⁻³² only after 2⁸⁰ of them. A value grows by 45 bytes
// and the id of its key.
//
// It is used by many goroutines at once. However it is printed, only the ids of keys are shown.
type Keyring struct {
	write Key
	keys  map[string]Key
}

var _ Cipher = (*Keyring)(nil)

// NewKeyring returns the keyring that seals with the key write, and opens what was sealed with
// it or with one of the others. No two keys may have the same id.
func NewKeyring(write Key, read ...Key) (*Keyring, error) {
	r := &Keyring{write: write, keys: make(map[string]Key, 1+len(read))}
	for _, k := range append([]Key{write}, read...) {
		if k.secret == nil {
			return nil, &ArgumentError{"NewKeyring", "key", "is the zero Key: make one with NewKey"}
		}
		if _, twice := r.keys[k.id]; twice {
			return nil, &ArgumentError{"NewKeyring", "key", fmt.Sprintf("%q is given twice: give each key an id of its own", k.id)}
		}
		r.keys[k.id] = k
	}
	return r, nil
}

// Key implements [Cipher].
func (r *Keyring) Key() string { return r.write.id }

// String returns the ids of the keys, the one to write with first.
func (r *Keyring) String() string {
	if r == nil {
		return "no keyring"
	}
	ids := []string{fmt.Sprintf("%q", r.write.id)}
	for _, id := range slices.Sorted(maps.Keys(r.keys)) {
		if id != r.write.id {
			ids = append(ids, fmt.Sprintf("%q", id))
		}
	}
	return "keyring of " + strings.Join(ids, ", ")
}

// GoString returns what String does.
func (r *Keyring) GoString() string { return r.String() }

// What is sealed has a head, which is authenticated with the place: the length of the key's id,
// the id, and the check of the key. Then come the nonce, the text and the tag.

// Seal implements [Cipher].
func (r *Keyring) Seal(dst, plain, place []byte) ([]byte, error) {
	k := r.write
	head := make([]byte, 0, 1+len(k.id)+checkSize+len(place))
	head = append(append(append(head, byte(len(k.id))), k.id...), k.secret.check[:]...)
	dst = slices.Grow(dst, len(head)+nonceSize+len(plain)+tagSize)
	dst = append(dst, head...)
	nonce := dst[len(dst) : len(dst)+nonceSize]
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	aead, err := k.secret.forValue(nonce)
	if err != nil {
		return nil, err
	}
	dst = dst[:len(dst)+nonceSize]
	return aead.Seal(dst, nonce[12:], plain, append(head, place...)), nil
}

const tagSize = 16

// Open implements [Cipher].
func (r *Keyring) Open(dst, sealed, place []byte) ([]byte, error) {
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0])+checkSize+nonceSize+tagSize {
		return nil, damage("what is sealed is cut off")
	}
	at := 1 + int(sealed[0])
	head, rest := sealed[:at+checkSize], sealed[at+checkSize:]
	k, ok := r.keys[string(head[1:at])]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: it needs key %.64q, which is not in the %v: give that one to read with",
			ErrKey, head[1:at], r)
	case !bytes.Equal(head[at:], k.secret.check[:]):
		return nil, fmt.Errorf("%w: key %q is not the key of that id that it was sealed with: give that one to read with",
			ErrKey, k.id)
	}
	aead, err := k.secret.forValue(rest[:nonceSize])
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(dst, rest[12:nonceSize], rest[nonceSize:], slices.Concat(head, place))
	if err != nil {
		return nil, damage("what is sealed was altered, or stands in another place")
	}
	return plain, nil
}
