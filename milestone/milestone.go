package milestone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// Runs are what a [Namer] needs of a *dispatcher.Dispatcher, of any state. Its graph has to be the
// graph of the runs.
type Runs interface {
	// Store returns the store that has the logs.
	Store() checkpoint.Store
	// Events reads a log as dispatcher.Dispatcher.Events does.
	Events(ctx context.Context, run string, listen dispatcher.Listen) iter.Seq2[dispatcher.Event, error]
	// Tag names a checkpoint as dispatcher.Dispatcher.Tag does.
	Tag(ctx context.Context, run, address, name string, options ...dispatcher.RunOption) error
}

// A Namer names checkpoints of runs. It is safe for concurrent use.
type Namer struct {
	of    Runs
	rules []Rule

	mu   sync.Mutex
	runs map[string]*reading // as far as they were read
}

// mostRuns is how many runs a Namer remembers: of others it reads the whole log again.
const mostRuns = 1024

// A RuleError says which rule can't be followed, and why.
type RuleError struct{ Rule, Reason string }

func (e *RuleError) Error() string {
	return fmt.Sprintf("milestone: rule %q: %s", e.Rule, e.Reason)
}

// New makes a Namer of runs. It returns a [*RuleError] for each rule that is bad or given twice,
// and if of is nil. It doesn't know whether a graph has the nodes and cells that rules name: a rule
// for another graph names nothing.
func New(of Runs, rules ...Rule) (*Namer, error) {
	n := &Namer{of: of, runs: map[string]*reading{}}
	var bad []error
	if misuse.Missing(of) {
		bad = append(bad, &RuleError{"", "there is no dispatcher: make one with dispatcher.New"})
	}
	seen := map[string]bool{}
	for _, r := range rules {
		switch {
		case r.judge == nil:
			continue
		case r.wrong != "":
			bad = append(bad, &RuleError{r.name, r.wrong})
		case seen[r.name]:
			bad = append(bad, &RuleError{r.name, "is given twice"})
		case len(r.name) > 64:
			bad = append(bad, &RuleError{r.name, "has a name of more than 64 bytes"})
		case strings.ContainsFunc(r.name, func(c rune) bool { return c == '@' || c == utf8.RuneError || unicode.IsControl(c) }):
			bad = append(bad, &RuleError{r.name, "holds an @, a control character or what is no UTF-8, as no tag does"})
		}
		seen[r.name] = true
		n.rules = append(n.rules, r)
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	return n, nil
}

// A Milestone is a checkpoint that has a name.
type Milestone struct {
	Run  string
	Seq  uint64 // of the checkpoint's entry
	Tag  string
	Rule string // the name of its rule
}

// Address is the address of the checkpoint, run@seq.
func (m Milestone) Address() string { return fmt.Sprintf("%s@%d", m.Run, m.Seq) }

// Name names what has happened in a run so far. It returns what it found since this Namer last read
// the run, oldest first, and each name is durable by then. An error leaves the names that were
// given before it; the next Name goes on there. The run may be live. It may be trimmed: what is
// gone is not named.
func (n *Namer) Name(ctx context.Context, run string) ([]Milestone, error) {
	return n.read(ctx, run, false)
}

// Follow names what happens in a run as it happens. It returns the cause of ctx once ctx is done,
// and ends if the run is deleted. It never holds up the run. The run has to be there already:
// before it was begun it is not found.
func (n *Namer) Follow(ctx context.Context, run string) error {
	_, err := n.read(ctx, run, true)
	return err
}

func (n *Namer) read(ctx context.Context, run string, tail bool) (all []Milestone, err error) {
	switch {
	case n == nil || n.of == nil:
		return nil, &dispatcher.OptionError{Option: "Namer", Reason: "is nil or the zero Namer: make it with New"}
	case ctx == nil:
		return nil, &dispatcher.OptionError{Option: "context", Reason: misuse.NoContext}
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	r, err := n.resume(ctx, run)
	if err != nil {
		return nil, err
	}
	for e, err := range n.events(ctx, r, tail) {
		if err != nil {
			n.put(r)
			return all, err
		}
		found, err := n.hear(ctx, r, &e)
		if err != nil {
			return all, err
		}
		for _, m := range found {
			m, err = n.tag(ctx, r, m)
			if err != nil && n.isGone(ctx, m, err) {
				continue
			}
			if err != nil {
				return all, err // the reading is dropped: the next one finds it again
			}
			if !tail {
				all = append(all, m)
			}
		}
	}
	n.mark(ctx, r)
	n.put(r)
	return all, nil
}

// tag gives a name. One that no tag may have, since its detail has the form of a secret, goes
// without.
func (n *Namer) tag(ctx context.Context, r *reading, m Milestone) (Milestone, error) {
	err := n.of.Tag(ctx, m.Run, m.Address(), m.Tag)
	var secret *dispatcher.SecretError
	if errors.As(err, &secret) {
		m = r.named(m.Rule, "", m.Seq)
		err = n.of.Tag(ctx, m.Run, m.Address(), m.Tag)
	}
	return m, err
}

// isGone reports whether a checkpoint could not be named since the run was trimmed meanwhile, so
// that nothing is left that could have the name.
func (n *Namer) isGone(ctx context.Context, m Milestone, err error) bool {
	if !errors.Is(err, checkpoint.ErrCursor) && !errors.Is(err, checkpoint.ErrTrimmed) {
		return false
	}
	info, err := n.of.Store().Stat(ctx, m.Run)
	return err == nil && m.Seq < info.First && !slices.ContainsFunc(info.Pins, func(p checkpoint.Pin) bool { return p.Seq == m.Seq })
}

// mark remembers which entry is the last one, be it a name that was given meanwhile. What can't be
// read is not remembered.
func (n *Namer) mark(ctx context.Context, r *reading) {
	for e, err := range n.of.Store().Read(ctx, r.run, r.seq, 0) {
		if err != nil {
			return
		}
		r.last = marked(&e)
	}
}

// resume goes on with the reading of a run, or begins one if there is none, or if it is that of a
// run that was deleted, under whose id there is another now, or this one as it had stood before.
func (n *Namer) resume(ctx context.Context, run string) (*reading, error) {
	if r := n.take(run); r != nil {
		info, err := n.of.Store().Stat(ctx, run)
		if err == nil && info.Created.Equal(r.created) && n.holds(ctx, run, r.last) {
			return r, nil
		}
	}
	r, err := n.begin(ctx, run)
	if err != nil {
		return nil, err
	}
	info, err := n.of.Store().Stat(ctx, run)
	r.created = info.Created
	return r, err
}

// holds reports whether a log has an entry, unless it is known that it has not: of one that was
// trimmed, or can't be read, whoever goes on with the reading finds out.
func (n *Namer) holds(ctx context.Context, run string, last mark) bool {
	for e, err := range n.of.Store().Read(ctx, run, last.seq, last.seq) {
		is := marked(&e)
		return err != nil || is.at.Equal(last.at) && (last.what == "" || is.what == last.what)
	}
	return false
}

// begin begins to read a run at its beginning: a fork with what its origin had.
func (n *Namer) begin(ctx context.Context, run string) (*reading, error) {
	r := n.fresh(run)
	for e, err := range n.of.Events(ctx, run, dispatcher.Listen{}) {
		var origin checkpoint.Origin
		var trimmed *checkpoint.TrimmedError
		switch {
		case errors.As(err, &trimmed):
			return r, nil
		case err != nil:
			return nil, err
		case e.Kind != dispatcher.RunStarted || e.Name == "" || json.Unmarshal(e.Value, &origin) != nil:
			return r, nil
		}
		return r, n.inherit(ctx, r, origin)
	}
	return r, nil
}

// events are the entries that a reading has not heard. Where the log was trimmed it begins anew.
func (n *Namer) events(ctx context.Context, r *reading, tail bool) iter.Seq2[dispatcher.Event, error] {
	return func(yield func(dispatcher.Event, error) bool) {
		for again := true; again; {
			again = false
			for e, err := range n.of.Events(ctx, r.run, dispatcher.Listen{Since: r.seq, States: true, Tail: tail}) {
				var trimmed *checkpoint.TrimmedError
				if errors.As(err, &trimmed) && r.seq+1 < trimmed.First {
					r.rules, r.open = n.fresh(r.run).rules, nil
					r.seq, r.given, again = trimmed.First-1, true, true
					break
				}
				if !e.Live && !yield(e, err) {
					return
				}
			}
		}
	}
}

// inherit takes over what an origin had where the fork begins. If that can't be read any more, what
// the fork has first is taken as given.
func (n *Namer) inherit(ctx context.Context, r *reading, from checkpoint.Origin) error {
	r.origin = n.fresh(from.Run)
	r.origin.given = true
	var o *reading
	err := n.isOrigin(ctx, from.Run, r.run)
	if err == nil {
		o, err = n.begin(ctx, from.Run)
	}
	if err == nil {
		err = n.readTo(ctx, o, from.Seq)
	}
	switch {
	case errors.Is(err, checkpoint.ErrNotFound), errors.Is(err, checkpoint.ErrTrimmed), errors.Is(err, checkpoint.ErrCorrupt):
	case err != nil:
		return err
	default:
		r.origin.inherit(o)
	}
	r.inherit(r.origin)
	return nil
}

// isOrigin is an error unless the run is there that a fork was made of. One that is younger than
// the fork has its id since; or a clock was set back, or both were imported, the fork first, into a
// store that is no Archiver: then the origin counts as gone.
func (n *Namer) isOrigin(ctx context.Context, run, fork string) error {
	is, err := n.of.Store().Stat(ctx, run)
	if err != nil {
		return err
	}
	of, err := n.of.Store().Stat(ctx, fork)
	if err == nil && is.Created.After(of.Created) {
		err = checkpoint.ErrNotFound
	}
	return err
}

// hear reads the next entry, and returns the names that follow from it. Behind a rewind the reading
// is what one is that has heard what led to the checkpoint, and nothing else: the log has it, also
// if an earlier rewind had left that behind.
func (n *Namer) hear(ctx context.Context, r *reading, e *dispatcher.Event) ([]Milestone, error) {
	found := r.hear(e)
	var w checkpoint.Rewinding
	if e.Kind != dispatcher.RunRewound || json.Unmarshal(e.Value, &w) != nil {
		return found, nil
	}
	was := n.fresh(r.run)
	if r.origin != nil {
		was.inherit(r.origin)
	}
	leads := r.line(w.To)
	for e, err := range n.events(ctx, was, false) {
		if err != nil {
			return found, err
		}
		if e.Seq > w.To {
			break
		}
		if leads(e.Seq) {
			was.hear(&e)
		}
	}
	r.back(was)
	r.rewinds = append(r.rewinds, rewind{e.Seq, w.To})
	return found, nil
}

// readTo reads up to an entry, and names nothing.
func (n *Namer) readTo(ctx context.Context, r *reading, seq uint64) error {
	for e, err := range n.events(ctx, r, false) {
		if err != nil || e.Seq > seq {
			return err
		}
		if _, err := n.hear(ctx, r, &e); err != nil {
			return err
		}
	}
	return nil
}

func (n *Namer) fresh(run string) *reading {
	r := &reading{run: run}
	for _, rule := range n.rules {
		r.rules = append(r.rules, ruling{rule.name, rule.judge()})
	}
	return r
}

// take is the reading of a run, which nobody else has meanwhile, nil if there is none.
func (n *Namer) take(run string) *reading {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.runs[run]
	delete(n.runs, run)
	return r
}

func (n *Namer) put(r *reading) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for run := range n.runs {
		if len(n.runs) < mostRuns {
			break
		}
		delete(n.runs, run)
	}
	n.runs[r.run] = r
}
