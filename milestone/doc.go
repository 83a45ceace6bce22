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
// Every superstep is durable whatever is named. A milestone is a tag (dispatcher.Dispatcher.Tag):
// with it dispatcher.At, Fork, Rewind and Diff find the checkpoint, at "tag:" and the tag or at
// [Milestone.Address], and Trim keeps it if its Retention has Tagged.
//
// # Nothing is named twice, or forgotten
//
// Which checkpoints have names follows from the log alone. A rule that speaks of a change compares
// with the value at the checkpoint before, as the log has it, in a fork with that of its origin; so
// it makes no difference who names, how often, how late, or how many processes died on the way: the
// names are the same ones. A tag is the rule's name and the number of the entry, "change Phase
// planning #17", and one that is there is left as it is. What has the form of a secret is not told
// in a tag.
//
// What a visit does is named with the superstep that it counts in, of the innermost frame that has
// one; what was voided, or left behind by a rewind before that superstep ended, is not named, nor
// is an effect that ended behind the checkpoint to which a rewind went and is kept, since it began
// before. A run that goes back to before a void, into a superstep that had ended, or to what an
// earlier rewind had left behind has what had come about there, and the superstep that ends then is
// named for it. Behind a Dispatcher.Trim naming begins where the log does, and takes what it finds
// there as given.
//
// A [Namer] reads a log from its beginning when it first meets the run, and from where it stopped
// after that; for each rewind once more up to where that goes back to. It holds no goroutine.
package milestone
