// Package record makes continuation records: what another agent, person or program has to know
// to go on with a run.
//
// A [Record] tells the task, what was done, decided and learned, which questions are open and what
// they hold up, what stands in the way, which effects have happened and under which keys, what has
// to stay true, and where the work goes on. [From] reads it out of a run's log: nobody has to
// keep it beside the run, and equal logs give equal records.
//
//	r, err := record.From(ctx, d, "inquiry-42", record.Options{Goal: "name the book"})
//	data, err := r.Encode() // canonical JSON, for any program that knows the format
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
package record
