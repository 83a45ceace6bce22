package record

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// What a record costs is in proportion to what it tells: of fifty times as many effects and
// learnings to read, and to put in order to be merged, each takes some twice as long, and not the
// forty times that looking it up among the others would.
func TestCostOfManyItems(t *testing.T) { costs(t, timeOfItems, 1_000, 50_000, 16) }

// So it is with the words and the questions of records that are merged: of twenty times as many
// each takes hardly longer, and not ten times as long.
func TestCostOfAMerge(t *testing.T) { costs(t, timeOfAMerge, 500, 10_000, 6) }

// costs expects that many items take less than most times as long as if they came few at a time.
// Both are about as long at work, so that a machine which has other work takes its time from both.
func costs(t *testing.T, took func(*testing.T, int) time.Duration, few, many int, most float64) {
	t.Helper()
	apart, together, ratio := time.Hour, time.Hour, 0.0
	for range 5 { // the fastest of each
		var all time.Duration
		for range many / few {
			all += took(t, few)
		}
		apart, together = min(apart, all), min(together, took(t, many))
		if ratio = float64(together) / float64(apart); ratio <= most {
			return
		}
	}
	t.Errorf("%d items at once take %.1f times as long as %d at a time, and should take less than %.0f times", many, ratio, few, most)
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

// timeOfAMerge is how long it takes a record of so many tags, criteria and answered questions to
// become what the log tells now, which has as many others.
func timeOfAMerge(t *testing.T, many int) time.Duration {
	t.Helper()
	telling := func(name string) *Record {
		r := new(Record)
		for i := range many {
			id := fmt.Sprintf("%s-%d", name, i)
			r.Metadata.Tags = append(r.Metadata.Tags, id)
			r.Task.SuccessCriteria = append(r.Task.SuccessCriteria, id)
			r.QuestionsForUser = append(r.QuestionsForUser, Question{ID: id, Status: QuestionAnswered})
		}
		return r
	}
	r, fresh := telling("was"), telling("is")
	begun := time.Now()
	next, err := advanced(&Record{}, r, fresh)
	if err != nil || len(next.Metadata.Tags) != 2*many || len(next.QuestionsForUser) != 2*many || len(next.Task.SuccessCriteria) != 2*many {
		t.Fatalf("%d tags, %d questions, %v", len(next.Metadata.Tags), len(next.QuestionsForUser), err)
	}
	return time.Since(begun)
}
