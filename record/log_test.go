package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// An effect that begins behind a rewind is another one than that of its key before, whether that one
// had ended or was left behind in doubt.
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
