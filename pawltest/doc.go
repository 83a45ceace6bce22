// Package pawltest tries graphs in ways that would take a test of one's own much patience: with a
// crash at every entry of the log, and against the log of an earlier run.
//
// [Crash] finds nodes that are not ready to run again: that charge a card outside an effect, keep
// what the next node needs in a variable, ask the clock, or range over a map.
//
//	func TestOrderSurvivesCrashes(t *testing.T) {
//		bank := &fakeBank{}
//		graph, err := newGraph(bank)
//		if err != nil {
//			t.Fatal(err)
//		}
//		pawltest.Crash(t, graph, func(o *Order) { o.Cents.Set(1999) }, pawltest.World(func() any { return bank.Charges() }))
//	}
//
// A node that stores a receipt it got by dag.Effect passes; one that calls the bank itself fails
// the test with "node charge ran twice outside an effect". A state that depends on how often a body
// ran fails it with "state differs after the crash at entry 7".
//
// [Replay] makes a regression test of a run that checkpoint.Export wrote to a file. Every visit in
// it runs again with the state that it saw, and has to write what the log says. Replay tells what
// it can't try because the run came to another graph later.
//
// A type with a marshaller of its own is kept under the path of its package. A package main has the
// path main in the program, and its import path in its tests, so Replay refuses the runs of a
// program with such types in main: put them into a package of their own.
//
// [Mortal] is the store of a process that dies at a write, for tests of programs that do more than
// run a graph.
//
// Crash and Replay need nothing but the graph: no store on disk, no process that is killed. To test
// one node alone, see package dagtest.
package pawltest
