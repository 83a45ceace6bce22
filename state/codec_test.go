package state_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/pawlgo/pawl/state"
)

// sameJSON checks that Encode of v is what encoding/json writes.
func sameJSON[T any](t *testing.T, v T) {
	t.Helper()
	got, err := state.Encode(&v)
	if want := asJSON(t, &v); err != nil || string(got) != want {
		t.Errorf("%T: %s, %v, want %s", v, got, err, want)
	}
	if typ, err := state.TypeOf[T](); err == nil && typ.Accepts(got) != nil {
		t.Errorf("%T: %s is not accepted as what it is: %v", v, got, typ.Accepts(got))
	}
}

// louder marshals itself, and only where it can be pointed to.
type louder struct{ S string }

func (l *louder) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(l.S)), nil }
func (l *louder) UnmarshalText(b []byte) error { l.S = strings.ToLower(string(b)); return nil }

type branch struct {
	Name string
	Sub  []branch
}

type (
	within struct{ In string }
	Within struct{ In string }
)

type manyBytes []byte

// A struct is what encoding/json makes of it, by whichever way it is encoded.
func TestEncodingOfStructsIsThatOfEncodingJSON(t *testing.T) {
	one, text := 1, "a<b>\u2028"
	ptr := &text
	for _, s := range trickyStrings {
		sameJSON(t, struct {
			A string
			B []string  `json:"b&b"`
			C *word     `json:"é"`
			D [2]within `json:"a b"`
		}{s, []string{s, "", s}, (*word)(&s), [2]within{{s}}})
	}
	sameJSON(t, struct {
		Bool   bool
		I8     int8
		U64    uint64
		F      float64
		Dur    time.Duration
		Floats []float64
		//lint:ignore SA5008 what encoding/json makes of it is what is tested
		Bad string `json:"\\"` // no name: that of the field
	}{true, math.MinInt8, math.MaxUint64, 1e-7, time.Hour, []float64{0, 1e21, math.Copysign(0, -1)}, "x"})
	sameJSON(t, struct {
		N     []int
		E     []int
		P     *int
		Q     *int
		PP    **string
		Lists [][]string
		Arr   [0]string
		None  []struct{}
		Opt   *[]int
	}{nil, []int{}, nil, &one, &ptr, [][]string{nil, {}, {"a"}}, [0]string{}, make([]struct{}, 2), &[]int{1}})
	sameJSON(t, struct {
		Bytes []byte
		Named manyBytes
		Fixed [3]byte
		Some  []uint16
	}{[]byte("abc"), manyBytes("abc"), [3]byte{1, 2, 3}, []uint16{1}})
	sameJSON(t, struct {
		Loud  louder
		Louds []louder
		Ptr   *louder
		At    time.Time
	}{louder{"a"}, []louder{{"b"}}, &louder{"c"}, time.Unix(1, 2).UTC()})
	sameJSON(t, branch{"a", []branch{{"b", nil}, {"c", []branch{}}}})
	sameJSON(t, struct {
		within
		A string
	}{within{"x"}, "y"})
	sameJSON(t, struct {
		Within
		A string
	}{Within{"x"}, "y"})
	sameJSON(t, struct {
		*within
		A string
	}{A: "y"})
	type named *int
	sameJSON(t, struct {
		A named `json:",string"`
		B *int  `json:",string"`
	}{&one, &one})
	sameJSON(t, struct {
		A string `json:"a,omitempty"`
		B int    `json:",string"`
		C []int  `json:",omitempty"`
		//lint:ignore SA5008 what encoding/json makes of it is what is tested
		D string `json:"-,"`
	}{B: 7, D: "d"})
	sameJSON(t, struct {
		Skip string `json:"-"`
		A    string
		b    string
	}{"s", "a", "b"})
	sameJSON(t, struct {
		A string `json:"B"`
		B string
		C string
	}{"a", "b", "c"})
	sameJSON(t, struct {
		F32 float32
		M   map[string]int
		Any any
	}{1.1, map[string]int{"b": 1, "a": 2}, []any{1, "<"}})
}

// made is what reflection makes up.
type made struct {
	S  string
	N  []int16
	P  *struct{ A, B string }
	L  []struct{ F float64 }
	U  [2]uint
	LL [][]*bool
}

// What reflection makes up is written as encoding/json writes it.
func TestEncodingOfMadeUpStructs(t *testing.T) {
	typ, err := state.TypeOf[made]()
	if err != nil {
		t.Fatal(err)
	}
	if err := quick.Check(func(v made) bool {
		got, err := state.Encode(&v)
		return err == nil && string(got) == asJSON(t, v) && typ.Accepts(got) == nil
	}, nil); err != nil {
		t.Error(err)
	}
}

// What JSON can't say is refused wherever it stands.
func TestEncodingRefusesWhatJSONCannotSay(t *testing.T) {
	type box struct {
		S []*struct{ T [1]string }
		F []float64
	}
	for _, bad := range []string{"\xff", "a\xc0b", "é\xed\xa0\x80", strings.Repeat("x", 99) + "\x80"} {
		if got, err := state.Encode(&box{S: []*struct{ T [1]string }{nil, {[1]string{bad}}}}); !errors.Is(err, state.ErrUTF8) {
			t.Errorf("%q: %s, %v", bad, got, err)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got, err := state.Encode(&box{F: []float64{1, bad}}); err == nil {
			t.Errorf("%v: %s", bad, got)
		}
	}
	if got, err := state.Encode(&box{F: []float64{1}}); err != nil || string(got) != `{"S":null,"F":[1]}` {
		t.Errorf("after a refusal: %s, %v", got, err)
	}
}

// readsAs checks that a cell reads raw as encoding/json does.
func readsAs[T any](t *testing.T, raw string) {
	t.Helper()
	type holder struct{ V state.Value[T] }
	img, err := schemaOf[holder](t).Parse([]byte(`{"V":` + raw + `}`))
	if err != nil {
		t.Errorf("%s: %v", raw, err)
		return
	}
	var want T
	wrong := json.Unmarshal([]byte(raw), &want)
	got, err := func() (v T, err error) {
		defer func() {
			if e, ok := recover().(*state.DecodeError); ok {
				err = e
			}
		}()
		return img.Value().(*holder).V.Get(), nil
	}()
	if (err != nil) != (wrong != nil) || wrong == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %#v, %v, want %#v, %v", raw, got, err, want, wrong)
	}
	decodesAs[T](t, raw)
	decodesAs[T](t, " "+raw+"\n")
	decodesAs[T](t, strings.TrimSuffix(raw, "]"))
	decodesAs[T](t, strings.TrimSuffix(raw, `"`))
}

// decodesAs checks that Decode reads raw as encoding/json does.
func decodesAs[T any](t *testing.T, raw string) {
	t.Helper()
	var got, want T
	lent := []byte(raw)
	err, wrong := state.Decode(lent, &got), json.Unmarshal([]byte(raw), &want)
	clear(lent) // what was read keeps nothing of it
	if (err != nil) != (wrong != nil) || wrong == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%q is decoded as %#v, %v, want %#v, %v", raw, got, err, want, wrong)
	}
}

type leaf struct {
	S string
	N *int8
	L []float64
	A [2]bool
	U uint16
}

// A struct is read as encoding/json reads it, whoever wrote it.
func TestReadingOfStructsIsThatOfEncodingJSON(t *testing.T) {
	for _, raw := range []string{
		`{"S":"a","N":1,"L":[1,2.5,-1e-7],"A":[true,false],"U":7}`,
		`{"S":"","N":null,"L":null,"A":[false,false],"U":0}`,
		`{"S":"","N":-128,"L":[],"A":[false,true],"U":65535}`,
		`{"U":7,"S":"other order","N":1,"L":[],"A":[true,false]}`,
		`{"S":"fewer"}`, `{}`, `null`,
		`{"S":"more","N":1,"L":[],"A":[true,false],"U":7,"X":{"y":[1]}}`,
		`{"s":"other case","N":1,"L":[],"A":[true,false],"U":7}`,
		`{ "S" : "spaces" , "N":1,"L":[ 1 , 2 ],"A":[true,false],"U":7}`,
		`{"S":null,"N":1,"L":[1],"A":null,"U":null}`,
		`{"S":"a","N":128,"L":[],"A":[true,true],"U":7}`,    // too large
		`{"S":"a","N":1,"L":[1e999],"A":[true,true],"U":7}`, // as well
		`{"S":"a","N":1,"L":[],"A":[true,true],"U":-1}`,
		`{"S":"a","N":1.5,"L":[],"A":[true,true],"U":1}`,
		`{"S":"a","N":1,"L":[null,2],"A":[true,true],"U":1}`,
		`{"S":"a","N":1,"L":[],"A":[true],"U":1}`,
		`{"S":"a","N":1,"L":[],"A":[true,true,true],"U":1}`,
		`{"S":"a","N":1,"L":{},"A":[true,true],"U":1}`,
		`{"S":7,"N":1,"L":[],"A":[true,true],"U":1}`,
		`{"S":"a","N":"1","L":[],"A":[true,"true"],"U":1}`,
		`{"S":"a","N":1,"L":[-0,0.0,1E5],"A":[true,true],"U":1}`,
		`[]`, `7`, `"x"`,
	} {
		readsAs[leaf](t, raw)
		readsAs[[]leaf](t, `[`+raw+`]`)
		readsAs[*leaf](t, raw)
		readsAs[[2]*leaf](t, `[null,`+raw+`]`)
	}
	for _, s := range []string{
		`a`, `\n\t\r\b\f\"\\\/`, `\u0041\u00e9\u2028\ufffd`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `é\u0000é`, `日本語\n`, `12345678\n12345678é\n`, "\ufffd",
	} {
		readsAs[leaf](t, `{"S":"`+s+`","N":1,"L":[],"A":[true,true],"U":1}`)
		readsAs[[]string](t, `["`+s+`","","`+s+`"]`)
		readsAs[*word](t, `"`+s+`"`)
	}
	readsAs[string](t, `"a"`)
	readsAs[[]int](t, `[]`)
	for _, raw := range []string{"\"\xff\"", `]`, `[01]`, `NaN`, `"a`, `"`, ``, "\"a\" ", "7\n", `+7`, `0x7`} {
		decodesAs[string](t, raw)
		decodesAs[[]string](t, "["+raw+"]")
		decodesAs[[]int](t, raw)
		decodesAs[[]float64](t, "["+raw+"]")
		decodesAs[float64](t, raw)
		decodesAs[int](t, raw)
		decodesAs[bool](t, raw)
	}
	readsAs[**string](t, `null`)
	readsAs[**string](t, `"x"`)
	readsAs[*[]int](t, `null`)
	readsAs[[][]int](t, `[null,[],[1]]`)
	readsAs[[0]int](t, `[]`)
	readsAs[[]branch](t, `[{"Name":"a","Sub":[{"Name":"b","Sub":null}]}]`)
}

// What has been written is read back the same.
func TestReadingOfMadeUpStructs(t *testing.T) {
	if err := quick.Check(func(v made) bool {
		_, back, err := stored(t, v)
		return err == nil && reflect.DeepEqual(back, v)
	}, nil); err != nil {
		t.Error(err)
	}
}

type (
	twice0  struct{ A, B *twice1 }
	twice1  struct{ A, B *twice2 }
	twice2  struct{ A, B *twice3 }
	twice3  struct{ A, B *twice4 }
	twice4  struct{ A, B *twice5 }
	twice5  struct{ A, B *twice6 }
	twice6  struct{ A, B *twice7 }
	twice7  struct{ A, B *twice8 }
	twice8  struct{ A, B *twice9 }
	twice9  struct{ A, B *twice10 }
	twice10 struct{ A, B *twice11 }
	twice11 struct{ A, B *twice12 }
	twice12 struct{ A, B int }
)

// A type that is met again costs nothing again.
func TestCodecsAreMadeOnceForAType(t *testing.T) {
	var v twice0
	if raw, err := state.Encode(&v); err != nil || string(raw) != `{"A":null,"B":null}` {
		t.Errorf("%s, %v", raw, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if raw, err := state.Encode(new(*twice0)); err != nil || string(raw) != "null" {
		t.Errorf("%s, %v", raw, err)
	}
	if runtime.ReadMemStats(&after); after.Mallocs-before.Mallocs > 2_000 {
		t.Errorf("%d allocations for a codec of thirteen types", after.Mallocs-before.Mallocs)
	}
}

type (
	deep0  []int
	deep1  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep0
	deep2  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep1
	deep3  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep2
	deep4  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep3
	deep5  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep4
	deep6  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep5
	deep7  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep6
	deep8  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep7
	deep9  [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep8
	deep10 [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep9
	deep11 [][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][][]deep10
)

// A type that is nested too deep is refused when a value is, also if nothing in it marshals itself.
func TestCodecsAreNotTooDeep(t *testing.T) {
	var v deep11
	for at := reflect.ValueOf(&v).Elem(); at.Kind() == reflect.Slice; at = at.Index(0) {
		at.Set(reflect.MakeSlice(at.Type(), 1, 1))
	}
	if _, err := state.Encode(&v); !errors.Is(err, state.ErrDepth) {
		t.Errorf("more than %d lists in each other: %v", state.MaxDepth, err)
	}
}
