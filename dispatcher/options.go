package dispatcher

import (
	"cmp"
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
	// InterruptBefore and InterruptAfter name visits before or after which a run pauses. A node
	// path ("compose-loop/validate") stands for its visits in every iteration; a visit path stands
	// for that visit ("compose-loop/2/validate") or that item ("review/17"). New refuses a path
	// that names nothing, or a dag.Fail, which does nothing. Nil means none.
	InterruptBefore []string
	InterruptAfter  []string
	// InterruptIf is asked about every visit except those of a dag.Fail, before the visit begins
	// and after its superstep has ended. It is not asked where a name above already says that the
	// run pauses. Nil means no pause.
	InterruptIf func(Boundary) bool
	// Migrations say how runs go on whose past this graph does not have. The first one that is for
	// the graph of the run counts. Keep a migration as long as there are runs that it is for,
	// completed ones too: their states are read by it until a further turn begins. Nil means that
	// such runs are refused.
	Migrations []Migration
	// Observe is told the events of all runs, in order for each run, by the goroutine that runs it,
	// so it should be quick. Its panics are ignored. Nil means nobody is told. It is told what this
	// dispatcher writes, and not what others do to the store:
	//
	//   - It is told what a node emits when the node has returned. A Stream tells it at once.
	//   - What a call writes to a run at rest (Answer, Edit, Note, Resolve, Rewind, Tag) it is told
	//     by the goroutine of that call, before the call lets go of the run and returns. A call
	//     from Observe that goes on with the run is ErrBusy there, and an Observe that makes a note
	//     of every note never ends.
	//   - It is not told the cancel of a run at rest, so RunRested is always the end of a call that
	//     was at work (with status Pending, of a Create). Nor is it told what Trim and Fork write.
	//     Events tells all of these.
	Observe func(Event)
	// Hooks are called when a call begins and ends to be at work on a run, and around visits.
	Hooks Hooks
	// Gates say what a person has to approve. Zero means nothing.
	Gates Gates
	// StaleAfter is how long a run may rest before Result.Warnings of a resume tells how old it is.
	// The time is from when the run came to rest, as the store's own clock tells, to Now. Zero
	// means 24 hours.
	StaleAfter time.Duration
	// Revalidate is asked at a resume about each stale dependency that says dag.Revalidate. An
	// error refuses the resume. Nil means that such a resume is refused.
	Revalidate func(context.Context, dag.Dependency) error
	// Retention trims a run as Trim does, when a call that was at work on the run returns with it
	// at rest or completed; a Stream trims once its events were told. A call that found nothing to
	// do, a call whose context is done, and a Stream that was left trim nothing; the next call
	// does. What goes wrong is told by Result.Warnings. Zero means that nothing is trimmed.
	Retention Retention
	// Limits bound what a run may use. Zero fields mean the defaults.
	Limits Limits
	// Lag is how many supersteps that have ended may still be on their way to the disk while the
	// run goes on. Effects, interrupts and the return of a call wait until all of them are durable,
	// and events of entries are told when the entries are durable. After a crash at most so many
	// supersteps run again, and with them what had ended of the next one, under the same
	// idempotency keys. Zero means none: nothing follows from what is not durable.
	Lag int
	// Grace is how long a call may take to return once its context is done. Nodes that have not
	// returned shortly before its end are abandoned. A Grace below 20 ms is not kept exactly. Zero
	// means 5 seconds.
	Grace time.Duration
	// Parallel is how many bodies of nodes may run at once, over all runs of the dispatcher. A node
	// that runs another run of the same dispatcher keeps its place meanwhile; if such nodes hold
	// all places, all stand still. Zero means that there is no bound.
	Parallel int
	// Paranoid folds every delta from its encoded bytes, as a recovery would, instead of from
	// memory. It costs time and is meant for tests.
	Paranoid bool

	// Now is the wall clock, for tests that let it jump. It is read for instants that are stored:
	// when a question expires, or has expired, and when the next attempt may begin. Waits are
	// measured by a clock that does not jump. An instant before the year 0, or after the beginning
	// of the year 9000, counts as that bound, and so does what is computed from it, so that JSON
	// can say it. Now may neither panic nor call runtime.Goexit; nothing catches either. Nil means
	// time.Now.
	//
	// Stores have a clock of their own, which Now does not move. By it they tell when an entry was
	// appended, an answer given, or input sent. So how long a run has rested, for StaleAfter, and
	// how old a checkpoint is, for Retention.Age, are measured between two clocks.
	Now func() time.Time

	// eager writes a snapshot behind every append, and lets nothing wait to share one: for tests.
	eager bool
}

// Limits bound what a run may use. A run that reaches one fails with a [*LimitError]. Two limits
// are fixed, also without a store:
//
//   - How deep values may be nested: see state.MaxDepth.
//   - 48 MiB for the merged Folds of one superstep with what a Loop or Each records of them, and
//     for the input of a further turn or of a frame with what its Folds come to.
type Limits struct {
	// Supersteps is how many supersteps of a turn may have ended, counted over all frames of the
	// run, when a further visit begins. What has begun still ends: the superstep that is open in
	// each of the frames side by side, and the supersteps around these frames. Zero means
	// 1,000,000.
	Supersteps int
	// StateBytes is the size of the encoded state of one frame. Zero means 256 MiB.
	//
	// A Rewind, and a call that goes on under a changed graph, put the states of all open frames
	// into one entry. If the store does not let an append be that large (badgerstore lets it be 64
	// MiB), the call is ErrTooLarge and changes nothing: the run goes on under the graph that it
	// had, and can be forked.
	StateBytes int
	// ValueBytes is the size of one encoded value, of a question and of an answer. Zero means 16
	// MiB.
	ValueBytes int
	// VisitBytes is the encoded size of all that one visit writes and notes; each note counts its
	// path and 64 bytes more. The same bound holds, each by itself, for what the visit asks at
	// once, with the keys; for what it depends on; and for the key of an effect. Zero means 32 MiB.
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
	o.Limits.Supersteps = cmp.Or(o.Limits.Supersteps, 1_000_000)
	o.Limits.StateBytes = cmp.Or(o.Limits.StateBytes, 256<<20)
	o.Limits.ValueBytes = cmp.Or(o.Limits.ValueBytes, 16<<20)
	o.Limits.VisitBytes = cmp.Or(o.Limits.VisitBytes, 32<<20)
	o.Limits.DecodeBytes = cmp.Or(o.Limits.DecodeBytes, 1<<30)
	o.Limits.Items = cmp.Or(o.Limits.Items, 100_000)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.StaleAfter = cmp.Or(o.StaleAfter, 24*time.Hour)
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
