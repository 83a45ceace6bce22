package checkpoint

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

const (
	keySize   = 32
	maxKeyID  = 64
	checkSize = 4  // of the check of a key
	nonceSize = 24 // twelve bytes choose the key of one value, twelve are GCM's nonce
)

// A Key is one key of a [Keyring], and its id. However it is printed, only the id is shown.
type Key struct {
	id string
	// Behind a pointer, which packages that print by reflection do not follow.
	secret *secret
}

// A secret is what a key does. It derives the key of one value as XAES-256-GCM does
// (c2sp.org/XAES-256-GCM): from the first half of a random nonce.
type secret struct {
	block cipher.Block
	mask  [aes.BlockSize]byte // the K1 of CMAC
	check [checkSize]byte     // tells the key from another one that was given its id
}

// NewKey returns the key of 32 random bytes, and of an id that tells it from the keys before it:
// 1 to 64 bytes of UTF-8 without control characters, "2026-11" say. Stores keep the id in the
// clear. NewKey does not keep the bytes: the caller may overwrite them.
func NewKey(id string, key []byte) (Key, error) {
	if len(id) > maxKeyID || badID(id) != "" {
		return Key{}, &ArgumentError{"NewKey", "id",
			fmt.Sprintf("%.64q can't be one: give 1 to %d bytes of UTF-8 without control characters", id, maxKeyID)}
	}
	if len(key) != keySize {
		return Key{}, &ArgumentError{"NewKey", "key",
			fmt.Sprintf("has %d bytes: give %d of crypto/rand", len(key), keySize)}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Key{}, fmt.Errorf("checkpoint: a key of AES-256: %w", err)
	}
	s := &secret{block: block}
	block.Encrypt(s.mask[:], s.mask[:])
	carry := byte(0)
	for i := len(s.mask) - 1; i >= 0; i-- {
		carry, s.mask[i] = s.mask[i]>>7, s.mask[i]<<1|carry
	}
	s.mask[len(s.mask)-1] ^= carry * 0x87
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte("pawl: which key is this"))
	copy(s.check[:], sum.Sum(nil))
	return Key{id, s}, nil
}

// ID returns the id of the key.
func (k Key) ID() string { return k.id }

// String returns the id of the key.
func (k Key) String() string { return fmt.Sprintf("key %q", k.id) }

// GoString returns the id of the key.
func (k Key) GoString() string { return k.String() }

// forValue returns AES-256-GCM with the key that the first half of a nonce chooses.
func (s *secret) forValue(nonce []byte) (cipher.AEAD, error) {
	key := make([]byte, 0, keySize)
	for _, counter := range []byte{1, 2} {
		key = append(append(key, 0, counter, 'X', 0), nonce[:12]...)
		half := key[len(key)-aes.BlockSize:]
		subtle.XORBytes(half, half, s.mask[:])
		s.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
