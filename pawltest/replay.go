package pawltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Replay tries a graph against the log of a run that it, or an earlier version of it, has
// made: a file that checkpoint.Export wrote. Every visit that the log says is done runs
// again, with the state that it saw, its answers, its settings and its number of attempts,
// and has to write what the log says and to take the same outcome. Its effects return what
// the log says and are not done; one that the log does not have is a difference. What user
// code decided beside visits (until, items, the input and output of embedded graphs, merged
// Folds) has to be the same too. Replay tells t what differs, by visit and cell.
//
// A graph that has changed is read as a resume would read it: what follows from the change
// is tried, and a changed past is told with what stands in its way. Not tried are attempts
// that failed, what an interceptor has decided, and a visit that went on although an effect
// of it has no output. Nothing is written to the file.
func Replay[S any](t T, file string, g *dag.Graph[S]) {
	t.Helper()
	r := &replayer[S]{t: t, ctx: contextOf(t), graph: g}
	if err := r.read(file); err != nil {
		t.Errorf("pawltest: %v", err)
		return
	}
	if err := r.try(); err != nil {
		t.Errorf("pawltest: %v", err)
	}
}

// A replayer is one call of Replay.
type replayer[S any] struct {
	t     T
	ctx   context.Context
	graph *dag.Graph[S]
	run   string
	log   []checkpoint.Entry
	ends  []int // of the appends: how many entries the log has with each
	store *audit
	told  map[string]bool
}

// read imports the file, which verifies it.
func (r *replayer[S]) read(file string) error {
	if r.graph == nil {
		return errors.New("there is no graph")
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var past memory.Store
	info, err := checkpoint.Import(r.ctx, &past, f, checkpoint.ImportOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r.run, r.told = info.Run, map[string]bool{}
	for data, err := range past.Envelopes(r.ctx, info.Run) {
		if err != nil {
			return err
		}
		e, err := checkpoint.Unseal(slices.Clone(data))
		if err != nil {
			return err
		}
		for entry, err := range e.Entries() {
			if err != nil {
				return err
			}
			r.log = append(r.log, entry)
		}
		r.ends = append(r.ends, len(r.log))
	}
	r.store = &audit{log: r.log}
	return r.graphs(&past)
}

// graphs copies the graphs that the log names.
func (r *replayer[S]) graphs(past *memory.Store) error {
	for _, e := range r.log {
		var digest string
		switch e.Kind {
		case checkpoint.Opened:
			var o checkpoint.Opening
			decode(e.Data, &o)
			digest = o.Digest
		case checkpoint.Migrated:
			var m checkpoint.Migration
			decode(e.Data, &m)
			digest = m.To
		default:
			continue
		}
		graph, err := past.Graph(r.ctx, digest)
		if err == nil {
			err = r.store.base.PutGraph(r.ctx, digest, graph)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// try goes through the log append by append: what an append says is what has to come of a
// run that stands before it.
func (r *replayer[S]) try() error {
	d, err := dispatcher.New(r.graph, r.store, dispatcher.Options{
		Parallel: 1, Paranoid: true,
		InterruptIf: func(b dispatcher.Boundary) bool { return !b.After && !r.store.concerns(b.Path) },
	})
	if err != nil {
		return err
	}
	first := 0
	for i := range r.log {
		if r.log[i].Kind == checkpoint.Migrated { // what lies before is another graph's
			first = i
		}
	}
	from := 0
	for _, end := range r.ends {
		cut := from
		if k := r.log[from].Kind; k == checkpoint.Opened || k == checkpoint.TurnBegun {
			cut++ // input was given, not computed
		}
		if err := r.store.grow(r.ctx, r.run, r.log[from:cut]); err != nil {
			return err
		}
		if from >= first && !r.again(d, cut, end) {
			return nil
		}
		if err := r.store.grow(r.ctx, r.run, r.log[cut:end]); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// again lets the run go on as far as the log's entries from cut to end do. It reports
// whether to go on with the others.
func (r *replayer[S]) again(d *dispatcher.Dispatcher[S], cut, end int) bool {
	r.t.Helper()
	r.store.begin(cut, end)
	if len(r.store.want) == 0 {
		return true
	}
	var err error
	if r.store.ends {
		_, err = d.Resume(r.ctx, r.run)
	} else {
		_, err = d.Run(r.ctx, r.run, nil)
	}
	missing, found := r.store.end()
	var changed *dispatcher.GraphChangedError
	var rest *dispatcher.Rest
	switch {
	case errors.As(err, &changed):
		r.tell("the past has changed: %s", strings.Join(changed.Changes, "; "))
		return false
	case len(found) > 0:
		for _, f := range found {
			r.tell("%s", f)
		}
	case err != nil && !errors.Is(err, errEnough) && !errors.As(err, &rest):
		r.tell("it can't go on: %v", err)
	case len(missing) > 0:
		r.tell("%s, and now it is not", missing[0].says())
	}
	return true
}

// tell tells a finding, once.
func (r *replayer[S]) tell(format string, args ...any) {
	r.t.Helper()
	text := fmt.Sprintf(format, args...)
	if r.told[text] {
		return
	}
	r.told[text] = true
	r.t.Errorf("pawltest: run %q: %s", r.run, text)
}
