// Package memory is a [checkpoint.Store] that forgets when the process ends. It is the executable
// meaning of Store: every rule of that contract can be read here, in the fewest lines, and package
// storetest holds other stores to it.
//
// The zero value is an empty store, and may not be copied:
//
//	d, err := dispatcher.New(graph, &memory.Store{}, dispatcher.Options{})
//
// It keeps what a durable store keeps, the sealed envelope of every append, and reads it back
// through the same checks. Nothing that it calls durable outlives the process.
//
// A [Faulty] is a store for tests. It does what a disk and a machine do to a store: writes whose
// outcome nobody knows, reads and writes that fail, hang or are slow, a crash that loses what was
// not durable, damage.
//
//	s := &memory.Faulty{Unsynced: true}
//	…                              // a program at work
//	s = s.Crash(3)                 // the power fails, and the last three writes are lost
package memory
