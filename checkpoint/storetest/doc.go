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
// Each case is a rule of the contract, in a subtest named group/case with a store of its own; one
// that fails says the rule beside what it saw. Cases run side by side.
//
// A [Factory] has to say how a store is opened. What else it offers is what else is checked: that
// all is there when the store is opened again (Reopen), what is left after a crash (Crash), that
// damage is found (Corrupt), and what a store does that has no room (Fill) or is given too much
// (Limits). What it does not offer is skipped, each case by its name.
//
// Cases in the group leases are about leases that have an end ([checkpoint.Lease.Until]), and wait
// for it: have Open give leases that last for seconds. They are skipped if those of the store have
// none, or last for longer than a minute.
//
// Stores that break one rule each, and the cases that find them, are in this package's tests.
package storetest
