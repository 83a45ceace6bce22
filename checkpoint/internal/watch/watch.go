// Package watch tells who waits for it that something has happened to a run: that a message
// was posted, or that the log has grown. It keeps the clock of messages as well.
package watch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Board knows who waits for news of which run. The zero Board is ready for use.
type Board struct {
	watches atomic.Int64 // how many there are: most of the time none, and then Tell is nothing

	last atomic.Int64 // what Now has returned, in nanoseconds since 1970

	mu    sync.Mutex
	waits map[string][]chan struct{}
	// of those that wait: a function that ends a watch is small, as there are two for each call of
	// a run
	runs map[chan struct{}]string
}

// Watch returns a channel that receives after a [Board.Tell] of run, and the function that
// ends that. Several of them may coalesce into one.
func (b *Board) Watch(run string) (told <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == nil {
		b.waits, b.runs = make(map[string][]chan struct{}), make(map[chan struct{}]string)
	}
	c := make(chan struct{}, 1)
	waits := b.waits[run]
	if waits == nil {
		waits = make([]chan struct{}, 0, 2)
	}
	b.waits[run], b.runs[c] = append(waits, c), run
	b.watches.Add(1)
	return c, func() { b.stop(c) }
}

func (b *Board) stop(c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	run, ok := b.runs[c]
	if !ok {
		return // stopped before
	}
	delete(b.runs, c)
	b.watches.Add(-1)
	waits := b.waits[run]
	i := slices.Index(waits, c)
	if waits = slices.Delete(waits, i, i+1); len(waits) == 0 {
		delete(b.waits, run)
		return
	}
	b.waits[run] = waits
}

// Tell wakes whoever watches run. It never blocks.
func (b *Board) Tell(run string) {
	if b.watches.Load() == 0 {
		return // who begins to watch now sees what has happened by himself
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.waits[run] {
		tell(c)
	}
}

// TellAll wakes whoever watches any run. It never blocks.
func (b *Board) TellAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, watches := range b.waits {
		for _, c := range watches {
			tell(c)
		}
	}
}

// Now is the time, in UTC, and later than all that it has returned before, whatever the clock does.
func (b *Board) Now() time.Time {
	for {
		last := b.last.Load()
		now := max(time.Now().UnixNano(), last+1)
		if b.last.CompareAndSwap(last, now) {
			return time.Unix(0, now).UTC()
		}
	}
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
