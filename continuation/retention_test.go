package continuation_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// retaining are processes over graphs of three nodes, of which the one in the middle waits: one
// whose log stays, and one whose log is trimmed behind each call.
func retaining(t *testing.T, f func(context.Context, *Talk) error) map[string]*process {
	t.Helper()
	nothing := func(context.Context, *Talk) error { return nil }
	all := map[string]*process{}
	for name, keep := range map[string]dispatcher.Retention{"a log that stays": {}, "one that is trimmed": {Last: 1}} {
		b := dag.New[Talk]("talk")
		ask := dag.Step(b, "ask", f, dag.Step(b, "first", nothing))
		dag.Step(b, "last", nothing, ask)
		p := under(t, dispatcher.Options{Retention: keep}, frozen(t, b), &memory.Store{}, continuation.Options{})
		p.waits(run)
		all[name] = p
	}
	return all
}

// Whether the log is trimmed behind the call that goes on with a run makes no difference to what
// comes of a trigger.
func TestOutcomesUnderRetention(t *testing.T) {
	awaits := func(name string, w continuation.Wait) func(context.Context, *Talk) error {
		return func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, name, w)
			if err == nil && r.Payload == "bad" {
				return errWeather
			}
			return err
		}
	}
	both := func(ctx context.Context, s *Talk) error {
		if err := awaits("first", continuation.Wait{Key: "k"})(ctx, s); err != nil {
			return err
		}
		return awaits("second", continuation.Wait{Key: "other"})(ctx, s)
	}
	approval := continuation.Wait{Kind: continuation.KindApproval, Key: "k"}
	bad, denied, left := reply("t", "bad"), decide("t", continuation.Denied), reply("t", "hello")
	left.LeaveIt = true
	for name, c := range map[string]struct {
		node    func(context.Context, *Talk) error
		trigger continuation.Trigger
		status  continuation.Status
		reason  continuation.Reason
	}{
		"the run completes":   {awaits("k", continuation.Wait{Key: "k"}), reply("t", "hello"), continuation.StatusResolved, continuation.Completed},
		"it is left":          {awaits("k", continuation.Wait{Key: "k"}), left, continuation.StatusPending, ""},
		"it asks again":       {awaits("k", continuation.Wait{Key: "k"}), bad, continuation.StatusPending, ""},
		"it fails for good":   {awaits("k", continuation.Wait{Key: "k", MaxFailures: 1}), bad, continuation.StatusFailed, ""},
		"it asks for another": {both, reply2("t", "k"), continuation.StatusResolved, continuation.Completed},
		"a part of an All":    {awaits("k", continuation.All(continuation.Wait{Key: "k"}, continuation.Wait{Key: "other"})), reply2("t", "k"), continuation.StatusPending, ""},
		"a part of an Any":    {awaits("k", continuation.Any(continuation.Wait{Key: "k"}, continuation.Wait{Key: "other"})), reply2("t", "k"), continuation.StatusResolved, continuation.Completed},
		"it is denied":        {awaits("k", approval), denied, continuation.StatusCancelled, continuation.ApprovalDenied},
	} {
		t.Run(name, func(t *testing.T) {
			for log, p := range retaining(t, c.node) {
				out, err := p.rt.Trigger(t.Context(), c.trigger)
				if err != nil || out.Status != c.status || c.reason != "" && out.EndReason != c.reason {
					t.Errorf("%s: %+v, %v; want %s (%s)", log, out, err, c.status, c.reason)
				}
				if out.Trigger != "t" || out.Seq == 0 || out.At.IsZero() {
					t.Errorf("%s: the receipt is %+v", log, out.Receipt)
				}
			}
		})
	}
}

// A chat whose next turn is queued waits again, in the same place, when its trigger has come to its
// end: that is another wait.
func TestOutcomesUnderRetentionBesideAFurtherTurn(t *testing.T) {
	node := func(ctx context.Context, s *Talk) error {
		_, err := continuation.Await[string](ctx, "k", continuation.Wait{Key: "k", Question: fmt.Sprint("what about ", s.Said.Slice(), "?")})
		return err
	}
	for log, p := range retaining(t, node) {
		if err := p.d.Enqueue(t.Context(), run, func(s *Talk) { s.Said.Append("more") }); err != nil {
			t.Fatal(err)
		}
		out, err := p.rt.Trigger(t.Context(), reply("t", "hello"))
		if err != nil || out.Status != continuation.StatusResolved || out.EndReason != continuation.Completed {
			t.Errorf("%s: %+v, %v", log, out, err)
		}
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run, Status: []continuation.Status{continuation.StatusPending}})
		if err != nil || len(all) != 1 {
			t.Errorf("%s: of the next turn there wait %+v, %v", log, all, err)
		}
	}
}

// Nor does it to who has a timer wake, who is told what came of it; only when that was is forgotten
// with the log.
func TestWakeFromOutsideUnderRetention(t *testing.T) {
	alarm := afterAnHour()
	alarm.Key = "alarm"
	missed := late(continuation.Expire())
	missed.Key = "alarm"
	for name, c := range map[string]struct {
		wait   continuation.Wait
		status continuation.Status
	}{
		"alone":         {alarm, continuation.StatusResolved},
		"in an Any":     {continuation.Any(continuation.Wait{Key: "word"}, alarm), continuation.StatusResolved},
		"in an All":     {continuation.All(continuation.Wait{Key: "word", Within: 9 * time.Hour}, alarm), continuation.StatusPending},
		"it was missed": {missed, continuation.StatusExpired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := retaining(t, func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "k", c.wait)
					return err
				})
				lasts(3 * time.Hour)
				for log, p := range all {
					out, err := p.rt.Trigger(t.Context(), continuation.Trigger{ID: "t", Run: run, Kind: continuation.KindTimer, Actor: robot})
					if err != nil || out.Status != c.status {
						t.Errorf("%s: %+v, %v; want %s", log, out, err, c.status)
					}
					if r := out.Receipt; r.Wait == "" || r.Run != run || r.Trigger != "" || r.Kind != continuation.KindTimer ||
						r.Key != "alarm" || r.Actor.Authority != dag.System || r.At.IsZero() != (r.Seq == 0) {
						t.Errorf("%s: the receipt is %+v", log, r)
					}
				}
			})
		})
	}
}
