package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A reuse is what a visit of a fork may take from the run that the fork comes from. It never
// changes: attempts hold it.
type reuse struct {
	how     EffectsOfFork
	of      map[string][]shelved // by key
	trimmed bool                 // there may have been more
}

// reuse is what the visit may take from the shelf; nil if the run is no such fork.
func (m *machine) reuse(t *task) *reuse {
	if m.shelf == nil {
		return nil
	}
	return &reuse{m.shelf.how, m.shelf.of(onShelf(m.turn, t.path())), m.turn <= m.shelf.trimmed}
}

// reuse takes the output of an effect from the shelf, if there is one for its input: that it began
// and that it ended is one append, and its function does not run. If there is none, and the fork
// refuses what its origin has no result of, or nobody knows whether it had one, the effect is
// refused. done is false if it has to be done here.
func (a *effectAttempt) reuse(ctx context.Context, digest string) (output json.RawMessage, done bool, err error) {
	v := a.v
	if v.reuse == nil {
		return nil, false, nil
	}
	if err := v.mayBegin(ctx, a.call); err != nil {
		return nil, true, v.effectError(a.call, err)
	}
	i := slices.IndexFunc(v.reuse.of[a.call.Key], func(s shelved) bool {
		return s.Digest == digest && a.call.Takes(s.Output) == nil
	})
	if i < 0 {
		switch {
		case v.reuse.trimmed:
			return nil, true, v.effectError(a.call, fmt.Errorf("%w: the run that it comes from has no result left for this input, "+
				"and may have had one, which was trimmed: fork Live to do the effect in any case", dag.ErrEffectRefused))
		case v.reuse.how == ReuseOrRefuse:
			return nil, true, v.effectError(a.call, fmt.Errorf("%w: the run that it comes from has no result for this input, or none of this type: "+
				"fork with ReuseOrLive to have it done", dag.ErrEffectRefused))
		}
		return nil, false, nil
	}
	s := v.reuse.of[a.call.Key][i]
	is := &effect{
		digest: digest, state: effectEnded, output: s.Output,
		begun: v.host.c.opts.Now().UTC(), generation: int(v.generation),
	}
	err = v.recordAll(
		v.effectLine(checkpoint.EffectBegun, a.call.Key, encodeBegun(&checkpoint.BegunEffect{
			Input: a.call.Input, Digest: digest, Output: encodeType(&a.call.Output), At: is.begun,
			DeclaredEffect: declared(&a.call),
		})),
		v.effectLine(checkpoint.EffectEnded, a.call.Key, encodeEnded(&checkpoint.EndedEffect{Output: s.Output, Reused: s.Run})),
	)
	if err != nil {
		return nil, true, v.effectError(a.call, err)
	}
	a.is = is
	return slices.Clone(s.Output), true, nil
}
