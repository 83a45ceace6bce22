package continuation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// Runs is what a [Runtime] needs of a *dispatcher.Dispatcher, whatever the state of its graph is.
// One that has its methods Takes and Graphs as well has the runs too that a dispatcher.Migration
// brings from graphs of other names, before they are gone on with.
type Runs interface {
	// Graph names the graph: runs of others are none of the Runtime's, but for what Takes says.
	Graph() string
	// Store is where the runs are.
	Store() checkpoint.Store
	// Open tells what a run waits for: asked of one that was trimmed.
	Open(ctx context.Context, run string) (*dispatcher.Opened, error)
	// Continue goes on with a run, with dispatcher.From only if it stands there still.
	Continue(ctx context.Context, run string, options ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error)
	// Answer ends an interrupt, at most once, and is durable when it returns nil.
	Answer(ctx context.Context, run, interrupt string, value any, options ...dispatcher.RunOption) error
	// Cancel stops a run at rest, or tells whoever is at work on it.
	Cancel(ctx context.Context, run string, cause error, options ...dispatcher.RunOption) error
	// Note adds to the log what is no part of the state.
	Note(ctx context.Context, run, name string, value any, options ...dispatcher.RunOption) error
}

// A taker is what Runs may have beside Graph.
type taker interface {
	Takes(graph, digest string) bool
	Graphs(ctx context.Context) ([]string, error)
}

// Options configure a [Runtime]. The zero Options work.
type Options struct {
	// Deliverer brings the follow-ups of runs that were begun with [Owed] to whoever waits for
	// them. Nil means that they stay pending until a Runtime has one.
	Deliverer Deliverer
	// Deliveries is how often a delivery may fail before it is not tried again. Zero means 3.
	Deliveries int
	// Redeliver is how long after a failed delivery the next may be tried. Zero means a minute.
	Redeliver time.Duration
	// Recheck is how long [Runtime.Serve] waits at most before it looks for waits of which it was
	// not told: those that other processes ask. Zero means a minute.
	Recheck time.Duration
	// Now is the wall clock, which should be that of the dispatcher. When a trigger was accepted,
	// and a run has ended, says the store's. Nil means time.Now.
	Now func() time.Time
}

// A Runtime ends waits of the runs of one dispatcher, and reads what became of them. It holds no
// goroutines and needs no Close. It is safe for concurrent use, with a ctx that is not nil. It
// remembers what it has read of up to 10,000 runs, and then reads only what has changed since; with
// more runs it reads some anew each time. Make one with [New].
type Runtime struct {
	d       Runs
	store   checkpoint.Store
	options Options
	stirred chan struct{} // has room for one: Serve is to look again

	mu    sync.Mutex
	cache map[string]*history // by run, as its log was at info.Head
	seen  map[string]moment   // by interrupt: since when Sweep knows that it waits
}

// New makes a runtime for the runs of a dispatcher. Runs that a dispatcher.Migration brings from a
// graph of another name are its runs at once, and what is due in them goes on under the new graph,
// so nothing should be serving the old name on the store any more. It returns an [*ArgumentError]
// if the dispatcher is nil or has no store, or if an option is negative.
func New(d Runs, o Options) (*Runtime, error) {
	if misuse.Missing(d) {
		return nil, &ArgumentError{"the dispatcher", "is nil: make one with dispatcher.New"}
	}
	if d.Store() == nil {
		return nil, &ArgumentError{"the dispatcher", "has no store: a wait is what a log says"}
	}
	if o.Deliveries < 0 || o.Redeliver < 0 || o.Recheck < 0 {
		return nil, &ArgumentError{"an option", "is negative: zero means the default"}
	}
	o.Deliveries = cmp.Or(o.Deliveries, 3)
	o.Redeliver = cmp.Or(o.Redeliver, time.Minute)
	o.Recheck = cmp.Or(o.Recheck, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runtime{d: d, store: d.Store(), options: o, stirred: make(chan struct{}, 1), cache: map[string]*history{}, seen: map[string]moment{}}, nil
}

// made refuses a Runtime that New has not made.
func (r *Runtime) made() error {
	if r == nil || r.d == nil {
		return &ArgumentError{"the Runtime", "is nil or the zero Runtime: make it with New"}
	}
	return nil
}

// histories are those of several runs, of newer ones first.
type histories []*history

// byID finds the wait of an id, or of the id of one of its interrupts.
func (hs histories) byID(id string) *wait {
	for _, h := range hs {
		for _, w := range h.waits {
			if w.id == id || slices.ContainsFunc(w.asks, func(a *ask) bool { return a.id == id }) {
				return w
			}
		}
	}
	return nil
}

// scan reads the runs that f selects, whatever the statuses of their waits. It returns those that
// can be read, as list does.
func (r *Runtime) scan(ctx context.Context, f Filter) (histories, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if f.Run != "" {
		h, err := r.history(ctx, f.Run)
		if err != nil || !(checkpoint.Filter{Labels: f.Scope}).Matches(h.info) {
			return nil, err
		}
		return histories{h}, nil
	}
	return r.list(ctx, checkpoint.Filter{Labels: f.Scope})
}

// list reads those of the runs of a listing that are the Runtime's, each once. It returns those
// that can be read, and the errors of the others, joined.
func (r *Runtime) list(ctx context.Context, f checkpoint.Filter) (all histories, err error) {
	names, err := r.graphs(ctx)
	errs := []error{err}
	for _, f.Graph = range slices.Backward(names) { // its own last: a run may come to that from another one meanwhile
		some, err := r.listOf(ctx, f)
		all, errs = append(all, some...), append(errs, err)
	}
	if len(names) > 1 {
		all = all.once()
	}
	return all, errors.Join(errs...)
}

// once leaves out what was read before it is read again, and has newer ones first.
func (hs histories) once() (all histories) {
	last := map[string]int{}
	for i, h := range hs {
		last[h.run] = i
	}
	for i, h := range hs {
		if last[h.run] == i {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b *history) int { return b.info.Created.Compare(a.info.Created) })
	return all
}

// graphs are the names of the graphs whose runs are the Runtime's, or some of them beside an error.
func (r *Runtime) graphs(ctx context.Context) ([]string, error) {
	if t, ok := r.d.(taker); ok {
		names, err := t.Graphs(ctx)
		if err != nil {
			err = fmt.Errorf("continuation: listing runs: %w", err)
		}
		return names, err
	}
	return []string{r.d.Graph()}, nil
}

// takes reports whether a run is the Runtime's.
func (r *Runtime) takes(info *checkpoint.Info) bool {
	if t, ok := r.d.(taker); ok {
		return t.Takes(info.Graph, info.Digest)
	}
	return info.Graph == r.d.Graph()
}

// listOf is list of one graph.
func (r *Runtime) listOf(ctx context.Context, f checkpoint.Filter) (all histories, err error) {
	var errs []error
	for info, err := range checkpoint.Runs(ctx, r.store, f) {
		if err != nil {
			errs = append(errs, fmt.Errorf("continuation: listing runs: %w", err))
			continue
		}
		if !r.takes(&info) {
			continue
		}
		switch h, err := r.read(ctx, info); {
		case err == nil:
			all = append(all, h)
		case !errors.Is(err, checkpoint.ErrNotFound): // else it was deleted meanwhile
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// history reads one run: of another graph there is none.
func (r *Runtime) history(ctx context.Context, run string) (*history, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if err := checkpoint.CheckRunID(run); err != nil {
		return nil, &ArgumentError{"the run", fmt.Sprintf("can't be: %v", err)}
	}
	info, err := r.store.Stat(ctx, run)
	if errors.Is(err, checkpoint.ErrNotFound) || err == nil && !r.takes(&info) {
		return nil, &NotFoundError{Run: run}
	}
	if err != nil {
		return nil, fmt.Errorf("continuation: %w", err)
	}
	return r.read(ctx, info)
}

// read reads the log of a run, unless its head is what it was.
func (r *Runtime) read(ctx context.Context, info checkpoint.Info) (*history, error) {
	r.mu.Lock()
	known := r.cache[info.Run]
	r.mu.Unlock()
	if known != nil && known.info.Head == info.Head {
		if known.info.Owner == info.Owner {
			return known, nil
		}
		return known.beside(info), nil
	}
	for {
		h := &history{run: info.Run, info: info, lost: info.First > 1}
		err := r.readAll(ctx, h)
		switch {
		case err == nil:
			h.over = h.ended()
			r.remember(h)
			return h, nil
		case errors.Is(err, checkpoint.ErrTrimmed), errors.Is(err, errReplaced): // since info was read, which says where the log begins
			if info, err = r.store.Stat(ctx, info.Run); err == nil {
				continue
			}
		}
		return nil, fmt.Errorf("continuation: reading run %q: %w", h.run, err)
	}
}

// errReplaced: the run has a shorter log than it had, so it is another one.
var errReplaced = errors.New("the run was deleted, and another one made")

// readAll reads the log of h up to its head. Of a run that was trimmed it goes on to where that
// stands by now, since what waits behind the beginning of the log is known from there alone.
func (r *Runtime) readAll(ctx context.Context, h *history) error {
	if err := r.readTo(ctx, h, max(h.info.First, 1), h.info.Head.Seq); err != nil || h.info.First <= 1 {
		return err
	}
	o, err := r.d.Open(ctx, h.run)
	if err != nil {
		return err
	}
	switch before, now := h.info.Head.Seq, o.Cursor.Seq; {
	case now < before:
		return errReplaced
	case now > before:
		if err := r.readTo(ctx, h, before+1, now); err != nil {
			return err
		}
		if info, err := r.store.Stat(ctx, h.run); err == nil && info.Head.Seq == now {
			h.info = info
		} else { // it goes on and on: the head has no digest, so it is read again next time
			h.info.Head, h.info.Status, h.info.Owner = checkpoint.Head{Seq: now}, o.Status, o.Owner
		}
	}
	h.took = o.Messages
	return h.behindTrim(o.Interrupts)
}

// readTo reads the entries from one to another one.
func (r *Runtime) readTo(ctx context.Context, h *history, from, to uint64) error {
	for e, err := range r.store.Read(ctx, h.run, from, to) {
		if err != nil {
			return err
		}
		if err := h.read(&e); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
	}
	return nil
}

// remember keeps a history, instead of any other one if there are many.
func (r *Runtime) remember(h *history) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.cache[h.run]; !known && len(r.cache) >= maxCache {
		for other := range r.cache {
			delete(r.cache, other)
			break
		}
	}
	r.cache[h.run] = h
}

// behindTrim adds what waits since before the log was trimmed. Of its past nothing is known, and
// its id is that of the interrupt.
func (h *history) behindTrim(pending []dispatcher.Interrupt) error {
	for _, i := range pending {
		q, ok, err := parseQuestion(i.Question)
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(h.open, func(w *wait) bool { return w.last().id == i.ID })
		if !ok {
			h.waitsElse(i.ID, i.Path, i.Kind, i.Key)
		}
		if !ok || i.Kind != dispatcher.KindAsked || known {
			continue
		}
		a := &ask{id: i.ID, q: q, at: h.info.Updated, until: i.Until, begun: begun(i.Asked, i.Until, i.Wait)}
		if !a.begun.IsZero() {
			a.at = a.begun
		}
		w := &wait{h: h, id: i.ID, path: i.Path, name: q.Name, asks: []*ask{a}}
		h.waits, h.open = append(h.waits, w), append(h.open, w)
	}
	return nil
}

// maxCache is how many runs a Runtime remembers.
const maxCache = 10_000

// beside is h as it reads while somebody else has the lease. Histories are not changed once they
// were read.
func (h *history) beside(info checkpoint.Info) *history {
	x := *h
	x.info, x.waits, x.open = info, slices.Clone(h.waits), slices.Clone(h.open)
	for i, w := range h.waits {
		y := *w
		y.h = &x
		x.waits[i] = &y
		if k := slices.Index(h.open, w); k >= 0 {
			x.open[k] = &y
		}
	}
	return &x
}

// stir has Serve look again.
func (r *Runtime) stir() {
	select {
	case r.stirred <- struct{}{}:
	default:
	}
}
