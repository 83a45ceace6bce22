package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// Rows that were measured before an error are beside it.
func TestFloorsBesideAnError(t *testing.T) {
	s := session{quick: true, rounds: 1, length: 10, dir: filepath.Join(t.TempDir(), "none"), only: []string{"floor/superstep", "floor/badger"}}
	rows, err := floors(s)
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("floors = %v, want that there is no such directory", err)
	}
	if len(rows) != 1 || rows[0].Name != "floor/superstep-1KB" {
		t.Errorf("rows %+v, want floor/superstep-1KB alone", rows)
	}
}

// How often a function turns comes to what is wanted, whatever a turn takes, and at most doubles at
// once.
func TestCorrected(t *testing.T) {
	for _, test := range []struct{ turns, want, took, corrected float64 }{
		{100, 200, 200, 100},
		{100, 200, 400, 50},
		{100, 200, 150, 133.3},
		{100, 200, 1, 200},
		{100, 200, -30, 200},
	} {
		if got := corrected(test.turns, test.want, test.took); math.Abs(got-test.corrected) > 0.1 {
			t.Errorf("corrected(%v, %v, %v) = %v, want %v", test.turns, test.want, test.took, got, test.corrected)
		}
	}
	turns := 150.0
	for range 4 { // in which a turn takes three nanoseconds
		turns = corrected(turns, 150, 3*turns)
	}
	if math.Abs(turns-50) > 0.1 {
		t.Errorf("%v turns, want 50", turns)
	}
}
