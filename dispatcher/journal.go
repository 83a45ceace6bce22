package dispatcher

import (
	"encoding/json"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A journal is where a live run stands in its log. What stands above mutex belongs to the
// run's owner.
type journal struct {
	lease checkpoint.Lease // never changes once visits run
	hold  *hold            // that keeps it; nor does this
	head  checkpoint.Head  // what the machine was told of
	since int              // bytes that a replay would read since the last snapshot
	last  int              // bytes of the last snapshot
	look  int              // how large since has to be before snapshotDue looks at what open supersteps hold
	held  int              // bytes that they held when look was set
	shed  int              // what the machine had shed then
	posts bool             // there may be posts to take

	// mutex is full while something is appended: by the owner, or for an effect of a node that
	// runs. It guards what follows. It is a channel, because who waits for a slow store at a
	// sync.Mutex keeps virtual time from passing.
	mutex chan struct{}
	tip   checkpoint.Head // the last append
	err   error           // an append failed: nothing more is appended; written with backlog.mu too
	queue []*effectEntry  // waits to be appended
	news  []*effectEntry  // durable, and the machine was not told of it; guarded by backlog.mu instead

	backlog backlog
	grown   chan struct{} // has room for one: what was handed over was appended, or an append failed

	staged atomic.Pointer[effectEntry] // on its way into the queue, the last one first
	fresh  atomic.Bool                 // there are news, or an append failed
}

// What the owner is doing in the store, or in the observer, as results name it when it is
// abandoned.
const (
	doingObserve  = "Options.Observe"
	doingAppend   = "an append to the store"
	doingSnapshot = "a snapshot of the store"
	doingPosts    = "reading the posts of the store"
	doingRelease  = "releasing the lease in the store"
)

// flush makes the facts durable, in one append, and then tells them to the observer. It
// reports whether the caller still owns the run and may go on.
func (r *run) flush(h *tenure) bool {
	if len(r.facts)+len(r.ahead) == 0 && !r.journal.fresh.Load() {
		return true
	}
	if r.c.store == nil {
		return r.tell(h)
	}
	entries, size := r.entries()
	if !h.leave(inCall, doingAppend) {
		return false
	}
	var began time.Time
	if r.lag.facts > 0 {
		began = time.Now()
	}
	news, appended, head, err := r.append(entries, size)
	if !h.back(inCall) {
		return false
	}
	if err != nil {
		r.apart = r.giving != nil && conflict(err)
		r.hear(news)
		r.breakOff(h, err) // which tells the observer
		return false
	}
	r.giving = nil
	if len(r.ahead) == 0 {
		r.hear(news)
	} else if !r.caughtUp(h, news, len(r.ahead)) {
		return false
	}
	r.journal.head, r.appended = head, appended
	r.journal.since += size
	r.lag.flushed(began)
	r.snapshot()
	return r.tell(h)
}

// entries encodes the facts.
func (r *run) entries() (entries []checkpoint.Entry, size int) {
	n := len(r.facts)
	r.lines, r.bytes = slices.Grow(r.lines[:0], max(n, fewLines))[:n], again(r.bytes)
	for i := range r.facts {
		x, e := &r.facts[i], &r.lines[i] // what stands there is of an earlier append
		x.writeTo(e)
		if e.Delta = nil; !x.delta.IsZero() {
			e.Delta = r.encodeDelta(x.delta.AppendJSON)
		}
		if e.Outer = nil; !x.outer.IsZero() {
			e.Outer = r.encodeDelta(x.outer.AppendJSON)
		}
		size += sizeOf(e)
	}
	return r.lines, size
}

// again is the memory of a list for the next one, unless it is large and the last one used little
// of it: what the input of a run took is not kept for all of its deltas.
func again(b []byte) []byte {
	if cap(b) > deskBytes && len(b) < cap(b)/4 {
		return nil
	}
	return b[:0]
}

// fewLines is for how many entries there is memory at least: most appends have fewer.
const fewLines = 4

// sizeOf is about what a replay reads of an entry.
func sizeOf(e *checkpoint.Entry) int {
	return len(e.Delta) + len(e.Outer) + len(e.Data) + len(e.Path) + entryOverhead
}

// size is sizeOf of the entry that a live fact becomes.
func (x *fact) size() int {
	return x.delta.Size() + x.outer.Size() + len(x.Data) + len(x.Path) + entryOverhead
}

// entryOverhead is about what an entry takes beside its path and data.
const entryOverhead = 64

func (r *run) encodeDelta(appendJSON func([]byte) []byte) json.RawMessage {
	from := len(r.bytes)
	r.bytes = appendJSON(r.bytes)
	return r.bytes[from:len(r.bytes):len(r.bytes)]
}

// snapshot writes one when a replay would read more than four times the live state plus 64 KiB, in
// the background, one at a time: finish waits for it. Alive is also what is done of an open Each;
// while there is one, that is looked at whenever the log is a quarter longer, or a quarter of it is
// alive no more.
func (r *run) snapshot() {
	j := &r.journal
	if !r.snapshotDue() {
		return
	}
	if r.snapping != nil {
		select {
		case <-r.snapping:
		default:
			return
		}
	}
	s := checkpoint.Snapshot{Head: j.head, Data: r.m.encode()}
	j.since, j.last, j.look = 0, len(s.Data), 0
	put, lease := make(chan struct{}), j.lease
	var begun atomic.Bool
	r.snapping = put
	r.strays.count.Add(1)
	go func() { // finish waits for it, or it is abandoned
		defer close(put)
		defer r.strays.returned() // before the call learns of it, and counts
		begun.Store(true)
		// Without a snapshot a replay is longer, and nothing else.
		_ = r.c.store.PutSnapshot(r.stored, lease, s)
	}()
	for !begun.Load() { // else a store in memory may come to it when the next one is due, or the call has ended
		runtime.Gosched() // which now and then returns to who called it, though another goroutine is ready
	}
}

// alwaysRead is how much a replay may read however small the state is.
const alwaysRead = 64 << 10

func (r *run) snapshotDue() bool {
	j := &r.journal
	if r.c.opts.eager {
		return true
	}
	if j.since <= alwaysRead { // in most supersteps: the size of a state costs as much as its cells
		return false
	}
	view := r.m.root.view.Size()
	due := func(live int) bool { return j.since > 4*max(live, j.last)+alwaysRead }
	if j.look > 0 && 4*(r.m.shed-j.shed) >= j.held {
		j.look = 0
	}
	if j.since <= j.look || !due(view) {
		return false
	}
	held := r.m.root.unmerged()
	if due(view + held) {
		return true
	}
	j.look, j.held, j.shed = j.since+j.since/4, held, r.m.shed // to look costs as much as there are visits
	return false
}

// watchPosts has the store tell when something is posted to the run.
func (r *run) watchPosts() (posted <-chan struct{}, stop func()) {
	if w, ok := r.c.store.(checkpoint.Watcher); ok {
		return w.Watch(r.id)
	}
	return nil, func() {}
}

// hearPosts reads the posts for cancels, beside the caller: if a node runs on the owner's goroutine
// the owner would hear of one too late. The read ends with the run's store context at the latest.
// Before the log is read nobody knows which cancels are moot, and the owner reads the posts anyway.
func (r *run) hearPosts() {
	if !r.loaded.Load() {
		return
	}
	if r.reading != nil { // it may have read already: watch comes here again when it has ended
		r.rehear = true
		return
	}
	read := make(chan struct{})
	r.reading = read
	r.strays.count.Add(1)
	go func() { // letGo waits for it, or abandons it
		defer close(read)
		defer r.strays.returned() // before the call learns of it, and counts
		posts, err := r.c.store.Posts(r.stored, r.id)
		if err != nil {
			return
		}
		for _, p := range posts {
			if p.Kind == checkpoint.PostCancel && !slices.Contains(r.moot, p.ID) {
				r.cancel(postedCause(p))
			}
		}
	}()
}
