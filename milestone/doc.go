// Package milestone names checkpoints of runs by what happens in them.
//
//	names, err := milestone.New(d,
//		milestone.Every(10),                 // each tenth superstep
//		milestone.Node("validate"),          // a visit of this node is done
//		milestone.Change("Phase"),           // a cell has another value
//		milestone.Rises("Confidence", 0.8),  // a number goes over a threshold
//		milestone.Decision(), milestone.Effect(), milestone.Recovery(), milestone.Fork())
//	…
//	err = names.Follow(ctx, "inquiry-42")  // beside the run, until ctx is done
//	all, err := names.Name(ctx, "inquiry-42")  // or when it rests, or at any time later
//
// Every superstep is durable, named or not. A milestone is a tag (dispatcher.Dispatcher.Tag).
// dispatcher.At, Fork, Rewind and Diff find the checkpoint by it, at "tag:" and the tag or at
// [Milestone.Address], and Trim keeps it if its Retention has Tagged.
//
// # Nothing is named twice, or forgotten
//
// Which checkpoints have names follows from the log alone. A rule about a change compares with the
// value at the checkpoint before, as the log has it; in a fork that is the one of its origin. So it
// makes no difference who names, how often, how late, or how many processes died on the way: the
// names are the same.
//
// A tag is the rule's name and the number of the entry, "change Phase planning #17". A tag that is
// there already is left as it is. A value that has the form of a secret is not told in a tag.
//
// What a visit does is named with the superstep that it counts in, of the innermost frame that has
// one. Voids and rewinds change what counts:
//
//   - What was voided, or left behind by a rewind, before that superstep ended is not named.
//   - An effect that began before the checkpoint to which a rewind went, and ended behind it, is
//     kept by the rewind and not named.
//   - If a run goes back to before a void, into a superstep that had ended, or to what an earlier
//     rewind had left behind, it has what had come about there. The superstep that ends then is
//     named for it.
//
// After a Dispatcher.Trim naming begins where the log does, and takes what it finds there as given.
//
// A [Namer] reads a log from its beginning when it first meets the run, and after that from where
// it stopped. For each rewind it reads once more up to where the rewind went back to. It holds no
// goroutine.
package milestone
