package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/state"
)

type folded struct {
	A state.Fold[trail]
	B state.Fold[trail]
	N state.Sum[int]
}

func TestMergeFoldsInDeclarationOrder(t *testing.T) {
	s := schemaOf[folded](t)
	operand := func(f func(*folded)) state.Write { return state.Write{Delta: draft(t, s.New(), f)} }
	set := func(f func(*folded)) state.Image {
		view := s.New()
		write(t, view, f)
		return view
	}
	pending := func(f func(*folded)) state.Image {
		img := s.New()
		f(img.Value().(*folded))
		return img
	}
	x := operand(func(f *folded) { f.A.Merge(trail{"x"}) })
	y := operand(func(f *folded) { f.A.Merge(trail{"y"}); f.A.Merge(trail{"z"}); f.N.Add(1) })
	other := operand(func(f *folded) { f.B.Merge(trail{"b"}) })
	none := operand(func(f *folded) { f.N.Add(1) })
	whole := operand(func(f *folded) { f.A.Set(trail{"s"}) })
	tests := []struct {
		name         string
		view, outer  state.Image
		writes       []state.Write
		state, inOut string
	}{
		{"nothing", s.New(), s.New(), []state.Write{none}, `{}`, `{}`},
		{"first", s.New(), s.New(), []state.Write{x}, `{"A":{"set":["x"]}}`, `{"A":{"merged":["x"]}}`},
		{"order", s.New(), s.New(), []state.Write{y, none, x}, `{"A":{"set":["y","z","x"]}}`, `{"A":{"merged":["y","z","x"]}}`},
		{"no outer", s.New(), state.Image{}, []state.Write{x}, `{"A":{"set":["x"]}}`, `{}`},
		{
			"onto a value", set(func(f *folded) { f.A.Set(trail{"v"}) }), s.New(),
			[]state.Write{x, y},
			`{"A":{"set":["v","x","y","z"]}}`, `{"A":{"merged":["x","y","z"]}}`,
		},
		{
			"onto an operand", s.New(), pending(func(f *folded) { f.A.Merge(trail{"o"}) }),
			[]state.Write{x},
			`{"A":{"set":["x"]}}`, `{"A":{"merged":["o","x"]}}`,
		},
		{
			"onto what outer set", s.New(), pending(func(f *folded) { f.A.Set(trail{"o"}) }),
			[]state.Write{x},
			`{"A":{"set":["x"]}}`, `{"A":{"set":["o","x"]}}`,
		},
		{
			"cells apart", s.New(), s.New(), []state.Write{other, x},
			`{"A":{"set":["x"]},"B":{"set":["b"]}}`, `{"A":{"merged":["x"]},"B":{"merged":["b"]}}`,
		},
		{"set", s.New(), s.New(), []state.Write{whole}, `{}`, `{}`},
	}
	for _, test := range tests {
		before := string(test.view.AppendJSON(nil))
		m, err := state.Merge(test.view, test.outer, test.writes)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := string(m.State.AppendJSON(nil)); got != test.state {
			t.Errorf("%s: state %s, want %s", test.name, got, test.state)
		}
		if got := string(m.Outer.AppendJSON(nil)); got != test.inOut {
			t.Errorf("%s: outer %s, want %s", test.name, got, test.inOut)
		}
		if after := string(test.view.AppendJSON(nil)); after != before {
			t.Errorf("%s: Merge changed the view from %s to %s", test.name, before, after)
		}
	}
}

func TestAnOuterImageGivesItsOperand(t *testing.T) {
	s := schemaOf[folded](t)
	outer := s.New()
	for _, v := range []string{"x", "y"} {
		w := state.Write{Delta: draft(t, s.New(), func(f *folded) { f.A.Merge(trail{v}) })}
		m, err := state.Merge(s.New(), outer, []state.Write{w})
		if err == nil {
			err = outer.Record(w.Delta) // does nothing for a Fold
		}
		if err == nil {
			err = outer.Record(m.Outer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := outer.Delta()
	if got, want := string(d.AppendJSON(nil)), `{"A":{"merge":["x","y"]}}`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	view := s.New()
	if err := view.Apply(d); err != nil || string(view.AppendJSON(nil)) != `{}` {
		t.Errorf("applying an operand gave %s, %v", view.AppendJSON(nil), err)
	}
}

// touchy is a Merger of bad manners.
type touchy struct{ S string }

func (t touchy) Merge(o touchy) touchy {
	if o.S == "panic" {
		panic("touchy")
	}
	return touchy{o.S + "\xff"}
}

func TestMergeCallsUserCode(t *testing.T) {
	type rude struct{ T state.Fold[touchy] }
	s := schemaOf[rude](t)
	view := s.New()
	write(t, view, func(r *rude) { r.T.Set(touchy{"t"}) })
	merge := func(v string) error {
		_, err := state.Merge(view, state.Image{}, []state.Write{{Delta: draft(t, view, func(r *rude) { r.T.Merge(touchy{v}) })}})
		return err
	}
	var e *state.EncodeError
	if err := merge("u"); !errors.As(err, &e) || e.Cell != "T" || !errors.Is(err, state.ErrUTF8) {
		t.Errorf("a result that can't be stored: %v", err)
	}
	defer func() {
		if recover() != "touchy" {
			t.Error("the panic did not pass through")
		}
	}()
	_ = merge("panic")
}

func TestMergeOfAParsedSchemaDoesNothing(t *testing.T) {
	raw, err := schemaOf[folded](t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.ParseSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.ParseDelta([]byte(`{"A":{"merge":["x"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := state.Merge(s.New(), s.New(), []state.Write{{Delta: d}})
	if err != nil || !m.State.IsZero() || !m.Outer.IsZero() {
		t.Errorf("%s, %s, %v", m.State.AppendJSON(nil), m.Outer.AppendJSON(nil), err)
	}
}

// least is a Merger of which the zero value is no beginning.
type least int

func (l least) Merge(o least) least { return min(l, o) }

// Where there is nothing yet an operand is taken as it is: it is not merged into a zero value.
func TestMergeBeginsWithTheFirstOperand(t *testing.T) {
	type lowest struct{ L state.Fold[least] }
	s := schemaOf[lowest](t)
	operand := func(l least) state.Write {
		return state.Write{Delta: draft(t, s.New(), func(v *lowest) { v.L.Merge(l) })}
	}
	m, err := state.Merge(s.New(), s.New(), []state.Write{operand(7), operand(5), operand(6)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.State.AppendJSON(nil)); got != `{"L":{"set":5}}` {
		t.Errorf("state %s, want 5", got)
	}
	if got := string(m.Outer.AppendJSON(nil)); got != `{"L":{"merged":5}}` {
		t.Errorf("outer %s, want 5", got)
	}
}

// A counted is a trail that counts how often one was encoded.
type counted struct{ Of trail }

var encodings int

func (c counted) Merge(o counted) counted { return counted{c.Of.Merge(o.Of)} }

func (c counted) MarshalJSON() ([]byte, error) {
	encodings++
	return json.Marshal(c.Of)
}

func (c *counted) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &c.Of) }

// What grows with each operand is encoded once for all of them, not behind each.
func TestMergeEncodesOnce(t *testing.T) {
	type sums struct{ C state.Fold[counted] }
	s := schemaOf[sums](t)
	view, outer := s.New(), s.New()
	write(t, view, func(v *sums) { v.C.Set(counted{trail{"v"}}) })
	outer.Value().(*sums).C.Set(counted{trail{"o"}})
	var writes []state.Write
	var all string
	for i := range 200 {
		writes = append(writes, state.Write{Delta: draft(t, s.New(), func(v *sums) { v.C.Merge(counted{trail{fmt.Sprint(i)}}) })})
		all += fmt.Sprintf(`,"%d"`, i)
	}
	encodings = 0
	m, err := state.Merge(view, outer, writes)
	if err != nil {
		t.Fatal(err)
	}
	if encodings > 3 {
		t.Errorf("%d encodings, want one each of the operand, the value and what the outer image has", encodings)
	}
	if got, want := string(m.State.AppendJSON(nil)), `{"C":{"set":["v"`+all+`]}}`; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	if got, want := string(m.Outer.AppendJSON(nil)), `{"C":{"set":["o"`+all+`]}}`; got != want {
		t.Errorf("outer %s, want %s", got, want)
	}
}
