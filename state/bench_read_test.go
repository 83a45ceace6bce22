package state_test

import (
	"fmt"
	"testing"
)

// BenchmarkRead is what a node pays to read a whole List: of plain structs, which are shared.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("cell=list/elements=%d", n), func(b *testing.B) {
			view := schemaOf[inquiry](b).New()
			write(b, view, func(q *inquiry) {
				for i := range n {
					q.Books.Append(book{"On shelves", i})
				}
			})
			b.ReportAllocs()
			for b.Loop() {
				years := 0
				for _, x := range view.Draft().Value().(*inquiry).Books.All() {
					years += x.Year
				}
				if years == 0 {
					b.Fatal("the list is empty")
				}
			}
		})
	}
}

// BenchmarkParseRead loads a state of n structs of a kilobyte from its JSON, and reads none of them
// or all: what opening a run costs beside its log.
func BenchmarkParseRead(b *testing.B) {
	const n = 1_000
	s := schemaOf[inquiry](b)
	full := s.New()
	write(b, full, func(q *inquiry) {
		for i := range n {
			q.Books.Append(book{fmt.Sprintf("%01000d", i), i})
		}
	})
	raw := full.AppendJSON(nil)
	for _, read := range []int{0, n} {
		b.Run(fmt.Sprintf("elements=%d/read=%d", n, read), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				view, err := s.Parse(raw)
				if err != nil {
					b.Fatal(err)
				}
				q := view.Value().(*inquiry)
				for i := range read {
					if q.Books.At(i).Year != i {
						b.Fatal("another book")
					}
				}
			}
		})
	}
}
