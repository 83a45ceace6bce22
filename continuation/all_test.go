package continuation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// A part of an All that has expired is asked of somebody else, or again, when the others have ended, and not
// before: until then a trigger for it is refused at once, and says so, and the part is pending.
func TestAPartOfAllThatExpiresIsAskedBehindTheOthers(t *testing.T) {
	for name, then := range map[string]continuation.OnExpire{
		"escalated": continuation.Escalate(dag.Human, 2*time.Hour),
		"again":     continuation.Again(1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { behindTheOthers(t, then) })
		})
	}
}

func behindTheOthers(t *testing.T, then continuation.OnExpire) {
	b := dag.New[Talk]("all")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "both", continuation.All(
			continuation.Wait{Key: "word", Within: time.Hour, OnExpire: then},
			continuation.Wait{Kind: continuation.KindApproval, Key: "yes"},
		))
		if err == nil {
			s.Said.Append(r.Payload)
		}
		return err
	})
	p := talk(t, frozen(t, b))
	part := func() continuation.View {
		t.Helper()
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
		k := slices.IndexFunc(all, func(v continuation.View) bool { return v.Name == "both/1" })
		if err != nil || k < 0 {
			t.Fatalf("the waits are %+v, %v", all, err)
		}
		return all[k]
	}
	lasts(time.Hour)
	if _, err := p.rt.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	p.unchanged(run, func() {
		var early *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), reply2("early", "word")); !errors.As(err, &early) || !strings.Contains(err.Error(), "it is asked again when") {
			t.Errorf("while the other waits: %v", err)
		}
	})
	if v, took := part(), time.Since(before); took > 0 || v.Status != continuation.StatusPending || v.Level != 1 {
		t.Errorf("refused after %v it is %+v", took, v)
	}
	tr := decide("yes", continuation.Approved)
	tr.Key = "yes"
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if v := part(); v.Level != 2 || !v.Until.After(time.Now()) {
		t.Errorf("behind the other it is %+v", v)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("word", "word")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("asked again: %+v, %v", out, err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"x"}) {
		t.Errorf("said %q", said)
	}
}

// So it is of a wait beside which its visit asks by other means.
func TestAWaitThatExpiresBesideAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("beside")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "word", OnExpire: continuation.Again(1)})
			_, other := dag.Ask[string](ctx, "coat", "coat?")
			if err = errors.Join(err, other); err == nil {
				s.Said.Append(r.Payload)
			}
			return err
		})
		p := talk(t, frozen(t, b))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		p.unchanged(run, func() {
			var early *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), reply2("early", "word")); !errors.As(err, &early) || time.Since(before) > 0 {
				t.Errorf("while the question is open: %v after %v", err, time.Since(before))
			}
		})
		p.answers(run, "no")
		if out, err := p.rt.Trigger(t.Context(), reply2("word", "word")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("asked again: %+v, %v", out, err)
		}
	})
}
