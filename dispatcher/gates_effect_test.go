package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gatesCharge gates the effect charge of the node pay.
var gatesCharge = gated(dispatcher.Gates{Names: []string{"pay#charge"}})

// An effect waits for its approval, whatever its node makes of the error; what the node wrote
// is dropped, and it has not begun. Only the answer lets it begin, once.
func TestGatesEffectApproved(t *testing.T) {
	for _, swallowed := range []bool{false, true} {
		quiet(t)
		var w witness
		var bank effectBank
		var store memory.Store
		var said error
		g := effectNode(t, w.sees(func(ctx context.Context, s *Tale) error {
			s.Word.Set("dropped")
			receipt, err := dag.Effect(ctx, "charge", 5, bank.pay)
			if said = err; err == nil {
				s.Word.Set(receipt)
			}
			if swallowed {
				return nil
			}
			return err
		}), dag.Policy{})
		i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
		if !errors.Is(said, dag.ErrAsked) || !strings.Contains(said.Error(), "approval") || !strings.Contains(said.Error(), `"charge"`) {
			t.Errorf("the node was told %v", said)
		}
		if a := gatesAction(t, i); a.Effect != "charge" || string(a.Input) != "5" || a.Access != 0 || i.By != "gate" {
			t.Errorf("asked is %+v, %+v", i, a)
		}
		if want := `gate asks before pay#charge: {"run":"tale",`; !strings.HasPrefix(i.String(), want) {
			t.Errorf("the interrupt is %s", i)
		}
		w.expect(t, "pay")
		gatesUndone(t, &bank)
		res, err := process(t, g, &store, gatesCharge).Resume(t.Context(), run)
		if again := gatesOne(t, res, err, "effect pay#charge"); again.ID != i.ID || res.State.Word.Get() != "" {
			t.Errorf("a resume has made %+v of it, the state says %q", again, res.State.Word.Get())
		}
		w.expect(t)
		gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Approve)
		res, err = process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "pay")
		if bank.counts()["tale/pay#charge"] != 1 || res.State.Word.Get() != "5 for tale/pay#charge" {
			t.Errorf("done %v, the word is %q", bank.counts(), res.State.Word.Get())
		}
		gatesSame(t, "the log", gatesKinds(t, &store), []string{"interrupted pay", "answered", "effect_begun pay", "effect_ended pay"})
	}
}

// A rejected effect is not done, and its node is told; the visit that returns the error has
// failed for good, whatever attempts it has left.
func TestGatesEffectRejected(t *testing.T) {
	for _, handled := range []bool{false, true} {
		quiet(t)
		var w witness
		var bank effectBank
		var store memory.Store
		b := dag.New[Tale]("pay")
		pay := dag.Step(b, "pay", w.sees(func(ctx context.Context, s *Tale) error {
			_, err := dag.Effect(ctx, "charge", 5, bank.pay)
			if handled && errors.Is(err, dag.ErrDenied) && errors.Is(err, dag.NotDone) {
				s.Word.Set("on the house")
				return nil
			}
			return err
		})).With(dag.Policy{Attempts: 3})
		dag.Step(b, "sorry", func(ctx context.Context, s *Tale) error {
			f := dag.Failures(ctx)[0]
			s.Word.Set(fmt.Sprintf("%s %s %d: %s", f.Path, f.Kind, f.Attempts, f.Message))
			return nil
		}, pay.Failed())
		g := frozen(t, b)
		i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
		if err := process(t, g, &store, gatesCharge).Answer(t.Context(), run, i.ID, dispatcher.Reject, dispatcher.Author("Ann")); err != nil {
			t.Fatal(err)
		}
		res, err := process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "pay", "pay")
		gatesUndone(t, &bank)
		want := `pay denied 1: dispatcher: effect "charge" of visit pay: dag: the effect was rejected, and did not happen: by Ann`
		if handled {
			want = "on the house"
		}
		if got := res.State.Word.Get(); got != want {
			t.Errorf("the word is %q, want %q", got, want)
		}
	}
}

// A resume of the run that failed because an effect was rejected has the person asked again:
// a rejection is not for ever.
func TestGatesEffectRejectedAndAskedAgain(t *testing.T) {
	quiet(t)
	var w witness
	var bank effectBank
	var store memory.Store
	g := effectNode(t, gatesPay(&w, &bank), dag.Policy{Attempts: 2})
	first := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	gatesDecide(t, g, &store, gatesCharge, first, dispatcher.Reject)
	res, err := process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	var n *dispatcher.NodeError
	if !errors.As(err, &n) || n.Kind != dag.FailedDenied || !errors.Is(err, dag.ErrDenied) {
		t.Errorf("the error is %v, want one of kind denied", err)
	}
	second := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	if second.ID == first.ID {
		t.Error("the interrupt that was answered waits again")
	}
	gatesDecide(t, g, &store, gatesCharge, second, dispatcher.Approve)
	res, err = process(t, g, &store, gatesCharge).Resume(t.Context(), run)
	completes(t, res, err)
	if bank.counts()["tale/pay#charge"] != 1 {
		t.Errorf("done %v", bank.counts())
	}
}

// An approval is spent when the effect begins: one that did not happen needs another, in the
// same attempt and in the next one.
func TestGatesEffectNotDoneNeedsAnother(t *testing.T) {
	for _, inAttempt := range []bool{false, true} {
		quiet(t)
		var store memory.Store
		did := 0
		refuse := func(context.Context, int) (string, error) {
			if did++; did < 3 {
				return "", fmt.Errorf("try later: %w", dag.NotDone)
			}
			return "receipt", nil
		}
		g := effectNode(t, func(ctx context.Context, s *Tale) error {
			receipt, err := dag.Effect(ctx, "charge", 5, refuse)
			if inAttempt && errors.Is(err, dag.NotDone) {
				receipt, err = dag.Effect(ctx, "charge", 5, refuse)
			}
			s.Word.Set(receipt)
			return err
		}, dag.Policy{Attempts: 9})
		var ids []string
		for range 3 {
			i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
			ids = append(ids, i.ID)
			if did != len(ids)-1 {
				t.Errorf("it was done %d times with %d approvals", did, len(ids)-1)
			}
			gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Approve)
		}
		res, err := process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
		completes(t, res, err)
		if did != 3 || res.State.Word.Get() != "receipt" {
			t.Errorf("it was done %d times, the word is %q", did, res.State.Word.Get())
		}
		gatesBegunUnder(t, &store, ids)
	}
}

// gatesBegunUnder checks under which approvals effects began, by the log.
func gatesBegunUnder(t testing.TB, store checkpoint.Store, want []string) {
	t.Helper()
	var got []string
	for _, e := range readLog(t, store) {
		if e.Kind == checkpoint.EffectBegun {
			var b checkpoint.BegunEffect
			gatesDecode(t, e, &b)
			got = append(got, b.Approval)
		}
	}
	gatesSame(t, "approvals that were spent", got, want)
}

// A replayable effect whose process died in it is done again under the approval that it had
// begun with: it is the same effect, and nobody knows whether it happened.
func TestGatesReplayableGoesOn(t *testing.T) {
	var bank effectBank
	store := new(mortal)
	g := effectNode(t, effectOnce(bank.pay, dag.Replayable), dag.Policy{})
	i := gatesStops(t, g, store, gatesCharge, "effect pay#charge")
	gatesDecide(t, g, store, gatesCharge, i, dispatcher.Approve)
	if err := store.revive(t.Context(), 3, false); err != nil { // resumed, begun, ended
		t.Fatal(err)
	}
	if _, err := process(t, g, store, gatesCharge).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
		t.Fatalf("the store died, and the call returns %v", err)
	}
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	res, err := process(t, g, store, gatesCharge).Run(t.Context(), run, nil)
	completes(t, res, err)
	if bank.counts()["tale/pay#charge"] != 2 {
		t.Errorf("done %v, want it done again under its key", bank.counts())
	}
	gatesBegunUnder(t, store, []string{i.ID, i.ID})
}

// One that had begun without an approval, when no gate stood there, needs one to begin again.
func TestGatesReplayableBegunWithoutAGate(t *testing.T) {
	var bank effectBank
	store := new(mortal)
	g := effectNode(t, effectOnce(bank.pay, dag.Replayable), dag.Policy{})
	if err := store.revive(t.Context(), 3, false); err != nil { // opened, begun, ended
		t.Fatal(err)
	}
	if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
		t.Fatalf("the store died, and the call returns %v", err)
	}
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	i := gatesStops(t, g, store, gatesCharge, "effect pay#charge")
	if bank.counts()["tale/pay#charge"] != 1 {
		t.Errorf("done %v", bank.counts())
	}
	gatesDecide(t, g, store, gatesCharge, i, dispatcher.Approve)
	res, err := process(t, g, store, gatesCharge).Run(t.Context(), run, nil)
	completes(t, res, err)
	gatesBegunUnder(t, store, []string{"", i.ID})
}

// What was approved is the effect with its input: with another one it is asked for again.
func TestGatesEffectOfAnotherInput(t *testing.T) {
	quiet(t)
	var store memory.Store
	var paid []int
	sum := 40
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		_, err := dag.Effect(ctx, "charge", sum, func(_ context.Context, cents int) (int, error) {
			paid = append(paid, cents)
			return 0, nil
		})
		return err
	}, dag.Policy{})
	for _, sum = range []int{40, 4000, 40} {
		i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
		if got := string(gatesAction(t, i).Input); got != fmt.Sprint(sum) {
			t.Errorf("asked about %s, want %d", got, sum)
		}
		gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Approve)
	}
	sum = 40
	res, err := process(t, g, &store, gatesCharge).Run(t.Context(), run, nil)
	completes(t, res, err)
	if fmt.Sprint(paid) != "[40]" {
		t.Errorf("paid %v", paid)
	}
}

// Several effects of one visit, side by side, are asked about at once, and beside a question
// of the node. Each is decided for itself, and only with the last answer the visit runs again.
func TestGatesSeveralEffectsAtOnce(t *testing.T) {
	quiet(t)
	var w witness
	var bank effectBank
	var store memory.Store
	o := gated(dispatcher.Gates{Names: []string{"pay#*"}})
	g := effectNode(t, w.sees(func(ctx context.Context, s *Tale) error {
		var errs [3]error
		var all sync.WaitGroup
		for k := range errs {
			all.Go(func() {
				if _, errs[k] = dag.Effect(ctx, fmt.Sprint("lane ", k), k, bank.pay); errors.Is(errs[k], dag.ErrDenied) {
					errs[k] = nil
				}
			})
		}
		_, err := dag.Ask[bool](ctx, "lane 0", "sure?")
		all.Wait()
		return errors.Join(append(errs[:], err)...)
	}), dag.Policy{})
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if len(res.Interrupts) != 4 {
		t.Fatalf("these wait: %v", res.Interrupts)
	}
	for k, i := range res.Interrupts {
		w.expect(t, map[bool][]string{true: {"pay"}}[k == 0]...)
		gatesUndone(t, &bank)
		var answer any = dispatcher.Approve
		switch {
		case i.Kind == dispatcher.KindAsked:
			answer = true
		case i.Key == "lane 1":
			answer = dispatcher.Reject
		}
		if err := process(t, g, &store, o).Answer(t.Context(), run, i.ID, answer); err != nil {
			t.Fatal(err)
		}
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
	}
	completes(t, res, err)
	if done := bank.counts(); len(done) != 2 || done["tale/pay#lane 0"] != 1 || done["tale/pay#lane 2"] != 1 {
		t.Errorf("done %v", done)
	}
}

// An effect behind one that waits for its approval does not begin, be it gated or not.
func TestGatesNoEffectBehindOneThatWaits(t *testing.T) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	var errs [2]error
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		_, errs[0] = dag.Effect(ctx, "charge", 5, bank.pay)
		_, errs[1] = dag.Effect(ctx, "mail", 5, bank.pay)
		return nil
	}, dag.Policy{})
	gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	if !errors.Is(errs[0], dag.ErrAsked) || !errors.Is(errs[1], dag.ErrAsked) {
		t.Errorf("the node was told %v and %v", errs[0], errs[1])
	}
	gatesUndone(t, &bank)
}

// An approval that is posted while the run is live lets the effect begin at once.
func TestGatesEffectOfALiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var bank effectBank
		var store memory.Store
		b := dag.New[Tale]("beside")
		dag.Step(b, "pay", gatesPay(&w, &bank))
		for _, name := range []string{"long", "longer"} {
			dag.Step(b, name, w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }))
		}
		d := process(t, frozen(t, b), &store, gatesCharge)
		ended := beginRun(t, d)
		res, err := d.State(t.Context(), run)
		if err != nil || len(res.Interrupts) != 1 || res.Interrupts[0].Kind != dispatcher.KindEffect {
			t.Fatalf("interrupts %v, %v", res.Interrupts, err)
		}
		w.expect(t, "pay", "long", "longer")
		gatesUndone(t, &bank)
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect(t, "pay")
		if bank.counts()["tale/pay#charge"] != 1 {
			t.Errorf("done %v", bank.counts())
		}
		e := <-ended
		completes(t, e.res, e.err)
	})
}

// A visit that has asked waits, also if what it returns is that another effect of it was
// rejected.
func TestGatesRejectedAndAsking(t *testing.T) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	o := gated(dispatcher.Gates{Names: []string{"pay#*"}})
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		_, card := dag.Effect(ctx, "card", 5, bank.pay)
		if !errors.Is(card, dag.ErrDenied) {
			return card
		}
		receipt, cash := dag.Effect(ctx, "cash", 5, bank.pay)
		if s.Word.Set(receipt); cash == nil {
			return nil
		}
		return errors.Join(card, cash)
	}, dag.Policy{})
	i := gatesStops(t, g, &store, o, "effect pay#card")
	gatesDecide(t, g, &store, o, i, dispatcher.Reject)
	i = gatesStops(t, g, &store, o, "effect pay#cash")
	gatesDecide(t, g, &store, o, i, dispatcher.Approve)
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	if done := bank.counts(); len(done) != 1 || res.State.Word.Get() == "" {
		t.Errorf("done %v, the word is %q", done, res.State.Word.Get())
	}
}

// A visit that has asked for the approval of an effect has begun: no interrupt before it is
// taken any more.
func TestGatesAskingVisitHasBegun(t *testing.T) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	g := effectNode(t, effectOnce(bank.pay), dag.Policy{})
	i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	o := gatesCharge
	o.InterruptBefore = []string{"pay"}
	gatesDecide(t, g, &store, o, i, dispatcher.Approve)
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
}

// An item that has asked for the approval of an effect has begun, as the log tells: it finishes
// although an item before it has failed since.
func TestGatesItemThatHasBegun(t *testing.T) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	fail := false
	b := dag.New[Tale]("each")
	dag.Each(b, "all", func(*Tale) []int { return []int{1, 2} }, func(ctx context.Context, _ *Tale, item int) error {
		_, err := dag.Effect(ctx, "charge", item, bank.pay)
		if item == 1 && fail {
			return errors.New("broken")
		}
		return err
	}).With(dag.Policy{Parallel: 1})
	g := frozen(t, b)
	o := gated(dispatcher.Gates{Names: []string{"all#*"}})
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "all/1", "all/2")
	fail = true
	for _, i := range res.Interrupts {
		gatesDecide(t, g, &store, o, i, dispatcher.Approve)
	}
	res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "all/1")
	if done := bank.counts(); len(done) != 2 {
		t.Errorf("done %v", done)
	}
}

// A node that tries an effect again while a person is asked about it has not asked more: it is told
// each time that it waits, and what a visit may ask at once holds one question. That about a doubt
// tells of the error that made it one.
func TestEffectTriedAgainIsAskedAboutOnce(t *testing.T) {
	for _, c := range []struct {
		o      dispatcher.Options
		told   error
		waits  string
		asking string
	}{
		{gatesCharge, dag.ErrAsked, "effect pay#charge", `"input":"xxx`},
		{dispatcher.Options{}, dag.ErrInDoubt, "doubt pay#charge", "the line broke"},
	} {
		quiet(t)
		var store memory.Store
		c.o.Limits.VisitBytes = 1500
		g := effectNode(t, func(ctx context.Context, _ *Tale) (err error) {
			for range 3 {
				_, err = dag.Effect(ctx, "charge", strings.Repeat("x", 500), func(context.Context, string) (int, error) {
					return 0, errors.New("the line broke")
				}, dag.InDoubt(dag.DoubtAsks))
				var over *dispatcher.LimitError
				if !errors.Is(err, c.told) || errors.As(err, &over) {
					t.Errorf("the node was told %v", err)
				}
			}
			return err
		}, dag.Policy{})
		i := gatesStops(t, g, &store, c.o, c.waits)
		if !strings.Contains(string(i.Question), c.asking) {
			t.Errorf("asked is %s", i.Question)
		}
	}
}
