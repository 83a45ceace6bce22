package record_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
)

// leaf and node are the hashes of RFC 6962, section 2.1.
func leaf(t *testing.T, contentHash string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(contentHash)
	done(t, err)
	sum := sha256.Sum256(slices.Concat([]byte{0}, raw))
	return sum[:]
}

func node(left, right []byte) []byte {
	sum := sha256.Sum256(slices.Concat([]byte{1}, left, right))
	return sum[:]
}
