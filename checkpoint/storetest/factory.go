package storetest

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Factory makes the stores that are checked, and does to them what may happen to a store. Its
// functions are called from many tests at once. Each is given the test, which it may fail, skip or
// give a Cleanup, and dir, which names the store. dir is an empty directory that ends with the
// test, the same in all calls about one store; a store that keeps no files may take it as a name.
type Factory struct {
	// Open opens a store that is new and empty, and closes it in a Cleanup if it has to be closed.
	Open func(t testing.TB, dir string) checkpoint.Store

	// Reopen closes s in good order, and opens again what it has stored, as the next process would.
	// Zero means that the store is not durable.
	Reopen func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store

	// Crash ends s at once and opens what is left. It does what the death of the process does, or,
	// if the store promises to survive one, a power cut. Calls of s that are under way end with an
	// error, unless they were acknowledged before; what was not acknowledged may be lost. Zero
	// means that crashes are not tried.
	Crash func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store

	// Corrupt damages what s has stored, and returns the store that then has it: s, if s reads what
	// is stored whenever it is asked, or another store, opened after s was closed. An error says
	// that the damage was found when the store was opened. Skip damage that the store can't suffer
	// with t.Skip. Zero means that damage is not tried.
	Corrupt func(t testing.TB, dir string, s checkpoint.Store, d Damage) (checkpoint.Store, error)

	// Fill takes away the room for further writes until free is called. Zero means that this is not
	// tried.
	Fill func(t testing.TB, dir string, s checkpoint.Store) (free func())

	Limits Limits
}

// Limits says how much a store holds. The zero Limits are good for a store without limits that
// matter.
type Limits struct {
	// Append is the most bytes that the entries of one append may have; more are ErrTooLarge. Zero
	// means that this is not tried.
	Append int

	// Large is the size, in bytes, of the largest append, snapshot, message, graph and base that
	// the suite stores. Zero means 12 MiB, which every store of the states of people's programs
	// should hold.
	Large int
}

const mostLarge = 12 << 20

// Damage is what has happened to a thing that a store keeps. It is done to what is stored, below
// all checks of the store.
type Damage struct {
	Kind DamageKind
	At   Place // what was damaged
	From Place // for Foreign and Older: what is in its place, of the same part
}

// A Place is a thing that a store keeps of a run.
type Place struct {
	// Part is PartLog for an append, PartSnapshot for a snapshot, PartPosts for a message, PartBase
	// for a base, and PartInfo for all else that is kept of the run.
	Part checkpoint.Part
	Run  string
	// Seq is the number of an entry of the append, which any of its entries may give, or of the
	// snapshot's head. For a PartInfo that is Older it is the head that the run had when that was
	// kept of it.
	Seq uint64
	ID  string // of the message, or the digest of the base
}

// DamageKind says what has happened to a thing.
type DamageKind int

const (
	Flipped DamageKind = iota + 1 // one bit of it differs
	Lost                          // it is gone; never a snapshot, which nobody needs, nor a message
	Foreign                       // such a thing of another run is in its place
	Older                         // an older one of the same run is in its place
	// Forged: an append says something else, and has the checksum of that: [Forge] makes it.
	Forged
)

func (k DamageKind) String() string {
	switch k {
	case Flipped:
		return "flipped"
	case Lost:
		return "lost"
	case Foreign:
		return "foreign"
	case Older:
		return "older"
	case Forged:
		return "forged"
	}
	return "unknown damage"
}

// A need is what a group of rules needs of a Factory.
type need int

const (
	nothing need = iota
	reopening
	crashing
	corrupting
)

// lacks says why the rules of a group can't be checked, "" if they can.
func (f Factory) lacks(g group) string {
	switch {
	case g.needs == reopening && f.Reopen == nil:
		return "not checked: Factory.Reopen is nil, so nobody knows what is there when the store is opened again"
	case g.needs == crashing && f.Crash == nil:
		return "not checked: Factory.Crash is nil, so nobody knows what is left after a crash"
	case g.needs == corrupting && f.Corrupt == nil:
		return "not checked: Factory.Corrupt is nil, so nobody knows whether damage is found"
	}
	return ""
}
