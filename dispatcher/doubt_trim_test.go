package dispatcher_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who says what came of an effect, and can't learn whether it counts since the run has gone on and
// was trimmed meanwhile, is told that nobody knows: not that something was trimmed, as if nothing
// had been said.
func TestResolveBesideATrim(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		synctest.Test(t, func(t *testing.T) {
			unknown := 0
			for n, hit := 1, true; hit; n++ {
				hit = false
				s, side := &memory.Faulty{}, doubtSide{}
				d := doubtful(t, &side, s, dag.InDoubt(doubt))
				happensAt(s, n, func(s *memory.Store) {
					hit = true
					other := process(t, effectNode(t, side.pay(dag.InDoubt(doubt)), dag.Policy{}), s, dispatcher.Options{})
					if _, err := other.Resume(t.Context(), run); err == nil {
						if err := other.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
							t.Error(err)
						}
					}
				})
				err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("receipt by hand"))
				switch {
				case errors.Is(err, checkpoint.ErrCommitUnknown):
					unknown++
				case err != nil && !errors.Is(err, dispatcher.ErrNotInDoubt):
					t.Errorf("%s, call %d of the store: %v", doubt, n, err)
				}
			}
			if (unknown == 0) != (doubt == dag.DoubtAsks) { // who answers has the run meanwhile
				t.Errorf("%s: it was unknown %d times", doubt, unknown)
			}
		})
	}
}
