package dispatcher

import (
	"sync/atomic"

	"github.com/pawlgo/pawl/checkpoint"
)

// A bookmark is where somebody has stopped to read the past of a run: who goes on from there
// need not read what is before it again. It never changes.
//
// Bookmarks cost little and prove nothing: who reads with one finds what who reads from the
// beginning finds, and where there is none the beginning is read.
type bookmark struct {
	hindsight *hindsight // of the run, when it was put there
	told      *chronicle
	size      int
}

// bookmarks are the newest of a dispatcher. The list never changes, but for another one.
type bookmarks struct {
	list atomic.Pointer[[]*bookmark] // newest first
}

// How much bookmarks may keep: how many there are, and how many visits of open supersteps they
// know in all.
const (
	bookmarksMost  = 32
	bookmarksKnown = 1 << 16
)

// put keeps where a chronicle stands. It may be used on.
func (b *bookmarks) put(h *hindsight, t *chronicle) {
	mark := &bookmark{hindsight: h, size: t.root.size() + len(t.held)}
	if mark.size > bookmarksKnown {
		return
	}
	mark.told = t.clone()
	for {
		was := b.list.Load()
		next := mark.before(was)
		if b.list.CompareAndSwap(was, &next) {
			return
		}
	}
}

// before is a list with the bookmark first, and of the others as many as there may be.
func (k *bookmark) before(others *[]*bookmark) []*bookmark {
	next, known := []*bookmark{k}, k.size
	if others == nil {
		return next
	}
	for _, old := range *others {
		known += old.size
		if len(next) == bookmarksMost || known > bookmarksKnown {
			break
		}
		if old.told.run != k.told.run || old.told.seq != k.told.seq {
			next = append(next, old)
		}
	}
	return next
}

func (b *bookmarks) all() []*bookmark {
	if list := b.list.Load(); list != nil {
		return *list
	}
	return nil
}

// find returns the last bookmark of a run that lies at an entry or before it, nil if there is none.
func (b *bookmarks) find(info *checkpoint.Info, upTo uint64) (last *bookmark) {
	for _, mark := range b.all() {
		at := mark.told.seq
		if mark.of(info) && at <= upTo && at+1 >= info.First && (last == nil || at > last.told.seq) {
			last = mark
		}
	}
	return last
}

// of reports whether the bookmark is in the log that info tells of. Only the head tells: a run may
// have been deleted, and one that bears its name, or was restored from an export of it, may have
// gone on otherwise.
func (k *bookmark) of(info *checkpoint.Info) bool {
	was := &k.hindsight.info
	return was.Run == info.Run && was.Head == info.Head
}

// known returns what is known of a run as long as its head is the same.
func (b *bookmarks) known(info *checkpoint.Info) *hindsight {
	for _, mark := range b.all() {
		if mark.of(info) {
			return mark.hindsight
		}
	}
	return nil
}
