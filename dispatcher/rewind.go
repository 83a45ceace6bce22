package dispatcher

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// RewindOptions say how a run is rewound. The zero RewindOptions work.
type RewindOptions struct {
	// Reason is kept in the log. It has at most 1024 bytes. Empty means that nobody says why.
	Reason string
}

// Rewind lets a run go on from an earlier checkpoint of its own, under its name and in its log, and
// returns when that is durable. What became of the run since is abandoned and stays readable, by
// "run@seq". The address is one as [Dispatcher.At] takes it; "" is the last checkpoint. The run may
// have any status, even Completed, and is Pending afterwards: the next Run, Resume or Continue goes
// on with it, and so does a Recover of a supervisor. What was under way at the checkpoint begins
// anew, as in a [Dispatcher.Fork]. Numbers of entries go on. [Author] says who rewinds.
//
// Visits behind the checkpoint have other idempotency keys than those that were abandoned, so their
// effects are done again: the other side does not take them for the same. An effect that had begun
// before the checkpoint, in a visit that had not finished there, keeps its key, and with it:
//
//   - what it returned, even if it ended behind the checkpoint;
//   - its doubt, unless it is replayable: then it is done again.
//
// If what came of it was trimmed, behind a checkpoint that a tag has kept, it is in doubt instead:
// one that had not happened at the checkpoint, under the key with which it began behind that, as
// long as the run had not gone back meanwhile.
//
// What was drained stays drained, and the id of a [Message] that was used stays used. To give an
// input, answer or note again that came behind the checkpoint, use another id; under the old one
// nothing happens, and the call returns nil.
//
// ErrBusy if the run is live. dag.ErrInDoubt while an effect that began behind the checkpoint has
// not ended: after the rewind nobody would ask what came of it. checkpoint.ErrCursor if the address
// names no checkpoint of the run; a [*GraphChangedError] if the dispatcher's graph could not go on
// from there.
func (d *Dispatcher[S]) Rewind(ctx context.Context, run, address string, o RewindOptions, options ...RunOption) error {
	return d.inside().rewind(ctx, run, address, o, options)
}

func (c *core) rewind(ctx context.Context, id, address string, o RewindOptions, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	by, err := c.author(options)
	if err == nil {
		err = checkReason(o.Reason)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	return c.refuse(id, c.steadily(ctx, id, func(*checkpoint.Info) error {
		point, err := c.locate(ctx, id, address)
		if err != nil {
			return err
		}
		return c.rewindTo(ctx, id, point, checkpoint.Rewinding{Author: by, Reason: o.Reason})
	}))
}

// rewindTo makes a run that nobody is at work on go back to a checkpoint. A cancel that came when
// it was completed came too late, and is not one of the run as it is then.
func (c *core) rewindTo(ctx context.Context, id string, point Checkpoint, w checkpoint.Rewinding) error {
	return c.amending(ctx, id, func(a *amendment) error {
		if a.m.status == checkpoint.StatusCompleted {
			posts, err := c.store.Posts(ctx, id)
			if err == nil {
				err = a.drain(ctx, a.m.cancelledBy(posts))
			}
			if err != nil {
				return err
			}
		}
		e, err := c.rewinding(ctx, id, a.m, a.head, point, w)
		if err != nil {
			return err
		}
		return a.say(ctx, id, e)
	})
}

// rewinding is the entry by which a run goes back.
func (c *core) rewinding(ctx context.Context, id string, now *machine, head checkpoint.Head, point Checkpoint, w checkpoint.Rewinding) (e checkpoint.Entry, err error) {
	m, _, err := c.load(ctx, id, point.Seq)
	if err != nil {
		return e, err
	}
	if err := c.settleEffects(ctx, id, m, point.Seq, head.Seq); err != nil {
		return e, err
	}
	if err := m.forgets(now); err != nil {
		return e, err
	}
	m.rewound(ancestor{Run: id, Seq: point.Seq, Rewound: true}, now)
	if err := c.carries(id, m); err != nil {
		return e, err
	}
	w.To, w.Turn, w.Left = point.Seq, m.turn, now.turn
	w.Graph, w.Digest, w.Machine = m.plan.Name, m.plan.Digest, m.encode()
	return checkpoint.Entry{Kind: checkpoint.Rewound, Data: encode(w)}, nil
}

func checkReason(reason string) error {
	if what := badText(reason, maxLabel); what != "" {
		return &OptionError{"Reason", what}
	}
	return nil
}

// forgets returns an error that names an effect that was begun and has not ended, if m, to which
// the run is to go back, knows nothing of it.
func (m *machine) forgets(now *machine) error {
	for _, path := range slices.Sorted(maps.Keys(now.effects)) {
		for _, key := range slices.Sorted(maps.Keys(now.effects[path])) {
			was, is := m.effects[path][key], now.effects[path][key]
			if is.state != effectBegun || m.turn == now.turn && was.under(is.generation) {
				continue
			}
			return fmt.Errorf("%w: effect %q of visit %s was begun and has not ended, and the rewound run would not know it: "+
				"let the run go on until it has ended, or Resolve it", dag.ErrInDoubt, key, path)
		}
	}
	return nil
}
