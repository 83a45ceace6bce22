package continuation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// late is a timer that says what comes of it when it is missed.
func late(missed continuation.OnExpire) continuation.Wait {
	w := afterAnHour()
	w.Within, w.OnExpire = time.Minute, missed
	return w
}

// A timer that was missed, and is to expire then, has expired like any other wait: its view says
// so, and nobody is owed anything. One whose visit fails for another reason has failed.
func TestAMissedTimerHasExpired(t *testing.T) {
	fails := func(context.Context, *Talk, continuation.Reply[string]) error { return errWeather }
	word := continuation.Wait{Key: "k", Within: 2 * time.Hour}
	for name, c := range map[string]struct {
		wait   continuation.Wait
		then   behind
		status continuation.Status // of the timer
		reason continuation.Reason
		owes   continuation.DeliveryStatus
	}{
		"alone":                    {late(continuation.Expire()), says, continuation.StatusExpired, continuation.Expired, continuation.SuppressedExpired},
		"among others":             {continuation.Any(late(continuation.Expire()), word), says, continuation.StatusExpired, continuation.Expired, continuation.SuppressedExpired},
		"among others, not first":  {continuation.Any(continuation.Wait{Key: "k", OnExpire: continuation.Expire()}, late(continuation.OnExpire{})), says, continuation.StatusExpired, continuation.Expired, continuation.SuppressedExpired},
		"beside others":            {continuation.All(late(continuation.Expire()), word), says, continuation.StatusExpired, continuation.Expired, continuation.SuppressedExpired},
		"it fires":                 {late(continuation.OnExpire{}), timed, continuation.StatusResolved, continuation.Completed, continuation.DeliveryPending},
		"it fires, and that fails": {late(continuation.OnExpire{}), fails, continuation.StatusFailed, continuation.RunFailed, continuation.DeliveryPending},
		"it fires beside one that expires": {
			continuation.All(late(continuation.OnExpire{}), word), timed, continuation.StatusFailed, continuation.RunFailed, continuation.SuppressedExpired,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := talk(t, waiting(t, c.wait, dag.Policy{}, c.then), dispatcher.Labels(continuation.Owed(nil)))
				if name == "beside others" {
					if _, err := p.rt.Trigger(t.Context(), reply2("t", "k")); err != nil {
						t.Fatal(err)
					}
				}
				lasts(3 * time.Hour)
				_, err := p.rt.Sweep(t.Context())
				all, also := p.rt.List(t.Context(), continuation.Filter{Run: run})
				if err = errors.Join(err, also); err != nil {
					t.Fatal(err)
				}
				if v := all[0]; v.Status != c.status || v.Reason != c.reason || v.Delivery != c.owes {
					t.Errorf("the timer is %s (%s: %s), and the follow-up %s; want %s (%s), and %s",
						v.Status, v.Reason, v.Why, v.Delivery, c.status, c.reason, c.owes)
				}
			})
		})
	}
}
