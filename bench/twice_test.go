//go:build rivals

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/pawltest"
)

// A script is a worker whose lives are written down. The last one is done.
type script [][]int

func (s *script) live(int) ([]int, bool, error) {
	began := (*s)[0]
	*s = (*s)[1:]
	return began, len(*s) == 0, nil
}

func visits(from, to int) (vs []int) {
	for v := from; v < to; v++ {
		vs = append(vs, v)
	}
	return vs
}

// Every visit that begins is counted, and those of a life that had begun in an earlier one.
func TestTally(t *testing.T) {
	w := script{visits(0, 12), visits(8, 20), visits(19, visitsNeeded)}
	var got tally
	if err := got.survive(&w, func() int { return 0 }); err != nil {
		t.Fatal(err)
	}
	if want := (tally{works: 1, kills: 2, executed: visitsNeeded + 4 + 1, again: 4}); got != want {
		t.Errorf("survive counts %+v, want %+v", got, want)
	}
}

// To execute nothing again is the best, after a kill.
func TestNothingAgain(t *testing.T) {
	r := atMost("twice/again", series{0}, "visits", sideBySide, "again")
	if got := r.after(3); !got.OK || got.Note != r.Note {
		t.Errorf("after 3 kills %+v, want one that is ok", got)
	}
	if got := r.after(0); got.OK || got.Note != "no kill counted; at most; again" {
		t.Errorf("after no kill %+v, want one that is not", got)
	}
}

// Who leaves out work doesn't pay less.
func TestTallyWantsAllOfTheWork(t *testing.T) {
	w := script{visits(0, 12), visits(13, visitsNeeded)}
	err := new(tally).survive(&w, func() int { return 0 })
	if err == nil || !strings.Contains(err.Error(), "without visit 12") {
		t.Errorf("survive = %v, want an error that names visit 12", err)
	}
}

// Everyone whose work is killed in its second stage goes on with that stage or behind it, with what
// was stored of the first: no more is executed again than was in flight.
func TestWorkersGoOn(t *testing.T) {
	for name, w := range workers(t) {
		t.Run(name, func(t *testing.T) {
			const end = sideBySide + 4
			first, done, err := w.live(end)
			if err != nil || done || len(first) != end {
				t.Fatalf("the first life began %d visits, done: %v, %v; want %d, and no end", len(first), done, err, end)
			}
			second, done, err := w.live(2 * visitsNeeded)
			if err != nil || !done {
				t.Fatalf("the second life: done: %v, %v", done, err)
			}
			if v := slices.Min(second); v < sideBySide {
				t.Errorf("visit %d of the first stage began again", v)
			}
			if least := visitsNeeded - end; len(second) < least || len(second) > least+4 {
				t.Errorf("the second life began %d visits, want %d to %d", len(second), least, least+4)
			}
		})
	}
}

// Without node there is a row that says so, and no line.
func TestTwiceWithoutLangGraph(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := session{dir: t.TempDir(), charts: new(charts)}
	rows, err := paidByLangGraph(s)
	if want := []row{absent("twice/langgraph", "node is not there")}; err != nil || !slices.Equal(rows, want) {
		t.Errorf("paidByLangGraph = %+v, %v; want %+v", rows, err, want)
	}
	if lines := s.charts.twice.lines; len(lines) != 0 {
		t.Errorf("lines %v, want none", lines)
	}
}

// workers are all that are there.
func workers(t *testing.T) map[string]worker {
	all := map[string]worker{"pawl": &pawlWork{pawltest.Mortal{Store: new(memory.Store)}}}
	for _, mode := range einoModes {
		all[mode.name] = einoWork{mode, einoMap{}}
	}
	js, err := startLangGraph(t.TempDir())
	if err != nil {
		t.Logf("without LangGraph.js: %v", err)
		return all
	}
	t.Cleanup(func() {
		if err := js.close(); err != nil {
			t.Error(err)
		}
	})
	all["langgraph"] = langGraphWork{js, 1}
	return all
}
