package checkpoint_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

var keyBytes = []byte("how I wonder what you are, keys!")

func keyOf(t testing.TB, id string, first byte) checkpoint.Key {
	t.Helper()
	b := bytes.Clone(keyBytes)
	b[0] = first
	k, err := checkpoint.NewKey(id, b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keyringOf(t testing.TB, write checkpoint.Key, read ...checkpoint.Key) *checkpoint.Keyring {
	t.Helper()
	r, err := checkpoint.NewKeyring(write, read...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sealOf(t testing.TB, r *checkpoint.Keyring, plain, place string) []byte {
	t.Helper()
	sealed, err := r.Seal([]byte("before"), []byte(plain), []byte(place))
	if err != nil || string(sealed[:6]) != "before" {
		t.Fatalf("Seal = %q, %v", sealed, err)
	}
	return sealed[6:]
}

// What a keyring seals it opens, and says nothing without: no text, and not twice the same.
func TestKeyringOpensWhatItSeals(t *testing.T) {
	r := keyringOf(t, keyOf(t, "one", 1))
	for _, plain := range []string{"", "a", strings.Repeat("secret ", 1000)} {
		sealed := sealOf(t, r, plain, "place")
		if plain != "" && bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, sealOf(t, r, plain, "place")) {
			t.Errorf("%q is sealed as %q", plain, sealed)
		}
		if got, err := r.Open([]byte("before"), sealed, []byte("place")); err != nil || string(got) != "before"+plain {
			t.Errorf("Open = %q, %v", got, err)
		}
	}
}

// An altered byte, a byte less, and another place are found, and nothing is given out.
func TestKeyringFindsWhatWasAltered(t *testing.T) {
	r := keyringOf(t, keyOf(t, "one", 1), keyOf(t, "two", 2))
	sealed := sealOf(t, r, "secret", "place")
	for i := range sealed {
		for _, bit := range []byte{1, 0x80} {
			altered := bytes.Clone(sealed)
			altered[i] ^= bit
			got, err := r.Open(nil, altered, []byte("place"))
			// Of a key's id that was altered nobody knows that it was.
			if got != nil || !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrKey) {
				t.Errorf("byte %d altered: %q, %v", i, got, err)
			}
			if i >= len("xone")+4 && !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("byte %d altered: %v, want ErrCorrupt", i, err)
			}
		}
		if got, err := r.Open(nil, sealed[:i], []byte("place")); got != nil || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("cut off at %d: %q, %v", i, got, err)
		}
	}
	if got, err := r.Open(nil, sealed, []byte("another")); got != nil || !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("in another place: %q, %v", got, err)
	}
}

// Of several keys one is written with and all are read with. A key that is missing is ErrKey and
// named, and so is one that has the id of another.
func TestKeyringRotates(t *testing.T) {
	one, two := keyOf(t, "one", 1), keyOf(t, "two", 2)
	old := sealOf(t, keyringOf(t, one), "secret", "place")
	both := keyringOf(t, two, one)
	if got, err := both.Open(nil, old, []byte("place")); err != nil || string(got) != "secret" || both.Key() != "two" {
		t.Errorf("Open = %q, %v with key %q", got, err, both.Key())
	}
	for name, r := range map[string]*checkpoint.Keyring{
		"without the key": keyringOf(t, two), "with another key of its id": keyringOf(t, two, keyOf(t, "one", 3)),
	} {
		got, err := r.Open(nil, old, []byte("place"))
		if got != nil || !errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrCorrupt) ||
			!strings.Contains(err.Error(), `key "one"`) {
			t.Errorf("%s: Open = %q, %v, want ErrKey that names it", name, got, err)
		}
	}
}

// No way of printing a key, a keyring or what holds one shows what the key is.
func TestKeysAreNotPrinted(t *testing.T) {
	k := keyOf(t, "the id", keyBytes[0])
	r := keyringOf(t, k)
	holder := struct {
		Key     checkpoint.Key
		Cipher  checkpoint.Cipher
		key     checkpoint.Key
		cipher  checkpoint.Cipher
		keyring *checkpoint.Keyring
	}{k, r, k, r, r}
	var all strings.Builder
	for _, v := range []any{k, &k, r, *r, holder, &holder, []checkpoint.Key{k}, map[string]any{"k": k, "r": r}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%T"} {
			fmt.Fprintf(&all, verb+"\n", v)
		}
		text, err := json.Marshal(v)
		fmt.Fprintln(&all, string(text), err)
	}
	text := strings.ToLower(all.String())
	decimal := strings.Trim(fmt.Sprint(keyBytes[:8]), "[]")
	for _, shown := range []string{
		string(keyBytes[:8]), hex.EncodeToString(keyBytes[:8]), decimal, strings.ReplaceAll(decimal, " ", ","),
		strings.ToLower(base64.StdEncoding.EncodeToString(keyBytes)[:10]), "0x68, 0x6f",
	} {
		if strings.Contains(text, shown) {
			t.Errorf("%q is shown in\n%s", shown, text)
		}
	}
	if k.String() != `key "the id"` || r.String() != `keyring of "the id"` || fmt.Sprintf("%#v", r) != r.String() {
		t.Errorf("%v, %v, %#v", k, r, r)
	}
}

// What can't be a key is refused with what to give.
func TestKeysThatCannotBe(t *testing.T) {
	k := keyOf(t, "one", 1)
	var argument *checkpoint.ArgumentError
	for name, err := range map[string]error{
		"no id":                   second(checkpoint.NewKey("", keyBytes)),
		"a long id":               second(checkpoint.NewKey(strings.Repeat("i", 65), keyBytes)),
		"a bad id":                second(checkpoint.NewKey("a\nb", keyBytes)),
		"a short key":             second(checkpoint.NewKey("k", keyBytes[1:])),
		"a long key":              second(checkpoint.NewKey("k", append(bytes.Clone(keyBytes), 1))),
		"the zero key":            second(checkpoint.NewKeyring(checkpoint.Key{})),
		"a zero key to read with": second(checkpoint.NewKeyring(k, checkpoint.Key{})),
		"an id twice":             second(checkpoint.NewKeyring(k, keyOf(t, "one", 2))),
	} {
		if !errors.As(err, &argument) {
			t.Errorf("%s: %v, want an ArgumentError", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// FuzzOpen: nothing that was not sealed is opened, and nothing makes Open fail in another way.
func FuzzOpen(f *testing.F) {
	r := keyringOf(f, keyOf(f, "one", 1))
	f.Add(sealOf(f, r, "secret", "elsewhere"))
	f.Add([]byte("\x03one"))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		got, err := r.Open(nil, sealed, []byte("place"))
		if got != nil || !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrKey) {
			t.Errorf("Open = %q, %v", got, err)
		}
	})
}
