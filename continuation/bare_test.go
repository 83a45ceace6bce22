package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// deciding is a graph of a wait and what Choose makes of it.
func deciding(t *testing.T, w continuation.Wait) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("deciding")
	ways := []continuation.Decision{continuation.Approved, continuation.Denied}
	ask := dag.Route(b, "ask", func(ctx context.Context, _ *Talk) (continuation.Decision, error) {
		r, err := continuation.Await[string](ctx, "answer", w)
		return continuation.Choose(r, err, continuation.Approved, continuation.Denied)
	}, ways)
	for _, way := range ways {
		dag.Step(b, "is-"+string(way), func(_ context.Context, s *Talk) error {
			s.Said.Append(string(way))
			return nil
		}, ask.On(way))
	}
	return frozen(t, b)
}

// What the dispatcher's Answer brings ends a wait if it is a trigger that this takes, and is
// refused if it is none. An approval has a decision.
func TestABareAnswerIsATriggerOfItsWait(t *testing.T) {
	approval := continuation.Wait{Kind: continuation.KindApproval, Key: "k", OnDeny: continuation.Feed}
	external, timer := continuation.Wait{Kind: continuation.KindExternal}, continuation.Wait{Kind: continuation.KindTimer, After: time.Hour}
	several := continuation.Any(continuation.Wait{Key: "a"}, continuation.Wait{Key: "b"})
	for _, c := range []struct {
		wait   continuation.Wait
		answer string
		taken  bool
	}{
		{approval, `{}`, false},
		{approval, `{"payload":"x"}`, false},
		{approval, `{"trigger":{}}`, false},
		{approval, `{"trigger":{"kind":"user_reply"}}`, false},
		{approval, `{"trigger":{"kind":"approval_resolution"}}`, false},
		{approval, `{"trigger":{"kind":"approval_resolution","decision":"perhaps"}}`, false},
		{approval, `{"trigger":{"decision":"approved"}}`, false},
		{approval, `{"trigger":{"decision":"denied"}}`, false},
		{approval, `{"trigger":{"kind":"approval_resolution","decision":"denied"}}`, false},
		{approval, `{"trigger":{"kind":"approval_resolution","decision":"approved","key":"other"}}`, false},
		{approval, `{"trigger":{"id":"t","kind":"approval_resolution"}}`, false},
		{approval, `{"trigger":{"kind":"approval_resolution","decision":"approved"}}`, true},
		{approval, `{"trigger":{"kind":"approval_resolution","decision":"denied","feeds":true,"key":"k"}}`, true},
		{continuation.Wait{}, `{}`, false},
		{continuation.Wait{}, `{"trigger":{"kind":"user_reply","decision":"denied"}}`, false},
		{continuation.Wait{}, `{"trigger":{"kind":"user_reply","decision":"perhaps"}}`, false},
		{continuation.Wait{}, `{"trigger":{"kind":"user_reply"},"payload":"x"}`, true},
		{external, `{}`, false},
		{external, `{"trigger":{"kind":"external_result"}}`, true},
		{timer, `{}`, false},
		{timer, `{"trigger":{"kind":"user_reply"}}`, false},
		{several, `{"trigger":{"kind":"user_reply"}}`, false},
		{several, `{"trigger":{"kind":"user_reply","key":"c"}}`, false},
		{several, `{"trigger":{"kind":"user_reply","key":"b"}}`, true},
		{continuation.Any(approval, timer), `{}`, false},
	} {
		p := talk(t, waiting(t, c.wait, dag.Policy{}, says))
		if c.taken {
			if err := p.d.Answer(t.Context(), run, "", json.RawMessage(c.answer)); err != nil {
				t.Errorf("%s: %v", c.answer, err)
			}
			continue
		}
		p.unchanged(run, func() {
			if err := p.d.Answer(t.Context(), run, "", json.RawMessage(c.answer)); !errors.Is(err, dispatcher.ErrAnswerType) {
				t.Errorf("%s: %v", c.answer, err)
			}
		})
	}
}

// A process that has not asked knows nothing of the wait, and takes what its visit does not: as in
// a log of old, that is no trigger. The wait is asked again, and takes one.
func TestABareAnswerOfAnotherProcess(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": `{}`, "a payload": `{"payload":"x"}`, "another kind": `{"trigger":{"kind":"user_reply"}}`,
		"no decision": `{"trigger":{"kind":"approval_resolution"}}`,
	} {
		for how, goesOn := range map[string]func(*process) error{
			"resume":  func(p *process) error { _, err := p.d.Resume(t.Context(), run); return err },
			"recover": func(p *process) error { _, err := p.rt.Recover(t.Context()); return err },
		} {
			g, store := deciding(t, continuation.Wait{Kind: continuation.KindApproval, OnDeny: continuation.Feed}), &memory.Store{}
			begin(t, g, store, continuation.Options{}).waits(run)
			p := begin(t, g, store, continuation.Options{})
			id := p.only(run).ID
			if err := p.d.Answer(t.Context(), run, "", json.RawMessage(answer)); err != nil {
				t.Fatal(err)
			}
			if v := p.stands(run, continuation.StatusPending, ""); v.Trigger.Decision != "" {
				t.Errorf("%s: its receipt is %+v", name, v.Trigger)
			}
			if err := goesOn(p); err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			if v := p.stands(run, continuation.StatusPending, ""); v.ID != id || v.Trigger != nil {
				t.Errorf("%s, %s: it is %+v", name, how, v)
			}
			if _, err := p.rt.Trigger(t.Context(), decide("t", continuation.Approved)); err != nil {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			if said := p.said(run); !slices.Equal(said, []string{"approved"}) {
				t.Errorf("%s, %s: it went to %q", name, how, said)
			}
		}
	}
}

// A trigger that comes before anybody has gone on with the run has the wait asked again, and ends
// it: what it was answered with was none. So nobody is told that it has its trigger, and a denial
// of a process that does not know who hears of it cancels nothing.
func TestATriggerBehindABareAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": `{}`, "another kind": `{"trigger":{"kind":"user_reply"}}`, "another key": `{"trigger":{"kind":"approval_resolution","decision":"denied","key":"other"}}`,
		"a denial that says nothing of the node": `{"trigger":{"kind":"approval_resolution","decision":"denied"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := deciding(t, continuation.Wait{Kind: continuation.KindApproval, Key: "k", OnDeny: continuation.Feed, MaxFailures: 1})
			store := &memory.Store{}
			begin(t, g, store, continuation.Options{}).waits(run)
			p := begin(t, g, store, continuation.Options{})
			id := p.only(run).ID
			if err := p.d.Answer(t.Context(), run, "", json.RawMessage(answer)); err != nil {
				t.Fatal(err)
			}
			out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Approved))
			if err != nil || out.Wait != id || out.Status != continuation.StatusResolved {
				t.Errorf("%+v, %v", out, err)
			}
			if said := p.said(run); !slices.Equal(said, []string{"approved"}) {
				t.Errorf("it went to %q", said)
			}
		})
	}
}

// Where the visit waits for something else it does not run again yet, and the trigger is refused
// until then.
func TestATriggerBehindABareAnswerOfAPart(t *testing.T) {
	w := continuation.All(continuation.Wait{Kind: continuation.KindApproval, Key: "a"}, continuation.Wait{Kind: continuation.KindApproval, Key: "b"})
	g, store := waiting(t, w, dag.Policy{}, says), &memory.Store{}
	begin(t, g, store, continuation.Options{}).waits(run)
	p := begin(t, g, store, continuation.Options{})
	all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := p.d.Answer(t.Context(), run, all[0].ID, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	pull := func(id, key string) (continuation.Outcome, error) {
		tr := decide(id, continuation.Approved)
		tr.Key = key
		return p.rt.Trigger(t.Context(), tr)
	}
	var no *continuation.MismatchError
	if out, err := pull("early", "a"); !errors.As(err, &no) {
		t.Errorf("%+v, %v; want that it is asked again when the other part has ended", out, err)
	}
	for _, key := range []string{"b", "a"} {
		if out, err := pull(key, key); err != nil {
			t.Errorf("%s: %+v, %v", key, out, err)
		}
	}
	if info, err := store.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusCompleted {
		t.Errorf("the run is %s, %v", info.Status, err)
	}
}

// What fails before the wait is asked anew is no failure of it: nobody has ended it.
func TestAFailureBehindABareAnswer(t *testing.T) {
	b, fails := dag.New[Talk]("talk"), false
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		if fails {
			fails = false
			return errWeather
		}
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{MaxFailures: 1})
		if err != nil {
			return err
		}
		return says(ctx, s, r)
	}).With(dag.Policy{Attempts: 2})
	g, store := frozen(t, b), &memory.Store{}
	begin(t, g, store, continuation.Options{}).waits(run)
	p := begin(t, g, store, continuation.Options{})
	if err := p.d.Answer(t.Context(), run, "", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	fails = true
	if _, err := p.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusPending, ""); v.Failures != 0 || v.Trigger != nil {
		t.Errorf("it waits for %+v", v)
	}
	if out, err := p.rt.Trigger(t.Context(), reply("t", "yes")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v", out, err)
	}
}

// Approved is what somebody has approved, and nothing else.
func TestChooseIsApprovedBySomebody(t *testing.T) {
	type reply = continuation.Reply[string]
	yes := reply{Kind: continuation.KindApproval}
	no, silence, other := yes, yes, reply{Kind: continuation.KindReply}
	no.Denied, silence.Default = true, true
	for name, c := range map[string]struct {
		r    reply
		want continuation.Decision
	}{
		"approved":              {yes, continuation.Approved},
		"denied":                {no, continuation.Denied},
		"by default":            {silence, continuation.Denied},
		"a reply":               {other, continuation.Denied},
		"a wake":                {reply{Kind: continuation.KindTimer}, continuation.Denied},
		"nothing":               {reply{}, continuation.Denied},
		"all":                   {reply{Parts: []reply{other, yes, yes}}, continuation.Approved},
		"all but one":           {reply{Kind: continuation.KindApproval, Parts: []reply{yes, no}}, continuation.Denied},
		"all but a default":     {reply{Kind: continuation.KindApproval, Parts: []reply{yes, silence}}, continuation.Denied},
		"all, and no approvals": {reply{Parts: []reply{other, other}}, continuation.Denied},
	} {
		if got, err := continuation.Choose(c.r, nil, continuation.Approved, continuation.Denied); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
