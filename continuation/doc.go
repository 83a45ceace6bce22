// Package continuation gives the waits of a graph bounds: who may end them, with what, until when,
// and how often that may go wrong; and follow-ups, when what waited has come to its end.
//
// A node waits with [Await]. A wait is an interrupt of its visit, and its life is what the log of
// the run says of that interrupt: there is no second store and no second machine. [Runtime.Sweep]
// says what a clock that jumps does to it.
//
//	r, err := continuation.Await[Address](ctx, "address", continuation.Wait{
//		Kind: continuation.KindReply, Key: chat, Question: "Where to?", Within: 2 * time.Hour,
//	})
//
// Outside, a [Runtime] over the graph's dispatcher takes triggers, of whatever transport
// ([Runtime.Handler] takes them over HTTP). A [Trigger] that is accepted is durable, once, and the
// run goes on; one that is refused has changed nothing, and its error says why.
//
//	rt, err := continuation.New(d, continuation.Options{})
//	out, err := rt.Trigger(ctx, continuation.Trigger{
//		ID: msg.ID, Key: chat, Kind: continuation.KindReply, Payload: msg.Body,
//		Actor: continuation.Actor{ID: "ann", Authority: dag.Human},
//	})
//	go rt.Serve(ctx, nil) // expiries, wakes, what a crash has left, deliveries
//
// # What a status means
//
// The status of a wait is read from the log of its run:
//
//   - Pending: the visit waits. So it does when its attempt has failed behind a trigger. Pending is
//     also a wait that was answered while nobody is at work on the run (View.Trigger tells, and
//     Recover goes on with that trigger), and one whose frame was voided: it is asked anew if the
//     run comes there, and takes no trigger before.
//   - Claimed: the wait was answered, and the run is at work.
//   - Resolved: the visit is done, or has asked something else, also behind a Default.
//   - Expired: the instant of the wait has ended it, with no Default and nothing further to ask; or
//     a timer that says Expire missed its wake.
//   - Cancelled: a user or a program cancelled the run; or the wait was denied and a denial
//     cancels; or it was skipped.
//   - Superseded: Supersede cancelled the run; or a turn has begun or the run was rewound
//     meanwhile; or the visit has asked something else in its place.
//   - Failed: the visit has failed for good, and its superstep has ended or the run rests; or the
//     bounds of the wait are used up; or the run has failed, and no wait of it is tried again; or
//     the run has timed out, or was cancelled for any other reason.
//
// Of what lies before a trim the log tells only what still waits, and which triggers it took.
//
// A process that calls the dispatcher's Run, Turn or Resume does what a Runtime does: wakes and
// expiries that are due end, and triggers that were accepted count. [Script] writes a Reply for a
// test of the node alone, with dagtest.
//
// # Answers without a Runtime
//
// The dispatcher's Answer can end a wait too, with what [Script] writes. The answer has to be a
// trigger of a kind and key that the wait takes, and for an approval it needs a decision. The
// dispatcher that asked refuses anything else, with dispatcher.ErrAnswerType, as long as it keeps
// the run in memory. An unfit answer that is given elsewhere ends nothing: the visit asks again
// when somebody goes on with the run, and its time begins anew.
//
// Nothing else that [Runtime.Trigger] checks is checked then:
//
//   - whether the answerer has the Authority, which the answer only claims;
//   - the bounds of a part of an [Any], and the wake of a timer;
//   - how often the wait was resumed;
//   - whether a trigger of the same id was there before.
//
// So let nobody answer this way who may not decide.
//
// # Words
//
// For those who know a continuation runtime: the harness is the graph, and a resumable outcome of
// it an Await; create is the start of a run, resume is [Runtime.Trigger], stop [Runtime.Stop], get
// [Runtime.Get]; the store is the dispatcher's; the scheduler is [Runtime.Serve], or anything that
// calls [Runtime.Sweep]; the delivery adapter is a [Deliverer]; the trace sink is the run's events.
// Errors of invalid input are [*ArgumentError], the others have their names. A record that is
// asked the same again keeps its id.
//
// # Promises
//
//   - Of several triggers one counts. One that is repeated has the same [Receipt].
//   - What stands behind a wait runs for that trigger only, until it fails and the wait is asked
//     again.
//   - A wait expires once, and expiry comes before any trigger of that instant.
//   - A stop is final for triggers, or tells how the run had ended: only a call of the dispatcher's
//     own brings the run back.
//   - A process that dies leaves no wait stuck: [Runtime.Recover] goes on with what was accepted.
//   - How a run ended is durable before its follow-up is delivered, and a follow-up that was
//     delivered stays delivered.
package continuation
