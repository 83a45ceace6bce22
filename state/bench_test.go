package state_test

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/state"
)

type book struct {
	Title string
	Year  int
}

type rated struct {
	Title string
	Score int
}

func (r rated) Merge(o rated) rated {
	if o.Score > r.Score {
		return o
	}
	return r
}

// inquiry is a state of five cells.
type inquiry struct {
	Query state.Value[string]
	Books state.List[book]
	Cost  state.Sum[int]
	Best  state.Fold[rated]
	Draft state.Value[string]
}

// BenchmarkSuperstep is what a superstep of one node costs the state: a draft, one
// Sum.Add, the delta, and its application.
func BenchmarkSuperstep(b *testing.B) {
	s := schemaOf[inquiry](b)
	step := func(b *testing.B, view, draft state.Image) {
		draft.Value().(*inquiry).Cost.Add(1)
		d, err := draft.Delta()
		if err == nil {
			err = view.Apply(d)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("draft=new", func(b *testing.B) {
		b.ReportAllocs()
		view := s.New()
		for b.Loop() {
			step(b, view, view.Draft())
		}
	})
	b.Run("draft=copied", func(b *testing.B) {
		b.ReportAllocs()
		view, draft := s.New(), s.New()
		for b.Loop() {
			draft.CopyFrom(view)
			step(b, view, draft)
		}
	})
}

// n1 is how many appends BenchmarkAppend makes before it begins again.
const n1 = 1024

// BenchmarkAppend is one superstep that appends one book to a list of n to n+n1.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("elements=%d", n), func(b *testing.B) {
			s := schemaOf[inquiry](b)
			full := s.New()
			write(b, full, func(q *inquiry) {
				for i := range n {
					q.Books.Append(book{"On shelves", i})
				}
			})
			b.ReportAllocs()
			view := full.Draft()
			for i := 0; b.Loop(); i++ {
				if i%n1 == n1-1 {
					view = full.Draft()
				}
				write(b, view, func(q *inquiry) { q.Books.Append(book{"On ladders", 1}) })
			}
		})
	}
}

// BenchmarkSet is one superstep that sets a string of a kilobyte.
func BenchmarkSet(b *testing.B) {
	s := schemaOf[inquiry](b)
	view, text := s.New(), fmt.Sprintf("%01024d", 0)
	b.ReportAllocs()
	for b.Loop() {
		write(b, view, func(q *inquiry) { q.Draft.Set(text) })
	}
}

// BenchmarkParseDelta is what a replay reads of a superstep that added to a sum.
func BenchmarkParseDelta(b *testing.B) {
	s := schemaOf[inquiry](b)
	for _, in := range []string{`{"Cost":{"add":1}}`, `{"Draft":{"set":"A library is a labyrinth."}}`, `{"Books":{"append":[{"Title":"On ladders","Year":1}]}}`} {
		b.Run(in[2:6], func(b *testing.B) {
			b.ReportAllocs()
			raw := []byte(in)
			for b.Loop() {
				if _, err := s.ParseDelta(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func schemaOf[S any](t testing.TB) *state.Schema {
	t.Helper()
	s, err := state.Of[S]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write applies what f writes to a draft of view, and returns the delta.
func write[S any](t testing.TB, view state.Image, f func(*S)) state.Delta {
	t.Helper()
	d := draft(t, view, f)
	if err := view.Apply(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// draft returns what f writes to a draft of view.
func draft[S any](t testing.TB, view state.Image, f func(*S)) state.Delta {
	t.Helper()
	img := view.Draft()
	f(img.Value().(*S))
	d, err := img.Delta()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// BenchmarkParse loads a state of 10 000 strings of a kilobyte.
func BenchmarkParse(b *testing.B) {
	type shelf struct {
		List state.List[string]
		Map  state.Map[string, string]
	}
	s := schemaOf[shelf](b)
	text := fmt.Sprintf("%01021d", 0)
	for name, fill := range map[string]func(*shelf){
		"list": func(f *shelf) {
			for range 10_000 {
				f.List.Append(text)
			}
		},
		"map": func(f *shelf) {
			for i := range 10_000 {
				f.Map.Put(fmt.Sprint(i), text)
			}
		},
	} {
		view := s.New()
		write(b, view, fill)
		raw := view.AppendJSON(nil)
		b.Run("cell="+name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("append="+name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				raw = view.AppendJSON(raw[:0])
			}
		})
	}
}

// BenchmarkMapPut is one superstep that puts one number into a map of n.
func BenchmarkMapPut(b *testing.B) {
	for _, n := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s := schemaOf[every](b)
			view := s.New()
			keys := make([]string, n+1)
			write(b, view, func(e *every) {
				for i := range keys {
					keys[i] = fmt.Sprint("key", i)
					e.Map.Put(keys[i], i)
				}
			})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				write(b, view, func(e *every) { e.Map.Put(keys[i%len(keys)], i) })
			}
		})
	}
}
