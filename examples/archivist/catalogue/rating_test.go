package catalogue_test

import (
	"slices"
	"testing"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// Stars come from the list alone: one to begin with, two for age, two for company.
func TestRatings(t *testing.T) {
	list := []catalogue.Book{
		{Title: "old and alone", Year: 1000, Subjects: []string{"bees"}},
		{Title: "old and in company", Year: 1500, Subjects: []string{"maps"}},
		{Title: "young and in company", Year: 2000, Subjects: []string{"maps"}},
		{Title: "half in company", Year: 1990, Subjects: []string{"maps", "moss"}},
		{Title: "of unknown age, about nothing"},
	}
	want := []float64{2.5, 4, 3, 2.5, 1}
	if got := catalogue.Ratings(list); !slices.Equal(got, want) {
		t.Errorf("Ratings = %v, want %v", got, want)
	}
	for i, stars := range catalogue.Ratings(catalogue.Default()) {
		if stars < 1 || stars > 5 {
			t.Errorf("book %d has %v stars", i, stars)
		}
	}
	if got := catalogue.Ratings(nil); len(got) != 0 {
		t.Errorf("no books have stars %v", got)
	}
}
