package checkpoint

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The derivation of keys is that of XAES-256-GCM: the vectors are those of its specification.
func TestKeysAreDerivedAsPublished(t *testing.T) {
	for _, v := range []struct {
		key         byte
		place, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		key, err := NewKey("k", bytes.Repeat([]byte{v.key}, keySize))
		if err != nil {
			t.Fatal(err)
		}
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		aead, err := key.secret.forValue(nonce)
		if err != nil {
			t.Fatal(err)
		}
		got := aead.Seal(nil, nonce[12:], []byte("XAES-256-GCM"), []byte(v.place))
		if hex.EncodeToString(got) != v.want {
			t.Errorf("key %d seals to %x, want %s", v.key, got, v.want)
		}
	}
}
