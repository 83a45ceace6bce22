// Package storetest is the suite that every [checkpoint.Store] has to pass.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) checkpoint.Store { return new(memory.Store) })
//	}
//
// Each case is a rule of the contract, said in its comment. Cases run side by side, each
// with a store of its own. A store that can be opened again passes [RunDurable] as well.
package storetest
