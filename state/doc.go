// Package state defines what a graph's state is made of: cells, whose types say how
// parallel writes to them merge.
//
// A state is a struct of cells, possibly grouped in nested structs. Its zero value
// works, and the wrong operation on a cell does not compile.
//
//	type Inquiry struct {
//		Query state.Value[string] // two parallel writers are an error
//		Books state.List[Book]    // parallel appends join in declared order
//		Cost  state.Sum[int]      // parallel additions add up
//		Best  state.Fold[Rated]   // merges by Rated's own Merge
//	}
//
// # What merges
//
// In one superstep every node writes to a draft of its own. When the superstep ends the
// drafts' deltas are applied in declaration order. Writes that merge may meet in one
// cell; an exclusive write conflicts with any other to the cell ([ConflictError]).
//
//	cell       merges                                   exclusive
//	Value      –                                        Set, Clear, Update
//	List       Append                                   Replace, Truncate, SetAt
//	Map        Put, Delete on different keys            on one key; Replace, Clear
//	Set        Add; Remove of others                    Add and Remove of one element; Clear
//	Sum        Add                                      Set
//	Fold       Merge (associative)                      Set
//	Whole      –                                        Set, Clear, Update
//
// # What a node reads is what the log holds
//
// A written value is encoded as JSON at once. Plain values (no pointer, map, slice or
// marshaller of their own) are shared between readers; of any other value each read
// returns a copy of its own, which the reader may change without effect. [Frozen] opts
// out of the copy for readers who promise not to change what they get. [Of] refuses
// types that JSON can't bring back; a value that can't be encoded, or holds invalid
// UTF-8, fails the visit that wrote it.
//
// Cells are written to with their methods. One that is assigned to, alone or with the struct
// around it (*s = S{}), would be seen by the node and lost: that fails the visit, or refuses the
// call, with an [AssignError]. A Check() error of the state may only read.
//
// A draft, like any Go value, may be used by one goroutine at a time: a node whose
// goroutines write to it side by side has to order them itself.
//
// # What a value is after it was saved
//
// It is what encoding/json makes of it, there and back, from when it is written: the node that
// wrote it reads the same. nil and empty stay apart, and numbers are as they were. Not as they were
// written are:
//
//   - a field that the option omitempty or omitzero left out: it is zero, so an empty list is nil;
//   - a pointer to what JSON says as null: it is nil. A nil json.RawMessage is null, and another
//     one has no space between its values;
//   - a time.Time: of its zone it has the offset, and no name. If that offset has seconds, as those
//     of the 19th century have, they are cut and the instant moves by them: write t.UTC(). A key of
//     a [Map] keeps the instant;
//   - pointers to one value: each points to one of its own.
//
// # What a state may be
//
// A state with a method Check says itself what it may be:
//
//	func (q *Inquiry) Check() error // nil if q may be so
//
// A dispatcher asks it before a state counts: of what a run or a turn begins with, of what the in
// of an Embed or EachGraph has written, at the end of each superstep, and of what an Edit makes of
// it; and, of all frames that are open, when a run that rests or was left goes on, since another
// version of the program may allow less. It has a pointer receiver, may only read, and may keep
// nothing. It is asked of the whole state, not of structs inside it, nor of the struct of a [Whole]
// that is the state: make that a field of a struct with a Check. Package dispatcher says what comes
// of its error.
//
// # For dispatchers
//
// [Schema], [Image] and [Delta] are the untyped side: a schema is read once from a
// struct type, an image is one state in memory, a delta is exactly what one draft wrote.
// Applying a delta needs no user types: a schema rebuilt from its JSON ([Schema.MarshalJSON])
// folds what the original folds, but for [Fold] cells, whose merged results are data.
package state
