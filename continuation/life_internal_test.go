package continuation

import (
	"encoding/json"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// In a log of an earlier build, which does not say whether a failure is followed, a resume has the
// wait of the visit go on. It has not if the superstep ends, or the run rests, though nobody has
// tried the visit again: then its failure was followed. Behind another attempt it goes on.
func TestAFailureThatTurnsOutToBeFollowed(t *testing.T) {
	raw := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	q := raw(question{Version: version, Name: "answer", Attempt: 1, Level: 1, Levels: 1, MaxFailures: 3, Of: []alternative{{Kind: KindReply}}})
	asked := checkpoint.Entry{Kind: checkpoint.Interrupted, Path: "ask", ID: "1", Data: raw(checkpoint.Interrupt{Kind: "asked", Question: q})}
	again := asked
	again.ID = "2"
	failed := checkpoint.Entry{Kind: checkpoint.AttemptFailed, Path: "ask", Data: raw(checkpoint.FailedAttempt{Kind: "error", Message: "bad weather", Final: true})}
	before := []checkpoint.Entry{
		asked,
		{Kind: checkpoint.Answered, ID: "1", Seq: 2, Data: raw(checkpoint.Answer{How: checkpoint.AnswerGiven, Value: raw(letter{Trigger: taken{ID: "t", Kind: KindReply}})})},
		{Kind: checkpoint.Resumed}, failed, {Kind: checkpoint.Resumed},
	}
	for name, c := range map[string]struct {
		then   []checkpoint.Entry
		status Status
		why    string
	}{
		"nothing yet":             {nil, StatusPending, ""},
		"the run rests":           {[]checkpoint.Entry{{Kind: checkpoint.Waiting}}, StatusFailed, "bad weather"},
		"its superstep ends":      {[]checkpoint.Entry{{Kind: checkpoint.Superstep}}, StatusFailed, "bad weather"},
		"it was asked again":      {[]checkpoint.Entry{again, {Kind: checkpoint.Waiting}}, StatusPending, ""},
		"it has asked for a coat": {[]checkpoint.Entry{{Kind: checkpoint.Interrupted, Path: "ask", ID: "3", Data: raw(checkpoint.Interrupt{Kind: "effect", Key: "coat"})}, {Kind: checkpoint.Waiting}}, StatusPending, ""},
		"another superstep ends":  {[]checkpoint.Entry{{Kind: checkpoint.Superstep, Path: "other"}}, StatusPending, ""},
		"its visit is done":       {[]checkpoint.Entry{{Kind: checkpoint.Done, Path: "ask"}, {Kind: checkpoint.Superstep}}, StatusResolved, ""},
		"and begins anew":         {[]checkpoint.Entry{{Kind: checkpoint.Done, Path: "ask"}, {Kind: checkpoint.Voided, Data: raw([]string{"ask"})}, {Kind: checkpoint.Waiting}}, StatusPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			for _, e := range append(before[:len(before):len(before)], c.then...) {
				if err := h.read(&e); err != nil {
					t.Fatal(err)
				}
			}
			status, _, why, _ := h.waits[0].stands()
			if status != c.status || status.Terminal() && why != c.why {
				t.Errorf("it is %s (%s), want %s (%s)", status, why, c.status, c.why)
			}
		})
	}
}
