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
// submitted waits in a queue until fewer than [Options].Cap runs are at work. The queue is fair:
// its keys, which may be tenants, take turns, so nobody waits behind all the runs of somebody else;
// [Options].AtWork bounds how many runs of one key are at work at once. To submit a run that waits
// or is at work is to join it: it is not run twice.
//
// A run that waits in the queue is in memory alone until it begins. To acknowledge work before it
// is done, make the run durable first, by dispatcher.Dispatcher.Create, which runs nothing:
// [Supervisor.Continue] begins it in its turn, and [Supervisor.Recover] in the next process. A
// [Drain] names the runs that never began, in Waiting.
//
// # Whose a run is
//
// A run that was submitted belongs to the supervisor. The context of a submission gives the run its
// values, and neither its end nor its deadline; with one that is done already nothing is submitted.
// The context of a Wait ends the waiting alone. Who has the id of a run alone waits for it by
// [Supervisor.Task]. A run ends early in three ways:
//
//   - dispatcher.Dispatcher.Cancel ends it by its id. One that is cancelled before its turn comes
//     stays so, if it was to be recovered, or if [Supervisor.Continue] was not called for it since:
//     a Cancel that returned nil holds. [Submit] goes on with it, as dispatcher.Dispatcher.Run
//     does.
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
// All others rest, and are left to whoever resumes them. So is a completed run for which input
// waits (dispatcher.Dispatcher.Enqueue): whoever submits it next has the input taken. A service
// that takes input enqueues it, submits the run or continues it, and acknowledges it then: it is
// taken by a call that is at work, or by a further one. If it dies, or drains, in between, the
// input waits.
//
// Recover returns when all that it recovered rests, which may take as long as the longest of those
// runs. A service therefore starts it in a goroutine of its own, takes new work at once (the old
// and the new share Cap and the queue's turns), and waits for that goroutine after it has drained.
// A Drain ends it: runs that it brought back and that did not rest by then are in [Recovery].Left,
// and the next process's Recover goes on with them. The example of a service shows the whole.
//
// # A store without room
//
// While the store says checkpoint.ErrFull no run begins:
//
//   - The run that was refused waits again, at the head of its key. [PutBack] tells of it, and its
//     Task is not done. A run that had begun goes on later as with Recover: one that was deleted
//     meanwhile is not begun anew, and its Task ends with checkpoint.ErrNotFound, unless it was
//     submitted since.
//   - A second later one run tries the store. If it is refused, it waits behind the others of its
//     key, and the next one tries after twice as long, at most half a minute; at once if it had
//     nothing to write.
//   - The first of these that comes to rest, or is still at work when the next one would try, ends
//     that. One that was at work before does not. If the store is full again before any has come
//     to rest, the next wait is longer still.
//   - A run that is refused four times more while others come to rest and it comes no further, as
//     one of large values may be where small ones still fit, waits no more: it ends with
//     checkpoint.ErrFull.
//   - A call of [Go] is made again only if its run is not in the store, where it has changed
//     nothing; else it ends with checkpoint.ErrFull, and Recover goes on with the run.
//   - A Drain does not wait for room. It lists the runs that do in [Drain].Waiting if the store has
//     nothing of them, else in Left.
//
// A Supervisor has a goroutine for each run at work, a timer while it waits for room, and no other:
// there is nothing to close.
package supervisor
