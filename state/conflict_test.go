package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// every holds one cell of every kind.
type every struct {
	Value state.Value[string]
	Whole state.Whole[book]
	List  state.List[string]
	Map   state.Map[string, int]
	Set   state.Set[string]
	Sum   state.Sum[int]
	Fold  state.Fold[trail]
}

// trail merges by appending: associative, and order can be seen.
type trail []string

func (t trail) Merge(o trail) trail { return append(t, o...) }

// An action is one operation on a cell, in a state that every cell was filled for.
type action struct {
	name string
	do   func(*every)
}

var actions = []struct {
	cell string
	ops  []action
	// merge names the pairs of operations that merge; all others conflict.
	merge []string
}{
	{"Value", []action{
		{"Set", func(e *every) { e.Value.Set("x") }},
		{"Clear", func(e *every) { e.Value.Clear() }},
		{"Update", func(e *every) { e.Value.Update(func(s string) string { return s }) }},
	}, nil},
	{"Whole", []action{
		{"Set", func(e *every) { e.Whole.Set(book{}) }},
		{"Clear", func(e *every) { e.Whole.Clear() }},
		{"Update", func(e *every) { e.Whole.Update(func(b book) book { return b }) }},
	}, nil},
	{"List", []action{
		{"Append", func(e *every) { e.List.Append("x") }},
		{"Replace", func(e *every) { e.List.Replace([]string{"x"}) }},
		{"ReplaceNone", func(e *every) { e.List.Replace(nil) }},
		{"Truncate", func(e *every) { e.List.Truncate(1) }},
		{"TruncateNone", func(e *every) { e.List.Truncate(e.List.Len()) }},
		{"SetAt", func(e *every) { e.List.SetAt(0, "x") }},
		{"SetAtOwn", func(e *every) { e.List.Append("x"); e.List.SetAt(e.List.Len()-1, "y") }},
	}, []string{"Append Append"}},
	{"Map", []action{
		{"PutA", func(e *every) { e.Map.Put("a", 7) }},
		{"PutB", func(e *every) { e.Map.Put("b", 7) }},
		{"DeleteA", func(e *every) { e.Map.Delete("a") }},
		{"DeleteB", func(e *every) { e.Map.Delete("b") }},
		{"Replace", func(e *every) { e.Map.Replace(map[string]int{"c": 1}) }},
		{"Clear", func(e *every) { e.Map.Clear() }},
	}, []string{"PutA PutB", "PutA DeleteB", "PutB DeleteA", "DeleteA DeleteB"}},
	{"Set", []action{
		{"AddA", func(e *every) { e.Set.Add("a") }},
		{"AddB", func(e *every) { e.Set.Add("b") }},
		{"RemoveA", func(e *every) { e.Set.Remove("a") }},
		{"RemoveB", func(e *every) { e.Set.Remove("b") }},
		{"Clear", func(e *every) { e.Set.Clear() }},
	}, []string{
		"AddA AddA", "AddB AddB", "AddA AddB", "AddA RemoveB", "AddB RemoveA",
		"RemoveA RemoveA", "RemoveB RemoveB", "RemoveA RemoveB",
	}},
	{"Sum", []action{
		{"Add", func(e *every) { e.Sum.Add(1) }},
		{"AddNone", func(e *every) { e.Sum.Add(0) }},
		{"Set", func(e *every) { e.Sum.Set(1) }},
		{"SetAdd", func(e *every) { e.Sum.Set(1); e.Sum.Add(1) }},
	}, []string{"Add Add", "Add AddNone", "AddNone AddNone"}},
	{"Fold", []action{
		{"Merge", func(e *every) { e.Fold.Merge(trail{"x"}) }},
		{"Set", func(e *every) { e.Fold.Set(trail{"x"}) }},
		{"SetMerge", func(e *every) { e.Fold.Set(trail{"x"}); e.Fold.Merge(trail{"y"}) }},
	}, []string{"Merge Merge"}},
}

func filled(t testing.TB, s *state.Schema) state.Image {
	view := s.New()
	write(t, view, func(e *every) {
		e.Value.Set("v")
		e.Whole.Set(book{"w", 1})
		e.List.Append("l", "m")
		e.Map.Put("a", 1)
		e.Set.Add("a")
		e.Sum.Set(1)
		e.Fold.Set(trail{"f"})
	})
	return view
}

// DESIGN section 6, the table: what merges, and what conflicts.
func TestConflictsAreExactlyTheTable(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	for _, cell := range actions {
		merges := map[string]bool{}
		for _, pair := range cell.merge {
			merges[pair] = true
		}
		for _, a := range cell.ops {
			for _, b := range cell.ops {
				want := !merges[a.name+" "+b.name] && !merges[b.name+" "+a.name]
				err := state.Conflicts(s, []state.Write{
					{Visit: "a", Delta: draft(t, view, a.do)},
					{Visit: "b", Delta: draft(t, view, b.do)},
				})
				if want && state.Apart(s, []state.Delta{draft(t, view, a.do), draft(t, view, b.do)}) {
					t.Errorf("%s: %s beside %s are apart", cell.cell, a.name, b.name)
				}
				if (err != nil) != want {
					t.Errorf("%s: %s beside %s: %v, want a conflict: %v", cell.cell, a.name, b.name, err, want)
				}
				var c *state.ConflictError
				if err != nil && (!errors.As(err, &c) || c.Cell != cell.cell || c.Visits != [2]string{"a", "b"}) {
					t.Errorf("%s: %s beside %s: %#v", cell.cell, a.name, b.name, err)
				}
			}
		}
	}
}

func TestDifferentCellsNeverConflict(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	for i, a := range actions {
		for _, b := range actions[i+1:] {
			for _, x := range a.ops {
				for _, y := range b.ops {
					err := state.Conflicts(s, []state.Write{{Delta: draft(t, view, x.do)}, {Delta: draft(t, view, y.do)}})
					if apart := state.Apart(s, []state.Delta{draft(t, view, x.do), draft(t, view, y.do)}); err != nil || !apart {
						t.Errorf("%s of %s beside %s of %s: %v; apart: %v", x.name, a.cell, y.name, b.cell, err, apart)
					}
				}
			}
		}
	}
}

// DESIGN section 3, rule 5: an error names the cell and both visits.
func TestTheFirstConflictIsNamed(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	write := func(visit string, f func(*every)) state.Write {
		return state.Write{Visit: visit, Delta: draft(t, view, f)}
	}
	tests := []struct {
		name   string
		writes []state.Write
		want   string
	}{
		{"pair in declaration order", []state.Write{
			write("one", func(e *every) { e.List.Append("x") }),
			write("two", func(e *every) { e.List.Append("x") }),
			write("three", func(e *every) { e.List.Replace(nil) }),
		}, `List "" one three`},
		{"cell in the order of the schema", []state.Write{
			write("one", func(e *every) { e.Sum.Set(1); e.Value.Set("x") }),
			write("two", func(e *every) { e.Sum.Set(1) }),
			write("three", func(e *every) { e.Value.Set("x") }),
		}, `Value "" one three`},
		{"smallest key", []state.Write{
			write("one", func(e *every) { e.Map.Put("z", 1); e.Map.Put("k", 1); e.Map.Put("a", 1) }),
			write("two", func(e *every) { e.Map.Delete("z"); e.Map.Delete("k") }),
		}, `Map "k" one two`},
		{"pair before key", []state.Write{
			write("one", func(e *every) { e.Map.Put("b", 1); e.Map.Put("c", 1) }),
			write("two", func(e *every) { e.Map.Put("c", 1) }),
			write("three", func(e *every) { e.Map.Put("b", 1) }),
		}, `Map "c" one two`},
		{"element", []state.Write{
			write("one", func(e *every) { e.Set.Add("k") }),
			write("two", func(e *every) { e.Set.Add("k") }),
			write("three", func(e *every) { e.Set.Remove("k") }),
		}, `Set "\"k\"" one three`},
		{"removed by itself", []state.Write{
			write("one", func(e *every) { e.Set.Add("k"); e.Set.Remove("k") }),
			write("two", func(e *every) { e.Set.Add("k") }),
		}, `Set "\"k\"" one two`},
	}
	for _, test := range tests {
		var c *state.ConflictError
		if !errors.As(state.Conflicts(s, test.writes), &c) {
			t.Errorf("%s: no conflict", test.name)
			continue
		}
		if got := fmt.Sprintf("%s %q %s %s", c.Cell, c.Key, c.Visits[0], c.Visits[1]); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestConflictsAmongManyCells(t *testing.T) {
	type ten struct{ A, B, C, D, E, F, G, H, I, J state.Value[int] }
	type forty struct{ A, B, C, D ten }
	s := schemaOf[forty](t)
	view := s.New()
	set := draft(t, view, func(f *forty) { f.D.J.Set(1) })
	err := state.Conflicts(s, []state.Write{{Visit: "a", Delta: set}, {Visit: "b", Delta: set}})
	if want := `state: "a" and "b" write to cell "D.J" in one superstep, and these writes don't merge: let one follow the other, or give the cell a type that merges`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A keyedStep is what one visit does to a Map or Set: true puts or adds, false deletes or removes.
type keyedStep struct {
	clear bool
	keys  map[string]bool
}

// clash is what Conflicts says of p and q alone, told key by key.
func (p keyedStep) clash(q keyedStep, set bool) (key string, ok bool) {
	if p.clear || q.clear {
		return "", true
	}
	for _, k := range slices.Sorted(maps.Keys(p.keys)) {
		if add, both := q.keys[k]; both && (!set || add != p.keys[k]) {
			return k, true
		}
	}
	return "", false
}

// What is found in one pass is the first of all pairs.
func TestConflictsAreThoseOfTheFirstPair(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	found := map[string]int{}
	for round := range 4000 {
		set := r.IntN(2) == 0
		steps := make([]keyedStep, 2+r.IntN(6))
		writes := make([]state.Write, len(steps))
		keys := 2 + r.IntN(30)
		for i := range steps {
			step := keyedStep{clear: r.IntN(12) == 0, keys: map[string]bool{}}
			for range r.IntN(5) {
				step.keys[fmt.Sprintf("%02d", r.IntN(keys))] = r.IntN(4) > 0
			}
			steps[i] = step
			writes[i] = state.Write{Visit: fmt.Sprint(i), Delta: draft(t, view, func(e *every) {
				switch {
				case step.clear && set:
					e.Set.Clear()
				case step.clear:
					e.Map.Clear()
				}
				for k, add := range step.keys {
					switch {
					case set && add:
						e.Set.Add(k)
					case set:
						e.Set.Remove(k)
					case add:
						e.Map.Put(k, 1)
					default:
						e.Map.Delete(k)
					}
				}
			})}
		}
		want := "<nil>"
	pairs:
		for i, p := range steps {
			for j, q := range steps[i+1:] {
				wrote := func(s keyedStep) bool { return s.clear || len(s.keys) > 0 }
				if key, ok := p.clash(q, set); ok && wrote(p) && wrote(q) {
					want = fmt.Sprintf("%q %d %d", key, i, i+1+j)
					break pairs
				}
			}
		}
		got := "<nil>"
		var c *state.ConflictError
		if errors.As(state.Conflicts(s, writes), &c) {
			if set && c.Key != "" {
				c.Key = strings.Trim(c.Key, `"`)
			}
			got = fmt.Sprintf("%q %s %s", c.Key, c.Visits[0], c.Visits[1])
		}
		if got != want {
			t.Fatalf("round %d of seed %d: set %v, %v: %s, want %s", round, seed, set, steps, got, want)
		}
		found[want[:2]]++
	}
	if found["<n"] == 0 || found[`""`] == 0 || found[`"0`] == 0 {
		t.Errorf("only %v was found", found)
	}
}

// Two of very many visits that write to one key are found without a look at each pair: that would
// take minutes.
func TestConflictAmongVeryManyVisits(t *testing.T) {
	const n = 100_000
	s := schemaOf[every](t)
	view := s.New()
	writes := make([]state.Write, n)
	for i := range writes {
		writes[i] = state.Write{Visit: fmt.Sprint(i), Delta: draft(t, view, func(e *every) {
			e.Map.Put(fmt.Sprint(min(i, n-2)), i)
		})}
	}
	var c *state.ConflictError
	if !errors.As(state.Conflicts(s, writes), &c) || c.Key != "99998" || c.Visits != [2]string{"99998", "99999"} {
		t.Errorf("found %v", c)
	}
}

// However many cells a state has, a conflict at the last of them is found.
func TestConflictsOfAnyNumberOfCells(t *testing.T) {
	for cells := 1; cells <= 40; cells++ {
		texts := make([]string, cells)
		for i := range texts {
			texts[i] = fmt.Sprintf(`{"name":"c%d","kind":"value","type":{"kind":"int"}}`, i)
		}
		s, err := state.ParseSchema([]byte(`{"cells":[` + strings.Join(texts, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("c%d", cells-1)
		d, err := s.ParseDelta([]byte(`{"` + last + `":{"set":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		var found *state.ConflictError
		if err := state.Conflicts(s, []state.Write{{Visit: "a", Delta: d}, {Visit: "b", Delta: d}}); !errors.As(err, &found) || found.Cell != last {
			t.Errorf("of %d cells: %v", cells, err)
		}
		if state.Apart(s, []state.Delta{d, d}) {
			t.Errorf("of %d cells they are apart", cells)
		}
	}
}
