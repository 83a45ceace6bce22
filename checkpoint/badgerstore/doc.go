// Package badgerstore is a [checkpoint.Store] in a directory, kept by Badger.
//
//	store, err := badgerstore.Open(ctx, "inquiries", badgerstore.Options{})
//	if err != nil { … }
//	defer store.Close()
//
// One process at a time has a directory open. That is what makes leases safe: they never expire,
// and none outlives the process that holds it.
//
//   - Do not move or replace the directory while it is open. If that happens, the store notices
//     before it next writes a table, stops, and leaves the new directory alone. What it has
//     acknowledged is in the directory that was opened, for whichever process opens that next.
//   - A store is always opened for writing, even to read it. To read one on a device that is
//     mounted read-only, open a copy.
//
// # Durable
//
// In a store opened by [Open] an append that returned nil survives the death of the process and of
// the machine. In one opened by [OpenUnsynced] it survives the death of the process only: after a
// power cut such a store may be refused as damaged.
//
// One goroutine turns all appends that wait, of all runs, into one synced transaction. (In an
// unsynced store that nobody observes, an append that comes alone is committed by its caller.)
//
// When a commit fails, or the database can't write a table, the store stops. The appends of that
// commit return ErrCommitUnknown, and every later call ErrClosed with the cause. Opening the store
// again decides what the disk holds.
//
// Large values are written in pieces, so that the appends of other runs can go first: 4 KiB of
// pieces for each of these appends, for a while. A large state therefore takes longer beside a run
// that appends without a pause, and hardly delays that run.
//
// # Formats
//
// The file pawl.json names the format of the store. New stores are of format 3; earlier versions
// made formats 1 and 2. A store keeps its format, and every later version reads and writes it. A
// version that does not know a format returns ErrVersion and changes nothing.
//
// Format 3 keeps new appends apart from those of earlier runs when tables are merged, unless some
// are large and in pieces. Writing gigabytes at full speed takes a third less time for it. Format 2
// merges them also where runs are deleted, trimmed, forked or imported.
//
// To move the runs of an older store into format 3, export and import them, the oldest first.
//
// # Damage
//
// Open checks:
//
//   - every table as a whole;
//   - that each table is the one that was there when the store was last opened or closed, by an
//     inventory in the file tables;
//   - that no transaction is missing;
//   - that the newest transaction is at least as new as the witness says, a small file that is
//     written after every synced commit.
//
// If a check fails Open returns ErrCorrupt and has changed nothing, so what was damaged can be put
// back. (When Open refuses a store for another reason, such as a missing key, it may already have
// had the database open, which then holds the same data in other files.)
//
// The inventory does not know tables that were made by a process that was killed; the next Open
// takes those as they are. Where the file tables is empty or missing, as in a store of an earlier
// version, Open takes all tables as they are.
//
// Reading checks the checksum of every envelope, and that each follows the one before it. Anything
// else that is missing or damaged is ErrCorrupt as well, a damaged file tables included.
//
// What can be mended:
//
//   - A base that can't be read, because it is damaged or its key is not there, is written anew by
//     a Fork, Trim or Import that comes to share it. That heals the runs that stood on it. These
//     calls read the base to find out.
//   - A run whose snapshot is damaged is ErrCorrupt for every call that needs to know where it
//     stands, even if its log is whole; [Store.Verify] says which it is
//     ([checkpoint.PartSnapshot]). Its events can still be read. [checkpoint.Export] and Import
//     leave snapshots behind, and so bring the run into another store, where it goes on.
//
// A byte that changes while the store is open, on a failing disk or because somebody writes into
// its files, is noticed later or not at all:
//
//   - In a value it is noticed when the value is read: each has a checksum, which covers its key.
//   - Keys, and what leads the database from one key to the next, are checked at Open only. Until
//     then a run can be missing, lack its newest appends or be left out of a listing, so that Run
//     begins it anew. Some changes make the database panic in the caller's goroutine, or end the
//     process. The next Open finds the damage, unless the table has been merged with others since.
//
// If you doubt a disk, close the store and open it again.
//
// Intent is another matter than accident. In a store without a cipher, somebody who changes an
// append and makes its checksum fit is noticed by Store.Verify and by [checkpoint.Export], which
// compute digests, and not by reading. Somebody who puts an earlier status and graph of a run back
// is noticed when the run is next looked at, if its last append disagrees, and by Store.Verify in
// any case. Somebody who uses Badger to remove the newest appends of a run, back to the last change
// of its status, is not noticed. Nor is a whole directory that was replaced by an older copy of
// itself, unless the witness is kept elsewhere ([Options.Witness]).
//
// # Backups
//
// A backup is a copy of the whole directory, made while no process has it open: after
// [Store.Close], or after the process has died. The copy is a store like the first and can be
// opened anywhere; an encrypted one needs the same keys.
//
//   - A snapshot that the file system takes of the directory of a synced store, at one instant, is
//     a backup too: it is what a power cut would leave.
//   - A copy made file by file while the store is written to is not. It either has all that was
//     acknowledged before the copy began, or is ErrCorrupt when it is opened, and nobody knows
//     beforehand which. To find out, open a copy once and call Store.Verify.
//   - Without closing the store, the process that has it open can export its runs, by
//     [checkpoint.Export] of each that [checkpoint.Runs] yields. Each is then as it was at a moment
//     of its own. Import them into a new store, the oldest first.
//
// A store put back from a backup is older than a witness that was kept elsewhere says, and so is
// ErrCorrupt. With an empty file in the place of the witness Open takes it as it is. Its runs go on
// from where they were when the backup was made, and do again what they did since, under the same
// idempotency keys. Do not go on with both stores: see [checkpoint.Export].
//
// # Secrets
//
// With [Options.Cipher] the files of a store don't show what its runs say. Appends, snapshots,
// messages and bases are sealed before they reach the committer, each for the one place where it
// stands. What was altered, or moved to another run, place or store, is ErrCorrupt.
//
//	key, err := checkpoint.NewKey("2026-11", secret) // 32 bytes of crypto/rand
//	keys, err := checkpoint.NewKeyring(key)          // and older keys, to read with
//	store, err := badgerstore.Open(ctx, "inquiries", badgerstore.Options{Cipher: keys})
//
// Put no secrets into what stays in the clear:
//
//   - what [Store.List] tells: ids, names of graphs, labels, statuses, correlation ids, origins
//     with who forked and why, times, counts and digests;
//   - ids of messages and of keys;
//   - sizes;
//   - graphs.
//
// Somebody who can guess a whole append can check the guess by its digest. An export is plain.
//
// A store is encrypted from the beginning or never. A plain one opened with a cipher is
// ErrPlaintext; an encrypted one opened without a cipher, or without the key it was last written
// with, is ErrKey. Neither is changed. To encrypt what is in a plain store, export its runs and
// import them into a new one.
//
// To rotate keys, give the new key to write with and the old one to read with. The old key is
// needed for as long as anything is sealed with it, bases of forks included. Reading something
// whose key is missing is ErrKey, which names the key; listings and Store.Verify go on behind it.
// Store.Verify with the new key alone shows what still needs the old one.
//
// To retire a key that others may know, and keep the runs, export them, import them into a new
// store that has the new key alone, and remove the old directory.
//
// If a key is lost, a run can be deleted as long as the keys at hand open its newest append and the
// last one that changed its status, turn or graph or trimmed it, even if older appends are ErrKey.
// Otherwise Delete is ErrKey, and the run stays, with the bases it refers to. To be rid of it
// export the other runs and import them into a new store.
//
// # Compression
//
// A value of more than 1 KiB, and an eighth more for what stands beside it, is compressed with zstd
// if that saves an eighth. Digests, limits and exports are those of the plain value.
//
// # Limits
//
//   - An append has at most [MaxAppend] bytes; a message half of that, since an append drains it; a
//     snapshot [MaxSnapshot]. What is larger is refused with ErrTooLarge and changes nothing.
//   - A transaction holds a number of messages that follows from [Options.MemTableSize], a thousand
//     at its least; an append that drains more is ErrTooLarge. So is a Trim, Import or Delete that
//     changes something about more pinned checkpoints than it holds, about two thousand at the
//     least.
//   - A write that would leave less room on the device than [Options.FreeSpace] is refused with
//     ErrFull, because Badger writes through memory maps and does not survive a full device. Close
//     writes too, and may return ErrFull.
//
// The device is that of the directory db inside the store's directory; db may be a link to another
// device, or one may be mounted there. A device that does not tell its size, such as a ramfs, is
// taken to have room.
//
// Room is looked at before a write and not reserved. If somebody else fills the device while a
// table is written, also during Close, the process can end with SIGBUS. What was acknowledged is
// there for the next process, once there is room. Where others may fill a device, give the store a
// device or a quota of its own.
package badgerstore
