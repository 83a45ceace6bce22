package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/examples/archivist/search"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", nil},
		{"What's a book about a labyrinth?", []string{"labyrinth"}},
		{"Find me some novels on the French Revolution, please!", []string{"french", "revolution"}},
		{"Sea, SEA, sea and Land", []string{"sea", "land"}},
		{"I don't know; it\u2019s Borges's", []string{"borges"}},
		{"R.U.R.", []string{"r", "u"}},
		{"2001: a space odyssey", []string{"2001", "space", "odyssey"}},
		{"García Márquez, Čapek", []string{"garcía", "márquez", "čapek"}},
		{"garci\u0301a", []string{"garci\u0301a"}},
		{"sci-fi_robots", []string{"sci", "fi", "robots"}},
		{"maze\x00rose\xff\"NEAR(", []string{"maze", "rose", "near"}},
		{"図書館 библиотека", []string{"図書館", "библиотека"}},
	} {
		if got := search.Terms(c.query); !slices.Equal(got, c.want) {
			t.Errorf("Terms(%q) = %q, want %q", c.query, got, c.want)
		}
	}
}

func TestTermsAreBounded(t *testing.T) {
	var page strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&page, "word%d word%d ", i, i)
	}
	got := search.Terms(page.String())
	if len(got) != 64 || got[0] != "word0" || got[63] != "word63" {
		t.Errorf("Terms gives %d terms, want the first 64", len(got))
	}
}
