package dispatcher

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// ForkOptions say how a run is forked. The zero ForkOptions make one fork, under a fresh id,
// in which no effect happens.
type ForkOptions[S any] struct {
	// Into are the ids of the forks. Nil means N fresh ones; a list that names none is refused.
	Into []string
	// N is how many forks there are to be, at most 10 000: they are made in one transaction.
	// Zero means as many as Into names, or one.
	N int
	// Edit changes the state with which each fork begins, as [Dispatcher.Edit] changes that of
	// the run's own frame. Nil means that it stays what it was.
	Edit func(*S)
	// Effects says what effects do in the forks. Zero means [ReuseOrRefuse].
	Effects EffectsOfFork
	// Labels are those of the forks, as [Labels] takes them. Nil means the run's own, without the
	// keys that begin with "pawl.own.", which say something of that one run alone.
	Labels map[string]string
	// Reason is kept in the logs of the forks, and listings tell it, as they do the [Author]. An
	// encrypted store has both in the clear. It has at most 1024 bytes. Empty means that nobody
	// says why.
	Reason string
}

// Fork makes new runs that begin at a checkpoint of this one, and returns their ids: all of them or
// none, durably. The address is one as [Dispatcher.At] takes it; "" is the last checkpoint, which
// every run has, live or not. The run that is forked does not change and knows nothing of its
// forks. From then on they share nothing: each is run, forked and deleted by itself.
//
// A fork is Pending. When it is run it goes on from where the run stood at the checkpoint: what had
// finished is not run again, also in a superstep that was open, and what was under way begins anew.
// A fork inherits labels (see [ForkOptions]), correlation, settings and the turn. It inherits
// nothing that waits or failed, and no attempts, approvals, answers or posts. It has idempotency
// keys of its own.
//
// ForkOptions.Effects says what an effect (dag.Effect) does in a fork. If the run did the effect
// behind the checkpoint, in the same visit, under the same key and with the same input, the fork
// gets what it returned there, and its function does not run; that holds whatever migrations have
// called its node since. Any other effect is refused (dag.ErrEffectRefused) or done. So a fork
// without an edit comes to what the run came to, without doing anything outside, and a fork with an
// edit does, or is refused, only what the edit makes different.
//
// Two kinds of effects need care:
//
//   - An effect that is in doubt in the run, or at work there just now, counts as not done. Before
//     you make a fork that does what is new, say with [Dispatcher.Resolve] what came of it.
//   - Behind a checkpoint that a [Dispatcher.Trim] kept for its tag, results of effects may be
//     gone. If an effect has no result, in a turn of which something was trimmed, nobody knows
//     whether the run did it: it is refused with ReuseOrLive too, and done with Live.
//
// [Author] says who forks. ErrExists if there is a run of one of the ids; checkpoint.ErrCursor if
// the address names no checkpoint of the run; a [*GraphChangedError] if the dispatcher's graph
// could not go on with the fork; what [Dispatcher.Edit] returns if the edit can't be made;
// checkpoint.ErrTooLarge if the store can't write so many in one transaction;
// checkpoint.ErrUnsupported if it can't fork. An error means that there is no fork, unless it is
// ErrCommitUnknown.
func (d *Dispatcher[S]) Fork(ctx context.Context, run, address string, o ForkOptions[S], options ...RunOption) ([]string, error) {
	w := forkWish{into: o.Into, n: o.N, edit: erase(o.Edit), state: reflect.TypeFor[*S](), how: o.Effects, labels: o.Labels, reason: o.Reason}
	return d.inside().fork(ctx, run, address, w, options)
}

// forkWish is ForkOptions without its type parameter.
type forkWish struct {
	into   []string
	n      int
	edit   func(any)
	state  reflect.Type // what edit writes to
	how    EffectsOfFork
	labels map[string]string
	reason string
	by     string
}

// labelled are the labels of the forks of a run that has these.
func (w *forkWish) labelled(run map[string]string) map[string]string {
	if w.labels != nil {
		return maps.Clone(w.labels)
	}
	own := maps.Clone(run)
	maps.DeleteFunc(own, func(key, _ string) bool { return strings.HasPrefix(key, ownLabel) })
	return own
}

// ownLabel begins the keys of labels that forks don't inherit.
const ownLabel = "pawl.own."

// mostForks is how many runs one call may make: they become durable together, and a badgerstore
// with Large Options can write so many in one transaction if they have few labels.
const mostForks = 10_000

// ids returns the ids of the forks.
func (w *forkWish) ids() ([]string, error) {
	switch {
	case w.n < 0:
		return nil, &OptionError{"N", "is negative"}
	case len(w.into) > mostForks:
		return nil, &OptionError{"Into", fmt.Sprintf("names %d runs, and one call makes at most %d: call Fork several times", len(w.into), mostForks)}
	case w.n > mostForks:
		return nil, &OptionError{"N", fmt.Sprintf("is %d, and one call makes at most %d: call Fork several times", w.n, mostForks)}
	case w.into != nil && len(w.into) == 0: // no fork was to be made, and one would be
		return nil, &OptionError{"Into", "names no run: leave it nil to have N forks under fresh ids"}
	case w.n > 0 && w.into != nil && w.n != len(w.into):
		return nil, &OptionError{"N", fmt.Sprintf("is %d, and Into names %d", w.n, len(w.into))}
	case w.how > Live:
		return nil, &OptionError{"Effects", fmt.Sprintf("is %d, and none of ReuseOrRefuse, ReuseOrLive and Live", w.how)}
	}
	if w.into == nil {
		ids := make([]string, max(w.n, 1))
		for i := range ids {
			ids[i] = NewRunID()
		}
		return ids, nil
	}
	named := make(map[string]bool, len(w.into))
	for _, id := range w.into {
		if err := checkID(id); err != nil {
			return nil, &OptionError{"Into", fmt.Sprintf("names %.40q: %s", id, plain(err))}
		}
		if named[id] {
			return nil, &OptionError{"Into", fmt.Sprintf("names %.40q twice", id)}
		}
		named[id] = true
	}
	return slices.Clone(w.into), nil
}

func (c *core) fork(ctx context.Context, id, address string, w forkWish, options []RunOption) ([]string, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	by, err := c.author(options)
	if err == nil {
		err = checkReason(w.reason)
	}
	var ids []string
	if err == nil {
		ids, err = w.ids()
	}
	if err == nil {
		err = Labels(w.labels).wish(&wishes{})
	}
	if err != nil {
		return nil, c.refuse(id, err)
	}
	w.by = by
	var f checkpoint.Fork
	var entries []checkpoint.Entry
	err = c.steadily(ctx, id, func(*checkpoint.Info) error {
		f, entries, err = c.forked(ctx, id, address, &w)
		return err
	})
	if err != nil {
		return nil, c.refuse(id, err)
	}
	for _, into := range ids {
		f.Runs = append(f.Runs, checkpoint.ForkedRun{Run: into, Entries: entries})
	}
	if err := c.store.Fork(ctx, f); err != nil {
		return nil, c.refuse(id, err)
	}
	for _, into := range ids {
		c.hub.grown(into)
	}
	return ids, nil
}

// forked makes what forks of a run at an address have in common, and what their logs begin with,
// having looked whether a replay can read it.
func (c *core) forked(ctx context.Context, id, address string, w *forkWish) (f checkpoint.Fork, _ []checkpoint.Entry, err error) {
	point, m, head, err := c.loadAt(checkpoint.WithDigests(ctx), id, address)
	if err != nil {
		return f, nil, err
	}
	at := point.Seq
	s, err := c.shelve(ctx, id, m, w.how, at, head.Seq)
	if err != nil {
		return f, nil, err
	}
	o := &checkpoint.Opening{
		Graph: m.plan.Name, Digest: m.plan.Digest, Labels: w.labelled(m.told.labels), Correlation: m.told.correlation,
		Lineage: m.lineage,
	}
	if m.told.settings != nil {
		o.Settings = &checkpoint.Setting{Value: m.told.settings}
	}
	m.fork()
	if err := c.carries(id, m); err != nil {
		return f, nil, err
	}
	f.Base, f.Shelf = m.encode(), s.encode()
	o.Origin = &checkpoint.Origin{
		Run: id, Seq: at, Base: checkpoint.BaseDigest(f.Base), Effects: w.how.String(),
		Turn: m.turn, Step: m.root.ended(), Author: w.by, Reason: w.reason,
	}
	if s != nil {
		o.Trimmed = s.trimmed
	}
	if f.Shelf != nil {
		o.Origin.Shelf = checkpoint.BaseDigest(f.Shelf)
	}
	entries := []checkpoint.Entry{{Kind: checkpoint.Opened, Data: encode(o)}}
	x := said(entries[0], nil)
	x.live = false
	x.more().opening = o
	if x.more().origin, err = beginning(o, f.Base, f.Shelf); err != nil {
		return f, nil, err
	}
	next := newMachine(m.plan)
	next.replaying = true
	if err := next.apply(&x); err != nil {
		return f, nil, err
	}
	edited, err := c.editFork(ctx, id, next, w)
	return f, append(entries, edited...), err
}

// editFork returns what the logs of forks say of the edit that they begin with. m is that of
// a fork.
func (c *core) editFork(ctx context.Context, id string, m *machine, w *forkWish) ([]checkpoint.Entry, error) {
	if w.edit == nil {
		return nil, nil
	}
	a := &amendment{c: c, m: m, head: checkpoint.Head{Seq: 1}, desk: new(desk)}
	e := &editing{c: c, id: id, write: w.edit, want: w.state, said: checkpoint.Edit{Author: w.by, Reason: w.reason}}
	err := e.amend(ctx, a)
	return a.lines, err
}
