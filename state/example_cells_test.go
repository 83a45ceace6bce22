package state_test

import (
	"encoding/json"
	"fmt"

	"github.com/pawlgo/pawl/state"
)

// Inquiry is what one question knows.
type Inquiry struct {
	Query state.Value[string]
	Books state.List[string]
	Cost  state.Sum[int]
	Best  state.Fold[Rated]
}

// Rated merges by its score.
type Rated struct {
	Title string
	Score int
}

func (r Rated) Merge(o Rated) Rated {
	if o.Score > r.Score {
		return o
	}
	return r
}

// A node writes to cells as to any other value, and is tested by calling it.
func Example() {
	var q Inquiry
	q.Query.Set("labyrinth")
	q.Books.Append("The Library of Babel", "The Name of the Rose")
	q.Cost.Add(2)
	q.Best.Merge(Rated{"The Library of Babel", 9})
	q.Best.Merge(Rated{"The Name of the Rose", 8})

	b, err := json.Marshal(q)
	fmt.Println(string(b), err)
	// Output: {"Query":"labyrinth","Books":["The Library of Babel","The Name of the Rose"],"Cost":2,"Best":{"Title":"The Library of Babel","Score":9}} <nil>
}

// What two visits wrote in one superstep is merged in declaration order.
func Example_superstep() {
	schema, err := state.Of[Inquiry]()
	if err != nil {
		fmt.Println(err)
		return
	}
	view := schema.New()
	visit := func(name string, work func(*Inquiry)) state.Write {
		draft := view.Draft()
		work(draft.Value().(*Inquiry))
		delta, err := draft.Delta()
		fmt.Println(name, string(delta.AppendJSON(nil)), err)
		return state.Write{Visit: name, Delta: delta}
	}
	library := visit("library", func(q *Inquiry) { q.Books.Append("The Library of Babel"); q.Cost.Add(1) })
	subjects := visit("subjects", func(q *Inquiry) { q.Books.Append("The Name of the Rose"); q.Cost.Add(1) })

	fmt.Println(state.Conflicts(schema, []state.Write{library, subjects}))
	fmt.Println(view.Apply(library.Delta), view.Apply(subjects.Delta))
	fmt.Println(string(view.AppendJSON(nil)))

	again := visit("again", func(q *Inquiry) { q.Books.Truncate(1) })
	fmt.Println(state.Conflicts(schema, []state.Write{library, again}))
	// Output:
	// library {"Books":{"append":["The Library of Babel"]},"Cost":{"add":1}} <nil>
	// subjects {"Books":{"append":["The Name of the Rose"]},"Cost":{"add":1}} <nil>
	// <nil>
	// <nil> <nil>
	// {"Books":["The Library of Babel","The Name of the Rose"],"Cost":2}
	// again {"Books":{"truncate":1}} <nil>
	// state: "library" and "again" write to cell "Books" in one superstep, and these writes don't merge: let one follow the other, or give the cell a type that merges
}
