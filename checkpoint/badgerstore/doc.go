// Package badgerstore is a [checkpoint.Store] in a directory, kept by Badger.
//
//	store, err := badgerstore.Open(ctx, "inquiries", badgerstore.Options{})
//	if err != nil { … }
//	defer store.Close()
//
// One process at a time has a directory open. It is the proof of every lease: leases have
// no end, and none outlives the process.
//
// # Durable
//
// In a store opened by [Open] an append that returned nil survives the death of the process
// and of the machine. In one opened by [OpenUnsynced] it survives that of the process only:
// after a power cut such a store may be refused as damaged.
//
// One goroutine turns all appends that wait, of all runs, into one synced transaction. When
// a commit fails the store stops: the appends of that commit return ErrCommitUnknown, and
// everything after it ErrClosed with the cause. What the disk then holds is decided by
// opening it again.
//
// # Damage
//
// Opening checks the tables, that no transaction is missing, and that the newest one is at
// least as new as the witness says, a small file written after every synced commit. Reading
// checks every envelope and the chain they form. Whatever is damaged or missing is
// ErrCorrupt. To find out that a whole directory was replaced by an older copy of itself,
// keep the witness elsewhere (Options.Witness).
// Not found out is who removes the newest appends of a run, back to the last change of its
// status, with transactions of his own: that takes Badger and intent, not an accident.
//
// # Limits
//
// An append may have [MaxAppend] bytes, a snapshot [MaxSnapshot]; what is larger is refused
// with ErrTooLarge and changes nothing. A write that would leave less room on the device
// than Options.FreeSpace is refused with ErrFull, because Badger does not survive a device
// that is full: it writes through memory maps. The same holds of Close, which then returns ErrFull.
package badgerstore
