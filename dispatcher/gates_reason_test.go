package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who approves or rejects an effect may say why. The log keeps it beside who it was, the event
// tells it, Open does as long as the verdict holds, and the node is told why it was rejected.
func TestGatesReasonIsKept(t *testing.T) {
	for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
		quiet(t)
		var bank effectBank
		store := new(memory.Store)
		g := effectNode(t, effectOnce(bank.pay), dag.Policy{})
		i := gatesStops(t, g, store, gatesCharge, "effect pay#charge")
		d := process(t, g, store, dispatcher.Eager(gatesCharge))
		err := d.Answer(t.Context(), run, i.ID, verdict, dispatcher.Author("Ann"), dispatcher.Because("the budget"))
		if err != nil {
			t.Fatal(err)
		}
		if a := askAnswers(t, store, run)[i.ID]; a.By != "Ann" || a.Reason != "the budget" {
			t.Errorf("%s: the log has %+v", verdict, a)
		}
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == dispatcher.InterruptAnswered && !strings.HasSuffix(e.String(), " by Ann: the budget") {
				t.Errorf("%s: the event is %s", verdict, e)
			}
		}
		o, err := d.Open(t.Context(), run)
		if err != nil || len(o.Effects) != 1 || o.Effects[0].By != "Ann" || o.Effects[0].Why != "the budget" ||
			!strings.HasSuffix(o.Effects[0].String(), "not begun, says Ann: the budget") {
			t.Errorf("%s: opened %+v: %v", verdict, o.Effects, err)
		}
		res, err := d.Run(t.Context(), run, nil)
		sameMachine(t, d, run)
		if verdict == dispatcher.Approve {
			completes(t, res, err)
			continue
		}
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		if !errors.Is(err, dag.ErrDenied) || !strings.Contains(err.Error(), "by Ann: the budget") {
			t.Errorf("the node was told %v", err)
		}
	}
}

// The reason for which a visit is rejected is that of its failure; and so of one that an
// interceptor asks about, for it is the same interrupt.
func TestGatesReasonOfAVisit(t *testing.T) {
	quiet(t)
	store := new(memory.Store)
	g := effectNode(t, func(context.Context, *Tale) error { return nil }, dag.Policy{})
	o := gated(dispatcher.Gates{Preset: dispatcher.GateEverything})
	i := gatesStops(t, g, store, o, "before pay#")
	d := process(t, g, store, o)
	if err := d.Answers(t.Context(), run, map[string]any{i.ID: dispatcher.Reject}, dispatcher.Because("not today")); err != nil {
		t.Fatal(err)
	}
	unchanged(t, store, run, func() { // said again it is the same answer, with another reason it is none
		err := d.Answer(t.Context(), run, i.ID, dispatcher.Reject, dispatcher.Because("never"))
		if !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("answered twice: %v", err)
		}
	})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if f := res.Failures[0]; f.Kind != dag.FailedRejected || f.Message != "rejected before the visit: not today" {
		t.Errorf("the visit failed with %+v", f)
	}
}

// A reason that says nothing, or can't be shown, is refused, and so is one where nothing would
// keep it. Nothing changes.
func TestGatesReasonRefused(t *testing.T) {
	quiet(t)
	var side doubtSide
	store := new(memory.Store)
	d := doubtful(t, &side, store, dag.InDoubt(dag.DoubtAsks))
	at, err := d.State(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	id, why := at.Interrupts[0].ID, dispatcher.Because("the statement")
	unchanged(t, store, run, func() {
		for name, err := range map[string]error{
			"no reason":        d.Answer(t.Context(), run, id, dispatcher.Happened("x"), dispatcher.Because("")),
			"a long reason":    d.Answer(t.Context(), run, id, dispatcher.Happened("x"), dispatcher.Because(strings.Repeat("a", 1025))),
			"a control":        d.Answer(t.Context(), run, id, dispatcher.Happened("x"), dispatcher.Because("a\nb")),
			"given twice":      d.Answer(t.Context(), run, id, dispatcher.Happened("x"), why, why),
			"for Resolve":      d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("x"), why),
			"for Edit":         d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{}, why),
			"for Tag":          d.Tag(t.Context(), run, "", "name", why),
			"for what runs":    second(d.Run(t.Context(), run, nil, why)),
			"for what resumes": second(d.Resume(t.Context(), run, why)),
		} {
			var refused *dispatcher.OptionError
			if !errors.As(err, &refused) || refused.Option != "Because" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := d.Answer(t.Context(), run, id, dispatcher.Happened("x"), why); !errors.Is(err, dispatcher.ErrAnswerType) {
			t.Errorf("a resolution with a reason: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Gates.If sees all that is asked: of a visit where it is and what kind of node it is of, of an
// effect what it does, with what input and as what it was declared. What it changes nobody sees.
func TestGatesIfSeesTheAction(t *testing.T) {
	quiet(t)
	var seen []string
	o := gated(dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) {
		seen = append(seen, fmt.Sprintf("%s %s %s %s#%s %s %s %s %q %t %t",
			a.Run, a.Path, a.Node, a.Kind, a.Effect, a.Operation, a.Access, a.Input, a.Touches, a.Reversible, a.Replayable))
		for i := range a.Input {
			a.Input[i] = 'x'
		}
		return a.Effect != "" && a.Kind == dag.KindRoute, nil
	}})
	body := dag.New[Tale]("body")
	pick := dag.Route(body, "pick", func(ctx context.Context, s *Tale) (way, error) {
		_, err := dag.Effect(ctx, "look", 7, func(_ context.Context, n int) (int, error) { return n, nil },
			dag.Operation("shop.look"), dag.Reads, dag.Touches("shelf"), dag.Reversible, dag.Replayable)
		return left, err
	}, []way{left})
	dag.End(body, pick.On(left))
	b := dag.New[Tale]("sees")
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 2)
	store := new(memory.Store)
	i := gatesStops(t, frozen(t, b), store, o, "effect loop/1/pick#look")
	want := []string{
		`tale loop/1/pick loop/pick route#  undeclared  [] false false`,
		`tale loop/1/pick loop/pick route#look shop.look reads 7 ["shelf"] true true`,
	}
	if seen = slices.Compact(seen); !slices.Equal(seen, want) {
		t.Errorf("Gates.If saw\n%q, want\n%q", seen, want)
	}
	if a := gatesAction(t, i); string(a.Input) != "7" {
		t.Errorf("the person is shown the input %s", a.Input)
	}
}
