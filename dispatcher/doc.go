// Package dispatcher runs graphs: superstep by superstep, under a context, with every
// finished node durable before anything may follow from it.
//
// A [Dispatcher] joins a graph and a store. Its Run is the line that a program repeats
// after a restart: it starts a run, or goes on with it from where it stands.
//
//	d, err := dispatcher.New(graph, store, dispatcher.Options{})
//	res, err := d.Run(ctx, "inquiry-42", func(q *Inquiry) { q.Query.Set("labyrinth") })
//
// # Results
//
// err == nil means Completed. A run that came to rest otherwise returns a [*Rest] with
// its status, cursor, cause and pending interrupts; errors.Is finds [ErrInterrupted],
// context.Canceled (cancelled) and context.DeadlineExceeded (a deadline of the caller
// passed), errors.As the [*NodeError] of a node that failed. Refusals and errors of the
// store are themselves. The [Result] beside the error is never nil.
//
// # Events
//
// [Dispatcher.Stream] runs a run and tells what becomes true meanwhile, [Dispatcher.Events]
// reads what became true in a run that anybody runs, [Options.Observe] sees it from inside.
// Every entry of a run's log is one [Event] with its number, told when it is durable: a
// reader that comes back with the number of the last one that it has seen goes on behind it,
// without a gap or a repeat. What a node emits, and other live notices, are told once to who
// reads at the moment. A slow reader misses such notices and never holds up a run.
//
// # Promises
//
// A visit whose entry is durable is never run again; one that was cut off may be, under
// the same idempotency key. An effect ([dag.Effect]) that has ended is never done again, and
// one that nobody can tell of is in doubt, not repeated. A cancelled call returns within [Options.Grace], whatever
// nodes and stores do. No goroutine outlives the call that started it, but for a node or
// a store call that was abandoned, which the result names. States and cursors do not
// depend on the order in which parallel nodes finish.
//
// # Hooks
//
// [Options.Hooks] has OnStart and OnEnd, a pair round every call in which a run is at work,
// and interceptors, which stand round visits of nodes that know nothing of them. Before a
// visit an [Interceptor] rules [Continue], [Instead], [Ask] or [Deny]: the most restrictive
// counts, an approval is durable and spent once, and what says nothing, breaks or can't be
// followed fails the visit before its function has begun. After one it says [Keep] or
// [Replace]. Whatever is not the node's own doing is in the log, with who it was.
//
// # Changed graphs
//
// A run that another graph has made can always be read, cancelled and answered. It goes on
// if its past is the same in this graph: what has settled or is open, with the same edges
// before it, and every cell that holds something. Else a [*GraphChangedError] says what
// stands in the way, and nothing has changed; a [Migration] may know the way round.
//
// # Inside
//
// machine.go holds every rule and is pure; a run's owner, one goroutine at a time, asks
// it what may follow, does it, and makes it durable. Other goroutines are the bodies of
// parallel visits.
package dispatcher
