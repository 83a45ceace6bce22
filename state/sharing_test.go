package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Two images that share a chunk of a list never see each other's elements, though both
// append to it.
func TestImagesThatShareAListNeverMeet(t *testing.T) {
	s := schemaOf[every](t)
	for _, n := range []int{0, 1, 3, 4, 5, 255, 256, 257, 1000} {
		base := s.New()
		write(t, base, func(e *every) { e.List.Append(slices.Repeat([]string{"base"}, n)...) })
		a, b := base.Draft(), base.Draft()
		for i := range 300 {
			write(t, a, func(e *every) { e.List.Append(fmt.Sprint("a", i)) })
			write(t, b, func(e *every) { e.List.Append(fmt.Sprint("b", i), "more") })
		}
		if got := base.Value().(*every).List.Len(); got != n {
			t.Errorf("the base has %d elements, want %d", got, n)
		}
		for i := range 300 {
			x, y := a.Value().(*every).List.At(n+i), b.Value().(*every).List.At(n+2*i)
			if x != fmt.Sprint("a", i) || y != fmt.Sprint("b", i) {
				t.Fatalf("base of %d: element %d is %s and %s", n, i, x, y)
			}
		}
	}
}

// Runs on several goroutines may begin at one image, as forks do. Run with -race.
func TestImagesMayBeSharedBetweenGoroutines(t *testing.T) {
	s := schemaOf[mixed](t)
	base := s.New()
	write(t, base, func(m *mixed) {
		m.List.Append("a", "b")
		m.Words.Set([]string{"w"})
		m.Group.Books.Append(book{"t", 1})
		m.Map.Put("a", 1)
	})
	base = reparse(t, s, base) // values are not decoded yet
	results := make([]string, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			view := base.Draft()
			for range 50 {
				write(t, view, func(m *mixed) {
					m.List.Append(m.List.At(0))
					m.Group.Books.Append(m.Group.Books.At(0))
					m.Map.Put("b", len(m.Words.Get()))
				})
			}
			results[i] = string(view.AppendJSON(nil))
		})
	}
	wg.Wait()
	for _, r := range results {
		if r != results[0] {
			t.Errorf("%s, want %s", r, results[0])
		}
	}
}

// What is applied beneath pending writes shows through them.
func TestApplyBeneathPendingWrites(t *testing.T) {
	s := schemaOf[every](t)
	img := filled(t, s)
	e := img.Value().(*every)
	e.List.Append("mine")
	e.Map.Put("mine", 1)
	e.Map.Delete("a")
	e.Sum.Add(1)
	d := draft(t, filled(t, s), func(e *every) {
		e.List.Append("theirs")
		e.Map.Put("mine", 2)
		e.Map.Put("theirs", 2)
		e.Sum.Add(10)
	})
	if err := img.Apply(d); err != nil {
		t.Fatal(err)
	}
	if got := e.List.Slice(); fmt.Sprint(got) != "[l m theirs mine]" {
		t.Errorf("the list shows %v", got)
	}
	if v, _ := e.Map.Get("mine"); v != 1 || e.Map.Len() != 2 || !e.Map.Has("theirs") || e.Sum.Get() != 12 {
		t.Errorf("the map shows %d keys, the sum %d", e.Map.Len(), e.Sum.Get())
	}
	e.Map.Put("more", 1)
	if e.Map.Len() != 3 {
		t.Errorf("the map shows %d keys", e.Map.Len())
	}
}

func TestACopiedStructIsAnotherState(t *testing.T) {
	for _, cell := range actions {
		for _, a := range cell.ops {
			s := schemaOf[every](t)
			img := filled(t, s).Draft()
			e := img.Value().(*every)
			a.do(e)
			was := natural(t, e)
			other := *e
			e.Value.Set("2")
			e.Whole.Set(book{"2", 2})
			e.List.Append("2")
			e.List.SetAt(0, "3")
			e.Map.Put("2", 2)
			e.Set.Add("2")
			e.Sum.Add(2)
			e.Fold.Merge(trail{"2"})
			if now := natural(t, &other); now != was {
				t.Errorf("%s.%s: the copy became %s, was %s", cell.cell, a.name, now, was)
			}
			is := natural(t, e)
			a.do(&other)
			other.List.Append("4")
			other.Map.Put("4", 2)
			if now := natural(t, e); now != is {
				t.Errorf("%s.%s: the original became %s, was %s", cell.cell, a.name, now, is)
			}
		}
	}
}

// What a cell is given is text between quotes in each delta and snapshot, and the writer's string
// in memory.
func TestAStringThatNeedsNoEscapeIsNotCopied(t *testing.T) {
	img := schemaOf[every](t).New()
	e := img.Value().(*every)
	plain := strings.Repeat("text", 1000)
	quoted := `"` + plain
	for text, allocations := range map[string]float64{plain: 1, quoted: 2} {
		if n := testing.AllocsPerRun(100, func() { e.Value.Set(text) }); n != allocations {
			t.Errorf("to set %.9s... allocates %v times, want %v", text, n, allocations)
		}
	}
}

// The JSON of a cell is the caller's: a state does not change with it.
func TestTheJSONOfACellIsACopy(t *testing.T) {
	e := schemaOf[every](t).New().Value().(*every)
	e.Value.Set(`"said"`)
	e.Whole.Set(book{"title", 1})
	e.Fold.Set(trail{"step"})
	for _, cell := range []json.Marshaler{e.Value, e.Whole, e.Fold} {
		was, err := cell.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want := string(was)
		clear(was)
		if is, err := cell.MarshalJSON(); err != nil || string(is) != want {
			t.Errorf("it is %q, %v, and was %s", is, err, want)
		}
	}
}

// DESIGN section 6: the cost of a visit is proportional to what it writes, never to the
// size of the state.
func TestCostDoesNotGrowWithTheState(t *testing.T) {
	s := schemaOf[every](t)
	cost := func(n int) float64 {
		view := s.New()
		write(t, view, func(e *every) {
			for i := range n {
				e.List.Append("l")
				e.Map.Put(fmt.Sprintf("%06d", i), i) // sorted, which unbalances a careless tree
				e.Set.Add(fmt.Sprintf("%06d", i))
			}
		})
		i := n
		return testing.AllocsPerRun(200, func() {
			write(t, view, func(e *every) {
				i++
				e.List.Append("l")
				e.Map.Put(fmt.Sprintf("%06d", i), i)
				e.Set.Remove(fmt.Sprintf("%06d", i-n))
				e.Map.Len()
			})
		})
	}
	// Thirty times as many keys are 5 more levels of a balanced tree, times about two for a
	// treap, times two cells.
	small, big := cost(1_000), cost(30_000)
	if big > small+50 {
		t.Errorf("%.0f allocations beside 1 000 elements, %.0f beside 30 000", small, big)
	}
}
