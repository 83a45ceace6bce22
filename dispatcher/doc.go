// Package dispatcher runs graphs: superstep by superstep, under a context, with every finished node
// durable before anything may follow from it. With [Options].Lag a run may be a bounded number of
// supersteps ahead of the disk; effects, questions and the return of the call still wait for those.
//
// A [Dispatcher] joins a graph and a store. Its Run is the line that a program repeats after a
// restart: it starts a run, or goes on with it from where it stands.
//
//	d, err := dispatcher.New(graph, store, dispatcher.Options{})
//	res, err := d.Run(ctx, "inquiry-42", func(q *Inquiry) { q.Query.Set("labyrinth") })
//
// # Results
//
// err == nil means Completed. For a run that came to rest otherwise the error is a [*Rest] with its
// status, cursor, cause and pending interrupts. errors.Is finds [ErrInterrupted], context.Canceled
// (cancelled) and context.DeadlineExceeded (a deadline of the caller passed) in it, and errors.As
// the [*NodeError] of a node that failed. Any other error is a refusal, or comes from the store.
// The [Result] beside an error is never nil; its doc says when it can't tell where the run stands.
//
// # Who may call
//
// State, At, History, Events, Answer, Cancel, Enqueue, Note and Tag work beside a call that is at
// work on the run, from any goroutine of any code that has the store. Which code that is depends on
// the store. A directory of checkpoint/badgerstore is open in one process at a time, so there
// whoever answers or cancels is in that process, or in the next one.
//
// What ends a call:
//
//   - Calls that bring a run on (Run, Start, Resume, Continue and Turn), and Create, return within
//     [Options].Grace once their context is done.
//   - A stream does too, if the store heeds its context.
//   - All others call the store on the caller's own goroutine, and end with their context if the
//     store heeds it. badgerstore and memory do, except when a disk doesn't come back. A call that
//     has taken the run's lease, such as Edit, gives it back first, and has another Grace for that
//     if the store hangs.
//
// # Conversations
//
// A completed run is given new input by [Dispatcher.Turn], with the same state and in the same log.
// With [OrStart] the first thing that is said begins the run:
//
//	for lines.Scan() {
//		res, err := d.Turn(ctx, "chat-7", hears(lines.Text()), dispatcher.OrStart())
//		…
//	}
//
// A program that may have been killed in a turn calls Continue before that, to end the turn. Input
// that others leave, and that has to count once however often it is sent, goes by
// [Dispatcher.Enqueue] and [Message].
//
// # Events
//
// [Dispatcher.Stream] runs a run and tells what becomes true meanwhile. [Dispatcher.Events] reads
// what became true in a run that anybody runs. [Options.Observe] sees from inside what this
// dispatcher does.
//
// Every entry of a run's log is one [Event] with its number, told when the entry is durable. A
// reader that comes back with the number of the last one it has seen goes on behind it, without a
// gap or a repeat. What a node emits, and other live notices, are told once, to whoever reads at
// the moment. A slow reader misses such notices and never holds up a run.
//
// # Promises
//
//   - A visit whose entry is durable and not voided is never run again. One that was cut off may
//     be, under the same idempotency key.
//   - An effect ([dag.Effect]) that has ended is never done again. One of which nobody knows
//     whether it happened is in doubt, and not repeated.
//   - A cancelled call that brings a run on returns within [Options.Grace], whatever nodes and
//     stores do; a stream does if the store heeds its context.
//   - No goroutine outlives the call that started it, except a node or a store call that was
//     abandoned, which the result names.
//   - States and cursors do not depend on the order in which parallel nodes finish.
//
// # Hooks
//
// [Options.Hooks] has OnStart and OnEnd, a pair around every call in which a run is at work, and
// interceptors, which stand around visits of nodes that know nothing of them. Before a visit an
// [Interceptor] rules [Continue], [Instead], [Ask] or [Deny]; after it, it says [Keep] or
// [Replace]. The most restrictive ruling counts. A ruling that says nothing, breaks or can't be
// followed fails the visit before its function has begun. An approval is durable, and is for that
// question and visit alone. The log has whatever is not the node's own doing, with who did it.
//
// # Check
//
// What the Check of a state (see package state) refuses does not count:
//
//   - At the end of a superstep the run fails, with a [*FaultError] of kind check. All of the
//     superstep is taken back, and runs again at the next resume.
//   - An Edit, a Fork with one, and a resume are refused with such an error, and nothing has
//     changed.
//   - The input of Run, Start, Create and Turn is refused with a FaultError of kind input. Queued
//     input is passed over, and Result.Warnings says so.
//   - If the in of an Embed or EachGraph has written it, its visit fails, with a [*NodeError] of
//     kind state.
//
// # Questions
//
// A question that a node asks ([dag.Ask]) is an interrupt with an id. Any code that has the store
// can end it, while the run is live or at rest. Each question ends once, and an answer that was
// accepted is the one that the node gets.
//
//   - [Dispatcher.Answer] ends one, [Dispatcher.Answers] several at once, all or none.
//   - [Dispatcher.Skip] ends one without an answer.
//   - [Answering] has the call that goes on with the run answer first.
//
// A question that expires ends by itself: at its instant if the run is live, and otherwise with the
// next call that goes on, since a run that only waits for people rests and nothing of it runs.
// [InterruptKind] lists what else a visit may wait for.
//
// # Gates
//
// [Options.Gates] say which visits and which effects a person has to approve: by what they were
// declared to do, by name, or by a function. What waits for an approval has not begun. It is an
// interrupt that Approve or Reject answers, and an approval is spent once.
//
// # Effects in doubt
//
// An effect that began and did not end is in doubt. It may have happened, so it is not done again,
// unless it is dag.Replayable. The effect declares with dag.InDoubt what becomes of its visit: its
// node is told, a person is asked by an interrupt, or the visit fails. Then:
//
//   - [Dispatcher.Open] tells what is in doubt and under which key the other side knows it;
//   - somebody looks there;
//   - [Dispatcher.Resolve] says [Happened], with what the effect returned, or [NotHappened];
//   - the next Run or Resume goes on.
//
// With [Manual] a call refuses to go on before that. The log keeps who said what.
//
// # Forks and rewinding
//
// A checkpoint is a place to go on from. [Dispatcher.Fork] makes other runs that begin there;
// instead of doing effects again they take what these returned behind it. [Dispatcher.Rewind] lets
// the run itself go back, in its own log, under other idempotency keys. [Dispatcher.Lineage] tells
// where a run comes from, [Dispatcher.Blame] who wrote each cell. [Dispatcher.Trim] and
// [Options.Retention] drop the past that nobody needs.
//
// # Changed graphs
//
// A run that another graph has made can always be looked at ([Dispatcher.Open]), cancelled and
// answered, effects of it can be resolved, and its events can be read. Its state can be read if
// every cell that holds something has the same type in this graph, or if a [Migration] knows the
// way. A checkpoint from before a migration that is in the log is read through the one of
// [Options].Migrations that leads from the graph of that time to this one.
//
// The run goes on if its past is the same in this graph: what has settled or is open, with the same
// edges before it, and every cell that holds something. Otherwise a [*GraphChangedError] says what
// stands in the way, and nothing has changed; a Migration may know the way round.
//
// # Inside
//
// The machine (machine*.go and frame.go) holds every rule and is pure. A run's owner, one goroutine
// at a time, asks it what may follow, does that, and makes it durable. Other goroutines are the
// bodies of parallel visits.
//
// # Words
//
// For those who know an agent SDK: resume with the strategy crash is Resume, with the strategy
// manual it is [Dispatcher.Open] and [Manual]; its overrides are [Settings], Options and the graph
// that the program has now. A sealed tool call is an effect in doubt, with its phase and advice
// ([Opened]), and [Dispatcher.Resolve] unseals it. A snapshot is a [Dispatcher.Tag]; every
// checkpoint is a safe fork point. Breakpoints are events, hooks are interceptors, permission modes
// are [Gates], the pool is package supervisor.
//
// For those who know a graph engine: a thread is a run; get_state is State, get_state_history
// [Dispatcher.HistoryOf], get_state_at At, update_state Edit; the recursion limit is
// [Limits].Supersteps; a checkpointer is a checkpoint.Store.
package dispatcher
