package checkpoint

// A Cipher keeps what a store holds from anybody who can read its files. A [Keyring] is one; write
// your own to leave the keys with a key service. It is called by many goroutines at once, also by
// those that append, which wait as long as it does. If it panics the call that needed it returns a
// [*CipherError]. It must not end its goroutine, as runtime.Goexit does.
type Cipher interface {
	// Key returns the id of the key that Seal uses now: 1 to 64 bytes of UTF-8 without control
	// characters. Stores keep it in the clear.
	Key() string

	// Seal appends the sealed form of plain to dst and returns all of it. The place names the one
	// value that plain may be read as. It is not part of what is returned: Open is given it again.
	// No two calls may return the same for the same arguments, so the sealed form is never empty; a
	// store makes a [*CipherError] of an empty one. Seal keeps none of its arguments, and changes
	// nothing but dst, which does not overlap them.
	Seal(dst, plain, place []byte) ([]byte, error)

	// Open appends to dst what Seal was given, and returns all of it. ErrKey if the key that it
	// was sealed with is not at hand, or another one has its id; ErrCorrupt if sealed was
	// altered, or was sealed for another place: then nothing of it is returned.
	Open(dst, sealed, place []byte) ([]byte, error)
}
