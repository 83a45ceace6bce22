package state_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// mixed holds every kind of cell, of plain values and of others, in groups.
type mixed struct {
	every
	Words state.Value[[]string] `json:"words"`
	Ratio state.Sum[float64]
	Group struct {
		Books state.List[book]
		Pages state.Map[int, []int] `json:"pages"`
		Small state.Sum[int32]
		Seen  state.Set[book]
		Best  state.Fold[rated]
	} `json:"group"`
}

// scribble writes something somewhere.
func scribble(r *rand.Rand, m *mixed) {
	word := func() string { return string(rune('a' + r.IntN(8))) }
	switch r.IntN(23) {
	case 0:
		m.Value.Set(word() + "\n\u2028é\"")
	case 1:
		m.Value.Clear()
	case 2:
		m.Whole.Set(book{word(), r.IntN(100)})
	case 3, 4, 5:
		m.List.Append(slices.Repeat([]string{word()}, r.IntN(300))...)
	case 6:
		m.List.Truncate(r.IntN(m.List.Len() + 1))
	case 7:
		m.List.Replace([]string{word()})
	case 8:
		for range min(m.List.Len(), r.IntN(4)) {
			m.List.SetAt(r.IntN(m.List.Len()), word())
		}
	case 9, 10:
		m.Map.Put(word(), r.IntN(100))
	case 11:
		m.Map.Delete(word())
	case 12:
		m.Map.Replace(map[string]int{word(): 1, word(): 2})
	case 13:
		m.Set.Add(word(), word())
	case 14:
		m.Set.Remove(word())
	case 15:
		m.Sum.Add(r.IntN(100) - 50)
	case 16:
		m.Fold.Merge(trail{word()})
	case 17:
		m.Words.Set([]string{word(), word()})
	case 18:
		m.Ratio.Add(float64(r.IntN(100)) / 8) // exact: sums of these are associative
		m.Group.Small.Add(int32(r.IntN(9)))
	case 19:
		m.Group.Books.Append(book{word(), r.IntN(100)})
		m.Group.Seen.Add(book{word(), r.IntN(3)})
	case 20:
		m.Group.Pages.Put(r.IntN(20), []int{1, 2})
		m.Group.Best.Merge(rated{word(), r.IntN(100)})
	case 21:
		switch r.IntN(5) {
		case 0:
			m.Map.Clear()
		case 1:
			m.Set.Clear()
		case 2:
			m.Sum.Set(r.IntN(100))
		case 3:
			m.Fold.Set(trail{word()})
		case 4:
			m.Fold.Set(trail{word()})
			m.Fold.Merge(trail{word()})
		}
	case 22:
		m.Group.Pages.Delete(r.IntN(20))
		m.Group.Seen.Remove(book{word(), r.IntN(3)})
	}
}

// superstep returns the writes of up to four visits that merge.
func superstep(t *testing.T, r *rand.Rand, s *state.Schema, view state.Image) []state.Write {
	var writes []state.Write
	for visit := range 1 + r.IntN(4) {
		d := draft(t, view, func(m *mixed) {
			for range r.IntN(6) {
				scribble(r, m)
			}
		})
		writes = append(writes, state.Write{Visit: strconv.Itoa(visit), Delta: d})
		if state.Conflicts(s, writes) != nil {
			writes = writes[:len(writes)-1]
		}
	}
	return writes
}

// A fold is one way to fold the deltas of a frame: a view, and an outer image.
type fold struct {
	name        string
	s           *state.Schema
	view, outer state.Image
	reread      bool // deltas come from their JSON
}

func (f *fold) take(t *testing.T, d state.Delta) state.Delta {
	if !f.reread {
		return d
	}
	raw := d.AppendJSON(nil)
	if d.Size() != len(raw) {
		t.Fatalf("size %d of %d bytes: %s", d.Size(), len(raw), raw)
	}
	back, err := f.s.ParseDelta(raw)
	if err != nil {
		t.Fatal(err)
	}
	if again := back.AppendJSON(nil); !bytes.Equal(raw, again) {
		t.Fatalf("%s became %s", raw, again)
	}
	return back
}

func (f *fold) step(t *testing.T, writes []state.Write, m state.Merged) {
	var err error
	for _, w := range writes {
		d := f.take(t, w.Delta)
		if err == nil {
			tried := f.view.Draft()
			did := tried.TryApply(&d)
			if err = f.view.Apply(d); did != (err == nil) || did && !bytes.Equal(tried.AppendJSON(nil), f.view.AppendJSON(nil)) {
				t.Fatalf("TryApply has made %s, Apply %s: %v", tried.AppendJSON(nil), f.view.AppendJSON(nil), err)
			}
		}
		if err == nil {
			err = f.outer.Record(d)
		}
	}
	if err == nil {
		err = f.view.Apply(f.take(t, m.State))
	}
	if err == nil {
		err = f.outer.Record(f.take(t, m.Outer))
	}
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
}

func folds(t *testing.T, s *state.Schema, start state.Image) []*fold {
	raw, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := state.ParseSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	fs := []*fold{{name: "live", s: s}, {name: "typed, from JSON", s: s, reread: true}, {name: "untyped", s: parsed, reread: true}}
	for _, f := range fs {
		f.view = reparse(t, f.s, start)
		f.outer = f.view.Draft()
	}
	return fs
}

func reparse(t testing.TB, s *state.Schema, img state.Image) state.Image {
	t.Helper()
	raw := img.AppendJSON(nil)
	back, err := s.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if img.Size() != len(raw) || back.Size() != len(raw) || !bytes.Equal(back.AppendJSON(nil), raw) {
		t.Fatalf("%d bytes %s became %d bytes %s", img.Size(), raw, back.Size(), back.AppendJSON(nil))
	}
	return back
}

// DESIGN section 2: live values and the fold of the encoded bytes, with Go types and
// without, are equal. Section 3, rule 4: a frame's delta is the fold of its inner ones, so
// applying it outside gives what was applied inside.
func TestEveryWayToFoldGivesTheSameBytes(t *testing.T) {
	s := schemaOf[mixed](t)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		start := s.New()
		write(t, start, func(m *mixed) {
			for range 10 {
				scribble(r, m)
			}
		})
		fs := folds(t, s, start)
		for range 1 + r.IntN(5) {
			writes := superstep(t, r, s, fs[0].view)
			m, err := state.Merge(fs[0].view, fs[0].outer, writes)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fs {
				f.step(t, writes, m)
				reparse(t, f.s, f.view)
			}
		}
		compare(t, seed, s, start, fs)
		if t.Failed() {
			return
		}
	}
}

func compare(t *testing.T, seed uint64, s *state.Schema, start state.Image, fs []*fold) {
	want := string(fs[0].view.AppendJSON(nil))
	for _, f := range fs {
		if got := string(f.view.AppendJSON(nil)); got != want {
			t.Errorf("seed %d: %s:\n%s, want\n%s", seed, f.name, got, want)
		}
		d, err := f.outer.Delta()
		if err != nil {
			t.Fatal(err)
		}
		back, err := s.ParseDelta(d.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		m, err := state.Merge(start, state.Image{}, []state.Write{{Visit: "frame", Delta: back}})
		if err != nil {
			t.Fatal(err)
		}
		end := reparse(t, s, start)
		if err := end.Apply(back); err != nil {
			t.Fatal(err)
		}
		if err := end.Apply(m.State); err != nil {
			t.Fatal(err)
		}
		if got := string(end.AppendJSON(nil)); got != want {
			t.Errorf("seed %d: %s, applied outside:\n%s, want\n%s", seed, f.name, got, want)
		}
	}
}

// A model is what the cells of a draft have to show, in Go's own types.
type model struct {
	list []string
	keys map[string]int
	set  map[string]bool
}

// TestDraftsShowTheirOwnWrites also copies the struct at random: the copy must go on
// showing what it showed, whatever is written to the original.
func TestDraftsShowTheirOwnWrites(t *testing.T) {
	s := schemaOf[every](t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		base := s.New()
		m := model{nil, map[string]int{}, map[string]bool{}}
		for range 4 {
			img := base.Draft()
			e := img.Value().(*every)
			var old []every
			var oldModels []model
			for range 40 {
				modelStep(r, e, &m)
				m.check(t, seed, e)
				if r.IntN(8) == 0 {
					old = append(old, *e)
					oldModels = append(oldModels, model{slices.Clone(m.list), maps.Clone(m.keys), maps.Clone(m.set)})
				}
			}
			for i := range old {
				oldModels[i].check(t, seed, &old[i])
				modelStep(r, &old[i], &oldModels[i])
				oldModels[i].check(t, seed, &old[i])
			}
			m.check(t, seed, e)
			d, err := img.Delta()
			if err == nil {
				err = base.Apply(d)
			}
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, seed, base.Value().(*every))
		}
		if t.Failed() {
			return
		}
	}
}

func modelStep(r *rand.Rand, e *every, m *model) {
	word := strconv.Itoa(r.IntN(60))
	switch op := r.IntN(40); {
	case op < 10:
		vs := slices.Repeat([]string{word}, r.IntN(120))
		e.List.Append(vs...)
		m.list = append(m.list, vs...)
	case op < 13 && len(m.list) > 0:
		i := r.IntN(len(m.list))
		e.List.SetAt(i, word)
		m.list = slices.Clone(m.list)
		m.list[i] = word
	case op < 15:
		n := r.IntN(len(m.list) + 1)
		e.List.Truncate(n)
		m.list = slices.Clone(m.list[:n])
	case op == 15:
		e.List.Replace([]string{word, word})
		m.list = []string{word, word}
	case op < 24:
		e.Map.Put(word, op)
		m.keys[word] = op
	case op < 28:
		e.Map.Delete(word)
		delete(m.keys, word)
	case op == 28:
		e.Map.Clear()
		clear(m.keys)
	case op < 35:
		e.Set.Add(word)
		m.set[word] = true
	case op < 39:
		e.Set.Remove(word)
		delete(m.set, word)
	default:
		e.Set.Clear()
		clear(m.set)
	}
}

func (m *model) check(t *testing.T, seed uint64, e *every) {
	t.Helper()
	if e.List.Len() != len(m.list) || !slices.Equal(e.List.Slice(), m.list) {
		t.Errorf("seed %d: the list shows %d elements %v, want %v", seed, e.List.Len(), e.List.Slice(), m.list)
	}
	if got := maps.Collect(e.Map.All()); e.Map.Len() != len(m.keys) || !maps.Equal(got, m.keys) {
		t.Errorf("seed %d: the map shows %d keys %v, want %v", seed, e.Map.Len(), got, m.keys)
	}
	got := slices.Collect(e.Set.All())
	want := slices.Sorted(maps.Keys(m.set))
	if e.Set.Len() != len(want) || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("seed %d: the set shows %d elements %q, want %q", seed, e.Set.Len(), got, want)
	}
	for _, k := range []string{"1", "2", "3"} {
		if v, ok := e.Map.Get(k); v != m.keys[k] || ok != e.Map.Has(k) || e.Set.Has(k) != m.set[k] {
			t.Errorf("seed %d: key %s: %d, %v, %v", seed, k, v, ok, e.Set.Has(k))
		}
	}
}
