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
// Write to cells with their methods. A cell that is assigned to, alone or with the struct around it
// (*s = S{}), would show the new value to the node and then lose it: that fails the visit, or
// refuses the call, with an [AssignError]. A Check() error of the state may only read.
//
// A draft, like any Go value, may be used by one goroutine at a time: a node whose
// goroutines write to it side by side has to order them itself.
//
// # What a value is after it was saved
//
// It is what encoding/json makes of it, there and back, from the moment it is written: the node
// that wrote it reads the same. nil and empty stay apart, and numbers are as they were. These
// change:
//
//   - A field that the option omitempty or omitzero leaves out is zero, so an empty list is nil.
//   - A pointer to something whose JSON is null is nil. A nil json.RawMessage is null, and any
//     other one has no space between its values.
//   - A time.Time keeps the offset of its zone and loses its name. If the offset has seconds, as
//     those of the 19th century do, they are cut and the instant moves by them: write t.UTC(). A
//     key of a [Map] keeps the instant.
//   - Pointers to one value become pointers to copies of their own.
//
// # What a state may be
//
// A state with a method Check says itself what it may be:
//
//	func (q *Inquiry) Check() error // nil if q may be so
//
// A dispatcher asks it before a state counts:
//
//   - about what a run or a turn begins with;
//   - about what the in of an Embed or EachGraph has written;
//   - at the end of each superstep;
//   - about what an Edit makes of a state;
//   - about all frames that are open, when a run that rests or was left goes on, since another
//     version of the program may allow less.
//
// Check has a pointer receiver, may only read, and may keep nothing. It is asked about the whole
// state, not about structs inside it. If the state is a [Whole], Check of its struct is not asked:
// make the Whole a field of a struct with a Check. Package dispatcher says what comes of its error.
//
// # For dispatchers
//
// [Schema], [Image] and [Delta] are the untyped side: a schema is read once from a
// struct type, an image is one state in memory, a delta is exactly what one draft wrote.
// Applying a delta needs no user types: a schema rebuilt from its JSON ([Schema.MarshalJSON])
// folds what the original folds, but for [Fold] cells, whose merged results are data.
package state
