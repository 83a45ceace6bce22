package storetest

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
)

// A mebibyte of noise is more than a store keeps in one piece, whether it compresses or not.
const mebibyte = 1 << 20

// noise returns text that hardly compresses, of so many bytes, at most mostLarge, scaled to what
// the store is said to hold. It needs no escapes in JSON, and is always the same.
func (t *trial) noise(n int) string {
	n = t.size(n)
	return strings.Repeat(allNoise(), 1+(n-1)/mostLarge)[:n] // which copies none of it up to mostLarge
}

// quoted is noise as JSON.
func (t *trial) quoted(n int) json.RawMessage { return json.RawMessage(`"` + t.noise(n) + `"`) }

var allNoise = sync.OnceValue(func() string {
	random := make([]byte, mostLarge/4*3)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // never fails
	return base64.StdEncoding.EncodeToString(random)
})
