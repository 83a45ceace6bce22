package checkpoint

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// A Digest is the SHA-256 of an append, which contains the digest of the append before it.
type Digest [32]byte

// A Head is a position in a run's log: the sequence number of the last entry and the
// digest of the append that holds it. The zero Head is the beginning of a log that has
// no entries.
type Head struct {
	Seq    uint64
	Digest Digest
}

// A Lease is the right to append to a run. A higher epoch fences every lower one. It is known by
// its run, epoch and owner: one that was renewed is held under the value from before as well.
type Lease struct {
	Run   string
	Epoch uint64 // counted from 1
	Owner string
	// Until is when the lease ends by itself, if it is not renewed. The zero Until means never: the
	// process that has the store open is the proof.
	//
	// It is of the clock of the process that has asked for the lease. A store whose leases end by
	// another clock sets it to what the lease lasts behind the time.Now of before it was asked for:
	// so it has the clock that does not jump, and is never too late.
	Until time.Time
}

// Info is what a store knows of a run without reading its log.
type Info struct {
	Run    string
	Status Status
	Graph  string // name
	Digest string // of the graph
	Labels map[string]string
	// Correlation is what the run was opened with.
	Correlation string
	Turn        int // the one that was begun last, counted from 1
	Head        Head
	// First is the oldest entry that can be read: 1, unless the run was trimmed.
	First uint64
	// Base is the digest of the machine that the log goes on from: that of a fork's origin,
	// or of what was trimmed; "" if the log begins with nothing. See [Store.Base], and
	// [Info.Bases] for all that the run refers to.
	Base    string
	Pins    []Pin     // checkpoints before First that can still be read
	Origin  *Origin   // nil if the run is no fork
	Epoch   uint64    // of the last lease
	Owner   string    // who holds the lease now, "" if nobody; see [Amends]
	Created time.Time // of the first append
	Updated time.Time // of the last change of status
}

// A Post is a durable message to a run from someone without its lease.
type Post struct {
	ID   string // unique in the run; posting the same message again changes nothing
	Kind string // one of PostCancel and its like; of UTF-8
	Data json.RawMessage
	// At is set by the store, and tells the order of posting: it is later than that of whatever the
	// run was posted before this Post was called and nobody has drained, in another process or on
	// another host too, whatever the clocks say.
	At time.Time
}

// Kinds of messages: what a call of the dispatcher leaves for who has the lease, or takes it next.
const (
	PostCancel     = "cancel"     // Cancel
	PostAnswer     = "answer"     // Answer, Answers and Skip
	PostTurn       = "turn"       // Enqueue
	PostTag        = "tag"        // Tag
	PostNote       = "note"       // Note
	PostResolution = "resolution" // Resolve, of an effect for which no visit waits
)

// A Filter selects runs. The zero Filter selects all.
type Filter struct {
	Status []Status // any of these; nil means all
	Graph  string   // name; "" means all
	Labels map[string]string
	// Since selects runs created at it or after, Before those created before; zero means all. As
	// Info.Created they are milliseconds: what is finer does not count, so every run is either
	// Since an instant or Before it.
	Since, Before time.Time
	// After continues a listing behind the run of this id, the last one of the page before.
	After string
	Limit int // runs in a page; zero means 100
}

// A Snapshot is a whole machine at a position of a log, encoded. It is no part of the chain of
// digests: a run is replayed without it if there is none. One that is damaged is not passed over,
// which would hide that the store loses data: it is ErrCorrupt.
type Snapshot struct {
	Head Head
	Data []byte
}

// A Store keeps the logs of runs. All methods are safe for concurrent use. Every method that
// changes something is atomic: all of it happens or nothing. Unless a comment says otherwise an
// error means that nothing has changed, and memory given to a method is not kept, memory returned
// belongs to the caller. No method may panic or call runtime.Goexit: pawl calls them where nothing
// catches that, and the process ends.
//
// Methods return ErrRunID for an id that is not valid (see [CheckRunID]), ErrNotFound for
// a run that does not exist, ErrClosed after the store was closed, and ctx's error when it
// is done before anything was begun. Stored data that is damaged is [ErrCorrupt], of an
// unknown version [ErrVersion].
//
// A lease whose end has come is nobody's, by the clock of the store, whether or not somebody else
// has taken the run since: what is done under it is ErrFenced, Stat and List tell of no owner, and
// the run is there for the next Acquire, for Delete and for Fork. Who works under a lease renews it
// with [Keep].
type Store interface {
	// Acquire gives the lease of run to owner and raises its epoch. A run that does not exist may
	// be acquired, to append its first entry. ErrBusy (a *BusyError naming the owner) if the lease
	// is held, be it for a Fork or Delete that is under way, an *ArgumentError if owner is "". The
	// raised epoch is durable at the latest with the first append under the lease.
	Acquire(ctx context.Context, run, owner string) (Lease, error)

	// Renew prolongs a lease that has an end: from now on it lasts as long as one that is given
	// now. A lease without an end is returned as it is. ErrFenced if it is no longer the run's,
	// also if it has ended and nobody has taken the run since. With another error the lease may
	// have been prolonged.
	Renew(ctx context.Context, l Lease) (Lease, error)

	// Release gives the lease back. Releasing a lease that is no longer the run's, or has ended,
	// does nothing.
	Release(ctx context.Context, l Lease) error

	// Append adds entries to the run of the lease, whose head is now after, and returns the new
	// head. All of them become durable or none does; when Append returns nil they are durable. It
	// ignores Seq and At of entries.
	//
	// Posts that entries drain are deleted with it; what names none drains nothing. An entry that
	// claims its post says that nobody has posted under that id: ErrConflict if a message of it
	// waits, whatever that says. If somebody posts it at the same time either the Append is
	// refused, or, when Post returns, the entry is in the log.
	//
	// With these errors nothing has changed; where several things are wrong the lease comes first,
	// then the head:
	//
	//   - ErrFenced: the lease is no longer the run's;
	//   - ErrConflict: the head is not after, or an entry claims a post that waits;
	//   - ErrFull: there is no room;
	//   - ErrTooLarge: the store keeps no append of that size;
	//   - an [*ArgumentError]: there are no entries, one can't be kept (see [Seal]) or is what Fork
	//     and Trim write, or one behind the first entry of the log opens a run: see [Info.Append].
	//
	// ErrCommitUnknown if it can't be known what happened: nobody may assume either.
	Append(ctx context.Context, l Lease, after Head, entries []Entry) (Head, error)

	// Read yields the entries from sequence number from to sequence number to, both included, in
	// order; a from of 0 means the oldest that is there, a to of 0, or beyond the head, means the
	// head when the loop begins. The range may begin and end inside an append. ErrTrimmed (a
	// *TrimmedError that says where the log begins) if from lies before that.
	//
	// Read checks what it reads: numbers without gaps, checksums, and that each append repeats the
	// digest of the one before it within the range; under [WithDigests] the digests too.
	//
	// Entries are only lent: their memory is valid until the next one is yielded or the loop ends,
	// but for what a [Keeping] has. A long log may be read ahead in a goroutine of the store's own,
	// which has ended when the loop has.
	Read(ctx context.Context, run string, from, to uint64) iter.Seq2[Entry, error]

	// Stat returns what is known of a run, all of it as of one moment, without reading its log.
	Stat(ctx context.Context, run string) (Info, error)

	// List returns a page of the runs that f selects, in the order in which they came into the
	// store, the last one first. That is from the newest to the oldest run of this store; a run
	// that [Import] has brought stands where it came. If a run came while another was still being
	// written, by a Restore, a Fork or a large first Append, either may count as the later one: a
	// reader that looks for new runs may find one behind a run that it knows. What is told of one
	// run is as of one moment, as by Stat.
	//
	// A run that is too damaged to be told of ends its page: with a *CorruptError that names it,
	// beside the runs before it. A run that this program or these keys can't read ends it too, with
	// the error of [Corrupt]. A listing after such a run goes on behind it, as [Runs] does.
	//
	// ErrNotFound if f.After names no run; the error of [Filter.Check] for what that refuses.
	List(ctx context.Context, f Filter) ([]Info, error)

	// Post leaves a message for the run, whatever its status; it is durable when Post returns nil.
	// A message of the same id and content, byte by byte, changes nothing; of the same id and other
	// content it is ErrConflict. ErrPostID for an id that is not valid, ErrTooLarge if the store
	// keeps no message of that size.
	Post(ctx context.Context, run string, p Post) error

	// Posts returns the messages that have not been drained, in the byte order of their ids: as Go
	// compares strings, and no language.
	Posts(ctx context.Context, run string) ([]Post, error)

	// PutSnapshot keeps a snapshot of the run of the lease, in the place of one of the same entry;
	// all but the newest may be dropped. It may return before the snapshot is durable. ErrFenced as
	// for Append, ErrNotFound if the run has no entry yet, ErrConflict if its head was never
	// s.Head, ErrTooLarge if the store keeps no snapshot of that size.
	PutSnapshot(ctx context.Context, l Lease, s Snapshot) error

	// Snapshot returns the newest snapshot that is kept at or before sequence number upTo (0 means
	// the head). ErrNotFound if there is none: replay from the start.
	Snapshot(ctx context.Context, run string, upTo uint64) (Snapshot, error)

	// PutGraph keeps the JSON of a graph by its digest, once and for as long as there is the store;
	// it is durable when PutGraph returns nil. ErrConflict if another graph is kept by that digest.
	// Graph returns it, byte by byte, ErrNotFound if there is none.
	PutGraph(ctx context.Context, digest string, graph []byte) error
	Graph(ctx context.Context, digest string) ([]byte, error)

	// Delete removes a run that nobody holds, with all that belongs to it, and the bases that no
	// other run refers to, durably when it returns nil. Runs that were forked from it stay. ErrBusy
	// if the lease is held. A store need only be able to read how the run stands, as for Stat: else
	// it returns the error of that. It need not look at the rest of the log, which may be damaged
	// or sealed with a key that was not given. A run that is made later under the same id has the
	// same idempotency keys, so that other systems take what it does for what the first one did:
	// give what is new a new id.
	Delete(ctx context.Context, run string) error

	// Fork makes new runs that begin at one machine: all of them come to be, durably, or none does.
	// Nobody has their leases. The machine and the shelf are bases: each is kept once, by its
	// digest, for all runs that refer to it, also those of other Forks; the last Delete or Trim
	// that drops a reference deletes it.
	//
	// ErrExists if there is a run of one of the ids, ErrBusy if somebody holds the lease of one
	// that does not exist yet; these come before what is wrong with entries that Check lets pass.
	// ErrFull, ErrTooLarge and ErrCommitUnknown as for Append; an *ArgumentError if the Fork is
	// none (see [Fork.Check]); ErrUnsupported if the store can't.
	Fork(ctx context.Context, f Fork) error

	// Base returns a base that the run refers to, by its digest (see [Info.Bases]), having
	// checked that it is the one. ErrNotFound if the run does not refer to it.
	Base(ctx context.Context, run, digest string) ([]byte, error)

	// Trim appends the entry, whose kind is Trimmed, to the run of the lease, whose head is now
	// after, and drops what lies before [Trimming.First], snapshots included: both or neither,
	// for readers too. A loop over Read that has begun goes on to its end. The bases are those
	// that the Trimming names and the run does not have yet; the run refers to those it names
	// and no others. The store sets Trimming.Previous and Trimming.Known.
	// The errors are those of Append; an *ArgumentError if nothing would be dropped, or a base
	// is missing or empty (see [Info.Trimming]); ErrUnsupported if the store can't.
	Trim(ctx context.Context, l Lease, after Head, entry Entry, bases ...[]byte) (Head, error)
}

// A Watcher is a Store that can tell when a message is posted to a run. Without it a
// live run learns of posts only when it next comes to rest.
type Watcher interface {
	// Watch returns a channel that receives after a Post to run, and before that Post returns:
	// who posts is told that whoever has the run will take it, and he may look at the channel
	// alone when he lets go of it. A store that can't tell before is no Watcher. The run need not
	// exist yet: who begins one watches it before. The channel is buffered and may coalesce. stop
	// ends the watch and never blocks.
	Watch(run string) (posted <-chan struct{}, stop func())
}

// A Follower is a Store that can tell when the log of a run has grown. Without it who reads
// along has to look again and again.
type Follower interface {
	// Follow returns a channel that receives when an Append to run has become durable and
	// Stat and Read show it, when run was deleted, and when the store was closed or has
	// failed. The run need not exist yet. What happened before Follow returned is not told.
	// The channel is buffered and may coalesce. stop ends this and never blocks.
	Follow(run string) (grown <-chan struct{}, stop func())
}

// An Attended context belongs to a call whose caller goes on without it if it does not return in
// time, as a dispatcher does with the appends of a run behind its grace period. A store need not
// return when such a context ends while it writes: what is left is a goroutine, until the write has
// ended. A store that wraps another one and hands on a context of its own makes that return as with
// any other context.
type Attended interface {
	context.Context
	// Attended does nothing.
	Attended()
}

// A Group tells of one durable write of a store, which may hold the appends of many runs.
type Group struct {
	Appends  int           // joined in it
	Bytes    int           // keys and values
	Duration time.Duration // until it was durable
	Err      error
}
