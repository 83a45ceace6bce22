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

// Replay tries a graph against the log of a run that it, or an earlier version of it, has made: a
// file that checkpoint.Export wrote. Replay writes nothing to the file, and tells t what differs,
// by visit and cell.
//
// Every visit that the log says is done runs again, with the state that it saw, its answers, its
// settings and its number of attempts. It has to write what the log says and take the same outcome.
// Its effects return what the log says and are not done; an effect that the log does not have is a
// difference. What user code decided beside visits (until, items, the input and output of embedded
// graphs, merged Folds) has to be the same too.
//
// A graph that has changed is read as a resume would read it: what follows from the change is
// tried, and a changed past is told with what stands in its way. If the log has a change of graph,
// what was done before it is tried in the same way, as if the run had come to g there already.
// Where it could not have come to g, Replay tells t which visits it can't try, unless [SinceChange]
// leaves them out.
//
// [Migrations] and [SinceChange] are the only options. A past that migrations bring to the graph is
// tried as well: a visit that they rename has to do under its new name what it did, and one that
// they forget is not tried.
//
// Replay does not try:
//
//   - attempts that failed;
//   - what an interceptor has decided;
//   - a visit that went on although an effect of it has no output;
//   - the past of a fork: a fork is tried from where it began;
//   - a run that was trimmed.
//
// Visits that were appended together are tried at once. If the store that the file comes from is no
// checkpoint.Archiver, the file says so of all entries that have the same time: there one
// difference may cause others, and hide some.
func Replay[S any](t T, file string, g *dag.Graph[S], options ...Option) {
	need(t, "Replay")
	t.Helper()
	r := &replayer[S]{t: t, ctx: contextOf(t), graph: g}
	if err := r.take(options); err != nil {
		t.Errorf("pawltest: %v", err)
		return
	}
	for _, name := range r.given {
		if name != "Migrations" && name != "SinceChange" {
			t.Errorf("pawltest: Replay takes Migrations and SinceChange alone: the log has all else, and %s is not for it", name)
			return
		}
	}
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
	aids
	t     T
	ctx   context.Context
	graph *dag.Graph[S]
	id    string // of the run
	log   []checkpoint.Entry
	ends  []int // of what is tried at once: how many entries the log has with each
	store *audit
	told  map[string]bool
	// changed is the index of the last entry by which the run came to another graph, 0 if
	// there is none. What lies before is an earlier graph's.
	changed int
	untried untried
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
	var origin checkpoint.Fork
	switch {
	case info.First > 1:
		return fmt.Errorf("%s: run %q was trimmed: what is gone can't be tried; export runs before they are trimmed", file, info.Run)
	case info.Base != "":
		if origin.Base, err = past.Base(r.ctx, info.Run, info.Base); err != nil {
			return err
		}
		if shelf := info.Origin.Shelf; shelf != "" {
			if origin.Shelf, err = past.Base(r.ctx, info.Run, shelf); err != nil {
				return err
			}
		}
	}
	r.id, r.told = info.Run, map[string]bool{}
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
			if n := len(r.log); n > 0 && (given(&r.log[n-1]) || given(&entry)) {
				r.ends = append(r.ends, n)
			}
			r.log = append(r.log, entry)
		}
		r.ends = append(r.ends, len(r.log))
	}
	r.ends = slices.Compact(r.ends)
	r.store = &audit{log: r.log, origin: origin}
	if err := r.graphs(&past); err != nil {
		return err
	}
	r.follow()
	return nil
}

// given reports whether an entry says what a run does not come to by itself, or comes to once: what
// stands before it was done without, and what follows it is tried behind it. The appends of a file
// do not tell that: of a store that hands out none they are all that has one time.
func given(e *checkpoint.Entry) bool {
	switch e.Kind {
	case checkpoint.Answered, checkpoint.Resumed, checkpoint.Edited, checkpoint.Rewound, checkpoint.SettingsChanged,
		checkpoint.TurnBegun, checkpoint.Migrated,
		checkpoint.EffectBegun, checkpoint.EffectEnded, checkpoint.AttemptFailed:
		return true
	}
	return intercepted(e)
}

// graphs copies the graphs that the log names.
func (r *replayer[S]) graphs(past *memory.Store) error {
	for i := range r.log {
		_, digest, ok := graphAt(&r.log[i])
		if !ok {
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

// follow finds out which graph the run had where, and has the store look for visits under
// the names that migrations give them.
func (r *replayer[S]) follow() {
	r.store.beside = besideFailed(r.log)
	var names map[string]string
	for i := range r.log {
		if name, digest, ok := graphAt(&r.log[i]); ok {
			names = namesIn(r.moves, name, digest, r.graph.Name(), r.graph.Digest())
		}
		r.store.names = append(r.store.names, names)
		if r.log[i].Kind == checkpoint.Migrated {
			r.changed = i
		}
	}
}

// try goes through the log part by part: what a part says is what has to come of a run that
// stands before it. A part is an append, or less where something is given in one.
func (r *replayer[S]) try() error {
	d, err := dispatcher.New(r.graph, r.store, dispatcher.Options{
		Parallel: 1, Paranoid: true, Migrations: r.moves,
		Revalidate:  func(context.Context, dag.Dependency) error { return nil }, // of what an entry that went back has kept, see fresh
		InterruptIf: func(b dispatcher.Boundary) bool { return !b.After && !r.store.concerns(b.Path) },
	})
	if err != nil {
		return err
	}
	from := 0
	for _, end := range r.ends {
		cut := r.cut(from, end)
		if err := r.store.grow(r.ctx, r.id, r.log[from:cut]); err != nil {
			return err
		}
		if !r.again(d, cut, end) {
			break
		}
		if err := r.store.grow(r.ctx, r.id, r.log[cut:end]); err != nil {
			return err
		}
		from = end
	}
	r.tellUntried()
	return nil
}

// cut is where in a part begins what was computed: input is given, and a change of graph
// holds what the run was made into.
func (r *replayer[S]) cut(from, end int) int {
	cut := from
	for i := from; i < end; i++ {
		switch k := r.log[i].Kind; {
		case k == checkpoint.Migrated, i == cut && (k == checkpoint.Opened || k == checkpoint.TurnBegun):
			cut = i + 1
		}
	}
	return cut
}

// again lets the run go on as far as the log's entries from cut to end do. It reports
// whether to go on with the others.
func (r *replayer[S]) again(d *dispatcher.Dispatcher[S], cut, end int) bool {
	r.t.Helper()
	r.store.begin(cut, end)
	if len(r.store.want) == 0 {
		return true
	}
	if r.recent && cut <= r.changed {
		r.untried.add(r.store.want, nil)
		return true
	}
	wanted := slices.Clone(r.store.want)
	var err error
	for left, before := len(wanted), 0; left > 0 && left != before; { // again without the visit at whose effect the call has ended
		if _, err = d.Run(r.ctx, r.id, nil); !errors.Is(err, errEnough) {
			break
		}
		left, before = r.store.left(), left
	}
	missing, found := r.store.end()
	var changed *dispatcher.GraphChangedError
	var rest *dispatcher.Rest
	switch {
	case errors.As(err, &changed) && cut <= r.changed:
		r.untried.add(wanted, r.stands(changed.Changes, cut))
	case errors.As(err, &changed):
		r.tell("the past has changed: %s", strings.Join(r.stands(changed.Changes, cut), "; "))
		return false
	case len(found) > 0:
		for _, f := range found {
			r.tell("%s", f)
		}
	case err != nil && !errors.Is(err, errEnough) && !errors.As(err, &rest):
		r.tell("it can't go on: %v", err)
	case len(missing) > 0:
		r.tell("%s, and now it is not", says(&missing[0]))
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
	r.t.Errorf("pawltest: run %q: %s", r.id, text)
}
