package dagtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// An Approval is what came of the approval that an effect needs.
type Approval uint8

const (
	// Awaited: nobody has decided. dag.Effect returns [ErrUnapproved], and no effect begins behind
	// it.
	Awaited Approval = iota + 1
	// Approved: the effect may begin once. If it does not happen (dag.NotDone) it needs another
	// approval, which is awaited.
	Approved
	// Rejected: dag.Effect returns dag.ErrDenied.
	Rejected
)

// ErrUnapproved is what dag.Effect returns if the script says that the effect's approval is
// awaited. The node has to return it: in a run the visit waits then, whatever the node returns. It
// is a dag.ErrAsked.
var ErrUnapproved = fmt.Errorf("dagtest: the effect waits for an approval: %w", dag.ErrAsked)

// gate says why an effect may not begin. The mutex is held.
func (s visit) gate(call dag.EffectCall, was *kept) error {
	failure, _ := s.v.Script[call.Key].(error)
	if errors.Is(failure, dag.ErrInDoubt) || was != nil && !was.notDone {
		return s.waits() // it has begun before, under the approval it needed
	}
	approval := s.v.Approvals[call.Key]
	switch {
	case approval == 0:
		return s.waits()
	case approval == Rejected:
		return dag.ErrDenied
	case approval == Approved && was == nil:
		return s.waits()
	case approval > Rejected:
		return fmt.Errorf("approval %d is none", approval)
	}
	s.v.unapproved = true
	return ErrUnapproved
}

// waits reports that the visit waits for an answer or an approval, or to be told what came of
// an effect, or that it fails because nobody knows.
func (s visit) waits() error {
	switch doubt := s.v.doubt.Load(); {
	case doubt == nil:
	case doubt.Doubt == dag.DoubtAsks:
		return dag.ErrAsked
	default: // the visit fails: nothing that it does counts
		return doubt
	}
	if s.v.unapproved || slices.ContainsFunc(s.v.asked, func(q Question) bool { return !q.Answered }) {
		return dag.ErrAsked
	}
	return nil
}
