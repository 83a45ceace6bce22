package state_test

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/state"
)

type printed struct {
	Query  state.Value[string]
	Books  state.List[string]
	Count  state.Map[string, int]
	Tags   state.Set[string]
	Cost   state.Sum[int]
	Best   state.Fold[most]
	Nested struct{ Draft state.Value[string] }
}

type most int

func (m most) Merge(n most) most { return max(m, n) }

// A state that is printed shows its values, with every verb and in nested structs.
func TestCellsPrintAsJSON(t *testing.T) {
	var s printed
	s.Query.Set("labyrinth")
	s.Books.Append("a", "b")
	s.Count.Put("x", 1)
	s.Tags.Add("new")
	s.Cost.Add(3)
	s.Best.Merge(7)
	want := `{"labyrinth" ["a","b"] {"x":1} ["new"] 3 7 {""}}`
	if got := fmt.Sprintf("%v", s); got != want {
		t.Errorf("%%v prints %s, want %s", got, want)
	}
	want = `&{Query:"labyrinth" Books:["a","b"] Count:{"x":1} Tags:["new"] Cost:3 Best:7 Nested:{Draft:""}}`
	if got := fmt.Sprintf("%+v", &s); got != want {
		t.Errorf("%%+v prints %s, want %s", got, want)
	}
	if got := s.Books.String(); got != `["a","b"]` {
		t.Errorf("a list prints as %s", got)
	}
}
