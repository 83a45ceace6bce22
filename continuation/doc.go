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
// # What a status is a reading of
//
//	pending     Interrupted; again after an AttemptFailed behind a trigger; or Answered, and nobody is
//	            at work on the run: View.Trigger tells, and Recover goes on with that trigger; or Voided
//	            with its frame: it is asked anew if the run comes there, and takes no trigger before
//	claimed     Answered, and the run is at work
//	resolved    Done of its visit, or the visit has asked something else; also behind a Default
//	expired     Answered by its instant, with no Default and nothing further to ask; or by a wake that was
//	            missed, if the timer says Expire
//	cancelled   Cancelled; or Answered with a denial that cancels; or skipped
//	superseded  Cancelled by Supersede; or a turn has begun, or the run was rewound, meanwhile; or the
//	            visit has asked something else in its place
//	failed      AttemptFailed for good, when the superstep has ended or the run rests behind it, or the
//	            bounds are used up; Failed, and no wait of the run is tried again; TimedOut; or
//	            Cancelled for any other reason
//
// Of what lies before a trim the log tells only what still waits, and which triggers it took.
//
// A process that calls the dispatcher's Run, Turn or Resume does what a Runtime does: wakes and
// expiries that are due end, and triggers that were accepted count. [Script] writes a Reply for a
// test of the node alone, with dagtest.
//
// # Answers without a Runtime
//
// The dispatcher's Answer can end a wait too, with what [Script] writes. What is no trigger of a
// kind and key that the wait takes, as {}, or of an approval has no decision, is refused with
// dispatcher.ErrAnswerType where the dispatcher that asked keeps the run as it rested; given
// elsewhere it ends nothing, as [Runtime.Recover], a trigger, or whoever else goes on with the run
// finds: the visit asks again, and its time begins anew. Nothing else of what [Runtime.Trigger]
// checks is checked then: not whether who answers has the Authority, which the answer only claims,
// nor the bounds of a part of an [Any], the wake of a timer, or how often the wait was resumed; and
// a trigger's id does not make two of them one. Let nobody answer so who may not decide.
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
// Of several triggers one counts, and one that is repeated has the same [Receipt]. What stands
// behind a wait runs for that trigger only, until it fails and the wait is asked again. A wait
// expires once, and expiry comes before any trigger of that instant. A stop is final for triggers,
// or tells how the run had ended: only a call of the dispatcher's own brings the run back. A
// process that dies leaves no wait stuck: [Runtime.Recover] goes on with what was accepted. How a
// run ended is durable before its follow-up is brought, and one that was delivered stays delivered.
package continuation
