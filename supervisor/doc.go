// Package supervisor runs many runs of many graphs in one process: so many at once, each in its
// turn, and in a way that the process can end and begin again.
//
//	s, err := supervisor.New(store, supervisor.Options{Cap: 8}, orders, invoices)
//	go recoverAll(ctx, s)                                        // calls s.Recover: what the last process left
//	task, err := supervisor.Submit(ctx, s, orders, tenant, "order-7", input)
//	res, err := task.Wait(ctx)                                   // or don't
//	drained, err := s.Drain(ctx)                                 // when the process is to end
//
// A [Supervisor] holds dispatchers as [Runner] values, whatever their states are. A run that is
// submitted waits in a queue until fewer than [Options].Cap runs are at work. The queue has keys,
// which may be tenants. Keys take turns, so that nobody waits behind all the runs of somebody else.
// [Options].AtWork bounds how many runs of one key are at work at once. Who submits a run that
// waits or is at work joins it: it is not run twice.
//
// A run that waits in the queue is in memory alone until it begins. To acknowledge work before it
// is done, make the run durable first, by dispatcher.Dispatcher.Create, which runs nothing. Then
// [Supervisor.Continue] begins it in its turn, or [Supervisor.Recover] in the next process. A
// [Drain] names the runs that never began, in Waiting.
//
// # Whose a run is
//
// A run that was submitted belongs to the supervisor. It gets the values of the submission's
// context, but neither its end nor its deadline. With a context that is done already nothing is
// submitted. The context of a Wait ends that waiting and nothing else. Who has only the id of a run
// waits for it by [Supervisor.Task].
//
// A run ends early in three ways:
//
//   - dispatcher.Dispatcher.Cancel ends it, by its id. A run that is cancelled before its turn
//     stays so if it was to be recovered, and for a [Supervisor.Continue] that was called before
//     the Cancel: a Cancel that returned nil holds. A Continue that comes behind it goes on with
//     the run, and so does [Submit], whenever it came, as dispatcher.Dispatcher.Run does.
//   - [Task.Withdraw] takes it out of the queue, and leaves the store as it was.
//   - [Supervisor.Drain] leaves all runs to the next process.
//
// # Ending and beginning
//
// [Supervisor.Drain] refuses what is new, lets nodes that run finish, and leaves the runs in the
// store as they stand. [Supervisor.Recover] goes on with:
//
//   - runs that were left running, by a Drain or by a process that died;
//   - runs that were opened or rewound, and not gone on with since: they are Pending;
//   - runs that were answered, and not gone on with since: they are Interrupted still, and Recover
//     goes on with them only with [Options].Answered. Without it a service looks for them when it
//     begins, by their Result.Interrupts, and calls Continue.
//
// All others rest, and are left to whoever resumes them.
//
// A completed run for which input waits (dispatcher.Dispatcher.Enqueue) is left as well: whoever
// submits it next has the input taken. A service that takes input enqueues it, then submits the run
// or continues it, and acknowledges the input then. It is taken by the call that is at work, or by
// a further one. If the service dies, or drains, in between, the input waits.
//
// Recover returns when all that it recovered rests, which may take as long as the longest of those
// runs. A service therefore starts it in a goroutine of its own, and takes new work at once: the
// old and the new share Cap and the queue's turns. It waits for that goroutine after it has
// drained. A Drain ends a Recover. Runs that it brought back and that did not rest by then are in
// [Recovery].Left, and the next process's Recover goes on with them. The example of a service shows
// the whole.
//
// # A store without room
//
// A run for which the store has no room (checkpoint.ErrFull) waits for some, and no other run
// begins until there is:
//
//   - The run that was refused waits again, at the head of its key. [PutBack] tells of it, and its
//     Task is not done. If it had begun, it goes on later as with Recover. One that was deleted
//     meanwhile is not begun anew: its Task ends with checkpoint.ErrNotFound, unless it was
//     submitted since.
//   - A second later one run tries the store. If it is refused it waits behind the others of its
//     key, and the next one tries after twice as long, at most half a minute. If it had nothing to
//     write, the next one tries at once.
//   - All begin again when a run that tries comes to rest, or is still at work when the next one
//     would try. Runs that were at work before tell nothing of that. If the store is full again
//     before any run has come to rest, the next wait is longer still.
//   - A run may find no room where others do, as one of large values where small ones still fit. It
//     does not wait for ever: it ends with checkpoint.ErrFull when it was refused four times more
//     while others came to rest and it came no further.
//   - A call of [Go] is made again if its run is not in the store, since it has changed nothing
//     then. Otherwise it ends with checkpoint.ErrFull, and Recover goes on with the run.
//   - A Drain does not wait for room. Runs that do are in [Drain].Waiting if the store has nothing
//     of them, else in Left.
//
// An ErrFull that a node, a hook or dispatcher.Options.Revalidate has returned is of another store,
// and keeps nobody waiting.
//
// A Supervisor has a goroutine for each run at work, a timer while it waits for room, and no other:
// there is nothing to close.
package supervisor
