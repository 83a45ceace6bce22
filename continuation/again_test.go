package continuation_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// An approval without a key that is asked again, because what stood behind it failed, is the same
// approval still: no reply goes round it, and nobody ends it who could not before.
func TestAnApprovalAskedAgainIsOne(t *testing.T) {
	fails := true
	p := talk(t, waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
		if fails {
			fails = false
			return errWeather
		}
		s.Said.Append("approved by " + r.Actor.ID)
		return nil
	}))
	first := p.only(run)
	if _, err := p.rt.Trigger(t.Context(), decide("t1", continuation.Approved)); err != nil {
		t.Fatal(err)
	}
	again := p.stands(run, continuation.StatusPending, "")
	if again.ID != first.ID || !reflect.DeepEqual(again.Expects, first.Expects) {
		t.Errorf("asked again it is %+v, was %+v", again, first)
	}
	p.unchanged(run, func() {
		var mismatch *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), reply("t2", "yes")); !errors.As(err, &mismatch) {
			t.Errorf("a reply: %v", err)
		}
		agent := decide("t3", continuation.Approved)
		agent.Actor = robot
		var no *continuation.AuthorityError
		if _, err := p.rt.Trigger(t.Context(), agent); !errors.As(err, &no) {
			t.Errorf("an agent: %v", err)
		}
	})
	if _, err := p.rt.Trigger(t.Context(), decide("t4", continuation.Approved)); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
	if said := p.said(run); !slices.Equal(said, []string{"approved by ann"}) {
		t.Errorf("the state says %q", said)
	}
}
