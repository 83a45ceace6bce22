package record

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// lookAgain is how often a store is asked for new versions that can't tell of them.
const lookAgain = 200 * time.Millisecond

// Subscribe yields the versions of a record behind version after, in order and each once: first
// those that are there, then those that are added. It goes on until the loop is left, and ends with
// the cause of ctx once that is done. ErrNotFound if there is no such record or it was deleted
// meanwhile, even if there is another one of its id by then. A reader that comes back with the
// number of the last version it has seen misses none. The store is called in the loop's own
// goroutine.
func (l *Ledger) Subscribe(ctx context.Context, id string, after int) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if err := l.called(ctx, "Subscribe"); err != nil {
			yield(Version{}, err)
			return
		}
		after, last := max(after, 0), "" // last is the content hash of version after; "" if it is not known
		var grown <-chan struct{}
		if f, ok := l.store.(checkpoint.Follower); ok {
			told, stop := f.Follow(logPrefix + id) // before the first look, so that nothing is missed
			defer stop()
			grown = told
		}
		for c, err := l.load(ctx, id); ; c, err = l.loadMore(ctx, c) {
			if err != nil {
				yield(Version{}, err)
				return
			}
			if last != "" && !c.follows(after, last) {
				yield(Version{}, fmt.Errorf("%w: record %q: it was deleted, and is another one now", ErrNotFound, id))
				return
			}
			for ; after < len(c.all); after++ {
				v := c.all[after]
				v.Record = v.Record.Clone() // the chain is read on
				if !yield(v, nil) {
					return
				}
			}
			if last = ""; after > 0 && after == len(c.all) && c.all[after-1].Record != nil {
				last = c.all[after-1].Record.ContentHash
			}
			if !next(ctx, grown) {
				yield(Version{}, context.Cause(ctx))
				return
			}
		}
	}
}

// follows reports whether version n is that of a content hash, and so are those before it. One that
// can't be read may be.
func (c *chain) follows(n int, hash string) bool {
	return n <= len(c.all) && (c.all[n-1].Record == nil || c.all[n-1].Record.ContentHash == hash)
}

// next waits until there may be something new. It returns false if ctx ended first.
func next(ctx context.Context, grown <-chan struct{}) bool {
	var look <-chan time.Time
	if grown == nil {
		look = time.After(lookAgain)
	}
	select {
	case <-grown:
	case <-look:
	case <-ctx.Done():
		return false
	}
	return true
}
