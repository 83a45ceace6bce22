package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/internal/misuse"
)

// A Dispatcher runs one graph over one store. It is safe for concurrent use, holds no goroutines
// and needs no Close. New makes it: calls of a nil or zero Dispatcher return an [*OptionError], and
// Graph, Store and Takes, which return no error, panic.
type Dispatcher[S any] struct {
	core *core
}

// core is a Dispatcher without its type parameter.
type core struct {
	plan    *dag.Plan
	store   checkpoint.Store // nil: runs leave no log
	opts    Options
	owner   string
	amender string                // the owner as who only amends a run
	trimmer string                // the same as who trims it
	resumes checkpoint.Resumption // what most resumes say; never written to
	resumed json.RawMessage       // Data of their entries; never written to
	nests   bool                  // some node holds a frame
	before  patterns
	after   patterns
	slots   chan struct{}   // full when Options.Parallel bodies run; nil: no limit
	parsed  sync.Map        // digest → *dag.Plan of a graph of which there is no program here
	strays  perRun[*strays] // what calls have abandoned that has not returned
	marks   bookmarks
	nodes   nodeIndex
	hub     hub
	kept    keep

	graphIsPut atomic.Bool // see putGraph

	leftovers sync.Pool // of *leftover

	interceptors []*interceptor
	gates        *gates // nil: nothing needs an approval
}

// New joins a graph and a store. With a nil store runs leave no log: only Start works, and options
// that need a log are refused. New returns an [*OptionError] for an option that can't be: a
// negative number, a store that is a nil pointer, or an interrupt or a gate that names no node of
// the graph.
func New[S any](g *dag.Graph[S], store checkpoint.Store, o Options) (*Dispatcher[S], error) {
	if g == nil || g.Plan() == nil {
		return nil, &OptionError{"graph", "is nil or the zero Graph: make it with Build"}
	}
	if store != nil && misuse.Missing(store) {
		return nil, &OptionError{"store", fmt.Sprintf("is a nil %T: open one, or give nil itself for runs without a log", store)}
	}
	c := &core{plan: g.Plan(), store: store, opts: o, owner: uuid.NewString()}
	if err := c.configure(); err != nil {
		return nil, err
	}
	c.amender = checkpoint.Amender(c.owner)
	c.trimmer = c.amender + trims
	c.resumes = checkpoint.Resumption{Owner: c.owner}
	c.resumed = encode(c.resumes)
	c.nests = slices.ContainsFunc(c.plan.Nodes, func(n dag.PlanNode) bool { return holds(&n) })
	return &Dispatcher[S]{c}, nil
}

// NewRunID returns a fresh run id, a UUIDv7: ids sort by the time they were made. Keep the id
// before you begin the run, since it is how you find the run after a crash.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// Run brings the run to its end, or as far as it can go:
//
//   - It starts the run if there is none, calling input on the empty state; nil leaves the state
//     empty.
//   - It goes on with a run that is at rest or was left running. Questions whose time is over end.
//     It does not end pauses, which is for [Dispatcher.Resume], and answers nothing except what
//     [Answering] gives it.
//   - It returns the result of a run that is completed, unless input that was posted by
//     [Dispatcher.Enqueue] waits for it: then it begins the turns of that input.
//
// A ctx that is done already does not keep Run from opening the run or taking it up: the run then
// rests where it stood, as Cancelled or TimedOut. So does a run that had Failed; what failed is in
// its log, and the next call runs it again. If it is Interrupted, and all that is open waits for
// people, nothing changes, except that answers and new Settings of the call count. The same holds
// for Start, Resume, Continue and Turn; a Resume ends its pauses even then.
//
// ErrBusy if the run is live.
func (d *Dispatcher[S]) Run(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.inside().run(ctx, run, modeRun, erase(input), options)
	return handed[S](run, r, err), err
}

// Start begins a run that must not exist yet; ErrExists if it does. [Dispatcher.Run] says what a
// ctx does that is done already.
func (d *Dispatcher[S]) Start(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.inside().run(ctx, run, modeStart, erase(input), options)
	return handed[S](run, r, err), err
}

// Resume goes on with a run that exists and is not completed, and ends its interrupts before and
// after visits. Visits that asked go on waiting for their answers, unless [Answering] gives them. A
// run that failed at a dag.Fail returns the same failure. [Dispatcher.Run] says what a ctx does
// that is done already.
//
// ErrNotFound if there is no such run; ErrCompleted if it is completed and no input of Enqueue
// waits for it; a [*GraphChangedError] if another graph made it and its past is not the same in
// this one.
func (d *Dispatcher[S]) Resume(ctx context.Context, run string, options ...RunOption) (*Result[S], error) {
	r, err := d.inside().run(ctx, run, modeResume, nil, options)
	return handed[S](run, r, err), err
}

// Continue is [Dispatcher.Run] for a run that exists: ErrNotFound if there is none. It needs no S,
// so that code which goes on with runs of many graphs can hold their dispatchers as one interface;
// its Result has no state.
func (d *Dispatcher[S]) Continue(ctx context.Context, run string, options ...RunOption) (*Result[struct{}], error) {
	r, err := d.inside().run(ctx, run, modeContinue, nil, options)
	return handed[struct{}](run, r, err), err
}

// Turn gives a completed run new input and runs its graph again from its roots, over the state as
// it is and in the same log. The input is called with that state, and what it writes becomes part
// of it, if the state's Check agrees; nil writes nothing. Visits, attempts, interrupts and keys
// belong to the turn. A turn that rests is resumed like any run, also one that was begun under a
// ctx that was done: it has taken the input.
//
// Input that was posted by [Dispatcher.Enqueue] goes first. If one of those turns comes to rest
// without being completed the error is that [*Rest] and ErrNotCompleted. If ctx is done before all
// of them have begun it is ErrNotCompleted and the cause of ctx. Either way the input of this call
// was not taken.
//
// What is posted meanwhile comes behind, in the same call: the Result, or a [*Rest] alone, may be
// that of a later turn than this input's.
//
// ErrNotCompleted if the run rests, ErrBusy if it is live, ErrNotFound if there is none, unless
// [OrStart] has Turn begin it.
func (d *Dispatcher[S]) Turn(ctx context.Context, run string, input func(*S), options ...RunOption) (*Result[S], error) {
	r, err := d.inside().run(ctx, run, modeTurn, erase(input), options)
	return handed[S](run, r, err), err
}

// Enqueue leaves input for a turn of a run, whatever its status, and returns when that is durable.
// [Message] gives the input a name, under which it counts once. Turns begin in the order of
// posting, each with one input. A live run begins the next one when it is completed, instead of
// ending; otherwise the next Run, Continue, Resume or Turn does.
//
// Input that comes when a call has looked for the last time and is about to return, as in
// Hooks.OnEnd or while Options.Retention has the run trimmed, waits for the next call. To have it
// taken call Continue behind Enqueue, and again as long as that is ErrBusy; a supervisor does so
// for a program that calls its Continue once.
//
// The function input is called at once, with the empty state, and what it writes is posted. So it
// can't depend on what it reads. Append together with SetAt or Truncate of one list is refused,
// since their places are not those of the list that the run has. Truncate(0) alone empties that
// list; called behind an Append it takes that back too. The input can't be nil, and a panic or
// runtime.Goexit in it is as in that of [Dispatcher.Edit].
//
// Input that the state's Check or a limit refuses when its turn is to begin is passed over; an
// entry in the log says so, and Result.Warnings. [Event].ID of a turn that begins, or of that
// entry, says which input it is. If the store can't tell what waits for a run that has just been
// completed, the call returns that error beside its result, and the next call takes the input.
func (d *Dispatcher[S]) Enqueue(ctx context.Context, run string, input func(*S), options ...RunOption) error {
	return d.inside().enqueue(ctx, run, erase(input), options)
}

// Note adds a fact to the log of a run that is no part of its state, from any code that has the
// store. Notes are for people, and for packages that keep what they know of a run beside it. The
// run may be in any status, and of another graph than the dispatcher's.
//
// The name says whose note it is, and of what: "billing.invoice". It has 1 to 128 bytes of UTF-8
// without control characters, and does not begin with "pawl." or "record.", as pawl's own names do.
// The value may be anything that JSON can say, up to Limits.ValueBytes.
//
// Note returns when the note is durable: in the log, or, if somebody is at work on the run, posted
// to them. They take notes in the order of posting. If the run has come to rest meanwhile without
// being completed, the next call that goes on with it takes them.
//
// [Author] says who makes the note. [Message] gives it an id, under which one note is made however
// often it is sent. [From] has it made only if the run still stands where the caller has seen it,
// which makes a note of what was read a compare-and-swap; otherwise the error is ErrStaleCursor, or
// checkpoint.ErrBusy if the run is live.
//
// An error that is no refusal, such as that of a store that is full behind the message, may leave
// the note behind, which then counts. To be able to make it again, give it a Message.
func (d *Dispatcher[S]) Note(ctx context.Context, run, name string, value any, options ...RunOption) error {
	return d.inside().noteRun(ctx, run, name, value, options)
}

// Cancel stops a run, from any code that has the store, and returns when that is durable. What
// happens depends on how the run stands:
//
//   - A run at rest becomes Cancelled at once.
//   - A live run is told by a durable message, and Cancel does not wait for it, so that a node may
//     cancel its own run: the node's ctx ends. What the run is just about to begin may still begin,
//     and nothing behind it. If nothing is left to do when the run hears of it, it is completed;
//     State tells. With a store that is no [checkpoint.Watcher] the run hears of it when it comes
//     to rest.
//   - A run that is just coming to rest in another way becomes Cancelled when whoever has it lets
//     go of it: its call, which returns how it rested, OnEnd, an abandoned node, or an Edit.
//   - A cancelled run stays as it is. If a call still has its lease the log notes the further
//     cancel.
//
// Run, Resume and Continue go on with a cancelled run, whoever calls them, unless they are given
// [UnlessCancelled]. The run may be of another graph than the dispatcher's. The text of cause is
// kept; nil means no cause. [Author] says who cancels: the log, events, HistoryOf and the [*Rest]
// of the call that was at work tell it.
//
// ErrCompleted if the run is completed. An error that is no refusal may leave the message behind,
// which then counts. As State, Cancel calls the store on the caller's goroutine.
func (d *Dispatcher[S]) Cancel(ctx context.Context, run string, cause error, options ...RunOption) error {
	return d.inside().cancelRun(ctx, run, cause, options)
}

// Answer ends the interrupt with this id. The id "" stands for the only interrupt that waits for a
// person: a question, an approval, or an effect in doubt, but not a pause, which Resume ends. The
// kind of the interrupt says what value has to be:
//
//   - [KindAsked]: the answer, anything that JSON can say and that fits the type the node asked
//     for;
//   - [KindDoubt]: a [Resolution];
//   - any other: [Approve] or [Reject]. A Reject of a visit that has not begun ends whatever else
//     waits before it.
//
// [Author] says who gives the answer, [Because] why. A live run that has not come to rest yet goes
// on at once; any other with the next Run or Resume. Answer does not wait for that, and is never
// ErrBusy. As State, it calls the store on the caller's goroutine. A run that was cancelled takes
// answers too; to answer only if it was not, go on with it in one call that has [Answering] and
// [UnlessCancelled].
//
// Answer returns when the answer is durable. It is in the log, or, if somebody is at work on the
// run or something else waits for it, in a message that whoever drives the run soon drains into the
// log. Of several answers to one interrupt exactly one counts, and calls that give the same answer
// at the same time are one. Once an answer is in the log every further one is refused, even the
// same one, unless it has the same [Message].
//
// An accepted answer comes to nothing in two cases, which the log notes: the run was rewound while
// the answer was given; or the answer ends a pause that a Resume ends at the same time, having
// looked at what was posted and not yet begun, as in OnStart.
//
// An [*AnswerError] says why an answer was refused, and if the interrupt was answered before, by
// whom and when. Nothing has changed then. Any other error may leave the answer behind, in the log
// or as a message. While the message waits, giving the same value to the same id as the same author
// for the same reason is the same answer and not a second one. ErrCommitUnknown can also mean that
// somebody else took what was posted, went on, and trimmed that part of the log before Answer
// looked, as Options.Retention does behind a call: either this answer counts or another one does.
func (d *Dispatcher[S]) Answer(ctx context.Context, run, interrupt string, value any, options ...RunOption) error {
	return d.inside().give(ctx, run, checkpoint.AnswerGiven, map[string]any{interrupt: value}, options)
}

// Open looks at a run before somebody goes on with it: where it stands, what it waits for, and how
// far the effects of its open superstep are, with advice on those that are in doubt. It runs
// nothing, takes no lease and changes nothing. The run may be of another graph than the
// dispatcher's.
func (d *Dispatcher[S]) Open(ctx context.Context, run string) (*Opened, error) {
	return d.inside().open(ctx, run)
}

// Resolve says what came of an effect that is in doubt: it began, and its process died or its
// function returned an error, so that nobody knows whether it happened. Look at the other side for
// its idempotency key ([OpenEffect].ID, dag.InDoubtError.ID). Then say [Happened], with what the
// function would have returned, or [NotHappened]. The visit is found by its path, the effect by its
// key. If the visit waits to be told (dag.DoubtAsks) this answers it. [Author] says who resolves.
//
// Resolve runs nothing and returns when what was said is durable. A live run goes on with the visit
// at once; any other with the next Run or Resume. Each doubt is resolved at most once.
//
// A [*ResolutionError] says why it was refused, and nothing has changed:
//
//   - ErrNotInDoubt: the effect is not in doubt, its visit is at work, or somebody has said what
//     happened already, perhaps an earlier attempt of this call.
//   - ErrAnswerType: the output is not of the type of the function's output, which is the one with
//     which the effect began or, if the visit waits to be told, with which it came to wait.
//     OpenEffect.Want, or the Want of the [Interrupt], tells it. What a later program wants is
//     known only when its node runs, which may meet dag.ErrOutputChanged.
//
// Any other error, such as that of a store that failed behind the message, may leave behind what
// was said, in the log or as a message that will count. Say it again to be sure: while the message
// waits, the same from the same author changes nothing.
func (d *Dispatcher[S]) Resolve(ctx context.Context, run, visit, key string, r Resolution, options ...RunOption) error {
	return d.inside().resolve(ctx, run, visit, key, r, options)
}

// State reads a run without running it: its last closed superstep, its cursor, and what it waits
// for. Like every call that does not bring a run on, it calls the store on the caller's goroutine,
// and ends with ctx if the store heeds ctx; [Options.Grace] does not apply to it.
//
// A [*GraphChangedError] if another graph made the run and neither this graph nor a Migration can
// hold what it holds. [Dispatcher.Open] tells of such a run as well.
func (d *Dispatcher[S]) State(ctx context.Context, run string) (*Result[S], error) {
	r, err := d.inside().read(ctx, run, 0)
	return typed[S](run, r), err
}

// At reads a run as it stood at a checkpoint. The address is one of:
//
//   - "run@seq" or "path@superstep", as [Checkpoint] prints them. For a frame inside a later turn
//     the path begins with the turn: "2/compose-loop/1@3".
//   - the number of a superstep of the run's own frame; in a fork that may also be the superstep
//     behind which it begins;
//   - "0": the state as the run was opened;
//   - "tag:NAME": see [Dispatcher.Tag];
//   - "": the last checkpoint, read as one of the run's own frame.
//
// checkpoint.ErrCursor if the address names no checkpoint of the run, or two, which can be if the
// run has the name of a frame. As State, At calls the store on the caller's goroutine.
func (d *Dispatcher[S]) At(ctx context.Context, run, address string) (*Result[S], error) {
	r, err := d.inside().at(ctx, run, address)
	return typed[S](run, r), err
}

// History lists the checkpoints of a run, oldest first: the end of every superstep of every frame,
// or only of the given frames. A frame is named by its path, or by its node path, which stands for
// the frame in any iteration or item around it: "" is the run's own, "compose-loop" stands for
// every iteration, "compose-loop/2" for the second. It does not stand for the frames inside it. A
// frame that the graph does not have is checkpoint.ErrCursor.
//
// History reads the log from its beginning, as far as the loop asks for more, and keeps nothing of
// it. It calls the store in the loop's own goroutine, as State does.
func (d *Dispatcher[S]) History(ctx context.Context, run string, frames ...string) iter.Seq2[Checkpoint, error] {
	return d.inside().history(ctx, run, frames)
}

// Graph returns the name of the graph that d runs.
func (d *Dispatcher[S]) Graph() string { return d.named("Graph").plan.Name }

// Takes reports whether runs of a graph are for d to go on with, by the name and the digest that a
// store tells of the graph ([checkpoint.Info]). They are if the graph has the name of d's own, or a
// [Migration] names it. Whether such a run can really go on depends on its log.
func (d *Dispatcher[S]) Takes(graph, digest string) bool {
	return d.named("Takes").takes(graph, digest)
}

// CheckOptions returns the error with which Continue refuses options whatever the run is, nil if
// there is none. It is for layers that take options now and call later, as a queue does. Run
// refuses the same, and [From] and [Expire]. What does not fit the run, such as Labels that it was
// not opened with, only the call can tell.
func (d *Dispatcher[S]) CheckOptions(options ...RunOption) error {
	c := d.inside()
	if err := c.called(context.Background()); err != nil {
		return err
	}
	_, err := c.wish(modeContinue, options)
	return err
}

// Graphs returns the names of the graphs whose runs d takes, to list runs by. The first is the name
// of its own graph. The names of graphs that a [Migration] names by digest are read from the store;
// if that fails, Graphs returns the names it could tell, and the error.
func (d *Dispatcher[S]) Graphs(ctx context.Context) ([]string, error) {
	c := d.inside()
	if err := c.called(ctx); err != nil {
		return nil, err
	}
	return c.graphs(ctx)
}

func erase[S any](input func(*S)) func(any) {
	if input == nil {
		return nil
	}
	return func(s any) { input(s.(*S)) }
}
