package continuation_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A trigger that is repeated is one, also when the log that told of it is trimmed: it ends neither
// what the run waits for in its next turn nor what another run waits for under the key.
func TestATriggerIsOneBehindATrim(t *testing.T) {
	for _, keep := range []dispatcher.Retention{{}, {Last: 1}} {
		said := func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
			s.Said.Append(r.Payload)
			return nil
		}
		g := waiting(t, continuation.Wait{Kind: continuation.KindReply, Key: "ann"}, dag.Policy{}, said)
		var store memory.Store
		p := under(t, dispatcher.Options{Paranoid: true, Retention: keep}, g, &store, continuation.Options{})
		p.waits(run)
		tr := reply("t1", "yes")
		tr.Run, tr.Key = "", "ann"
		first, err := p.rt.Trigger(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.d.Turn(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("the next turn does not wait: %v", err)
		}
		p.waits("other")
		p = under(t, dispatcher.Options{Paranoid: true, Retention: keep}, g, &store, continuation.Options{})
		p.unchanged(run, func() {
			p.unchanged("other", func() {
				again, err := p.rt.Trigger(t.Context(), tr)
				if err != nil || again.Status != continuation.StatusResolved || again.Run != run || again.Trigger != "t1" {
					t.Errorf("%+v: repeated it is %+v, %v", keep, again, err)
				}
				if keep.Last == 0 && again != first {
					t.Errorf("repeated it is %+v, and was %+v", again, first)
				}
			})
		})
		next := reply("t2", "no")
		if _, err := p.rt.Trigger(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if got := p.said(run); !slices.Equal(got, []string{"yes", "no"}) {
			t.Errorf("the state says %q", got)
		}
	}
}

// A denial that its node was told of, and that lies before a trim, has not cancelled the run.
func TestADenialThatIsFedBehindATrim(t *testing.T) {
	w := continuation.Wait{Kind: continuation.KindApproval, Key: "k", OnDeny: continuation.Feed}
	for log, p := range retaining(t, func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "k", w)
		return err
	}) {
		tr := decide("t", continuation.Denied)
		for range 2 {
			out, err := p.rt.Trigger(t.Context(), tr)
			if err != nil || out.Status != continuation.StatusResolved || out.EndReason != continuation.Completed {
				t.Errorf("%s: %+v, %v", log, out, err)
			}
		}
	}
}

// A denial that has cancelled its run, and lies before a trim of what was gone on with all the
// same, is told as one if the run is cancelled.
func TestADenialThatCancelledBehindATrim(t *testing.T) {
	for _, keep := range []dispatcher.Retention{{}, {Last: 1}} {
		b := dag.New[Talk]("talk")
		ask := dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "k", continuation.Wait{Kind: continuation.KindApproval, Key: "k"})
			if ended := (*continuation.Ended)(nil); errors.As(err, &ended) {
				return nil
			}
			return err
		})
		dag.Step(b, "next", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "other", continuation.Wait{Key: "other"})
			return err
		}, ask)
		p := under(t, dispatcher.Options{Retention: keep}, frozen(t, b), &memory.Store{}, continuation.Options{})
		p.waits(run)
		tr := decide("t", continuation.Denied)
		tells := func(when string) {
			t.Helper()
			out, err := p.rt.Trigger(t.Context(), tr)
			if err != nil || out.Status != continuation.StatusCancelled || out.EndReason != continuation.ApprovalDenied {
				t.Errorf("%+v: %s: %+v, %v", keep, when, out, err)
			}
		}
		tells("at first")
		if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("the run is not gone on with: %v", err)
		}
		if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
			t.Fatal(err)
		}
		tells("repeated")
	}
}
