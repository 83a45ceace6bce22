// Package badgerstore is a [checkpoint.Store] in a directory, kept by Badger.
//
//	store, err := badgerstore.Open(ctx, "inquiries", badgerstore.Options{})
//	if err != nil { … }
//	defer store.Close()
//
// One process at a time has a directory open. It is the proof of every lease: leases have no end,
// and none outlives the process. Do not move or replace the directory meanwhile. If it happens the
// store finds out before it next writes a table, stops, and leaves what is in its place alone: what
// it has acknowledged is in the directory that was opened, and is there for the process that opens
// that next. A store is opened for writing, also to read it: where it can only be read, as on a
// device that is mounted so, copy it and open the copy.
//
// # Durable
//
// In a store opened by [Open] an append that returned nil survives the death of the process
// and of the machine. In one opened by [OpenUnsynced] it survives that of the process only:
// after a power cut such a store may be refused as damaged.
//
// One goroutine turns all appends that wait, of all runs, into one synced transaction. (Where
// nothing is synced, and nobody observes the store, who appends alone commits himself.) When a
// commit fails the store stops: the appends of that commit return ErrCommitUnknown, and everything
// after it ErrClosed with the cause. What the disk then holds is decided by opening it again. The
// same happens when the database can't write a table.
//
// Large values are written in pieces, which let the appends of other runs go first: 4 KiB for each
// of these, over a while. So a large state takes longer beside a run that appends without a pause,
// and that one hardly notices.
//
// # Formats
//
// The file pawl.json says which format a store has: 3, or 1 or 2 if an earlier version made it. A
// store keeps its format, which every later version reads and writes. A version that does not know
// it says ErrVersion and changes nothing. In format 3 what is new is not merged with what earlier
// runs have appended, but where some of it is large and in pieces, which takes a third of the time
// off where gigabytes are written at full speed; in format 2 it is where runs are deleted, trimmed,
// forked or imported besides. To bring the runs of a store of an earlier format into one of format
// 3 export and import them, the oldest first.
//
// # Damage
//
// Opening checks the tables, that each is the one that was there when the store was last opened or
// closed, by an inventory in the file tables, that no transaction is missing, and that the newest
// one is at least as new as the witness says, a small file written after every synced commit. If
// that is not so nothing is changed, and what was damaged can be put back. (What is refused for
// another reason, as for a key that is not there, may have had the database open, which then holds
// the same in other files.) Of a table that was made since by a process that was killed it is not
// known which it was, until the next Open; and where the file tables is missing, as in a store of
// an earlier version, or empty, all are taken as they are. Reading checks the checksum of every
// envelope and that each follows the one before it. Whatever else is missing, or is damaged, that
// file included, is ErrCorrupt. A Fork, Trim or Import that comes to share a base that can't be
// read, because it is damaged or sealed with a key that is not there, writes it anew, and so heals
// the runs that stood on it before; to that end it reads the base. To find out that a whole
// directory was replaced by an older copy of itself, keep the witness elsewhere (Options.Witness).
//
// A run whose snapshot is damaged is ErrCorrupt too, for every call that has to know where it
// stands, although its log may be whole ([Store.Verify] tells: checkpoint.PartSnapshot). Its events
// can be read, and checkpoint.Export and Import, which take no snapshots along, bring it into
// another store, where it goes on.
//
// All tables are checked whole when a store is opened. Of a byte that changes in one while the
// store is open, as on a failing disk or by who writes into its files, is found out later what is
// in a value, when that is read: each has a checksum, of its key too. Keys, and what leads the
// database from one to the next, are not checked again: a run can be missing, without its newest
// appends, or not listed, so that Run begins it anew; and some changes make the database panic, in
// the goroutine of who calls, or end the process. The next Open finds it out, unless the table was
// merged with others before that. Open a store again if its disk is in doubt.
//
// Found out by [Store.Verify], and by checkpoint.Export, and not by reading, is who changes an
// append in a store without a cipher and makes its checksum fit: these compute digests. Not found
// out is who removes the newest appends of a run, back to the last change of its status, with
// transactions of his own: that takes Badger and intent, not an accident. Who so puts back what a
// store said of a run earlier, its status and graph, is found out when the run is next looked at if
// its last append says otherwise, and by [Store.Verify] in any case.
//
// # Backups
//
// A backup is a copy of the whole directory, made while no process has it open: after
// [Store.Close], or after the process has died. It is a store like the first, and can be opened
// anywhere; an encrypted one with the same keys. So is what a file system keeps of the directory of
// a synced store as it was at one instant: it is what a power cut would leave there. A copy that is
// made file by file while the store is written to is none: it has all that was acknowledged before
// it was begun, or is ErrCorrupt when it is opened, which nobody knows before. Open a copy once,
// and call [Store.Verify], to know. Without closing the store, the process that has it open can
// export its runs, by [checkpoint.Export] of each that [checkpoint.Runs] yields: each is then as it
// was at a moment of its own. Import them into a new store, the oldest first.
//
// A store that is put back from a backup is older than a witness that was kept elsewhere
// (Options.Witness) says, and so is ErrCorrupt: an empty file in the place of the witness has it
// taken as it is. Its runs go on from where they were then, and do again what they did since, under
// the same idempotency keys. Do not go on with both: see [checkpoint.Export].
//
// # Secrets
//
// With Options.Cipher nobody reads in the files of a store what its runs say: appends, snapshots,
// messages and bases are sealed before they are handed to the committer, each for the one place
// where it stands. What was altered, or moved to another run, another place or another store, is
// ErrCorrupt.
//
//	key, err := checkpoint.NewKey("2026-11", secret) // 32 bytes of crypto/rand
//	keys, err := checkpoint.NewKeyring(key)          // and older keys, to read with
//	store, err := badgerstore.Open(ctx, "inquiries", badgerstore.Options{Cipher: keys})
//
// In the clear stay what [Store.List] tells (ids, graphs' names, labels, statuses, correlation ids,
// origins, with who forked and why, times, counts and digests), ids of messages and of keys, sizes,
// and graphs: put no secrets there. Who can guess all of an append can compare its digest. An
// export is plain.
//
// A store is encrypted from the beginning or never: with a cipher a plain one is ErrPlaintext, and
// without one, or without the key that was last written with, an encrypted one is ErrKey; neither
// is changed. To encrypt what is in a plain store, export its runs and import them into a new one.
// To change the key, give a new one to write with and the old one to read with. The old one is
// needed as long as there is anything that was sealed with it, forks' bases included; what it is
// missing for is ErrKey, which names it; a listing, and [Store.Verify], go on behind it. Verify
// with the new key alone tells what there is. A run of which only a lost key opens how it stands
// (its newest append, and the last one that changed its status, turn or graph or trimmed it) stays,
// with the bases that it refers to: Delete of it is ErrKey. To be rid of it export the others and
// import them into a new store. One of which both are of a key that is given can be deleted, though
// what is older in it is ErrKey. To be rid of a key that others may know, and keep the runs, export
// them and import them into a new store that has the new key alone, and remove the old directory.
//
// # Compression
//
// What is longer than 1 KiB, and an eighth more for what stands beside it, is compressed with zstd,
// where that saves an eighth. Digests, limits and exports are those of what is plain.
//
// # Limits
//
// An append may have [MaxAppend] bytes, a message half of that, since an append drains it, and a
// snapshot [MaxSnapshot]; what is larger is refused with ErrTooLarge and changes nothing. So is an
// append that drains more messages than a transaction holds, which follows from MemTableSize: with
// the least one it holds a thousand; and a Trim, Import or Delete that changes something about more
// pinned checkpoints than that, of which the least one holds about two thousand. A write that would
// leave less room on the device than Options.FreeSpace is refused with ErrFull, because Badger does
// not survive a device that is full: it writes through memory maps. It is the device of the
// directory db in that of the store, which may be a link to another one, or another one may be
// mounted there. One that does not tell its size, such as a ramfs, is taken to have room. What
// holds of a write holds of Close, which then returns ErrFull. The room is looked at before, not
// held: whoever else fills the device while a table is written, also during Close, can end the
// process with SIGBUS. What was acknowledged is there for the next one, once there is room. Give
// the store a device, or a quota, of its own where others may fill it.
package badgerstore
