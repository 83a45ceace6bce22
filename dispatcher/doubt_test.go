package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A doubtSide is the other side of one effect: its first calls fail, so that nobody knows
// what it did.
type doubtSide struct {
	fails int // calls that are left to fail
	calls int
	ran   int   // of the node
	wants error // what the node returns in place of the effect's error, if handled
	mute  bool  // the node handles the error
	loop  bool  // the effect is in the second iteration of a loop
}

var errDoubtReset = errors.New("connection reset")

func (d *doubtSide) charge(_ context.Context, cents int) (string, error) {
	d.calls++
	if d.fails > 0 {
		d.fails--
		return "", errDoubtReset
	}
	return fmt.Sprintf("receipt %d", d.calls), nil
}

// pay is the body of a node with one effect, charge.
func (d *doubtSide) pay(options ...dag.EffectOption) part {
	return func(ctx context.Context, s *Tale) error {
		d.ran++
		s.Said.Append(visitPath(ctx))
		receipt, err := dag.Effect(ctx, "charge", 5, d.charge, options...)
		if err != nil && d.mute {
			return d.wants
		}
		s.Word.Set(receipt)
		return err
	}
}

// Rule 7: what comes of a visit with an effect in doubt is what the effect declares: the node
// decides, the visit fails whatever it returns, or a person is asked.
func TestDoubtPolicies(t *testing.T) {
	other := errors.New("something else")
	for _, test := range []struct {
		name   string
		doubt  dag.Doubt
		side   doubtSide
		policy dag.Policy
		want   string // the status, the failure, or the kind of interrupt
	}{
		{"tells", dag.DoubtTells, doubtSide{}, dag.Policy{Attempts: 3}, "failed in_doubt"},
		{"tells, handled", dag.DoubtTells, doubtSide{mute: true}, dag.Policy{}, "completed"},
		{"tells, handled with an error", dag.DoubtTells, doubtSide{mute: true, wants: other}, dag.Policy{}, "failed error"},
		{"fails", dag.DoubtFails, doubtSide{}, dag.Policy{Attempts: 3}, "failed in_doubt"},
		{"fails, handled", dag.DoubtFails, doubtSide{mute: true}, dag.Policy{Attempts: 3}, "failed in_doubt"},
		{"fails, handled with an error", dag.DoubtFails, doubtSide{mute: true, wants: other}, dag.Policy{Attempts: 3}, "failed in_doubt"},
		{"asks", dag.DoubtAsks, doubtSide{}, dag.Policy{Attempts: 3}, "interrupted doubt"},
		{"asks, handled", dag.DoubtAsks, doubtSide{mute: true}, dag.Policy{Attempts: 3}, "interrupted doubt"},
		{"asks, handled with an error", dag.DoubtAsks, doubtSide{mute: true, wants: other}, dag.Policy{}, "interrupted doubt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			side, store := test.side, new(memory.Store)
			side.fails = 1
			g := effectNode(t, side.pay(dag.InDoubt(test.doubt)), test.policy)
			res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if got := doubtOutcome(res); got != test.want {
				t.Errorf("the run is %s, want %s: %v", got, test.want, err)
			}
			if side.calls != 1 || side.ran != 1 {
				t.Errorf("the effect was done %d times, the node ran %d times", side.calls, side.ran)
			}
			if res.Status == checkpoint.StatusCompleted {
				return
			}
			if says(t, res.State); res.State.Word.Get() != "" {
				t.Errorf("the state has %q", res.State.Word.Get())
			}
			side.mute = false // in the next process nobody knows either, and nothing is done
			res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
			want := test.want
			if test.doubt != dag.DoubtAsks {
				want = "failed in_doubt"
			}
			if got := doubtOutcome(res); got != want || side.calls != 1 {
				t.Errorf("after a resume the run is %s, want %s, and the effect was done %d times: %v", got, want, side.calls, err)
			}
		})
	}
}

// doubtOutcome tells the status of a result, and how its first visit failed or waits.
func doubtOutcome(res *dispatcher.Result[Tale]) string {
	text := string(res.Status)
	for _, f := range res.Failures {
		text += " " + string(f.Kind)
	}
	for _, i := range res.Interrupts {
		text += " " + string(i.Kind)
	}
	return text
}

// doubtful runs a graph of one node, pay, until its effect is in doubt.
func doubtful(t *testing.T, side *doubtSide, store checkpoint.Store, options ...dag.EffectOption) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	side.fails = 1
	d := process(t, effectNode(t, side.pay(options...), dag.Policy{}), store, dispatcher.Options{})
	if res, err := d.Run(t.Context(), run, nil); err == nil {
		t.Fatalf("the run is %s", res.Status)
	}
	return d
}

// Resolve says what happened, by whichever policy the visit rests: the visit runs again and
// gets the output, or does what did not happen. Each doubt is resolved once.
func TestDoubtResolved(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		for _, test := range []struct {
			what  dispatcher.Resolution
			want  string
			calls int
		}{
			{dispatcher.Happened("receipt by hand"), "receipt by hand", 1},
			{dispatcher.NotHappened("the bank has no such charge"), "receipt 2", 2},
		} {
			var side doubtSide
			store := new(memory.Store)
			d := doubtful(t, &side, store, dag.InDoubt(doubt))
			if err := d.Resolve(t.Context(), run, "pay", "charge", test.what, dispatcher.Author("Ada")); err != nil {
				t.Fatalf("%s: %v", doubt, err)
			}
			if log := readLog(t, store); log[len(log)-1].Kind != checkpoint.EffectEnded || side.ran != 1 {
				t.Errorf("%s: the log ends with %s, and the node ran %d times", doubt, log[len(log)-1].Kind, side.ran)
			}
			unchanged(t, store, run, func() {
				err := d.Resolve(t.Context(), run, "pay", "charge", test.what)
				var refused *dispatcher.ResolutionError
				if !errors.Is(err, dispatcher.ErrNotInDoubt) || !errors.As(err, &refused) || refused.Key != "charge" {
					t.Errorf("%s: resolved twice: %v", doubt, err)
				}
			})
			res, err := process(t, effectNode(t, side.pay(dag.InDoubt(doubt)), dag.Policy{}), store, dispatcher.Options{}).Resume(t.Context(), run)
			if completes(t, res, err); res.State.Word.Get() != test.want || side.calls != test.calls {
				t.Errorf("%s: the state has %q, want %q, and the effect was done %d times, want %d", doubt, res.State.Word.Get(), test.want, side.calls, test.calls)
			}
			if says(t, res.State, "pay"); side.ran != 2 {
				t.Errorf("%s: the node ran %d times", doubt, side.ran)
			}
			if n := len(kinds(readLog(t, store), checkpoint.Interrupted)); n != map[bool]int{true: 1}[doubt == dag.DoubtAsks] {
				t.Errorf("%s: %d interrupts", doubt, n)
			}
		}
	}
}

// The interrupt of a doubt tells what is to be found out, and a Resolution answers it, as a
// value or as JSON; anything else is refused and changes nothing.
func TestDoubtIsAnswered(t *testing.T) {
	for _, answer := range []any{dispatcher.Happened("receipt 9"), json.RawMessage(`{"happened":"receipt 9"}`)} {
		var side doubtSide
		store := new(memory.Store)
		d := doubtful(t, &side, store, dag.InDoubt(dag.DoubtAsks), dag.Operation("stripe.charge"), dag.Touches("card"), dag.Writes)
		res, err := d.State(t.Context(), run)
		if err != nil || len(res.Interrupts) != 1 {
			t.Fatalf("%v, %v", res.Interrupts, err)
		}
		i := res.Interrupts[0]
		var q checkpoint.DoubtQuestion
		if err := json.Unmarshal(i.Question, &q); err != nil {
			t.Fatal(err)
		}
		if i.Path != "pay" || i.Key != "charge" || i.Want.Kind != "string" || q.ID != "tale/pay#charge" || string(q.Input) != "5" ||
			q.Operation != "stripe.charge" || !slices.Equal(q.Touches, []string{"card"}) || q.Access != "writes" || q.Error != errDoubtReset.Error() {
			t.Errorf("the interrupt is %+v, and asks %s", i, i.Question)
		}
		if text := i.String(); !strings.HasPrefix(text, `pay waits to be told what came of effect "charge": {`) {
			t.Errorf("the interrupt is told as %s", text)
		}
		for _, bad := range []any{
			"receipt 9", dispatcher.Approve, dispatcher.Resolution{}, dispatcher.NotHappened(""), dispatcher.Happened(7),
			json.RawMessage(`{}`), json.RawMessage(`{"happened":"x","not_happened":"y"}`), json.RawMessage(`{"happened":"x","more":1}`), nil,
		} {
			unchanged(t, store, run, func() {
				if err := d.Answer(t.Context(), run, i.ID, bad); !errors.Is(err, dispatcher.ErrAnswerType) {
					t.Errorf("answered with %v: %v", bad, err)
				}
			})
		}
		if err := d.Answer(t.Context(), run, i.ID, answer, dispatcher.Author("Eve")); err != nil {
			t.Fatal(err)
		}
		unchanged(t, store, run, func() {
			if err := d.Answer(t.Context(), run, i.ID, answer); !errors.Is(err, dispatcher.ErrNotAwaited) || !strings.Contains(err.Error(), "somebody has said") {
				t.Errorf("answered twice: %v", err)
			}
		})
		var end checkpoint.EndedEffect
		log := readLog(t, store)
		if err := json.Unmarshal(log[len(log)-1].Data, &end); err != nil || !end.Resolved || end.By != "Eve" || end.Interrupt != i.ID {
			t.Errorf("the log ends with %s %s", log[len(log)-1].Kind, log[len(log)-1].Data)
		}
		res, err = d.Run(t.Context(), run, nil)
		if completes(t, res, err); res.State.Word.Get() != "receipt 9" || side.calls != 1 {
			t.Errorf("the state has %q, and the effect was done %d times", res.State.Word.Get(), side.calls)
		}
	}
}

// What can't be resolved is refused by name, and nothing has changed.
func TestDoubtRefusals(t *testing.T) {
	var side doubtSide
	store := new(memory.Store)
	d := doubtful(t, &side, store)
	good := dispatcher.Happened("receipt 9")
	large := dispatcher.Happened(strings.Repeat("x", 17<<20))
	for _, test := range []struct {
		name, run, path, key string
		what                 dispatcher.Resolution
		options              []dispatcher.RunOption
		is                   error
		says                 string
	}{
		{"no such run", "other", "pay", "charge", good, nil, dispatcher.ErrNotFound, "other"},
		{"no run id", "", "pay", "charge", good, nil, dispatcher.ErrRunID, ""},
		{"no such visit", run, "ship", "charge", good, nil, dispatcher.ErrNotInDoubt, "no such visit"},
		{"no visit", run, "", "charge", good, nil, dispatcher.ErrNotInDoubt, "no such visit"},
		{"no such effect", run, "pay", "refund", good, nil, dispatcher.ErrNotInDoubt, "has not begun"},
		{"no key", run, "pay", "", good, nil, dispatcher.ErrNotInDoubt, "has not begun"},
		{"another type", run, "pay", "charge", dispatcher.Happened(9), nil, dispatcher.ErrAnswerType, "string"},
		{"not JSON", run, "pay", "charge", dispatcher.Happened(func() {}), nil, dispatcher.ErrAnswerType, ""},
		{"no value", run, "pay", "charge", dispatcher.Happened(nil), nil, dispatcher.ErrAnswerType, ""},
		{"nothing said", run, "ship", "charge", dispatcher.Resolution{}, nil, dispatcher.ErrAnswerType, "says nothing: use Happened"},
		{"no reason", run, "pay", "charge", dispatcher.NotHappened(""), nil, dispatcher.ErrAnswerType, "NotHappened with a reason"},
		{"too large", run, "pay", "charge", large, nil, nil, "limit"},
		{"no author", run, "pay", "charge", good, []dispatcher.RunOption{dispatcher.Author("")}, nil, "Author"},
		{"another option", run, "pay", "charge", good, []dispatcher.RunOption{dispatcher.Manual()}, nil, "Manual"},
	} {
		unchanged(t, store, run, func() {
			err := d.Resolve(t.Context(), test.run, test.path, test.key, test.what, test.options...)
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", test.name, err)
			}
		})
	}
	// What can't be said in JSON is said as JSON has it, and is no refusal.
	if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("bank said: \xff")); err != nil {
		t.Errorf("a reason that is not UTF-8: %v", err)
	}
	var nobody *dispatcher.Dispatcher[Tale]
	if err := nobody.Resolve(t.Context(), run, "pay", "charge", good); err == nil {
		t.Error("a nil dispatcher resolves")
	}
	var none context.Context
	if err := d.Resolve(none, run, "pay", "charge", good); err == nil {
		t.Error("a nil context resolves")
	}
	if _, err := nobody.Open(t.Context(), run); err == nil {
		t.Error("a nil dispatcher opens")
	}
	bare := process(t, effectNode(t, side.pay(), dag.Policy{}), nil, dispatcher.Options{})
	if _, err := bare.Open(t.Context(), run); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("opened without a store: %v", err)
	}
	if err := bare.Resolve(t.Context(), run, "pay", "charge", good); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("resolved without a store: %v", err)
	}
	if _, err := d.Open(t.Context(), "other"); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("opened what is not there: %v", err)
	}
}

// What is replayable is in no doubt and waits for nobody: it is done again, unless somebody says
// that it happened.
func TestDoubtOfAReplayable(t *testing.T) {
	for _, told := range []bool{false, true} {
		var side doubtSide
		store := new(memory.Store)
		d := doubtful(t, &side, store, dag.Replayable, dag.InDoubt(dag.DoubtAsks))
		if o, err := d.Open(t.Context(), run); err != nil || len(o.Effects) != 1 || o.Effects[0].InDoubt || len(o.Interrupts) > 0 {
			t.Fatalf("opened %+v: %v", o, err)
		}
		want, calls := "receipt 2", 2
		if told {
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
				t.Fatal(err)
			}
			want, calls = "by hand", 1
		}
		res, err := d.Resume(t.Context(), run, dispatcher.Manual())
		if completes(t, res, err); res.State.Word.Get() != want || side.calls != calls {
			t.Errorf("told=%t: the state has %q, and it was done %d times", told, res.State.Word.Get(), side.calls)
		}
	}
}

// Of a visit that is over nothing can be said any more, and it is not said that it has not begun.
func TestDoubtOfAVisitThatIsOver(t *testing.T) {
	b := dag.New[Tale]("over")
	route := dag.Route(b, "route", func(context.Context, *Tale) (way, error) { return "left", nil }, []way{"left", "right"})
	pay := dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "", errDoubtReset })
		if !errors.Is(err, dag.ErrInDoubt) {
			t.Errorf("the effect returned %v", err)
		}
		return nil // the node decides
	}, route.On("left"))
	never := dag.Step(b, "never", nothing[Tale], route.On("right"))
	dag.Step(b, "last", nothing[Tale], dag.Any(pay, never))
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Options{InterruptBefore: []string{"last"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "last")
	for visit, says := range map[string]string{
		"pay": "its visit has ended, and what that did", "never": "its visit was skipped",
		"last": "it has not begun", "other": "no such visit is open",
	} {
		unchanged(t, store, run, func() {
			err := d.Resolve(t.Context(), run, visit, "charge", dispatcher.Happened("x"))
			if !errors.Is(err, dispatcher.ErrNotInDoubt) {
				t.Errorf("%s: Resolve returned %v", visit, err)
			}
			advises(t, err, says)
		})
	}
}

// What has ended, or did not happen, is in no doubt.
func TestDoubtOfWhatIsKnown(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		says string
	}{
		{"ended", nil, "has happened"},
		{"not done", errors.Join(errDoubtReset, dag.NotDone), "did not happen"},
	} {
		store := new(memory.Store)
		g := effectNode(t, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "", test.err })
			return errors.Join(errors.New("the node fails"), err)
		}, dag.Policy{})
		d := process(t, g, store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		unchanged(t, store, run, func() {
			err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("x"))
			if !errors.Is(err, dispatcher.ErrNotInDoubt) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", test.name, err)
			}
		})
		if _, err = d.Resume(t.Context(), run, dispatcher.Manual()); errors.Is(err, dag.ErrInDoubt) {
			t.Errorf("%s: a manual resume is refused: %v", test.name, err)
		}
	}
}

// Each doubt is resolved by itself, also where the clock shows one instant for them: behind a
// resolution that it did not happen, and behind a rewind.
func TestDoubtsOfOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side := doubtSide{fails: 3}
		var store memory.Store
		d := process(t, effectNode(t, side.pay(), dag.Policy{}), &store, dispatcher.Options{})
		inDoubt := func() {
			t.Helper()
			res, err := d.Resume(t.Context(), run)
			rests(t, res, err, checkpoint.StatusFailed, "pay")
		}
		resolved := func(r dispatcher.Resolution) {
			t.Helper()
			if err := d.Resolve(t.Context(), run, "pay", "charge", r); err != nil {
				t.Fatal(err)
			}
		}
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		resolved(dispatcher.NotHappened("no such charge"))
		inDoubt()
		resolved(dispatcher.NotHappened("no such charge"))
		if err := d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		inDoubt()
		resolved(dispatcher.Happened("receipt by hand"))
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if side.calls != 3 || res.State.Word.Get() != "receipt by hand" {
			t.Errorf("after %d calls of the other side the receipt is %q", side.calls, res.State.Word.Get())
		}
	})
}
