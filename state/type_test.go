package state_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/state"
)

func typeOf[A any]() state.Type {
	t, err := state.TypeOf[A]()
	if err != nil {
		panic(err)
	}
	return t
}

type quotedNumbers struct {
	F float64     `json:",string"`
	N json.Number `json:",string"`
}

type quotedText struct {
	S string `json:",string"`
}

// What is new is looked at closely, as far as every process can; what was accepted once is accepted
// for ever.
func TestDecodes(t *testing.T) {
	for _, test := range []struct {
		typ     state.Type
		yes, no []string
	}{
		{typeOf[int8](), []string{"-128"}, []string{"128"}},
		{typeOf[time.Time](), []string{`"2026-01-02T03:04:05.6Z"`, "null"}, []string{"1", `""`, `"whatever"`, `"2026-13-01T00:00:00Z"`}},
		{typeOf[[]*big.Int](), []string{"[12345678901234567890, null]"}, []string{`["x"]`, "[1.5]"}},
		{typeOf[json.Number](), []string{"1e9"}, []string{`"x"`, "{}"}},
		{typeOf[map[string]netip.Addr](), []string{`{"a":"::1"}`}, []string{`{"a":"here"}`}},
		{typeOf[netip.Prefix](), []string{`"10.0.0.0/8"`}, []string{`"10.0.0.0"`}},
		{typeOf[map[int8]int](), []string{`{"-7":1,"0":2,"10":3}`}, []string{`{"007":1}`, `{"-07":1}`, `{"-0":1}`}},
		{typeOf[map[uint]int](), []string{`{"0":1,"7":2}`}, []string{`{"00":1}`}},
		{typeOf[quotedNumbers](), []string{`{"F":"1.5e3","N":"12"}`, `{"F":"-0","N":"1e9"}`}, []string{`{"F":"NaN"}`, `{"F":"-Inf"}`, `{"N":"x"}`}},
		{typeOf[quotedText](), []string{`{"S":"\"abc\""}`, `{"S":"\"\\n\""}`}, []string{`{"S":"\"abc"}`, `{"S":"\"a\"b\""}`, `{"S":"\"\n\""}`, `{"S":"\""}`, `{"S":"\"abc\" "}`}},
		{state.Type{Kind: "own", Name: "example.com/paint.Color"}, []string{`"whatever"`, "1", "null"}, nil},
	} {
		for _, in := range test.yes {
			if err := test.typ.Decodes([]byte(in)); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
		for _, in := range test.no {
			if err := test.typ.Decodes([]byte(in)); err == nil {
				t.Errorf("%s decodes %s", test.typ, in)
			}
			if err := test.typ.Accepts([]byte(in)); err != nil && test.typ.Kind != "int8" {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
}

func TestAccepts(t *testing.T) {
	type answer struct {
		Ok    bool   `json:"ok"`
		Note  string `json:"note,omitempty"`
		Extra *int
		Size  int `json:",string"`
	}
	tests := []struct {
		typ     state.Type
		yes, no []string
	}{
		{typeOf[bool](), []string{"true", " false "}, []string{"1", "null", `"true"`, "", "true false", "tru"}},
		{typeOf[int8](), []string{"-128", "127", "0"}, []string{"128", "1.0", "1e1", `"1"`, "null", "01"}},
		{typeOf[uint16](), []string{"65535"}, []string{"65536", "-1", "null"}},
		{typeOf[int](), []string{"9223372036854775807"}, []string{"9223372036854775808"}},
		{typeOf[float32](), []string{"1", "-1.5e3"}, []string{"1e39", `"1"`, "null", "[]"}},
		{typeOf[float64](), []string{"1e300"}, []string{"1e400"}},
		{typeOf[string](), []string{`"é\n"`, `"\ud800"`}, []string{"1", "null", "\"\xff\"", `"`}},
		{typeOf[[]byte](), []string{`"YQ=="`, "null"}, []string{`"a"`, "[1]", "1"}},
		{typeOf[[]int](), []string{"[1,2]", "[]", "null"}, []string{`["1"]`, "{}", "[1,]", "[null]"}},
		{typeOf[[2]int](), []string{"[1,2]"}, []string{"[1]", "[1,2,3]", "null"}},
		{typeOf[*int](), []string{"1", "null"}, []string{`"1"`}},
		{typeOf[map[string]int](), []string{`{"a":1}`, "null"}, []string{`{"a":"1"}`, "[]", `{"a":1,"a":2}`}},
		{typeOf[map[int8]int](), []string{`{"-7":1}`}, []string{`{"a":1}`, `{"128":1}`}},
		{typeOf[time.Time](), []string{`"whatever"`, "1", "null"}, []string{"", "nul"}},
		{typeOf[answer](), []string{`{}`, `{"ok":true,"note":"n","Extra":null,"Size":"5"}`}, []string{
			`{"OK":true}`, `{"ok":1}`, `{"other":1}`, "null", `{"Size":5}`, `{"Size":"x"}`, `{"Extra":"1"}`, `[]`, `{"ok":true,"ok":true}`,
		}},
		{typeOf[quotedNumbers](), []string{`{"N":"12"}`, `{"F":"1.5"}`}, []string{`{"N":12}`, `{"F":1.5}`, `{"F":"x"}`}},
		{typeOf[node](), []string{`{"Next":{"Next":null,"Kids":{"k":[{}]}}}`}, []string{`{"Next":{"Next":1}}`, `{"Kids":{"k":[{"Next":[]}]}}`}},
		{typeOf[list](), []string{`[[],[[]],null]`}, []string{`[[1]]`}},
		{state.Type{}, nil, []string{"1", "null"}},
		{state.Type{Kind: "ref", Up: 1}, nil, []string{"1"}},
		{state.Type{Kind: "pointer", Elem: &state.Type{Kind: "ref", Up: 1}}, nil, []string{"1", "null"}}, // of which there is no value
		{state.Type{Kind: "list", Elem: &state.Type{Kind: "pointer", Elem: &state.Type{Kind: "pointer", Elem: &state.Type{Kind: "ref", Up: 2}}}}, nil, []string{"[1]"}},
		{state.Type{Kind: "list", Elem: &state.Type{Kind: "pointer", Elem: &state.Type{Kind: "ref", Up: 2}}}, []string{"[[],null]"}, []string{"[1]"}},
		{state.Type{Kind: "list"}, nil, []string{"[1]"}},
		{state.Type{Kind: "map", Key: &state.Type{Kind: "bool"}, Elem: &state.Type{Kind: "int"}}, nil, []string{"{}"}},
		{state.Type{Kind: "object", Fields: []state.Field{{Name: "a"}}}, nil, []string{"{}"}},
	}
	for _, test := range tests {
		for _, in := range test.yes {
			if err := test.typ.Accepts([]byte(in)); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
		for _, in := range test.no {
			if err := test.typ.Accepts([]byte(in)); err == nil {
				t.Errorf("%s accepts %s", test.typ, in)
			}
		}
	}
	err := typeOf[map[string][]answer]().Accepts([]byte(`{"k":[{},{"ok":"yes"}]}`))
	want := `state: {"k":[{},{"ok":"yes"}]} is no map[string][]{Extra: *int, Size: int, note: string, ok: bool} at ["k"][1].ok: want true or false`
	if fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A list costs what its elements do: nothing of an element that fits is for an error.
func TestAcceptsAllocatesForNoElement(t *testing.T) {
	long := []byte("[" + strings.Repeat("7,", 999) + "7]")
	typ := typeOf[[]int]()
	if n := testing.AllocsPerRun(20, func() { _ = typ.Accepts(long) }); n > 20 {
		t.Errorf("%v allocations for a list of 1000 elements, want 20 at most", n)
	}
}

func TestTypesAreEqualIfTheirJSONIs(t *testing.T) {
	type a struct {
		X int
		Y string `json:"y"`
	}
	type b struct {
		Why string `json:"y"`
		X   int    `json:",omitempty"`
	}
	type c struct {
		X int64
		Y string `json:"y"`
	}
	raw := func(t state.Type) string { return fmt.Sprint(mustJSON(t)) }
	if raw(typeOf[a]()) != raw(typeOf[b]()) {
		t.Errorf("%s and %s differ", raw(typeOf[a]()), raw(typeOf[b]()))
	}
	if raw(typeOf[a]()) == raw(typeOf[c]()) {
		t.Errorf("%s is that of another type, too", raw(typeOf[a]()))
	}
	for _, typ := range []state.Type{typeOf[a](), typeOf[node](), typeOf[quoted](), typeOf[map[int][3]*time.Time]()} {
		var back state.Type
		if err := json.Unmarshal([]byte(raw(typ)), &back); err != nil || raw(back) != raw(typ) {
			t.Errorf("%s, %v, want %s", raw(back), err, raw(typ))
		}
	}
	if _, err := state.TypeOf[func()](); fmt.Sprint(err) != "state: func() is nothing that JSON can bring back" {
		t.Errorf("a func has a type: %v", err)
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
