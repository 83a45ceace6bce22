// Package supervisor runs many runs of many graphs in one process: so many at once, each in
// its turn, and in a way that the process can end and begin again.
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
// [Options].AtWork bounds how many of one key are at work at once. A run that is submitted while it
// waits or is at work is joined, not run twice.
//
// What waits in the queue is in memory alone: a run is durable from when it has begun. Whoever
// needs it to be so earlier keeps what it came from until then, or makes it before acknowledging
// it, by dispatcher.Dispatcher.Create, which runs nothing: [Supervisor.Continue] begins it in its
// turn, and [Supervisor.Recover] in the next process. [Drain].Waiting has those that never began.
//
// # Whose a run is
//
// A run that was submitted belongs to the supervisor. The context of a submission gives the run its
// values, and neither its end nor its deadline; with one that is done already nothing is submitted.
// That of a Wait ends the waiting. To end a run at work, cancel it by its id
// (dispatcher.Dispatcher.Cancel), or drain. One that waits in the queue is withdrawn by
// [Task.Withdraw], which leaves the store as it was. A recovered run that was cancelled when its
// turn comes stays so, and so does one that was cancelled since [Supervisor.Continue] was last called
// for it: a Cancel that returned nil holds. [Submit] goes on with such a run, as
// dispatcher.Dispatcher.Run does.
//
// # Ending and beginning
//
// [Supervisor.Drain] refuses what is new, lets what runs finish its nodes, and leaves the runs in
// the store as they stand. [Supervisor.Recover] goes on with every run that was left so, by a Drain
// or by a process that died, and with those that were opened or rewound and not gone on with since.
// Runs that rest otherwise, interrupted, failed, cancelled or timed out, are left to whoever
// resumes them. So is one that was answered before the process died and had not been gone on with:
// it is Interrupted still. With [Options].Answered Recover goes on with such runs as well; or a
// service looks for them when it begins, by their Result.Interrupts, and calls Continue. Recover
// does not look for completed runs either for which input waits (dispatcher.Dispatcher.Enqueue):
// whoever submits such a run next has it taken.
//
// Recover returns only when all that it recovered has come to rest, which may take as long as
// the longest of those runs. A service therefore starts it in a goroutine of its own, takes
// new work at once (the old and the new share Cap and the queue's turns), and waits for that
// goroutine after it has drained. A Drain ends it: runs that it brought back and that were
// not at rest by then are in [Recovery].Left, they stand in the store as they are, and the
// next process's Recover goes on with them. The example of a service shows the whole.
//
// # A store without room
//
// While the store says checkpoint.ErrFull no run begins. The one that it refused waits again, at
// the head of its key: with [PutBack] told of it, and its Task not done. A second later one run
// tries the store, and if that is refused it waits behind the others of its key, and the next one
// tries twice as long behind it, at most half a minute. The first that comes to rest, or is at work
// still when the next one would try, ends that; if the store is full again before any has come to
// rest, the next wait is longer still. A run that had begun waits so too, and goes on as with
// Recover. One that is refused four times more where others have come to rest meanwhile, as
// one of large values may be while small ones still fit, waits no more: it ends with
// checkpoint.ErrFull. A call of [Go] is made again only if its run is not in the store, where it
// has changed nothing; else it ends with checkpoint.ErrFull, and Recover goes on with the run. A
// Drain does not wait for room: it tells what waits so, in [Drain].Waiting if nothing of it is in
// the store, else in Left.
//
// A Supervisor has a goroutine for each run at work, a timer while it waits for room, and no other:
// there is nothing to close.
package supervisor
