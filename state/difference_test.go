package state_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// Scenario 5 of what runs live through: what was added, removed and changed is told, in every
// kind of cell; members of objects in another order are no difference; the difference applied
// to the first state is the second; and it is refused by another.
func TestLife05Difference(t *testing.T) {
	s := schemaOf[struct {
		Same state.Value[json.RawMessage]
		Deep state.Map[string, json.RawMessage]
		All  every
	}](t)
	parse := func(text string) state.Image {
		i, err := s.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	from := parse(`{"Same":{"a":1,"b":2},"Deep":{"gone":{"x":1},"kept":{"x":{"y":[1,2,3],"z":null}},"turned":{"a":1,"b":2}},` +
		`"All.Value":"teh","All.List":["a","b","c"],"All.Map":{"k":1,"l":2},"All.Set":["a","b"],"All.Sum":3}`)
	to := parse(`{"Same":{"b":2,"a":1},"Deep":{"kept":{"x":{"z":0,"y":[1,5,2,3]}},"new":null,"turned":{"b":2,"a":1}},` +
		`"All.Value":"the","All.Whole":{"title":"t","year":1},"All.List":["a","c"],"All.Map":{"l":7},"All.Set":["b","c"],"All.Fold":["x"]}`)
	d, err := state.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
- Deep["gone"]: {"x":1}
+ Deep["kept"]["x"]["y"][1]: 5
  Deep["kept"]["x"]["z"]: null → 0
+ Deep["new"]: null
  All.Value: "teh" → "the"
+ All.Whole: {"title":"t","year":1}
- All.List[1]: "b"
- All.Map["k"]: 1
  All.Map["l"]: 2 → 7
- All.Set: "a"
+ All.Set: "c"
- All.Sum: 3
+ All.Fold: ["x"]
`, "\n")
	if d.String() != want {
		t.Errorf("the difference is\n%s\nwant\n%s", d, want)
	}
	next, err := d.Apply(from)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := state.Diff(next, to); err != nil || len(rest.Cells) > 0 || rest.From != d.To || rest.To != d.To {
		t.Errorf("the first with the difference is not the second: %v, %v", rest, err)
	}
	for _, base := range []state.Image{to, s.New()} {
		if _, err := d.Apply(base); !errors.Is(err, state.ErrBase) {
			t.Errorf("applied to another state: %v", err)
		}
	}
	turned := parse(strings.Replace(string(from.AppendJSON(nil)), `{"a":1,"b":2}`, `{"b":2,"a":1}`, 1))
	if _, err := d.Apply(turned); err != nil {
		t.Errorf("applied to the same state in another order: %v", err)
	}
	d.Cells = d.Cells[1:]
	if _, err := d.Apply(from); err == nil {
		t.Error("a difference that lacks a cell was applied")
	}
}

// Any two states: the difference applied to the first is the second, and that of a state and
// itself is none.
func TestDifferencesOfRandomStates(t *testing.T) {
	s := schemaOf[every](t)
	r := rand.New(rand.NewPCG(5, 5))
	states := []state.Image{s.New(), filled(t, s)}
	for range 60 {
		next := states[r.IntN(len(states))].Draft()
		for range 1 + r.IntN(4) {
			cell := actions[r.IntN(len(actions))]
			op := cell.ops[r.IntN(len(cell.ops))]
			if strings.HasPrefix(op.name, "SetAt") || strings.HasPrefix(op.name, "Truncate") {
				continue // of a list that has elements
			}
			if err := next.Apply(draft(t, next, op.do)); err != nil {
				t.Fatal(err)
			}
		}
		states = append(states, next)
	}
	for range 400 {
		from, to := states[r.IntN(len(states))], states[r.IntN(len(states))]
		d, err := state.Diff(from, to)
		if err != nil {
			t.Fatal(err)
		}
		before := string(from.AppendJSON(nil))
		next, err := d.Apply(from)
		if err != nil {
			t.Fatalf("%v applied to %s: %v", d, before, err)
		}
		if got, want := string(next.AppendJSON(nil)), string(to.AppendJSON(nil)); got != want {
			t.Errorf("%s and %v is %s, want %s", before, d, got, want)
		}
		if string(from.AppendJSON(nil)) != before {
			t.Errorf("the first state has changed from %s", before)
		}
		if same := before == string(to.AppendJSON(nil)); same != (len(d.Cells) == 0) || same != (d.String() == "") {
			t.Errorf("from %s to %s differs by %v", before, to.AppendJSON(nil), d)
		}
	}
}

// Integers that no float64 can tell apart are different, and are what they were when the difference
// is applied.
func TestDifferencesOfLargeIntegers(t *testing.T) {
	s := schemaOf[struct {
		Cell state.Value[int64]
		Deep state.Value[json.RawMessage]
	}](t)
	parse := func(text string) state.Image {
		i, err := s.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	from := parse(`{"Cell":9007199254740992,"Deep":{"n":[9007199254740992]}}`)
	to := parse(`{"Cell":9007199254740993,"Deep":{"n":[9007199254740993]}}`)
	d, err := state.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := "  Cell: 9007199254740992 → 9007199254740993\n  Deep[\"n\"][0]: 9007199254740992 → 9007199254740993\n"
	if d.String() != want || d.From == d.To {
		t.Errorf("the difference is\n%s\nwant\n%s", d, want)
	}
	if next, err := d.Apply(from); err != nil || string(next.AppendJSON(nil)) != string(to.AppendJSON(nil)) {
		t.Errorf("the first with the difference is %s, %v, want %s", next.AppendJSON(nil), err, to.AppendJSON(nil))
	}
}

// A cell that is null differs from one that nobody has set, in both directions; and what is applied
// is written as a state writes it, so equal states stay equal bytes.
func TestDifferencesOfNullAndText(t *testing.T) {
	s := schemaOf[struct {
		Cell state.Value[*int]
		Text state.Value[string]
		Raw  state.Value[json.RawMessage]
	}](t)
	for _, c := range []struct{ from, to, want string }{
		{`{}`, `{"Cell":null}`, "+ Cell: null\n"},
		{`{"Cell":null}`, `{}`, "- Cell: null\n"},
		{`{"Cell":1}`, `{"Cell":null}`, "  Cell: 1 → null\n"},
		{`{"Text":"<a> & "}`, `{"Cell":null,"Text":"<a> & "}`, "+ Cell: null\n"},
		{`{"Text":"a"}`, `{"Text":"<b> && \\u003c\\\u2028\n\\"}`, `  Text: "a" → "<b> && \\u003c\\\u2028\n\\"` + "\n"},
		{`{"Raw":"a"}`, `{"Raw":{"<":"\u00e9\/>"}}`, `  Raw: "a" → {"<":"é/>"}` + "\n"},
	} {
		from, err := s.Parse([]byte(c.from))
		if err != nil {
			t.Fatal(err)
		}
		to, err := s.Parse([]byte(c.to))
		if err != nil {
			t.Fatal(err)
		}
		d, err := state.Diff(from, to)
		if err != nil || d.String() != c.want {
			t.Errorf("from %s to %s differs by %q, %v, want %q", c.from, c.to, d, err, c.want)
		}
		var kept state.Difference // as whoever keeps differences has it
		if raw, err := json.Marshal(d); err != nil || json.Unmarshal(raw, &kept) != nil {
			t.Fatal(err)
		}
		for _, d := range []state.Difference{d, kept} {
			next, err := d.Apply(from)
			if err != nil || string(next.AppendJSON(nil)) != c.to || next.Size() != to.Size() {
				t.Errorf("%s and %v is %s, %v", c.from, d, next.AppendJSON(nil), err)
			}
		}
	}
}

// What a json.RawMessage has escaped itself a difference leaves as it is.
func TestDifferenceOfEscapes(t *testing.T) {
	s := schemaOf[struct{ Raw state.Value[json.RawMessage] }](t)
	from := s.New()
	const escaped = `{"Raw":"\u003cb\u003e \u0026"}`
	to, err := s.Parse([]byte(escaped))
	if err != nil {
		t.Fatal(err)
	}
	d, err := state.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := d.Apply(from); err != nil || string(next.AppendJSON(nil)) != escaped {
		t.Errorf("%v leads to %s, %v", d, next.AppendJSON(nil), err)
	}
}

// A difference that was made by hand, of what is no JSON, is an error that names the cell.
func TestDifferenceOfNoJSON(t *testing.T) {
	s := schemaOf[struct{ Cell state.Value[int] }](t)
	d, err := state.Diff(s.New(), s.New())
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []string{`{`, ``, `1 2`} {
		d.Cells = []state.CellDifference{{Cell: "Cell", After: json.RawMessage(after)}}
		if _, err := d.Apply(s.New()); err == nil || !strings.Contains(err.Error(), `"Cell"`) {
			t.Errorf("%q is applied: %v", after, err)
		}
	}
}

// An element like those beside it is told when it comes and when it goes.
func TestDifferencesOfEqualElements(t *testing.T) {
	type said struct{ Said state.List[string] }
	s := schemaOf[said](t)
	of := func(words ...string) state.Image {
		view := s.New()
		write(t, view, func(x *said) { x.Said.Append(words...) })
		return view
	}
	for _, c := range []struct {
		from, to []string
		want     string
	}{
		{[]string{"a"}, []string{"a", "a"}, "+ Said[1]: \"a\"\n"},
		{[]string{"a", "a", "a"}, []string{"a"}, "- Said[1]: \"a\"\n- Said[2]: \"a\"\n"},
		{[]string{"a", "b", "a"}, []string{"a", "b", "a", "b", "a"}, "+ Said[3]: \"b\"\n+ Said[4]: \"a\"\n"},
	} {
		d, err := state.Diff(of(c.from...), of(c.to...))
		if got := d.String(); err != nil || got != c.want {
			t.Errorf("from %q to %q: %q, %v; want %q", c.from, c.to, got, err, c.want)
		}
	}
}
