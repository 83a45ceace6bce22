package dag_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

type charge struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

type receipt struct {
	Number string    `json:"number"`
	At     time.Time `json:"at"`
}

// Outside a run an effect is a call of its function.
func TestEffectOutsideARun(t *testing.T) {
	got, err := dag.Effect(t.Context(), "charge", charge{"ada", 5}, func(ctx context.Context, c charge) (receipt, error) {
		return receipt{Number: c.Account + dag.Key(ctx)}, nil
	})
	if err != nil || got.Number != "ada" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = dag.Effect(t.Context(), "charge", 1, func(context.Context, int) (int, error) { return 0, errWaits })
	if err != errWaits {
		t.Errorf("%v, want the error of the function itself", err)
	}
}

// What a node gets is what was kept: the first attempt sees what every later one will.
func TestEffectReturnsWhatWasKept(t *testing.T) {
	v := &scripted{}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	now := time.Now()
	got, err := dag.Effect(ctx, "charge", charge{"<ada>", 5}, func(ctx context.Context, c charge) (receipt, error) {
		return receipt{dag.Key(ctx), now}, nil
	}, dag.Replayable)
	if err != nil {
		t.Fatal(err)
	}
	if want := "run/review/2/ask#charge"; got.Number != want {
		t.Errorf("the key inside the effect is %q, want %q", got.Number, want)
	}
	if got.At == now || !got.At.Equal(now) {
		t.Errorf("the output is %v, which was not decoded from what was kept", got.At)
	}
	call := v.effects[0]
	if call.Key != "charge" || string(call.Input) != `{"account":"<ada>","cents":5}` || !call.Replayable || call.Output.Kind != "object" {
		t.Errorf("asked for %+v", call)
	}
	if _, err := dag.Effect(ctx, "other", 1, func(context.Context, int) (bool, error) { return true, nil }); err != nil || v.effects[1].Replayable {
		t.Errorf("an effect is replayable that did not say so: %v", err)
	}
}

// What can't be kept is refused before anything is done.
func TestEffectsThatCannotBeKept(t *testing.T) {
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, &scripted{})
	never := func(context.Context, string) (int, error) {
		t.Error("the function was called")
		return 0, nil
	}
	for name, f := range map[string]func() error{
		"is empty: give it one":               func() error { _, err := dag.Effect(ctx, "", "in", never); return err },
		`Effect: the key "\xff" is not UTF-8`: func() error { _, err := dag.Effect(ctx, "\xff", "in", never); return err },
		`input of effect "x"`: func() error {
			_, err := dag.Effect(ctx, "x", func() {}, func(context.Context, func()) (int, error) { return never(nil, "") })
			return err
		},
		`output of effect "x"`: func() error {
			_, err := dag.Effect(ctx, "x", 1, func(context.Context, int) (chan int, error) { _, err := never(nil, ""); return nil, err })
			return err
		},
		"unsupported value": func() error {
			_, err := dag.Effect(ctx, "x", math.NaN(), func(context.Context, float64) (int, error) { return never(nil, "") })
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want something about %s", err, name)
		}
	}
	if _, err := dag.Effect(ctx, "x", "\xff", never); !errors.Is(err, state.ErrUTF8) {
		t.Errorf("%v, want ErrUTF8", err)
	}
}

// An unsayable can't be encoded.
type unsayable struct{}

func (unsayable) MarshalJSON() ([]byte, error)  { panic("not today") }
func (*unsayable) UnmarshalJSON(_ []byte) error { return nil }

// An effect that has happened and whose output can't be kept says so.
func TestEffectOutputLost(t *testing.T) {
	for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), dag.VisitKey{}, &scripted{})} {
		effectOutputLost(t, ctx)
	}
}

func effectOutputLost(t *testing.T, ctx context.Context) {
	for _, f := range []func() error{
		func() error {
			_, err := dag.Effect(ctx, "rate", 1, func(context.Context, int) (float64, error) { return math.Inf(1), nil })
			return err
		},
		func() error {
			_, err := dag.Effect(ctx, "rate", 1, func(context.Context, int) (string, error) { return "\xff", nil })
			return err
		},
		func() error {
			_, err := dag.Effect(ctx, "rate", 1, func(context.Context, int) (unsayable, error) { return unsayable{}, nil })
			return err
		},
	} {
		if err := f(); !errors.Is(err, dag.ErrOutputLost) || !strings.Contains(err.Error(), `"rate"`) {
			t.Errorf("%v, want ErrOutputLost and the key", err)
		}
	}
}

// Inside an effect nothing is asked and no other begins: neither could be kept apart from it.
func TestInsideAnEffect(t *testing.T) {
	v := &scripted{answers: map[string]string{"sure": "true"}}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	for name, f := range map[string]func(ctx context.Context) error{
		`Ask("sure")`: func(ctx context.Context) error { _, err := dag.Ask[bool](ctx, "sure", "?"); return err },
		`Effect("inner")`: func(ctx context.Context) error {
			_, err := dag.Effect(ctx, "inner", 1, func(context.Context, int) (int, error) { return 1, nil })
			return err
		},
	} {
		_, err := dag.Effect(ctx, "outer", 1, func(ctx context.Context, _ int) (int, error) {
			if dag.Attempt(ctx) != 3 {
				t.Errorf("attempt %d inside the effect", dag.Attempt(ctx))
			}
			return 0, f(ctx)
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want something about %s", err, name)
		}
	}
	if len(v.asked) != 0 || len(v.effects) != 2 {
		t.Errorf("asked %v, %d effects", v.asked, len(v.effects))
	}
}

func TestInDoubtError(t *testing.T) {
	cause := errors.New("connection reset")
	var err error = &dag.InDoubtError{Key: "charge", Path: "pay", ID: "r/pay#charge", Begun: time.Unix(0, 0), Err: cause}
	want := `dag: effect "charge" of visit pay is in doubt: it began at 1970-01-01T00:00:00Z, and nobody knows whether it happened ` +
		`(connection reset); ` +
		`ask the other side for r/pay#charge, and say with Resolve what happened; ` +
		`or declare the effect dag.Replayable, if doing it again does no harm, ` +
		`or handle the error in the node, which errors.As finds as a *dag.InDoubtError; ` +
		`and if the effect's function knows that nothing happened, let it wrap dag.NotDone`
	if err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	if !errors.Is(err, dag.ErrInDoubt) || !errors.Is(err, cause) || errors.Is(err, dag.NotDone) {
		t.Errorf("%v is not what it says", err)
	}
}

// Outside a run a node is given what it would be given in one: what was kept of what the function
// returned.
func TestEffectOutsideARunReturnsWhatIsKept(t *testing.T) {
	type page struct {
		Lines []string `json:",omitempty"`
	}
	is, err := dag.Effect(t.Context(), "read", 1, func(context.Context, int) (page, error) { return page{[]string{}}, nil })
	if err != nil || is.Lines != nil {
		t.Errorf("%#v, %v, want no lines", is, err)
	}
	broken := errors.New("broken")
	is, err = dag.Effect(t.Context(), "read", 1, func(context.Context, int) (page, error) { return page{[]string{"a"}}, broken })
	if err != broken || is.Lines != nil {
		t.Errorf("%#v, %v, want the error of the function alone", is, err)
	}
}
