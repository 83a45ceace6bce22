package continuation

import (
	"encoding/json"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A visit that is done asks nothing any more, nor has it anything to approve of, however its
// questions have ended: nothing holds what waits under its path behind that.
func TestAVisitThatIsDoneAsksNothing(t *testing.T) {
	for _, kind := range []string{"asked", "effect"} {
		asked, _ := json.Marshal(checkpoint.Interrupt{Kind: kind, Key: "coat", Question: json.RawMessage(`"coat?"`)})
		for path, done := range map[string]string{"ask": "ask", "frame/1/ask": "frame"} {
			h := &history{}
			for _, e := range []checkpoint.Entry{
				{Kind: checkpoint.Interrupted, Path: path, ID: "1", Data: asked},
				{Kind: checkpoint.Done, Path: done},
			} {
				if err := h.read(&e); err != nil {
					t.Fatal(err)
				}
			}
			if h.asksElse(path) {
				t.Errorf("%s waits for an %s behind the end of %s", path, kind, done)
			}
		}
	}
}
