package catalogue

import (
	"math"
	"slices"
)

// Ratings reckons stars for the books of a list, 1 to 5, from nothing but the list. They are no
// reader's opinion: a book has one star to begin with, up to two for its age, and up to two for the
// company that it has.
//
//   - Age: the share of the dated books that are younger, times two; none if its year is unknown.
//   - Company: how many other books share a subject with it, on average over its subjects, as a
//     share of the best book's, times two.
//
// They are rounded to a tenth.
func Ratings(list []Book) []float64 {
	var years []int
	shared := make(map[string]int) // books of a subject
	for _, b := range list {
		if b.Year != 0 {
			years = append(years, b.Year)
		}
		for _, s := range b.Subjects {
			shared[s]++
		}
	}
	slices.Sort(years)
	most := 0.0
	for _, b := range list {
		most = max(most, company(b, shared))
	}
	stars := make([]float64, len(list))
	for i, b := range list {
		stars[i] = 1
		if b.Year != 0 {
			after, _ := slices.BinarySearch(years, b.Year+1)
			stars[i] += 2 * float64(len(years)-after) / float64(len(years))
		}
		if most > 0 {
			stars[i] += 2 * company(b, shared) / most
		}
		stars[i] = math.Round(stars[i]*10) / 10
	}
	return stars
}

func company(b Book, shared map[string]int) float64 {
	others := 0
	for _, s := range b.Subjects {
		others += shared[s] - 1
	}
	return float64(others) / float64(max(1, len(b.Subjects)))
}
