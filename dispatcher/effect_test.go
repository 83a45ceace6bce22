package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// effectNode is a graph of one node.
func effectNode(t testing.TB, f part, policy dag.Policy) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("one")
	dag.Step(b, "pay", f).With(policy)
	return frozen(t, b)
}

// effectOnce is a body that does one effect, which sets the word.
func effectOnce(f func(context.Context, int) (string, error), options ...dag.EffectOption) part {
	return func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 5, f, options...)
		s.Word.Set(receipt)
		return err
	}
}

// An effect whose end the store did not take is in doubt from then on: the visit fails for
// good whatever attempts it has left, says what is in doubt, and its failure can be followed.
func TestEffectInDoubt(t *testing.T) {
	for _, followed := range []bool{false, true} {
		var bank effectBank
		b := dag.New[Tale]("pay")
		pay := dag.Step(b, "pay", effectOnce(bank.pay)).With(dag.Policy{Attempts: 3})
		if followed {
			dag.Step(b, "look", func(ctx context.Context, s *Tale) error {
				f := dag.Failures(ctx)[0]
				s.Word.Set(fmt.Sprintf("%s %s", f.Path, f.Kind))
				return nil
			}, pay.Failed())
		}
		g := frozen(t, b)
		store := new(mortal)
		if err := store.revive(t.Context(), 3, false); err != nil {
			t.Fatal(err)
		}
		if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
			t.Fatalf("the store died, and the call returns %v", err)
		}
		if err := store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if bank.counts()["tale/pay#charge"] != 1 {
			t.Errorf("done %v", bank.counts())
		}
		if followed {
			completes(t, res, err)
			if got := res.State.Word.Get(); got != "pay in_doubt" {
				t.Errorf("who follows the failure is told %q", got)
			}
			continue
		}
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		var doubt *dag.InDoubtError
		if !errors.As(err, &doubt) || doubt.Key != "charge" || doubt.Path != "pay" || doubt.ID != "tale/pay#charge" || time.Since(doubt.Begun) > time.Minute || doubt.Err != nil {
			t.Errorf("%v, %+v", err, doubt)
		}
		if f := res.Failures[0]; f.Kind != dag.FailedInDoubt || f.Attempts != 1 {
			t.Errorf("failure %+v, want one final attempt in doubt", f)
		}
		res, err = process(t, g, store, dispatcher.Options{}).State(t.Context(), run)
		if err != nil || res.Failures[0].Kind != dag.FailedInDoubt {
			t.Errorf("another process reads %+v, %v", res.Failures, err)
		}
	}
}

// What an error from the function means: in doubt at once; or not done, and done by the next
// attempt; or replayable, and done by the next attempt.
func TestEffectsThatFail(t *testing.T) {
	reset := errors.New("connection reset")
	for _, test := range []struct {
		name    string
		err     error
		options []dag.EffectOption
		want    int // times that it is done
		log     []string
	}{
		{"in doubt", reset, nil, 1, []string{"effect_begun pay", "attempt_failed pay"}},
		{"not done", fmt.Errorf("%w: %w", dag.NotDone, reset), nil, 2, []string{
			"effect_begun pay", "effect_ended pay", "attempt_failed pay", "effect_begun pay", "effect_ended pay", "done pay"}},
		{"replayable", reset, []dag.EffectOption{dag.Replayable}, 2, []string{
			"effect_begun pay", "attempt_failed pay", "effect_begun pay", "effect_ended pay", "done pay"}},
	} {
		var keys []string
		g := effectNode(t, effectOnce(func(ctx context.Context, _ int) (string, error) {
			keys = append(keys, dag.Key(ctx))
			if len(keys) == 1 {
				return "", test.err
			}
			return "paid", nil
		}, test.options...), dag.Policy{Attempts: 3})
		var store memory.Store
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if len(keys) != test.want || slices.ContainsFunc(keys, func(k string) bool { return k != "tale/pay#charge" }) {
			t.Errorf("%s: done as %q, want %d times", test.name, keys, test.want)
		}
		if test.want == 2 {
			completes(t, res, err)
		} else if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrInDoubt) || !errors.Is(err, reset) {
			t.Errorf("%s: %v", test.name, err)
		}
		log := kinds(readLog(t, &store), checkpoint.EffectBegun, checkpoint.EffectEnded, checkpoint.AttemptFailed, checkpoint.Done)
		if !slices.Equal(log, test.log) {
			t.Errorf("%s: the log has %q, want %q", test.name, log, test.log)
		}
	}
}

// A panic and a Goexit in the function leave the effect in doubt.
func TestEffectsThatBlast(t *testing.T) {
	for name, blast := range map[string]func(){"panic": func() { panic("bank") }, "goexit": runtime.Goexit} {
		n := 0
		g := effectNode(t, effectOnce(func(context.Context, int) (string, error) {
			n++
			blast()
			return "", nil
		}), dag.Policy{Attempts: 2})
		res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrInDoubt) || n != 1 {
			t.Errorf("%s: %v, done %d times", name, err, n)
		}
	}
}

// The same key with another input is refused in the same attempt, in a later one and in
// another process; nothing is done.
func TestEffectInputChanged(t *testing.T) {
	var bank effectBank
	var wrong []error
	input := func(ctx context.Context) int { return 5 }
	g := effectNode(t, func(ctx context.Context, _ *Tale) error {
		if _, err := dag.Effect(ctx, "charge", input(ctx), bank.pay); err != nil {
			wrong = append(wrong, err)
			return err
		}
		_, err := dag.Effect(ctx, "charge", 99, bank.pay)
		wrong = append(wrong, err)
		return err
	}, dag.Policy{Attempts: 2})
	var store memory.Store
	_, _ = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	input = func(ctx context.Context) int { return 5 + dag.Attempt(ctx) }
	_, _ = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	if len(wrong) != 4 {
		t.Fatalf("errors %v", wrong)
	}
	for _, err := range wrong {
		if !errors.Is(err, dag.ErrInputChanged) || !strings.Contains(err.Error(), `"charge" of visit pay`) {
			t.Errorf("%v, want ErrInputChanged of the effect", err)
		}
	}
	if n := bank.counts()["tale/pay#charge"]; n != 1 {
		t.Errorf("done %d times", n)
	}
}

// Effects of one node run side by side; those that come while the store is busy share an
// append. A key that is under way is refused.
func TestEffectsSideBySide(t *testing.T) {
	var bank effectBank
	const many = 40
	g := effectNode(t, func(ctx context.Context, _ *Tale) error {
		var all sync.WaitGroup
		errs := make([]error, many)
		for i := range many {
			all.Go(func() {
				got, err := dag.Effect(ctx, fmt.Sprint("lane ", i), i, bank.pay)
				if want := fmt.Sprintf("%d for tale/pay#lane %d", i, i); err == nil && got != want {
					err = fmt.Errorf("%q, want %q", got, want)
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}, dag.Policy{})
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if c.method == "Append" {
				lasts(time.Millisecond)
			}
			return nil
		}}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if n := store.calls["Append"]; n > 8 {
			t.Errorf("%d appends for %d effects side by side", n, many)
		}
	})
	if got := len(bank.counts()); got != many {
		t.Errorf("%d effects done, want %d", got, many)
	}
}

func TestEffectUnderWay(t *testing.T) {
	n := 0
	g := effectNode(t, func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) {
			_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { return 0, nil })
			if err == nil || !strings.Contains(err.Error(), "under way") {
				t.Errorf("beside itself: %v", err)
			}
			n++
			return n, nil
		})
		return err
	}, dag.Policy{})
	res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	if completes(t, res, err); n != 1 {
		t.Errorf("done %d times", n)
	}
}

// Promise P13: behind a question without an answer no effect begins. Once it is answered,
// effects before it are not done again.
func TestNoEffectBehindAnUnansweredQuestion(t *testing.T) {
	var bank effectBank
	refused := 0
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		if _, err := dag.Effect(ctx, "before", 1, bank.pay); err != nil {
			return err
		}
		_, asked := dag.Ask[bool](ctx, "sure", "?")
		if _, err := dag.Effect(ctx, "before", 1, bank.pay); err != nil {
			t.Errorf("what has happened is refused: %v", err)
		}
		if _, err := dag.Effect(ctx, "behind", 2, bank.pay); errors.Is(err, dag.ErrAsked) {
			refused++
		} else if err != nil || asked != nil {
			t.Errorf("the question has %v, the effect behind it %v", asked, err)
		}
		return nil
	}, dag.Policy{})
	var store memory.Store
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if got := asJSON(t, bank.counts()); got != `{"tale/pay#before":1}` || refused != 1 {
		t.Errorf("done %s, refused %d", got, refused)
	}
	d := process(t, g, &store, dispatcher.Options{})
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if got := asJSON(t, bank.counts()); got != `{"tale/pay#before":1,"tale/pay#behind":1}` || refused != 1 {
		t.Errorf("done %s, refused %d", got, refused)
	}
}

// Without a store nothing could be kept, so nothing is done.
func TestEffectWithoutAStore(t *testing.T) {
	var bank effectBank
	_, err := process(t, effectNode(t, effectOnce(bank.pay), dag.Policy{}), nil, dispatcher.Options{}).Start(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrNoStore) || len(bank.counts()) > 0 {
		t.Errorf("%v, done %v", err, bank.counts())
	}
}

// Promise P12: an input that is too large is refused before anything is done; an output that
// is too large is lost, and its effect is not done again.
func TestEffectLimits(t *testing.T) {
	var errs []error
	ran := map[string]int{}
	big := strings.Repeat("x", 100)
	g := effectNode(t, func(ctx context.Context, _ *Tale) error {
		for _, key := range []string{"in", "out"} {
			in := map[string]string{"in": big, "out": ""}[key]
			_, err := dag.Effect(ctx, key, in, func(context.Context, string) (string, error) {
				ran[key]++
				return big, nil
			})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}, dag.Policy{Attempts: 2})
	d := process(t, g, new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 50}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if ran["in"] != 0 || ran["out"] != 1 || len(errs) != 4 {
		t.Fatalf("done %v, errors %v", ran, errs)
	}
	for i, err := range errs {
		var limit *dispatcher.LimitError
		if i < 3 && (!errors.As(err, &limit) || limit.Limit != "value bytes") {
			t.Errorf("%v, want a LimitError", err)
		}
		if got := errors.Is(err, dag.ErrOutputLost); got != (i%2 == 1) || i == 3 && !strings.Contains(err.Error(), "50 of value bytes") {
			t.Errorf("%v: is a lost output: %t", err, got)
		}
		if n := strings.Count(err.Error(), "can't be kept"); n > 1 {
			t.Errorf("%v: says %d times that it can't be kept", err, n)
		}
	}
	if err := d.Resolve(t.Context(), run, "pay", "out", dispatcher.Happened("x")); !errors.Is(err, dispatcher.ErrNotInDoubt) || !strings.Contains(err.Error(), "could not be kept") {
		t.Errorf("Resolve of an output that was lost = %v", err)
	}
}

// An unsaidReceipt is what JSON can't be made of.
type unsaidReceipt struct{}

func (unsaidReceipt) MarshalJSON() ([]byte, error)  { panic("not today") }
func (*unsaidReceipt) UnmarshalJSON(_ []byte) error { return nil }

// An output whose own MarshalJSON panics is lost: the effect has happened, which is no doubt, and
// it is not done again, also if it may be.
func TestEffectWhoseOutputPanics(t *testing.T) {
	for _, options := range [][]dag.EffectOption{nil, {dag.Replayable}} {
		done := 0
		g := effectNode(t, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (unsaidReceipt, error) {
				done++
				return unsaidReceipt{}, nil
			}, options...)
			if !errors.Is(err, dag.ErrOutputLost) || !strings.Contains(err.Error(), "not today") {
				t.Errorf("%v, want ErrOutputLost and why", err)
			}
			return err
		}, dag.Policy{Attempts: 2})
		res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		if done != 1 {
			t.Errorf("done %d times", done)
		}
	}
}

// A turn is another use of the graph: its visits have keys, and effects, of their own.
func TestEffectsOfATurn(t *testing.T) {
	var bank effectBank
	var store memory.Store
	g := effectNode(t, effectOnce(bank.pay), dag.Policy{})
	d := process(t, g, &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	res, err = d.Turn(t.Context(), run, nil)
	completes(t, res, err)
	if got := asJSON(t, bank.counts()); got != `{"tale/2/pay#charge":1,"tale/pay#charge":1}` {
		t.Errorf("done %s", got)
	}
}

// What would be lost when a later attempt finds the effect done is refused inside its function, by
// name, and nothing of it is in the log; what can be read is read there as anywhere.
func TestWhatAnEffectMayNotSay(t *testing.T) {
	var store memory.Store
	refused := map[string]error{}
	var answers []dag.Answered
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		if _, err := dag.Ask[string](ctx, "who", "who pays?"); err != nil {
			return err
		}
		_, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, sum int) (string, error) {
			_, refused["Ask"] = dag.Ask[string](ctx, "how", "how?")
			_, refused["Effect"] = dag.Effect(ctx, "inner", sum, func(context.Context, int) (int, error) { return 0, nil })
			refused["note"] = dag.Note(ctx, "shop.sum", sum)
			refused["Depends"] = dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Hour})
			answers = dag.Answers(ctx)
			return "receipt", nil
		})
		return err
	}, dag.Policy{})
	d := process(t, g, &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "ann"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	for call, err := range refused {
		if err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("%s inside an effect: %v", call, err)
		}
	}
	if len(answers) != 1 || answers[0].Key != "who" {
		t.Errorf("the answers are %v", answers)
	}
	for e, err := range store.Read(t.Context(), run, 0, 0) {
		if err != nil || e.Kind == checkpoint.Noted {
			t.Errorf("the log has %v, %v", e, err)
		}
	}
}
