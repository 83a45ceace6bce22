package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// Options configure a [Dispatcher]. The zero Options work.
type Options struct {
	// InterruptBefore and InterruptAfter name visits before or after which a run pauses:
	// by node path ("compose-loop/validate", in every iteration) or by visit path
	// ("compose-loop/2/validate", in that one; "review/17", one item). Nil means none.
	InterruptBefore []string
	InterruptAfter  []string
	// InterruptIf is asked about every visit, before it begins and after its superstep
	// has ended, unless a name above says it already. Nil means no.
	InterruptIf func(Boundary) bool
	// Migrations say how runs go on whose past this graph does not have: the first one
	// that is for the graph of the run. Nil means that such runs are refused.
	Migrations []Migration
	// Observe sees the events of all runs, in order for each run, from the goroutine that
	// runs it: it should be quick. What a node emits it sees when the node has returned;
	// who wants that at once reads a Stream. Its panics are ignored. Nil means nobody does.
	Observe func(Event)
	// Hooks are asked where runs begin and end, and round visits.
	Hooks Hooks
	// Limits bound what a run may use. Zero fields mean the defaults.
	Limits Limits
	// Grace is how long a call may take to return once its context is done. Nodes that
	// have not returned shortly before its end are abandoned. Less than 20 ms are not kept
	// exactly. Zero means 5 seconds.
	Grace time.Duration
	// Parallel is how many bodies of nodes may run at once, over all runs of the
	// dispatcher. Zero means as many as there are.
	Parallel int
	// Paranoid folds every delta from its encoded bytes, as a recovery would, instead of
	// from memory. It costs time and is meant for tests.
	Paranoid bool

	now func() time.Time // of instants that are stored; nil means time.Now
	// eager writes a snapshot behind every append, and lets nothing wait to share one: for tests.
	eager bool
}

// Limits bound what a run may use. A run that reaches one fails with a [*LimitError]. How deep
// values may be nested is fixed: see state.MaxDepth.
type Limits struct {
	// Supersteps a run may end, of all its frames. Zero means 1,000,000.
	Supersteps int
	// StateBytes is the size of the encoded state of one frame. Zero means 256 MiB.
	StateBytes int
	// ValueBytes is the size of one encoded value, of a question and of an answer. Zero
	// means 16 MiB.
	ValueBytes int
	// VisitBytes is the size of all that one visit writes, encoded. Zero means 32 MiB.
	VisitBytes int
	// DecodeBytes is what a call may read of one run to know where it stands: its newest
	// snapshot, and what the log holds behind it. Zero means 1 GiB.
	DecodeBytes int
	// Items is how many items one visit of an Each may have. Zero means 100,000.
	Items int
}

// allow returns a [*LimitError] for JSON that a run may not keep as one value.
func (l *Limits) allow(raw []byte, what string) error {
	switch {
	case len(raw) > l.ValueBytes:
		return &LimitError{"value bytes", l.ValueBytes, what}
	case state.TooDeep(raw):
		return &LimitError{"depth", state.MaxDepth, what}
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

// A Dispatcher runs one graph over one store. It holds no goroutines and needs no Close;
// it is safe for concurrent use.
type Dispatcher[S any] struct {
	core *core
}

// core is a Dispatcher without its type parameter.
type core struct {
	plan   *dag.Plan
	store  checkpoint.Store // nil: runs leave no log
	opts   Options
	owner  string
	before patterns
	after  patterns
	slots  chan struct{} // full when Options.Parallel bodies run; nil: no limit
	parsed sync.Map      // digest → *dag.Plan of a graph of which there is no program here
	strays sync.Map      // run id → *strays: visits that were abandoned and have not returned
	nodes  nodeIndex
	hub    hub

	interceptors []*interceptor
}

// New joins a graph and a store. With a nil store runs leave no log: only Start works,
// and options that need a log are refused. It returns an [*OptionError] for an option
// that can't be: a negative number, or an interrupt that names no node of the graph.
func New[S any](g *dag.Graph[S], store checkpoint.Store, o Options) (*Dispatcher[S], error) {
	if g == nil || g.Plan() == nil {
		return nil, &OptionError{"graph", "is nil or the zero Graph: make it with Build"}
	}
	c := &core{plan: g.Plan(), store: store, opts: o, owner: uuid.NewString()}
	if err := c.configure(); err != nil {
		return nil, err
	}
	return &Dispatcher[S]{c}, nil
}

func (c *core) configure() error {
	o := &c.opts
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Grace", int64(o.Grace)},
		{"Parallel", int64(o.Parallel)},
		{"Limits.Supersteps", int64(o.Limits.Supersteps)},
		{"Limits.StateBytes", int64(o.Limits.StateBytes)},
		{"Limits.ValueBytes", int64(o.Limits.ValueBytes)},
		{"Limits.VisitBytes", int64(o.Limits.VisitBytes)},
		{"Limits.DecodeBytes", int64(o.Limits.DecodeBytes)},
		{"Limits.Items", int64(o.Limits.Items)},
	} {
		if n.value < 0 {
			return &OptionError{n.name, "is negative"}
		}
	}
	if c.store == nil && (len(o.InterruptBefore) > 0 || len(o.InterruptAfter) > 0 || o.InterruptIf != nil) {
		return &OptionError{"InterruptBefore", "interrupts need a store"}
	}
	errs := []error{checkMigrations(c.plan, o.Migrations)}
	for _, name := range o.InterruptBefore {
		errs = append(errs, c.before.add("InterruptBefore", c.plan, name))
	}
	for _, name := range o.InterruptAfter {
		errs = append(errs, c.after.add("InterruptAfter", c.plan, name))
	}
	errs = append(errs, c.configureHooks())
	o.Limits.Supersteps = orDefault(o.Limits.Supersteps, 1_000_000)
	o.Limits.StateBytes = orDefault(o.Limits.StateBytes, 256<<20)
	o.Limits.ValueBytes = orDefault(o.Limits.ValueBytes, 16<<20)
	o.Limits.VisitBytes = orDefault(o.Limits.VisitBytes, 32<<20)
	o.Limits.DecodeBytes = orDefault(o.Limits.DecodeBytes, 1<<30)
	o.Limits.Items = orDefault(o.Limits.Items, 100_000)
	o.Grace = orDefault(o.Grace, 5*time.Second)
	if o.Parallel > 0 {
		c.slots = make(chan struct{}, o.Parallel)
	}
	if o.now == nil {
		o.now = time.Now
	}
	return errors.Join(errs...)
}

func orDefault[N int | time.Duration](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}

// NewRunID returns a fresh run id, a UUIDv7: ids sort by the time they were made.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// Run brings the run to its end, or as far as it can go. It starts the run if there is
// none, calling input on the empty state (nil means the state stays empty); it goes on
// with one that is at rest or was left running; it returns the result of one that is
// completed. It ends no interrupt: only Resume and Answer do. ErrBusy if the run is live.
func (d *Dispatcher[S]) Run(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.core.run(ctx, run, modeRun, erase(input), options)
	return typed[S](r), err
}

// Start begins a run that must not exist yet; ErrExists if it does.
func (d *Dispatcher[S]) Start(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.core.run(ctx, run, modeStart, erase(input), options)
	return typed[S](r), err
}

// Resume goes on with a run that exists and is not completed, and ends its interrupts
// before and after visits; visits that asked go on waiting for their answers. ErrNotFound
// if there is no such run, ErrCompleted if it is completed, a [*GraphChangedError] if it
// was made by another graph and its past is not the same in this one. A run that failed at
// a dag.Fail returns the same failure.
func (d *Dispatcher[S]) Resume(ctx context.Context, run string, options ...RunOption) (*Result[S], error) {
	r, err := d.core.run(ctx, run, modeResume, nil, options)
	return typed[S](r), err
}

// Continue is Run for a run that exists: ErrNotFound if there is none. It needs no S, so that
// what goes on with runs of many graphs can hold their dispatchers as one interface; the
// Result has no state.
func (d *Dispatcher[S]) Continue(ctx context.Context, run string, options ...RunOption) (*Result[struct{}], error) {
	r, err := d.core.run(ctx, run, modeContinue, nil, options)
	return typed[struct{}](r), err
}

// Turn gives a completed run new input, and runs its graph again from its roots, over the
// state as it is and in the same log. The input is called with that state; what it writes
// becomes part of it, if the state's Check agrees. Visits, attempts, interrupts and keys
// are those of the turn. Input that was posted by Enqueue goes first: if one of its turns
// comes to rest otherwise the error is that [*Rest] and ErrNotCompleted, and this input was
// not taken.
//
// ErrNotCompleted if the run rests, ErrBusy if it is live, ErrNotFound if there is none. A
// turn that rests is resumed as any run.
func (d *Dispatcher[S]) Turn(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.core.run(ctx, run, modeTurn, erase(input), options)
	return typed[S](r), err
}

// Enqueue leaves input for a turn of a run, whatever its status, and returns when it is
// durable. A live run begins the turn when it is completed, instead of ending; else the
// next Run, Resume or Turn does. Turns are begun in the order of their posting, those of
// one millisecond in that of their names, each with one input. The input is called at once, with the empty state: what it writes is what is
// posted, so it can't depend on what it reads. [Message] gives it a name.
//
// Input that the state's Check or a limit refuses, when its turn is to begin, is drained
// from the queue by an entry that says so, and is one of Result.Warnings.
func (d *Dispatcher[S]) Enqueue(ctx context.Context, run string, input func(*S), options ...RunOption) error {
	return d.core.enqueue(ctx, run, erase(input), options)
}

// Cancel stops a run, from any code that has the store. A live one is told so, by a durable
// message, and comes to rest as Cancelled; Cancel returns when the message is durable. One
// at rest becomes Cancelled at once. The text of cause is kept; nil means no cause. ErrCompleted
// if the run is completed. The graph of the run may be another than the dispatcher's.
func (d *Dispatcher[S]) Cancel(ctx context.Context, run string, cause error) error {
	return d.core.cancelRun(ctx, run, cause)
}

// Answer ends the interrupt of this id. For one that a node asked, value is the answer,
// anything that JSON can say and that fits the type the node asked for; for one before
// or after a visit it is [Approve] or [Reject]. The run goes on with the next Run or
// Resume, or at once if it is live. An [*AnswerError] says why an answer was refused;
// then nothing has changed. Answer returns when the answer is durable.
func (d *Dispatcher[S]) Answer(ctx context.Context, run, interrupt string, value any) error {
	return d.core.answerInterrupt(ctx, run, interrupt, value)
}

// State reads a run without running it: its last closed superstep, its cursor, and what
// it waits for. Like At, History, Cancel and Answer it calls the store on the caller's
// goroutine, and ends with ctx if the store heeds it.
func (d *Dispatcher[S]) State(ctx context.Context, run string) (*Result[S], error) {
	r, err := d.core.read(ctx, run, 0)
	return typed[S](r), err
}

// At reads a run as it stood at a checkpoint: "run@seq" or "path@superstep" as
// [Checkpoint] prints them, or a superstep number of the top frame. Of a frame inside a
// later turn the path begins with the turn: "2/compose-loop/1@3". checkpoint.ErrCursor if
// it names no checkpoint of the run, or, of a run that is called like a frame, two.
func (d *Dispatcher[S]) At(ctx context.Context, run, address string) (*Result[S], error) {
	r, err := d.core.at(ctx, run, address)
	return typed[S](r), err
}

// History lists the checkpoints of a run, oldest first: the end of every superstep of
// every frame, or of these frames alone. A frame is named by its path, or by its node path
// if it may be in any iteration or item around it: "" is the run's own, "compose-loop"
// stands for every iteration, "compose-loop/2" for the second. What is inside a frame is
// another one. A frame that the graph does not have is checkpoint.ErrCursor.
func (d *Dispatcher[S]) History(ctx context.Context, run string, frames ...string) iter.Seq2[Checkpoint, error] {
	return d.core.history(ctx, run, frames)
}

// Graph returns the name of the graph that d runs.
func (d *Dispatcher[S]) Graph() string { return d.core.plan.Name }

func erase[S any](input func(*S)) func(any) {
	if input == nil {
		return nil
	}
	return func(s any) { input(s.(*S)) }
}
