package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// An effect that begins behind a rewind is another one than that of its key before, whether that
// one had ended or was left behind in doubt.
func TestEffectsBehindARewind(t *testing.T) {
	l := &log{run: "r", turn: 1, effect: map[effectKey]*effect{}}
	rewinding, err := json.Marshal(checkpoint.Rewinding{To: 4, Turn: 1, Machine: json.RawMessage(`{"Generation":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []checkpoint.Entry{
		{Seq: 2, Kind: checkpoint.EffectBegun, ID: "ended"},
		{Seq: 3, Kind: checkpoint.EffectEnded, ID: "ended"},
		{Seq: 5, Kind: checkpoint.EffectBegun, ID: "doubt"},
		{Seq: 6, Kind: checkpoint.Rewound, Data: rewinding},
		{Seq: 7, Kind: checkpoint.EffectBegun, ID: "ended"},
		{Seq: 8, Kind: checkpoint.EffectBegun, ID: "doubt"},
	} {
		if e.Path = "pay"; e.Data == nil {
			e.Data = []byte("{}")
		}
		if err := l.hear(&e); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, x := range l.effects {
		got = append(got, fmt.Sprint(x.id, " ", x.tool().Status, " ", x.gone()))
	}
	want := []string{"r/pay#ended done false", "r/pay#doubt in-doubt true", "r~1/pay#ended in-doubt false", "r~1/pay#doubt in-doubt false"}
	if !slices.Equal(got, want) {
		t.Errorf("the effects are %q", got)
	}
}

// Behind a rewind an approval stays of a visit that holds a frame at the checkpoint, and not of one
// that held one before it was approved, or comes to hold one later; and so does what was said of a
// doubt, though its visit begins anew.
func TestApprovalsBehindARewind(t *testing.T) {
	l := &log{run: "r", turn: 1, effect: map[effectKey]*effect{}}
	for i, e := range []checkpoint.Entry{
		{Kind: checkpoint.Entered, Path: "failed"},
		{Kind: checkpoint.Interrupted, Path: "holds", ID: "holds", Data: []byte(`{"kind":"before"}`)},
		{Kind: checkpoint.Answered, ID: "holds"},
		{Kind: checkpoint.Entered, Path: "holds/1"},
		{Kind: checkpoint.Interrupted, Path: "failed", ID: "failed", Data: []byte(`{"kind":"before"}`)},
		{Kind: checkpoint.Answered, ID: "failed"},
		{Kind: checkpoint.Interrupted, Path: "later", ID: "later", Data: []byte(`{"kind":"before"}`)},
		{Kind: checkpoint.Answered, ID: "later"},
		{Kind: checkpoint.EffectBegun, Path: "pay", ID: "charge"},
		{Kind: checkpoint.Interrupted, Path: "pay", ID: "doubt", Data: []byte(`{"kind":"doubt"}`)},
		{Kind: checkpoint.EffectEnded, Path: "pay", ID: "charge", Data: []byte(`{"interrupt":"doubt"}`)},
		{Kind: checkpoint.Entered, Path: "later"},
		{Kind: checkpoint.Rewound, Data: []byte(`{"to":11,"machine":{}}`)},
	} {
		if e.Seq = uint64(i + 1); e.Data == nil {
			e.Data = []byte("{}")
		}
		if err := l.hear(&e); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, q := range l.questions {
		got = append(got, fmt.Sprint(q.id, " ", !q.gone()))
	}
	if want := []string{"holds true", "failed false", "later false", "doubt true"}; !slices.Equal(got, want) {
		t.Errorf("of the questions count %q", got)
	}
}
