package state_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

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

// Minus zero is zero, however it came into a Sum.
func TestSumsHaveNoMinusZero(t *testing.T) {
	var set, added state.Sum[float64]
	set.Set(math.Copysign(0, -1))
	added.Add(math.Copysign(0, -1))
	var read state.Sum[float64]
	if err := read.UnmarshalJSON([]byte("-0")); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*state.Sum[float64]{"set": &set, "added": &added, "read": &read} {
		if raw, err := s.MarshalJSON(); err != nil || string(raw) != "0" || math.Signbit(s.Get()) {
			t.Errorf("%s: %s, %v, %v", name, raw, s.Get(), err)
		}
	}
}

type (
	euros   int64
	degrees float64
)

func (e euros) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d €", int64(e)), nil }

func (e *euros) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%d €", (*int64)(e))
	return err
}

func (d degrees) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%v°"`, float64(d)), nil }

func (d *degrees) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `"%v°"`, (*float64)(d))
	return err
}

// A Sum writes its numbers itself, and adds up what they are, whatever marshaller they have.
func TestSumsOfNumbersThatMarshalThemselves(t *testing.T) {
	type bill struct {
		Paid state.Sum[euros]
		Heat state.Sum[degrees]
	}
	s := schemaOf[bill](t)
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := state.ParseSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	view, untyped := s.New(), parsed.New()
	for range 2 {
		d := draft(t, view, func(b *bill) { b.Paid.Add(3); b.Heat.Add(1.5) })
		if got, want := string(d.AppendJSON(nil)), `{"Paid":{"add":3},"Heat":{"add":1.5}}`; got != want {
			t.Errorf("the delta is %s, want %s", got, want)
		}
		back, err := parsed.ParseDelta(d.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(view.Apply(d), untyped.Apply(back)); err != nil {
			t.Fatal(err)
		}
	}
	const want = `{"Paid":6,"Heat":3}`
	if got, other := string(view.AppendJSON(nil)), string(untyped.AppendJSON(nil)); got != want || other != want {
		t.Errorf("the state is %s, and %s without its types, want %s", got, other, want)
	}
	var b bill
	if err := json.Unmarshal([]byte(natural(t, view.Value())), &b); err != nil || b.Paid.Get() != 6 || b.Heat.Get() != 3 {
		t.Errorf("%v came back, %v", b, err)
	}
}

// Such a Sum was described by its own type once: what was written then is still folded as it was.
func TestSumsOfNumbersThatMarshalThemselvesAsTheyWereSaid(t *testing.T) {
	s, err := state.ParseSchema([]byte(`{"cells":[{"name":"Paid","kind":"sum","type":{"kind":"own","name":"example.com/bill.Euros"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	view := s.New()
	for range 2 {
		d, err := s.ParseDelta([]byte(`{"Paid":{"add":3}}`))
		if err == nil {
			err = view.Apply(d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := string(view.AppendJSON(nil)); got != `{"Paid":6}` {
		t.Errorf("the state is %s", got)
	}
}

// A suit is one of a few, of which zero is none.
type suit int

func (s suit) MarshalText() ([]byte, error) {
	if s < 1 || s > 4 {
		return nil, fmt.Errorf("%d is no suit", int(s))
	}
	return []byte{" CDHS"[s]}, nil
}

func (s *suit) UnmarshalText(b []byte) error {
	*s = suit(strings.Index(" CDHS", string(b)))
	return nil
}

func (s suit) Merge(other suit) suit { return max(s, other) }

// A pointed is text behind a pointer, without which it panics.
type pointed struct{ to *string }

func (p pointed) MarshalText() ([]byte, error) { return []byte(*p.to), nil }

func (p *pointed) UnmarshalText(b []byte) error {
	s := string(b)
	p.to = &s
	return nil
}

// What nobody has set is null in the JSON of a state if JSON can't say the zero value, and is read
// back so.
func TestUnsetValuesThatJSONCannotSay(t *testing.T) {
	type hand struct {
		Trump state.Value[suit]
		Best  state.Fold[suit]
		Note  state.Value[pointed]
		Whole state.Whole[pointed]
		N     state.Value[*int]
	}
	s := schemaOf[hand](t)
	raw := natural(t, s.New().Value())
	if want := `{"Trump":null,"Best":null,"Note":null,"Whole":null,"N":null}`; raw != want {
		t.Errorf("the state is %s, want %s", raw, want)
	}
	img := s.New()
	if err := json.Unmarshal([]byte(raw), img.Value()); err != nil {
		t.Fatal(err)
	}
	d, err := img.Delta()
	want := `{"Trump":{"clear":true},"Note":{"clear":true},"Whole":{"clear":true},"N":{"set":null}}`
	if got := string(d.AppendJSON(nil)); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	text, view := "n", s.New()
	write(t, view, func(h *hand) { h.Trump.Set(2); h.Best.Set(3); h.Note.Set(pointed{&text}) })
	if got, want := natural(t, view.Value()), `{"Trump":"D","Best":"H","Note":"n","Whole":null,"N":null}`; got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}

// What has two names in JSON is one key, so a map that has both could keep one of the values alone.
func TestMapRefusesTwoTextsOfOneKey(t *testing.T) {
	var m state.Map[int, string]
	if err := json.Unmarshal([]byte(`{"01":"a","2":"b"}`), &m); err != nil || asJSON(t, m) != `{"1":"a","2":"b"}` {
		t.Errorf("it is %s, %v", asJSON(t, m), err)
	}
	if err := json.Unmarshal([]byte(`{"1":"b","01":"a"}`), &m); err == nil || m.Len() != 2 || !strings.Contains(err.Error(), `key "1"`) {
		t.Errorf("it is %s, %v, want it refused", asJSON(t, m), err)
	}
}

// Keys that are two in Go and one as text can't be stored: which of the values stayed was left to
// the order of a Go map.
func TestMapReplaceRefusesTwoKeysOfOneText(t *testing.T) {
	type log struct{ At state.Map[time.Time, string] }
	s := schemaOf[log](t)
	img := s.New()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	img.Value().(*log).At.Replace(map[time.Time]string{at: "a", at.In(time.FixedZone("", 0)): "b"})
	if d, err := img.Delta(); err == nil || !strings.Contains(err.Error(), "2026-01-02T03:04:05Z") {
		t.Errorf("%s, %v, want an error that names the key", d.AppendJSON(nil), err)
	}
}

// RFC 3339 has no seconds of an offset, so that two of three instants had one text, and the value
// of one was lost.
func TestMapKeysKeepTheInstantInZonesOfTheNineteenthCentury(t *testing.T) {
	type log struct{ At state.Map[time.Time, int] }
	s := schemaOf[log](t)
	img := s.New()
	l := img.Value().(*log)
	at := time.Date(1880, 1, 2, 3, 4, 5, 0, time.UTC)
	keys := []time.Time{at.In(time.FixedZone("LMT", -17762)), at.Add(-2 * time.Second).In(time.FixedZone("", -17760)), at.Add(time.Second).In(time.FixedZone("", 59))}
	for i, k := range keys {
		l.At.Put(k, i)
	}
	for i, k := range keys {
		if v, ok := l.At.Get(k); !ok || v != i {
			t.Errorf("at %v is %v, %v, want %d", k, v, ok, i)
		}
	}
	for k, i := range l.At.All() {
		if !k.Equal(keys[i]) {
			t.Errorf("key %v is read back as %v", keys[i], k)
		}
	}
	l.At.Delete(keys[0])
	if l.At.Has(keys[0]) || l.At.Len() != 2 {
		t.Errorf("%v is there after it was deleted: %v", keys[0], l.At)
	}
}

// Of a map inside a value it is as of a Map: whichever came first, one of the values would be lost.
func TestValuesRefuseTwoKeysOfOneText(t *testing.T) {
	type days struct{ At map[time.Time]string }
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	twins := map[time.Time]string{at: "a", at.In(time.FixedZone("", 0)): "b"}
	refused := func(name string, err error) {
		if err == nil || !strings.Contains(err.Error(), `two of the keys are "2026-01-02T03:04:05Z"`) {
			t.Errorf("%s: %v, want an error that names the key", name, err)
		}
	}
	_, _, err := stored(t, twins)
	refused("map", err)
	_, _, err = stored(t, []*days{{}, {twins}})
	refused("in a struct", err)
	_, _, err = stored(t, state.Frozen[map[string]days]{V: map[string]days{"k": {twins}}})
	refused("frozen", err)
	_, err = state.Encode(&twins)
	refused("encoded", err)
	_, back, err := stored(t, []days{{map[time.Time]string{at: "a", at.Add(1): "b"}}, {map[time.Time]string{at: "a"}}})
	if err != nil || len(back) != 2 || len(back[0].At) != 2 {
		t.Errorf("two instants: %v, %v", back, err)
	}
}

// A grade is a letter as text, and a number in JSON.
type grade int

func (g grade) MarshalText() ([]byte, error)  { return []byte{'@' + byte(g)}, nil }
func (g *grade) UnmarshalText(b []byte) error { *g = grade(b[0] - '@'); return nil }
func (g grade) MarshalJSON() ([]byte, error)  { return json.Marshal(int(g)) }
func (g *grade) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*int)(g)) }

// A mark is a grade that reads both.
type mark struct{ grade }

func (m *mark) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return m.UnmarshalText(b[1:])
	}
	return m.grade.UnmarshalJSON(b)
}

// encoding/json writes the keys of a map with MarshalText, and reads them with UnmarshalJSON: what
// that can't read is not stored.
func TestValuesRefuseKeysThatAreReadOtherwise(t *testing.T) {
	refused := func(name string, err error) {
		if err == nil || !strings.Contains(err.Error(), "it can't be read back: json: cannot unmarshal string") {
			t.Errorf("%s: %v", name, err)
		}
	}
	by := map[grade]string{2: "b"}
	_, _, err := stored(t, by)
	refused("map", err)
	_, _, err = stored(t, []*struct{ By map[grade]string }{{By: by}})
	refused("in a struct", err)
	_, _, err = stored(t, state.Frozen[[]map[grade]string]{V: []map[grade]string{by}})
	refused("frozen", err)
	_, err = state.Encode(&by)
	refused("encoded", err)

	raw, back, err := stored(t, map[mark]grade{{2}: 3})
	if err != nil || raw != `{"B":3}` || back[mark{2}] != 3 {
		t.Errorf("keys that are read: %s, %v, %v", raw, back, err)
	}
	var m state.Map[grade, grade]
	m.Put(2, 3)
	if v, ok := m.Get(2); !ok || v != 3 || asJSON(t, m) != `{"B":3}` {
		t.Errorf("keys of a Map: %s, %v", asJSON(t, m), v)
	}
}

// Of several entries that can't be stored it is always the same one that is told.
func TestMapReplaceFailsInTheOrderOfKeys(t *testing.T) {
	type rates struct {
		Of   state.Map[string, float64]
		Suit state.Map[suit, int]
		Day  state.Map[time.Time, float64]
	}
	s := schemaOf[rates](t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 40 {
		img := s.New()
		img.Value().(*rates).Of.Replace(map[string]float64{"a": 1, "b": math.NaN(), "c": math.Inf(1), "d": math.Inf(-1)})
		if _, err := img.Delta(); err == nil || !strings.Contains(err.Error(), "NaN") {
			t.Fatalf("%v, want the error of key b", err)
		}
		img = s.New()
		img.Value().(*rates).Suit.Replace(map[suit]int{1: 1, 7: 1, 8: 1, 9: 1})
		if _, err := img.Delta(); err == nil || !strings.Contains(err.Error(), "7 is no suit") {
			t.Fatalf("%v, want the error of key 7", err)
		}
		img = s.New()
		img.Value().(*rates).Day.Replace(map[time.Time]float64{at: math.NaN(), at.In(time.FixedZone("", 0)): 1})
		if _, err := img.Delta(); err == nil || !strings.Contains(err.Error(), "two of the keys") {
			t.Fatalf("%v, want the error of the two keys", err)
		}
	}
}

// A call that fails wrote nothing of what it was given.
func TestSetsKeepWhatTheyHadWhenACallFails(t *testing.T) {
	type tags struct{ T state.Set[string] }
	s := schemaOf[tags](t)
	view := s.New()
	write(t, view, func(v *tags) { v.T.Add("old") })
	for name, call := range map[string]func(*tags) error{
		"Add":           func(v *tags) error { v.T.Add("a", "\xff"); return nil },
		"Remove":        func(v *tags) error { v.T.Remove("old", "\xff"); return nil },
		"UnmarshalJSON": func(v *tags) error { return v.T.UnmarshalJSON([]byte(`["a",1]`)) },
	} {
		img := view.Draft()
		v := img.Value().(*tags)
		failed := call(v)
		if _, err := img.Delta(); failed == nil && !errors.Is(err, state.ErrUTF8) {
			t.Errorf("%s: %v", name, err)
		}
		if got := asJSON(t, v.T); got != `["old"]` {
			t.Errorf("%s leaves %s", name, got)
		}
	}
	type suits struct{ T state.Set[suit] }
	img := schemaOf[suits](t).New()
	v := img.Value().(*suits)
	v.T.Add(2)
	if err := v.T.UnmarshalJSON([]byte(`["H","X"]`)); err != nil { // which is read as one that is none
		t.Fatal(err)
	}
	if _, err := img.Delta(); err == nil || asJSON(t, v.T) != `["D"]` {
		t.Errorf("UnmarshalJSON leaves %s, %v", asJSON(t, v.T), err)
	}
}

// Structs without a name that have the marshaller of their field are types of their own: a graph
// that has one in place of the other has changed.
func TestStructsWithoutANameAreToldApart(t *testing.T) {
	a, b := typeOf[struct{ time.Time }](), typeOf[struct{ big.Int }]()
	if a.String() == b.String() || a.String() != typeOf[struct{ time.Time }]().String() {
		t.Errorf("%s and %s", a, b)
	}
}

// A digest is read in place: encoding/json gives an unmarshaller the memory that it reads itself.
type digest [4]byte

func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

func (d *digest) UnmarshalText(b []byte) error {
	n, err := hex.Decode(b, b)
	copy(d[:], b[:n])
	return err
}

// What a cell holds, and what is decoded, stays as it is, whatever an unmarshaller does to what it
// is given.
func TestUnmarshallersThatReadInPlace(t *testing.T) {
	type sums struct {
		V state.Value[digest]
		L state.List[struct{ Of map[string]*digest }]
		K state.Value[map[digest]int]
		S state.Set[digest]
		F state.Value[state.Frozen[[]digest]]
		M state.Map[digest, int]
	}
	d := digest{1, 2, 3, 4}
	view := schemaOf[sums](t).New()
	write(t, view, func(s *sums) {
		s.V.Set(d)
		s.L.Append(struct{ Of map[string]*digest }{map[string]*digest{"a": &d}})
		s.K.Set(map[digest]int{d: 1})
		s.S.Add(d)
		s.F.Set(state.Frozen[[]digest]{V: []digest{d}})
		s.M.Put(d, 1)
	})
	want := string(view.AppendJSON(nil))
	for range 2 {
		s := view.Value().(*sums)
		if s.V.Get() != d || *s.L.At(0).Of["a"] != d || s.K.Get()[d] != 1 || s.F.Get().V[0] != d {
			t.Errorf("what is read is %s", natural(t, s))
		}
		for e := range s.S.All() {
			if e != d {
				t.Errorf("the element is %x", e)
			}
		}
		for k := range s.M.All() {
			if k != d {
				t.Errorf("the key is %x", k)
			}
		}
		if got := string(view.AppendJSON(nil)); got != want {
			t.Fatalf("the state is %s, want %s", got, want)
		}
	}
	for _, in := range []string{`["01020304"]`, `[ "01020304" ]`} {
		raw, back := []byte(in), []digest(nil)
		if err := state.Decode(raw, &back); err != nil || len(back) != 1 || back[0] != d || string(raw) != in {
			t.Errorf("of %s came %x, %v, and it is %s", in, back, err, raw)
		}
	}
}
