// Package storetest is the suite that every [checkpoint.Store] has to pass, yours too.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Factory{
//			Open: func(t testing.TB, dir string) checkpoint.Store { return open(t, dir) },
//			Reopen: func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store {
//				s.(*mine.Store).Close()
//				return open(t, dir)
//			},
//		})
//	}
//
// Each case is a rule of the contract, in a subtest named group/case with a store of its own. A
// case that fails says the rule beside what it saw. Cases run side by side.
//
// A [Factory] has to say how a store is opened. What else it offers decides what else is checked:
//
//   - Reopen: all is there when the store is opened again.
//   - Crash: what is left after a crash.
//   - Corrupt: damage is found.
//   - Fill: what the store does when it has no room.
//   - Limits: what the store does when it is given too much.
//
// What the Factory does not offer is skipped, each case by its name.
//
// Cases in the group leases are about leases that have an end ([checkpoint.Lease.Until]), and wait
// for it: have Open give leases that last for seconds. The cases are skipped if the leases of the
// store have no end, or last for longer than a minute.
//
// Stores that break one rule each, and the cases that find them, are in this package's tests.
package storetest
