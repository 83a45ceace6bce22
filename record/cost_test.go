package record

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// What a record costs is in proportion to what it tells: of fifty times as many effects and learnings to read, and to put in order
// to be merged, it takes some hundred times as long, and not the two thousand that looking each up among the others would.
func TestCostOfManyItems(t *testing.T) {
	const few, many, most = 1_000, 50_000, 800
	short, long, ratio := time.Hour, time.Hour, 0.0
	for range 5 { // the fastest of each: the machine may have other work
		short, long = min(short, timeOfItems(t, few)), min(long, timeOfItems(t, many))
		if ratio = float64(long) / float64(short); ratio <= most {
			return
		}
	}
	t.Errorf("%d items take %.0f times as long as %d, and should take less than %d times", many, ratio, few, most)
}

// timeOfItems is how long it takes to tell of so many effects and learnings.
func timeOfItems(t *testing.T, many int) time.Duration {
	t.Helper()
	begun := time.Now()
	l := &log{run: "r", turn: 1, effect: map[effectKey]*effect{}}
	told := telling{log: l, said: map[[2]string]int{}}
	r := new(Record)
	for i := range many {
		path := fmt.Sprintf("pay/%d", i)
		if err := l.begun(&checkpoint.Entry{Path: path, ID: "k", Data: json.RawMessage("{}")}, place{turn: 1, path: path}); err != nil {
			t.Fatal(err)
		}
		said := json.RawMessage(fmt.Sprintf(`{"id":%q}`, path))
		told.noted(r, &noted{Note: checkpoint.Note{Name: dag.NoteLearning, Value: said}})
	}
	for _, x := range l.effects {
		r.ToolEffects = append(r.ToolEffects, ToolEffect{ID: x.id})
	}
	if all := order(nil, r.ToolEffects, r.ToolEffects); len(all) != many || len(r.Learnings) != many {
		t.Fatalf("%d effects and %d learnings", len(all), len(r.Learnings))
	}
	return time.Since(begun)
}
