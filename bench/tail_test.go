package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A window goes on until there is enough beside it, but not for ever.
func TestWindowWaitsForEnough(t *testing.T) {
	const long = time.Second
	for _, test := range []struct {
		name         string
		enough, each time.Duration // enough is after so long
		want         int
	}{
		{"at once", 0, long / 20, 20},
		{"in the third window", 5 * long / 2, long / 20, 50},
		{"never", time.Hour, long / 20, 200},
		{"slow ones", 0, 3 * long, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				enough := func() bool { return time.Since(began) >= test.enough }
				work := func() error { time.Sleep(test.each); return nil } // the clock of the bubble goes on by so much
				took, err := timesOf(session{quick: true, long: long}, enough, work)
				if err != nil || len(took) != test.want {
					t.Errorf("done %d times, %v; want %d", len(took), err, test.want)
				}
			})
		})
	}
}

// What was measured beside nothing reaches no target.
func TestBesideLarge(t *testing.T) {
	idle, beside := series{1000, 1000}, series{2000, 2000}
	if r := besideLarge(idle, beside, []int{1, 3}, 1<<20); !r.OK || !strings.Contains(r.Note, "of which 4 were begun") {
		t.Errorf("%+v, want one that is ok beside 4 states", r)
	}
	if r := besideLarge(idle, beside, []int{1, 0}, 1<<20); r.OK || !strings.HasPrefix(r.Note, "no large state was begun beside 1 of 2 windows; ") {
		t.Errorf("%+v, want one that is not ok", r)
	}
}
