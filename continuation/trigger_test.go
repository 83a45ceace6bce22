package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// What a wait does not say is an hour, a day for an approval, and an hour behind the wake of a
// timer; what it says is kept when it is asked again; what can't be is refused where it is written.
func TestLife20BoundsOfWaits(t *testing.T) {
	for _, c := range []struct {
		wait  continuation.Wait
		until time.Duration
	}{
		{continuation.Wait{}, time.Hour},
		{continuation.Wait{Kind: continuation.KindExternal}, time.Hour},
		{continuation.Wait{Kind: continuation.KindApproval}, 24 * time.Hour},
		{continuation.Wait{Kind: continuation.KindTimer, After: time.Minute}, time.Minute},
		{continuation.Wait{Within: 5 * time.Minute}, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := talk(t, waiting(t, c.wait, dag.Policy{}, says))
			if v := p.only(run); !v.Until.Equal(time.Now().Add(c.until)) {
				t.Errorf("%+v is over at %v, want in %v", c.wait, v.Until, c.until)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		fails := true
		p := talk(t, waiting(t, continuation.Wait{Within: 5 * time.Minute}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			if fails {
				fails = false
				return errWeather
			}
			return says(ctx, s, r)
		}))
		lasts(time.Minute)
		if _, err := p.rt.Trigger(t.Context(), reply("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		v := p.stands(run, continuation.StatusPending, "")
		if !v.Until.Equal(time.Now().Add(5 * time.Minute)) {
			t.Errorf("asked again it is over at %v", v.Until)
		}
	})
	past := time.Now().Add(-time.Minute)
	never := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)) // the year 10000 in UTC
	for name, w := range map[string]continuation.Wait{
		"an expiry in the past":         {Until: past},
		"an expiry that JSON can't say": {Until: never},
		"a wake that JSON can't say":    {Kind: continuation.KindTimer, At: never},
		"a wake missed too late to say": {Kind: continuation.KindTimer, At: never.Add(-90 * time.Minute)},
		"a negative expiry":             {Within: -1},
		"two expiries":                  {Within: 1, Until: past},
		"negative failures":             {MaxFailures: -1},
		"negative hops":                 {MaxHops: -1},
		"Again of zero":                 {OnExpire: continuation.Again(0)},
		"no such kind":                  {Kind: "mood"},
		"no such authority":             {Authority: "god"},
		"a timer that never wakes":      {Kind: continuation.KindTimer},
		"a key of two lines":            {Key: "a\nb"},
		"a key that is not UTF-8":       {Key: "\xff"},
		"a reply that is safe":          {SafeToAutoExecute: true},
		"a question of no text":         {Question: map[string]string{"a": "\xff"}},
		"a default of no text":          {OnExpire: continuation.Default("\xff"), Within: time.Hour},
		"a default of a number":         {OnExpire: continuation.Default(5)},
		"a part with such one":          continuation.All(continuation.Wait{}, continuation.Wait{OnExpire: continuation.Default(5)}),
		"Any of nothing":                continuation.Any(),
		"Any of All":                    continuation.Any(continuation.All(continuation.Wait{})),
	} {
		p := begin(t, waiting(t, w, dag.Policy{}, says), freshStore(), continuation.Options{})
		_, err := p.d.Start(t.Context(), run, nil)
		var bad *continuation.ArgumentError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An instant counts, whatever zone it is told in: also one that JSON could not say there.
func TestBoundsOfAnyZone(t *testing.T) {
	for name, at := range map[string]time.Time{
		"the year 10000 there": time.Date(9999, 12, 31, 22, 0, 0, 0, time.UTC).In(time.FixedZone("", 3*60*60)),
		"25 hours ahead":       time.Date(9998, 1, 1, 0, 0, 0, 0, time.FixedZone("", 25*60*60)),
	} {
		soon := continuation.Wait{Key: "soon", Within: time.Hour}
		for how, w := range map[string]continuation.Wait{
			"alone": {Until: at}, "a timer": {Kind: continuation.KindTimer, At: at},
			"Any": continuation.Any(soon, continuation.Wait{Key: "late", Until: at}),
		} {
			t.Run(how+" "+name, func(t *testing.T) {
				if v := talk(t, waiting(t, w, dag.Policy{}, says)).only(run); !v.Until.Equal(at) {
					t.Errorf("it ends at %v, want %v", v.Until, at)
				}
			})
		}
	}
}

// A trigger that is not the one that a wait is for changes nothing and costs nothing, also if the
// wait may not be resumed any more, or the actor has no authority.
func TestLife21MismatchedTriggers(t *testing.T) {
	approval := continuation.Wait{Kind: continuation.KindApproval, Key: "X"}
	p := talk(t, waiting(t, approval, dag.Policy{}, says))
	id := p.only(run).ID
	for name, tr := range map[string]continuation.Trigger{
		"another kind": {Wait: id, Kind: continuation.KindReply, Actor: ann},
		"another key":  {Wait: id, Kind: continuation.KindApproval, Key: "Y", Actor: ann, Decision: continuation.Approved},
		"another wake": {Wait: id, Kind: continuation.KindTimer, Key: "w", Actor: ann},
		"both wrong":   {Wait: id, Kind: continuation.KindApproval, Key: "Y", Actor: robot, Decision: continuation.Approved},
	} {
		tr.ID = name
		p.unchanged(run, func() {
			_, err := p.rt.Trigger(t.Context(), tr)
			var mismatch *continuation.MismatchError
			if !errors.As(err, &mismatch) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	p.unchanged(run, func() {
		_, err := p.rt.Trigger(t.Context(), continuation.Trigger{
			ID: "t", Wait: id, Kind: continuation.KindApproval, Key: "X", Actor: robot, Decision: continuation.Approved,
		})
		var no *continuation.AuthorityError
		if !errors.As(err, &no) || no.Needs != dag.Human {
			t.Errorf("an agent: %v", err)
		}
		_, err = p.rt.Trigger(t.Context(), continuation.Trigger{ID: "t", Key: "Z", Kind: continuation.KindReply, Actor: ann})
		if !errors.Is(err, continuation.ErrNotFound) {
			t.Errorf("of nobody's key: %v", err)
		}
		bad := decide("t", continuation.Approved)
		bad.Key, bad.Payload = "X", json.RawMessage(`17`)
		var payload *continuation.PayloadError
		if _, err = p.rt.Trigger(t.Context(), bad); !errors.As(err, &payload) {
			t.Errorf("a payload of another type: %v", err)
		}
	})
	if v := p.only(run); v.Resumes+v.Failures+v.Lapses != 0 || v.Status != continuation.StatusPending {
		t.Errorf("the wait is %+v", v)
	}
}

// At its instant a wait expires once, whoever is the first to see it: a trigger that comes then, or
// a sweep. Expiry comes before approval, and nothing behind the wait runs.
func TestLife22ExpiryOnce(t *testing.T) {
	for i, sweeps := range []bool{false, false, true} {
		synctest.Test(t, func(t *testing.T) {
			ran := false
			w := continuation.Wait{Kind: continuation.KindApproval, Key: "refund-7", Within: time.Hour}
			p := talk(t, waiting(t, w, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
				ran = true
				return nil
			}), dispatcher.Labels(continuation.Owed(nil)))
			lasts(time.Hour)
			if sweeps {
				if runs, err := p.rt.Sweep(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
					t.Fatalf("swept %q, %v", runs, err)
				}
			} else {
				wrong := reply("t1", "hello") // of another kind too, but that comes behind
				if i == 1 {
					wrong = decide("t1", continuation.Approved)
				}
				_, err := p.rt.Trigger(t.Context(), wrong)
				var late *continuation.ExpiredError
				if !errors.As(err, &late) || !errors.Is(err, dag.ErrExpired) {
					t.Fatalf("at the instant: %v", err)
				}
			}
			v := p.stands(run, continuation.StatusExpired, continuation.Expired)
			if ran || v.Delivery != continuation.SuppressedExpired {
				t.Errorf("the body has run: %v; the delivery is %s", ran, v.Delivery)
			}
			if got := v.Trigger; got == nil || got.Trigger != "" || got.Kind != w.Kind || got.Key != w.Key {
				t.Errorf("the instant reads as %+v", got)
			}
			p.unchanged(run, func() {
				_, err := p.rt.Trigger(t.Context(), decide("t2", continuation.Approved))
				var over *continuation.TerminalError
				if !errors.As(err, &over) || over.Reason != continuation.Expired {
					t.Errorf("a second trigger: %v", err)
				}
				if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
					t.Errorf("a second sweep: %q, %v", runs, err)
				}
			})
		})
	}
}

// Of many triggers at once one is accepted, and what stands behind the wait runs once; one that is
// repeated has one outcome, however often.
func TestLife24ManyTriggersAtOnce(t *testing.T) {
	const crowd = 1000
	for _, same := range []bool{false, true} {
		var bodies atomic.Int64
		p := talk(t, waiting(t, continuation.Wait{Key: "k"}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			bodies.Add(1)
			return says(ctx, s, r)
		}))
		var mu sync.Mutex
		receipts := map[continuation.Receipt]int{}
		refused := 0
		var wg sync.WaitGroup
		for i := range crowd {
			wg.Go(func() {
				tr := reply(fmt.Sprint("t", i), fmt.Sprint("hello ", i))
				if same {
					tr = reply("t", "hello")
				}
				tr.Key = "k"
				out, err := p.rt.Trigger(t.Context(), tr)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					receipts[out.Receipt]++
				case errors.Is(err, continuation.ErrTaken), errors.Is(err, continuation.ErrTerminal):
					refused++
				default:
					t.Errorf("trigger %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		accepted := 1
		if same {
			accepted = crowd
		}
		if len(receipts) != 1 || refused != crowd-accepted || bodies.Load() != 1 {
			t.Errorf("%d receipts, %d refused, the body ran %d times", len(receipts), refused, bodies.Load())
		}
		if said := p.said(run); len(said) != 1 {
			t.Errorf("the state says %q", said)
		}
	}
}

// A denial cancels the run and nothing behind the wait runs, or the node hears it, or a route goes
// another way.
func TestLife26Denials(t *testing.T) {
	t.Run("cancel", func(t *testing.T) {
		ran := false
		p := talk(t, waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
			ran = true
			return nil
		}), dispatcher.Labels(continuation.Owed(nil)))
		out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied))
		if err != nil || out.Status != continuation.StatusCancelled || out.EndReason != continuation.ApprovalDenied || ran {
			t.Errorf("%+v, %v; the body has run: %v", out, err, ran)
		}
		v := p.stands(run, continuation.StatusCancelled, continuation.ApprovalDenied)
		if v.Delivery != continuation.NotApplicable || v.By != "ann" || v.Why != "because" {
			t.Errorf("the wait is %+v", v)
		}
		end, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser})
		if err != nil || end.Reason != continuation.ApprovalDenied || end.By != "ann" {
			t.Errorf("the run has ended as %+v, %v", end, err)
		}
	})
	t.Run("feed", func(t *testing.T) {
		w := continuation.Wait{Kind: continuation.KindApproval, OnDeny: continuation.Feed}
		p := talk(t, waiting(t, w, dag.Policy{}, func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
			s.Said.Append(fmt.Sprint(r.Denied, " ", r.Reason))
			return nil
		}))
		if _, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied)); err != nil {
			t.Fatal(err)
		}
		p.stands(run, continuation.StatusResolved, continuation.Completed)
		if said := p.said(run); !slices.Equal(said, []string{"true because"}) {
			t.Errorf("the node heard %q", said)
		}
	})
	t.Run("route", func(t *testing.T) {
		for _, d := range []continuation.Decision{continuation.Approved, continuation.Denied} {
			b := dag.New[Talk]("routes")
			ask := dag.Route(b, "ask", func(ctx context.Context, _ *Talk) (continuation.Decision, error) {
				w := continuation.Wait{Kind: continuation.KindApproval, OnDeny: continuation.Feed}
				r, err := continuation.Await[string](ctx, "answer", w)
				return continuation.Choose(r, err, continuation.Approved, continuation.Denied)
			}, []continuation.Decision{continuation.Approved, continuation.Denied})
			for _, way := range []continuation.Decision{continuation.Approved, continuation.Denied} {
				dag.Step(b, "is-"+string(way), func(_ context.Context, s *Talk) error {
					s.Said.Append(string(way))
					return nil
				}, ask.On(way))
			}
			p := talk(t, frozen(t, b))
			if _, err := p.rt.Trigger(t.Context(), decide("t", d)); err != nil {
				t.Fatal(err)
			}
			if said := p.said(run); !slices.Equal(said, []string{string(d)}) {
				t.Errorf("%s went to %q", d, said)
			}
		}
	})
}

// Attempts that fail behind a trigger have the wait asked again, as often as it may be; the turns
// of a dialogue that goes well are counted apart.
func TestLife28FailuresAndHops(t *testing.T) {
	for name, policy := range map[string]dag.Policy{"one attempt": {}, "two": {Attempts: 2}, "five": {Attempts: 5}} {
		t.Run(name, func(t *testing.T) {
			bodies := 0
			p := talk(t, waiting(t, continuation.Wait{Key: "k", MaxFailures: 2}, policy, func(context.Context, *Talk, continuation.Reply[string]) error {
				bodies++
				return errWeather
			}))
			id := p.only(run).ID
			out, err := p.rt.Trigger(t.Context(), reply2("t1", "k"))
			if err != nil || out.Status != continuation.StatusPending {
				t.Fatalf("the first trigger: %+v, %v", out, err)
			}
			v := p.stands(run, continuation.StatusPending, "")
			if v.ID != id || v.Failures != 1 || v.Resumes != 1 || v.Trigger != nil {
				t.Errorf("asked again it is %+v", v)
			}
			out, err = p.rt.Trigger(t.Context(), reply2("t2", "k"))
			if err != nil || out.Status != continuation.StatusFailed || out.EndReason != continuation.MaxAttempts || bodies != 2 {
				t.Fatalf("the second trigger: %+v, %v; the body ran %d times", out, err, bodies)
			}
			if v := p.only(run); v.Failures != 2 || v.Resumes != 2 {
				t.Errorf("%d failures, %d resumes; want one of each behind either trigger", v.Failures, v.Resumes)
			}
			p.unchanged(run, func() {
				if _, err := p.rt.Trigger(t.Context(), reply2("t3", "k")); !errors.Is(err, continuation.ErrTerminal) {
					t.Errorf("the third trigger: %v", err)
				}
				if again, err := p.rt.Trigger(t.Context(), reply2("t1", "k")); err != nil || again.Trigger != "t1" {
					t.Errorf("the first trigger again: %+v, %v", again, err)
				}
			})
		})
	}
	for most, want := range map[int]continuation.Status{0: continuation.StatusResolved, 10: continuation.StatusResolved, 5: continuation.StatusFailed} {
		b := dag.New[Talk]("dialogue")
		dag.Step(b, "talk", func(ctx context.Context, s *Talk) error {
			for i := range 10 {
				r, err := continuation.Await[string](ctx, fmt.Sprint("turn-", i+1), continuation.Wait{MaxFailures: 2, MaxHops: most})
				if err != nil {
					return err
				}
				s.Said.Append(r.Payload)
			}
			return nil
		})
		p := talk(t, frozen(t, b))
		for i := range 10 {
			_, err := p.rt.Trigger(t.Context(), reply(fmt.Sprint("t", i), fmt.Sprint("word ", i)))
			if err != nil && !(most == 5 && i >= 5 && errors.Is(err, continuation.ErrTerminal)) {
				t.Fatalf("turn %d of at most %d: %v", i, most, err)
			}
		}
		all, err := p.rt.List(t.Context(), continuation.Filter{})
		if last := all[len(all)-1]; err != nil || last.Status != want || (last.Reason == continuation.MaxHops) != (most == 5) || most == 5 && len(all) != 5 {
			t.Errorf("of at most %d hops the last of %d waits is %s (%s)", most, len(all), last.Status, last.Reason)
		}
	}
}

// reply2 is a reply by its key alone.
func reply2(id, key string) continuation.Trigger {
	return continuation.Trigger{ID: id, Key: key, Kind: continuation.KindReply, Actor: ann, Payload: json.RawMessage(`"x"`)}
}

// In a dialogue inside one visit a failure has the last wait asked again, and no other.
func TestAFailureAsksTheLastWaitAgain(t *testing.T) {
	fails := true
	b := dag.New[Talk]("dialogue")
	dag.Step(b, "talk", func(ctx context.Context, s *Talk) error {
		for _, name := range []string{"first", "second"} {
			r, err := continuation.Await[string](ctx, name, continuation.Wait{})
			if err != nil {
				return err
			}
			s.Said.Append(r.Payload)
		}
		if fails {
			fails = false
			return errWeather
		}
		return nil
	})
	p := talk(t, frozen(t, b))
	for i, word := range []string{"a", "b", "c"} {
		if _, err := p.rt.Trigger(t.Context(), reply(fmt.Sprint("t", i), word)); err != nil {
			t.Fatal(err)
		}
	}
	if said := p.said(run); !slices.Equal(said, []string{"a", "c"}) {
		t.Errorf("said %q", said)
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(all) != 2 || all[0].Failures != 0 || all[1].Failures != 1 {
		t.Errorf("the waits are %+v, %v; want one failure, of the second", all, err)
	}
}

// Any is one interrupt that the first trigger ends; All waits for every one of its parts.
func TestAnyAndAll(t *testing.T) {
	yes, other := continuation.Wait{Kind: continuation.KindApproval, Key: "yes"}, continuation.Wait{Key: "word"}
	p := talk(t, waiting(t, continuation.Any(yes, other), dag.Policy{}, says))
	tr := reply("t1", "instead")
	tr.Key = "word"
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	tr = decide("t2", continuation.Approved)
	tr.Key = "yes"
	if _, err := p.rt.Trigger(t.Context(), tr); !errors.Is(err, continuation.ErrTerminal) {
		t.Errorf("the other alternative: %v", err)
	}

	b := dag.New[Talk]("all")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "both", continuation.All(yes, other))
		for _, part := range r.Parts {
			s.Said.Append(string(part.Kind) + " " + part.Payload)
		}
		return err
	})
	p = talk(t, frozen(t, b))
	tr = reply("t1", "hello")
	tr.Key = "word"
	if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusPending {
		t.Fatalf("the first of two: %+v, %v", out, err)
	}
	tr = decide("t2", continuation.Approved)
	tr.Key, tr.Payload = "yes", json.RawMessage(`"ok"`)
	if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
		t.Fatalf("the second of two: %+v, %v", out, err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"approval_resolution ok", "user_reply hello"}) {
		t.Errorf("said %q", said)
	}
}

// Two parts of one kind and key are two ways to end a wait: whoever may take one of them does.
func TestAnyOfTwoAuthorities(t *testing.T) {
	person := continuation.Wait{Kind: continuation.KindApproval, Key: "yes"}
	program := person
	program.Authority = dag.Agent
	p := talk(t, waiting(t, continuation.Any(person, program), dag.Policy{}, says))
	tr := decide("t", continuation.Approved)
	tr.Key, tr.Actor = "yes", continuation.Actor{ID: "cron", Authority: dag.System}
	p.unchanged(run, func() {
		var no *continuation.AuthorityError
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &no) {
			t.Errorf("neither of them: %v", err)
		}
	})
	tr.Actor = robot
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Errorf("the second of them: %v", err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
}

// Each part of an Any has bounds of its own, within those of the wait.
func TestBoundsOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Any(
			continuation.Wait{Key: "soon", Within: time.Minute},
			continuation.Wait{Key: "by noon", Until: time.Now().Add(2 * time.Minute)},
			continuation.Wait{Key: "late", Within: time.Hour},
		), dag.Policy{}, says))
		lasts(2 * time.Minute)
		for _, key := range []string{"soon", "by noon"} {
			tr := reply(key, "x")
			tr.Key = key
			p.unchanged(run, func() {
				var late *continuation.ExpiredError
				if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &late) || late.Kind != continuation.KindReply || late.Key != key ||
					!strings.Contains(err.Error(), "the part of wait") {
					t.Errorf("%s: %v; want that this part is over", key, err)
				}
			})
			p.stands(run, continuation.StatusPending, "")
		}
		tr := reply("late", "x")
		tr.Key = "late"
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Errorf("the part that goes on: %v", err)
		}
	})
}

// Who comes too late is told what was faster: a wait that has expired, or a timer that has woken.
func TestWhatATriggerIsTooLateFor(t *testing.T) {
	alarm := afterAnHour()
	alarm.Key = "alarm"
	expires := late(continuation.Expire())
	for name, c := range map[string]struct {
		wait   continuation.Wait
		passes time.Duration
		kind   continuation.Kind
		says   string
		status continuation.Status
	}{
		"a reply":                {continuation.Wait{}, time.Hour, "", "has expired at", continuation.StatusExpired},
		"a timer":                {alarm, time.Hour, continuation.KindTimer, "has woken at", continuation.StatusResolved},
		"a reply, or a timer":    {continuation.Any(continuation.Wait{Key: "word"}, alarm), time.Hour, continuation.KindTimer, "has woken at", continuation.StatusResolved},
		"a timer that is missed": {expires, 9 * time.Hour, "", "has expired at", continuation.StatusExpired},
	} {
		for _, keep := range []dispatcher.Retention{{}, {Last: 1}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := under(t, dispatcher.Options{Retention: keep}, waiting(t, c.wait, dag.Policy{}, timed), freshStore(), continuation.Options{})
					p.waits(run)
					lasts(c.passes)
					var late *continuation.ExpiredError
					_, err := p.rt.Trigger(t.Context(), reply("t", "hello"))
					if !errors.As(err, &late) || late.Kind != c.kind || !strings.Contains(err.Error(), c.says) {
						t.Fatalf("a trigger: %v; want that it %s", err, c.says)
					}
					if c.kind != "" && late.Key == "" {
						t.Errorf("the key of the timer is not told: %+v", late)
					}
					if keep.Last == 0 {
						if v := p.only(run); v.Status != c.status {
							t.Errorf("the wait is %s", v.Status)
						}
					}
				})
			})
		}
	}
}

// A trigger returns when the run rests, also if somebody else goes on with it: its status is what
// is so then. If its context ends before, what was accepted is told with the error, and goes on.
func TestTriggerWaitsForWhoeverIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, free := make(chan struct{}), make(chan struct{})
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			close(begun)
			<-free
			return says(ctx, s, r)
		}))
		var wg sync.WaitGroup
		once := sync.OnceFunc(func() { // somebody is faster
			wg.Go(func() {
				if _, err := p.d.Run(context.Background(), run, nil); err != nil {
					t.Error(err)
				}
			})
			<-begun
		})
		rt, err := continuation.New(&meddler{p.d, once, nil}, continuation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out, err := rt.Trigger(short, reply("t", "hello")); !errors.Is(err, context.DeadlineExceeded) || out.Status != continuation.StatusClaimed {
			t.Errorf("at its deadline: %+v, %v", out, err)
		}
		var ended atomic.Int64
		for range 2 {
			wg.Go(func() {
				out, err := rt.Trigger(t.Context(), reply("t", "hello"))
				if err != nil || out.Status != continuation.StatusResolved {
					t.Errorf("%+v, %v", out, err)
				}
				ended.Add(1)
			})
		}
		if synctest.Wait(); ended.Load() > 0 {
			t.Error("a trigger returned while the run was at work")
		}
		close(free)
		wg.Wait()
	})
}

// A trigger may name its run alone, if exactly one wait of that takes its kind, whatever its key
// is; of several the refusal says how to name one.
func TestTriggersThatNameTheirRunAlone(t *testing.T) {
	approval, said := continuation.Wait{Kind: continuation.KindApproval, Key: "X"}, continuation.Wait{Key: "k"}
	b := dag.New[Talk]("talk")
	var asks []dag.Edge[Talk]
	for i, w := range []continuation.Wait{approval, said, said, said, said, said, said} {
		asks = append(asks, dag.Step(b, fmt.Sprint("ask", i), func(ctx context.Context, _ *Talk) error {
			w := w
			if w.Key == "k" {
				w.Key = fmt.Sprint("k", i)
			}
			_, err := continuation.Await[string](ctx, fmt.Sprint("answer", i), w)
			return err
		}))
	}
	dag.Step(b, "end", func(context.Context, *Talk) error { return nil }, asks...)
	p := talk(t, frozen(t, b))
	p.unchanged(run, func() {
		_, err := p.rt.Trigger(t.Context(), reply("t", "hello"))
		var mismatch *continuation.MismatchError
		if !errors.As(err, &mismatch) || !regexp.MustCompile(`"answer([1-6])" of run "talk-1", key "k[1-6]"`).MatchString(err.Error()) ||
			!strings.Contains(err.Error(), "name one by Key or Wait") || !strings.Contains(err.Error(), "and 1 more") {
			t.Errorf("for one of six: %v", err)
		}
	})
	if out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Approved)); err != nil || out.Key != "X" || out.Status != continuation.StatusResolved {
		t.Errorf("for the only approval: %+v, %v", out, err)
	}
}

// Nor does an approval end one of several approvals of an Any that it does not name.
func TestTriggersOfOneKindOfAny(t *testing.T) {
	w := continuation.Any(
		continuation.Wait{Kind: continuation.KindApproval, Key: "X"}, continuation.Wait{Kind: continuation.KindApproval, Key: "Y"})
	p := talk(t, waiting(t, w, dag.Policy{}, says))
	tr := decide("t", continuation.Approved)
	p.unchanged(run, func() {
		var mismatch *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `key "Y"`) {
			t.Errorf("of neither: %v", err)
		}
	})
	tr.Key = "Y"
	if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Key != "Y" {
		t.Errorf("of one: %+v, %v", out, err)
	}
}

// A key that waits of several runs have is told apart by the run, and a refusal names what was
// asked for.
func TestTriggersOfOneKeyInTwoRuns(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{Key: "order"}, dag.Policy{}, says))
	p.waits("talk-2")
	trigger := reply("t", "hello")
	trigger.Run, trigger.Key = "", "order"
	if _, err := p.rt.Trigger(t.Context(), trigger); err == nil || !strings.Contains(err.Error(), "name one by Run or Wait") ||
		!strings.Contains(err.Error(), `of run "talk-2"`) {
		t.Errorf("for one of two runs: %v", err)
	}
	trigger.Key = "nothing"
	var none *continuation.NotFoundError
	if _, err := p.rt.Trigger(t.Context(), trigger); !errors.As(err, &none) || none.Address != `key "nothing"` {
		t.Errorf("for a key of nobody: %v", err)
	}
	trigger.Key, trigger.Run = "order", "talk-2"
	if out, err := p.rt.Trigger(t.Context(), trigger); err != nil || out.Run != "talk-2" {
		t.Errorf("for the second run: %+v, %v", out, err)
	}
}

// A wait that has its trigger takes no other one: what names a run alone, or a key alone, is for
// the one that is left. If none is, it is refused as before.
func TestTriggersAreForWaitsThatHaveNone(t *testing.T) {
	both := continuation.All(continuation.Wait{Key: "a"}, continuation.Wait{Key: "b"})
	p := begin(t, waiting(t, both, dag.Policy{}, says), &memory.Store{}, continuation.Options{})
	left := func(tr continuation.Trigger) (continuation.Outcome, error) {
		tr.LeaveIt = true
		return p.rt.Trigger(t.Context(), tr)
	}
	by := func(tr continuation.Trigger, run string) continuation.Trigger {
		tr.Run = run
		return tr
	}
	p.waits("talk-1")
	for _, tr := range []continuation.Trigger{reply2("t1", "b"), by(reply("t2", "x"), "talk-1")} {
		if out, err := left(tr); err != nil || out.Run != "talk-1" {
			t.Errorf("%s: %+v, %v", tr.ID, out, err)
		}
	}
	p.waits("talk-2")
	for _, tr := range []continuation.Trigger{reply2("t3", "b"), by(reply("t4", "x"), "talk-2")} {
		if out, err := left(tr); err != nil || out.Run != "talk-2" {
			t.Errorf("%s: %+v, %v", tr.ID, out, err)
		}
	}
	p.unchanged("talk-2", func() {
		var second *continuation.MismatchError
		if _, err := left(by(reply("t5", "x"), "talk-2")); !errors.As(err, &second) {
			t.Errorf("for one of two that have theirs: %v", err)
		}
	})
}

// A lateEnd is a store in which the end of a run is written late.
type lateEnd struct {
	*memory.Store
	end         checkpoint.Kind
	begun, free chan struct{}
}

func (s *lateEnd) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if slices.ContainsFunc(entries, func(e checkpoint.Entry) bool { return e.Kind == s.end }) {
		close(s.begun)
		<-s.free
	}
	return s.Store.Append(ctx, l, after, entries)
}

// An answering has something happen behind an answer.
type answering struct {
	continuation.Runs
	behind func()
}

func (a *answering) Answer(ctx context.Context, run, interrupt string, value any, o ...dispatcher.RunOption) error {
	err := a.Runs.Answer(ctx, run, interrupt, value, o...)
	if f := a.behind; f != nil {
		a.behind = nil
		f()
	}
	return err
}

// A trigger that comes while whoever is at work on the run writes its end, and takes nothing any
// more, is not refused and left to count if the run is brought back: it is accepted, of a wait that
// has ended with the run.
func TestATriggerBesideTheEndOfItsRun(t *testing.T) {
	for end, c := range map[checkpoint.Kind]struct {
		status continuation.Status
		reason continuation.Reason
	}{
		checkpoint.Failed:    {continuation.StatusFailed, continuation.RunFailed},
		checkpoint.TimedOut:  {continuation.StatusFailed, continuation.RunTimedOut},
		checkpoint.Cancelled: {continuation.StatusCancelled, continuation.CancelledByProduct},
	} {
		t.Run(end.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails, ends := make(chan struct{}), true
				b := dag.New[Talk]("talk")
				dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
					r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
					s.Said.Append(r.Payload)
					return err
				})
				dag.Step(b, "work", func(ctx context.Context, _ *Talk) error {
					if !ends {
						return nil
					}
					select {
					case <-fails:
						return errWeather
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				store := &lateEnd{&memory.Store{}, end, make(chan struct{}), make(chan struct{})}
				p := begin(t, frozen(t, b), store, continuation.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := p.d.Start(ctx, run, nil)
					ended <- err
				}()
				synctest.Wait() // it waits, and works
				switch end {
				case checkpoint.Failed:
					close(fails)
				case checkpoint.Cancelled:
					cancel()
				}
				<-store.begun
				rt, err := continuation.New(&answering{p.d, func() {
					close(store.free)
					if err := <-ended; err == nil {
						t.Error("the run has ended well")
					}
				}}, continuation.Options{})
				if err != nil {
					t.Fatal(err)
				}
				out, err := rt.Trigger(t.Context(), reply("t", "hello"))
				if err != nil || out.Trigger != "t" || out.Status != c.status || out.EndReason != c.reason {
					t.Errorf("the trigger: %+v, %v", out, err)
				}
				if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
					t.Errorf("nobody has taken %+v, %v", posts, err)
				}
				p.unchanged(run, func() {
					if again, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil || again != out {
						t.Errorf("again: %+v, %v; want %+v", again, err, out)
					}
					if _, err := p.rt.Trigger(t.Context(), reply("t2", "hello")); !errors.Is(err, continuation.ErrTerminal) {
						t.Errorf("another one: %v", err)
					}
				})
				ends = false
				if _, err := p.d.Resume(t.Context(), run); err != nil {
					t.Error(err)
				}
				if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
					t.Errorf("the state says %q", said)
				}
			})
		})
	}
}

// What is asked in an Any is what the first part says that asks something.
func TestTheQuestionOfAny(t *testing.T) {
	alarm := continuation.Wait{Kind: continuation.KindTimer, After: time.Hour}
	for name, c := range map[string]struct {
		parts []continuation.Wait
		want  string
	}{
		"of the first": {[]continuation.Wait{{Question: "Where to?"}, {Key: "chat", Question: "When?"}}, `"Where to?"`},
		"of another":   {[]continuation.Wait{alarm, {Key: "chat", Question: "Where to?"}, {Key: "mail", Question: "When?"}}, `"Where to?"`},
		"of none":      {[]continuation.Wait{alarm, {Key: "chat"}}, ""},
	} {
		p := talk(t, waiting(t, continuation.Any(c.parts...), dag.Policy{}, says))
		if v := p.only(run); string(v.Question) != c.want {
			t.Errorf("%s: it asks %s, want %s", name, v.Question, c.want)
		}
	}
}

// Who has answered a wait without a Runtime has given no id: a trigger that comes behind that is
// told no empty one.
func TestTakenByAnAnswer(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	answer, err := continuation.Script(continuation.Reply[string]{Payload: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.d.Answer(t.Context(), run, "", answer); err != nil {
		t.Fatal(err)
	}
	p.unchanged(run, func() {
		var taken *continuation.TakenError
		_, err := p.rt.Trigger(t.Context(), reply("t", "hello"))
		if want := fmt.Sprintf("continuation: wait %s of run %q has its trigger", p.only(run).ID, run); !errors.As(err, &taken) || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
}

// A trigger for what the run has not come to ask yet is for none of its other waits, whose time may
// be over, or which have ended: it is not too late, and its sender may send it again.
func TestATriggerThatComesTooEarlyIsNotTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *process
		early := decide("early", continuation.Approved)
		early.Key = "refund-7"
		b := dag.New[Talk]("talk")
		first := dag.Step(b, "first", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "alarm", afterAnHour())
			return err
		})
		between := dag.Step(b, "between", func(ctx context.Context, _ *Talk) error {
			var none *continuation.NotFoundError
			if _, err := p.rt.Trigger(ctx, early); !errors.As(err, &none) {
				t.Errorf("while the only wait before it has ended: %v", err)
			}
			return nil
		}, first)
		dag.Step(b, "second", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "refund", continuation.Wait{Kind: continuation.KindApproval, Key: "refund-7"})
			return err
		}, between)
		p = talk(t, frozen(t, b))
		lasts(time.Hour)
		p.unchanged(run, func() {
			var mismatch *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), early); !errors.As(err, &mismatch) {
				t.Errorf("beside a timer that is due: %v", err)
			}
		})
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, err := p.rt.Trigger(t.Context(), early); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("when it is asked: %+v, %v", out, err)
		}
	})
}

// A trigger for a key whose waits have all ended is told how the one that was asked last has.
func TestATriggerForWhatHasEndedIsToldOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begin(t, waiting(t, continuation.Wait{Key: "k"}, dag.Policy{}, says), &memory.Store{}, continuation.Options{})
		p.waits("first")
		if _, err := p.rt.Trigger(t.Context(), reply2("t1", "k")); err != nil {
			t.Fatal(err)
		}
		lasts(time.Second)
		p.waits("second")
		if _, err := p.rt.Stop(t.Context(), "second", continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
			t.Fatal(err)
		}
		var ended *continuation.TerminalError
		if _, err := p.rt.Trigger(t.Context(), reply2("t2", "k")); !errors.As(err, &ended) || ended.Run != "second" || ended.Reason != continuation.CancelledByUser {
			t.Errorf("refused: %v; want that the wait of the second run was cancelled", err)
		}
	})
}

// Who pulls a trigger goes on with the run too if whoever was at work on it dies meanwhile.
func TestTriggerGoesOnForWhoeverDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, free := make(chan struct{}), make(chan struct{})
		b := dag.New[Talk]("talk")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			if err != nil {
				return err
			}
			return says(ctx, s, r)
		})
		dag.Step(b, "work", func(ctx context.Context, _ *Talk) error {
			select {
			case <-free:
			case <-ctx.Done():
			}
			return nil
		})
		g, alive := frozen(t, b), &memory.Store{}
		mortal := &pawltest.Mortal{Store: alive}
		dies := under(t, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitInterrupted {
				close(asked)
			}
		}}, g, mortal, continuation.Options{})
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = dies.d.Start(ctx, run, nil) })
		<-asked
		p := begin(t, g, alive, continuation.Options{})
		wg.Go(func() {
			if out, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil || out.Status != continuation.StatusResolved {
				t.Errorf("%+v, %v", out, err)
			}
		})
		synctest.Wait() // the trigger waits for who is at work
		mortal.Kill()
		close(free)
		end()
		if err := mortal.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if info, err := alive.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusCompleted {
			t.Errorf("the run is %s, %v", info.Status, err)
		}
	})
}

// The log keeps who has pulled a trigger, as the author of the answer, and when, as its sender
// says.
func TestTheLogKeepsWhoPulledATriggerAndWhen(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	tr := reply("t", "hello")
	tr.At = time.Date(2026, 11, 27, 9, 30, 0, 5, time.FixedZone("there", 3600))
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	var answer checkpoint.Answer
	var kept struct {
		Trigger struct{ At time.Time }
	}
	for e, err := range p.store.Read(t.Context(), run, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.Answered {
			err := json.Unmarshal(e.Data, &answer)
			if err == nil {
				err = json.Unmarshal(answer.Value, &kept)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if answer.By != ann.ID || !kept.Trigger.At.Equal(tr.At) {
		t.Errorf("the log says %s, by %q; want %v, by %q", answer.Value, answer.By, tr.At, ann.ID)
	}
}

// A trigger was pulled for what waited then: if that gets another one first, it does not end what
// the run asks meanwhile.
func TestATriggerThatIsTooLateEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, asks, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
		b := dag.New[Talk]("talk")
		await := func(ctx context.Context) error {
			_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			return err
		}
		dag.Step(b, "first", func(ctx context.Context, _ *Talk) error {
			if err := await(ctx); err != nil {
				return err
			}
			close(ended)
			<-free
			return nil
		})
		dag.Step(b, "second", func(ctx context.Context, _ *Talk) error {
			<-asks
			return await(ctx)
		})
		p := begin(t, frozen(t, b), &memory.Store{}, continuation.Options{})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.d.Start(t.Context(), run, nil) })
		synctest.Wait()
		rt, err := continuation.New(&answerer{p.d, sync.OnceFunc(func() {
			faster := reply("t1", "hello")
			faster.LeaveIt = true
			if _, err := p.rt.Trigger(t.Context(), faster); err != nil {
				t.Error(err)
			}
			<-ended
			close(asks)
			synctest.Wait()
		})}, continuation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var taken *continuation.TakenError
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out, err := rt.Trigger(ctx, reply("t2", "hello")); !errors.As(err, &taken) || taken.Trigger != "t1" {
			t.Errorf("%+v, %v; want that the other one was faster", out, err)
		}
		if v := p.at("second"); v.Status != continuation.StatusPending || v.Trigger != nil {
			t.Errorf("what was asked meanwhile is %s, with the trigger %+v", v.Status, v.Trigger)
		}
		close(free)
		wg.Wait()
	})
}

// An answerer has something happen before a trigger is given.
type answerer struct {
	continuation.Runs
	meddle func()
}

func (a *answerer) Answer(ctx context.Context, run, interrupt string, value any, o ...dispatcher.RunOption) error {
	a.meddle()
	return a.Runs.Answer(ctx, run, interrupt, value, o...)
}
