package record

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// What a record costs is in proportion to what it tells: 50 000 effects and learnings are read, and put
// in order to be merged, in the time that looking each up among the others would take many times over.
func TestCostOfManyItems(t *testing.T) {
	const many, most = 50_000, 5 * time.Second
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
	if took := time.Since(begun); took > most {
		t.Errorf("%d items take %s, and should take less than %s", many, took, most)
	}
}
