package continuation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// Payloads that encoding/json would write otherwise than they came.
var spellings = []string{
	"\"<b>&amp;</b> \u2028 \u2029\"", `"\u003cb\u003e\u0026\u2028"`, `"grüß 世界 🦀 \ud83e\udd80 \/"`,
	"{ \"b&\" : [ 1.0 , 1e3 , 12345678901234567890 ],\n\t\"a<\" : \"\u2028\" }",
}

// remembers is a graph of a node that takes any payload, and says it as it came.
func remembers(t testing.TB) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[json.RawMessage](ctx, "answer", continuation.Wait{})
		if err != nil {
			return err
		}
		s.Said.Append(string(r.Payload))
		return nil
	})
	return frozen(t, b)
}

// What a node gets is what was sent, without its spaces, however it is spelled; and a trigger that is
// repeated is the same trigger, also in another spelling of the same value.
func TestPayloadsAreWhatWasSent(t *testing.T) {
	for i, payload := range spellings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := talk(t, remembers(t))
			h, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret, Authorities: []dag.Authority{dag.Human}})
			if err != nil {
				t.Fatal(err)
			}
			tr := reply("t", "")
			tr.Payload = json.RawMessage(payload)
			out, err := p.rt.Trigger(t.Context(), tr)
			if err != nil || out.Status != continuation.StatusResolved {
				t.Fatalf("%+v, %v", out, err)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, tr.Payload); err != nil {
				t.Fatal(err)
			}
			if said := p.said(run); said[0] != compact.String() {
				t.Errorf("the node got %s, and %s was sent", said[0], payload)
			}
			p.unchanged(run, func() {
				if again, err := p.rt.Trigger(t.Context(), tr); err != nil || again != out {
					t.Errorf("again: %+v, %v", again, err)
				}
				for range 2 { // encoding/json spells it with escapes here
					if w := post(h, body(tr), nil); w.Code != 200 {
						t.Errorf("again, over HTTP: %d %s", w.Code, w.Body)
					}
				}
			})
		})
	}
}

// The same holds of triggers that come over HTTP.
func TestPayloadsOverHTTP(t *testing.T) {
	for i, payload := range spellings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := talk(t, remembers(t))
			h, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret, Authorities: []dag.Authority{dag.Human}})
			if err != nil {
				t.Fatal(err)
			}
			raw := fmt.Sprintf(`{"id":"t","run":%q,"kind":"user_reply","actor":{"id":"ann","authority":"human"},"payload":%s}`, run, payload)
			first := post(h, raw, nil)
			if first.Code != 200 {
				t.Fatalf("%d %s", first.Code, first.Body)
			}
			p.stands(run, continuation.StatusResolved, continuation.Completed)
			p.unchanged(run, func() {
				if again := post(h, raw, nil); again.Code != 200 || again.Body.String() != first.Body.String() {
					t.Errorf("again: %d %s", again.Code, again.Body)
				}
			})
		})
	}
}
