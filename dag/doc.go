// Package dag says what a graph is: typed nodes over a state type, what each node
// follows, and the errors a graph can have before anything has run.
//
// A [Builder] collects nodes; [Builder.Build] freezes them into a [Graph] or returns
// every problem at once. A node names what it follows when it is created, so a cycle
// cannot be written; repetition is a node of its own ([Loop]), and so is doing a thing for
// each item of a list ([Each]).
//
//	b := dag.New[Inquiry]("archivist")
//	classify := dag.Route(b, "classify", Classify, []Intent{Search, OffTopic})
//	library := dag.Step(b, "library", lib.Search, classify.On(Search))
//	dag.Step(b, "respond", Respond, library, classify.On(OffTopic))
//	graph, err := b.Build()
//
// # Joining
//
// A node waits until everything it follows has settled: done, skipped, or failed with its failure
// edge taken. It runs if all those edges were taken, and is otherwise skipped, which settles it
// too.
//
// Edges that exclude each other, such as two outcomes of one [Route], count as one: the node runs
// if one of them was taken. Where some edges may be taken and others not, the graph has to say
// which it means, with [All] or [Any]; Build names the node that doesn't. Build follows branches
// through the nodes that join them to see that only one can be taken, as long as a node can be
// reached in at most eight ways that differ in more than one route. Beyond that it asks for the
// word too, and [Any] is the right one.
//
// # Ends
//
// Every outcome of a [Route] or [Choose] is followed by a node or by [End]. [Fail] is an end at
// which the graph fails.
//
// # Inside a node
//
// A node is a function of a context and a *S. [Key], [Attempt], [Ask], [Reply], [Effect], [Emit],
// [Depends], [Settings] and [Failures] work on that context. Outside a run they do something
// sensible, so that a node can be tested by calling it, and refuse what a run would refuse; package
// dagtest scripts what a node may ask for.
//
// A node may run more than once, so what it does outside its state may happen more than
// once. [Effect] does a thing at most once; package pawltest finds nodes that forgot.
package dag
