package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/state"
)

// DESIGN section 6: the zero value works.
func TestZeroCellsWork(t *testing.T) {
	var e every
	if e.Value.Get() != "" || e.Value.IsSet() || e.Whole.Get() != (book{}) || e.Sum.Get() != 0 || e.Fold.IsSet() {
		t.Error("a zero cell is not zero")
	}
	if e.List.Len() != 0 || e.Map.Len() != 0 || e.Set.Len() != 0 || len(e.List.Slice()) != 0 || e.Fold.Get() != nil {
		t.Error("a zero cell is not empty")
	}
	if _, ok := e.Map.Get("k"); ok || e.Map.Has("k") || e.Set.Has("k") {
		t.Error("a zero cell has a key")
	}
	for range e.List.All() {
		t.Error("a zero list yields")
	}
	e.Value.Set("v")
	e.List.Append("l")
	e.Map.Put("k", 1)
	e.Set.Add("s")
	e.Sum.Add(2)
	e.Fold.Merge(trail{"f"})
	if e.Value.Get() != "v" || e.List.At(0) != "l" || !e.Map.Has("k") || !e.Set.Has("s") || e.Sum.Get() != 2 || e.Fold.Get()[0] != "f" {
		t.Error("a cell outside of any image does not show what was written")
	}
}

// DESIGN section 6: each reader gets a copy of its own of what is not plain.
func TestReadersMayChangeWhatTheyGet(t *testing.T) {
	type deep struct {
		V state.Value[[]int]
		W state.Whole[map[string][]int]
		L state.List[[]int]
		M state.Map[string, *book]
		T state.Set[[1]*book]
		F state.Fold[trail]
	}
	s := schemaOf[deep](t)
	view := s.New()
	ints := []int{1}
	write(t, view, func(d *deep) {
		d.V.Set(ints)
		ints[0] = 9 // the writer, too, keeps nothing of the cell
		if d.V.Get()[0] != 1 {
			t.Error("a value changed with what it was written from")
		}
		d.W.Set(map[string][]int{"a": {1}})
		d.L.Append([]int{1})
		d.M.Put("a", &book{"t", 1})
		d.T.Add([1]*book{{"t", 1}})
		d.F.Set(trail{"f"})
	})
	before := string(view.AppendJSON(nil))
	change := func(d *deep) {
		d.V.Get()[0]++
		d.W.Get()["a"][0]++
		d.L.At(0)[0]++
		d.L.Slice()[0][0]++
		b, _ := d.M.Get("a")
		b.Year++
		for _, v := range d.L.All() {
			v[0]++
		}
		for _, v := range d.M.All() {
			v.Year++
		}
		for v := range d.T.All() {
			v[0].Year++
		}
		d.F.Get()[0] = "g"
	}
	one, two := view.Draft().Value().(*deep), view.Draft().Value().(*deep)
	change(one)
	change(one)
	for name, d := range map[string]*deep{"itself": one, "another draft": two, "the image": view.Value().(*deep)} {
		b, _ := d.M.Get("a")
		if d.V.Get()[0] != 1 || d.W.Get()["a"][0] != 1 || d.L.At(0)[0] != 1 || b.Year != 1 || d.F.Get()[0] != "f" {
			t.Errorf("%s shows what a reader did to its copy", name)
		}
	}
	if after := string(view.AppendJSON(nil)); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

// DESIGN section 6: Frozen opts out of the copy.
func TestFrozenIsShared(t *testing.T) {
	type index struct {
		V state.Value[state.Frozen[map[string]int]]
		L state.List[state.Frozen[[]int]]
	}
	s := schemaOf[index](t)
	view := s.New()
	mine := map[string]int{"a": 1}
	write(t, view, func(i *index) {
		i.V.Set(state.Frozen[map[string]int]{V: mine})
		i.L.Append(state.Frozen[[]int]{V: []int{1}})
	})
	mine["a"] = 2 // what was written is not what is shared
	one, two := view.Draft().Value().(*index), view.Draft().Value().(*index)
	if one.V.Get().V["a"] != 1 {
		t.Error("a frozen value changed with what it was written from")
	}
	one.V.Get().V["b"] = 1
	one.L.At(0).V[0] = 7
	if two.V.Get().V["b"] != 1 || two.L.At(0).V[0] != 7 {
		t.Error("a frozen value was copied")
	}
	if got, want := string(view.AppendJSON(nil)), `{"V":{"a":1},"L":[[1]]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if k := s.Cells()[0].Type.String(); k != "map[string]int" {
		t.Errorf("the type of a frozen cell is %s", k)
	}
}

func natural(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// DESIGN section 6: json.Marshal of S gives the natural object.
func TestJSONOfAStateIsTheNaturalObject(t *testing.T) {
	s := schemaOf[mixed](t)
	view := s.New()
	zero := `{"Value":"","Whole":{"Title":"","Year":0},"List":[],"Map":{},"Set":[],"Sum":0,"Fold":null,` +
		`"words":null,"Ratio":0,"group":{"Books":[],"pages":{},"Small":0,"Seen":[],"Best":{"Title":"","Score":0}}}`
	if got := natural(t, view.Value()); got != zero {
		t.Errorf("zero: %s, want %s", got, zero)
	}
	img := view.Draft()
	m := img.Value().(*mixed)
	m.Value.Set("v")
	m.Whole.Set(book{"t", 1})
	m.List.Append("b", "a")
	m.Map.Put("b", 2)
	m.Map.Put("a", 1)
	m.Set.Add("b", "a")
	m.Sum.Add(3)
	m.Fold.Merge(trail{"f"})
	m.Words.Set([]string{"w"})
	m.Ratio.Add(1e-7)
	m.Group.Pages.Put(10, []int{1})
	m.Group.Pages.Put(9, nil)
	m.Group.Best.Merge(rated{"r", 1})
	want := `{"Value":"v","Whole":{"Title":"t","Year":1},"List":["b","a"],"Map":{"a":1,"b":2},"Set":["a","b"],"Sum":3,"Fold":["f"],` +
		`"words":["w"],"Ratio":1e-7,"group":{"Books":[],"pages":{"10":[1],"9":null},"Small":0,"Seen":[],"Best":{"Title":"r","Score":1}}}`
	if got := natural(t, *m); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back mixed
	if err := json.Unmarshal([]byte(want), &back); err != nil {
		t.Fatal(err)
	}
	if got := natural(t, back); got != want {
		t.Errorf("read back: %s, want %s", got, want)
	}
}

func TestUnmarshalIsRecorded(t *testing.T) {
	s := schemaOf[every](t)
	img := filled(t, s).Draft()
	in := `{"Value":"x","List":["y"],"Map":{"z":1},"Set":["q"],"Sum":4,"Fold":["g"],"Whole":{"Title":"h"}}`
	if err := json.Unmarshal([]byte(in), img.Value()); err != nil {
		t.Fatal(err)
	}
	d, err := img.Delta()
	want := `{"Value":{"set":"x"},"Whole":{"set":{"Title":"h","Year":0}},"List":{"replace":["y"]},` +
		`"Map":{"clear":true,"put":{"z":1}},"Set":{"clear":true,"add":["q"]},"Sum":{"set":4},"Fold":{"set":["g"]}}`
	if got := string(d.AppendJSON(nil)); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, in := range []string{`{"Value":1}`, `{"List":1}`, `{"Map":[]}`, `{"Set":{}}`, `{"Sum":"1"}`, `{"Fold":1}`, `{"Whole":1}`} {
		if err := json.Unmarshal([]byte(in), new(every)); err == nil {
			t.Errorf("%s was read", in)
		}
	}
	if err := json.Unmarshal([]byte(`{"pages":{"x":[]}}`), &new(mixed).Group); err == nil {
		t.Error("a word was read as an integer key")
	}
}

func TestIndexesPanicAsThoseOfSlices(t *testing.T) {
	var l state.List[int]
	l.Append(1, 2, 3)
	for name, f := range map[string]func(){
		"index out of range [3] with length 3": func() { l.At(3) },
		"index out of range [-1]":              func() { l.SetAt(-1, 0) },
		"slice bounds out of range [:4]":       func() { l.Truncate(4) },
		"slice bounds out of range [:-1]":      func() { l.Truncate(-1) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), name) {
					t.Errorf("panic %v, want %s", err, name)
				}
			}()
			f()
		}()
	}
	if l.Len() != 3 {
		t.Error("a refused index changed the list")
	}
}

func TestLoopsSeeTheCellAsItStoodWhenTheyBegan(t *testing.T) {
	var e every
	e.List.Append("a", "b", "c")
	e.Map.Put("a", 1)
	e.Map.Put("b", 2)
	e.Set.Add("a", "b")
	var seen []string
	for i, v := range e.List.All() {
		e.List.Append("new")
		e.List.SetAt(2, "changed")
		seen = append(seen, fmt.Sprintf("%d %s", i, v))
	}
	for k, v := range e.Map.All() {
		e.Map.Clear()
		seen = append(seen, fmt.Sprintf("%s %d", k, v))
	}
	for v := range e.Set.All() {
		e.Set.Remove("b")
		seen = append(seen, v)
	}
	if want := []string{"0 a", "1 b", "2 c", "a 1", "b 2", "a", "b"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	for range e.List.All() {
		break
	}
	for range e.Set.All() {
		break
	}
}

func TestKeysOfEveryAllowedType(t *testing.T) {
	type name string
	type keys struct {
		S state.Map[name, int]
		I state.Map[int64, int]
		U state.Map[uint8, int]
		T state.Map[time.Time, int]
		B state.Set[bool]
		F state.Set[float64]
	}
	s := schemaOf[keys](t)
	view := s.New()
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	write(t, view, func(k *keys) {
		k.S.Put("b\n", 1)
		k.S.Put("é", 2)
		k.I.Put(-5, 1)
		k.I.Put(40, 2)
		k.U.Put(255, 1)
		k.T.Put(day, 1)
		k.B.Add(true, false)
		k.F.Add(1.5, 1e30)
	})
	want := `{"S":{"b\n":1,"é":2},"I":{"-5":1,"40":2},"U":{"255":1},"T":{"2026-01-02T00:00:00Z":1},"B":[false,true],"F":[1.5,1e+30]}`
	if got := string(view.AppendJSON(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	k := reparse(t, s, view).Value().(*keys)
	if v, ok := k.S.Get("b\n"); v != 1 || !ok || !k.I.Has(-5) || !k.U.Has(255) || !k.T.Has(day) || !k.B.Has(false) || !k.F.Has(1e30) {
		t.Error("a key was not found")
	}
	for i := range k.I.All() {
		if i != -5 && i != 40 {
			t.Errorf("key %d", i)
		}
	}
	for at := range k.T.All() {
		if !at.Equal(day) {
			t.Errorf("key %s", at)
		}
	}
	for u := range k.U.All() {
		if u != 255 {
			t.Errorf("key %d", u)
		}
	}
	for n := range k.S.All() {
		if n != "b\n" && n != "é" {
			t.Errorf("key %q", n)
		}
	}
}

func TestStoredJSONThatDoesNotFitPanics(t *testing.T) {
	type typed struct {
		I state.Value[int]
		S state.Value[string]
		B state.Value[bool]
		L state.List[book]
		M state.Map[int, int]
		F state.Fold[rated]
	}
	s := schemaOf[typed](t)
	img, err := s.Parse([]byte(`{"I":"1","S":[],"B":0,"L":[7],"M":{"x":1},"F":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	v := img.Value().(*typed)
	for i, f := range []func(){
		func() { v.I.Get() },
		func() { v.S.Get() },
		func() { v.B.Get() },
		func() { v.L.At(0) },
		func() {
			for range v.M.All() {
			}
		},
		func() { v.F.Get() },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				var d *state.DecodeError
				if !errors.As(err, &d) || d.Type == "" || d.Unwrap() == nil {
					t.Errorf("%d: panic %v, want a DecodeError", i, err)
				}
			}()
			f()
		}()
	}
}

func TestWholeIsAStateOfItsOwn(t *testing.T) {
	type order struct {
		Lines []string
		Total *big.Int
	}
	s := schemaOf[state.Whole[order]](t)
	view := s.New()
	write(t, view, func(w *state.Whole[order]) {
		w.Update(func(o order) order {
			o.Lines, o.Total = append(o.Lines, "a"), big.NewInt(7)
			return o
		})
	})
	if got, want := string(view.AppendJSON(nil)), `{"state":{"Lines":["a"],"Total":7}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if o := reparse(t, s, view).Value().(*state.Whole[order]).Get(); o.Lines[0] != "a" || o.Total.Int64() != 7 {
		t.Errorf("%v", o)
	}
	if d := draft(t, view, func(w *state.Whole[order]) { w.Clear() }); string(d.AppendJSON(nil)) != `{"state":{"clear":true}}` {
		t.Errorf("%s", d.AppendJSON(nil))
	}
}

type checked struct{ N state.Sum[int] }

func (c *checked) Check() error {
	if c.N.Get() > 1 {
		return errors.New("too many")
	}
	return nil
}

func TestCheckIsTheStatesOwn(t *testing.T) {
	view := schemaOf[checked](t).New()
	if err := view.Check(); err != nil {
		t.Error(err)
	}
	write(t, view, func(c *checked) { c.N.Add(2) })
	if err := view.Check(); err == nil {
		t.Error("Check was not called")
	}
	if err := schemaOf[every](t).New().Check(); err != nil {
		t.Error(err)
	}
}

// A key is stored under the name that it has in JSON.
func TestKeysMayHoldAnyCharacter(t *testing.T) {
	s := schemaOf[every](t)
	view := s.New()
	want := map[string]int{}
	for i, k := range trickyStrings {
		write(t, view, func(e *every) { e.Map.Put(k, i); e.Set.Add(k) })
		want[k] = i
	}
	if got := string(view.AppendJSON(nil)); !strings.HasPrefix(got, `{"Map":`+asJSON(t, want)) {
		t.Errorf("%s, want %s", got, asJSON(t, want))
	}
	e := reparse(t, s, view).Value().(*every)
	for k, i := range want {
		if got, ok := e.Map.Get(k); got != i || !ok || !e.Set.Has(k) {
			t.Errorf("%q is lost", k)
		}
		d := draft(t, view, func(e *every) { e.Map.Delete(k); e.Set.Remove(k) })
		if raw := d.AppendJSON(nil); d.Size() != len(raw) || !json.Valid(raw) {
			t.Errorf("size %d of %s", d.Size(), raw)
		}
	}
}

func TestErrorsNameTheirCell(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		`state: "a" and "b" write to key "k" of cell "C" in one superstep, and these writes don't merge: let one follow the other, or give the cell a type that merges`: &state.ConflictError{Cell: "C", Key: "k", Visits: [2]string{"a", "b"}},
		`state: cell "C": a written value can't be stored: cause`: &state.EncodeError{Cell: "C", Err: cause},
		`state: a stored value does not fit int: cause`:           &state.DecodeError{Type: "int", Err: cause},
		`state: cell "C": cause`:                                  &state.ApplyError{Cell: "C", Err: cause},
		`state: cell "C": at byte 3: cause`:                       &state.ParseError{Cell: "C", Offset: 3, Err: cause},
		`state: at byte 3: cause`:                                 &state.ParseError{Offset: 3, Err: cause},
	} {
		if err.Error() != want {
			t.Errorf("%s, want %s", err, want)
		}
		if errors.Unwrap(err) != cause && !strings.Contains(want, "superstep") {
			t.Errorf("%s does not unwrap", err)
		}
	}
}

// What is merged into a Fold first is its value, also if that merged with the zero value would be
// another one.
func TestFoldBeginsWithWhatIsMerged(t *testing.T) {
	type folds struct{ F state.Fold[least] }
	view := schemaOf[folds](t).New()
	draft := view.Draft().Value().(*folds)
	draft.F.Merge(5)
	if got := draft.F.Get(); got != 5 {
		t.Errorf("behind the first Merge Get = %d, want 5", got)
	}
	if draft.F.Merge(7); draft.F.Get() != 5 {
		t.Errorf("behind the second Merge Get = %d, want 5", draft.F.Get())
	}
}
