package storetest

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Factory makes the stores that are checked, and does to them what may happen to a store. Its
// functions are called from many tests at once. Each is given the test, which it may fail, skip
// or give a Cleanup, and dir, which names the store: an empty directory that ends with the test,
// the same one in all calls about one store. A store that keeps no files may take it as a name.
type Factory struct {
	// Open opens a store that is new and empty, and closes it in a Cleanup if it has to be closed.
	Open func(t testing.TB, dir string) checkpoint.Store

	// Reopen closes s in good order, and opens again what it has stored, as the next process would.
	// Zero means that the store is not durable.
	Reopen func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store

	// Crash ends s at once, as the death of its process does, or a power cut where the store
	// promises to survive one, and opens what is left. Calls of s that are under way end with an
	// error, or have been acknowledged before; what was not acknowledged may be lost.
	// Zero means that crashes are not tried.
	Crash func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store

	// Corrupt does damage to what s has stored, and returns the store that then has it: s, if it
	// reads what is stored whenever it is asked, or another one, opened after s was closed. An
	// error says that the damage was found when the store was opened. Damage that a store can't
	// suffer is skipped with t.Skip. Zero means that damage is not tried.
	Corrupt func(t testing.TB, dir string, s checkpoint.Store, d Damage) (checkpoint.Store, error)

	// Fill takes away the room for further writes until free is called. Zero means that this is
	// not tried.
	Fill func(t testing.TB, dir string, s checkpoint.Store) (free func())

	Limits Limits
}

// Limits says how much a store holds. The zero Limits are good for a store without limits that
// matter.
type Limits struct {
	// Append is the most bytes that the entries of one append may have: such with more are
	// ErrTooLarge. Zero means that this is not tried.
	Append int

	// Large is the size, in bytes, of the largest append, snapshot, message, graph and base that
	// the suite stores. Zero means 12 MiB, which every store of the states of people's programs
	// should hold.
	Large int
}

const mostLarge = 12 << 20

// Damage is what has happened to a thing that a store keeps: it is done to what is stored, below
// all checks of the store.
type Damage struct {
	Kind DamageKind
	At   Place // what was damaged
	From Place // what is in its place: of Foreign and Older, and of the same part
}

// A Place is a thing that a store keeps of a run.
type Place struct {
	// Part is PartLog, for an append; PartSnapshot; PartPosts, for a message; PartBase; or
	// PartInfo, for all that is kept of the run beside these.
	Part checkpoint.Part
	Run  string
	// Seq is that of an entry of the append, each of which has one; of the snapshot's head; or, of
	// PartInfo that is Older, of the head that the run had when that was kept of it.
	Seq uint64
	ID  string // of the message, or the digest of the base
}

// DamageKind says what has happened to a thing.
type DamageKind int

const (
	Flipped DamageKind = iota + 1 // a bit of it is another
	Lost                          // it is gone: neither a snapshot, which nobody needs, nor a message
	Foreign                       // one of another run is in its place
	Older                         // one of the same run is in its place
	// Forged: an append says something else, and has the checksum of that: what [Forge] makes of it
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
