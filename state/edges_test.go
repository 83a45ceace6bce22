package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// What is no number is refused in the words of the package, by type and by cell.
func TestEdgesNumbersThatAreNone(t *testing.T) {
	for _, test := range []struct {
		typ      state.Type
		in, want string
	}{
		{typeOf[int](), "null", "state: null is no int: want a whole number"},
		{typeOf[int](), "1.5", "state: 1.5 is no int: want a whole number"},
		{typeOf[int8](), "200", "state: 200 is no int8: it is out of the range of int8"},
		{typeOf[uint](), "-1", "state: -1 is no uint: want a whole number that is not negative"},
		{typeOf[float64](), "true", "state: true is no float64: want a number"},
		{typeOf[float32](), "1e99", "state: 1e99 is no float32: it is out of the range of float32"},
		{typeOf[map[int]bool](), `{"x":true}`, `want a whole number`},
	} {
		err := test.typ.Accepts([]byte(test.in))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	type tally struct {
		N state.Sum[int32]
		F state.Sum[float64]
	}
	schema, err := state.Of[tally]()
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"N":1.5}`:        "want a whole number",
		`{"N":3000000000}`: "it is out of the range of int32",
		`{"F":1e999}`:      "it is out of the range of float64",
	} {
		_, err := schema.Parse([]byte(in))
		var e *state.ParseError
		if !errors.As(err, &e) || fmt.Sprint(e.Err) != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}
