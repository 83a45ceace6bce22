package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// Options configure a [Dispatcher]. The zero Options work.
type Options struct {
	// InterruptBefore and InterruptAfter name visits before or after which a run pauses: by node
	// path ("compose-loop/validate", in every iteration) or by visit path
	// ("compose-loop/2/validate", in that one; "review/17", one item). New refuses a path that
	// names nothing, or a dag.Fail, which does nothing. Nil means none.
	InterruptBefore []string
	InterruptAfter  []string
	// InterruptIf is asked about every visit but those of a dag.Fail, before it begins and after
	// its superstep has ended, unless a name above says it already. Nil means no.
	InterruptIf func(Boundary) bool
	// Migrations say how runs go on whose past this graph does not have: the first one that is for
	// the graph of the run. Keep one as long as there are runs that it is for: completed ones too,
	// whose states are read by it, until a further turn begins. Nil means that such runs are
	// refused.
	Migrations []Migration
	// Observe sees the events of all runs, in order for each run, from the goroutine that runs it:
	// it should be quick. Its panics are ignored. Nil means nobody does. It sees what this
	// dispatcher writes, and not what others do to the store:
	//
	//   - What a node emits it sees when the node has returned; who wants that at once reads a
	//     Stream.
	//   - What a call writes to a run at rest (Answer, Edit, Note, Resolve, Rewind, Tag) it sees
	//     from the goroutine of that call, before the call lets go of the run and returns. A call
	//     from Observe that goes on with the run is ErrBusy there, and a note of every note has no
	//     end.
	//   - It does not see the cancel of a run at rest, so that RunRested is always the end of a
	//     call that was at work (of a Create, of status Pending), nor what Trim and Fork write.
	//     Events tells those too.
	Observe func(Event)
	// Hooks are asked where runs begin and end, and round visits.
	Hooks Hooks
	// Gates say what a person has to approve. Zero means nothing.
	Gates Gates
	// StaleAfter is how long a run may rest, from when it began to, as the store's own clock tells,
	// to Now, before Result.Warnings tells a resume of it how old it is. Zero means 24 hours.
	StaleAfter time.Duration
	// Revalidate is asked at a resume about a dependency that is stale and that says
	// dag.Revalidate. An error refuses the resume. Nil means that such a resume is refused.
	Revalidate func(context.Context, dag.Dependency) error
	// Retention trims each run when a call that was at work on it returns with it at rest or
	// completed, as Trim does; that of a Stream once its events were told. A call that found
	// nothing to do, or whose context is done, and a Stream that was left, trim nothing: the next
	// one does. What goes wrong with it is one of Result.Warnings. Zero means that nothing is
	// trimmed.
	Retention Retention
	// Limits bound what a run may use. Zero fields mean the defaults.
	Limits Limits
	// Lag is how many supersteps that have ended may be on their way to the disk while a run goes
	// on. Effects, interrupts and the return of a call wait for all of them, and events of entries
	// are told when these are durable. After a crash at most so many supersteps are run again, with
	// what had ended of the next one, under the same idempotency keys. Zero means none: nothing
	// follows from what is not durable.
	Lag int
	// Grace is how long a call may take to return once its context is done. Nodes that
	// have not returned shortly before its end are abandoned. Less than 20 ms are not kept
	// exactly. Zero means 5 seconds.
	Grace time.Duration
	// Parallel is how many bodies of nodes may run at once, over all runs of the dispatcher. A node
	// that runs another run of the same dispatcher keeps its place meanwhile: with as many of them
	// at once as there are places, all stand still. Zero means as many as there are.
	Parallel int
	// Paranoid folds every delta from its encoded bytes, as a recovery would, instead of
	// from memory. It costs time and is meant for tests.
	Paranoid bool

	// Now is the wall clock, for tests that let it jump. It is read for instants that are stored:
	// when a question expires, or has, and when the next attempt may begin. Waits themselves are
	// measured by the clock that does not jump. An instant before the year 0, or behind the
	// beginning of the year 9000, counts as that bound, and so does what is counted from it, so
	// that JSON can say it. Now may neither panic nor call runtime.Goexit, which nothing catches.
	// Nil means time.Now.
	//
	// Now does not move what stores say, by a clock of their own: when an entry was appended, an
	// answer given, or input sent. So how long a run has rested, for StaleAfter, and how old a
	// checkpoint is, for Retention.Age, lies between two clocks.
	Now func() time.Time

	// eager writes a snapshot behind every append, and lets nothing wait to share one: for tests.
	eager bool
}

// Limits bound what a run may use. A run that reaches one fails with a [*LimitError]. How deep
// values may be nested is fixed: see state.MaxDepth. So is what the merged Folds of one superstep
// come to, with what a Loop or Each records of them, and the input of a further turn or of a frame
// with what its Folds come to: 48 MiB, also without a store.
type Limits struct {
	// Supersteps is how many a run may have ended in a turn, of all its frames, when a further
	// visit begins. What has begun ends: of frames side by side the superstep in which each is, and
	// those around them. Zero means 1,000,000.
	Supersteps int
	// StateBytes is the size of the encoded state of one frame. Zero means 256 MiB. A Rewind, and a
	// call that goes on under a graph that has changed, put the states of all open frames into one
	// entry. If these together are larger than the store lets an append be, as badgerstore does 64
	// MiB, the call is ErrTooLarge and changes nothing: the run goes on under the graph that it
	// had, and can be forked.
	StateBytes int
	// ValueBytes is the size of one encoded value, of a question and of an answer. Zero
	// means 16 MiB.
	ValueBytes int
	// VisitBytes is the size of all that one visit writes and notes, encoded; a note has 64 bytes
	// more, and its path. As much may be what it asks at once, with the keys, what it depends on,
	// and the key of an effect. Zero means 32 MiB.
	VisitBytes int
	// DecodeBytes is what a call may read of one run to know where it stands: its newest
	// snapshot, and what the log holds behind it. Zero means 1 GiB.
	DecodeBytes int
	// Items is how many items one visit of an Each may have. More than 16,777,216 are never
	// allowed. Zero means 100,000.
	Items int
}

// allow returns a [*LimitError] for JSON that a run may not keep as one value.
func (l *Limits) allow(raw []byte, what ...string) error {
	switch {
	case len(raw) > l.ValueBytes:
		return &LimitError{"value bytes", l.ValueBytes, strings.Join(what, "")}
	case state.TooDeep(raw):
		return &LimitError{"depth", state.MaxDepth, strings.Join(what, "")}
	}
	return nil
}

// decode takes the size of what is about to be decoded from what is left of DecodeBytes.
func (l *Limits) decode(left *int, size int, what string, seq uint64) error {
	if *left -= size; *left < 0 {
		return &LimitError{"decode bytes", l.DecodeBytes, fmt.Sprint(what, " ", seq)}
	}
	return nil
}

// A Boundary is a moment at which a run may be interrupted.
type Boundary struct {
	Run   string
	Path  string // of the visit: compose-loop/2/validate
	Node  string // its node path: compose-loop/validate
	After bool   // after the visit; else before it
}

// needStore returns an [*OptionError] for an option that means nothing without a store.
func (o *Options) needStore() error {
	for _, n := range []struct {
		name  string
		given bool
		why   string
	}{
		{"InterruptBefore", len(o.InterruptBefore) > 0, "nothing can wait"},
		{"InterruptAfter", len(o.InterruptAfter) > 0, "nothing can wait"},
		{"InterruptIf", o.InterruptIf != nil, "nothing can wait"},
		{"Retention", o.Retention != (Retention{}), "there is no log to trim"},
		{"Lag", o.Lag > 0, "there is no disk to wait for"},
		{"Migrations", len(o.Migrations) > 0, "no run goes on"},
		{"StaleAfter", o.StaleAfter > 0, "no run goes on"},
		{"Revalidate", o.Revalidate != nil, "no run goes on"},
	} {
		if n.given {
			return &OptionError{n.name, "needs a store: without one " + n.why}
		}
	}
	return nil
}

func (c *core) configure() error {
	o := &c.opts
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Grace", int64(o.Grace)},
		{"Parallel", int64(o.Parallel)},
		{"Lag", int64(o.Lag)},
		{"StaleAfter", int64(o.StaleAfter)},
		{"Limits.Supersteps", int64(o.Limits.Supersteps)},
		{"Limits.StateBytes", int64(o.Limits.StateBytes)},
		{"Limits.ValueBytes", int64(o.Limits.ValueBytes)},
		{"Limits.VisitBytes", int64(o.Limits.VisitBytes)},
		{"Limits.DecodeBytes", int64(o.Limits.DecodeBytes)},
		{"Limits.Items", int64(o.Limits.Items)},
	} {
		if n.value < 0 {
			return &OptionError{n.name, "is negative: zero means the default"}
		}
	}
	if err := o.needStore(); c.store == nil && err != nil {
		return err
	}
	errs := []error{o.Retention.check("Retention"), checkMigrations(c.plan, o.Migrations)}
	for _, name := range o.InterruptBefore {
		errs = append(errs, c.before.add("InterruptBefore", c.plan, name))
	}
	for _, name := range o.InterruptAfter {
		errs = append(errs, c.after.add("InterruptAfter", c.plan, name))
	}
	errs = append(errs, c.configureHooks(), c.configureGates())
	o.Limits.Supersteps = orDefault(o.Limits.Supersteps, 1_000_000)
	o.Limits.StateBytes = orDefault(o.Limits.StateBytes, 256<<20)
	o.Limits.ValueBytes = orDefault(o.Limits.ValueBytes, 16<<20)
	o.Limits.VisitBytes = orDefault(o.Limits.VisitBytes, 32<<20)
	o.Limits.DecodeBytes = orDefault(o.Limits.DecodeBytes, 1<<30)
	o.Limits.Items = orDefault(o.Limits.Items, 100_000)
	o.Grace = orDefault(o.Grace, 5*time.Second)
	o.StaleAfter = orDefault(o.StaleAfter, 24*time.Hour)
	if o.Parallel > 0 {
		c.slots = make(chan struct{}, o.Parallel)
	}
	if o.Now == nil {
		o.Now = time.Now
	} else {
		o.Now = sayable(o.Now)
	}
	return errors.Join(errs...)
}

// earliest and latest bound what Options.Now tells: JSON can say both, and what is a few of the
// longest durations behind latest.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// sayable is now within these bounds.
func sayable(now func() time.Time) func() time.Time {
	return func() time.Time {
		t := now()
		switch {
		case t.Before(earliest):
			return earliest
		case t.After(latest):
			return latest
		}
		return t
	}
}

func orDefault[N int | time.Duration](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}
