package dagtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// charge asks for an effect whose function counts its calls in ran and returns err.
func charge(ctx context.Context, cents int, ran *int, err error, options ...dag.EffectOption) (string, error) {
	return dag.Effect(ctx, "charge", cents, func(ctx context.Context, cents int) (string, error) {
		*ran++
		return dag.Key(ctx), err
	}, options...)
}

// An effect that the script says nothing of is done, once.
func TestEffectForReal(t *testing.T) {
	v, ran := &dagtest.Visit{Key: "r/pay"}, 0
	ctx := dagtest.Context(t.Context(), v)
	for range 2 {
		if got, err := charge(ctx, 5, &ran, nil); err != nil || got != "r/pay#charge" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := charge(ctx, 6, &ran, nil); !errors.Is(err, dag.ErrInputChanged) {
		t.Errorf("another input: %v", err)
	}
	if ran != 1 {
		t.Errorf("done %d times", ran)
	}
	all := v.Effects()
	if len(all) != 3 || !all[0].Ran || all[1].Ran || all[2].Ran {
		t.Fatalf("remembered %+v", all)
	}
	if e := all[0]; e.Key != "charge" || string(e.Input) != "5" || string(e.Output) != `"r/pay#charge"` || e.Err != nil {
		t.Errorf("remembered %+v", e)
	}
	if e := all[2]; e.Output != nil || !errors.Is(e.Err, dag.ErrInputChanged) {
		t.Errorf("remembered %+v", e)
	}
}

// What was kept is refused to who wants a type that it does not fit, under the same key and input,
// as in a run.
func TestEffectOfAnotherType(t *testing.T) {
	type reply struct {
		Text string
		Cost int
	}
	ctx := dagtest.Context(t.Context(), &dagtest.Visit{Key: "r/pay"})
	if _, err := dag.Effect(ctx, "call", 1, func(context.Context, int) (reply, error) { return reply{"a poem", 3}, nil }); err != nil {
		t.Fatal(err)
	}
	is, err := dag.Effect(ctx, "call", 1, func(context.Context, int) (struct{ Cost int }, error) {
		t.Error("it is done again")
		return struct{ Cost int }{}, nil
	})
	if !errors.Is(err, dag.ErrOutputChanged) || is.Cost != 0 {
		t.Errorf("%+v, %v, want dag.ErrOutputChanged", is, err)
	}
}

// Under a context that is done nothing begins, as in a run: what happened before is told, and all
// else is the context's error.
func TestNoEffectBeginsUnderADoneContext(t *testing.T) {
	for _, test := range []struct {
		script  any // nil is none
		options []dag.EffectOption
		err     error // nil is that it happened
	}{
		{script: "r-1"},
		{err: context.Canceled},
		{script: errors.New("refused"), err: context.Canceled},
		{script: dag.ErrInDoubt, err: dag.ErrInDoubt},
		{script: dag.ErrInDoubt, options: []dag.EffectOption{dag.Replayable}, err: context.Canceled},
	} {
		v := &dagtest.Visit{Script: map[string]any{}, Approvals: map[string]dagtest.Approval{"charge": dagtest.Awaited}}
		if test.script != nil {
			v.Script["charge"] = test.script
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ran := 0
		for range 2 {
			if _, err := charge(dagtest.Context(ctx, v), 5, &ran, nil, test.options...); !errors.Is(err, test.err) || (err == nil) != (test.err == nil) || ran != 0 {
				t.Errorf("script %v, %v: %v, want %v; done %d times", test.script, test.options, err, test.err, ran)
			}
		}
	}
}

// What the script says is what the node gets; nothing is done.
func TestScriptedEffects(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name    string
		script  any
		options []dag.EffectOption
		want    string
		err     error // "" is wanted if it is nil
		ran     int
	}{
		{name: "happened before", script: "r-1", want: "r-1"},
		{name: "JSON", script: json.RawMessage(`"r-2"`), want: "r-2"},
		{name: "fails", script: refused, err: dag.ErrInDoubt},
		{name: "is not done", script: errors.Join(refused, dag.NotDone), err: dag.NotDone},
		{name: "fails and is replayable", script: refused, options: []dag.EffectOption{dag.Replayable}, err: refused},
		{name: "begun before", script: dag.ErrInDoubt, err: dag.ErrInDoubt},
		{name: "begun before and replayable", script: dag.ErrInDoubt, options: []dag.EffectOption{dag.Replayable}, want: "run/node#charge", ran: 1},
	} {
		ran := 0
		v := &dagtest.Visit{Script: map[string]any{"charge": test.script}}
		got, err := charge(dagtest.Context(t.Context(), v), 5, &ran, nil, test.options...)
		if got != test.want || !errors.Is(err, test.err) || test.err == nil && err != nil {
			t.Errorf("%s: %q, %v, want %q, %v", test.name, got, err, test.want, test.err)
		}
		if ran != test.ran || v.Effects()[0].Ran != (test.ran == 1) {
			t.Errorf("%s: done %d times", test.name, ran)
		}
		if test.err == dag.ErrInDoubt && test.script != dag.ErrInDoubt && !errors.Is(err, refused) {
			t.Errorf("%s: %v does not say why", test.name, err)
		}
	}
	v := &dagtest.Visit{Script: map[string]any{"charge": 7}}
	ran := 0
	if _, err := charge(dagtest.Context(t.Context(), v), 5, &ran, nil); err == nil || !strings.Contains(err.Error(), `"charge"`) {
		t.Errorf("an output of another type: %v", err)
	}
}

// An error leaves the effect in doubt for the rest of the attempt, unless it says that
// nothing was done, or the effect is replayable.
func TestEffectsThatFail(t *testing.T) {
	cause := errors.New("reset")
	for _, test := range []struct {
		name    string
		err     error
		options []dag.EffectOption
		again   error
		ran     int
	}{
		{"in doubt", cause, nil, dag.ErrInDoubt, 1},
		{"not done", errors.Join(cause, dag.NotDone), nil, nil, 2},
		{"replayable", cause, []dag.EffectOption{dag.Replayable}, nil, 2},
	} {
		ctx, ran := dagtest.Context(t.Context(), nil), 0
		if _, err := charge(ctx, 5, &ran, test.err, test.options...); !errors.Is(err, cause) {
			t.Errorf("%s: %v", test.name, err)
		}
		if _, err := charge(ctx, 5, &ran, nil, test.options...); !errors.Is(err, test.again) || test.again == nil && err != nil {
			t.Errorf("%s, again: %v", test.name, err)
		}
		if ran != test.ran {
			t.Errorf("%s: done %d times, want %d", test.name, ran, test.ran)
		}
	}
}

// No effect begins behind a question without an answer.
func TestNoEffectBehindAQuestion(t *testing.T) {
	ctx, ran := dagtest.Context(t.Context(), nil), 0
	_, _ = dag.Ask[bool](ctx, "sure", "?")
	if _, err := charge(ctx, 5, &ran, nil); !errors.Is(err, dag.ErrAsked) || ran != 0 {
		t.Errorf("%v, done %d times", err, ran)
	}
}

// What happened before, and what is in doubt, is told there as well: it does not begin.
func TestEffectsFromBeforeAQuestion(t *testing.T) {
	v := &dagtest.Visit{Script: map[string]any{"happened": "receipt", "begun": dag.ErrInDoubt, "again": dag.ErrInDoubt}}
	ctx, ran := dagtest.Context(t.Context(), v), 0
	_, _ = dag.Ask[bool](ctx, "sure", "?")
	for key, want := range map[string]error{"happened": nil, "begun": dag.ErrInDoubt, "again": dag.ErrAsked, "new": dag.ErrAsked} {
		var options []dag.EffectOption
		if key == "again" {
			options = append(options, dag.Replayable)
		}
		receipt, err := dag.Effect(ctx, key, 5, func(context.Context, int) (string, error) { ran++; return "", nil }, options...)
		if !errors.Is(err, want) || want == nil && (err != nil || receipt != "receipt") || ran != 0 {
			t.Errorf("effect %s: %q, %v, done %d times, want %v", key, receipt, err, ran, want)
		}
	}
}

func TestEmitted(t *testing.T) {
	v := &dagtest.Visit{}
	ctx := dagtest.Context(t.Context(), v)
	for i := range 2 {
		if err := dag.Emit(ctx, "token", i); err != nil {
			t.Fatal(err)
		}
	}
	if got := v.Emitted(); len(got) != 2 || got[1].Name != "token" || string(got[1].Value) != "1" {
		t.Errorf("emitted %v", got)
	}
}

// What an effect declares is remembered, and decides what comes of the visit when it is in
// doubt: nothing more begins in it.
func TestDoubted(t *testing.T) {
	for _, test := range []struct {
		doubt dag.Doubt
		next  error // of another effect
	}{{dag.DoubtTells, nil}, {dag.DoubtAsks, dag.ErrAsked}, {dag.DoubtFails, dag.ErrInDoubt}} {
		v := &dagtest.Visit{Script: map[string]any{"charge": errors.New("reset")}}
		ctx, ran := dagtest.Context(t.Context(), v), 0
		_, err := charge(ctx, 5, &ran, nil, dag.InDoubt(test.doubt), dag.Operation("bank.pay"), dag.Touches("card"), dag.Writes, dag.Reversible)
		var doubt *dag.InDoubtError
		if !errors.As(err, &doubt) || doubt.Doubt != test.doubt {
			t.Errorf("%s: %v", test.doubt, err)
		}
		if d := v.Doubted(); (d == nil) != (test.doubt == dag.DoubtTells) || d != nil && d.Key != "charge" {
			t.Errorf("%s: the visit is doubted by %v", test.doubt, d)
		}
		e := v.Effects()[0]
		if e.Operation != "bank.pay" || len(e.Touches) != 1 || e.Access != dag.Writes || !e.Reversible || e.Replayable || e.Doubt != test.doubt {
			t.Errorf("%s: remembered %+v", test.doubt, e)
		}
		_, err = dag.Effect(ctx, "mail", 1, func(context.Context, int) (string, error) { return "", nil })
		if !errors.Is(err, test.next) || test.next == nil && err != nil {
			t.Errorf("%s: another effect: %v", test.doubt, err)
		}
	}
}

// Of two effects in doubt the one that lets the visit fail decides, as in a run, whichever was met
// first.
func TestDoubtedByTwo(t *testing.T) {
	for _, doubts := range [][2]dag.Doubt{{dag.DoubtAsks, dag.DoubtFails}, {dag.DoubtFails, dag.DoubtAsks}} {
		v := &dagtest.Visit{Script: map[string]any{dag.DoubtAsks.String(): dag.ErrInDoubt, dag.DoubtFails.String(): dag.ErrInDoubt}}
		ctx := dagtest.Context(t.Context(), v)
		none := func(context.Context, int) (string, error) { return "", nil }
		for _, doubt := range doubts {
			if _, err := dag.Effect(ctx, doubt.String(), 1, none, dag.InDoubt(doubt)); !errors.Is(err, dag.ErrInDoubt) {
				t.Errorf("%v: effect %s: %v", doubts, doubt, err)
			}
		}
		if d := v.Doubted(); d == nil || d.Doubt != dag.DoubtFails {
			t.Errorf("%v: the visit is doubted by %v", doubts, d)
		}
		if _, err := dag.Effect(ctx, "mail", 1, none); !errors.Is(err, dag.ErrInDoubt) {
			t.Errorf("%v: another effect: %v", doubts, err)
		}
	}
}

// The node may survive that the function panics: what is declared for the doubt comes of the visit
// all the same.
func TestDoubtedByAPanic(t *testing.T) {
	for _, test := range []struct {
		options []dag.EffectOption
		next    error // of another effect
	}{
		{nil, nil},
		{[]dag.EffectOption{dag.InDoubt(dag.DoubtAsks)}, dag.ErrAsked},
		{[]dag.EffectOption{dag.InDoubt(dag.DoubtFails)}, dag.ErrInDoubt},
		{[]dag.EffectOption{dag.InDoubt(dag.DoubtFails), dag.Replayable}, nil},
	} {
		v := new(dagtest.Visit)
		ctx := dagtest.Context(t.Context(), v)
		func() {
			defer func() { _ = recover() }()
			_, _ = dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { panic("no network") }, test.options...)
		}()
		if d := v.Doubted(); (d != nil) != (test.next != nil) || d != nil && d.Key != "charge" {
			t.Errorf("%v: the visit is doubted by %v", test.options, d)
		}
		_, err := dag.Effect(ctx, "mail", 1, func(context.Context, int) (string, error) { return "", nil })
		if !errors.Is(err, test.next) || test.next == nil && err != nil {
			t.Errorf("%v: another effect: %v", test.options, err)
		}
	}
}
