package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlgo/pawl/state"
)

func TestParseReadsWhatPeopleWrite(t *testing.T) {
	s := schemaOf[every](t)
	img, err := s.Parse([]byte(` { "Map" : { "b" : 2 , "a\u0062" : 1 } ,
		"Value":"v", "Whole": { "Title" : "a  b" }, "Set": [ "z", "\u0061" ], "Sum": 0, "List":[ ] } `))
	want := `{"Value":"v","Whole":{"Title":"a  b"},"Map":{"ab":1,"b":2},"Set":["a","z"]}`
	if err != nil || string(img.AppendJSON(nil)) != want {
		t.Errorf("%s, %v, want %s", img.AppendJSON(nil), err, want)
	}
	d, err := s.ParseDelta([]byte(` { "Sum" : { "add" : 1 } , "Value":{"set" : [ 1 ] },
		"List":{"append":["b"],"at":{"1":"y","0":"x"},"truncate":2}, "Map":{"delete":["z","c"],"put":{}} } `))
	want = `{"Value":{"set":[1]},"List":{"truncate":2,"at":{"0":"x","1":"y"},"append":["b"]},"Map":{"delete":["c","z"]},"Sum":{"add":1}}`
	if err != nil || string(d.AppendJSON(nil)) != want {
		t.Errorf("%s, %v, want %s", d.AppendJSON(nil), err, want)
	}
	for _, in := range []string{`{}`, `{"List":{"append":[]}}`, `{"List":{}}`, `{"Map":{"put":{},"delete":[]}}`, `{"Set":{}}`} {
		if d, err := s.ParseDelta([]byte(in)); err != nil || !d.IsZero() {
			t.Errorf("%s: %s, %v, want nothing", in, d.AppendJSON(nil), err)
		}
	}
}

// DESIGN section 3, rule 11: what is not exact is refused by name.
func TestParseRefusals(t *testing.T) {
	s := schemaOf[every](t)
	images := map[string]string{
		``: "", `{`: "", `[]`: "", `{}{}`: "", `{}x`: "", `null`: "", `{"Value":1`: "",
		`{"Valu":1}`: "", `{"value":1}`: "", `{"Value":1,"Value":2}`: "", `{"Value":1,}`: "", `{,}`: "", "{\"Value\xff\":1}": "",
		`{"Value":}`: "Value", `{"Value":tru}`: "Value", `{"Value":01}`: "", `{"Value":1.}`: "Value", `{"Value":1e}`: "Value",
		`{"Value":"\x"}`: "Value", `{"Value":"\u12g4"}`: "Value", "{\"Value\":\"\n\"}": "Value", "{\"Value\":\"\xff\"}": "Value",
		`{"Value":"`: "Value", `{"Value":"\`: "Value", `{"Value":"\u1`: "Value", `{"Value":-}`: "Value", `{"Value":nul}`: "Value",
		`{"List":{}}`: "List", `{"List":[1,]}`: "List", `{"List":[1 2]}`: "List", `{"List":null}`: "List",
		`{"Map":[]}`: "Map", `{"Map":{"a":1,"a":2}}`: "Map", `{"Map":{"a":1,"\u0061":2}}`: "Map", `{"Map":{1:1}}`: "Map",
		`{"Set":{}}`: "Set", `{"Set":["a","a"]}`: "Set", `{"Set":["a","\u0061"]}`: "Set",
		`{"Sum":1.5}`: "Sum", `{"Sum":"1"}`: "Sum", `{"Sum":9223372036854775808}`: "Sum", `{"Sum":null}`: "Sum",
		`{"Value":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`: "Value",
	}
	for in, cell := range images {
		_, err := s.Parse([]byte(in))
		refused(t, in, err, cell)
	}
	deltas := map[string]string{
		``: "", `{`: "", `[]`: "", `{}{}`: "", `{"Valu":{"set":1}}`: "", `{"Sum":{"add":1},"Sum":{"add":1}}`: "",
		`{"Sum":{"add":1},"Value":{"set":1},"Sum":{"add":1}}`: "", `{"Value":{"set":1},"Sum":{"add":1},"Value":{"set":1}}`: "",
		`{"Value:{"set":1}}`: "", `{"Value":{"set:1}}`: "Value", `{"List":{"append:[]}}`: "List", `{"List":{"append"`: "List",
		`{"Value":1}`: "Value", `{"Value":{}}`: "Value", `{"Value":{"add":1}}`: "Value", `{"Value":{"set":1,"clear":true}}`: "Value",
		`{"Value":{"clear":false}}`: "Value", `{"Value":{"merge":1}}`: "Value", `{"Value":{"set":}}`: "Value", `{"Value":{"set"}}`: "Value",
		`{"Fold":{"clear":true}}`: "Fold", `{"Fold":{"add":1}}`: "Fold", `{"Sum":{"add":"1"}}`: "Sum", `{"Sum":{"clear":true}}`: "Sum",
		`{"List":{"push":[]}}`: "List", `{"List":{"append":{}}}`: "List", `{"List":{"append":[],"append":[]}}`: "List",
		`{"List":{"replace":[],"append":[]}}`: "List", `{"List":{"truncate":-1}}`: "List", `{"List":{"truncate":1.0}}`: "List",
		`{"List":{"truncate":"1"}}`: "List", `{"List":{"at":{"x":1}}}`: "List", `{"List":{"at":{"-1":1}}}`: "List", `{"List":{"at":{"01":1}}}`: "List",
		`{"List":{"at":{"1":1,"1":2}}}`: "List", `{"List":{"truncate":1,"at":{"1":1}}}`: "List", `{"List":{"at":{"99999999999999999999":1}}}`: "List",
		`{"Map":{"clear":1}}`: "Map", `{"Map":{"put":[]}}`: "Map", `{"Map":{"add":[]}}`: "Map", `{"Map":{"put":{"a":1},"delete":["a"]}}`: "Map",
		`{"Map":{"delete":[1]}}`: "Map", `{"Map":{"clear":true,"delete":["a"]}}`: "Map", `{"Map":{"put":{},"put":{}}}`: "Map",
		`{"Set":{"put":{}}}`: "Set", `{"Set":{"add":["a"],"remove":["a"]}}`: "Set", `{"Set":{"add":1}}`: "Set",
	}
	for in, cell := range deltas {
		_, err := s.ParseDelta([]byte(in))
		refused(t, in, err, cell)
	}
	_, err := schemaOf[struct{}](t).Parse([]byte(`{"A":1}`))
	refused(t, "no cells", err, "")
}

// A cell that stands there twice is refused, however many a state has and wherever it is.
func TestParseRefusesTwiceInManyCells(t *testing.T) {
	type eight struct{ A, B, C, D, E, F, G, H state.Value[int] }
	s := schemaOf[struct{ A, B, C, D, E, F, G, H, I eight }](t)
	if n := len(s.Cells()); n != 72 {
		t.Fatalf("the state has %d cells", n)
	}
	for _, cell := range s.Cells() {
		once := fmt.Sprintf("%q:1", cell.Name)
		if _, err := s.Parse([]byte("{" + once + "}")); err != nil {
			t.Errorf("%s: %v", cell.Name, err)
		}
		_, err := s.Parse([]byte("{" + once + "," + once + "}"))
		refused(t, cell.Name+" twice", err, "")
	}
}

func refused(t *testing.T, in string, err error, cell string) {
	t.Helper()
	var e *state.ParseError
	if len(in) > 100 {
		in = in[:100]
	}
	if !errors.As(err, &e) || e.Unwrap() == nil {
		t.Errorf("%s: %v, want a ParseError", in, err)
	} else if cell != "" && e.Cell != cell {
		t.Errorf("%s: %v, want cell %s", in, err, cell)
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	s := schemaOf[every](t)
	in := []byte(`{"Value":"abc","List":["def"],"Map":{"ghi":1},"Set":["jkl"]}`)
	want := string(in)
	img, err := s.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range in {
		in[i] = 'X'
	}
	if got := string(img.AppendJSON(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseDeltaKeepsNothingOfItsInput(t *testing.T) {
	s := schemaOf[every](t)
	for _, cell := range []string{
		`"Value":{"set":"abc"}`, `"List":{"truncate":2,"at":{"1":"abc"},"append":["def"]}`, `"Map":{"put":{"ghi":1},"delete":["jkl"]}`,
		`"Set":{"add":["mno"],"remove":["pqr"]}`, `"Fold":{"merge":["stu"]}`,
	} {
		for _, text := range []string{`{` + cell + `,"Sum":{"add":1}}`, `{"Sum":{"add":1},` + cell + `}`} { // a Sum shares nothing
			kept, err := s.ParseDelta([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			in := []byte(text)
			d, err := s.ParseDelta(in)
			if err != nil {
				t.Fatal(err)
			}
			clear(in)
			if got, want := string(d.AppendJSON(nil)), string(kept.AppendJSON(nil)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// A string is looked at 8 and 16 bytes at a time: what it can't hold is found at each place.
func TestStringsHoldWhatJSONCanHold(t *testing.T) {
	s := schemaOf[every](t)
	odd := []string{"\x00", "\x1f", " ", "!", "\"", "#", "[", "\\", "]", "\x7f", "\x80", "\xff", "é", "é\xc3", "😀", "\\n", "\\\\", `\u00e9`}
	for n := range 40 {
		for at := range n + 1 {
			for k := range 2 * len(odd) {
				x, begin := odd[k/2], [2]string{"", "é"}[k%2]
				text := `"` + begin + strings.Repeat("a", at) + x + strings.Repeat("\u00a2", n%3) + strings.Repeat("z", n-at) + `"`
				want := json.Valid([]byte(text)) && utf8.ValidString(text)
				d, err := s.ParseDelta([]byte(`{"Value":{"set":` + text + `}}`))
				if (err == nil) != want {
					t.Fatalf("%q: %v", text, err)
				}
				if got := d.AppendJSON(nil); err == nil && string(got) != `{"Value":{"set":`+text+`}}` {
					t.Fatalf("%q became %q", text, got)
				}
			}
		}
	}
}

func TestBigStatesComeBack(t *testing.T) {
	s := schemaOf[mixed](t)
	view := s.New()
	write(t, view, func(m *mixed) {
		for i := range 10_000 {
			m.List.Append(fmt.Sprint(i))
			m.Map.Put(fmt.Sprint("k", i), i)
			m.Set.Add(fmt.Sprint("s", i))
		}
	})
	m := reparse(t, s, view).Value().(*mixed)
	if m.List.Len() != 10_000 || m.Map.Len() != 10_000 || m.Set.Len() != 10_000 {
		t.Errorf("%d, %d and %d elements came back", m.List.Len(), m.Map.Len(), m.Set.Len())
	}
	for i := range 10_000 {
		if v, ok := m.Map.Get(fmt.Sprint("k", i)); m.List.At(i) != fmt.Sprint(i) || v != i || !ok || !m.Set.Has(fmt.Sprint("s", i)) {
			t.Fatalf("element %d did not come back", i)
		}
	}
}

func FuzzParse(f *testing.F) {
	s, err := state.Of[every]()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"Value":"v","Whole":{"Title":""},"List":[1,"a"],"Map":{"a":1,"b":[]},"Set":["a",{}],"Sum":-5,"Fold":["x"]}`))
	f.Add([]byte(` {"Set":["\u0061\ud800"], "Map":{"\n":null}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		img, err := s.Parse(in)
		if err != nil {
			var e *state.ParseError
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q was read, and is no JSON", in)
		}
		if raw := reparse(t, s, img).AppendJSON(nil); !json.Valid(raw) {
			t.Fatalf("%q became %q", in, raw)
		}
	})
}

func FuzzParseDelta(f *testing.F) {
	s, err := state.Of[every]()
	if err != nil {
		f.Fatal(err)
	}
	for _, in := range []string{
		`{"Value":{"set":"v"},"Sum":{"add":-1}}`, `{"Value":{"clear":true},"Fold":{"merged":["x"]}}`,
		`{"List":{"truncate":2,"at":{"1":"y"},"append":["b"]}}`, `{"List":{"replace":[]}}`,
		`{"Map":{"clear":true,"put":{"a":1}},"Set":{"add":["a"],"remove":["b"]}}`, `{"Map":{"put":{"a":1},"delete":["b\n"]}}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := s.ParseDelta(in)
		if err != nil {
			return
		}
		raw := d.AppendJSON(nil)
		again, err := s.ParseDelta(raw)
		if err != nil || string(again.AppendJSON(nil)) != string(raw) || !json.Valid(in) || !json.Valid(raw) || d.Size() != len(raw) {
			t.Fatalf("%q became %q, size %d, then %q, %v", in, raw, d.Size(), again.AppendJSON(nil), err)
		}
		if kept, err := s.ParseDeltaIn(raw, new(state.Slabs)); err != nil || string(kept.AppendJSON(nil)) != string(raw) {
			t.Fatalf("%q is read as %q, %v", raw, kept.AppendJSON(nil), err)
		}
		view, base := filled(t, s), filled(t, s)
		if err := view.Apply(d); err != nil {
			return
		}
		reparse(t, s, view)
		outer := base.Draft()
		if err := outer.Record(d); err != nil {
			t.Fatal(err)
		}
		rec, err := outer.Delta()
		if err == nil {
			err = base.Apply(rec)
		}
		if got, want := string(base.AppendJSON(nil)), string(view.AppendJSON(nil)); err != nil || got != want {
			t.Fatalf("%q: recorded %s, %v, applied %s", in, got, err, want)
		}
	})
}

// Elements of a Set are known however their text is escaped: those that a delta adds, and those
// that it removes.
func TestParseDeltaOfElementsThatAreEscaped(t *testing.T) {
	s := schemaOf[every](t)
	for _, c := range []struct{ base, delta, want string }{
		{`{}`, `{"Set":{"add":["\u003cb>","\u0061"]}}`, `{"Set":["<b>","a"]}`},
		{`{"Set":["<b>","a"]}`, `{"Set":{"remove":["<\u0062>","\u0061"]}}`, `{}`},
	} {
		view, err := s.Parse([]byte(c.base))
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.ParseDelta([]byte(c.delta))
		if err != nil {
			t.Fatal(err)
		}
		if err := view.Apply(d); err != nil || string(view.AppendJSON(nil)) != c.want {
			t.Errorf("%s makes %s of %s, %v; want %s", c.delta, view.AppendJSON(nil), c.base, err, c.want)
		}
	}
}
