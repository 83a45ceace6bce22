package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pawlgo/pawl/checkpoint"
)

// rest states how the run comes to rest.
func (r *run) rest() {
	x := checkpoint.Entry{}
	var told error
	var resting checkpoint.Resting
	switch failures := r.m.failures(); {
	case r.m.status == checkpoint.StatusCompleted:
		r.noteDrains(0)
		return
	case r.halting && !r.atEnd():
		cause := r.cause()
		r.caused = cause // the caller doesn't ask it again: its text may end a goroutine
		if errors.Is(cause, ErrDrain) {
			return
		}
		x.Kind = checkpoint.Cancelled
		if len(r.drains) > 0 { // whatever else has ended the context before
			x.Post, cause, r.caused = r.drains[0], r.heeded, r.heeded
		}
		var byPost *postedCancel
		switch {
		case errors.As(cause, &byPost):
			resting.By = byPost.by
		case r.parent.Err() == context.DeadlineExceeded:
			x.Kind = checkpoint.TimedOut
		}
		if byPost == nil || byPost.error != context.Canceled { // else Cancel was given none
			resting.Cause = clip(fmt.Sprint(cause))
		}
		told = cause
	case len(r.parked) > 0:
		p := r.parked[0]
		r.voidAll()
		x.Kind = checkpoint.Failed
		resting.Kind, resting.Cause, resting.Stack = p.fault.kind, p.fault.message, string(p.stack)
		told = p.err
	case len(failures) > 0:
		x.Kind = checkpoint.Failed
		resting.Cause = clip(failures[0].Path + ": " + failures[0].Message)
		told = r.nodeError(failures[0])
	case len(r.m.waits) > 0:
		x.Kind = checkpoint.Waiting
	default:
		panic("dispatcher: a run at rest has nothing to wait for")
	}
	x.Data = nothingMore
	if resting != (checkpoint.Resting{}) {
		x.Data = encode(resting)
	}
	rest := r.said(&x, nil)
	rest.err = told
	r.add(rest)
	r.noteDrains(1)
}

// answeredSince goes on with a run that has just come to rest and waits, if what it waits for has
// been answered meanwhile: who did it was told that the run is live. It reports whether the run
// goes on, and whether the caller still owns it.
func (r *run) answeredSince(h *tenure, resting bool) (again, owner bool) {
	if !resting || r.c.store == nil || r.m.status != checkpoint.StatusInterrupted || r.ctxDone() || r.draining() || !r.unheard() {
		return false, true
	}
	if r.atRest = true; !h.leave(inCall, doingPosts) { // it rests, if the store hangs
		return false, false
	}
	posts, err := r.c.store.Posts(r.stored, r.id)
	if !h.back(inCall) {
		return false, false
	}
	if err != nil || len(r.m.queued(posts, nil).posts) == 0 {
		return false, true
	}
	x := r.said(&checkpoint.Entry{Kind: checkpoint.Resumed, Data: r.c.resumed}, nil)
	x.more().resumed = &r.c.resumes
	r.add(x)
	r.atRest, r.polled, r.journal.posts = false, false, true
	return true, true
}

// unheard reports whether something may have been posted since the posts were read: a store that is
// a Watcher tells of it.
func (r *run) unheard() bool {
	select {
	case <-r.posted:
		return true
	default:
		return r.posted == nil || r.journal.posts
	}
}

// nothingMore is the Data of an entry that says nothing beside its kind. It is never written to.
var nothingMore = json.RawMessage("{}")

// noteDrains drains the posts that cancelled a run without a cancel of their own. All that were
// heard have their entries then: behind them a Turn may still begin, whose rest drains none again.
func (r *run) noteDrains(from int) {
	for i := from; i < len(r.drains); i++ {
		r.note(r.drains[i], checkpoint.PostCancel)
	}
	if r.drains != nil {
		r.drains = nil
	}
}

// voidAll takes back what the supersteps that can't be merged did: each visit once, since what an
// Each keeps that fails may have been merged in vain for several of its items.
func (r *run) voidAll() {
	var paths []string
	voids := map[string]bool{}
	for _, p := range r.parked {
		for _, path := range p.voids {
			if !voids[path] {
				voids[path], paths = true, append(paths, path)
			}
		}
	}
	if len(paths) > 0 {
		r.add(r.said(&checkpoint.Entry{Kind: checkpoint.Voided, Data: encode(paths)}, nil))
	}
}

// breakOff ends a call whose store has failed. The bodies that run are told so, and waited
// for until they are abandoned; what they did is not kept.
func (r *run) breakOff(h *tenure, err error) {
	if r.halting = true; r.err == nil {
		r.err = err
	}
	r.cancel(err)
	for len(r.flight) > 0 && !r.resign() {
		<-r.results
		r.landAll()
	}
	r.finish(h)
}

// finish ends the ownership of the run for good, which own then says, and gives the lease back
// unless there are strays.
func (r *run) finish(h *tenure) {
	r.dropSlot()
	if r.appending != nil {
		if !h.leave(inCall, doingAppend) {
			return
		}
		<-r.appending
		if !h.back(inCall) {
			return
		}
	}
	if r.err != nil && r.c.store != nil && !r.telling && !r.tellDurable(h) { // an observer that has ended its goroutine is told no more
		return
	}
	if r.snapping != nil {
		if !h.leave(inCall, doingSnapshot) {
			return
		}
		<-r.snapping
		if !h.back(inCall) {
			return
		}
	}
	if len(r.names) == 0 && r.holdsLease() && (r.apart || !r.keepsLease()) {
		if !h.leave(inCall, doingRelease) {
			return
		}
		kept := r.release(r.stored, &h.code, r.heardAll)
		if !h.back(inCall) {
			return
		}
		if r.released = true; kept != nil {
			r.warnings = append(r.warnings, leaseKept(kept))
		}
	}
	r.dismiss()
	h.word.CompareAndSwap(atHome, finishedRun)
}

// holdsLease reports whether the run has a lease to give back. One that is lost is somebody else's.
func (r *run) holdsLease() bool {
	return !r.released && r.journal.lease.Run != "" && r.journal.hold.fenced() == nil
}

// release gives the lease back, and heeds what was posted meanwhile, unless heard says that there
// is nothing left to be heeded; nil says nothing. Code is as for heed.
func (r *run) release(ctx context.Context, code *atomic.Pointer[string], heard func() bool) error {
	r.journal.hold.stop() // letGo waits for that
	var fault *FaultError // of user code: the store is none the worse for it
	kept := r.c.giveBack(ctx, r.journal.lease, r.err == nil || errors.As(r.err, &fault))
	if heard == nil || !heard() {
		r.c.heed(r.id, code)
	}
	return kept
}

// heardAll reports whether nothing was posted that the call, which still watches, leaves to heed.
// With an error it may have heard what was never appended.
func (r *run) heardAll() bool {
	if r.apart { // it begins again, and hears that itself
		return true
	}
	return r.err == nil && r.m != nil && r.m.status == checkpoint.StatusCompleted && !r.unheard()
}
