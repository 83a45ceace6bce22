package state_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// Valid is json.Valid, whatever a byte more, less, or another one makes of JSON.
func TestValidIsThatOfEncodingJSON(t *testing.T) {
	alike := func(raw []byte) {
		t.Helper()
		if is, want := state.Valid(raw), json.Valid(raw); is != want {
			t.Errorf("%q is valid: %t, want %t", raw, is, want)
		}
	}
	for _, doc := range []string{
		``, ` `, `null`, `true`, `-0.5e+10`, `"a\u00e9\n\"\\/"`, `{"a":[1,{},[],{"b":null}],"c":"x y","":false}`, " [ 1 ,\t2 ]\r\n", `[10,0,-1]`,
		"\"é\xff\"", "\"12345678\x01\"", `"12345678\u12g4"`, strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		alike([]byte(doc))
		if len(doc) > 100 {
			continue
		}
		for i := range doc {
			alike([]byte(doc[:i]))
			for _, c := range []byte("\"\\,:{}[]x019-.eE+tn \x00\x01\x7f\xff") {
				changed := []byte(doc)
				changed[i] = c
				alike(changed)
				alike(slices.Insert([]byte(doc), i, c))
			}
		}
		alike([]byte(doc + "\x00"))
		alike([]byte(doc + doc))
	}
}
