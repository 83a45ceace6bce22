// Package checkpoint defines the log: what a run's entries say, how they are kept in
// envelopes that detect damage, and the contract of the stores that hold them.
//
// A run is an append-only list of entries. Its state, its cursor, its history and its
// recovery are readings of that list. An [Entry] is one fact; entries are written in
// appends, all of one or none; a [Head] names a position by sequence number and digest,
// and every append is conditional on it; a [Lease] is the right to append.
//
//	lease, err := store.Acquire(ctx, "inquiry-42", owner)
//	head, err := store.Append(ctx, lease, checkpoint.Head{}, []checkpoint.Entry{…})
//	for entry, err := range store.Read(ctx, "inquiry-42", 1, head.Seq) { … }
//
// In a store of several processes a lease may have an end. Who works under it has it renewed by
// [Keep], and stops when he is told that it is lost.
//
// # Promises
//
//   - When [Store.Append] returns nil the entries are durable, in the sense that the store's
//     documentation gives to the word. All entries of an append become visible, or none does.
//   - A damaged, missing or foreign entry is [ErrCorrupt], never an older state and never
//     [ErrNotFound]. Reading checks checksums, numbers, and that each append repeats the digest of
//     the one before it.
//   - A change whose author made all of these fit is found where digests are computed: by [Verify],
//     [Export] and [Import], and by readers that ask for it ([WithDigests]).
//   - The format is version 2. Later versions of this package will read what was written in it and
//     in version 1. A version that is not known is refused and left untouched.
//
// # Runs that begin at a machine
//
// A fork goes on from a machine that is not in its log, and so does a run that was trimmed. Such
// a machine is a base: the store keeps it by its digest, once for all runs that refer to it. What
// effects returned in a fork's origin is a base of its own, so that forks of one checkpoint share
// the machine whenever they are made. To a store bases are bytes. [Verify] tells whether what is
// stored of a run is whole, its bases included.
//
// # One run as a file
//
// [Export] writes a run as lines of JSON that can be verified, and [Import] makes it in
// another store, where it goes on.
//
// Package memory is the executable meaning of [Store], badgerstore the durable one, and
// storetest the suite that a store of your own has to pass.
package checkpoint
