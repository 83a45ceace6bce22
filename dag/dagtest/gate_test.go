package dagtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// What comes of an effect that needs an approval is what a run would make of it.
func TestApprovals(t *testing.T) {
	refused := errors.Join(errors.New("refused"), dag.NotDone)
	for _, test := range []struct {
		name     string
		approval dagtest.Approval
		script   any
		want     error // nil: it is done
		ran      int
	}{
		{name: "none", ran: 1},
		{name: "awaited", approval: dagtest.Awaited, want: dagtest.ErrUnapproved},
		{name: "approved", approval: dagtest.Approved, ran: 1},
		{name: "rejected", approval: dagtest.Rejected, want: dag.ErrDenied},
		{name: "happened before", approval: dagtest.Awaited, script: "r-1"},
		{name: "begun before", approval: dagtest.Awaited, script: dag.ErrInDoubt, want: dag.ErrInDoubt},
		{name: "awaited, and would be refused", approval: dagtest.Awaited, script: refused, want: dagtest.ErrUnapproved},
		{name: "approved, and refused", approval: dagtest.Approved, script: refused, want: dag.NotDone},
	} {
		ran := 0
		v := &dagtest.Visit{}
		if test.approval > 0 {
			v.Approvals = map[string]dagtest.Approval{"charge": test.approval}
		}
		if test.script != nil {
			v.Script = map[string]any{"charge": test.script}
		}
		_, err := charge(dagtest.Context(t.Context(), v), 5, &ran, nil)
		if !errors.Is(err, test.want) || test.want == nil && err != nil || ran != test.ran {
			t.Errorf("%s: %v, done %d times, want %v and %d", test.name, err, ran, test.want, test.ran)
		}
		if e := v.Effects(); len(e) != 1 || !errors.Is(e[0].Err, test.want) || e[0].Ran != (ran > 0) {
			t.Errorf("%s: remembered %+v", test.name, e)
		}
	}
	ran := 0
	v := &dagtest.Visit{Approvals: map[string]dagtest.Approval{"charge": 9}}
	if _, err := charge(dagtest.Context(t.Context(), v), 5, &ran, nil); err == nil || ran > 0 {
		t.Errorf("an unknown approval: %v, done %d times", err, ran)
	}
}

// No effect begins behind one whose approval is awaited; a rejected one holds up nothing.
func TestNoEffectBehindAnApproval(t *testing.T) {
	for approval, want := range map[dagtest.Approval]error{dagtest.Awaited: dag.ErrAsked, dagtest.Rejected: nil} {
		ctx, ran := dagtest.Context(t.Context(), &dagtest.Visit{Approvals: map[string]dagtest.Approval{"charge": approval}}), 0
		_, _ = charge(ctx, 5, &ran, nil)
		_, err := dag.Effect(ctx, "mail", 1, func(context.Context, int) (int, error) { return 1, nil })
		if ran > 0 || !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("behind approval %d: %v, done %d times", approval, err, ran)
		}
	}
}

// An approval is spent when the effect begins: what did not happen needs another, what is
// replayable goes on.
func TestApprovalIsSpent(t *testing.T) {
	for _, test := range []struct {
		err     error
		options []dag.EffectOption
		want    error
		ran     int
	}{
		{dag.NotDone, nil, dagtest.ErrUnapproved, 1},
		{dag.NotDone, []dag.EffectOption{dag.Replayable}, dagtest.ErrUnapproved, 1},
		{errors.New("reset"), []dag.EffectOption{dag.Replayable}, nil, 2},
	} {
		ran := 0
		ctx := dagtest.Context(t.Context(), &dagtest.Visit{Approvals: map[string]dagtest.Approval{"charge": dagtest.Approved}})
		if _, err := charge(ctx, 5, &ran, test.err, test.options...); !errors.Is(err, test.err) {
			t.Errorf("%v: %v", test.err, err)
		}
		if _, err := charge(ctx, 5, &ran, nil, test.options...); !errors.Is(err, test.want) || test.want == nil && err != nil || ran != test.ran {
			t.Errorf("after %v: %v, done %d times, want %v and %d", test.err, err, ran, test.want, test.ran)
		}
	}
}
