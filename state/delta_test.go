package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// A delta is exactly what one visit wrote.
func TestDeltaIsExactlyWhatWasWritten(t *testing.T) {
	s := schemaOf[every](t)
	tests := []struct {
		name  string
		do    func(*every)
		delta string
	}{
		{"nothing", func(e *every) { e.List.Append(); e.Set.Add(); e.Set.Remove() }, `{}`},
		{"reads", func(e *every) { e.Value.Get(); e.List.Slice(); e.Map.Get("a"); e.Fold.Get() }, `{}`},
		{"Value.Set", func(e *every) { e.Value.Set("a"); e.Value.Set("<b>") }, `{"Value":{"set":"<b>"}}`},
		{"Value.Set, the same", func(e *every) { e.Value.Set("v") }, `{"Value":{"set":"v"}}`},
		{"Value.Clear", func(e *every) { e.Value.Set("a"); e.Value.Clear() }, `{"Value":{"clear":true}}`},
		{"Value.Update", func(e *every) { e.Value.Update(func(s string) string { return s + "w" }) }, `{"Value":{"set":"vw"}}`},
		{"Whole.Set", func(e *every) { e.Whole.Set(book{"t", 2}) }, `{"Whole":{"set":{"Title":"t","Year":2}}}`},
		{"List.Append", func(e *every) { e.List.Append("n"); e.List.Append("o", "p") }, `{"List":{"append":["n","o","p"]}}`},
		{"List.Replace", func(e *every) { e.List.Append("n"); e.List.Replace([]string{"r"}); e.List.Append("s") }, `{"List":{"replace":["r","s"]}}`},
		{"List.Replace, none", func(e *every) { e.List.Replace(nil) }, `{"List":{"replace":[]}}`},
		{"List.Replace, SetAt, Truncate", func(e *every) {
			e.List.Replace([]string{"r", "s", "t"})
			e.List.SetAt(1, "S")
			e.List.Truncate(2)
		}, `{"List":{"replace":["r","S"]}}`},
		{"List.Truncate", func(e *every) { e.List.Truncate(1) }, `{"List":{"truncate":1}}`},
		{"List.Truncate, own", func(e *every) { e.List.Append("n", "o"); e.List.Truncate(3) }, `{"List":{"truncate":2,"append":["n"]}}`},
		{"List.SetAt", func(e *every) { e.List.SetAt(1, "M"); e.List.SetAt(1, "N") }, `{"List":{"at":{"1":"N"}}}`},
		{"List.SetAt, own", func(e *every) { e.List.Append("n"); e.List.SetAt(2, "N") }, `{"List":{"truncate":2,"append":["N"]}}`},
		{"List, all", func(e *every) {
			e.List.SetAt(1, "gone")
			e.List.SetAt(0, "L")
			e.List.Truncate(1)
			e.List.Append("n")
		}, `{"List":{"truncate":1,"at":{"0":"L"},"append":["n"]}}`},
		{"Map.Put", func(e *every) { e.Map.Put("z", 1); e.Map.Put("b\"", 2); e.Map.Put("z", 3) }, `{"Map":{"put":{"b\"":2,"z":3}}}`},
		{"Map.Delete", func(e *every) { e.Map.Put("z", 1); e.Map.Delete("z"); e.Map.Delete("b") }, `{"Map":{"delete":["b","z"]}}`},
		{"Map, both", func(e *every) { e.Map.Delete("a"); e.Map.Put("z", 1) }, `{"Map":{"put":{"z":1},"delete":["a"]}}`},
		{"Map.Clear", func(e *every) { e.Map.Put("z", 1); e.Map.Clear() }, `{"Map":{"clear":true}}`},
		{"Map.Clear, Put, Delete", func(e *every) {
			e.Map.Clear()
			e.Map.Put("z", 1)
			e.Map.Put("y", 1)
			e.Map.Delete("y")
			e.Map.Delete("x")
		}, `{"Map":{"clear":true,"put":{"z":1}}}`},
		{"Map.Replace", func(e *every) { e.Map.Replace(map[string]int{"b": 1, "a": 2}) }, `{"Map":{"clear":true,"put":{"a":2,"b":1}}}`},
		{"Set.Add", func(e *every) { e.Set.Add("b", "a"); e.Set.Add("b") }, `{"Set":{"add":["a","b"]}}`},
		{"Set.Remove", func(e *every) { e.Set.Add("b"); e.Set.Remove("b", "c") }, `{"Set":{"remove":["b","c"]}}`},
		{"Set, both", func(e *every) { e.Set.Add("b"); e.Set.Remove("a") }, `{"Set":{"add":["b"],"remove":["a"]}}`},
		{"Set.Clear", func(e *every) { e.Set.Clear(); e.Set.Add("b"); e.Set.Remove("a") }, `{"Set":{"clear":true,"add":["b"]}}`},
		{"Sum.Add", func(e *every) { e.Sum.Add(2); e.Sum.Add(-5) }, `{"Sum":{"add":-3}}`},
		{"Sum.Add, none", func(e *every) { e.Sum.Add(0) }, `{"Sum":{"add":0}}`},
		{"Sum.Set", func(e *every) { e.Sum.Add(2); e.Sum.Set(7); e.Sum.Add(1) }, `{"Sum":{"set":8}}`},
		{"Fold.Merge", func(e *every) { e.Fold.Merge(trail{"x"}); e.Fold.Merge(trail{"y"}) }, `{"Fold":{"merge":["x","y"]}}`},
		{"Fold.Set", func(e *every) { e.Fold.Merge(trail{"w"}); e.Fold.Set(trail{"x"}); e.Fold.Merge(trail{"y"}) }, `{"Fold":{"set":["x","y"]}}`},
		{"all cells", func(e *every) {
			e.Sum.Add(1)
			e.Value.Clear()
			e.Set.Clear()
		}, `{"Value":{"clear":true},"Set":{"clear":true},"Sum":{"add":1}}`},
	}
	for _, test := range tests {
		d := draft(t, filled(t, s), test.do)
		if got := string(d.AppendJSON(nil)); got != test.delta {
			t.Errorf("%s: %s, want %s", test.name, got, test.delta)
		}
		if d.Size() != len(test.delta) || d.IsZero() != (test.delta == "{}") {
			t.Errorf("%s: size %d, want %d; zero: %v", test.name, d.Size(), len(test.delta), d.IsZero())
		}
		back, err := s.ParseDelta([]byte(test.delta))
		if err != nil || string(back.AppendJSON(nil)) != test.delta {
			t.Errorf("%s: parsed: %s, %v, want %s", test.name, back.AppendJSON(nil), err, test.delta)
		}
	}
}

func TestDeltaLeavesTheDraftAsItIs(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	img := view.Draft()
	e := img.Value().(*every)
	e.List.Append("n")
	e.Map.Put("n", 1)
	e.Sum.Add(1)
	first, err := img.Delta()
	if err != nil {
		t.Fatal(err)
	}
	e.List.Append("o")
	e.Map.Put("o", 1)
	e.Sum.Add(1)
	second, err := img.Delta()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(first.AppendJSON(nil)), `{"List":{"append":["n"]},"Map":{"put":{"n":1}},"Sum":{"add":1}}`; got != want {
		t.Errorf("the first delta changed to %s, want %s", got, want)
	}
	if got, want := string(second.AppendJSON(nil)), `{"List":{"append":["n","o"]},"Map":{"put":{"n":1,"o":1}},"Sum":{"add":2}}`; got != want {
		t.Errorf("the second delta is %s, want %s", got, want)
	}
}

// A copy shows what is pending, and what is written to one of the two later is not seen in the
// other.
func TestCopyIsApart(t *testing.T) {
	s := schemaOf[every](t)
	img := filled(t, s).Draft()
	write := func(i state.Image, k string, n int) {
		e := i.Value().(*every)
		e.List.Append(k)
		e.Map.Put(k, n)
		e.Sum.Add(n)
	}
	write(img, "n", 1)
	own := img.Copy()
	write(own, "copy", 20)
	write(img, "o", 1)
	for _, c := range []struct {
		of   state.Image
		want string
	}{
		{img, `{"List":{"append":["n","o"]},"Map":{"put":{"n":1,"o":1}},"Sum":{"add":2}}`},
		{own, `{"List":{"append":["n","copy"]},"Map":{"put":{"copy":20,"n":1}},"Sum":{"add":21}}`},
	} {
		if d, err := c.of.Delta(); err != nil || string(d.AppendJSON(nil)) != c.want {
			t.Errorf("the delta is %s, %v, want %s", d.AppendJSON(nil), err, c.want)
		}
	}
}

func TestPendingWritesAreNoPartOfTheImage(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	want := string(view.AppendJSON(nil))
	for _, cell := range actions {
		for _, a := range cell.ops {
			img := view.Draft()
			a.do(img.Value().(*every))
			clean := s.New()
			clean.CopyFrom(img)
			for name, i := range map[string]state.Image{"itself": img, "draft": img.Draft(), "copy": clean} {
				if got := string(i.AppendJSON(nil)); got != want {
					t.Errorf("%s.%s: %s: %s, want %s", cell.cell, a.name, name, got, want)
				}
			}
			if d, err := clean.Delta(); err != nil || !d.IsZero() {
				t.Errorf("%s.%s: a copy has pending %s, %v", cell.cell, a.name, d.AppendJSON(nil), err)
			}
		}
	}
}

// A value that can't be stored fails the visit that wrote it, and the cell keeps its value.
func TestValuesThatCannotBeStored(t *testing.T) {
	type odd struct {
		Y  state.Value[string]
		S  state.Value[string]
		V  state.Value[[]string]
		E  state.Value[map[string]string]
		FV state.Value[float64]
		Z  state.Value[state.Frozen[[]string]]
		L  state.List[string]
		M  state.Map[string, float64]
		T  state.Set[string]
		I  state.Sum[int]
		I3 state.Sum[int32]
		D  state.Sum[int]
		F  state.Sum[float64]
		O  state.Fold[trail]
	}
	s := schemaOf[odd](t)
	view := s.New()
	write(t, view, func(o *odd) {
		o.S.Set("s")
		o.L.Append("l")
		o.I.Set(math.MaxInt)
		o.I3.Set(math.MaxInt32)
		o.D.Set(-10)
		o.F.Set(math.MaxFloat64)
		o.O.Set(trail{"o"})
	})
	const bad = "a\xff"
	tests := []struct {
		cell string
		do   func(*odd)
		want error
	}{
		{"S", func(o *odd) { o.S.Set(bad) }, state.ErrUTF8},
		{"S", func(o *odd) { o.S.Set(bad); o.S.Set("good") }, state.ErrUTF8},
		{"S", func(o *odd) { o.S.Set(bad); o.S.Clear() }, state.ErrUTF8},
		{"V", func(o *odd) { o.V.Set([]string{"good", bad}) }, state.ErrUTF8},
		{"E", func(o *odd) { o.E.Set(map[string]string{bad: "good"}) }, state.ErrUTF8},
		{"FV", func(o *odd) { o.FV.Set(math.NaN()) }, nil},
		{"Z", func(o *odd) { o.Z.Set(state.Frozen[[]string]{V: []string{bad}}) }, nil},
		{"L", func(o *odd) { o.L.Append(bad) }, state.ErrUTF8},
		{"L", func(o *odd) { o.L.Append("good", bad) }, state.ErrUTF8},
		{"L", func(o *odd) { o.L.Replace([]string{bad}) }, state.ErrUTF8},
		{"L", func(o *odd) { o.L.SetAt(0, bad); o.L.Append("good") }, state.ErrUTF8},
		{"L", func(o *odd) { o.L.Append(bad); o.L.Replace(nil) }, state.ErrUTF8},
		{"M", func(o *odd) { o.M.Put(bad, 1) }, state.ErrUTF8},
		{"M", func(o *odd) { o.M.Put("k", math.Inf(1)) }, nil},
		{"M", func(o *odd) { o.M.Delete(bad); o.M.Clear() }, state.ErrUTF8},
		{"M", func(o *odd) { o.M.Delete(bad); o.M.Replace(map[string]float64{"a": 1}) }, state.ErrUTF8},
		{"M", func(o *odd) { o.M.Replace(map[string]float64{bad: 1}) }, state.ErrUTF8},
		{"M", func(o *odd) { o.M.Replace(map[string]float64{"a": math.NaN()}) }, nil},
		{"T", func(o *odd) { o.T.Add("good", bad) }, state.ErrUTF8},
		{"T", func(o *odd) { o.T.Remove(bad); o.T.Add("good") }, state.ErrUTF8},
		{"I", func(o *odd) { o.I.Add(1) }, state.ErrOverflow},
		{"I", func(o *odd) { o.I.Add(-1); o.I.Add(2) }, state.ErrOverflow},
		{"D", func(o *odd) { o.D.Add(math.MaxInt); o.D.Add(1) }, state.ErrOverflow}, // what is added is too large, and not the sum
		{"I", func(o *odd) { o.I.Set(math.MinInt); o.I.Add(-1) }, state.ErrOverflow},
		{"I3", func(o *odd) { o.I3.Add(1); o.I3.Set(3) }, state.ErrOverflow},
		{"F", func(o *odd) { o.F.Add(math.MaxFloat64) }, state.ErrOverflow},
		{"F", func(o *odd) { o.F.Add(math.NaN()) }, state.ErrOverflow},
		{"F", func(o *odd) { o.F.Set(math.Inf(-1)) }, state.ErrOverflow},
		{"O", func(o *odd) { o.O.Merge(trail{bad}) }, state.ErrUTF8},
		{"O", func(o *odd) { o.O.Set(trail{bad}) }, state.ErrUTF8},
	}
	for i, test := range tests {
		img := view.Draft()
		o := img.Value().(*odd)
		o.Y.Set("good") // before all others
		test.do(o)
		d, err := img.Delta()
		var e *state.EncodeError
		if !errors.As(err, &e) || e.Cell != test.cell || !d.IsZero() || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%d: %v, want an EncodeError of %s: %v", i, err, test.cell, test.want)
		}
	}
	o := view.Draft().Value().(*odd)
	o.S.Set(bad)
	o.L.Append(bad)
	o.I.Add(1)
	o.F.Add(math.NaN())
	o.O.Merge(trail{bad})
	if o.S.Get() != "s" || o.L.Len() != 1 || o.I.Get() != math.MaxInt || o.F.Get() != math.MaxFloat64 || len(o.O.Get()) != 1 {
		t.Error("a write that failed changed a cell")
	}
	if o.S.Clear(); o.S.IsSet() {
		t.Error("what was cleared behind a write that failed is there")
	}
	if o.M.Has(bad) || o.T.Has(bad) {
		t.Error("what can't be a key is there")
	}
}

// Of several values that can't be stored in a cell the first is the one that is named.
func TestTheFirstValueThatCannotBeStoredIsNamed(t *testing.T) {
	type odd struct {
		V state.Value[mute]
		L state.List[mute]
		M state.Map[string, mute]
		T state.Set[mute]
		O state.Fold[mute]
		F state.Sum[float64]
	}
	s := schemaOf[odd](t)
	for cell, do := range map[string]func(o *odd, what string){
		"V": func(o *odd, what string) { o.V.Set(mute{what}) },
		"L": func(o *odd, what string) { o.L.Append(mute{what}) },
		"M": func(o *odd, what string) { o.M.Put("k", mute{what}) },
		"T": func(o *odd, what string) { o.T.Add(mute{what}) },
		"O": func(o *odd, what string) { o.O.Set(mute{what}) },
	} {
		img := s.New().Draft()
		o := img.Value().(*odd)
		do(o, "first")
		do(o, "second")
		var e *state.EncodeError
		if _, err := img.Delta(); !errors.As(err, &e) || e.Cell != cell || !strings.Contains(err.Error(), "first") {
			t.Errorf("%s: %v, want that of the first value", cell, err)
		}
	}
	img := s.New().Draft()
	o := img.Value().(*odd)
	o.F.Add(math.NaN())
	o.F.Add(math.Inf(1))
	if _, err := img.Delta(); err == nil || !strings.HasSuffix(err.Error(), "NaN") {
		t.Errorf("F: %v, want that of the first value", err)
	}
}

// mute is what no JSON can say.
type mute struct{ What string }

func (m mute) Merge(mute) mute { return m }

func (m mute) MarshalJSON() ([]byte, error) { return nil, errors.New("mute: " + m.What) }

func (*mute) UnmarshalJSON([]byte) error { return nil }

// What a record of several deltas can't hold is known before any of it is recorded.
func TestRecordableIsWhatCanBeRecorded(t *testing.T) {
	for _, cells := range []int{1, 8, 9} { // of as many sums a few are looked at without memory for them
		texts := make([]string, cells)
		for i := range texts {
			texts[i] = fmt.Sprintf(`{"name":"c%d","kind":"sum","type":{"kind":"int"}}`, i)
		}
		s, err := state.ParseSchema([]byte(`{"cells":[` + strings.Join(texts, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		const most = "9223372036854775807"
		for _, deltas := range [][]string{
			{`{"add":` + most + `}`, `{"add":1}`},
			{`{"add":1}`, `{"add":1}`},
			{`{"set":` + most + `}`, `{"add":1}`},
			{`{"set":` + most + `}`, `{"add":-1}`, `{"add":1}`},
			{`{"add":` + most + `}`, `{"set":1}`, `{"add":1}`},
			{`{"add":5}`, "", `{"add":` + most + `}`},
			{`{"add":-5}`, `{"add":` + most + `}`, `{"add":5}`, `{"add":1}`},
		} {
			view := s.New()
			var all []*state.Delta
			var recorded error
			for _, text := range deltas {
				if text == "" {
					all = append(all, nil)
					continue
				}
				d, err := s.ParseDelta([]byte(fmt.Sprintf(`{"c%d":%s}`, cells-1, text)))
				if err != nil {
					t.Fatal(err)
				}
				if all = append(all, &d); recorded == nil {
					recorded = view.Record(d)
				}
			}
			view = s.New()
			err := view.Recordable(len(all), func(i int) *state.Delta { return all[i] })
			if (err == nil) != (recorded == nil) || err != nil && err.Error() != recorded.Error() {
				t.Errorf("of %d cells, %q: %v, want %v", cells, deltas, err, recorded)
			}
			if d, err := view.Delta(); err != nil || !d.IsZero() {
				t.Errorf("of %d cells, %q: %s was recorded, %v", cells, deltas, d.AppendJSON(nil), err)
			}
		}
	}
}

// A delta stays as it is when its record is made of it.
func TestRecordedLeavesTheDelta(t *testing.T) {
	d := draft(t, filled(t, schemaOf[every](t)), func(e *every) {
		e.Sum.Add(1)
		e.Fold.Merge(trail{"x"})
	})
	want := string(d.AppendJSON(nil))
	if recorded := string(d.Recorded().AppendJSON(nil)); recorded == want {
		t.Errorf("the record is %s, with what is still to be merged", recorded)
	}
	if got := string(d.AppendJSON(nil)); got != want {
		t.Errorf("the delta is %s, and was %s", got, want)
	}
}

// What is no number of JSON's is no overflow, and is named.
func TestASumNamesWhatItCannotTake(t *testing.T) {
	type gauge struct{ F state.Sum[float64] }
	for what, do := range map[string]func(*gauge){
		"NaN":  func(o *gauge) { o.F.Add(math.NaN()) },
		"-Inf": func(o *gauge) { o.F.Set(math.Inf(-1)) },
	} {
		img := schemaOf[gauge](t).New().Draft()
		do(img.Value().(*gauge))
		_, err := img.Delta()
		if !errors.Is(err, state.ErrOverflow) || !strings.HasSuffix(err.Error(), "a sum can't take "+what) {
			t.Errorf("%v, want an ErrOverflow that names %s", err, what)
		}
	}
}

func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	s := schemaOf[every](t)
	for _, in := range []string{`{"List":{"truncate":1}}`, `{"List":{"at":{"0":"x"}}}`, `{"List":{"truncate":1,"append":["x"]}}`} {
		d, err := s.ParseDelta([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		var e *state.ApplyError
		if err := s.New().Apply(d); !errors.As(err, &e) || e.Cell != "List" {
			t.Errorf("Apply(%s) to nothing: %v", in, err)
		}
	}
	for _, in := range []string{
		`{"List":{"truncate":3}}`,
		`{"List":{"at":{"2":"x"}}}`,
		`{"Sum":{"add":9223372036854775807}}`,
	} {
		d, err := s.ParseDelta([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		var e *state.ApplyError
		if err := filled(t, s).Apply(d); !errors.As(err, &e) || !strings.HasPrefix(in, `{"`+e.Cell) {
			t.Errorf("Apply(%s): %v", in, err)
		}
		if err := filled(t, s).Record(d); !errors.As(err, &e) {
			t.Errorf("Record(%s): %v", in, err)
		}
	}
	for _, in := range []string{
		`{"Value":{"set":"new"},"List":{"truncate":3},"Map":{"put":{"k":9}}}`,
		`{"Value":{"set":"new"},"List":{"append":["x"]},"Sum":{"add":9223372036854775807}}`,
	} {
		d, err := s.ParseDelta([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		view := filled(t, s)
		before := view.AppendJSON(nil)
		if view.TryApply(&d) || !bytes.Equal(view.AppendJSON(nil), before) {
			t.Errorf("TryApply(%s) has made %s of %s", in, view.AppendJSON(nil), before)
		}
	}
	other := draft(t, schemaOf[inquiry](t).New(), func(q *inquiry) { q.Cost.Add(1) })
	if err := s.New().Apply(other); !errors.Is(err, state.ErrSchema) {
		t.Errorf("a delta of another schema: %v", err)
	}
	if view := s.New(); view.TryApply(&other) {
		t.Errorf("a delta of another schema was applied")
	}
	if err := s.New().Record(other); !errors.Is(err, state.ErrSchema) {
		t.Errorf("a delta of another schema: %v", err)
	}
}

func TestMaxValue(t *testing.T) {
	s := schemaOf[every](t)
	tests := []struct {
		do   func(*every)
		cell string
		n    int
	}{
		{func(*every) {}, "", 0},
		{func(e *every) { e.Value.Clear() }, "", 0},
		{func(e *every) { e.Value.Set("1234"); e.List.Append("1", "123456", "2") }, "List", 8},
		{func(e *every) { e.List.SetAt(0, "123"); e.Sum.Add(12) }, "List", 5},
		{func(e *every) { e.Map.Put("k", 123); e.Map.Delete("a very long key") }, "Map", 7},
		{func(e *every) { e.Set.Add("1234"); e.Set.Remove("123456") }, "Set", 6},
		{func(e *every) { e.Sum.Set(-12345) }, "Sum", 6},
		{func(e *every) { e.Fold.Merge(trail{"1", "2"}) }, "Fold", 9},
	}
	for i, test := range tests {
		d := draft(t, filled(t, s), test.do)
		if cell, n := d.MaxValue(); cell != test.cell || n != test.n {
			t.Errorf("%d: %d bytes in %q, want %d in %q", i, n, cell, test.n, test.cell)
		}
	}
}
