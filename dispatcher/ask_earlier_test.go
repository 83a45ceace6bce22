package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Answers that a snapshot of an earlier version holds have no numbers: they stand in the order of
// their instants, as they did, and before those that came since.
func TestAnswersOfAnEarlierSnapshotStandFirst(t *testing.T) {
	at := time.Now()
	answers := map[string]*heard{}
	for key, a := range map[string]struct {
		number uint64
		at     time.Duration
	}{"b": {0, 2}, "d": {0, 1}, "c": {0, 2}, "a": {7, 0}, "e": {6, 3}} {
		answers[key] = &heard{Answer: checkpoint.Answer{How: checkpoint.AnswerGiven, At: at.Add(a.at)}, Number: a.number}
	}
	v := &visit{footing: &footing{given: &given{answers: answers}}}
	var told []string
	for _, a := range v.Answers() {
		told = append(told, a.Key)
	}
	if want := []string{"d", "b", "c", "e", "a"}; !slices.Equal(told, want) {
		t.Errorf("the node is told %q, want %q", told, want)
	}
}
