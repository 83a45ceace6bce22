// Package record makes continuation records: what another agent, person or program has to know
// to go on with a run; and keeps them as versions that can be verified, merged and handed over.
//
// A [Record] tells the task, what was done, decided and learned, which questions are open and what
// they hold up, what stands in the way, which effects have happened and under which keys, what has
// to stay true, and where the work goes on. [From] reads it out of a run's log: nobody has to
// keep it beside the run, and equal logs give equal records. A [Ledger] keeps records in a store,
// and lets people and agents answer, approve, override and merge. [HandOver] begins other work
// where a record ends.
//
//	r, err := record.From(ctx, d, "inquiry-42", record.Options{Goal: "name the book"})
//	ledger, err := record.NewLedger(store, record.LedgerOptions{})
//	first, err := ledger.Create(ctx, r, agent)
//	last, err := ledger.Approve(ctx, "inquiry-42", point, ada)
//	work, err := record.HandOver(last.Record, point, time.Now())
//
// What nodes decide, learn, are blocked by and take for granted they say with dag.Decide,
// dag.Learn, dag.Block and dag.Require. Everything else the log tells by itself.
//
// # The format
//
// Members have the names of the published type ContinuationRecord, so its users can read these
// records; [Schema] is the format as JSON Schema. Records are hashed in canonical form (RFC 8785),
// so white space and the order of members mean nothing, and every other change is another hash.
// Numbers are those of IEEE 754; whatever else a run holds is told as a string.
//
// # What a ledger promises
//
//   - A version never changes, and names its author and the hash of the one before it.
//   - A change is conditional on the version that it was made to: of two writers one is told of the
//     other.
//   - An author who lacks the authority, or comes too late or too early, is refused by an error
//     that names the reason. A refusal has changed nothing.
//   - What needs a person is never passed over, neither because it is said to be safe nor because
//     its time is over.
//   - An effect is never dropped.
//
// [Ledger.Verify] names the earliest version that is broken. The root of a Merkle tree (RFC 6962)
// over all versions, kept elsewhere, shows later that they are still the ones that were there.
// Without such a root nobody can tell a record from one that was written anew from its beginning:
// records have no signatures.
//
// A ledger checks what an author may do; the program says who the author is. A record that names
// as approver or answerer somebody who could not be that is refused, by whichever way it comes in
// ([Record.Check]). That the one who is named really did it, the name alone does not prove.
//
// # The words of the published interfaces
//
//	create, get, getByHash             Ledger.Create, Get, GetByHash
//	update                             Ledger.Update, with the hash of the version that is changed;
//	                                   Ledger.Advance, if it is the run that has gone on
//	answerQuestion                     Ledger.Answer, Skip, Expire
//	approveResumePoint, deny…          Ledger.Approve, Deny, AutoApprove
//	overrideDecision                   Ledger.Override
//	getHistory, getAncestors           Ledger.History, Ancestors
//	verifyChain                        Ledger.Verify; Root, Inclusion and Consistency
//	diff, merge                        Ledger.Diff, Merge; Diff and Merge of records at hand
//	subscribe                          Ledger.Subscribe, of one record
//	CognitiveCheckpoint                a checkpoint of a run: dispatcher.Dispatcher.At, Tag
//	restoreFromCheckpoint              Dispatcher.Resume, Rewind, Fork; of a record HandOver
//	CognitiveNode, EpistemicState,     the state of a graph: examples/agent
//	IntentGraph
//	CheckpointTrigger                  package milestone
package record
