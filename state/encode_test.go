package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// asJSON is encoding/json without HTML escapes.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// stored returns the JSON of v in a Value, and v as it comes back.
func stored[T any](t testing.TB, v T) (string, T, error) {
	t.Helper()
	s := schemaOf[struct{ V state.Value[T] }](t)
	img := s.New()
	img.Value().(*struct{ V state.Value[T] }).V.Set(v)
	d, err := img.Delta()
	if err != nil {
		return "", v, err
	}
	if err := img.Apply(d); err != nil {
		t.Fatal(err)
	}
	back := reparse(t, s, img).Value().(*struct{ V state.Value[T] }).V.Get()
	return strings.TrimSuffix(strings.TrimPrefix(string(img.AppendJSON(nil)), `{"V":`), "}"), back, nil
}

func check[T comparable](t *testing.T, v T) {
	t.Helper()
	enc, back, err := stored(t, v)
	if want := asJSON(t, v); err != nil || enc != want || back != v {
		t.Errorf("%#v: %s, %#v, %v, want %s", v, enc, back, err, want)
	}
}

type word string

var trickyStrings = []string{
	"", "a", "12345678", "1234567\"", "12345678\\", "\x00\x01\b\t\n\v\f\r\x1f", "\x7f", "é", "日本語の文字", "\u2028\u2029",
	"<b>&amp;</b>", "😀", "\ufffd", "a\ufffdb", `\ufffd`, `\\ufffd`, strings.Repeat("x", 1000) + "\n", "1234567\u20281234567é",
}

// What pawl encodes without encoding/json is what encoding/json would write.
func TestEncodingIsThatOfEncodingJSON(t *testing.T) {
	for _, s := range trickyStrings {
		check(t, s)
		check(t, word(s))
		check(t, book{s, len(s)})
		check(t, [2]word{word(s)})
	}
	r := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		s := strings.Builder{}
		for range r.IntN(20) {
			s.WriteRune([]rune{'a', 'z', '"', '\\', '\n', 0x1f, 0x7f, 'é', 0x2028, 0xfffd, 0x1f600}[r.IntN(11)])
		}
		check(t, s.String())
	}
	for _, n := range []int{0, 1, -1, 9, 10, math.MaxInt, math.MinInt} {
		check(t, n)
		check(t, int64(n))
		check(t, int32(n))
		check(t, uint64(n))
		check(t, int8(n))
	}
	check(t, true)
	check(t, false)
	for _, f := range []float64{0, 1, -1.5, 1e-6, 9e-7, 1e-9, 1e-10, 1e20, 1e21, 1.5e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1 + 0.2} {
		check(t, f)
		check(t, float32(math.Mod(f, 1e30)))
		var sum state.Sum[float64]
		sum.Add(f)
		if got, want := natural(t, sum), natural(t, f); got != want {
			t.Errorf("the sum %v is %s, want %s", f, got, want)
		}
	}
}

type shout struct{ s string }

func (s shout) MarshalText() ([]byte, error)  { return []byte(s.s), nil }
func (s *shout) UnmarshalText(b []byte) error { s.s = string(b); return nil }

type raw struct{ s string }

func (r raw) MarshalJSON() ([]byte, error)  { return []byte(r.s), nil }
func (r *raw) UnmarshalJSON(b []byte) error { r.s = string(b); return nil }

// DESIGN section 6: a value that holds invalid UTF-8 fails its visit, wherever it is.
func TestInvalidUTF8IsFoundEverywhere(t *testing.T) {
	const bad, good = "a\xc0b", "a\ufffdb"
	type deep struct {
		P *string
		M map[word][]word
		A [1]struct{ S string }
		Q string `json:",string"`
	}
	try := func(name string, err error) {
		if err == nil {
			t.Errorf("%s: invalid UTF-8 was stored", name)
		}
	}
	p, q := bad, good
	_, _, err := stored(t, word(bad))
	try("named string", err)
	_, _, err = stored(t, deep{P: &p})
	try("pointer", err)
	_, _, err = stored(t, deep{M: map[word][]word{"k": {good, bad}}})
	try("slice in map", err)
	_, _, err = stored(t, deep{M: map[word][]word{bad: nil}})
	try("key", err)
	_, _, err = stored(t, deep{A: [1]struct{ S string }{{bad}}})
	try("array", err)
	_, _, err = stored(t, deep{Q: bad})
	try("quoted", err)
	_, _, err = stored(t, shout{bad})
	try("text", err)
	_, _, err = stored(t, []shout{{good}, {bad}})
	try("texts", err)
	_, _, err = stored(t, map[string]*shout{"k": {bad}})
	try("text behind pointer", err)
	_, _, err = stored(t, raw{`"` + bad + `"`})
	try("marshaller", err)
	_, _, err = stored(t, state.Frozen[[]string]{V: []string{bad}})
	try("frozen", err)

	if _, back, err := stored(t, deep{P: &q, M: map[word][]word{good: {good}}, A: [1]struct{ S string }{{good}}, Q: good + `\ufffd`}); err != nil || *back.P != good || back.Q != good+`\ufffd` {
		t.Errorf("a replacement character that was meant: %v", err)
	}
	if _, back, err := stored(t, raw{`"\ufffd\\ufffd"`}); err != nil || back.s != `"\ufffd\\ufffd"` {
		t.Errorf("a replacement character of a marshaller's own: %v", err)
	}
	if _, _, err := stored(t, []shout{{good}}); err != nil {
		t.Error(err)
	}
}

// The error says where in a value the text is, as Go has it.
func TestInvalidUTF8SaysWhere(t *testing.T) {
	const bad = "a\xc0b"
	type deep struct {
		P *[]word `json:"parts"`
		M map[word][2]word
		N map[int8]*struct{ S []string }
		U map[uint]shout
		T map[shout]string
	}
	for want, v := range map[string]deep{
		".P[1]":        {P: &[]word{"good", bad}},
		`.M["k"][1]`:   {M: map[word][2]word{"k": {"", bad}}},
		`.M["a\xc0b"]`: {M: map[word][2]word{bad: {}}},
		".N[-7].S[0]":  {N: map[int8]*struct{ S []string }{-7: {[]string{bad}}}},
		".U[7]":        {U: map[uint]shout{7: {bad}}},
		`.T["good"]`:   {T: map[shout]string{{"good"}: bad}},
		`.T["a\xc0b"]`: {T: map[shout]string{{bad}: "good"}},
	} {
		_, _, err := stored(t, v)
		if !errors.Is(err, state.ErrUTF8) || !strings.HasSuffix(err.Error(), "invalid UTF-8 at "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, err := stored(t, word(bad)); !errors.Is(err, state.ErrUTF8) || !strings.HasSuffix(err.Error(), "invalid UTF-8") {
		t.Errorf("a text that is the value: %v", err)
	}
}

func TestWhatCannotBeReadBackIsNotStored(t *testing.T) {
	if _, _, err := stored(t, raw{`{`}); err == nil {
		t.Error("a marshaller's invalid JSON was stored")
	}
	var deep list
	for range 11_000 {
		deep = list{deep}
	}
	if _, _, err := stored(t, deep); err == nil {
		t.Error("a value was stored that is nested too deeply to be read")
	}
}

// Two elements of a Set are the same if their JSON says the same, however it says it.
func TestElementsOfASetAreComparedByWhatTheySay(t *testing.T) {
	type marked struct{ T state.Set[raw] }
	s := schemaOf[marked](t)
	view := s.New()
	write(t, view, func(m *marked) { m.T.Add(raw{`"\u00e9\/"`}, raw{`"é/"`}, raw{`{"a\u0062":"\n"}`}) })
	if got, want := string(view.AppendJSON(nil)), `{"T":["é/",{"ab":"\n"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !view.Value().(*marked).T.Has(raw{`"\u00E9/"`}) {
		t.Error("an element was not found")
	}
	again, err := s.Parse([]byte(`{"T":["\u00e9/", {"ab":"\u000a"}]}`))
	if err != nil || string(again.AppendJSON(nil)) != string(view.AppendJSON(nil)) {
		t.Errorf("%s, %v", again.AppendJSON(nil), err)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range trickyStrings {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		enc, back, err := stored(t, s)
		if err != nil {
			if strings.ToValidUTF8(s, "") == s {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if want := asJSON(t, s); enc != want || back != s {
			t.Errorf("%q: %s, %q, want %s", s, enc, back, want)
		}
	})
}
