package record

import (
	"context"
	"iter"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// lookAgain is how often a store is asked for new versions that can't tell of them.
const lookAgain = 200 * time.Millisecond

// Subscribe yields the versions of a record behind version after, in order and each once, also
// where those that are there become those that are added. It goes on until the loop is left, or
// ends with the cause of ctx once that is done; ErrNotFound if there is no such record, or it was
// deleted. Whoever comes back with the number of the last version that was seen misses none. The
// store is called in the loop's own goroutine.
func (l *Ledger) Subscribe(ctx context.Context, id string, after int) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if err := l.called(ctx, "Subscribe"); err != nil {
			yield(Version{}, err)
			return
		}
		after := max(after, 0)
		var grown <-chan struct{}
		if f, ok := l.store.(checkpoint.Follower); ok {
			told, stop := f.Follow(logPrefix + id) // before the first look, so that nothing is missed
			defer stop()
			grown = told
		}
		for {
			c, err := l.load(ctx, id)
			if err != nil {
				yield(Version{}, err)
				return
			}
			for ; after < len(c.all); after++ {
				if !yield(c.all[after], nil) {
					return
				}
			}
			if !next(ctx, grown) {
				yield(Version{}, context.Cause(ctx))
				return
			}
		}
	}
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
