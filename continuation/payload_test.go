package continuation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
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

// What a node gets is what was sent, without its spaces, however it is spelled; and a trigger that
// is repeated is the same trigger, also in another spelling of the same value.
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

// What the log could never keep is refused as the caller's fault, in Trigger, over HTTP and in
// Stop.
func TestWhatCannotBeKept(t *testing.T) {
	limits := dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 8192}}
	p := under(t, limits, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{})
	p.waits(run)
	h, err := p.rt.Handler(continuation.HandlerOptions{Secret: secret, Authorities: []dag.Authority{dag.Human}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*continuation.Trigger)
		status int
	}{
		"a long id":               {func(x *continuation.Trigger) { x.ID = strings.Repeat("i", 257) }, 422},
		"an id with a newline":    {func(x *continuation.Trigger) { x.ID = "a\nb" }, 422},
		"an id that is not UTF-8": {func(x *continuation.Trigger) { x.ID = "\xff" }, 0},
		"a run that can't be":     {func(x *continuation.Trigger) { x.Run = "a\nb" }, 422},
		"a key with a NUL":        {func(x *continuation.Trigger) { x.Key = "\x00" }, 422},
		"a key that is not UTF-8": {func(x *continuation.Trigger) { x.Key = "\xff" }, 0},
		"a long actor":            {func(x *continuation.Trigger) { x.Actor.ID = strings.Repeat("a", 1025) }, 422},
		"an actor with a newline": {func(x *continuation.Trigger) { x.Actor.ID = "ann\n" }, 422},
		"an impossible instant": {func(x *continuation.Trigger) {
			x.At = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)) // the year 10000 in UTC
		}, 0},
		"a long reason":              {func(x *continuation.Trigger) { x.Reason = strings.Repeat("r", 4097) }, 422},
		"a reason that is not UTF-8": {func(x *continuation.Trigger) { x.Reason = "\xff" }, 0},
		"a large payload": {func(x *continuation.Trigger) {
			x.Payload = json.RawMessage(`"` + strings.Repeat("p", 8192) + `"`)
		}, 413},
	} {
		tr := reply("t", "hello")
		c.change(&tr)
		p.unchanged(run, func() {
			_, err := p.rt.Trigger(t.Context(), tr)
			var argument *continuation.ArgumentError
			var payload *continuation.PayloadError
			if c.status == 413 && !errors.As(err, &payload) || c.status != 413 && !errors.As(err, &argument) {
				t.Errorf("%s: %v", name, err)
			}
			if c.status == 0 {
				return // encoding/json can't send it
			}
			if w := post(h, body(tr), nil); w.Code != c.status {
				t.Errorf("%s, over HTTP: %d %.200s, want %d", name, w.Code, w.Body, c.status)
			}
		})
	}
	for name, s := range map[string]continuation.Stopping{
		"a long author":         {Reason: "bored", By: strings.Repeat("a", 1025)},
		"an author of lines":    {Reason: "bored", By: "ann\nbob"},
		"a long text":           {Reason: "bored", Why: strings.Repeat("w", 4097)},
		"a text that is none":   {Reason: "bored", Why: "\xff"},
		"a reason without word": {Reason: "Bored!"},
	} {
		p.unchanged(run, func() {
			var argument *continuation.ArgumentError
			if _, err := p.rt.Stop(t.Context(), run, s); !errors.As(err, &argument) {
				t.Errorf("a stop with %s: %v", name, err)
			}
		})
	}
	multi := reply("t", "hello")
	multi.Reason = "first,\nand second"
	if _, err := p.rt.Trigger(t.Context(), multi); err != nil {
		t.Errorf("a reason of two lines: %v", err)
	}
}

// An empty id, and a runtime that is nil, are arguments that can't be; a run that is not there is
// said to be none.
func TestEmptyArguments(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	_, got := p.rt.Get(t.Context(), "")
	_, stopped := p.rt.Stop(t.Context(), "", continuation.Stopping{Reason: "bored"})
	_, delivered := p.rt.DeliveryOf(t.Context(), "")
	sent := continuation.Send(t.Context(), nil, run, "m", func(*Talk) {}, continuation.Wake)
	unknown := continuation.Send(t.Context(), p.rt, run, "m", func(*Talk) {}, continuation.Arrival(7))
	for _, err := range []error{got, stopped, delivered, sent, unknown} {
		var argument *continuation.ArgumentError
		if !errors.As(err, &argument) {
			t.Errorf("an empty argument, or one that there is not: %v", err)
		}
	}
	_, err := p.rt.Stop(t.Context(), "nobody", continuation.Stopping{Reason: "bored"})
	if !errors.Is(err, continuation.ErrNotFound) || !strings.Contains(err.Error(), `there is no run "nobody"`) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// A payload that does not fit is refused in the terms of whoever sent it.
func TestMisfitsAreTold(t *testing.T) {
	type address struct{ Street string }
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[[]address](ctx, "answer", continuation.Wait{})
		return err
	})
	p := talk(t, frozen(t, b))
	for payload, want := range map[string]string{
		`5`:              "is refused: 5 is no []{Street: string}: want an array",
		`[{"Street":5}]`: `is refused: [{"Street":5}] is no []{Street: string} at [0].Street: want a string`,
	} {
		tr := reply("t", "")
		tr.Payload = json.RawMessage(payload)
		p.unchanged(run, func() {
			var refused *continuation.PayloadError
			if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &refused) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// So is one whose type finds that by itself.
func TestAMisfitOfATypeOfItsOwnIsTold(t *testing.T) {
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[time.Time](ctx, "answer", continuation.Wait{})
		return err
	})
	p := talk(t, frozen(t, b))
	tr := reply("t", "yesterday")
	want := fmt.Sprintf("continuation: the payload for wait %s of run %q is refused: parsing time ", p.only(run).ID, run)
	p.unchanged(run, func() {
		_, err := p.rt.Trigger(t.Context(), tr)
		if !errors.Is(err, dispatcher.ErrAnswerType) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	})
}

// Of several waits a payload is refused in the terms of the one that it is for.
func TestAPayloadIsRefusedInTheTermsOfItsWait(t *testing.T) {
	b := dag.New[Talk]("talk")
	dag.Step(b, "first", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "text"})
		return err
	})
	dag.Step(b, "second", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[int](ctx, "answer", continuation.Wait{Key: "number"})
		return err
	})
	p := talk(t, frozen(t, b))
	for key, want := range map[string]string{"text": "true is no string", "number": "true is no int"} {
		tr := reply2("t-"+key, key)
		tr.Payload = json.RawMessage("true")
		var refused *continuation.PayloadError
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("for the key %s: %v; want that %s", key, err, want)
		}
	}
}
